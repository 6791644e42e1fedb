"""The audit's checks of numbers: each on modules that are right, and on planted faults."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from lnres_utils import audit, blocks

D = 16
NUMBERS = ("scale", "shift", "placement", "epsilon", "half", "constant rows", "autocast",
           "gradients")


def example(*shape, size=1.5, mean=0.3):
    numbers = size * np.random.default_rng(0).normal(size=shape or (3, 6, D)) + mean
    return torch.from_numpy(numbers).float()


def seeded(make):
    torch.manual_seed(0)
    return make()


def mean(x):
    return x.mean(-1, keepdim=True)


class ByHand(nn.Module):
    """A norm written out, with gain and bias in the dtype of the parameters."""

    def __init__(self, normalized, width=D):
        super().__init__()
        self.normalized = normalized
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return self.weight * self.normalized(x) + self.bias


class UpcastRMS(nn.Module):
    """As in Llama: statistics in float32, cast back, then the gain."""

    def __init__(self, epsilon=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.epsilon = epsilon

    def forward(self, x):
        hidden = x.float()
        hidden = hidden * torch.rsqrt(mean(hidden * hidden) + self.epsilon)
        return self.weight * hidden.to(x.dtype)


class UpcastOnePass(nn.Module):
    def forward(self, x):
        hidden = x.float()
        variance = mean(hidden * hidden) - mean(hidden) ** 2
        return ((hidden - mean(hidden)) * torch.rsqrt(variance.abs() + 1e-5)).to(x.dtype)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(D, 4 * D), nn.Linear(D, 4 * D)
        self.down = nn.Linear(4 * D, D)

    def forward(self, x):
        return self.down(self.gate(x) * self.up(x))


class ResPost(nn.Module):
    """As in OLMo 2: a norm behind each sub-layer, on the queries and on the keys."""

    def __init__(self):
        super().__init__()
        self.attention, self.mlp = blocks.Attention(D, 4, qk_norm=True), Gated()
        self.norm1, self.norm2 = nn.RMSNorm(D, eps=1e-6), nn.RMSNorm(D, eps=1e-6)

    def forward(self, x):
        x = x + self.norm1(self.attention(x))
        return x + self.norm2(self.mlp(x))


def two_pass(epsilon):
    return lambda x: (x - mean(x)) / torch.sqrt(mean((x - mean(x)) ** 2) + epsilon)


def one_pass(x):
    return (x - mean(x)) * torch.rsqrt(mean(x * x) - mean(x) ** 2 + 1e-5)


def root_of_variance(x):
    return (x - mean(x)) / (mean((x - mean(x)) ** 2).sqrt() + 1e-5)


def over_torch_std(x):
    return (x - mean(x)) / (x.std(-1, keepdim=True, correction=0) + 1e-6)


def layer(norm_first=False, **options):
    return seeded(lambda: nn.TransformerEncoderLayer(
        D, 4, 32, batch_first=True, norm_first=norm_first, dropout=0.0, **options))


def found(module, check, x=None, **options):
    return audit(module, example() if x is None else x, checks=[check], **options)[check]


CHANNELS = {"x": example(3, D, 6), "axes": "BCT"}
SCALE = [  # module, audit's options, invariant in eval, in training
    (nn.LayerNorm(D), {}, True, None), (nn.RMSNorm(D), {}, True, None),
    (nn.GroupNorm(4, D), CHANNELS, True, None), (nn.BatchNorm1d(D), CHANNELS, False, True),
    (nn.InstanceNorm1d(D, affine=True), CHANNELS, True, None),
    (UpcastRMS(), {}, True, None), (nn.Linear(D, D), {}, False, False), (layer(), {}, False, False),
    (layer(norm_first=True), {}, False, False), (nn.Linear(D, 5), {}, False, False),
    (lambda x: F.normalize(x, dim=-1), {}, True, None), (torch.tanh, {}, False, False),
]


@pytest.mark.parametrize(("module", "options", "in_eval", "in_train"), SCALE)
def test_scale_invariance_is_told_in_both_modes(module, options, in_eval, in_train):
    finding = found(module, "scale", **options)
    assert finding.verdict == "info"
    assert finding.facts["invariant"] is in_eval
    assert finding.facts.get("invariant in train") is in_train
    assert (finding.facts["largest change"] > 0.01) == (not in_eval)


@pytest.mark.parametrize(("module", "words"), [
    (nn.LayerNorm(1), "does not depend on the input"), (nn.RMSNorm(1), "only its sign")])
def test_a_norm_over_one_number_is_a_problem(module, words):
    finding = found(module, "scale", example(3, 6, 1))
    assert finding.verdict == "problem" and words in finding.evidence


SHIFT = [  # module, options, invariant, passes through
    (nn.LayerNorm(D), {}, True, False), (nn.RMSNorm(D), {}, False, False),
    (nn.GroupNorm(4, D), CHANNELS, True, False), (nn.BatchNorm1d(D), CHANNELS, False, False),
    (layer(norm_first=True), {}, False, True), (layer(), {}, False, False),
    (blocks.Block(D, [Gated()], "pre", nn.RMSNorm), {}, False, False),
]


@pytest.mark.parametrize(("module", "options", "invariant", "through"), SHIFT)
def test_a_shift_changes_nothing_or_passes_through_or_changes_the_output(module, options,
                                                                         invariant, through):
    finding = found(module, "shift", **options)
    assert finding.verdict == "info"
    assert (finding.facts["invariant"], finding.facts["passes through"]) == (invariant, through)


@pytest.mark.parametrize("module", [
    ByHand(one_pass), UpcastOnePass(),
    blocks.Block(D, [Gated()], "pre", lambda width: ByHand(one_pass))])
def test_a_variance_taken_in_one_pass_is_a_problem(module):
    finding = found(module, "shift")
    assert finding.verdict == "problem"
    assert "float32" in finding.evidence and "E[x²] − E[x]²" in finding.evidence


@pytest.mark.parametrize("width", [2, 3, 7, 512])
@pytest.mark.parametrize("make", [
    nn.LayerNorm, lambda width: nn.GroupNorm(1, width), lambda width: ByHand(two_pass(1e-5), width),
    lambda width: nn.LayerNorm(width, eps=1e-12)])
def test_rounding_far_from_zero_is_no_problem(make, width):
    x = example(3, width, 5, mean=1e4)
    x = x.mT.contiguous() if not isinstance(make(width), nn.GroupNorm) else x
    axes = "BCT" if isinstance(make(width), nn.GroupNorm) else "BTD"
    assert found(make(width), "shift", x, axes=axes).verdict in ("info", "cannot tell")


def stack(depth, placement, final, norm):
    return seeded(lambda: blocks.Transformer(D, depth, 4, placement=placement, norm=norm,
                                             final_norm=final))


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("placement", ["pre", "post", "sandwich", "res-post", "parallel"])
@pytest.mark.parametrize(("depth", "final"), [(1, False), (1, True), (3, False), (3, True)])
def test_the_placement_of_blocks_and_stacks_is_told(placement, norm, depth, final):
    facts = found(stack(depth, placement, final, norm), "placement").facts
    final = final and not (placement == "post" and depth == 1)  # norm(norm(x + f(x))) is post, too
    assert facts["placement"] == placement + (" + final norm" if final else "")
    assert facts.get("blocks", 1) == depth
    grows = facts["update at 100"] > 10 * facts["update at 1"]
    assert grows == (placement == "post" or final)


def skip_from_norm(x):
    hidden = F.layer_norm(x, (D,))
    return hidden + ATTENTION(hidden)


ATTENTION = seeded(lambda: blocks.Attention(D, 4))
PRE = seeded(lambda: blocks.Block(D, [blocks.Attention(D, 4), blocks.FeedForward(D)], "pre"))
PLACEMENT = [
    (nn.LayerNorm(D), {}, "norm"), (nn.RMSNorm(D), {}, "norm"),
    (nn.BatchNorm1d(D), CHANNELS, "norm"), (nn.Identity(), {}, "none"),
    (nn.GroupNorm(4, D), CHANNELS, "norm"), (nn.GroupNorm(1, D), CHANNELS, "norm"),
    (nn.InstanceNorm1d(D), CHANNELS, "norm"), (nn.BatchNorm1d(6), {}, "norm"),
    (skip_from_norm, {}, "skip-from-norm"), (nn.Linear(D, D), {}, "none"),
    (blocks.Block(D, [blocks.Attention(D, 4)], "plain"), {}, "none"),
    (lambda x: F.layer_norm(PRE(x), (D,)), {}, "pre or sandwich + final norm"),
    (lambda x: PRE(PRE(PRE(x) + 0) + 0) + 0, {}, "pre or sandwich"),
    (lambda x: PRE(x.mT).mT, CHANNELS, "pre"),
    (lambda x: PRE(x.flatten(1, 2)).reshape(x.shape), {"x": example(2, 3, 4, D), "axes": "BHWC"},
     "pre"),
]


@pytest.mark.parametrize(("module", "options", "label"), PLACEMENT)
def test_other_placements_are_told(module, options, label):
    finding = found(module, "placement", **options)
    assert (finding.verdict, finding.facts["placement"]) == ("info", label), finding.evidence


def test_a_layer_that_takes_examples_for_tokens_is_named_and_the_slip_told():
    slipped = seeded(lambda: nn.TransformerEncoderLayer(D, 4, 32, dropout=0.0))
    finding = found(slipped, "placement")
    assert finding.facts["placement"] == "post" and "mixes examples" in finding.evidence


@pytest.mark.parametrize(("module", "words"), [
    (nn.Linear(D, 5), "another shape"), (lambda x: F.layer_norm(x + torch.tanh(x), (D,)), "token")])
def test_a_placement_that_does_not_show_is_not_guessed(module, words):
    finding = found(module, "placement")
    assert finding.verdict == "cannot tell" and words in finding.evidence


EPSILON = [  # module, options, epsilon in float32, place, in float64 if another
    (nn.LayerNorm(D), {}, 1e-5, "inside the root", None),
    (nn.LayerNorm(D, eps=1e-12), {}, 1e-12, "inside the root", None),
    (nn.LayerNorm(5, eps=1e-3), {"x": example(2, 3, 5)}, 1e-3, "inside the root", None),
    (nn.RMSNorm(D), {}, 1.19e-7, "inside the root", 2.2e-16),
    (nn.RMSNorm(D, eps=1e-6), {}, 1e-6, "inside the root", None),
    (UpcastRMS(1e-5), {}, 1e-5, "inside the root", None),
    (nn.BatchNorm1d(D), CHANNELS, 1e-5, "inside the root", None),
    (nn.GroupNorm(4, D, eps=1e-4), CHANNELS, 1e-4, "inside the root", None),
    (ByHand(root_of_variance), {}, 1e-5, "outside the root", None),
    (ByHand(over_torch_std), {}, 1e-6, "outside the root", None),
    (lambda x: x * mean(x * x).clamp(min=1e-6).rsqrt(), {}, 1e-3, "as a floor", None),
]


@pytest.mark.parametrize(("module", "options", "value", "place", "in_double"), EPSILON)
def test_the_epsilon_is_found_from_outside(module, options, value, place, in_double):
    facts = found(module, "epsilon", **options).facts
    assert facts["place"] == place
    assert facts["epsilon"]["float32"] == pytest.approx(value, rel=0.02)
    assert facts["epsilon"]["float64"] == pytest.approx(in_double or value, rel=0.02)
    for half in ("bfloat16", "float16"):
        if half in facts["epsilon"] and place == "inside the root":
            assert facts["epsilon"][half] == pytest.approx(value, rel=0.15)


def test_an_epsilon_that_differs_by_dtype_is_told():
    assert "differs by dtype" in found(nn.RMSNorm(D), "epsilon").evidence
    assert "differs" not in found(nn.LayerNorm(D, eps=1e-12), "epsilon").evidence


@pytest.mark.parametrize("module", [
    layer(), nn.Linear(D, D), nn.LayerNorm(1), torch.tanh,
    nn.Sequential(nn.LayerNorm(D), nn.Linear(D, D)), nn.Sequential(nn.LayerNorm(D), nn.GELU())])
def test_what_is_no_norm_is_not_asked_for_its_epsilon(module):
    x = example(3, 6, 1) if isinstance(module, nn.LayerNorm) else None
    finding = found(module, "epsilon", x)
    assert finding.verdict == "info" and not finding.facts["applies"]


@pytest.mark.parametrize("module", [
    nn.LayerNorm(D), nn.RMSNorm(D), nn.LayerNorm(D, eps=1e-12), UpcastRMS(), ByHand(over_torch_std),
    layer(norm_first=True), nn.Linear(D, D), nn.Identity()])
def test_what_survives_half_precision_is_ok(module):
    finding = found(module, "half")
    assert finding.verdict == "ok", finding.evidence
    assert {case["dtype"] for case in finding.facts["cases"]} == {"float16", "bfloat16"}
    assert {case["size"] for case in finding.facts["cases"]} == {1, 300}


def test_an_epsilon_that_goes_by_the_dtype_is_no_fault_of_half_precision():
    """Without an epsilon of its own an RMSNorm takes another one in float64 than in half."""
    finding = found(nn.RMSNorm(D), "half", example(size=5e-4, mean=0).half())
    assert finding.verdict == "ok", finding.evidence
    finding = found(lambda x: F.rms_norm(x, (D,), eps=1e-3 if x.dtype == torch.float16 else None),
                    "half", example(size=5e-4, mean=0).half())
    assert finding.verdict == "problem", finding.evidence


def test_a_norm_of_two_numbers_is_no_sign():
    for seed in range(4):
        x = torch.randn(1, 2, 2, generator=torch.Generator().manual_seed(seed))
        for module in (nn.LayerNorm(2), nn.RMSNorm(2)):
            for check in ("scale", "shift"):
                finding = found(module, check, x)
                assert finding.verdict != "problem", finding.evidence
    assert found(nn.RMSNorm(1), "scale", example(3, 6, 1)).verdict == "problem"


HALF = [  # module, outcome, modes, words
    (ByHand(two_pass(1e-5)), "erased", {"train", "eval"}, "of the 2 examples asked"),
    (ByHand(lambda x: x * torch.rsqrt(mean(x * x) + 1e-6)), "erased", {"train", "eval"}, "rows"),
    (layer(), "not finite", {"eval, fast path"}, "set_fastpath_enabled(False)"),
    (ResPost(), "not finite", {"train", "eval"}, "in `mlp`, on the way into `mlp.down`"),
    (nn.Sequential(nn.LayerNorm(D), ByHand(lambda x: (200 * x) ** 2 / 4e4)), "not finite",
     {"train", "eval"}, "first in `1`"),
    (lambda x: x * x, "not finite", {"train", "eval"}, "the module itself"),
]


@pytest.mark.parametrize(("module", "outcome", "modes", "words"), HALF)
def test_what_half_precision_breaks_is_a_problem_with_its_place(module, outcome, modes, words):
    finding = found(module, "half")
    assert finding.verdict == "problem"
    assert words in finding.evidence
    bad = [case for case in finding.facts["cases"] if case["outcome"] not in ("ok", "cannot tell")]
    assert {case["mode"] for case in bad} == modes
    assert {case["outcome"] for case in bad} == {outcome}
    assert {case["dtype"] for case in bad} == {"float16"}


def test_an_input_that_does_not_fit_half_precision_is_no_problem():
    finding = found(nn.LayerNorm(D), "half", example(size=1e6))
    assert finding.verdict == "cannot tell" and "does not fit" in finding.evidence
    finding = found(nn.LayerNorm(D), "half", example(size=1e3, mean=1e4))
    assert finding.verdict == "ok" and 1 <= finding.facts["factor"] < 3


def test_a_module_that_refuses_half_precision_is_told_with_its_words():
    finding = found(lambda x: torch.linalg.norm(torch.linalg.pinv(x)) * x, "half")
    assert finding.verdict == "cannot tell" and "raises" in finding.evidence


def test_what_broke_before_a_module_raised_is_told_too():
    class Breaks(nn.Module):
        def forward(self, x):
            if not self.training and x.dtype == torch.float16:
                raise RuntimeError("not today")
            return x * 1e5

    finding = found(Breaks(), "half")
    assert finding.verdict == "problem", finding.evidence
    assert "NaN or infinity" in finding.evidence and "not today" in finding.evidence


@pytest.mark.parametrize("module", [
    nn.LayerNorm(D), nn.RMSNorm(D), UpcastRMS(), ByHand(two_pass(1e-5)), layer(), nn.Linear(D, D)])
def test_constant_rows_are_ok(module):
    finding = found(module, "constant rows")
    assert finding.verdict == "ok", finding.evidence


@pytest.mark.parametrize(("module", "verdict", "words"), [
    (ByHand(two_pass(1e-8)), "problem", "float16"),
    (ByHand(root_of_variance), "problem", "gradient is not"),
    (ByHand(two_pass(0)), "problem", "the output is not finite"),
    (ByHand(over_torch_std), "info", "almost a step"),
    (nn.LayerNorm(D, eps=1e-12), "info", "almost a step")])
def test_constant_rows_show_an_epsilon_in_the_wrong_place(module, verdict, words):
    finding = found(module, "constant rows")
    assert finding.verdict == verdict and words in finding.evidence


class Residual(nn.Linear):
    def __init__(self):
        super().__init__(D, D)

    def forward(self, x):
        return x + super().forward(x)


AUTOCAST = [  # module, bfloat16 without autocast, float32 and bfloat16 under it, verdict
    (nn.LayerNorm(D), "bfloat16", "float32", "bfloat16", "ok"),
    (nn.RMSNorm(D), "bfloat16", "float32", "bfloat16", "ok"),
    (UpcastRMS(), "float32", "float32", "float32", "info"),
    (layer(), "raises", "bfloat16", "bfloat16", "ok"),
    (torch.tanh, "bfloat16", "float32", "bfloat16", "ok"),
    (Residual(), "raises", "float32", "bfloat16", "ok"),
]


@pytest.mark.parametrize(("module", "plain", "single", "half", "verdict"), AUTOCAST)
def test_the_dtype_that_comes_out_is_told(module, plain, single, half, verdict):
    for dtype in (torch.float32, torch.float64, torch.float16):  # of the user's input
        if isinstance(module, nn.Module) and dtype != torch.float32:
            module = module.to(dtype)
        finding = found(module, "autocast", example().to(dtype))
        facts = finding.facts
        assert finding.verdict == verdict
        assert facts["plain"]["float32"] == "float32" and facts["plain"]["bfloat16"] == plain
        assert facts["autocast"] == {"float32": single, "bfloat16": half,
                                     "float16": half.replace("bfloat16", "float16")}
    if isinstance(module, nn.Module):
        module.float()


def test_a_module_that_runs_only_without_autocast_is_a_problem():
    weight = torch.eye(D)
    finding = found(lambda x: torch.zeros_like(x).index_copy_(
        0, torch.arange(len(x)), F.linear(x, weight)), "autocast")
    assert finding.verdict == "problem" and "under autocast the module raises" in (
        finding.evidence.lower())


class Odd(nn.Module):
    """A parameter that is never used, one behind a detach, and one that starts at zero."""

    def __init__(self):
        super().__init__()
        self.unused, self.cut = nn.Parameter(torch.ones(D)), nn.Linear(D, D)
        self.down, self.up = nn.Linear(D, 2, bias=False), nn.Linear(2, D, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return x + self.cut(x).detach() + self.up(self.down(x))


def frozen(module, *names):
    for name in names:
        module.get_parameter(name).requires_grad_(False)
    return module


class OnInput(nn.Module):
    """What a function makes of a linear layer and an input."""

    def __init__(self, function, more=False):
        super().__init__()
        self.function, self.inner = function, seeded(lambda: nn.Linear(D, D))
        self.more = nn.Linear(D, D) if more else None

    def forward(self, x):
        return self.function(self, x)


class Experts(nn.Module):
    """Each token is treated by the one expert that it scores highest."""

    def __init__(self, count=32, skips=True):
        super().__init__()
        self.scores, self.skips = nn.Linear(D, count), skips
        self.experts = nn.ModuleList(nn.Linear(D, D) for _ in range(count))

    def forward(self, x):
        share, chosen = self.scores(x).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            if bool(mine.any()) or not self.skips:
                y = y + expert(x) * (mine * share)[..., None]
        return y


@pytest.mark.parametrize("skips", [True, False])
def test_experts_that_no_token_chose_are_no_problem(skips):
    finding = found(seeded(lambda: Experts(skips=skips)), "gradients")
    assert finding.verdict == "info" and finding.facts["not chosen"]
    assert "was zero for all 36 tokens tried" in finding.evidence


def test_gradients_that_are_not_finite_are_a_problem():
    finding = found(OnInput(lambda layer, x: torch.where(x > -1e9, layer.inner(x), torch.sqrt(
        0 * layer.inner(x) - 1))), "gradients")
    assert finding.verdict == "problem" and "NaN or infinite" in finding.evidence
    assert finding.facts["not finite"] == ["inner.weight", "inner.bias"]


BACKWARD = [  # module, verdict, words
    (OnInput(lambda layer, x: layer.inner(x).exp().mul_(2)), "problem", "inplace operation"),
    (OnInput(lambda layer, x: x.add_(layer.inner(x))), "problem", "inplace operation"),
    (OnInput(lambda layer, x: x + checkpoint(layer.inner, x, use_reentrant=True)), "cannot tell",
     "use_reentrant=False"),
]


@pytest.mark.parametrize(("module", "verdict", "words"), BACKWARD)
def test_a_backward_pass_that_raises_is_told(module, verdict, words):
    report = audit(module, example(), checks=list(NUMBERS))
    for check in ("gradients", "constant rows"):
        assert report[check].verdict == verdict, report.text
        assert "The backward pass raises RuntimeError" in report[check].evidence
        assert words in report[check].evidence


GRADIENTS = [  # module, verdict, frozen, unreached, zero
    (nn.LayerNorm(D), "ok", [], [], []), (layer(), "ok", [], [], []),
    (frozen(nn.LayerNorm(D), "weight"), "info", ["weight"], [], []),
    (frozen(nn.LayerNorm(D), "weight", "bias"), "info", ["weight", "bias"], [], []),
    (Odd(), "problem", [], ["unused", "cut.weight", "cut.bias"], []),
    (nn.Sequential(nn.Linear(D, D), nn.Threshold(1e9, 0.0)), "problem", [], [],
     ["0.weight", "0.bias"]),
    (nn.Identity(), "info", [], [], []),
    (OnInput(lambda layer, x: layer.inner(x) + 0 * torch.tanh(layer.more(x)), more=True),
     "problem", [], [], ["more.weight", "more.bias"]),
    (OnInput(lambda layer, x: layer.inner(x).masked_fill(x > 1, -torch.inf)), "ok", [], [], []),
]


@pytest.mark.parametrize(("module", "verdict", "no_wish", "unreached", "zero"), GRADIENTS)
def test_parameters_that_are_never_trained_are_named(module, verdict, no_wish, unreached, zero):
    finding = found(module, "gradients")
    assert finding.verdict == verdict
    facts = finding.facts
    assert (facts["frozen"], facts["unreached"], facts["zero"]) == (no_wish, unreached, zero)


class Attends(nn.Module):
    """One head: the bias of the keys adds the same to all scores of a row."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D, D) for _ in range(3))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        query, key, value = self.query(x), self.key(x), self.value(x)
        return self.drop((query @ key.mT / D**0.5).softmax(-1)) @ value


