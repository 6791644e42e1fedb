"""The knobs of RMS normalization: those of layer norm told anew, and its own."""

from dataclasses import replace

from lnres_utils.checking import Knob
from lnres_utils.specs import backward_family, norm_knobs

ONE_STATISTIC = "rmsnorm/one-statistic-less"
DIALECTS = "rmsnorm/dialects"
INSIDE = "rmsnorm/layer-norm-inside"
HALF = "practical-checks/half-precision"
TORCH = norm_knobs.TORCH

_WORDS = (  # of a sentence on layer norm, and what RMS norm says there
    ("The statistics run", "The mean square runs"),
    ("One mean and one variance are", "One mean square is"),
    ("the mean and variance terms are", "the term of the mean square is"),
    ("standard deviation", "root mean square"), ("variance", "mean square"),
    ("uses x − mean", "uses x"), ("dgamma and dbeta are", "dgamma is"),
    ("they are sums", "it is a sum"), ("they keep the features and sum", "it keeps them and sums"),
    ("γ and β are shared", "γ is shared"),
    ("layer normalization", "RMS normalization"), ("max(std", "max(rms"),
    ("that is batch normalization", "batch normalization does so"),
)
_CASES = {"LN-02": "RMS-03", "LN-19": "RMS-13"}


def told_anew(knobs, drop=()):
    """Knobs of layer norm in the words of RMS norm."""
    return tuple(_anew(knob) for knob in knobs if knob.id not in drop)


def _anew(knob):
    sentence = knob.sentence
    for old, new in _WORDS:
        sentence = sentence.replace(old, new)
    settings = {name: 1e-6 if (name, value) == ("default_eps", 1e-5) else value
                for name, value in knob.settings.items()}  # at rest it stays at rest
    lesson = DIALECTS if knob.id == "eps-outside-root" else knob.lesson
    return replace(knob, settings=settings, sentence=sentence, lesson=lesson,
                   case=_CASES.get(knob.case, knob.case))


def _knob(id, settings, sentence, case="", lesson=ONE_STATISTIC, masks=()):
    return Knob(id, settings, sentence, lesson, case, masks)


CENTER = (
    _knob("centered", {"center": "mean"},
          "The mean is subtracted: this is layer normalization. RMS normalization leaves it in.",
          "RMS-01"),
    _knob("variance-for-mean-square", {"center": "none"},
          "x is divided by the root of its variance; it should be divided by the root of the mean "
          "of x². The two agree only where the mean is zero.", "RMS-02"),
    _knob("unbiased-variance", {"center": "none", "ddof": 1},
          "x is divided by the root of its variance, and that with N − 1; it should be divided by "
          "the root of the mean of x².", "RMS-02"),
    _knob("centered-above", {"center": "uncentered-spread"},
          "The mean is subtracted above the line; RMS normalization subtracts it nowhere.",
          "RMS-01"),
)

_LENGTH = ("The vector is divided by its length, the root of the sum of squares: take the mean of "
           "the squares. Every output is too small by √D.")
MEAN_SQUARE = (
    _knob("length-one", {"spread": "sum"}, _LENGTH, "RMS-04", masks=("ddof",)),
    _knob("length-one-without-eps", {"spread": "sum", "eps_place": "missing"}, _LENGTH, "RMS-04",
          masks=("ddof", "eps_value", "default_eps")),
    _knob("multiplied-by-rms", {"spread": "product", "default_eps": 1e-6},
          "x is multiplied by its root mean square, as when it is divided by `rsqrt`; it should be "
          "divided by the root, or multiplied by its reciprocal.", "RMS-06",
          masks=("scale-rounded",)),
    _knob("no-root", {"spread": "var"},
          "x is divided by the mean square; it should be divided by its square root.",
          masks=("eps_place",)),
    _knob("unbiased-mean-square", {"ddof": 1},
          "The sum of squares is divided by D − 1; a mean square divides by D."),
)
ARRAY_MEAN_SQUARE = (
    _knob("squared-mean", {"spread": "squared-mean", "center": "uncentered"},
          "The mean is squared; it is the squares that are averaged: `np.mean(x**2)`, not "
          "`np.mean(x)**2`.", "S3-squared-mean", masks=("ddof",)),
    _knob("not-divided", {"spread": "one", "center": "uncentered", "axes": -1,
                           "keepdims": "kept"},
          "Nothing is divided by the root mean square.",
          masks=("ddof", "eps_place", "eps_value", "default_eps", "gain-before-statistic")),
    *(_knob("mean-absolute-value" + suffix, {"spread": "mad", **place},
            "x is divided by the mean of |x|; RMS normalization divides by the root of the mean of "
            "x².", masks=masks)
      for suffix, place, masks in (
          ("", {"eps_place": "inside"}, ("ddof",)),
          ("-without-eps", {"eps_place": "missing"}, ("ddof", "eps_value", "default_eps")))),
)

