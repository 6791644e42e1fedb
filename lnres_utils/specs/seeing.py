"""The two detectors of chapter 5: their right answer, and the ways to overlook something."""

import numpy as np

from lnres_utils.checking import Case, Exercise, Knob
from lnres_utils.drives import practical_checks as drive
from lnres_utils.specs import LESSONS, seeing_boxes
from lnres_utils.specs.sealed import telling

WHO = "practical-checks/who-sees-whom"
LARGE = 100.0  # the change that shows the most


def _noise(x, index, size=LARGE):
    """A copy of x with noise added at ``index``."""
    rng = np.random.default_rng(0)
    changed = x.copy()
    changed[index] += size * rng.normal(size=x[index].shape)
    return changed


def _shift(x, index, size=LARGE):
    changed = x.copy()
    changed[index] += size
    return changed


def _differ(first, second, tolerance=1e-7):
    return bool(np.abs(first - second).max(initial=0) > tolerance)


def _later(j):
    return np.s_[:, j]


def _leaks(change=_noise, tolerance=1e-7, tokens=None, watched=lambda j: np.s_[:, :j]):
    """Change one token after the other and watch earlier ones."""
    def ask(fn, x):
        y = fn(x)
        tried = range(1, x.shape[1]) if tokens is None else tokens(x.shape[1])
        return any(_differ(fn(change(x, _later(j)))[watched(j)], y[watched(j)], tolerance)
                   for j in tried)

    return ask


def _mixes(change=_noise, tolerance=1e-7, examples=None, watched=None):
    """Change one example after the other and watch the others."""
    def ask(fn, x):
        y = fn(x)
        tried = range(len(x)) if examples is None else examples(len(x))
        for i in tried:
            rest = np.arange(len(x)) != i if watched is None else watched
            if _differ(fn(change(x, i))[rest], y[rest], tolerance):
                return True
        return False

    return ask


def _any_other_token(fn, x):
    y = fn(x)
    return any(_differ(np.delete(fn(_noise(x, _later(j))), j, 1), np.delete(y, j, 1))
               for j in range(x.shape[1]))


def _later_reversed(fn, x):
    y = fn(x)
    for j in range(1, x.shape[1] - 1):
        turned = np.concatenate([x[:, :j], x[:, :j - 1:-1]], axis=1)
        if _differ(fn(turned)[:, :j], y[:, :j]):
            return True
    return False


def _all_later(fn, x):
    """All tokens but the first are changed, and the first is watched."""
    return _differ(fn(_noise(x, np.s_[:, 1:]))[:, 0], fn(x)[:, 0])


def _permuted_examples(fn, x):
    return _differ(fn(x[::-1]), fn(x)[::-1])


def _all_but_the_first(fn, x):
    return _differ(fn(_noise(x, np.s_[1:]))[0], fn(x)[0])


def _first_alone(fn, x):
    return _differ(fn(x[:1])[0], fn(x)[0])


def _draw(x, index):
    return _noise(x, index, 1.0)


def _last(count):
    return [count - 1]


def _tenfold(x, index):
    changed = x.copy()
    changed[index] *= 10
    return changed


def _small(x, index):
    return _noise(x, index, 1e-2)


def _small_shift(x, index):
    return _shift(x, index, 1.0)


def _moderate(x, index):
    return _noise(x, index, 0.5)


RIGHT_LEAKS, RIGHT_MIXES = _leaks(), _mixes()

_COMMON_SENTENCES = {
    "always-yes": "It finds something in every function. The change itself must be left out of "
    "the comparison: a token or an example that was changed gives another output, and should.",
    "always-no": "It finds nothing in any function. Two outputs of the same function are to be "
    "compared, one before a change and one after it, where nothing was changed.",
    "small-changes": "Its changes are too small, or it asks for a gradient at one place only. "
    "Some functions show what they see only when numbers are large: noise of 100 on all features.",
    "loose-tolerance": "Its tolerance is too loose beside its changes: a leak with a weight of "
    "0.001, or a share of 1/T in a mean over time, passes for rounding.",
    "large-tolerance": "Its tolerance is too large: a hundred-thousandth of a change of 100 is "
    "0.001, and 0.1 hides it. Rounding is below 1e-9 here.",
    "exact-comparison": "It takes every difference for a leak. Sums in another order differ in "
    "the last digits: allow for rounding, of the size of the numbers times 1e-10, say.",
    "adds-a-constant": "It adds the same number to all features of a token or example. A "
    "layer norm takes both away, and behind one nothing is seen. Add noise.",
    "adds-a-small-constant": "It adds the same small number to all features. A layer norm takes "
    "that away, and a function that answers to large changes only is missed too. Add large noise.",
}


def _always(label):
    return lambda fn, x: label == "yes"


_LAZY = {"": _noise, "-small": _draw, "-constant": _shift}


def _common(make, opposite, lazy):
    return {
        "always-yes": _always("yes"), "always-no": _always("no"),
        "other-question": opposite, "small-changes": make(_small),
        "loose-tolerance": make(_moderate, 0.02), "exact-comparison": make(tolerance=0.0),
        "large-tolerance": make(tolerance=0.1),
        **{f"lazy-probe{how}": make(change, **lazy) for how, change in _LAZY.items()},
        "adds-a-constant": make(_shift), "adds-a-small-constant": make(_small_shift),
    }


