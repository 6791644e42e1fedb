"""The exercises of chapter 4: RMSNorm."""

import numpy as np

from lnres_utils import norms
from lnres_utils.checking import INPUT_KEPT, Exercise, Output, equivalent
from lnres_utils.drives import feature_axis
from lnres_utils.drives import rmsnorm as drive
from lnres_utils.specs import LESSONS, decay_family
from lnres_utils.specs import rms_family as family
from lnres_utils.specs import rms_knobs as knobs
from lnres_utils.specs import rmsnorm_cases as cases
from lnres_utils.specs.feature_axis import THREE_AXES
from lnres_utils.specs.forbidden import GRADIENTS, NORMS

CHAPTER = "rmsnorm"
EPS = 1e-6


def _rms_norm_reference(inputs):
    return {"y": norms.rms_norm(inputs["x"], inputs["gamma"], inputs.get("eps", EPS))}


def _backward_reference(inputs):
    eps = inputs.get("eps", EPS)
    parts = norms.rms_norm_backward(inputs["dy"], inputs["x"], inputs["gamma"], eps)
    return dict(zip(("dx", "dgamma"), parts, strict=True))


def _module_reference(inputs):
    x, eps, task = inputs["x"], inputs.get("eps", EPS), inputs["task"]
    width = x.shape[-1]
    if task == "state":
        return {"state": f"weight[{width}]"}
    if task == "fresh":
        return {"y": norms.rms_norm(x, np.ones(width), eps)}
    weight = inputs["weight"]
    if task == "half":
        dtype = inputs["dtype"]
        y = norms.rms_norm(x.astype(np.float64), weight, eps)
        y = y.astype(np.float16) if dtype == "float16" else y  # NumPy has no bfloat16
        return {f"y in {dtype}": y.astype(np.float32), "dtype": dtype}
    if task in ("forward", "eval"):
        return {"y": norms.rms_norm(x, weight, eps), "hidden": x}
    dx, dgamma = norms.rms_norm_backward(inputs["dy"], x, weight, eps)
    if task == "backward":
        return {"dx": dx}
    return {"y": norms.rms_norm(x, weight - inputs["rate"] * dgamma, eps)}


def _qk_reference(inputs):
    def normalized(name, gain):
        states, heads = inputs[name], inputs["heads"]
        split = states.reshape(*states.shape[:2], heads, -1)
        return norms.rms_norm(split, inputs[gain], inputs.get("eps", EPS)).reshape(states.shape)

    return {"queries": normalized("queries", "query_gain"), "keys": normalized("keys", "key_gain")}


def _fold_reference(inputs):
    return {name: inputs[name] - inputs[name].mean(0) for name in ("weight", "bias")}


def _convert_reference(inputs):
    weight = inputs["weight"]
    wide = weight.astype(np.result_type(weight, np.float32))
    return {"gain": wide + 1 if inputs["to"] == "plain" else wide - 1}


def _decay_reference(inputs):
    """From the text, role by role."""
    roles = dict.fromkeys(cases.MATRICES, "decayed")
    roles |= dict.fromkeys((*cases.BIASES, *cases.GAINS), "not decayed")
    return {**roles, cases.FROZEN: "in neither"}


_COPIED = (
    equivalent("it is the two slips under one name, because they are copied together",
               {"unbiased-variance"}, {"variance-for-mean-square", "unbiased-mean-square"}),
    equivalent("it is the two slips under one name, because they are copied together",
               {"length-one-without-eps"}, {"length-one", "eps-missing"}),
)

_WIDENED = tuple(
    equivalent("where half precision meets the gain, only a gain of float32 widens it",
               {id, "gain-widens"}, {id, "never-cast-back"})
    for id in ("half-inside", "scale-rounded", "scale-rounded-float64-narrowed"))

_INTERLEAVED = tuple(
    equivalent("where the heads do not decide what is averaged, only the gain tells how they lie",
               {"heads-interleaved", id}, {"gains-repeated", id})
    for id in ("over-all-heads", "over-tokens")) + (
    equivalent("every n-th feature is in a head, so what n heads share is n neighbors",
               {"heads-interleaved", "over-heads"}, {"gains-repeated", "heads-as-size"}),)

_COMMON = {"chapter": CHAPTER, "titles": LESSONS}

