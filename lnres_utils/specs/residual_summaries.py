"""What is told of chapter 2's blocks and models, made of the numbers that the drives bring back.

Random masks and weights are told by facts that any draw shows.
"""

from functools import cache

import numpy as np

from lnres_utils.drives import initialization
from lnres_utils.drives.common import WrongKind
from lnres_utils.drives.residual_path import AGAIN, CALLS, NEAR, SHAPES
from lnres_utils.specs.raw import numbers

FEW = 20  # draws that may come out alike in two calls by chance
UNITS = 1000  # independent draws from which a share is told


def dropping_block(raw, inputs):
    """Words on masks and ratios for the tasks "levels" and "ratio"; all else is told as it is."""
    tasks = {"levels": _levels, "ratio": _other_ratios}
    return tasks.get(inputs["task"], lambda raw, inputs: raw)(raw, inputs)


def _levels(raw, inputs):
    """The numbers in the outputs for a constant x, who shares one draw, and how often each is."""
    shape = SHAPES[inputs["axes"]]
    many = numbers(raw, "y", inputs["examples"], *shape)
    few = numbers(raw, "again", None, AGAIN, *shape)
    constant = np.ptp(many) < NEAR
    if not (constant or len(few) == 2) or len(few) > CALLS[inputs["mode"]]:
        raise WrongKind(f"there are {len(few)} more calls, which were not asked for")
    levels = np.unique(np.round(np.concatenate([many.ravel(), few.ravel()]), 6))
    if len(levels) > 6:
        return {"levels": "more than 6 different numbers"}
    mask, units = _mask(many, len(levels))
    if units > FEW and not constant and np.array_equal(few[0], few[1], equal_nan=True):
        mask += ", the same at every call"
    shares = [np.mean(np.abs(many - level) < NEAR) if units >= UNITS or len(levels) == 1
              else np.nan for level in levels]
    return {"levels": " and ".join(f"{level:.5g}" for level in levels), "mask": mask,
            "shares": np.array(shares)}


def _mask(y, levels):
    """In words, which entries share one draw; and how many draws there are, 0 if none is seen."""
    def same(*axes):
        return bool((np.ptp(y, axis=axes) < NEAR).all())

    if same(*range(y.ndim)):
        return ("none", 0) if levels == 1 else ("one draw for the batch", 1)
    if same(*range(1, y.ndim)):
        return "one draw for each example", len(y)
    if same(-1):
        return "one draw for each token", y.size // y.shape[-1]
    if same(0):
        return "one draw for all examples", y[0].size
    return "one draw for each entry", y.size


def _other_ratios(raw, inputs):
    """In words, how many entries of (y - x) / f(x) are neither 0 nor 1 / (1 - p)."""
    x = inputs["x"]
    update = np.tanh(x @ inputs["weight"].T + inputs["bias"])
    seen = np.abs(update) > 1e-3
    ratio = ((numbers(raw, "y", *x.shape) - x) / update)[seen]
    known = (np.abs(ratio) < NEAR) | (np.abs(ratio - 1 / (1 - inputs["p"])) < NEAR)
    return {"other ratios": "none" if known.all() else "some" if known.any() else "all"}


def projected_residual(raw, inputs):
    """Shortcut and update of a block, from its output and what it gives without the update."""
    told = {name: raw[name] for name in ("second call", "parameters", "misfit") if name in raw}
    if inputs["task"] == "misfit" or told.get("second call") == "different":
        return told
    shortcut, offset, update = _apart(raw, inputs, "")
    told |= {"at zero": "0" if np.abs(offset).max() < NEAR else "not 0",
             "shortcut": _called(shortcut), "update": update}
    if inputs["task"] == "forward":
        return told
    changed, _, update = _apart(raw, inputs, " after")
    return {**told, "change of the shortcut": changed - shortcut, "update after": update}


def _apart(raw, inputs, when):
    """The matrix (in, out) and the offset of the shortcut, and the update."""
    x, (width_out, width_in) = inputs["x"], inputs["weight"].shape
    offset = numbers(raw, f"offset{when}", width_out)
    shortcut = numbers(raw, f"rows{when}", width_in, width_out) - offset
    y = numbers(raw, f"y{when}", *x.shape[:-1], width_out)
    return shortcut, offset, y - x @ shortcut - offset


def _called(matrix):
    """A shortcut in words."""
    unit = np.eye(*matrix.shape)
    if np.abs(matrix).max() < NEAR:
        return "nothing"
    if np.abs(matrix - matrix[0, 0] * unit).max() > NEAR:
        return "a linear map"
    if len(set(matrix.shape)) > 1:
        return "the input, cut or padded"
    times = matrix[0, 0]
    return "the identity" if abs(times - 1) < NEAR else f"{times:.3g} times the identity"


def depth_scaled_init(raw, inputs):
    """What a model's parameters look like; standard deviations are told in units of ``std``.

    The weights are random, so what is told holds for any draw: standard deviations, means and the
    fourth moment (3 for a normal distribution).
    """
    shapes = _shapes(inputs["width"], inputs["depth"])
    found = {name: numbers(raw, name, *shape) for name, shape in shapes.items()}
    before = initialization.starts(shapes, inputs["seed"])
    norms = {name for name in before if name.split(".")[-2] in initialization.NORMS}
    weights = {name: value.astype(float) for name, value in found.items() if name not in before}
    std = inputs.get("std", 0.02)
    inner = [name for name in weights if name.split(".")[-2] != "output"]
    writing = [name for name in weights if name not in inner]
    unit = {name: weight / (weight.std() + 1e-30) for name, weight in weights.items()}
    every = np.concatenate([weight.ravel() for weight in unit.values()])
    return {
        "std of output maps": np.array([weights[name].std() for name in writing]) / std,
        "std of other maps": np.array([weights[name].std() for name in inner]) / std,
        "means": np.array([weight.mean() for weight in unit.values()]),
        "fourth moment": np.mean(np.square(np.square(every))),
        "draws": _draws(unit.values()),
        "biases": _fate(found, before, set(before) - norms, {"0": 0.0}),
        "norms": _fate(found, before, norms, {}),
    }


@cache
def _shapes(width, depth):
    """The shapes of the parameters of such a model, by name."""
    import torch

    with torch.device("meta"):  # draws nothing
        return initialization.shapes(initialization.unfilled(width, depth))


def _draws(weights):
    """In words, whether two matrices hold the same numbers up to their size."""
    seen = [weight[:2, :2].round(4).tobytes() for weight in weights]
    return "all different" if len(set(seen)) == len(seen) else "some the same"


def _fate(found, before, names, values):
    """In words, what became of some parameters: kept, one of the values, or changed."""
    def are(right):
        return all(bool((found[name] == right(name)).all()) for name in names)

    for word, number in values.items():
        if are(lambda name, number=number: number):
            return word
    if are(before.get):
        return "as they were"
    gains = {name: float(name.endswith("weight")) for name in names}
    return "1 and 0" if any(gains.values()) and are(gains.get) else "changed"
