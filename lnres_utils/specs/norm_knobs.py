"""The knobs of the faulty family of normalizations: each mistake in one sentence.

A knob that also sets a parameter to its value at rest forms no pair with the knobs of that
parameter: nobody makes such pairs, and no input would tell some of them from a single mistake.
"""

from lnres_utils.checking import Knob

ONE_VECTOR = "feature-axis/one-vector"
WHICH_AXIS = "feature-axis/which-axis"
SCALE = "feature-axis/scale-bias-epsilon"
TORCH = "feature-axis/matching-pytorch"

_OWN_EPS = {"eps_value": None, "default_eps": 1e-5}  # forms no pair with another epsilon
_STATISTICS = ("ddof", "eps_place", "eps_value", "default_eps")

VARIANCE = (
    Knob("unbiased-variance", {"ddof": 1},
         "The variance is divided by N − 1; layer normalization divides by N, the number of "
         "normalized features. `np.var` divides by N unless told otherwise, `torch.var` by N − 1.",
         ONE_VECTOR, "LN-01"),
    Knob("sample-std-plus-eps", {"ddof": 1, "eps_place": "outside"},
         "Two slips that are often copied together, `(x - mean) / (x.std() + eps)`: the variance "
         "is divided by N − 1, and ε is added to the standard deviation. Divide by N, and put ε "
         "under the root.",
         SCALE, "LN-01+LN-02"),
    Knob("sum-for-mean", {"spread": "sum"},
         "The squared deviations are summed but not divided by N: that is not a variance, and "
         "every output is too small by √N.",
         ONE_VECTOR, "S3-sum-for-mean", masks=("ddof",)),
    Knob("square-of-mean", {"spread": "square-of-mean", "center": "mean", "eps_place": "inside",
                            "keepdims": "kept"},
         "The variance comes out as 0: it averages the deviations from the mean, which cancel, and "
         "not their squares: `np.mean((x - mean) ** 2)`.",
         ONE_VECTOR, "", masks=("ddof",)),
    Knob("no-root", {"spread": "var"},
         "The output is divided by the variance; it should be divided by its square root.",
         ONE_VECTOR, "", masks=("eps_place",)),
    *(Knob(id + suffix, {"spread": spread, **place, **also}, sentence, ONE_VECTOR, case, masks)
      for id, spread, also, sentence, case in (
          ("mean-absolute-deviation", "mad", {},
           "The spread is the mean absolute deviation; layer normalization uses the standard "
           "deviation.", "S3-mean-absolute-deviation"),
          ("range-for-std", "range", {"center": "mean", "default_eps": 1e-5},
           "The output is divided by max − min; layer normalization divides by the standard "
           "deviation.", ""),
          ("min-max", "min-max", {"center": "mean", "default_eps": 1e-5},
           "This is min-max scaling to the interval [0, 1], not mean and variance.",
           "S3-min-max"),
      )
      for suffix, place, masks in (
          ("", {"eps_place": "inside"}, ("ddof",)),
          ("-without-eps", {"eps_place": "missing"}, ("ddof", "eps_value", "default_eps")),
      )),
    Knob("softmax", {"spread": "softmax"},
         "This is a softmax: positive numbers that sum to one, not mean zero and variance one.",
         ONE_VECTOR, "S3-softmax", masks=(*_STATISTICS, "center")),
    Knob("centered-only", {"spread": "one", "center": "mean"},
         "The mean is subtracted, but nothing is divided by the standard deviation.",
         ONE_VECTOR, "S3-centered-only", masks=_STATISTICS),
    Knob("multiplied-by-std", {"spread": "product", "center": "mean", "default_eps": 1e-5},
         "The deviation is multiplied by the standard deviation; it should be divided by it.",
         ONE_VECTOR, ""),
)

