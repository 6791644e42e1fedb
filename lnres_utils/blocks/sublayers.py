"""What stands on the branch of a residual connection. Shapes: batch B, tokens T, width D."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """Multi-head attention, of the tokens to each other or to a ``memory``.

    Parameters
    ----------
    width : int, D
    heads : int, a divisor of D
    causal : bool, whether a token sees only itself and earlier tokens
    cross : bool, whether keys and values come from a second sequence, the ``memory``
    qk_norm : bool, whether queries and keys are divided by their root mean square, head by head

    Raises
    ------
    ValueError if ``heads`` does not divide ``width``, or a causal attention reads a memory.

    References
    ----------
    Vaswani et al. 2017, section 3.2; the norm on queries and keys: Henry et al. 2020.
    """

    def __init__(self, width: int, heads: int = 4, *, causal: bool = True, cross: bool = False,
                 qk_norm: bool = False):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of {heads} heads")
        if causal and cross:
            raise ValueError("causal=True needs one sequence; a memory has no later tokens to hide")
        self.heads, self.causal, self.cross, self.qk_norm = heads, causal, cross, qk_norm
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, hidden: Tensor, memory: Tensor | None = None) -> Tensor:
        # (B, T, D), (B, S, D) -> (B, T, D)
        source = hidden if memory is None else memory
        query, key = self._query_and_key(hidden, source)
        value = self._split(self.value(source))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.output(mixed.transpose(-3, -2).flatten(-2))

    def weights(self, hidden: Tensor, memory: Tensor | None = None) -> Tensor:
        """How much each token takes of each other one; over the last axis they add up to 1."""
        # (B, T, D), (B, S, D) -> (B, heads, T, S)
        query, key = self._query_and_key(hidden, hidden if memory is None else memory)
        scores = query @ key.mT / query.shape[-1] ** 0.5
        if self.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        return scores.softmax(-1)

    def _query_and_key(self, hidden, source):  # each (B, heads, T or S, D / heads)
        query, key = self._split(self.query(hidden)), self._split(self.key(source))
        return (_unit_rms(query), _unit_rms(key)) if self.qk_norm else (query, key)

    def _split(self, states):
        return states.unflatten(-1, (self.heads, -1)).transpose(-3, -2)


def _unit_rms(states):
    return states / states.square().mean(-1, keepdim=True).sqrt()


class UniformAttention(nn.Module):
    """Attention that looks at all tokens alike: the mean of the values.

    The setting of the theorem on gradients at the start in Xiong et al. 2020: queries and keys are
    zero, and there is no output projection.
    """

    def __init__(self, width: int):
        super().__init__()
        self.value = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:  # (B, T, D)
        return self.value(hidden).mean(1, keepdim=True).expand_as(hidden)


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, for each token by itself.

    Parameters
    ----------
    width : int, D
    inner : int, width of the middle, by default 4 D
    activation : callable on tensors
    """

    def __init__(self, width: int, inner: int | None = None,
                 activation: Callable[[Tensor], Tensor] = F.relu):
        super().__init__()
        self.input = nn.Linear(width, inner or 4 * width)
        self.output = nn.Linear(inner or 4 * width, width)
        self.activation = activation

    def forward(self, hidden: Tensor) -> Tensor:  # (..., D)
        return self.output(self.activation(self.input(hidden)))


class LayerScale(nn.Module):
    """A trained gain on the update, one number a feature, that starts near zero.

    Parameters
    ----------
    width : int, D; 1 gives one number for all features (ReZero, when ``start`` is 0)
    start : float, the gain at initialization

    References
    ----------
    Touvron et al. 2021 (LayerScale); Bachlechner et al. 2020 (ReZero).
    """

    def __init__(self, width: int, start: float = 1e-4):
        super().__init__()
        self.gain = nn.Parameter(torch.full((width,), float(start)))

    def forward(self, update: Tensor) -> Tensor:  # (..., D)
        return update * self.gain


class StochasticDepth(nn.Module):
    """In training, drop the update of an example with probability ``p``; scale the others up.

    The examples of a batch are dropped independently, all tokens of one together. Kept updates are
    divided by 1 - p, so that their mean stays what evaluation uses.

    References
    ----------
    Huang et al. 2016; they scale in evaluation instead.
    """

    def __init__(self, p: float):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p is {p}; a probability of at least 0 and below 1 was expected")
        self.p = p

    def forward(self, update: Tensor) -> Tensor:  # (B, ...)
        if not self.training or self.p == 0:
            return update
        shape = (update.shape[0],) + (1,) * (update.ndim - 1)
        kept = torch.rand(shape, device=update.device) >= self.p
        return update * kept.to(update.dtype) / (1 - self.p)
