"""The wiring: where the norms stand, what the skip carries, and what comes last."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from lnres_utils.blocks.sublayers import Attention, FeedForward

# One sub-layer f of a block, by placement; alpha is `skip_scale`, norm and norm_out its norms.
PLACEMENTS = {
    "post": "norm(x + f(x))",
    "pre": "x + f(norm(x))",
    "sandwich": "x + norm_out(f(norm(x)))",
    "res-post": "x + norm_out(f(x))",
    "deepnorm": "norm(alpha * x + f(x))",
    "parallel": "x + f(norm(x)) + g(norm(x))",
    "plain": "f(x)",
}
_FINAL_NORM = ("pre", "sandwich", "res-post", "parallel")  # whose stream is not normalized itself


Make = Callable[[int], nn.Module]  # of a width


def no_norm(width: int) -> nn.Module:
    """A norm that does nothing."""
    return nn.Identity()


def identity(width: int) -> nn.Module:
    """An update that is taken as it is."""
    return nn.Identity()


class Block(nn.Module):
    """Sub-layers one after another (or side by side), each with its norms and its skip.

    Parameters
    ----------
    width : int, D
    sublayers : modules that map (..., D) to (..., D)
    placement : str, a key of ``PLACEMENTS``, which gives the formula of each
    norm : callable, ``norm(width)`` gives a new norm
    skip_scale : float, alpha of DeepNorm; used by the placement "deepnorm" only
    branch_scale : float, a constant factor on each update
    dropout : float, the probability with which an entry of an update is dropped in training
    update : callable, ``update(width)`` gives a module for each update, such as a ``LayerScale``

    Raises
    ------
    ValueError if the placement is unknown, or the output of a sub-layer has another shape than its
    input: added to the skip, it would fail or, worse, broadcast.
    TypeError if the input is not a floating-point tensor.

    References
    ----------
    post: Vaswani et al. 2017. pre: Xiong et al. 2020. sandwich: Ding et al. 2021, Kim et al. 2025
    (Peri-LN). res-post: Liu et al. 2022 (Swin v2). deepnorm: Wang et al. 2022. parallel: Wang &
    Komatsuzaki 2021 (GPT-J).
    """

    def __init__(self, width: int, sublayers: Iterable[nn.Module], placement: str = "pre",
                 norm: Make = nn.LayerNorm, *, skip_scale: float = 1.0,
                 branch_scale: float = 1.0, dropout: float = 0.0, update: Make = identity):
        super().__init__()
        if placement not in PLACEMENTS:
            raise ValueError(f"placement {placement!r} is unknown; use one of "
                             f"{', '.join(PLACEMENTS)}")
        self.width, self.placement = width, placement
        self.skip_scale, self.branch_scale = skip_scale, branch_scale
        self.sublayers = nn.ModuleList(sublayers)
        count = len(self.sublayers)
        self.dropout = nn.Dropout(dropout)
        self.updates = nn.ModuleList(update(width) for _ in range(count))
        inner = 0 if placement in ("plain", "res-post") else count
        outer = count if placement in ("sandwich", "res-post") else 0
        self.norms = nn.ModuleList(norm(width) for _ in range(inner))
        self.output_norms = nn.ModuleList(norm(width) for _ in range(outer))

    def forward(self, hidden: Tensor, memory: Tensor | None = None) -> Tensor:  # (..., D)
        _check_hidden(hidden, self.width)
        if self.placement == "parallel":
            updates = (self._update(i, self.norms[i](hidden), memory)
                       for i in range(len(self.sublayers)))
            return hidden + sum(updates)
        for i in range(len(self.sublayers)):
            hidden = self._step(i, hidden, memory)
        return hidden

    def _step(self, i: int, hidden: Tensor, memory: Tensor | None) -> Tensor:
        """Sub-layer ``i`` by the formula of the placement."""
        if self.placement == "plain":
            return self._update(i, hidden, memory)
        if self.placement == "post":
            return self.norms[i](hidden + self._update(i, hidden, memory))
        if self.placement == "deepnorm":
            return self.norms[i](self.skip_scale * hidden + self._update(i, hidden, memory))
        if self.placement == "res-post":
            return hidden + self.output_norms[i](self._update(i, hidden, memory))
        update = self._update(i, self.norms[i](hidden), memory)
        if self.placement == "sandwich":
            update = self.output_norms[i](update)
        return hidden + update

    def _update(self, i: int, hidden: Tensor, memory: Tensor | None) -> Tensor:
        """What sub-layer ``i`` adds, before any norm on it."""
        sublayer = self.sublayers[i]
        reads_memory = getattr(sublayer, "cross", False)
        result = sublayer(hidden, memory) if reads_memory else sublayer(hidden)
        if result.shape != hidden.shape:
            raise ValueError(
                f"{type(sublayer).__name__} turned shape {tuple(hidden.shape)} into "
                f"{tuple(result.shape)}; a residual update needs the shape of its input")
        update = self.updates[i](self.dropout(result))
        # Times one would be right, and take a twentieth of the time of a training step.
        return update if self.branch_scale == 1 else update * self.branch_scale

    def extra_repr(self):
        return f"{self.width}, placement={self.placement!r}"


def _check_hidden(hidden, width):
    """Refuse what would fail later with a message about matrices."""
    if not isinstance(hidden, torch.Tensor) or not hidden.is_floating_point():
        kind = hidden.dtype if isinstance(hidden, torch.Tensor) else type(hidden).__name__
        raise TypeError(f"hidden states are {kind}; a floating-point tensor was expected")
    if not hidden.ndim or hidden.shape[-1] != width:
        raise ValueError(f"hidden states have shape {tuple(hidden.shape)}; the last axis must be "
                         f"the width, {width}")


class Stack(nn.Module):
    """Blocks one after another and a final norm.

    Parameters
    ----------
    blocks : modules, each maps (..., D) to (..., D)
    final_norm : module or None
    """

    def __init__(self, blocks: Iterable[nn.Module], final_norm: nn.Module | None = None):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = final_norm or nn.Identity()

    def forward(self, hidden: Tensor, memory: Tensor | None = None) -> Tensor:  # (..., D)
        for block in self.blocks:
            hidden = block(hidden) if memory is None else block(hidden, memory)
        return self.final_norm(hidden)


class Transformer(Stack):
    """``depth`` blocks of attention and feed-forward on hidden states.

    Parameters
    ----------
    width, depth, heads : int
    placement, norm : as for :class:`Block`
    final_norm : bool, by default whether the placement leaves the stream without a norm
    causal : bool, whether a token sees only itself and earlier tokens
    cross : bool, whether each block also attends to a memory, between its two sub-layers
    inner : int, middle width of the feed-forward, by default 4 times the width
    qk_norm : bool, as for :class:`Attention`
    **wiring : ``skip_scale``, ``branch_scale``, ``dropout``, ``update``, as for :class:`Block`
    """

    def __init__(self, width: int, depth: int, heads: int = 4, *, placement: str = "pre",
                 norm: Make = nn.LayerNorm, final_norm: bool | None = None, causal: bool = True,
                 cross: bool = False, inner: int | None = None, qk_norm: bool = False, **wiring):
        def sublayers():
            yield Attention(width, heads, causal=causal, qk_norm=qk_norm)
            if cross:
                yield Attention(width, heads, causal=False, cross=True)
            yield FeedForward(width, inner)

        blocks = [Block(width, sublayers(), placement, norm, **wiring) for _ in range(depth)]
        wanted = placement in _FINAL_NORM if final_norm is None else final_norm
        super().__init__(blocks, norm(width) if wanted else None)


class LanguageModel(nn.Module):
    """Embeddings of tokens and positions, a stack, and a linear map to the scores of each token.

    Parameters
    ----------
    vocabulary : int, V, number of different tokens
    length : int, the longest sequence
    width : int, D
    stack : module that maps (B, T, D) to (B, T, D)

    Raises
    ------
    ValueError if a sequence is longer than ``length``.
    """

    def __init__(self, vocabulary: int, length: int, width: int, stack: nn.Module):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.stack = stack
        self.head = nn.Linear(width, vocabulary)

    def embed(self, tokens: Tensor) -> Tensor:  # (B, T) integers -> (B, T, D)
        if tokens.shape[-1] > self.position.num_embeddings:
            raise ValueError(f"{tokens.shape[-1]} tokens; this model has "
                             f"{self.position.num_embeddings} positions")
        return self.embedding(tokens) + self.position.weight[: tokens.shape[-1]]

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) integers -> (B, T, V)
        return self.head(self.stack(self.embed(tokens)))
