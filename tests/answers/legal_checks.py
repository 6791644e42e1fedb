"""Right answers in many hands to the exercises of chapter 5."""

from itertools import product

import numpy as np
import torch
from answers import legal
from torch.nn import functional

# Detectors: ways to change a part of x, ways to compare, and other questions altogether.


def _add_noise(x, index, rng):
    x[index] += 100 * rng.normal(size=x[index].shape)


def _replace(x, index, rng):
    x[index] = rng.uniform(-300, 300, x[index].shape)


def _whole_numbers(x, index, rng):
    x[index] = rng.integers(-500, 500, x[index].shape)


def _two_kinds_of_change(x, index, rng):
    x[index] = 1000 * rng.normal(size=x[index].shape[-1]) - 3 * x[index]


def _allclose(a, b):
    return np.allclose(a, b)


def _largest(a, b):
    return np.abs(a - b).max() < 1e-6


def _relative(a, b):
    return np.linalg.norm(a - b) <= 1e-8 * np.linalg.norm(a)


def _number_by_number(a, b):
    return all(abs(p - q) < 1e-5 for p, q in zip(a.ravel().tolist(), b.ravel().tolist(),
                                                 strict=True))


CHANGES = (_add_noise, _replace, _whole_numbers, _two_kinds_of_change)
COMPARISONS = (_allclose, _largest, _relative, _number_by_number)


def _mixes(change, same):
    def mixes_examples(fn, x):
        rng = np.random.default_rng(3)
        y = fn(x)
        for i in range(x.shape[0]):
            changed = x.copy()
            change(changed, i, rng)
            if not same(np.delete(fn(changed), i, axis=0), np.delete(y, i, axis=0)):
                return True
        return False

    return mixes_examples


def _leaks(change, same):
    def leaks_future(fn, x):
        rng = np.random.default_rng(3)
        before = fn(x)
        return not all(same(fn(_changed(x, np.s_[:, j], change, rng))[:, :j], before[:, :j])
                       for j in range(1, x.shape[1]))

    return leaks_future


def _changed(x, index, change, rng):
    x = x.copy()
    change(x, index, rng)
    return x


def _mixes_by_gradient(fn, x):
    """The gradient of one example's output with respect to the others, at large numbers."""
    rng = np.random.default_rng(0)
    x = 200 * rng.normal(size=x.shape)
    for i in range(len(x)):
        dy = np.zeros_like(x)
        dy[i] = rng.normal(size=x[i].shape)
        if np.abs(np.delete(fn.vjp(x, dy), i, 0)).max() > 1e-9:
            return True
    return False


def _mixes_alone_and_in_company(fn, x):
    x = 200 * np.random.default_rng(0).normal(size=x.shape)
    return not all(np.allclose(fn(x[i : i + 1]), fn(x)[i : i + 1]) for i in range(len(x)))


def _mixes_in_other_company(fn, x):
    """The same example, at the same place, among others."""
    rng = np.random.default_rng(0)
    for i in range(len(x)):
        company = 200 * rng.normal(size=(2, *x.shape))
        company[:, i] = x[i]
        first, second = (np.asarray(fn(each))[i] for each in company)
        if not np.allclose(first, second):
            return np.bool_(True)
    return np.bool_(False)


def _leaks_by_gradient(fn, x):
    rng = np.random.default_rng(0)
    x = 200 * rng.normal(size=x.shape)
    for t in range(x.shape[1] - 1):
        dy = np.zeros_like(x)
        dy[:, t] = rng.normal(size=x[:, t].shape)
        if np.any(np.abs(fn.vjp(x, dy)[:, t + 1 :]) > 1e-9):
            return True
    return False


def _leaks_by_prefix(fn, x):
    """A function that sees no future gives the same for a text that ends earlier."""
    x = 200 * np.random.default_rng(0).normal(size=x.shape)
    y = fn(x)
    return any(not np.allclose(fn(x[:, :t]), y[:, :t]) for t in range(1, x.shape[1]))


def _leaks_all_later_at_once(fn, x):
    rng = np.random.default_rng(0)
    for t in range(1, x.shape[1]):
        other = x.copy()
        other[:, t:] = 200 * rng.normal(size=other[:, t:].shape)
        if not np.allclose(fn(other)[:, :t], fn(x)[:, :t]):
            return True
    return False


