"""The audit's verdicts, what it leaves behind, and what it says about input it cannot use."""

import functools
import os
import random
import subprocess
import sys
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lnres_utils import Finding, audit
from lnres_utils.auditing import CHECKS, Subject
from lnres_utils.auditing.trees import tensors

B, T, D = 3, 5, 8
MINE = ["examples", "tokens", "causality", "modes", "padding"]


def example(batch=B, tokens=T, width=D, dtype=torch.float32):
    return torch.from_numpy(
        np.random.default_rng(0).normal(0.5, 1.5, (batch, tokens, width))).to(dtype)


def layer(**kwargs):
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(D, 2, 3 * D, **{
        "batch_first": True, "norm_first": True, "dropout": 0.0, **kwargs})


def causal_mask(tokens=T):
    return nn.Transformer.generate_square_subsequent_mask(tokens)


class OnChannels(nn.Module):
    """A module of (B, C, T), for (B, T, D)."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class DropPath(nn.Module):
    def __init__(self, branch, p=0.5):
        super().__init__()
        self.branch, self.p = branch, p

    def forward(self, x):
        if not self.training:
            return x + self.branch(x)
        keep = x.new_empty(len(x), 1, 1).bernoulli_(1 - self.p)
        return x + self.branch(x) * keep / (1 - self.p)


class SomeTokens(nn.Module):
    """In training a random half of the tokens alone goes on, as in masked pre-training."""

    def forward(self, x):
        if self.training:
            x = x[:, torch.randperm(x.shape[1])[: x.shape[1] // 2 + 1]]
        return F.layer_norm(x, x.shape[-1:])


class MixUp(nn.Module):
    def forward(self, x):
        return 0.7 * x + 0.3 * x[torch.randperm(len(x))] if self.training else x


class EachTime(nn.Module):
    """Another factor in each call, of random numbers that no seed reaches."""

    def forward(self, x):
        return x * (1 + int.from_bytes(os.urandom(2), "big"))


class Positions(nn.Module):
    """Learned positions: a fixed number of tokens."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(T, D))

    def forward(self, x):
        return F.layer_norm(x + self.table, (D,))


class Windows(nn.Module):
    """Tokens see each other in windows of 2; the first one is alone."""

    def forward(self, x):
        y = x.clone()
        for start in range(1, x.shape[1] - 1, 2):
            y[:, start:start + 2] = x[:, start:start + 2].mean(1, keepdim=True)
        return y


