"""Does the output change when the input is made larger, or shifted?"""

import torch

from lnres_utils.auditing import probing
from lnres_utils.auditing.arithmetic import name
from lnres_utils.auditing.norms_found import LARGE
from lnres_utils.auditing.probing import CannotTell, largest, outputs, part, rms, short
from lnres_utils.auditing.subject import ModuleRaised

FACTOR, SHIFT = 4.0, 2.0
FAR = 1e4  # an offset, in spreads of a row: one rounding of it in float32 is 1e-3 of a spread


@probing.check("scale")
def scale(subject):
    """Whether the output stays when the whole input is multiplied by a number."""
    dtype = probing.precise(subject)
    x = LARGE * probing.draw(subject, size=1.0, examples=4)
    facts = {"dtype": name(dtype)}
    for mode in ("eval", "train"):
        y, larger = outputs(subject, x, FACTOR * x, dtype=dtype, mode=mode)
        change = largest(larger - y)
        same = change <= _tolerance(subject, x, y, dtype, mode)
        facts |= {_key("invariant", mode): same, _key("largest change", mode): change}
        if same:
            break
    if not same:
        return "info", (f"not scale-invariant: at {short(FACTOR)} times the input "
                       f"the output changes by {part(rms(larger - y), y)}"), facts
    erased = _erased(subject, x, y, dtype, mode)
    if erased:
        return "problem", erased, facts
    where = "" if mode == "eval" else " in training mode only"
    return "info", (f"scale-invariant{where}: at {short(FACTOR)} times the input "
                   f"the output changes by {part(change, y)} ({name(dtype)})"), facts


def _erased(subject, x, y, dtype, mode):
    """A sentence, if of each number only its sign, or nothing, reaches the output."""
    other = x.flip(0).neg() * 2 + 1
    stretched = x * (1 + probing.draw(subject, 3, examples=4).abs())
    for_other, for_stretched = outputs(subject, other, stretched, dtype=dtype, mode=mode)
    near = probing.SAME * max(rms(y), probing.LEAST)
    if largest(for_other - y) <= near and largest(for_stretched - y) <= near:
        return ("the output does not depend on the input: whatever goes in, the same comes out, "
                "as of a layer norm over an axis of length one")
    if largest(for_stretched - y) <= near and _only_signs(subject, x, near, dtype, mode):
        return ("of each number only its sign reaches the output, as where each is normalized by "
                "itself, by an RMSNorm over an axis of length one")
    return ""


def _only_signs(subject, x, near, dtype, mode):
    """Whether positive numbers in the reverse order of size, too, give what they gave before.

    Of a row of two numbers a layer norm keeps which one is larger.
    """
    positive = x.abs()
    y, y_reversed = outputs(subject, positive, 1.1 * largest(x) - positive, dtype=dtype, mode=mode)
    return largest(y_reversed - y) <= near


@probing.check("shift")
def shift(subject):
    """Whether the output stays when a constant is added; and, where it should, in float32, too."""
    dtype = probing.precise(subject)
    x = probing.draw(subject, examples=4)
    facts = {"dtype": name(dtype)}
    for mode in ("eval", "train"):
        y, moved = outputs(subject, x, x + SHIFT, dtype=dtype, mode=mode)
        change = largest(moved - y)
        near = _tolerance(subject, x, y, dtype, mode)
        same = change <= near
        facts |= {_key("invariant", mode): same, _key("largest change", mode): change}
        through = largest(moved - y - SHIFT) <= near
        if mode == "eval":
            facts["passes through"] = through
        if same or through:
            break
    size = change if same else rms(moved - y)
    sentence = _shift_sentence(same, through, part(size, y), mode, name(dtype))
    if not (same or through):
        return "info", sentence, facts
    return _far_from_zero(subject, mode, through and not same, sentence, facts)


