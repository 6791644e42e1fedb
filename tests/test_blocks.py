"""The course's transformer: each wiring by its formula, clear errors, and starts that repeat."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from lnres_utils import blocks

B, T, D = 3, 5, 6


def hidden(seed=0, shape=(B, T, D)):
    return torch.from_numpy(np.random.default_rng(seed).normal(1, 3, shape))


def trained(module, seed=1):
    """Random gains, biases and weights: at their start many wirings look alike."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(0.6, 0.5, parameter.shape)))
    return module.double()


def block(placement, **wiring):
    layers = [blocks.Attention(D, 2), blocks.FeedForward(D, 7)]
    return trained(blocks.Block(D, layers, placement, **wiring))


FORMULAS = {
    "post": lambda x, f, norm, _: norm(x + f(x)),
    "pre": lambda x, f, norm, _: x + f(norm(x)),
    "sandwich": lambda x, f, norm, out: x + out(f(norm(x))),
    "res-post": lambda x, f, _, out: x + out(f(x)),
    "deepnorm": lambda x, f, norm, _: norm(1.7 * x + f(x)),
    "plain": lambda x, f, *_: f(x),
}


@pytest.mark.parametrize("placement", FORMULAS)
def test_a_block_computes_the_formula_of_its_placement(placement):
    module = block(placement, skip_scale=1.7)
    x = expected = hidden()
    for i, layer in enumerate(module.sublayers):
        norm = module.norms[i] if len(module.norms) else None
        out = module.output_norms[i] if len(module.output_norms) else None
        expected = FORMULAS[placement](expected, layer, norm, out)
    torch.testing.assert_close(module(x), expected)
    assert not torch.allclose(module(x), x)


def test_parallel_sublayers_read_the_same_input_through_norms_of_their_own():
    module = block("parallel")
    x = hidden()
    attention, feed_forward = module.sublayers
    expected = x + attention(module.norms[0](x)) + feed_forward(module.norms[1](x))
    torch.testing.assert_close(module(x), expected)


@pytest.mark.parametrize("placement", blocks.PLACEMENTS)
def test_every_placement_differs_from_every_other(placement):
    others = set(blocks.PLACEMENTS) - {placement}
    mine = block(placement, skip_scale=1.7)(hidden())
    for other in others:
        assert not torch.allclose(mine, block(other, skip_scale=1.7)(hidden()), rtol=1e-3), other


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_block_is_torchs_own_encoder_layer(norm_first):
    theirs = nn.TransformerEncoderLayer(D, 2, 7, dropout=0.0, batch_first=True,
                                        norm_first=norm_first)
    theirs = trained(theirs).eval()
    ours = block("pre" if norm_first else "post")
    attention, feed_forward = ours.sublayers
    weight, bias = theirs.self_attn.in_proj_weight, theirs.self_attn.in_proj_bias
    pairs = [(attention.output, theirs.self_attn.out_proj), (feed_forward.input, theirs.linear1),
             (feed_forward.output, theirs.linear2), (ours.norms[0], theirs.norm1),
             (ours.norms[1], theirs.norm2)]
    with torch.no_grad():
        for i, linear in enumerate((attention.query, attention.key, attention.value)):
            linear.weight.copy_(weight[i * D:(i + 1) * D])
            linear.bias.copy_(bias[i * D:(i + 1) * D])
        for mine, its in pairs:
            mine.load_state_dict(its.state_dict())
    mask = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    torch.testing.assert_close(ours(hidden()), theirs(hidden(), src_mask=mask, is_causal=True))


@pytest.mark.parametrize(("placement", "normalized"), [
    ("pre", True), ("sandwich", True), ("res-post", True), ("parallel", True),
    ("post", False), ("deepnorm", False), ("plain", False)])
def test_a_final_norm_stands_where_the_stream_has_none(placement, normalized):
    model = blocks.Transformer(D, 2, 2, placement=placement)
    assert isinstance(model.final_norm, nn.LayerNorm) == normalized
    assert isinstance(blocks.Transformer(D, 1, 2, placement=placement, final_norm=not normalized)
                      .final_norm, nn.Identity) == normalized