class Cached(nn.Module):
    """Keeps what it saw, counts its calls, and limits a weight: state of every kind."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(D, D)
        self.norm = OnChannels(nn.BatchNorm1d(D))
        self.calls, self.seen, self.last = 0, [], None
        self.plain = torch.zeros(3)
        self.register_buffer("longest", torch.zeros(1, dtype=torch.int64), persistent=False)
        self.generator = torch.Generator().manual_seed(4)
        self.draws = np.random.default_rng(5)

    def forward(self, x):
        self.calls += 1
        self.seen.append(x.shape)
        self.last = x
        self.plain += 1
        self.longest += x.shape[1]
        torch.rand(2, generator=self.generator)
        self.draws.normal()
        with torch.no_grad():
            self.inner.weight.data.clamp_(-0.2, 0.2)
        return self.norm(self.inner(x))


class Raises(nn.Module):
    """Raises from the n-th call on, after it has changed what it can."""

    def __init__(self, error):
        super().__init__()
        self.inner, self.error = Cached(), error

    def forward(self, x):
        x = self.inner(x)
        CALLS.append(x.dtype)
        if len(CALLS) >= LIMIT["calls"]:
            torch.set_default_dtype(torch.float64)
            torch.set_grad_enabled(True)
            torch.backends.mha.set_fastpath_enabled(False)
            self.inner.norm.inner.weight.requires_grad_(False)
            self.inner.register_forward_hook(lambda *_: None)
            random.random()
            raise self.error("not\ntoday")
        return x


CALLS, LIMIT = [], {"calls": 10**9}  # outside of the module: an audit puts attributes back


# verdicts: module, arguments, {check: verdict}, a word of the evidence of the first one
VERDICTS = {
    "layer norm": (nn.LayerNorm(D), {"causal": True}, dict.fromkeys(MINE, "ok"), "No example"),
    "function": (lambda x: F.rms_norm(x, (D,)), {"causal": True}, dict.fromkeys(MINE, "ok"),
                 "in training"),
    "causal layer": (layer(), {"src_mask": causal_mask(), "causal": True}, {
        "causality": "ok", "tokens": "info", "examples": "ok", "padding": "ok", "modes": "ok"},
        "every position was changed once"),
    "no mask": (layer(), {"causal": True}, {
        "causality": "problem", "tokens": "info", "padding": "info"},
        "4 of 5 positions depend on later ones"),
    "no mask, not said to be causal": (layer(), {}, {"causality": "info"}, "later ones"),
    "padding mask": (layer(), {"src_key_padding_mask": torch.zeros(B, T, dtype=torch.bool)},
                     {"padding": "ok"}, "src_key_padding_mask = 1"),
    "padding, no mask": (layer(), {"padded": True}, {"padding": "problem"}, "real positions"),
    "padding, not said": (layer(), {}, {"padding": "info"}, "Declare `padded=True` if"),
    "padding, not meant": (layer(), {"padded": False}, {"padding": "info"}, "hand one on"),
    "padding pooled": (lambda x: x.mean(1), {"padded": True}, {"padding": "problem"},
                       "5 zeros behind 5 positions along T move the output by"),
    "padding in a pool by a row of its own": (lambda x, m: (x * m).sum(1) / m.sum(1), {
        "m": torch.ones(B, 1, T).mT}, {"padding": "info"}, "move the output"),
    "padding masked in the pool": (
        lambda x, m: (x * m[..., None]).sum(1) / m.sum(1)[:, None], {"m": torch.ones(B, T)},
        {"padding": "ok"}, "marked by m = 0, leave the output as it is"),
    "padding masked, but counted": (
        lambda x, m: (x * m[..., None]).mean(1), {"m": torch.ones(B, T)},
        {"padding": "problem"}, "marked by m = 0, move the output"),
    "mask that counts what is real": (
        lambda x, m: x * m.mean(1)[:, None, None], {"m": torch.ones(B, T)},
        {"padding": "problem"}, "Not marked, they do not."),
    "positions are no mask": (
        lambda x, at: x - x.mean(1, keepdim=True) + at[..., None],
        {"at": torch.arange(T).expand(B, T)}, {"padding": "info"}, "real positions"),
    "sequence first": (layer(batch_first=False), {}, {"examples": "problem", "tokens": "ok"},
                       "In evaluation and in training, changing example"),
    "axes exchanged": (layer(batch_first=False), {}, {"examples": "problem"},
                       "are the axes exchanged (`batch_first`)?"),
    "the whole batch normalized": (lambda x: F.layer_norm(x, x.shape[1:]) + x.mean(0), {},
                                   {"examples": "problem"}, "unit"),
    "batch norm": (OnChannels(nn.BatchNorm1d(D)), {}, {
        "examples": "problem", "modes": "problem", "tokens": "info", "padding": "info"},
        "In training only"),
    "batch norm of steps": (nn.BatchNorm1d(T), {}, {
        "examples": "problem", "tokens": "ok", "padding": "cannot tell"}, "In training only"),
    "batch norm without statistics": (OnChannels(nn.BatchNorm1d(D, track_running_stats=False)), {},
                                      {"modes": "ok", "examples": "problem"}, "same output"),
    "group norm": (OnChannels(nn.GroupNorm(1, D)), {"causal": True}, {
        "causality": "problem", "padding": "info", "examples": "ok", "modes": "ok"}, "by"),
    "dropout": (layer(dropout=0.3), {}, {"modes": "info", "examples": "ok", "padding": "info"},
                "dropout"),
    "drop-path": (DropPath(nn.LayerNorm(D)), {}, {
        "modes": "info", "examples": "ok", "tokens": "ok", "padding": "ok"}, "drop-path"),
    "dropout and running statistics": (
        nn.Sequential(OnChannels(nn.BatchNorm1d(D)), nn.Dropout(0.2)), {},
        {"modes": "problem"}, "the buffer 0.inner.running_mean"),
    "dropout also in evaluation": (lambda x: F.dropout(x, 0.3), {}, {
        "modes": "problem", "causality": "ok"}, "Evaluation draws random numbers"),
    "mixed up in training": (MixUp(), {}, {"modes": "problem", "examples": "problem"},
                             "in evaluation not"),
    "as many draws as negative numbers": (nn.RReLU(), {}, {
        "examples": "cannot tell", "modes": "info", "padding": "ok"}, "how many random numbers"),
    "draws in evaluation": (lambda x: F.gumbel_softmax(x), {}, {
        "padding": "cannot tell", "modes": "problem", "examples": "ok"}, "random draws hide"),
    "another result each time": (EachTime(), {}, dict.fromkeys(MINE, "cannot tell"),
                                 "The same call gives another result"),
    "its own mode": (type("Twice", (nn.Module,), {
        "forward": lambda self, x: x * (1 + self.training)})(), {}, {"modes": "problem"},
        "the module itself asks"),
    "some tokens": (SomeTokens(), {}, {"modes": "info", "padding": "ok",
                                       "causality": "cannot tell"}, "another shape"),
    "windows": (Windows(), {"causal": True}, {"causality": "problem", "tokens": "info"},
                "2 of 5 positions depend on later ones"),
    "fixed length": (Positions(), {}, {"padding": "cannot tell", "tokens": "ok"}, "raised"),
    "tuple": (nn.LSTM(D, D, batch_first=True), {"causal": True}, {
        "causality": "ok", "padding": "ok", "modes": "ok", "examples": "ok"}, "No position"),
    "pooled": (lambda x: x.mean(1), {}, {"tokens": "cannot tell", "causality": "cannot tell",
                                         "examples": "ok"}, "no axis of 5 positions"),
    "whole numbers": (lambda x: x.argmax(-1), {}, {"tokens": "cannot tell",
                                                   "examples": "cannot tell"}, "hide"),
    "constant": (torch.zeros_like, {}, dict.fromkeys(MINE, "cannot tell"), "depend on the input"),
    "nothing finite": (lambda x: x / 0 * 0, {}, dict.fromkeys(MINE, "cannot tell"),
                       "no finite number"),
    "bfloat16 inside": (lambda x: F.layer_norm(x.bfloat16(), (D,)).to(x.dtype), {},
                        dict.fromkeys(MINE, "cannot tell"), "bfloat16"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name):
    module, kwargs, expected, word = VERDICTS[name]
    report = audit(module, example(), checks=MINE, **kwargs)
    assert {check: report[check].verdict for check in expected} == expected, report.text
    assert word in report[next(iter(expected))].evidence


def test_every_finding_is_whole():
    report = audit(layer(), example())
    assert [finding.check for finding in report.findings] == list(CHECKS)
    for finding in report.findings:
        assert len(finding.evidence) > 20 and "\n" not in finding.evidence
        assert finding.evidence[0].isupper() and finding.evidence.endswith((".", "…"))


def test_the_pair_that_leaks_is_named():
    def leak(x):
        y = F.layer_norm(x, (D,)).clone()
        y[:, 1] += 1e-6 * x[:, 3]
        return y

    facts = audit(leak, example(), causal=True)["causality"].facts["T eval"]
    assert (facts["pairs"], facts["ahead"], facts["back"]) == (1, 2, 0)
    evidence = audit(leak, example(), causal=True)["causality"].evidence
    assert "changing position 3 moves position 1" in evidence


def test_the_advice_fits_the_call():
    said = {}
    for name, (module, kwargs) in {
            "mixes both": (lambda x: x - x.mean((0, 1)), {}),
            "no mask to take": (OnChannels(nn.BatchNorm1d(D)), {}),
            "takes a mask": (layer(), {}), "causal": (layer(), {"causal": True}),
            "not causal": (layer(), {"causal": False})}.items():
        report = audit(module, example(), checks=MINE, **kwargs)
        said[name] = report.text, " ".join(report.text.split())
    assert "exchanged" not in said["mixes both"][1]
    assert "padding mask, hand one on" not in said["no mask to take"][1]
    assert "padding mask, hand one on" in said["takes a mask"][1]
    assert "Declare `causal=True` if it must not." in said["takes a mask"][1]
    assert "Declare `padded=True` if inputs get padded." in said["takes a mask"][1]
    assert "`causal" not in said["causal"][1] + said["not causal"][1]
    for text, flat in said.values():
        assert flat.count("A unit is how far") == flat.count("rounding error") == 1
        assert "unit" in flat.split("float64).")[1] and max(map(len, text.splitlines())) <= 100


def test_the_tolerance_is_told_by_mode_where_the_modes_are_not_as_exact():
    def forward(self, x):
        return F.layer_norm(x.float() if self.training else x, (D,)).to(x.dtype)

    inexact = type("Inexact", (nn.Module,), {"forward": forward})()
    said = audit(inexact, example(), checks=["examples"]).facts["measure"]
    assert "in evaluation changes" in said and "in training changes" in said and "float32" in said
    assert audit(inexact, example(), checks=["gradients"]).facts["measure"] == ""
    whole = audit(lambda x: x.round().long(), example(), checks=["tokens"]).facts["measure"]
    assert "each difference counts" in whole


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_any_floating_point_input_is_asked_in_double_precision(dtype):
    report = audit(layer().to(dtype), example(dtype=dtype), checks=["tokens"])
    assert report["tokens"].verdict == "info" and "float64" in report.facts["measure"]


def test_float32_inside_is_seen_and_widens_the_tolerance():
    def inside(x):
        return F.layer_norm(x.float(), (D,)).to(x.dtype)

    reports = [audit(inside, example().double() + offset, checks=["examples"])
               for offset in (0, 1e6)]
    near, far = (report["examples"] for report in reports)
    assert near.verdict == "ok" and near.facts["eval"]["tolerance"] < 1e-4
    assert "float32" in reports[0].facts["measure"] and reports[1].facts["measure"] == ""
    assert far.verdict == "cannot tell" and "float32" in far.evidence


def test_a_causal_filter_by_fast_fourier_transform_is_causal():
    """Rounding reaches all positions; it is no leak."""
    kernel = torch.from_numpy(np.random.default_rng(3).normal(size=T))

    def causal_filter(x):
        spectrum = torch.fft.rfft(kernel.to(x.dtype), 2 * T)[:, None]
        return torch.fft.irfft(torch.fft.rfft(x, 2 * T, dim=1) * spectrum, 2 * T, dim=1)[:, :T]

    for dtype in (torch.float32, torch.float64):
        report = audit(lambda x, dtype=dtype: causal_filter(x.to(dtype)), example(), causal=True)
        assert report["causality"].verdict == "ok" and report["tokens"].verdict == "info"


class ByMode(nn.Module):
    """Mixes all along an axis; in training a hundred times as much of it."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, x):
        return x + (0.5 if self.training else 0.005) * x.sum(self.axis, keepdim=True)


