"""Black boxes: a learner's detector calls them; what is inside stays with whoever grades."""

import copy
import math
import weakref
from dataclasses import dataclass, replace

import numpy as np

LIMIT = 2_000_000  # numbers in one call
PAIRS = 4_000_000  # of tokens that may see each other, in all examples: B · T²


class CallsSpent(RuntimeError):
    """The detector called its black box too often."""


class NormFailed(RuntimeError):
    """The norm in a black box raised an exception: a test of it fails, as it should."""


class _Token:
    __slots__ = ("__weakref__",)


@dataclass
class _Account:
    noun: str
    calls: int
    left: int
    handed_out: bool = False


_accounts = weakref.WeakKeyDictionary()  # by a box's token: no box leads to them


class _Counted:
    """What can be called so many times. Copies share the calls, but for one: a deep copy of the
    box that a case holds, which each check hands out, has all its calls.
    """

    def __init__(self, calls, noun):
        self._token = _Token()
        _accounts[self._token] = _Account(noun, calls, calls)

    @property
    def calls_left(self):
        return _accounts[self._token].left

    @property
    def called(self):
        return self.calls_left < _accounts[self._token].calls

    def _spend(self):
        account = _accounts[self._token]
        if account.left < 1:
            raise CallsSpent(f"all {account.calls} calls of the {account.noun} are spent")
        account.left -= 1

    def __deepcopy__(self, memo):
        """For each check a box with all its calls; what it asks is shared."""
        made, account = copy.copy(self), _accounts[self._token]
        if not account.handed_out:
            made._token = _Token()
            _accounts[made._token] = replace(account, left=account.calls, handed_out=True)
        return made


class Box(_Counted):
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
        super().__init__(calls, noun)
        self.width, self._ask, self._noun, self._tokens = width, ask, noun, tokens

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
        self._spend()
        return self._ask(*arrays)

    def _checked(self, name, value):
        value = _numbers(name, value)
        if value.ndim != 3 or value.shape[1] < self._tokens or value.shape[2] != self.width:
            least = f" with T of at least {self._tokens}" if self._tokens > 1 else ""
            raise ValueError(f"{name} has shape {value.shape}; (B, T, {self.width}){least} was "
                             "expected")
        if value.shape[0] * value.shape[1] ** 2 > PAIRS:
            raise ValueError(f"{name} has shape {value.shape}; B · T · T of at most {PAIRS:,} is "
                             "allowed")
        return value.astype(np.float64)

    @property
    def form(self):
        """What a box in another process is made of, which asks this one."""
        return {"class": "Box", "width": self.width, "calls": self.calls_left, "noun": self._noun,
                "tokens": self._tokens}

    def __repr__(self):
        return f"a {self._noun} of width {self.width}"


class NormBox(_Counted):
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
        super().__init__(calls, "norm")
        self._ask = ask

    def __call__(self, x, gamma, beta, eps=1e-5):
        """The layer norm of x, (..., D), with gain and bias (D,), as the box computes it."""
        arrays = [_numbers(name, value)
                  for name, value in (("x", x), ("gamma", gamma), ("beta", beta))]
        _bounded(arrays)
        self._spend()
        try:
            y, left = self._ask(*arrays, float(eps))
        except Exception as error:
            raise NormFailed(f"the norm raised {type(error).__name__}: {error}") from None
        if isinstance(x, np.ndarray) and x.flags.writeable and not np.array_equal(left, x):
            x[...] = left
        return y

    @property
    def form(self):
        """What a box in another process is made of, which asks this one."""
        return {"class": "NormBox", "calls": self.calls_left}

    def __repr__(self):
        return "a norm"


def _bounded(arrays):
    """Shapes that stretch one another must not give more numbers than one call may have."""
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        return  # for the norm to refuse
    if math.prod(shape) > LIMIT:
        raise ValueError(f"x, gamma and beta together have the shape {shape}; at most {LIMIT:,} "
                         "numbers are allowed")


def _numbers(name, value):
    """A copy, so that the caller's array cannot change under way."""
    value = np.array(value)
    if value.dtype.kind not in "fiu":
        raise TypeError(f"{name} has dtype {value.dtype}; real numbers were expected")
    if value.size > LIMIT:
        raise ValueError(f"{name} has {value.size:,} numbers; at most {LIMIT:,} are allowed")
    return value
