"""Half precision and padding: answers that are right on tame inputs only win no full points."""

import numpy as np
import pytest
import torch
from conftest import checked, named

from lnres_utils import norms, specs

SEEDS = (None, 21)


def normalized(x, eps, axis=-1):
    return norms.normalize(x.astype(np.float64), axis, eps)


def half_by(norm):
    def half_layer_norm(x, gamma, beta, eps=1e-5):
        return (norm(x, eps) * gamma + beta).astype(np.float16)

    return half_layer_norm


HALF = {  # what is done instead of converting x first
    "clipped": lambda x, eps: normalized(np.clip(x, -255, 255), eps),
    "clipped at the largest root": lambda x, eps: normalized(np.clip(x, -6e3, 6e3), eps),
    "scaled by 1/256": lambda x, eps: normalized(x / np.float16(256), eps),
    "zero in place of NaN": lambda x, eps: np.nan_to_num(
        (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float16(eps))),
    "no epsilon below the smallest number": lambda x, eps: normalized(x, max(eps, 6e-8)),
    "no epsilon where the variance is large": lambda x, eps: normalized(
        x, np.where(x.astype(float).var(-1, keepdims=True) > 1e-6, 0, eps)),
    "constant rows apart": lambda x, eps: np.where(
        np.ptp(x, axis=-1, keepdims=True) == 0, 0, (x - x.mean(-1, keepdims=True)) / np.sqrt(
            np.maximum(x.var(-1, keepdims=True), np.float16(eps)))),
    "integers": lambda x, eps: normalized(np.round(x.astype(float)), eps),
    "squares of halves": lambda x, eps: normalized(x, eps) if np.abs(x).max() < 1000 else 0 * x,
    "twice the epsilon": lambda x, eps: normalized(x, 2 * eps),
    "mean of the clipped": lambda x, eps: (
        x - np.clip(x.astype(float).mean(-1, keepdims=True), -2048, 2048)) / np.sqrt(
            x.astype(float).var(-1, keepdims=True) + eps),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", HALF)
def test_what_half_precision_breaks_somewhere_is_refused_and_gets_no_name(way, seed):
    report = checked("half_layer_norm", half_by(HALF[way]), seed)
    assert report.outcome == "wrong" and report.points < report.max_points
    assert not named(report), report.text


def _first_mask(x, mask, kind, eps):
    return specs.get("masked_norm").reference(
        {"x": x, "mask": np.broadcast_to(mask[0], mask.shape), "kind": kind, "eps": eps})["y"]


def _per_token(x, mask, kind, eps):
    return norms.normalize(x, -1, eps) * mask[..., None]


def _empty_examples_kept(x, mask, kind, eps):
    y = specs.get("masked_norm").reference({"x": x, "mask": mask, "kind": kind, "eps": eps})["y"]
    return np.where(mask.any(1)[:, None, None], y, x)


MASKED = {each.__name__.strip("_").replace("_", " "): each for each in (
    _first_mask, _per_token, _empty_examples_kept)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", MASKED)
def test_what_takes_the_wrong_tokens_somewhere_is_refused_and_gets_no_name(way, seed):
    report = checked("masked_norm", lambda x, mask, kind, eps=1e-5: MASKED[way](
        x, mask, kind, eps), seed)
    assert report.outcome == "wrong" and report.points < report.max_points
    assert not named(report), report.text


def right_half(does):
    def half_layer_norm(x, gamma, beta, eps=1e-5):
        return does(half_by(normalized)(x, gamma, beta, eps))

    return half_layer_norm


@pytest.mark.parametrize(("does", "words"), [
    (lambda y: None, "None: is there a `return`?"), (np.ndarray.tolist, "is a list of length"),
    (torch.tensor, "is a torch tensor"), (lambda y: y[..., :2], "y has shape"),
    (lambda y: y.astype(int), "y has dtype int64; float16 was expected"),
    (lambda y: y * np.nan, "y has NaN"), (lambda y: torch.tensor(y).bfloat16(), "a torch tensor"),
    (lambda y: y.astype(np.float32).view(np.int32), "y has dtype int32")])
def test_half_precision_of_the_wrong_kind_gets_a_clear_line(does, words):
    report = checked("half_layer_norm", right_half(does))
    assert (report.outcome, report.points) == ("wrong", 0)
    assert words in report.text and not report.mistakes


@pytest.mark.parametrize(("name", "spoiled"), [("half_layer_norm", "x"), ("masked_norm", "mask")])
def test_an_input_that_is_changed_costs_only_that(name, spoiled):
    exercise = specs.get(name)

    def answer(x, second, third, eps=1e-5):
        inputs = {"x": x, "eps": eps, "mask": second, "kind": third, "gamma": second, "beta": third}
        y = exercise.reference(inputs)["y"]
        inputs[spoiled][...] = inputs[spoiled][..., ::-1] if spoiled == "mask" else 0
        return y

    report = checked(name, answer)
    assert report.points == report.max_points - 1
    assert named(report) == {"changes-its-input"}


@pytest.mark.parametrize("width", [16, 64, 1024])
def test_a_sum_of_squares_overflows_where_the_hint_says(width):
    """One square at 256; the sum of D squares at 256 / √D already."""
    limit = 256 / np.sqrt(width)
    for size, finite in ((0.99 * limit, True), (limit, False)):
        row = np.full(width, size, np.float16)
        assert np.isfinite((row**2).sum()) == finite
        assert np.isfinite(row**2).all()
    assert not np.isfinite(np.float16(256) ** 2) and np.isfinite(np.float16(255) ** 2)


def test_the_cases_of_half_precision_show_each_danger():
    cases = specs.get("half_layer_norm").cases(np.random.default_rng(9))
    rows = [case.inputs["x"].astype(float).reshape(-1, case.inputs["x"].shape[-1])
            for case in cases]
    squares = [np.square(x - x.mean(-1, keepdims=True)) for x in rows]
    assert any(each.max() > 65504 for each in squares)
    assert any(each.max() < 65504 < each.sum(-1).max() for each in squares)
    assert any((np.abs(x.mean(-1)) > 100 * x.std(-1)).any() for x in rows)
    assert any((x.std(-1) == 0).any() for x in rows)
    assert min(case.inputs.get("eps", 1) for case in cases) < 3e-8  # zero in float16
    assert all(np.isfinite(specs.get("half_layer_norm").reference(case.inputs)["y"]).all()
               for case in cases)
