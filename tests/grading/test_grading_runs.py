"""Whole runs: the same each time, going on where they were, and gone when the grader is."""

import functools
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from grading import classroom, hazards
from grading.runs import QUICK, book, graded, scores, start, submissions

from lnres_utils.grading import children, grading, storing
from lnres_utils.grading.errors import GradingError, Interrupted
from lnres_utils.grading.grading import grade, results
from lnres_utils.grading.model import Source, Submission
from lnres_utils.grading.pool import Pool

CHAPTER = "feature-axis"
RIGHT = classroom.solutions(CHAPTER)
SOLVED, UNSOLVED = classroom.solved(CHAPTER), classroom.unsolved(CHAPTER)
FEW = {"ada": SOLVED, "ben": UNSOLVED}
PATCHED = {"processes": "spawn"}  # workers that are forks of this process, and so patched as it is


@pytest.fixture(scope="module")
def class_of_ten(tmp_path_factory):
    """A mixed class, graded by two workers."""
    notebooks = dict(classroom.mixed_class(CHAPTER, 10))
    folder = tmp_path_factory.mktemp("ten")
    summary, found = graded(folder, notebooks)
    return notebooks, folder, summary, found


def test_a_mixed_class_gets_what_it_deserves(class_of_ten):
    _, _, summary, found = class_of_ten
    for member in classroom.members(CHAPTER, 10):
        for each in found[member.student].exercises:
            stopped = each.reason.startswith("Its cell stopped")  # a notebook's check never ran
            outcome = "not attempted" if stopped else each.outcome
            assert (outcome, each.points) == member.expected[each.exercise]
    assert (summary.graded, summary.kept, summary.unscored, summary.failed) == (10, 0, (), ())
    assert summary.workers == 2 and summary.seed == 1


@pytest.mark.parametrize("options", [
    {}, {"workers": 1}, {"processes": "spawn", "limits": QUICK}], ids=["again", "alone", "spawned"])
def test_the_same_seed_gives_the_same_gradebook(class_of_ten, tmp_path, options):
    notebooks, folder, *_ = class_of_ten
    if "processes" in options:  # two seconds for each
        notebooks = dict(list(notebooks.items())[:2])
    summary, found = graded(tmp_path, notebooks, **options)
    lines = [line for line in book(folder).splitlines(keepends=True)
             if line.startswith(("student,", *notebooks))]
    assert book(tmp_path) == "".join(lines)
    assert all(len(result.exercises) == len(RIGHT) for result in found.values())


def test_another_seed_gives_the_same_scores(class_of_ten, tmp_path):
    notebooks, _, _, found = class_of_ten
    _, others = graded(tmp_path, notebooks, seed=2)
    assert {name: scores(each) for name, each in others.items()} == {
        name: scores(each) for name, each in found.items()}


def test_unchanged_submissions_are_kept_and_changed_ones_graded_again(tmp_path):
    graded(tmp_path, FEW)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "grades/results").iterdir()}
    summary, _ = graded(tmp_path, FEW)
    assert (summary.graded, summary.kept) == (0, 2)
    assert before == {path: path.stat().st_mtime_ns for path in before}
    summary, found = graded(tmp_path, FEW | {"ben": SOLVED, "cid": UNSOLVED})
    assert (summary.graded, summary.kept) == (2, 1)
    assert [found[name].points for name in ("ada", "ben", "cid")] == [56, 56, 0]
    _, found = graded(tmp_path, {"ada": SOLVED})
    assert list(found) == ["ada"]


def test_a_result_that_cannot_be_read_is_made_again(tmp_path):
    graded(tmp_path, FEW)
    (tmp_path / "grades/results/ada.json").write_text('{"student": "ada"')
    summary, found = graded(tmp_path, FEW)
    assert (summary.graded, summary.kept) == (1, 1) and found["ada"].points == 56


def test_what_cannot_be_read_is_told_and_keeps_nobody_from_a_score(tmp_path):
    made = submissions(tmp_path / "in", FEW | {"cid": b"{", "dan": b""})
    made.append(Submission("eve", Source(tmp_path / "missing.ipynb")))
    summary = grade(made, tmp_path / "grades", seed=1, workers=1)
    found = {each.student: each for each in results(tmp_path / "grades")}
    assert [name for name, _ in summary.unscored] == ["cid", "dan", "eve"]
    assert all(found[name].problem == reason for name, reason in summary.unscored)
    assert found["ada"].points == 56 and not summary.failed


