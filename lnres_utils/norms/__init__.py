"""The book's own normalizations: what a lesson shows is what the checks use.

``arrays`` needs NumPy only. What is made of torch is imported on first use, so that importing this
package never imports torch.
"""

import importlib

from lnres_utils.norms.arrays import (
    axis_norm,
    channel_norm,
    layer_norm,
    layer_norm_backward,
    normalize,
    rms_norm,
    rms_norm_backward,
    standardize,
)

_TORCH = {"LayerNorm": "modules", "RMSNorm": "modules", "to_rms_norm": "converting"}

__all__ = [
    "LayerNorm",
    "RMSNorm",
    "axis_norm",
    "channel_norm",
    "layer_norm",
    "layer_norm_backward",
    "normalize",
    "rms_norm",
    "rms_norm_backward",
    "standardize",
    "to_rms_norm",
]


def __getattr__(name):
    if name in _TORCH:
        return getattr(importlib.import_module(f"lnres_utils.norms.{_TORCH[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
