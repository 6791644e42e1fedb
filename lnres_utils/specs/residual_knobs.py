"""The knobs of chapter 2's faulty families: each mistake in one sentence."""

from lnres_utils.checking import Knob

ADDITIVE = "residual-path/additive-path"
GRADIENTS = "residual-path/gradients-through-depth"
STREAM = "residual-path/growing-stream"
DROPOUT = "residual-path/dropout-on-the-update"


def _knobs(lesson, *rows):
    return tuple(Knob(id, settings, sentence, lesson, case, tuple(masks))
                 for id, settings, sentence, case, *masks in rows)


# Where x is not in the sum, it is all the same whether this falls on the update or on the sum.
_ON_SUM = ("dropout-on-sum", "sum-dropped", "only-result-compared", "gain-on-sum", "gain-mixes")

SUM = _knobs(
    ADDITIVE,
    ("skip-missing", {"combine": "no-skip"},
     "There is no skip: what comes out is the update alone, and x is lost.", "RES-01",
     *_ON_SUM),
    ("branch-added-to-itself", {"combine": "branch-twice"},
     "The update is added to itself: x was overwritten by the branch before the sum, as in "
     "`x = f(x); x = x + x`. Keep x under a name of its own.", "RES-04", *_ON_SUM),
    ("input-added-twice", {"combine": "input-twice"},
     "x is added twice, 2x + f(x): once is enough, or the stream doubles at every block.",
     "RES-05"),
    ("skip-averaged", {"combine": "averaged"},
     "Skip and update are averaged. A residual connection adds them: half of x is lost here.",
     "S3-skip-averaged"),
    ("update-subtracted", {"combine": "minus"},
     "The update is subtracted, x − f(x); it should be added.", "S3-minus-for-plus"),
    ("skip-subtracted", {"combine": "skip-minus"},
     "The skip is subtracted, f(x) − x; it should be added.", "S3-minus-for-plus"),
)

IN_PLACE = _knobs(
    ADDITIVE,
    ("sum-in-place", {"combine": "into-x"},
     "The sum is written into x, as `x += f(x)` does: whoever still holds x is left with other "
     "numbers, and backward may fail. Make a new tensor: `x = x + f(x)`.", "RES-12"),
    ("sum-into-update", {"combine": "into-update"},
     "The sum is written into the output of the sub-layer, as `out += x` does. The sub-layer may "
     "need that output for its gradient, or hand out the tensor it was given.", "RES-12"),
)

UPDATE = SUM + _knobs(
    ADDITIVE,
    ("update-ignored", {"combine": "no-update"},
     "The update is not used: x comes out as it went in.", ""),
    ("multiplied", {"combine": "product"},
     "Skip and update are multiplied; a residual connection adds them.", ""),
    ("broadcasts", {"compare": "nothing"},
     "Shapes that differ are added all the same wherever they broadcast: (B, D) and (B, 1, D) "
     "give (B, B, D) without a word. Compare the shapes first, and raise ValueError.", "RES-09",
     "refusal"),
    ("only-ranks-compared", {"compare": "ranks"},
     "Only the numbers of axes are compared. An axis of length one still broadcasts: compare the "
     "whole shapes.", "RES-09"),
    ("only-last-axis-compared", {"compare": "last"},
     "Only the last axes are compared. The others still broadcast: compare the whole shapes.",
     "RES-09"),
    ("only-first-axis-compared", {"compare": "first"},
     "Only the first axes are compared, as `len` does. The others still broadcast: compare the "
     "whole shapes.", "RES-09"),
    ("only-last-two-axes-compared", {"compare": "last-two"},
     "Only the last two axes are compared. The others still broadcast: compare the whole shapes.",
     "RES-09"),
    ("only-sizes-compared", {"compare": "sizes"},
     "Only the numbers of entries are compared. (B, 1, D) and (1, B, D) have equally many and "
     "broadcast: compare the shapes.", "RES-09"),
    ("only-result-compared", {"compare": "result"},
     "Only the shape of the sum is compared with that of x. An update of shape (D,) or (B, 1, D) "
     "still broadcasts to it: compare the shapes of x and update.", "RES-09"),
    ("refused-by-assert", {"refusal": "AssertionError"},
     "Other shapes are refused by an AssertionError; the exercise asks for ValueError. Python "
     "leaves `assert` out when it runs with -O.", ""),
    ("refused-by-type-error", {"refusal": "TypeError"},
     "Other shapes are refused by a TypeError; the exercise asks for ValueError: the type is "
     "right, the shape is not.", ""),
    ("refused-by-none", {"refusal": "None"},
     "For other shapes None is returned, which fails far from its cause: raise ValueError.", ""),
    ("three-axes-only", {"ndim": 3},
     "It works for (B, T, D) only; x may have any number of axes.", ""),
    ("two-axes-only", {"ndim": 2}, "It works for two axes only; x may have any number of axes.",
     ""),
)

