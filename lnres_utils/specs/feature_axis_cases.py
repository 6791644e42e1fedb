"""The inputs of chapter 1's exercises: each shows mistakes that others hide.

Between them the cases of an exercise have means far above and far below zero, variances around
epsilon and far over it, numbers that are all the same, and a row so wide that it has outliers.
"""

import numpy as np

from lnres_utils.checking import Case

VISIBLE_EPS = 0.1  # an epsilon that shows: the rows below have variances from far under it to over
FAR = (4.6, 0, -3.3)  # means of rows: no rounding, no absolute value and no limit leaves them alone
SAME = 4.5  # the number of a constant row; its mean is exact, so its variance is zero
WIDE = 40  # numbers of a row whose outliers come out beyond ±4


def hidden_states(rng, shape, eps=None, axis=-1, size=1):
    """Rows of standard deviation 3 with the means ``FAR``; with ``eps`` also variances around it.

    ``size`` scales it all: with 0.03 even the mean square of the whole array is below ``eps``. The
    means are far from zero only where ``eps`` and ``size`` do not ask for small numbers.
    """
    x = rng.normal(0, 3, size=shape)
    rows = np.moveaxis(x, axis, -1)  # a view: writing to it writes to x
    means = rng.normal(1, 1, rows.shape[:-1])[..., None]
    unit = 1
    if eps is not None:
        unit = np.sqrt(eps / 0.1) * size
        rows *= np.resize([1, 0.1, 0.3, 0.01], rows.shape[:-1])[..., None]
    far = FAR if unit == 1 else (0,)
    rows[...] = (rows + means) * unit + np.resize(far, rows.shape[:-1])[..., None]
    return x


def narrow(rng, shape, axis=-1):
    """Rows with the means ``FAR`` and a standard deviation of 0.01: single precision would show."""
    x = rng.normal(0, 0.01, shape)
    rows = np.moveaxis(x, axis, -1)
    rows += np.resize(FAR[::2], rows.shape[:-1])[..., None]
    return x


def with_outliers(rng, shape, axis=-1):
    """Wide rows with one number far above the others and one far below."""
    x = rng.normal(0, 0.5, shape)
    rows = np.moveaxis(x, axis, -1)
    rows[..., 3] += 8
    rows[..., -2] -= 8
    rows += np.resize(FAR[::2], rows.shape[:-1])[..., None]
    return x


def _both_signs(rng, sizes):
    return sizes * rng.permutation(np.resize([1, -1], sizes.shape))


def affine(rng, width):
    """Gains away from zero and one and biases away from zero, each of both signs."""
    gains = rng.uniform(0.3, 0.8, width)
    gains = np.where(rng.permutation(width) % 2, gains, 2 - gains)
    biases = rng.uniform(0.3, 1.7, width)
    return {"gamma": _both_signs(rng, gains), "beta": _both_signs(rng, biases)}


def plain(width):
    """A gain of one and a bias of zero: a slip in the affine part costs no other points."""
    return {"gamma": np.ones(width), "beta": np.zeros(width)}


def single(inputs):
    """The same inputs in single precision."""
    return {name: value.astype(np.float32) if isinstance(value, np.ndarray) else value
            for name, value in inputs.items()}


def standardize(rng):
    visible, zeros = {"eps": VISIBLE_EPS}, np.zeros(6)

    def case(size, **eps):
        variance = eps.get("eps", 1e-5)
        return {"x": rng.normal(2, 1, size) * np.sqrt(variance), **eps}

    def vector(size, mean):
        x = rng.normal(0, 3, size)
        return Case("values", {"x": x - x.mean() + mean, "eps": 1e-5})

    return [
        Case("small variance", case(6, **visible)),
        Case("small variance", {"x": rng.normal(0.05, 0.03, 5), **visible}),
        Case("small variance", {"x": np.full(6, SAME), **visible}),
        Case("small variance", {"x": zeros, **visible}),
        vector(7, FAR[0]),
        vector(5, FAR[-1]),
        Case("values", {"x": narrow(rng, 6), "eps": 1e-5}),
        Case("values", {"x": with_outliers(rng, WIDE), "eps": 1e-5}),
        Case("default epsilon", case(6)),
        Case("default epsilon", {"x": zeros}),
    ]