def _detectors(make, *others):
    """Every second pair of a change and a comparison, the others, and the kinds of callable."""
    pairs = list(product(CHANGES, COMPARISONS))[::2]
    answers = {f"{change.__name__}, {same.__name__}": make(change, same) for change, same in pairs}
    return {**answers, **{other.__name__: other for other in others},
            **{name: wrap(others[0]) for name, wrap in legal.CALLABLES.items()}}


# A norm over real tokens.


def _axes(kind):
    return (0, 1) if kind == "batch" else (1,)


def masked_sums(x, mask, kind, eps=1e-5):
    axes, real = _axes(kind), mask[:, :, None]
    count = np.maximum(real.sum(axes, keepdims=True), 1)
    mean = (x * real).sum(axes, keepdims=True) / count
    variance = ((x - mean) ** 2 * real).sum(axes, keepdims=True) / count
    return (x - mean) / np.sqrt(variance + eps) * real


def masked_where(x, mask, kind, eps=1e-5):
    axes, where = _axes(kind), np.broadcast_to(mask[..., None], x.shape)
    with np.errstate(all="ignore"):
        mean = np.mean(x, axis=axes, keepdims=True, where=where)
        var = np.var(x, axis=axes, keepdims=True, where=where)
        return np.where(where, (x - mean) / np.sqrt(var + eps), 0.0)


def masked_gather(x, mask, kind, eps=1e-5):
    y = np.zeros_like(x)
    for part in [mask] if kind == "batch" else [_only(mask, i) for i in range(len(x))]:
        tokens = x[part]
        if len(tokens):
            y[part] = (tokens - tokens.mean(0)) / np.sqrt(tokens.var(0) + eps)
    return y


def _only(mask, i):
    part = np.zeros_like(mask)
    part[i] = mask[i]
    return part


def masked_recursion(x, mask, kind, eps=1e-5):
    if kind == "instance":
        return np.concatenate([masked_recursion(x[i : i + 1], mask[i : i + 1], "batch", eps)
                               for i in range(len(x))])
    return masked_gather(x, mask, "batch", eps)


def masked_nan(x, mask, kind, eps=1e-5):
    hidden = np.where(mask[..., None], x, np.nan)
    mean = np.nanmean(hidden, axis=_axes(kind), keepdims=True)
    var = np.nanvar(hidden, axis=_axes(kind), keepdims=True)
    return np.nan_to_num((hidden - mean) / np.sqrt(var + eps))


def masked_array(x, mask, kind, eps=1e-5):
    hidden = np.ma.array(x, mask=np.broadcast_to(~mask[..., None], x.shape))
    mean, var = hidden.mean(_axes(kind), keepdims=True), hidden.var(_axes(kind), keepdims=True)
    return ((hidden - mean) / np.ma.sqrt(var + eps)).filled(0.0)


def masked_weights(x, mask, kind, eps=1e-5):
    real, axes = mask[..., None].astype(float), _axes(kind)
    weights = real / np.clip(real.sum(axes, keepdims=True), 1, None)
    mean = (weights * x).sum(axes, keepdims=True)
    variance = (weights * np.square(x - mean)).sum(axes, keepdims=True)
    return real * (x - mean) * (variance + eps) ** -0.5


def masked_einsum(x, mask, kind, eps=1e-5):
    m = mask.astype(float)
    out = "d" if kind == "batch" else "bd"
    n = np.maximum(m.sum() if kind == "batch" else m.sum(1)[:, None], 1)

    def over(values):
        sums = np.einsum(f"btd,bt->{out}", values, m) / n
        return sums if kind == "batch" else sums[:, None]

    centered = x - over(x)
    return np.einsum("btd,bt->btd", centered / np.sqrt(over(centered**2) + eps), m)


