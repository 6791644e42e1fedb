"""The known mistakes in the wiring of a block, as knobs of the wiring family."""

from dataclasses import replace

from lnres_utils.checking import Knob

ORDERS = "pre-and-post-norm/two-orders"
GRADIENTS = "pre-and-post-norm/gradients-at-the-start"
WEIGHTS = "pre-and-post-norm/order-is-part-of-the-weights"
OTHER = "pre-and-post-norm/other-answers"
PATH = "residual-path/additive-path"
DROPOUT = "residual-path/dropout-on-the-update"
SHAPES = "feature-axis/scale-bias-epsilon"


def _both(place):
    return {"first": place, "second": place}


def _knob(id, settings, sentence, lesson=ORDERS, case="", masks=()):
    return Knob(id, settings, sentence, lesson, case, masks)


def _masking(knobs, masks):
    """The knobs, some of which mask more in this exercise than elsewhere."""
    return tuple(replace(knob, masks=knob.masks + masks.get(knob.id, ())) for knob in knobs)


_HALF = ("second", "skip_second", "reads")  # settings of a second sublayer that does not run
_SKIPS_OF_NORMS = ("skip-normalized", "first-skip-normalized", "second-skip-normalized")
_FACTORS = ("averaged", "sum-scaled")  # which a norm behind undoes

_NO_SKIP = {"skip_first": "none", "skip_second": "none"}
_SKIPS = (
    _knob("first-skip-missing", {"skip_first": "none"},
          "Attention has no skip: what it gives replaces the hidden states and is not added to "
          "them.", PATH, "RES-02"),
    _knob("second-skip-missing", {"skip_second": "none"},
          "The feed-forward network has no skip: what it gives replaces the hidden states and is "
          "not added to them.", PATH, "RES-02"),
    _knob("attention-lost", {"skip_second": "input"},
          "The second sum starts from the input of the block again, so what attention added is "
          "lost: add to h, not to x.", PATH),
)

SKIPS = (
    _knob("no-skip", _NO_SKIP,
          "Neither sublayer has a skip: what it gives replaces the hidden states and is not added "
          "to them.", PATH, "RES-01", ("combine",)),
    *_SKIPS,
)
_DOUBLED = _knob("branch-added-to-itself",
                 {"skip_first": "branch", "skip_second": "branch", "combine": "plus"},
                 "Each sublayer's output is added to itself: x was overwritten before it was "
                 "added.", PATH, "RES-04")
SKIPS_UNDER_NORM = (  # which takes f + f for f
    _knob("no-skip", _NO_SKIP,
          "Neither sublayer has a skip: what it gives replaces the hidden states, or is added to "
          "itself, and not to them.", PATH, "RES-01", ("combine", "norm-of-update")),
    *_SKIPS,
)

NORMALIZED_SKIPS = (
    _knob("skip-normalized", {"skip_first": "norm", "skip_second": "norm"},
          "The skip carries norm(x) and not x, as in `x = norm(x); x = x + f(x)`: keep x itself "
          "for the sum.", ORDERS, "PP-02"),
    _knob("first-skip-normalized", {"skip_first": "norm"},
          "The skip around attention carries norm1(x) and not x: keep x itself for the sum.",
          ORDERS, "PP-02"),
    _knob("second-skip-normalized", {"skip_second": "norm"},
          "The skip around the feed-forward network carries norm2(h) and not h: keep h itself for "
          "the sum.", ORDERS, "PP-02"),
)

SUMS = (
    _knob("minus-for-plus", {"combine": "minus"},
          "Each sublayer's output is subtracted; it is to be added.", PATH, "S3-minus-for-plus"),
    _knob("input-twice", {"combine": "twice"},
          "Each sum has its skip twice, 2x + f and not x + f.", PATH, "RES-05"),
    _knob("input-added-again", {"again": "input"},
          "The block's input is added once more at the end: the skips inside the block carry it "
          "already.", PATH, "RES-05"),
)

SCALED_SUMS = (  # a norm behind the sum undoes them
    _knob("averaged", {"combine": "average"},
          "Skip and update are averaged; they are to be added.", PATH, "S3-skip-averaged"),
    _knob("sum-scaled", {"combine": "scaled"},
          "Each sum is divided by the root of 2; skip and update are to be added, no more.", PATH),
)

