"""The exercises of chapter 1: feature-axis normalization."""

import numpy as np

from lnres_utils import norms
from lnres_utils.checking import INPUT_KEPT, Exercise, Output, Property, equivalent
from lnres_utils.drives import feature_axis as drive
from lnres_utils.specs import LESSONS, backward_family, module_family, norm_family, predictions
from lnres_utils.specs import feature_axis_cases as cases
from lnres_utils.specs import norm_knobs as knobs
from lnres_utils.specs.forbidden import GRADIENTS, NORMS

CHAPTER = "feature-axis"


def _layer_norm_reference(inputs):
    eps = inputs.get("eps", 1e-5)
    return {"y": norms.layer_norm(inputs["x"], inputs["gamma"], inputs["beta"], eps)}


def _backward_reference(inputs):
    eps = inputs.get("eps", 1e-5)
    parts = norms.layer_norm_backward(inputs["dy"], inputs["x"], inputs["gamma"], eps)
    return dict(zip(("dx", "dgamma", "dbeta"), parts, strict=True))


def _module_reference(inputs):
    x, eps, task = inputs["x"], inputs.get("eps", 1e-5), inputs["task"]
    width = x.shape[-1]
    if task == "state":
        return {"state": f"bias[{width}] weight[{width}]"}
    if task == "fresh":
        return {"y": norms.layer_norm(x, np.ones(width), np.zeros(width), eps)}
    weight, bias = inputs["weight"], inputs["bias"]
    if task in ("forward", "eval"):
        return {"y": norms.layer_norm(x, weight, bias, eps), "hidden": x}
    dx, dgamma, dbeta = norms.layer_norm_backward(inputs["dy"], x, weight, eps)
    if task == "backward":
        return {"dx": dx}
    rate = inputs["rate"]
    return {"y": norms.layer_norm(x, weight - rate * dgamma, bias - rate * dbeta, eps)}


def _changed_after(index):
    """Two inputs of layer_norm that differ at ``index`` only."""

    def pair(rng):
        first = {"x": cases.hidden_states(rng, (3, 4, 6)), **cases.affine(rng, 6), "eps": 1e-5}
        second = {**first, "x": first["x"].copy()}
        second["x"][index] += rng.normal(size=second["x"][index].shape)
        return first, second

    return pair


def _moved(scale, shift):
    def pair(rng):
        first = {"x": cases.hidden_states(rng, (3, 4, 6)), **cases.affine(rng, 6), "eps": 1e-9}
        return first, {**first, "x": scale * first["x"] + shift}

    return pair


def _close(first, second):
    return np.allclose(first, second, rtol=1e-6, atol=1e-6)


_LAYER_NORM_LAWS = (
    Property("An example's output changes when only another example changes.",
             _changed_after(1), lambda a, b: _close(a["y"][0], b["y"][0])),
    Property("A token's output changes when only a later token changes.",
             _changed_after((0, -1)), lambda a, b: _close(a["y"][0, :-1], b["y"][0, :-1])),
    Property("Adding the same number to all features changes the output; it should not.",
             _moved(1, 5), lambda a, b: _close(a["y"], b["y"])),
    Property("Doubling all features changes the output; it should not (tried with ε = 1e-9).",
             _moved(2, 0), lambda a, b: _close(a["y"], b["y"])),
)

_COMMON = {"chapter": CHAPTER, "titles": LESSONS}
_NORM_KNOBS = knobs.VARIANCE + knobs.CENTER + knobs.EPSILON + knobs.DEFAULT_EPSILON

_CHANNEL_KNOBS = (
    *knobs.channel_axes(),
    *(knob for knob in _NORM_KNOBS + knobs.AFFINE + knobs.KEEPDIMS if knob.id != "scalar-gain"),
)

_MODULE_KNOBS = module_family.KNOBS + (module_family.RMS,) + tuple(
    knob for knob in _NORM_KNOBS + knobs.AXES + knobs.AFFINE if knob.id in module_family.SHARED)


COPIED = equivalent("it is the two slips under one name, because they are copied together",
                    {"sample-std-plus-eps"}, {"unbiased-variance", "eps-outside-root"})

_TINY = equivalent("something tiny does nothing under the root, and nothing outside it",
                   {"eps-tiny", "sample-std-plus-eps"}, {"eps-tiny", "unbiased-variance"})

