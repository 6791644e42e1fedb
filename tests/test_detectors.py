"""Detectors of two labels, and tests as answers: nobody scores without telling both apart."""

import copy
import inspect
import random
import re
import sys
from fractions import Fraction
from math import comb
from pathlib import Path

import nbformat
import numpy as np
import pytest
from answers import legal_checks
from answers.mutating import mutants
from conftest import checked, named
from test_mutants import load, source_of

from lnres_utils import norms, specs
from lnres_utils.checking import Case, Exercise, Output, Run
from lnres_utils.checking.scoring import scores
from lnres_utils.drives.boxes import Box, CallsSpent, NormBox, NormFailed
from lnres_utils.specs import seeing_boxes
from lnres_utils.specs.sealed import Sealed, label_of

ROOT = Path(__file__).parents[1]
DETECTORS = ("mixes_examples", "leaks_future", "norm_test")
SEEING = DETECTORS[:2]


def cases_of(name, seed=0):
    exercise = specs.get(name)
    return list(map(exercise.opened, exercise.cases(np.random.default_rng(seed))))


def answer_of(name, verdict):
    """An answer to ``name`` that says "yes" or fails a norm where ``verdict(box, x)`` is true."""
    def detector(fn, x):
        return bool(verdict(fn, x))

    def norm_test(norm):
        x, one, zero = np.random.default_rng(0).normal(size=(2, 3, 5)), np.ones(5), np.zeros(5)
        said = verdict(norm, x)
        try:
            norm(x, one, zero)
        except NormFailed:
            pass
        assert not said

    return norm_test if name == "norm_test" else detector


@pytest.mark.parametrize("name", DETECTORS)
def test_boxes_are_of_many_kinds_three_of_each_in_random_order(name):
    cases = cases_of(name)
    kinds = {}
    for case in cases:
        kinds.setdefault((case.group, case.kind), []).append(case)
    for label in specs.get(name).labels:
        assert sum(group == label for group, _ in kinds) >= 6
    assert {len(boxes) for boxes in kinds.values()} == {3}
    orders = {tuple(case.kind for case in cases_of(name, seed)) for seed in range(5)}
    assert len(orders) == 5
    if name in SEEING:  # the sizes say nothing
        shapes = {tuple(sorted(case.inputs["x"].shape for case in boxes))
                  for boxes in kinds.values()}
        assert len(shapes) == 1 and all(len({*shape}) == 3 for shape, in zip(*shapes, strict=True))


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("said", [True, False])
def test_who_always_says_the_same_scores_nothing_and_is_named(name, said):
    report = checked(name, answer_of(name, lambda box, x: said))
    assert (report.outcome, report.points) == ("wrong", 0)
    assert len(named(report)) == 1


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("seed", range(8))
def test_a_coin_scores_nothing(name, seed):
    rng = np.random.default_rng(seed)
    report = checked(name, answer_of(name, lambda box, x: rng.random() < 0.5), seed)
    assert (report.outcome, report.points, report.mistakes) == ("wrong", 0, ())


def _reachable(thing, depth=4):
    """What can be read off an object: its type, text, attributes, and theirs."""
    words = [type(thing).__name__, type(thing).__module__, re.sub("0x[0-9a-f]+", "", repr(thing))]
    if depth and not isinstance(thing, (str, int, float, type(None), np.ndarray)):
        try:
            inside = vars(thing)
        except TypeError:
            inside = {name: getattr(thing, name, None)
                      for name in getattr(type(thing), "__slots__", ())}
        for name, value in sorted(inside.items(), key=str):
            words += [str(name), *_reachable(value, depth - 1)]
    return words


INSPECTORS = {
    "type": lambda box, x: len(type(box).__name__) % 2,
    "name": lambda box, x: "norm" in getattr(box, "__name__", ""),
    "repr": lambda box, x: sum(map(ord, repr(box))) % 2,
    "doc": lambda box, x: "norm" in (box.__doc__ or ""),
    "source": lambda box, x: "mean" in inspect.getsource(type(box)),
    "attributes": lambda box, x: sum(map(ord, "".join(_reachable(box)))) % 2,
    "size of x": lambda box, x: x.size % 2,
    "numbers of x": lambda box, x: x.sum() > 0,
    "width": lambda box, x: getattr(box, "width", 5) > 5,
}


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("how", INSPECTORS)
@pytest.mark.parametrize("flipped", [False, True])
def test_who_looks_instead_of_asking_scores_nothing(name, how, flipped):
    look = INSPECTORS[how]
    report = checked(name, answer_of(name, lambda box, x: bool(look(box, x)) != flipped))
    assert report.points == 0


