"""The capstone: a small transformer with ten planted faults, each asked for by itself."""

import numpy as np

from lnres_utils.checking import Case, Exercise, Knob, Output
from lnres_utils.drives import bug_hunt as drive
from lnres_utils.drives import bug_hunt_norms
from lnres_utils.specs import LESSONS
from lnres_utils.specs.bug_hunt_family import faulty_transformer

EPS = 1e-5
LARGE = 100  # rows of this size make epsilon nothing
WIDE = 32  # of this width, N and N - 1 are the same up to the tolerance
MILLION = 300  # tokens of this size have scores of up to a million; a mask has to hold for them
GROUPS = ("statistics", "epsilon", "half precision", "attention", "skip", "own norms", "dropout",
          "final norm", "initialization", "padding")


def cases(rng):
    """For each fault the inputs that show it, and no other one."""
    def case(group, task=None, width=WIDE, depth=2, **more):
        return Case(group, {"task": task or group, "width": width, "depth": depth,
                           "seed": int(rng.integers(2**31)), **more})

    def rows(*shape, scale=LARGE):
        return scale * (rng.normal(size=shape) + rng.normal(size=(*shape[:-1], 1)))

    def affine(*shape):
        return rng.uniform(0.5, 2, shape), rng.uniform(-1, 1, shape)

    spreads = np.sqrt(EPS) * np.array([1e-3, 0.3, 1, 3])[:, None, None]
    steep, half = rows(5, 1, WIDE), rows(200, 1, WIDE)
    gains, biases = affine(4, WIDE)
    gain, bias = affine(WIDE)
    dropping = {"width": 6, "depth": 1, "dropout": float(rng.uniform(0.2, 0.6)), "shape": (6, 40),
                "levels": rng.uniform(1, 3, 2), "start": 10.0}
    return [
        case("statistics", width=10, x=rows(3, 4, 10)),
        case("statistics", width=8, depth=1, x=rows(2, 5, 8)),
        case("epsilon", depth=1, x=spreads * rng.normal(size=(4, 1, WIDE))),
        case("epsilon", "gradient", depth=1, x=steep,
             cotangent=_normalized(steep) + rng.normal(size=steep.shape)),
        case("half precision", depth=1, x=rows(5, 1, WIDE, scale=500)),
        case("half precision", "bfloat16", depth=1, x=half),
        case("attention", "causality", width=8, depth=1, **_changed(rng, (2, 6, 8))),
        case("attention", "causality", width=10, depth=2, **_changed(rng, (3, 5, 10))),
        case("attention", "wide scores", width=8, depth=2,
             **_changed(rng, (60, 5, 8), MILLION)),
        case("attention", "mixture", width=8, depth=1, levels=rng.normal(size=(3, 6))),
        case("skip", width=8, depth=1, x=rng.normal(size=(2, 3, 8)) * 2),
        case("own norms", x=rows(3, 1, WIDE), update=rows(3, 1, WIDE, scale=1e6),
             gains=gains, biases=biases),
        case("dropout", mode="train", **dropping),
        case("dropout", mode="eval", **dropping),
        case("final norm", depth=3, x=rows(4, 1, WIDE), updates=rows(3, WIDE), gain=gain,
             bias=bias),
        case("initialization", width=24, depth=int(rng.integers(3, 5))),
        case("padding", width=6, depth=1, tokens=_tokens(rng, (5, 7)),
             hidden=rng.normal(1, 2, (5, 7, 6))),
    ]


def _changed(rng, shape, scale=None):
    if scale is not None:
        return {"x": scale * rng.normal(size=shape), "change": scale * rng.normal(size=shape)}
    return {"x": rng.normal(1, 2, shape), "change": 3 * rng.normal(size=shape)}


def _tokens(rng, shape):
    """Sequences of different lengths, filled up with padding; the first needs none."""
    tokens = rng.integers(1, drive.VOCABULARY, shape)
    lengths = np.concatenate([[shape[1]], rng.integers(1, shape[1], shape[0] - 1)])
    return np.where(np.arange(shape[1]) < lengths[:, None], tokens, drive.PAD)


def _normalized(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPS)


def _norms(inputs):
    """All norms give the same."""
    return np.stack([_normalized(inputs["x"])] * (2 * inputs["depth"] + 1))


def _epsilon(inputs):
    return {"epsilon": np.ones((2 * inputs["depth"] + 1, len(inputs["x"])))}