STACK = _knobs(
    GRADIENTS,
    ("identity-forgotten", {"identity": "missing"},
     "The identity is missing: this is the gradient of a plain stack, a product of the W alone. "
     "Each layer contributes I + W.", ""),
    ("identity-once", {"identity": "once"},
     "The identity is added once, to the product of all W: a skip over the whole stack. Here each "
     "layer has a skip of its own and contributes I + W.", ""),
    ("order-reversed", {"order": "forward"},
     "The layers come in the wrong order: a gradient goes through the last layer first.", ""),
    ("transposes-forgotten", {"transposed": False},
     "The transposes are missing: backward, a layer multiplies by (I + W)ᵀ, for a cotangent as a "
     "row from the right by I + W.", ""),
    ("pushed-forward", {"order": "forward", "transposed": False},
     "This pushes the cotangent forward, from the first layer to the last, like a change of the "
     "input. A gradient goes the other way, through the transposes.", ""),
    ("first-order-only", {"terms": "sum"},
     "The W are summed, I + W₁ + W₂ + …; that leaves out every path through more than one branch. "
     "The factors I + W are multiplied.", "", "order", "identity-once"),
    ("last-layer-missing", {"layers": "last-missing"},
     "The last layer is left out.", ""),
    ("first-layer-missing", {"layers": "first-missing"},
     "The first layer is left out.", ""),
    ("weights-subtracted", {"sign": -1},
     "The W are subtracted, I − W; each layer contributes I + W.", ""),
    ("columns", {"columns": True},
     "The weights multiply from the left, as in `W.T @ g`. That fits a single g of shape (D,); for "
     "rows of shape (…, D) it is `g @ W`.", ""),
    ("two-axes-only", {"ndim": 2},
     "It works for cotangents of shape (B, D) only; there may be any number of axes before the "
     "last, also none.", ""),
)

_UNREGISTERED = (
    "sublayer-not-registered", {"registered": False},
    "The sub-layer is not registered with the module (it is kept in a list?), so its weights are "
    "not among `parameters()` and do not train.", "")

_DRAWING = ("mode", "scale", "probability", "fixed_p", "default_p", "mask", "at_one")
_ONLY_IN_TRAINING = ("rescaled-twice", "divided-in-evaluation")

PLACES = _knobs(
    DROPOUT,
    ("dropout-on-sum", {"drop": "sum"},
     "Dropout falls on the sum: entries of the skip are erased as well. Drop entries of the "
     "update, before it is added.", "RES-07"),
    ("dropout-on-input", {"drop": "input"},
     "Dropout falls on what goes into the sub-layer; it should fall on what comes out.", "RES-07"),
    ("dropout-on-skip", {"drop": "skip"},
     "Dropout falls on the skip; it should fall on the update.", "RES-07"),
    ("dropout-missing", {"drop": "nothing"}, "There is no dropout in training.", "RES-07",
     *_DRAWING),
)

