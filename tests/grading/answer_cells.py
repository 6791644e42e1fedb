"""The answers of ``tests/answers`` as cells of a notebook, for a process that has none of them.

A first cell carries the text of the modules that hold them; the cell that answers an exercise
takes its function or class from there.
"""

import functools
from pathlib import Path

import numpy as np
from answers import (
    before_and_after,
    bug_hunt,
    feature_axis,
    hunted,
    legal,
    legal_boxes,
    legal_bug_hunt,
    legal_checks,
    legal_choices,
    legal_residual,
    legal_rmsnorm,
    legal_wiring,
    practical_checks,
    pre_and_post_norm,
    residual_path,
    rmsnorm,
)
from conftest import checked
from grading.runs import marker

import lnres_utils
from lnres_utils import specs
from lnres_utils.checking import judge
from lnres_utils.grading.judging import drawn
from lnres_utils.grading.model import Cell, Notebook
from lnres_utils.specs import before_and_after as before_and_after_spec
from lnres_utils.specs import probe_choices

LEGAL = (legal, legal_boxes, legal_bug_hunt, legal_checks, legal_choices, legal_residual,
         legal_rmsnorm, legal_wiring)
WILD = (before_and_after, bug_hunt, feature_axis, practical_checks, pre_and_post_norm,
        residual_path, rmsnorm)
LOAD = """
import importlib.util, sys

class Texts:
    def find_spec(self, name, path=None, target=None):
        if name in TEXTS:
            inside = any(other.startswith(name + ".") for other in TEXTS)
            return importlib.util.spec_from_loader(name, self, is_package=inside)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(TEXTS[module.__name__], module.__name__, "exec"), module.__dict__)

for name in ("norms", "blocks", "experiments"):  # what stands for them here
    del sys.modules[f"lnres_utils.{name}"]
    delattr(sys.modules["lnres_utils"], name)
sys.meta_path.insert(0, Texts())
from importlib import import_module
"""
OURS = Path(lnres_utils.__file__).parent


def entries(chapter):
    """(exercise, where it comes from, the answer, the expression that gives it)."""
    for module in LEGAL:
        for exercise, ways in module.ANSWERS.items():
            for way, answer in ways.items():
                place = f"ANSWERS[{exercise!r}][{way!r}]"
                yield from _entry(chapter, exercise, module, answer, place)
    for module in WILD:
        for case, (exercise, answer, _) in module.ANSWERS.items():
            yield from _entry(chapter, exercise, module, answer, f"ANSWERS[{case!r}][1]")
        for number, (exercise, answer, *_) in enumerate(module.MORE):
            yield from _entry(chapter, exercise, module, answer, f"MORE[{number}][1]")


def _entry(chapter, exercise, module, answer, expression):
    if exercise in specs.CHAPTERS[chapter]:
        name = module.__name__
        yield exercise, f"{name}.{expression}", answer, f"import_module({name!r}).{expression}"


def notebooks(chapter):
    """(Notebook, {exercise: (where its answer comes from, the answer)}) until all are used."""
    waiting = {name: [] for name in specs.CHAPTERS[chapter]}
    for exercise, *entry in entries(chapter):
        waiting[exercise].append(entry)
    first = Cell(1, f"TEXTS = {texts()!r}{LOAD}")
    while any(waiting.values()):
        taken = {name: left.pop(0) for name, left in waiting.items() if left}
        cells = [Cell(number, f"{name} = {expression}", name)
                 for number, (name, (*_, expression)) in enumerate(taken.items(), start=2)]
        yield (Notebook(chapter, (first, *cells)),
               {name: (where, answer) for name, (where, answer, _) in taken.items()})


@functools.cache
def texts():
    """{name: text} of the modules that the cells import."""
    found = {"lnres_utils.specs": "", "answers": ""}
    for module in (before_and_after_spec, probe_choices):
        found[module.__name__] = f"RIGHT = {module.RIGHT!r}"
    for path in (path for files in ("norms/*.py", "blocks/*.py", "experiments/*.py", "schedules.py")
                 for path in OURS.glob(files)):
        name = ".".join(path.relative_to(OURS.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = _text(path)
    folder = Path(legal.__file__).parent
    return found | {f"answers.{path.stem}": _text(path) for path in folder.glob("*.py")} | {
        "answers.hunted": _hunted()}


def _text(path):
    return path.read_text(encoding="utf-8")


def _hunted():
    """The module that reads the solution, with what it has read."""
    text = _text(Path(hunted.__file__))
    for name in ("FOUND", "MENDED", "NOTEBOOK"):
        line = next(line for line in text.splitlines() if line.startswith(f"{name} = "))
        text = text.replace(line, f"{name} = {str(getattr(hunted, name))!r}")
    return text.replace("import nbformat\n", "")


def differences(chapter, seed=5):
    """How many answers were graded, and where that differs from what ``check`` says.

    Outcome and points are those of ``check``; the names of mistakes are those that the same judge
    gives on the same inputs, since a few can be told apart on some inputs only.
    """
    count, found = 0, []
    with marker(seed, forbids=False) as mark:  # some answers are what torch has
        for notebook, answers in notebooks(chapter):
            for graded in mark(notebook, tuple(answers)):
                count += 1
                where, answer = answers[graded.exercise]
                spec, rng = specs.get(graded.exercise), np.random.default_rng(0)
                same = judge(spec, answer, rng, drawn(graded.exercise, seed).cases)
                report = checked(graded.exercise, answer)
                expected = report.outcome, report.points, [each.id for each in same.mistakes]
                mistakes = [each["id"] for each in graded.public["mistakes"]]
                if (graded.outcome, graded.points, mistakes) != expected:
                    found.append((where, graded.outcome, graded.points, mistakes, expected))
    return count, found
