"""What random legal inputs of several chapters are made of."""

import numpy as np


def draw_epsilon(rng, values):
    """One of the values as the argument ``eps``; None leaves it to its default."""
    eps = values[rng.integers(len(values))]
    return {} if eps is None else {"eps": eps}


def draw_shape(rng, rank):
    """Small sizes; now and then all the same, which is legal, too."""
    if rng.random() < 0.25:
        return (int(rng.integers(2, 6)),) * rank
    return tuple(int(size) for size in rng.integers(2, 8 if rank > 1 else 33, rank))


def draw_gain(rng, width):
    """Gains of both signs, away from zero."""
    return rng.uniform(0.2, 2, width) * rng.choice([-1, 1], width)


def single(inputs):
    """The same inputs in single precision."""
    return {name: value.astype(np.float32) if isinstance(value, np.ndarray) else value
            for name, value in inputs.items()}
