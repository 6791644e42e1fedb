"""The inputs of chapter 3's exercises."""

import numpy as np

from lnres_utils.checking import Case

SCALE, OFFSET = 3, 1  # of hidden states: neither normalized nor centered


def hidden_states(rng, shape):
    return SCALE * rng.normal(size=shape) + OFFSET


def _inputs(rng, shape, task="forward", attention="active", feed_forward="active", scale=1):
    return {"task": task, "attention": attention, "feed_forward": feed_forward,
            "x": scale * hidden_states(rng, shape), "seed": int(rng.integers(2**31))}


def block(rng):
    """Each part alone, both together at two scales, the gradient, and both modes."""
    def case(group, shape, **more):
        return Case(group, _inputs(rng, shape, **more))

    return [
        case("whole block", (2, 3, 9)),
        case("whole block", (3, 4, 8), scale=10),
        case("whole block", (2, 4, 11), attention="constant", feed_forward="constant"),
        case("whole block", (4, 2, 10), attention="zero", feed_forward="zero"),
        case("attention", (3, 2, 9), feed_forward="zero"),
        case("attention", (2, 5, 12), feed_forward="zero"),
        case("feed-forward", (4, 3, 11), attention="zero"),
        case("feed-forward", (3, 5, 8), attention="zero"),
        case("gradient", (2, 4, 12), task="gradient"),
        case("both modes", (3, 4, 8), task="modes"),
    ]


def deepnorm(rng):
    """The same with an alpha that is neither 1 nor 2: its square is not its double."""
    alphas = 1 + np.array([0.6, 1.6, 0.8, 1.4, 0.7, 1.7, 0.9, 1.5, 1.3, 0.5])
    return [Case(case.group, {**case.inputs, "alpha": float(alpha)})
            for case, alpha in zip(block(rng), alphas, strict=True)]


def stack(rng):
    def case(group, shape, depth, task="forward"):
        inputs = {"task": task, "x": hidden_states(rng, shape), "depth": depth,
                  "seed": int(rng.integers(2**31))}
        return Case(group, {**inputs, "rate": 0.1} if task == "train" else inputs)

    return [
        case("output", (2, 3, 5), 3),
        case("output", (3, 4, 6), 1),
        case("output", (3, 2, 7), 4),
        case("states", (2, 4, 6), 3, "states"),
        case("states", (3, 2, 5), 2, "states"),
        case("gradient", (2, 4, 5), 3, "gradient"),
        case("training", (4, 3, 6), 3, "train"),
    ]


def warmup(rng):
    def case(group, step, warmup):
        return Case(group, {"step": step, "peak": float(rng.uniform(0.1, 0.9)), "warmup": warmup})

    long = int(rng.integers(6, 12))
    return [
        case("warm-up", 1, long),
        case("warm-up", long // 2, long),
        case("warm-up", long, long),
        case("warm-up", 3, long + 5),
        case("after", long + 1, long),
        case("after", 4 * long, long),
        case("after", 7, 1),
        case("no warm-up", 1, 0),
        case("no warm-up", 9, 0),
        case("arrays", np.arange(1, 2 * long), long),
        case("arrays", rng.integers(1, 30, (2, 5)), long + 3),
        case("arrays", np.arange(1, 6), 0),
    ]
