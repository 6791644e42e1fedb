"""Call an answer on one case and bring back arrays, or say in plain words what went wrong."""

import contextlib
import inspect
import io
import linecache
import sys
import sysconfig
import traceback
from copy import deepcopy  # by name, also below: an answer may replace it in its module
from pathlib import Path

import numpy as np
from numpy import array_equal

from lnres_utils.checking.isolation import isolated
from lnres_utils.checking.model import Failure, Run

# Where code lies that no learner wrote: the standard library, packages, and this one.
LIBRARIES = (*(sysconfig.get_paths()[kind] for kind in ("stdlib", "purelib", "platlib")),
             str(Path(__file__).parents[1]))
PRINT_LIMIT = 2000  # characters of the learner's own output that a report keeps


def run_case(exercise, answer, case):
    """Drive ``answer`` on copies of the inputs of ``case``.

    Returns
    -------
    Run; whatever the answer raises ends up in it, except KeyboardInterrupt.
    """
    inputs = deepcopy(dict(case.inputs))
    printed = _BoundedText()
    outputs = failure = None
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            isolated(random_too=False),
        ):
            outputs = exercise.summary(exercise.drive(answer, inputs), case.inputs)
            outputs, failure = examined(exercise, outputs, case.only)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit in an answer must not end the notebook
        failure = _failure(error, sys.exc_info()[2])
    return Run(
        case=case,
        outputs=None if failure else outputs,
        failure=failure,
        changed=_changed(case.inputs, inputs),
        printed=plain(printed.text, PRINT_LIMIT),
        printed_length=printed.length,
    )


def call_problem(exercise, answer):
    """One line on why ``answer`` cannot be called as the exercise asks, or None."""
    name, parameters = exercise.name, exercise.parameters
    if not callable(answer):
        return f"{name} is {describe(answer)}; a {exercise.kind} {exercise.call} was expected."
    if exercise.kind == "function" and inspect.isclass(answer):
        return f"{name} is a class; a function {exercise.call} was expected: begin with `def`."
    if exercise.kind == "class" and not inspect.isclass(answer):
        return f"{name} is {describe(answer)}; a class was expected: begin with `class {name}`."
    try:
        signature = inspect.signature(answer)
        text = plain(str(signature))
    except Exception:
        return None  # some callables have none; the call itself will tell
    names = [parameter.split("=")[0] for parameter in parameters]
    required = sum("=" not in parameter for parameter in parameters)
    for count in range(required, len(parameters) + 1):
        try:
            signature.bind(*names[:count])
        except TypeError:
            call = f"{name}({', '.join(names[:count])})"
            return (f"{name}{text} cannot be called as {call}, by position. "
                    f"The exercise asks for {exercise.call}.")
    return None


def describe(value):
    """A short phrase for any object: its type, and its shape if it has one."""
    if value is None:
        return "None"
    kind = plain(type(value).__name__) or "object"
    if issubclass(type(value), np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if issubclass(type(value), (list, tuple)):
        return f"a {kind} of length {len(value)}"
    if type(value).__module__.split(".")[0] == "torch" and kind == "Tensor":
        return f"a torch tensor of shape {tuple(value.shape)}"
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def plain(text, limit=300):
    """Text that any screen shows: no control characters, no broken code points, not too long."""
    shown = "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text[:limit]
    )
    return shown + (" …" if len(text) > limit else "")


def examined(exercise, outputs, only):
    """The outputs as plain arrays of our own, and the failure if one that counts is no numbers."""
    good, failure = {}, None
    for name, value in outputs.items():
        problem = _problem(exercise, name, value)
        if problem is None:
            good[name] = value if isinstance(value, str) else np.array(value, subok=False)
        elif failure is None and (not only or name in only):
            label = "the returned value" if len(exercise.outputs) == 1 else name
            failure = Failure("WrongKind", f"{label} {problem}", wrong_kind=True)
    return good, failure


def _problem(exercise, name, value):
    output = exercise.outputs.get(name)  # raw values have other names
    if isinstance(value, str) and output and output.compare == "text":
        return None
    if value is None:
        return "is None" + (": is there a `return`?" if len(exercise.outputs) == 1 else "")
    if not issubclass(type(value), (np.ndarray, np.generic)):
        return f"is {describe(value)}; a {exercise.array} was expected"
    if value.dtype.kind not in "fiub":
        return f"has dtype {value.dtype}; real numbers were expected"
    if np.ma.is_masked(value):
        return "has masked entries; a number was expected in each place"
    return None


def _failure(error, trace):
    """An exception as text; even one that hides its attributes ends up here."""
    try:
        message = _first_line(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        message = ""
    return Failure(
        kind=plain(type(error).__name__) or "exception",
        message=message,
        where=plain(_line_of(trace)),
        wrong_kind=getattr(type(error), "lnres_wrong_kind", False) is True,
        not_attempted=issubclass(type(error), NotImplementedError),
    )


def _first_line(error):
    lines = [line.strip() for line in str(error).strip().splitlines()]
    heading = len(lines) > 1 and lines[0].endswith(":")  # torch says what is missing below
    return plain(" ".join(lines[: 2 if heading else 1]))


def _line_of(trace):
    """The innermost line of the traceback that the learner wrote: no library's, none of ours."""
    found = ""
    for frame, number in traceback.walk_tb(trace):
        name = frame.f_code.co_filename
        if not name.startswith((*LIBRARIES, "<frozen", "<__array_function__")):
            line = linecache.getline(name, number).strip()
            found = f"line {number}: {line}" if line else f"line {number}"
    return found


def _changed(before, after):
    return tuple(
        name
        for name, value in before.items()
        if isinstance(value, np.ndarray) and not _identical(value, after[name])
    )


def _identical(a, b):
    same_form = a.shape == b.shape and a.dtype == b.dtype
    return same_form and array_equal(a, b, equal_nan=a.dtype.kind == "f")


class _BoundedText(io.TextIOBase):
    """A stream that counts everything and keeps the beginning."""

    def __init__(self):
        self.text, self.length = "", 0

    def writable(self):
        return True

    def write(self, text):
        self.length += len(text)
        if len(self.text) < PRINT_LIMIT:
            self.text += text[: PRINT_LIMIT - len(self.text)]
        return len(text)
