"""What a learner calls: ``check``, ``hint`` and ``progress``, and what this kernel remembers."""

import difflib
import sys
import zlib
from dataclasses import dataclass
from html import escape

import numpy as np

from lnres_utils.checking.judging import judge
from lnres_utils.checking.report import SYMBOLS
from lnres_utils.checking.running import describe


class CheckFailed(AssertionError):
    """Raised by ``check`` after it has shown its report: the cell is seen to fail by any tool."""

    def _render_traceback_(self):
        """One stable line for IPython in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


@dataclass
class Tries:
    """The last report on an exercise and how many checks led to it."""

    report: object
    count: int


class Session:
    """The memory of one kernel over a set of exercises.

    Parameters
    ----------
    exercises : mapping from name to Exercise, possibly loaded on demand
    """

    def __init__(self, exercises):
        self.exercises = exercises
        self.tries = {}
        self.hints = {}

    def check(self, answer, exercise=None):
        """Check an answer; see ``lnres_utils.check``."""
        name = getattr(answer, "__name__", "") if exercise is None else exercise
        if exercise is None and not name:
            fail(f"the answer is {describe(answer)}, which has no name; "
                 'say which exercise it is for: check(answer, "layer_norm")')
        if not isinstance(name, str):
            fail(f"the name of an exercise is {describe(name)}; "
                 'a string was expected: check(answer, "layer_norm")')
        spec = self._find(name)
        report = judge(spec, answer, np.random.default_rng(seed_of(name)))
        before = self.tries.get(name)
        self.tries[name] = Tries(report, before.count + 1 if before else 1)
        if report.outcome == "right":
            return report
        show(report)
        fail(f"{name}: {report.outcome} (report above)")

    def hint(self, name):
        """The next hint of an exercise; see ``lnres_utils.hint``."""
        name = name if isinstance(name, str) else getattr(name, "__name__", "")
        spec = self._find(name)
        step = min(self.hints.get(name, 0) + 1, len(spec.hints))
        self.hints[name] = step
        return Hint(name, spec.hints[:step], len(spec.hints))

    def progress(self):
        """A table of the exercises checked so far; see ``lnres_utils.progress``."""
        return Progress(tuple((name, tries.report.outcome, tries.report.points,
                               tries.report.max_points, tries.count)
                              for name, tries in self.tries.items()))

    def _find(self, name):
        if name in self.exercises:
            return self.exercises[name]
        near = difflib.get_close_matches(name, self.exercises, n=3, cutoff=0.5)
        offer = " or ".join(f'"{each}"' for each in near or self.exercises)
        fail(f"no exercise is called {name!r}; give its name, {offer}, as a string")


@dataclass(frozen=True)
class Hint:
    """The hints shown so far, the newest last."""

    exercise: str
    shown: tuple[str, ...]
    total: int

    def __repr__(self):
        lines = [f"Hint {number} of {self.total}: {text}"
                 for number, text in enumerate(self.shown, 1)]
        return "\n".join(lines)

    def _repr_html_(self):
        from lnres_utils.checking.report import _code

        items = "".join(f"<li>{_code(text)}</li>" for text in self.shown)
        return (f"<div><strong>{escape(self.exercise)}: hint {len(self.shown)} of {self.total}"
                f"</strong><ol>{items}</ol></div>")


@dataclass(frozen=True)
class Progress:
    """Rows of (exercise, outcome, points, max points, checks)."""

    rows: tuple

    def __repr__(self):
        if not self.rows:
            return "Nothing checked yet in this kernel."
        lines = [f"{SYMBOLS[outcome]} {name}: {outcome}, {points} of {most} points, "
                 f"{count} check{'s' if count > 1 else ''}"
                 for name, outcome, points, most, count in self.rows]
        points, most = (sum(row[i] for row in self.rows) for i in (2, 3))
        return "\n".join([*lines, f"{points} of {most} points of what was checked"])

    def _repr_html_(self):
        cell = "text-align:left;padding:.1em .8em .1em 0"
        head = "".join(f'<th scope="col" style="{cell}">{label}</th>'
                       for label in ("exercise", "outcome", "points", "checks"))
        body = "".join(
            f'<tr><td style="{cell}"><code>{escape(name)}</code></td>'
            f'<td style="{cell}">{SYMBOLS[outcome]} {outcome}</td>'
            f'<td style="{cell}">{points} of {most}</td><td style="{cell}">{count}</td></tr>'
            for name, outcome, points, most, count in self.rows)
        total = repr(self).splitlines()[-1]
        if not self.rows:
            return f"<p>{total}</p>"
        return (f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
                f"<tbody>{body}</tbody></table><p>{total}</p>")


def fail(text):
    """Raise CheckFailed so that a script, too, ends with one line and no traceback."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_one_line
    raise CheckFailed(text)


def _print_one_line(kind, error, trace):
    if isinstance(error, CheckFailed):
        print(*error._render_traceback_(), file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def seed_of(name):
    """The seed of an exercise's inputs in a notebook: the same at every check."""
    return zlib.crc32(name.encode())


def show(report):
    """Display a report: rich in a notebook, as text elsewhere."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        from IPython.display import display

        display(report)
    else:
        print(report.text)