CENTER = (
    Knob("not-centered", {"center": "none"},
         "The mean is not subtracted: this is x / std.",
         ONE_VECTOR, "S3-not-centered"),
    Knob("rms-for-layer-norm", {"center": "uncentered"},
         "This is RMS normalization: the mean is not subtracted, and the mean square takes the "
         "place of the variance.",
         ONE_VECTOR, "S3-rms-for-layer-norm"),
    Knob("mean-square-for-variance", {"center": "uncentered-spread"},
         "The mean is subtracted above the line, but below it stands the mean of x² instead of "
         "the variance.",
         ONE_VECTOR, ""),
    Knob("precedence", {"center": "precedence"},
         "This computes x − mean / std: the parentheses around x − mean are missing.",
         ONE_VECTOR, "S3-precedence"),
    Knob("median-for-mean", {"center": "median"},
         "The median is subtracted; layer normalization subtracts the mean.",
         ONE_VECTOR, ""),
)

EPSILON = (
    Knob("eps-outside-root", {"eps_place": "outside"},
         "ε is added to the standard deviation; it belongs under the root, added to the variance.",
         SCALE, "LN-02"),
    Knob("eps-missing", {"eps_place": "missing"},
         "ε has no effect: nothing is added to the variance, not even where it is zero.",
         SCALE, "LN-19", masks=("eps_value", "default_eps")),
    Knob("eps-tiny", {"eps_value": 1e-30},
         "ε has no effect: it is left out except where the variance is zero, or something far too "
         "small takes its place.",
         SCALE, "LN-19", masks=("default_eps", "eps-outside-root", "eps-twice")),
    Knob("eps-squared", {"eps_place": "squared", **_OWN_EPS},
         "ε is squared before it is added to the variance.", SCALE, ""),
    Knob("eps-twice", {"eps_place": "both"},
         "ε is added twice: under the root and again outside it.", SCALE, ""),
    Knob("max-std-eps", {"eps_place": "max-std", **_OWN_EPS},
         "The divisor is max(std, ε); layer normalization adds ε to the variance.",
         SCALE, "S3-max-for-plus"),
    Knob("max-var-eps", {"eps_place": "max-var", **_OWN_EPS},
         "The variance is clipped at ε from below; layer normalization adds ε to it.",
         SCALE, "S3-max-for-plus"),
    *(Knob(f"eps-fixed-{value}", {"eps_value": float(value)},
           f"The argument `eps` is ignored: ε is always {value}.",
           SCALE, "LN-19", masks=("default_eps",))
      for value in ("1e-3", "1e-5", "1e-6")),
)

DEFAULT_EPSILON = tuple(
    Knob(f"eps-default-{value}", {"default_eps": float(value)},
         f"The default of `eps` is {value}{more}; the exercise asks for 1e-5, the default of "
         "`torch.nn.LayerNorm`.",
         SCALE, "LN-19")
    for value, more in (("1e-3", ""), ("1e-6", ""), ("1e-8", ""),
                        ("1e-12", " or something as small"), ("0", ""))
)

DTYPE = (
    Knob("float64-out", {"dtype": "float64"},
         "The output is float64 although the input is float32: return the dtype you were given.",
         TORCH, ""),
)

_KEEPDIMS = (
    "The statistics lost their axis. Without `keepdims=True` they line up with the wrong axis of "
    "x: that raises an error for most shapes, and is silently wrong when sizes coincide."
)
KEEPDIMS = (
    Knob("no-keepdims", {"keepdims": "lost"}, _KEEPDIMS, WHICH_AXIS, "LN-08"),
    Knob("no-keepdims-right-variance",
         {"keepdims": "lost-late", "spread": "std", "center": "mean"}, _KEEPDIMS, WHICH_AXIS,
         "LN-08"),
)

RANK = (
    Knob("three-axes-only", {"ndim": 3},
         "It works for (B, T, D) only. (…, D) means any number of axes before the features: use "
         "axis −1, and do not unpack the shape.", WHICH_AXIS, ""),
)

