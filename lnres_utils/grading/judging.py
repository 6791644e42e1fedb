"""From what a student's process replied to a graded exercise, by the judge of the notebooks."""

import contextlib
import copy
import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from lnres_utils import specs
from lnres_utils.checking import (
    Exercise,
    Failure,
    Run,
    diagnose,
    examined,
    plain,
    seed_of,
    without_runs,
)
from lnres_utils.checking.isolation import isolated
from lnres_utils.drives.boxes import Box, NormBox, NormFailed
from lnres_utils.grading.model import Graded
from lnres_utils.grading.sandboxed.wire import Malformed, encode

ALWAYS = ("lnres_utils.norms", "lnres_utils.blocks")  # forbidden to every answer
MOST_TEXT = 5000  # characters of an output that is text


@dataclass(frozen=True)
class Drawn:
    """An exercise with the cases of a run, and the message that asks for all of them."""

    exercise: Exercise
    cases: tuple
    question: bytes

    def from_case(self, first):
        """The question for the cases from ``first`` on."""
        return self.question if first == 0 else _question(self.exercise, self.cases, first)


@cache
def drawn(name, seed):
    """The exercise ``name`` in a run with this seed; computed once in a process."""
    exercise = _with_known_answers(specs.get(name))
    cases = tuple(exercise.cases(np.random.default_rng([seed, seed_of(name)])))
    return Drawn(exercise, cases, _question(exercise, cases, 0))


def _with_known_answers(exercise):
    """The same exercise, whose reference computes the outputs of each case only once."""
    known = {}  # by the id of the inputs; they are kept beside the outputs, so the id stays theirs

    def reference(inputs):
        if id(inputs) not in known:
            known[id(inputs)] = inputs, exercise.reference(inputs)
        return known[id(inputs)][1]

    return replace(exercise, reference=reference)


def _question(exercise, cases, first):
    """The seed of the answer's own random numbers says nothing of the seed of the run."""
    return encode({
        "do": "answer", "exercise": exercise.name,
        "drive": f"{exercise.drive.__module__.rpartition('.')[2]}:{exercise.drive.__name__}",
        "outputs": {name: output.compare for name, output in exercise.outputs.items()},
        "array": exercise.array, "kind": exercise.kind, "parameters": list(exercise.parameters),
        "forbid": list(exercise.forbid), "seed": seed_of(exercise.name), "first": first,
        "cases": [sendable(case.inputs, case.only) for case in cases[first:]]})


def sendable(inputs, only=()):
    """A case as the wire carries it."""
    return {"inputs": {name: _sendable(value) for name, value in inputs.items()},
            "only": list(only)}


def _sendable(value):
    if isinstance(value, (Box, NormBox)):
        return {"$box": {"id": 0, **value.form}}
    if isinstance(value, tuple):
        return {"$tuple": [_sendable(each) for each in value]}
    return value


class Answering:
    """Answers what a student's process asks the black box of one case.

    Its own copy of the box counts the calls and looks at the arrays again: the process may have
    been told to do neither.
    """

    def __init__(self, case):
        boxes = [each for each in case.inputs.values() if isinstance(each, (Box, NormBox))]
        self._box = copy.deepcopy(boxes[0]) if boxes else None

    def answer(self, message):
        """The reply to an "ask" message, and the seconds of the processor that it took."""
        arrays, numbers = self._examined(message)
        since = time.process_time()
        try:
            reply = encode({"answer": self._called(arrays, numbers)})
        except Exception as error:
            told = error.__context__ if isinstance(error, NormFailed) else error
            reply = encode({"raised": {"kind": type(told).__name__, "message": plain(str(told))}})
            del told  # it leads to the frames of the box, and they to its arrays
        return reply, time.process_time() - since

    def _examined(self, message):
        """The arrays and numbers of a question; raises ``Malformed`` if it is none to this box."""
        arrays, numbers = message.get("arrays"), message.get("numbers")
        counts = {Box: ((1, 0), (2, 0)), NormBox: ((3, 1),)}.get(type(self._box), ())
        if not (isinstance(arrays, list) and isinstance(numbers, list)
                and (len(arrays), len(numbers)) in counts
                and all(isinstance(each, np.ndarray) for each in arrays)
                and all(isinstance(each, (int, float)) for each in numbers)):
            raise Malformed("a question to no box")
        return arrays, numbers

    def _called(self, arrays, numbers):
        if isinstance(self._box, NormBox):
            return [np.asarray(self._box(*arrays, float(numbers[0]))), arrays[0]]
        return [np.asarray((self._box, self._box.vjp)[len(arrays) - 1](*arrays))]


