"""The faulty family of layer norms on half precision, and its knobs."""

import numpy as np

from lnres_utils import norms
from lnres_utils.checking import Knob
from lnres_utils.specs import norm_knobs

HALF = "practical-checks/half-precision"


def reference(inputs):
    """In double precision, rounded once."""
    wide = [inputs[name].astype(np.float64) for name in ("x", "gamma", "beta")]
    return {"y": norms.layer_norm(*wide, inputs.get("eps", 1e-5)).astype(np.float16)}


def faulty_half(statistics="wide", dtype="float16", ddof=0, eps_place="inside", least_eps=0.0,
                default_eps=1e-5):
    """A ``half_layer_norm(x, gamma, beta, eps)`` with the mistakes of the settings.

    Parameters
    ----------
    statistics : "wide" is right; "squares" and "sum" overflow in float16, the second earlier;
        "variance" is rounded to float16; "deviations" are, before they are squared; "epsilon" is;
        "half-mended" takes only the means in float32;
        "one-pass" subtracts two large numbers in float32
    dtype : of the output
    least_eps : an epsilon below it is raised to it
    """
    def half_layer_norm(x, gamma, beta, eps=default_eps):
        eps = max(eps, least_eps)
        deviations, variance = _moments(x, statistics, ddof)
        if statistics in ("epsilon", "squares", "sum", "variance"):
            eps = variance.dtype.type(np.float16(eps))
        std = np.sqrt(variance) + eps if eps_place == "outside" else np.sqrt(variance + eps)
        return (deviations / std * gamma + beta).astype(dtype)

    return half_layer_norm


def _moments(x, statistics, ddof):
    """Deviations and variance, each in the precision of the mistake."""
    width = x.shape[-1]
    keep = {"axis": -1, "keepdims": True}
    if statistics in ("squares", "sum", "variance", "deviations", "half-mended"):
        deviations = x - x.mean(**keep)
        correction = np.float16(width / (width - ddof))
        if statistics == "variance":
            return deviations, x.var(**keep) * correction
        if statistics == "squares":
            return deviations, (deviations**2).mean(**keep) * correction
        if statistics == "sum":
            return deviations, (deviations**2).sum(**keep) / np.float16(width - ddof)
        wide = deviations.astype(np.float32)
        if statistics == "half-mended":
            squares = deviations**2
            return wide, squares.sum(**keep, dtype=np.float32) / (width - ddof)
        return wide, (wide**2).sum(**keep) / (width - ddof)
    wide = x.astype(np.float32)
    mean = wide.mean(**keep)
    deviations = wide - mean
    if statistics == "one-pass":
        variance = ((wide**2).mean(**keep) - mean**2) * np.float32(width / (width - ddof))
        return deviations, variance
    return deviations, (deviations**2).sum(**keep) / (width - ddof)


KNOBS = (
    *(Knob(id, {"statistics": statistics, **({"least_eps": 0.0} if "means" in id else {})},
           sentence, HALF, case)
      for id, statistics, sentence, case in (
          ("squares-in-half", "squares",
           "The deviations are squared in float16. From 256 on a square is infinite, the output is "
           "0, and nothing warns. Convert x to float32 first.", "NUM-01"),
          ("sum-in-half", "sum",
           "The squares are summed in float16. The sum of D squares is infinite from 256 / √D on, "
           "and the output is 0. Convert x to float32 first.", "NUM-01"),
          ("variance-in-half", "variance",
           "The variance comes back as float16, as from `x.var()`: above 65504 it is infinite, and "
           "a small one is zero. Convert x to float32 before the first statistic.", "NUM-01"),
          ("deviations-in-half", "deviations",
           "The mean is rounded to float16 before it is subtracted. Far from zero the spacing of "
           "float16 is larger than the deviations: convert x before, not after.", ""),
          ("means-only-in-float32", "half-mended",
           "Only the means are taken in float32: the deviations are rounded to float16 and squared "
           "in it, where 256² is infinite. Convert x itself, before the first step.", "NUM-01"),
          ("eps-in-half", "epsilon",
           "ε goes through float16, where 1e-8 is 0: a constant row becomes 0 / 0. Add ε in "
           "float32.", "NUM-02"),
          ("one-pass-variance", "one-pass",
           "The variance is the mean of the squares minus the square of the mean. In float32 both "
           "are large far from zero, and their difference is rounding: subtract the mean first.",
           "NUM-03"),
      )),
    Knob("float32-out", {"dtype": "float32"},
         "The output is float32: convert it back, `.astype(x.dtype)`. float32 is for the "
         "statistics.", HALF, ""),
    Knob("float64-out", {"dtype": "float64"},
         "The output is float64: convert it back, `.astype(x.dtype)`.", HALF, ""),
    *(Knob(f"eps-at-least-{value}",
           {"least_eps": float(value), "default_eps": 1e-5, "eps_place": "inside"},
           f"A small ε is raised to {value}, so that it survives float16. That is another norm: "
           "add the ε that was asked for, in float32.", HALF, "NUM-02", masks)
      for value, masks in (("1e-7", ()), ("1e-5", ("eps-in-half",)), ("1e-3", ("eps-in-half",)))),
    *(knob for knob in norm_knobs.VARIANCE + norm_knobs.EPSILON + norm_knobs.DEFAULT_EPSILON
      if knob.id in ("unbiased-variance", "eps-outside-root", "eps-default-1e-3",
                     "eps-default-1e-6")),
)
