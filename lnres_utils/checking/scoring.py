"""From the verdicts on single runs to points."""

from fractions import Fraction

from lnres_utils.checking.model import INPUT_KEPT


def scores(exercise, judged, good, changed):
    """(group, points, max points) in the order of the spec.

    Parameters
    ----------
    judged : list of Run
    good : dict from the id of a run to whether it is right
    changed : names of inputs that some call changed
    """
    if exercise.tells_apart:
        return _told_apart(exercise, judged, good)
    passed = {
        group: all(good[id(run)] for run in judged if run.case.group == group)
        for group in exercise.groups
    }
    if INPUT_KEPT in passed:  # keeping the input is worth nothing by itself
        others = any(passed[group] for group in passed if group != INPUT_KEPT)
        passed[INPUT_KEPT] = others and not changed
    if exercise.detector and sum(passed.values()) < 2:  # what always gives one label gets that far
        passed = dict.fromkeys(passed, False)
    return tuple((group, points if passed[group] else 0, points)
                 for group, points in exercise.groups.items())


def told(exercise, judged, good):
    """{label: (kinds told right, kinds)}: a kind of box counts only if all its boxes are right."""
    kinds = {label: {} for label in exercise.labels}
    for run in judged:
        right = kinds[run.case.group]
        right[run.case.kind] = right.get(run.case.kind, True) and good[id(run)]
    return {label: (sum(right.values()), len(right)) for label, right in kinds.items()}


def _told_apart(exercise, judged, good):
    """Points for 2 · (balanced accuracy) − 1: guessing gets none."""
    rates = [Fraction(*counts) for counts in told(exercise, judged, good).values()]
    group, = exercise.groups
    most = exercise.max_points
    return ((group, int(most * max(0, sum(rates) - 1)), most),)
