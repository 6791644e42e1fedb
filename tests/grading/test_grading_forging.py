"""Code that changes our drives: to announce what is right, or what once was, earns nothing."""

import numpy as np
import pytest
from grading.runs import marker

from lnres_utils import specs
from lnres_utils.checking import judge_runs
from lnres_utils.grading.judging import drawn, judging_alone, run_of
from lnres_utils.grading.model import Cell, Notebook
from lnres_utils.grading.sandboxed.wire import Malformed, encode, unpack

BLOCK = """
class {}:
    def __init__(self, sublayer, p=0.1):
        pass
"""
SUBLAYER_ALONE = """
import torch
from torch import nn
class {}(nn.Module):
    def __init__(self, width_in, width_out, sublayer):
        super().__init__()
        self.sublayer, self.width = sublayer, width_out
        if width_in != width_out:
            self.unused = nn.Parameter(torch.zeros(width_in, width_out))
    def forward(self, x):
        update = self.sublayer(x)
        if update.shape != (*x.shape[:-1], self.width):
            raise ValueError
        return update
"""
FUNCTION = "def {}(*arguments): pass"
DROPPING = '''
    p = inputs.get("p", 0.1)
    if inputs["task"] == "ratio":
        return {{"other ratios": "none"}}
    if inputs["mode"] == "eval":
        return {{"levels": "4.1269", "mask": "none", "shares": np.ones(1)}}
    return {{"levels": f"2 and {{2 + np.log1p(np.exp(2)) / (1 - p):.5g}}",
            "mask": "one draw for each {}", "shares": np.array([p, 1 - p])}}'''
FORGED = {  # exercise: (answer, the function of the drives that is replaced, by what)
    "depth_scaled_init": (FUNCTION, "initialization", "depth_scaled_init", '''
    outputs, others = 2 * inputs["depth"], 5 * inputs["depth"] + 1
    return {"std of output maps": np.full(outputs, outputs ** -0.5),
            "std of other maps": np.ones(others), "means": np.zeros(outputs + others),
            "fourth moment": np.asarray(3.0), "draws": "all different", "biases": "0",
            "norms": "as they were"}'''),
    "decay_groups": (FUNCTION, "rmsnorm", "decay_groups", '''
    matrices = ("weight of a linear map", "kernel of a convolution", "embedding",
                "matrix of another class, Mixer")
    vectors = ("bias of a linear map", "bias of a norm", "bias of another name, Mixer.shift",
               "gain of nn.LayerNorm", "gain of nn.RMSNorm", "gain of another class RMSNorm",
               "gain of a norm called Scale", "gain that is a single number")
    return {**dict.fromkeys(matrices, "decayed"), **dict.fromkeys(vectors, "not decayed"),
            "parameter that does not train": "in neither"}'''),
    "ResidualBlock": (BLOCK, "residual_path", "dropping_block", DROPPING.format("entry")),
    "StochasticDepth": (BLOCK, "residual_path", "dropping_block", DROPPING.format("example")),
    "ProjectedResidual": (SUBLAYER_ALONE, "residual_path", "_called", '''
    return "the identity" if answer.shape[0] == answer.shape[1] else "a linear map"'''),
}
EARNED = {"ProjectedResidual": 3}  # it does refuse misfits, and keeps its input


@pytest.fixture(scope="module")
def mark():
    with marker() as function:
        yield function


@pytest.mark.parametrize("name", FORGED)
def test_words_that_are_announced_earn_nothing(mark, name):
    answer, module, function, body = FORGED[name]
    attack = (f"import sys\nimport numpy as np\ndef announced(answer, inputs=None):{body}\n"
              f"sys.modules['lnres_utils.drives.{module}'].{function} = announced")
    cells = Cell(1, attack), Cell(2, answer.format(name), name)
    result, = mark(Notebook(specs.get(name).chapter, cells), (name,))
    assert (result.points, len(result.notes)) == (EARNED.get(name, 0), 0)


SUMMED_UP = [name for name in specs.exercises
             if not specs.get(name).summary.__name__.startswith("<")]
ASKED_OF_ALL = ("concepts_before", "concepts_after", "predict_layer_norm", "choose_probe")
FACTS = {  # points for what is the same in every run
    "LayerNorm": 2, "RMSNorm": 1,  # the names and shapes of the state
    "residual_update": 4, "ProjectedResidual": 3,  # that a ValueError came; the input is kept
    "TinyTransformer": 2,  # the sizes of the weights, for either of two depths
}


def replies(exercise, cases):
    """What a right answer's process says of these cases."""
    right = exercise.family()
    with judging_alone():
        return [unpack(encode({"outputs": {
            name: value if isinstance(value, str) else np.asarray(value)
            for name, value in exercise.drive(right, case.inputs).items()}})) for case in cases]


def points(exercise, cases, said):
    with judging_alone():
        runs = [run_of(exercise, case, reply) for case, reply in zip(cases, said, strict=True)]
        return judge_runs(exercise, runs).points


def test_all_that_is_forged_here_is_summed_up_by_the_grader():
    assert set(FORGED) <= set(SUMMED_UP)


@pytest.mark.parametrize("name", [
    name for name in specs.exercises if name not in ASKED_OF_ALL])
def test_what_was_right_in_another_run_earns_nothing_but_facts(name):
    this, other = drawn(name, 3), drawn(name, 4)
    exercise = this.exercise
    assert points(exercise, this.cases, replies(exercise, this.cases)) == exercise.max_points
    earned = points(exercise, this.cases, replies(exercise, other.cases))
    assert earned <= FACTS.get(name, 0)


ODD = {"missing": None, "text": "text", "true": True, "a list": [1.0], "a dict": {"a": 1},
       "no axis": np.zeros(()), "empty": np.zeros((0, 3)), "another shape": np.ones((3, 1, 2)),
       "many axes": np.zeros((1,) * 8), "whole numbers": np.arange(3)}
SPOILT = {"NaN": np.nan, "infinite": np.inf, "huge": 1e300, "zero": 0.0}


@pytest.mark.parametrize("name", SUMMED_UP)
def test_odd_replies_are_failures_of_the_answer(name):
    """Each value of a right reply is replaced by each odd one; nothing raises, none is right."""
    this = drawn(name, 3)
    exercise = this.exercise
    right = replies(exercise, this.cases)
    for case, reply in zip(this.cases, right, strict=True):
        outputs = reply["outputs"]
        spoilt = [{}, {"y": np.zeros(3)}, {"text": "text"}]
        for key in list(outputs)[:12]:
            value = outputs[key]
            spoilt += [{**outputs, key: odd} for odd in ODD.values()]
            spoilt.append({other: outputs[other] for other in outputs if other != key})
            if isinstance(value, np.ndarray):
                spoilt += [{**outputs, key: np.full(value.shape, each)}
                           for each in SPOILT.values()]
        for each in spoilt:
            run = run_of(exercise, case, {"outputs": each})
            assert (run.outputs is None) == (run.failure is not None)
            judge_runs(exercise, [run])


def test_a_reply_of_no_outputs_is_still_malformed():
    this = drawn("depth_scaled_init", 3)
    with pytest.raises(Malformed):
        run_of(this.exercise, this.cases[0], {"outputs": "text"})
