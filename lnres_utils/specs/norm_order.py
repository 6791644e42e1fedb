"""The detector of chapter 3: blocks without a label, and the ways to take one for another."""

from functools import lru_cache

import numpy as np

from lnres_utils.auditing import LABELS, order_of_function
from lnres_utils.checking import Case, Equivalent, Exercise, Knob, Output
from lnres_utils.drives import pre_and_post_norm as drive
from lnres_utils.drives.boxes import Box
from lnres_utils.specs import LESSONS
from lnres_utils.specs.sealed import Sealed, label_of

LESSON = "pre-and-post-norm/two-orders"

FORMULAS = {
    "pre": "x + f(norm(x))",
    "post": "norm(x + f(x))",
    "sandwich": "x + norm(f(norm(x)))",
    "res-post": "x + norm(f(x))",
    "parallel": "x + f(norm(x)) + g(norm(x))",
    "skip-from-norm": "norm(x) + f(norm(x))",
}
_PROBES = {
    "pre": "A huge input comes through it, the size of the other tokens is hidden from it, its "
    "update changes with the size of the token itself, and no norm is behind its sub-layers",
    "post": "Its output stays bounded, and it changes with the size of the other tokens",
    "sandwich": "It does all that pre-norm does, but behind each sub-layer is a norm: the numbers "
    "of an update add up to zero here",
    "res-post": "A huge input comes through it, and the size of the other tokens is seen by it",
    "parallel": "Its update does not depend at all on the size of the input",
    "skip-from-norm": "Its output stays bounded, and the size of the tokens is hidden from it",
}
_CASES = {("pre", "post"): "PP-01", ("post", "pre"): "PP-01", ("skip-from-norm", "pre"): "PP-02",
          ("skip-from-norm", "post"): "PP-02", ("res-post", "post"): "PP-03",
          ("res-post", "sandwich"): "PP-03", ("sandwich", "pre"): "PP-04",
          ("parallel", "pre"): "RES-08"}


def boxed(module, label, width, calls=60):
    """A box around a torch module."""
    def ask(x, dy=None):
        import torch

        hidden = torch.from_numpy(x).requires_grad_(dy is not None)
        with torch.set_grad_enabled(dy is not None):
            y = module(hidden)
        if dy is None:
            return y.numpy().copy()
        return torch.autograd.grad(y, hidden, torch.from_numpy(dy))[0].numpy().copy()

    return Box(Sealed(ask, label), width, calls)


def cases(rng):
    """Three boxes of each label, in random order."""
    boxes = [box for label in LABELS for box in _boxes(rng, label)]
    return [Case(label_of(box), {"block": box, "labels": " ".join(LABELS)})
            for box in rng.permutation(np.array(boxes, object))]


def _boxes(rng, label):
    from torch import nn

    from lnres_utils import blocks

    def built(width, heads, placement=label, kind=blocks.Block, more=(), **wiring):
        sublayers = [blocks.Attention(width, heads, causal=False), blocks.FeedForward(width, 20),
                     *more]
        return width, kind(width, sublayers, placement, **wiring)

    def torch_layer(width, heads):
        return width, nn.TransformerEncoderLayer(width, heads, 24, batch_first=True, dropout=0.0,
                                                 norm_first=label == "pre")

    if label == "skip-from-norm":
        modules = [built(width, heads, "pre", _skip_from_norm())
                   for width, heads in ((6, 2), (9, 3), (10, 5))]
    elif label == "post":
        modules = [built(6, 3), built(10, 2, "deepnorm", skip_scale=1.7), torch_layer(9, 3)]
    elif label == "pre":
        modules = [built(9, 3), built(6, 2, branch_scale=0.3), torch_layer(10, 5)]
    elif label == "parallel":
        modules = [built(6, 2), built(10, 5), built(9, 3, more=[blocks.FeedForward(9)])]
    else:
        modules = [built(width, heads) for width, heads in ((6, 3), (10, 2), (9, 3))]
    return [boxed(_trained(module, rng), label, width) for width, module in modules]


