"""Right detectors of a block's norm order: four questions, each asked in several ways."""

from itertools import product

import numpy as np


def _states(block, tokens=6, seed=0):
    return np.random.default_rng(seed).normal(1, 3, size=(2, tokens, block.width))


def _through_divided(block):
    x = _states(block)
    return np.allclose(block(1e4 * x) / 1e4, x, atol=0.01)


def _through_by_size(block):
    x = 1e5 * _states(block, tokens=4)
    return np.linalg.norm(block(x)) > 0.5 * np.linalg.norm(x)


def _through_by_gradient(block):
    x = 1e5 * _states(block)
    dy = np.random.default_rng(1).normal(size=x.shape)
    return np.allclose(block.vjp(x, dy), dy, atol=0.01)  # the Jacobian of the skip is one


def _hidden_by_size(block):
    x = _states(block)
    larger = np.concatenate([5 * x[:, :-1], x[:, -1:]], axis=1)
    return np.allclose(block(larger)[:, -1], block(x)[:, -1], atol=1e-3)


def _hidden_from_the_first(block):
    x = 3 * _states(block, tokens=5, seed=2)
    factors = np.array([1.0, 2.0, 7.0, 0.5, 3.0])[:, None]
    return np.abs(block(factors * x) - block(x))[:, 0].max() < 1e-3


def _hidden_by_gradient(block):
    x = 10 * _states(block)
    dy = np.zeros_like(x)
    dy[:, -1] = np.random.default_rng(1).normal(size=x[:, -1].shape)
    along = (block.vjp(x, dy) * x).sum(-1)[:, :-1]  # of each other token, along itself
    return np.abs(along).max() < 1e-3


def _same_at_two_sizes(block):
    x = _states(block)
    return np.allclose(block(10 * x) - 10 * x, block(100 * x) - 100 * x, atol=1e-4)


def _same_at_three_sizes(block):
    x = _states(block, tokens=3, seed=4)
    updates = [block(c * x) - c * x for c in (5, 50, 500)]
    return np.ptp(updates, axis=0).max() < 1e-4


def _same_by_gradient(block):
    x = 10 * _states(block)
    dy = np.random.default_rng(1).normal(size=x.shape)
    return np.abs(((block.vjp(x, dy) - dy) * x).sum(-1)).max() < 1e-4


def _sums_to_zero(block):
    x = _states(block)
    return np.abs((block(x) - x).sum(-1)).max() < 1e-6


def _has_mean_zero(block):
    x = 1000 * _states(block, tokens=2)
    return np.allclose((block(x) - x).mean(-1), 0, atol=1e-6)


def _lies_in_a_plane(block):
    x = np.random.default_rng(3).normal(1, 3, size=(40, 3, block.width))
    update = (block(x) - x).reshape(-1, block.width)
    return np.linalg.svd(update, compute_uv=False)[-1] < 1e-6


def _detector(through, hidden, same, zero):
    def norm_order(block):
        carried, unseen = through(block), hidden(block)
        if not carried:
            return "skip-from-norm" if unseen else "post"
        if not unseen:
            return "res-post"
        if same(block):
            return "parallel"
        return "sandwich" if zero(block) else "pre"

    return norm_order


QUESTIONS = (
    (_through_divided, _through_by_size, _through_by_gradient),
    (_hidden_by_size, _hidden_from_the_first, _hidden_by_gradient),
    (_same_at_two_sizes, _same_at_three_sizes, _same_by_gradient),
    (_sums_to_zero, _has_mean_zero, _lies_in_a_plane),
)
ANSWERS = {"norm_order": {
    ", ".join(each.__name__.strip("_").replace("_", " ") for each in way): _detector(*way)
    for way in list(product(*QUESTIONS))[::5]}}
