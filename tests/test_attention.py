"""The weights that `Attention` reports are those that its output is made of."""

import numpy as np
import pytest
import torch

from lnres_utils import blocks


@pytest.mark.parametrize("qk_norm", [False, True])
@pytest.mark.parametrize("causal, cross", [(True, False), (False, False), (False, True)])
def test_the_weights_mix_the_values_into_the_output(causal, cross, qk_norm):
    rng = np.random.default_rng(0)
    attention = blocks.Attention(12, 3, causal=causal, cross=cross, qk_norm=qk_norm).double()
    blocks.initialize(attention, rng)
    hidden = torch.from_numpy(rng.normal(1, 2, size=(2, 5, 12)))
    memory = torch.from_numpy(rng.normal(1, 2, size=(2, 7, 12))) if cross else None
    values = attention.value(hidden if memory is None else memory).unflatten(-1, (3, 4))
    weights = attention.weights(hidden, memory)
    assert weights.shape == (2, 3, 5, 7 if cross else 5)
    mixed = torch.einsum("bhts,bshd->bthd", weights, values).flatten(2)
    torch.testing.assert_close(attention(hidden, memory), attention.output(mixed))


def test_a_causal_token_takes_nothing_of_later_ones():
    rng = np.random.default_rng(0)
    attention = blocks.initialize(blocks.Attention(12, 3).double(), rng)
    weights = attention.weights(torch.from_numpy(rng.normal(size=(2, 5, 12))))
    assert (weights.triu(1) == 0).all()