@pytest.mark.parametrize(("check", "axis"), [("examples", 0), ("tokens", 1), ("causality", 1)])
def test_where_the_modes_differ_the_numbers_of_both_are_told(check, axis):
    evidence = audit(ByMode(axis), example(), checks=[check])[check].evidence
    assert evidence.count("In evaluation") == evidence.count("In training") == 1, evidence
    evidence = audit(lambda x: x + x.sum(axis, keepdim=True), example(), checks=[check])[
        check].evidence
    assert evidence.count("In evaluation and in training") == 1 and evidence.count(" unit") == 1


class Dropped(nn.Module):
    """A layer norm that in training adds something where a random number says so."""

    def __init__(self, added, p=0.5):
        super().__init__()
        self.added, self.p = added, p

    def forward(self, x):
        y = F.layer_norm(x, x.shape[-1:])
        if self.training:
            y = torch.where(x.new_empty(*x.shape[:2], 1).bernoulli_(self.p) > 0,
                            self.added(y), y)
        return y


@pytest.mark.parametrize(("module", "verdict", "calls"), [
    (layer(dropout=0.3), "info", 9), (nn.LayerNorm(D), "ok", 9),
    (OnChannels(nn.BatchNorm1d(D, track_running_stats=False)), "info", 48),
    (Dropped(lambda y: 2 * y), "ok", 14),  # another gap than what was dropped: asked in full
    (Dropped(lambda y: y + 1e-6 * y.roll(-1, 1)), "info", 14),  # a leak by what is drawn
    (type("Twice", (nn.Module,), {"forward": lambda self, x: x * (1 + self.training)})(), "ok", 14),
])
def test_training_is_asked_in_full_unless_it_is_evaluation_with_dropout(module, verdict, calls):
    with Subject(module, example(batch=4, tokens=24)) as subject:
        CHECKS["examples"](subject)
        run, made = subject.run, []
        subject.run = lambda *args, **kwargs: made.append(1) or run(*args, **kwargs)
        finding = CHECKS["tokens"](subject)
    assert finding.verdict == verdict and len(made) == calls
    in_full = calls > 9
    assert ("every position was changed once." in finding.evidence) == (verdict == "ok" and in_full)
    assert ("sets of positions" in finding.evidence) == (verdict == "ok" and not in_full)