@pytest.mark.parametrize("name", DETECTORS)
def test_what_can_be_read_off_a_box_is_the_same_for_all_boxes_of_a_size(name):
    told = {}
    for case in cases_of(name):
        box = case.inputs["norm" if name == "norm_test" else "fn"]
        told.setdefault(getattr(box, "width", 0), set()).add(tuple(_reachable(box)))
    assert {len(texts) for texts in told.values()} == {1}


def toy(right, kinds=(6, 6), points=12):
    """Scores of a detector that is right on the first ``right`` kinds of each label."""
    exercise = Exercise(
        name="toy", chapter="", lesson="", parameters=(), cases=None, drive=None,
        reference=None, family=None, knobs=(), groups={"kinds": points}, labels=("yes", "no"),
        outputs={"seen": Output("text")}, hints=(), difficulty=1, minutes=1, titles={},
        detector=True)
    runs = [Run(Case(label, {}, kind=f"{kind}"), None)
            for label, count in zip(("yes", "no"), kinds, strict=True)
            for kind in range(count) for _ in range(3)]
    limits = dict(zip(("yes", "no"), right, strict=True))
    good = {id(run): int(run.case.kind) < limits[run.case.group] for run in runs}
    (_, got, most), = scores(exercise, runs, good, [])
    assert most == points
    return got


@pytest.mark.parametrize(("right", "kinds", "points", "expected"), [
    ((6, 6), (6, 6), 12, 12), ((6, 0), (6, 6), 12, 0), ((0, 6), (6, 6), 12, 0),
    ((3, 3), (6, 6), 12, 0), ((5, 6), (6, 6), 12, 10), ((6, 3), (6, 6), 12, 6),
    ((9, 12), (10, 12), 12, 10), ((10, 12), (10, 12), 11, 11), ((9, 10), (10, 12), 12, 8),
    ((1, 1), (6, 6), 12, 0)])
def test_points_are_twice_the_balanced_accuracy_less_one(right, kinds, points, expected):
    assert toy(right, kinds, points) == expected


@pytest.mark.parametrize("name", DETECTORS)
def test_a_coin_thrown_once_a_kind_gets_less_than_one_point_of_twelve_on_average(name):
    exercise = specs.get(name)
    seen = {(case.group, case.kind) for case in cases_of(name)}
    first, second = kinds = [sum(group == label for group, _ in seen) for label in exercise.labels]
    expected = sum(Fraction(comb(first, a) * comb(second, b), 2 ** (first + second))
                   * toy((a, b), kinds, exercise.max_points)
                   for a in range(first + 1) for b in range(second + 1))
    assert exercise.max_points == 12 and expected < 1


def test_a_kind_counts_only_if_all_its_boxes_are_told_right():
    name = "leaks_future"
    right = specs.get(name).family()
    wrong_once = iter([True])

    def leaks_future(fn, x):
        return right(fn, x) != next(wrong_once, False)

    report = checked(name, leaks_future)
    assert 0 < report.points < 12


@pytest.mark.parametrize("kinds", [seeing_boxes.MIXES, seeing_boxes.LEAKS])
def test_the_gradient_of_a_box_is_that_of_finite_differences(kinds):
    rng = np.random.default_rng(2)
    for box, x in seeing_boxes.boxes(rng, kinds):
        if x.shape != (3, 5, 8):
            continue
        _, kind = label_of(box)
        x, dy, step = rng.normal(0, 30, x.shape), rng.normal(size=x.shape), rng.normal(size=x.shape)
        h = 1e-5
        slope = ((box(x + h * step) - box(x - h * step)) / (2 * h) * dy).sum()
        assert (box.vjp(x, dy) * step).sum() == pytest.approx(slope, rel=1e-5, abs=1e-6), kind