class Shifted(nn.Module):
    """A norm behind a shift: of one number, which the norm takes away, or of one a feature."""

    def __init__(self, size, factor=1.0):
        super().__init__()
        self.shift, self.factor = nn.Parameter(torch.zeros(size)), factor

    def forward(self, x):
        return self.factor * nn.functional.layer_norm(x + self.shift, (D,))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("module", "unused"), [
    (Attends(), ["key.bias"]), (Attends(0.3), ["key.bias"]), (Shifted(1), ["shift"]),
    (Shifted(D), []), (Shifted(D, 1e-6), [])])
def test_a_gradient_of_rounding_alone_is_none(module, unused, dtype):
    finding = found(module.to(dtype), "gradients", example().to(dtype))
    assert (finding.verdict, finding.facts["rounding"]) == ("info" if unused else "ok", unused)
    assert ("No output depends on" in finding.evidence) == bool(unused)


ODD = [
    (lambda x: x.long(), example(), "BTD"), (lambda x: torch.fft.fft(x), example(), "BTD"),
    (lambda x: x.mean(1), example(), "BTD"), (lambda x: x * float("nan"), example(), "BTD"),
    (nn.Embedding(10, D), torch.arange(6).reshape(2, 3), "BT"),
    (nn.Linear(2, 3), example(4, 2), "BD"),
    (nn.LayerNorm(1), example(1, 1, 1), "BTD"), (lambda x: torch.zeros(3, 6, D), example(), "BTD"),
    (nn.Conv2d(3, 5, 3), example(2, 3, 8, 9), "BCHW"), (torch.sign, example(), "BTD"),
    (lambda x: {"hidden": x}, example(), "BTD"), (nn.Dropout(0.9), example(), "BTD"),
    (lambda x: x.sum(), example(), "BTD"), (lambda x: x.detach().clone(), example(), "BTD"),
    (nn.BatchNorm1d(D), example(1, D, 1), "BCT"), (nn.BatchNorm1d(D), example(4, D), "BD"),
    (nn.LayerNorm(D), torch.zeros(2, 3, D), "BTD"),
    (nn.LayerNorm(D).half(), example().half(), "BTD"),
]


