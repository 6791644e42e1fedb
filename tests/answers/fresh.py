"""Random legal inputs of every exercise, wider than the cases of its check.

``fresh_inputs(exercise, rng, count)`` gives that many input mappings. What a check cannot tell
apart must agree on these as well.
"""

import numpy as np
from answers import fresh_checks, fresh_residual, fresh_rmsnorm
from answers.drawing_inputs import draw_epsilon, draw_gain, draw_shape

from lnres_utils import specs

EPSILONS = (None, 1e-12, 1e-5, 1e-3, 0.1, 1.0)


def _epsilon(rng):
    return draw_epsilon(rng, EPSILONS)


def _hidden(rng, shape):
    rows = (shape[0],) + (1,) * (len(shape) - 1)
    scale = 10 ** rng.uniform(-3, 1.5, rows if len(shape) > 1 else ())
    offset = rng.normal(0, 2, rows if len(shape) > 1 else ()) * 10 ** rng.uniform(-2, 1)
    x = rng.normal(size=shape) * scale + offset
    if rng.random() < 0.15:  # a mean that is exact: whether rounding leaves a variance is chance
        x[0] = rng.choice([0, 4.5, -3]) if len(shape) > 1 else 0
        x = x if rng.random() < 0.7 and len(shape) > 1 else np.full(shape, rng.choice([0, 4.5, -3]))
    return x


def _standardize(rng):
    return {"x": _hidden(rng, draw_shape(rng, 1)), **_epsilon(rng)}


def _layer_norm(rng):
    shape = draw_shape(rng, int(rng.integers(1, 6)))
    inputs = {"x": _hidden(rng, shape), "gamma": draw_gain(rng, shape[-1]),
              "beta": rng.normal(0, 1, shape[-1])}
    if rng.random() < 0.2:
        inputs["x"] = rng.normal(1, 1, shape)  # single precision: no extremes
        single = {name: value.astype(np.float32) for name, value in inputs.items()}
        return {**single, "eps": 0.01}
    return {**inputs, **_epsilon(rng)}


def _axis_norm(rng):
    batch, tokens, width = draw_shape(rng, 3)
    kind = str(rng.choice(["layer", "batch", "instance", "group", "group"]))
    bare = rng.random() < 0.3  # called without groups and eps
    groups = int(rng.integers(1, 4)) if kind == "group" and not bare else 1
    x = _hidden(rng, (batch, tokens, width * groups))
    eps = {} if bare else _epsilon(rng)
    return {"x": x, "kind": kind, **({"groups": groups} if eps or groups > 1 else {}), **eps}


def _channel_norm(rng):
    shape = draw_shape(rng, 4)
    return {"x": _hidden(rng, shape), "gamma": draw_gain(rng, shape[1]),
            "beta": rng.normal(0, 1, shape[1]), **_epsilon(rng)}


def _layer_norm_backward(rng):
    shape = draw_shape(rng, int(rng.integers(1, 6)))
    return {"dy": rng.normal(size=shape), "x": _hidden(rng, shape),
            "gamma": draw_gain(rng, shape[-1]), **_epsilon(rng)}


def _module(rng):
    shape = draw_shape(rng, int(rng.integers(1, 5)))
    task = str(rng.choice(["state", "fresh", "forward", "eval", "backward", "train"]))
    x = _hidden(rng, shape)
    while task == "backward" and not x.std(-1).all():  # a root of zero has no gradient
        x = _hidden(rng, shape)
    return {"task": task, "x": x, "weight": draw_gain(rng, shape[-1]),
            "bias": rng.normal(0, 1, shape[-1]), "dy": rng.normal(size=shape), "rate": 0.3,
            **_epsilon(rng)}


def _norm_order(rng):
    return specs.get("norm_order").cases(rng)[0].inputs


def _tiny_transformer(rng):
    cases = specs.get("TinyTransformer").cases(rng)
    return cases[rng.integers(len(cases))].inputs


def _block(rng, **more):
    kinds = ["active", "active", "active", "zero", "constant"]
    shape = (*rng.integers(2, 7, 2), rng.integers(8, 13))
    return {"task": str(rng.choice(["forward", "forward", "gradient", "modes"])),
            "attention": str(rng.choice(kinds)), "feed_forward": str(rng.choice(kinds)),
            "x": (3 * rng.normal(size=shape) + rng.normal()) * 10 ** rng.uniform(0, 1),
            "seed": int(rng.integers(2**31)), **more}


def _deepnorm(rng):
    return _block(rng, alpha=float(rng.uniform(1.2, 3)))


def _stack(rng):
    shape = (*rng.integers(2, 7, 2), rng.integers(6, 13))
    return {"task": str(rng.choice(["forward", "states", "gradient", "train"])),
            "x": 3 * rng.normal(size=shape) + rng.normal(), "rate": float(rng.uniform(0.01, 0.05)),
            "depth": int(rng.integers(1, 5)), "seed": int(rng.integers(2**31))}


def _warmup(rng):
    most = int(rng.choice([3, 40]))
    step = int(rng.integers(1, most)) if rng.random() < 0.5 else rng.integers(
        1, most, rng.integers(1, 6, rng.integers(1, 3)))
    return {"step": step, "peak": float(10 ** rng.uniform(-4, 1)),
            "warmup": int(rng.choice([0, 0, 1, 2, 5, 10, 30]))}


GENERATORS = {
    "standardize": _standardize,
    "layer_norm": _layer_norm,
    "axis_norm": _axis_norm,
    "channel_norm": _channel_norm,
    "layer_norm_backward": _layer_norm_backward,
    "LayerNorm": _module,
    **fresh_residual.GENERATORS,
    **fresh_rmsnorm.GENERATORS,
    **fresh_checks.GENERATORS,
    "PostNormBlock": _block,
    "PreNormBlock": _block,
    "SandwichBlock": _block,
    "DeepNormBlock": _deepnorm,
    "PreNormStack": _stack,
    "warmup_rate": _warmup,
    "norm_order": _norm_order,
    "TinyTransformer": _tiny_transformer,
}


def fresh_inputs(exercise, rng, count):
    """``count`` legal inputs; all inputs there are, where nothing is random."""
    if exercise.name in GENERATORS:
        return [GENERATORS[exercise.name](rng) for _ in range(count)]
    cases = [case.inputs for case in exercise.cases(rng)]
    fixed = [case.inputs for case in exercise.cases(np.random.default_rng())]
    if cases != fixed:
        raise KeyError(f"tests/answers/fresh.py knows no random inputs of {exercise.name}")
    return cases
