"""Layer norm inside RMSNorm: a trained network computes the same without one mean or norm bias."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from lnres_utils import blocks, norms

V, T, D = 11, 7, 10


def trained(placement="pre", steps=20, **wiring):
    """A language model some steps of training away from its start, in float64."""
    rng = np.random.default_rng(0)
    model = blocks.LanguageModel(V, T, D, blocks.Transformer(D, 3, 2, placement=placement,
                                                             **wiring)).double()
    blocks.initialize(model, rng)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(steps):
        tokens = torch.from_numpy(rng.integers(0, V, (4, T)))
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def some_tokens():
    return torch.from_numpy(np.random.default_rng(1).integers(0, V, (5, T)))


@pytest.mark.parametrize("wiring", [
    {}, {"placement": "parallel"}, {"norm": norms.LayerNorm}, {"qk_norm": True},
    {"norm": partial(nn.LayerNorm, eps=0.1)}, {"norm": partial(nn.LayerNorm, bias=False)},
    {"branch_scale": 0.5, "update": lambda width: blocks.StochasticDepth(0.1)}],
    ids=lambda wiring: "-".join(wiring) or "plain")
def test_a_trained_network_computes_the_same(wiring):
    model = trained(**wiring)
    moved = [norm for norm in model.modules() if isinstance(norm, (nn.LayerNorm, norms.LayerNorm))]
    assert len(moved) == 7 and all((norm.weight - 1).abs().max() > 0.01 for norm in moved)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    converted = norms.to_rms_norm(model)
    assert sum(isinstance(each, norms.RMSNorm) for each in converted.modules()) == 7
    assert not [each for each in converted.modules() if isinstance(each, nn.LayerNorm)]
    with torch.no_grad():
        torch.testing.assert_close(converted(some_tokens()), model(some_tokens()),
                                   rtol=1e-12, atol=1e-12)
        stream = converted.embed(some_tokens())
        for block in converted.stack.blocks:
            stream = block(stream)
            assert stream.mean(-1).abs().max() < 1e-12
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), "the model given was changed"


def test_to_exchange_the_norms_alone_is_not_enough():
    model = trained()
    converted = norms.to_rms_norm(model)
    converted.embedding.weight.data.copy_(model.embedding.weight)
    with torch.no_grad():
        assert (converted(some_tokens()) - model(some_tokens())).abs().max() > 0.01


def test_a_transformer_that_attends_to_a_memory_is_converted_too():
    stack = trained(cross=True, steps=0).stack
    rng = np.random.default_rng(2)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(0.5, 0.4, parameter.shape)))
        stack.final_norm.bias.zero_()
    hidden, memory = (torch.from_numpy(rng.normal(1, 2, (2, tokens, D))) for tokens in (T, 3))
    centered = hidden - hidden.mean(-1, keepdim=True)
    with torch.no_grad():
        torch.testing.assert_close(norms.to_rms_norm(stack)(centered, memory),
                                   stack(hidden, memory), rtol=1e-12, atol=1e-12)


def with_final_bias():
    stack = trained(steps=0).stack
    nn.init.ones_(stack.final_norm.bias)
    return stack


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: trained("post", 0), ValueError, "the placement is 'post'; only pre or parallel"),
    (lambda: trained("sandwich", 0), ValueError, "the placement is 'sandwich'"),
    (lambda: trained(steps=0, final_norm=False), TypeError, "Identity() stands where a LayerNorm"),
    (lambda: trained(steps=0, norm=norms.RMSNorm), TypeError, "RMSNorm(10, eps=1e-06) stands"),
    (lambda: trained(steps=0, norm=partial(nn.LayerNorm, elementwise_affine=False)), TypeError,
     "stands where a LayerNorm with a gain was expected"),
    (lambda: trained(steps=0, update=blocks.LayerScale), ValueError, "LayerScale on the update"),
    (with_final_bias, ValueError, "the final norm has a bias and no linear map reads it"),
    (lambda: nn.Linear(3, 3), TypeError, "the model is Linear; a Transformer, or"),
    (lambda: blocks.LanguageModel(V, T, D, nn.Identity()), TypeError,
     "LanguageModel around Identity; a Transformer"),
])
def test_what_cannot_be_converted_is_refused_in_one_line(make, error, words):
    with pytest.raises(error) as refused:
        norms.to_rms_norm(make())
    assert words in str(refused.value) and "\n" not in str(refused.value)
