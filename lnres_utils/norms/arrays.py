"""Layer normalization and its relatives on NumPy arrays."""

import numpy as np


def standardize(x, eps=1e-5):
    """Shift one vector to mean zero and scale it to variance one.

    Parameters
    ----------
    x : (D,) array
    eps : float, added to the variance (units of x squared)

    Returns
    -------
    (D,) float array

    Raises
    ------
    ValueError if ``x`` is not one vector.

    References
    ----------
    Ba, Kiros & Hinton 2016, eq. 3.
    """
    x = np.asarray(x)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"x has shape {x.shape}; one vector of shape (D,) with D > 0 was expected")
    return normalize(x, axes=-1, eps=eps)


def normalize(x, axes, eps=1e-5):
    """Subtract the mean over ``axes`` and divide by the root of the biased variance plus ``eps``.

    Parameters
    ----------
    x : array of any shape
    axes : int or tuple of ints, the axes whose numbers share one mean and one variance
    eps : float, added to the variance (units of x squared)

    Returns
    -------
    Array of the shape and floating dtype of ``x`` (integers become float64). The statistics are
    taken in float32 or wider: a sum of squares overflows float16 already at small values.
    """
    x, dtype = _widened(x)
    mean = x.mean(axis=axes, keepdims=True)
    centered = x - mean
    variance = np.mean(centered**2, axis=axes, keepdims=True)
    return (centered / np.sqrt(variance + eps)).astype(dtype)


def layer_norm(x, gamma, beta, eps=1e-5):
    """Normalize each feature vector of ``x``, then scale and shift it feature by feature.

    Parameters
    ----------
    x : (..., D) array
    gamma, beta : (D,) arrays, the learned gain and bias
    eps : float, added to the variance (units of x squared)

    Returns
    -------
    (..., D) array in the dtype of ``x``; the statistics are taken in float32 or wider.

    Raises
    ------
    ValueError if ``gamma`` or ``beta`` is not of shape (D,): broadcasting would hide the mistake.

    References
    ----------
    Ba, Kiros & Hinton 2016, eq. 3-4.
    """
    x = np.asarray(x)
    _require_width(x, -1, gamma=gamma, beta=beta)
    normalized = normalize(x, axes=-1, eps=eps)
    return (normalized * gamma + beta).astype(normalized.dtype)


