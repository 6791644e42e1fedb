"""Does the output of one example depend on the other examples of the batch?"""

import torch

from lnres_utils.auditing.arithmetic import scale_of
from lnres_utils.auditing.changes import changed_at, lengthened
from lnres_utils.auditing.report import Finding
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.auditing.trees import mapped

ONE_BY_ONE = 8  # up to so many examples are changed one at a time, more in groups
MODES = {"eval": "evaluation", "train": "training"}


def examples(subject):
    """Finding "examples": change some examples, look at the others; in evaluation and training."""
    facts, seen, unclear = {}, [], []
    for mode in MODES:
        result = mixing(subject, mode)
        facts[mode] = {name: value for name, value in result.items() if name != "sentence"}
        if result["mixes"] is None:
            unclear.append(f"In {MODES[mode]}: {result['sentence']}")
        elif result["mixes"]:
            seen.append(f"In {MODES[mode]}, {result['sentence']}.")
    if seen:
        only = " only" if len(seen) == 1 and not unclear else ""
        facts["where"] = "train only" if facts["eval"]["mixes"] is False else "eval" + only
        return Finding("examples", "problem", " ".join([*seen, *unclear, _why(subject)]), facts)
    if unclear:
        return Finding("examples", "cannot tell", " ".join(unclear), facts)
    return Finding("examples", "ok", "No example moves when others are changed, in evaluation and "
                   f"in training. {_why(subject)}", facts)


def _why(subject):
    remark = subject.cache.get("more examples", "")
    return scale_of(subject).sentence() + (" " + remark if remark else "")


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
    scale = scale_of(subject, mode)
    if scale.why_not():
        return _unknown(scale.why_not())
    x, args, kwargs = _several(subject, mode, scale.dtype)
    axis = subject.axis("B")

    def run(x):
        return subject.run(x, mode=mode, dtype=scale.dtype, args=args, kwargs=kwargs).detach()

    y = run(x)
    if y.ndim <= axis or y.shape[axis] != x.shape[axis]:
        return _unknown(f"the output of shape {tuple(y.shape)} has no axis of "
                        f"{x.shape[axis]} examples at place {axis}.")
    if scale.differ(run(x), y):
        return _unknown("the same call gives another result, also with the same seeds.")
    generator = torch.Generator().manual_seed(subject.seed + 2)
    largest, sentence = 0.0, ""
    for group in _groups(x.shape[axis]):
        new = run(changed_at(x, axis, group, subject.x, generator))
        others = [each for each in range(x.shape[axis]) if each not in group]
        if new.shape != y.shape:
            return _unknown("the shape of the output depends on the numbers in x.")
        far = scale.far(new, y).movedim(axis, 0).flatten(1).amax(1)[others]
        if far.max() > largest:
            largest, moved = far.max().item(), others[far.argmax()]
            sentence = (f"changing example{'s' * (len(group) > 1)} "
                        f"{', '.join(map(str, group))} moves example {moved} by {largest:.1g}")
    return {"mixes": largest > scale.tolerance, "largest": largest, "sentence": sentence,
            "tolerance": scale.tolerance}


def _groups(count):
    """Sets of examples such that each pair is parted by one set in each direction."""
    if count <= ONE_BY_ONE:
        return [[each] for each in range(count)]
    return [[each for each in range(count) if (each >> bit) % 2 == value]
            for bit in range((count - 1).bit_length()) for value in (0, 1)]


def _several(subject, mode, dtype):
    """The input with at least two examples, and the arguments that go with it."""
    axis = subject.axis("B")
    if subject.x.shape[axis] > 1:
        return subject.x, subject.args, subject.kwargs
    generator = torch.Generator().manual_seed(subject.seed + 3)
    x = lengthened(subject.x, axis, 2, subject.x, generator)
    subject.cache["more examples"] = "x has one example; a second one of new numbers was added."
    try:
        subject.run(x, mode=mode, dtype=dtype)
        return x, subject.args, subject.kwargs
    except ModuleRaised:
        pass

    def doubled(tensor):
        one = tensor.ndim > 0 and tensor.shape[0] == 1
        return tensor.repeat(2, *[1] * (tensor.ndim - 1)) if one else tensor

    return x, mapped(subject.args, doubled), mapped(subject.kwargs, doubled)
