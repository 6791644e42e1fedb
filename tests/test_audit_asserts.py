"""The assertions for other people's test suites: what they let through, and what they say."""

import pytest
import torch
from torch import nn

import lnres_utils
from lnres_utils import (
    CannotTell,
    assert_all_parameters_train,
    assert_causal,
    assert_finite_on_constant_rows,
    assert_half_safe,
    assert_no_example_mixing,
    assert_padding_ignored,
    assert_same_in_train_and_eval,
)

B, T, D = 3, 6, 8
ALL = [getattr(lnres_utils, name) for name in lnres_utils.__all__ if name.startswith("assert_")]


class Around(nn.Module):
    """A module of one function, with a layer so that there is a parameter."""

    def __init__(self, function, layer=None):
        super().__init__()
        self.function, self.layer = function, layer or nn.LayerNorm(D)

    def forward(self, x):
        return self.function(self.layer, x)


def x(dtype=torch.float64):
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(0), dtype=dtype)


def over_time():
    """Statistics over all tokens: later ones and padding count."""
    return Around(lambda layer, x: layer(x - x.mean(1, keepdim=True)))


def over_batch():
    return Around(lambda layer, x: layer(x - x.mean(0, keepdim=True)))


def hand_written(layer, x):
    """Divides by a standard deviation without an epsilon that half precision can hold."""
    centered = x - x.mean(-1, keepdim=True)
    return layer.weight * centered / (centered.square().mean(-1, keepdim=True) + 1e-8).sqrt()


def pooled(layer, x):
    return layer(x).mean(1)


def by_std(layer, x):
    return layer.weight * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


def without_its_bias(layer, x):
    return nn.functional.layer_norm(x, (D,), layer.weight)


def one_position_only(layer, x):
    if x.shape[1] != T:
        raise ValueError(f"{T} tokens, please")
    return layer(x)


def frozen():
    layer = nn.LayerNorm(D)
    layer.bias.requires_grad_(False)
    return layer


FAULTS = {
    assert_no_example_mixing: over_batch,
    assert_causal: over_time,
    assert_same_in_train_and_eval: lambda: nn.Sequential(nn.LayerNorm(D), nn.Dropout(0.5)),
    assert_padding_ignored: over_time,
    assert_half_safe: lambda: Around(hand_written),
    assert_finite_on_constant_rows: lambda: Around(by_std),
    assert_all_parameters_train: lambda: Around(without_its_bias),
}


def test_each_assertion_has_a_fault_here():
    assert set(FAULTS) == set(ALL)


@pytest.mark.parametrize("assertion", ALL)
@pytest.mark.parametrize("module", [nn.LayerNorm(D), nn.RMSNorm(D)])
def test_a_norm_of_torch_passes(assertion, module):
    assertion(module, x(torch.float32))
    assertion(module.double(), x())
    module.float()


@pytest.mark.parametrize("assertion", ALL)
def test_a_planted_fault_fails_with_its_evidence(assertion):
    with pytest.raises(AssertionError) as caught:
        assertion(FAULTS[assertion](), x(torch.float32))
    message = str(caught.value)
    finding = lnres_utils.audit(FAULTS[assertion](), x(torch.float32), causal=True,
                                padded=True, checks=[CHECK_OF[assertion]]).findings[0]
    assert message.startswith("not ")
    assert finding.evidence in message
    assert ("A unit is" in message) == ("unit" in finding.evidence)
    assert f"{(B, T, D)}" in message
    assert len(message.splitlines()) <= 4


CHECK_OF = {
    assert_no_example_mixing: "examples",
    assert_causal: "causality",
    assert_same_in_train_and_eval: "modes",
    assert_padding_ignored: "padding",
    assert_half_safe: "half",
    assert_finite_on_constant_rows: "constant rows",
    assert_all_parameters_train: "gradients",
}


def test_a_parameter_that_wants_no_gradient_does_not_train():
    with pytest.raises(AssertionError, match="bias"):
        assert_all_parameters_train(frozen(), x(torch.float32))


def test_batch_norm_differs_between_the_modes():
    norm = nn.BatchNorm1d(D)
    for assertion in (assert_no_example_mixing, assert_same_in_train_and_eval):
        with pytest.raises(AssertionError):
            assertion(norm, x(torch.float32).transpose(1, 2), axes="BDT")


def test_arguments_go_to_the_module_and_settings_to_the_audit():
    layer = nn.TransformerEncoderLayer(D, 2, 12, dropout=0.0, batch_first=True).double()
    mask = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    assert_causal(layer, x(), src_mask=mask)
    assert_causal(layer, x(), mask)
    with pytest.raises(AssertionError, match="later"):
        assert_causal(layer, x())


@pytest.mark.parametrize("assertion, module, given", [
    (assert_causal, nn.LayerNorm(D), {"axes": "BCD"}),
    (assert_padding_ignored, Around(one_position_only), {}),
    (assert_no_example_mixing, Around(lambda layer, x: layer(x).mean(0)), {}),
    (assert_same_in_train_and_eval, Around(lambda layer, x: 0 * layer(x)), {}),
])
def test_what_cannot_be_told_is_an_error_of_its_own(assertion, module, given):
    with pytest.raises(CannotTell) as caught:
        assertion(module, x(torch.float32), **given)
    assert not isinstance(caught.value, AssertionError)
    first, *_, last = str(caught.value).splitlines()
    assert first.startswith("cannot tell whether ")
    assert last.endswith(".")  # what to change


def test_a_mean_over_padding_is_no_matter_of_what_the_module_takes():
    with pytest.raises(AssertionError, match="move the output"):
        assert_padding_ignored(Around(pooled), x(torch.float32))


def test_one_question_an_assertion():
    with pytest.raises(TypeError, match="one question"):
        assert_causal(nn.LayerNorm(D), x(), checks=["modes"])


def test_bad_input_is_told_as_by_the_audit():
    with pytest.raises(ValueError, match="axes"):
        assert_causal(nn.LayerNorm(D), x(), axes="BT")


def test_the_module_is_as_it_was_after_a_failure():
    module = FAULTS[assert_same_in_train_and_eval]()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with pytest.raises(AssertionError):
        assert_same_in_train_and_eval(module, x(torch.float32))
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
