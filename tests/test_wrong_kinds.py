"""Answers of the wrong kind get one clear line, and never a traceback of ours."""

import functools
import json

import numpy as np
import pytest
import torch
from answers.legal import MODULES
from conftest import checked
from torch import nn

from lnres_utils import norms, specs
from lnres_utils.checking import CheckFailed, Session

RIGHT = {"width_one": 3, "largest_of_17": 4, "ratio_n_minus_1": 0.894, "std_at_eps": 0.707,
         "negative_scale": -1, "directions_left": 6}


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


def layer_norm_that(does):
    """A right layer norm whose result goes through ``does``."""

    def layer_norm(x, gamma, beta, eps=1e-5):
        return does(norms.layer_norm(x, gamma, beta, eps))

    return layer_norm


def raising(error):
    def layer_norm(x, gamma, beta, eps=1e-5):
        raise error

    return layer_norm


def recursing(x, gamma, beta, eps=1e-5):
    return recursing(x, gamma, beta, eps)


def in_place(x, gamma, beta, eps=1e-5):
    y = norms.layer_norm(x, gamma, beta, eps)
    x -= x.mean(-1, keepdims=True)
    return y


def changes_the_gain(x, gamma, beta, eps=1e-5):
    y = norms.layer_norm(x, gamma, beta, eps)
    gamma *= 2
    return y


def with_unneeded_argument(x, gamma, beta, eps, axis):
    return norms.layer_norm(x, gamma, beta, eps)


