"""Grade submissions: each as it comes in a process of its own, its result kept at once."""

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lnres_utils import specs
from lnres_utils.grading import folders, storing
from lnres_utils.grading.children import Child, Spawns, Zygote, ZygoteGone, safe_fork
from lnres_utils.grading.collecting import opened
from lnres_utils.grading.errors import GradingError, Interrupted
from lnres_utils.grading.judging import drawn, forbidden_in, unanswered, warm
from lnres_utils.grading.marking import Marking
from lnres_utils.grading.model import Limits, Notebook, Result, Submission
from lnres_utils.grading.pool import TRIES, Pool
from lnres_utils.grading.storing import results

__all__ = ["Summary", "grade", "results"]

LIMITS = Limits()
FAULT = "It could not be graded: the grader itself failed at it. Tell whoever teaches the course."


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes
    ----------
    graded, kept : int, how many results are new, and how many were there already
    unscored : pairs of a student and the reason why nothing could be graded
    failed : those students at whose submissions the grader itself failed
    gone : students of an earlier run who are not among these; the tables are without them
    stopped : int, cells and calls that were ended
    sandbox : dict, what the zygote says is closed to a student's code
    """

    graded: int
    kept: int
    unscored: tuple[tuple[str, str], ...]
    failed: tuple[str, ...]
    gone: tuple[str, ...]
    stopped: int
    seconds: float
    seed: int
    workers: int
    sandbox: dict
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """What a worker needs to know: all but which submission is next."""

    submissions: tuple[Submission, ...]
    out: Path
    chapter: str | None
    seed: int
    limits: Limits
    scratch: str

    def __call__(self, number, starter):
        """Grade a submission and keep its result; gives what the summary needs to know."""
        submission = self.submissions[number]
        try:
            result, kept = self._result(submission, starter)
            if not kept:
                storing.store(self.out, submission, result)
        except GradingError as error:
            return {"error": str(error)}
        except ZygoteGone:
            raise
        except Exception as error:  # a fault of ours must not keep others from being graded
            return self.failed(submission, f"{type(error).__name__}: {error}")
        return {"kept": kept, "problem": result.problem, "stopped": result.stopped}

    def prepare(self):
        """Draw and compute what all workers need, so that they share it; chapters are guessed."""
        first = {each.assignment: each for each in reversed(self.submissions)}.values()
        chapters = ({self.chapter} if self.chapter else
                    {opened(each.source)[1].chapter for each in first})
        for chapter in chapters:
            for name in specs.CHAPTERS.get(chapter, ()):
                warm(drawn(name, self.seed))

    def failed(self, submission, why):
        """Keep, until the next run, that the grader itself failed at a submission."""
        result = self.unmarked(submission, Notebook(self.chapter or "", notes=(why,)), FAULT)
        storing.store(self.out, submission, result)
        return {"kept": False, "problem": FAULT, "stopped": 0, "failed": True}

    def _result(self, submission, starter):
        """The result of a submission, and whether it was there already."""
        data, notebook = opened(submission.source, self.chapter)
        mark = storing.fingerprint(submission, data, notebook.chapter, self.seed, self.limits)
        before = storing.stored(self.out, storing.stored_name(submission))
        if before and before.fingerprint == mark:
            return before, True
        return replace(self.marked(submission, notebook, starter), fingerprint=mark), False

    def marked(self, submission, notebook, starter):
        """The result of a notebook."""
        names = specs.CHAPTERS.get(notebook.chapter, ())
        if notebook.problem:
            return self.unmarked(submission, notebook, notebook.problem)
        forbid = forbidden_in(notebook.chapter)

        def start(allowance):
            return Child(starter, self.limits, allowance, self.scratch, forbid)

        marking = Marking(notebook, names, self.limits, self.seed, start)
        exercises = marking.mark()
        return Result(
            submission.student, notebook.chapter, submission.source.shown, "", exercises,
            notes=(*submission.notes, *notebook.notes, *marking.notes), late=submission.late,
            learner_id=submission.learner_id, stopped=marking.stopped,
            seconds=round(marking.seconds, 3))

    def unmarked(self, submission, notebook, problem):
        """The result where nothing can be graded."""
        names = specs.CHAPTERS.get(notebook.chapter, ())
        exercises = tuple(unanswered(name, problem) for name in names)
        return Result(
            submission.student, notebook.chapter, submission.source.shown, "", exercises, problem,
            notebook.told, notes=(*submission.notes, *notebook.notes), late=submission.late,
            learner_id=submission.learner_id)


def grade(submissions: list[Submission], out: Path, *, chapter: str | None = None,
          seed: int | None = None, workers: int | None = None, limits: Limits = LIMITS,
          strict: bool = False, processes: str | None = None,
          watch: Callable = lambda replies, total: replies) -> Summary:
    """Grade submissions into a folder; what is there already and unchanged is kept.

    Parameters
    ----------
    chapter : slug, by default the one that each notebook belongs to
    seed : int from which inputs are drawn; by default the folder's, or a new one
    workers : int, by default one a processor
    strict : whether to refuse where a part of the sandbox is missing
    processes : "fork" or "spawn", how students' processes are made; by default what is safe here
    watch : callable that is given an iterable and its length, and gives what it yields

    Raises
    ------
    GradingError in one line; ``Interrupted`` after a Ctrl-C, when all that is done is kept.
    """
    since = time.monotonic()
    if chapter is not None and chapter not in specs.CHAPTERS:
        raise GradingError(f"there is no chapter {chapter!r}; use one of "
                           f"{', '.join(specs.CHAPTERS)}")
    submissions = _of_chapter(submissions, chapter)
    forks = (processes or ("fork" if safe_fork() else "spawn")) == "fork"
    count = max(1, min(workers or _processors(), len(submissions)))
    with storing.locked(out) as lock:
        seed = storing.open_run(out, submissions, seed, limits)
        scratch = _scratch(lock)
        job = Job(tuple(submissions), out, chapter, seed, limits, scratch)
        zygote = pool = None
        try:
            zygote = Zygote(job, count, scratch) if forks else None
            sandbox = zygote.ready() if zygote else _sandbox(job)
            _examine(sandbox, strict)
            pool = Pool(job, count, scratch, zygote)
            tally = _tally(job, watch(pool.replies(range(len(submissions))), len(submissions)))
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted: {_kept(job)}") from None
        finally:
            if pool:
                pool.close()
            elif zygote:
                zygote.close()
            with contextlib.suppress(OSError):  # it must not keep results from being published
                folders.remove(scratch)
    return Summary(**tally, gone=storing.gone(out), seconds=time.monotonic() - since, seed=seed,
                   workers=count, sandbox=sandbox["ready"], notes=_notes(sandbox, forks))


def _of_chapter(submissions, chapter):
    """Without the notebooks of other chapters, where a student also has one of this chapter."""
    if chapter is None:
        return submissions
    by_student = defaultdict(list)
    for each in submissions:
        by_student[each.student].append(each)
    return [each for of_one in by_student.values() for each in _one_of_chapter(of_one, chapter)]


def _one_of_chapter(submissions, chapter):
    if len(submissions) == 1:
        return submissions
    fitting = [each for each in submissions if opened(each.source)[1].chapter == chapter]
    return fitting or submissions[:1]


def _scratch(lock):
    try:
        return folders.new(lock)
    except OSError as error:
        raise GradingError(f"no folder for students' processes can be made: {error.strerror}; set "
                           "TMPDIR to a folder with space") from None


def _processors():
    """How many this process may use."""
    known = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1


def _sandbox(job):
    """What a program that is started for one student says of itself."""
    child = Child(Spawns(job.scratch), job.limits, job.limits.seconds, job.scratch)
    child.close()
    return child.ready


def _examine(sandbox, strict):
    missing = sandbox["ready"]["missing"]
    if strict and missing:
        raise GradingError(f"--strict: missing here: {', '.join(missing)}. Grade on Linux 6.12 or "
                           "newer, or leave --strict out")


def _tally(job, replies):
    """What the summary counts; raises at the first result that cannot be written."""
    graded = kept = stopped = 0
    unscored, failed = [], []
    for number, reply in replies:
        submission = job.submissions[number]
        if reply is None:
            reply = job.failed(submission, f"its worker died {TRIES} times")
        if "error" in reply:
            raise GradingError(f"{reply['error']}. {_kept(job)}")
        kept += reply["kept"]
        graded += not reply["kept"]
        stopped += reply["stopped"]
        if reply["problem"]:
            unscored.append((submission.student, reply["problem"]))
        if "failed" in reply:
            failed.append(submission.student)
    return {"graded": graded, "kept": kept, "stopped": stopped,
            "unscored": tuple(sorted(unscored)), "failed": tuple(sorted(failed))}


def _kept(job):
    """How far a run came."""
    count = sum((job.out / storing.RESULTS / f"{storing.stored_name(each)}.json").exists()
                for each in job.submissions)
    return (f"{count} of {len(job.submissions)} results are kept; the same command goes on from "
            "there")


def _notes(sandbox, forks):
    missing = sandbox["ready"]["missing"]
    return (*(["no process can be forked here: a program is started for each submission"]
              if not forks else []),
            *([f"not closed to the code of students: {', '.join(missing)}"] if missing else []))
