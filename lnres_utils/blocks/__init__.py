"""One small transformer whose norm, norm placement, scales and initialization are arguments.

The whole course uses it: what a lesson trains, shows and probes is built from these modules.
They hold the wiring only once, in :class:`Block`; a plain network is a block with other sub-layers.
"""

from lnres_utils.blocks.initializing import deepnorm_scales, initialize
from lnres_utils.blocks.sublayers import (
    Attention,
    FeedForward,
    LayerScale,
    StochasticDepth,
    UniformAttention,
)
from lnres_utils.blocks.transformer import (
    PLACEMENTS,
    Block,
    LanguageModel,
    Stack,
    Transformer,
    no_norm,
)

__all__ = [
    "PLACEMENTS",
    "Attention",
    "Block",
    "FeedForward",
    "LanguageModel",
    "LayerScale",
    "Stack",
    "StochasticDepth",
    "Transformer",
    "UniformAttention",
    "deepnorm_scales",
    "initialize",
    "no_norm",
]