PLACE = told_anew(norm_knobs.EPSILON, drop=("eps-fixed-1e-3", "eps-fixed-1e-5", "eps-fixed-1e-6"))
FIXED = tuple(
    _knob(f"eps-fixed-{value}", {"eps_value": float(value)},
          f"The argument `eps` is ignored: ε is always {value}. Checkpoints differ in it, so it "
          "comes from their configuration.", "RMS-13", DIALECTS, masks=("default_eps",))
    for value in ("1e-3", "1e-5", "1e-6", "1e-8"))
EPSILON = PLACE + FIXED

DEFAULT_EPSILON = (
    _knob("eps-default-of-dtype", {"default_eps": None},
          "Without `eps`, ε is the machine epsilon of the input's dtype: another one for float32 "
          "than for float64. The exercise asks for 1e-6 in each.", "RMS-12", DIALECTS),
    *(_knob(f"eps-default-{value}", {"default_eps": float(value)},
            f"The default of `eps` is {value}{more}; the exercise asks for 1e-6.", "RMS-12",
            DIALECTS)
      for value, more in (("1e-3", ""), ("1e-5", ", as for layer norm"),
                          ("1.19e-7", ", float32's machine epsilon"), ("1e-8", ""),
                          ("1e-12", " or something as small"), ("0", ""))),
)

GAIN = (
    _knob("gain-before-statistic", {"affine": "before"},
          "The gain multiplies x before its mean square is taken; it belongs after, on the "
          "normalized values.", "S3-gain-before-statistic", masks=("cast", "float64-narrowed")),
    _knob("gain-missing", {"affine": "none"}, "The gain γ is not applied.",
          masks=("init", "nothing-trains", "rounded-before-gain", "gain-widens")),
)
ARRAY_GAIN = GAIN + (
    _knob("one-plus-gain", {"affine": "one-plus"},
          "The gain is taken as 1 + γ, as in Gemma; here γ itself is the gain.", "RMS-10",
          DIALECTS),
    _knob("divided-by-gain", {"affine": "divided"},
          "The normalized values are divided by γ; they should be multiplied by it."),
    _knob("scalar-gain", {"affine": "one-gain"},
          "One gain serves all features; γ has an entry for each feature."),
)

AXES = told_anew(norm_knobs.AXES)
KEEPDIMS = told_anew(norm_knobs.KEEPDIMS[:1])
RMS_NORM = (CENTER + MEAN_SQUARE + ARRAY_MEAN_SQUARE + EPSILON + DEFAULT_EPSILON + AXES + ARRAY_GAIN
            + KEEPDIMS + norm_knobs.RANK + norm_knobs.DTYPE)

_OF_THE_MEAN = ("statistics-constant", "mean-term-missing", "mean-term-twice", "mean-term-sign",
                "mean-term-summed", "terms-summed", "dgamma-times-centered",
                "dgamma-dbeta-swapped")
_ANOTHER_DEFAULT = tuple(knob.id for knob in backward_family.KNOBS
                         if knob.id.startswith("backward-eps-default"))
_WITHOUT_THE_TERM = {"variance-term-missing": ("terms", "gain-after")}
BACKWARD = (
    _knob("backward-of-layer-norm", {"mean_term": 1.0, "center": True},
          "This is the backward pass of layer norm: the mean is subtracted, and dx has its term.",
          "RMS-01"),
    _knob("mean-term-added", {"mean_term": 1.0},
          "dx has a term of the mean; RMS normalization subtracts no mean, so nothing comes back "
          "through one.", "RMS-01"),
    *(replace(knob, masks=(*knob.masks, *_WITHOUT_THE_TERM.get(knob.id, ())))
      for knob in told_anew(backward_family.KNOBS, drop=_OF_THE_MEAN + _ANOTHER_DEFAULT)),
    _knob("x-for-z-once", {"inner": "centered-once"},
          "The term of the mean square in dx, z · mean(dz · z), has x in place of one of its two "
          "z.", "", backward_family.BACKWARD),
    _knob("dgamma-without-z", {"gamma_times": "one"},
          "dgamma is the sum of dy alone, which would be the gradient of a bias; multiply dy with "
          "the normalized vector first.", "", backward_family.BACKWARD),
    _knob("dx-dgamma-swapped", {"swapped": True}, "dx and dgamma are returned in the wrong order."),
    *(_knob(f"backward-eps-default-{value}", {"default_eps": float(value)},
            f"The default of `eps` is {value}; the exercise asks for 1e-6.", "RMS-12", DIALECTS)
      for value in ("1e-3", "1e-5", "1e-12", "0")),
)

