"""The exercises of chapter 1: feature-axis normalization."""

import numpy as np

from lnres_utils import norms
from lnres_utils.checking import INPUT_KEPT, Case, Equivalent, Exercise, Output, Property
from lnres_utils.drives import feature_axis as drive
from lnres_utils.specs import LESSONS, backward_family, module_family, norm_family, predictions
from lnres_utils.specs import norm_knobs as knobs

CHAPTER = "feature-axis"
VISIBLE_EPS = 0.1  # an epsilon that shows: the rows below have variances from far under it to over


def hidden_states(rng, shape, eps=None, axis=-1, size=1):
    """Rows with mean 2 and standard deviation 3; with ``eps`` also rows of variance around it.

    ``size`` scales it all: with 0.03 even the mean square of the whole array is below ``eps``.
    """
    x = rng.normal(2, 3, size=shape)
    if eps is None:
        return x
    rows = np.moveaxis(x, axis, -1)  # a view: writing to it writes to x
    scales = np.resize([1, 0.1, 0.3, 0.01], rows.shape[:-1])[..., None]
    means = rng.normal(1, 1, rows.shape[:-1])[..., None]
    rows[...] = ((rows - 2) * scales + means) * np.sqrt(eps / 0.1) * size
    return x


def affine(rng, width):
    """A gain away from one and a bias away from zero and from the gain."""
    return {"gamma": rng.uniform(0.4, 2, width), "beta": rng.uniform(-1.5, 1.5, width) + 0.2}


def plain(width):
    """A gain of one and a bias of zero: a slip in the affine part costs no other points."""
    return {"gamma": np.ones(width), "beta": np.zeros(width)}


def _standardize_cases(rng):
    def case(size, **eps):
        variance = eps.get("eps", 1e-5)
        return {"x": rng.normal(2, 1, size) * np.sqrt(variance), **eps}

    return [
        Case("small variance", case(6, eps=VISIBLE_EPS)),
        Case("small variance", {"x": rng.normal(0.05, 0.03, 5), "eps": VISIBLE_EPS}),
        Case("values", {"x": hidden_states(rng, 7), "eps": 1e-5}),
        Case("default epsilon", case(6)),
    ]


def _layer_norm_cases(rng):
    visible = {"eps": VISIBLE_EPS}
    single = {**affine(rng, 7), "x": hidden_states(rng, (2, 3, 7), VISIBLE_EPS)}
    single = {name: value.astype(np.float32) for name, value in single.items()}
    square = {**affine(rng, 4), "x": hidden_states(rng, (4, 4, 4), 1e-5, size=0.03)}
    square = {name: value.astype(np.float32) for name, value in square.items()}

    def other_rank(*shape):
        x = hidden_states(rng, shape, VISIBLE_EPS)
        return Case("other ranks", {"x": x, **affine(rng, shape[-1]), **visible})

    return [
        Case("small variance", {"x": hidden_states(rng, (3, 4, 6), VISIBLE_EPS), **plain(6),
                                **visible}),
        Case("small variance", {"x": hidden_states(rng, (2, 4, 5), VISIBLE_EPS, size=0.03),
                                **plain(5), **visible}),
        Case("values", {"x": hidden_states(rng, (2, 3, 5)), **plain(5), "eps": 1e-5}),
        Case("gain and bias", {"x": hidden_states(rng, (3, 2, 5)), **affine(rng, 5), "eps": 1e-5}),
        Case("default epsilon", {"x": hidden_states(rng, (2, 4, 5), 1e-5), **plain(5)}),
        other_rank(7),
        other_rank(4, 6),
        other_rank(2, 3, 4, 5),
        Case("float32", {**single, **visible}),
        Case("", {"x": hidden_states(rng, (5, 5, 5), VISIBLE_EPS), **affine(rng, 5), **visible},
             judged=False),
        Case("", {"x": hidden_states(rng, (4, 4, 4), VISIBLE_EPS, size=0.03), **affine(rng, 4),
                  **visible}, judged=False),
        Case("", square, judged=False),
    ]


