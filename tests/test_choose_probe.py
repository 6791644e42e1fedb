"""The answer key of choose_probe: every probe is run on both functions of its pair.

Only the probe of the key gives one result for the first and another for the second.
"""

import re

import nbformat
import numpy as np
import pytest
from conftest import checked
from test_choices import QUESTION, ROOT

from lnres_utils import norms, specs
from lnres_utils.specs.probe_choices import BELIEFS, LESSON, RIGHT

B, T, D = 4, 9, 6


def draw(seed=0, tokens=T):
    return np.random.default_rng(seed).normal(1, 3, (B, tokens, D))


def moves(function, changed, watched, x=None):
    """Whether the watched outputs change when noise is added at ``changed``."""
    x = draw() if x is None else x
    other = x.copy()
    other[changed] += 10 * np.random.default_rng(1).normal(size=x[changed].shape)
    return not np.allclose(function(other)[watched], function(x)[watched])


def other_example(function):
    return moves(function, 1, 0)


def scaled(function):
    return not np.allclose(function(5 * draw()), function(draw()))


def reordered(function):
    order = np.array([2, 0, 3, 1])
    return not np.allclose(function(draw()[order]), function(draw())[order])


def over(*axes):
    return lambda x: norms.normalize(x, axes, 1e-12)


def batch_norm(x, training):
    mean, variance = (1.0, 9.0) if not training else (x.mean((0, 1)), x.var((0, 1)))
    return (x - mean) / np.sqrt(variance)


def stored_like_the_batch(function):
    """On a batch that has the stored means and variances."""
    x = norms.normalize(draw(), (0, 1), 0) * 3 + 1
    return np.round(function(x), 6).tolist()


def attention(seen):
    rng = np.random.default_rng(3)
    query, key = rng.normal(size=(2, D, D)) / D

    def attend(x):
        weights = np.exp(x @ query @ np.swapaxes(x @ key, 1, 2) / 30) * seen
        return weights / weights.sum(-1, keepdims=True) @ x

    return attend


STEPS = np.arange(T)
CAUSAL = STEPS[:, None] >= STEPS
WINDOWS = STEPS[:, None] // 4 == STEPS // 4


def each_token(function):
    return any(moves(function, np.s_[:, j], np.s_[:, :j]) for j in range(1, T))


class Model:
    """Dropout and a norm; in evaluation nothing is dropped and statistics are stored ones."""

    def __init__(self, norm, rate=0.5):
        self.norm, self.rate, self.rng = norm, rate, np.random.default_rng(0)

    def __call__(self, x, training):
        if training and self.rate:
            x = x * (self.rng.random(x.shape) >= self.rate) / (1 - self.rate)
        return self.norm(x, training)

    def gap(self, first=True, second=False):
        return not np.allclose(self(draw(), first), self(draw(), second))


def models(rate=0.5):
    return [Model(lambda x, training: over(-1)(x), rate), Model(batch_norm, rate)]


HALF, EPS = np.float16, 0.01


def half_norm(x, sum_of, eps):
    x = x.astype(np.float32)
    mean = sum_of(x) / x.shape[-1]
    variance = sum_of((x - mean) ** 2) / x.shape[-1]
    return ((x - mean) / np.sqrt(variance + np.float32(eps))).astype(HALF)


def plain_sum(x):
    return x.sum(-1, keepdims=True)


def other_sum(x):
    """The halves first, rounded to float16 and added: as fused kernels may do."""
    halves = x.reshape(*x.shape[:-1], 2, -1).sum(-1).astype(HALF).astype(np.float32)
    return halves.sum(-1, keepdims=True)


def half_rows():
    x = np.random.default_rng(5).normal(0, 1, (200, 64))  # a variance of 100 times EPS
    return norms.normalize(x, -1, 0).astype(HALF)


SIMPLE = half_norm(half_rows(), plain_sum, EPS)
TRUTH = norms.normalize(half_rows().astype(float), -1, EPS)
FAST = (half_norm(half_rows(), other_sum, EPS), half_norm(half_rows(), plain_sum, 0))


def error(y, truth=TRUTH):
    return np.abs(y.astype(float) - truth).mean()


def huge_rows():
    x = np.random.default_rng(7).normal(30_000, 0.01, (400, 24))
    return x.astype(np.float32)


def library(x):
    return norms.normalize(x, -1)


def third(x):
    mean = np.einsum("nd->n", x)[:, None] / np.float32(x.shape[-1])
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + np.float32(1e-5))


def yours(x):
    return norms.normalize(x.astype(np.float64), -1).astype(np.float32)


