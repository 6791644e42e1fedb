"""Compare the outputs of a run with expected ones."""

import numpy as np

SINGLE, HALF = 100, 2000  # times the tolerance: 2 units in the last place of float16 by default


def same(outputs, given, expected):
    """Whether every output agrees, each by its own rule."""
    return all(_agrees(outputs[name], given.get(name), expected[name]) for name in expected)


def _agrees(output, given, expected):
    if _of_another_form(output, given, expected):
        return False
    if isinstance(expected, str):
        return True
    given, expected = np.asarray(given), np.asarray(expected)
    return not _differs_at_once(output, given, expected) and agreeing(output, given, expected).all()


def _differs_at_once(output, given, expected):
    """Whether the first numbers tell already: most of a thousand mistakes are ruled out by them."""
    if output.compare != "close" or expected.size == 0 or expected.dtype.itemsize < 4:
        return False
    first, other = float(given.item(0)), float(expected.item(0))
    return abs(first - other) > 2 * SINGLE * output.tolerance * (1 + abs(other))


def disagreement(output, given, expected):
    """None if ``given`` agrees with ``expected``; else a phrase that says how it does not.

    Parameters
    ----------
    output : Output, the rule
    given, expected : arrays or strings
    """
    phrase = _of_another_form(output, given, expected)
    if phrase or isinstance(expected, str):
        return phrase
    given, expected = np.asarray(given), np.asarray(expected)
    if agreeing(output, given, expected).all():
        return None
    if np.isnan(given).any() and not np.isnan(expected).any():
        return "has NaN"
    return "has wrong values"


def _of_another_form(output, given, expected):
    """A phrase where no number needs to be looked at, else None."""
    if given is None:
        return "is missing"
    if isinstance(expected, str) or isinstance(given, str):
        alike = isinstance(given, str) and isinstance(expected, str) and given == expected
        return None if alike else f"is {given!r}; {expected!r} was expected"
    given, expected = np.asarray(given), np.asarray(expected)
    if given.shape != expected.shape:
        return f"has shape {given.shape}; {expected.shape} was expected"
    if output.dtype and given.dtype != expected.dtype:
        return f"has dtype {given.dtype}; {expected.dtype} was expected"
    return None


def agreeing(output, given, expected):
    """Boolean array: where two arrays of one shape agree."""
    if output.compare == "exact":
        return (given == expected) | (np.isnan(given) & np.isnan(expected))
    if expected.dtype == np.float16:  # whose own arithmetic would be too coarse to compare with
        given, expected = given.astype(float), expected.astype(float)
        tolerance = output.tolerance * HALF
    else:
        single = expected.dtype.itemsize < 8 or given.dtype.itemsize < 8
        tolerance = output.tolerance * (SINGLE if single and expected.dtype.kind == "f" else 1)
    return _close(given, expected, tolerance)


def _close(given, expected, tolerance):
    """``np.isclose`` with equal NaNs, at a fifth of its time: it is asked thousands of times."""
    if expected.dtype.kind != "f":
        expected = expected.astype(float)
    near = np.abs(given - expected) <= tolerance * (1 + np.abs(expected))
    both_nan = (given != given) & (expected != expected)
    return near & np.isfinite(expected) | (given == expected) | both_nan
