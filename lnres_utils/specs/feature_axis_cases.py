"""The inputs of chapter 1's exercises: each shows mistakes that others hide."""

import numpy as np

from lnres_utils.checking import Case

VISIBLE_EPS = 0.1  # an epsilon that shows: the rows below have variances from far under it to over


def hidden_states(rng, shape, eps=None, axis=-1, size=1):
    """Rows with mean 2 and standard deviation 3; with ``eps`` also rows of variance around it.

    ``size`` scales it all: with 0.03 even the mean square of the whole array is below ``eps``.
    """
    x = rng.normal(2, 3, size=shape)
    if eps is None:
        return x
    rows = np.moveaxis(x, axis, -1)  # a view: writing to it writes to x
    scales = np.resize([1, 0.1, 0.3, 0.01], rows.shape[:-1])[..., None]
    means = rng.normal(1, 1, rows.shape[:-1])[..., None]
    rows[...] = ((rows - 2) * scales + means) * np.sqrt(eps / 0.1) * size
    return x


def affine(rng, width):
    """A gain away from one and a bias away from zero and from the gain."""
    return {"gamma": rng.uniform(0.4, 2, width), "beta": rng.uniform(-1.5, 1.5, width) + 0.2}


def plain(width):
    """A gain of one and a bias of zero: a slip in the affine part costs no other points."""
    return {"gamma": np.ones(width), "beta": np.zeros(width)}


def standardize(rng):
    def case(size, **eps):
        variance = eps.get("eps", 1e-5)
        return {"x": rng.normal(2, 1, size) * np.sqrt(variance), **eps}

    return [
        Case("small variance", case(6, eps=VISIBLE_EPS)),
        Case("small variance", {"x": rng.normal(0.05, 0.03, 5), "eps": VISIBLE_EPS}),
        Case("values", {"x": hidden_states(rng, 7), "eps": 1e-5}),
        Case("default epsilon", case(6)),
    ]


def layer_norm(rng):
    visible = {"eps": VISIBLE_EPS}
    single = {**affine(rng, 7), "x": hidden_states(rng, (2, 3, 7), VISIBLE_EPS)}
    single = {name: value.astype(np.float32) for name, value in single.items()}
    square = {**affine(rng, 4), "x": hidden_states(rng, (4, 4, 4), 1e-5, size=0.03)}
    square = {name: value.astype(np.float32) for name, value in square.items()}

    def other_rank(*shape):
        x = hidden_states(rng, shape, VISIBLE_EPS)
        return Case("other ranks", {"x": x, **affine(rng, shape[-1]), **visible})

    return [
        Case("small variance", {"x": hidden_states(rng, (3, 4, 6), VISIBLE_EPS), **plain(6),
                                **visible}),
        Case("small variance", {"x": hidden_states(rng, (2, 4, 5), VISIBLE_EPS, size=0.03),
                                **plain(5), **visible}),
        Case("values", {"x": hidden_states(rng, (2, 3, 5)), **plain(5), "eps": 1e-5}),
        Case("gain and bias", {"x": hidden_states(rng, (3, 2, 5)), **affine(rng, 5), "eps": 1e-5}),
        Case("default epsilon", {"x": hidden_states(rng, (2, 4, 5), 1e-5), **plain(5)}),
        other_rank(7),
        other_rank(4, 6),
        other_rank(2, 3, 4, 5),
        Case("float32", {**single, **visible}),
        Case("", {"x": hidden_states(rng, (5, 5, 5), VISIBLE_EPS), **affine(rng, 5), **visible},
             judged=False),
        Case("", {"x": hidden_states(rng, (4, 4, 4), VISIBLE_EPS, size=0.03), **affine(rng, 4),
                  **visible}, judged=False),
        Case("", square, judged=False),
    ]


