"""Outcomes, points, what a report shows and hides, and what a learner's notebook does with it."""

import json
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
from conftest import checked, rng_of
from nbclient import NotebookClient

from lnres_utils import CheckFailed, norms, specs
from lnres_utils.checking import Session, judge
from lnres_utils.checking.diagnosing import hypothesis
from lnres_utils.checking.model import INPUT_KEPT, Output


def points(report):
    return {group: got for group, got, _ in report.scores}


def stub(x, gamma, beta, eps=1e-5):
    raise NotImplementedError("layer_norm")


def three_axes_only(x, gamma, beta, eps=1e-5):
    batch, tokens, width = x.shape
    return norms.layer_norm(x, gamma, beta, eps)


def without_affine(x, gamma, beta, eps=1e-5):
    return norms.layer_norm(x, np.ones_like(gamma), np.zeros_like(beta), eps)


def always_float64(x, gamma, beta, eps=1e-5):
    return norms.layer_norm(x, gamma, beta, eps).astype(float)


def causal_leak(x, gamma, beta, eps=1e-5):
    """No known mistake: each token is normalized together with the one after it."""
    after = np.roll(x, -1, axis=-2) if x.ndim > 1 else x
    return norms.layer_norm((x + after) / 2, gamma, beta, eps)


def raises_its_input(x, gamma, beta, eps=1e-5):
    raise ValueError(f"secret {x.ravel()[0]}")


# Outcomes and points


@pytest.mark.parametrize("name", list(specs.exercises))
def test_the_stub_is_not_attempted(name):
    def answer(*arguments):
        raise NotImplementedError

    as_class = type(name, (), {"__init__": answer})
    kind = specs.get(name).kind
    report = checked(name, as_class if kind == "class" else answer)
    assert (report.outcome, report.points) == ("not attempted", 0)
    assert report.headline == f"{name}: not attempted"
    assert not report.mistakes


@pytest.mark.parametrize(("answer", "lost"), [
    (three_axes_only, {"other ranks"}),
    (always_float64, {"float32"}),
    (without_affine, {"gain and bias", "other ranks", "float32"}),
])
def test_each_group_of_cases_earns_its_points(answer, lost):
    exercise = specs.get("layer_norm")
    report = checked("layer_norm", answer)
    assert points(report) == {group: 0 if group in lost else most
                              for group, most in exercise.groups.items()}
    assert report.points == sum(points(report).values())
    assert ("points missed" in report.text) and all(group in report.text for group in lost)


def test_every_group_has_cases_and_every_judged_case_has_a_group():
    for exercise in specs.exercises.values():
        groups = {exercise.opened(case).group for case in exercise.cases(rng_of(exercise))
                  if case.judged}
        expected = set(exercise.labels or exercise.groups) - {INPUT_KEPT}
        assert groups == expected, exercise.name
        assert exercise.max_points == sum(exercise.groups.values()) > 0


def test_an_unjudged_case_costs_nothing():
    """On a square array the right answer and a lost axis differ; only the lost axis is wrong."""
    exercise = specs.get("layer_norm")
    square = [case for case in exercise.cases(rng_of(exercise)) if not case.judged]
    assert all(len(set(case.inputs["x"].shape)) == 1 for case in square) and square

    def wrong_on_squares(x, gamma, beta, eps=1e-5):
        odd = x.ndim == 3 and len(set(x.shape)) == 1
        return norms.layer_norm(x, gamma, beta, eps) + odd

    assert checked("layer_norm", wrong_on_squares).outcome == "right"


def test_a_half_answered_dict_earns_half():
    report = checked("predict_layer_norm", lambda: {"width_one": 3, "largest_of_17": 4,
                                                    "negative_scale": 1})
    assert (report.outcome, report.points) == ("wrong", 2)
    assert "is not finished: " in report.text
    assert [mistake.id for mistake in report.mistakes] == ["scale-invariant-with-sign"]


def test_two_mistakes_are_both_named():
    def layer_norm(x, gamma, beta, eps=1e-5):
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, ddof=1, keepdims=True)
                                                        + eps) * gamma + beta

    report = checked("layer_norm", layer_norm)
    assert report.certainty == "both"
    assert {mistake.id for mistake in report.mistakes} == {"unbiased-variance", "over-axis-1"}
    assert "Two mistakes at once" in report.text


def test_a_tie_is_said_to_be_one():
    knobs = {knob.id: knob for knob in specs.get("layer_norm").knobs}
    answer = hypothesis(specs.get("layer_norm"), [knobs["over-axis-1"], knobs["three-axes-only"]])
    report = checked("layer_norm", answer)
    assert report.certainty == "one of" and len(report.mistakes) == 2
    assert "it is one of them" in report.text


