"""Random starts that depend on NumPy's generator only, so that every machine draws the same."""

from math import sqrt

import numpy as np
import torch
from torch import nn

_STD = {  # of a linear map from `fan_in` to `fan_out` features
    "xavier": lambda fan_in, fan_out: sqrt(2 / (fan_in + fan_out)),
    "he": lambda fan_in, fan_out: sqrt(2 / fan_in),
    "lecun": lambda fan_in, fan_out: sqrt(1 / fan_in),
}
_BRANCH = ("value", "output", "input")  # the linear maps that DeepNorm scales


@torch.no_grad()
def initialize(model: nn.Module, rng: np.random.Generator, scheme: str | float = "xavier", *,
               output_scale: float = 1.0, branch_scale: float = 1.0,
               embedding_std: float = 1.0) -> nn.Module:
    """Draw all linear maps and embeddings of ``model`` anew; set their biases to zero.

    Parameters
    ----------
    model : module; its norms are left as they are
    rng : numpy.random.Generator
    scheme : "xavier", "he", "lecun", or a float, the standard deviation of all linear maps
    output_scale : float, factor on the last linear map of each sub-layer, the one that writes to
        the residual stream (an attribute called ``output``); GPT-2 takes 1 / sqrt(2 L)
    branch_scale : float, factor on ``value``, ``input`` and ``output``: beta of DeepNorm
    embedding_std : float

    Returns
    -------
    module, the same one

    Raises
    ------
    ValueError if the scheme is unknown.

    References
    ----------
    Glorot & Bengio 2010 (xavier); He et al. 2015 (he); Radford et al. 2019 (output scale).
    """
    if scheme not in _STD and not isinstance(scheme, (int, float)):
        raise ValueError(f"scheme {scheme!r} is unknown; use {', '.join(_STD)} or a number")
    for name, module in model.named_modules():
        last = name.rpartition(".")[2]
        if isinstance(module, nn.Linear):
            fan_out, fan_in = module.weight.shape
            std = _STD[scheme](fan_in, fan_out) if scheme in _STD else scheme
            std *= output_scale if last == "output" else 1
            std *= branch_scale if last in _BRANCH else 1
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, nn.Embedding):
            std = embedding_std
        else:
            continue
        module.weight.copy_(torch.from_numpy(rng.normal(0, std, module.weight.shape)))
    return model


def deepnorm_scales(depth: int) -> tuple[float, float]:
    """alpha (on the skip) and beta (on the branch at the start) of a decoder of ``depth`` blocks.

    References
    ----------
    Wang et al. 2022, table 1.
    """
    return (2 * depth) ** 0.25, (8 * depth) ** -0.25