def test_with_a_chapter_what_cannot_be_read_has_all_its_exercises(tmp_path):
    _, found = graded(tmp_path, {"cid": b"{"}, chapter=CHAPTER)
    assert set(scores(found["cid"]).values()) == {("not attempted", 0)}
    assert found["cid"].max_points == 56


def test_two_chapters_in_one_run(tmp_path):
    _, found = graded(tmp_path, {"ada": SOLVED, "ben": classroom.solved("rmsnorm")})
    assert [found[name].chapter for name in ("ada", "ben")] == [CHAPTER, "rmsnorm"]
    assert all(each.points == each.max_points for each in found.values())


@pytest.mark.parametrize(("options", "message"), [
    ({"chapter": "nine"}, "no chapter 'nine'; use one of before-and-after, "),
    ({"seed": 2}, "--seed is 2; .* were made with 1"),
])
def test_bad_use_is_one_line(tmp_path, options, message):
    graded(tmp_path, {"ada": UNSOLVED})
    with pytest.raises(GradingError, match=message):
        graded(tmp_path, {"ada": UNSOLVED}, **options)


def test_strict_refuses_where_a_part_of_the_sandbox_is_missing(tmp_path, monkeypatch):
    summary, _ = graded(tmp_path, {"ada": UNSOLVED})
    assert set(summary.sandbox) >= {"files", "network", "processes", "memory", "missing"}
    command = functools.partial(children.starting.command, without=("seccomp",))
    monkeypatch.setattr(children.starting, "command", command)
    with pytest.raises(GradingError, match="--strict: missing here: "):
        graded(tmp_path / "strict", {"ada": UNSOLVED}, strict=True)
    summary, found = graded(tmp_path / "lax", {"ada": SOLVED})
    assert found["ada"].points == 56 and any("not closed" in note for note in summary.notes)


def test_a_sandbox_that_does_not_start_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(children.starting, "command", lambda *args, **options: [
        sys.executable, "-c", "import sys; sys.exit('no such thing')"])
    with pytest.raises(GradingError, match="did not start: no such thing"):
        graded(tmp_path, FEW)


def test_a_fault_of_ours_at_one_submission_is_told_and_tried_again(tmp_path, monkeypatch):
    mark = grading.Marking.mark

    def faulty(marking):
        if "NotImplementedError" in marking._cells[-1].source:
            raise ZeroDivisionError("ours")
        return mark(marking)

    monkeypatch.setattr(grading.Marking, "mark", faulty)
    summary, found = graded(tmp_path, FEW, **PATCHED)
    assert summary.failed == ("ben",) and found["ada"].points == 56
    assert "ZeroDivisionError: ours" in found["ben"].notes and "Zero" not in found["ben"].problem
    monkeypatch.undo()
    summary, found = graded(tmp_path, FEW)
    assert (summary.graded, summary.kept, summary.failed) == (1, 1, ())


def test_a_full_disk_is_one_line_and_nothing_is_half_written(tmp_path, monkeypatch):
    fsync = os.fsync

    def full(number):
        if "results" in os.readlink(f"/proc/self/fd/{number}"):
            raise OSError(28, "No space left on device")
        fsync(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GradingError) as error:
        graded(tmp_path, FEW, **PATCHED)
    assert "No space left on device. 0 of 2 results are kept; the same command" in str(error.value)
    assert list((tmp_path / "grades/results").iterdir()) == []
    monkeypatch.undo()
    summary, _ = graded(tmp_path, FEW)
    assert summary.graded == 2


def test_progress_is_watched(tmp_path):
    seen = []

    def watch(replies, total):
        for each in replies:
            seen.append(total)
            yield each

    graded(tmp_path, FEW, watch=watch)
    assert seen == [2, 2]


# Workers that die.


def dying(job, starter):
    """Work that ends its process: always for "b", and for "c" at its first try."""
    name, folder = job
    first = Path(folder, name)
    if name == "b" or name == "c" and not first.exists():
        first.touch()
        os._exit(9)
    return name