def test_norms_take_their_place_and_are_not_shared():
    made = []

    def norm(width):
        made.append(nn.LayerNorm(width))
        return made[-1]

    model = blocks.Transformer(D, 2, 2, placement="sandwich", norm=norm)
    assert len(made) == 2 * 4 + 1
    assert len({id(each) for each in model.modules() if isinstance(each, nn.LayerNorm)}) == 9


def test_a_causal_model_hides_the_future_and_another_does_not():
    x, later = hidden(), hidden()
    later[:, 3:] = hidden(1)[:, 3:]  # not a shift: a norm would hide it
    for causal in (True, False):
        model = blocks.Transformer(D, 2, 2, causal=causal).double()
        blocks.initialize(model, np.random.default_rng(0))
        same = torch.allclose(model(x)[:, :3], model(later)[:, :3], rtol=1e-9)
        assert same == causal


def test_cross_attention_reads_the_memory():
    model = trained(blocks.Transformer(D, 2, 2, cross=True))
    x, memory = hidden(), hidden(3, (B, 4, D))
    assert model(x, memory).shape == x.shape
    assert not torch.allclose(model(x, memory), model(x, memory + 1))


def test_qk_norm_makes_attention_forget_the_scale_of_queries_and_keys():
    for qk_norm in (True, False):
        attention = trained(blocks.Attention(D, 2, qk_norm=qk_norm))
        before = attention(hidden())
        with torch.no_grad():
            for linear in (attention.query, attention.key):
                linear.weight.mul_(3)
                linear.bias.mul_(3)
        assert torch.allclose(before, attention(hidden())) == qk_norm


def test_branch_scale_update_and_dropout_act_on_the_update_only():
    x = hidden()
    scaled, plain = block("pre", branch_scale=0.25), block("pre")
    zero = block("pre", update=partial(blocks.LayerScale, start=0.0))
    for module in zero.updates:
        nn.init.zeros_(module.gain)
    torch.testing.assert_close(zero(x), x)
    one = blocks.Block(D, plain.sublayers[:1], "pre", lambda _: plain.norms[0], branch_scale=0.25)
    torch.testing.assert_close(one(x) - x, 0.25 * plain.sublayers[0](plain.norms[0](x)))
    assert not torch.allclose(scaled(x), plain(x))
    dropping = block("pre", dropout=0.5)
    torch.testing.assert_close(dropping.eval()(x), plain(x))
    kept = dropping.train()(x).isclose(x)
    assert 0.1 < kept.double().mean() < 0.4  # both updates of an entry dropped: a quarter


def test_layer_scale_starts_near_zero_and_is_trained_for_each_feature():
    scale = blocks.LayerScale(D, 1e-3)
    torch.testing.assert_close(scale(torch.ones(B, T, D)), torch.full((B, T, D), 1e-3))
    assert scale.gain.requires_grad and scale.gain.shape == (D,)
    assert blocks.LayerScale(1, 0.0)(hidden()).abs().max() == 0


def test_stochastic_depth_drops_examples_whole_and_keeps_the_mean():
    torch.manual_seed(0)
    depth, x = blocks.StochasticDepth(0.4), torch.ones(4000, 2, D)
    ratio = depth(x)[:, 0, 0]
    assert torch.equal(depth.eval()(x), x)
    assert set(ratio.unique().tolist()) == {0.0, float(torch.tensor(1) / 0.6)}
    assert abs(float(ratio.mean()) - 1) < 5 * (0.4 / 0.6 / 4000) ** 0.5
    y = depth.train()(x)
    assert torch.equal(y, y[:, :1, :1].expand_as(y))


@pytest.mark.parametrize("shape", [(0, T, D), (B, 1, D), (B, T, D), (T, D)])
def test_empty_batches_single_tokens_and_a_missing_batch_axis_are_fine(shape):
    for placement in blocks.PLACEMENTS:
        assert block(placement)(hidden(shape=shape)).shape == shape


