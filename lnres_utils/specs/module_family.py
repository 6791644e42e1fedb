"""The faulty family of torch modules that normalize: every parameter at rest is right."""

from lnres_utils.checking import Knob
from lnres_utils.specs.norm_knobs import SCALE, TORCH


def faulty_module(
    axes=-1, ddof=0, eps_place="inside", eps_value=None, default_eps=1e-5, affine="after",
    init="identity", parameters="weight-bias", detached=False, spread="std", center="mean",
    biased=True, inside="wide", cast="end",
):
    """A ``LayerNorm(width, eps)`` class with these mistakes.

    Parameters
    ----------
    axes, ddof, eps_place, eps_value, affine, spread, center : as for arrays
    default_eps : float, or None for the machine epsilon of the input's dtype
    init : "identity", "swapped" (gain 0, bias 1), "small" (gain 0.02), or "zero" (gain 0)
    parameters : "weight-bias", "gamma-beta" (other names), "scalar" (one gain for all),
        "buffers" (neither trains), "gain-only" or "bias-only" trains, "tensors" (neither saved
        nor trained), "eps" (epsilon trains too), "column" (shape (1, D))
    detached : the statistics carry no gradient
    biased : whether there is a bias, too
    inside : "wide" (all in float32 at least), "narrow" (all in the input's dtype), "float32" (also
        for float64), "wide-statistics" (only the statistics are wide), or "float32-statistics"
    cast : the input's dtype comes back at the "end", "before-gain", "before-gain-only" (a wider
        gain widens it again), or "never"
    """
    import torch
    from torch import nn

    class LayerNorm(nn.Module):
        def __init__(self, width, eps=default_eps):
            super().__init__()
            self.eps = eps if eps_value is None else eps_value
            gain, bias = {"identity": (1.0, 0.0), "swapped": (0.0, 1.0), "small": (0.02, 0.0),
                          "zero": (0.0, 0.0)}[init]
            shape = {"scalar": (1,), "column": (1, width)}.get(parameters, (width,))
            self._keep([torch.full(shape, start) for start in (gain, bias)[: 1 + biased]])

        def _keep(self, starts):
            names = ("gamma", "beta") if parameters == "gamma-beta" else ("weight", "bias")
            trained = {"buffers": (False, False), "gain-only": (True, False),
                       "bias-only": (False, True)}.get(parameters, (True, True))
            self.names = names[: len(starts)]
            for name, value, train in zip(names, starts, trained, strict=False):
                if parameters == "tensors":
                    setattr(self, name, value)
                elif train:
                    self.register_parameter(name, nn.Parameter(value))
                else:
                    self.register_buffer(name, value)
            if parameters == "eps":
                self.eps = nn.Parameter(torch.tensor(float(self.eps)))

        def forward(self, x):
            gain, bias = *(getattr(self, name) for name in self.names), *(0, 0)[: not biased]
            wide = torch.promote_types(x.dtype, torch.float32)
            hidden = x.to({"wide": wide, "float32": torch.float32}.get(inside, x.dtype))
            if affine == "before":
                return self._normalize(hidden * gain + bias, x.dtype).to(x.dtype)
            z = self._normalize(hidden, x.dtype)
            if cast.startswith("before-gain"):
                z = z.to(x.dtype)
                gain = gain.to(x.dtype) if cast == "before-gain" else gain
            y = {"after": lambda: z * gain + bias, "swapped": lambda: z * bias + gain,
                 "no-gain": lambda: z + bias, "no-bias": lambda: z * gain, "none": lambda: z,
                 "bias-first": lambda: (z + bias) * gain,
                 "one-plus": lambda: z * (1 + gain) + bias}[affine]()
            return y.to(x.dtype) if cast == "end" else y

        def _normalize(self, x, dtype):
            wide = torch.promote_types(x.dtype, torch.float32)
            values = x.to({"wide-statistics": wide,
                           "float32-statistics": torch.float32}.get(inside, x.dtype))
            mean = values.mean(axes, keepdim=True)
            squares = values**2 if center == "uncentered" else (values - mean) ** 2
            count = 1 if spread == "sum" else values.numel() // mean.numel() - ddof
            variance = squares.sum(axes, keepdim=True) / count
            if detached:
                mean, variance = mean.detach(), variance.detach()
            eps = torch.finfo(dtype).eps if self.eps is None else self.eps
            scale = {"inside": lambda: torch.sqrt(variance + eps),
                     "outside": lambda: torch.sqrt(variance) + eps,
                     "missing": lambda: torch.sqrt(variance)}[eps_place]()
            if spread == "var":
                scale = variance + eps
            centered = x - mean if center == "mean" else x
            if spread == "product":
                return centered * scale
            if inside.endswith("statistics"):
                return centered * (1 / scale).to(x.dtype)
            return centered / scale

    return LayerNorm


