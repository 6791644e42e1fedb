"""Sentences that several checks say."""

import math

from lnres_utils.auditing.arithmetic import SAFETY, measured_scales

MODES = {"eval": "evaluation", "train": "training"}
DRAWS = "how many random numbers the module draws depends on the numbers in x."
SHAPE = "the shape of the output depends on the numbers in x."
HIDDEN = "no output moved, but whole numbers may hide small changes."


def in_modes(said, after=":", where=""):
    """Sentences on the modes, ``said`` by mode; once where they are the same."""
    grouped = {}
    for mode, sentence in said.items():
        grouped.setdefault(sentence, []).append(MODES[mode])
    return [f"In {' and in '.join(modes)}{where}{after} {sentence}"
            for sentence, modes in grouped.items()]


def sized(size):
    """The size of a change, with its unit."""
    if not math.isfinite(size):
        return "an infinite amount"
    number = f"{size:.1g}"
    return f"{number} unit" + "s" * (number != "1")


def measure(subject):
    """The sentence on the unit and the tolerance of what was asked, or an empty string."""
    scales = {mode: scale for mode, scale in measured_scales(subject).items()
              if not scale.why_not()}
    if not scales:
        return ""
    unit = "A unit is how far a wholly new input moves the output; "
    widest = max(scales.values(), key=lambda scale: scale.tolerance)
    if all(_is_near(scale, widest) for scale in scales.values()):
        return unit + _counted(widest) + "."
    return unit + ", ".join(f"in {MODES[mode]} {_counted(scale)}"
                            for mode, scale in scales.items()) + "."


def _is_near(scale, widest):
    return scale.arithmetic == widest.arithmetic and widest.tolerance <= 2 * scale.tolerance


def _counted(scale):
    if not scale.rounding:
        return "each difference counts, as the outputs are integers"
    return (f"changes above {scale.tolerance:.0e} units count ({SAFETY} times the rounding error "
            f"in {scale.arithmetic})")


def joined(*sentences):
    return " ".join(filter(None, sentences))
