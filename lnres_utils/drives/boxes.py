"""Black boxes: a learner's detector calls them; what is inside stays with whoever grades."""

import copy

import numpy as np

LIMIT = 2_000_000  # numbers in one call


class CallsSpent(RuntimeError):
    """The detector called its black box too often."""


class Box:
    """A function of arrays that can be called but not looked into.

    Parameters
    ----------
    ask : callable, ``ask(x)`` gives y and ``ask(x, dy)`` the vector-Jacobian product, as arrays;
        where answers are graded it sends the arrays to another process
    width : int, D
    calls : int, how many calls are allowed

    Attributes
    ----------
    width : int
    calls_left : int
    """

    def __init__(self, ask, width, calls=60):
        self.width, self.calls_left = width, calls
        self._ask, self._calls = ask, calls

    def __call__(self, x):
        """The output, (B, T, D), for an input (B, T, D) of at least two tokens."""
        return self._asked(self._checked("x", x))

    def vjp(self, x, dy):
        """The gradient at ``x`` of the sum of ``y * dy``, all (B, T, D)."""
        x, dy = self._checked("x", x), self._checked("dy", dy)
        if x.shape != dy.shape:
            raise ValueError(f"x has shape {x.shape} and dy {dy.shape}; the same was expected")
        return self._asked(x, dy)

    def _asked(self, *arrays):
        if not self.calls_left:
            raise CallsSpent(f"all {self._calls} calls of the block are spent")
        self.calls_left -= 1
        return self._ask(*arrays)

    def _checked(self, name, value):
        value = np.array(value)  # a copy: the caller's array cannot change under way
        if value.dtype.kind not in "fiu":
            raise TypeError(f"{name} has dtype {value.dtype}; real numbers were expected")
        if value.ndim != 3 or value.shape[1] < 2 or value.shape[2] != self.width:
            raise ValueError(f"{name} has shape {value.shape}; (B, T, {self.width}) with T of at "
                             "least 2 was expected")
        if value.size > LIMIT:
            raise ValueError(f"{name} has {value.size:,} numbers; at most {LIMIT:,} are allowed")
        return value.astype(np.float64)

    def __deepcopy__(self, memo):
        """For each check a box with all its calls; what it asks is shared."""
        return Box(copy.copy(self._ask), self.width, self._calls)

    def __repr__(self):
        return f"a block of width {self.width}"
