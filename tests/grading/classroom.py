"""Classes of made-up students: notebooks as they come in, and what each deserves.

The answers to chapter 1 were written by hand (``answers_feature_axis.txt``); those to the other
chapters are the solutions, whole, with a small slip, or broken. What an answer deserves is what
the check of a notebook says of it, run in this process: the grader has to come to the same.
"""

import contextlib
import functools
import io
import random
import re
import types
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from lnres_utils import specs
from lnres_utils.checking import judge, seed_of

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = {"feature-axis": Path(__file__).with_name("answers_feature_axis.txt")}
_HEADING = re.compile(r"^# %% (\w+) \| (\w+) \| (.+)\n", re.M)

# Slips for the chapters without answers by hand. Most make an answer wrong; not each does.
SLIPS = ((" + ", " - "), (" * ", " / "), (" / ", " * "), (" > ", " < "), ("(axis=-1", "(axis=0"),
         ("keepdims=True", "keepdims=False"), ("True", "False"), (".ones(", ".zeros("),
         ("return ", "return 1.1 * "), ('= "c"', '= "a"'))


@dataclass(frozen=True)
class Variant:
    """One way to answer an exercise."""

    kind: str  # right, named, two, unnamed, raising, syntax, unfinished, slip
    label: str
    source: str
    before: tuple[str, ...] = ()  # cells of the student's own that stand before it


@dataclass(frozen=True)
class Member:
    """One student of a class."""

    student: str
    profile: str
    chapter: str
    answers: dict  # exercise: Variant
    change: object = field(default=None, compare=False)

    @functools.cached_property
    def notebook(self):
        return notebook(self.chapter, self._sources(), **self._changes())

    @functools.cached_property
    def expected(self):
        """What each exercise deserves: (outcome, points)."""
        return deserved(self.chapter, self._sources(), **self._changes())

    def _sources(self):
        return {name: variant.source for name, variant in self.answers.items()}

    def _changes(self):
        before = {name: variant.before for name, variant in self.answers.items()}
        return {"before": before, "change": self.change}


# Notebooks.


def notebook(chapter, answers, before=None, change=None):
    """The notebook of a student, as bytes.

    Parameters
    ----------
    answers : mapping from exercise to the source of its cell; the others stay unsolved
    before : mapping from exercise to sources of cells that stand before the answer
    change : function that changes the notebook (a NotebookNode) in place, at the end
    """
    nb, cells, known = _read("exercises", chapter), [], set()
    for cell in nb.cells:
        name = exercise_of(cell)
        if name:
            known.add(name)
            cell.source = answers.get(name, cell.source)
            for number, source in enumerate((before or {}).get(name, ())):
                own = nbformat.v4.new_code_cell(source, id=f"own-{number}-{cell.id}"[:64])
                cells.append(own)
        cells.append(cell)
    unknown = {*answers, *(before or {})} - known
    if unknown:
        raise KeyError(f"{chapter} has no exercise {', '.join(sorted(unknown))}")
    nb.cells = cells
    if change:
        change(nb)
    return nbformat.writes(nb).encode()


def solved(chapter):
    """The notebook with every answer right."""
    return notebook(chapter, solutions(chapter))


def unsolved(chapter):
    """The notebook as it is handed out."""
    return notebook(chapter, {})


def solutions(chapter):
    """The sources of the book's own answers, by exercise."""
    cells = _read("solutions", chapter).cells
    return {exercise_of(cell): cell.source for cell in cells if exercise_of(cell)}


def exercise_of(cell):
    """The exercise that a cell answers, or an empty string."""
    lnres = cell.metadata.get("lnres", {})
    return "" if "role" in lnres else lnres.get("exercise", "")


def _read(folder, chapter):
    return nbformat.read(ROOT / folder / f"{chapter}.ipynb", as_version=4)


# What answers deserve.


def deserved(chapter, answers, before=None, change=None):
    """What the notebook's own checks say, by exercise: (outcome, points)."""
    nb = nbformat.reads(notebook(chapter, answers, before, change).decode(), as_version=4)
    shell, found = _shell(), {}
    for cell in nb.cells:
        lnres = cell.metadata.get("lnres", {})
        if lnres.get("role") == "check":
            found[lnres["exercise"]] = _judged(lnres["exercise"], shell.user_ns)
        elif cell.cell_type == "code":
            with contextlib.redirect_stdout(_Nowhere()), contextlib.redirect_stderr(_Nowhere()):
                shell.run_cell(cell.source, silent=True)
    return {name: found[name] for name in specs.CHAPTERS[chapter]}


def report_on(exercise, answer):
    """The report on an answer, as ``check`` makes it in a notebook."""
    rng = np.random.default_rng(seed_of(exercise))
    return judge(specs.get(exercise), answer, rng, _cases(exercise))


