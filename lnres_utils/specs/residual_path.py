"""The exercises of chapter 2: the residual path."""

from functools import partial

import numpy as np

from lnres_utils.checking import INPUT_KEPT, Exercise, Output, equivalent
from lnres_utils.drives import initialization
from lnres_utils.drives import residual_path as drive
from lnres_utils.specs import LESSONS
from lnres_utils.specs import residual_family as family
from lnres_utils.specs import residual_knobs as knobs
from lnres_utils.specs import residual_path_cases as cases
from lnres_utils.specs import residual_summaries as summaries

CHAPTER = "residual-path"
SHARE = 0.05  # of 4,000 draws: 6 standard deviations between two answers, 4.5 if they mirror draws


def _update_reference(inputs):
    refused = {"misfit": "ValueError"} if "misfit" in inputs else {}
    return {"y": inputs["x"] + inputs["update"], **refused}


def _gradient_reference(inputs):
    row = inputs["cotangent"]
    for weight in inputs["weights"][::-1]:
        row = row + row @ weight
    return {"dx": row}


def _by_dropping(inputs, build):
    """What is told of a block of the book; how often each number comes is known exactly."""
    right = summaries.dropping_block(drive.dropping_block(build, inputs), inputs)
    if inputs["task"] == "levels" and inputs["mode"] == "train":
        p = inputs.get("p", 0.1)
        right["shares"] = np.where(np.isnan(right["shares"]), np.nan, [p, 1 - p])
    return right


def _residual_reference(inputs):
    from lnres_utils.blocks import Block, no_norm

    width = inputs["x"].shape[-1] if "x" in inputs else drive.SHAPES[inputs["axes"]][-1]
    return _by_dropping(inputs, lambda sublayer, p=0.1: Block(
        width, [sublayer], "pre", no_norm, dropout=p))


def _depth_reference(inputs):
    from lnres_utils.blocks import Block, StochasticDepth, no_norm

    width = inputs["x"].shape[-1] if "x" in inputs else drive.SHAPES[inputs["axes"]][-1]
    return _by_dropping(inputs, lambda sublayer, p: Block(
        width, [sublayer], "pre", no_norm, update=lambda width: StochasticDepth(p)))


def _scaled_reference(inputs):
    from lnres_utils.blocks import Block, LayerScale, no_norm

    def build(width, sublayer, start=1e-4):
        return Block(width, [sublayer], "pre", no_norm,
                     update=lambda width: LayerScale(width, start))

    return drive.scaled_residual(build, inputs)


def _projected_reference(inputs):
    """From formulas: a projection starts at random, and nothing here depends on how."""
    if "misfit" in inputs:
        return {"misfit": "ValueError"}
    x, weight, bias = inputs["x"], inputs["weight"], inputs["bias"]
    width_out, width_in = weight.shape
    update = np.tanh(x @ weight.T + bias)
    equal = width_in == width_out
    right = {"second call": "the same", "parameters": np.asarray(0 if equal else weight.size),
             "at zero": "0", "shortcut": "the identity" if equal else "a linear map",
             "update": update}
    if inputs["task"] == "forward":
        return right
    dy, rate = inputs["dy"], inputs["rate"]
    slope = (dy * (1 - update**2)).reshape(-1, width_out)
    rows = x.reshape(-1, width_in)
    weight, bias = weight - rate * slope.T @ rows, bias - rate * slope.sum(0)
    change = -rate * rows.T @ dy.reshape(-1, width_out)
    return {**right, "change of the shortcut": 0 * change if equal else change,
            "update after": np.tanh(x @ weight.T + bias)}


def _init_reference(inputs):
    """From the text: what holds for any draw."""
    depth = inputs["depth"]
    return {"std of output maps": np.full(2 * depth, (2 * depth) ** -0.5),
            "std of other maps": np.ones(5 * depth + 1), "means": np.zeros(7 * depth + 1),
            "fourth moment": np.asarray(3.0), "draws": "all different", "biases": "0",
            "norms": "as they were"}


_CHECKS_NOTHING = equivalent(
    "what comes out is x itself, so to compare its shape with that of x checks nothing",
    {"update-ignored", "broadcasts"}, {"update-ignored", "only-result-compared"})

_FORWARD = equivalent("forward from the first layer is both slips at once",
                      {"pushed-forward"}, {"order-reversed", "transposes-forgotten"})

_ABSORBED = tuple(
    equivalent("a projection that starts at random and trains takes up the sign of the skip",
               {id}, {id, "skip-subtracted"})
    for id in ("projection-when-equal", "no-shortcut-when-equal"))

_NO_WEIGHT = equivalent(
    "without a skip all that shows of the projection is that it has no weight to train",
    *({"skip-missing", id} for id in ("cut-or-padded", "projection-not-trained",
                                      "projection-anew")))

