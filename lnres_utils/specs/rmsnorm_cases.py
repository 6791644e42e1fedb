"""The inputs of chapter 4's exercises: rows whose mean square is near epsilon, and far means.

What half precision rounds is drawn away from the middle between two numbers of that precision:
there the last bit of float32 arithmetic, which is free, would decide.
"""

import numpy as np

from lnres_utils.checking import Case
from lnres_utils.specs import decay_family
from lnres_utils.specs.feature_axis_cases import (
    SAME,
    VISIBLE_EPS,
    WIDE,
    affine,
    hidden_states,
    narrow,
    single,
    with_outliers,
)

HUGE = 1e25  # float64 holds the squares of such numbers, float32 does not
MARGIN = 0.02  # of the distance between two half-precision numbers; float32 errs by a thousandth


def near_epsilon(rng, shape, eps=VISIBLE_EPS):
    """Rows with means away from zero whose mean squares lie from far under epsilon to over it."""
    rows = rng.normal(0.5, 1, shape) + rng.normal(0.5, 0.5, shape[:-1])[..., None]
    return rows * np.sqrt(eps) * np.resize([1, 0.1, 0.3, 2], shape[:-1])[..., None]


def _gain(rng, width):
    return affine(rng, width)["gamma"]


def rms_norm(rng):
    visible = {"eps": VISIBLE_EPS}
    zeros = {"x": np.zeros((2, 3, 5)), "gamma": np.ones(5)}
    one_constant = near_epsilon(rng, (3, 4, 6))
    one_constant[1, 2], one_constant[0, 1] = SAME, 0

    def values(x):
        return Case("values", {"x": x, "gamma": np.ones(x.shape[-1]), "eps": 1e-6})

    def with_gain(group, x, judged=True, **eps):
        return Case(group, {"x": x, "gamma": _gain(rng, x.shape[-1]), **eps}, judged=judged)

    def small(*shape):
        return {"x": near_epsilon(rng, shape, 1e-6), "gamma": np.ones(shape[-1])}

    return [
        Case("small vectors", {"x": one_constant, "gamma": np.ones(6), **visible}),
        Case("small vectors", {"x": near_epsilon(rng, (2, 4, 5)), "gamma": np.ones(5), **visible}),
        Case("small vectors", {"x": 0.03 * near_epsilon(rng, (3, 2, 4)), "gamma": np.ones(4),
                               **visible}),
        Case("small vectors", {**zeros, **visible}),
        values(hidden_states(rng, (2, 3, 5))),
        values(narrow(rng, (3, 2, 6))),
        values(with_outliers(rng, (2, 3, WIDE))),
        values(HUGE * hidden_states(rng, (2, 3, 4))),
        with_gain("gain", hidden_states(rng, (3, 2, 5)), eps=1e-6),
        Case("default epsilon", small(2, 4, 5)),
        Case("default epsilon", single(small(3, 2, 6))),
        Case("default epsilon", zeros),
        with_gain("other ranks", near_epsilon(rng, (7,)), **visible),
        with_gain("other ranks", near_epsilon(rng, (4, 6)), **visible),
        with_gain("other ranks", near_epsilon(rng, (2, 3, 4, 5)), **visible),
        Case("float32", single({"x": near_epsilon(rng, (2, 3, 7)), "gamma": _gain(rng, 7),
                                **visible})),
        with_gain("", hidden_states(rng, (5, 5, 5)), judged=False, **visible),
        with_gain("", near_epsilon(rng, (4, 4, 4)), judged=False, **visible),
        with_gain("", near_epsilon(rng, (4, 4, 4), 1e-6), judged=False),
        Case("", single({"x": near_epsilon(rng, (4, 4, 4), 1e-6), "gamma": _gain(rng, 4)}),
             judged=False),
        with_gain("", np.zeros((4, 4, 4)), judged=False, **visible),
        with_gain("", np.zeros((4, 4, 4)), judged=False),
    ]


def rms_norm_backward(rng):
    def inputs(x, eps=VISIBLE_EPS):
        values = {"dy": rng.normal(size=x.shape), "x": x, "gamma": _gain(rng, x.shape[-1])}
        return values if eps is None else {**values, "eps": eps}

    first = inputs(near_epsilon(rng, (3, 4, 6)))
    first["x"][1, 2], first["x"][0, 1] = SAME, 0
    return [
        *(Case(name, first, only=(name,)) for name in ("dx", "dgamma")),
        *(Case("other ranks", inputs(near_epsilon(rng, shape)))
          for shape in ((2, 3, 4, 5), (4, 7), (7,))),
        Case("other ranks", inputs(with_outliers(rng, (3, WIDE)), 1e-6)),
        Case("other ranks", inputs(narrow(rng, (4, 6)), 1e-6)),
        Case("default epsilon", inputs(near_epsilon(rng, (2, 3, 5), 1e-6), None)),
        Case("default epsilon", inputs(np.zeros((2, 3, 5)), None)),
        Case("", inputs(near_epsilon(rng, (5, 5, 5))), judged=False),
    ]


