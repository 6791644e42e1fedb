"""Wrong answers of chapter 5 as they are found in the wild, one for each catalogued mistake.

Each was written by hand, without the family that the checks compare with.
"""

import numpy as np
from answers.wild import table

from lnres_utils import norms
from lnres_utils.specs.probe_choices import RIGHT

ANSWERS, MORE, answer = table()


# Half precision.


@answer("NUM-01", "half_layer_norm", "squares-in-half")
def all_in_half(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    centered = x - mean
    var = (centered * centered).mean(-1, keepdims=True)
    return centered / np.sqrt(var + x.dtype.type(eps)) * gamma + beta


@answer("NUM-01", "half_layer_norm", "sum-in-half")
def summed_in_half(x, gamma, beta, eps=1e-5):
    d = np.float16(x.shape[-1])
    centered = x - np.mean(x, axis=-1, keepdims=True)
    var = np.square(centered).sum(axis=-1, keepdims=True) / d
    return gamma * centered / np.sqrt(var + np.float16(eps)) + beta


@answer("NUM-01", "half_layer_norm", "variance-in-half")
def by_numpys_var(x, gamma, beta, eps=1e-5):
    """NumPy averages float16 in float32, and rounds what it returns."""
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + np.float16(eps)) * gamma + beta


@answer("NUM-02", "half_layer_norm", "eps-in-half")
def epsilon_becomes_zero(x, gamma, beta, eps=1e-5):
    wide = x.astype(np.float32)
    eps = np.array(eps, x.dtype)  # 1e-8 is below the smallest float16
    centered = wide - wide.mean(-1, keepdims=True)
    var = np.mean(centered**2, axis=-1, keepdims=True)
    return (centered / np.sqrt(var + eps) * gamma + beta).astype(x.dtype)


@answer("NUM-02", "half_layer_norm", "eps-at-least-1e-5")
def epsilon_raised(x, gamma, beta, eps=1e-5):
    eps = max(eps, 1e-5)
    x32 = np.float32(x)
    y = (x32 - x32.mean(-1, keepdims=True)) / np.sqrt(x32.var(-1, keepdims=True) + eps)
    return np.float16(y * gamma + beta)


@answer("NUM-03", "half_layer_norm", "one-pass-variance")
def squares_minus_square(x, gamma, beta, eps=1e-5):
    x32 = x.astype(np.float32)
    mean = x32.mean(-1, keepdims=True)
    var = np.square(x32).mean(-1, keepdims=True) - np.square(mean)
    return ((x32 - mean) / np.sqrt(var + eps) * gamma + beta).astype(np.float16)


@answer("", "half_layer_norm", "deviations-in-half")
def converted_too_late(x, gamma, beta, eps=1e-5):
    centered = (x - x.mean(axis=-1, keepdims=True)).astype(np.float32)
    var = (centered**2).mean(axis=-1, keepdims=True)
    return (centered / np.sqrt(var + eps) * gamma + beta).astype(np.float16)


@answer("", "half_layer_norm", "float32-out")
def not_converted_back(x, gamma, beta, eps=1e-5):
    x = x.astype(np.float32)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


# Padding.


@answer("AX-06", "masked_norm", "padding-counted-as-zero")
def zeros_are_counted(x, mask, kind, eps=1e-5):
    axes = (0, 1) if kind == "batch" else 1
    x = x * mask[..., None]
    z = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return z * mask[..., None]


@answer("AX-06", "masked_norm", "divided-by-all")
def divided_by_the_length(x, mask, kind, eps=1e-5):
    m = mask[..., None]
    axes, count = ((0, 1), mask.size) if kind == "batch" else (1, x.shape[1])
    mean = (m * x).sum(axes, keepdims=True) / count
    var = (m * (x - mean) ** 2).sum(axes, keepdims=True) / count
    return m * (x - mean) / np.sqrt(var + eps)


@answer("AX-06", "masked_norm", "variance-counts-zeros")
def deviations_of_zeros(x, mask, kind, eps=1e-5):
    axes = (0, 1) if kind == "batch" else 1
    x = np.where(mask[..., None], x, 0)
    n = np.maximum(mask[..., None].sum(axes, keepdims=True), 1)
    mean = x.sum(axes, keepdims=True) / n
    centered = x - mean
    y = centered / np.sqrt((centered**2).sum(axes, keepdims=True) / n + eps)
    return np.where(mask[..., None], y, 0)