REFUSED = [
    (lambda: block("before"), ValueError, "placement 'before' is unknown; use one of post, pre"),
    (lambda: block("pre")(hidden(shape=(B, T, 7))), ValueError, r"shape \(3, 5, 7\).*the width, 6"),
    (lambda: block("pre")(torch.tensor(1.0)), ValueError, "the last axis must be"),
    (lambda: block("pre")(torch.ones(B, T, D, dtype=torch.int64)), TypeError, "torch.int64; a fl"),
    (lambda: block("pre")(np.ones((B, T, D))), TypeError, "ndarray; a floating-point tensor"),
    (lambda: blocks.Attention(D, 4), ValueError, "width 6 is not a multiple of 4 heads"),
    (lambda: blocks.Attention(D, 2, cross=True), ValueError, "causal=True needs one sequence"),
    (lambda: blocks.StochasticDepth(1.0), ValueError, "p is 1.0; a probability"),
    (lambda: blocks.initialize(block("pre"), np.random.default_rng(0), "glorot"), ValueError,
     "scheme 'glorot' is unknown; use xavier, he, lecun or a number"),
    (lambda: blocks.Block(D, [nn.Linear(D, 1)])(torch.ones(B, T, D)), ValueError,
     r"Linear turned shape \(3, 5, 6\) into \(3, 5, 1\)"),
    (lambda: blocks.LanguageModel(9, 4, D, nn.Identity())(torch.zeros(2, 5, dtype=torch.int64)),
     ValueError, "5 tokens; this model has 4 positions"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_cannot_be_meant_is_refused_in_one_line(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_update_that_would_broadcast_is_refused_in_every_placement():
    class Mean(nn.Module):
        def forward(self, x):
            return x.mean(1, keepdim=True)

    for placement in blocks.PLACEMENTS:
        with pytest.raises(ValueError, match="needs the shape of its input"):
            blocks.Block(D, [Mean()], placement)(torch.ones(B, T, D))


def test_a_block_leaves_its_input_alone():
    x = hidden()
    for placement in blocks.PLACEMENTS:
        block(placement)(x)
    assert torch.equal(x, hidden())


@pytest.mark.parametrize(("scheme", "expected"), [
    ("xavier", (2 / (64 + 256)) ** 0.5), ("he", (2 / 64) ** 0.5), ("lecun", 1 / 8), (0.02, 0.02)])
def test_a_scheme_sets_the_standard_deviation(scheme, expected):
    model = blocks.initialize(blocks.FeedForward(64), np.random.default_rng(0), scheme)
    weight = model.input.weight
    assert abs(float(weight.std()) / expected - 1) < 5 / (2 * weight.numel()) ** 0.5
    assert not model.input.bias.any()


def test_scales_reach_the_maps_they_are_meant_for():
    def stds(**scales):
        model = blocks.LanguageModel(40, 8, 32, blocks.Transformer(32, 1))
        blocks.initialize(model, np.random.default_rng(0), 0.1, embedding_std=0.1, **scales)
        return {name: float(value.std()) for name, value in model.named_parameters()
                if value.ndim == 2}

    base, output, branch = stds(), stds(output_scale=0.5), stds(branch_scale=0.5)
    scaled = {name for name in base if output[name] < 0.75 * base[name]}
    assert scaled == {f"stack.blocks.0.sublayers.{i}.output.weight" for i in (0, 1)}
    scaled = {name.split("sublayers.")[1] for name in base if branch[name] < 0.75 * base[name]}
    assert scaled == {"0.value.weight", "0.output.weight", "1.input.weight", "1.output.weight"}
    assert blocks.deepnorm_scales(8) == (2.0, 64 ** -0.25)


def test_a_start_depends_on_the_seed_only():
    def start(seed):
        torch.manual_seed(seed + 5)  # torch's own generator has no part in it
        model = blocks.Transformer(D, 2, 2)
        blocks.initialize(model, np.random.default_rng(seed))
        return model(hidden().float()).detach()

    assert torch.equal(start(0), start(0))
    assert not torch.allclose(start(0), start(1))


def test_blocks_of_a_stack_start_different():
    model = blocks.initialize(blocks.Transformer(D, 2, 2), np.random.default_rng(0))
    first, second = (block.sublayers[1].input.weight for block in model.blocks)
    assert not torch.allclose(first, second)