def run_of(exercise, case, reply):
    """The Run that a reply tells of; raises ``Malformed`` if it is none."""
    outputs, changed = reply.get("outputs"), reply.get("changed", [])
    failure = _failure(exercise, reply.get("failure"))
    if not (isinstance(changed, list)
            and all(isinstance(name, str) and name in case.inputs for name in changed)):
        raise Malformed("inputs that changed and are none")
    if failure is None:
        if not isinstance(outputs, dict):
            raise Malformed("neither outputs nor a failure")
        raw = {name: plain(value, MOST_TEXT) if isinstance(value, str) else value
               for name, value in outputs.items()}
        outputs, failure = _summed_up(exercise, case, raw)
    return Run(case, None if failure else outputs, failure, tuple(changed))


def _summed_up(exercise, case, raw):
    """The outputs, and the failure if there is one, from what a process says of a case."""
    try:
        with np.errstate(all="ignore"):
            outputs = exercise.summary(raw, case.inputs)
    except Exception as error:  # whatever a forged reply may lead to
        return None, Failure("WrongKind", plain(str(error)), wrong_kind=True)
    asked = {name: value for name, value in outputs.items() if name in exercise.outputs}
    return examined(exercise, asked, case.only)


def _failure(exercise, told):
    if told is None:
        return None
    texts = [told.get(name, "") for name in ("kind", "message", "where")] if isinstance(
        told, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise Malformed("a failure without a kind")
    kind, message, where = map(plain, texts)
    public = forbidden(exercise, message) if kind in ("Forbidden", "NotAvailable") else ""
    return Failure(kind or "exception", message, where, told.get("wrong_kind") is True,
                   told.get("not_attempted") is True, public)


def forbidden_in(chapter):
    """All that some exercise of a chapter forbids; it has to be known before the first cell."""
    names = specs.CHAPTERS.get(chapter, ())
    return sorted({each for name in names for each in specs.get(name).forbid})


def forbidden(exercise, message):
    """What is said of a call that the exercise forbids; ``message`` begins with what was called."""
    called = next((name for name in (*exercise.forbid, *ALWAYS)
                   if f"{message}.".startswith(f"{name}.")), "")
    return f"It calls `{called}`, which this exercise is to do without." if called else ""


@contextlib.contextmanager
def judging_alone():
    """What the faulty families draw, and what they warn of, depends on no earlier submission."""
    import torch

    with isolated():
        np.random.seed(0)
        torch.default_generator.manual_seed(0)  # torch.manual_seed takes milliseconds
        yield


def warm(drawn):
    """Compute, for all workers to be forked, what every other answer is compared with."""
    exercise, cases = drawn.exercise, drawn.cases
    runs = [Run(case, {"": np.nan}) for case in cases]
    with judging_alone():
        for case in cases:
            exercise.reference(case.inputs)
        for knob in exercise.knobs:  # computes what it gives in the first case, which rules it out
            diagnose(exercise, runs, [knob])


def stopped_run(case, sentence):
    """The Run of a case in which the process was ended."""
    return Run(case, None, Failure("Stopped", sentence, public=sentence))


def graded(report, notes=()):
    """A report as it is stored."""
    reason = report.reason or " ".join(report.broken)
    if report.outcome == "wrong" and not (reason or report.mistakes):
        reason = f"No known mistake gives these {report.results}."
    return Graded(report.exercise, report.outcome, report.points, report.max_points, reason,
                  report.public(), report.to_dict(), tuple(notes))


def unanswered(name, reason, public="", outcome="not attempted"):
    """The result of an exercise that was never called."""
    return graded(without_runs(specs.get(name), outcome, reason, public))
