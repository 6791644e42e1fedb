"""Call an answer on one case and bring back arrays, or say in plain words what went wrong."""

import contextlib
import copy
import inspect
import io
import linecache
import traceback
import warnings

import numpy as np

from lnres_utils.checking.model import Failure, Run

PRINT_LIMIT = 2000  # characters of the learner's own output that a report keeps


def run_case(exercise, answer, case):
    """Drive ``answer`` on copies of the inputs of ``case``.

    Returns
    -------
    Run; whatever the answer raises ends up in it, except KeyboardInterrupt.
    """
    inputs = copy.deepcopy(dict(case.inputs))
    printed = _BoundedText()
    outputs = failure = None
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            outputs = exercise.drive(answer, inputs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit in an answer must not end the notebook
        failure = _failure(error, answer)
    if outputs is not None:
        failure = _output_failure(exercise, outputs)
    return Run(
        case=case,
        outputs=None if failure else outputs,
        failure=failure,
        changed=_changed(case.inputs, inputs),
        printed=printed.text,
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
    except (TypeError, ValueError):
        return None  # some compiled callables have none; the call itself will tell
    required = sum("=" not in parameter for parameter in parameters)
    for count in {required, len(parameters)}:
        try:
            signature.bind(*[None] * count)
        except TypeError:
            optional = [parameter for parameter in parameters if "=" in parameter]
            default = f" ({', '.join(optional)} may be left out)" if optional else ""
            return f"{name}{signature} cannot be called as {exercise.call}{default}."
    return None


def describe(value):
    """A short phrase for any object: its type, and its shape if it has one."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", None)
    module, kind = type(value).__module__, type(value).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    if module.split(".")[0] == "torch" and kind == "Tensor":
        return f"a torch tensor of shape {tuple(shape)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {shape} and dtype {value.dtype}"
    if isinstance(value, (list, tuple)):
        return f"a {kind} of length {len(value)}"
    return f"{article} {kind}"


def _output_failure(exercise, outputs):
    """The first output that is not numbers, as a failure of the wrong kind."""
    for name, value in outputs.items():
        if isinstance(value, str) and exercise.outputs[name].compare == "text":
            continue
        problem = None
        if value is None:
            problem = "is None: is there a `return`?"
        elif not isinstance(value, (np.ndarray, np.generic)):
            problem = f"is {describe(value)}; a {exercise.array} was expected"
        elif value.dtype.kind not in "fiub":
            problem = f"has dtype {value.dtype}; real numbers were expected"
        elif np.ma.is_masked(value):
            problem = "has masked entries; a number was expected in each place"
        if problem:
            label = "the returned value" if len(exercise.outputs) == 1 else name
            return Failure("WrongKind", f"{label} {problem}", wrong_kind=True)
    return None


def _failure(error, answer):
    missing = isinstance(error, NotImplementedError)
    return Failure(
        kind=type(error).__name__,
        message=_first_line(error),
        where=_line_of(error, answer),
        wrong_kind=getattr(error, "lnres_wrong_kind", False),
        not_attempted=missing,
    )


def _first_line(error):
    try:
        lines = [line.strip() for line in str(error).strip().splitlines()]
    except Exception:  # a learner's exception may even fail to print
        return ""
    heading = len(lines) > 1 and lines[0].endswith(":")  # torch says what is missing below
    text = " ".join(lines[: 2 if heading else 1])
    return text if len(text) <= 300 else text[:300] + " …"


def _line_of(error, answer):
    """The innermost traceback line that lies in the file of the answer."""
    code = getattr(inspect.unwrap(answer), "__code__", None) if callable(answer) else None
    files = {code.co_filename} if code else set()
    if inspect.isclass(answer):
        members = (getattr(answer, name, None) for name in vars(answer))
        files = {m.__code__.co_filename for m in members if hasattr(m, "__code__")}
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in files:
            line = linecache.getline(frame.f_code.co_filename, number).strip()
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
    return same_form and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


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
