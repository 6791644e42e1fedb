"""Drives of chapter 5: practical checks."""

import copy

import numpy as np

from lnres_utils.drives.boxes import NormFailed
from lnres_utils.drives.common import WrongKind, brief, given


def seen(answer, inputs):
    """``answer(fn, x)`` says of a black box whether something is seen, as True or False."""
    told = answer(copy.deepcopy(inputs["fn"]), inputs["x"].copy())
    if not isinstance(told, (bool, np.bool_)):
        raise WrongKind(f"the returned value is {brief(told)}; True or False was expected"
                        + (": is there a `return`?" if told is None else ""))
    return {"seen": "yes" if told else "no"}


def masked_norm(answer, inputs):
    """``answer(x, mask, kind[, eps])``: y where tokens are real, and y where they are not."""
    real = inputs["mask"][..., None].copy()
    y = answer(*given(inputs, "x", "mask", "kind", "eps"))
    if isinstance(y, np.ndarray) and y.shape == inputs["x"].shape and y.dtype.kind in "fiub":
        return {"y": np.where(real, y, 0), "y at padding": np.where(real, 0, y)}
    return {"y": y, "y at padding": y}


def norm_test(answer, inputs):
    """``answer(norm)`` returns if the norm passes the test and raises AssertionError if not."""
    norm = copy.deepcopy(inputs["norm"])
    try:
        returned = answer(norm)
    except (AssertionError, NormFailed):
        verdict = "fails"
    except Exception as error:
        if type(error) in (Exception, ValueError):  # likely raised on purpose
            error.args = f"{error} (a test fails a norm by an AssertionError: use `assert`)",
        raise
    else:
        verdict = "passes"
    if not norm.called:
        raise WrongKind("the test never called the norm")
    if verdict == "passes" and returned is not None:
        raise WrongKind(f"the test returned {brief(returned)}; it is to raise an AssertionError, "
                        "with `assert`, or to return nothing")
    return {"verdict": verdict}
