"""The faulty family of normalizations: every parameter at rest is the right answer."""

import numpy as np


def faulty_normalize(
    x, axes, eps, *, ddof=0, eps_place="inside", eps_value=None, center="mean",
    spread="std", keepdims="kept", dtype=None, ndim=None,
):
    """Normalize ``x`` over ``axes`` with the mistakes of the keyword settings.

    Parameters
    ----------
    ddof : 1 divides the sum of squares by N - 1
    eps_place : "inside" the root, "outside" it, "both", "missing", "squared", "max-std", "max-var"
    eps_value : a constant used instead of ``eps``
    center : "mean", "none" (x is divided by its standard deviation), "median",
        "uncentered" (x / rms), "uncentered-spread" (x - mean over rms), "precedence" (x - mean/std)
    spread : "std", "var" (no root), "sum" (no 1/N), "mad", "range", "one" (not divided),
        "product" (multiplied by it), "square-of-mean" (of the deviations), "squared-mean" (of x,
        for the center "uncentered"), "min-max", "softmax"
    keepdims : "lost" lets the statistics lose their axis; "lost-late" too, but the variance is
        still that of the right deviations, as from ``np.var``
    ndim : the only rank accepted, any by default
    dtype : the dtype returned, by default that of ``x``
    """
    if ndim is not None and x.ndim != ndim:
        raise ValueError(f"{ndim} axes expected")
    eps = eps if eps_value is None else eps_value
    keep = {"axis": axes, "keepdims": keepdims == "kept"}
    if spread == "min-max":
        low, high = x.min(**keep), x.max(**keep)
        return ((x - low) / (high - low + _added(eps, eps_place))).astype(dtype or x.dtype)
    if spread == "softmax":
        weights = np.exp(x - x.max(axis=axes, keepdims=True))
        return (weights / weights.sum(**keep)).astype(dtype or x.dtype)

    mean = np.median(x, **keep) if center == "median" else x.mean(**keep)
    if center in ("uncentered", "uncentered-spread"):
        deviation = x
    elif keepdims == "lost-late":
        deviation = x - x.mean(axis=axes, keepdims=True)
    else:
        deviation = x - mean
    count = x.size // x.mean(axis=axes, keepdims=True).size
    scale = _scale(deviation, keep, count, eps, ddof, eps_place, spread)
    centered = x if center in ("none", "uncentered") else x - mean
    if spread == "product":
        z = centered * scale
    elif center == "precedence":
        z = x - mean / scale
    else:
        z = centered / scale
    return z.astype(dtype or x.dtype)


def _scale(deviation, keep, count, eps, ddof, eps_place, spread):
    """What the centered numbers are divided by."""
    if spread == "one":
        return np.ones(())
    if spread == "mad":
        return np.mean(np.abs(deviation), **keep) + _added(eps, eps_place)
    if spread == "range":
        return deviation.max(**keep) - deviation.min(**keep) + _added(eps, eps_place)
    if spread == "square-of-mean":  # zero up to rounding, and zero here
        return np.sqrt(eps)
    with np.errstate(divide="ignore"):
        denominator = 1 if spread == "sum" else count - ddof
        variance = np.sum(deviation**2, **keep) / np.float64(denominator)
    if spread == "squared-mean":
        variance = np.mean(deviation, **keep) ** 2
    if spread == "var":
        return variance + eps
    return {
        "inside": lambda: np.sqrt(variance + eps),
        "outside": lambda: np.sqrt(variance) + eps,
        "both": lambda: np.sqrt(variance + eps) + eps,
        "missing": lambda: np.sqrt(variance),
        "squared": lambda: np.sqrt(variance + eps**2),
        "max-std": lambda: np.maximum(np.sqrt(variance), eps),
        "max-var": lambda: np.sqrt(np.maximum(variance, eps)),
    }[eps_place]()


def _added(eps, eps_place):
    """What is added to a spread that has no root."""
    return 0 if eps_place == "missing" else eps


