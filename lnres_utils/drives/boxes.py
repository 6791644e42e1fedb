"""Black boxes: a learner's detector calls them; what is inside stays with whoever grades."""

import copy

import numpy as np

LIMIT = 2_000_000  # numbers in one call


class CallsSpent(RuntimeError):
    """The detector called its black box too often."""


class NormFailed(RuntimeError):
    """The norm in a black box raised an exception: a test of it fails, as it should."""


class Box:
    """A function of arrays that can be called but not looked into.

    Parameters
    ----------
    ask : callable, ``ask(x)`` gives y and ``ask(x, dy)`` the vector-Jacobian product, as arrays;
        where answers are graded it sends the arrays to another process
    width : int, D
    calls : int, how many calls are allowed
    noun : str, what messages call it
    tokens : int, the least T of an input

    Attributes
    ----------
    width : int
    calls_left : int
    """

    def __init__(self, ask, width, calls=60, noun="block", tokens=2):
        self.width, self.calls_left = width, calls
        self._ask, self._made = ask, (width, calls, noun, tokens)

    def __call__(self, x):
        """The output, (B, T, D), for an input (B, T, D)."""
        return self._asked(self._checked("x", x))

    def vjp(self, x, dy):
        """The gradient at ``x`` of the sum of ``y * dy``, all (B, T, D)."""
        x, dy = self._checked("x", x), self._checked("dy", dy)
        if x.shape != dy.shape:
            raise ValueError(f"x has shape {x.shape} and dy {dy.shape}; the same was expected")
        return self._asked(x, dy)

    def _asked(self, *arrays):
        _, calls, noun, _ = self._made
        _spend(self, calls, noun)
        return self._ask(*arrays)

    def _checked(self, name, value):
        tokens = self._made[-1]
        value = _numbers(name, value)
        if value.ndim != 3 or value.shape[1] < tokens or value.shape[2] != self.width:
            least = f" with T of at least {tokens}" if tokens > 1 else ""
            raise ValueError(f"{name} has shape {value.shape}; (B, T, {self.width}){least} was "
                             "expected")
        return value.astype(np.float64)

    def __deepcopy__(self, memo):
        """For each check a box with all its calls; what it asks is shared."""
        return Box(copy.copy(self._ask), *self._made)

    def __repr__(self):
        return f"a {self._made[2]} of width {self.width}"


class NormBox:
    """A layer norm that can be called like any other, but not looked into.

    Parameters
    ----------
    ask : callable, ``ask(x, gamma, beta, eps)`` gives the output and x as the norm left it
    calls : int, how many calls are allowed

    Attributes
    ----------
    calls_left : int
    """

    def __init__(self, ask, calls=60):
        self.calls_left = calls
        self._ask, self._calls = ask, calls

    @property
    def called(self):
        return self.calls_left < self._calls

    def __call__(self, x, gamma, beta, eps=1e-5):
        """The layer norm of x, (..., D), with gain and bias (D,), as the box computes it."""
        arrays = [_numbers(name, value)
                  for name, value in (("x", x), ("gamma", gamma), ("beta", beta))]
        _spend(self, self._calls, "norm")
        try:
            y, left = self._ask(*arrays, float(eps))
        except Exception as error:
            raise NormFailed(f"the norm raised {type(error).__name__}: {error}") from None
        if isinstance(x, np.ndarray) and x.flags.writeable and not np.array_equal(left, x):
            x[...] = left
        return y

    def __deepcopy__(self, memo):
        """For each check a box with all its calls; what it asks is shared."""
        return NormBox(self._ask, self._calls)

    def __repr__(self):
        return "a norm"


def _spend(box, calls, noun):
    if not box.calls_left:
        raise CallsSpent(f"all {calls} calls of the {noun} are spent")
    box.calls_left -= 1


def _numbers(name, value):
    """A copy, so that the caller's array cannot change under way."""
    value = np.array(value)
    if value.dtype.kind not in "fiu":
        raise TypeError(f"{name} has dtype {value.dtype}; real numbers were expected")
    if value.size > LIMIT:
        raise ValueError(f"{name} has {value.size:,} numbers; at most {LIMIT:,} are allowed")
    return value