def layer_norm(rng):
    visible = {"eps": VISIBLE_EPS}
    square = {**affine(rng, 4), "x": hidden_states(rng, (4, 4, 4), 1e-5, size=0.03)}
    one_constant = hidden_states(rng, (3, 4, 6), VISIBLE_EPS)
    one_constant[1, 2] = SAME
    zeros, cube = np.zeros((2, 3, 5)), np.zeros((4, 4, 4))

    def values(x):
        return Case("values", {"x": x, **plain(x.shape[-1]), "eps": 1e-5})

    def other_rank(*shape):
        x = hidden_states(rng, shape, VISIBLE_EPS)
        return Case("other ranks", {"x": x, **affine(rng, shape[-1]), **visible})

    return [
        Case("small variance", {"x": one_constant, **plain(6), **visible}),
        Case("small variance", {"x": hidden_states(rng, (2, 4, 5), VISIBLE_EPS, size=0.03),
                                **plain(5), **visible}),
        Case("small variance", {"x": zeros, **plain(5), **visible}),
        values(hidden_states(rng, (2, 3, 5))),
        values(narrow(rng, (3, 2, 6))),
        values(with_outliers(rng, (2, 3, WIDE))),
        Case("gain and bias", {"x": hidden_states(rng, (3, 2, 5)), **affine(rng, 5), "eps": 1e-5}),
        Case("default epsilon", {"x": hidden_states(rng, (2, 4, 5), 1e-5), **plain(5)}),
        Case("default epsilon", {"x": zeros, **plain(5)}),
        other_rank(7),
        other_rank(4, 6),
        other_rank(2, 3, 4, 5),
        Case("float32", single({**affine(rng, 7), **visible,
                                 "x": hidden_states(rng, (2, 3, 7), VISIBLE_EPS)})),
        Case("", {"x": hidden_states(rng, (5, 5, 5), VISIBLE_EPS), **affine(rng, 5), **visible},
             judged=False),
        Case("", {"x": hidden_states(rng, (4, 4, 4), VISIBLE_EPS, size=0.03), **affine(rng, 4),
                  **visible}, judged=False),
        Case("", single(square), judged=False),
        Case("", {"x": cube, **plain(4), **visible}, judged=False),
        Case("", {"x": cube, **plain(4)}, judged=False),
    ]


