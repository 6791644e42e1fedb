"""The probe that names a block's norm order, on the book's blocks, on torch's, and in a box."""

import copy
import inspect
import random

import numpy as np
import pytest
import torch
from answers.mutating import mutants
from conftest import checked
from torch import nn

from lnres_utils import blocks, norm_order
from lnres_utils.auditing import LABELS, order_of_function
from lnres_utils.drives.boxes import CallsSpent
from lnres_utils.specs import norm_order as spec
from lnres_utils.specs import sealed

T = 6
SIZES = ((8, 2, 3), (10, 5, 7), (32, 4, 6))
PLACEMENTS = ("pre", "post", "sandwich", "res-post", "parallel", "deepnorm")


def example(width, tokens=T):
    return torch.zeros(2, tokens, width, dtype=torch.float64)


def with_gains(module, rng):
    """Gains of both signs and biases: as after training, not as built."""
    with torch.no_grad():
        for norm in module.modules():
            if isinstance(norm, (nn.LayerNorm, nn.RMSNorm)):
                gains = rng.uniform(0.4, 1.7, norm.weight.shape)
                norm.weight.copy_(torch.from_numpy(gains * rng.choice([-1, 1], gains.shape)))
                if getattr(norm, "bias", None) is not None:
                    norm.bias.copy_(torch.from_numpy(rng.normal(size=gains.shape)))
    return module


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_every_placement_is_named(placement, norm):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        for width, heads, tokens in SIZES:
            layers = [blocks.Attention(width, heads), blocks.FeedForward(width)]
            block = blocks.Block(width, layers, placement, norm, skip_scale=2.3)
            blocks.initialize(block, rng)
            label = "post" if placement == "deepnorm" else placement
            assert norm_order(block, example(width, tokens)) == label
            assert norm_order(with_gains(block, rng), example(width, tokens)) == label


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_torchs_own_layer_is_named(norm_first, training, masked, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.2, batch_first=True,
                                       norm_first=norm_first, activation=activation)
    with_gains(layer, np.random.default_rng(1)).train(training)
    mask = {"src_mask": nn.Transformer.generate_square_subsequent_mask(T)} if masked else {}
    before = copy.deepcopy(layer.state_dict())
    random_state = torch.get_rng_state()
    assert norm_order(layer, example(12).float(), **mask) == ("pre" if norm_first else "post")
    assert layer.training == training and layer.norm1.weight.dtype == torch.float32
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())
    assert torch.equal(random_state, torch.get_rng_state())


def test_a_function_around_a_module_is_named_in_double_precision_and_in_single():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, norm_first=True).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(T)
    assert norm_order(lambda x: layer(x, src_mask=mask), example(12).float()) == "pre"
    layer, mask = layer.double(), mask.double()
    assert norm_order(lambda x: layer(x, src_mask=mask), example(12)) == "pre"


def test_one_sublayer_before_which_a_norm_stands_is_pre():
    block = blocks.Block(8, [blocks.Attention(8, 2)], "pre")
    assert norm_order(block, example(8), sublayers=1) == "pre"
    assert norm_order(block, example(8)) == "parallel"  # the same function, of one branch


def test_what_is_no_known_order_gets_no_label():
    layers = [blocks.Attention(8, 2), blocks.FeedForward(8)]
    for wiring in ({"placement": "plain"}, {"placement": "pre", "norm": blocks.no_norm}):
        assert norm_order(blocks.Block(8, layers, **wiring), example(8)) == "none of these"
    pre = blocks.Block(8, layers, "pre")
    both = nn.Sequential(pre, nn.LayerNorm(8))
    assert norm_order(both, example(8)) == "none of these"


