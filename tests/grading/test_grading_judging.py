"""From replies to runs: what a student's process may say, and what is believed of it."""

import numpy as np
import pytest

from lnres_utils import specs
from lnres_utils.checking import Failure, judge_runs
from lnres_utils.grading.judging import (
    Answering,
    drawn,
    graded,
    run_of,
    stopped_run,
    unanswered,
    warm,
)
from lnres_utils.grading.sandboxed.wire import Malformed, unpack

LAYER_NORM = drawn("layer_norm", 3)


def reply(**fields):
    return {"outputs": None, "failure": None, "changed": []} | fields


def right_runs(exercise=LAYER_NORM):
    return [run_of(exercise.exercise, case, reply(
        outputs=exercise.exercise.reference(case.inputs))) for case in exercise.cases]


def failed(**fields):
    return {"kind": "ValueError", "message": "", "where": "", "wrong_kind": False,
            "not_attempted": False} | fields


@pytest.mark.parametrize("wrong", [
    {}, reply(), reply(outputs=[1]), reply(outputs="y"), reply(failure="failed"),
    reply(failure={"kind": 3}), reply(failure=failed(message=None)), reply(outputs={}, changed="x"),
    reply(outputs={}, changed=["y"]), reply(outputs={}, changed=[["x"]]),
    reply(outputs={}, changed={"x": 1}),
])
def test_what_is_no_reply_is_refused(wrong):
    with pytest.raises(Malformed):
        run_of(LAYER_NORM.exercise, LAYER_NORM.cases[0], wrong)


@pytest.mark.parametrize("value", [None, 1, 2.5, True, "text", [1.0], {"a": 1}])
def test_what_is_no_array_is_of_a_wrong_kind(value):
    run = run_of(LAYER_NORM.exercise, LAYER_NORM.cases[0], reply(outputs={"y": value}))
    assert run.outputs is None and run.failure.wrong_kind


def test_outputs_that_nobody_asked_for_are_left_out_and_missing_ones_are_wrong():
    case = LAYER_NORM.cases[0]
    run = run_of(LAYER_NORM.exercise, case, reply(outputs={"z": np.zeros(3)}))
    assert run.outputs == {}
    report = judge_runs(LAYER_NORM.exercise, [run, *right_runs()[1:]])
    assert report.outcome == "wrong"


def test_the_references_own_outputs_are_right():
    assert graded(judge_runs(LAYER_NORM.exercise, right_runs())).points == 10


def test_texts_of_a_student_are_cut_and_cleaned():
    told = reply(failure=failed(kind="E" * 9999, message="\x1b[31m\ud800", where="\0" * 9999))
    failure = run_of(LAYER_NORM.exercise, LAYER_NORM.cases[0], told).failure
    assert len(failure.kind) < 400 and len(failure.where) < 2000
    assert failure.message == "\\x1b[31m\\ud800"
    texts = drawn("LayerNorm", 3)
    place = next(case for case in texts.cases if case.inputs["task"] == "state")
    run = run_of(texts.exercise, place, reply(outputs={"state": "\ud800" * 9999}))
    assert run.outputs["state"].isascii() is False or len(run.outputs["state"]) < 40_000
    run.outputs["state"].encode()


def test_a_forbidden_call_is_told_in_our_words_and_only_if_it_is_forbidden():
    exercise, case = LAYER_NORM.exercise, LAYER_NORM.cases[0]

    def public(name, kind="Forbidden"):
        return run_of(exercise, case, reply(failure=failed(kind=kind, message=name))).failure.public

    name = "lnres_utils.norms"
    assert public(name) == f"It calls `{name}`, which this exercise is to do without."
    assert public(f"{name}.layer_norm is not available", "NotAvailable").startswith(
        f"It calls `{name}`")
    assert public("my.own.words") == public(f"{name}2") == public(name, "ValueError") == ""


def test_a_stopped_call_says_why_and_hides_no_mistake_of_the_others():
    sentence = "It took more than 10 s of the processor and was stopped."
    cases, exercise = LAYER_NORM.cases, LAYER_NORM.exercise
    family = exercise.family(**exercise.knobs[0].settings)
    runs = [run_of(exercise, case, reply(outputs=exercise.drive(family, case.inputs)))
            for case in cases[1:]]
    report = judge_runs(exercise, [stopped_run(cases[0], sentence), *runs])
    assert report.outcome == "raised"
    assert report.reason == report.public()["reason"] == sentence
    assert [each.id for each in report.mistakes] == [exercise.knobs[0].id]


