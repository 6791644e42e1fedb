"""The folder of a run: its settings, and a file for each submission, written whole or not at all.

    run.json              seed, versions, limits, and which results belong to the last run
    results/<name>.json   the result of one submission
"""

import contextlib
import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from lnres_utils import specs
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.model import Graded, Result, Submission
from lnres_utils.grading.texts import file_stem
from lnres_utils.writing import UNFINISHED, write_whole

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

RUN, RESULTS, LOCK = "run.json", "results", ".lock"
MOST_SEED = 2**32
VERSIONS = {"lnres": "lnres-utils", "numpy": "numpy", "torch": "torch"}


@contextlib.contextmanager
def locked(out: Path):
    """Make the folder, and keep other graders out of it; gives the open file that does."""
    try:
        (out / RESULTS).mkdir(parents=True, exist_ok=True)
        lock = open(out / LOCK, "a+b")
    except OSError as error:
        raise cannot_write(out, error) from None
    with lock:
        try:
            if fcntl:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise GradingError(f"{str(out)!r} is used by another `lnres grade`; wait for it, or "
                               "choose another folder with --out") from None
        yield lock


def cannot_write(path, error):
    """A GradingError for an OSError."""
    return GradingError(f"{str(path)!r} cannot be written: {error.strerror or error}")


def write(path: Path, texts: Iterable[str]):
    """Write a file of texts whole or not at all, also when the power fails meanwhile."""
    write_whole(path, (text.encode() for text in texts))


def open_run(out: Path, submissions, seed, limits):
    """The seed of the run in this folder, as it was or drawn now; keeps what the run is about."""
    before = _read_run(out)
    if seed is not None and before.get("seed", seed) != seed:
        raise GradingError(f"--seed is {seed}; the results in {str(out)!r} were made with "
                           f"{before['seed']}. Leave --seed out, or choose another --out.")
    drawn = secrets.randbelow(MOST_SEED) if seed is None else seed
    now = datetime.now(UTC).isoformat(timespec="seconds")
    run = {"seed": before.get("seed", drawn), **{key: version(name) for key, name
                                                 in VERSIONS.items()},
           "limits": asdict(limits), "created": before.get("created", now),
           "submissions": [stored_name(each) for each in in_order(submissions)]}
    try:
        for left_over in out.rglob(f"{UNFINISHED}*"):
            left_over.unlink()
        if run != before:
            write(out / RUN, [json.dumps(run, indent=1) + "\n"])
    except OSError as error:
        raise cannot_write(out, error) from None
    return run["seed"]


def _read_run(out):
    """What run.json says, {} if there is none."""
    try:
        run = json.loads((out / RUN).read_text(encoding="utf-8"))
        if type(run["seed"]) is int and isinstance(run["submissions"], list):
            return run
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    raise GradingError(f"{str(out / RUN)!r} is not what `lnres grade` writes; remove it, or choose "
                       "another folder with --out")


def gone(out: Path) -> tuple[str, ...]:
    """Students whose results are kept, but who are not among the submissions of the last run."""
    listed = _read_run(out).get("submissions", ())
    others = {path.stem for path in (out / RESULTS).glob("*.json")} - set(listed)
    found = filter(None, (stored(out, name) for name in others))
    students = {result.student for result in found}
    return tuple(sorted(students - {result.student for result in results(out)} if students else ()))


def in_order(submissions):
    """Sorted by student, then assignment."""
    return sorted(submissions, key=lambda each: (each.student, each.assignment))


def stored_name(submission: Submission) -> str:
    """The name of a submission's file in ``results/``, without its ending."""
    return file_stem("/".join(filter(None, (submission.student, submission.assignment))))


def fingerprint(submission: Submission, data: bytes, chapter, seed, limits) -> str:
    """Of a notebook's bytes and of all that decides its result."""
    about = replace(submission, source=None)
    names = specs.CHAPTERS.get(chapter, ())
    decided = [asdict(about), submission.source.shown, chapter, seed, asdict(limits),
               version("lnres-utils"), [(name, specs.get(name).version) for name in names]]
    return hashlib.sha256(json.dumps(decided).encode() + b"\0" + data).hexdigest()


def store(out: Path, submission: Submission, result: Result):
    """Keep a result."""
    path = out / RESULTS / f"{stored_name(submission)}.json"
    try:
        write(path, [text_of(result)])
    except OSError as error:
        raise cannot_write(path, error) from None


def text_of(result: Result) -> str:
    """A line of JSON that ``result_of`` reads."""
    return json.dumps(vars(result), default=vars) + "\n"


def stored(out: Path, name: str) -> Result | None:
    """The result kept under a name; None if there is none, or it cannot be read."""
    try:
        return result_of((out / RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def result_of(text: str) -> Result:
    """The Result that JSON tells of."""
    told = json.loads(text)
    told["exercises"] = tuple(Graded(**each | {"notes": tuple(each["notes"])})
                              for each in told["exercises"])
    told["notes"] = tuple(told["notes"])
    whole = all(type(each.points) is type(each.max_points) is int and isinstance(each.public, dict)
                and each.exercise in specs.exercises for each in told["exercises"])
    if not whole or set(told) != {field.name for field in fields(Result)}:
        raise ValueError("another version of a result, or a damaged one")
    return Result(**told)


def results(out: Path) -> Iterator[Result]:
    """The results of the last run's submissions, sorted by student and chapter, one at a time."""
    found = (stored(out, name) for name in _read_run(out).get("submissions", ()))
    for _, of_one in groupby(filter(None, found), key=lambda result: result.student):
        yield from sorted(of_one, key=lambda result: result.chapter)
