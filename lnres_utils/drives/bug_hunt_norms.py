"""What the bug hunt asks of a model's norms; see :mod:`lnres_utils.drives.bug_hunt`."""

import numpy as np

from lnres_utils.drives.common import WrongKind
from lnres_utils.drives.tensors import array, output

STEEP = 100  # times the gradient at rows of that size is about 1
EIGHT_BITS = 9e-4  # half of what statistics in bfloat16 cost, twice what its output alone does


def norms(model, blocks, x):
    """What all norms give: two a block, then the final one if it is there."""
    import torch

    found = [getattr(block, name) for block in blocks for name in ("norm1", "norm2")]
    found.append(getattr(model.stack, "final_norm", found[-1]))  # missed elsewhere
    return torch.stack([of_shape(output(norm, x.clone()), x, "a norm") for norm in found])


def of_shape(y, x, name):
    if y.shape != x.shape:
        raise WrongKind(f"{name} turned shape {tuple(x.shape)} into {tuple(y.shape)}")
    return y


def statistics(model, blocks, inputs):
    """What the norms make of x."""
    import torch

    return {"y": array(norms(model, blocks, torch.from_numpy(inputs["x"])))}


def epsilon(model, blocks, inputs):
    """What the norms add to the variance of small rows, in units of 1e-5.

    That is seen from the sizes of what comes out for them, and for the same rows made large.
    """
    import torch

    x = torch.from_numpy(inputs["x"])
    small, large = (norms(model, blocks, factor * x).square().mean(-1) for factor in (1.0, 1e6))
    variance = x.var(-1, correction=0)
    return {"epsilon": array((variance * (1 / small - 1 / large))[..., 0]) / 1e-5}


def gradient(model, blocks, inputs):
    """What the norms make of a cotangent."""
    import torch

    x, cotangent = (torch.from_numpy(inputs[name]) for name in ("x", "cotangent"))
    x.requires_grad_()
    with torch.enable_grad():
        y = norms(model, blocks, x)
        if not y.requires_grad:
            raise WrongKind("no gradient goes through a norm")
        grads = [torch.autograd.grad(each, x, cotangent, retain_graph=True, allow_unused=True)[0]
                 for each in y]
    return {"gradient": array(torch.stack([0 * x if each is None else each for each in grads]))
            * STEEP}


def half(model, blocks, inputs):
    """What the norms make of x in half precision, and in which dtype."""
    import torch

    y = norms(model.half(), blocks, torch.from_numpy(inputs["x"]).half())
    return {"half": array(y.double()), "dtype": str(y.dtype).split(".")[-1]}


def bfloat16(model, blocks, inputs):
    """Whether the norms' outputs in bfloat16 have the size they have in float64; the dtype."""
    import torch

    x = torch.from_numpy(inputs["x"]).bfloat16()
    right = norms(model, blocks, x.double())
    y = norms(model.bfloat16(), blocks, x)
    size = (y.double() * right).sum(-1) / right.square().sum(-1)  # rounding of outputs goes
    error = array((size - 1).square().mean((1, 2)).sqrt())
    return {"near": np.array([float((error < EIGHT_BITS).all())]),
            "dtype": str(y.dtype).split(".")[-1]}