_NEEDS_WEIGHTS = ("cast", "inside", "one-plus-weight", "statistics-detached",
                  "gain-before-statistic", "gain-missing")  # invisible in a module as built
_AS_BUILT = "As built, the module does not start as plain normalization: "
_PARAMETERS = (
    _knob("gain-starts-at-zero", {"init": "zero"}, _AS_BUILT + "the gain starts at 0, not at 1."),
    _knob("gain-starts-small", {"init": "small"},
          _AS_BUILT + "the gain starts near 0.02, not at 1."),
    _knob("one-plus-weight", {"init": "zero", "affine": "one-plus"},
          "The module multiplies by 1 + weight, as in Gemma: built anew it is right, but weights "
          "of an ordinary RMSNorm give another output.", "RMS-10", DIALECTS),
    _knob("parameter-renamed", {"parameters": "gamma-beta"},
          "The gain is saved under another name, so the `state_dict` of `torch.nn.RMSNorm` does "
          "not load: name it weight.", "LN-16", TORCH, masks=_NEEDS_WEIGHTS),
    _knob("scalar-parameter", {"parameters": "scalar"},
          "The gain has one entry; it needs one for each feature.", "LN-14", TORCH,
          masks=_NEEDS_WEIGHTS),
    _knob("parameter-of-shape-1-d", {"parameters": "column"},
          "The gain has shape (1, D); `torch.nn.RMSNorm` keeps it as (D,), so its `state_dict` "
          "does not load.", "", TORCH, masks=_NEEDS_WEIGHTS),
    _knob("biased", {"biased": True},
          "There is a bias; an RMSNorm has its gain alone, so the `state_dict` of "
          "`torch.nn.RMSNorm`, `weight` and nothing else, does not load.", "", TORCH,
          masks=(*_NEEDS_WEIGHTS, "nothing-trains")),
    _knob("nothing-trains", {"parameters": "buffers"},
          "The gain gets no gradient: it is not an `nn.Parameter`, has `requires_grad=False`, or "
          "is detached in `forward`.", "LN-14", TORCH),
    _knob("plain-tensor", {"parameters": "tensors"},
          "The `state_dict` is empty: no weight can be saved or loaded. In `__init__`, assign an "
          "`nn.Parameter` to `self.weight`.", "LN-14", TORCH, masks=(*_NEEDS_WEIGHTS, "biased")),
    _knob("eps-trained", {"parameters": "eps"},
          "ε is in the `state_dict`, so the weights of `torch.nn.RMSNorm` do not load: keep it as "
          "a plain number, `self.eps = eps`.", "LN-14", TORCH,
          masks=_NEEDS_WEIGHTS),
    _knob("statistics-detached", {"detached": True},
          "The mean square carries no gradient: it was detached or computed under "
          "`torch.no_grad()`.", "LN-20", backward_family.BACKWARD),
)
_PRECISION = (
    _knob("rounded-before-gain", {"cast": "before-gain"},
          "The normalized values are rounded to the input's dtype before the gain multiplies them, "
          "as in Llama: that rounds twice. Multiply first, cast last.", "RMS-09", DIALECTS),
    _knob("gain-widens", {"cast": "before-gain-only"},
          "The values return to the input's dtype before a gain of float32 multiplies them, and "
          "the product is float32 again. Multiply first, cast last.", "RMS-15", DIALECTS),
    _knob("never-cast-back", {"cast": "never"},
          "The output stays float32 for an input of half precision: end with `.to(hidden.dtype)`.",
          "RMS-15", DIALECTS),
    _knob("half-inside", {"inside": "narrow"},
          "The mean square is taken in half precision: squares above 65504 overflow float16, and "
          "the rows come out as zeros. Take it in float32.", "NUM-01", HALF,
          masks=("rounded-before-gain",)),
    _knob("float64-narrowed", {"inside": "float32", "spread": "std"},
          "A float64 input is narrowed to float32, as by `.float()`: its large squares overflow "
          "there. Take the wider of float32 and the input's dtype.", "", DIALECTS),
    _knob("scale-rounded", {"inside": "wide-statistics"},
          "The mean square is taken in float32, but its root is rounded to the input's dtype "
          "before x is divided by it: keep everything in float32 up to the end.", "RMS-09",
          DIALECTS, masks=("rounded-before-gain",)),
    _knob("scale-rounded-float64-narrowed", {"inside": "float32-statistics", "spread": "std"},
          "The mean square is always taken in float32, in which large squares of a float64 input "
          "overflow, and its root is rounded to the input's dtype before x is divided by it.", "",
          DIALECTS, masks=("rounded-before-gain",)),
)
_IN_MODULES = ("eps-outside-root", "eps-missing", "eps-tiny", "over-tokens", "over-axis-1",
               "over-batch", "over-tokens-and-features", "over-batch-and-tokens", "over-everything")
