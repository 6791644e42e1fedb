"""What the tests of the checks share: the exercises, their hypotheses, and outputs to compare."""

import random
import warnings
from itertools import combinations

import numpy as np
import pytest
import torch

from lnres_utils import specs
from lnres_utils.checking import Case, judge, run_case, seed_of
from lnres_utils.checking.comparing import same
from lnres_utils.checking.diagnosing import hypothesis


def pytest_collectstart(collector):
    _seed()  # files also build their modules when they are read


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    _seed()


def _seed():
    """What a test draws does not depend on the tests before it, nor on who runs them."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(params=list(specs.exercises))
def exercise(request):
    """Every exercise of the course, one after the other."""
    return specs.get(request.param)


@pytest.fixture(autouse=True)
def _quiet():
    """Wrong answers divide by zero; that is their business."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rng_of(exercise):
    """The random numbers that ``check`` uses in a notebook."""
    return np.random.default_rng(seed_of(exercise.name))


def checked(name, answer, seed=None):
    """The report on an answer, as ``check`` makes it; with another seed, on other inputs."""
    exercise = specs.get(name)
    rng = rng_of(exercise) if seed is None else np.random.default_rng(seed)
    return judge(exercise, answer, rng)


def named(report):
    """The set of ids that a report names, split at the + of an ambiguous pair."""
    return frozenset(id for mistake in report.mistakes for id in mistake.id.split(" + "))


def hypotheses(exercise):
    """Every mistake and every pair of mistakes that the engine forms."""
    pairs = () if exercise.separate else combinations(exercise.knobs, 2)
    return [(knob,) for knob in exercise.knobs] + [
        pair for pair in pairs if pair[0].combines_with(pair[1])]


def ids(knobs):
    return frozenset(knob.id for knob in knobs)


def outputs(exercise, answer, all_inputs):
    """What an answer gives on each input: outputs, or None where it raises."""
    return [run_case(exercise, answer, Case("", inputs)).outputs for inputs in all_inputs]


def agree(exercise, first, second):
    """Whether two lists of outputs are the same, by the rule of the exercise."""
    return all(
        (a is None) == (b is None) and (a is None or same(exercise.outputs, a, b))
        for a, b in zip(first, second, strict=True)
    )


def declared(exercise, first, second):
    """Whether two hypotheses (sets of ids) are declared to be one and the same."""
    return any({first, second} <= set(each.hypotheses) for each in exercise.equivalents)


def family_outputs(exercise, knobs, all_inputs):
    """What the faulty family gives with these knobs turned."""
    return outputs(exercise, hypothesis(exercise, knobs), all_inputs)
