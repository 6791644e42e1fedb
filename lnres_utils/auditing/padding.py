"""Do zeros behind a sequence change the output at its real positions?"""

import itertools
from dataclasses import dataclass

import torch

from lnres_utils.auditing.arithmetic import scale_of
from lnres_utils.auditing.draws import Undropped, own_output
from lnres_utils.auditing.probing import CannotTell
from lnres_utils.auditing.report import Finding
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.auditing.trees import mapped, tensors
from lnres_utils.auditing.wording import MODES, in_modes, joined, sized

MOST_WAYS = 16
FILLS = (0, 1, float("-inf"))  # what a padding mask may hold at padding
MASK = ("If the module takes a padding mask, hand one on that hides nothing; the check then marks "
        "the padding in it.")
DECLARE = "Declare `padded=True` if inputs get padded."


@dataclass(frozen=True)
class Trial:
    """Two calls that should agree at the first ``real`` positions: ``(x, args, kwargs)`` each.

    There are several long calls, by what they set in the masks; one that agrees is enough. The
    call "" sets nothing, and counts only where there is no mask.
    """

    real: int
    zeros: int
    short: tuple
    long: dict


def padding(subject):
    """Finding "padding": the output with and without zeros behind it, in both modes.

    As many zeros as there are positions are appended. Where the arguments have an axis of
    positions, the second half of the example is set to zero instead, and compared with a call with
    the first half of everything. In masks of a row for each example the padding is marked, in each
    usual way. An output without positions is compared whole.

    Padding that moves something is a problem where inputs get padded: the caller says so, or hands
    a mask on.
    """
    if not subject.positions:
        return Finding("padding", "cannot tell",
                       f"The axes {subject.axes} have no positions T, H or W.")
    letter = "T" if "T" in subject.positions else subject.positions[-1]
    facts, found, not_told, masks = {"axis": letter}, {}, {}, []
    for mode in MODES:
        try:
            facts[mode] = _asked(subject, letter, mode)
        except (ModuleRaised, CannotTell) as error:
            raised = "the module raised " if isinstance(error, ModuleRaised) else ""
            not_told[mode] = raised + str(error).removesuffix(".") + "."
            facts[mode] = {"gap": None}
            continue
        masks += [facts[mode]["mask"]] * bool(facts[mode]["mask"])
        if facts[mode]["gap"] > facts[mode]["tolerance"]:
            found[mode] = _moved(facts[mode], letter)
    unclear, found = in_modes(not_told), in_modes(found, after=",")
    if found:
        is_problem = subject.padded or (subject.padded is None and masks)
        hints = (MASK * bool(not masks and subject.takes_more),
                 DECLARE * (not masks and subject.padded is None))
        return Finding("padding", "problem" if is_problem else "info",
                       joined(*found, *hints, *unclear), facts)
    if facts["eval"]["gap"] is None:
        return Finding("padding", "cannot tell", joined(*unclear), facts)
    marked = f", marked by {masks[0]}," if masks else ""
    return Finding("padding", "ok", joined(
        f"Zeros behind x along {letter}{marked} leave {_of(facts['eval'])}.", *unclear), facts)


def _of(facts):
    return "the output as it is" if facts["whole"] else "the real positions as they are"


def _moved(facts, letter):
    """A sentence on padding that moves the output."""
    marked = f", marked by {facts['mask']}," if facts["mask"] else ""
    what = "the output" if facts["whole"] else "the real positions"
    unmarked = " Not marked, they do not." if facts["only unmarked"] else ""
    return (f"{facts['zeros']} zeros behind {facts['real']} positions along {letter}{marked} move "
            f"{what} by up to {sized(facts['gap'])}.{unmarked}")


def _asked(subject, letter, mode):
    """The facts of one mode."""
    scale = scale_of(subject, mode)
    if scale.why_not():
        raise CannotTell(scale.why_not())

    undropped = mode == "train"
    own = own_output(subject, mode, undropped=undropped)

    def run(x, args, kwargs):
        if x is subject.x:
            return own
        return subject.run(x, mode=mode, dtype=scale.dtype, args=args, kwargs=kwargs,
                           around=Undropped() if undropped else None).detach()

    if scale.differ(own, own_output(subject, mode, seed=1, undropped=undropped)):
        raise CannotTell("random draws hide what padding does.")
    makers = [_shortened] if _have_positions(subject, letter) else [_appended, _shortened]
    best, reasons = None, []
    for trial in (trial for maker in makers for trial in maker(subject, letter)):
        try:
            facts = _compared(trial, subject.axis(letter), run, scale)
        except (ModuleRaised, CannotTell) as error:
            reasons.append(error)
            continue
        best = facts if best is None or facts["gap"] < best["gap"] else best
        if trial.short[0] is subject.x or best["gap"] <= scale.tolerance:
            break
    if best is None:
        raise reasons[0] if reasons else CannotTell(f"x has one position along {letter}, and the "
                                                    "module takes no more.")
    return best


