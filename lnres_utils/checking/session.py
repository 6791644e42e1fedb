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
from lnres_utils.markup import code


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
        self.cases = {}  # drawn once
        self.tries = {}
        self.hints = {}

    def check(self, answer, exercise=None):
        """Check an answer; see ``lnres_utils.check``."""
        name = self._name(answer, exercise)
        spec = self.exercises[name]
        if name not in self.cases:
            self.cases[name] = spec.cases(np.random.default_rng(seed_of(name)))
        try:
            rng = np.random.default_rng(seed_of(name))
            report = judge(spec, answer, rng, self.cases[name])
        except KeyboardInterrupt:
            fail(f"{name}: interrupted; a loop in it may never end")
        before = self.tries.get(name)
        self.tries[name] = Tries(report, before.count + 1 if before else 1)
        if report.outcome == "right":
            return report
        show(report)
        fail(f"{name}: {report.outcome} (report above)")

    def hint(self, name=None):
        """The next hint of an exercise; see ``lnres_utils.hint``."""
        name = getattr(name, "__name__", name)
        if not isinstance(name, str) or name not in self.exercises:
            fail(f'which exercise? hint("name") with {self._near(name)}')
        hints = self.exercises[name].hints
        self.hints[name] = min(self.hints.get(name, 0) + 1, len(hints))
        return Hint(name, hints[: self.hints[name]], len(hints))

    def progress(self):
        """A table of the chapters begun; see ``lnres_utils.progress``."""
        begun = {self.exercises[name].chapter for name in self.tries}
        specs = [self.exercises[name] for name in self.exercises] if begun else []
        return Progress(tuple(self._row(spec) for spec in specs if spec.chapter in begun))

    def _row(self, spec):
        tries = self.tries.get(spec.name)
        if tries is None:
            return spec.name, "not checked", 0, spec.max_points, 0
        report = tries.report
        return spec.name, report.outcome, report.points, report.max_points, tries.count

    def _name(self, answer, exercise):
        """The exercise meant, or one line on what to type instead; such a slip is no try."""
        own = getattr(answer, "__name__", None)
        if isinstance(answer, str) and answer in self.exercises:
            fail(f"pass the answer itself, without quotes: check({answer})")
        if type(answer).__name__ in self.exercises:
            fail(f"pass the class, not an object of it: check({type(answer).__name__})")
        if not callable(answer):
            usual = exercise if isinstance(exercise, str) else "standardize"
            fail(f"this is {describe(answer)}; pass the function itself, as in check({usual}), "
                 "not what it returns")
        if exercise is None and own in self.exercises:
            return own
        if exercise is None:
            fail(f"no exercise is called {own!r}; say which one it answers, as in "
                 f'check({own}, "standardize"): {self._near(own)}')
        if not isinstance(exercise, str) or exercise not in self.exercises:
            fail(f"no exercise is called {exercise!r}; give its name as a string: "
                 f"{self._near(exercise)}")
        if own in self.exercises and own != exercise:
            fail(f"{own} is the answer to another exercise: check({own})")
        return exercise

    def _near(self, name):
        """The names most like this one, or all."""
        near = difflib.get_close_matches(str(name), self.exercises, n=3, cutoff=0.5)
        return " or ".join(f'"{each}"' for each in near or self.exercises)


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
        items = "".join(f"<li>{code(text)}</li>" for text in self.shown)
        return (f"<div><strong>{escape(self.exercise)}: hint {len(self.shown)} of {self.total}"
                f"</strong><ol>{items}</ol></div>")


@dataclass(frozen=True)
class Progress:
    """Rows of (exercise, outcome, points, max points, checks)."""

    rows: tuple

    def __repr__(self):
        if not self.rows:
            return "Nothing checked yet since the notebook was started."
        lines = [f"{SYMBOLS[outcome]} {name}: {outcome}, {points} of {most} points, "
                 f"{count} check{'' if count == 1 else 's'}"
                 for name, outcome, points, most, count in self.rows]
        points, most = (sum(row[i] for row in self.rows) for i in (2, 3))
        return "\n".join([*lines, f"{points} of {most} points in all"])

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
