"""From runs to a verdict: outcome, points, the named mistake and the numbers behind it."""

from dataclasses import replace

from lnres_utils.checking.comparing import disagreement
from lnres_utils.checking.diagnosing import broken_properties, diagnose
from lnres_utils.checking.evidence import clearest, evidence, smallest
from lnres_utils.checking.isolation import isolated
from lnres_utils.checking.model import Case
from lnres_utils.checking.report import Mistake, Report
from lnres_utils.checking.running import call_problem, run_case
from lnres_utils.checking.scoring import scores, told

CHANGES_INPUT = Mistake(
    id="changes-its-input",
    sentence="It changes an array it was given; whoever still holds that array is left with other "
    "numbers. Compute into a new one: `y = x / scale`, for example, not `x /= scale`.",
)


def judge(exercise, answer, rng, cases=None):
    """Check an answer.

    Parameters
    ----------
    rng : numpy.random.Generator, from which inputs are drawn
    cases : the cases to use, by default those that the exercise draws from ``rng``; they remember
        what hypotheses give, so that the next answer is judged faster on the same ones

    Returns
    -------
    Report; nothing the answer does raises here, except KeyboardInterrupt.
    """
    with isolated():
        problem = call_problem(exercise, answer)
        if problem:
            return not_callable(exercise, problem)
        runs = [run_case(exercise, answer, case) for case in cases or exercise.cases(rng)]

        def call(inputs):
            return run_case(exercise, answer, Case("", inputs)).outputs

        return judge_runs(exercise, runs, lambda: broken_properties(exercise, call, rng))


def not_callable(exercise, problem):
    """The report on an answer that ``call_problem`` has a line about."""
    return without_runs(exercise, "wrong", problem, f"It cannot be called as {exercise.call}.")


def without_runs(exercise, outcome, reason, public_reason=""):
    """The report on an answer that was never called; it has no points."""
    return _report(exercise, outcome, reason=reason, public_reason=public_reason)


def judge_runs(exercise, runs, find_broken=tuple):
    """Judge the runs of an answer; ``find_broken()`` gives the sentences of the laws it breaks."""
    runs = [replace(run, case=exercise.opened(run.case)) for run in runs]
    judged = [run for run in runs if run.case.judged]
    if all(run.failure and run.failure.not_attempted for run in judged):
        reason = ("Not answered yet: put your code in place of the stub, "
                  "`raise NotImplementedError()` included.")
        return _report(exercise, "not attempted", reason=reason)

    expected = {id(run): _expected(exercise, run.case) for run in judged}
    good = {id(run): _is_right(exercise, run, expected[id(run)]) for run in judged}
    changed = sorted({name for run in judged for name in run.changed})
    speaker = next((run for run in judged if run.printed_length), judged[0])
    common = {
        "scores": scores(exercise, judged, good, changed),
        "printed": speaker.printed,
        "printed_length": speaker.printed_length,
        "results": "verdicts" if exercise.detector else "numbers",
    }
    if all(good.values()) and not changed:
        return _report(exercise, "right", **common)

    mistakes = (CHANGES_INPUT,) if changed else ()
    if all(good.values()):
        reason = f"The values are right, but {' and '.join(changed)} changed during the call."
        return _report(exercise, "wrong", reason=reason, mistakes=mistakes, certainty="one",
                       **common)

    failing = [run for run in judged if not good[id(run)]]
    if exercise.quiet and not any(run.failure and not run.failure.not_attempted for run in failing):
        open_ = sum(run.failure is not None for run in failing)
        reason = exercise.quiet + (f" Not answered: {open_}." if open_ else "")
        return _report(exercise, "wrong", reason=reason, quiet=True, **common)
    certainty, named = _explain(exercise, *map(_to_the_end, (runs, failing)))
    if exercise.planted and {mistake.id for mistake in named} == set(exercise.planted):
        reason = (f"Nothing is mended yet: all {len(named)} faults are in it. Find one with a "
                  "check of the course, mend it, and check again.")
        return _report(exercise, "not attempted", reason=reason, **common)
    broke = smallest([run for run in failing if run.failure])
    shown = broke  # an exception; what is expected is the answer itself where groups are separate
    if not exercise.separate:
        shown = clearest(exercise, failing, expected, named=bool(named))
    return _report(
        exercise,
        "raised" if _raised(failing) else "wrong",
        reason=_reason(exercise, failing, broke, judged, good),
        public_reason=_public_reason(exercise, failing, broke),
        mistakes=mistakes + named,
        certainty=certainty,
        evidence=shown and evidence(exercise, shown, expected[id(shown)], broke),
        broken=() if named or not _comparable(exercise, failing, expected) else find_broken(),
        **common,
    )


def _expected(exercise, case):
    right = exercise.reference(case.inputs)
    return {name: right[name] for name in case.only or right}


def _to_the_end(runs):
    """Without what the grader stopped, of which no mistake knows."""
    return [run for run in runs if not (run.failure and run.failure.public)]