def _axis_norm_cases(rng):
    def case(group, shape, kind, size=1, judged=True, **more):
        eps = more.get("eps", 1e-5)
        x = hidden_states(rng, shape, eps, size=size)
        apart = rng.normal(0, 0.05, shape[-1]) + rng.normal(0, 0.05, (shape[0], 1, 1))
        x += apart * np.sqrt(eps / 0.1) * size
        return Case(group, {"x": x, "kind": kind, **more}, judged=judged)

    visible = {"groups": 1, "eps": VISIBLE_EPS}
    return [
        case("layer", (2, 3, 6), "layer", **visible),
        case("batch", (3, 4, 5), "batch", **visible),
        case("instance", (3, 4, 6), "instance", **visible),
        case("group", (2, 3, 12), "group", groups=3, eps=VISIBLE_EPS),
        case("group", (3, 2, 10), "group", groups=2, eps=VISIBLE_EPS),
        case("group", (2, 5, 6), "group", **visible),
        case("layer", (3, 2, 5), "layer"),
        *(case("", (3, 4, 6), kind, size=0.03, judged=False, **visible)
          for kind in ("layer", "batch", "instance", "group")),
        *(case("", (2, 4, 5), kind, judged=False) for kind in ("batch", "instance")),
    ]


def _channel_norm_cases(rng):
    def case(group, shape, eps=None, size=1, gain=None, judged=True):
        variance = 1e-5 if eps is None else eps
        x = hidden_states(rng, shape, variance, axis=1, size=size)
        x += rng.normal(0, 0.05, (1, shape[1], 1, 1)) * np.sqrt(variance / 0.1) * size
        values = {"x": x, **(gain or affine(rng, shape[1]))}
        return Case(group, values if eps is None else {**values, "eps": eps}, judged=judged)

    return [
        case("values", (3, 6, 2, 4), VISIBLE_EPS, gain=plain(6)),
        case("gain and bias", (2, 5, 3, 4), VISIBLE_EPS),
        case("default epsilon", (2, 7, 3, 4), gain=plain(7)),
        case("", (2, 5, 3, 4), VISIBLE_EPS, size=0.03, gain=plain(5), judged=False),
        case("", (5, 5, 5, 5), VISIBLE_EPS, judged=False),
        case("", (4, 4, 4, 4), VISIBLE_EPS, size=0.03, judged=False),
        case("", (4, 4, 4, 4), judged=False),
    ]


def _backward_cases(rng):
    def inputs(shape, eps):
        return {"dy": rng.normal(size=shape), "x": hidden_states(rng, shape, eps),
                "gamma": affine(rng, shape[-1])["gamma"], "eps": eps}

    default = inputs((2, 3, 5), 1e-5)
    del default["eps"]
    first, second = inputs((3, 4, 6), VISIBLE_EPS), inputs((2, 3, 4, 5), VISIBLE_EPS)
    groups = (("dx", "dx"), ("dgamma", "dgamma"), ("dbeta", "dbeta"))
    return [
        *(Case(group, first, only=(name,)) for group, name in groups),
        *(Case("other ranks", each) for each in (second, inputs((4, 7), VISIBLE_EPS))),
        Case("default epsilon", default),
        Case("", inputs((5, 5, 5), VISIBLE_EPS), judged=False),
    ]