def axis_norm(rng):
    def case(group, shape, kind, size=1, judged=True, **more):
        eps = more.get("eps", 1e-5)
        x = hidden_states(rng, shape, eps, size=size)
        apart = rng.normal(0, 0.05, shape[-1]) + rng.normal(0, 0.05, (shape[0], 1, 1))
        x += apart * np.sqrt(eps / 0.1) * size
        return Case(group, {"x": x, "kind": kind, **more}, judged=judged)

    visible = {"groups": 1, "eps": VISIBLE_EPS}
    return [
        case("layer", (2, 3, 6), "layer", **visible),
        case("batch", (3, 4, 5), "batch", **visible),
        case("instance", (3, 4, 6), "instance", **visible),
        case("group", (2, 3, 12), "group", groups=3, eps=VISIBLE_EPS),
        case("group", (3, 2, 10), "group", groups=2, eps=VISIBLE_EPS),
        case("group", (2, 5, 6), "group", **visible),
        case("layer", (3, 2, 5), "layer"),
        *(case("", (3, 4, 6), kind, size=0.03, judged=False, **visible)
          for kind in ("layer", "batch", "instance", "group")),
        *(case("", (2, 4, 5), kind, judged=False) for kind in ("batch", "instance")),
    ]


def channel_norm(rng):
    def case(group, shape, eps=None, size=1, gain=None, judged=True):
        variance = 1e-5 if eps is None else eps
        x = hidden_states(rng, shape, variance, axis=1, size=size)
        x += rng.normal(0, 0.05, (1, shape[1], 1, 1)) * np.sqrt(variance / 0.1) * size
        values = {"x": x, **(gain or affine(rng, shape[1]))}
        return Case(group, values if eps is None else {**values, "eps": eps}, judged=judged)

    return [
        case("values", (3, 6, 2, 4), VISIBLE_EPS, gain=plain(6)),
        case("gain and bias", (2, 5, 3, 4), VISIBLE_EPS),
        case("default epsilon", (2, 7, 3, 4), gain=plain(7)),
        case("", (2, 5, 3, 4), VISIBLE_EPS, size=0.03, gain=plain(5), judged=False),
        case("", (5, 5, 5, 5), VISIBLE_EPS, judged=False),
        case("", (4, 4, 4, 4), VISIBLE_EPS, size=0.03, judged=False),
        case("", (4, 4, 4, 4), judged=False),
    ]


def backward(rng):
    def inputs(shape, eps):
        return {"dy": rng.normal(size=shape), "x": hidden_states(rng, shape, eps),
                "gamma": affine(rng, shape[-1])["gamma"], "eps": eps}

    default = inputs((2, 3, 5), 1e-5)
    del default["eps"]
    first, second = inputs((3, 4, 6), VISIBLE_EPS), inputs((2, 3, 4, 5), VISIBLE_EPS)
    groups = (("dx", "dx"), ("dgamma", "dgamma"), ("dbeta", "dbeta"))
    return [
        *(Case(group, first, only=(name,)) for group, name in groups),
        *(Case("other ranks", each) for each in (second, inputs((4, 7), VISIBLE_EPS))),
        Case("default epsilon", default),
        Case("", inputs((5, 5, 5), VISIBLE_EPS), judged=False),
    ]


def module(rng):
    def inputs(task, shape, eps, size=1, **values):
        gain = affine(rng, shape[-1])
        return {"task": task, "x": hidden_states(rng, shape, eps, size=size),
                "weight": gain["gamma"], "bias": gain["beta"], "dy": rng.normal(size=shape),
                "rate": 0.2, "eps": eps, **values}

    def default(task):
        case = inputs(task, (3, 2, 5), 1e-5)
        del case["eps"]
        return case

    return [
        Case("state_dict", inputs("state", (2, 3, 6), VISIBLE_EPS)),
        Case("forward", inputs("forward", (2, 3, 5), VISIBLE_EPS)),
        Case("forward", inputs("forward", (3, 4, 2, 6), VISIBLE_EPS)),
        Case("as built", inputs("fresh", (3, 4, 2, 6), VISIBLE_EPS)),
        Case("as built", default("fresh")),
        Case("gradient", inputs("backward", (2, 4, 5), VISIBLE_EPS)),
        Case("training", inputs("train", (4, 2, 6), VISIBLE_EPS)),
        Case("", inputs("fresh", (2, 4, 5), VISIBLE_EPS, size=0.03), judged=False),
        Case("", default("forward"), judged=False),
    ]