def _rounds_clearly(exact):
    """For each row, whether float16 rounds all its numbers the same after a small error."""
    spacing = np.spacing(np.abs(exact).astype(np.float16)).astype(float)
    place = np.abs(exact) / spacing % 1
    return (np.abs(place - 0.5) > MARGIN).all(-1)


def large_rows(rng, shape, weight):
    """float16 rows whose squares overflow float16, and whose outputs round clearly."""
    x = np.zeros(shape)
    todo = np.ones(shape[:-1], bool)
    while todo.any():
        x[todo] = rng.normal(300, 500, (todo.sum(), shape[-1])).astype(np.float16)
        exact = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + VISIBLE_EPS)
        overflow = np.abs(x).max(-1) > 300
        todo = ~(overflow & _rounds_clearly(exact * weight) & _rounds_clearly(exact))
    return x


def module(rng):
    def inputs(task, x, **more):
        return {"task": task, "x": x, "weight": _gain(rng, x.shape[-1]),
                "dy": rng.normal(size=x.shape), "rate": 0.2, **more}

    def half(group, dtype, weights, shape):
        weight = np.round(_gain(rng, shape[-1]) * 64) / 64  # a number of every half type
        x = large_rows(rng, shape, weight)
        x = x if dtype == "float16" else np.round(x / 8) * 8
        return Case(group, single({"task": "half", "dtype": dtype, "weights": weights, "x": x,
                                   "weight": weight, "eps": VISIBLE_EPS}))

    visible, zeros = {"eps": VISIBLE_EPS}, np.zeros((2, 3, 5))
    one_constant = near_epsilon(rng, (3, 4, 2, 6))
    one_constant[1, 2, 0], one_constant[0, 1, 1] = SAME, 0
    return [
        Case("state_dict", inputs("state", near_epsilon(rng, (2, 3, 6)), **visible)),
        Case("forward", inputs("forward", near_epsilon(rng, (2, 3, 5)), **visible)),
        Case("forward", inputs("forward", one_constant, **visible)),
        Case("forward", inputs("forward", near_epsilon(rng, (7,)), **visible)),
        Case("forward", inputs("forward", hidden_states(rng, (4, 6)), **visible)),
        Case("forward", inputs("forward", narrow(rng, (3, 4, 6)), eps=1e-6)),
        Case("forward", inputs("forward", with_outliers(rng, (2, 3, WIDE)), eps=1e-6)),
        Case("forward", inputs("forward", HUGE * hidden_states(rng, (3, 2, 4)), eps=1e-6)),
        Case("forward", inputs("forward", zeros, **visible)),
        Case("forward", inputs("eval", near_epsilon(rng, (3, 2, 5)), **visible)),
        Case("forward", single(inputs("forward", near_epsilon(rng, (2, 3, 5)), **visible))),
        Case("as built", inputs("fresh", near_epsilon(rng, (3, 4, 2, 6)), **visible)),
        Case("as built", inputs("fresh", near_epsilon(rng, (3, 2, 5), 1e-6))),
        Case("as built", single(inputs("fresh", near_epsilon(rng, (2, 4, 6), 1e-6)))),
        Case("as built", inputs("fresh", zeros, **visible)),
        Case("as built", inputs("fresh", zeros)),
        half("float16", "float16", "float32", (3, 2, 7)),
        half("float16", "float16", "float16", (2, 4, 6)),
        half("bfloat16", "bfloat16", "float32", (2, 3, 7)),
        half("bfloat16", "bfloat16", "bfloat16", (4, 2, 5)),
        Case("gradient", inputs("backward", near_epsilon(rng, (2, 4, 5)), **visible)),
        Case("training", inputs("train", near_epsilon(rng, (4, 2, 6)), **visible)),
        Case("", inputs("forward", near_epsilon(rng, (3, 2, 5), 1e-6)), judged=False),
    ]


