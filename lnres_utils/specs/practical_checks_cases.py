"""The inputs of chapter 5's exercises on padding and on half precision."""

import numpy as np

from lnres_utils.checking import Case
from lnres_utils.specs import feature_axis_cases as rows

VISIBLE_EPS = rows.VISIBLE_EPS
FAR = 1e6  # a mean that shows sums of squares in double precision


def padded(rng, lengths, tokens, width, scale=3.0, apart=()):
    """Hidden states with ``lengths`` real tokens an example, and what the padding holds besides.

    Real tokens lie ``apart`` from position to position instead, where that is given.
    """
    x = rng.normal(0, scale, (len(lengths), tokens, width))
    x += scale * rng.normal(1, 1, (len(lengths), 1, width))
    mask = np.arange(tokens) < np.array(lengths)[:, None]
    if apart:
        mask = np.array(apart, bool)
    x[~mask] = scale * rng.normal(-6, 10, x[~mask].shape)
    return {"x": x, "mask": mask}


def masked(rng):
    visible = {"eps": VISIBLE_EPS}
    holes = [(1, 0, 1, 1, 0, 1), (0, 1, 1, 0, 1, 0)]

    def both(group, inputs, eps):
        only = () if group in ("padding", "nothing real") else ("y",)
        return [Case(group, {**inputs, "kind": kind, **eps}, only=only)
                for kind in ("batch", "instance")]

    def each(group, eps, *args, **more):
        return both(group, padded(rng, *args, **more), eps)

    zeros = padded(rng, (4, 2, 3), 5, 4)
    zeros["x"][~zeros["mask"]] = 0
    constant = padded(rng, (3, 5), 6, 4)
    constant["x"][constant["mask"]] = rows.SAME
    far = padded(rng, (3, 4, 2), 5, 6)
    far["x"] += FAR
    one_empty, all_empty = padded(rng, (3, 0, 1), 6, 4), padded(rng, (0, 0), 5, 3)
    all_empty["x"][...] = 0
    return [
        *each("real tokens", {"eps": 1e-5}, (4, 1, 6), 7, 5),
        *both("real tokens", zeros, {"eps": 1e-5}),
        *both("real tokens", _with_holes(rng, holes), {"eps": 1e-5}),
        *both("real tokens", far, {"eps": 1e-5}),
        *each("padding", {"eps": 1e-5}, (2, 4, 3), 5, 6),
        *each("no padding", {"eps": 1e-5}, (6, 6), 6, 5),
        *each("small variance", visible, (3, 5, 2), 6, 4, scale=0.3),
        *both("small variance", constant, visible),
        *both("nothing real", one_empty, visible),
        *both("nothing real", all_empty, visible),
        *each("default epsilon", {}, (5, 3), 6, 4, scale=3e-3),
    ]


def _with_holes(rng, holes):
    """Padding in the middle: whoever cuts at a length takes the wrong tokens."""
    return padded(rng, [0] * len(holes), len(holes[0]), 4, apart=holes)


def half(rng):
    """Float16 rows: ordinary, large, wide, constant, and far from zero."""
    def inputs(x, **eps):
        x = np.asarray(x, np.float16)
        affine = rows.affine(rng, x.shape[-1])
        return {"x": x, **{name: value.astype(np.float16) for name, value in affine.items()},
                **eps}

    far = np.full((3, 24), 45056.0) + 32 * rng.integers(0, 2, (3, 24))
    far[1] = 2048 + 2 * rng.integers(0, 3, 24)
    far[2] = -1000 + 0.5 * rng.integers(0, 4, 24)
    constant = rng.normal(1, 3, (2, 3, 5))
    constant[0, 1], constant[1, 2] = rows.SAME, 0
    tiny = rng.normal(0, 1, (2, 3, 6)) * np.array([3e-2, 1e-2, 3e-3])[:, None]
    smallest = rng.normal(0, 1, (3, 6)) * np.array([3e-3, 1e-3, 1e-4])[:, None]
    return [
        Case("ordinary", inputs(rows.hidden_states(rng, (2, 3, 5)), eps=1e-5)),
        Case("ordinary", inputs(rng.normal(1, 3, 7), eps=0.1)),
        Case("large", inputs(rng.normal(0, 200, (2, 4, 6)), eps=1e-5)),
        Case("large", inputs(rng.normal(3000, 9000, (3, 2, 5)), eps=1e-5)),
        Case("large", inputs(rng.normal(-20, 40, (2, 512)), eps=1e-5)),
        Case("constant", inputs(constant, eps=1e-5)),
        Case("constant", inputs(constant, eps=1e-8)),
        Case("small variance", inputs(tiny, eps=1e-4)),
        Case("small variance", inputs(rng.normal(0, 2e-4, (3, 8)), eps=1e-8)),
        Case("far from zero", inputs(far, eps=1e-5)),
        Case("default epsilon", inputs(smallest)),
    ]
