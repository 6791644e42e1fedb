"""The faulty family of layer-norm backward passes: every parameter at rest is right."""

import numpy as np

from lnres_utils.checking import Knob

BACKWARD = "feature-axis/backward-pass"


def faulty_backward(
    mean_term=1.0, variance_term=1.0, gain="before", scale="inverse-std", terms="mean",
    ddof=0, eps_missing=False, inner="normalized", gamma_times="normalized", reduce="sum",
    swapped=False, default_eps=1e-5, center=True, bias=True,
):
    """A ``layer_norm_backward(dy, x, gamma, eps)`` with these mistakes.

    Without ``center``, ``mean_term`` and ``bias`` it is that of RMS normalization.

    Parameters
    ----------
    mean_term, variance_term : how often each term of dx is subtracted
    gain : "before" the projection, "after" it, "missing", "twice"
    scale : "inverse-std", "one", "inverse-variance", "std"
    terms : "mean" over the features in both terms, "sum" in both, "sum-mean" or "sum-variance" in
        one of them, or "all" (the mean over every axis in both)
    inner : what the variance term multiplies back: "normalized", or "centered" values, or
        "centered-once", where only one of its two factors is normalized
    gamma_times : what multiplies dy in dgamma: "normalized", "x", "centered", "dz" (with gain), or
        "one"
    reduce : how dgamma and dbeta reduce the leading axes: "sum", "mean", "first" axis only,
        "first-two" axes, "features" (the last axis), or "none"
    """

    def layer_norm_backward(dy, x, gamma, eps=default_eps):
        width = x.shape[-1]
        centered = x - x.mean(-1, keepdims=True) if center else x
        variance = np.sum(centered**2, -1, keepdims=True) / np.float64(width - ddof)
        inverse_std = 1 / np.sqrt(variance + (0 if eps_missing else eps))
        z = centered * inverse_std

        dz = {"before": dy * gamma, "twice": dy * gamma**2}.get(gain, dy)
        mean = np.sum if terms in ("sum", "sum-mean") else np.mean
        mean_of_products = np.sum if terms in ("sum", "sum-variance") else np.mean
        over = None if terms == "all" else -1
        back = centered if inner == "centered" else z
        onto = centered if inner.startswith("centered") else z
        dx = (dz - mean_term * mean(dz, axis=over, keepdims=True)
              - variance_term * back * mean_of_products(dz * onto, axis=over, keepdims=True))
        dx = dx * {"inverse-std": inverse_std, "one": 1.0, "inverse-variance": inverse_std**2,
                   "std": 1 / inverse_std}[scale]
        if gain == "after":
            dx = dx * gamma

        times = {"normalized": z, "x": x, "centered": centered, "dz": z * gamma,
                 "one": np.ones_like(z)}[gamma_times]
        parts = [dx, _reduce(dy * times, reduce), *([_reduce(dy, reduce)] if bias else [])]
        if swapped:  # the last two
            parts[-2:] = parts[:-3:-1]
        return tuple(parts)

    return layer_norm_backward


def _reduce(terms, how):
    leading = tuple(range(terms.ndim - 1))
    return {
        "sum": lambda: terms.sum(leading),
        "mean": lambda: terms.mean(leading),
        "first": lambda: terms.sum(0),
        "first-two": lambda: terms.sum((0, 1)),
        "features": lambda: terms.sum(-1),
        "none": lambda: terms,
    }[how]()


