"""Answers that are right on tame inputs and wrong on legal ones win no points and no wrong name."""

import itertools
import math

import numpy as np
import pytest
import torch
from answers.fresh import fresh_inputs
from conftest import checked, named
from torch import nn

from lnres_utils import norms, specs

SEEDS = (None, 21)


def normalized(x, eps, mean=None, axis=-1, after=lambda z: z, std=None):
    mean = x.mean(axis, keepdims=True) if mean is None else mean
    std = np.sqrt(x.var(axis, keepdims=True) + eps) if std is None else std
    return after((x - mean) / std)


def _means(x, axis=-1):
    return x.mean(axis, keepdims=True)


NORMS = {  # wrong ways to normalize rows: (rows, eps) -> rows
    "integer mean": lambda x, eps: normalized(x, eps, _means(x) // 1),
    "truncated mean": lambda x, eps: normalized(x, eps, np.trunc(_means(x))),
    "rounded mean": lambda x, eps: normalized(x, eps, np.round(_means(x))),
    "absolute mean": lambda x, eps: normalized(x, eps, np.abs(_means(x))),
    "mean above zero": lambda x, eps: normalized(x, eps, np.maximum(_means(x), 0)),
    "mean below one": lambda x, eps: normalized(x, eps, np.minimum(_means(x), 1)),
    "mean and its whole part": lambda x, eps: normalized(x, eps, _means(x) + _means(x) // 1),
    "clipped at 3": lambda x, eps: normalized(x, eps, after=lambda z: np.clip(z, -3, 3)),
    "clipped at 2.45": lambda x, eps: normalized(x, eps, after=lambda z: np.clip(z, -2.45, 2.45)),
    "clipped above": lambda x, eps: normalized(x, eps, after=lambda z: np.minimum(z, 3.9)),
    "clipped below": lambda x, eps: normalized(x, eps, after=lambda z: np.maximum(z, -3.9)),
    "NaN where constant": lambda x, eps: normalized(x, np.where(
        x.var(-1, keepdims=True) == 0, np.nan, eps)),
    "zero divided by zero": lambda x, eps: normalized(x, eps) * (x.std(-1, keepdims=True)
                                                                  / x.std(-1, keepdims=True)),
    "single precision inside": lambda x, eps: normalized(
        x.astype(np.float32), np.float32(eps)).astype(x.dtype),
}


def standardize_by(norm):
    return lambda x, eps=1e-5: norm(x, eps)


def layer_norm_by(norm):
    return lambda x, gamma, beta, eps=1e-5: (norm(x, eps) * gamma + beta).astype(x.dtype)


def channel_norm_by(norm):
    def channel_norm(x, gamma, beta, eps=1e-5):
        return np.moveaxis(norm(np.moveaxis(x, 1, -1), eps) * gamma + beta, -1, 1)

    return channel_norm


def axis_norm_by(norm, kinds=("layer", "batch", "instance", "group")):
    """``norm`` in the given kinds, a right norm in the others."""

    def over(x, eps, axes, norm):
        rest = [axis for axis in range(x.ndim) if axis not in axes]
        moved = x.transpose(rest + list(axes))
        flat = moved.reshape(*(x.shape[axis] for axis in rest), -1)
        return norm(flat, eps).reshape(moved.shape).transpose(np.argsort(rest + list(axes)))

    def axis_norm(x, kind, groups=1, eps=1e-5):
        chosen = norm if kind in kinds else normalized
        if kind == "group":
            split = x.reshape(*x.shape[:2], groups, -1)
            return over(split, eps, (1, 3), chosen).reshape(x.shape)
        return over(x, eps, {"layer": (2,), "batch": (0, 1), "instance": (1,)}[kind], chosen)

    return axis_norm


def backward_by(norm):
    """Right but for the normalized vector."""

    def layer_norm_backward(dy, x, gamma, eps=1e-5):
        z, d = norm(x, eps), x.shape[-1]
        rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
        dz = dy * gamma
        dx = rstd * (dz - _means(dz) - z * _means(dz * z))
        return dx, (dy * z).reshape(-1, d).sum(0), dy.reshape(-1, d).sum(0)

    return layer_norm_backward


class Base(norms.LayerNorm):
    """Right; what is wrong is in its subclasses."""

    def forward(self, hidden):
        return self.scaled(self.z(hidden))

    def z(self, hidden):
        variance, mean = torch.var_mean(hidden, -1, correction=0, keepdim=True)
        return (hidden - mean) / torch.sqrt(variance + self.eps)

    def scaled(self, z):
        return z * self.weight + self.bias


def module(**methods):
    return type("LayerNorm", (Base,), methods)


def module_by(norm):
    """The values of ``norm``, the gradients of the right one."""

    def z(self, hidden):
        right = Base.z(self, hidden)
        wrong = torch.from_numpy(np.asarray(norm(hidden.detach().numpy(), self.eps)))
        return right + (wrong - right).detach().to(right.dtype)

    return module(z=z)


MAKERS = {"standardize": standardize_by, "layer_norm": layer_norm_by, "axis_norm": axis_norm_by,
          "channel_norm": channel_norm_by, "layer_norm_backward": backward_by,
          "LayerNorm": module_by}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "way"), list(itertools.product(MAKERS, NORMS)))