def _module_cases(rng):
    def inputs(task, shape, eps, size=1, **values):
        gain = affine(rng, shape[-1])
        return {"task": task, "x": hidden_states(rng, shape, eps, size=size),
                "weight": gain["gamma"], "bias": gain["beta"], "dy": rng.normal(size=shape),
                "rate": 0.2, "eps": eps, **values}

    def default(task):
        case = inputs(task, (3, 2, 5), 1e-5)
        del case["eps"]
        return case

    return [
        Case("state_dict", inputs("state", (2, 3, 6), VISIBLE_EPS)),
        Case("forward", inputs("forward", (2, 3, 5), VISIBLE_EPS)),
        Case("forward", inputs("forward", (3, 4, 2, 6), VISIBLE_EPS)),
        Case("as built", inputs("fresh", (3, 4, 2, 6), VISIBLE_EPS)),
        Case("as built", default("fresh")),
        Case("gradient", inputs("backward", (2, 4, 5), VISIBLE_EPS)),
        Case("training", inputs("train", (4, 2, 6), VISIBLE_EPS)),
        Case("", inputs("fresh", (2, 4, 5), VISIBLE_EPS, size=0.03), judged=False),
        Case("", default("forward"), judged=False),
    ]


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
    if task == "forward":
        return {"y": norms.layer_norm(x, weight, bias, eps)}
    dx, dgamma, dbeta = norms.layer_norm_backward(inputs["dy"], x, weight, eps)
    if task == "backward":
        return {"dx": dx}
    rate = inputs["rate"]
    return {"y": norms.layer_norm(x, weight - rate * dgamma, bias - rate * dbeta, eps)}


def _changed_after(index):
    """Two inputs of layer_norm that differ at ``index`` only."""

    def pair(rng):
        first = {"x": hidden_states(rng, (3, 4, 6)), **affine(rng, 6), "eps": 1e-5}
        second = {**first, "x": first["x"].copy()}
        second["x"][index] += rng.normal(size=second["x"][index].shape)
        return first, second

    return pair