@pytest.mark.parametrize(("module", "x", "axes"), ODD)
def test_odd_modules_get_findings_and_no_traceback(module, x, axes):
    report = audit(module, x, axes=axes, checks=list(NUMBERS))
    assert len(report.findings) == len(NUMBERS)
    assert all("\n" not in each.evidence for each in report.findings)
    json.dumps(report.to_dict(), allow_nan=False)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = layer(norm_first=True)

    def forward(self, x, *, padding):
        return self.layer(x, src_key_padding_mask=padding), None


def test_a_mask_for_each_example_is_handed_on():
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[0, 4:] = True
    report = audit(Masked(), example(), checks=list(NUMBERS), padding=padding)
    assert {each.verdict for each in report.findings} == {"ok", "info"}, report.text
    assert report["placement"].facts["placement"] == "pre"


def test_token_numbers_are_judged_where_they_can_be():
    model = blocks.LanguageModel(11, 6, D, stack(2, "pre", True, nn.LayerNorm))
    report = audit(model, torch.arange(12).reshape(2, 6) % 11, axes="BT", checks=list(NUMBERS))
    verdicts = {each.check: each.verdict for each in report.findings}
    assert verdicts["half"] == verdicts["gradients"] == verdicts["autocast"] == "ok"
    assert verdicts["scale"] == "cannot tell"