_GAINS = (
    equivalent("1 + 0 is 1", {"starts-at-one"}, {"starts-at-zero", "one-plus-gain"}),
    equivalent("a gain that starts at zero learns its sign, too",
               {"starts-at-zero"}, {"starts-at-zero", "update-subtracted"}),
    equivalent("a gain that stays at one does nothing",
               {"gain-missing"}, {"starts-at-one", "gain-not-trained"}),
    *(equivalent("a gain on a skip that is not there does nothing",
                 {id, "gain-on-skip"}, {id, "gain-missing"})
      for id in ("skip-missing", "branch-added-to-itself")),
)


def _drawing(skip, nothing, always, swapped):
    """What is the same of blocks that drop, by the ids of four mistakes."""
    return (
        *(equivalent("backward fails, so nothing is seen of what would train",
                     {id}, {id, "sublayer-not-registered"})
          for id in ("sum-in-place", "sum-into-update")),
        *(equivalent("what happens to a skip that is not there is not seen",
                     {id, skip}, {id, nothing})
          for id in ("skip-missing", "branch-added-to-itself")),
        *(equivalent("where it drops there is no division, and nowhere else anything to scale",
                     {id, "not-rescaled"}, {id, "rescaled-in-evaluation"})
          for id in (always, swapped)),
    )


_COMMON = {"chapter": CHAPTER, "titles": LESSONS}
_FACTS = {"levels": Output("text"), "mask": Output("text"), "shares": Output(tolerance=SHARE),
          "other ratios": Output("text"), "second call": Output("text")}
_faulty_depth = partial(family.faulty_block, mask="example")
_STEP = {"dx": Output(), "y after a step": Output()}

