"""The way of one submission: its cells run in a process of its own, its answers are judged here.

A step that ends the process, or does not end, is dropped: the next process does the rest.
"""

import builtins
import time
from dataclasses import replace

import numpy as np

from lnres_utils import specs
from lnres_utils.checking import judge_runs, not_callable, plain, seed_of
from lnres_utils.grading.children import Stopped
from lnres_utils.grading.hearing import Laws, hear_cases
from lnres_utils.grading.judging import (
    ALWAYS,
    drawn,
    graded,
    judging_alone,
    stopped_run,
    unanswered,
)
from lnres_utils.grading.noticing import Names
from lnres_utils.grading.sandboxed.wire import encode
from lnres_utils.grading.sources import syntax_error

TOTAL = 20  # times ``Limits.seconds``, for a whole notebook; by the clock times the patience
STOPS = 2  # of the cases of an exercise; the others are not tried
NO_CELL = "The notebook has no cell that answers it."
NOT_FINISHED = "Not answered yet: its cell raises NotImplementedError."
NO_TIME = "The notebook had used all its time before this answer was tried."


class Marking:
    """One notebook on its way.

    Attributes
    ----------
    done : dict from the name of an exercise to its Graded
    notes : list of str, for the teacher
    stopped : int, how many cells and calls were ended
    seconds : float, of the processor, by all its processes
    """

    def __init__(self, notebook, names, limits, seed, start):
        """``names`` of the exercises; ``start(allowance)`` gives a Child."""
        last = {cell.exercise: index for index, cell in enumerate(notebook.cells) if cell.exercise}
        self._cells = notebook.cells[:1 + max((last[name] for name in names if name in last),
                                              default=-1)]
        self._answers = {index: name for name, index in last.items() if name in names}
        self._names, self._limits, self._seed, self._start = names, limits, seed, start
        self._source = Names([cell.source for cell in notebook.cells])
        self._cuts = {}  # index of a cell: how many of its statements are run
        self._sentences = {}  # index of a cell that was stopped: why
        self._failures = {}  # index of a cell: kind, place and text of the exception that ended it
        self._runs = {}  # name of an exercise: what is known of its cases
        self._began = time.monotonic()
        self.done, self.notes, self.stopped, self.seconds = {}, [], 0, 0.0

    def mark(self):
        """The results of all exercises, in the order of ``names``."""
        for name in self._names:
            if name not in self._answers.values():
                self.done[name] = unanswered(name, NO_CELL)
        most = 2 * (len(self._cells) + len(self._answers))
        for _ in range(most):
            if self._is_complete() or self._walk():
                break
        for name in self._answers.values():
            if name not in self.done:
                self._give_up(name)
        return tuple(self.done[name] for name in self._names)

    def _is_complete(self):
        return len(self.done) == len(self._names)

    def _walk(self):
        """All steps with a new process; False if it ended before the last one."""
        total = TOTAL * self._limits.seconds
        allowance, waited = total - self.seconds, time.monotonic() - self._began
        if allowance <= 0 or waited > self._limits.patience * total:
            return True  # what is left is given up
        child = self._start(allowance)
        try:
            for index in range(len(self._cells)):
                self._run_cell(child, index)
                name = self._answers.get(index)
                if name and name not in self.done:
                    self._answer(child, index, name)
                    if self._is_complete():
                        break
            return True
        except Stopped:
            self.stopped += 1
            return False
        finally:
            child.close()
            self.seconds += child.seconds

    def _run_cell(self, child, index):
        """Run a cell; if it ends the process, it is cut before the statement that did."""
        cell, limit = self._cells[index], self._cuts.get(index)
        if limit == 0:
            return
        child.begin()
        reached = 0
        try:
            child.send(encode({
                "do": "cell", "number": cell.number, "source": cell.source, "statements": limit,
                "exercise": cell.exercise or None,
                "forbid": list(specs.get(cell.exercise).forbid) if cell.exercise else []}))
            while "done" not in (message := child.receive()):
                at = message.get("at")
                if type(at) is not int or at != reached:
                    child.refuse()
                reached = at + 1
            child.look_into_folder()
        except Stopped as stop:
            self._cut(index, max(reached - 1, 0), str(stop))
            raise
        if message["done"] is not None and index not in self._failures:
            self._failures[index] = _exception(message["done"], cell.source)
            self._note(f"Cell {cell.number} stopped: {self._failures[index][2]}")

    def _cut(self, index, statements, sentence):
        limit = self._cuts.get(index)
        self._cuts[index] = statements if limit is None else min(statements, limit - 1)
        self._sentences[index] = sentence
        self._note(f"Cell {self._cells[index].number} was cut before its statement "
                   f"{self._cuts[index] + 1}. {sentence}")

    def _note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def _answer(self, child, index, name):
        """Ask for all cases of an exercise that are not known yet, and judge it."""
        exercise = drawn(name, self._seed)
        runs = self._runs.setdefault(name, [])
        child.begin()
        try:
            child.send(exercise.from_case(len(runs)))
            first = child.receive()
            if first.get("missing") is True:
                self._missing(index, name)
                return
            if isinstance(first.get("problem"), str):
                self._finish(index, graded(not_callable(specs.get(name), plain(first["problem"]))))
                return
            hear_cases(child, exercise, runs, first)
            child.look_into_folder()
        except Stopped as stop:
            self._drop(index, exercise, runs, str(stop))
            raise
        laws = Laws(child, exercise.exercise, np.random.default_rng([self._seed, seed_of(name), 1]))
        self._judge(index, exercise, runs, laws.broken)
        if laws.stop:
            raise laws.stop

    def _drop(self, index, exercise, runs, sentence):
        """The case in which the process ended has failed, and at the second such one all others."""
        left = exercise.cases[len(runs):]
        stops = sum(run.failure is not None and run.failure.kind == "Stopped" for run in runs) + 1
        runs += [stopped_run(case, sentence) for case in left[:None if stops >= STOPS else 1]]
        if len(runs) == len(exercise.cases):
            self._judge(index, exercise, runs)

    def _judge(self, index, exercise, runs, find_broken=tuple):
        with judging_alone():
            report = judge_runs(exercise.exercise, runs, find_broken)
        self._finish(index, graded(report))
        self._runs.pop(exercise.exercise.name, None)

    def _missing(self, index, name):
        """The name is not bound: because its cell failed, or for no reason."""
        if index in self._sentences:
            self._finish(index, unanswered(name, f"{name} is not defined.", outcome="raised"))
        elif index in self._failures:
            kind, place, failure = self._failures[index]
            if kind == "NotImplementedError":
                self._finish(index, unanswered(name, NOT_FINISHED))
                return
            public = f"Its cell stopped with {_with_article(kind)}{place}."
            self._finish(index, unanswered(name, f"Its cell stopped: {failure}", public, "raised"))
        else:
            self._finish(index, unanswered(name, f"Its cell does not define {name}."))

    def _finish(self, index, result):
        """Keep a result, with what is to be said of its cell and of forbidden calls."""
        forbid = (*specs.get(result.exercise).forbid, *ALWAYS)
        notes = [f"Its source names {', '.join(named)}, {what}." for named, what in (
            (self._source.forbidden(index, forbid), "which it is to do without"),
            (self._source.back_doors(index, forbid), "by which forbidden calls can be reached"),
        ) if named]
        result = replace(result, notes=(*result.notes, *notes))
        sentence = self._sentences.get(index)
        if sentence:
            said = f"Its cell did not run to the end: {sentence[0].lower()}{sentence[1:]}"
            public = result.public | {"reason": f"{said} {result.public['reason']}".strip()}
            result = replace(result, reason=f"{said} {result.reason}".strip(), public=public)
        self.done[result.exercise] = result

    def _give_up(self, name):
        """No time is left for it."""
        index = next(index for index, each in self._answers.items() if each == name)
        exercise, runs = drawn(name, self._seed), self._runs.get(name)
        if runs:
            runs += [stopped_run(case, NO_TIME) for case in exercise.cases[len(runs):]]
            self._judge(index, exercise, runs)
        else:
            self._finish(index, unanswered(name, NO_TIME, outcome="raised"))


def _exception(told, source):
    """(kind, place, text) of the exception that a cell stopped with; the place may be unknown."""
    kind, message = (plain(told[name]) if isinstance(told, dict) and isinstance(
        told.get(name), str) else "" for name in ("kind", "message"))
    place, found = "", syntax_error(source)
    if found and found[0] == kind:  # the process may say what it likes; the line is our own
        place, message = f" in line {found[1]}", found[2]
    return kind or "exception", place, f"{kind or 'an exception'}{place}: {message}".rstrip(": ")


def _with_article(kind):
    """Of an exception whose name is Python's own; any other name is the student's text."""
    found = getattr(builtins, kind, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return "an exception"
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
