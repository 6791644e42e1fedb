"""What drives hand to a block: sublayers with fixed weights, and gains for the norms it made.

This imports torch; drives import it inside their functions.
"""

import contextlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from lnres_utils.drives.common import WrongKind, brief
from lnres_utils.drives.tensors import array

NORMS = 7  # more than a block or a short stack has


class Sublayer(nn.Module):
    """A map of hidden states whose weights are no parameters: it serves as a probe.

    Parameters
    ----------
    name : str, as a report calls it; "attention" gives each token a mean over itself and earlier
        ones, any other sublayer works on each token by itself
    kind : "active", "zero", or "constant" (the same vector for any input)
    width : int, D
    rng : numpy.random.Generator, from which the weights come
    """

    def __init__(self, name, kind, width, rng):
        super().__init__()
        weights = (
            rng.normal(0, 0.5 * width**-0.5, (width, 2 * width)),
            rng.normal(0, 0.5, 2 * width),
            rng.normal(0, 3 * width**-0.5, (2 * width, width)),
            rng.normal(0, 2, width),
        )
        # One attribute, not seven: a module is slow to take them, and hundreds are built.
        self.probe = name, kind, width, [torch.from_numpy(array) for array in weights]

    def forward(self, hidden):  # (B, T, D) -> (B, T, D)
        name, kind, width, (maps, shift, back, constant) = self.probe
        expected = f"a tensor of shape (B, T, {width}) was expected"
        if not isinstance(hidden, torch.Tensor):
            raise WrongKind(f"`{name}` was given {brief(hidden)}; {expected}")
        if hidden.ndim < 2 or hidden.shape[-1] != width:
            raise WrongKind(f"`{name}` was given a tensor of shape {tuple(hidden.shape)}; "
                            f"{expected}")
        if kind == "zero":
            return hidden * 0
        if kind == "constant":
            return hidden * 0 + constant
        inner = hidden @ maps + shift
        if name != "attention":
            return F.silu(inner) @ back
        count = torch.arange(1, hidden.shape[-2] + 1)[:, None]
        return (torch.tanh(inner).cumsum(-2) / count) @ back


class ResidualMap(nn.Module):
    """A block that trains: hidden + tanh(hidden @ maps) @ back."""

    def __init__(self, width, rng):
        super().__init__()
        self.maps = nn.Parameter(torch.from_numpy(
            rng.normal(0, 0.5 * width**-0.5, (width, 2 * width))))
        self.back = nn.Parameter(torch.from_numpy(
            rng.normal(0, 1.5 * width**-0.5, (2 * width, width))))

    def forward(self, hidden):  # (B, T, D) -> (B, T, D)
        return hidden + torch.tanh(hidden @ self.maps) @ self.back


@contextlib.contextmanager
def double_precision():
    """Modules built meanwhile are float64: also norms that are made anew in each call."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def built(module):
    """The module itself, made float64, if it is one."""
    if not isinstance(module, nn.Module):
        raise WrongKind("the object built is not a torch.nn.Module: inherit from it")
    double = all(each.dtype == torch.float64 for each in module.parameters())
    return module if double else module.to(torch.float64)


class NormsSet(TorchFunctionMode):
    """Gives each norm of ``module`` random gains and biases just before its first use.

    Nothing is assumed about names: a parameter of D numbers that are all one is a gain, one of
    zeros a bias. Gains are away from zero and one, biases away from zero, each of both signs.
    """

    def __init__(self, module, width, rng):
        super().__init__()
        draws = rng.random((4, NORMS, width))
        gains = 0.3 + draws[0] / 2
        gains = np.where(draws[1] < 0.5, gains, 2 - gains) * np.where(draws[2] < 0.5, 1, -1)
        biases = 2 * draws[3] - 1
        self.rows = {1: gains, 0: biases + np.sign(biases) / 2}
        self.next = {1: 0, 0: 0}
        self.waiting = {id(each): each for each in module.parameters()
                        if each.shape[-1:] == (width,)}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.waiting:
            for value in (*args, *kwargs.values()):
                for each in value if isinstance(value, (list, tuple)) else (value,):
                    if id(each) in self.waiting:
                        self._fill(self.waiting.pop(id(each)))
        return func(*args, **kwargs)

    def _fill(self, parameter):
        numbers = parameter.detach().numpy()  # shared: writing to it sets the parameter
        for start, rows in self.rows.items():
            if (numbers == start).all():
                first = self.next[start]
                self.next[start] += numbers.size // rows.shape[1]
                wanted = range(first, self.next[start])
                numbers[...] = rows.take(wanted, axis=0, mode="wrap").reshape(numbers.shape)
                return


def states_of(returned):
    """A list of tensors of one shape as one array."""
    if isinstance(returned, torch.Tensor) and returned.ndim > 1:
        returned = list(returned)
    if not isinstance(returned, (list, tuple)) or not returned:
        what = "an empty list" if isinstance(returned, (list, tuple)) else brief(returned)
        if returned is None:
            what = "None: is there a `return`?"
        raise WrongKind(f"`states` returned {what}" + ("" if returned is None else
                                                       "; a list of tensors was expected"))
    for state in returned:
        if not isinstance(state, torch.Tensor):
            raise WrongKind(f"`states` has {brief(state)} in its list; tensors were expected")
        if state.shape != returned[0].shape:
            raise WrongKind(f"`states` has tensors of shapes {tuple(returned[0].shape)} and "
                            f"{tuple(state.shape)}; all should have that of the input")
    return array(torch.stack(tuple(returned)))
