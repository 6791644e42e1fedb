"""Answers on RMSNorm of the wrong kind, and ones that are right on tame inputs only."""

import numpy as np
import pytest
import torch
from conftest import checked, named
from torch import nn

from lnres_utils import norms, specs

SEEDS = (None, 21)


def rms_norm_that(does):
    def rms_norm(x, gamma, eps=1e-6):
        return does(norms.rms_norm(x, gamma, eps))

    return rms_norm


def qk_norm(queries, keys, query_gain, key_gain, heads, eps=1e-6):
    def per_head(x, gain):
        return norms.rms_norm(x.reshape(*x.shape[:2], heads, -1), gain, eps).reshape(x.shape)

    return per_head(queries, query_gain), per_head(keys, key_gain)


def in_place(weight, bias):
    weight -= weight.mean(0)
    return weight, bias - bias.mean()


def widening_in_place(weight, to):
    weight += 1 if to == "plain" else -1
    return weight.astype(np.result_type(weight, np.float32))


class WithABias(norms.RMSNorm):
    def __init__(self, width, eps=1e-6):
        super().__init__(width, eps)
        self.bias = nn.Parameter(torch.zeros(width))


class OnArrays(norms.RMSNorm):
    def forward(self, hidden):
        return super().forward(hidden).detach().numpy()


class Integers(norms.RMSNorm):
    def forward(self, hidden):
        return super().forward(hidden).int()


def groups(model):
    trained = [p for p in model.parameters() if p.requires_grad]
    return [p for p in trained if p.ndim > 1], [p for p in trained if p.ndim < 2]


def for_an_optimizer(model):
    decayed, others = groups(model)
    return [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]


def of_names(model):
    return tuple([name for name, p in model.named_parameters() if (p.ndim > 1) == wanted]
                 for wanted in (True, False))


@pytest.mark.parametrize(("exercise", "answer", "outcome", "words"), [
    ("rms_norm", rms_norm_that(lambda y: None), "wrong", "value is None: is there a `return`?"),
    ("rms_norm", rms_norm_that(lambda y: y.astype(np.float16)), "wrong",
     "y has dtype float16; float64 was expected"),
    ("rms_norm", rms_norm_that(torch.from_numpy), "wrong", "a NumPy array was expected"),
    ("rms_norm", lambda x, gamma, beta, eps: x, "wrong", "cannot be called as"),
    ("rms_norm_backward", lambda dy, x, gamma, eps=1e-6: dy, "wrong",
     "returned one object; 2 values were expected: dx, dgamma"),
    ("rms_norm_backward", lambda dy, x, gamma, eps=1e-6: (dy, x, gamma), "wrong",
     "returned 3 values; 2 values were expected"),
    ("qk_norm", lambda *arguments: qk_norm(*arguments)[0], "wrong", "2 values were expected: quer"),
    ("qk_norm", lambda q, k, gain, heads, eps=1e-6: (q, k), "wrong", "cannot be called as"),
    ("fold_centering", lambda weight, bias: weight, "wrong", "2 values were expected: weight, bia"),
    ("fold_centering", in_place, "wrong", "The values are right, but weight changed"),
    ("convert_gain", lambda weight, to: None, "wrong", "is there a `return`?"),
    ("convert_gain", lambda weight, to: weight.tolist(), "wrong", "is a list of length"),
    ("convert_gain", widening_in_place, "wrong", "weight"),
    ("RMSNorm", norms.rms_norm, "wrong", "a class was expected"),
    ("RMSNorm", type("RMSNorm", (), {"__init__": lambda self, width, eps=1e-6: None}), "wrong",
     "not a torch.nn.Module"),
    ("RMSNorm", WithABias, "raised", "There is a bias; an RMSNorm has its gain alone"),
    ("RMSNorm", OnArrays, "raised", "`forward` returned a ndarray; a torch tensor was expected"),
    ("RMSNorm", Integers, "wrong", "`forward` returned a tensor of dtype torch.int32; real"),
    ("decay_groups", lambda model: None, "wrong", "2 values were expected: decayed, not decayed"),
    ("decay_groups", lambda model: model.parameters(), "wrong", "returned one object"),
    ("decay_groups", for_an_optimizer, "wrong", "the parameters decayed are a dict; a list was"),
    ("decay_groups", lambda model: tuple(map(set, groups(model))), "wrong",
     "the parameters decayed are a set, which has no order: an optimizer refuses it; a list was"),
    ("decay_groups", of_names, "wrong", "among the parameters decayed is 'tokens.weight'"),
    ("decay_groups", lambda model: ([p.clone() for p in groups(model)[0]], []), "wrong",
     "among the parameters decayed is a Tensor; parameters of the model were expected"),
    ("decay_groups", lambda model: (groups(model)[0], None), "wrong",
     "the parameters not decayed are None; a list was expected"),
])
def test_an_answer_of_the_wrong_kind_gets_a_clear_line(exercise, answer, outcome, words):
    report = checked(exercise, answer)
    assert report.outcome == outcome, report.text
    assert words in report.text
    assert "Traceback" not in report.text and report.points < report.max_points


def test_a_projection_in_float64_on_the_wrong_side_is_two_mistakes():
    def on_the_right(weight, bias):
        inputs = weight.shape[1]
        return weight @ (np.eye(inputs) - 1 / inputs), bias - bias.mean()

    report = checked("fold_centering", on_the_right)
    assert report.certainty == "both" and named(report) == {"over-inputs", "float64-weight"}