LEAK_WAYS = {
    **_common(_leaks, RIGHT_MIXES, {"tokens": _last, "watched": lambda j: np.s_[:, 0]}),
    "any-other-token": _any_other_token,
    "later-tokens-watched": _leaks(
        tokens=lambda count: range(count - 1), watched=lambda j: np.s_[:, j + 1:]),
    "last-token-only": _leaks(tokens=_last),
    "middle-token-only": _leaks(tokens=lambda count: [count // 2]),
    "first-token-watched": _all_later,
    "previous-token-watched": _leaks(watched=lambda j: np.s_[:, j - 1]),
    "order-of-later-tokens": _later_reversed,
}
MIX_WAYS = {
    **_common(_mixes, RIGHT_LEAKS, {"examples": _last, "watched": 0}),
    "multiplies": _mixes(_tenfold),
    "last-example-only": _mixes(examples=_last),
    "first-example-only": _mixes(examples=lambda count: [0]),
    "one-pair": _mixes(examples=lambda count: [1], watched=0),
    "first-example-watched": _all_but_the_first,
    "first-example-alone": _first_alone,
    "order-of-examples": _permuted_examples,
}


def _lazy(what, then):
    start = f"It changes the last {what} and watches the first: one pair of places, and others "
    start += f"are not asked. {then}"
    return {"lazy-probe": f"{start}.",
            "lazy-probe-small": f"{start}; and make the change large, about 100.",
            "lazy-probe-constant": f"{start}; and add noise, since a norm hides a constant."}


_LEAK_SENTENCES = {
    **_COMMON_SENTENCES,
    "other-question": "It changes other examples; the question is about later tokens of the same "
    "example. The two probes find different mistakes.",
    "any-other-token": "It calls it a leak when an earlier token is seen. A causal function may "
    "see all of the past: change a token and look only at those before it.",
    **_lazy("token", "Change each in turn, and watch all before it"),
    "later-tokens-watched": "It watches the tokens after the changed one. Those may see it; a leak "
    "is when an earlier one does: compare `[:, :j]`.",
    "last-token-only": "It changes the last token only. Where tokens are handled in windows, the "
    "last may be alone in its window while others see the future: try every position.",
    "middle-token-only": "It changes one token in the middle only. That token may stand at the "
    "edge of a window, or be seen by nobody: try every position.",
    "first-token-watched": "It watches the first token only. Other positions may see the future "
    "where the first does not, as at the edges of chunks: watch all earlier ones.",
    "previous-token-watched": "It watches only the token just before the changed one. A leak can "
    "jump: watch all earlier tokens.",
    "order-of-later-tokens": "It only puts tokens into another order. A mean or an attention over "
    "them does not care about order, and where all are equal nothing changes: use new numbers.",
}
_MIX_SENTENCES = {
    **_COMMON_SENTENCES,
    "other-question": "It changes later tokens; the question is about other examples. The two "
    "probes find different mistakes: statistics over the batch at one position pass that one.",
    **_lazy("example", "Change each in turn, and watch all others"),
    "multiplies": "It multiplies an example by a number. A layer norm takes that away, and behind "
    "one nothing is seen; and small numbers stay small. Add noise times 100.",
    "last-example-only": "It changes the last example only. It may be alone in its group, or "
    "nobody may look back from it: change each example in turn.",
    "first-example-only": "It changes the first example only. Nobody may look at that one: "
    "change each example in turn.",
    "one-pair": "It changes one example and watches one other. Which examples see each other "
    "depends on their places: change each in turn, and watch all others.",
    "first-example-watched": "It watches the first example only. What is handed on from one "
    "example to the next never reaches the first: watch all that were not changed.",
    "first-example-alone": "It compares the first example alone and in company. That misses what "
    "later examples see, and equal examples have the same mean as one: change each in turn.",
    "order-of-examples": "It only puts examples into another order. Batch statistics do not care "
    "about order: use new numbers.",
}


def _cases(kinds):
    def cases(rng):
        return [Case("", {"fn": box, "x": x}) for box, x in seeing_boxes.boxes(rng, kinds)]

    return cases


def _family(right, ways):
    def family(way=None):
        return right if way is None else ways[way]

    return family


def _knobs(sentences, cases):
    return tuple(Knob(id, {"way": id}, sentence, WHO, cases.get(id, ""))
                 for id, sentence in sentences.items())


def _detector(name, kinds, right, ways, sentences, **fields):
    return Exercise(
        name=name, chapter="practical-checks", titles=LESSONS, lesson=WHO,
        difficulty=2, minutes=15, parameters=("fn", "x"), cases=_cases(kinds), drive=drive.seen,
        family=_family(right, ways), knobs=_knobs(sentences, fields.pop("of_the_catalogue")),
        array="truth value", **telling("fn", "seen", ("yes", "no")), **fields)


EXERCISES = (
    _detector(
        "mixes_examples", seeing_boxes.MIXES, RIGHT_MIXES,
        MIX_WAYS, _MIX_SENTENCES, of_the_catalogue={"first-example-alone": "AX-10"},
        hints=(
            "Call the function on x, then on a copy of x in which one example was changed. Whose "
            "output may differ?",
            "Every example has to be changed in turn: some are seen by one other only. And the "
            "change has to be large and different in each feature: noise times 100.",
            "`changed = x.copy()`, `changed[i] += 100 * rng.normal(size=x[i].shape)`, then "
            "compare all rows but i: `np.allclose(np.delete(a, i, 0), np.delete(b, i, 0))`.",
        )),
    _detector(
        "leaks_future", seeing_boxes.LEAKS, RIGHT_LEAKS,
        LEAK_WAYS, _LEAK_SENTENCES, of_the_catalogue={"loose-tolerance": "AX-02"},
        hints=(
            "Change one token in all examples; the outputs of which tokens must stay the same?",
            "Every token but the first has to be changed in turn, and all earlier ones watched: a "
            "leak may go from one place to one other. Make the change large: noise times 100.",
            "`changed[:, j] += 100 * rng.normal(size=x[:, j].shape)`, then compare `[:, :j]` of "
            "both outputs with `np.allclose`.",
        )),
)
