"""The faulty families of chapter 4 on arrays: every parameter at rest is the right answer."""

from functools import partial

import numpy as np

from lnres_utils.specs.backward_family import faulty_backward
from lnres_utils.specs.module_family import faulty_module
from lnres_utils.specs.norm_family import faulty_layer_norm, faulty_normalize

faulty_rms_backward = partial(faulty_backward, mean_term=0.0, center=False, bias=False,
                              default_eps=1e-6)
faulty_rms_module = partial(faulty_module, center="uncentered", biased=False, default_eps=1e-6)


def faulty_rms_norm(default_eps=1e-6, center="uncentered", **norm):
    """An ``rms_norm(x, gamma, eps)`` with these mistakes, which are those of a layer norm.

    ``default_eps`` None stands for the machine epsilon of the dtype of x.
    """
    layer_norm = faulty_layer_norm(center=center, **norm)

    def rms_norm(x, gamma, eps=None):
        if eps is None:
            eps = np.finfo(x.dtype).eps if default_eps is None else default_eps
        return layer_norm(x, gamma, np.zeros_like(gamma), eps)

    return rms_norm


def faulty_qk_norm(
    split="heads", over="features", gains="own", left_out="", layout="joined", sources="own",
    default_eps=1e-6, center="uncentered", **norm
):
    """A ``qk_norm(queries, keys, query_gain, key_gain, heads, eps)`` with these mistakes.

    Parameters
    ----------
    split : "heads" (neighboring features form a head), "interleaved" (every n-th feature), or
        "size" (``heads`` taken for the size of a head)
    over : "features" of a head, "all" features of a token, "heads", "tokens", or
        "tokens-and-features"
    gains : "own", "of-queries" (for both), "of-keys", "swapped", "none", "one-plus", "repeated"
        (each entry for neighbors), or "before" the norm
    left_out : "queries" or "keys" that are not normalized
    layout : "joined" (B, T, D), "split" (B, T, heads, D / heads), "heads-first" (B, heads, T,
        D / heads), or "untransposed" (the numbers of that order read as (B, T, D))
    sources : "own", "queries" (both are computed from them), "keys", or "swapped" (keys first)
    center and others : as for arrays
    """

    def normalized(x, gain, heads, eps):
        batch, tokens, width = x.shape
        size = gain.size if split != "size" else heads
        if split == "interleaved":
            states = x.reshape(batch, tokens, size, width // size).swapaxes(2, 3)
        else:
            states = x.reshape(batch, tokens, width // size, size)
        axes = {"features": -1, "all": (2, 3), "heads": 2, "tokens": 1,
                "tokens-and-features": (1, 3)}[over]
        if gains == "repeated":
            gain = np.repeat(gain, width // gain.size).reshape(states.shape[2:])
        if gains == "before":
            z = faulty_normalize(states * gain, axes, eps, center=center, **norm)
        else:
            z = faulty_normalize(states, axes, eps, center=center, **norm)
            z = z * {"none": 1, "one-plus": 1 + gain}.get(gains, gain)
        if layout == "split":
            return z
        if layout in ("heads-first", "untransposed"):
            z = z.swapaxes(1, 2)
            return z if layout == "heads-first" else z.reshape(x.shape)
        return (z.swapaxes(2, 3) if split == "interleaved" else z).reshape(x.shape)

    def qk_norm(q, k, q_gain, k_gain, heads, eps=default_eps):
        q_gain, k_gain = {"of-queries": (q_gain, q_gain), "of-keys": (k_gain, k_gain),
                          "swapped": (k_gain, q_gain)}.get(gains, (q_gain, k_gain))
        q, k = {"queries": (q, q), "keys": (k, k)}.get(sources, (q, k))
        both = (q if left_out == "queries" else normalized(q, q_gain, heads, eps),
                k if left_out == "keys" else normalized(k, k_gain, heads, eps))
        return both[::-1] if sources == "swapped" else both

    return qk_norm


def faulty_fold(
    weight_axis=0, bias="mean", keepdims=True, divided=False, times=1, sign=-1, float64=""
):
    """A ``fold_centering(weight, bias)`` with these mistakes.

    Parameters
    ----------
    weight_axis : the axis of weight whose mean is taken out: 0 (the outputs), 1 (the inputs),
        "both" (all of it), or "none"
    bias : "mean" (its mean is taken out), "kept", or "dropped" (zeros)
    keepdims : False lets the mean over axis 1 lose its axis
    divided : whether the weights are divided by their standard deviation, too
    times : how often the means are subtracted; ``sign`` 1 adds them
    float64 : what is float64 whatever was given: "weight", or "weight and bias"
    """

    def fold_centering(weight, b):
        change = sign * times
        axis = {"both": None}.get(weight_axis, weight_axis)
        if weight_axis != "none":
            mean = weight.mean(axis=axis, keepdims=keepdims)
            centered = weight + change * mean
            if divided:
                centered = centered / weight.std(axis=axis, keepdims=True)
        else:
            centered = weight
        b = {"mean": b + change * b.mean(), "kept": b, "dropped": np.zeros_like(b)}[bias]
        return (centered.astype(float) if "weight" in float64 else centered,
                b.astype(float) if "bias" in float64 else b)

    return fold_centering


def faulty_convert(plain=1.0, one_plus=-1.0, inside="wide", result="wide"):
    """A ``convert_gain(weight, to)`` with these mistakes.

    Parameters
    ----------
    plain, one_plus : what is added in each direction
    inside : "wide" (float32 at least), or "narrow" (the sum in the dtype of weight)
    result : the dtype returned: "wide", "stored" (that of weight), "float32", or "float64"
    """

    def convert_gain(weight, to):
        wide = np.result_type(weight, np.float32)
        dtype = {"wide": wide, "stored": weight.dtype, "float32": "float32",
                 "float64": "float64"}[result]
        inner = weight.astype(wide if inside == "wide" else weight.dtype)
        return (inner + inner.dtype.type({"plain": plain, "one-plus": one_plus}[to])).astype(dtype)

    return convert_gain
