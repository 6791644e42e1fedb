"""What is said of an answer that never gave a number, and of the cell that it stands in."""

import dataclasses

import pytest
from grading import classroom
from grading.runs import QUICK, marker

from lnres_utils.grading.marking import NO_CELL, NOT_FINISHED
from lnres_utils.grading.model import Cell, Notebook

RIGHT = classroom.solutions("feature-axis")["standardize"]
SECRET = "raise KeyError('my own words')"


@pytest.fixture(scope="module")
def mark():
    with marker(limits=QUICK) as function:
        yield function


@pytest.fixture
def answered(mark):
    """The result of ``standardize`` in a notebook of these cells, the last of which answers it."""
    def function(*sources):
        *before, last = sources
        cells = [Cell(number, source) for number, source in enumerate(before, start=1)]
        answer = Cell(len(cells) + 1, last, "standardize")
        return mark(Notebook("feature-axis", (*cells, answer)), ("standardize",))[0]

    return function


@pytest.mark.parametrize(("sources", "outcome", "reason", "public"), [
    (["\n\ndef standardize(x, eps=1e-5:"], "raised", "Its cell stopped: SyntaxError in line 3: ",
     "Its cell stopped with a SyntaxError in line 3."),
    (["def standardize(x):\nreturn x"], "raised",
     "Its cell stopped: IndentationError in line 2: expected an indented block after",
     "Its cell stopped with an IndentationError in line 2."),
    (["def standardize(x):\n    # why?\n    return (x\n            / x.std()"], "raised",
     "Its cell stopped: SyntaxError in line 3: '(' was never closed",
     "Its cell stopped with a SyntaxError in line 3."),
    (["%matplotlib inline\ndef standardize(x, eps=1e-5:"], "raised",
     "Its cell stopped: SyntaxError: ", "Its cell stopped with a SyntaxError."),
    (["raise SyntaxError('my own words', ('own', 7, 1, 'words'))"], "raised",
     "Its cell stopped: SyntaxError: my own words (line 7)",
     "Its cell stopped with a SyntaxError."),
    (["import my_module"], "raised", "Its cell stopped: ModuleNotFoundError: ",
     "Its cell stopped with a ModuleNotFoundError."),
    ([SECRET], "raised", "Its cell stopped: KeyError: 'my own words'",
     "Its cell stopped with a KeyError."),
    (["class My(Exception): pass\nraise My('own')"], "raised", "Its cell stopped: My: own",
     "Its cell stopped with an exception."),
    (["class int(Exception): pass\nraise int('own')"], "raised", "Its cell stopped: int: own",
     "Its cell stopped with an exception."),
    (["raise NotImplementedError()"], "not attempted", NOT_FINISHED, NOT_FINISHED),
    (["x = 3"], "not attempted", "Its cell does not define standardize.",
     "Its cell does not define standardize."),
    (["while True: pass"], "raised", "Its cell did not run to the end: it took more than 0.5 s",
     "Its cell did not run to the end: it took more than 0.5 s"),
    (["standardize = 3"], "wrong", "standardize is an int; a function",
     "It cannot be called as standardize(x, eps=1e-5)."),
    (["def standardize(): pass"], "wrong", "standardize() cannot be called as standardize(x)",
     "It cannot be called as standardize(x, eps=1e-5)."),
    ([f"def standardize(x, eps=1e-5):\n    {SECRET}"], "raised",
     "standardize raised a KeyError.", "It raised an exception."),
    (["def standardize(x, eps=1e-5):\n    return 'my own words'"], "wrong",
     "standardize: the returned value is a str", "It returned something that is not of the kind"),
    # An earlier meaning of the name is no answer.
    ([RIGHT, "1 / 0\ndef standardize(x): pass"], "raised",
     "Its cell stopped: ZeroDivisionError: ", "Its cell stopped with a ZeroDivisionError."),
])
def test_why_there_is_no_number(answered, sources, outcome, reason, public):
    graded = answered(*sources)
    assert (graded.outcome, graded.points) == (outcome, 0)
    assert graded.reason.startswith(reason)
    assert graded.public["reason"].startswith(public)
    assert "own words" not in str(graded.public)


