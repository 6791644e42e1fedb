"""Random legal inputs of the exercises of chapter 5."""

import numpy as np

from lnres_utils import specs

EPSILONS = (None, 1e-5, 1e-3, 0.1)


def _one_case(name):
    """The inputs of one case: boxes are drawn by the exercise itself, in random order."""
    return lambda rng: specs.get(name).cases(rng)[0].inputs


def _epsilon(rng, *others):
    eps = rng.choice(np.array([*EPSILONS, *others], object))
    return {} if eps is None else {"eps": float(eps)}


def _masked(rng):
    batch, tokens, width = rng.integers(2, 7, 3)
    x = rng.normal(rng.normal(0, 3), 10 ** rng.uniform(-1, 1), (batch, tokens, width))
    mask = rng.random((batch, tokens)) < rng.choice([0.3, 0.7, 1.0])
    if rng.random() < 0.5:
        mask = np.arange(tokens) < rng.integers(0, tokens + 1, batch)[:, None]
    if rng.random() < 0.3:
        x[~mask] = 0
    return {"x": x, "mask": mask, "kind": str(rng.choice(["batch", "instance"])),
            **_epsilon(rng)}


def _half(rng):
    shape = tuple(rng.integers(2, 9, rng.integers(1, 4)))
    size = 10 ** rng.uniform(-2, 3.5)
    x = rng.normal(size * rng.normal(0, 1), size, shape)
    if rng.random() < 0.2:
        x = np.full(shape, rng.choice([0, 4.5, -3]))
    return {"x": x.astype(np.float16),
            "gamma": (rng.uniform(0.2, 2, shape[-1]) * rng.choice([-1, 1])).astype(np.float16),
            "beta": rng.normal(0, 1, shape[-1]).astype(np.float16), **_epsilon(rng, 1e-8)}


GENERATORS = {
    "masked_norm": _masked,
    "half_layer_norm": _half,
    **{name: _one_case(name) for name in ("mixes_examples", "leaks_future", "norm_test")},
}