def test_a_worker_that_dies_is_replaced_and_its_job_tried_twice(tmp_path):
    pool = Pool(dying, 2, str(tmp_path), None)
    jobs = [(name, str(tmp_path)) for name in "abcdef"]
    replies = {name: reply for (name, _), reply in pool.replies(jobs)}
    pool.close()
    assert replies == {name: None if name == "b" else name for name in "abcdef"}


def test_a_submission_at_which_workers_die_has_a_reason_and_the_others_a_score(
        tmp_path, monkeypatch):
    mark = grading.Marking.mark

    def deadly(marking):
        if "NotImplementedError" in marking._cells[-1].source:
            os._exit(9)
        return mark(marking)

    monkeypatch.setattr(grading.Marking, "mark", deadly)
    summary, found = graded(tmp_path, FEW | {"cid": SOLVED}, **PATCHED)
    assert summary.failed == ("ben",) and summary.unscored == (("ben", grading.FAULT),)
    assert found["ada"].points == found["cid"].points == 56
    assert "its worker died 2 times" in found["ben"].notes


def test_a_killed_worker_or_all_of_them_are_replaced(tmp_path):
    """First one of them dies, then the process of which they are forks."""
    def watch(replies, total):
        for number, each in enumerate(replies):
            if number in (2, 6):
                program = min((each for each in psutil.Process().children()
                               if "zygote.py" in " ".join(each.cmdline())),
                              key=psutil.Process.create_time)
                judge, = (each for each in program.children() if len(each.children()) == 2)
                (judge.children()[0] if number == 2 else judge).kill()
                killed.append(number)
            yield each

    killed = []
    students = {f"{number:02}": (SOLVED, UNSOLVED)[number % 2] for number in range(12)}
    summary, found = graded(tmp_path, students, watch=watch)
    assert killed == [2, 6]
    assert [found[name].points for name in sorted(students)] == [56, 0] * 6
    assert summary.failed == () and summary.graded == 12


# A grader that is stopped.


def hanging(tmp_path):
    """A grader with results, whose workers are at notebooks without an end; and its processes."""
    loop = classroom.notebook(CHAPTER, {"standardize": hazards.LOOP})
    grader = start(tmp_path, {"ada": SOLVED, "ben": SOLVED, "cid": loop, "dan": loop})
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        done = list((tmp_path / "grades/results").glob("*.json"))
        team = psutil.Process(grader.pid).children(recursive=True)
        if len(done) == 2 and len(team) >= 5:  # a zygote, two workers, two students
            return grader, team
        time.sleep(0.1)
    raise AssertionError(f"{len(done)} results, {len(team)} processes")


def test_a_grader_loads_nothing_that_only_notebooks_need(tmp_path):
    grader = start(tmp_path, {"ada": UNSOLVED})
    out, error = grader.communicate(timeout=120)
    assert (out, error, grader.returncode) == ("0\n", "", 0)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("lnres")] == []


def test_ctrl_c_ends_all_and_says_what_is_kept(tmp_path):
    grader, team = hanging(tmp_path)
    os.killpg(grader.pid, signal.SIGINT)
    _, error = grader.communicate(timeout=60)
    assert error == ("Interrupted: interrupted: 2 of 4 results are kept; the same command goes on "
                     "from there\n")
    assert psutil.wait_procs(team, timeout=20)[1] == []
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("lnres")] == []
    assert issubclass(Interrupted, GradingError)


def test_a_killed_grader_takes_all_its_processes_with_it(tmp_path):
    grader, team = hanging(tmp_path)
    grader.kill()
    grader.communicate()
    assert psutil.wait_procs(team, timeout=20)[1] == []
    left, = tmp_path.glob("lnres-grade-*")
    with storing.locked(tmp_path / "grades"):  # and the folder is free again
        pass
    shutil.rmtree(tmp_path / "submitted")
    assert len(json.loads((tmp_path / "grades/run.json").read_text())["submissions"]) == 4
    again = start(tmp_path, {"ada": SOLVED})  # removes what is left of the first one
    assert again.communicate(timeout=120)[1] == "" and not left.exists()