def _skip_from_norm():
    """A block whose skips carry the normalized states: ``x = norm(x); x = x + f(x)``."""
    from lnres_utils.blocks import Block

    class SkipFromNorm(Block):
        def _step(self, i, hidden, memory):
            hidden = self.norms[i](hidden)
            return hidden + self._update(i, hidden, memory)

    return SkipFromNorm


def _trained(module, rng):
    """Random weights, and gains and biases as after training, but for norms at a branch's end."""
    import torch

    module = module.double().eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "output_norms" in name:
                continue
            shape = parameter.shape
            if parameter.ndim == 2:
                values = rng.normal(0, shape[1] ** -0.5, shape)
            elif "norm" in name and name.endswith("weight"):
                values = rng.uniform(0.4, 1.7, shape) * rng.choice([-1, 1], shape)
            else:
                values = rng.normal(0, 0.4, shape)
            parameter.copy_(torch.from_numpy(values))
    return module


def family(**taken_for):
    """A detector that is right but for the labels it takes for others: ``{"pre": "post"}``."""

    def norm_order(block):
        label = _order(block._ask, block.width)
        return taken_for.get(label, label)

    return norm_order


@lru_cache
def _order(ask, width):
    """Found by probing, once a box: hundreds of detectors differ only in what they make of it."""
    return order_of_function(ask, (2, 6, width))


def _confusions():
    for right in LABELS:
        for wrong in LABELS:
            if right != wrong:
                yield Knob(
                    f"{right}-called-{wrong}", {right: wrong},
                    f"It calls {wrong} what is {right}, {FORMULAS[right]}. {_PROBES[right]}.",
                    LESSON, _CASES.get((right, wrong), ""))


def _constant(label):
    return Knob(f"always-{label}", {each: label for each in LABELS if each != label},
                f"It calls every block {label}: no probe decides.", LESSON)


SKIPPED = ("pre", "sandwich", "res-post", "parallel")

KNOBS = (
    *_confusions(),
    *map(_constant, LABELS),
    Knob("pre-and-post-swapped", {"pre": "post", "post": "pre"},
         "Pre-norm and post-norm are taken for each other: post-norm is norm(x + f(x)), and its "
         "output stays bounded however large x is.", LESSON, "PP-01"),
    Knob("only-pre-and-post",
         {**{each: "pre" for each in SKIPPED if each != "pre"}, "skip-from-norm": "post"},
         "It knows two orders only: what lets a huge input through is called pre, all else post.",
         LESSON, "PP-01"),
)
HINTS = (
    "Two questions split the six orders. Does a huge input come through, so that `block(1e4 * x)` "
    "is nearly `1e4 * x`? And does the last token's output change when only the other tokens are "
    "made five times as large, or does a norm hide it?",
    "Through and seen: res-post. Bounded and seen: post. Bounded and hidden: skip-from-norm. Three "
    "are left: pre, sandwich, parallel. Compare the updates `block(c * x) - c * x` of two sizes c.",
    "Parallel: the update is the same for all c. Sandwich: the last norm of each branch has gain 1 "
    "and bias 0, so each update adds up to zero over the features; pre-norm's does not.",
)

EXERCISE = Exercise(
    name="norm_order", chapter="pre-and-post-norm",
    titles=LESSONS, lesson=LESSON, difficulty=3, minutes=20, parameters=("block",),
    cases=cases, drive=drive.norm_order, array="label",
    reference=lambda inputs: {"label": label_of(inputs["block"])},
    family=family, knobs=KNOBS, groups=dict.fromkeys(LABELS, 2), detector=True,
    outputs={"label": Output("text")}, hints=HINTS,
    equivalents=(Equivalent(
        (frozenset({"pre-and-post-swapped"}),
         frozenset({"pre-called-post", "post-called-pre"})),
        "two labels exchanged are each taken for the other"),),
)