MODULE = (_PARAMETERS + _PRECISION + CENTER[:3] + MEAN_SQUARE + FIXED[1:3] + DEFAULT_EPSILON + GAIN
          + tuple(knob for knob in PLACE + AXES if knob.id in _IN_MODULES))

_HEADS = (
    _knob("over-all-heads", {"over": "all"},
          "One mean square is taken over all heads of a token: a head with large values silences "
          "the others. Each head has its own.", "RMS-14", DIALECTS),
    _knob("over-heads", {"over": "heads"},
          "The mean square runs over the heads, feature by feature; it should run over the "
          "features of one head.", "RMS-14", DIALECTS),
    _knob("over-tokens", {"over": "tokens"},
          "The mean square runs over the tokens: each token sees the others.", "LN-03", DIALECTS),
    _knob("over-tokens-and-features", {"over": "tokens-and-features"},
          "One mean square is taken over all tokens of a head; each token has its own.", "LN-05",
          DIALECTS),
    _knob("heads-interleaved", {"split": "interleaved"},
          "A head holds neighboring features; here it holds every n-th one. Reshape the last axis "
          "to (heads, D // heads), in that order.", "", DIALECTS),
    _knob("heads-as-size", {"split": "size"},
          "`heads` is the number of heads; here it is taken for the size of one.", "", DIALECTS),
    _knob("heads-left-split", {"layout": "split"},
          "The heads are still apart: bring the result back to (B, T, D).", "", DIALECTS),
    _knob("heads-left-first", {"layout": "heads-first"},
          "The result is still (B, heads, T, D / heads): swap the axes back, then reshape to "
          "(B, T, D).", "", DIALECTS),
    _knob("not-transposed-back", {"layout": "untransposed"},
          "The heads stand before the tokens when they are joined, so a row mixes tokens: swap "
          "the axes back to (B, T, heads, D / heads) before the last reshape.", "", DIALECTS),
    _knob("results-swapped", {"sources": "swapped"},
          "The two results are in the other order: queries come first.", "", DIALECTS),
    *(_knob(f"both-from-{one}", {"sources": one}, f"The {other} are computed from the {one}.", "",
            DIALECTS) for one, other in (("queries", "keys"), ("keys", "queries"))),
    _knob("gains-repeated", {"gains": "repeated"},
          "Each entry of the gain multiplies a run of neighboring features, as from `np.repeat`; "
          "every head has the whole gain, as from `np.tile`.", "", DIALECTS),
    _knob("one-gain-for-both", {"gains": "of-queries"},
          "The keys are multiplied by the gain of the queries; they have their own.", "", DIALECTS),
    _knob("key-gain-for-both", {"gains": "of-keys"},
          "The queries are multiplied by the gain of the keys; they have their own.", "", DIALECTS),
    _knob("gains-swapped", {"gains": "swapped"}, "The two gains are swapped.", "", DIALECTS),
    _knob("gains-missing", {"gains": "none"}, "The gains are not applied.", "", DIALECTS),
    _knob("one-plus-gains", {"gains": "one-plus"},
          "The gains are taken as 1 + γ; here γ itself is the gain.", "RMS-10", DIALECTS),
    _knob("gains-before-statistic", {"gains": "before"},
          "The gains multiply before the mean square is taken; they belong after.",
          "S3-gain-before-statistic", DIALECTS),
    _knob("only-queries", {"left_out": "keys", "gains": "own"},
          "The keys are not normalized: their size still decides how sharp attention is.", "",
          DIALECTS),
    _knob("only-keys", {"left_out": "queries", "gains": "own"},
          "The queries are not normalized: their size still decides how sharp attention is.", "",
          DIALECTS),
)
QK_NORM = (_HEADS + CENTER + MEAN_SQUARE + EPSILON + DEFAULT_EPSILON[1:])