MODES = _knobs(
    DROPOUT,
    ("dropout-always", {"mode": "always"},
     "Dropout goes on in evaluation. `F.dropout` drops unless `training=self.training` tells it; "
     "an `nn.Dropout` made in `__init__` knows by itself.", "RES-07", *_ONLY_IN_TRAINING),
    ("dropout-in-evaluation", {"mode": "evaluation"},
     "Dropout is on in evaluation and off in training: it is the other way round.", "RES-07",
     "rescaled-twice"),
    ("keep-probability", {"probability": "keep"},
     "p is taken for the probability to keep; it is the probability to drop.", ""),
)

SCALES = (
    ("not-rescaled", "never",
     "What is kept is not divided by 1 − p: in training the update is too small on average."),
    ("multiplied-by-keep", "times",
     "What is kept is multiplied by 1 − p; it should be divided by it."),
    ("rescaled-in-evaluation", "evaluation",
     "The scale is applied in evaluation, f(x)·(1 − p). Here training divides by 1 − p, and "
     "evaluation adds f(x) as it is."),
    ("rescaled-twice", "both",
     "Training divides by 1 − p and evaluation multiplies by it: one of the two is enough, and "
     "here it is the division in training."),
    ("divided-in-evaluation", "always",
     "The update is divided by 1 − p in evaluation, too, where nothing is dropped."),
)

BLOCK = SUM + IN_PLACE + PLACES + MODES + _knobs(
    DROPOUT,
    *((id, {"scale": scale}, sentence, "RES-07",
       *(["at_one"] if scale in ("never", "times", "evaluation") else []))
      for id, scale, sentence in SCALES),
    ("nan-for-all-dropped", {"at_one": "nan"},
     "With p = 1 zero is divided by zero, which gives NaN; there nothing of the update is left, "
     "and y is x.", ""),
    ("p-fixed-0.5", {"fixed_p": 0.5}, "p is ignored: half of the entries are dropped, whatever p "
     "is. `nn.Dropout()` without an argument does that.", "", "default_p", "probability", "at_one"),
    ("p-fixed-0.1", {"fixed_p": 0.1}, "p is ignored: a tenth of the entries is dropped, whatever "
     "p is.", "", "default_p", "at_one"),
    *((f"p-default-{value}", {"default_p": value},
       f"The default of `p` is {value}; the exercise asks for 0.1.", "") for value in (0.5, 0.0)),
    ("token-dropped", {"mask": "token"},
     "Whole tokens are dropped; dropout draws for each entry by itself.", ""),
    ("example-dropped", {"mask": "example"},
     "The updates of whole examples are dropped: that is stochastic depth. Dropout draws for each "
     "entry by itself.", ""),
    ("batch-dropped", {"mask": "batch"},
     "One draw decides for the whole batch; dropout draws for each entry by itself.", ""),
    _UNREGISTERED,
)

DEPTH = SUM + IN_PLACE + _knobs(
    DROPOUT,
    ("sum-dropped", {"drop": "sum"},
     "The whole sum is dropped: such an example loses its skip as well, and comes out as zeros. "
     "Only the update may be dropped.", "RES-16"),
    ("input-dropped", {"drop": "input"},
     "What goes into the sub-layer is dropped; the update itself should be: f(0) need not be "
     "zero.", "RES-16"),
    ("skip-dropped", {"drop": "skip"},
     "The skip is dropped; the update should be.", "RES-16"),
    ("nothing-dropped", {"drop": "nothing"}, "Nothing is dropped in training.", "RES-16",
     *_DRAWING),
    ("dropped-in-evaluation", {"mode": "always"},
     "Updates are dropped in evaluation, too; there every example keeps its own.", "RES-16",
     *_ONLY_IN_TRAINING),
    ("modes-swapped", {"mode": "evaluation"},
     "Updates are dropped in evaluation and kept in training: it is the other way round.",
     "RES-16", "rescaled-twice"),
    ("keep-probability", {"probability": "keep"},
     "p is taken for the probability to keep an update; it is the probability to drop it.",
     "RES-16"),
    *((id, {"scale": scale}, sentence, "RES-16") for id, scale, sentence in SCALES),
    ("one-draw-for-the-batch", {"mask": "batch"},
     "One draw decides for the whole batch; each example needs a draw of its own.", "RES-16"),
    ("one-draw-for-each-token", {"mask": "token"},
     "Each token has a draw of its own; all tokens of an example are dropped together.", "RES-16"),
    ("one-draw-for-each-entry", {"mask": "entry"},
     "Each entry has a draw of its own: that is dropout. All entries of an example are dropped "
     "together.", "RES-16"),
    ("mask-for-three-axes", {"mask": "three-axes"},
     "The mask has the shape (B, 1, 1) whatever x has: with another number of axes it fails or "
     "broadcasts over the wrong one.", "RES-09"),
    _UNREGISTERED,
)