def test_a_parameter_in_the_wrong_list_is_told_in_words():
    def by_one_axis(model):
        trained = [p for p in model.parameters() if p.requires_grad]
        return [[p for p in trained if (p.ndim == 1) == wanted] for wanted in (False, True)]

    report = checked("decay_groups", by_one_axis)
    assert "gain that is a single number is 'decayed'; 'not decayed' was expected" in report.text


# Right on tame inputs


def scaled(x, gamma, eps, mean_square=None, after=lambda z: z):
    mean_square = (x**2).mean(-1, keepdims=True) if mean_square is None else mean_square
    return (after(x / np.sqrt(mean_square + eps)) * gamma).astype(x.dtype)


RMS = {  # wrong ways: (x, gamma, eps) -> y
    "clipped at 3": lambda x, g, e: scaled(x, g, e, after=lambda z: np.clip(z, -3, 3)),
    "absolute gain": lambda x, g, e: scaled(x, np.abs(g), e),
    "positive gain": lambda x, g, e: scaled(x, np.maximum(g, 0), e),
    "zero divided by zero": lambda x, g, e: scaled(x, g, e) * (np.abs(x).max(-1, keepdims=True)
                                                              / np.abs(x).max(-1, keepdims=True)),
    "rounded mean square": lambda x, g, e: scaled(x, g, e, np.round((x**2).mean(
        -1, keepdims=True), 2)),
    "statistics of the first row": lambda x, g, e: scaled(x, g, e, (x.reshape(
        -1, x.shape[-1])[0] ** 2).mean()),
    "single precision inside": lambda x, g, e: scaled(
        x, g, e, (x.astype(np.float32) ** 2).mean(-1, keepdims=True)),
    "median square": lambda x, g, e: scaled(x, g, e, np.median(x**2, -1, keepdims=True)),
    "half of epsilon": lambda x, g, e: scaled(x, g, e / 2),
    "gain of the other end": lambda x, g, e: scaled(x, g[::-1], e),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", RMS)
def test_an_rms_norm_that_is_wrong_on_legal_rows_is_refused_and_gets_no_wrong_name(way, seed):
    report = checked("rms_norm", lambda x, gamma, eps=1e-6: RMS[way](x, gamma, eps), seed)
    assert report.outcome == "wrong" and not named(report), report.text


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", RMS)
def test_queries_and_keys_are_judged_like_hidden_states(way, seed):
    if way in ("single precision inside", "clipped at 3"):
        return  # heads are narrow and of ordinary size
    def per_head(x, gain, heads, eps):
        return RMS[way](x.reshape(*x.shape[:2], heads, -1), gain, eps).reshape(x.shape)

    for both in (True, False):
        def answer(q, k, q_gain, k_gain, heads, eps=1e-6, both=both):
            right = qk_norm(q, k, q_gain, k_gain, heads, eps)
            wrong = per_head(k, k_gain, heads, eps)
            return (per_head(q, q_gain, heads, eps) if both else right[0]), wrong

        report = checked("qk_norm", answer, seed)
        assert report.outcome == "wrong" and not named(report), report.text


class Base(norms.RMSNorm):
    dtypes = ()

    def forward(self, hidden):
        y = super().forward(hidden)
        return self.wrong(hidden, y) if hidden.dtype in self.dtypes else y


def module(wrong, *dtypes):
    return type("RMSNorm", (Base,), {"wrong": wrong, "dtypes": dtypes})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("wrong", "dtypes", "points"), [
    (lambda self, x, y: x, (torch.bfloat16,), 9),
    (lambda self, x, y: y.float(), (torch.bfloat16,), 9),
    (lambda self, x, y: y.half(), (torch.bfloat16,), 9),
    (lambda self, x, y: y.double(), (torch.float32,), 7),
    (lambda self, x, y: y * 1.02, (torch.bfloat16,), 9),
    (lambda self, x, y: y * (1 + 2**-10), (torch.float16,), 8),
    (lambda self, x, y: y.clamp(-3, 3), (torch.float64,), 8),
])
def test_each_dtype_of_the_module_has_its_points(wrong, dtypes, points, seed):
    report = checked("RMSNorm", module(wrong, *dtypes), seed)
    assert report.outcome == "wrong" and report.points <= points, report.text


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_half_precision_show_where_the_cast_stands_and_never_where_it_is_free(seed):
    """Rounding before the gain gives other numbers; one ulp of float32 gives the same."""
    cases = [case for case in specs.get("RMSNorm").cases(np.random.default_rng(seed))
             if case.group == "float16"]
    assert len(cases) == 2
    for case in cases:
        x, weight = (case.inputs[name].astype(np.float64) for name in ("x", "weight"))
        z = x / np.sqrt((x**2).mean(-1, keepdims=True) + case.inputs["eps"])
        once = (z * weight).astype(np.float16)
        assert np.array_equal(x.astype(np.float16), x) and np.abs(x).max(-1).min() > 256
        assert (z.astype(np.float16) * weight.astype(np.float16) != once).any()
        for nudge in (1 - 3e-7, 1 + 3e-7):
            assert np.array_equal((z * weight * nudge).astype(np.float16), once)
