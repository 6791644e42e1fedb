"""Does the output of one example depend on the other examples of the batch?"""

import torch

from lnres_utils.auditing.arithmetic import scale_of
from lnres_utils.auditing.changes import changed_at
from lnres_utils.auditing.report import Finding
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.auditing.wording import DRAWS, HIDDEN, MODES, SHAPE, in_modes, joined, sized

ONE_BY_ONE = 8  # up to so many examples are changed one at a time, more in groups
EXCHANGED = "Examples mix and positions do not: are the axes exchanged (`batch_first`)?"


def examples(subject):
    """Finding "examples": change some examples, look at the others; in evaluation and training."""
    facts = {mode: mixing(subject, mode) for mode in MODES}
    mixes = [mode for mode in MODES if facts[mode]["mixes"]]
    unclear = in_modes({mode: facts[mode]["sentence"] for mode in MODES
                        if facts[mode]["mixes"] is None})
    facts["where"] = "both" if len(mixes) == 2 else f"{mixes[0]} only" if mixes else "none"
    if mixes:
        only = " only" * (len(mixes) == 1 and not unclear)
        found = in_modes({mode: facts[mode]["sentence"] for mode in mixes}, after=f"{only},")
        hint = EXCHANGED if len(mixes) == 2 and _positions_stay_apart(subject) else ""
        return Finding("examples", "problem", joined(*found, *unclear, hint), facts)
    if unclear:
        return Finding("examples", "cannot tell", " ".join(unclear), facts)
    return Finding("examples", "ok", "No example moved when the others were changed, in "
                   "evaluation and in training.", facts)


def _positions_stay_apart(subject):
    """Whether the last position stays where it is when all those before it are changed."""
    if not subject.positions:
        return False
    scale, x, axis = scale_of(subject), subject.x, subject.axis(subject.positions[0])
    length = x.shape[axis]
    if length == 1 or scale.y.ndim <= axis or scale.y.shape[axis] != length:
        return False
    generator = torch.Generator().manual_seed(subject.seed + 3)
    changed = changed_at(x, axis, range(length - 1), x, generator)
    new = subject.run(changed, dtype=scale.dtype).detach()
    return not scale.differ(*(y.narrow(axis, length - 1, 1) for y in (new, scale.y)))


def mixing(subject, mode):
    """Whether examples depend on each other in a mode; asked once.

    Returns
    -------
    dict: mixes (True, False, or None for unknown), largest change, sentence
    """
    key = "mixing", mode
    if key not in subject.cache:
        try:
            subject.cache[key] = _mixing(subject, mode)
        except ModuleRaised as error:
            subject.cache[key] = _unknown(f"the module raised {error}.")
    return subject.cache[key]


def _unknown(sentence):
    return {"mixes": None, "largest": None, "sentence": sentence}


def _mixing(subject, mode):
    scale, x, axis = scale_of(subject, mode), subject.x, subject.axis("B")
    if scale.why_not():
        return _unknown(scale.why_not())
    if x.shape[axis] == 1:
        return _unknown("x has one example, and the module takes no second one.")
    if scale.y.ndim <= axis or scale.y.shape[axis] != x.shape[axis]:
        return _unknown(f"the output of shape {tuple(scale.y.shape)} has no axis of "
                        f"{x.shape[axis]} examples at place {axis}.")
    generator = torch.Generator().manual_seed(subject.seed + 2)
    largest, sentence = 0.0, ""
    for group in _groups(x.shape[axis]):
        changed = changed_at(x, axis, group, x, generator)
        new = subject.run(changed, mode=mode, dtype=scale.dtype).detach()
        others = [each for each in range(x.shape[axis]) if each not in group]
        if new.shape != scale.y.shape:
            return _unknown(SHAPE)
        if subject.drawn != scale.drawn:
            return _unknown(DRAWS)
        far = scale.far(new, scale.y).movedim(axis, 0).flatten(1).amax(1)[others]
        if far.max() > largest:
            largest, moved = far.max().item(), others[far.argmax()]
            sentence = (f"changing example{'s' * (len(group) > 1)} "
                        f"{', '.join(map(str, group))} moves example {moved} by {sized(largest)}.")
    mixes = largest > scale.tolerance
    if not mixes and not scale.y.is_floating_point():
        return _unknown(HIDDEN)
    return {"mixes": mixes, "largest": largest, "sentence": sentence if mixes else "",
            "tolerance": scale.tolerance}


def _groups(count):
    """Sets of examples such that each pair is parted by one set in each direction."""
    if count <= ONE_BY_ONE:
        return [[each] for each in range(count)]
    return [[each for each in range(count) if (each >> bit) % 2 == value]
            for bit in range((count - 1).bit_length()) for value in (0, 1)]
