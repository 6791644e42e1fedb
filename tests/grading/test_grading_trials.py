"""Code that breaks out, breaks down or cheats: it costs its own answer at most, and no neighbour.

One run grades a class in which each student does one such thing to the exercise ``layer_norm``;
the other answers of each are right.
"""

import pytest
from grading import classroom, hazards
from grading.runs import graded, of, scores

from lnres_utils import specs

CHAPTER, TARGET = "feature-axis", "layer_norm"
SOLUTIONS = classroom.solutions(CHAPTER)
RIGHT = SOLUTIONS[TARGET]
FULL = {name: ("right", specs.get(name).max_points) for name in specs.CHAPTERS[CHAPTER]}
MOST = specs.get(TARGET).max_points


def _students():
    """{student: (source of the answer, cells before it)}."""
    found = {"aa-neighbor": (RIGHT, ()), "zz-neighbor": (RIGHT, ())}
    for name, code in (hazards.FATAL | hazards.RAISING | hazards.HARMLESS).items():
        found[f"{name}, inside"] = hazards.inside(RIGHT, TARGET, code), ()
        found[f"{name}, below"] = hazards.below(RIGHT, code), ()
    wrong = hazards.instead(RIGHT, TARGET, hazards.THIEF)
    for name, code in hazards.CHEATS.items():
        found[name] = wrong, (code,)
    for name, code in hazards.TRICKS.items():
        found[name] = hazards.instead(RIGHT, TARGET, code), ()
    return found


STUDENTS = _students()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    notebooks = {student: classroom.notebook(CHAPTER, SOLUTIONS | {TARGET: source},
                                             {TARGET: before})
                 for student, (source, before) in STUDENTS.items()}
    return graded(tmp_path_factory.mktemp("trials"), notebooks)


def test_every_submission_has_a_score_and_the_grader_failed_at_none(run):
    summary, results = run
    assert set(results) == set(STUDENTS)
    assert not summary.failed and not summary.unscored
    assert all(len(result.exercises) == len(FULL) for result in results.values())


@pytest.mark.parametrize("student", ["aa-neighbor", "zz-neighbor"])
def test_the_neighbors_get_full_marks(run, student):
    assert scores(run[1][student]) == FULL


@pytest.mark.parametrize("student", [each for each in STUDENTS if each not in (
    "forged frames", "busy thread")])
def test_the_other_answers_of_the_same_notebook_keep_their_scores(run, student):
    found = scores(run[1][student])
    assert found | {TARGET: None} == FULL | {TARGET: None}


@pytest.mark.parametrize("name", hazards.FATAL)
def test_what_ends_an_answer_costs_that_answer_and_says_why(run, name):
    graded = of(run[1][f"{name}, inside"], TARGET)
    assert (graded.outcome, graded.points) == ("raised", 0)
    assert graded.public["reason"] == graded.reason
    assert graded.reason.startswith(("It took more than 0.5 s", "It ended the process",
                                     "It wrote"))


@pytest.mark.parametrize("name", hazards.FATAL)
def test_below_the_answer_it_costs_nothing_and_is_told(run, name):
    result = run[1][f"{name}, below"]
    assert scores(result) == FULL
    assert result.stopped >= 1
    assert any("was cut before its statement" in note for note in result.notes)
    assert of(result, TARGET).public["reason"].startswith("Its cell did not run to the end: it ")


@pytest.mark.parametrize("name", hazards.RAISING)
def test_what_raises_inside_is_told_without_the_exception(run, name):
    graded = of(run[1][f"{name}, inside"], TARGET)
    assert (graded.outcome, graded.points) == ("raised", 0)
    assert graded.public["reason"] == "It raised an exception."
    assert graded.reason.startswith("layer_norm raised a")


@pytest.mark.parametrize("name", hazards.RAISING)
def test_below_the_answer_an_exception_costs_nothing_and_the_teacher_is_told(run, name):
    result = run[1][f"{name}, below"]
    assert scores(result) == FULL
    assert result.stopped == 0
    assert any("stopped:" in note for note in result.notes)
    assert of(result, TARGET).public["reason"] == ""


@pytest.mark.parametrize("place", ["inside", "below"])
@pytest.mark.parametrize("name", hazards.HARMLESS)
def test_what_breaks_nothing_costs_nothing(run, name, place):
    assert scores(run[1][f"{name}, {place}"]) == FULL


@pytest.mark.parametrize("name", hazards.CHEATS)
def test_nothing_makes_a_wrong_answer_worth_a_point(run, name):
    graded = of(run[1][name], TARGET)
    assert graded.outcome in ("wrong", "raised") and graded.points == 0
    assert run[1][name].points <= sum(points for _, points in FULL.values()) - MOST


@pytest.mark.parametrize("name", hazards.TRICKS)
def test_what_is_no_array_of_numbers_is_wrong(run, name):
    graded = of(run[1][name], TARGET)
    assert graded.outcome in ("wrong", "raised") and graded.points == 0