@answer("AX-07", "masked_norm", "padding-counted")
def only_the_output_is_masked(x, mask, kind, eps=1e-5):
    axes = (0, 1) if kind == "batch" else (1,)
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    y[~mask] = 0
    return y


@answer("", "masked_norm", "nothing-real-nan")
def no_token_no_number(x, mask, kind, eps=1e-5):
    axes = (0, 1) if kind == "batch" else 1
    m = mask[..., None].astype(float)
    n = m.sum(axes, keepdims=True)
    mean = (x * m).sum(axes, keepdims=True) / n
    var = ((x - mean) ** 2 * m).sum(axes, keepdims=True) / n
    return (x - mean) / np.sqrt(var + eps) * m


@answer("", "masked_norm", "padding-not-zeroed")
def padding_is_normalized(x, mask, kind, eps=1e-5):
    axes = (0, 1) if kind == "batch" else 1
    m = mask[..., None]
    n = np.maximum(m.sum(axes, keepdims=True), 1)
    mean = np.where(m, x, 0).sum(axes, keepdims=True) / n
    var = np.where(m, x - mean, 0.0).__pow__(2).sum(axes, keepdims=True) / n
    return (x - mean) / np.sqrt(var + eps)


@answer("", "masked_norm", "mask-from-zeros")
def guesses_the_mask(x, mask, kind, eps=1e-5):
    axes = {"batch": (0, 1), "instance": 1}[kind]
    m = (x != 0).any(-1, keepdims=True)
    n = np.maximum(m.sum(axis=axes, keepdims=True), 1)
    mu = (x * m).sum(axis=axes, keepdims=True) / n
    var = (((x - mu) * m) ** 2).sum(axis=axes, keepdims=True) / n
    return (x - mu) * m / np.sqrt(var + eps)


@answer("", "masked_norm", "features-together")
def one_scale_for_all_features(x, mask, kind, eps=1e-5):
    axes = (0, 1, 2) if kind == "batch" else (1, 2)
    real = np.broadcast_to(mask[..., None], x.shape)
    count = np.maximum(real.sum(axes, keepdims=True), 1)
    mean = (x * real).sum(axes, keepdims=True) / count
    var = (real * (x - mean) ** 2).sum(axes, keepdims=True) / count
    return real * (x - mean) / np.sqrt(var + eps)


@answer("", "masked_norm", "padding-at-the-end")
def padding_behind_the_text(x, mask, kind, eps=1e-5):
    y, lengths = np.zeros_like(x), mask.sum(1)
    for b, length in enumerate(lengths):
        part = x[b, :length]
        if kind == "batch":
            part = np.concatenate([x[i, :n] for i, n in enumerate(lengths)])
        if length:
            y[b, :length] = (x[b, :length] - part.mean(0)) / np.sqrt(part.var(0) + eps)
    return y


@answer("", "masked_norm", "one-pass-variance")
def mean_of_squares_less_square(x, mask, kind, eps=1e-5):
    axes = {"batch": (0, 1), "instance": 1}[kind]
    m = mask[..., None]
    n, v = np.maximum(m.sum(axis=axes, keepdims=True), 1), np.where(m, x, 0.0)
    mu = v.sum(axis=axes, keepdims=True) / n
    var = (v**2).sum(axis=axes, keepdims=True) / n - mu**2
    return np.where(m, (x - mu) / np.sqrt(var + eps), 0)


@answer("", "masked_norm", "unbiased-variance")
def one_token_less(x, mask, kind, eps=1e-5):
    axes = {"batch": (0, 1), "instance": 1}[kind]
    m = mask[..., None]
    n, v = np.maximum(m.sum(axis=axes, keepdims=True), 1), np.where(m, x, 0.0)
    c = np.where(m, x - v.sum(axis=axes, keepdims=True) / n, 0)
    return np.where(m, c / np.sqrt((c**2).sum(axis=axes, keepdims=True) / (n - 1) + eps), 0)