ORDER = (
    _knob("feed-forward-first", {"order": (1, 0)},
          "The feed-forward network comes first; attention is to come before it.", ORDERS,
          "S3-feed-forward-first"),
    _knob("attention-twice", {"order": (0, 0)},
          "Attention runs in both places; the second one is that of the feed-forward network."),
    _knob("feed-forward-twice", {"order": (1, 1)},
          "The feed-forward network runs in both places; the first one is that of attention.",
          masks=("output",)),
    _knob("second-half-missing", {"order": (0,)},
          "The feed-forward network never runs: the block ends behind attention.", masks=_HALF),
    _knob("first-output-only", {"output": "first"},
          "Only the first entry of what attention gives is used, as in `attention(x)[0]`. This "
          "attention returns the tensor itself, and [0] is its first example.", PATH),
)

NORMS = (
    _knob("shared-norm", {"norms": "shared"},
          "One norm serves the whole block, so its gains are tied; each place has a norm of its "
          "own.", WEIGHTS, "PP-08"),
    _knob("norms-untrained", {"affine": "none"},
          "The norms have no gain and bias that train: they were made with "
          "`elementwise_affine=False`, by `F.layer_norm` without weights, in a plain list, or anew "
          "in each `forward`.", SHAPES, "", ("norms",)),
    _knob("norms-without-bias", {"affine": "gain"},
          "The norms have a gain and no bias; `nn.LayerNorm(width)` has both.", SHAPES),
    _knob("rms-norms", {"affine": "rms"},
          "The norms are RMS norms, which subtract no mean; layer norms were asked for.", SHAPES),
)

MODES = (
    _knob("own-dropout", {"random": True},
          "Training and evaluation give different outputs: the block has dropout of its own. Leave "
          "that to the sublayers it is given.", DROPOUT),
    _knob("parts-not-registered", {"parts": "listed"},
          "A sublayer is not a part of the module: it was copied, or is kept in a plain list or a "
          "lambda. Assign it to an attribute of `self`, or use `nn.ModuleList`.", WEIGHTS),
)

COMMON = SUMS + ORDER + NORMS + MODES

_PARALLEL = _knob("parallel", {"reads": "input", "skip_second": "stream"},
                  "Both sublayers read the input of the block, side by side; the feed-forward "
                  "part is to read what attention has made of it.", ORDERS, "RES-08")
_ON_INPUT = _knob("norm-on-input", {"extra": "on-input"},
                  "A norm too many stands at the input of the block, before the first skip.")


def _place(id, place, sentence, case="", lesson=ORDERS):
    return _knob(id, _both(place), sentence, lesson, case)


def _missing(first, second, place="none"):
    """The norm missing in both sublayers, in the first and in the second."""
    return (
        _place("norms-missing", place, "There is no norm around either sublayer."),
        _knob("first-norm-missing", {"first": place}, first),
        _knob("second-norm-missing", {"second": place}, second),
    )


_BEHIND_ONLY = ("The norm is applied to the sublayer's output, x + norm(f(x)); ")

PRE = _masking((
    _place("post-norm", "post", "This is post-norm, norm(x + f(x)); pre-norm is x + f(norm(x)).",
           "PP-01"),
    _place("norm-of-update", "res-post",
           _BEHIND_ONLY + "pre-norm applies it to the input, x + f(norm(x)).", "PP-03"),
    _place("norms-before-and-behind", "sandwich",
           "Each update is normalized once more before the sum, as in a sandwich block; pre-norm "
           "has one norm, before the sublayer.", "PP-10", OTHER),
    _place("norms-before-and-on-sum", "pre-and-post",
           "Each sum is normalized as well: pre-norm and post-norm at once.", "PP-10"),
    *_missing("Attention reads x without a norm.",
              "The feed-forward network reads h without a norm."),
    _PARALLEL,
    _knob("parallel-one-norm", {"reads": "first-norm", "second": "pre", "skip_second": "stream"},
          "Both sublayers read norm1(x), side by side; the feed-forward network is to read "
          "norm2(h), where h has what attention added.", ORDERS, "RES-08",
          ("norms", "feed-forward-first")),
    _knob("norm-on-output", {"extra": "on-output"},
          "The block ends with a norm. In a pre-norm stack there is one final norm, behind the "
          "last block.", ORDERS, "S3-final-norm-in-block"),
    _knob("norm-repeated", {"extra": "repeated"},
          "The block ends with its second norm, used once more. In a pre-norm stack there is one "
          "final norm, behind the last block.", ORDERS, "S3-final-norm-in-block"),
    _ON_INPUT,
    *SKIPS, _DOUBLED, *NORMALIZED_SKIPS, *SCALED_SUMS, *COMMON,
), {
    "post-norm": _SKIPS_OF_NORMS + _FACTORS,
    "norms-before-and-on-sum": _FACTORS,
    "norm-of-update": _SKIPS_OF_NORMS,
    "norms-missing": (*_SKIPS_OF_NORMS, "norms", "affine", "norm-repeated"),
    "first-norm-missing": ("norms", "first-skip-normalized"),
    "second-norm-missing": ("norms", "second-skip-normalized"),
    "second-skip-missing": _FACTORS,
    "second-half-missing": ("norms",),
})