def _gradient(inputs):
    x, dy = inputs["x"], inputs["cotangent"]
    y = _normalized(x)
    dx = dy - dy.mean(-1, keepdims=True) - y * (dy * y).mean(-1, keepdims=True)
    dx = bug_hunt_norms.STEEP * dx / np.sqrt(x.var(-1, keepdims=True) + EPS)
    return {"gradient": np.stack([dx] * (2 * inputs["depth"] + 1))}


def _mixture(inputs):
    """Softmax of the products of the levels, each divided by the root of a head's width."""
    levels = inputs["levels"]
    width = inputs["width"] / drive.HEADS
    scores = levels[:, :, None] * levels[:, None] * width / np.sqrt(width)
    weights = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(levels.shape[1])
    return {"mixture": (weights / weights.sum(-1, keepdims=True) @ levels[..., None])[..., 0]}


def _skip(inputs):
    x = inputs["x"]
    x = x + np.sin(3 * np.tanh(x))
    return {"stream": x + np.cos(2 * np.tanh(x))}


def _own_norms(inputs):
    reads = [_normalized(inputs[name]) for name in ("x", "update")] * inputs["depth"]
    return {"read": np.stack(reads) * inputs["gains"][:, None, None]
            + inputs["biases"][:, None, None], "trained": np.ones(len(reads))}


def _dropout(inputs):
    if inputs["mode"] == "eval":
        return {"first sum": np.zeros(1), "second sum": np.zeros(1)}
    first, second = inputs["levels"] / (1 - inputs["dropout"])
    return {"first sum": np.array([0, first]), "second sum": np.array([0, second])}


def _final_norm(inputs):
    x = inputs["x"] + inputs["updates"].sum(0)
    return {"last": _normalized(x) * inputs["gain"] + inputs["bias"], "trained": np.ones(1)}


def _padding(inputs):
    real = (inputs["tokens"] != drive.PAD)[..., None]
    return {"summary": (inputs["hidden"] * real).sum(1) / real.sum(1)}


_RIGHT = {
    "statistics": lambda inputs: {"y": _norms(inputs)},
    "epsilon": _epsilon,
    "gradient": _gradient,
    "half precision": lambda inputs: {"half": _norms({**inputs, "x": inputs["x"].astype(
        np.float16).astype(float)}), "dtype": "float16"},
    "bfloat16": lambda inputs: {"near": np.ones(1), "dtype": "bfloat16"},
    "causality": lambda inputs: {"seen": np.tril(np.ones((inputs["x"].shape[1],) * 2))},
    "wide scores": lambda inputs: {"later": np.zeros(inputs["x"].shape[1] - 1)},
    "mixture": _mixture,
    "skip": _skip,
    "own norms": _own_norms,
    "dropout": _dropout,
    "final norm": _final_norm,
    "initialization": lambda inputs: {"sizes": np.array(
        [(2 * inputs["depth"]) ** -0.5] * 2 + [1.0])},
    "padding": _padding,
}


def reference(inputs):
    """From formulas, not from a model."""
    return _RIGHT[inputs["task"]](inputs)


WHICH_AXIS, SCALE = "feature-axis/which-axis", "feature-axis/scale-bias-epsilon"
ONE_VECTOR = "feature-axis/one-vector"
ADDITIVE, STREAM = "residual-path/additive-path", "residual-path/growing-stream"
DROPOUT = "residual-path/dropout-on-the-update"
ORDERS, WEIGHTS = "pre-and-post-norm/two-orders", "pre-and-post-norm/order-is-part-of-the-weights"
SEES, MODES = "practical-checks/who-sees-whom", "practical-checks/modes-batches-padding"
HALF, HUNT = "practical-checks/half-precision", "practical-checks/bug-hunt"
BACKWARD = "feature-axis/backward-pass"