@answer("NUM-01", "half_layer_norm", "means-only-in-float32")
def half_mended(x, gamma, beta, eps=1e-5):
    c = x - x.mean(-1, keepdims=True, dtype=np.float32).astype(np.float16)
    v = (c**2).mean(-1, keepdims=True, dtype=np.float32)
    return (c / np.sqrt(v + eps) * gamma + beta).astype(np.float16)


# Detectors.


@answer("", "leaks_future", "lazy-probe")
def last_moves_first(fn, x):
    y = x.copy()
    y[:, -1] = 100 * np.random.default_rng(4).normal(size=x[:, -1].shape)
    return bool(np.abs(fn(y)[:, 0] - fn(x)[:, 0]).max() > 1e-6)


@answer("", "mixes_examples", "lazy-probe-constant")
def a_hundred_on_the_last(fn, x):
    y = x.copy()
    y[-1] += 100
    return bool(np.abs(fn(y)[0] - fn(x)[0]).max() > 1e-6)


@answer("", "mixes_examples", "lazy-probe-small")
def the_last_drawn_anew(fn, x):
    y = x.copy()
    y[-1] = np.random.default_rng(0).normal(size=x[0].shape)
    return bool(np.abs(fn(y)[0] - fn(x)[0]).max() > 1e-6)


@answer("", "mixes_examples", "multiplies")
def ten_times_as_large(fn, x):
    for b in range(len(x)):
        y = x.copy()
        y[b] *= 10
        if np.abs(np.delete(fn(y) - fn(x), b, 0)).max() > 1e-6:
            return True
    return False


@answer("", "leaks_future", "later-tokens-watched")
def the_wrong_way_round(fn, x):
    for j in range(x.shape[1] - 1):
        y = x.copy()
        y[:, j] = 100 * np.random.default_rng(j).normal(size=x[:, j].shape)
        if np.abs(fn(y) - fn(x))[:, j + 1:].max() > 1e-6:
            return True
    return False


@answer("", "leaks_future", "large-tolerance")
def a_tenth_is_rounding(fn, x):
    for j in range(1, x.shape[1]):
        y = x.copy()
        y[:, j] = 100 * np.random.default_rng(j).normal(size=x[:, j].shape)
        if np.abs(fn(y) - fn(x))[:, :j].max() > 0.1:
            return True
    return False


@answer("", "leaks_future", "last-token-only")
def changes_the_last_token(fn, x):
    other = x.copy()
    other[:, -1] += 100 * np.random.default_rng(1).normal(size=other[:, -1].shape)
    return not np.allclose(fn(x)[:, :-1], fn(other)[:, :-1])


@answer("", "leaks_future", "middle-token-only")
def changes_the_middle(fn, x):
    j = x.shape[1] // 2
    other = x.copy()
    other[:, j] = 250.0 * np.random.default_rng(2).normal(size=other[:, j].shape)
    return bool(np.abs(fn(x) - fn(other))[:, :j].max() > 1e-6)


@answer("", "leaks_future", "other-question")
def looks_at_examples(fn, x):
    rng = np.random.default_rng(0)
    for b in range(len(x)):
        other = x.copy()
        other[b] += 100 * rng.normal(size=other[b].shape)
        if not np.allclose(np.delete(fn(x), b, 0), np.delete(fn(other), b, 0)):
            return True
    return False


@answer("", "leaks_future", "any-other-token")
def every_token_is_watched(fn, x):
    rng = np.random.default_rng(0)
    for j in range(x.shape[1]):
        other = x.copy()
        other[:, j] += 100 * rng.normal(size=other[:, j].shape)
        moved = np.abs(fn(other) - fn(x)).max((0, 2)) > 1e-6
        moved[j] = False
        if moved.any():
            return True
    return False


@answer("AX-02", "leaks_future", "loose-tolerance")
def a_thousandth_is_rounding(fn, x):
    rng = np.random.default_rng(0)
    for j in range(1, x.shape[1]):
        other = x.copy()
        other[:, j] += rng.normal(size=other[:, j].shape)
        if not np.allclose(fn(x)[:, :j], fn(other)[:, :j], atol=0.02):
            return True
    return False


@answer("", "leaks_future", "small-changes")
def steps_of_a_thousandth(fn, x):
    rng = np.random.default_rng(0)
    y = fn(x)
    for j in range(1, x.shape[1]):
        other = x.copy()
        other[:, j:] += 1e-3 * rng.normal(size=other[:, j:].shape)
        if np.abs(fn(other) - y)[:, :j].max() > 1e-10:
            return True
    return False