LAYER_NORM = {  # what is handed in: (answer, outcome, words of the report)
    "a number": (3, "wrong",
                 "layer_norm is an int; a function layer_norm(x, gamma, beta, eps=1e-5)"),
    "None": (None, "wrong", "layer_norm is None; a function"),
    "an array": (np.ones(3), "wrong", "is an array of shape (3,) and dtype float64; a function"),
    "a string": ("layer_norm", "wrong", "is a str; a function"),
    "a class": (norms.LayerNorm, "wrong", "is a class; a function layer_norm(x, gamma, beta"),
    "no parameters": (lambda: 0, "wrong", "layer_norm() cannot be called as layer_norm(x, gamma"),
    "too few parameters": (lambda x, gamma: 0, "wrong", "cannot be called as"),
    "too many parameters": (with_unneeded_argument, "wrong", "cannot be called as"),
    "keywords only": (lambda x, *, gamma, beta, eps=1: 0, "wrong", "cannot be called as"),
    "no eps": (lambda x, gamma, beta: 0, "wrong",
               "layer_norm(x, gamma, beta, eps), by position"),
    "returns None": (layer_norm_that(lambda y: None), "wrong",
                     "the returned value is None: is there a `return`?"),
    "returns a list": (layer_norm_that(np.ndarray.tolist), "wrong",
                       "the returned value is a list of length 7; a NumPy array was expected"),
    "returns a tuple": (layer_norm_that(lambda y: (y, 1)), "wrong", "is a tuple of length 2"),
    "returns a string": (layer_norm_that(str), "wrong", "is a str; a NumPy array was expected"),
    "returns a float": (layer_norm_that(lambda y: 1.0), "wrong", "is a float; a NumPy array"),
    "returns a generator": (layer_norm_that(lambda y: (v for v in y)), "wrong", "is a generator"),
    "returns itself": (layer_norm_that(lambda y: np.mean), "wrong", "a NumPy array was expected"),
    "returns a torch tensor": (layer_norm_that(torch.tensor), "wrong",
                               "is a torch tensor of shape (7,); a NumPy array was expected"),
    "returns another shape": (layer_norm_that(lambda y: y[..., :2]), "wrong",
                              "y has shape (2,); (7,) was expected"),
    "returns nothing at all": (layer_norm_that(lambda y: y[:0]), "wrong", "y has shape (0,)"),
    "returns NaN": (layer_norm_that(lambda y: y * np.nan), "wrong", "y has NaN"),
    "returns infinity": (layer_norm_that(lambda y: y * np.inf), "wrong", "inf"),
    "returns complex numbers": (layer_norm_that(lambda y: y + 0j), "wrong",
                                "has dtype complex128; real numbers were expected"),
    "returns objects": (layer_norm_that(lambda y: y.astype(object)), "wrong",
                        "has dtype object; real numbers were expected"),
    "returns text": (layer_norm_that(lambda y: y.astype(str)), "wrong", "real numbers were"),
    "returns records": (layer_norm_that(lambda y: np.zeros(3, dtype=[("a", float)])), "wrong",
                        "real numbers were expected"),
    "returns dates": (layer_norm_that(lambda y: np.zeros(3, "M8[s]")), "wrong",
                      "real numbers were expected"),
    "returns half precision": (layer_norm_that(lambda y: y.astype(np.float16)), "wrong",
                               "y has dtype float16; float64 was expected"),
    "returns whole numbers": (layer_norm_that(lambda y: y.astype(int)), "wrong",
                              "y has dtype int64; float64 was expected"),
    "returns truth values": (layer_norm_that(lambda y: y > 0), "wrong", "y has dtype bool"),
    "returns a matrix": (layer_norm_that(lambda y: np.matrix(y) if y.ndim < 3 else y), "wrong",
                         "y has shape (1, 7); (7,) was expected"),
    "returns masked entries": (layer_norm_that(lambda y: np.ma.masked_less(y, 0)), "wrong",
                               "has masked entries; a number was expected in each place"),
    "raises": (raising(ValueError("my\nown words")), "raised", "ValueError: my"),
    "raises a long text": (raising(ValueError("a" * 10_000)), "raised", "a …"),
    "exits": (raising(SystemExit(3)), "raised", "raised a SystemExit."),
    "recurses": (recursing, "raised", "raised a RecursionError."),
    "raises what cannot be printed": (raising(Unprintable()), "raised", "raised an Unprintable"),
    "raises a group": (raising(BaseExceptionGroup("two", [ValueError(), SystemExit()])), "raised",
                       "raised a BaseExceptionGroup"),
    "asserts": (raising(AssertionError()), "raised", "raised an AssertionError"),
    "stops an iteration": (raising(StopIteration()), "raised", "raised a StopIteration"),
    "changes its input": (in_place, "wrong", "The values are right, but x changed during the call"),
    "changes the gain": (changes_the_gain, "wrong", "gamma changed during the call"),
}


@pytest.mark.parametrize("kind", LAYER_NORM)
def test_an_answer_of_the_wrong_kind_gets_a_clear_line(kind):
    answer, outcome, words = LAYER_NORM[kind]
    report = checked("layer_norm", answer)
    assert report.outcome == outcome
    assert words in report.text
    assert "Traceback" not in report.text and len(report.text) < 1500
    assert report._repr_html_() and json.dumps(report.to_dict()) and json.dumps(report.public())


def test_an_answer_that_only_changes_its_input_loses_only_those_points():
    report = checked("layer_norm", in_place)
    assert report.points == report.max_points - 1
    assert [mistake.id for mistake in report.mistakes] == ["changes-its-input"]


class Mine(np.ndarray):
    pass


@pytest.mark.parametrize("kind", [np.ma.asarray, lambda y: y.view(Mine)])
def test_an_array_subclass_with_the_right_values_is_right(kind):
    assert checked("layer_norm", layer_norm_that(kind)).outcome == "right"


def test_an_interrupt_is_the_learners_own():
    with pytest.raises(KeyboardInterrupt):
        checked("layer_norm", raising(KeyboardInterrupt()))