def test_what_training_alone_drops_and_leaks_is_seen():
    for p in (0.5, 0.9):
        report = audit(Dropped(lambda y: y + 1e-6 * y.roll(-1, 1), p), example(4, 24), causal=True)
        assert report["causality"].verdict == "problem" and report["tokens"].facts["sees"]


IMAGE = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 3, 5))).float()


@pytest.mark.parametrize(("module", "verdict"), [
    (nn.GroupNorm(2, 4), "info"), (nn.Conv2d(4, 4, (1, 3), padding=(0, 1)), "info"),
    (nn.Conv2d(4, 4, 1), "ok"),
    (lambda x: F.layer_norm(x.movedim(1, -1), (4,)).movedim(-1, 1), "ok")])
def test_images_are_asked_along_both_axes(module, verdict):
    report = audit(module, IMAGE, axes="BCHW")
    assert report["tokens"].verdict == report["causality"].verdict == verdict
    assert report["examples"].verdict == "ok"


def test_sequences_with_the_batch_in_the_middle():
    report = audit(layer(batch_first=False), example(T, B), axes="TBD", causal=True)
    assert (report["examples"].verdict, report["causality"].verdict) == ("ok", "problem")


def test_token_numbers_are_input_too():
    torch.manual_seed(0)
    ids = torch.tensor([[1, 5, 2, 7], [3, 3, 0, 6]])
    model = nn.Sequential(nn.Embedding(8, D), nn.LayerNorm(D), nn.Linear(D, 8))
    report = audit(model, ids, axes="BT", causal=True, checks=MINE)
    assert [report[check].verdict for check in MINE] == ["ok"] * 5
    mixed = nn.Sequential(nn.Embedding(8, D), layer())
    assert audit(mixed, ids, axes="BT", causal=True)["causality"].verdict == "problem"