def masked_loops(x, mask, kind, eps=1e-5):
    batch, tokens, width = x.shape
    y = np.zeros(x.shape)
    for b in range(batch):
        for d in range(width):
            rows = range(batch) if kind == "batch" else [b]
            values = [x[r, t, d] for r in rows for t in range(tokens) if mask[r, t]]
            if values:
                mean = sum(values) / len(values)
                std = (sum((v - mean) ** 2 for v in values) / len(values) + eps) ** 0.5
                y[b, :, d] = [(x[b, t, d] - mean) / std if mask[b, t] else 0
                              for t in range(tokens)]
    return y


MASKED = (masked_sums, masked_where, masked_gather, masked_recursion, masked_nan, masked_array,
          masked_weights, masked_einsum, masked_loops)

# Half precision: any way in float64, and some in float32.


def _half(way):
    def half_layer_norm(x, gamma, beta, eps=1e-5):
        return (way(x.astype(np.float64), eps) * gamma + beta).astype(np.float16)

    return half_layer_norm


def half_in_single(x, gamma, beta, eps=1e-5):
    wide = x.astype(np.float32)
    centered = wide - wide.mean(-1, keepdims=True)
    return (centered / np.sqrt((centered**2).mean(-1, keepdims=True) + np.float32(eps)) * gamma
            + beta).astype(x.dtype)


def half_rounded_between(x, gamma, beta, eps=1e-5):
    wide = x.astype("f4")
    z = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + eps)
    return z.astype(np.float16) * gamma + beta


def half_by_torch(x, gamma, beta, eps=1e-5):
    return functional.layer_norm(torch.tensor(x), x.shape[-1:], torch.tensor(gamma),
                                 torch.tensor(beta), eps).numpy()


def half_with_wide_reductions(x, gamma, beta, eps=1e-5):
    mean = np.mean(x, axis=-1, keepdims=True, dtype=np.float32)
    var = np.var(x.astype(np.float32), axis=-1, keepdims=True, dtype=np.float64)
    return np.float16((x - mean) / np.sqrt(var + eps) * gamma + beta)


# Tests of a norm.


def _mine(x, gamma, beta, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def _hard_inputs(shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(2, 3, shape)
    x.reshape(-1, shape[-1])[::3] *= 0.03
    x.reshape(-1, shape[-1])[1] += 3000
    return x, rng.normal(1, 1, shape[-1]), rng.normal(0, 1, shape[-1])


def _test_by(agree, *shapes):
    def norm_test(norm):
        for seed, shape in enumerate(shapes):
            x, gamma, beta = _hard_inputs(shape, seed)
            kept = x.copy()
            y = norm(x, gamma, beta, 0.05)
            agree(y, _mine(kept, gamma, beta, 0.05))
            assert np.array_equal(x, kept), "the input was changed"

    return norm_test


def _assert_allclose(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=3e-3)


def _assert(a, b):
    assert np.allclose(a, b, atol=5e-3)


def _raise(a, b):
    if not np.abs(a - b).max() < 5e-3:
        raise AssertionError("not a layer norm")


def _assert_almost(a, b):
    np.testing.assert_array_almost_equal(a, b, decimal=2)


SHAPES = (((2, 3, 5),), ((3, 4, 6), (2, 5, 4)), ((2, 7, 5), (4, 3, 6)))
TESTS = {f"{agree.__name__}, {len(shapes)} shapes, {shapes[0]}": _test_by(agree, *shapes)
         for agree, shapes in product((_assert_allclose, _assert, _raise, _assert_almost), SHAPES)}

ANSWERS = {
    "mixes_examples": _detectors(_mixes, _mixes_by_gradient, _mixes_alone_and_in_company,
                                 _mixes_in_other_company),
    "leaks_future": _detectors(_leaks, _leaks_by_gradient, _leaks_by_prefix,
                               _leaks_all_later_at_once),
    "masked_norm": {**{way.__name__: way for way in MASKED},
                    **{name: wrap(masked_sums) for name, wrap in legal.CALLABLES.items()}},
    "half_layer_norm": {
        **{way.__name__: _half(way) for way in legal.WAYS},
        **{way.__name__: way for way in (half_in_single, half_rounded_between, half_by_torch,
                                         half_with_wide_reductions)}},
    "norm_test": {**TESTS, **{name: wrap(_test_by(_assert, (2, 3, 5)))
                              for name, wrap in legal.CALLABLES.items()}},
}
