"""Random faults of the reference: none accepted unless it changes nothing, none misnamed."""

import inspect
import random
import types
from pathlib import Path

import nbformat
import numpy as np
import pytest
from answers.fresh import fresh_inputs
from answers.mutating import mutants
from conftest import agree, checked, family_outputs, outputs

from lnres_utils import specs
from lnres_utils.blocks import transformer
from lnres_utils.checking import Case, run_case
from lnres_utils.checking.judging import CHANGES_INPUT
from lnres_utils.norms import arrays, modules

SEED, EACH, FRESH = 5, 45, 40
PLACEMENTS = {"PostNormBlock": "post", "PreNormBlock": "pre", "SandwichBlock": "sandwich",
              "DeepNormBlock": "deepnorm"}
FUNCTIONS = {  # what is mutated: the exercises whose reference it is part of
    "standardize": ("standardize",),
    "normalize": ("standardize", "layer_norm", "axis_norm", "channel_norm"),
    "layer_norm": ("layer_norm", "channel_norm"),
    "axis_norm": ("axis_norm",),
    "channel_norm": ("channel_norm",),
    "layer_norm_backward": ("layer_norm_backward",),
    "LayerNorm": ("LayerNorm",),
    **{name: (name,) for name in specs.CHAPTERS["residual-path"]},
    **{name: (name,) for name in specs.CHAPTERS["pre-and-post-norm"] if name != "norm_order"},
    "Block": tuple(PLACEMENTS),
    **{name: (name,) for name in specs.CHAPTERS["rmsnorm"]},
    **{name: (name,) for name in ("masked_norm", "half_layer_norm")},
}
IMPORTS = """
import numpy as np
import torch
from torch import nn
"""


PLACED = """

class {name}(Block):
    def __init__(self, width, attention, feed_forward{alpha}):
        super().__init__(width, [attention, feed_forward], "{place}"{scale})
"""


def placed(name):
    """The book's block, called as the exercise asks."""
    alpha = name == "DeepNormBlock"
    return PLACED.format(name=name, place=PLACEMENTS[name], alpha=", alpha" if alpha else "",
                         scale=", skip_scale=alpha" if alpha else "")


def source_of(function):
    """The file that holds a function of ours, or the cell of the exercise's solution."""
    if function == "Block":
        return inspect.getsource(transformer) + "".join(map(placed, PLACEMENTS))
    if function in vars(arrays) or function in vars(modules):
        return inspect.getsource(modules if function in vars(modules) else arrays)
    path = Path(__file__).parents[1] / "solutions" / f"{specs.get(function).chapter}.ipynb"
    cell, = (cell.source for cell in nbformat.read(path, as_version=4).cells
             if cell.metadata.get("lnres", {"role": ""}).get("role") is None
             and cell.metadata.lnres.exercise == function)
    return IMPORTS + cell


def drawn():
    """At least 200 faults, the same at every run: (what, source, exercise)."""
    draw = random.Random(SEED)
    for function, exercises in FUNCTIONS.items():
        all_faults = list(mutants(source_of(function), function))
        for what, source in draw.sample(all_faults, min(EACH, len(all_faults))):
            yield what, source, draw.choice(exercises)


def load(source, name):
    module = types.ModuleType("mutant")
    exec(compile(source, "<mutant>", "exec"), module.__dict__)
    return getattr(module, name)


@pytest.fixture(scope="module")
def verdicts():
    """(what, exercise, mutant, report) of every fault."""
    with np.errstate(all="ignore"):
        found = []
        for what, source, name in drawn():
            mutant = load(source, name)
            found.append((what, specs.get(name), mutant, checked(name, mutant)))
    return found


@pytest.fixture(scope="module")
def fresh():
    return {name: fresh_inputs(specs.get(name), np.random.default_rng(6), FRESH)
            for name in specs.exercises}


def runs_of(exercise, answer, inputs):
    return [run_case(exercise, answer, Case("", each)) for each in inputs]


def computes_the_same(exercise, mutant, inputs):
    """Values, dtypes, and the input left as it was."""
    for run in runs_of(exercise, mutant, inputs):
        right = exercise.reference(run.case.inputs)
        if run.outputs is None or run.changed or not agree(exercise, [run.outputs], [right]):
            return False
        if any(getattr(run.outputs[name], "dtype", None) != getattr(right[name], "dtype", None)
               for name in right):
            return False
    return True


def test_no_fault_is_accepted_unless_it_changes_nothing(verdicts, fresh):
    accepted = [(what, exercise.name) for what, exercise, mutant, report in verdicts
                if report.outcome == "right"
                and not computes_the_same(exercise, mutant, fresh[exercise.name])]
    assert not accepted


def test_no_fault_that_changes_nothing_is_refused(verdicts, fresh):
    refused = [(what, exercise.name, report.text) for what, exercise, mutant, report in verdicts
               if report.outcome != "right"
               and computes_the_same(exercise, mutant, fresh[exercise.name])]
    assert not refused


def test_no_fault_is_misnamed(verdicts, fresh):
    """A name is right if its faulty family gives what the mutant gives, on other inputs too."""
    misnamed = []
    for what, exercise, mutant, report in verdicts:
        inputs = fresh[exercise.name]
        names = [mistake.id for mistake in report.mistakes]
        if CHANGES_INPUT.id in names:
            names.remove(CHANGES_INPUT.id)
            assert any(run.changed for run in runs_of(exercise, mutant, inputs)), what
        if not names:
            continue
        knobs = {knob.id: knob for knob in exercise.knobs}
        if report.certainty == "both":
            names = [" + ".join(names)]
        steady = [each for each in inputs if is_steady(exercise, mutant, each)]
        assert len(steady) > len(inputs) / 2, what
        given = outputs(exercise, mutant, steady)
        for name in names:
            turned = [knobs[id] for id in name.split(" + ")]
            if not agree(exercise, given, family_outputs(exercise, turned, steady)):
                misnamed.append((exercise.name, what, name))
    assert not misnamed


def is_steady(exercise, answer, inputs):
    """Whether the last bit of x leaves the outputs alone: else rounding decides, and no formula.

    A mean of deviations is zero up to rounding, which counts beside an epsilon of 1e-12.
    """
    name = next((each for each in ("x", "cotangent") if each in inputs), None)
    if name is None:
        return True
    nudged = {**inputs, name: np.nextafter(inputs[name], np.inf)}
    return agree(exercise, outputs(exercise, answer, [inputs]), outputs(exercise, answer, [nudged]))


def test_most_faults_are_killed(verdicts, fresh, capsys):
    killed = [report for *_, report in verdicts if report.outcome != "right"]
    named = sum(bool(report.mistakes) for report in killed)
    with capsys.disabled():
        print(f"\n{len(verdicts)} mutants: {len(killed)} killed, "
              f"{len(verdicts) - len(killed)} equivalent; of the killed {named} named, "
              f"{len(killed) - named} unnamed", end=" ")
    assert len(verdicts) >= 200
    assert len(killed) > 0.75 * len(verdicts)
    assert named >= 30  # a random fault is seldom a known mistake; none is named by chance