def qk_norm(rng):
    """Heads of different sizes, whose root mean squares differ by factors of ten."""
    def inputs(shape, heads, size=1.0, eps=1e-6):
        width = shape[-1]
        sizes = np.repeat(np.resize([1, 10, 0.1], heads), width // heads)
        values = {name: rng.normal(0.5, 1, shape) * size * sizes for name in ("queries", "keys")}
        values |= {f"{name}_gain": _gain(rng, width // heads) for name in ("query", "key")}
        return {**values, "heads": heads} | ({} if eps is None else {"eps": eps})

    def only(group, values, judged=True):
        return Case(group, values, only=(group,) if group in ("queries", "keys") else (),
                    judged=judged)

    plain = inputs((2, 3, 12), 4)
    plain |= {"query_gain": np.ones(3), "key_gain": np.ones(3)}
    two = inputs((3, 2, 10), 2)
    return [
        only("queries", plain), only("keys", plain),
        Case("gains", two), Case("gains", inputs((2, 4, 15), 3)),
        Case("gains", inputs((4, 3, 7), 1)),
        Case("small vectors", inputs((2, 5, 12), 3, size=0.3, eps=VISIBLE_EPS)),
        Case("small vectors", {**inputs((2, 3, 8), 2, eps=VISIBLE_EPS),
                               "queries": np.zeros((2, 3, 8))}),
        Case("small vectors", inputs((2, 3, 10), 2, size=3e-3, eps=VISIBLE_EPS)),
        Case("default epsilon", inputs((3, 4, 10), 2, size=1e-3, eps=None)),
        Case("default epsilon", {**inputs((3, 4, 10), 2, eps=None), "keys": np.zeros((3, 4, 10))}),
        Case("", inputs((4, 4, 16), 4, size=0.3, eps=VISIBLE_EPS), judged=False),
        Case("", inputs((4, 4, 16), 4, size=1e-3, eps=None), judged=False),
        Case("", {**inputs((4, 4, 16), 4, eps=VISIBLE_EPS), "keys": np.zeros((4, 4, 16))},
             judged=False),
    ]


def fold_centering(rng):
    def inputs(out, fan_in):
        return {"weight": rng.normal(0.5, 1, (out, fan_in)) + rng.normal(size=(1, fan_in)),
                "bias": rng.normal(1, 2, out)}

    tall, flat = inputs(7, 4), inputs(5, 9)
    return [
        *(Case(name, values, only=(name,)) for values in (tall, flat)
          for name in ("weight", "bias")),
        Case("float32", single(inputs(6, 10))),
        Case("", single(inputs(6, 6)), judged=False),
    ]


def convert_gain(rng):
    """Weights of either kind; float16 has too few digits for 1 + w and g - 1."""
    def weights(to, size):
        offsets = rng.uniform(0.2, 1.2, size) * rng.permutation(np.resize([1, -1], size))
        return offsets if to == "plain" else 1 + offsets

    def between(size):
        """Odd multiples of 2⁻¹², which float16 holds; not so after adding or subtracting one."""
        odd = 2 * rng.integers(512, 1024, size) + 1
        return (odd / 4096 * rng.permutation(np.resize([1, -1], size))).astype(np.float16)

    directions = (("to plain", "plain"), ("to one-plus", "one-plus"))
    cases = []
    for group, to in directions:
        cases += [Case(group, {"weight": weights(to, size), "to": to}) for size in (6, 9)]
        cases += [Case("float32", single({"weight": weights(to, 7), "to": to})),
                  Case("float16", {"weight": between(8), "to": to})]
    return cases


MATRICES = ("weight of a linear map", "kernel of a convolution", "matrix of another class, Mixer",
            "embedding")
BIASES = ("bias of a linear map", "bias of a norm", "bias of another name, Mixer.shift")
GAINS = ("gain of nn.LayerNorm", "gain of nn.RMSNorm", "gain of another class RMSNorm",
         "gain of a norm called Scale", "gain that is a single number")
FROZEN = "parameter that does not train"


def decay_groups(rng):
    def inputs(also="nothing"):
        width, vocabulary = rng.permutation(np.arange(5, 12))[:2]
        return {"width": int(width), "vocabulary": int(vocabulary), "also": also,
                "parts": " ".join(rng.permutation(2 * list(decay_family.PARTS)))}

    plain = inputs()
    return [
        *(Case(group, plain, only=roles) for group, roles in (
            ("matrices", MATRICES), ("biases", BIASES), ("gains", GAINS))),
        Case("shared and frozen", inputs("a shared matrix")),
        Case("shared and frozen", inputs("a frozen map")),
    ]
