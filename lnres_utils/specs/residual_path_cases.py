"""The inputs of chapter 2's exercises: each shows mistakes that others hide."""

import numpy as np

from lnres_utils.checking import Case

STEEP = 1e4  # a sub-layer so large that a gain of 1e-4 on it shows


def residual_update(rng):
    def pair(*shape):
        return {"x": rng.normal(1, 2, shape), "update": rng.normal(-1, 2, shape)}

    def misfit(group, x, other):
        return Case(group, {**pair(*x), "misfit": rng.normal(1, 2, other)}, only=("misfit",))

    broadcasting, others = "broadcasting refused", "other misfits refused"
    return [
        Case("sum", pair(2, 3, 5)),
        Case("sum", pair(3, 4, 2)),
        Case("other ranks", pair(7)),
        Case("other ranks", pair(3, 5)),
        Case("other ranks", pair(2, 3, 4, 5)),
        misfit(broadcasting, (3, 5), (3, 1, 5)),  # grows an axis
        misfit(broadcasting, (2, 3, 5), (5,)),
        misfit(broadcasting, (2, 3, 5), (1,)),
        misfit(broadcasting, (2, 3, 5), ()),
        misfit(broadcasting, (2, 3, 5), (2, 1, 5)),
        misfit(broadcasting, (2, 3, 5), (2, 3, 1)),
        misfit(broadcasting, (2, 3, 5), (1, 3, 5)),
        misfit(broadcasting, (3, 1, 5), (1, 3, 5)),  # as many entries
        misfit(broadcasting, (3, 5), (2, 3, 5)),
        misfit(broadcasting, (4, 6), (6,)),
        misfit(broadcasting, (4, 6), (1, 6)),
        misfit(broadcasting, (4, 6), (4, 1)),
        misfit(others, (2, 3, 5), (2, 3, 4)),
        misfit(others, (3, 5), (5, 3)),
        misfit(others, (2, 3, 5), (2, 5, 3)),
    ]


def linear_stack_gradient(rng):
    def case(group, depth, width, *leading, size=1.0):
        weights = rng.normal(0, size / np.sqrt(width), (depth, width, width))
        return Case(group, {"weights": weights,
                            "cotangent": rng.normal(1, 1, (*leading, width))})

    return [
        case("one layer", 1, 4),
        case("one layer", 1, 5),
        case("several layers", 3, 5),
        case("several layers", 5, 3),
        case("several layers", 2, 7),
        case("many layers", 40, 6, size=0.2),
        case("more cotangents", 3, 5, 4),
        case("more cotangents", 4, 3, 2, 5),
        case("more cotangents", 2, 4, 6, size=0.5),
    ]


def _linear(rng, width_out, width_in, size=1.0):
    return {"weight": rng.normal(0, size / np.sqrt(width_in), (width_out, width_in)),
            "bias": rng.normal(0, 0.5 * size, width_out)}


def _block(rng, task, mode, *shape, **more):
    """A sub-layer and an x for it."""
    return {"task": task, "mode": mode, "x": rng.normal(1, 2, shape),
            **_linear(rng, shape[-1], shape[-1]), **more}


def _step(rng, *shape, **more):
    return {"task": "step", "x": rng.normal(1, 2, shape), "dy": rng.normal(size=shape),
            "rate": 0.2, **_linear(rng, shape[-1], shape[-1]), **more}


def _kept(rng, mode, *shape, **more):
    """An identity for the sub-layer: it hands out the tensor it was given."""
    return Case("x kept", {"task": "forward", "mode": mode, "x": rng.normal(1, 2, shape), **more},
                only=("x after the call",))


def _levels(rng, mode, axes=3, examples=1000, **more):
    return {"task": "levels", "mode": mode, "axes": axes, "examples": examples,
            "level": round(rng.uniform(1.5, 2.5), 3), **more}


def residual_block(rng):
    return [
        Case("addition", _block(rng, "forward", "train", 2, 3, 5, p=0.0)),
        Case("addition", _block(rng, "forward", "train", 4, 6, p=0.0)),
        Case("addition", _block(rng, "forward", "train", 2, 3, 2, 5, p=0.0)),
        Case("evaluation", _block(rng, "forward", "eval", 3, 2, 5, p=0.5)),
        Case("evaluation", _block(rng, "forward", "eval", 2, 4, 5, p=1.0)),
        Case("evaluation", _levels(rng, "eval", p=0.4)),
        Case("all dropped", _block(rng, "forward", "train", 3, 4, 5, p=1.0)),
        Case("dropout", _levels(rng, "train", p=0.4)),
        Case("dropout", _block(rng, "ratio", "train", 40, 6, 5, p=0.3)),
        Case("default p", _levels(rng, "train")),
        _kept(rng, "eval", 2, 3, 5, p=0.5),
        _kept(rng, "train", 3, 4, p=0.0),
        Case("gradient and training", _step(rng, 2, 3, 5, mode="train", p=0.0)),
        Case("gradient and training", _step(rng, 4, 2, 6, mode="eval", p=0.5)),
        Case("", _levels(rng, "eval", examples=90), judged=False),
    ]


