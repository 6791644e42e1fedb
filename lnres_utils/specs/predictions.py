"""Six numbers to predict before running anything; the wrong beliefs are the knobs."""

import numpy as np

from lnres_utils.checking import Knob, Output
from lnres_utils.drives.feature_axis import predictions
from lnres_utils.specs.questions import asking

GEOMETRY = "feature-axis/geometry"
ONE_VECTOR = "feature-axis/one-vector"
SCALE = "feature-axis/scale-bias-epsilon"
TORCH = "feature-axis/matching-pytorch"

QUESTIONS = {  # the right answer of each question
    "width_one": 3.0,
    "largest_of_17": 4.0,
    "ratio_n_minus_1": np.sqrt(4 / 5),
    "std_at_eps": np.sqrt(1 / 2),
    "negative_scale": -1.0,
    "directions_left": 6.0,
}

TOLERANCES = {  # whole numbers are exact; of the others two decimals are asked for
    name: 1e-6 if number == round(number) else 0.005 / (1 + number)  # relative and absolute: 0.005
    for name, number in QUESTIONS.items()
}

HINTS = (
    "Each number follows from the formula on paper; a cell in the notebook can confirm it, but "
    "first write down what you expect.",
    "One feature is its own mean. The normalized vector is perpendicular to (1, …, 1) and has "
    "length √D when ε is negligible.",
    "The output's standard deviation is s / √(s² + ε). A negative factor leaves the variance as it "
    "is, but not the sign of x − mean.",
)


FIELDS = asking({name: np.asarray(number) for name, number in QUESTIONS.items()},
                predictions, "number",
                {name: Output(tolerance=value) for name, value in TOLERANCES.items()})


def _as_written(question, number):
    """The ways to write a number down: where the right one is whole, a rounded one is another."""
    yield "", number
    if TOLERANCES[question] == 1e-6 and number != round(number):
        yield "-2-decimals", round(number, 2)
        yield "-3-decimals", round(number, 3)


KNOBS = tuple(
    Knob(id + suffix, {question: value}, sentence, lesson, case)
    for id, question, number, sentence, lesson, case in (
        ("width-one-passes", "width_one", 17.0,
         "`width_one`: 17 would be 2·7 + 3, with x passing through. One feature is its own mean, "
         "so x − mean is 0 and only the bias is left.", TORCH, "LN-15"),
        ("width-one-sign", "width_one", 5.0,
         "`width_one`: 5 would be 2·1 + 3, as if the sign of x survived. Here "
         "x − mean is 0 and only the bias is left.", TORCH, "LN-15"),
        ("width-one-zero", "width_one", 0.0,
         "`width_one`: the normalized value is 0, but the bias is still added to it.",
         TORCH, "LN-15"),
        ("bounded-by-one", "largest_of_17", 1.0,
         "`largest_of_17`: the output has variance one; that does not bound a single feature by "
         "one. The squares sum to D, and the numbers to zero.", GEOMETRY, ""),
        ("bounded-by-radius", "largest_of_17", np.sqrt(17),
         "`largest_of_17`: √17 is the length of the whole output. The numbers also sum to zero, so "
         "one of them cannot hold all of it.", GEOMETRY, ""),
        ("bounded-by-three-sigma", "largest_of_17", 3.0,
         "`largest_of_17`: three standard deviations is a rule about Gaussians. Layer norm makes "
         "nothing Gaussian.", GEOMETRY, ""),
        ("ratio-without-root", "ratio_n_minus_1", 0.8,
         "`ratio_n_minus_1`: 4/5 is the ratio of the variances; the outputs are divided by a "
         "root.", ONE_VECTOR, "LN-01"),
        ("ratio-upside-down", "ratio_n_minus_1", np.sqrt(5 / 4),
         "`ratio_n_minus_1`: upside down. Dividing the squares by N − 1 gives a larger variance, "
         "so a smaller output.", ONE_VECTOR, "LN-01"),
        ("ratio-both", "ratio_n_minus_1", 1.25,
         "`ratio_n_minus_1`: 5/4 is the ratio of the variances, larger over smaller. The outputs "
         "are divided by a root, and become smaller.", ONE_VECTOR, "LN-01"),
        ("ratio-one", "ratio_n_minus_1", 1.0,
         "`ratio_n_minus_1`: at N = 5 the difference is 11 %; it fades only for large N.",
         ONE_VECTOR, "LN-01"),
        ("eps-never-matters", "std_at_eps", 1.0,
         "`std_at_eps`: ε matters where the variance is small. Here s² = ε, and s / √(s² + ε) is "
         "not 1.", SCALE, "LN-19"),
        ("eps-halves", "std_at_eps", 0.5,
         "`std_at_eps`: 1/2 is the ratio of the variances, s² / (s² + ε); the standard deviation "
         "is its root.", SCALE, "LN-19"),
        ("scale-invariant-with-sign", "negative_scale", 1.0,
         "`negative_scale`: only positive factors cancel. −3x has the deviations of x times −3, "
         "but a positive standard deviation.", GEOMETRY, ""),
        ("scale-passes", "negative_scale", -3.0,
         "`negative_scale`: the size 3 cancels, since the standard deviation grows by 3 too.",
         GEOMETRY, ""),
        ("scale-inverted", "negative_scale", -1 / 3,
         "`negative_scale`: the size 3 cancels altogether; only the sign stays.", GEOMETRY, ""),
        ("only-mean-lost", "directions_left", 7.0,
         "`directions_left`: 7 counts the mean that is lost. The length is lost as well.",
         GEOMETRY, ""),
        ("nothing-lost", "directions_left", 8.0,
         "`directions_left`: two directions are lost, along (1, …, 1) and along the normalized "
         "vector itself.", GEOMETRY, ""),
    )
    for suffix, value in _as_written(question, number)
)