@pytest.mark.parametrize("name", list(specs.exercises))
def test_no_exercise_accepts_or_breaks_on_any_odd_object(name):
    odd = [None, 0, "text", [], {}, object(), int, print, len, type, np.mean, nn.Module, Exception,
           torch.tensor(1.0), functools.partial(print), lambda *a, **k: None,
           lambda *a, **k: "text", lambda *a, **k: {}, lambda *a, **k: (),
           lambda *a, **k: (1, 2, 3),
           lambda *a, **k: np.zeros(0), lambda *a, **k: np.zeros((1,) * 9), lambda *a, **k: a]
    for answer in odd:
        report = checked(name, answer)
        assert report.outcome in ("wrong", "raised", "not attempted"), answer
        assert report.points == 0, (answer, report.text)
        assert len(report.text.splitlines()) > 1
        assert not report.mistakes, (answer, report.text)


def backward_that(does):
    def layer_norm_backward(dy, x, gamma, eps=1e-5):
        return does(norms.layer_norm_backward(dy, x, gamma, eps))

    return layer_norm_backward


@pytest.mark.parametrize(("does", "words"), [
    (lambda parts: parts[:2], "returned 2 values; 3 values were expected: dx, dgamma, dbeta"),
    (lambda parts: parts[0], "returned one object; 3 values were expected"),
    (lambda parts: (*parts, 0), "returned 4 values; 3 values were expected"),
    (lambda parts: None, "returned None (is there a `return`?); 3 values were expected"),
    (lambda parts: (parts[0], None, parts[2]), "dgamma is None"),
    (lambda parts: (parts[0], parts[1], 0.5), "dbeta is a float; a NumPy array was expected"),
    (lambda parts: dict(zip("abc", parts, strict=True)), "returned one object"),
])
def test_a_tuple_of_the_wrong_make_gets_a_clear_line(does, words):
    report = checked("layer_norm_backward", backward_that(does))
    assert report.outcome == "wrong"
    assert words in report.text


@pytest.mark.parametrize(("numbers", "outcome", "points", "words"), [
    ({}, "wrong", 0, "none of the keys asked for"),
    (dict.fromkeys(RIGHT), "not attempted", 0, "in place of the stub"),
    ({**RIGHT, "std_at_eps": None}, "wrong", 5, "is not finished: std_at_eps."),
    ({name: RIGHT[name] for name in list(RIGHT)[:2]}, "wrong", 2,
     "is not finished: ratio_n_minus_1, std_at_eps, "),
    ({**RIGHT, "negative_scale": "minus one"}, "wrong", 5, "'minus one'; a number was expected"),
    ({**RIGHT, "negative_scale": [1, 2]}, "wrong", 5, "a number was expected"),
    ({**RIGHT, "negative_scale": 1j}, "wrong", 5, "a number was expected"),
    ({**RIGHT, "width_one": float("nan")}, "wrong", 5, "width_one is nan; a number was expected"),
    ([3, 4, 5], "wrong", 0, "not a dict of numbers"),
    (None, "wrong", 0, "not a dict of numbers"),
])
def test_a_dict_with_missing_or_odd_numbers(numbers, outcome, points, words):
    report = checked("predict_layer_norm", lambda: numbers)
    assert (report.outcome, report.points) == (outcome, points)
    assert words in report.text


class NotAModule:
    def __init__(self, width, eps=1e-5):
        self.weight = self.bias = None


class WithoutSuper(nn.Module):
    def __init__(self, width, eps=1e-5):
        self.weight = nn.Parameter(torch.ones(width))


class WithoutForward(norms.LayerNorm):
    forward = None


class Silent(norms.LayerNorm):
    def forward(self, x):
        super().forward(x)


class InPlace(norms.LayerNorm):
    def forward(self, x):
        x -= x.mean(-1, keepdim=True)
        return super().forward(x)


class OnArrays(norms.LayerNorm):
    def forward(self, x):
        return super().forward(x).detach().numpy()


class InADict(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.affine = nn.ParameterDict({"weight": torch.ones(width), "bias": torch.zeros(width)})

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.affine["weight"],
                                        self.affine["bias"], self.eps)


