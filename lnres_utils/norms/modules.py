"""Layer normalization and RMS normalization as torch modules."""

import torch
from torch import nn


class LayerNorm(nn.Module):
    """Layer normalization over the last axis with a trainable gain and bias.

    Parameters
    ----------
    width : int, D, the number of features
    eps : float, added to the variance (units of the input squared)

    Attributes
    ----------
    weight, bias : (D,) parameters, the gain (starts at one) and the bias (starts at zero);
        named as in ``torch.nn.LayerNorm``, so that its ``state_dict`` loads.

    References
    ----------
    Ba, Kiros & Hinton 2016, eq. 3-4.
    """

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, hidden):  # (..., D)
        mean = hidden.mean(dim=-1, keepdim=True)  # (..., 1)
        variance = hidden.var(dim=-1, keepdim=True, correction=0)  # (..., 1), divided by D
        normalized = (hidden - mean) / torch.sqrt(variance + self.eps)
        return normalized * self.weight + self.bias

    def extra_repr(self):
        return f"{self.weight.numel()}, eps={self.eps}"


class RMSNorm(nn.Module):
    """Division by the root mean square over the last axis, with a trainable gain.

    Parameters
    ----------
    width : int, D, the number of features
    eps : float, added to the mean square (units of the input squared)

    Attributes
    ----------
    weight : (D,) parameter, the gain (starts at one), named as in ``torch.nn.RMSNorm``

    Notes
    -----
    Mean square and product are taken in float32 or wider, and the output has the dtype of the
    input: a sum of squares overflows float16 early, and a product in bfloat16 rounds twice.

    References
    ----------
    Zhang & Sennrich 2019, eq. 4.
    """

    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, hidden):  # (..., D)
        wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
        normalized = wide * torch.rsqrt(mean_square + self.eps)
        return (normalized * self.weight).to(hidden.dtype)

    def extra_repr(self):
        return f"{self.weight.numel()}, eps={self.eps}"