def test_what_matches_nothing_gets_no_name_but_the_law_it_breaks():
    report = checked("layer_norm", causal_leak)
    assert not report.mistakes
    assert "A token's output changes when only a later token changes." in report.broken
    assert "No known mistake" in report.text and report.broken[0] in report._repr_html_()


def test_no_law_is_broken_by_the_right_answer():
    for exercise in specs.exercises.values():
        for law in exercise.properties:
            first, second = law.pair(np.random.default_rng(0))
            assert law.holds(exercise.reference(first), exercise.reference(second)), law.broken


def test_rounding_is_forgiven_and_nothing_else():
    exercise = specs.get("layer_norm")
    for size, outcome in ((1e-9, "right"), (1e-3, "wrong")):
        def layer_norm(x, gamma, beta, eps=1e-5, size=size):
            return (norms.layer_norm(x, gamma, beta, eps) * (1 + size)).astype(x.dtype)

        assert judge(exercise, layer_norm, rng_of(exercise)).outcome == outcome


def test_an_unknown_way_to_compare_is_refused():
    with pytest.raises(ValueError, match="compare is 'roughly'"):
        Output("roughly")


# What a report shows and hides

ANSWERS = (stub, three_axes_only, without_affine, causal_leak, raises_its_input, None,
           norms.layer_norm)


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_html_needs_no_style_sheet_and_no_script(answer):
    html = checked("layer_norm", answer)._repr_html_()
    assert not re.search(r"<(script|style|svg|img|button|input|iframe)", html)
    assert not re.search(r"\s(class|id|on\w+)=", html)
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl|color\s*:|background:(?!none|inherit)", html)
    opened = re.findall(r"<(\w+)", html)
    assert sorted(opened) == sorted(re.findall(r"</(\w+)", html))


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_same_words_stand_in_text_and_html(answer):
    report = checked("layer_norm", answer)
    assert report.text.splitlines()[0][2:] in report._repr_html_()
    for mistake in report.mistakes:
        assert mistake.sentence in report.text
    assert repr(report) == report.text
    assert all(len(line) < 320 for line in report.text.splitlines())


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_report_is_plain_data(answer):
    report = checked("layer_norm", answer)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["outcome"] == report.outcome and data["points"] == report.points
    assert {"exercise", "mistakes", "max_points", "scores", "evidence"} <= set(data)


def test_markup_in_an_answers_words_is_shown_as_text():
    def layer_norm(x, gamma, beta, eps=1e-5):
        print("<script>alert(1)</script>")
        raise ValueError("<img src=x onerror=alert(1)> `tick")

    html = checked("layer_norm", layer_norm)._repr_html_()
    assert "<img" not in html and "<script" not in html


def test_a_mistake_links_to_its_lesson():
    report = checked("layer_norm", three_axes_only)
    assert "../chapters/feature-axis/which-axis.ipynb" in report.text
    assert 'href="../chapters/feature-axis/which-axis.ipynb"' in report._repr_html_()


@pytest.mark.parametrize("answer", [three_axes_only, without_affine, causal_leak, always_float64,
                                    raises_its_input])
def test_public_feedback_shows_no_input_no_expected_value_and_no_exception(answer):
    exercise = specs.get("layer_norm")
    report = checked("layer_norm", answer)
    public = json.dumps(report.public())
    assert set(report.public()) == {"exercise", "outcome", "points", "max_points", "reason",
                                    "mistakes", "certainty", "lesson", "scores"}
    assert "secret" not in public and "ValueError" not in public
    for case in exercise.cases(rng_of(exercise)):
        numbers = [case.inputs["x"], exercise.reference(case.inputs)["y"]]
        for value in np.concatenate([np.ravel(each) for each in numbers]):
            assert f"{value:.4g}" not in public or len(f"{value:.4g}") < 5


# The learner's session


def test_a_failed_check_is_one_line_without_numbers(capsys):
    with pytest.raises(CheckFailed) as failed:
        Session(specs.exercises).check(without_affine, "layer_norm")
    lines = failed.value._render_traceback_()
    assert lines == ["CheckFailed: layer_norm: wrong (report above)"]
    assert isinstance(failed.value, AssertionError)
    assert "Neither the gain" in capsys.readouterr().out


def test_a_right_answer_displays_nothing_and_returns_the_report(capsys):
    report = Session(specs.exercises).check(norms.layer_norm)
    assert capsys.readouterr() == ("", "")
    assert report.outcome == "right"