PLANTED = (
    Knob("averages-over-tokens", {"statistics": "example"},
         "A norm takes mean and variance over all tokens of an example: each token's output then "
         "depends on later ones, and on the length. They belong to one token's features.",
         WHICH_AXIS, "LN-05"),
    Knob("epsilon-behind-root", {"outside": True},
         "In a norm epsilon is added to the standard deviation; it belongs to the variance, under "
         "the root.", SCALE, "LN-02"),
    Knob("squares-in-half", {"inside": "narrow"},
         "A norm squares in half precision: above 256 the squares overflow, and whole rows become "
         "zero without a warning. Compute the statistics in float32 or wider.", HALF, "NUM-01"),
    Knob("sees-the-next-token", {"mask": "next"},
         "The attention's mask is off by one: each token sees the next one, too.", SEES),
    Knob("second-skip-normalized", {"skip": "normalized-second"},
         "The second skip of a block carries the normalized states; it is to carry the stream "
         "itself.", ORDERS, "PP-02"),
    Knob("norms-shared", {"norms": "shared"},
         "Both sublayers of a block share one norm, so that their gains are tied; each has one of "
         "its own.", WEIGHTS, "PP-08"),
    Knob("dropout-on-first-sum", {"dropping": "first-sum"},
         "Dropout falls on the first sum of a block and zeros the stream itself; it is to fall on "
         "the update alone.", DROPOUT, "RES-07"),
    Knob("final-norm-missing", {"final": "missing"},
         "The stack's output has not been through the final norm, which belongs behind the last "
         "block.", ORDERS, "PP-06"),
    Knob("output-maps-not-smaller", {"scaled": "none"},
         "The maps that write to the stream are drawn like all others: their names are never "
         "recognized, so 1/√(2L) reaches none of them.", STREAM, "RES-11"),
    Knob("padding-counts", {"pooled": "counted"},
         "The summary divides by all tokens, padding included: the same sequence gets another one "
         "in a longer batch.", MODES, "AX-07"),
)

SLIPS = (
    Knob("divides-by-n-minus-1", {"statistics": "sample"},
         "A norm divides the squares by N - 1; layer norm divides by N.", ONE_VECTOR, "LN-01"),
    Knob("epsilon-gone", {"eps": 0.0},
         "Epsilon has no effect, or is far too small: 1e-5 belongs to the variance.", SCALE,
         "LN-19"),
    Knob("epsilon-1e-6", {"eps": 1e-6},
         "Epsilon is 1e-6; this model's is 1e-5.", SCALE, "LN-19"),
    Knob("epsilon-twice", {"outside": "too"},
         "Epsilon is added twice, under the root and behind it; it belongs to the variance alone.",
         SCALE, "LN-02"),
    Knob("root-detached", {"root": "detached"},
         "No gradient goes through a norm's root: it is detached, and the gradient is another one. "
         "Epsilon under the root keeps it finite.", BACKWARD),
    Knob("squares-in-bfloat16", {"inside": "narrow-bfloat16"},
         "A norm takes its statistics in bfloat16, which has eight bits; it has to be float32 or "
         "wider for bfloat16, too.", HALF, "NUM-01"),
    Knob("stays-float32", {"inside": "stays-wide"},
         "A norm that gets half precision returns float32; cast its output back to the dtype of "
         "its input.", HALF, "RMS-15"),
    Knob("not-causal", {"mask": "none"}, "Each token sees all others: there is no causal mask.",
         SEES),
    Knob("only-first-block-causal", {"mask": "first-block"},
         "Only the first block's attention is causal.", SEES),
    Knob("finite-mask", {"mask": "finite"},
         "The mask is a number that large scores outweigh: the later tokens are seen again. Take "
         "-inf, booleans, or the lowest number of the dtype.", SEES),
    Knob("mask-behind-softmax", {"mask": "after"},
         "The mask comes behind the softmax: later tokens still count in its sum, and the weights "
         "no longer add up to 1.", SEES),
    Knob("scores-not-divided", {"divided": "not"},
         "The scores are not divided by √d, d the width of a head.", HUNT),
    Knob("scores-divided-by-d", {"divided": "width"},
         "The scores are divided by d, the width of a head; it is √d.", HUNT),
    Knob("own-token-hidden", {"mask": "strict"},
         "The mask hides each token from itself: the first one then sees nothing at all.", SEES),
    Knob("first-skip-normalized", {"skip": "normalized-first"},
         "The first skip of a block carries the normalized states; it is to carry the stream "
         "itself.", ORDERS, "PP-02"),
    Knob("both-skips-normalized", {"skip": "normalized-both"},
         "Both skips of a block carry the normalized states; they are to carry the stream itself.",
         ORDERS, "PP-02"),
    Knob("second-skip-missing", {"skip": "missing-second"},
         "The second skip of a block is missing.", ADDITIVE, "RES-02"),
    Knob("both-skips-missing", {"skip": "missing-both"}, "A block has no skips.", ADDITIVE,
         "RES-01"),
    Knob("post-norm", {"skip": "post"},
         "The block is post-norm now, norm(x + f(x)); it was written as pre-norm, x + f(norm(x)).",
         ORDERS, "PP-01"),
    Knob("norms-shared-by-blocks", {"norms": "between-blocks"},
         "All blocks share their norms; each block has its own two.", WEIGHTS, "PP-08"),
    Knob("own-gains-frozen", {"frozen": "own"},
         "A norm of a block has a gain or a bias that does not require a gradient: it is never "
         "trained.", HUNT),
    Knob("final-gain-frozen", {"frozen": "final"},
         "The final norm's gain or bias does not require a gradient: it keeps what it starts with.",
         HUNT),
    Knob("dropout-on-second-sum", {"dropping": "second-sum"},
         "Dropout falls on the second sum of a block; it is to fall on the update alone.",
         DROPOUT, "RES-07"),
    Knob("dropout-on-both-sums", {"dropping": "both-sums"},
         "Dropout falls on both sums of a block and zeros the stream itself; it is to fall on the "
         "updates alone.", DROPOUT, "RES-07"),
    Knob("no-dropout", {"dropping": "missing"},
         "Nothing is dropped any more in training; both updates of a block are to be.", DROPOUT,
         "RES-07"),
    Knob("first-update-not-dropped", {"dropping": "second-only"},
         "Only the feed-forward network's update is dropped; attention's is to be, too.", DROPOUT,
         "RES-07"),
    Knob("second-update-not-dropped", {"dropping": "first-only"},
         "Only attention's update is dropped; the feed-forward network's is to be, too.", DROPOUT,
         "RES-07"),
    Knob("dropout-always", {"dropping": "always"},
         "Updates are dropped in evaluation, too.", DROPOUT),
    Knob("final-norm-in-the-loop", {"final": "each"},
         "The final norm is applied behind every block, and not once behind the last.", ORDERS,
         "S3-final-norm-in-block"),
    Knob("all-maps-smaller", {"scaled": "all"},
         "All maps are drawn smaller; only those that write to the stream are to be.", STREAM,
         "RES-11"),
    Knob("only-attention-smaller", {"scaled": "attention"},
         "Only attention's output map is drawn smaller; the feed-forward network's writes to the "
         "stream as well.", STREAM, "RES-11"),
    Knob("scaled-by-blocks", {"scaled": "by-blocks"},
         "Output maps are drawn with 1/√L; a block writes twice, so it is 1/√(2L).", STREAM,
         "RES-11"),
    Knob("padding-averaged", {"pooled": "averaged"},
         "The summary averages the states at padding as well.", MODES, "AX-07"),
    Knob("sum-for-mean", {"pooled": "sum"},
         "The summary is the sum of the real tokens; their mean was asked for.", MODES),
)