def _shift_sentence(same, through, change, mode, dtype):
    where = "" if mode == "eval" else " in training mode only"
    if same:
        return (f"shift-invariant{where}: {short(SHIFT)} added to the input changes the output by "
                f"{change} ({dtype})")
    if through:
        return (f"a shift passes through unchanged{where}: {short(SHIFT)} added to the input is "
                f"{short(SHIFT)} added to the output, as of a skip beside layer norms")
    return (f"not shift-invariant: {short(SHIFT)} added to the input changes the output by "
            f"{change}")


def _far_from_zero(subject, mode, through, sentence, facts):
    """The finding where a shift should not matter: does float32 keep to that far from zero?"""
    x = (_spread(probing.draw(subject, 4, size=1.0, offset=0, examples=4)) + FAR).float().double()
    try:  # the truth is asked near zero, as some modules compute in float32 whatever they get
        truth, = outputs(subject, x - FAR, dtype=torch.float64, mode=mode)
        single = subject.run(x, dtype=torch.float32, mode=mode).double()
    except ModuleRaised:  # it runs in one dtype only: there is nothing to compare
        return "info", sentence, facts
    if not bool(single.isfinite().all()):
        facts |= {"offset": FAR, "error": None}
        return "problem", (f"{sentence}; but in float32, for rows of mean {FAR:.0f} and spread 1, "
                           "the output is not finite: the variance is lost, as by E[x²] − E[x]²"
                           ), facts
    spacing = torch.finfo(torch.float32).eps * FAR
    moved = probing.sensitivity(subject, x - FAR, truth, spacing, mode)
    moved = max(moved, spacing * rms(truth))  # by the mean's own rounding, of spreads of about 1
    truth = truth + FAR * through
    allowed = probing.ROUNDING * max(moved, torch.finfo(torch.float32).eps * largest(truth))
    error = largest(single - truth)
    facts |= {"offset": FAR, "error": error, "tolerance": allowed}
    if error <= allowed:
        return "info", (f"{sentence}; float32 keeps to that far from zero (error "
                       f"{error:.1g} for rows of mean {FAR:.0f} and spread 1)"), facts
    if allowed > 0.1 * max(rms(truth), probing.LEAST):
        return "cannot tell", (f"{sentence}; far from zero rounding alone may move "
                       f"the output by {allowed:.1g}"), facts
    if _draws(subject, x - FAR, mode):
        return "cannot tell", (f"{sentence}; whether float32 keeps to that far from zero does not "
                               "show: the module draws random numbers, other ones in each dtype"
                               ), facts
    return "problem", (f"{sentence}; but in float32, for rows of mean {FAR:.0f} "
                   f"and spread 1, the output is off by {error:.1g} where rounding explains "
                   f"{allowed:.1g}: the spread is lost, as by E[x²] − E[x]²"), facts


def _draws(subject, x, mode):
    """Whether the output depends on the seed."""
    first, second = (subject.run(x, dtype=torch.float64, mode=mode, seed=seed) for seed in (0, 1))
    return not torch.equal(first, second)


def _spread(numbers):
    """The same numbers away from zero, their signs in turns along each axis: no row is flat."""
    places = torch.stack(torch.meshgrid(*map(torch.arange, numbers.shape), indexing="ij")).sum(0)
    return (0.5 + numbers.abs()) * (1 - 2 * (places % 2)).to(numbers)


def _tolerance(subject, x, y, dtype, mode):
    """How much change is none."""
    size = max(rms(y), probing.LEAST)
    if dtype == torch.float64:
        return probing.SAME * size
    allowed = probing.ROUNDING * torch.finfo(dtype).eps * largest(x) / LARGE * max(largest(y), size)
    if allowed > 0.1 * size:
        raise CannotTell(f"the module runs in {name(dtype)} only, whose rounding may move the "
                         f"output by {short(allowed)}")
    return max(allowed, probing.SAME * size)


def _key(fact, mode):
    return fact if mode == "eval" else f"{fact} in train"
