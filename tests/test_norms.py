"""The book's own norms against torch, against calculus, and on input they refuse."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from lnres_utils import norms

# The same examples in each run, however slow the machine.
PROPERTY = settings(max_examples=60, deadline=None, derandomize=True,
                    suppress_health_check=[HealthCheck.too_slow])
SHAPES = [(7,), (4, 6), (2, 3, 5), (2, 3, 4, 5), (2, 1, 3, 2, 6)]


def inputs(shape, dtype=np.float64, axis=-1, seed=0):
    rng = np.random.default_rng(seed)
    width = shape[axis]
    arrays = (rng.normal(2, 3, shape), rng.normal(1, 0.5, width), rng.normal(0, 1, width))
    return [array.astype(dtype) for array in arrays]


def hidden(max_rank=3):
    """Shape and seed of a random array with a feature axis."""
    return st.tuples(st.lists(st.integers(1, 5), max_size=max_rank - 1), st.integers(2, 40),
                     st.integers(0, 2**32 - 1))


def draw(description):
    leading, width, seed = description
    return np.random.default_rng(seed).normal(1, 2, (*leading, width))


# Against torch


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [
    (np.float64, 1e-12), (np.float32, 1e-5), (np.float16, 4e-3)])
def test_layer_norm_is_torchs(shape, dtype, tolerance):
    x, gamma, beta = inputs(shape, dtype)
    y = norms.layer_norm(x, gamma, beta, 1e-3)
    expected = functional.layer_norm(*map(torch.from_numpy, (x,)), shape[-1:],
                                     torch.from_numpy(gamma), torch.from_numpy(beta), 1e-3)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, expected.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [
    (np.float64, 1e-12), (np.float32, 1e-5), (np.float16, 2e-3)])
def test_rms_norm_is_torchs(shape, dtype, tolerance):
    x, gamma, _ = inputs(shape, dtype)
    y = norms.rms_norm(x, gamma, 1e-3)
    expected = functional.rms_norm(torch.from_numpy(x), shape[-1:], torch.from_numpy(gamma), 1e-3)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, expected.numpy(), rtol=tolerance, atol=tolerance)


def test_rms_norm_is_layer_norm_on_centered_vectors_and_only_there():
    x, gamma, _ = inputs((2, 3, 5))
    centered, zero = x - x.mean(-1, keepdims=True), np.zeros(5)
    expected = norms.layer_norm(x, gamma, zero, 1e-6)
    np.testing.assert_allclose(norms.rms_norm(centered, gamma), expected, rtol=1e-12)
    assert np.abs(norms.rms_norm(x, gamma) - expected).max() > 0.1


def test_rms_norm_rounds_a_half_precision_product_once():
    """A row whose mean square is exactly one: the output is x·γ, rounded from float32."""
    x = np.array([[1, -1, 0.5, np.sqrt(1.75)]], np.float16)
    gamma = np.array([1.1, 0.7, 1.3, 0.9], np.float32)
    wide = x.astype(np.float32)
    rms = np.sqrt((wide**2).mean() + np.float32(1e-6))
    np.testing.assert_array_equal(norms.rms_norm(x, gamma), (wide / rms * gamma).astype(x.dtype))
    large = np.full((1, 4), 400, np.float16)
    np.testing.assert_allclose(norms.rms_norm(large, gamma), [gamma], rtol=1e-3)


def test_epsilon_defaults_to_torchs():
    x = 1e-3 * inputs((3, 5))[0]
    expected = torch.nn.LayerNorm(5, dtype=torch.float64)(torch.from_numpy(x)).detach()
    np.testing.assert_allclose(norms.layer_norm(x, np.ones(5), np.zeros(5)), expected, rtol=1e-12)
    np.testing.assert_allclose(norms.standardize(x[0]), expected[0], rtol=1e-12)


def test_half_precision_does_not_overflow_inside():
    x = np.array([[400, -400, 300, 100.0]], np.float16)
    assert np.abs(norms.layer_norm(x, np.ones(4, np.float16), np.zeros(4, np.float16))).max() > 1


def test_whole_numbers_become_float64():
    assert norms.standardize(np.array([1, 2, 3])).dtype == np.float64
    np.testing.assert_allclose(norms.standardize([1, 2, 3]), [-1.2247, 0, 1.2247], atol=1e-4)


@pytest.mark.parametrize(("kind", "groups", "torchs"), [
    ("layer", 1, lambda x: functional.layer_norm(x, x.shape[-1:], eps=0.1)),
    ("batch", 1, lambda x: functional.batch_norm(
        x.mT, None, None, training=True, eps=0.1).mT),
    ("instance", 1, lambda x: functional.instance_norm(x.mT, eps=0.1).mT),
    ("group", 1, lambda x: functional.group_norm(x.mT, 1, eps=0.1).mT),
    ("group", 3, lambda x: functional.group_norm(x.mT, 3, eps=0.1).mT),
    ("group", 12, lambda x: functional.group_norm(x.mT, 12, eps=0.1).mT),
])
def test_axis_norm_is_torchs(kind, groups, torchs):
    x = inputs((3, 5, 12))[0]
    np.testing.assert_allclose(norms.axis_norm(x, kind, groups, 0.1), torchs(torch.from_numpy(x)),
                               rtol=1e-10, atol=1e-12)


def test_channel_norm_is_torchs_layer_norm_on_the_moved_channels():
    x, gamma, beta = inputs((2, 5, 3, 4), axis=1)
    last = functional.layer_norm(torch.from_numpy(x).permute(0, 2, 3, 1), (5,),
                                 torch.from_numpy(gamma), torch.from_numpy(beta), 0.1)
    np.testing.assert_allclose(norms.channel_norm(x, gamma, beta, 0.1), last.permute(0, 3, 1, 2),
                               rtol=1e-10)


# The backward pass


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_layer_norm_backward_is_autograds(shape, eps):
    x, gamma, beta = inputs(shape)
    dy = np.random.default_rng(1).normal(size=shape)
    tensors = [torch.tensor(each, requires_grad=True) for each in (x, gamma, beta)]
    functional.layer_norm(tensors[0], shape[-1:], *tensors[1:], eps).backward(torch.tensor(dy))
    for ours, tensor in zip(norms.layer_norm_backward(dy, x, gamma, eps), tensors, strict=True):
        np.testing.assert_allclose(ours, tensor.grad, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_rms_norm_backward_is_autograds(shape, eps):
    x, gamma, _ = inputs(shape)
    dy = np.random.default_rng(1).normal(size=shape)
    tensors = [torch.tensor(each, requires_grad=True) for each in (x, gamma)]
    functional.rms_norm(tensors[0], shape[-1:], tensors[1], eps).backward(torch.tensor(dy))
    for ours, tensor in zip(norms.rms_norm_backward(dy, x, gamma, eps), tensors, strict=True):
        np.testing.assert_allclose(ours, tensor.grad, rtol=1e-9, atol=1e-11)


def test_half_precision_gradients_do_not_overflow_inside():
    x = np.array([[400, -400, 300, 100]], np.float16)
    dy, gamma = np.array([[300, 200, -100, 400]], np.float16), np.ones(4, np.float16)
    dx, dgamma = norms.rms_norm_backward(dy, x, gamma)
    expected = norms.rms_norm_backward(*(each.astype(np.float64) for each in (dy, x, gamma)))
    assert dx.dtype == np.float16
    np.testing.assert_allclose(dx, expected[0], rtol=1e-3)
    np.testing.assert_allclose(dgamma, expected[1], rtol=1e-5)


def slopes_of(forward, dy, arguments, position):
    """Central differences of the loss ⟨dy, y⟩ in one of the arguments."""
    slopes = np.empty_like(arguments[position])
    for index in np.ndindex(slopes.shape):
        losses = []
        for step in (1e-6, -1e-6):
            moved = [each.copy() for each in arguments]
            moved[position][index] += step
            losses.append(np.sum(dy * forward(*moved, 0.1)))
        slopes[index] = (losses[0] - losses[1]) / 2e-6
    return slopes


@pytest.mark.parametrize(("forward", "backward"), [
    (norms.layer_norm, norms.layer_norm_backward), (norms.rms_norm, norms.rms_norm_backward)])
def test_a_backward_pass_is_the_slope_of_its_forward_pass(forward, backward):
    x, *parameters = inputs((2, 3, 5))
    arguments = [x, *parameters[: 1 if forward is norms.rms_norm else 2]]
    dy = np.random.default_rng(2).normal(size=x.shape)
    for position, grad in enumerate(backward(dy, x, parameters[0], 0.1)):
        np.testing.assert_allclose(grad, slopes_of(forward, dy, arguments, position),
                                   rtol=1e-6, atol=1e-7)


# The torch modules


@pytest.mark.parametrize(("theirs", "ours"), [
    (torch.nn.LayerNorm(6, eps=0.1), norms.LayerNorm(6, eps=0.1)),
    (torch.nn.RMSNorm(6, eps=0.1), norms.RMSNorm(6, eps=0.1))])
def test_a_module_loads_torchs_weights_and_gives_torchs_output(theirs, ours):
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(0.7, 0.7, 6)))
    assert [(n, p.shape) for n, p in ours.state_dict().items()] == [
        (n, p.shape) for n, p in theirs.state_dict().items()]
    ours.load_state_dict(theirs.state_dict())
    x = torch.from_numpy(rng.normal(2, 3, (2, 4, 6))).float().requires_grad_()
    torch.testing.assert_close(ours(x), theirs(x))
    dy = torch.from_numpy(rng.normal(size=(2, 4, 6))).float()
    first, second = (torch.autograd.grad(module(x), x, dy)[0] for module in (ours, theirs))
    torch.testing.assert_close(first, second)
    assert repr(ours) == f"{type(theirs).__name__}(6, eps=0.1)"


def test_the_modules_have_the_epsilon_of_their_functions():
    assert norms.LayerNorm(6).eps == 1e-5 and norms.RMSNorm(6).eps == 1e-6


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_rms_module_returns_the_dtype_of_its_input_and_rounds_once(dtype, weights):
    rng = np.random.default_rng(0)
    module = norms.RMSNorm(6).to(weights)
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(rng.normal(1, 0.5, 6)))
    x = torch.from_numpy(rng.normal(2, 300, (2, 4, 6))).to(dtype)
    y = module(x)
    exact = functional.rms_norm(x.double(), (6,), module.weight.double(), 1e-6)
    assert y.dtype == dtype
    halves = torch.finfo(dtype).eps / 2
    assert ((y.double() - exact).abs() <= exact.abs() * max(1.001 * halves, 1e-6)).all()


# Properties


@given(hidden(), st.floats(-50, 50))
@PROPERTY
def test_a_shift_of_all_features_changes_nothing(description, shift):
    x = draw(description)
    np.testing.assert_allclose(norms.normalize(x + shift, -1), norms.normalize(x, -1), atol=1e-8)


@given(hidden(), st.floats(0.01, 100), st.sampled_from([1, -1]))
@PROPERTY
def test_a_factor_leaves_only_its_sign(description, factor, sign):
    x = draw(description)
    scaled = norms.normalize(sign * factor * x, -1, eps=1e-5 * factor**2)
    np.testing.assert_allclose(scaled, sign * norms.normalize(x, -1, eps=1e-5), atol=1e-8)


@given(hidden(), st.floats(1e-8, 10))
@PROPERTY
def test_every_vector_gets_mean_zero_and_the_variance_that_epsilon_leaves(description, eps):
    x = draw(description)
    y = norms.normalize(x, -1, eps)
    variance = x.var(-1)
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-10)
    np.testing.assert_allclose(y.var(-1), variance / (variance + eps), rtol=1e-8)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(2, 9), st.integers(0, 2**32 - 1))
@PROPERTY
def test_tokens_are_normalized_one_by_one(batch, tokens, width, seed):
    """Any order and any grouping of the tokens gives the same vectors in that order."""
    rng = np.random.default_rng(seed)
    x, gamma, beta = (rng.normal(1, 2, shape) for shape in ((batch, tokens, width), width, width))
    y = norms.layer_norm(x, gamma, beta)
    order = rng.permutation(batch * tokens)
    rows = norms.layer_norm(x.reshape(-1, width)[order], gamma, beta)
    np.testing.assert_allclose(rows, y.reshape(-1, width)[order], rtol=1e-12, atol=1e-12)
    features = rng.permutation(width)
    np.testing.assert_allclose(
        norms.layer_norm(x[..., features], gamma[features], beta[features]), y[..., features],
        atol=1e-9)


@given(st.integers(2, 5), st.integers(3, 9), st.integers(0, 2**32 - 1))
@PROPERTY
def test_the_gradient_has_no_part_along_ones_and_almost_none_along_the_output(rows, width, seed):
    rng = np.random.default_rng(seed)
    dy, x = rng.normal(size=(2, rows, width))
    gamma = rng.normal(1, 0.5, width)
    dx = norms.layer_norm_backward(dy, x, gamma, eps=1e-12)[0]
    scale = np.abs(dx).max() + 1
    np.testing.assert_allclose(dx.sum(-1) / scale, 0, atol=1e-7)
    np.testing.assert_allclose((dx * norms.normalize(x, -1, 1e-12)).sum(-1) / scale, 0, atol=1e-5)


# Input that is refused

ONES, X3, X4 = np.ones(5), np.ones((2, 3, 5)), np.ones((2, 5, 3, 4))


@pytest.mark.parametrize(("call", "words"), [
    (lambda: norms.standardize(X3), "x has shape (2, 3, 5); one vector of shape (D,)"),
    (lambda: norms.standardize([]), "x has shape (0,); one vector of shape (D,) with D > 0"),
    (lambda: norms.standardize(3.0), "x has shape (); one vector"),
    (lambda: norms.layer_norm(X3, np.ones(3), ONES), "gamma has shape (3,); (5,) was expected"),
    (lambda: norms.layer_norm(X3, ONES, np.ones((1, 5))), "beta has shape (1, 5); (5,) was"),
    (lambda: norms.layer_norm(X3, 1.0, ONES), "gamma has shape (); (5,) was expected"),
    (lambda: norms.layer_norm(3.0, ONES, ONES), "x is a single number"),
    (lambda: norms.axis_norm(X4, "layer"), "x has shape (2, 5, 3, 4); (B, T, D) was expected"),
    (lambda: norms.axis_norm(X3, "rms"), "kind is 'rms'; use 'layer', 'batch', 'instance'"),
    (lambda: norms.axis_norm(X3, "group", groups=2), "groups=2 does not divide the hidden width 5"),
    (lambda: norms.axis_norm(X3, "group", groups=0), "groups=0 does not divide"),
    (lambda: norms.channel_norm(X3, ONES, ONES), "(B, C, H, W) was expected"),
    (lambda: norms.channel_norm(X4, np.ones(4), ONES), "gamma has shape (4,); (5,) was expected"),
    (lambda: norms.layer_norm_backward(X3[0], X3, ONES), "dy has shape (3, 5); the shape of x"),
    (lambda: norms.layer_norm_backward(X3, X3, np.ones(3)), "gamma has shape (3,); (5,)"),
    (lambda: norms.rms_norm(X3, np.ones(3)), "gamma has shape (3,); (5,) was expected"),
    (lambda: norms.rms_norm(3.0, ONES), "x is a single number"),
    (lambda: norms.rms_norm_backward(X3[0], X3, ONES), "dy has shape (3, 5); the shape of x"),
    (lambda: norms.rms_norm_backward(X3, X3, np.ones(3)), "gamma has shape (3,); (5,)"),
])
def test_bad_input_is_refused_with_what_was_expected(call, words):
    with pytest.raises(ValueError) as refused:
        call()
    assert words in str(refused.value)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BatchNorm'"):
        norms.BatchNorm  # noqa: B018