def defined(chapter, exercise, variant):
    """The function or class that a variant defines; KeyError if its cell does not run."""
    shell = _shell()
    setup = "import numpy as np, torch\nfrom torch import nn\nfrom torch.nn import functional as F"
    for source in (setup, *variant.before, variant.source):
        with contextlib.redirect_stdout(_Nowhere()), contextlib.redirect_stderr(_Nowhere()):
            shell.run_cell(source, silent=True)
    return shell.user_ns[exercise]


def _judged(exercise, namespace):
    if exercise not in namespace:
        return "not attempted", 0
    report = report_on(exercise, namespace[exercise])
    return report.outcome, report.points


@functools.cache
def _cases(exercise):
    return specs.get(exercise).cases(np.random.default_rng(seed_of(exercise)))


def _shell():
    """A fresh IPython, which knows magics, beside any that runs here."""
    module, config = types.ModuleType("submission"), Config()
    config.HistoryManager.enabled = False  # no file that other processes write, too
    config.InteractiveShell.xmode = "Minimal"
    return InteractiveShell(user_module=module, user_ns=module.__dict__, config=config)


class _Nowhere(io.TextIOBase):
    def write(self, text):
        return len(text)


# Classes.


@functools.cache
def variants(chapter):
    """Ways to answer, by exercise."""
    if chapter in BY_HAND:
        return _by_hand(BY_HAND[chapter].read_text(encoding="utf-8"))
    return {name: _slipped(source) for name, source in solutions(chapter).items()}


def _by_hand(text):
    found = {}
    parts = _HEADING.split(text)[1:]
    for exercise, kind, label, body in zip(*(iter(parts),) * 4, strict=True):
        *before, source = (cell.strip("\n") for cell in body.split("\n# ---\n"))
        found.setdefault(exercise, []).append(Variant(kind, label, source, tuple(before)))
    return found


def _slipped(source):
    """The solution, the solution with each slip that it has room for, and three broken ones."""
    head, indent, body = re.split(r"^( *)### BEGIN SOLUTION\n", source, maxsplit=1, flags=re.M)
    slips = (Variant("slip", f"{old!r} to {new!r}", head + body.replace(old, new, 1))
             for old, new in SLIPS if old in body)
    return [
        Variant("right", "the solution", source),
        *slips,
        Variant("raising", "a deleted helper", f"{head}{indent}my_helper()\n{body}"),
        Variant("syntax", "an open parenthesis", f"{head}{body}\n{indent}print("),
        Variant("unfinished", "a stub", f"{head}{indent}raise NotImplementedError()\n{body}"),
    ]


_WEIGHTS = {"right": 10, "named": 5, "slip": 5, "unnamed": 2, "two": 1, "raising": 2, "syntax": 1,
            "unfinished": 1}
# One in ten each: whoever takes ten students in a row meets all.
PROFILES = ("all right", "one slip", "mixed", "partly unsolved", "all right", "mixed", "one slip",
            "mixed", "cells of its own", "untouched")


def members(chapter, count, seed=0):
    """``count`` students of mixed quality, always the same for a seed."""
    rng = random.Random(f"{chapter} {seed}")
    for number in range(count):
        profile = PROFILES[number % len(PROFILES)]
        answers = _answers(rng, chapter, profile)
        change = _add_cells if profile == "cells of its own" else None
        yield Member(f"student-{number:04}", profile, chapter, answers, change)


def mixed_class(chapter, count, seed=0):
    """(student, notebook as bytes) of ``members``."""
    return ((member.student, member.notebook) for member in members(chapter, count, seed))


def _answers(rng, chapter, profile):
    known = variants(chapter)
    names = list(known)
    if profile == "untouched":
        return {}
    if profile == "partly unsolved":
        names = names[: rng.randint(1, max(1, len(names) - 1))]
    kinds = dict.fromkeys(names, "right")
    if profile in ("mixed", "partly unsolved"):
        kinds = {name: _draw(rng, known[name]) for name in names}
    elif profile == "one slip":
        kinds[rng.choice(names)] = "named" if chapter in BY_HAND else "slip"
    return {name: rng.choice([each for each in known[name] if each.kind == kind]
                             or known[name][:1]) for name, kind in kinds.items()}


def _draw(rng, ways):
    kinds = sorted({way.kind for way in ways})
    return rng.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]


def _add_cells(nb):
    """Notes and trials between the cells, and a long output that was never cleared."""
    noise = nbformat.v4.new_output("stream", name="stdout", text="epoch 1, loss 0.1\n" * 2000)
    trial = nbformat.v4.new_code_cell("values = [v ** 2 for v in range(5)]\nprint(values)\n1 / 0",
                                      id="own-trial", outputs=[noise])
    notes = nbformat.v4.new_markdown_cell("My notes: ε is a *variance*.", id="own-notes")
    nb.cells[2:2] = [notes, trial]