@pytest.mark.parametrize("kinds", [seeing_boxes.MIXES, seeing_boxes.LEAKS])
def test_the_labels_of_boxes_are_true_also_of_other_inputs(kinds):
    """By the gradient, at large numbers, for other lengths: nothing of the family is used."""
    rng = np.random.default_rng(3)
    for box, x in seeing_boxes.boxes(rng, kinds):
        if x.shape != (5, 7, 6):
            continue
        label, kind = label_of(box)
        x = rng.normal(0, 150, (3, 6, 6))
        seen = 0.0
        for place in range(3 if kinds is seeing_boxes.MIXES else 6):
            dy = np.zeros_like(x)
            here = place if kinds is seeing_boxes.MIXES else np.s_[:, place]
            dy[here] = rng.normal(size=dy[here].shape)
            gradient = box.vjp(x, dy)
            if kinds is seeing_boxes.MIXES:
                seen = max(seen, np.abs(np.delete(gradient, place, 0)).max())
            else:
                seen = max(seen, np.abs(gradient[:, place + 1:]).max(initial=0))
        assert (seen > 1e-7) == (label == "yes") and not 1e-11 < seen < 1e-7, (kind, seen)


def test_a_gradient_of_too_many_numbers_is_refused():
    box = seeing_boxes.boxed(np.sin, "no", 4)
    with pytest.raises(ValueError, match="8,000 numbers; a gradient is given for at most 4,096"):
        box.vjp(np.ones((2, 1000, 4)), np.ones((2, 1000, 4)))


def test_a_function_box_takes_single_tokens_and_says_function():
    box = Box(Sealed(np.negative, "no"), 4, 2, noun="function", tokens=1)
    assert repr(box) == "a function of width 4" and box(np.ones((1, 1, 4))).shape == (1, 1, 4)
    with pytest.raises(ValueError, match=r"x has shape \(1, 1, 5\); \(B, T, 4\) was expected"):
        box(np.ones((1, 1, 5)))
    box(np.ones((1, 1, 4)))
    with pytest.raises(CallsSpent, match="all 2 calls of the function are spent"):
        box(np.ones((1, 1, 4)))
    handed_out = copy.deepcopy(box)
    handed_out(np.ones((1, 1, 4)))
    assert handed_out.calls_left == 1
    for other in (copy.copy(handed_out), copy.deepcopy(handed_out)):  # they share the calls
        assert other.calls_left == 1
    with pytest.raises(AttributeError):
        handed_out.calls_left = 100
    assert "calls" not in "".join(vars(handed_out))


def _walks_frames(box):
    frame = sys._getframe(1)
    while frame is not None:
        case = frame.f_locals.get("case")
        if case is not None and (case.group or case.kind):
            return case.group
        frame = frame.f_back


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("how", [
    _walks_frames, lambda box: label_of(box)[0],
    lambda box: next(iter(specs.get("norm_test" if "norm" in repr(box) else "leaks_future")
                          .reference({"norm": box, "fn": box}).values()))])
def test_who_looks_a_label_up_finds_none(name, how):
    labels = []

    def looks(box, x):
        labels.append(how(box))
        return labels[-1] in ("yes", "fails")

    report = checked(name, answer_of(name, looks))
    assert report.points == 0 and not any(labels)


def norm_box(norm, calls=3):
    return NormBox(Sealed(lambda x, *more: (norm(x, *more), x), "passes"), calls)


def test_a_norm_box_shows_a_change_of_its_input_and_an_exception():
    def spoils(x, gamma, beta, eps):
        x += 1
        return x * eps

    x = np.ones((2, 3))
    box = norm_box(spoils)
    assert box(x, np.ones(3), np.ones(3), 0.5).tolist() == [[1, 1, 1]] * 2
    assert (x == 2).all() and box.called and repr(box) == "a norm"
    with pytest.raises(NormFailed, match="the norm raised ZeroDivisionError: division by zero"):
        norm_box(lambda *a: 1 / 0)(x, x, x)


@pytest.mark.parametrize(("told", "words"), [
    (None, "is None; True or False was expected: is there a `return`?"),
    ("yes", "is 'yes'; True or False was expected"), (1, "is 1; True or False"),
    (np.array([True, False]), "is a ndarray; True or False"), (0.3, "is 0.3; True or False")])
@pytest.mark.parametrize("name", SEEING)
def test_what_is_neither_true_nor_false_gets_a_clear_line(name, told, words):
    report = checked(name, lambda fn, x: told)
    assert (report.outcome, report.points) == ("wrong", 0)
    assert words in report.text and not report.mistakes