def test_one_example_and_one_position_are_not_enough_and_more_are_added():
    batch_norm = OnChannels(nn.BatchNorm1d(D))
    report = audit(batch_norm, example(batch=1), checks=["examples"])
    assert report["examples"].verdict == "problem"
    assert any("one example" in remark for remark in report.facts["remarks"])
    report = audit(layer(), example(tokens=1), causal=True, checks=["causality"])
    assert report["causality"].verdict == "problem"
    assert any("one position" in remark for remark in report.facts["remarks"])
    mask = torch.zeros(1, T, dtype=torch.bool)  # grows with the batch
    report = audit(layer(), example(batch=1), src_key_padding_mask=mask, checks=["examples"])
    assert report["examples"].verdict == "ok"


def test_a_constant_example_gets_numbers():
    report = audit(layer(), torch.zeros(B, T, D), checks=["tokens"])
    assert report["tokens"].verdict == "info"
    assert any("constant" in remark for remark in report.facts["remarks"])


@pytest.mark.parametrize("x", [torch.full((B, T, D), 6e4), example() * 1e4])
def test_new_numbers_fit_in_half_precision(x):
    report = audit(layer().half(), x.half(), checks=["tokens"])
    assert report["tokens"].verdict == "info", report.text


@pytest.mark.parametrize("module", [
    layer(dropout=0.3), DropPath(nn.LayerNorm(D)), nn.Dropout(0.4), nn.LSTM(D, D, 2, dropout=0.3)])
def test_without_random_draws_dropout_leaves_no_gap(module):
    facts = audit(module, example(), checks=["modes"])["modes"].facts
    assert facts["random"] and facts["gap"] > 1e-3
    assert facts["gap without random draws"] == 0 and facts["cause"] == "dropout"


@pytest.mark.parametrize("moved", [12, 13])
def test_large_batches_are_changed_in_groups(moved):
    def pairs(x):
        return x + x.view(-1, 2, T, D).flip(1).reshape(x.shape) * (
            torch.arange(len(x)) == moved)[:, None, None]

    report = audit(pairs, example(batch=22), checks=["examples"])
    assert report["examples"].verdict == "problem"
    assert f"moves example {moved}" in report["examples"].evidence


def test_gains_are_jittered_so_that_what_they_hide_is_seen():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.zeros(D))

        def forward(self, x):
            return x + self.gain * x.mean(1, keepdim=True)

    assert audit(Scaled(), example(), causal=True)["causality"].verdict == "problem"