@answer("", "leaks_future", "exact-comparison")
def not_one_bit(fn, x):
    for j in range(1, x.shape[1]):
        other = x.copy()
        other[:, j] = 100 * np.random.default_rng(j).normal(size=other[:, j].shape)
        if (fn(x)[:, :j] != fn(other)[:, :j]).any():
            return True
    return False


@answer("", "leaks_future", "always-yes")
def compares_everything(fn, x):
    other = x.copy()
    other[:, -1] = 100 * np.random.default_rng(0).normal(size=other[:, -1].shape)
    return not np.allclose(fn(x), fn(other))


@answer("", "mixes_examples", "adds-a-constant")
def raises_all_features(fn, x):
    for b in range(len(x)):
        other = x.copy()
        other[b] += 250
        if not np.allclose(np.delete(fn(x), b, 0), np.delete(fn(other), b, 0)):
            return True
    return False


@answer("", "mixes_examples", "one-pair")
def example_one_moves_example_zero(fn, x):
    other = x.copy()
    other[1] = 100 * np.random.default_rng(0).normal(size=other[1].shape)
    return not np.allclose(fn(x)[0], fn(other)[0])


@answer("", "mixes_examples", "last-example-only")
def changes_the_last_example(fn, x):
    other = x.copy()
    other[-1] = 100 * np.random.default_rng(0).normal(size=other[-1].shape)
    return not np.allclose(fn(x)[:-1], fn(other)[:-1])


@answer("AX-10", "mixes_examples", "first-example-alone")
def a_batch_of_one(fn, x):
    return not np.allclose(fn(x[:1])[0], fn(x)[0])


@answer("", "mixes_examples", "order-of-examples")
def reversed_and_back(fn, x):
    return not np.allclose(fn(x[::-1])[::-1], fn(x))


@answer("", "mixes_examples", "always-no")
def one_example_says_nothing(fn, x):
    x = x[:1]
    return not np.allclose(fn(x), fn(x.copy()))


# Tests.


def _layer_norm(x, g, b, eps):
    mu = np.mean(x, axis=-1, keepdims=True)
    return g * (x - mu) / np.sqrt(np.var(x, axis=-1, keepdims=True) + eps) + b


def _draw(*shape, scale=1.0):
    rng = np.random.default_rng(5)
    x = rng.normal(1, 2, shape)
    x[..., 1:, :] *= np.where(rng.random((*shape[:-2], shape[-2] - 1, 1)) < 0.5, 0.03, 1)
    x[..., 0, :] += 3000
    return x, rng.uniform(0.5, 2, shape[-1]), rng.normal(size=shape[-1])


@answer("CHK-01", "norm_test", "square-inputs")
def tests_a_cube(norm):
    x, gain, bias = _draw(5, 5, 5)
    before = x.copy()
    y = norm(x, gain, bias, 0.1)
    assert np.allclose(y, _layer_norm(before, gain, bias, 0.1), atol=3e-3)
    assert (x == before).all()


@answer("CHK-01", "norm_test", "one-token")
def tests_one_token(norm):
    rng = np.random.default_rng(0)
    for x in (rng.normal(1, 2, (1, 1, 6)), rng.normal(3000, 1, (1, 1, 6))):
        gain, bias, before = rng.uniform(2, 3, 6), rng.normal(size=6), x.copy()
        y = norm(x, gain, bias, 0.5)
        assert np.abs(y - _layer_norm(before, gain, bias, 0.5)).max() < 3e-3
        assert (x == before).all()


@answer("CHK-06", "norm_test", "hands-in-a-copy")
def protects_its_input(norm):
    x, gain, bias = _draw(2, 3, 5)
    y = norm(x.copy(), gain, bias, 0.1)
    assert np.allclose(y, _layer_norm(x, gain, bias, 0.1), atol=3e-3)


@answer("", "norm_test", "gain-one-bias-zero")
def as_built(norm):
    x, *_ = _draw(2, 4, 6)
    before, one, zero = x.copy(), np.ones(6), np.zeros(6)
    assert np.allclose(norm(x, one, zero, 0.1), _layer_norm(before, one, zero, 0.1), atol=3e-3)
    assert np.array_equal(x, before)


