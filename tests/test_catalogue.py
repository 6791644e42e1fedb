"""The catalogue of reported mistakes: each has its place in the course, and the place holds it."""

import csv
from collections import Counter
from importlib import import_module
from pathlib import Path

import nbformat
import numpy as np
import pytest
from answers.audited import AUDITED
from conftest import checked

from lnres_utils import audit, specs

ROOT = Path(__file__).parent.parent
SUBJECTS = {  # prefix of the items: subject, how many there are, how many an exercise must name
    "LN-": ("feature axis", 16, 13), "AX-14": ("feature axis", 1, 0),
    "RES-": ("residual path", 14, 10), "PP-": ("pre- and post-norm", 12, 7),
    "RMS-": ("RMSNorm", 14, 12),
    "NUM-": ("practical checks", 8, 5), "AX-0": ("practical checks", 7, 2),
    "AX-10": ("practical checks", 1, 0), "AX-11": ("practical checks", 1, 0),
    "CHK-": ("practical checks", 3, 3),
}
ITEMS = 77  # of the catalogue; the rows S3-... are plausible mistakes without a report


WILD = [import_module(f"answers.{chapter.replace('-', '_')}") for chapter in specs.CHAPTERS]
ANSWERS = {case: entry for chapter in WILD for case, entry in chapter.ANSWERS.items()}
MORE = [entry for chapter in WILD for entry in chapter.MORE]


def read():
    with open(ROOT / "tests" / "cases.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


ROWS = read()


def of_kind(kind):
    return [pytest.param(row, id=row["case"]) for row in ROWS if row["kind"] == kind]


def test_every_item_has_one_row():
    cases = [row["case"] for row in ROWS]
    assert len(set(cases)) == len(cases)
    assert len([case for case in cases if "+" not in case and not case.startswith("S3-")]) == ITEMS


def test_every_row_is_of_a_known_kind_and_has_a_title():
    for row in ROWS:
        assert row["kind"] in ("exercise", "lesson", "audit", "out"), row
        assert row["title"].endswith("."), row
        assert row["kind"] != "out" or row["note"], row


def test_few_items_are_left_out_and_most_are_named_by_an_exercise(capsys):
    kinds = Counter(row["kind"] for row in ROWS)
    counts = {}
    for prefix, (subject, items, least) in SUBJECTS.items():
        rows = [row for row in ROWS if row["case"].startswith(prefix) and "+" not in row["case"]]
        named = sum(row["kind"] == "exercise" for row in rows)
        flagged = sum(row["kind"] == "audit" for row in rows)
        assert len(rows) == items and named >= least, subject
        counts[subject] = counts.get(subject, np.zeros(3, int)) + (
            named, flagged, items)
    with capsys.disabled():
        print(f"\ncatalogue: {len(ROWS)} rows, {dict(kinds)}; named by an exercise "
              "and flagged by an audit: "
              + "; ".join(f"{subject} {named} + {flagged} of {items}"
                          for subject, (named, flagged, items) in counts.items()), end=" ")
    assert kinds["out"] <= 8


def test_every_case_that_a_check_can_name_has_a_row():
    names = {knob.case for exercise in specs.exercises.values() for knob in exercise.knobs}
    assert names - {""} <= {row["case"] for row in ROWS}


@pytest.mark.parametrize("row", of_kind("exercise"))
def test_a_wrong_answer_as_found_in_the_wild_is_named(row):
    exercise, wrong, mistake = ANSWERS[row["case"]]
    assert (row["where"], row["expect"]) == (exercise, mistake)
    report = checked(exercise, wrong)
    assert report.outcome in ("wrong", "raised")
    assert report.points < report.max_points
    assert report.certainty == "one"
    assert [(each.id, each.case) for each in report.mistakes] == [(mistake, row["case"])]


@pytest.mark.parametrize(("exercise", "wrong", "mistake", "case"), [
    pytest.param(*entry, id=entry[1].__name__) for entry in MORE])
def test_other_mistakes_by_other_hands_are_named(exercise, wrong, mistake, case):
    report = checked(exercise, wrong)
    assert report.certainty == "one"
    assert [each.id for each in report.mistakes] == [mistake]
    assert not case or report.mistakes[0].case == case


def test_every_wrong_answer_has_its_row():
    assert set(ANSWERS) == {row["case"] for row in ROWS if row["kind"] == "exercise"}


@pytest.mark.parametrize("row", of_kind("audit"))
def test_an_audit_flags_the_fault_and_not_the_mended_module(row):
    check, verdict, modules = AUDITED[row["case"]]
    assert (row["where"], row["expect"]) == (check, verdict)
    finding, mended = (
        audit(module, modules.x, axes=modules.axes, checks=[check], **modules.kwargs)[check]
        for module in (modules.faulty, modules.mended))
    assert finding.verdict == verdict in ("problem", "info")
    assert modules.evidence in finding.evidence
    assert mended.verdict == "ok", mended.evidence


def test_every_audited_module_has_its_row():
    assert set(AUDITED) == {row["case"] for row in ROWS if row["kind"] == "audit"}


@pytest.mark.parametrize("row", of_kind("lesson"))
def test_a_lesson_shows_the_case(row):
    notebook = nbformat.read(ROOT / f"{row['where']}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if row["expect"] in cell.metadata.get("tags", ())]
    assert len(cells) == 1, f"one cell of {row['where']} carries the tag {row['expect']}"
    assert cells[0].cell_type == "code" and cells[0].source.strip()
    assert cells[0].outputs, "its output is stored, and run again by nbval"