def everything(module):
    """All that an audit could leave behind, in a form that can be compared."""
    state = {
        "tensors": {name: value.clone() for name, value in
                    [*module.named_parameters(), *module.named_buffers()]},
        "identities": [id(value) for value in [*module.parameters(), *module.buffers()]],
        "storage": [value.data_ptr() for value in module.parameters()],
        "training": [each.training for each in module.modules()],
        "gradients": [each.grad for each in module.parameters()],
        "asks": [each.requires_grad for each in module.parameters()],
        "hooks": [(list(each._forward_hooks), list(each._backward_hooks))
                  for each in module.modules()],
        "attributes": [sorted(vars(each)) for each in module.modules()],
        "torch": torch.get_rng_state(), "numpy": np.random.get_state()[1].copy(),
        "python": random.getstate(), "grad mode": torch.is_grad_enabled(),
        "default dtype": torch.get_default_dtype(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
    }
    for each in module.modules():
        if isinstance(each, Cached):
            state |= {"calls": each.calls, "seen": list(each.seen), "last": each.last,
                      "plain": each.plain.clone(), "generator": each.generator.get_state(),
                      "draws": str(each.draws.bit_generator.state)}
    return state


def assert_same(before, after):
    assert before.keys() == after.keys()
    for name, value in before.items():
        other = after[name]
        if isinstance(value, dict):
            assert_same(value, other)
        elif isinstance(value, torch.Tensor):
            assert value.dtype == other.dtype and torch.equal(value, other), name
        elif isinstance(value, np.ndarray):
            assert np.array_equal(value, other), name
        elif name == "gradients":
            assert all(a is b for a, b in zip(value, other, strict=True)), name
        else:
            assert value == other, name


def trained(module, x):
    """A module in the middle of training: gradients, mixed modes, a frozen parameter, hooks."""
    module.train()
    y = module(x)
    (y[0] if isinstance(y, tuple) else y).square().sum().backward()
    parameters = list(module.parameters())
    parameters[0].requires_grad_(False)
    list(module.modules())[-1].eval()
    module.register_forward_hook(lambda *_: None)
    return module


MODULES = [
    lambda: layer(dropout=0.2), Cached, lambda: OnChannels(nn.BatchNorm1d(D)),
    lambda: nn.LSTM(D, D, 2, dropout=0.1, batch_first=True),
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(D, D)),
    lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(D, D)),
    lambda: nn.utils.spectral_norm(nn.Linear(D, D)),
    lambda: nn.TransformerEncoder(layer(norm_first=False), 2),
]