_LEVELS = Output(tolerance=1e-5)

EXERCISE = Exercise(
    name="TinyTransformer", chapter="bug-hunt", titles=LESSONS,
    lesson="practical-checks/bug-hunt", difficulty=3, minutes=60, kind="class",
    array="torch tensor",
    parameters=("vocabulary", "length", "width", "heads", "depth", "dropout=0.1"),
    cases=cases, drive=drive.tiny_transformer, reference=reference, family=faulty_transformer,
    knobs=PLANTED + SLIPS, planted=tuple(knob.id for knob in PLANTED),
    groups=dict.fromkeys(GROUPS, 2), separate=True,
    outputs={
        "y": Output(tolerance=1e-4), "epsilon": Output(tolerance=1e-3),
        "gradient": Output(tolerance=0.03), "near": Output("exact"), "later": Output("exact"),
        "mixture": Output(tolerance=1e-6), "trained": Output("exact"),
        "half": Output(tolerance=0.03), "dtype": Output("text"), "seen": Output("exact"),
        "stream": Output(), "read": Output(tolerance=0.03), "first sum": _LEVELS,
        "second sum": _LEVELS,
        "last": Output(tolerance=0.03), "sizes": Output(tolerance=0.05), "summary": Output(),
    },
    hints=(
        "Take the model apart: `audit` takes a norm, an attention, a block or the whole stack. A "
        "part that is fine by itself is out of suspicion.",
        "Six places: LayerNorm has three faults, Block three; Attention, Stack, `initialize` and "
        "`mean_pool` one each. `check(Block, \"PreNormBlock\")` and `check(initialize, "
        "\"depth_scaled_init\")` are two of your tools.",
        "In LayerNorm: the axes, the root, the dtype of the squares. In Block: how many norms are "
        "made, what each skip carries, what `dropout` is applied to.",
    ),
)

get = {EXERCISE.name: EXERCISE}.__getitem__
