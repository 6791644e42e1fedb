"""Rows of equal numbers, such as padding: do outputs and gradients stay finite?"""

import numpy as np
import torch

from lnres_utils.auditing import probing
from lnres_utils.auditing.probing import largest, short
from lnres_utils.auditing.subject import ModuleRaised

LEVEL = 3.0  # what a constant row holds
STEEP = 3e4  # for a cotangent of size 1; an epsilon of 1e-6 inside the root gives 1000 or a few
WHERE = {"single rows": "a row of equal numbers among others", "all zeros": "an input of zeros",
         "all equal": "an input of equal numbers"}
GRADIENT = torch.float32
FORWARD = torch.float16


@probing.check("constant rows")
def constant_rows(subject):
    """Rows of zeros and of one number, in float32 forward and backward, in float16 forward."""
    if subject.feature_axis is None:
        raise probing.CannotTell("no axis is called C or D, so what a row is is not known")
    facts, wrong, left = {}, {}, []
    for what, x in _inputs(subject):
        case = facts[what] = {}
        try:
            y, grad = _gradient(subject, x)
            case |= {"output finite": bool(y.isfinite().all()),
                     "gradient finite": bool(grad.isfinite().all())}
            case["largest gradient"] = largest(grad) if case["gradient finite"] else None
        except ModuleRaised as error:
            left.append(f"float32 raises {error}")
        try:
            y = subject.run(x, dtype=FORWARD)
            case["float16 output finite"] = bool(y.isfinite().all())
        except ModuleRaised:
            pass  # the check "half" tells it
        for outcome in _wrong(case):
            wrong.setdefault(outcome, []).append(WHERE[what])
    if wrong:
        return "problem", "; ".join(f"{outcome} for {', '.join(where)}"
                                    for outcome, where in wrong.items()), facts
    sizes = [case["largest gradient"] for case in facts.values() if "largest gradient" in case]
    if not sizes:
        return "cannot tell", "; ".join(dict.fromkeys(left)), facts
    told = (f"outputs and gradients are finite; the largest gradient is {short(max(sizes))} for a "
            "cotangent of size 1")
    if max(sizes) > STEEP:
        return "info", (f"{told}: a row of equal numbers is almost a step for this module, as its "
                        "epsilon is tiny or outside of the root"), facts
    return "ok", told, facts


def _inputs(subject):
    """(what it is, input): two rows among others, and an input without any other."""
    x = probing.draw(subject, seed=7, examples=2)
    rows = x.movedim(subject.feature_axis, -1).reshape(-1, x.shape[subject.feature_axis]).clone()
    rows[0] = 0
    rows[len(rows) // 2 if len(rows) > 1 else 0] += LEVEL  # so that the mean is not zero
    if len(rows) > 2:
        rows[1] = LEVEL
    shape = x.movedim(subject.feature_axis, -1).shape
    yield "single rows", rows.reshape(shape).movedim(-1, subject.feature_axis).contiguous()
    yield "all zeros", torch.zeros_like(x)
    yield "all equal", torch.full_like(x, LEVEL)


def _gradient(subject, x):
    """The output and the gradient with respect to the input, of a random cotangent."""
    leaf = x.to(GRADIENT).requires_grad_()
    y = probing.real(subject.run(leaf.clone(), dtype=GRADIENT, grad=True))
    if not y.requires_grad:
        return y, torch.zeros_like(leaf)
    numbers = np.random.default_rng(8).normal(size=tuple(y.shape))
    cotangent = torch.from_numpy(np.asarray(numbers)).to(y.device, y.dtype)
    grad, = probing.gradients(y, [leaf], cotangent)
    return y.detach(), torch.zeros_like(leaf) if grad is None else grad


def _wrong(case):
    if case.get("output finite") is False:
        yield "in float32 the output is not finite"
    elif case.get("gradient finite") is False:
        yield ("in float32 the output is finite and its gradient is not, as the slope of a root at "
               "zero is infinite,")
    if case.get("float16 output finite") is False and case.get("output finite") is not False:
        yield ("in float16 the output is not finite, as an epsilon below 3e-8 is zero there, or a "
               "division by a tiny number overflows,")