def _compared(trial, axis, run, scale):
    short = run(*trial.short)
    gaps, whole, reason = {}, False, None
    for mask, call in trial.long.items():
        try:
            long = run(*call)
        except ModuleRaised as error:
            reason = reason or error
            continue
        whole = long.shape == short.shape  # pooled: no axis grew with the positions
        if not whole:
            _demand_length(short, axis, trial.real)
            _demand_length(long, axis, trial.real + trial.zeros)
            long = long.narrow(axis, 0, trial.real)
        gaps[mask] = scale.far(long, short).max().item()
    if not gaps:
        raise reason
    marked = [mask for mask in gaps if mask]
    mask = min(marked or gaps, key=gaps.get)
    only_unmarked = gaps[mask] > scale.tolerance >= gaps.get("", float("inf"))
    return {"gap": gaps[mask], "tolerance": scale.tolerance, "real": trial.real,
            "zeros": trial.zeros, "mask": mask, "whole": whole, "only unmarked": only_unmarked}


def _demand_length(y, axis, length):
    if y.ndim <= axis or y.shape[axis] != length:
        raise CannotTell(f"for {length} positions the output has the shape {tuple(y.shape)}.")


def _appended(subject, letter):
    axis, x = subject.axis(letter), subject.x
    length = x.shape[axis]
    long = torch.cat([x, torch.zeros_like(x)], axis)
    yield Trial(length, length, (x, subject.args, subject.kwargs),
                {"": (long, subject.args, subject.kwargs)})


def _shortened(subject, letter):
    """Trials with the first half of the positions, and with the second half zero.

    Where the batch or the features are as many as the positions, there are several ways to take
    the first half of an argument.
    """
    axis, x = subject.axis(letter), subject.x
    length = x.shape[axis]
    real = (length + 1) // 2
    if length < 2:
        return
    long = x.clone()
    long.narrow(axis, real, length - real).zero_()
    calls = {"": (long, subject.args, subject.kwargs),
             **_marked(subject, long, length, real)}
    given = tensors([subject.args, subject.kwargs])
    is_clear = list(x.shape).count(length) == 1
    ways = [_ways_to_cut(each, length, is_clear) for each in given]
    for chosen in itertools.islice(itertools.product(*ways), MOST_WAYS):
        if not is_clear and real == 1 and any(chosen):
            raise CannotTell(f"x has {length} positions along {letter} and {length} along another "
                             "axis: the axes of the arguments cannot be told; use another length.")
        axes = iter(chosen)

        def cut(tensor, axes=axes):
            for each in next(axes):
                tensor = tensor.narrow(each, 0, real)
            return tensor

        short = x.narrow(axis, 0, real), mapped(subject.args, cut), mapped(subject.kwargs, cut)
        yield Trial(real, length - real, short, calls)


def _ways_to_cut(tensor, length, is_clear):
    """Sets of axes of an argument that may be those of positions, the likeliest first."""
    axes = [each for each in range(tensor.ndim) if tensor.shape[each] == length]
    ways = [axes] if is_clear else [axes, *([each] for each in reversed(axes)), []]
    return [way for place, way in enumerate(ways) if way not in ways[:place]]


def _marked(subject, long, length, real):
    """Calls in which the masks mark the padding, by what they hold there."""
    calls = {}
    for fill in FILLS:
        named = []

        def marked(tensor, fill=fill, named=named):
            if not _has_row_for_each_example(tensor, subject, length):
                return tensor
            if fill not in (0, 1) and not tensor.is_floating_point():
                return tensor
            filled = tensor.clone()
            filled[..., real:] = fill
            if not torch.equal(filled, tensor):  # otherwise nothing is marked
                named.append(tensor)
            return filled

        call = long, mapped(subject.args, marked), mapped(subject.kwargs, marked)
        if named:
            names = [name for name, value in subject.kwargs.items()
                     if any(each is value for each in named)]
            calls[f"{' and '.join(names) or 'a mask'} = {fill}"] = call
    return calls


def _has_row_for_each_example(tensor, subject, length):
    """Whether it may be a mask of padding; whole numbers of many values are places or tokens."""
    batch = subject.x.shape[subject.axis("B")]
    if tensor.ndim < 2 or tensor.shape[0] not in (1, batch) or tensor.shape[-1] != length:
        return False
    return tensor.is_floating_point() or len(tensor.unique()) <= 2


def _have_positions(subject, letter):
    """Whether an argument has an axis as long as x has positions."""
    length = subject.x.shape[subject.axis(letter)]
    return any(length in each.shape for each in tensors([subject.args, subject.kwargs]))
