"""What the benchmarks of grading share: classes on disk, and what a command costs."""

import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "feature-axis"
WORK = ROOT / "_build" / "benchmarks"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
SAMPLED = 0.2  # seconds between two looks at the memory

sys.path.insert(0, str(ROOT / "tests"))


class Problem(Exception):
    """Why there is no figure: one line that says what to do."""


@dataclass(frozen=True)
class Cost:
    """What a command took, its children and theirs included."""

    wall: float  # seconds
    cpu: float  # seconds of user and system time
    peak: float  # MiB: the largest sum of the proportional set sizes of all processes


def measure(commands, env=None, folder=None, label=""):
    """Run commands, one after the other, and return their Cost as one."""
    before, start, peak = _cpu_of_children(), time.perf_counter(), 0.0
    for command in tqdm(commands, desc=label, leave=False, unit="",
                        disable=None if len(commands) > 1 else True):
        peak = max(peak, _run(command, {**os.environ, **ONE_THREAD, **(env or {})}, folder))
    return Cost(time.perf_counter() - start, _cpu_of_children() - before, peak)


def _run(command, env, folder):
    """Run one command; return the peak of its memory."""
    with open(WORK / "last-command.log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(list(map(str, command)), cwd=folder, env=env, stdout=log,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        peaks, done = [0.0], threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, peaks, done))
        watcher.start()
        code = process.wait()
        done.set()
        watcher.join()
        if code:
            log.seek(0)
            lines = log.read().strip().splitlines() or ["it printed nothing"]
            raise Problem(f"{Path(command[0]).name} {command[1]} ended with code {code}: "
                          f"{lines[-1][:300]} (all of it: {log.name})")
    return peaks[0]


def _watch(pid, peaks, done):
    while not done.wait(SAMPLED):
        peaks[0] = max(peaks[0], _memory(pid))


def _memory(pid):
    """MiB of a process and all below it; what two processes share counts once."""
    try:
        process = psutil.Process(pid)
        tree = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    return sum(map(_proportional, tree)) / 1024


def _proportional(process):
    try:
        with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as rollup:
            return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):  # it has ended
        return 0


def _cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lnres_grade(submissions, out, workers, seed=1):
    """The command that grades a folder, with results thrown away before."""
    shutil.rmtree(out, ignore_errors=True)
    return [sys.executable, "-c", "from lnres_utils.cli import main; main()", "grade", submissions,
            "--out", out, "--workers", workers, "--seed", seed, "--chapter", CHAPTER]


def write_class(folder, count, seed=0):
    """A class of chapter 1 as a flat folder; return its members."""
    from grading import classroom

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    members = list(classroom.members(CHAPTER, count, seed))
    for member in tqdm(members, desc="writing the class", leave=False, unit="", disable=None):
        (folder / f"{member.student}.ipynb").write_bytes(member.notebook)
    return members


def load():
    """How busy the machine is, in words."""
    one, five, _ = os.getloadavg()
    return f"load average {one:.1f} (1 minute), {five:.1f} (5 minutes), {os.cpu_count()} processors"
