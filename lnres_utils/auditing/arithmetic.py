"""How exactly a module computes, and from which difference on two outputs are different.

The rule for all checks. The unit of a change is what a wholly new input does to the output. The
tolerance is 16 times the rounding error to expect, in this unit; the error to expect is how far the
output moves when each input number moves by its last place, in the least exact dtype that occurs
inside the module. For a norm this is the last place of the mean over the standard deviation. A
tolerance of 0.1 or more tells nothing.
"""

from dataclasses import dataclass, replace

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lnres_utils.auditing.changes import redrawn
from lnres_utils.auditing.subject import ModuleRaised
from lnres_utils.auditing.trees import tensors

SAFETY = 16  # errors of many operations add up
TOO_LARGE = 0.1


@dataclass(frozen=True)
class Scale:
    """What differences are measured by, in one mode and one dtype.

    Attributes
    ----------
    dtype : torch.dtype or None, in which the calls are made; None is each number's own
    arithmetic : str, the least exact dtype inside the module
    unit : float, root mean square of the change of the output by a wholly new input
    rounding : float, the rounding error to expect in the output
    y : tensor, the output for the example
    drawn : where the random numbers stood after it
    other, other_y : tensors, a wholly new input and the output for it
    trouble : str, why nothing can be measured, or ""
    """

    dtype: torch.dtype | None
    arithmetic: str
    unit: float
    rounding: float
    y: torch.Tensor
    drawn: int
    other: torch.Tensor
    other_y: torch.Tensor
    trouble: str = ""

    @property
    def tolerance(self):
        """In units of ``unit``."""
        return SAFETY * self.rounding / self.unit if self.unit > 0 else float("inf")

    @property
    def tells(self):
        return self.tolerance < TOO_LARGE

    def far(self, a, b):
        """Distances of two outputs, number by number, in units; equal infinities are equal."""
        a, b = a.detach().double(), b.detach().double()
        same = (a == b) | (a.isnan() & b.isnan())
        distance = torch.where(same, torch.zeros_like(a), (a - b).abs() / self.unit)
        return torch.where(distance.isnan(), torch.full_like(a, float("inf")), distance)

    def differ(self, a, b):
        return a.shape != b.shape or bool((self.far(a, b) > self.tolerance).any())

    def why_not(self):
        """Why this scale tells nothing, as a sentence; or an empty string."""
        if self.trouble:
            return self.trouble
        if not self.tells:
            return (f"Rounding in {self.arithmetic} moves the output by up to {self.rounding:.1g} "
                    f"where a new input moves it by {self.unit:.1g}: the tolerance, "
                    f"{self.tolerance:.1g}, is not below {TOO_LARGE}.")
        return ""

    def facts(self):
        return {"dtype": "its own" if self.dtype is None else name(self.dtype),
                "arithmetic": self.arithmetic, "tolerance": self.tolerance,
                "rounding": self.rounding, "unit": self.unit}


def logic_dtype(subject):
    """float64 if the module runs in it, else None: questions of who sees whom need no other."""
    if "logic dtype" not in subject.cache:
        subject.cache["logic dtype"] = _runs_in_double(subject)
    return subject.cache["logic dtype"]


def _runs_in_double(subject):
    try:
        own, y = subject.run(), subject.run(dtype=torch.float64)
    except ModuleRaised:
        return None
    usable = y.shape == own.shape and bool((y.isfinite() | ~own.isfinite()).all())
    return torch.float64 if usable else None


def scale_of(subject, mode="eval", dtype="logic"):
    """The :class:`Scale` of a subject in a mode; measured once."""
    dtype = logic_dtype(subject) if dtype == "logic" else dtype
    key = "scale", mode, dtype
    if key not in subject.cache:
        subject.cache[key] = _measured(subject, mode, dtype)
    return subject.cache[key]


def measured_scales(subject):
    """The scales of logic that were measured so far, by mode."""
    dtype = subject.cache.get("logic dtype")
    found = {mode: subject.cache.get(("scale", mode, dtype)) for mode in ("eval", "train")}
    return {mode: scale for mode, scale in found.items() if scale is not None}


def _measured(subject, mode, dtype):
    watch = _LeastExact()
    y = subject.run(mode=mode, dtype=dtype, around=watch).detach()
    drawn = subject.drawn
    floats = [each for each in (y.dtype, *watch.seen) if each.is_floating_point]
    least = max(floats, key=lambda each: torch.finfo(each).eps, default=y.dtype)
    if not y.is_floating_point():
        least = y.dtype
    generator = torch.Generator().manual_seed(subject.seed)
    other = redrawn(subject.x, subject.x, generator)
    changed = subject.run(other, mode=mode, dtype=dtype).detach()
    again = subject.run(mode=mode, dtype=dtype).detach()
    scale = Scale(dtype, name(least), 1.0, 0.0, y, drawn, other, changed)
    if not y.isfinite().any():
        return replace(scale, trouble="The output has no finite number.")
    if changed.shape != y.shape or again.shape != y.shape:
        return replace(scale, trouble="The shape of the output differs from call to call.")
    finite = scale.far(changed, y)[y.isfinite() & changed.isfinite()]
    unit = finite.square().mean().sqrt().item() if len(finite) else 0.0
    if unit == 0:
        return replace(scale, trouble="The output does not depend on the input.")
    rounding = torch.finfo(least).eps * y[y.isfinite()].abs().max().item() if (
        y.is_floating_point()) else 0.0
    if replace(scale, unit=unit, rounding=rounding).differ(again, y):
        return replace(scale, trouble="The same call gives another result, also with the same "
                       "seeds.")
    moved = _moved_by_last_places(subject, mode, dtype, least, y) if rounding else 0.0
    return replace(scale, unit=unit, rounding=max(rounding, moved))


def _moved_by_last_places(subject, mode, dtype, least, y):
    """Largest change of the output when each input number moves by its last place."""
    if not subject.x.is_floating_point():
        return 0.0
    x = subject.x if dtype is None else subject.x.to(dtype)
    generator = torch.Generator().manual_seed(subject.seed + 1)
    signs = torch.randint(0, 2, x.shape, generator=generator).to(x.device, x.dtype) * 2 - 1
    moved = subject.run(x + x * signs * torch.finfo(least).eps, mode=mode, dtype=dtype).detach()
    if moved.shape != y.shape:
        return 0.0
    both = moved.isfinite() & y.isfinite()
    return (moved - y)[both].abs().max().item() if both.any() else 0.0


class _LeastExact(TorchDispatchMode):
    """Notes the dtypes of all real numbers that are computed; single numbers do not count."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.seen.update(each.dtype for each in tensors(result)
                         if each.is_floating_point() and each.numel() > 1)
        return result


def name(dtype):
    return str(dtype).removeprefix("torch.")