DO_NOT_LOAD = ("parameters-renamed", "scalar-parameters", "parameters-of-shape-1-d",
               "plain-tensors", "eps-trained")
_NEEDS_WEIGHTS = ("statistics-detached", "affine-before-norm", "gain-missing", "bias-missing",
                  "affine-missing", "bias-before-gain")  # invisible with a gain of 1, a bias of 0


def _knob(id, settings, sentence, case="", lesson=TORCH):
    masks = _NEEDS_WEIGHTS if id in DO_NOT_LOAD else ()
    return Knob(id, settings, sentence, lesson, case, masks)


_AS_BUILT = "As built, the module does not start as plain normalization: "

KNOBS = (
    _knob("gain-zero-bias-one", {"init": "swapped"},
          _AS_BUILT + "the gain starts at 0 and the bias at 1; it is the other way round.",
          "LN-10"),
    _knob("gain-starts-small", {"init": "small"},
          _AS_BUILT + "the gain starts near 0.02; it should start at 1.", "LN-10"),
    _knob("parameters-renamed", {"parameters": "gamma-beta"},
          "The parameters are called gamma and beta, so the `state_dict` of `torch.nn.LayerNorm` "
          "does not load: name them weight and bias.", "LN-16"),
    _knob("scalar-parameters", {"parameters": "scalar"},
          "Gain and bias have one entry; they need one for each feature.", "LN-14", SCALE),
    _knob("parameters-of-shape-1-d", {"parameters": "column"},
          "Gain and bias have shape (1, D); `torch.nn.LayerNorm` keeps them as (D,), so its "
          "`state_dict` does not load.", ""),
    _knob("nothing-trains", {"parameters": "buffers"},
          "Gain and bias get no gradient: they are not `nn.Parameter`, have "
          "`requires_grad=False`, or are detached in `forward`.", "LN-14"),
    _knob("bias-not-trained", {"parameters": "gain-only"},
          "The bias gets no gradient: it is not an `nn.Parameter`, has `requires_grad=False`, "
          "or is detached in `forward`.", "LN-14"),
    _knob("gain-not-trained", {"parameters": "bias-only"},
          "The gain gets no gradient: it is not an `nn.Parameter`, has `requires_grad=False`, "
          "or is detached in `forward`.", "LN-14"),
    _knob("plain-tensors", {"parameters": "tensors"},
          "The `state_dict` is empty: no weights can be saved or loaded. In `__init__`, assign "
          "an `nn.Parameter` to `self.weight` and one to `self.bias`.", "LN-14"),
    _knob("eps-trained", {"parameters": "eps"},
          "ε is in the `state_dict`, so the weights of `torch.nn.LayerNorm` do not load: keep it "
          "as a plain number, `self.eps = eps`.", "LN-14"),
    _knob("statistics-detached", {"detached": True},
          "Mean and variance carry no gradient: they were detached or computed under "
          "`torch.no_grad()`.", "LN-20", "feature-axis/backward-pass"),
)

SHARED = ("unbiased-variance", "sample-std-plus-eps", "no-root", "eps-outside-root", "eps-missing",
          "eps-tiny", "eps-default-0",
          "eps-fixed-1e-5", "eps-fixed-1e-6", "eps-default-1e-3", "eps-default-1e-6",
          "eps-default-1e-12", "over-tokens", "over-axis-1", "over-batch",
          "over-tokens-and-features", "over-batch-and-tokens", "over-everything",
          "gain-bias-swapped", "affine-before-norm",
          "gain-missing", "bias-missing", "affine-missing", "bias-before-gain")

RMS = _knob("rms-for-layer-norm", {"center": "uncentered"},
            "This is RMS normalization: the mean is not subtracted, and the mean square takes the "
            "place of the variance.", "", SCALE)
