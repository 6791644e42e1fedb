"""The numbers behind a verdict: which failing case to show, and which part of it."""

import numpy as np

from lnres_utils.checking.comparing import agreeing, disagreement
from lnres_utils.checking.report import Evidence

SHOWN = 8  # numbers of a row
PLAIN = 0.05  # a relative error that nobody takes for rounding


def clearest(exercise, failing, expected, named):
    """The failing run to show.

    Without a name this is the smallest one: an exception if there is any, else numbers that nobody
    takes for rounding. A named mistake is shown by numbers, in the first case that shows it.
    """
    values = [run for run in failing if not run.failure]
    if not values or len(values) < len(failing) and not named:
        return smallest([run for run in failing if run.failure])
    errors = {id(run): _error(exercise, run, expected[id(run)]) for run in values}
    plain = [run for run in values if errors[id(run)] >= PLAIN]
    if not plain:
        return max(values, key=lambda run: errors[id(run)])
    return plain[0] if named else smallest(plain)


def smallest(runs):
    """The run with the fewest numbers in its inputs, None if there is no run."""
    def size(run):
        arrays = [value for value in run.case.inputs.values() if isinstance(value, np.ndarray)]
        return sum(array.size for array in arrays)

    return min(runs, key=size, default=None)


def evidence(exercise, run, right, broke=None):
    """The inputs of a failing run with its most wrong numbers, and the exception if one broke."""
    inputs = tuple(f"{name} = {_brief(value)}" for name, value in run.case.inputs.items())
    error = where = ""
    if broke is not None and not (broke.failure.wrong_kind or broke.failure.not_attempted):
        error = f"{broke.failure.kind}: {broke.failure.message}".rstrip(": ")
    if broke is not None:  # what is not told here, the reason has told already
        where = broke.failure.where
    if run.failure:
        return Evidence(run.case.group, inputs, error=error, where=where)
    for name, expected in right.items():
        given = run.outputs.get(name)
        phrase = disagreement(exercise.outputs[name], given, expected)
        if phrase:
            place, mine, its = _worst_row(exercise.outputs[name], given, expected)
            return Evidence(run.case.group, inputs, output=name + place, phrase=f"{name} {phrase}",
                            given=mine, expected=its, error=error, where=where)
    raise AssertionError("a failing run without a disagreement")


def numbers(values, digits=4, first=0):
    """A few numbers as text: those from ``first`` on, with a mark where others are left out."""
    flat = np.asarray(values).ravel()
    shown = [f"{float(value):.{digits}g}" for value in flat[first : first + SHOWN]]
    shown = ["0" if text == "-0" else text for text in shown]
    if np.ndim(values) == 0:
        return shown[0]
    before = ["…"] if first else []
    more = flat.size - first - SHOWN
    after = [f"… {more} more"] if more > 0 else []
    return f"[{', '.join([*before, *shown, *after])}]"


def _worst_row(output, given, right):
    """The row (last axis) with the largest error: its place, the given and the right numbers."""
    if isinstance(right, str) or isinstance(given, str) or given is None:
        return "", str(given), str(right)
    if given.shape != right.shape or agreeing(output, given, right).all():
        return "", "", ""  # the shape or the dtype is wrong; the phrase says it all
    worst = np.unravel_index(int(np.argmax(_gap(given, right))), right.shape)
    row, column = tuple(map(int, worst[:-1])), int(worst[-1]) if worst else 0
    place = f"[{', '.join(map(str, row))}]" if row else ""
    given, right = given[row], right[row]
    first = 0 if column < SHOWN else min(column - SHOWN // 2, right.size - SHOWN)
    for digits in (4, 7, 10):
        texts = numbers(given, digits, first), numbers(right, digits, first)
        if texts[0] != texts[1]:
            break
    return place, *texts


def _gap(given, right):
    with np.errstate(all="ignore"):
        gap = np.abs(given.astype(float) - right.astype(float))
    return np.where(np.isfinite(gap), gap, np.inf)


def _error(exercise, run, right):
    """The largest error of a run's outputs, relative to their size; a wrong form counts as inf."""
    worst = 0.0
    for name, expected in right.items():
        given = run.outputs.get(name)
        if disagreement(exercise.outputs[name], given, expected) is None:
            continue
        comparable = isinstance(given, np.ndarray) and isinstance(expected, np.ndarray)
        if not comparable or given.shape != expected.shape:
            return np.inf
        size = np.sqrt(np.mean(np.square(expected.astype(float)))) + 1e-12
        worst = max(worst, float(np.max(_gap(given, expected))) / size)
    return worst


def _brief(value):
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.ndim <= 1 and value.size <= SHOWN:
        return numbers(value)
    return f"{value.dtype} array of shape {value.shape}"
