"""Other inputs in place of the example: new numbers of its kind, longer ones, more rows."""

import torch

SPREAD = 3  # standard deviations of the new numbers, in those of the example


def redrawn(x, example, generator):
    """New numbers in the shape of ``x``, of the kind of ``example``.

    Real numbers have its mean and 3 times its spread, and are positive if all of it is. Integers
    are other ones of those that occur in it.
    """
    if not x.is_floating_point():
        return _other_integers(x, example, generator)
    numbers = example.double()
    spread = numbers.std(correction=0)
    if spread == 0:
        spread = numbers.abs().max().clamp(min=1) / SPREAD
    new = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.device)
    new = numbers.mean() + SPREAD * spread * new
    if (numbers >= 0).all() and (numbers > 0).any():
        new = new.abs()
    largest = max(numbers.abs().max().item(), torch.finfo(x.dtype).max / 4)
    return new.clamp(-largest, largest).to(x.dtype)


def _other_integers(x, example, generator):
    values = example.unique()
    if len(values) == 1:  # a smaller number is as legal an index as this one
        return torch.where(x > 0, x - 1, x + 1)
    place = torch.searchsorted(values, x.contiguous())
    step = torch.randint(1, len(values), x.shape, generator=generator).to(x.device)
    return values[(place + step) % len(values)]


def changed_at(x, axis, index, example, generator):
    """``x`` with new numbers at one index, or several, of an axis."""
    new = x.clone()
    index = torch.as_tensor(index, device=x.device).reshape(-1)
    part = x.index_select(axis, index)
    return new.index_copy_(axis, index, redrawn(part, example, generator))


def lengthened(x, axis, size, example, generator):
    """``x`` with rows of new numbers behind it, up to ``size`` along an axis."""
    shape = list(x.shape)
    shape[axis] = size - x.shape[axis]
    new = redrawn(x.new_zeros(shape), example, generator)
    return torch.cat([x, new], axis)
