"""The made-up classes of the grading tests: valid notebooks, and answers that are what they say."""

import nbformat
import pytest
from grading import classroom

from lnres_utils import specs

CHAPTERS = list(specs.CHAPTERS)
HAND_MADE = [pytest.param(chapter, name, way, id=f"{name}-{way.kind}-{way.label}")
             for chapter in classroom.BY_HAND
             for name, ways in classroom.variants(chapter).items() for way in ways]


def read(data):
    nb = nbformat.reads(data.decode(), as_version=4)
    nbformat.validate(nb)
    return nb


def total(results):
    return sum(points for _, points in results.values())


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_solved_notebook_is_that_of_solutions_outside_outputs(chapter):
    made = read(classroom.solved(chapter))
    stored = nbformat.read(classroom.ROOT / "solutions" / f"{chapter}.ipynb", as_version=4)
    assert made.metadata == stored.metadata
    for mine, its in zip(made.cells, stored.cells, strict=True):
        assert (mine.id, mine.cell_type, mine.source) == (its.id, its.cell_type, its.source)
        assert mine.metadata == its.metadata


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_unsolved_notebook_is_the_one_handed_out(chapter):
    stored = (classroom.ROOT / "exercises" / f"{chapter}.ipynb").read_text(encoding="utf-8")
    assert read(classroom.unsolved(chapter)) == nbformat.reads(stored, as_version=4)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_all_solved_deserves_full_marks_and_nothing_solved_none(chapter):
    names = specs.CHAPTERS[chapter]
    everything = classroom.deserved(chapter, classroom.solutions(chapter))
    assert everything == {name: ("right", specs.get(name).max_points) for name in names}
    nothing = classroom.deserved(chapter, {})
    assert list(nothing) == list(names)
    assert total(nothing) == 0
    assert not any(outcome == "right" for outcome, _ in nothing.values())


@pytest.mark.parametrize(("chapter", "exercise", "way"), HAND_MADE)
def test_an_answer_by_hand_is_of_its_kind(chapter, exercise, way):
    if way.kind == "syntax" or way.label == "the cell was emptied":
        with pytest.raises(KeyError):
            classroom.defined(chapter, exercise, way)
        return
    report = classroom.report_on(exercise, classroom.defined(chapter, exercise, way))
    outcomes = {"right": ("right",), "raising": ("raised",), "unfinished": ("not attempted",)}
    assert report.outcome in outcomes.get(way.kind, ("wrong", "raised")), report.text
    named = {"named": 1, "two": 2, "unnamed": 0}.get(way.kind, len(report.mistakes))
    assert len(report.mistakes) == named, report.text
    if way.kind == "two":
        assert report.certainty in ("both", "each"), report.text


@pytest.mark.parametrize("exercise", specs.CHAPTERS["feature-axis"])
def test_each_exercise_of_chapter_1_has_many_wrong_answers_by_hand(exercise):
    kinds = [way.kind for way in classroom.variants("feature-axis")[exercise]]
    assert len(kinds) - kinds.count("right") >= 6
    assert {"right", "named", "two", "unnamed", "raising", "syntax"} <= set(kinds)


@pytest.mark.parametrize("chapter", [each for each in CHAPTERS if each not in classroom.BY_HAND])
def test_slips_and_broken_cells_cost_points_in_every_other_chapter(chapter):
    allowed = {"right": {"right"}, "slip": {"wrong", "raised"}, "syntax": {"not attempted"},
               "raising": {"raised", "not attempted"}, "unfinished": {"not attempted"}}
    ways = classroom.variants(chapter)
    for kind, outcomes in allowed.items():
        # The last slip of an exercise: the first ones may fall on a comment.
        last = {name: [way for way in ways[name] if way.kind == kind][-1] for name in ways}
        found = classroom.deserved(chapter, {name: way.source for name, way in last.items()})
        for name, (outcome, points) in found.items():
            assert outcome in outcomes, (name, last[name])
            assert (points == specs.get(name).max_points) == (kind == "right"), (name, last[name])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_class_is_of_valid_notebooks_and_always_the_same(chapter):
    first = dict(classroom.mixed_class(chapter, 20, seed=3))
    assert len(first) == 20
    for data in first.values():
        read(data)
    assert first == dict(classroom.mixed_class(chapter, 20, seed=3))
    assert first != dict(classroom.mixed_class(chapter, 20, seed=4))
    assert len(set(first.values())) > 5


def test_a_class_of_chapter_1_is_of_mixed_quality():
    class_ = list(classroom.members("feature-axis", 20))
    most = sum(specs.get(name).max_points for name in specs.CHAPTERS["feature-axis"])
    for member in class_:
        points, right = total(member.expected), member.profile in ("all right", "cells of its own")
        assert (points == most) == right, member.profile
        assert points == 0 or member.profile != "untouched"
    outcomes = {outcome for member in class_ for outcome, _ in member.expected.values()}
    assert outcomes == {"right", "wrong", "raised", "not attempted"}


def test_cells_of_a_students_own_stand_before_the_answer():
    before = {"layer_norm": ["root = np.sqrt", "# a note"]}
    nb = read(classroom.notebook("feature-axis", {}, before))
    at = next(i for i, cell in enumerate(nb.cells) if classroom.exercise_of(cell) == "layer_norm")
    assert [cell.source for cell in nb.cells[at - 2 : at]] == before["layer_norm"]


def test_an_answer_to_no_exercise_is_an_error():
    with pytest.raises(KeyError, match="feature-axis has no exercise layernorm"):
        classroom.notebook("feature-axis", {"layernorm": "pass"})
