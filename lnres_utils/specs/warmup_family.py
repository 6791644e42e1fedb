"""The faulty family of learning-rate warm-ups. NumPy only."""

import numpy as np

from lnres_utils.checking import Knob
from lnres_utils.specs.wiring_equivalents import same

WARMUP = "pre-and-post-norm/warm-up"


def faulty_warmup(count=0, length=0, capped=True, shape="linear", after="constant",
                  zero="peak", scale="peak", steps="any"):
    """A ``warmup_rate(step, peak, warmup)`` with these mistakes.

    Parameters
    ----------
    count, length : added to the step and to the length of the warm-up
    capped : False lets the line go on past the peak
    shape : "linear", "squared", "root", "floor" (integer division) or "falling" (down to zero)
    after : "constant", "root" (falls as 1 / sqrt(step)), "inverse" (as 1 / step), "zero"
    zero : a warm-up of 0 steps gives the "peak", a single "number" also for an array, "zero", or
        "divides" by it
    scale : "peak", or "none" (a factor and not a rate)
    steps : "any", or "one" (an array raises)
    """

    def rate(step, peak, warmup):
        if warmup == 0 and zero == "number":
            return peak if scale == "peak" else 1.0
        if steps == "one" and isinstance(step, np.ndarray):
            raise ValueError("one step expected")
        peak = peak if scale == "peak" else 1.0
        if warmup == 0 and zero == "divides" and not isinstance(step, np.ndarray):
            raise ZeroDivisionError
        if warmup == 0 and zero == "divides":
            part = (step + count) / np.float64(length)
        elif warmup == 0:
            return (peak if zero == "peak" else 0.0) * np.ones(np.shape(step))
        else:
            part = (step + count) / np.float64(warmup + length)
        if shape == "floor":
            part = np.floor(part)
        line = {"squared": part**2, "root": np.sqrt(np.maximum(part, 0)),
                "falling": 1 - part}.get(shape, part)
        late = step + count > warmup + length
        if not capped:
            return peak * line
        beyond = {"constant": 1.0, "root": np.maximum(part, 1) ** -0.5,
                  "inverse": 1 / np.maximum(part, 1), "zero": 0.0}[after]
        return peak * np.where(late, beyond, line)

    return rate


def _knob(id, settings, sentence, case="", masks=()):
    return Knob(id, settings, sentence, WARMUP, case, masks)


KNOBS = (
    _knob("starts-at-zero", {"count": -1},
          "Steps are counted from 0 here: the first rate is 0, and the peak comes one step late. "
          "The first step is 1, and its rate peak / warmup."),
    _knob("starts-at-zero-reaches-peak", {"count": -1, "length": -1},
          "The line goes from 0 at step 1 to the peak at step `warmup`; the rate of step 1 is "
          "peak / warmup: a rate of 0 wastes a step."),
    _knob("one-step-early", {"count": 1},
          "The rate is that of the next step, as if steps were counted from 0; the first step "
          "is 1."),
    _knob("peak-one-step-late", {"length": 1},
          "The line is divided by warmup + 1, so that the peak comes one step late."),
    _knob("never-capped", {"capped": False},
          "The line goes on past the peak; from step `warmup` on, the rate stays at the peak.", "",
          ("after",)),
    _knob("squared", {"shape": "squared"},
          "The rate rises with the square of the step; a straight line was asked for."),
    _knob("rises-as-a-root", {"shape": "root"},
          "The rate rises with the root of the step; a straight line was asked for."),
    _knob("integer-division", {"shape": "floor"},
          "`step // warmup` is 0 during the whole warm-up: use `/`."),
    _knob("falling", {"shape": "falling"},
          "The rate falls during warm-up; it is to rise from peak / warmup to the peak."),
    _knob("inverse-root-after", {"after": "root"},
          "After warm-up the rate falls with the root of the step, the schedule of the first "
          "Transformer; here it stays at the peak."),
    _knob("inverse-after", {"after": "inverse"},
          "After warm-up the rate falls as 1 / step; here it stays at the peak."),
    _knob("zero-after", {"after": "zero"},
          "After warm-up the rate is 0; it is to stay at the peak."),
    _knob("zero-warmup-gives-zero", {"zero": "zero"},
          "With a warm-up of 0 steps the rate is 0; it is to be the peak from the first step on."),
    _knob("zero-warmup-divides", {"zero": "divides"},
          "A warm-up of 0 steps divides by zero; there the rate is the peak from the first step "
          "on."),
    _knob("zero-warmup-one-number", {"zero": "number"},
          "With a warm-up of 0 steps an array of steps gets a single number; it is to get the peak "
          "for each step."),
    _knob("factor-not-rate", {"scale": "none"},
          "This is the factor, at most 1; the rate is that factor times the peak."),
    _knob("one-step-only", {"steps": "one"},
          "An array of steps raises: `if`, `min` and `max` of Python take one number. Use "
          "`np.minimum` or `np.where`."),
)

_FLOOR = "the whole part is taken, and only where it becomes 1 counts"

EQUIVALENTS = (
    same(_FLOOR, {"integer-division"}, {"integer-division", "starts-at-zero-reaches-peak"}),
    same(_FLOOR, {"integer-division", "starts-at-zero"},
         {"integer-division", "peak-one-step-late"}),
)
