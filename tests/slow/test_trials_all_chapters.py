"""The trials of chapter 1 for an exercise of every other chapter: each costs its answer at most."""

import pytest
from grading import classroom, hazards
from grading.runs import graded, of, scores

from lnres_utils import specs

# An exercise of each chapter, of NumPy or of torch, of numbers, of letters or of black boxes.
TARGETS = {"before-and-after": "concepts_after", "residual-path": "ResidualBlock",
           "pre-and-post-norm": "norm_order", "rmsnorm": "qk_norm",
           "practical-checks": "leaks_future", "bug-hunt": "TinyTransformer"}


def test_every_chapter_has_a_target():
    assert set(TARGETS) | {"feature-axis"} == set(specs.CHAPTERS)
    assert all(name in specs.CHAPTERS[chapter] for chapter, name in TARGETS.items())


@pytest.fixture(scope="module", params=TARGETS)
def trial(request, tmp_path_factory):
    """(name of the exercise, scores of a right notebook, {student: Result})."""
    chapter, target = request.param, TARGETS[request.param]
    solutions = classroom.solutions(chapter)
    right = solutions[target]
    sources = {"aa-neighbor": (right, ()), "zz-neighbor": (right, ())}
    for name, code in (hazards.FATAL | hazards.RAISING | hazards.HARMLESS).items():
        sources[f"{name}, inside"] = hazards.inside(right, target, code), ()
        sources[f"{name}, below"] = hazards.below(right, code), ()
    wrong = hazards.instead(right, target, "return None")
    for name, code in hazards.CHEATS.items():
        sources[name] = wrong, (code,)
    for name, code in hazards.TRICKS.items():
        sources[name] = hazards.instead(right, target, code), ()
    notebooks = {student: classroom.notebook(chapter, solutions | {target: source},
                                             {target: before})
                 for student, (source, before) in sources.items()}
    full = {name: ("right", specs.get(name).max_points) for name in specs.CHAPTERS[chapter]}
    summary, results = graded(tmp_path_factory.mktemp(chapter), notebooks)
    assert not summary.failed and not summary.unscored
    return target, full, results


def others(result, target):
    return {name: score for name, score in scores(result).items() if name != target}


def test_neighbors_and_other_answers_keep_their_scores(trial):
    target, full, results = trial
    assert scores(results["aa-neighbor"]) == scores(results["zz-neighbor"]) == full
    kept = {name: score for name, score in full.items() if name != target}
    assert {student: others(result, target) for student, result in results.items()
            if student not in hazards.CHEATS and others(result, target) != kept} == {}


def test_what_stands_below_an_answer_costs_nothing(trial):
    target, full, results = trial
    assert {student: scores(result)[target] for student, result in results.items()
            if student.endswith(", below") and scores(result)[target] != full[target]} == {}


def test_what_ends_or_breaks_an_answer_is_told(trial):
    target, _, results = trial
    for name in hazards.FATAL | hazards.RAISING:
        result = of(results[f"{name}, inside"], target)
        assert (result.outcome, result.points) == ("raised", 0), name
        assert result.public["reason"], name
    for name in hazards.FATAL:
        assert of(results[f"{name}, inside"], target).reason.startswith("It "), name


def test_what_breaks_nothing_costs_nothing(trial):
    target, full, results = trial
    for name in hazards.HARMLESS.keys() - {"seeds"}:  # dropout that always draws the same is wrong
        assert scores(results[f"{name}, inside"])[target] == full[target], name


def test_cheats_and_tricks_are_worth_nothing(trial):
    target, full, results = trial
    most = sum(points for _, points in full.values()) - full[target][1]
    for name in hazards.CHEATS | hazards.TRICKS:
        assert of(results[name], target).points == 0, name
        assert results[name].points <= most, name  # a cheat may break its own other answers