def axis_norm(x, kind, groups=1, eps=1e-5):
    """Normalize hidden states over the axes of one of four norms, without gain and bias.

    Parameters
    ----------
    x : (B, T, D) array: batch, tokens, hidden width
    kind : "layer" (over D), "batch" (over B and T), "instance" (over T),
        or "group" (over T and the D / groups neighboring features of a group)
    groups : int, number of groups for kind "group"; it must divide D
    eps : float, added to the variance (units of x squared)

    Returns
    -------
    (B, T, D) array in the dtype of ``x``

    Raises
    ------
    ValueError for an ``x`` that is not (B, T, D), an unknown ``kind``, or ``groups`` that does not
    divide D.

    References
    ----------
    Ioffe & Szegedy 2015 (batch), Ulyanov et al. 2016 (instance), Wu & He 2018 (group).
    """
    x = np.asarray(x)
    if x.ndim != 3:
        raise ValueError(f"x has shape {x.shape}; (B, T, D) was expected")
    axes = {"layer": -1, "batch": (0, 1), "instance": 1}
    if kind in axes:
        return normalize(x, axes[kind], eps)
    if kind != "group":
        raise ValueError(f"kind is {kind!r}; use 'layer', 'batch', 'instance' or 'group'")
    batch, tokens, width = x.shape
    if groups < 1 or width % groups:
        raise ValueError(f"groups={groups} does not divide the hidden width {width}")
    split = x.reshape(batch, tokens, groups, width // groups)
    return normalize(split, (1, 3), eps).reshape(x.shape)


def channel_norm(x, gamma, beta, eps=1e-5):
    """Layer normalization of an image: at each pixel, over the channels.

    Parameters
    ----------
    x : (B, C, H, W) array
    gamma, beta : (C,) arrays, the learned gain and bias
    eps : float, added to the variance (units of x squared)

    Returns
    -------
    (B, C, H, W) array in the dtype of ``x``

    Raises
    ------
    ValueError if ``x`` is not (B, C, H, W) or ``gamma`` or ``beta`` is not of shape (C,).
    """
    x = np.asarray(x)
    if x.ndim != 4:
        raise ValueError(f"x has shape {x.shape}; (B, C, H, W) was expected")
    _require_width(x, 1, gamma=gamma, beta=beta)
    last = layer_norm(np.moveaxis(x, 1, -1), gamma, beta, eps)
    return np.moveaxis(last, -1, 1)


def layer_norm_backward(dy, x, gamma, eps=1e-5):
    """Vector-Jacobian product of :func:`layer_norm`.

    Parameters
    ----------
    dy : (..., D) array, the cotangent: gradient of the loss with respect to the output
    x : (..., D) array, the input of the forward pass
    gamma : (D,) array, the gain of the forward pass
    eps : float, the epsilon of the forward pass

    Returns
    -------
    dx : (..., D) array
    dgamma, dbeta : (D,) arrays, summed over all leading axes

    Raises
    ------
    ValueError if ``dy`` and ``x`` differ in shape or ``gamma`` is not of shape (D,).
    """
    dy, x = np.asarray(dy), np.asarray(x)
    _require_same_shape(dy, x)
    _require_width(x, -1, gamma=gamma)
    centered = x - x.mean(axis=-1, keepdims=True)
    inverse_std = 1 / np.sqrt(np.mean(centered**2, axis=-1, keepdims=True) + eps)
    normalized = centered * inverse_std

    leading = tuple(range(x.ndim - 1))
    dgamma = np.sum(dy * normalized, axis=leading)
    dbeta = np.sum(dy, axis=leading)

    dz = dy * gamma  # gradient at the normalized vector
    through_mean = dz.mean(axis=-1, keepdims=True)
    through_variance = normalized * (dz * normalized).mean(-1, keepdims=True)
    dx = inverse_std * (dz - through_mean - through_variance)
    return dx, dgamma, dbeta


def rms_norm(x, gamma, eps=1e-6):
    """Divide each feature vector of ``x`` by its root mean square, then scale it by feature.

    Parameters
    ----------
    x : (..., D) array
    gamma : (D,) array, the learned gain
    eps : float, added to the mean square (units of x squared)

    Returns
    -------
    (..., D) array in the dtype of ``x``; mean square and product are taken in float32 or wider.

    Raises
    ------
    ValueError if ``gamma`` is not of shape (D,): broadcasting would hide the mistake.

    References
    ----------
    Zhang & Sennrich 2019, eq. 4.
    """
    x, dtype = _widened(x)
    _require_width(x, -1, gamma=gamma)
    mean_square = np.mean(x**2, axis=-1, keepdims=True)
    normalized = x / np.sqrt(mean_square + eps)
    return (normalized * gamma).astype(dtype)


def rms_norm_backward(dy, x, gamma, eps=1e-6):
    """Vector-Jacobian product of :func:`rms_norm`.

    Parameters
    ----------
    dy : (..., D) array, the cotangent: gradient of the loss with respect to the output
    x : (..., D) array, the input of the forward pass
    gamma : (D,) array, the gain of the forward pass
    eps : float, the epsilon of the forward pass

    Returns
    -------
    dx : (..., D) array in the dtype of ``x``
    dgamma : (D,) array, summed over all leading axes, in float32 or wider

    Raises
    ------
    ValueError if ``dy`` and ``x`` differ in shape or ``gamma`` is not of shape (D,).
    """
    x, dtype = _widened(x)
    _require_same_shape(dy, x)
    _require_width(x, -1, gamma=gamma)
    inverse_rms = 1 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    normalized = x * inverse_rms

    leading = tuple(range(x.ndim - 1))
    dgamma = np.sum(dy * normalized, axis=leading)

    dz = np.multiply(dy, gamma)  # gradient at the normalized vector
    through_mean_square = normalized * (dz * normalized).mean(-1, keepdims=True)
    dx = inverse_rms * (dz - through_mean_square)
    return dx.astype(dtype), dgamma


def _widened(x):
    """``x`` in float32 or wider, and the dtype to return: its own, or float64 for integers."""
    x = np.asarray(x)
    wide = np.result_type(x, np.float32)
    dtype = x.dtype if np.issubdtype(x.dtype, np.floating) else wide
    return x.astype(wide), dtype


def _require_same_shape(dy, x):
    if np.shape(dy) != x.shape:
        raise ValueError(f"dy has shape {np.shape(dy)}; the shape of x, {x.shape}, was expected")


def _require_width(x, axis, **vectors):
    """Refuse a gain or bias that does not fit: broadcasting would hide the mistake."""
    if x.ndim == 0:
        raise ValueError("x is a single number; an array with a feature axis was expected")
    width = x.shape[axis]
    for name, vector in vectors.items():
        if np.shape(vector) != (width,):
            raise ValueError(
                f"{name} has shape {np.shape(vector)}; ({width},) was expected, one entry a feature"
            )