AXES = (
    Knob("over-tokens", {"axes": -2},
         "The statistics run over the tokens instead of the features: each token sees the others.",
         WHICH_AXIS, "LN-03"),
    Knob("over-axis-1", {"axes": 1},
         "The statistics run over axis 1, which is the token axis of (B, T, D). Use axis −1.",
         WHICH_AXIS, "LN-03"),
    Knob("over-batch", {"axes": 0},
         "The statistics run over axis 0, the batch: every example changes the others.",
         WHICH_AXIS, "LN-04", masks=("keepdims",)),
    Knob("over-tokens-and-features", {"axes": (-2, -1)},
         "One mean and one variance are shared by all tokens of an example; each token needs its "
         "own.",
         WHICH_AXIS, "LN-05"),
    Knob("over-all-but-batch", {"axes": "all-but-first"},
         "The statistics run over every axis but the first, as if `normalized_shape` were "
         "`x.shape[1:]`; only the last axis is to be normalized.",
         WHICH_AXIS, "LN-05"),
    Knob("over-batch-and-tokens", {"axes": (0, 1)},
         "The statistics run over axes 0 and 1, batch and tokens: that is batch normalization.",
         WHICH_AXIS, "LN-06", masks=("keepdims",)),
    Knob("over-all-but-features", {"axes": "all-but-last"},
         "The statistics run over every axis but the last: that is batch normalization.",
         WHICH_AXIS, "LN-06", masks=("keepdims",)),
    Knob("over-everything", {"axes": None},
         "One mean and one variance are taken over the whole array; each token needs its own.",
         WHICH_AXIS, "LN-05", masks=("keepdims",)),
)

AFFINE = (
    Knob("gain-bias-swapped", {"affine": "swapped"},
         "Gain and bias are swapped: the output is z·β + γ instead of z·γ + β.",
         SCALE, "LN-10"),
    Knob("affine-before-norm", {"affine": "before"},
         "Gain and bias are applied to x before it is normalized; they belong after, on the "
         "normalized values.",
         SCALE, "S3-affine-before-norm"),
    Knob("gain-missing", {"affine": "no-gain"}, "The gain γ is not applied.", SCALE, "",
         masks=("gain-starts-small", "gain-not-trained")),
    Knob("bias-missing", {"affine": "no-bias"}, "The bias β is not added.", SCALE, "",
         masks=("bias-not-trained",)),
    Knob("affine-missing", {"affine": "none"},
         "Neither the gain γ nor the bias β is applied.", SCALE, "",
         masks=("affine_axis", "init", "nothing-trains", "gain-not-trained", "bias-not-trained")),
    Knob("bias-before-gain", {"affine": "bias-first"},
         "The bias is multiplied by the gain, (z + β)·γ; it should be added last, z·γ + β.",
         SCALE, "S3-bias-before-gain"),
    Knob("gain-plus-bias", {"affine": "sum"},
         "The normalized values are multiplied by γ + β; the bias is added after: z·γ + β.",
         SCALE, ""),
    Knob("one-plus-gain", {"affine": "one-plus"},
         "The gain is taken as 1 + γ; here γ itself is the gain.", SCALE, ""),
    Knob("bias-subtracted", {"affine": "minus-bias"},
         "The bias is subtracted; it should be added.", SCALE, ""),
    Knob("divided-by-gain", {"affine": "divided"},
         "The normalized values are divided by γ; they should be multiplied by it.", SCALE, ""),
    Knob("scalar-gain", {"affine": "one-gain"},
         "One gain and one bias serve all features; γ and β have an entry for each feature.",
         SCALE, "LN-14"),
)