_EXERCISES = (
    Exercise(
        name="rms_norm", **_COMMON,
        forbid=NORMS,
        lesson=knobs.ONE_STATISTIC, difficulty=1, minutes=8, parameters=("x", "gamma", "eps=1e-6"),
        cases=cases.rms_norm, drive=drive.rms_norm, reference=_rms_norm_reference,
        family=family.faulty_rms_norm, knobs=knobs.RMS_NORM, equivalents=(*_COPIED, *THREE_AXES),
        groups={"values": 2, "gain": 1, "small vectors": 1, "default epsilon": 1, "other ranks": 1,
                "float32": 1, INPUT_KEPT: 1},
        outputs={"y": Output(dtype=True)},
        hints=(
            "Two steps: divide each vector by a number of its own, then multiply by γ. Nothing is "
            "subtracted.",
            "The number is the root of the mean of the squares, over the last axis; ε is added "
            "under the root.",
            "`x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * gamma`.",
        ),
    ),
    Exercise(
        name="rms_norm_backward", **_COMMON,
        forbid=NORMS + GRADIENTS,
        lesson=knobs.ONE_STATISTIC, difficulty=3, minutes=15,
        parameters=("dy", "x", "gamma", "eps=1e-6"),
        cases=cases.rms_norm_backward, drive=drive.rms_norm_backward,
        reference=_backward_reference, family=family.faulty_rms_backward, knobs=knobs.BACKWARD,
        groups={"dx": 4, "dgamma": 2, "other ranks": 1, "default epsilon": 1, INPUT_KEPT: 1},
        outputs={"dx": Output(), "dgamma": Output()},
        hints=(
            "Recompute the normalized vector z. dgamma follows from y = z·γ: sum dy·z over every "
            "axis but the last.",
            "With dz = dy·γ, take away from dz its part along z, and nothing else: no mean was "
            "subtracted on the way forward.",
            "dx = (dz − z · mean(dz · z)) / sqrt(mean(x²) + eps), with means over the features.",
        ),
    ),
    Exercise(
        name="RMSNorm", **_COMMON,
        forbid=NORMS,
        lesson=knobs.DIALECTS, difficulty=2, minutes=15, kind="class",
        parameters=("width", "eps=1e-6"), array="torch tensor",
        cases=cases.module, drive=feature_axis.norm_module, reference=_module_reference,
        family=family.faulty_rms_module, knobs=knobs.MODULE, equivalents=(*_COPIED, *_WIDENED),
        groups={"as built": 1, "state_dict": 1, "forward": 2, "float16": 2, "bfloat16": 1,
                "gradient": 1, "training": 2},
        outputs={"y": Output(dtype=True), "hidden": Output(), "dx": Output(),
                 "state": Output("text"), "dtype": Output("text"), "y in float16": Output("exact"),
                 "y in bfloat16": Output(tolerance=1e-4)},  # a hundredth: two of its roundings
        hints=(
            "One `nn.Parameter` of shape (width,), called weight; ε is a plain number.",
            "`hidden.float()` would narrow float64; `torch.promote_types(hidden.dtype, "
            "torch.float32)` is the wider of the two.",
            "Widen, take the mean square, divide, multiply by the weight, and only then "
            "`.to(hidden.dtype)`.",
        ),
    ),
    Exercise(
        name="qk_norm", **_COMMON,
        forbid=NORMS,
        lesson=knobs.DIALECTS, difficulty=2, minutes=12,
        parameters=("queries", "keys", "query_gain", "key_gain", "heads", "eps=1e-6"),
        cases=cases.qk_norm, drive=drive.qk_norm, reference=_qk_reference,
        family=family.faulty_qk_norm, knobs=knobs.QK_NORM, equivalents=(*_COPIED, *_INTERLEAVED),
        groups={"queries": 2, "keys": 2, "gains": 2, "small vectors": 1, "default epsilon": 1,
                INPUT_KEPT: 1},
        outputs={"queries": Output(), "keys": Output()},
        hints=(
            "Split the last axis into heads, normalize each head of each token by itself, and join "
            "the heads again.",
            "`x.reshape(B, T, heads, D // heads)` has a last axis of the features of one head, "
            "which is what the gain fits.",
            "Write one helper that does it for an array and a gain, and call it twice.",
        ),
    ),
    Exercise(
        name="fold_centering", **_COMMON,
        lesson=knobs.INSIDE, difficulty=2, minutes=10, parameters=("weight", "bias"),
        cases=cases.fold_centering, drive=drive.fold_centering, reference=_fold_reference,
        family=family.faulty_fold, knobs=knobs.FOLD,
        groups={"weight": 3, "bias": 2, "float32": 1, INPUT_KEPT: 1},
        outputs={"weight": Output(dtype=True), "bias": Output(dtype=True)},
        hints=(
            "The output is weight @ x + bias. Its mean over the D outputs has to be zero for "
            "every x.",
            "The mean of weight @ x is (the mean of the rows of weight) · x: take that row away "
            "from every row.",
            "`weight - weight.mean(axis=0)`, and the same for the bias.",
        ),
    ),
    Exercise(
        name="convert_gain", **_COMMON,
        lesson=knobs.DIALECTS, difficulty=1, minutes=8, parameters=("weight", "to"),
        cases=cases.convert_gain, drive=drive.convert_gain, reference=_convert_reference,
        family=family.faulty_convert, knobs=knobs.CONVERT,
        groups={"to plain": 1, "to one-plus": 1, "float32": 1, "float16": 2, INPUT_KEPT: 1},
        outputs={"gain": Output(dtype=True, tolerance=1e-7)},
        hints=(
            "A norm of the kind \"one-plus\" that stores w does what one of the kind \"plain\" "
            "does with 1 + w.",
            "float16 has 11 binary digits: 1 + w may need more. Cast before you add, not after.",
            "`weight.astype(np.result_type(weight, np.float32))` is float32 for half precision and "
            "leaves float64 alone.",
        ),
    ),
    Exercise(
        name="decay_groups", **_COMMON,
        lesson=knobs.DIALECTS, difficulty=2, minutes=10, parameters=("model",),
        cases=cases.decay_groups, drive=drive.decay_groups, summary=decay_family.by_role,
        reference=_decay_reference,
        family=decay_family.faulty_groups, knobs=decay_family.KNOBS,
        array="pair of lists of parameters",
        groups={"matrices": 1, "biases": 1, "gains": 3, "shared and frozen": 2},
        outputs={role: Output("text")
                 for role in (*cases.MATRICES, *cases.BIASES, *cases.GAINS, cases.FROZEN)},
        hints=(
            "A name says what somebody called a module, a class who wrote it. What tells a gain "
            "from a matrix in nearly every model?",
            "`parameter.ndim`: gains and biases here have one axis, a single number none, matrices "
            "two and kernels of convolutions more.",
            "Go through `model.parameters()`, skip what has `requires_grad=False`, and sort by "
            "`parameter.ndim >= 2`.",
        ),
    ),
)

get = {exercise.name: exercise for exercise in _EXERCISES}.__getitem__
