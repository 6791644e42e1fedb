"""Name the mistake: compare an answer with every single knob, then with pairs of knobs."""

from itertools import combinations

import numpy as np

from lnres_utils.checking.comparing import same


def diagnose(exercise, runs, knobs=None):
    """The hypotheses that reproduce the runs of an answer.

    Single knobs come first; pairs are tried only when no single one matches, and not where each
    group of cases is a question of its own. A hypothesis must agree on every case, exceptions
    included, and must be seen: on some case both give values.

    Parameters
    ----------
    exercise : Exercise
    runs : list of Run, all cases of the answer
    knobs : knobs to try, by default all of the exercise

    Returns
    -------
    list of tuples of Knob: empty if nothing matches, several if they cannot be told apart.
    """
    knobs = exercise.knobs if knobs is None else knobs
    if not any(run.outputs for run in runs):
        return []
    ordered = sorted(runs, key=lambda run: run.outputs is None)  # cases with values rule out fast
    singles = [(knob,) for knob in knobs]
    pairs = (pair for pair in combinations(knobs, 2) if pair[0].combines_with(pair[1]))
    for hypotheses in (singles, () if exercise.separate else pairs):
        found = [each for each in hypotheses if _reproduces(exercise, each, ordered)]
        if found:
            return found
    return []


def hypothesis(exercise, knobs):
    """The faulty answer with these knobs turned."""
    settings = {}
    for knob in knobs:
        settings.update(knob.settings)
    return exercise.family(**settings)


def _reproduces(exercise, knobs, runs):
    ids = tuple(knob.id for knob in knobs)
    answer = None
    for run in runs:
        known = run.case.known  # each hypothesis is computed once for a case, not once a check
        if ids not in known:
            answer = answer or hypothesis(exercise, knobs)
            known[ids] = _outputs(exercise, answer, run.case.inputs)
        expected = known[ids]
        if (run.outputs is None) != (expected is None):
            return False
        if expected is not None and not same(exercise.outputs, run.outputs, expected):
            return False
    return True


def _outputs(exercise, answer, inputs):
    try:
        with np.errstate(all="ignore"):
            return exercise.summary(exercise.drive(answer, inputs), inputs)
    except Exception:
        return None


def broken_properties(exercise, call, rng):
    """The sentences of those laws that two calls of the answer break.

    ``call(inputs)`` gives the outputs of the answer, None where it failed.
    """
    sentences = []
    for law in exercise.properties:
        inputs = law.pair(rng)
        first, second, again = (call(each) for each in (*inputs, inputs[0]))
        if first is None or second is None:
            continue
        if again is None or not same(exercise.outputs, first, again):
            return ("Called again with the same input, it gives another result.",)
        try:
            holds = law.holds(first, second)
        except (ValueError, IndexError, TypeError, KeyError):
            continue  # outputs of another shape: said elsewhere
        if not holds:
            sentences.append(law.broken)
    return tuple(sentences)