@pytest.mark.parametrize(("answer", "outcome", "words"), [
    (lambda norm: None, "wrong", "the test never called the norm"),
    (lambda norm: norm(np.ones((2, 3, 5)), np.ones(5), np.ones(5)) is None, "raised", "NormFailed"),
    (lambda norm: norm(np.ones((2, 5)), np.ones(5), np.ones(5)).any() > 3, "wrong",
     "the test returned"),
    (lambda norm: norm(np.ones((2, 5)), np.ones(5)), "raised", "TypeError"),
    (lambda norm: norm(None, None, None), "raised", "TypeError: x has dtype object"),
])
def test_what_is_no_test_gets_a_clear_line(answer, outcome, words):
    report = checked("norm_test", answer)
    assert report.points == 0 and not report.mistakes
    if words != "NormFailed":  # an exception of the norm is a failed test, and no more
        assert report.outcome == outcome and words in report.text
    else:
        assert report.outcome == "wrong"


def test_a_detector_that_asks_too_often_is_told():
    def leaks_future(fn, x):
        while True:
            fn(x)

    report = checked("leaks_future", leaks_future)
    assert report.outcome == "raised" and "all 80 calls of the function are spent" in report.text


def test_what_is_shown_adds_up_to_the_points():
    def norm_test(norm):
        x = np.random.default_rng(0).normal(size=(3, 5, 8))
        y = norm(x, np.ones(8), np.zeros(8))
        if not np.allclose(y, norms.layer_norm(x, np.ones(8), np.zeros(8)), atol=1e-3):
            raise ValueError("no layer norm")

    report = checked("norm_test", norm_test)
    told = re.findall(r"(\d+) of (\d+) where", report.reason)
    shares = [Fraction(int(right), int(count)) for right, count in told]
    assert report.points == int(12 * max(0, sum(shares) - 1))
    assert report.scores == (("kinds told right", report.points, 12),)
    assert "points missed" not in report.text
    assert "no layer norm (a test fails a norm by an AssertionError" in report.text


def test_a_test_is_told_what_it_misses():
    def norm_test(norm):
        x = np.random.default_rng(0).normal(size=(3, 5, 8))
        assert np.allclose(norm(x, np.ones(8), np.zeros(8)).mean(-1), 0, atol=1e-3)

    report = checked("norm_test", norm_test)
    missed = report.reason.partition("Missed: ")[2]
    for family in ("variance", "ε", "gain and bias", "precision", "what becomes of x"):
        assert family in missed
    assert "axes" not in missed and "right norms" not in missed and "these verdicts" in report.text


@pytest.mark.parametrize("name", DETECTORS)
def test_random_faults_of_a_right_answer_are_accepted_only_if_it_stays_right(name):
    source = source_of(name)
    faults = list(mutants(source, name))
    verdicts = []
    for what, faulty in random.Random(1).sample(faults, min(25, len(faults))):
        answer = load(faulty, name)
        reports = [checked(name, answer, seed) for seed in (None, 31, 32)]
        verdicts.append((what, [report.outcome == "right" for report in reports]))
    assert not [what for what, right in verdicts if len(set(right)) > 1]
    assert sum(not right[0] for _, right in verdicts) >= 8


def test_the_statements_say_how_many_kinds_there_are():
    notebook = nbformat.read(ROOT / "solutions/practical-checks.ipynb", as_version=4)
    text = {cell.id: cell.source for cell in notebook.cells}
    for name in SEEING:
        count = len({(case.group, case.kind) for case in cases_of(name)})
        assert f"on functions of {count} kinds" in text[name.replace("_", "-")]
    kinds = {label: len({case.kind for case in cases_of("norm_test") if case.group == label})
             for label in ("passes", "fails")}
    assert (f"{kinds['passes']} kinds of right norms and {kinds['fails']} kinds of wrong ones"
            in text["norm-test"])
    assert f"how many of its {seeing_boxes.CALLS} calls" in text["mixes-examples"]


def test_a_right_answer_of_another_hand_is_right_on_many_seeds():
    for name in DETECTORS:
        ways = legal_checks.ANSWERS[name]
        for seed, way in enumerate(list(ways)[:6]):
            assert checked(name, ways[way], 100 + seed).outcome == "right", (name, way)