SCALED = SUM + _knobs(
    DROPOUT,
    ("starts-at-one", {"start": 1.0},
     "The gain starts at 1, whatever `start` is: then the block is an ordinary one at the "
     "beginning, and the point of a small start is lost.", "RES-14", "default"),
    ("starts-at-zero", {"start": 0.0},
     "The gain starts at 0, whatever `start` is.", "", "default"),
    ("start-ignored", {"start": 1e-4},
     "`start` is ignored: the gain always starts at 1e-4.", "", "default"),
    *((f"start-default-{value}", {"default": float(value)},
       f"The default of `start` is {value}; the exercise asks for 1e-4.", case)
      for value, case in (("1", "RES-14"), ("0.1", ""), ("1e-5", ""), ("1e-6", ""), ("0", ""))),
    ("one-gain", {"shape": "number"},
     "One gain serves all features; each feature has a gain of its own.", ""),
    ("gain-on-skip", {"place": "skip"},
     "The gain scales the skip; it belongs on the update, x + g·f(x).", ""),
    ("gain-on-sum", {"place": "sum"},
     "The gain scales the sum; it belongs on the update, x + g·f(x).", ""),
    ("gain-on-input", {"place": "input"},
     "The gain scales what goes into the sub-layer; it belongs on what comes out.", ""),
    ("gain-mixes", {"place": "both"},
     "The skip is scaled by 1 − g. It should come through whole: x + g·f(x).", ""),
    ("gain-missing", {"place": "nothing"}, "The gain is not used.", "",
     "start", "default", "shape", "trained", "gain"),
    ("gain-not-trained", {"trained": False},
     "The gain gets no gradient: it is not an `nn.Parameter`, or it is detached in `forward`.",
     "", "shape"),
    ("one-plus-gain", {"gain": "one-plus"},
     "The update is scaled by 1 + g; it should be scaled by g, so that the block starts near the "
     "identity.", ""),
    _UNREGISTERED,
)

_PROJECTING = ("projection-with-bias", "projection-not-trained", "projection-anew")

