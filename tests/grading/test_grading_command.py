"""The command ``lnres grade``: what an instructor types, and what comes of it."""

import csv
import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from grading.classroom import notebook, solved, unsolved
from grading.runs import HEARS_CTRL_C

CHAPTER, OTHER = "feature-axis", "rmsnorm"
WRONG = """def standardize(x, eps=1e-5):
    return (x - x.mean()) / np.sqrt(x.var(ddof=1) + eps)
"""


def command(folder, *words):
    return subprocess.run([sys.executable, "-m", "lnres_utils.cli", "grade", *map(str, words)],
                          cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A graded class of three; ben handed in two chapters."""
    folder = tmp_path_factory.mktemp("class")
    for student, files in {
            "ana": {"x": solved(CHAPTER)},
            "ben": {CHAPTER: notebook(CHAPTER, {"standardize": WRONG}), OTHER: solved(OTHER)},
            "cy": {"x": unsolved(CHAPTER)}}.items():
        (folder / "in" / student).mkdir(parents=True)
        for name, data in files.items():
            (folder / "in" / student / f"{name}.ipynb").write_bytes(data)
    said = command(folder, "in", "--out", "out", "--chapter", CHAPTER, "--seed", 1, "--nbgrader")
    assert said.returncode == 0, said.stderr
    return folder, said


def test_all_that_is_promised_is_written(run):
    folder, said = run
    assert {path.name for path in (folder / "out").iterdir() if path.name[0] != "."} == {
        "class.html", "feedback", "gradebook.csv", "nbgrader.csv", "results", "results.jsonl",
        "run.json", "totals.csv"}
    assert {path.stem for path in (folder / "out" / "feedback").iterdir()} == {"ana", "ben", "cy"}
    assert "3 submissions, on average" in said.stdout and "3 graded" in said.stdout
    assert said.stderr == ""


def test_a_notebook_of_another_chapter_is_no_second_submission(run):
    folder, _ = run
    rows = table(folder / "out" / "totals.csv")
    assert [(row["student"], row["chapter"]) for row in rows] == [
        (name, CHAPTER) for name in ("ana", "ben", "cy")]
    assert rows[0]["points"] == rows[0]["max_points"] == "56" and rows[2]["points"] == "0"
    graded = [row for row in table(folder / "out" / "gradebook.csv") if row["student"] == "ben"]
    assert len(graded) == 7
    assert (graded[0]["outcome"], graded[0]["mistakes"]) == ("wrong", "unbiased-variance")


def test_again_it_keeps_what_is_unchanged_and_says_who_is_no_longer_there(run, tmp_path):
    folder, _ = run
    (tmp_path / "in").mkdir()
    for name in ("ana", "cy"):
        (tmp_path / "in" / f"{name}.ipynb").write_bytes(
            (folder / "in" / name / "x.ipynb").read_bytes())
    words = ("in", "--out", "out", "--seed", 1)
    assert "2 graded" in command(tmp_path, *words).stdout
    before = (tmp_path / "out" / "gradebook.csv").read_bytes()
    assert "0 graded, 2 unchanged" in command(tmp_path, *words).stdout
    assert (tmp_path / "out" / "gradebook.csv").read_bytes() == before
    (tmp_path / "in" / "cy.ipynb").unlink()
    said = command(tmp_path, *words).stdout
    assert "not among these submissions" in said and "\n  cy\n" in said
    assert {row["student"] for row in table(tmp_path / "out" / "gradebook.csv")} == {"ana"}
    assert not (tmp_path / "out" / "feedback" / "cy.html").exists()


@pytest.mark.parametrize(("words", "says"), [
    (("nowhere", "--out", "o"), "'nowhere' does not exist"),
    (("in", "--out", "o", "--chapter", "layers"), "no chapter 'layers'"),
    (("in", "--out", "in"), "where the submissions lie"),
    (("in", "--out", "o", "--pattern", "("), "pattern"),
    (("in", "--out", "o", "--column", "x"), "--canvas or"),
    (("in", "--out", "o", "--canvas", "in/ana/x.ipynb"), "Canvas gradebook"),
    (("in", "--out", "o", "--moodle-columns", "Grade=Note"), "--moodle names"),
    (("in", "--out", "o", "--moodle", "in/ana/x.ipynb", "--moodle-columns", "Note"), "is 'Note'"),
    (("in", "--out", "o", "--book", "javascript:x"), "address of the book"),
    (("in", "--out", "o", "--book", "in"), "address of the book is 'in'"),
    (("in", "--out", "o", "--workers", "0"), "workers"),
    (("in", "--out", "out", "--seed", "2"), "--seed is 2"),
])
def test_bad_use_is_one_line_before_anything_is_graded(run, words, says):
    folder, _ = run
    said = command(folder, *words)
    assert said.returncode == 2 and said.stdout == ""
    assert says in said.stderr and said.stderr.count("\n") == 1
    assert not (folder / "o").exists()


def test_one_unreadable_file_is_no_chapter_of_its_own(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ana.ipynb").write_bytes(solved(CHAPTER))
    (tmp_path / "in" / "ben.ipynb").write_bytes(b"")
    (tmp_path / "in" / "cy.ipynb").write_bytes(unsolved(CHAPTER))
    (tmp_path / "canvas.csv").write_text(
        "Student,ID,SIS Login ID,Section,Norms (1)\nAna,1,ana,S,\nBen,2,ben,S,\n")
    (tmp_path / "moodle.csv").write_text(
        "ID,Voller Name,Bewertung,Zuletzt geändert (Bewertung)\nTeilnehmer/in1,ana,,-\n")
    (tmp_path / "book" / "chapters" / "feature-axis").mkdir(parents=True)
    (tmp_path / "book" / "chapters" / "feature-axis" / "geometry.html").touch()
    names = ["Identifier=ID", "Full name=Voller Name", "Grade=Bewertung",
             "Last modified (grade)=Zuletzt geändert (Bewertung)"]
    said = command(tmp_path, "in", "--out", "out", "--canvas", "canvas.csv", "--moodle",
                   "moodle.csv", "--book", "book", *(f"--moodle-columns={each}" for each in names))
    assert said.returncode == 0 and "ben: an empty file" in said.stdout
    assert (tmp_path / "out" / "filled-canvas.csv").read_text().splitlines()[1:] == [
        "Ana,1,ana,S,56.00", "Ben,2,ben,S,"]
    assert (tmp_path / "out" / "filled-moodle.csv").read_text().endswith("in1,ana,56.00,-\n")
    page = (tmp_path / "out" / "feedback" / "ben.html").read_text()
    assert "The reason: an empty file." in page
    page = (tmp_path / "out" / "feedback" / "cy.html").read_text()
    assert '"../../book/chapters/feature-axis/geometry.html"' in page


def test_after_an_interruption_the_same_command_goes_on(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(40):
        (tmp_path / "in" / f"s{number}.ipynb").write_bytes(solved(CHAPTER))
    words = ["in", "--out", "out", "--seed", "1"]
    code = f"{HEARS_CTRL_C}from lnres_utils.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, "grade", *words], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    results = tmp_path / "out" / "results"
    while process.poll() is None and not (results.exists() and len(os.listdir(results)) > 2):
        time.sleep(0.05)
    process.send_signal(2)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "results are kept; the same command goes on" in errors and errors.count("\n") == 1
    said = command(tmp_path, *words)
    assert said.returncode == 0 and "unchanged since an earlier run" in said.stdout
    assert {row["points"] for row in table(Path(tmp_path, "out", "totals.csv"))} == {"56"}
