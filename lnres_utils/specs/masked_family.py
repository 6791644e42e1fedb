"""The faulty family of norms over real tokens, and its knobs."""

import numpy as np

from lnres_utils import norms
from lnres_utils.checking import Knob
from lnres_utils.specs import norm_knobs

PADDING = "practical-checks/modes-batches-padding"
KINDS = {"batch": (0, 1), "instance": (1,)}


def reference(inputs):
    """Real tokens are gathered, normalized as if there were no others, and put back."""
    x, mask, eps = inputs["x"], inputs["mask"], inputs.get("eps", 1e-5)
    y = np.zeros_like(x)
    groups = [mask]
    if inputs["kind"] == "instance":
        groups = [mask & (np.arange(len(x)) == i)[:, None] for i in range(len(x))]
    for group in groups:
        if group.any():
            y[group] = norms.normalize(x[group], 0, eps)
    return {"y": y, "y at padding": np.zeros_like(y)}


def faulty_masked(
    statistics="real", padding="zero", empty="zero", ddof=0, eps_place="inside",
    default_eps=1e-5, batch=KINDS["batch"], instance=KINDS["instance"], mask_from="argument",
    features="apart",
):
    """A ``masked_norm(x, mask, kind, eps)`` with the mistakes of the settings.

    Parameters
    ----------
    statistics : "real" tokens; "all" positions; "zeros" counts padding as zeros; "count-all"
        divides sums over real tokens by all positions; "variance-all" and "variance-zeros" have the
        right mean; "of-means" averages over examples what was averaged over tokens; "inverted";
        "one-pass" subtracts two large numbers
    padding : what stands at padded positions: "zero", "normalized", "kept"
    empty : where no token is real, "zero" or "nan"
    mask_from : the "argument"; the "numbers", where x is not zero; "lengths", padding at the end
    features : statistics are of each feature "apart", or of all of them "together"
    """
    def masked_norm(x, mask, kind, eps=default_eps):
        axes = {"batch": batch, "instance": instance}[kind]
        axes += (2,) if features == "together" else ()
        if mask_from == "numbers":
            mask = (x != 0).any(-1)
        elif mask_from == "lengths":
            mask = np.arange(mask.shape[1]) < mask.sum(1, keepdims=True)
        real = np.repeat(mask[..., None].astype(float), x.shape[-1], -1)  # B,T,D
        mean, variance = _moments(x, 1 - real if statistics == "inverted" else real,
                                  axes, statistics, ddof, empty)
        std = np.sqrt(variance) + eps if eps_place == "outside" else np.sqrt(variance + eps)
        z = (x - mean) / std
        if padding == "normalized":
            return z
        if padding == "kept":
            return np.where(real, z, x)
        return z * real if empty == "nan" else np.where(real, z, 0)

    return masked_norm


def _moments(x, real, axes, statistics, ddof, empty):
    def total(values):
        return values.sum(axes, keepdims=True)

    everything = total(np.ones(x.shape))
    count = total(real) if empty == "nan" else np.maximum(total(real), 1)
    zeroed = np.where(real, x, 0)
    if statistics in ("all", "zeros"):
        values = x if statistics == "all" else zeroed
        mean = total(values) / everything
        return mean, total((values - mean) ** 2) / _less(everything, ddof)
    if statistics == "of-means" and 0 in axes:
        inner = _moments(x, real, axes[1:], "real", ddof, empty)
        return tuple(each.mean(0, keepdims=True) for each in inner)
    if statistics == "count-all":
        count = everything
    mean = total(zeroed) / count
    if statistics == "one-pass":
        variance = (total(zeroed**2) / count - mean**2) * count / np.maximum(count - ddof, 1)
        return mean, variance
    if statistics == "variance-all":
        return mean, total((x - mean) ** 2) / _less(everything, ddof)
    if statistics == "variance-zeros":
        return mean, total((zeroed - mean) ** 2) / _less(count, ddof)
    return mean, total(real * (x - mean) ** 2) / _less(count, ddof)


def _less(count, ddof):
    return np.maximum(count - ddof, 0)


KNOBS = (
    *(Knob(id, {"statistics": statistics}, sentence, PADDING, case, masks)
      for id, statistics, sentence, case, masks in (
          ("padding-counted", "all",
           "Padded positions take part in mean and variance, with whatever stands there; only the "
           "output is masked.", "AX-07", ("empty",)),
          ("padding-counted-as-zero", "zeros",
           "Padding is set to zero, and the zeros are counted: mean and variance run over all "
           "positions. Take sums over the real tokens, and divide by their number.", "AX-06",
           ("empty",)),
          ("divided-by-all", "count-all",
           "The sums run over the real tokens, but they are divided by the number of all "
           "positions, padded ones included.", "AX-06", ("empty",)),
          ("variance-over-padding", "variance-all",
           "The mean is right, but the variance also averages the deviations of padded positions.",
           "AX-07", ()),
          ("variance-counts-zeros", "variance-zeros",
           "The mean is right, but padding that was set to zero deviates from it, and this gets "
           "into the variance: mask the deviations too.", "AX-06", ()),
          ("mean-of-means", "of-means",
           "Kind \"batch\" averages the means and variances of the examples. Short examples then "
           "count as much as long ones, and the spread between examples is lost.", "AX-06", ()),
          ("one-pass-variance", "one-pass",
           "The variance is the mean of the squares minus the square of the mean. Far from "
           "zero both are large, and their difference is rounding: subtract the mean first.",
           "NUM-03", ()),
          ("mask-inverted", "inverted",
           "The statistics run over the padding: the mask is True where a token is real.",
           "", ()),
      )),
    Knob("padding-not-zeroed", {"padding": "normalized"},
         "Padded positions are normalized like the others; they are to be zero.", PADDING, ""),
    Knob("padding-left", {"padding": "kept"},
         "Padded positions keep what stood there; they are to be zero.", PADDING, "",
         masks=("empty",)),
    Knob("nothing-real-nan", {"empty": "nan"},
         "Where no token is real, the sums are divided by a count of zero, and the output is NaN. "
         "Divide by at least one: `np.maximum(count, 1)`.", PADDING, ""),
    Knob("instance-over-batch", {"instance": (0, 1)},
         "Kind \"instance\" mixes the examples: its statistics run over the whole batch.",
         PADDING, ""),
    Knob("batch-per-example", {"batch": (1,)},
         "Kind \"batch\" handles each example by itself; its statistics run over all real tokens "
         "of the batch.", PADDING, "", masks=("mean-of-means",)),
    Knob("mask-from-zeros", {"mask_from": "numbers"},
         "The mask is guessed from x: what is not zero is taken for real. Padding may hold any "
         "numbers, and a real token may be zero: use `mask`.", PADDING, "",
         masks=("padding-left",)),
    Knob("padding-at-the-end", {"mask_from": "lengths"},
         "It takes the first tokens of each example for the real ones, as many as there are. "
         "Padding may stand anywhere: use `mask` at each position.", PADDING, ""),
    Knob("features-together", {"features": "together"},
         "The statistics run over the features too. Each feature has a mean and a variance of its "
         "own: sum over tokens, and for \"batch\" over examples.", PADDING, ""),
    *(knob for knob in norm_knobs.VARIANCE + norm_knobs.EPSILON + norm_knobs.DEFAULT_EPSILON
      if knob.id in ("unbiased-variance", "sample-std-plus-eps", "eps-outside-root",
                     "eps-default-1e-3", "eps-default-1e-6")),
)