KNOBS = tuple(
    Knob(id, settings, sentence, BACKWARD, "LN-20", masks)
    for id, settings, sentence, masks in (
        ("statistics-constant", {"mean_term": 0.0, "variance_term": 0.0},
         "Mean and variance are treated as constants: dx lacks both terms that come from them.",
         ("terms", "inner", "gain-after")),
        ("mean-term-missing", {"mean_term": 0.0},
         "dx lacks the term of the mean: its sum over the features is not zero.",
         ("mean-term-summed",)),
        ("variance-term-missing", {"variance_term": 0.0},
         "dx lacks the term of the variance: it still has a part along the normalized vector.",
         ("inner", "variance-term-summed")),
        ("mean-term-twice", {"mean_term": 2.0},
         "The term of the mean is subtracted twice in dx. (The variance adds no second one: the "
         "deviations from the mean sum to zero.)", ()),
        ("variance-term-twice", {"variance_term": 2.0},
         "The term of the variance is subtracted twice in dx.", ()),
        ("mean-term-sign", {"mean_term": -1.0},
         "The term of the mean has the wrong sign in dx: it is subtracted, not added.", ()),
        ("variance-term-sign", {"variance_term": -1.0},
         "The term of the variance has the wrong sign in dx: it is subtracted, not added.", ()),
        ("variance-term-half", {"variance_term": 0.5},
         "The term of the variance is only half of what it should be: the 2 of the square and the "
         "1/2 of the root cancel.", ()),
        ("gain-forgotten", {"gain": "missing"},
         "dx forgets the gain: the gradient at the normalized vector is dy·γ.", ()),
        ("gain-twice", {"gain": "twice"}, "dx applies the gain twice.", ()),
        ("gain-after", {"gain": "after"},
         "dx applies the gain last; γ multiplies dy before the mean and variance terms are taken.",
         ()),
        ("inverse-std-missing", {"scale": "one"}, "dx is not divided by the standard deviation.",
         ()),
        ("inverse-variance", {"scale": "inverse-variance"},
         "dx is divided by the variance; it should be divided by the standard deviation.", ()),
        ("times-std", {"scale": "std"},
         "dx is multiplied by the standard deviation; it should be divided by it.", ()),
        ("terms-summed", {"terms": "sum"},
         "The two terms of dx are sums over the features; they are means, divided by D.", ()),
        ("mean-term-summed", {"terms": "sum-mean"},
         "The term of the mean in dx is a sum over the features; it is a mean, divided by D.", ()),
        ("variance-term-summed", {"terms": "sum-variance"},
         "The term of the variance in dx sums dz·z over the features; it takes the mean, divided "
         "by D.", ()),
        ("terms-over-all-axes", {"terms": "all"},
         "The means in dx run over every axis; each token has its own, over its features.", ()),
        ("centered-for-normalized", {"inner": "centered"},
         "The variance term of dx uses x − mean where the normalized vector belongs.", ()),
        ("backward-unbiased", {"ddof": 1},
         "The variance is divided by D − 1; the forward pass divides by D.", ()),
        ("backward-eps-missing", {"eps_missing": True},
         "ε is missing from the standard deviation of the backward pass.", ("default_eps",)),
        ("dgamma-times-x", {"gamma_times": "x"},
         "dgamma multiplies dy with x; it should be the normalized vector.", ()),
        ("dgamma-times-centered", {"gamma_times": "centered"},
         "dgamma multiplies dy with x − mean; it should be the normalized vector.", ()),
        ("dgamma-with-gain", {"gamma_times": "dz"},
         "dgamma contains γ; it is the sum of dy times the normalized vector, without the gain.",
         ()),
        ("parameters-averaged", {"reduce": "mean"},
         "dgamma and dbeta are averaged over the leading axes; they are sums.", ()),
        ("parameters-first-axis", {"reduce": "first"},
         "dgamma and dbeta are summed over the first axis only; sum over all axes but the last.",
         ()),
        ("parameters-first-two-axes", {"reduce": "first-two"},
         "dgamma and dbeta are summed over axes 0 and 1, which fits (B, T, D) only; sum over all "
         "axes but the last, however many there are.", ()),
        ("parameters-over-features", {"reduce": "features"},
         "dgamma and dbeta are summed over the features; they keep the features and sum over all "
         "other axes.", ()),
        ("parameters-not-summed", {"reduce": "none"},
         "dgamma and dbeta are not summed over the leading axes: γ and β are shared by all tokens.",
         ()),
        ("dgamma-dbeta-swapped", {"swapped": True},
         "dgamma and dbeta are returned in the wrong order.", ()),
        *((f"backward-eps-default-{value}", {"default_eps": float(value)},
           f"The default of `eps` is {value}; the exercise asks for 1e-5.", ())
          for value in ("1e-3", "1e-6", "1e-12", "0")),
    )
)