_MASKED_UNDER_NORM = {
    "norms-missing": ("norms", "affine"),
    "first-norm-missing": ("norms",),
    "second-norm-missing": ("norms",),
    "norms-untrained": ("norm-on-output", "norm-repeated"),
    "second-half-missing": ("norms",),
}

_POST_ONLY = (
    _knob("parallel", {"first": "none", "reads": "input", "skip_second": "stream"},
          "Both sublayers read x, side by side, and one norm closes the block; the feed-forward "
          "part is to read h = norm1(x + attention(x)).", ORDERS, "RES-08",
          ("norms", "feed-forward-first")),
    _knob("second-reads-input", {"reads": "input", "skip_second": "stream"},
          "The feed-forward network reads x; it is to read h = norm1(x + attention(x)).", ORDERS,
          "RES-08"),
    _knob("norm-on-output", {"extra": "on-output", "second": "post"},
          "Two norms follow each other at the end of the block; norm2 closes it already.",
          ORDERS, "PP-10"),
    _knob("norm-repeated", {"extra": "repeated", "second": "post"},
          "The last norm is used twice in a row.", ORDERS, "PP-10"),
    _ON_INPUT,
)

POST = _masking((
    _place("pre-norm", "pre", "This is pre-norm, x + f(norm(x)); post-norm is norm(x + f(x)).",
           "PP-01"),
    _place("norm-of-update", "res-post",
           _BEHIND_ONLY + "post-norm applies it to the sum, norm(x + f(x)).", "PP-03"),
    _place("norm-of-skip", "norm-of-skip",
           "Only the skip is normalized, norm(x) + f(x); the norm is to cover the sum."),
    _place("norms-before-and-on-sum", "pre-and-post",
           "Each sublayer's input is normalized as well: pre-norm and post-norm at once.",
           "PP-10"),
    *_missing("The first sum is not normalized: the norm behind attention is missing.",
              "The second sum is not normalized: the norm behind the feed-forward network is "
              "missing."),
    *_POST_ONLY, *SKIPS_UNDER_NORM, *COMMON,
), _MASKED_UNDER_NORM)

_ALPHAS_ON_SKIP = ("alpha-on-branch", "alpha-without-effect", "alpha-squared",
                   "alpha-in-first-only", "alpha-in-second-only", "one-plus-alpha")

DEEPNORM = _masking((
    _place("pre-norm", "pre", "The norm is on the input of each sublayer, alpha x + f(norm(x)); "
           "DeepNorm has it on the sum, norm(alpha x + f(x)).", "PP-01", OTHER),
    _place("norm-of-update", "res-post",
           "The norm is on the sublayer's output, alpha x + norm(f(x)); DeepNorm has it on the "
           "sum, norm(alpha x + f(x)).", "PP-03", OTHER),
    *(replace(knob, case="RES-10") for knob in _missing(
        "The first sum is not normalized: the norm behind attention is missing.",
        "The second sum is not normalized: the norm behind the feed-forward network is missing.")),
    *(_knob(id, {"alpha": value}, sentence, OTHER, case) for id, value, sentence, case in (
        ("alpha-on-branch", "branch",
         "Alpha scales the wrong side: it multiplies the sublayer's output, or divides the skip. "
         "It is to multiply the skip.", "RES-10"),
        ("alpha-without-effect", "ignored",
         "Alpha has no effect: it is not used, or multiplies skip and update alike, which the norm "
         "undoes. It is to multiply the skip alone.", "RES-10"),
        ("alpha-squared", "squared", "Alpha multiplies the skip twice.", "RES-10"),
        ("alpha-in-first-only", "first",
         "Alpha is missing in the second sum, that of the feed-forward network.", "RES-10"),
        ("alpha-in-second-only", "second", "Alpha is missing in the first sum, that of attention.",
         "RES-10"),
        ("alpha-outside-norm", "outside",
         "Alpha multiplies what the norm gives; it is to multiply the skip, inside the norm.",
         "RES-10"),
        ("one-plus-alpha", "one-plus",
         "The skip is multiplied by 1 + alpha: x is in the sum once too often.", "RES-10"),
    )),
    *(knob for knob in _POST_ONLY + SKIPS_UNDER_NORM + COMMON
      if knob.id not in ("input-twice", "parallel")),
), {
    **_MASKED_UNDER_NORM,
    "no-skip": _ALPHAS_ON_SKIP,
    "first-skip-missing": ("alpha-in-second-only",),
    "second-skip-missing": ("alpha-in-first-only",),
    "second-half-missing": ("norms", "alpha-in-first-only"),
})

