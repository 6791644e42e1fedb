"""The exercises of chapter 3: pre-norm and post-norm."""

from functools import partial

import numpy as np

from lnres_utils import schedules
from lnres_utils.checking import INPUT_KEPT, Exercise, Output, Property
from lnres_utils.drives import pre_and_post_norm as drive
from lnres_utils.specs import LESSONS, norm_order, stack_family, warmup_family
from lnres_utils.specs import pre_and_post_norm_cases as cases
from lnres_utils.specs import wiring_equivalents as equivalents
from lnres_utils.specs import wiring_knobs as knobs
from lnres_utils.specs.wiring_family import faulty_block

CHAPTER = "pre-and-post-norm"
_COMMON = {"chapter": CHAPTER, "titles": LESSONS}
_BLOCK = ("width", "attention", "feed_forward")


def right_block(placement):
    """The book's own block, called as the exercises ask."""

    def build(width, attention, feed_forward, alpha=1.0):
        from lnres_utils.blocks import Block

        return Block(width, [attention, feed_forward], placement, skip_scale=alpha)

    return build


def right_stack(width, make_block, depth):
    """The book's own stack, with the probe of the book as its method."""
    from torch import nn

    from lnres_utils import blocks

    class PreNormStack(blocks.Stack):
        def states(self, hidden):
            from lnres_utils.experiments import stream

            return stream(self, hidden)

    return PreNormStack([make_block() for _ in range(depth)], nn.LayerNorm(width))


def _leak(rng):
    """Two inputs of a block that differ at the last token only."""
    first = cases.block(rng)[1].inputs
    second = {**first, "x": first["x"].copy()}
    second["x"][:, -1] += rng.normal(size=second["x"][:, -1].shape)
    return first, second


def _mixed(rng):
    """Two inputs of a block that differ in the second example only."""
    first = cases.block(rng)[1].inputs
    second = {**first, "x": first["x"].copy()}
    second["x"][1] += rng.normal(size=second["x"][1].shape)
    return first, second


_LAWS = (
    Property("An example's output changes when only another example changes.",
             _mixed, lambda a, b: np.allclose(a["y"][0], b["y"][0], rtol=1e-6, atol=1e-6)),
    Property("A token's output changes when only a later token changes, though this attention is "
             "causal.",
             _leak, lambda a, b: np.allclose(a["y"][:, :-1], b["y"][:, :-1], rtol=1e-6,
                                             atol=1e-6)),
)

_TORCH = {"kind": "class", "array": "torch tensor"}
# Epsilon is left to each norm: no case makes it count, so none of 1e-12 or 1e-6 is wrong here.
_LOOSE = Output(tolerance=1e-4)
_BLOCK_OUTPUTS = {"y": _LOOSE, "dx": _LOOSE, "modes": Output("text"), "parts": Output("text")}


def _block(name, placement, place, **fields):
    """An exercise that asks for a block."""
    answer = right_block(placement)
    settings = {
        "parameters": _BLOCK, "lesson": knobs.ORDERS, "cases": cases.block, "drive": drive.block,
        "groups": {"whole block": 2, "attention": 2, "feed-forward": 2, "gradient": 1,
                   "both modes": 1, INPUT_KEPT: 1},
        **fields,
    }
    return Exercise(
        name=name, **_COMMON, **_TORCH, outputs=_BLOCK_OUTPUTS, properties=_LAWS,
        reference=lambda inputs: drive.block(answer, inputs),
        family=partial(faulty_block, first=place, second=place), **settings)