@pytest.mark.parametrize("make", MODULES, ids=range(len(MODULES)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_everything_comes_back(make, dtype):
    x = example(dtype=dtype)
    module = trained(make().to(dtype), x)
    before = everything(module)
    x_before = x.clone()
    with torch.no_grad():
        report = audit(module, x)
        assert not torch.is_grad_enabled()
    assert report["examples"].verdict in ("ok", "problem")
    assert_same(before, everything(module))
    assert torch.equal(x, x_before)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("call", [2, 3, 5, 9, 20])
def test_everything_comes_back_when_the_module_raises(call, error, monkeypatch):
    module = trained(Raises(error), example())
    before = everything(module)
    CALLS.clear()
    monkeypatch.setitem(LIMIT, "calls", call)
    if error is RuntimeError:
        report = audit(module, example(), checks=MINE)
        assert any("not today" in finding.evidence for finding in report.findings)
    else:
        with pytest.raises(error):
            audit(module, example(), checks=MINE)
    assert len(CALLS) >= call
    assert_same(before, everything(module))


def test_everything_comes_back_when_a_check_raises(monkeypatch):
    def faulty(subject):
        subject.run(mode="train", dtype=torch.float64)
        raise ZeroDivisionError

    monkeypatch.setitem(CHECKS, "faulty", faulty)
    module = trained(Cached(), example())
    before = everything(module)
    with pytest.raises(ZeroDivisionError):
        audit(module, example(), checks=["faulty"])
    assert_same(before, everything(module))


def test_modules_that_a_function_refers_to_come_back_too():
    module = trained(OnChannels(nn.BatchNorm1d(D)), example())
    before = everything(module)
    for function in (lambda x: module(x), functools.partial(lambda inner, x: inner(x), module),
                     module.forward):
        report = audit(function, example(), checks=["examples", "modes"])
        assert report["examples"].verdict == "problem"  # both modes were reached
        assert_same(before, everything(module))


class Slotted:
    __slots__ = ("model",)

    def __init__(self, model):
        self.model = model


@pytest.mark.parametrize("behind", [
    lambda module: functools.partial(lambda held, x: held["a"](x), {"a": module}),
    lambda module: functools.partial(lambda held, x: held[0][0](x), [[module]]),
    lambda module: functools.partial(lambda held, x: held.model(x), SimpleNamespace(model=module)),
    lambda module: functools.partial(lambda held, x: held.model(x), Slotted(module)),
    lambda module: functools.wraps(module)(lambda x: functools.wraps(module)(
        lambda x: functools.wraps(module)(lambda x: module(x))(x))(x)),
])
def test_modules_held_by_other_objects_are_found(behind):
    module = trained(OnChannels(nn.BatchNorm1d(D)), example())
    before = everything(module)
    report = audit(behind(module), example(), checks=["examples", "gradients"])
    assert report["examples"].facts["where"] == "train only"
    assert report["gradients"].facts["parameters"] == 2
    assert_same(before, everything(module))


def test_a_graph_made_before_and_what_is_hooked_into_it_stay():
    """As of training on several devices, which hooks into where gradients are added up."""
    module, calls = nn.Linear(D, D), []
    loss = module(example()).sum()
    node = module.weight.view_as(module.weight).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: calls.append(1))
    module.weight.register_hook(lambda grad: calls.append(2))
    audit(module, example(), checks=["examples", "constant rows", "gradients"])
    assert calls == []
    gradient, = torch.autograd.grad(loss, [module.weight])
    assert gradient.shape == (D, D)
    module(example()).sum().backward()
    assert calls == [2, 2, 1]


def test_gradients_are_kept_when_the_audit_does_not_start(monkeypatch):
    module = trained(nn.Linear(D, D), example())
    before = everything(module)

    def stopped(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Subject, "_give_constant_examples_numbers", stopped)
    with pytest.raises(KeyboardInterrupt):
        audit(module, example())
    assert_same(before, everything(module))
    assert not torch.is_inference_mode_enabled()


def test_lists_in_lists_queues_and_arrays_come_back():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.nested, self.queue, self.array = {"a": [1]}, deque([1]), np.ones(2)

        def forward(self, x):
            self.nested["a"].append(2)
            self.queue.append(2)
            self.array += 1
            return x * len(self.nested["a"]) * len(self.queue) * self.array[0]

    module = Keeps()
    assert audit(module, example(), checks=["tokens"])["tokens"].verdict == "ok"
    assert (module.nested, module.queue, module.array.tolist()) == (
        {"a": [1]}, deque([1]), [1.0, 1.0])


def test_what_a_call_changes_is_told():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls += 1
            return x + self.calls

    remarks = audit(Counts(), example(), checks=["tokens"]).facts["remarks"]
    assert len(remarks) == 1 and "In evaluation a call changes the buffer `calls`" in remarks[0]
    remarks = audit(nn.ReLU(inplace=True), example(), checks=["tokens"]).facts["remarks"]
    assert len(remarks) == 1 and "changes its input in place" in remarks[0]
    for module in (nn.BatchNorm1d(T), layer(), nn.Identity()):
        assert audit(module, example(), checks=["tokens"]).facts["remarks"] == []


def test_the_example_and_the_arguments_are_left_as_they_are():
    def in_place(x, mask, seen):
        seen.append(1)
        mask += 1
        x *= 2
        return x + mask

    x, mask, seen = example(), torch.ones(T, 1), []
    before = x.clone()
    audit(in_place, x, mask, seen=seen, checks=MINE)
    assert torch.equal(x, before) and torch.equal(mask, torch.ones(T, 1)) and seen == []


def test_tensors_are_found_without_a_copy_of_what_is_beside_them():
    class Cache:
        def __deepcopy__(self, memo):
            copied.append(1)

    x, copied = example(), []
    found = tensors([Cache(), {"a": (x, 3), "b": SimpleNamespace(x=x)}, deque([x])])
    assert len(found) == 1 and found[0] is x and not copied


def test_inside_inference_mode_and_autocast():
    module = nn.LayerNorm(D)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        report = audit(module, example(), causal=True)
        assert torch.is_inference_mode_enabled() and torch.is_autocast_enabled("cpu")
    assert not report.problems, report.text


@pytest.mark.parametrize("compiled", [torch.jit.script, functools.partial(
    torch.jit.trace, example_inputs=example())])
def test_modules_of_torchscript_come_back_in_their_buffers_too(compiled):
    x = example()
    module = compiled(nn.Sequential(nn.Linear(D, D), nn.BatchNorm1d(T)))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    assert audit(module, x, checks=["examples"])["examples"].verdict == "problem"
    assert_same(before, dict(module.state_dict()))


def test_a_module_made_in_inference_mode_is_audited_and_comes_back():
    with torch.inference_mode():
        module = layer()
        before = {name: value.clone() for name, value in module.state_dict().items()}
    report = audit(module, example(), src_mask=causal_mask(), causal=True, checks=MINE)
    assert not report.problems, report.text
    assert_same(before, dict(module.state_dict()))


def test_gradients_of_the_example_are_not_touched():
    x = example().requires_grad_()
    audit(nn.LayerNorm(D), x)
    assert x.grad is None and x.requires_grad


REFUSED = [
    (lambda: audit(nn.LayerNorm, example()), TypeError, "the class LayerNorm; an object"),
    (lambda: audit(3, example()), TypeError, "module is int"),
    (lambda: audit(nn.LayerNorm(D), np.ones((2, 3, D))), TypeError, "x is ndarray"),
    (lambda: audit(nn.LayerNorm(D), example() > 0), TypeError, "torch.bool"),
    (lambda: audit(nn.LayerNorm(D), example().to(torch.complex64)), TypeError, "complex64"),
    (lambda: audit(nn.LayerNorm(D), torch.ones(0, T, D)), ValueError, r"\(0, 5, 8\)"),
    (lambda: audit(nn.LayerNorm(D), torch.ones(T, D)), ValueError, "a letter for each axis"),
    (lambda: audit(nn.LayerNorm(D), example(), axes="BTX"), ValueError, "'BTX'"),
    (lambda: audit(nn.LayerNorm(D), example(), axes="BTT"), ValueError, "'BTT'"),
    (lambda: audit(nn.LayerNorm(D), example(), axes="THD"), ValueError, "no batch axis"),
    (lambda: audit(nn.LayerNorm(D), example() / 0), ValueError, "not finite"),
    (lambda: audit(nn.LayerNorm(D + 1), example()), ValueError,
     r"LayerNorm raised on x of shape \(3, 5, 8\): RuntimeError"),
    (lambda: audit(lambda x: None, example()), ValueError, "NoneType without a tensor"),
    (lambda: audit(nn.LayerNorm(D), example(), checks=["tokens", "token"]), ValueError,
     "no check 'token'; there are examples, tokens"),
    (lambda: audit(nn.LazyLinear(3), example()), ValueError, "has no shape yet"),
    (lambda: Finding("tokens", "fine", ""), ValueError, "'fine'"),
    (lambda: audit(nn.LayerNorm(D), example(), seed=None), ValueError, "seed is None"),
    (lambda: audit(nn.LayerNorm(D), example(), seed=2**70), ValueError, "a whole number from 0"),
    (lambda: audit(nn.LayerNorm(D), example(), causal="yes"), TypeError, "causal is 'yes'"),
    (lambda: audit(nn.LayerNorm(D), example(), padded="no"), TypeError, "padded is 'no'"),
    (lambda: audit(nn.LayerNorm(D), example(), output=3), TypeError, "output is int"),
    (lambda: audit(nn.LayerNorm(D), example(), output=lambda y: None), ValueError,
     "`output` picked NoneType"),
    (lambda: audit(nn.LayerNorm(D), example(), checks=3), TypeError, "checks is 3"),
    (lambda: audit(nn.LayerNorm(D), example(), checks=[["half"]]), TypeError, "a list of names"),
    (lambda: audit(nn.LayerNorm(D), example(), checks=[]), ValueError, "checks names none"),
    (lambda: audit(nn.LayerNorm(D), example()[0, 0], axes="B"), ValueError, "beside the examples"),
    (lambda: audit(nn.LayerNorm(D), example().to_sparse()), TypeError, "a dense tensor"),
    (lambda: audit(nn.LayerNorm(D), example().to("meta")), ValueError, "the device meta"),
    (lambda: audit(nn.LayerNorm(D), example().to(torch.float8_e4m3fn)), TypeError, "float8"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_cannot_be_audited_is_said_in_one_line(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_missing_finding_is_named_with_those_there_are():
    report = audit(nn.LayerNorm(D), example(), checks="tokens")
    with pytest.raises(KeyError, match="the report has tokens"):
        report["causality"]


def test_another_seed_asks_with_other_numbers():
    found = {audit(layer(), example(), checks=["causality"], seed=seed)["causality"].facts[
        "T eval"]["largest"] for seed in range(3)}
    assert len(found) == 3
    again = [audit(layer(), example(), checks=["causality"]) for _ in range(2)]
    assert again[0] == again[1]


def test_output_picks_what_is_looked_at():
    def two(x):
        return F.layer_norm(x, (D,)), x.flip(1)

    assert audit(two, example(), causal=True)["causality"].verdict == "ok"
    report = audit(two, example(), causal=True, output=lambda returned: returned[1])
    assert report["causality"].verdict == "problem"


def test_a_run_starts_from_the_same_state_each_time():
    module = Cached()
    with Subject(module, example()) as subject:
        subject.check_parameters()
        first = subject.run(mode="train")
        subject.run(mode="train", seed=3)
        assert torch.equal(subject.run(mode="train"), first)
        assert module.calls == 1 and len(module.seen) == 1


def test_importing_the_package_imports_no_torch():
    code = ("import sys, lnres_utils; lnres_utils.AuditReport; lnres_utils.auditing.LABELS; "
            "sys.exit('torch' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