def faulty_affine(z, gamma, beta, affine="after"):
    """Gain and bias on ``z``, in a wrong way unless ``affine`` is "after"."""
    return {
        "after": lambda: z * gamma + beta,
        "swapped": lambda: z * beta + gamma,
        "no-gain": lambda: z + beta,
        "no-bias": lambda: z * gamma,
        "none": lambda: z,
        "bias-first": lambda: (z + beta) * gamma,
        "one-plus": lambda: z * (1 + gamma) + beta,
        "minus-bias": lambda: z * gamma - beta,
        "one-gain": lambda: z * gamma[0] + beta[0],
        "divided": lambda: z / gamma + beta,
        "sum": lambda: z * (gamma + beta),
    }[affine]()


def axes_of(axes, ndim):
    """The axes meant by a setting: those of NumPy, or a rule that depends on the rank."""
    if axes == "all-but-last":
        return tuple(range(ndim - 1))
    if axes == "all-but-first":
        return tuple(range(1, ndim))
    return axes


def faulty_standardize(default_eps=1e-5, **norm):
    """A ``standardize(x, eps)`` with these mistakes."""

    def standardize(x, eps=default_eps):
        return faulty_normalize(x, -1, eps, **norm)

    return standardize


def faulty_layer_norm(axes=-1, affine="after", default_eps=1e-5, **norm):
    """A ``layer_norm(x, gamma, beta, eps)`` with these mistakes."""

    def layer_norm(x, gamma, beta, eps=default_eps):
        if affine == "before":
            return faulty_normalize(x * gamma + beta, axes_of(axes, x.ndim), eps, **norm)
        z = faulty_normalize(x, axes_of(axes, x.ndim), eps, **norm)
        return faulty_affine(z, gamma, beta, affine)

    return layer_norm


def faulty_channel_norm(
    axes=1, affine="after", affine_axis=1, default_eps=1e-5, **norm
):
    """A ``channel_norm(x, gamma, beta, eps)`` on (B, C, H, W) with these mistakes."""

    def channel_norm(x, gamma, beta, eps=default_eps):
        if axes == "reshaped":  # the numbers of (B, C, H, W) read as (B, H * W, C)
            flat = x.reshape(x.shape[0], -1, x.shape[1])
            inner = faulty_layer_norm(-1, affine, default_eps, **norm)
            return inner(flat, gamma, beta, eps).reshape(x.shape)
        shape = [1, 1, 1, 1]
        shape[affine_axis] = -1
        gain, bias = gamma.reshape(shape), beta.reshape(shape)
        if affine == "before":
            return faulty_normalize(x * gain + bias, axes, eps, **norm)
        z = faulty_normalize(x, axes, eps, **norm)
        return faulty_affine(z, gain, bias, affine)

    return channel_norm


def faulty_axis_norm(
    layer=-1, batch=(0, 1), instance=1, group="neighbors", default_eps=1e-5, **norm
):
    """An ``axis_norm(x, kind, groups, eps)`` with the axes of each kind as settings.

    ``group`` is "neighbors" (the right one), "interleaved" (every groups-th feature), "per-token"
    (statistics of one token only), "reshaped" (the numbers read as (B, groups, T,
    D / groups)), "size" (``groups`` taken for the size of a group), or "all"
    (``groups`` ignored).
    """

    def axis_norm(x, kind, groups=1, eps=default_eps):
        axes = {"layer": layer, "batch": batch, "instance": instance}
        if kind in axes:
            return faulty_normalize(x, axes[kind], eps, **norm)
        batch_size, tokens, width = x.shape
        size = {"size": groups, "all": width}.get(group, width // groups)
        if group == "reshaped":
            split = x.reshape(batch_size, groups, tokens, size)
            return faulty_normalize(split, (2, 3), eps, **norm).reshape(x.shape)
        if group == "interleaved":
            split = x.reshape(batch_size, tokens, size, width // size)
            return faulty_normalize(split, (1, 2), eps, **norm).reshape(x.shape)
        split = x.reshape(batch_size, tokens, width // size, size)
        over = 3 if group == "per-token" else (1, 3)
        return faulty_normalize(split, over, eps, **norm).reshape(x.shape)

    return axis_norm