_EXERCISES = (
    _block(
        "PostNormBlock", "post", "post", difficulty=1, minutes=10,
        knobs=knobs.POST, equivalents=equivalents.POST,
        hints=(
            "Each sublayer takes three steps: run it, add its input, normalize the sum. What the "
            "second one reads and adds to is the result of the first.",
            "In `__init__`: `super().__init__()`, both sublayers, and two norms, "
            "`nn.LayerNorm(width)`, one for each sum.",
            "`h = self.norm1(x + self.attention(x))`, then the same with `h`, `self.norm2` and "
            "`self.feed_forward`.",
        ),
    ),
    _block(
        "PreNormBlock", "pre", "pre", difficulty=1, minutes=10,
        knobs=knobs.PRE, equivalents=equivalents.PRE,
        hints=(
            "The sublayer reads a normalized copy; what it gives is added to the hidden states "
            "themselves, which no norm ever touches.",
            "Do not overwrite x before the sum: after `x = self.norm1(x)` nothing is left of it to "
            "add to.",
            "`h = x + self.attention(self.norm1(x))`, then the same with `h`, `self.norm2` and "
            "`self.feed_forward`.",
        ),
    ),
    _block(
        "SandwichBlock", "sandwich", "sandwich", difficulty=2, minutes=10,
        lesson=knobs.ORDERS, knobs=knobs.SANDWICH, equivalents=equivalents.SANDWICH,
        hints=(
            "Trace one sublayer of the broken block: which tensor does its second norm get, what "
            "the sublayer gave or the sum?",
            "In a sandwich the skip carries the hidden states past both norms: x + something, and "
            "nothing behind the sum.",
            "`x + self.norm_out(self.attention(self.norm_in(x)))`, with two more norms for the "
            "feed-forward network.",
        ),
    ),
    _block(
        "DeepNormBlock", "deepnorm", "post", difficulty=2, minutes=10,
        parameters=(*_BLOCK, "alpha"), lesson=knobs.OTHER, cases=cases.deepnorm,
        knobs=knobs.DEEPNORM, equivalents=equivalents.DEEPNORM,
        hints=(
            "Start from post-norm. One number is new, and it stands in both sums.",
            "Alpha makes the skip larger before the sum is normalized; the sublayer's output is "
            "added as it is.",
            "`self.norm1(self.alpha * x + self.attention(x))`, and the same for the feed-forward "
            "part.",
        ),
    ),
    Exercise(
        name="PreNormStack", **_COMMON, **_TORCH,
        lesson=knobs.ORDERS, difficulty=2, minutes=15,
        parameters=("width", "make_block", "depth"), cases=cases.stack, drive=drive.stack,
        reference=lambda inputs: drive.stack(right_stack, inputs),
        family=stack_family.faulty_stack, knobs=stack_family.KNOBS,
        equivalents=stack_family.EQUIVALENTS,
        groups={"output": 2, "states": 2, "gradient": 1, "training": 2, INPUT_KEPT: 1},
        outputs={"y": _LOOSE, "states": _LOOSE, "dx": _LOOSE},
        hints=(
            "`make_block()` gives a new block each time: call it `depth` times in `__init__`, and "
            "keep the blocks where torch finds their parameters.",
            "`states` collects: a list that begins with x, to which each block's output is "
            "appended. No norm takes part.",
            "`nn.ModuleList(make_block() for _ in range(depth))`; `forward` returns "
            "`self.norm(self.states(x)[-1])`.",
        ),
    ),
    Exercise(
        name="warmup_rate", **_COMMON,
        lesson=warmup_family.WARMUP, difficulty=1, minutes=8,
        parameters=("step", "peak", "warmup"), cases=cases.warmup, drive=drive.warmup_rate,
        reference=lambda inputs: {"rate": np.asarray(schedules.warm_up(
            inputs["step"], inputs["peak"], inputs["warmup"]))},
        family=warmup_family.faulty_warmup, knobs=warmup_family.KNOBS,
        equivalents=warmup_family.EQUIVALENTS, array="number or NumPy array",
        groups={"warm-up": 2, "after": 1, "no warm-up": 1, "arrays": 2, INPUT_KEPT: 1},
        outputs={"rate": Output()},
        hints=(
            "Which part of the peak is reached after `step` of `warmup` steps? It is never more "
            "than the whole.",
            "`np.minimum(a, b)` takes numbers and arrays alike; `min` and `if` take numbers only.",
            "Without warm-up, every step gets the peak: ask for `warmup == 0` before you divide.",
        ),
    ),
    norm_order.EXERCISE,
)

get = {exercise.name: exercise for exercise in _EXERCISES}.__getitem__