def _sharing(rng, kind, shape, groups, make):
    """``make(rng, shape)`` gives rows; here they lie where ``kind`` has one mean for each row."""
    batch, tokens, width = shape
    if kind == "layer":
        return make(rng, shape)
    if kind == "batch":
        return make(rng, (width, batch * tokens)).T.reshape(shape)
    if kind == "instance":
        return make(rng, (batch, width, tokens)).transpose(0, 2, 1)
    rows = make(rng, (batch, groups, tokens * width // groups))
    return rows.reshape(batch, groups, tokens, -1).transpose(0, 2, 1, 3).reshape(shape)


def axis_norm(rng):
    visible = {"groups": 1, "eps": VISIBLE_EPS}

    def case(group, shape, kind, size=1, judged=True, **more):
        eps = more.get("eps", 1e-5)
        x = hidden_states(rng, shape, eps, size=size)
        apart = rng.normal(0, 0.05, shape[-1]) + rng.normal(0, 0.05, (shape[0], 1, 1))
        x += apart * np.sqrt(eps / 0.1) * size
        return Case(group, {"x": x, "kind": kind, **more}, judged=judged)

    def shared(kind, shape, make, groups=1, eps=VISIBLE_EPS):
        x = np.ascontiguousarray(_sharing(rng, kind, shape, groups, make))
        return Case(kind, {"x": x, "kind": kind, "groups": groups, "eps": eps})

    def mixed(rng, shape):
        rows = hidden_states(rng, shape, VISIBLE_EPS)
        rows.reshape(-1, shape[-1])[1] = SAME
        return rows

    kinds = ("layer", "batch", "instance", "group")
    wide = {"layer": (2, 3, WIDE), "batch": (5, 8, 3), "instance": (2, WIDE, 3),
            "group": (2, 10, 12)}
    zeros = {"x": np.zeros((2, 3, 4))}
    return [
        case("layer", (2, 3, 6), "layer", **visible),
        case("batch", (3, 4, 5), "batch", **visible),
        case("instance", (3, 4, 6), "instance", **visible),
        case("group", (2, 3, 12), "group", groups=3, eps=VISIBLE_EPS),
        case("group", (3, 2, 10), "group", groups=2, eps=VISIBLE_EPS),
        case("group", (2, 5, 6), "group", **visible),
        *(shared(kind, (2, 3, 6), mixed, 2 if kind == "group" else 1) for kind in kinds),
        *(shared(kind, wide[kind], with_outliers, 3 if kind == "group" else 1, 1e-5)
          for kind in kinds),
        *(shared(kind, (2, 5, 6), narrow, 2 if kind == "group" else 1, 1e-5) for kind in kinds),
        *(Case(kind, {**zeros, "kind": kind, **visible}) for kind in kinds),
        *(case("defaults", (2, 4, 6), kind) for kind in kinds),
        *(Case("defaults", {**zeros, "kind": kind}) for kind in kinds),
        *(case("", (3, 4, 6), kind, size=0.03, judged=False, **visible) for kind in kinds),
    ]


def channel_norm(rng):
    def case(group, shape, eps=None, size=1, gain=None, judged=True):
        variance = 1e-5 if eps is None else eps
        x = hidden_states(rng, shape, variance, axis=1, size=size)
        x += rng.normal(0, 0.05, (1, shape[1], 1, 1)) * np.sqrt(variance / 0.1) * size
        values = {"x": x, **(gain or affine(rng, shape[1]))}
        return Case(group, values if eps is None else {**values, "eps": eps}, judged=judged)

    def values(x, eps=1e-5):
        return Case("values", {"x": x, **plain(x.shape[1]), "eps": eps})

    one_constant = hidden_states(rng, (2, 5, 3, 4), VISIBLE_EPS, axis=1)
    one_constant[1, :, 2, 1] = SAME
    zeros = {"x": np.zeros((2, 5, 3, 4)), **plain(5)}
    cube = {"x": np.zeros((4, 4, 4, 4)), **plain(4)}
    return [
        case("values", (3, 6, 2, 4), VISIBLE_EPS, gain=plain(6)),
        values(one_constant, VISIBLE_EPS),
        values(narrow(rng, (2, 6, 2, 3), axis=1)),
        values(with_outliers(rng, (2, WIDE, 2, 3), axis=1)),
        values(zeros["x"], VISIBLE_EPS),
        case("gain and bias", (2, 5, 3, 4), VISIBLE_EPS),
        case("default epsilon", (2, 7, 3, 4), gain=plain(7)),
        Case("default epsilon", zeros),
        case("", (2, 5, 3, 4), VISIBLE_EPS, size=0.03, gain=plain(5), judged=False),
        case("", (5, 5, 5, 5), VISIBLE_EPS, judged=False),
        case("", (4, 4, 4, 4), VISIBLE_EPS, size=0.03, judged=False),
        case("", (4, 4, 4, 4), judged=False),
        Case("", {**cube, "eps": VISIBLE_EPS}, judged=False),
        Case("", cube, judged=False),
    ]


def backward(rng):
    def inputs(shape, eps, x=None):
        values = {"dy": rng.normal(size=shape), "x": hidden_states(rng, shape, eps),
                  "gamma": affine(rng, shape[-1])["gamma"]}
        values = values if x is None else {**values, "x": x}
        return values if eps is None else {**values, "eps": eps}

    first, second = inputs((3, 4, 6), VISIBLE_EPS), inputs((2, 3, 4, 5), VISIBLE_EPS)
    first["x"][1, 2] = SAME
    wide = inputs((3, WIDE), 1e-5, with_outliers(rng, (3, WIDE)))
    close = inputs((4, 6), 1e-5, narrow(rng, (4, 6)))
    vector, matrix = inputs((7,), VISIBLE_EPS), inputs((4, 7), VISIBLE_EPS)
    small = inputs((2, 3, 5), None, hidden_states(rng, (2, 3, 5), 1e-5))
    groups = (("dx", "dx"), ("dgamma", "dgamma"), ("dbeta", "dbeta"))
    return [
        *(Case(group, first, only=(name,)) for group, name in groups),
        *(Case("other ranks", each) for each in (second, matrix, vector, wide, close)),
        Case("default epsilon", small),
        Case("default epsilon", inputs((2, 3, 5), None, np.zeros((2, 3, 5)))),
        Case("", inputs((5, 5, 5), VISIBLE_EPS), judged=False),
    ]


def module(rng):
    def inputs(task, x, **eps):
        gain = affine(rng, x.shape[-1])
        return {"task": task, "x": x, "weight": gain["gamma"], "bias": gain["beta"],
                "dy": rng.normal(size=x.shape), "rate": 0.2, **eps}

    visible, zeros = {"eps": VISIBLE_EPS}, np.zeros((2, 3, 5))

    def states(*shape):
        return hidden_states(rng, shape, VISIBLE_EPS)

    one_constant = states(3, 4, 2, 6)
    one_constant[1, 2, 0] = SAME
    return [
        Case("state_dict", inputs("state", states(2, 3, 6), **visible)),
        Case("forward", inputs("forward", states(2, 3, 5), **visible)),
        Case("forward", inputs("forward", one_constant, **visible)),
        Case("forward", inputs("forward", states(7), **visible)),
        Case("forward", inputs("forward", states(4, 6), **visible)),
        Case("forward", inputs("forward", narrow(rng, (3, 4, 6)), eps=1e-5)),
        Case("forward", inputs("forward", with_outliers(rng, (2, 3, WIDE)), eps=1e-5)),
        Case("forward", inputs("forward", zeros, **visible)),
        Case("forward", inputs("eval", states(3, 2, 5), **visible)),
        Case("forward", single(inputs("forward", states(2, 3, 5), **visible))),
        Case("as built", inputs("fresh", states(3, 4, 2, 6), **visible)),
        Case("as built", inputs("fresh", hidden_states(rng, (3, 2, 5), 1e-5))),
        Case("as built", inputs("fresh", zeros, **visible)),
        Case("as built", inputs("fresh", zeros)),
        Case("as built", single(inputs("fresh", states(2, 4, 6), **visible))),
        Case("gradient", inputs("backward", states(2, 4, 5), **visible)),
        Case("training", inputs("train", states(4, 2, 6), **visible)),
        Case("", inputs("fresh", hidden_states(rng, (2, 4, 5), VISIBLE_EPS, size=0.03), **visible),
             judged=False),
        Case("", inputs("forward", hidden_states(rng, (3, 2, 5), 1e-5)), judged=False),
    ]