def wrong_one(judge):
    """Which of the two is the farther from what the probe takes for the truth."""
    x = huge_rows()
    truth = judge(x).astype(float)
    return "library" if error(library(x), truth) > error(yours(x), truth) else "yours"


ONE_GROUP = (over(1, 2), over(2))
BATCH_NORM = tuple(lambda x, training=training: batch_norm(x, training)
                   for training in (True, False))
TIME = (over(0, 1), over(0, 2))
SEEN = (attention(CAUSAL), attention(WINDOWS))
RESULTS = {  # question: letter: what the probe gives for the first and for the second
    "one_group": {
        "a": map(other_example, ONE_GROUP),
        "b": (moves(norm, np.s_[:, -1], np.s_[:, 0]) for norm in ONE_GROUP),
        "c": map(scaled, ONE_GROUP),
        "d": (np.round(norm(draw(tokens=1)), 9).tolist() for norm in ONE_GROUP)},
    "batch_norm_mode": {
        "a": map(other_example, BATCH_NORM),
        "b": (np.array_equal(norm(draw()), norm(draw())) for norm in BATCH_NORM),
        "c": map(reordered, BATCH_NORM),
        "d": map(stored_like_the_batch, BATCH_NORM)},
    "time_as_channels": {
        "a": map(other_example, TIME), "b": map(scaled, TIME),
        "c": (moves(norm, np.s_[:, 2], np.s_[:, 3:]) for norm in TIME),
        "d": map(reordered, TIME)},
    "windows": {
        "a": (moves(attend, np.s_[:, 8], np.s_[:, :8]) for attend in SEEN),
        "b": (moves(attend, np.s_[:, 4], np.s_[:, :4]) for attend in SEEN),
        "c": map(other_example, SEEN), "d": map(each_token, SEEN)},
    "dropout_or_mode": {
        "a": (model.gap() for model in models()),
        "b": (model.gap() for model in models(rate=0)),
        "c": (model.gap(False, False) for model in models()),
        "d": (other_example(lambda x, model=model: model(x, False)) for model in models())},
    "last_digits": {
        "a": (np.array_equal(fast, SIMPLE) for fast in FAST),
        "b": (np.isfinite(fast).all() for fast in FAST),
        "c": (np.allclose(fast, SIMPLE, rtol=0, atol=0.1) for fast in FAST),
        "d": (error(fast) > 3 * error(SIMPLE) for fast in FAST)},
}


@pytest.mark.parametrize("question", RESULTS)
def test_only_the_probe_of_the_key_tells_the_two_apart(question):
    for letter, results in RESULTS[question].items():
        first, second = results
        assert (first != second) == (letter == RIGHT[question]), letter


def test_where_versions_disagree_only_the_formula_in_float64_finds_the_wrong_one():
    x = huge_rows()
    assert np.abs(library(x) - yours(x)).max() > 0.1, "they disagree in the first digits"
    near = np.random.default_rng(8).normal(0, 1, x.shape).astype(np.float32)
    assert np.allclose(library(near), yours(near), atol=1e-5), "near zero they agree"
    verdicts = {"a": wrong_one(library), "b": wrong_one(third),
                "c": wrong_one(lambda x: norms.normalize(x.astype(np.float64), -1))}
    assert verdicts == {"a": "yours", "b": "yours", "c": "library"}
    assert RIGHT["huge_rows"] == "c"


def test_the_notebook_asks_the_questions_of_the_key():
    notebook = nbformat.read(ROOT / "solutions/practical-checks.ipynb", as_version=4)
    text, = (cell.source for cell in notebook.cells if cell.id == "choose-probe")
    found = {name: re.findall(r"- \*\*([a-d])\*\* .", choices)
             for name, _, choices in QUESTION.findall(text)}
    assert list(found) == list(RIGHT) == list(BELIEFS) == list(LESSON)
    for name, letters in found.items():
        assert letters == list("abcd") == sorted([RIGHT[name], *BELIEFS[name]])


@pytest.mark.parametrize("letter", "abcd")
def test_one_letter_throughout_gets_few_points(letter):
    assert checked("choose_probe", lambda: dict.fromkeys(RIGHT, letter)).points <= 2


@pytest.mark.parametrize("name", ["choose_probe", "concepts_after"])
def test_letters_that_are_missing_show_no_right_one(name):
    exercise = specs.get(name)
    for case in exercise.cases(np.random.default_rng(0)):
        (question, right), = exercise.reference(case.inputs).items()
        wrong = "a" if right != "a" else "b"
        report = checked(name, lambda question=question, wrong=wrong: {question: wrong})
        assert "not finished" in report.reason
        assert report.evidence.given == report.evidence.expected == ""
        assert "was expected" not in report.text and "expected" not in report.text