def test_the_inputs_are_the_same_at_every_check():
    assert checked("layer_norm", causal_leak).text == checked("layer_norm", causal_leak).text


@pytest.mark.parametrize("name", list(specs.exercises))
def test_hints_come_one_by_one_and_stay(name):
    session, hints = Session(specs.exercises), specs.get(name).hints
    assert len(hints) == 3
    for step in (1, 2, 3, 3):
        hint = session.hint(name)
        assert hint.shown == hints[:step]
        assert repr(hint).splitlines()[-1] == f"Hint {step} of 3: {hints[step - 1]}"
        assert f"hint {step} of 3" in hint._repr_html_()


def test_hints_know_near_names():
    with pytest.raises(CheckFailed, match='"layer_norm"'):
        Session(specs.exercises).hint("layernorm")


def test_progress_counts_checks_and_keeps_the_last_outcome(capsys):
    session = Session(specs.exercises)
    assert repr(session.progress()) == "Nothing checked yet since the notebook was started."
    for answer in (stub, three_axes_only):
        with pytest.raises(CheckFailed):
            session.check(answer, "layer_norm")
    session.check(norms.standardize)
    lines = repr(session.progress()).splitlines()
    assert lines[0].endswith("standardize: right, 4 of 4 points, 1 check")
    assert lines[1].endswith("layer_norm: raised, 8 of 10 points, 2 checks")
    chapter = [specs.get(name) for name in specs.CHAPTERS["feature-axis"]]
    assert len(lines) == len(chapter) + 1, "what was not checked yet is listed too"
    assert lines[2].endswith(f"not checked, 0 of {chapter[2].max_points} points, 0 checks")
    total = f"12 of {sum(spec.max_points for spec in chapter)} points in all"
    assert lines[-1] == total and total in session.progress()._repr_html_()


@pytest.mark.parametrize(("answer", "words"), [
    (np.ones(4), r"pass the function itself, as in check\(standardize\), not what it returns"),
    ("layer_norm", r"without quotes: check\(layer_norm\)"),
    (norms.LayerNorm(4), r"pass the class, not an object of it: check\(LayerNorm\)"),
    (norms.layer_norm, r"layer_norm is the answer to another exercise: check\(layer_norm\)"),
])
def test_a_slip_in_calling_check_takes_no_result_away(answer, words):
    session = Session(specs.exercises)
    session.check(norms.standardize)
    with pytest.raises(CheckFailed, match=words):
        session.check(answer, "standardize")
    assert "right, 4 of 4 points, 1 check\n" in repr(session.progress())


def test_an_interrupted_check_says_so_in_one_line():
    def standardize(x, eps=1e-5):
        raise KeyboardInterrupt

    with pytest.raises(CheckFailed, match="interrupted"):
        Session(specs.exercises).check(standardize)


def test_a_hint_without_a_name_lists_the_exercises():
    with pytest.raises(CheckFailed, match='which exercise.*"standardize"'):
        Session(specs.exercises).hint()


def test_importing_the_package_imports_no_torch():
    code = "import sys, lnres_utils; print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_checking_a_numpy_exercise_imports_no_torch():
    code = ("import sys; from lnres_utils import check, norms; check(norms.layer_norm); "
            "print('torch' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture(scope="module")
def notebook():
    """An executed notebook: a stub, a wrong and a right answer, as a learner runs them."""
    cells = [
        "from lnres_utils import check, hint, progress\nimport numpy as np",
        "def layer_norm(x, gamma, beta, eps=1e-5):\n    raise NotImplementedError",
        "check(layer_norm)",
        "def layer_norm(x, gamma, beta, eps=1e-5):\n    return x - x.mean(1, keepdims=True)",
        "check(layer_norm)",
        "from lnres_utils.norms import layer_norm",
        "check(layer_norm);",
        "progress()",
    ]
    built = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    for cell in built.cells:
        cell.metadata["tags"] = ["raises-exception"] if cell.source == "check(layer_norm)" else []
    NotebookClient(built, timeout=120, kernel_name="python3").execute()
    return built


def test_a_notebook_goes_on_after_a_failed_check(notebook):
    kinds = [[output.output_type for output in cell.outputs] for cell in notebook.cells]
    assert kinds == [[], [], ["display_data", "error"], [], ["display_data", "error"], [], [],
                     ["execute_result"]]


def test_a_notebook_shows_the_report_and_one_line(notebook):
    shown, error = notebook.cells[2].outputs
    assert set(shown.data) == {"text/plain", "text/html"}
    assert error.traceback == ["CheckFailed: layer_norm: not attempted (report above)"]
    assert "3 checks" in notebook.cells[-1].outputs[0].data["text/plain"]