def _moved(scale, shift):
    def pair(rng):
        first = {"x": hidden_states(rng, (3, 4, 6)), **affine(rng, 6), "eps": 1e-9}
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
    Property("Doubling all features changes the output; it should not (ε is tiny here).",
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



def _equivalent(reason, *hypotheses):
    return Equivalent(tuple(map(frozenset, hypotheses)), reason)


_COPIED = _equivalent("it is the two slips under one name, because they are copied together",
                      {"sample-std-plus-eps"}, {"unbiased-variance", "eps-outside-root"})

_THREE_AXES = tuple(
    _equivalent("code that accepts three axes only shows just these, and on them both are the same",
                {first, "three-axes-only"}, {second, "three-axes-only"})
    for first, second in (("over-tokens", "over-axis-1"),
                          ("over-tokens-and-features", "over-all-but-batch"),
                          ("over-batch-and-tokens", "over-all-but-features"))
)

_CONSTANT = _equivalent("treating both statistics as constants leaves out both of their terms",
                        {"statistics-constant"}, {"mean-term-missing", "variance-term-missing"})

_UNLOADED = tuple(
    _equivalent("weights that do not load leave only the module as built, and there both give a "
                "constant one", {id, "gain-zero-bias-one"}, {id, "gain-bias-swapped"})
    for id in module_family.DO_NOT_LOAD
)

_UNUSED = (
    _equivalent("a gain that is not applied does not train either",
                {"gain-missing", "nothing-trains"}, {"gain-missing", "bias-not-trained"}),
    _equivalent("a bias that is not added does not train either",
                {"bias-missing", "nothing-trains"}, {"bias-missing", "gain-not-trained"}),
)

_EXERCISES = (
    Exercise(
        name="standardize", title="Standardize one vector", **_COMMON,
        lesson=knobs.ONE_VECTOR, difficulty=1, minutes=8, parameters=("x", "eps=1e-5"),
        cases=_standardize_cases, drive=drive.standardize,
        reference=lambda inputs: {"y": norms.standardize(inputs["x"], inputs.get("eps", 1e-5))},
        family=norm_family.faulty_standardize, knobs=_NORM_KNOBS,
        equivalents=(_COPIED,),
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
        name="layer_norm", title="Layer normalization of hidden states", **_COMMON,
        lesson=knobs.WHICH_AXIS, difficulty=2, minutes=12,
        parameters=("x", "gamma", "beta", "eps=1e-5"),
        cases=_layer_norm_cases, drive=drive.layer_norm, reference=_layer_norm_reference,
        family=norm_family.faulty_layer_norm,
        knobs=(_NORM_KNOBS + knobs.AXES + knobs.AFFINE + knobs.KEEPDIMS + knobs.RANK
               + knobs.DTYPE),
        equivalents=(_COPIED, *_THREE_AXES),
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
        name="axis_norm", title="One function for four norms", **_COMMON,
        lesson=knobs.WHICH_AXIS, difficulty=2, minutes=15,
        parameters=("x", "kind", "groups=1", "eps=1e-5"),
        cases=_axis_norm_cases, drive=drive.axis_norm,
        reference=lambda inputs: {"y": norms.axis_norm(
            inputs["x"], inputs["kind"], inputs.get("groups", 1), inputs.get("eps", 1e-5))},
        family=norm_family.faulty_axis_norm, knobs=knobs.FOUR_NORMS + _NORM_KNOBS,
        equivalents=(_COPIED,),
        groups={"layer": 1, "batch": 2, "instance": 2, "group": 3, INPUT_KEPT: 1},
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
        name="channel_norm", title="Mend a norm for images", **_COMMON,
        lesson=knobs.WHICH_AXIS, difficulty=2, minutes=10,
        parameters=("x", "gamma", "beta", "eps=1e-5"),
        cases=_channel_norm_cases, drive=drive.layer_norm,
        reference=lambda inputs: {"y": norms.channel_norm(
            inputs["x"], inputs["gamma"], inputs["beta"], inputs.get("eps", 1e-5))},
        family=norm_family.faulty_channel_norm, knobs=_CHANNEL_KNOBS,
        equivalents=(_COPIED,),
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
        name="predict_layer_norm", title="Predict six numbers", **_COMMON,
        lesson="feature-axis/geometry", difficulty=1, minutes=10, parameters=(),
        cases=predictions.cases, drive=drive.predictions, reference=predictions.reference,
        family=predictions.family, knobs=predictions.KNOBS,
        groups={name: 1 for name in predictions.QUESTIONS},
        outputs={name: Output(tolerance=5e-3) for name in predictions.QUESTIONS},
        hints=predictions.HINTS, array="number", separate=True,
    ),
    Exercise(
        name="layer_norm_backward", title="The backward pass by hand", **_COMMON,
        lesson=backward_family.BACKWARD, difficulty=3, minutes=20,
        parameters=("dy", "x", "gamma", "eps=1e-5"),
        cases=_backward_cases, drive=drive.layer_norm_backward, reference=_backward_reference,
        family=backward_family.faulty_backward, knobs=backward_family.KNOBS,
        groups={"dx": 4, "dgamma": 2, "dbeta": 1, "other ranks": 1, "default epsilon": 1,
                INPUT_KEPT: 1},
        outputs={name: Output() for name in ("dx", "dgamma", "dbeta")},
        equivalents=(_CONSTANT,),
        hints=(
            "Recompute the normalized vector z first. dgamma and dbeta follow from y = z·γ + β: "
            "sum over every axis but the last.",
            "With dz = dy·γ, take away from dz its mean, and its part along z.",
            "dx = (dz − mean(dz) − z · mean(dz · z)) / sqrt(variance + eps), with means over the "
            "features.",
        ),
    ),
    Exercise(
        name="LayerNorm", title="A torch module that loads real weights", **_COMMON,
        lesson=knobs.TORCH, difficulty=2, minutes=15, kind="class",
        parameters=("width", "eps=1e-5"),
        cases=_module_cases, drive=drive.norm_module, reference=_module_reference,
        family=module_family.faulty_module, knobs=_MODULE_KNOBS, array="torch tensor",
        equivalents=(_COPIED, *_UNLOADED, *_UNUSED),
        groups={"as built": 2, "state_dict": 2, "forward": 3, "gradient": 1, "training": 2},
        outputs={"y": Output(), "dx": Output(), "state": Output("text")},
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