def test_the_module_is_what_it_was():
    module = nn.Sequential(layer(), nn.BatchNorm1d(6), UpcastRMS())
    module[0].eval()
    module[0].linear1.bias.requires_grad_(False)
    before = {name: (value, value.clone()) for name, value in module.state_dict(keep_vars=True
                                                                                ).items()}
    random_state = torch.get_rng_state()
    audit(module, example(), checks=list(NUMBERS))
    after = module.state_dict(keep_vars=True)
    assert all(after[name] is value and torch.equal(value, copy)
               for name, (value, copy) in before.items())
    assert torch.equal(random_state, torch.get_rng_state())
    assert [each.training for each in module.children()] == [False, True, True]
    assert not module[0].linear1.bias.requires_grad
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in module.modules())
    assert all(each.grad is None for each in module.parameters())


def test_random_numbers_of_evaluation_are_no_lost_variance():
    for mends in (0.1, 0.0):
        finding = found(lambda x, mends=mends: x + mends * torch.randn_like(x), "shift")
        assert finding.verdict == ("cannot tell" if mends else "info"), finding.evidence
    assert "float32 keeps" in finding.evidence


def test_the_size_of_a_change_is_that_of_all_of_the_output():
    assert "changes by 300 % of its size" in found(nn.Identity(), "scale").evidence


@pytest.mark.parametrize("module", [nn.Identity(), nn.Dropout(0.5)])
def test_what_changes_nothing_is_told_so(module):
    assert found(module, "placement").evidence == "No norm: the output is the input."


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(D, D, batch_first=True)

    def forward(self, x):
        return self.inner(x)[0]


def test_a_submodule_that_returns_a_tuple_is_passed_by():
    finding = found(seeded(Recurrent), "placement")
    assert "has shape" not in finding.evidence, finding.evidence