_EXERCISES = (
    Exercise(
        name="residual_update", **_COMMON,
        lesson=knobs.ADDITIVE, difficulty=1, minutes=8, parameters=("x", "update"),
        cases=cases.residual_update, drive=drive.residual_update, reference=_update_reference,
        family=family.faulty_update, knobs=knobs.UPDATE, equivalents=(_CHECKS_NOTHING,),
        groups={"sum": 1, "other ranks": 1, "broadcasting refused": 2, "other misfits refused": 1,
                INPUT_KEPT: 1},
        outputs={"y": Output(dtype=True), "misfit": Output("text")},
        hints=(
            "Compare the shapes before you add: NumPy adds whatever broadcasts.",
            "`x.shape` and `update.shape` are tuples; they have to be equal as a whole.",
            "`if x.shape != update.shape: raise ValueError(...)`, then `return x + update`; "
            "`x += update` would write into the caller's array.",
        ),
    ),
    Exercise(
        name="linear_stack_gradient", **_COMMON,
        lesson=knobs.GRADIENTS, difficulty=2, minutes=12, parameters=("weights", "cotangent"),
        cases=cases.linear_stack_gradient, drive=drive.linear_stack_gradient,
        reference=_gradient_reference, family=family.faulty_stack_gradient, knobs=knobs.STACK,
        equivalents=(_FORWARD,),
        groups={"one layer": 2, "several layers": 3, "many layers": 1, "more cotangents": 2,
                INPUT_KEPT: 1},
        outputs={"dx": Output()},
        hints=(
            "One layer first: x₁ = (I + W) x₀, so the gradient of c·x₁ is (I + W)ᵀ c.",
            "Go through the layers from the last to the first, and add Wᵀ g to g at each.",
            "With g as rows of shape (…, D), Wᵀ g is `g @ W`: "
            "`for W in weights[::-1]: g = g + g @ W`.",
        ),
    ),
    Exercise(
        name="ResidualBlock", **_COMMON,
        lesson=knobs.DROPOUT, difficulty=2, minutes=12, kind="class", array="torch tensor",
        parameters=("sublayer", "p=0.1"), cases=cases.residual_block, drive=drive.dropping_block,
        summary=summaries.dropping_block, reference=_residual_reference,
        family=family.faulty_block, knobs=knobs.BLOCK,
        equivalents=_drawing("dropout-on-skip", "dropout-missing", "dropout-always",
                             "dropout-in-evaluation"),
        groups={"addition": 2, "dropout": 2, "evaluation": 1, "all dropped": 1, "default p": 1,
                "x kept": 1, "gradient and training": 2},
        outputs={**_FACTS, "y": Output(), "x after the call": Output(), **_STEP},
        hints=(
            "Store the sub-layer and an `nn.Dropout(p)` as attributes in `__init__`, after "
            "`super().__init__()`.",
            "Three steps in `forward`: the update f(x), dropout on it, the sum with x. Nothing "
            "happens to the sum.",
            "`return x + self.dropout(self.sublayer(x))`.",
        ),
    ),
    Exercise(
        name="ProjectedResidual", **_COMMON,
        lesson=knobs.ADDITIVE, difficulty=2, minutes=15, kind="class", array="torch tensor",
        parameters=("width_in", "width_out", "sublayer"), cases=cases.projected_residual,
        drive=drive.projected_residual, summary=summaries.projected_residual,
        reference=_projected_reference,
        family=family.faulty_projected, knobs=knobs.PROJECTED,
        equivalents=(*_ABSORBED, _NO_WEIGHT),
        groups={"equal widths": 2, "projection": 2, "training": 2, "misfits refused": 2,
                INPUT_KEPT: 1},
        outputs={"second call": Output("text"), "parameters": Output("exact"),
                 "at zero": Output("text"), "shortcut": Output("text"), "update": Output(),
                 "change of the shortcut": Output(), "update after": Output(),
                 "misfit": Output("text")},
        hints=(
            "Decide in `__init__` what the shortcut is: `nn.Identity()` or "
            "`nn.Linear(..., bias=False)`.",
            "In `forward`, compute shortcut and update, compare their shapes, and add them.",
            "`if skip.shape != update.shape: raise ValueError(...)`: torch itself only refuses "
            "what does not broadcast, and with a RuntimeError.",
        ),
    ),
    Exercise(
        name="ScaledResidual", **_COMMON,
        lesson=knobs.DROPOUT, difficulty=2, minutes=10, kind="class", array="torch tensor",
        parameters=("width", "sublayer", "start=1e-4"), cases=cases.scaled_residual,
        drive=drive.scaled_residual, reference=_scaled_reference, family=family.faulty_scaled,
        knobs=knobs.SCALED, equivalents=_GAINS,
        groups={"as built": 2, "default start": 1, "other ranks": 1, "training": 3, INPUT_KEPT: 1},
        outputs={"y": Output(), **_STEP},
        hints=(
            "The gain is an `nn.Parameter` of shape (width,), filled with `start`.",
            "It multiplies the update feature by feature: the last axis, so it broadcasts as it "
            "is.",
            "`return x + self.gain * self.sublayer(x)`.",
        ),
    ),
    Exercise(
        name="StochasticDepth", **_COMMON,
        lesson=knobs.DROPOUT, difficulty=3, minutes=15, kind="class", array="torch tensor",
        parameters=("sublayer", "p"), cases=cases.stochastic_depth, drive=drive.dropping_block,
        summary=summaries.dropping_block, reference=_depth_reference,
        family=_faulty_depth, knobs=knobs.DEPTH,
        equivalents=_drawing("skip-dropped", "nothing-dropped", "dropped-in-evaluation",
                             "modes-swapped"),
        groups={"evaluation": 2, "p = 0": 1, "training": 3, "other ranks": 1, "x kept": 1,
                "gradient and training": 2},
        outputs={**_FACTS, "y": Output(), "x after the call": Output(), **_STEP},
        hints=(
            "`self.training` says in which mode the module is. In evaluation nothing is drawn.",
            "Draw one number for each example, with a shape that broadcasts over all its tokens "
            "and features: (B, 1, …, 1), with as many axes as x.",
            "`kept = torch.rand(shape) >= self.p`; the update is multiplied by `kept` and divided "
            "by 1 − p.",
        ),
    ),
    Exercise(
        name="depth_scaled_init", **_COMMON,
        lesson=knobs.STREAM, difficulty=2, minutes=12, array="torch tensor",
        parameters=("model", "depth", "std=0.02"), cases=cases.depth_scaled_init,
        drive=initialization.depth_scaled_init, summary=summaries.depth_scaled_init,
        reference=_init_reference, family=family.faulty_init, knobs=knobs.INIT,
        groups={"output maps": 3, "other maps": 2, "normal draws": 1, "biases": 1, "norms": 1,
                "default std": 1},
        outputs={"std of output maps": Output(tolerance=0.05),
                 "std of other maps": Output(tolerance=0.05), "means": Output(tolerance=0.12),
                 "fourth moment": Output(tolerance=0.1), "draws": Output("text"),
                 "biases": Output("text"), "norms": Output("text")},
        hints=(
            "`for name, module in model.named_modules()` goes through everything, with full names "
            "such as `blocks.0.attention.output`.",
            "`isinstance(module, nn.Linear)` finds the maps; `name.split(\".\")[-1] == \"output\"` "
            "those that write to the stream.",
            "`nn.init.normal_(module.weight, std=...)` draws in place; "
            "`nn.init.zeros_(module.bias)` where there is a bias.",
        ),
    ),
)

get = {exercise.name: exercise for exercise in _EXERCISES}.__getitem__