def _explain(exercise, runs, failing):
    """How sure the name is, and the mistakes."""
    if not failing:
        return "one", ()
    if not exercise.separate:
        return _name(exercise, diagnose(exercise, runs))
    groups = dict.fromkeys(run.case.group for run in failing)
    matching = [[_mistake(exercise, knobs) for knobs in diagnose(
        exercise, [run for run in runs if run.case.group == group])] for group in groups]
    certain = {each[0] for each in matching if len(each) == 1}  # they explain other groups, too
    named = tuple(dict.fromkeys(
        mistake for each in matching
        for mistake in [one for one in each if one in certain] or each))
    return "one" if len(named) == 1 else "each", named


def _name(exercise, found):
    """How sure the name is, and the mistakes of the hypotheses that match."""
    if len(found) == 1:
        certainty = "one" if len(found[0]) == 1 else "both"
        return certainty, tuple(_mistake(exercise, [knob]) for knob in found[0])
    return "one of", tuple(_mistake(exercise, knobs) for knobs in found)


def _mistake(exercise, knobs):
    """One mistake, or several made together told as one."""
    first = knobs[0]
    return Mistake(
        id=" + ".join(knob.id for knob in knobs),
        sentence=" And: ".join(knob.sentence for knob in knobs),
        lesson=first.lesson,
        title=exercise.titles[first.lesson],
        case=first.case,
    )


def _is_right(exercise, run, expected):
    if run.outputs is None:
        return False
    return all(
        disagreement(exercise.outputs[name], run.outputs.get(name), expected[name]) is None
        for name in expected
    )


def _comparable(exercise, failing, expected):
    """Whether only values are wrong: a wrong shape, NaN or an exception says enough by itself."""
    phrases = {
        disagreement(exercise.outputs[name], run.outputs.get(name), right)
        for run in failing if run.outputs
        for name, right in expected[id(run)].items()
    }
    telling = ("has shape", "has NaN", "is missing")
    return all(run.outputs for run in failing) and not any(
        phrase.startswith(telling) for phrase in phrases if phrase)


def _raised(failing):
    failures = [run.failure for run in failing if run.failure]
    return any(not failure.wrong_kind and not failure.not_attempted for failure in failures)


def _reason(exercise, failing, broke, judged, good):
    """One line: what went wrong, without numbers of a case."""
    if exercise.tells_apart and (broke is None or _raised([broke])):
        raised = f"{_raised_line(exercise, broke, judged)} " if broke else ""
        return raised + _kinds_told(exercise, judged, good)
    if broke is None:
        groups = dict.fromkeys(run.case.group for run in failing)
        return f"Not right yet: {', '.join(groups)}." if exercise.separate else ""
    failure = broke.failure
    if failure.not_attempted:
        open_groups = (run.case.group for run in failing
                       if run.failure and run.failure.not_attempted)
        return f"{exercise.name} is not finished: {', '.join(dict.fromkeys(open_groups))}."
    if failure.wrong_kind:
        end = "" if failure.message.endswith(("?", ".")) else "."
        return f"{exercise.name}: {failure.message}{end}"
    return _raised_line(exercise, broke, judged)


def _kinds_told(exercise, judged, good):
    """How many kinds of black boxes are told right, the sum that makes the points, what is missed.
    """
    counts = told(exercise, judged, good)
    said = [f'{right} of {count} where "{label}" is right'
            for label, (right, count) in counts.items()]
    shares = " + ".join(f"{right}/{count}" for right, count in counts.values())
    missed = dict.fromkeys(exercise.families[run.case.kind] for run in judged
                           if not good[id(run)] and exercise.families)
    return (f"Kinds told right: {', '.join(said)}. Points: ({shares} − 1) × {exercise.max_points}, "
            "rounded down, at least 0." + (f" Missed: {', '.join(missed)}." if missed else ""))


def _raised_line(exercise, broke, judged):
    failure = broke.failure
    if failure.public:
        return failure.public
    raised = sum(run.failure is not None for run in judged)
    extent = "" if raised == len(judged) else " on some of the inputs"
    article = "an" if failure.kind[0] in "AEIOU" else "a"
    return f"{exercise.name} raised {article} {failure.kind}{extent}."


def _public_reason(exercise, failing, broke):
    """The same without a word that the answer could have chosen."""
    if broke is None:
        return ""
    failure = broke.failure
    if failure.not_attempted:
        return ""  # the reason names groups, and nothing of the answer
    if failure.wrong_kind:
        groups = dict.fromkeys(run.case.group for run in failing
                               if run.failure and run.failure.wrong_kind)
        which = exercise.separate and len(groups) < len(exercise.groups)
        return ("It returned something that is not of the kind asked for"
                + (f": {', '.join(groups)}." if which else "."))
    return failure.public or "It raised an exception."


def _report(exercise, outcome, **fields):
    earned = fields.pop("scores", None)
    if earned is None:
        earned = tuple((group, 0, points) for group, points in exercise.groups.items())
    return Report(
        exercise=exercise.name,
        outcome=outcome,
        points=sum(points for _, points, _ in earned),
        max_points=exercise.max_points,
        lesson=exercise.lesson,
        scores=earned,
        **fields,
    )