def stochastic_depth(rng):
    return [
        Case("evaluation", _block(rng, "forward", "eval", 3, 2, 5, p=0.5)),
        Case("evaluation", _levels(rng, "eval", p=0.4)),
        Case("p = 0", _block(rng, "forward", "train", 2, 3, 5, p=0.0)),
        Case("training", _levels(rng, "train", examples=4000, p=0.4)),
        Case("training", _levels(rng, "train", examples=4000, p=0.25)),
        Case("training", _block(rng, "ratio", "train", 40, 6, 5, p=0.3)),
        Case("other ranks", _levels(rng, "train", 2, 90, p=0.4), only=("levels", "mask")),
        Case("other ranks", _levels(rng, "train", 4, 90, p=0.4), only=("levels", "mask")),
        Case("other ranks", _levels(rng, "eval", 2, 90, p=0.4), only=("levels", "mask")),
        _kept(rng, "eval", 2, 3, 5, p=0.5),
        _kept(rng, "train", 3, 2, 4, p=0.0),
        Case("gradient and training", _step(rng, 2, 3, 5, mode="train", p=0.0)),
        Case("gradient and training", _step(rng, 4, 2, 6, mode="eval", p=0.5)),
    ]


def scaled_residual(rng):
    def built(group, *shape, size=1.0, **more):
        inputs = {"task": "forward", "x": rng.normal(1, 2, shape), "activation": "SiLU",
                  **_linear(rng, shape[-1], shape[-1], size), **more}
        return Case(group, inputs)

    def steps(*shape, **more):
        return Case("training", _step(rng, *shape, **more))

    return [
        built("as built", 2, 3, 5, start=0.3),
        built("as built", 3, 2, 6, start=1.7),
        built("default start", 2, 4, 5, size=STEEP),
        built("other ranks", 7, start=0.4),
        built("other ranks", 4, 6, start=0.3),
        built("other ranks", 2, 3, 2, 5, start=0.6),
        steps(2, 3, 5, start=0.3),
        steps(4, 2, 6, start=0.7, steps=2),
    ]


def projected_residual(rng):
    def inputs(task, width_in, width_out, *leading, **more):
        shape = (*leading, width_in)
        return {"task": task, "x": rng.normal(1, 2, shape), **_linear(rng, width_out, width_in),
                **more}

    def step(width_in, width_out, *leading):
        return Case("training", inputs("step", width_in, width_out, *leading, rate=0.2,
                                       dy=rng.normal(size=(*leading, width_out))))

    def misfit(kind, width_in, width_out):
        return Case("misfits refused", inputs("misfit", width_in, width_out, 2, 3, misfit=kind),
                    only=("misfit",))

    return [
        Case("equal widths", inputs("forward", 5, 5, 2, 3)),
        Case("equal widths", inputs("forward", 6, 6, 2, 3, 4)),
        Case("projection", inputs("forward", 4, 7, 2, 3)),
        Case("projection", inputs("forward", 6, 5, 3, 2)),
        step(5, 5, 2, 3),
        step(4, 6, 3, 2),
        step(7, 5, 2, 4),
        misfit("one feature", 5, 5),
        misfit("one feature", 4, 7),
        misfit("fewer features", 5, 5),
        misfit("fewer features", 6, 4),
        misfit("one token", 5, 5),
        misfit("one token", 4, 7),
    ]


def depth_scaled_init(rng):
    groups = {"output maps": ("std of output maps",), "other maps": ("std of other maps",),
              "normal draws": ("means", "fourth moment", "draws"), "biases": ("biases",),
              "norms": ("norms",)}

    def drawn(depth, **more):
        return {"width": int(rng.integers(40, 56)), "depth": depth, **more,
                "seed": int(rng.integers(1 << 30))}

    inputs, known = drawn(2, std=0.1), {}  # one call, told of one by one
    return [
        *(Case(group, inputs, only=names, known=known) for group, names in groups.items()),
        Case("default std", drawn(3)),
    ]