FOUR_NORMS = tuple(
    Knob(id, settings, sentence, WHICH_AXIS, case)
    for id, settings, sentence, case in (
        ("layer-over-tokens-and-features", {"layer": (1, 2)},
         "Kind \"layer\" runs over tokens and features together; each token needs its own mean.",
         "LN-05"),
        ("layer-over-tokens", {"layer": 1},
         "Kind \"layer\" runs over the tokens; it should run over the features.", "LN-03"),
        ("layer-over-batch", {"layer": 0},
         "Kind \"layer\" runs over the batch; it should run over the features.", "LN-04"),
        ("layer-over-batch-and-tokens", {"layer": (0, 1)},
         "Kind \"layer\" runs over batch and tokens: that is batch normalization.", "LN-06"),
        ("batch-over-batch-only", {"batch": 0},
         "Kind \"batch\" runs over the examples only; the tokens belong to the batch as well.",
         "LN-06"),
        ("batch-over-tokens-and-features", {"batch": (1, 2)},
         "Kind \"batch\" leaves the batch out: it runs over tokens and features.", ""),
        ("batch-over-everything", {"batch": (0, 1, 2)},
         "Kind \"batch\" runs over the features too; each feature has its own mean and variance.",
         ""),
        ("batch-over-batch-and-features", {"batch": (0, 2)},
         "Kind \"batch\" takes the token axis for the features: it runs over axes 0 and 2.", ""),
        ("batch-over-features", {"batch": -1},
         "Kind \"batch\" runs over the features: that is layer normalization.", "LN-06"),
        ("instance-over-tokens-and-features", {"instance": (1, 2)},
         "Kind \"instance\" runs over tokens and features; each feature needs its own mean.", ""),
        ("instance-over-features", {"instance": -1},
         "Kind \"instance\" runs over the features: that is layer normalization.", ""),
        ("instance-over-batch-and-tokens", {"instance": (0, 1)},
         "Kind \"instance\" mixes the examples: it runs over the batch as well.", ""),
        ("instance-over-batch", {"instance": 0},
         "Kind \"instance\" runs over the batch; it should run over the tokens.", ""),
        ("groups-interleaved", {"group": "interleaved"},
         "A group holds neighboring features; here it holds every n-th one. Reshape the last axis "
         "to (groups, D // groups), in that order.", ""),
        ("groups-reshaped", {"group": "reshaped"},
         "Reshaping (B, T, D) to (B, groups, T, D // groups) does not move the features there; it "
         "cuts the numbers in the order they lie in. Reshape to (B, T, groups, D // groups).", ""),
        ("groups-per-token", {"group": "per-token"},
         "Kind \"group\" normalizes within each token; group normalization shares its statistics "
         "over all tokens of an example.", "AX-01"),
        ("groups-as-size", {"group": "size"},
         "`groups` is the number of groups; here it is taken for the number of features in one.",
         ""),
        ("groups-ignored", {"group": "all"},
         "`groups` is ignored: all features form one group.", "AX-01"),
    )
)


def channel_axes():
    """Knobs of a norm on (B, C, H, W)."""
    return tuple(
        Knob(id, settings, sentence, WHICH_AXIS, "AX-14", masks)
        for id, settings, sentence, masks in (
            ("over-channels-and-pixels", {"axes": (1, 2, 3)},
             "One mean is shared by all pixels of an image, as `nn.LayerNorm([C, H, W])` does; "
             "each pixel needs its own, over its channels.", ()),
            ("over-pixels", {"axes": (2, 3)},
             "The statistics run over height and width: that is instance normalization.", ()),
            ("over-width", {"axes": -1},
             "The statistics run over the last axis, which is the width of the image here; the "
             "channels are axis 1.", ()),
            ("over-all-but-channels", {"axes": (0, 2, 3)},
             "The statistics run over batch, height and width: that is batch normalization.", ()),
            ("channels-reshaped",
             {"axes": "reshaped", "affine_axis": 1, "keepdims": "kept"},
             "Reshaping (B, C, H, W) to (B, H·W, C) does not move the channels to the end; it cuts "
             "the numbers in the order they lie in. Use `np.moveaxis(x, 1, -1)`.", ()),
            ("over-batch", {"axes": 0}, "The statistics run over the batch.", ("keepdims",)),
            ("over-everything", {"axes": None},
             "One mean and one variance are taken over the whole array.", ("keepdims",)),
            ("affine-on-width", {"affine_axis": -1},
             "Gain and bias line up with the width of the image; they belong to the channels.",
             ()),
        )
    )
