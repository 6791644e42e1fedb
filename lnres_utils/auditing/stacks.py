"""Submodules that stand in a row: what one gives out is what the next one gets."""

from contextlib import contextmanager
from dataclasses import dataclass

import torch

from lnres_utils.auditing.trees import first_tensor


@dataclass(frozen=True)
class Call:
    """One call of a submodule, as hooks saw it."""

    module: torch.nn.Module
    x: torch.Tensor
    args: tuple
    kwargs: dict
    y: torch.Tensor


@contextmanager
def hooked(modules, hook):
    """Forward hooks with keyword arguments on some modules."""
    handles = [module.register_forward_hook(hook, with_kwargs=True) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def calls_of(subject, x):
    """The output for ``x``, and the calls of submodules that keep the shape of their input."""
    calls = []

    def keep(module, args, kwargs, output):
        y = first_tensor(output)
        if (args and isinstance(args[0], torch.Tensor) and isinstance(y, torch.Tensor)
                and args[0].shape == y.shape and y.is_floating_point() and y is not args[0]):
            calls.append(Call(module, args[0], args[1:], kwargs, y))

    modules = [each for root in subject.roots for each in root.modules()
               if each is not subject.module]
    y = subject.run(x, dtype=torch.float64, around=hooked(modules, keep))
    return y, calls


def row_before(y, calls):
    """The longest row of calls that ends with ``y``, in the order in which they were made."""
    rows = [_row_to(call, calls) for call in calls if _same(call.y, y)]
    return max(rows, key=len, default=[])  # the first of equally long ones is the innermost


def _row_to(last, calls):
    row = [last]
    while True:
        givers = [call for call in calls if call.y is row[0].x and call not in row]
        if not givers:
            return row
        row.insert(0, givers[-1])  # of a module and its last part, the module, which ends later


def _same(a, b):
    return a is b or a.shape == b.shape and torch.equal(a, b)