THREE_AXES = tuple(
    equivalent("code that accepts three axes only shows just these, and on them both are the same",
               {first, "three-axes-only"}, {second, "three-axes-only"})
    for first, second in (("over-tokens", "over-axis-1"),
                          ("over-tokens-and-features", "over-all-but-batch"),
                          ("over-batch-and-tokens", "over-all-but-features"))
)

_SUMMED = (
    equivalent("without the term of the mean, only the other one is left to be summed",
               {"mean-term-missing", "terms-summed"},
               {"mean-term-missing", "variance-term-summed"}),
    equivalent("without the term of the variance, only the other one is left to be summed",
               {"variance-term-missing", "terms-summed"},
               {"variance-term-missing", "mean-term-summed"}),
)

_CONSTANT = equivalent("treating both statistics as constants leaves out both of their terms",
                       {"statistics-constant"}, {"mean-term-missing", "variance-term-missing"})

_UNLOADED = tuple(
    equivalent("weights that do not load leave only the module as built, and there both give a "
               "constant one", {id, "gain-zero-bias-one"}, {id, "gain-bias-swapped"})
    for id in module_family.DO_NOT_LOAD
)

_UNUSED = (
    equivalent("a gain that is not applied does not train either",
               {"gain-missing", "nothing-trains"}, {"gain-missing", "bias-not-trained"}),
    equivalent("a bias that is not added does not train either",
               {"bias-missing", "nothing-trains"}, {"bias-missing", "gain-not-trained"}),
)

