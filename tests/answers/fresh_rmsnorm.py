"""Random legal inputs of the exercises on RMSNorm, wider than the cases of their checks."""

import numpy as np
from answers.drawing_inputs import draw_epsilon, draw_gain, draw_shape, single

from lnres_utils.specs.rmsnorm_cases import large_rows

EPSILONS = (None, 1e-12, 1e-6, 1e-3, 0.1, 1.0)


def _epsilon(rng):
    return draw_epsilon(rng, EPSILONS)


def _hidden(rng, shape):
    rows = (*shape[:-1], 1)
    x = (rng.normal(size=shape) + rng.normal(0, 2, rows)) * 10 ** rng.uniform(-4, 1.5, rows)
    if rng.random() < 0.15:
        x.reshape(-1, shape[-1])[0] = rng.choice([0, 4.5, -3])
    return x


def _rms_norm(rng):
    shape = draw_shape(rng, int(rng.integers(1, 6)))
    inputs = {"x": _hidden(rng, shape), "gamma": draw_gain(rng, shape[-1]), **_epsilon(rng)}
    return single({**inputs, "eps": 0.01}) if rng.random() < 0.2 else inputs


def _backward(rng):
    shape = draw_shape(rng, int(rng.integers(1, 6)))
    return {"dy": rng.normal(size=shape), "x": _hidden(rng, shape),
            "gamma": draw_gain(rng, shape[-1]), **_epsilon(rng)}


def _module(rng):
    shape = draw_shape(rng, int(rng.integers(1, 5)))
    task = str(rng.choice(["state", "fresh", "forward", "eval", "backward", "train", "half"]))
    weight = draw_gain(rng, shape[-1])
    if task == "half":
        dtype = str(rng.choice(["float16", "bfloat16"]))
        weight = np.round(weight * 64) / 64
        x = np.round(large_rows(rng, shape, weight) / 8) * 8
        if dtype == "float16":
            x = large_rows(rng, shape, weight)
        return single({"task": task, "dtype": dtype, "x": x, "weight": weight, "eps": 0.1,
                        "weights": str(rng.choice(["float32", dtype]))})
    x = _hidden(rng, shape)
    while task == "backward" and not np.square(x).sum(-1).all():  # a root of zero: no gradient
        x = _hidden(rng, shape)
    return {"task": task, "x": x, "weight": weight, "dy": rng.normal(size=shape), "rate": 0.3,
            **_epsilon(rng)}


def _qk_norm(rng):
    heads, size = int(rng.integers(1, 6)), int(rng.integers(2, 6))
    shape = (*draw_shape(rng, 2), heads * size)
    return {"queries": _hidden(rng, shape), "keys": _hidden(rng, shape),
            "query_gain": draw_gain(rng, size), "key_gain": draw_gain(rng, size), "heads": heads,
            **_epsilon(rng)}


def _fold(rng):
    shape = draw_shape(rng, 2)
    inputs = {"weight": rng.normal(0.5, 2, shape), "bias": rng.normal(1, 2, shape[0])}
    return single(inputs) if rng.random() < 0.2 else inputs


def _convert(rng):
    dtype = rng.choice([np.float16, np.float32, np.float64])
    return {"weight": rng.normal(0, 2, draw_shape(rng, 1)).astype(dtype),
            "to": str(rng.choice(["plain", "one-plus"]))}


def _decay(rng):
    return {"width": int(rng.integers(3, 9)), "vocabulary": int(rng.integers(9, 20)),
            "also": str(rng.choice(["nothing", "a frozen map", "a shared matrix"])),
            "parts": " ".join(rng.choice(["map", "map-and-bias", "scale", "norm"], 8))}


GENERATORS = {
    "rms_norm": _rms_norm,
    "rms_norm_backward": _backward,
    "RMSNorm": _module,
    "qk_norm": _qk_norm,
    "fold_centering": _fold,
    "convert_gain": _convert,
    "decay_groups": _decay,
}