FOLD = tuple(
    _knob(id, settings, sentence, "", INSIDE, masks)
    for id, settings, sentence, masks in (
        ("over-inputs", {"weight_axis": 1},
         "The mean is taken over the inputs of each output (axis 1); what has to be zero is the "
         "mean over the outputs, axis 0 of `weight`.", ()),
        ("whole-mean", {"weight_axis": "both"},
         "One mean is taken out of the whole matrix; each column has its own: axis 0.",
         ("keepdims",)),
        ("only-bias", {"weight_axis": "none", "bias": "mean"},
         "Only the bias is centered; the columns of `weight` write a mean to the output as well.",
         ("keepdims", "divided")),
        ("bias-kept", {"bias": "kept"},
         "The bias is not centered: its mean still reaches the output.", ()),
        ("bias-dropped", {"bias": "dropped"},
         "The bias is gone; only its mean is to be taken out.", ()),
        ("over-inputs-without-keepdims", {"weight_axis": 1, "keepdims": False},
         "The mean is taken over axis 1 and lost its axis; take it over the outputs, axis 0.", ()),
        ("divided-by-std", {"divided": True},
         "The weights are divided by a standard deviation as well; only the mean is to be taken "
         "out, the norm does the rest.", ()),
        ("subtracted-twice", {"times": 2}, "The means are subtracted twice.", ()),
        ("means-added", {"sign": 1}, "The means are added; they should be subtracted.", ()),
        *((f"float64-{what.replace(' ', '-')}", {"float64": what},
           f"The {what} returned for float32 {'is' if what == 'weight' else 'are'} float64, as "
           "after a product with `np.eye(D) - 1 / D`: cast to the dtype you were given.", ())
          for what in ("weight", "weight and bias")),
    )
)

_GEMMA = "A norm of the kind one-plus multiplies by 1 + w"
CONVERT = tuple(
    _knob(id, settings, sentence, case, DIALECTS, masks)
    for id, settings, sentence, case, masks in (
        ("one-forgotten", {"plain": 0.0, "one_plus": 0.0},
         f"{_GEMMA}, so the numbers stored differ by one; here they are handed on unchanged.",
         "RMS-10", ("inside",)),
        ("one-twice", {"plain": 2.0, "one_plus": -1.0},
         f"To \"plain\", one is added twice. {_GEMMA}: its gain is that, and no more.", "RMS-10",
         ()),
        ("one-forgotten-to-plain", {"plain": 0.0, "one_plus": -1.0},
         f"To \"plain\", the one is forgotten. {_GEMMA}.", "RMS-10", ()),
        ("one-kept-to-one-plus", {"plain": 1.0, "one_plus": 0.0},
         f"To \"one-plus\", the one is not taken away. {_GEMMA}, so it stores γ − 1.", "RMS-10",
         ()),
        ("one-twice-to-one-plus", {"plain": 1.0, "one_plus": -2.0},
         "To \"one-plus\", one is taken away twice.", "RMS-10", ()),
        ("always-added", {"plain": 1.0, "one_plus": 1.0},
         "One is added in both directions; to \"one-plus\" it has to be taken away.", "RMS-10", ()),
        ("always-subtracted", {"plain": -1.0, "one_plus": -1.0},
         "One is taken away in both directions; to \"plain\" it has to be added.", "RMS-10", ()),
        ("directions-swapped", {"plain": -1.0, "one_plus": 1.0},
         "The two directions are taken for each other: `to` names the kind that is wanted.",
         "RMS-10", ()),
        ("added-in-half", {"inside": "narrow"},
         "The one is added in half precision, which cannot hold the sum. Cast to float32 first.",
         "RMS-11", ()),
        ("back-to-stored-dtype", {"result": "stored"},
         "The result is rounded back to half precision, which cannot hold it. Return float32.",
         "RMS-11", ("inside",)),
        ("always-float32", {"result": "float32"},
         "A float64 weight comes back as float32: the exercise asks for float64 then.", "", ()),
        ("always-float64", {"result": "float64"},
         "The result is float64 whatever was given: half precision becomes float32 here, and "
         "float32 stays what it is.", "", ()),
    )
)