_EXERCISES = (
    Exercise(
        name="standardize", **_COMMON,
        forbid=NORMS,
        lesson=knobs.ONE_VECTOR, difficulty=1, minutes=8, parameters=("x", "eps=1e-5"),
        cases=cases.standardize, drive=drive.standardize,
        reference=lambda inputs: {"y": norms.standardize(inputs["x"], inputs.get("eps", 1e-5))},
        family=norm_family.faulty_standardize, knobs=_NORM_KNOBS,
        equivalents=(COPIED, _TINY),
        groups={"values": 1, "small variance": 1, "default epsilon": 1, INPUT_KEPT: 1},
        outputs={"y": Output()},
        hints=(
            "Four steps: the mean, the deviations from it, their mean square (the variance), and "
            "the deviations divided by a root.",
            "The variance of N numbers here is the sum of their squared deviations divided by N. "
            "ε is added to it before the root is taken.",
            "`centered = x - x.mean()`, then `centered / np.sqrt((centered ** 2).mean() + eps)`.",
        ),
    ),
    Exercise(
        name="layer_norm", **_COMMON,
        forbid=NORMS,
        lesson=knobs.WHICH_AXIS, difficulty=2, minutes=12,
        parameters=("x", "gamma", "beta", "eps=1e-5"),
        cases=cases.layer_norm, drive=drive.layer_norm, reference=_layer_norm_reference,
        family=norm_family.faulty_layer_norm,
        knobs=(_NORM_KNOBS + knobs.AXES + knobs.AFFINE + knobs.KEEPDIMS + knobs.RANK
               + knobs.DTYPE),
        equivalents=(COPIED, _TINY, *THREE_AXES),
        groups={"values": 2, "gain and bias": 2, "small variance": 1, "default epsilon": 1,
                "other ranks": 2, "float32": 1, INPUT_KEPT: 1},
        outputs={"y": Output(dtype=True)}, properties=_LAYER_NORM_LAWS,
        hints=(
            "Each token has its own mean and variance, over its D features: the last axis.",
            "`x.mean(axis=-1, keepdims=True)` keeps a last axis of length one, so that it lines up "
            "with x, whatever the number of axes before it.",
            "Normalize first; then multiply by γ and add β, both of shape (D,).",
        ),
    ),
    Exercise(
        name="axis_norm", **_COMMON,
        forbid=NORMS,
        lesson=knobs.WHICH_AXIS, difficulty=2, minutes=15,
        parameters=("x", "kind", "groups=1", "eps=1e-5"),
        cases=cases.axis_norm, drive=drive.axis_norm,
        reference=lambda inputs: {"y": norms.axis_norm(
            inputs["x"], inputs["kind"], inputs.get("groups", 1), inputs.get("eps", 1e-5))},
        family=norm_family.faulty_axis_norm, knobs=knobs.FOUR_NORMS + _NORM_KNOBS,
        equivalents=(COPIED, _TINY),
        groups={"layer": 1, "batch": 2, "instance": 2, "group": 3, "defaults": 1, INPUT_KEPT: 1},
        outputs={"y": Output()},
        hints=(
            "Only the axes differ: which numbers of (B, T, D) share one mean and one variance?",
            "Layer: the features of one token. Batch: all tokens of all examples, feature by "
            "feature. Instance: the tokens of one example, feature by feature.",
            "For groups, reshape to (B, T, groups, D // groups), normalize over the token axis and "
            "the last axis together, and reshape back.",
        ),
    ),
    Exercise(
        name="channel_norm", **_COMMON,
        forbid=NORMS,
        lesson=knobs.WHICH_AXIS, difficulty=2, minutes=10,
        parameters=("x", "gamma", "beta", "eps=1e-5"),
        cases=cases.channel_norm, drive=drive.layer_norm,
        reference=lambda inputs: {"y": norms.channel_norm(
            inputs["x"], inputs["gamma"], inputs["beta"], inputs.get("eps", 1e-5))},
        family=norm_family.faulty_channel_norm, knobs=_CHANNEL_KNOBS,
        equivalents=(COPIED, _TINY),
        groups={"values": 2, "gain and bias": 2, "default epsilon": 1, INPUT_KEPT: 1},
        outputs={"y": Output()},
        hints=(
            "At each pixel there is one vector of C channels. Which axis of (B, C, H, W) is that?",
            "γ and β have one entry for each channel; give them the shape (C, 1, 1) so that they "
            "meet axis 1.",
            "Or move the channels to the end with `np.moveaxis(x, 1, -1)`, normalize there, and "
            "move them back.",
        ),
    ),
    Exercise(
        name="predict_layer_norm", **_COMMON,
        lesson="feature-axis/geometry", difficulty=1, minutes=10, hints=predictions.HINTS,
        knobs=predictions.KNOBS, **predictions.FIELDS,
    ),
    Exercise(
        name="layer_norm_backward", **_COMMON,
        forbid=NORMS + GRADIENTS,
        lesson=backward_family.BACKWARD, difficulty=3, minutes=20,
        parameters=("dy", "x", "gamma", "eps=1e-5"),
        cases=cases.backward, drive=drive.layer_norm_backward, reference=_backward_reference,
        family=backward_family.faulty_backward, knobs=backward_family.KNOBS,
        groups={"dx": 4, "dgamma": 2, "dbeta": 1, "other ranks": 1, "default epsilon": 1,
                INPUT_KEPT: 1},
        outputs={name: Output() for name in ("dx", "dgamma", "dbeta")},
        equivalents=(_CONSTANT, *_SUMMED),
        hints=(
            "Recompute the normalized vector z first. dgamma and dbeta follow from y = z·γ + β: "
            "sum over every axis but the last.",
            "With dz = dy·γ, take away from dz its mean, and its part along z.",
            "dx = (dz − mean(dz) − z · mean(dz · z)) / sqrt(variance + eps), with means over the "
            "features.",
        ),
    ),
    Exercise(
        name="LayerNorm", **_COMMON,
        forbid=NORMS,
        lesson=knobs.TORCH, difficulty=2, minutes=15, kind="class",
        parameters=("width", "eps=1e-5"),
        cases=cases.module, drive=drive.norm_module, reference=_module_reference,
        family=module_family.faulty_module, knobs=_MODULE_KNOBS, array="torch tensor",
        equivalents=(COPIED, _TINY, *_UNLOADED, *_UNUSED),
        groups={"as built": 2, "state_dict": 2, "forward": 3, "gradient": 1, "training": 2},
        outputs={"y": Output(dtype=True), "hidden": Output(), "dx": Output(),
                 "state": Output("text")},
        hints=(
            "`super().__init__()` first; then two `nn.Parameter` of shape (width,), called weight "
            "and bias.",
            "`hidden.var(dim=-1, keepdim=True)` divides by D − 1; `correction=0` makes it D.",
            "`forward` is the NumPy function with torch's names: mean, var, `torch.sqrt`, then "
            "`* self.weight + self.bias`.",
        ),
    ),
)

get = {exercise.name: exercise for exercise in _EXERCISES}.__getitem__
