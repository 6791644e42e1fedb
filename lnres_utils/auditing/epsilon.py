"""The epsilon that a norm really adds, found from its outputs."""

import torch

from lnres_utils.auditing import probing
from lnres_utils.auditing.arithmetic import name
from lnres_utils.auditing.norms_found import norm_mode
from lnres_utils.auditing.probing import CannotTell, outputs, short
from lnres_utils.auditing.subject import ModuleRaised

LARGE = {8: 1e3, 4: 1e3, 2: 8}  # by bytes, times the row: there epsilon is nothing, no square inf
SIZES = (0.9, 0.45)  # parts of a row that remain, at which epsilon is asked for
SMALLEST = {torch.float16: 2e-5}  # spread of a row that the dtype still holds to a percent
SMALLEST_OF_OTHERS = {8: 1e-40, 4: 1e-17, 2: 1e-17}  # by bytes: its square is no less, either
LAWS = {  # what remains of a row of spread s -> the epsilon that explains it
    "inside the root": lambda kept, spread: spread**2 * (1 / kept**2 - 1),
    "outside the root": lambda kept, spread: spread * (1 / kept - 1),
    "as a floor": lambda kept, spread: spread / kept,
}
HALVES = (torch.float32, torch.bfloat16, torch.float16)


@probing.check("epsilon")
def epsilon(subject):
    """The epsilon of a module that is a norm: how large, inside or outside of the root."""
    mode = norm_mode(subject)
    if mode is None:
        return "info", ("not asked: only the output of a norm shows its epsilon, and this module "
                        "as a whole is none"), {"applies": False}
    row = _Row(subject, mode)
    facts = {"applies": True, "mode": mode, "epsilon": {}, "below": {}, "centered": row.centered}
    laws = {}
    for dtype in dict.fromkeys((probing.precise(subject), *HALVES)):
        try:
            value, laws[dtype] = row.epsilon(dtype)
            facts["epsilon" if laws[dtype] else "below"][name(dtype)] = value
        except (ModuleRaised, CannotTell):
            continue
    if not laws:
        raise CannotTell("tiny rows do not come out as they would with any epsilon inside or "
                         "outside the root")
    facts["place"] = next(filter(None, laws.values()), "at all")
    facts["kept at 0.001"] = {name(dtype): kept for dtype in laws
                              if (kept := row.kept(1e-3 / row.spread, dtype)) is not None}
    return "info", _sentence(facts), facts


def _sentence(facts):
    found = facts["epsilon"]
    groups = {}
    for dtype, value in found.items():  # those that agree to a few percent are told together
        near = next((each for each in groups if abs(each - value) <= 0.1 * max(each, value)), value)
        groups.setdefault(near, []).append(dtype)
    told = [f"{short(value)} {facts['place']} in {', '.join(dtypes)}"
            for value, dtypes in groups.items()]
    told += [f"below {short(value)} in {dtype}" for dtype, value in facts["below"].items()]
    kept = ", ".join(sorted({f"{100 * each:.0f} %" for each in facts["kept at 0.001"].values()}))
    sizes = "spread" if facts["centered"] else "root mean square"
    differ = "; it differs by dtype" if len(groups) > 1 else ""
    return (f"epsilon is {'; '.join(told)}{differ}; a row of {sizes} 0.001 comes out at {kept} "
            "of its size")


class _Row:
    """One output number, the input numbers that it is normalized with, and their spread.

    The gradient of an output number shows which numbers these are: the others have none. It sums
    to zero if they are centered.
    """

    def __init__(self, subject, mode):
        self.subject, self.mode = subject, mode
        dtype = probing.precise(subject)
        x = probing.draw(subject, seed=5, size=1.0, offset=0.0, examples=4)
        leaf = (30 * x).to(dtype).requires_grad_()
        y = subject.run(leaf.clone(), mode=mode, dtype=dtype, grad=True)
        first = y.flatten()[0]
        try:
            grad, = probing.gradients(first, [leaf], torch.ones_like(first))
        except probing.BackwardRaised as error:
            raise CannotTell(error.sentence()) from error
        grad = grad.double()
        self.members = grad.abs() > 1e-9 * grad.abs().max()
        if int(self.members.sum()) < 2:
            raise CannotTell("each number is normalized by itself")
        inside = grad[self.members]
        self.centered = bool(inside.sum().abs() < 1e-4 * inside.abs().sum())
        self.x, self.spread = x, self._spread(x)

    def _spread(self, x):
        numbers = x[self.members]
        return float((numbers - numbers.mean() * self.centered).square().mean().sqrt())

    def kept(self, size, dtype):
        """What part of the row remains when it is ``size`` times as large as drawn."""
        sizes = 0, size, LARGE[dtype.itemsize]
        zero, small, large = outputs(self.subject, *(each * self.x for each in sizes),
                                     dtype=dtype, mode=self.mode)
        small, large = (small - zero)[self.members], (large - zero)[self.members]
        if not bool(large.any()):
            raise CannotTell(f"in {name(dtype)} the row comes out as zeros")
        return float((small * large).sum() / large.square().sum())

    def epsilon(self, dtype):
        """(epsilon, place), or (what it is below, None) where the smallest rows show none."""
        smallest = SMALLEST.get(dtype, SMALLEST_OF_OTHERS[dtype.itemsize]) / self.spread
        if self.kept(smallest, dtype) > max(SIZES):
            return (smallest * self.spread) ** 2, None
        sizes = [self._size_where(kept, smallest, dtype) for kept in SIZES]
        points = [(self.kept(size, dtype), size * self.spread) for size in sizes]
        fits = {}
        for place, law in LAWS.items():
            values = [law(kept, spread) for kept, spread in points]
            fits[place] = (max(values) / max(min(values), probing.LEAST), values[-1])
        place = min(fits, key=lambda each: fits[each][0])
        if fits[place][0] > (1.02 if dtype.itemsize > 2 else 1.3):
            raise CannotTell("no epsilon explains the outputs")
        return fits[place][1], place

    def _size_where(self, kept, smallest, dtype):
        """The size at which about this part of the row remains, by halving."""
        low, high = smallest, 10.0
        for _ in range(30):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if self.kept(middle, dtype) < kept else (low, middle)
            if high < 1.1 * low:
                break
        return high
