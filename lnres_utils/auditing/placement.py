"""Name the norm order of a block from its outputs alone."""

import copy

import numpy as np

LABELS = ("pre", "post", "sandwich", "res-post", "parallel", "skip-from-norm")
UNKNOWN = "none of these"

HUGE = 1e4  # beside it an update of ordinary size is nothing
ON_A_SURFACE = 0.02  # standard deviation of the flattest combination, of columns of size one


class MixesNoTokens(ValueError):
    """The block treats each token by itself."""


def norm_order(block, x, *args, sublayers=2, **kwargs):
    """Where the norms of a transformer block stand, found by calling it.

    Four questions are asked. Does a huge input come out as it went in, so that a skip carries it?
    Does the last token's output change when only the size of the other tokens changes, or does a
    norm hide it? Is the update the same for an input of any size? Does the attention's update keep
    to a surface, as the output of a norm does?

    Parameters
    ----------
    block : module, or callable on float tensors, of (B, T, D) to (B, T, D); it must mix tokens.
        A module is copied, made float64 and put into evaluation mode; it stays as it is. A callable
        is called as it is, in the dtype of ``x``, which should be float64.
    x : (B, T, D) float tensor, an example of the input, T of at least 2; only its shape, dtype and
        device are used
    *args, **kwargs : handed on to the block, such as ``src_mask``
    sublayers : int, sub-layers of the block; with 1 "pre" and "parallel" are the same function,
        which is called "pre"

    Returns
    -------
    str, one of ``LABELS``, or "none of these". "post" includes DeepNorm: LN(a x + f(x)) is
    LN(x + f(x) / a) up to epsilon. A norm behind a sub-layer whose output is small beside its
    epsilon does not normalize; such a "sandwich" is called "pre".

    Raises
    ------
    ValueError if the shape is not (B, T, D), or the block changes it, gives numbers that are not
    finite, gives another result when called again, or does not mix tokens.
    TypeError if ``x`` is not a floating-point tensor.
    """
    import torch

    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x is {kind}; a floating-point tensor of shape (B, T, D) was expected")
    dtype = x.dtype
    if isinstance(block, torch.nn.Module):
        block, dtype = copy.deepcopy(block).double().eval(), torch.float64
        args = [_as_double(each) for each in args]
        kwargs = {name: _as_double(each) for name, each in kwargs.items()}

    def function(states):
        with torch.no_grad():
            y = block(torch.from_numpy(states).to(x.device, dtype), *args, **kwargs)
        return y.double().cpu().numpy()

    return order_of_function(function, tuple(x.shape), sublayers=sublayers,
                             precision=torch.finfo(dtype).eps)


def _as_double(value):
    import torch

    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_float else value


def order_of_function(function, shape, sublayers=2, precision=2.3e-16, surface=True):
    """:func:`norm_order` of a function on float64 arrays.

    Parameters
    ----------
    function : callable, (B, T, D) array to (B, T, D) array; for one question B is about 8 D
    shape : (B, T, D)
    precision : float, the rounding error of the function relative to its output
    surface : bool, whether the question with about 8 D examples is asked, which tells "pre" and
        "sandwich" apart; without it either is called "pre or sandwich"

    Returns
    -------
    str, as :func:`norm_order`
    """
    if len(shape) != 3 or shape[1] < 2 or shape[2] < 3:
        raise ValueError(f"the shape is {tuple(shape)}; (B, T, D) with at least 2 tokens and 3 "
                         "features was expected")
    rng = np.random.default_rng(0)
    x = 3 * rng.normal(size=(max(shape[0], 1), *shape[1:])) + 1
    y = _called(function, x)
    if not np.allclose(_called(function, x), y, rtol=1e3 * precision, atol=1e3 * precision):
        raise ValueError("the block gives another result when called again; dropout must be off, "
                         "as in evaluation mode")
    others = np.ones((shape[1], 1))
    others[:-1] = 5  # a factor for each token but the last
    scaled = _far(_called(function, others * x), y)[:, -1].max()
    turned = x.copy()
    turned[:, :-1] = 3 * rng.normal(size=turned[:, :-1].shape) + 1
    turned = _far(_called(function, turned), y)[:, -1].max()
    if turned < 1e4 * precision:
        raise MixesNoTokens("the last token's output does not depend on the other tokens; the "
                            "order can be told only of a block that mixes tokens, such as one "
                            "with attention")
    hidden = scaled < 0.03 * turned

    huge = _called(function, HUGE * x)
    if _far(huge, HUGE * x).max() < 0.01:  # a skip carries x
        if not hidden:
            return "res-post"
        if _same_update_at_any_size(function, x, precision):
            return "parallel" if sublayers > 1 else "pre"
        if not surface:
            return "pre or sandwich"
        return "sandwich" if _update_keeps_to_a_surface(function, shape, rng) else "pre"
    if _size(huge) > 10 * _size(y):
        return UNKNOWN
    if not hidden:
        return "post"
    return "skip-from-norm" if _far(_called(function, 5 * x), y).max() < 1e-3 else UNKNOWN


def _called(function, x):
    y = np.asarray(function(x.copy()))
    if y.shape != x.shape:
        raise ValueError(f"the block turned shape {x.shape} into {y.shape}; a block keeps the "
                         "shape of its input")
    if not np.isfinite(y).all():
        raise ValueError("the block gives numbers that are not finite for inputs of size "
                         f"{np.abs(x).max():.0e}")
    return y


def _size(x):
    return np.sqrt(np.mean(x**2))


def _far(a, b):
    """Distance of two arrays token by token, relative to the tokens of ``b``, (B, T)."""
    return np.linalg.norm(a - b, axis=-1) / np.linalg.norm(b, axis=-1)


def _same_update_at_any_size(function, x, precision):
    """Whether y(c x) - c x is the same for two sizes, where epsilon is nothing beside either."""
    small, large = 10 * x, 100 * x
    updates = [_called(function, each) - each for each in (small, large)]
    noise = 10 * precision * np.abs(large).max() / _size(updates[0])
    return _far(updates[1], updates[0]).max() < max(1e-6, noise)


def _update_keeps_to_a_surface(function, shape, rng):
    return flatness(function, shape, rng) < ON_A_SURFACE


def flatness(function, shape, rng, huge=100 * HUGE):
    """Near 0 where the update of a sub-layer that mixes tokens has passed a norm, else about 0.5.

    The last token is huge and fixed, so that its norms give the same whatever is added to it: its
    update varies with the other tokens only through the sub-layer that mixes them. Behind a norm
    with gain g and bias b the sum of ((u - b) / g)^2 over the features is constant. Such a sum is
    sought among all weighted sums of the squares and the numbers themselves.
    """
    _, tokens, width = shape
    x = 3 * rng.normal(size=(8 * width + 40, tokens, width)) + 1
    x[:, -1] = huge * rng.normal(size=width)
    update = (_called(function, x) - x)[:, -1]
    centered = update - update.mean(0)
    _, values, directions = np.linalg.svd(centered, full_matrices=False)
    linear = centered @ directions[values > 1e-3 * values[0]].T  # without what never varies
    columns = np.concatenate([centered**2, linear], axis=1)
    columns -= columns.mean(0)
    sizes = np.sqrt(np.mean(columns**2, axis=0))
    if not sizes.all():  # the update does not vary; nan is neither near 0 nor far
        return np.nan
    return np.linalg.svd(columns / sizes, compute_uv=False)[-1] / np.sqrt(len(x))
