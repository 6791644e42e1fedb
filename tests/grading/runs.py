"""Runs of the grader as the tests need them: notebooks in, results out."""

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from lnres_utils.grading.children import Child, Forks
from lnres_utils.grading.gradebook import gradebook
from lnres_utils.grading.grading import grade, results
from lnres_utils.grading.judging import forbidden_in
from lnres_utils.grading.marking import Marking
from lnres_utils.grading.model import Limits, Source, Submission
from lnres_utils.grading.sandboxed import starting

LIMITS = Limits()
PATIENT = Limits(seconds=60)
QUICK = Limits(seconds=0.5, memory=256 << 20)  # an endless loop costs half a second a try
# Whoever runs the tests in the background may have Ctrl-C ignored, and programs inherit that.
HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
SCRIPT = HEARS_CTRL_C + """
import pickle, sys
from pathlib import Path
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.grading import grade
submissions, limits = pickle.load(open(sys.argv[1], "rb"))
try:
    grade(submissions, Path(sys.argv[2]), seed=1, workers=2, limits=limits)
except GradingError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(len({"matplotlib", "nbformat", "IPython", "torch"} & set(sys.modules)))
"""


def submissions(folder: Path, notebooks):
    """Files in ``folder`` for notebooks: a mapping from a student to bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, (student, data) in enumerate(notebooks.items()):
        path = folder / f"{number:04}.ipynb"
        path.write_bytes(data)
        made.append(Submission(student, Source(path)))
    return made


def graded(folder: Path, notebooks, **options):
    """The summary of a run over notebooks and {student: Result}."""
    settings = {"seed": 1, "workers": 2, "limits": QUICK} | options
    summary = grade(submissions(folder / "submitted", notebooks), folder / "grades", **settings)
    return summary, {result.student: result for result in results(folder / "grades")}


def scores(result):
    """{exercise: (outcome, points)} of a result."""
    return {each.exercise: (each.outcome, each.points) for each in result.exercises}


def of(result, exercise):
    return next(each for each in result.exercises if each.exercise == exercise)


@contextlib.contextmanager
def marker(seed=1, limits=LIMITS, forbids=True):
    """A function that marks a Notebook in this process: it gives the results of some exercises."""
    torch.set_num_threads(1)
    mine, seat = socket.socketpair()
    with tempfile.TemporaryDirectory() as scratch:
        zygote = subprocess.Popen(
            starting.command(scratch, [seat.fileno()]), cwd=scratch, env=starting.environment(),
            pass_fds=[seat.fileno()], stdin=subprocess.DEVNULL)
        seat.close()
        forks = Forks(mine)

        def mark(notebook, names):
            marking = Marking(notebook, names, limits, seed, lambda allowance: Child(
                forks, limits, allowance, scratch,
                forbidden_in(notebook.chapter) if forbids else ()))
            return marking.mark()

        yield mark
        mine.close()
        zygote.wait()


def book(folder):
    """The gradebook of the run in ``folder``."""
    return "".join(gradebook(results(folder / "grades")))


def start(folder, notebooks, limits=PATIENT):
    """A grader in a process of its own, and in a session of its own."""
    made = submissions(folder / "submitted", notebooks)
    (folder / "about").write_bytes(pickle.dumps((made, limits)))
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder / "about"), str(folder / "grades")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"TMPDIR": str(folder)})
