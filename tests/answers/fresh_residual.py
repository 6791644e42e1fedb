"""Random legal inputs of the exercises of chapter 2; see ``fresh``."""

import numpy as np


def _sizes(rng, count):
    if rng.random() < 0.2:
        return (int(rng.integers(2, 6)),) * count  # equal sizes are legal, too
    return tuple(int(size) for size in rng.integers(2, 7, count))


def _residual_update(rng):
    shape = _sizes(rng, int(rng.integers(1, 5)))
    inputs = {"x": rng.normal(1, 3, shape), "update": rng.normal(-1, 2, shape)}
    if rng.random() < 0.7:
        other = list(shape)
        place = int(rng.integers(len(other)))
        change = rng.integers(4)
        if change == 0:
            other[place] = 1
        elif change == 1:
            other[place] += 1
        elif change == 2:
            other = other[1:]
        else:
            other.insert(place, int(rng.choice([1, 3])))
        inputs["misfit"] = rng.normal(size=other)
    return inputs


def _linear_stack_gradient(rng):
    depth, width = int(rng.integers(1, 8)), int(rng.integers(2, 8))
    leading = tuple(rng.integers(1, 6, rng.integers(0, 4)))
    return {"weights": rng.normal(0, rng.uniform(0.2, 1) / np.sqrt(width), (depth, width, width)),
            "cotangent": rng.normal(1, 1, (*leading, width))}


def _linear(rng, width_out, width_in, size=1.0):
    return {"weight": rng.normal(0, size / np.sqrt(width_in), (width_out, width_in)),
            "bias": rng.normal(0, 0.5 * size, width_out)}


def _x(rng, shape):
    return {"x": rng.normal(rng.normal(), rng.uniform(0.5, 2), shape)}


def _dropping(rng, bare, most):
    """``bare`` calls leave p out; ``most`` is the largest p."""
    task = str(rng.choice(["forward", "identity", "step", "levels", "levels", "ratio"]))
    mode = str(rng.choice(["train", "train", "eval"]))
    p = {} if bare and rng.random() < 0.3 else {"p": float(rng.uniform(0.15, 0.6))}
    if task == "levels":
        axes = int(rng.integers(2, 5))
        return {"task": "levels", "mode": mode, "axes": axes, "level": float(rng.uniform(1, 3)),
                "examples": 4000 if axes == 3 else 90, **p}
    shape = _sizes(rng, int(rng.integers(2, 5)))
    if task == "ratio":
        return {"task": "ratio", "mode": "train", "p": float(rng.uniform(0.15, 0.6)),
                **_x(rng, (60, 5, 4)), **_linear(rng, 4, 4)}
    if mode == "train":
        p = {"p": float(rng.choice([0, 0, most]) if task == "forward" else 0)}
    if task == "identity":
        return {"task": "forward", "mode": mode, **p, **_x(rng, shape)}
    return {"task": task, "mode": mode, **p, **_x(rng, shape),
            **_linear(rng, shape[-1], shape[-1]), "dy": rng.normal(size=shape),
            "rate": float(rng.uniform(0.1, 0.3))}


def _residual_block(rng):
    return _dropping(rng, True, 1.0)


def _stochastic_depth(rng):
    return _dropping(rng, False, 0.0)


def _scaled_residual(rng):
    shape = _sizes(rng, int(rng.integers(1, 5)))
    start = {} if rng.random() < 0.2 else {"start": float(rng.uniform(0.1, 2))}
    size = 1.0 if start else 1e4
    inputs = {**_x(rng, shape), **_linear(rng, shape[-1], shape[-1], size),
              "activation": str(rng.choice(["SiLU", "Softplus"])), **start}
    if rng.random() < 0.5 or not start:
        return {"task": "forward", **inputs}
    return {"task": "step", **inputs, "dy": rng.normal(size=shape), "steps": 2,
            "rate": float(rng.uniform(0.05, 0.2))}


def _projected_residual(rng):
    width_in, width_out = (int(size) for size in rng.integers(2, 8, 2))
    if rng.random() < 0.3:
        width_out = width_in
    leading = _sizes(rng, 2)
    inputs = {**_x(rng, (*leading, width_in)), **_linear(rng, width_out, width_in)}
    task = str(rng.choice(["forward", "step", "misfit"]))
    if task == "misfit":
        kinds = ["one feature", "fewer features", "one token"]
        return {"task": task, **inputs, "misfit": str(rng.choice(kinds))}
    if task == "step":
        inputs.update(dy=rng.normal(size=(*leading, width_out)), rate=float(rng.uniform(0.1, 0.3)))
    return {"task": task, **inputs}


def _depth_scaled_init(rng):
    std = {} if rng.random() < 0.3 else {"std": float(10 ** rng.uniform(-2.5, 0))}
    return {"width": int(rng.integers(40, 50)), "depth": int(rng.integers(2, 4)),
            "seed": int(rng.integers(1 << 30)), **std}


GENERATORS = {
    "residual_update": _residual_update,
    "linear_stack_gradient": _linear_stack_gradient,
    "ResidualBlock": _residual_block,
    "ProjectedResidual": _projected_residual,
    "ScaledResidual": _scaled_residual,
    "StochasticDepth": _stochastic_depth,
    "depth_scaled_init": _depth_scaled_init,
}
