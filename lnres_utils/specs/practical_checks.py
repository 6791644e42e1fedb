"""The exercises of chapter 5: practical checks."""

from lnres_utils.checking import INPUT_KEPT, Exercise, Output, equivalent
from lnres_utils.drives import feature_axis
from lnres_utils.drives import practical_checks as drive
from lnres_utils.specs import (
    LESSONS,
    half_family,
    masked_family,
    norm_tests,
    probe_choices,
    seeing,
)
from lnres_utils.specs import practical_checks_cases as cases
from lnres_utils.specs.feature_axis import COPIED
from lnres_utils.specs.forbidden import NORMS

_COMMON = {"chapter": "practical-checks", "titles": LESSONS}
_GUESSED = equivalent(
    "what is taken for padding because it is zero need not be set to zero",
    {"mask-from-zeros", "padding-counted"}, {"mask-from-zeros", "padding-counted-as-zero"})

_EXERCISES = (
    *seeing.EXERCISES,
    Exercise(
        name="masked_norm", **_COMMON,
        forbid=NORMS,
        lesson=masked_family.PADDING, difficulty=2, minutes=15,
        parameters=("x", "mask", "kind", "eps=1e-5"), cases=cases.masked, drive=drive.masked_norm,
        reference=masked_family.reference, family=masked_family.faulty_masked,
        knobs=masked_family.KNOBS, equivalents=(COPIED, _GUESSED),
        groups={"real tokens": 3, "padding": 1, "no padding": 1, "small variance": 1,
                "nothing real": 2, "default epsilon": 1, INPUT_KEPT: 1},
        outputs={"y": Output(), "y at padding": Output()},
        hints=(
            "Three sums over the same axes: the number of real tokens, the sum of their x, and the "
            "sum of their squared deviations. Padding must add nothing to any of them.",
            "`real = mask[..., None]` has the shape (B, T, 1); `(x * real).sum(axes, "
            "keepdims=True) / count` is the mean. After the mean is subtracted, padding is no "
            "longer zero: mask the deviations again.",
            "`count = np.maximum(real.sum(axes, keepdims=True), 1)` divides no zero by zero where "
            "all is padding; `np.where(real, z, 0)` clears the padded positions at the end.",
        ),
    ),
    Exercise(
        name="half_layer_norm", **_COMMON,
        forbid=NORMS,
        lesson=half_family.HALF, difficulty=2, minutes=12,
        parameters=("x", "gamma", "beta", "eps=1e-5"), cases=cases.half,
        drive=feature_axis.layer_norm, reference=half_family.reference,
        family=half_family.faulty_half, knobs=half_family.KNOBS,
        groups={"ordinary": 1, "large": 3, "constant": 2, "small variance": 1, "far from zero": 2,
                "default epsilon": 1, INPUT_KEPT: 1},
        outputs={"y": Output(dtype=True, tolerance=5e-6)},
        hints=(
            "Nothing is wrong with the formula. Ask of each intermediate result how large and how "
            "small it can get, and whether float16 holds it: at most 65504, at least 6e-8.",
            "`x.astype(np.float32)` before the first statistic, `.astype(x.dtype)` after the last "
            "step. What is rounded to float16 in between stays rounded.",
            "Float32 alone is not enough: subtract the mean before you square. `np.mean(x**2) - "
            "np.mean(x)**2` is the difference of two large numbers.",
        ),
    ),
    norm_tests.EXERCISE,
    probe_choices.EXERCISE,
)

get = {exercise.name: exercise for exercise in _EXERCISES}.__getitem__
