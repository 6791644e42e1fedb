"""What checks tell of random masks: the same of every draw, and of every hand that draws."""

import itertools
import random

import pytest
import torch
from answers import legal_residual
from conftest import checked, named
from torch import nn

from lnres_utils import specs

LEVELS = {"task": "levels", "mode": "train", "axes": 3, "examples": 1000, "level": 2.0, "p": 0.4}


def block(mask, scale=True):
    """A block whose update is multiplied by ``mask(x, p)`` in training."""

    class Dropping(nn.Module):
        def __init__(self, sublayer, p=0.1):
            super().__init__()
            self.sublayer, self.p = sublayer, p

        def forward(self, x):
            update = self.sublayer(x)
            if self.training and self.p < 1:
                update = update * mask(x, self.p) / (1 - self.p if scale else 1)
            return x + update * (0 if self.training and self.p == 1 else 1)

    return Dropping


def draws_of(*axes):
    """A mask with a draw of its own along these axes, and one for all along the others."""
    def mask(x, p):
        shape = [size if axis in axes or axis - x.ndim in axes else 1
                 for axis, size in enumerate(x.shape)]
        return (torch.rand(shape) >= p).to(x.dtype)

    return mask


def drawn_once(x, p):
    generator = torch.Generator().manual_seed(3)
    return (torch.rand(x.shape, generator=generator) >= p).to(x.dtype)


def the_first_ones(x, p):
    kept = torch.arange(len(x)) >= p * len(x)
    return kept.to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))


MASKS = {  # what is drawn: (mask, in words)
    "entries": (draws_of(0, 1, 2), "one draw for each entry"),
    "tokens": (draws_of(0, 1), "one draw for each token"),
    "examples": (draws_of(0), "one draw for each example"),
    "features": (draws_of(-1), "one draw for all examples"),
    "the batch": (draws_of(), "one draw for the batch"),
    "once": (drawn_once, "one draw for each entry, the same at every call"),
    "no draw": (the_first_ones, "one draw for each example, the same at every call"),
}


def told(answer, inputs):
    exercise = specs.get("ResidualBlock")
    return exercise.summary(exercise.drive(answer, inputs), inputs)


@pytest.mark.parametrize("kind", MASKS)
def test_who_shares_a_draw_is_told_in_words(kind):
    mask, words = MASKS[kind]
    facts = told(block(mask), LEVELS)
    assert facts["mask"] == words
    assert facts["levels"].startswith("2 and ")
    assert (facts["shares"][0] != facts["shares"][0]) == (kind in ("the batch", "features"))


def test_nothing_is_told_of_masks_in_evaluation():
    facts = told(block(draws_of(0)), {**LEVELS, "mode": "eval"})
    assert facts["mask"] == "none" and list(facts["shares"]) == [1.0]


@pytest.mark.parametrize("kind", sorted(set(MASKS) - {"entries"}))
def test_dropout_needs_a_draw_for_each_entry(kind):
    assert checked("ResidualBlock", block(MASKS[kind][0])).outcome == "wrong"


@pytest.mark.parametrize("kind", sorted(set(MASKS) - {"examples"}))
def test_stochastic_depth_needs_a_draw_for_each_example(kind):
    assert checked("StochasticDepth", block(MASKS[kind][0])).outcome in ("wrong", "raised")


@pytest.mark.parametrize(("name", "way"), [
    ("ResidualBlock", "mask by own generator"), ("StochasticDepth", "mask by python"),
    ("depth_scaled_init", "with numpy")])
def test_draws_that_no_seed_fixes_are_right_every_time(name, way):
    answer = legal_residual.ANSWERS[name][way]
    assert all(checked(name, answer, seed).outcome == "right" for seed in range(15))


def by_python(each):
    """A mask that no seed of a check fixes, with a draw for ``each`` example or for the batch."""
    def mask(x, p):
        kept = [float(random.random() >= p) for _ in range(len(x) if each else 1)]
        return torch.tensor(kept, dtype=x.dtype).reshape(-1, *[1] * (x.ndim - 1))

    return mask


def kept_for_long():
    """A mask with one draw for the batch that keeps 60 calls in a row, which luck may do."""
    calls = itertools.count(1)

    def mask(x, p):
        kept = p == 0 or next(calls) % 61
        return torch.full([1] * x.ndim, bool(kept)).to(x.dtype)

    return mask


@pytest.mark.parametrize(("answer", "mistake"), [
    (block(kept_for_long()), "one-draw-for-the-batch"),
    (block(by_python(True), scale=False), "not-rescaled"),
    (block(by_python(False)), "one-draw-for-the-batch")])
def test_a_mistake_has_the_same_name_whatever_is_drawn(answer, mistake):
    reports = [checked("StochasticDepth", answer, seed) for seed in range(10)]
    assert all(named(report) == {mistake} for report in reports)


def test_the_same_draws_in_every_block_are_no_new_ones():
    def depth_scaled_init(model, depth, std=0.02):
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):
                torch.manual_seed(0)
                scale = (2 * depth) ** -0.5 if name.endswith(".output") else 1
                nn.init.normal_(module.weight, std=std * scale)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    assert named(checked("depth_scaled_init", depth_scaled_init)) == {"same-draws"}