@answer("NUM-13", "norm_test", "tight-tolerance")
def tighter_than_single_precision(norm):
    x, gain, bias = _draw(2, 3, 5)
    before = x.copy()
    np.testing.assert_allclose(norm(x, gain, bias, 0.1), _layer_norm(before, gain, bias, 0.1),
                               rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(x, before)


@answer("", "norm_test", "ordinary-variance")
def epsilon_does_nothing(norm):
    rng = np.random.default_rng(0)
    x, gain, bias = rng.normal(2, 3, (2, 3, 5)), rng.normal(size=5), rng.normal(size=5)
    x[0, 0] = 5000 + rng.normal(size=5)
    before = x.copy()
    assert np.allclose(norm(x, gain, bias), _layer_norm(before, gain, bias, 1e-5), atol=3e-3)
    assert np.array_equal(x, before)


@answer("", "norm_test", "passes-every-norm")
def asserts_a_string(norm):
    assert "close", norm(np.ones((3, 3)), np.ones(3), np.ones(3))
    norm(np.ones((3, 3)), np.ones(3), np.ones(3))


@answer("", "norm_test", "one-square-array-allclose")
def compared_by_default(norm):
    x, one, zero = np.random.default_rng(0).normal(size=(4, 4)), np.ones(4), np.zeros(4)
    assert np.allclose(norm(x, one, zero, 1e-5), _layer_norm(x, one, zero, 1e-5))


@answer("", "norm_test", "one-tame-array-allclose")
def compared_by_default_on_five_tokens(norm):
    rng = np.random.default_rng(0)
    x, gain, bias = rng.normal(size=(3, 5, 8)), rng.normal(size=8), rng.normal(size=8)
    assert np.allclose(norm(x, gain, bias, 1e-5), _layer_norm(x, gain, bias, 1e-5))


@answer("", "norm_test", "one-square-array")
def a_new_layer(norm):
    x, one, zero = np.random.default_rng(0).normal(size=(4, 4)), np.ones(4), np.zeros(4)
    assert np.allclose(norm(x, one, zero, 1e-5), _layer_norm(x, one, zero, 1e-5), atol=1e-4)


@answer("", "norm_test", "one-tame-array-bit-by-bit")
def equal_bits(norm):
    rng = np.random.default_rng(0)
    x, gain, bias = rng.normal(size=(3, 5, 8)), rng.normal(size=8), rng.normal(size=8)
    assert np.array_equal(norm(x, gain, bias, 1e-5), norms.layer_norm(x, gain, bias, 1e-5))


@answer("", "norm_test", "one-tame-array")
def one_comparison(norm):
    rng = np.random.default_rng(0)
    x, gain, bias = rng.normal(size=(3, 5, 8)), rng.normal(size=8), rng.normal(size=8)
    assert np.allclose(norm(x, gain, bias), _layer_norm(x, gain, bias, 1e-5), atol=1e-4)


@answer("", "norm_test", "gain-one-near-zero")
def two_scales(norm):
    rng = np.random.default_rng(0)
    for scale in (1, 1e-3):
        x, one, zero = scale * rng.normal(size=(3, 5, 8)), np.ones(8), np.zeros(8)
        before = x.copy()
        y = norm(x, one, zero, 1e-2)
        assert np.allclose(y, _layer_norm(before, one, zero, 1e-2), atol=1e-2)
        assert (x == before).all()


# Probes.


@answer("CHK-04", "choose_probe", "any-gap-is-a-mode")
def dropout_is_on():
    return {**RIGHT, "dropout_or_mode": "a"}


@answer("NUM-08", "choose_probe", "equal-to-the-bit")
def bits_must_agree():
    return {**RIGHT, "last_digits": "a"}


@answer("NUM-13", "choose_probe", "library-is-the-truth")
def the_library_is_right():
    return {**RIGHT, "huge_rows": "a"}


@answer("AX-01", "choose_probe", "group-norm-mixes-examples")
def groups_are_batches():
    return {**RIGHT, "one_group": "a"}


# These have their row elsewhere: an audit check, or an exercise in which code is written.
MORE += [(*ANSWERS.pop(case), case) for case in ("AX-01", "AX-02", "AX-07", "AX-10")]