def test_a_stopped_call_alone_names_no_mistake():
    runs = [stopped_run(LAYER_NORM.cases[0], "It was stopped."), *right_runs()[1:]]
    report = judge_runs(LAYER_NORM.exercise, runs)
    assert report.outcome == "raised" and report.mistakes == () and report.points > 0


def test_a_failure_of_ours_is_what_public_shows():
    assert Failure("Stopped", "", public="It was stopped.").public == "It was stopped."
    result = unanswered("layer_norm", "Its cell raised KeyError: 'my words'", "It stopped.")
    assert result.public["reason"] == "It stopped." and "my words" not in str(result.public)


@pytest.mark.parametrize("name", list(specs.exercises))
def test_every_exercise_can_be_asked_and_no_question_holds_an_answer(name):
    question = unpack(drawn(name, 3).question)
    assert question["exercise"] == name and len(question["cases"]) == len(drawn(name, 3).cases)
    assert set(question["cases"][0]) == {"inputs", "only"}
    again = unpack(drawn(name, 3).from_case(1))
    assert again["first"] == 1 and len(again["cases"]) == len(question["cases"]) - 1


def test_the_seed_of_an_answer_says_nothing_of_the_seed_of_the_run():
    drawn.cache_clear()
    first, second = (unpack(drawn("layer_norm", seed).question) for seed in (1, 2))
    assert first["seed"] == second["seed"]
    x, other = (question["cases"][0]["inputs"]["x"] for question in (first, second))
    assert not np.array_equal(x, other)


def test_warming_up_computes_what_hypotheses_give():
    exercise = drawn("layer_norm", 3)
    warm(exercise)
    known = exercise.cases[0].known
    assert set(known) >= {(knob.id,) for knob in exercise.exercise.knobs}


# Black boxes: the worker's own copy answers.


def box_case(name):
    return drawn(name, 3).cases[0]


def ask(answering, *arrays, numbers=()):
    frame, seconds = answering.answer({"ask": 0, "arrays": list(arrays), "numbers": list(numbers)})
    assert seconds >= 0
    return unpack(frame)


def test_a_box_answers_as_often_as_it_may_and_counts_by_itself():
    case = box_case("norm_order")
    box, answering = case.inputs["block"], Answering(case)
    x = np.ones((1, 3, box.width))
    for _ in range(box.calls_left):
        assert ask(answering, x)["answer"][0].shape == x.shape
    assert ask(answering, x)["raised"]["kind"] == "CallsSpent"
    assert "answer" in ask(Answering(case), x, x)


@pytest.mark.parametrize("shape", [(3,), (1, 3, 500), (0, 3, 9), (1, 2500, 9), (400, 200, 9)])
def test_a_box_refuses_what_it_would_refuse_in_a_notebook(shape):
    case = box_case("norm_order")
    width = case.inputs["block"].width
    shape = tuple(width if size == 9 else size for size in shape)
    told = ask(Answering(case), np.ones(shape))
    assert "answer" in told if 0 in shape else told["raised"]["kind"] == "ValueError"


@pytest.mark.parametrize("message", [
    {}, {"arrays": []}, {"arrays": [1.0], "numbers": []}, {"arrays": "x", "numbers": []},
    {"arrays": [np.ones(3)] * 3, "numbers": []}, {"arrays": [np.ones(3)], "numbers": [1.0]},
])
def test_a_question_to_no_box_is_refused(message):
    with pytest.raises(Malformed):
        Answering(box_case("norm_order")).answer({"ask": 0} | message)
    with pytest.raises(Malformed):
        Answering(LAYER_NORM.cases[0]).answer({"ask": 0} | message)


def test_a_norm_gives_its_output_and_what_became_of_x():
    exercise = drawn("norm_test", 3)
    x = np.arange(24.0).reshape(2, 3, 4)
    changed = 0
    for case in exercise.cases:
        told = ask(Answering(case), x.copy(), np.ones(4), np.zeros(4), numbers=[0.1])
        if "answer" in told:
            y, left = told["answer"]
            changed += not np.array_equal(left, x)
        else:
            assert told["raised"]["kind"] != "NormFailed"  # the other side says so itself
    assert changed == 3  # kind "changes its input"
