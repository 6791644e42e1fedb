"""The folder of a run: whole files, one grader, one seed, and results that are recognized again."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from lnres_utils.checking.report import Report
from lnres_utils.grading import storing
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.model import Graded, Limits, Result, Source, Submission

LIMITS = Limits()
ADA = Submission("Ada Łovelace", Source(Path("ada.ipynb")))
BEN = Submission("ben", Source(Path("ben.ipynb")), assignment="two")
PUBLIC = Report("layer_norm", "wrong", 2, 10, reason="ε ≠ 0").public()


def result(submission, chapter="feature-axis", **fields):
    exercise = Graded("layer_norm", "wrong", 2, 10, "ε ≠ 0", PUBLIC, {"a": [1, None]}, ("note",))
    return Result(submission.student, chapter, "x.ipynb", "mark", (exercise,), notes=("n",),
                  **fields)


@pytest.fixture
def out(tmp_path):
    with storing.locked(tmp_path / "grades"):
        yield tmp_path / "grades"


@pytest.mark.parametrize("fields", [
    {}, {"problem": "no cells", "late": True, "learner_id": "7", "stopped": 3, "seconds": 0.25}])
def test_a_result_comes_back_as_it_was_kept(out, fields):
    kept = result(ADA, **fields)
    storing.store(out, ADA, kept)
    assert storing.stored(out, storing.stored_name(ADA)) == kept


def test_names_that_utf8_has_no_bytes_for_are_kept(out):
    odd = replace(ADA, student="a\udce4\x00b")
    storing.store(out, odd, result(odd))
    assert storing.stored(out, storing.stored_name(odd)).student == odd.student


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", "{}", '{"student": 3}', '{"exercises": 1}'])
def test_what_cannot_be_read_counts_as_not_there(out, text):
    storing.store(out, ADA, result(ADA))
    path = out / "results" / f"{storing.stored_name(ADA)}.json"
    path.write_text(text)
    assert storing.stored(out, storing.stored_name(ADA)) is None
    path.unlink()
    assert storing.stored(out, storing.stored_name(ADA)) is None


def test_a_result_of_another_version_counts_as_not_there(out):
    storing.store(out, ADA, result(ADA))
    path = out / "results" / f"{storing.stored_name(ADA)}.json"
    told = json.loads(path.read_text())
    del told["stopped"]
    path.write_text(json.dumps(told))
    assert storing.stored(out, storing.stored_name(ADA)) is None


def test_results_are_those_of_the_last_run_by_student_and_chapter(out):
    second = replace(ADA, assignment="b")
    everyone = [BEN, second, ADA]
    storing.open_run(out, everyone, 3, LIMITS)
    for each, chapter in ((BEN, "rmsnorm"), (second, "bug-hunt"), (ADA, "feature-axis")):
        storing.store(out, each, result(each, chapter))
    shown = [(each.student, each.chapter) for each in storing.results(out)]
    assert shown == [(ADA.student, "bug-hunt"), (ADA.student, "feature-axis"), ("ben", "rmsnorm")]
    storing.open_run(out, [BEN], 3, LIMITS)
    assert [each.student for each in storing.results(out)] == ["ben"]
    assert len(list((out / "results").glob("*.json"))) == 3


def test_a_submission_has_a_name_of_its_own():
    others = [ADA, BEN, replace(BEN, assignment=""), replace(BEN, student="Ben"),
              replace(ADA, student="../ada"), replace(ADA, student="a" * 500)]
    names = [storing.stored_name(each) for each in others]
    assert len({name.lower() for name in names}) == len(names)
    assert all(Path(name).name == name and len(name.encode()) < 100 for name in names)


def test_the_seed_stays_and_another_one_is_refused(out):
    first = storing.open_run(out, [ADA], None, LIMITS)
    assert 0 <= first < 2**32
    assert storing.open_run(out, [ADA], None, LIMITS) == first
    assert storing.open_run(out, [ADA], first, LIMITS) == first
    with pytest.raises(GradingError, match=f"--seed is {first + 1}; .* were made with {first}"):
        storing.open_run(out, [ADA], first + 1, LIMITS)


def test_two_folders_get_two_seeds(tmp_path):
    seeds = set()
    for name in "ab":
        with storing.locked(tmp_path / name):
            seeds.add(storing.open_run(tmp_path / name, [ADA], None, LIMITS))
    assert len(seeds) == 2


def test_run_json_says_what_the_run_was(out):
    storing.open_run(out, [ADA, BEN], 7, LIMITS)
    run = json.loads((out / "run.json").read_text())
    assert run["seed"] == 7 and run["limits"]["seconds"] == LIMITS.seconds
    assert {"lnres", "numpy", "torch", "created"} < set(run)
    assert run["submissions"] == [storing.stored_name(ADA), storing.stored_name(BEN)]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"seed": "x"}'])
def test_a_foreign_run_json_is_an_error_that_says_what_to_do(out, text):
    (out / "run.json").write_text(text)
    with pytest.raises(GradingError, match="remove it, or choose another folder"):
        storing.open_run(out, [ADA], 7, LIMITS)


def test_the_mark_of_a_result_changes_with_all_that_decides_it(monkeypatch):
    def mark(submission=ADA, data=b"1", chapter="feature-axis", seed=1, limits=LIMITS):
        return storing.fingerprint(submission, data, chapter, seed, limits)

    first = mark()
    assert mark() == first == mark(replace(ADA, source=Source(Path("ada.ipynb"), modified=5)))
    changed = [mark(data=b"2"), mark(seed=2), mark(chapter="rmsnorm"), mark(limits=Limits(9)),
               mark(replace(ADA, late=True)), mark(replace(ADA, notes=("older passed over",)))]
    spec = replace(storing.specs.get("layer_norm"), version=99)
    monkeypatch.setattr(storing.specs, "get", lambda name: spec)
    changed.append(mark())
    assert len({first, *changed}) == len(changed) + 1


def test_a_folder_has_one_grader(out):
    with pytest.raises(GradingError, match="is used by another"), storing.locked(out):
        pass


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(GradingError, match="cannot be written: Not a directory"):
        with storing.locked(tmp_path / "file" / "grades"):
            pass


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_file_is_written_whole_or_not_at_all(out, monkeypatch, broken):
    path = out / "file.txt"
    storing.write(path, "before")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(OSError, match="No space left"):
        storing.write(path, "after")
    with pytest.raises(GradingError, match="No space left on device"):
        storing.store(out, ADA, result(ADA))
    assert path.read_text() == "before"
    assert [each.name for each in out.iterdir() if each.name.startswith(".new")] == []


def test_what_a_killed_grader_left_over_is_removed(out):
    for folder in (out, out / "results"):
        (folder / ".new-abc").write_text("half")
    storing.open_run(out, [ADA], 7, LIMITS)
    assert not list(out.rglob(".new-*"))
