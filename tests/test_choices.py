"""The concept inventory: the notebook asks what the key answers, and "before" keeps quiet."""

import re
from pathlib import Path

import nbformat
import pytest
from conftest import checked

from lnres_utils.specs.before_and_after import BELIEFS, LESSON, RIGHT

ROOT = Path(__file__).parents[1]
QUESTION = re.compile(r"^\*\*\d+\. `(\w+)`\*\* (.+)\n\n((?:- \*\*[a-d]\*\* .+\n?){4})", re.M)


def asked():
    notebook = nbformat.read(ROOT / "solutions/before-and-after.ipynb", as_version=4)
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return {name: re.findall(r"- \*\*([a-d])\*\* (.+)", choices)
            for name, _, choices in QUESTION.findall(text)}


def test_the_notebook_asks_the_sixteen_questions_of_the_key_with_four_choices_each():
    questions = asked()
    assert list(questions) == list(RIGHT) == list(BELIEFS) == list(LESSON)
    for name, choices in questions.items():
        letters = [letter for letter, _ in choices]
        assert letters == list("abcd")
        assert sorted([RIGHT[name], *BELIEFS[name]]) == letters


def test_no_letter_and_no_length_gives_the_answers_away():
    assert {list(RIGHT.values()).count(letter) for letter in "abcd"} == {4}
    longest = [max(choices, key=lambda choice: len(choice[1]))[0] == RIGHT[name]
               for name, choices in asked().items()]
    assert sum(longest) <= 10


@pytest.mark.parametrize("letter", "abcd")
def test_one_letter_throughout_gets_a_quarter(letter):
    for name in ("concepts_before", "concepts_after"):
        assert checked(name, lambda: dict.fromkeys(RIGHT, letter)).points == 4


def test_before_the_course_only_the_points_are_told():
    report = checked("concepts_before", lambda: {**RIGHT, "rms": "a", "speed": "?"})
    assert (report.outcome, report.points) == ("wrong", 14)
    for shown in (report.text, report._repr_html_(), str(report.public())):
        assert "rms" not in shown and "speed" not in shown
        assert "by `concepts_after`" in shown or "by <code>concepts_after</code>" in shown
    assert dict((group, points) for group, points, _ in report.scores)["rms"] == 0


def test_after_the_course_each_belief_is_named():
    report = checked("concepts_after", lambda: {**RIGHT, "rms": "A", "speed": "a"})
    assert [each.id for each in report.mistakes] == ["rms-is-layer-norm", "rms-always-faster"]
    assert report.points == 14


@pytest.mark.parametrize("name", ["concepts_before", "concepts_after"])
@pytest.mark.parametrize(("answers", "outcome", "words"), [
    ({}, "not attempted", ""),
    (dict.fromkeys(RIGHT, "?"), "not attempted", ""),
    (None, "wrong", "None; a dict of letters was expected: is there a `return`?"),
    ("abc", "wrong", "'abc'; a dict of letters was expected"),
    ({**RIGHT, "rms": "e"}, "wrong", "rms is 'e'; one of the letters a, b, c, d"),
    ({**RIGHT, "rms": 3}, "wrong", "rms is 3; one of the letters"),
    ({**RIGHT, "rms": ["a"]}, "wrong", "rms is a list; one of the letters"),
    ({**RIGHT, "RMS": "a"}, "wrong", "the key 'RMS' is not asked for"),
    ({1: "a"}, "wrong", "the key 1 is not asked for"),
])
def test_letters_are_read_with_care(name, answers, outcome, words):
    report = checked(name, lambda: answers)
    assert report.outcome == outcome and words in report.text
