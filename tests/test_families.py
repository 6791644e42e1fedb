"""Every mistake is told from every other one, and what cannot be told apart is really the same."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from answers.fresh import fresh_inputs
from conftest import (
    agree,
    declared,
    family_outputs,
    hypotheses,
    ids,
    named,
    outputs,
    rng_of,
)

from lnres_utils import specs
from lnres_utils.checking import diagnose, judge, run_case
from lnres_utils.checking.diagnosing import hypothesis

ROOT = Path(__file__).parents[1]
FRESH = 40  # random inputs on which equal hypotheses must stay equal


def test_the_family_at_rest_gets_all_points(exercise):
    report = judge(exercise, hypothesis(exercise, ()), rng_of(exercise))
    assert (report.outcome, report.points) == ("right", exercise.max_points), report.text


def test_the_family_at_rest_is_the_reference_on_other_inputs(exercise):
    inputs = fresh_inputs(exercise, np.random.default_rng(1), FRESH)
    right = list(map(exercise.reference, inputs))
    assert agree(exercise, family_outputs(exercise, (), inputs), right)


@pytest.mark.parametrize("seed", [None, 7, 8])
def test_every_single_mistake_is_named_alone(exercise, seed):
    """On the inputs of the notebook and on inputs of other seeds, as a grader draws them."""
    wrong = []
    for knob in exercise.knobs:
        rng = rng_of(exercise) if seed is None else np.random.default_rng(seed)
        report = judge(exercise, hypothesis(exercise, (knob,)), rng)
        if report.outcome == "right" or named(report) != {knob.id} or report.certainty != "one":
            wrong.append((knob.id, report.outcome, report.certainty, set(named(report))))
    assert not wrong


def test_every_mistake_says_where_the_book_explains_it(exercise):
    for knob in exercise.knobs:
        assert knob.lesson in specs.LESSONS, knob.id
        assert knob.sentence.endswith((".", ".)")) and len(knob.sentence) < 260, knob.id
    assert len({knob.id for knob in exercise.knobs}) == len(exercise.knobs)


@pytest.mark.parametrize("lesson", specs.LESSONS)
def test_a_report_calls_a_lesson_by_its_title(lesson):
    source = (ROOT / "chapters" / f"{lesson}.ipynb").read_text(encoding="utf-8")
    first = "".join(json.loads(source)["cells"][0]["source"])
    assert f"\n# {specs.LESSONS[lesson]}\n" in first


def test_all_pairs_of_hypotheses_are_told_apart_or_are_declared_the_same(exercise, capsys):
    everything = hypotheses(exercise)
    inputs = [case.inputs for case in exercise.cases(rng_of(exercise))]
    table = [family_outputs(exercise, knobs, inputs) for knobs in everything]
    right = list(map(exercise.reference, inputs))
    assert not [ids(knobs) for knobs, row in zip(everything, table, strict=True)
                if agree(exercise, row, right)], "a mistake that no case shows"

    merged = {(ids(everything[i]), ids(everything[j])): (everything[i], everything[j])
              for i, j in candidates(exercise, table) if agree(exercise, table[i], table[j])}
    with capsys.disabled():
        print(f"\n{exercise.name}: {len(exercise.knobs)} mistakes, {len(everything)} hypotheses, "
              f"{len(merged)} pairs of them the same", end="")
    undeclared = [pair for pair in merged if not declared(exercise, *pair)]
    assert not undeclared, "declare them, let one mask the other, or give a case that shows it"


def test_what_is_declared_the_same_is_the_same(exercise):
    inputs = fresh_inputs(exercise, np.random.default_rng(2), FRESH)
    knobs = {knob.id: knob for knob in exercise.knobs}
    for equivalent in exercise.equivalents:
        assert equivalent.reason
        rows = [family_outputs(exercise, [knobs[id] for id in each], inputs)
                for each in equivalent.hypotheses]
        assert all(agree(exercise, rows[0], row) for row in rows[1:]), equivalent


def test_what_a_mistake_masks_has_no_effect_with_it(exercise):
    """Masked pairs are not formed; that loses nothing, for what is masked does nothing."""
    inputs = fresh_inputs(exercise, np.random.default_rng(3), FRESH)
    for knob in exercise.knobs:
        alone = family_outputs(exercise, (knob,), inputs)
        for other in exercise.knobs:
            hidden = {name: value for name, value in other.settings.items()
                      if name in knob.masks or other.id in knob.masks}
            if hidden and not set(hidden) & set(knob.settings):
                both = exercise.family(**knob.settings, **hidden)
                assert agree(exercise, alone, outputs(exercise, both, inputs)), (knob.id, hidden)


def test_without_the_right_knob_no_wrong_name_is_given(exercise, capsys):
    """Leave one knob out: the answers that need it get no name, or one that is the same."""
    everything = hypotheses(exercise)
    cases = exercise.cases(rng_of(exercise))
    quick = remembering(exercise)
    rng = np.random.default_rng(4)
    answers = names = 0
    false = []
    for knob in exercise.knobs:
        rest = [each for each in exercise.knobs if each is not knob]
        needing = [each for each in everything if knob in each]
        pairs = needing[1:]
        few = rng.choice(len(pairs), size=min(2, len(pairs)), replace=False) if pairs else []
        for wrong in [needing[0], *(pairs[i] for i in few)]:
            answer = hypothesis(exercise, wrong)
            runs = [run_case(exercise, answer, case) for case in cases]
            answers += 1
            for found in diagnose(quick, runs, rest):
                names += 1
                if not declared(exercise, ids(found), ids(wrong)):
                    false.append((set(ids(wrong)), set(ids(found))))
    with capsys.disabled():
        print(f"\n{exercise.name}: {answers} answers with their knob left out, {names} names, "
              f"{len(false)} of them wrong", end="")
    assert not false


def remembering(exercise):
    """The same exercise, whose family computes each output once."""
    known = {}

    def drive(settings, inputs):
        key = (settings, id(inputs))
        if key not in known:
            answer = exercise.family(**dict(settings))
            known[key] = outputs(exercise, answer, [inputs])[0]
        if known[key] is None:
            raise ValueError("this hypothesis raises here")
        return known[key]

    return replace(exercise, drive=drive, family=lambda **settings: tuple(settings.items()))


def candidates(exercise, table):
    """Pairs of rows that may agree: those of one form whose first numbers are near."""
    sketches = {}
    for index, row in enumerate(table):
        form = [given and [(name, getattr(value, "shape", value))
                           for name, value in given.items()] for given in row]
        sketches.setdefault(str(form), []).append(index)
    for group in sketches.values():
        numbers = np.array([_sketch(exercise, table[index]) for index in group])
        for position, index in enumerate(group):
            near = np.isclose(numbers[position], numbers[position + 1:], rtol=1e-3, atol=1e-3,
                              equal_nan=True).all(axis=1)
            yield from ((index, group[position + 1 + other]) for other in np.flatnonzero(near))


def _sketch(exercise, row):
    """Numbers that agree wherever two rows do; what is told up to chance is left out."""
    arrays = [np.ravel(value)[:2].astype(float) for given in row if given
              for name, value in given.items()
              if not isinstance(value, str) and exercise.outputs[name].tolerance <= 1e-4]
    return np.concatenate([*arrays, np.zeros(1)])