SANDWICH = _masking((
    _place("norms-before-and-on-sum", "pre-and-post",
           "The second norm of each sublayer is applied to the sum; it is to be applied to the "
           "sublayer's output, before the sum.", "PP-04", OTHER),
    _place("pre-norm", "pre",
           "The norm behind each sublayer is missing: this is pre-norm, x + f(norm(x)).", "",
           OTHER),
    _place("norm-of-update", "res-post",
           "The norm before each sublayer is missing: this is x + norm(f(x)).", "PP-03", OTHER),
    _place("post-norm", "post", "This is post-norm, norm(x + f(x)); a sandwich is "
           "x + norm_out(f(norm_in(x))).", "PP-01", OTHER),
    _knob("first-norm-behind-missing", {"first": "pre"},
          "The norm behind attention is missing.", OTHER),
    _knob("second-norm-behind-missing", {"second": "pre"},
          "The norm behind the feed-forward network is missing.", OTHER),
    _knob("first-norm-before-missing", {"first": "res-post"},
          "The norm before attention is missing.", OTHER),
    _knob("second-norm-before-missing", {"second": "res-post"},
          "The norm before the feed-forward network is missing.", OTHER),
    _knob("first-norm-on-sum", {"first": "pre-and-post"},
          "The norm behind attention is still applied to the sum; it is to be applied to what "
          "attention gives, before the sum.", OTHER, "PP-04"),
    _knob("second-norm-on-sum", {"second": "pre-and-post"},
          "The norm behind the feed-forward network is still applied to the sum; it is to be "
          "applied to what that network gives, before the sum.", OTHER, "PP-04"),
    _knob("norm-behind-attention-late", {"first": "pre", "second": "two-before"},
          "The norm behind attention is applied behind the sum, to what the feed-forward network "
          "reads; it is to be applied to what attention gives.", OTHER, "PP-04"),
    _knob("norms-shared-by-place", {"norms": "by-place"},
          "One norm stands before both sublayers and one behind both, so that their gains are "
          "tied; each of the four places has a norm of its own.", WEIGHTS, "PP-08"),
    _knob("norms-shared-by-part", {"norms": "by-sublayer"},
          "One norm stands both before and behind each sublayer, so that their gains are tied; "
          "each of the four places has a norm of its own.", WEIGHTS, "PP-08"),
    _knob("norm-on-output", {"extra": "on-output", "second": "sandwich"},
          "The block ends with a norm on the sum. In a stack there is one final norm, behind the "
          "last block.", ORDERS, "S3-final-norm-in-block"),
    _PARALLEL, _ON_INPUT, *SKIPS, *NORMALIZED_SKIPS, *COMMON,
), {
    "pre-norm": ("norms-shared-by-part",),
    "norm-of-update": (*_SKIPS_OF_NORMS, "norms-shared-by-part"),
    "post-norm": (*_SKIPS_OF_NORMS, "norms-shared-by-part"),
    "first-norm-before-missing": ("first-skip-normalized",),
    "second-norm-before-missing": ("second-skip-normalized",),
    "no-skip": ("norms-before-and-on-sum", "first-norm-on-sum", "second-norm-on-sum",
                "norm-behind-attention-late"),
    "first-skip-missing": ("first-norm-on-sum",),
    "second-skip-missing": ("second-norm-on-sum",),
    "second-half-missing": ("norms-shared-by-place",),
})

