"""Answers meant to break a check, to leave traces, or to carry hidden inputs out."""

import json
import sys

import numpy as np
import pytest
import torch
from conftest import checked

from lnres_utils import norms, specs
from lnres_utils.checking import CheckFailed, Session, judge

HIDDEN = 300  # the longest text of a learner's that a report takes over


def right(x, gamma, beta, eps=1e-5):
    return norms.layer_norm(x, gamma, beta, eps)


def saying(text):
    def layer_norm(x, gamma, beta, eps=1e-5):
        print(text)
        raise ValueError(text)

    return layer_norm


@pytest.mark.parametrize("text", [
    "\ud800", "\x1b[31mred\x07\0", "\u202etxet", "<script>x</script>",
])
def test_no_text_of_the_answer_reaches_the_screen_raw(text):
    report = checked("layer_norm", saying(text))
    for shown in (report.text, report._repr_html_(), json.dumps(report.to_dict())):
        shown.encode("utf-8")  # a broken code point would raise here
        assert not [char for char in shown if not char.isprintable() and char != "\n"]
    assert "<script>" not in report._repr_html_()


class Sly:
    """Pretends to be an array and breaks whoever looks closer."""

    __class__ = np.ndarray

    def __getattr__(self, name):
        raise RuntimeError("look away")


class Vanishing(Exception):
    def __str__(self):
        raise SystemExit(3)


class Opaque(Exception):
    def __getattribute__(self, name):
        raise RuntimeError("no")


class Stuck:
    def __repr__(self):
        raise RuntimeError("no")


STUCK = Stuck()


def looped(x, gamma, beta, eps=1e-5):
    raise ValueError("once around")


looped.__wrapped__ = looped


def raises(error):
    def layer_norm(x, gamma, beta, eps=1e-5):
        raise error

    return layer_norm


@pytest.mark.parametrize("answer", [
    lambda x, gamma, beta, eps=1e-5: type("", (), {})(),
    lambda x, gamma, beta, eps=1e-5: Sly(),
    raises(Vanishing()),
    raises(Opaque()),
    raises(type("", (Exception,), {})()),
    looped,
    lambda x, gamma, beta, eps=STUCK: x,
    lambda x, gamma, eps=STUCK: x,
    STUCK,
])
def test_no_answer_makes_the_check_itself_fail(answer):
    report = checked("layer_norm", answer)
    assert report.outcome in ("wrong", "raised") and report.points == 0
    assert report.text and report._repr_html_()


@pytest.mark.parametrize("name", [5, right, None, ["layer_norm"], b"layer_norm"])
def test_a_name_that_is_no_string_gets_one_line(name):
    if name is None:
        right_named = type("Odd", (), {"__name__": 5, "__call__": right})()
        with pytest.raises(CheckFailed, match="say which one it answers"):
            Session(specs.exercises).check(right_named)
        return
    with pytest.raises(CheckFailed, match="give its name as a string"):
        Session(specs.exercises).check(right, name)


def leaks(x):
    return repr(x.ravel().tolist())


class Trusted(Exception):
    lnres_wrong_kind = True


def unfinished(x, gamma, beta, eps=1e-5):
    if x.ndim == 1:
        raise NotImplementedError(leaks(x))
    return right(x, gamma, beta, eps)


def trusted(x, gamma, beta, eps=1e-5):
    raise Trusted(leaks(x))


def class_name(x, gamma, beta, eps=1e-5):
    return type(leaks(x), (), {})()


@pytest.mark.parametrize("answer", [unfinished, trusted, class_name])
def test_feedback_carries_no_hidden_input_out(answer):
    report = checked("layer_norm", answer)
    assert not any(char.isdigit() for char in report.public()["reason"])


def test_a_long_signature_is_cut():
    long = checked("layer_norm", eval(f"lambda x, g='{'x' * 5000}': 0"))
    assert len(long.reason) < HIDDEN + 200


class LayerNorm(norms.LayerNorm):
    """A right module."""


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_kernel_without_gradients_changes_no_verdict(mode):
    with mode():
        assert checked("LayerNorm", LayerNorm).outcome == "right"
        assert not torch.is_grad_enabled()


def unruly(x, gamma, beta, eps=1e-5):
    np.random.seed(1)
    torch.manual_seed(1)
    np.seterr(all="raise")
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return right(x, gamma, beta, eps)


def test_a_check_leaves_the_kernel_as_it_was():
    def traces():
        return (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist(), np.geterr(),
                torch.get_default_dtype(), torch.is_grad_enabled(), sys.stdout)

    before = traces()
    assert checked("layer_norm", unruly).outcome == "right"
    assert traces() == before


def noisy(x, gamma, beta, eps=1e-5):
    return right(x, gamma, beta, eps) * (1 + np.random.rand(*x.shape))


def test_a_random_answer_is_called_random_and_nothing_else():
    assert checked("layer_norm", noisy).broken == (
        "Called again with the same input, it gives another result.",)


buffer = np.empty(1000)


def same_memory(x, gamma, beta, eps=1e-5):
    result = buffer[: x.size].reshape(x.shape)
    result[...] = right(x, gamma, beta, eps)
    return result.astype(x.dtype) if x.dtype != result.dtype else result


def test_each_result_is_taken_when_it_comes():
    assert checked("layer_norm", same_memory).outcome == "right"


def test_the_numbers_shown_differ_where_the_answer_does():
    def off_by_little(x, gamma, beta, eps=1e-5):
        return right(x, gamma, beta, eps) + 3e-6

    case = checked("layer_norm", off_by_little).evidence
    assert case.given != case.expected


def test_the_part_of_a_long_row_that_is_wrong_is_shown():
    def last_feature_lost(x, kind, groups=1, eps=1e-5):
        y = norms.axis_norm(x, kind, groups, eps)
        if kind == "group":
            y[..., -1] = 0
        return y

    case = checked("axis_norm", last_feature_lost).evidence
    assert case.given != case.expected


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_one_missing_part_of_three_costs_its_own_points_only(missing):
    def layer_norm_backward(dy, x, gamma, eps=1e-5):
        parts = list(norms.layer_norm_backward(dy, x, gamma, eps))
        parts[missing] = None
        return tuple(parts)

    report = checked("layer_norm_backward", layer_norm_backward)
    name = ("dx", "dgamma", "dbeta")[missing]
    assert {group for group, got, _ in report.scores if got} >= {"dx", "dgamma", "dbeta"} - {name}
    assert f"{name} is None" in report.reason


def test_a_part_still_open_is_named():
    def axis_norm(x, kind, groups=1, eps=1e-5):
        if kind != "layer":
            raise NotImplementedError
        return norms.axis_norm(x, kind, groups, eps)

    report = checked("axis_norm", axis_norm)
    assert report.outcome == "wrong" and "not finished: batch, instance, group" in report.reason


def test_an_option_that_only_goes_by_keyword_is_told_how_it_is_called():
    def standardize(x, *, eps=1e-5):
        return norms.standardize(x, eps)

    assert "cannot be called as standardize(x, eps), by position" in checked(
        "standardize", standardize).reason


def test_numbers_that_could_be_rounding_are_not_the_first_choice_to_show():
    def standardize(x, eps=1e-5):
        return (x - x.mean()) / np.sqrt(x.var(ddof=1) + eps)

    exercise = specs.get("standardize")
    case = judge(exercise, standardize, np.random.default_rng(0)).evidence
    given, expected = (np.array(json.loads(row)) for row in (case.given, case.expected))
    assert np.max(np.abs(given - expected)) > 0.03
