"""Does a module behave as a norm, and nothing but a norm?"""

from lnres_utils.auditing import probing
from lnres_utils.auditing.probing import CannotTell, largest, outputs, rms

LARGE = 30  # size of numbers beside which an epsilon of 1e-5 changes 5e-9 of a row


def norm_mode(subject):
    """The mode in which the module is a norm: "eval", "train" (batch norm), or None."""
    if "norm mode" not in subject.cache:
        subject.cache["norm mode"] = _norm_mode(subject)
    return subject.cache["norm mode"]


def _norm_mode(subject):
    dtype = probing.precise(subject)
    tolerance = probing.SAME if dtype.itemsize >= 8 else 1e-2
    x = LARGE * probing.draw(subject, size=1.0, examples=4)
    for mode in ("eval", "train"):
        try:
            if is_norm(lambda each, mode=mode: outputs(subject, each, dtype=dtype, mode=mode)[0],
                       x, tolerance):
                return mode
        except CannotTell:
            continue
    return None


def is_norm(function, x, tolerance):
    """Whether a function takes numbers to (number - center) / size * gain + bias.

    Then its output is the same at any size of the input; of x and -x the outputs have one and the
    same middle, the bias; and two numbers of one row change places without a change elsewhere, as
    they leave center and size as they are.
    """
    y = function(x)
    if y.shape != x.shape:
        return False
    near = tolerance * max(rms(y), probing.LEAST)
    if largest(function(4 * x) - y) > near:
        return False
    other = 2 * x.roll(1, -1).flip(1) + x
    middle = y + function(-x)
    if largest(function(other) + function(-other) - middle) > 2 * near:
        return False
    return any(_swaps(function, x, y, axis, near) for axis in range(x.ndim) if x.shape[axis] > 1)


def _swaps(function, x, y, axis, near):
    """Whether two neighbors along an axis change places and nothing else changes."""
    first = tuple(0 for _ in x.shape)
    second = tuple(int(each == axis) for each in range(x.ndim))
    swapped = x.clone()
    swapped[first], swapped[second] = x[second], x[first]
    change = (function(swapped) - y).abs()
    moved = min(float(change[first]), float(change[second]))
    change[first] = change[second] = 0
    return moved > 10 * near and largest(change) <= near