@pytest.mark.parametrize(("answer", "outcome", "words"), [
    (lambda width, eps=1e-5: norms.LayerNorm(width, eps), "wrong", "a class was expected"),
    (norms.LayerNorm(4), "wrong", "LayerNorm is a LayerNorm; a class was expected"),
    (nn.Identity(), "wrong", "a class was expected"),
    (NotAModule, "wrong", "not a torch.nn.Module: inherit from it"),
    (WithoutSuper, "raised", "raised an AttributeError"),
    (WithoutForward, "raised", "raised a TypeError"),
    (Silent, "wrong", "`forward` returned None: is there a `return`?"),
    (InPlace, "raised", "raised a RuntimeError"),
    (OnArrays, "wrong", "`forward` returned a ndarray; a torch tensor was expected"),
    (InADict, "raised", "raised"),
    (type("LayerNorm", (nn.Module,), {"__init__": lambda self: None}), "wrong",
     "LayerNorm() cannot be called as LayerNorm(width), by position"),
])
def test_a_module_of_the_wrong_kind_gets_a_clear_line(answer, outcome, words):
    report = checked("LayerNorm", answer)
    assert report.outcome == outcome
    assert words in report.text
    assert report.points < report.max_points


def test_parameters_in_a_dict_have_another_state():
    report = checked("LayerNorm", InADict)
    assert dict((group, points) for group, points, _ in report.scores)["state_dict"] == 0


def test_a_million_printed_characters_are_counted_and_cut():
    def layer_norm(x, gamma, beta, eps=1e-5):
        for _ in range(1000):
            print("a" * 999)
        return x

    report = checked("layer_norm", layer_norm)
    assert report.printed_length == 1_000_000
    assert len(report.printed) <= 2000
    assert len(report.text) < 4000 and "printed 1000000 characters" in report.text


def test_global_state_that_an_answer_changes_changes_no_verdict():
    def layer_norm(x, gamma, beta, eps=1e-5):
        np.seterr(all="raise")
        np.random.seed(0)
        torch.manual_seed(0)
        return norms.layer_norm(x, gamma, beta, eps)

    settings = np.geterr()
    before = checked("layer_norm", layer_norm_that(lambda y: y * 2)).to_dict()
    assert checked("layer_norm", layer_norm).outcome == "right"
    assert np.geterr() == settings
    assert checked("layer_norm", layer_norm_that(lambda y: y * 2)).to_dict() == before


def test_warnings_of_an_answer_are_kept_away():
    def layer_norm(x, gamma, beta, eps=1e-5):
        np.log(np.array([-1.0]))
        return norms.layer_norm(x, gamma, beta, eps)

    report = checked("layer_norm", layer_norm)
    assert report.outcome == "right" and not report.printed


@pytest.mark.parametrize(("answer", "exercise", "words"), [
    (MODULES["var_mean"], "layernorm", '"layer_norm"'),
    (norms.layer_norm, "layer_nrom", '"layer_norm"'),
    (norms.layer_norm, "zzz", '"standardize"'),
    (norms.layer_norm, "", '"standardize"'),
    (norms.normalize, None, "no exercise is called 'normalize'"),
    (lambda x: x, None, "no exercise is called '<lambda>'"),
    (functools.partial(norms.layer_norm), None, "say which one it answers"),
    (5, None, "this is an int; pass the function itself"),
    (None, None, "this is None; pass the function itself"),
])
def test_an_unknown_exercise_lists_near_names(answer, exercise, words):
    with pytest.raises(CheckFailed) as failed:
        Session(specs.exercises).check(answer, exercise)
    assert words in str(failed.value)


def test_an_answer_under_another_name_is_checked_by_the_name_given(capsys):
    def my_layer_norm(x, gamma, beta, eps=1e-5):
        return norms.layer_norm(x, gamma, beta, eps)

    assert Session(specs.exercises).check(my_layer_norm, "layer_norm").outcome == "right"
    assert capsys.readouterr().out == ""