def test_a_norm_that_is_wrong_on_legal_rows_is_refused_and_gets_no_wrong_name(name, way, seed):
    report = checked(name, MAKERS[name](NORMS[way]), seed)
    assert report.outcome == "wrong" and report.points < report.max_points
    assert not named(report), report.text


@pytest.mark.parametrize("name", MAKERS)
def test_the_makers_themselves_make_right_answers(name):
    assert checked(name, MAKERS[name](normalized)).outcome == "right"


@pytest.mark.parametrize("way", NORMS)
@pytest.mark.parametrize("kind", ["layer", "batch", "instance", "group"])
def test_each_kind_of_axis_norm_is_judged_like_the_others(kind, way):
    report = checked("axis_norm", axis_norm_by(NORMS[way], (kind,)))
    assert report.outcome == "wrong" and not named(report)


AFFINE = {  # wrong ways to scale and shift: (z, gamma, beta)
    "absolute gain": lambda z, g, b: z * abs(g) + b,
    "absolute bias": lambda z, g, b: z * g + abs(b),
    "gain not below zero": lambda z, g, b: z * g.clip(0) + b,
    "bias not below zero": lambda z, g, b: z * g + b.clip(0),
    "root of the squared gain": lambda z, g, b: z * (g**2) ** 0.5 + b,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", AFFINE)
def test_a_gain_that_only_works_when_positive_is_refused(way, seed):
    affine = AFFINE[way]

    def layer_norm(x, gamma, beta, eps=1e-5):
        return affine(normalized(x, eps), gamma, beta).astype(x.dtype)

    def channel_norm(x, gamma, beta, eps=1e-5):
        z = normalized(np.moveaxis(x, 1, -1), eps)
        return np.moveaxis(affine(z, gamma, beta), -1, 1)

    def backward(dy, x, gamma, eps=1e-5):
        return norms.layer_norm_backward(dy, x, affine(np.float64(1), gamma, gamma * 0), eps)

    answers = {"layer_norm": layer_norm, "channel_norm": channel_norm,
               "LayerNorm": module(scaled=lambda self, z: affine(z, self.weight, self.bias))}
    if "gain" in way:
        answers["layer_norm_backward"] = backward
    for name, answer in answers.items():
        report = checked(name, answer, seed)
        assert report.outcome == "wrong" and not named(report), (name, report.text)


# Modules: driven as the statement says.


def _in_double(self, width, eps=1e-5):
    Base.__init__(self, width, eps)
    self.double()


def _writes(self, hidden):
    y = Base.forward(self, hidden)
    hidden.data.sub_(hidden.data.mean(-1, keepdim=True))
    return y


def _same_in_eval(self, hidden):
    return Base.forward(self, hidden) if self.training else hidden


def _three_axes(self, hidden):
    batch, tokens, width = hidden.shape[:3]
    return Base.forward(self, hidden)


def _by_axis(axis):
    def forward(self, hidden):
        return Base.forward(self, hidden) if hidden.ndim != axis else hidden

    return forward


def _twice_in_eval(self, hidden):
    return Base.forward(self, hidden) if self.training else Base.forward(self, hidden) * 2


MODULES = {  # (answer, words that its report says)
    "returns its input in evaluation mode": (module(forward=_same_in_eval), ""),
    "doubles in evaluation mode": (module(forward=_twice_in_eval), ""),
    "three axes only": (module(forward=_three_axes), "raised a ValueError"),
    "passes a vector through": (module(forward=_by_axis(1)), ""),
    "passes a matrix through": (module(forward=_by_axis(2)), ""),
    "float64 parameters": (module(__init__=_in_double),
                           "y has dtype float64; float32 was expected"),
    "single precision out": (module(forward=lambda self, h: Base.forward(self, h).float()),
                             "y has dtype float32; float64 was expected"),
    "single precision inside": (module(forward=lambda self, h: Base.scaled(
        self, Base.z(self, h.float()).to(h.dtype))), ""),
    "double precision out": (module(forward=lambda self, h: Base.forward(self, h.double())),
                             "y has dtype float64; float32 was expected"),
    "writes to its input": (module(forward=_writes), "hidden"),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", MODULES)
def test_a_module_is_driven_as_its_statement_says(way, seed):
    answer, words = MODULES[way]
    report = checked("LayerNorm", answer, seed)
    assert report.outcome in ("wrong", "raised") and report.points < report.max_points
    assert words in report.text
    assert named(report) == ({"changes-its-input"} if "writes" in way else set()), report.text


def _frozen(*names):
    def __init__(self, width, eps=1e-5):
        Base.__init__(self, width, eps)
        for name in names:
            getattr(self, name).requires_grad_(False)

    return module(__init__=__init__)


def _scaled(of):
    return module(scaled=lambda self, z: of(z, self.weight, self.bias))


class Bare(nn.Module):
    """Without gain and bias."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, hidden):
        return Base.z(self, hidden)


def bare(keep):
    """``keep(module, gain, bias)`` keeps them so that no state is saved."""

    def __init__(self, width, eps=1e-5):
        Bare.__init__(self, width, eps)
        keep(self, torch.ones(width), torch.zeros(width))

    return type("LayerNorm", (Bare,), {"__init__": __init__})


def _in_a_list(self, gain, bias):
    self.affine = [nn.Parameter(gain), nn.Parameter(bias)]


def _as_unsaved_buffers(self, gain, bias):
    self.register_buffer("weight", gain, persistent=False)
    self.register_buffer("bias", bias, persistent=False)


def _created_in_forward(self, hidden):
    gain = nn.Parameter(torch.ones(hidden.shape[-1], dtype=hidden.dtype))
    return Base.z(self, hidden) * gain


def _eps_kept(keep):
    def __init__(self, width, eps=1e-5):
        Base.__init__(self, width, eps)
        value = self.eps
        del self.eps
        keep(self, torch.tensor(float(value)))

    return module(__init__=__init__)


NAMED_MODULES = {  # (answer, the name it must get, words that are true of it)
    "both frozen": (_frozen("weight", "bias"), "nothing-trains", "`requires_grad=False`"),
    "gain frozen": (_frozen("weight"), "gain-not-trained", "`requires_grad=False`"),
    "bias frozen": (_frozen("bias"), "bias-not-trained", "`requires_grad=False`"),
    "both by .data": (_scaled(lambda z, w, b: z * w.data + b.data), "nothing-trains",
                      "detached in `forward`"),
    "gain by .data": (_scaled(lambda z, w, b: z * w.data + b), "gain-not-trained",
                      "detached in `forward`"),
    "bias detached": (_scaled(lambda z, w, b: z * w + b.detach()), "bias-not-trained",
                      "detached in `forward`"),
    "no gain and bias": (Bare, "plain-tensors", "The `state_dict` is empty"),
    "parameters in a list": (bare(_in_a_list), "plain-tensors", "The `state_dict` is empty"),
    "buffers that are not saved": (bare(_as_unsaved_buffers), "plain-tensors",
                                   "The `state_dict` is empty"),
    "parameters made in forward": (type("LayerNorm", (Bare,), {"forward": _created_in_forward}),
                                   "plain-tensors", "The `state_dict` is empty"),
    "eps as a buffer": (_eps_kept(lambda self, eps: self.register_buffer("eps", eps)),
                        "eps-trained", "ε is in the `state_dict`"),
    "eps as a frozen parameter": (_eps_kept(lambda self, eps: setattr(
        self, "eps", nn.Parameter(eps, requires_grad=False))), "eps-trained",
        "ε is in the `state_dict`"),
    "eps as a parameter": (_eps_kept(lambda self, eps: setattr(self, "eps", nn.Parameter(eps))),
                           "eps-trained", "ε is in the `state_dict`"),
    "statistics detached": (module(z=lambda self, h: (h - h.mean(-1, True).detach()) / torch.sqrt(
        h.var(-1, correction=0, keepdim=True) + self.eps).detach()), "statistics-detached",
        "carry no gradient"),
}


@pytest.mark.parametrize("way", NAMED_MODULES)
def test_what_is_said_of_a_module_is_true_of_it(way):
    answer, name, words = NAMED_MODULES[way]
    report = checked("LayerNorm", answer)
    assert named(report) == {name}, report.text
    assert words in report.text
    for untrue in ("is not an `nn.Parameter`, so", "is a trainable parameter", "plain tensors"):
        assert untrue not in report.text


def _numpy_inside(self, hidden):
    return torch.from_numpy(norms.standardize(hidden.detach().numpy().ravel())).reshape(
        hidden.shape)


def _without_grad(self, hidden):
    with torch.no_grad():
        return Base.forward(self, hidden)


LINES_OF_THE_DRIVE = {  # what it returns: words of the report
    "detached input": (lambda self, h: Base.forward(self, h.detach()),
                       "no gradient reaches the input: it was detached"),
    "input by .data": (lambda self, h: Base.forward(self, h.data), "no gradient reaches the input"),
    "detached output": (lambda self, h: Base.forward(self, h).detach(),
                        "no gradient reaches the input"),
    "no_grad": (_without_grad, "or under `torch.no_grad()`"),
    "bfloat16": (lambda self, h: Base.forward(self, h).bfloat16(),
                 "`forward` returned a tensor of dtype torch.bfloat16"),
    "sparse": (lambda self, h: Base.forward(self, h).to_sparse(),
               "`forward` returned a tensor with the layout torch.sparse_coo"),
    "meta": (lambda self, h: Base.forward(self, h).to("meta"),
             "`forward` returned a tensor on the device meta"),
    "quantized": (lambda self, h: torch.quantize_per_tensor(
        Base.forward(self, h).detach().float(), 0.1, 0, torch.qint8),
        "`forward` returned a tensor of dtype torch.qint8"),
    "one number": (lambda self, h: Base.forward(self, h).sum(),
                   "of shape () for an input of shape (2, 4, 5)"),
    "one feature less": (lambda self, h: Base.forward(self, h)[..., :-1],
                         "of shape (2, 4, 4) for an input of shape (2, 4, 5)"),
}


@pytest.mark.parametrize("way", LINES_OF_THE_DRIVE)
def test_a_line_of_ours_is_not_blamed_on_the_answer(way):
    forward, words = LINES_OF_THE_DRIVE[way]
    report = checked("LayerNorm", module(forward=forward))
    assert report.outcome == "wrong", report.text
    assert words in report.text and not named(report)
    for ours in ("NoneType", "RuntimeError", "TypeError", "AttributeError", "element 0"):
        assert ours not in report.text


class WithExtraState(Base):
    def get_extra_state(self):
        return {"version": 2}

    def set_extra_state(self, state):
        pass


def test_a_state_of_another_kind_is_shown_and_not_blamed():
    report = checked("LayerNorm", WithExtraState)
    assert dict((group, got) for group, got, _ in report.scores)["state_dict"] == 0
    assert "AttributeError" not in report.text


# Defaults


def defaults_of(kind, groups=1, eps=1e-5):
    """Right, but with these defaults for one kind."""

    def axis_norm(x, kind_given, groups_given=None, eps_given=None):
        mine = kind_given == kind
        groups_given = (groups if mine else 1) if groups_given is None else groups_given
        eps_given = (eps if mine else 1e-5) if eps_given is None else eps_given
        return norms.axis_norm(x, kind_given, groups_given, eps_given)

    return axis_norm


@pytest.mark.parametrize("eps", [0, 1e-12, 1e-6, 2e-5, 1e-3])
@pytest.mark.parametrize("kind", ["layer", "batch", "instance", "group"])
def test_the_default_epsilon_of_each_kind_is_judged(kind, eps):
    report = checked("axis_norm", defaults_of(kind, eps=eps))
    assert report.outcome == "wrong" and report.points == report.max_points - 1
    assert not named(report)


def two_groups(x, kind, groups=2, eps=1e-5):
    return norms.axis_norm(x, kind, groups if x.shape[-1] % groups == 0 else 1, eps)


def all_groups(x, kind, groups=None, eps=1e-5):
    return norms.axis_norm(x, kind, x.shape[-1] if groups is None else groups, eps)


@pytest.mark.parametrize("answer", [two_groups, all_groups])
def test_another_default_of_groups_is_refused(answer):
    report = checked("axis_norm", answer)
    assert report.outcome == "wrong" and report.points == report.max_points - 1


ZERO = {
    "standardize": lambda x, eps=0: norms.standardize(x, eps),
    "layer_norm": lambda x, gamma, beta, eps=0: norms.layer_norm(x, gamma, beta, eps),
    "axis_norm": lambda x, kind, groups=1, eps=0: norms.axis_norm(x, kind, groups, eps),
    "channel_norm": lambda x, gamma, beta, eps=0: norms.channel_norm(x, gamma, beta, eps),
    "layer_norm_backward": lambda dy, x, gamma, eps=0: norms.layer_norm_backward(
        dy, x, gamma, eps),
    "LayerNorm": module(__init__=lambda self, width, eps=0: Base.__init__(self, width, eps)),
}


@pytest.mark.parametrize("name", ZERO)
def test_a_default_of_zero_is_called_zero(name):
    report = checked(name, ZERO[name])
    assert {id.removeprefix("backward-") for id in named(report)} == {"eps-default-0"}, report.text
    assert "The default of `eps` is 0; the exercise asks for 1e-5" in report.text


@pytest.mark.parametrize(("way", "name"), [
    (lambda x, eps=1e-5: (x - x.mean()) / x.std(), "eps-missing"),
    (lambda x, eps=1e-5: (x - x.mean()) / np.sqrt(x.var() + 1e-18), "eps-tiny"),
    (lambda x, eps=1e-5: (x - x.mean()) / (x.std() + 1e-18), "eps-tiny"),
    (lambda x, eps=1e-5: (x - x.mean()) / (x.std() or 1), "eps-tiny"),
    (lambda x, eps=1e-12: normalized(x, eps), "eps-default-1e-12"),
    (lambda x, eps=1e-20: normalized(x, eps), "eps-default-1e-12"),
])
def test_an_epsilon_without_effect_is_told_from_a_small_default(way, name):
    report = checked("standardize", way)
    assert named(report) == {name} and report.certainty == "one", report.text


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_each_rank_of_the_backward_pass_is_tried(rank):
    def layer_norm_backward(dy, x, gamma, eps=1e-5):
        dx, dgamma, dbeta = norms.layer_norm_backward(dy, x, gamma, eps)
        return (dx, dgamma, dbeta) if x.ndim != rank else (dx, dgamma, dbeta * 2)

    report = checked("layer_norm_backward", layer_norm_backward)
    assert report.outcome == "wrong" and not named(report)


# Numbers to predict

RIGHT = {"width_one": 3, "largest_of_17": 4, "ratio_n_minus_1": math.sqrt(0.8),
         "std_at_eps": math.sqrt(0.5), "negative_scale": -1, "directions_left": 6}


@pytest.mark.parametrize(("question", "number", "right"), [
    ("width_one", 3.015, False), ("width_one", 3 + 1e-5, False), ("width_one", 3.0, True),
    ("largest_of_17", 4.02, False), ("largest_of_17", np.sqrt(16), True),
    ("negative_scale", -1.004, False), ("negative_scale", np.int64(-1), True),
    ("directions_left", 6.03, False), ("directions_left", 6, True),
    ("ratio_n_minus_1", 0.9, False), ("ratio_n_minus_1", 0.88, False),
    ("ratio_n_minus_1", 0.89, True), ("ratio_n_minus_1", 0.8993, True),
    ("ratio_n_minus_1", 0.8995, False),
    ("std_at_eps", 0.7, False), ("std_at_eps", 0.72, False), ("std_at_eps", 0.71, True),
    ("std_at_eps", 0.7121, True), ("std_at_eps", 0.7122, False),
    ("width_one", "3", False), ("width_one", b"3", False), ("width_one", math.inf, False),
])
def test_two_decimals_are_enough_and_whole_numbers_are_exact(question, number, right):
    report = checked("predict_layer_norm", lambda: {**RIGHT, question: number})
    assert report.points == (6 if right else 5)
    assert (report.outcome == "right") is right


@pytest.mark.parametrize(("question", "number", "name"), [
    ("largest_of_17", 4.12, "bounded-by-radius"), ("largest_of_17", 4.123, "bounded-by-radius"),
    ("largest_of_17", np.sqrt(17), "bounded-by-radius"),
    ("negative_scale", -0.33, "scale-inverted"), ("negative_scale", -1 / 3, "scale-inverted"),
    ("ratio_n_minus_1", 1.12, "ratio-upside-down"), ("std_at_eps", 0.5, "eps-halves"),
])
def test_a_wrong_belief_is_named_however_it_is_rounded(question, number, name):
    report = checked("predict_layer_norm", lambda: {**RIGHT, question: number})
    assert len(report.mistakes) == 1 and report.mistakes[0].id.startswith(name)


ONE_MISSPELLED = {("largest17" if name == "largest_of_17" else name): number
                  for name, number in RIGHT.items()}


@pytest.mark.parametrize(("numbers", "outcome", "words"), [
    ({}, "wrong", ["none of the keys asked for", "width_one, largest_of_17"]),
    ({"widthone": 3, 5: 4}, "wrong", ["none of the keys asked for", "it has 'widthone', 5"]),
    ({object(): 3}, "wrong", ["it has an object"]),
    (dict(enumerate(range(9))), "wrong", ["it has 0, 1, 2, 3, 4 and 4 more"]),
    (ONE_MISSPELLED, "wrong", ["largest_of_17 not found; unknown keys of the dict: 'largest17'"]),
    ({"width_one": 3}, "wrong", ["largest_of_17, ratio_n_minus_1, std_at_eps, negative_scale, "
                                 "directions_left"]),
    (dict.fromkeys(RIGHT), "not attempted", []),
    (dict.fromkeys(RIGHT, ...), "not attempted", []),
    ({**RIGHT, "width_one": 10**400}, "wrong", ["width_one is a number too large"]),
    ({**RIGHT, "width_one": -(10**5000)}, "wrong", ["width_one is a number too large"]),
    ({**RIGHT, "width_one": object()}, "wrong", ["width_one is an object; a number"]),
    ({**RIGHT, "width_one": lambda: 3}, "wrong", ["width_one is a function; a number"]),
    ({**RIGHT, "width_one": [3, 4]}, "wrong", ["width_one is a list; a number"]),
    ({**RIGHT, "width_one": "three"}, "wrong", ["width_one is 'three'; a number"]),
    ({**RIGHT, "width_one": np.zeros(3)}, "wrong", ["width_one is a ndarray; a number"]),
])
def test_the_dict_of_predictions_is_read_with_care(numbers, outcome, words):
    report = checked("predict_layer_norm", lambda: numbers)
    assert report.outcome == outcome
    for each in words:
        assert each in report.text
    assert " at 0x" not in report.text and "OverflowError" not in report.text


# The inputs themselves


@pytest.mark.parametrize(
    "name", [name for name in specs.CHAPTERS["feature-axis"] if "predict" not in name])
def test_the_cases_of_a_norm_hide_nothing(name):
    """Rows far above and below zero, constant rows, wide rows, gains and biases of both signs."""
    exercise = specs.get(name)
    for seed in range(3):
        cases = [c for c in exercise.cases(np.random.default_rng(seed)) if c.judged]
        axis = 1 if name == "channel_norm" else -1
        rows = [c.inputs["x"] for c in cases]
        means = np.concatenate([x.mean(axis).ravel() for x in rows])
        assert means.max() > 3 and means.min() < -2.5
        assert any((x.std(axis) == 0).any() for x in rows)
        z = [norms.normalize(x, axis, 1e-12) for x in rows]
        assert max(each.max() for each in z) > 4 and min(each.min() for each in z) < -4
        for key in {"gamma", "beta", "weight", "bias"} & set(cases[0].inputs):
            vectors = [c.inputs[key] for c in cases if np.ptp(c.inputs[key])]
            assert all((v > 0).any() and (v < 0).any() for v in vectors) and vectors
            assert min(abs(v).min() for v in vectors) > 0.25


def test_the_other_inputs_are_as_wide():
    """What the tests of the families draw has constant rows and gains of both signs, too."""
    inputs = fresh_inputs(specs.get("layer_norm"), np.random.default_rng(0), 60)
    assert any((each["x"].std(-1) == 0).any() for each in inputs)
    assert any((each["gamma"] < 0).any() for each in inputs)