REFUSED = [
    (lambda: norm_order(nn.Linear(8, 8), example(8)), ValueError, "a block that mixes tokens"),
    (lambda: norm_order(nn.Linear(8, 5), example(8)), ValueError, r"into \(2, 6, 5\)"),
    (lambda: norm_order(nn.Identity(), torch.ones(2, 8)), ValueError, r"the shape is \(2, 8\)"),
    (lambda: norm_order(nn.Identity(), torch.ones(2, 1, 8)), ValueError, "at least 2 tokens"),
    (lambda: norm_order(nn.Identity(), torch.ones(2, 3, 8, dtype=torch.int64)), TypeError,
     "torch.int64; a floating-point tensor"),
    (lambda: norm_order(nn.Identity(), np.ones((2, 3, 8))), TypeError, "x is ndarray"),
    (lambda: norm_order(lambda x: nn.functional.dropout(x), example(8)), ValueError,
     "dropout must be off"),
    (lambda: norm_order(lambda x: x / 0, example(8)), ValueError, "not finite"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_cannot_be_told_is_said_in_one_line(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_empty_batch_is_an_example_as_good_as_any():
    block = blocks.Block(8, [blocks.Attention(8, 2), blocks.FeedForward(8)], "post")
    assert norm_order(block, torch.zeros(0, 4, 8)) == "post"


def reference(block):
    return order_of_function(block, (2, T, block.width))


def by_hand(block):
    """What a learner would write: four probes, one after the other."""
    x = np.random.default_rng(0).normal(1, 3, size=(3, T, block.width))
    larger = x.copy()
    larger[:, :-1] *= 5
    comes_through = np.abs(block(1e4 * x) - 1e4 * x).max() < 100
    seen = np.abs(block(larger) - block(x))[:, -1].max() > 1e-3
    if not comes_through:
        return "post" if seen else "skip-from-norm"
    if seen:
        return "res-post"
    small, large = (block(size * x) - size * x for size in (10, 100))
    if np.abs(large - small).max() < 1e-4:
        return "parallel"
    return "sandwich" if np.abs(small.mean(-1)).max() < 1e-6 else "pre"


@pytest.mark.parametrize("detector", [reference, by_hand])
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_right_detector_gets_all_points(detector, seed):
    report = checked("norm_order", detector, seed)
    assert (report.outcome, report.points) == ("right", 12), report.text


@pytest.mark.parametrize("label", LABELS)
def test_one_label_for_all_boxes_scores_nothing_and_is_named(label):
    report = checked("norm_order", lambda block: label)
    assert (report.outcome, report.points) == ("wrong", 0)
    assert [each.id for each in report.mistakes] == [f"always-{label}"]


def test_guessing_scores_nothing():
    for seed in range(20):
        draws = np.random.default_rng(seed)
        guess = [str(draws.choice(LABELS)) for _ in range(18)]
        assert checked("norm_order", lambda block, guess=guess: guess.pop()).points == 0


def test_a_detector_that_looks_instead_of_probing_finds_nothing():
    seen = {str(sorted(name for name in dir(case.inputs["block"]) if not name.startswith("_")))
            + repr(case.inputs["block"]).replace(str(case.inputs["block"].width), "")
            for case in spec.cases(np.random.default_rng(0))}
    assert len(seen) == 1
    widths = {label: sorted(case.inputs["block"].width for case in spec.cases(
        np.random.default_rng(0)) if case.group == label) for label in LABELS}
    assert set(map(tuple, widths.values())) == {(6, 9, 10)}  # the width says nothing
    orders = {tuple(case.group for case in spec.cases(np.random.default_rng(seed)))
              for seed in range(5)}
    assert len(orders) == 5  # another order for other random numbers


def test_a_detector_right_on_some_labels_gets_their_points():
    def two_orders(block):
        x = np.random.default_rng(0).normal(1, 3, size=(2, 4, block.width))
        return "pre" if np.abs(block(1e4 * x) - 1e4 * x).max() < 100 else "post"

    report = checked("norm_order", two_orders)
    assert (report.points, [each.id for each in report.mistakes]) == (4, ["only-pre-and-post"])


@pytest.mark.parametrize("look", [
    lambda block: block._ask.label, lambda block: block._ask.function, sealed.label_of,
    lambda block: spec.EXERCISE.reference({"block": block})["label"]])
def test_who_reads_the_label_off_a_box_scores_nothing(look):
    read = []

    def norm_order(block):
        read.append(look(block))
        return read[-1]

    assert (checked("norm_order", norm_order).points, read) == (0, [])


def box(calls=3, module=None):
    return spec.boxed(module or nn.Linear(5, 5).double(), "pre", 5, calls)


def test_a_box_gives_outputs_and_vector_jacobian_products():
    module = nn.Linear(5, 5).double()
    asked = box(module=module)
    weight, bias = (each.detach().numpy() for each in (module.weight, module.bias))
    x, dy = np.random.default_rng(0).normal(size=(2, 2, 3, 5))
    np.testing.assert_allclose(asked(x), x @ weight.T + bias)
    np.testing.assert_allclose(asked.vjp(x, dy), dy @ weight)
    assert asked.calls_left == 1


def test_each_check_gets_a_box_with_all_its_calls():
    asked = box()
    asked(np.ones((1, 2, 5)))
    assert (asked.calls_left, copy.deepcopy(asked).calls_left) == (2, 3)


def test_a_box_counts_its_calls():
    asked = box(calls=2)
    asked(np.ones((1, 2, 5)))
    asked(np.ones((1, 2, 5), dtype=int))
    with pytest.raises(CallsSpent, match="all 2 calls of the block are spent"):
        asked(np.ones((1, 2, 5)))


@pytest.mark.parametrize(("x", "kind", "message"), [
    (np.ones((2, 5)), ValueError, r"x has shape \(2, 5\); \(B, T, 5\) with T of at least 2"),
    (np.ones((1, 1, 5)), ValueError, "at least 2"), (np.ones((1, 2, 6)), ValueError, "T, 5"),
    (np.ones((1, 2, 5), complex), TypeError, "complex128; real numbers"),
    (None, TypeError, "dtype object"), ("a", TypeError, "real numbers were expected"),
    (np.ones((2, 100_001, 10))[..., :5].repeat(3, 0), ValueError, "at most 2,000,000")])
def test_a_box_refuses_what_no_block_takes_and_spends_no_call_on_it(x, kind, message):
    asked = box()
    with pytest.raises(kind, match=message):
        asked(x)
    assert asked.calls_left == 3


def test_a_cotangent_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="the same was expected"):
        box().vjp(np.ones((1, 2, 5)), np.ones((1, 3, 5)))


def test_random_faults_of_a_detector_are_accepted_only_if_it_stays_right():
    source = "import numpy as np\n\nT = 6\n\n\n" + inspect.getsource(by_hand)
    faults = list(mutants(source, "by_hand"))
    verdicts = []
    for what, faulty in random.Random(0).sample(faults, 30):
        module = {}
        exec(compile(faulty, "<mutant>", "exec"), module)
        outcomes = [checked("norm_order", module["by_hand"], seed).outcome == "right"
                    for seed in (None, 21, 22)]
        verdicts.append((what, outcomes))
    assert not [what for what, outcomes in verdicts if len(set(outcomes)) > 1]
    assert sum(not outcomes[0] for _, outcomes in verdicts) >= 12