PROJECTED = SUM[:1] + SUM[2:] + _knobs(
    ADDITIVE,
    ("projection-when-equal", {"equal": "projection"},
     "There is a projection although the widths are equal; then the shortcut is x itself, and "
     "nothing has to be learned to pass it on.", ""),
    ("no-shortcut-when-equal", {"equal": "nothing"},
     "There is no shortcut where the widths are equal.", "RES-01"),
    ("no-shortcut-when-different", {"differ": "nothing"},
     "There is no shortcut where the widths differ; there x goes through a linear map.", "RES-01",
     *_PROJECTING),
    ("cut-or-padded", {"differ": "cut"},
     "Where the widths differ, x is cut or padded with zeros; the exercise asks for a linear map "
     "that trains.", "", *_PROJECTING),
    ("no-projection", {"differ": "identity"},
     "There is no projection: x is added as it is, which fails where the widths differ (or "
     "broadcasts, where one of them is 1).", "RES-09", *_PROJECTING),
    ("update-projected", {"differ": "back"},
     "The update is projected to the width of the input; the skip should be projected to the "
     "width of the update.", "", *_PROJECTING[:2]),
    ("projection-with-bias", {"bias": True},
     "The projection has a bias; the exercise asks for one without, as the sub-layer can have its "
     "own.", ""),
    ("projection-not-trained", {"trained": "frozen"},
     "The projection does not train: its weight is not among `parameters()` (is it kept in a "
     "list?), or gets no gradient.", ""),
    ("projection-anew", {"trained": "anew"},
     "A new projection is made at each call of `forward`; make it once, in `__init__`.", "",
     "projection-with-bias"),
    ("broadcasts", {"compare": "nothing"},
     "Outputs of the sub-layer that have another shape are added wherever they broadcast, as an "
     "update of one feature does. Compare the shapes, and raise ValueError.", "RES-09"),
    ("only-widths-compared", {"compare": "widths"},
     "Only the last axes are compared; an update of one token still broadcasts to all of them. "
     "Compare the whole shapes.", "RES-09"),
    _UNREGISTERED,
)

INIT = _knobs(
    STREAM,
    ("output-not-scaled", {"output": "one"},
     "The output maps start like all others. A test for the name that never matches does this: "
     "`named_modules` gives full names, `blocks.0.attention.output`, and the last part has to be "
     "compared.", "RES-11", "match", "everything-scaled"),
    ("everything-scaled", {"others": "depth"},
     "All maps are scaled by 1/sqrt(2·depth); only those that write to the stream should be.", "",
     "match"),
    ("one-update-a-block", {"output": "blocks"},
     "The factor is 1/sqrt(depth). Each block writes to the stream twice: 1/sqrt(2·depth).", ""),
    ("root-forgotten", {"output": "no-root"},
     "The factor is 1/(2·depth). Variances add up, so the standard deviation takes the root: "
     "1/sqrt(2·depth).", ""),
    ("multiplied-by-root", {"output": "times"},
     "The output maps are multiplied by sqrt(2·depth); they should be divided by it.", ""),
    ("match-contains", {"match": "contains"},
     "Maps are scaled that have `output` somewhere in their name, like `output_gate`; only those "
     "whose own name is `output` write to the stream.", ""),
    ("last-block-only", {"match": "last"},
     "Only the last block is scaled; every block writes to the stream.", ""),
    ("others-left", {"others": "left"},
     "The maps that do not write to the stream are left as they were; they start with the "
     "standard deviation `std`.", ""),
    ("fan-in", {"others": "fan-in"},
     "The maps that do not write to the stream have the standard deviation 1/sqrt(fan-in); the "
     "exercise asks for `std`.", ""),
    ("biases-drawn", {"biases": "drawn"}, "The biases are random; they start at zero.", ""),
    ("biases-left", {"biases": "left"}, "The biases are left as they were; they start at zero.",
     ""),
    ("norms-reset", {"norms": "reset"},
     "Gains and biases of the norms are set to 1 and 0; they should be left alone.", ""),
    ("norms-drawn", {"norms": "drawn"},
     "Gains and biases of the norms are overwritten with random numbers; they should be left "
     "alone.", ""),
    ("same-draws", {"draws": "same"},
     "The same random numbers are used again: maps of one shape start as copies of each other. A "
     "seed that is set again in the loop does this.", ""),
    ("uniform", {"law": "uniform"},
     "The numbers have the right standard deviation but are uniform; the exercise asks for normal "
     "ones.", ""),
    ("std-ignored", {"fixed_std": 0.02}, "`std` is ignored: it is always 0.02.", "",
     "default_std"),
    *((f"std-default-{value}", {"default_std": value},
       f"The default of `std` is {value}; the exercise asks for 0.02.", "")
      for value in (0.01, 0.006, 1.0)),
)
