"""The book's own normalizations: what a lesson shows is what the checks use.

``arrays`` needs NumPy only. ``LayerNorm`` is a torch module and is imported on first use, so that
importing this package never imports torch.
"""

from lnres_utils.norms.arrays import (
    axis_norm,
    channel_norm,
    layer_norm,
    layer_norm_backward,
    normalize,
    standardize,
)

__all__ = [
    "LayerNorm",
    "axis_norm",
    "channel_norm",
    "layer_norm",
    "layer_norm_backward",
    "normalize",
    "standardize",
]


def __getattr__(name):
    if name == "LayerNorm":
        from lnres_utils.norms.modules import LayerNorm

        return LayerNorm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