@pytest.mark.parametrize(("change", "reason", "public"), [
    ("asked['width_one'] = None\n    del asked['negative_scale']",
     "predict_layer_norm is not finished: width_one, negative_scale.",
     "predict_layer_norm is not finished: width_one, negative_scale."),
    ("asked['my own words'] = asked.pop('width_one')",
     "predict_layer_norm: width_one not found; unknown keys of the dict: 'my own words'.",
     "It returned something that is not of the kind asked for: width_one."),
    ("asked['std_at_eps'] = 'my own words'",
     "predict_layer_norm: std_at_eps is 'my own words'; a number was expected.",
     "It returned something that is not of the kind asked for: std_at_eps."),
])
def test_the_student_is_told_which_predictions_are_missing(mark, change, reason, public):
    right = classroom.solutions("feature-axis")["predict_layer_norm"]
    changed = (f"{right}\nright = predict_layer_norm\ndef predict_layer_norm():\n"
               f"    asked = right()\n    {change}\n    return asked")
    graded, = mark(Notebook("feature-axis", (Cell(1, changed, "predict_layer_norm"),)),
                   ("predict_layer_norm",))
    assert (graded.outcome, graded.reason) == ("wrong", reason)
    assert graded.public["reason"] == public and "own words" not in str(graded.public)


@pytest.mark.parametrize("sources", [
    [RIGHT + "\n\n1 / 0"],
    ["1 / 0", RIGHT],
    ["%matplotlib inline\n!ls\nimport math", RIGHT],
    ["while True: pass", RIGHT],
    ["helper = 3\nimport os\nos._exit(1)", RIGHT + "\nhelper"],
    ["from lnres_utils import blocks, check, hint, norms, progress\ncheck(3); hint('x')", RIGHT],
])
def test_what_other_cells_do_costs_a_right_answer_nothing(answered, sources):
    assert answered(*sources).outcome == "right"


def test_a_forbidden_call_is_told_to_the_student_and_its_name_to_the_teacher(mark):
    source = ("from torch.nn.functional import layer_norm as theirs\n"
              "def layer_norm(x, gamma, beta, eps=1e-5):\n"
              "    parts = map(torch.tensor, (gamma, beta))\n"
              "    return theirs(torch.tensor(x), x.shape[-1:], *parts, eps).numpy()")
    notebook = Notebook("feature-axis", (Cell(1, source, "layer_norm"),))
    graded, = mark(notebook, ("layer_norm",))
    name = "torch.nn.functional.layer_norm"
    assert (graded.outcome, graded.points) == ("raised", 0)
    assert graded.public["reason"] == f"It calls `{name}`, which this exercise is to do without."
    assert graded.notes == (f"Its source names {name}, which it is to do without.",)


def test_a_back_door_of_torch_costs_nothing_and_is_told_to_the_teacher(mark):
    source = ("def layer_norm(x, gamma, beta, eps=1e-5):\n"
              "    parts = map(torch.tensor, (gamma, beta))\n"
              "    return torch.ops.aten.native_layer_norm(\n"
              "        torch.tensor(x), x.shape[-1:], *parts, eps)[0].numpy()")
    graded, = mark(Notebook("feature-axis", (Cell(1, source, "layer_norm"),)), ("layer_norm",))
    note = "Its source names torch.ops, by which forbidden calls can be reached."
    assert graded.points > 0 and graded.notes == (note,)
    assert "torch.ops" not in str(graded.public) + graded.reason


def test_an_exercise_without_a_cell_is_not_attempted(mark):
    graded, = mark(Notebook("feature-axis", (Cell(1, RIGHT),)), ("standardize",))
    assert (graded.outcome, graded.reason) == ("not attempted", NO_CELL)


def test_cells_below_the_last_answer_are_not_run(mark):
    cells = (Cell(1, RIGHT, "standardize"), Cell(2, "import time\ntime.sleep(1000)"))
    assert mark(Notebook("feature-axis", cells), ("standardize",))[0].outcome == "right"


def test_a_loop_for_some_inputs_costs_those(answered):
    graded = answered("def standardize(x, eps=1e-5):\n    while eps == 1e-5: pass\n"
                      "    return (x - x.mean()) / np.sqrt(x.var() + eps)")
    assert graded.outcome == "raised" and 0 <= graded.points < 4
    assert graded.public["mistakes"] == []
    assert graded.reason.startswith("It took more than 0.5 s")


def test_a_notebook_that_loops_everywhere_comes_to_an_end(mark):
    loop = "def {}(*all):\n    while True: pass"
    names = ("standardize", "layer_norm", "axis_norm", "channel_norm")
    cells = tuple(Cell(number, loop.format(name), name) for number, name in enumerate(names))
    limits = dataclasses.replace(QUICK, seconds=0.1)
    with marker(limits=limits) as quick:
        results = quick(Notebook("feature-axis", cells), names)
    assert all((each.outcome, each.points) == ("raised", 0) for each in results)
