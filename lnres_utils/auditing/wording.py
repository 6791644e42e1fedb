"""Sentences that several checks say."""

from lnres_utils.auditing.arithmetic import scale_of

MODES = {"eval": "evaluation", "train": "training"}
DRAWS = "how many random numbers the module draws depends on the numbers in x."
HIDDEN = "no output moved, but whole numbers may hide small changes."


def in_modes(said, after=":", where=""):
    """Sentences on the modes, ``said`` by mode; once where they are the same."""
    grouped = {}
    for mode, sentence in said.items():
        grouped.setdefault(sentence, []).append(MODES[mode])
    return [f"In {' and in '.join(modes)}{where}{after} {sentence}"
            for sentence, modes in grouped.items()]


def basis(subject):
    """The sentence on the tolerance, where there is one."""
    scale = scale_of(subject)
    return "" if scale.why_not() else scale.sentence()


def joined(*sentences):
    return " ".join(filter(None, sentences))
