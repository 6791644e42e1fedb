"""A student's process at work: cells as in a notebook, answers as in the notebook's check."""

import json
from pathlib import Path

import numpy as np
import pytest
from zygote_client import Zygote, once

import lnres_utils
from lnres_utils import specs
from lnres_utils.checking.comparing import same
from lnres_utils.grading.sandboxed import shim, wire

ROOT = Path(__file__).parents[2]
X = np.arange(1.0, 4.0)


@pytest.fixture(scope="module")
def zygote(tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp("scratch"))
    yield zygote
    zygote.close()


@pytest.fixture
def child(zygote):
    child = zygote.child(forbid=["torch.nn.functional.layer_norm", "torch.nn.LayerNorm",
                                 "numpy.std", "torch.layer_norm"])
    yield child
    child.kill()


def test_statements_are_told_before_they_run(child):
    assert child.cell("a = 1\nb = a + 1\n\n# text\ndef f():\n    return b") == ([0, 1, 2], None)
    assert child.cell("1 / 0\nc = 3") == ([0], {
        "kind": "ZeroDivisionError", "message": "division by zero", "statement": 0})
    assert child.cell("assert f() == 2\nc") == (
        [0, 1], {"kind": "NameError", "message": "name 'c' is not defined", "statement": 1})


def test_a_cell_can_be_cut(child):
    assert child.cell("a = 1\na = 2\na = 3", statements=2) == ([0, 1], None)
    assert child.run("assert a == 2") is None
    assert child.cell("a = 9", statements=0) == ([], None)


@pytest.mark.parametrize("source", [
    "%matplotlib inline\n%timeit -n 1 -r 1 1 + 1\nx = %who_ls",
    "%%time\na = 1\nassert a",
    "!ls\nfiles = !ls\nassert list(files) == []",
    "%pip install something",
    "np.ones(2), torch.ones(2), nn.Linear(1, 1), F.relu, check, hint, progress",
    "display(1)\nprint('\\ud800')\nprint('\\ud800', file=sys.stderr)",
    "import asyncio\nawait asyncio.sleep(0)\nasync with asyncio.Lock():\n    pass",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('x')\nplt.savefig('a.png')\n"
    "plt.show()",
    "import json, decimal, unittest, statistics",
    "import tempfile\nwith tempfile.TemporaryFile('w') as file:\n    file.write('x')",
    "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()",
    "import warnings\nwarnings.warn('careful')",
    "from lnres_utils import audit, norm_order, assert_causal, blocks, norms, Report",
    "import lnres_utils.norms as n\nfrom lnres_utils.norms import layer_norm",
    "assert check(1) is None and hint('layer_norm') is None and progress() is None",
    "import inspect\ndef g():\n    return 1\nassert 'return 1' in inspect.getsource(g)",
    "    indented = 1",
    "class A(nn.Module):\n    pass\nimport pickle\npickle.loads(pickle.dumps(A()))",
], ids=lambda source: source.split("\n")[0][:40])
def test_what_works_in_a_notebook_works(child, source):
    assert child.run("import sys") is None
    assert child.run(source) is None


@pytest.mark.parametrize("source, kind, message", [
    ("a = 1\ndef f(:", "SyntaxError", "invalid syntax (line 2)"),
    ("import sys\nsys.exit()", "SystemExit", ""),
    ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
    ("input('name? ')", "EOFError", "EOF when reading a line"),
    ("%no_such_magic", "UsageError", "Line magic function `%no_such_magic` not found."),
    ("class E(Exception):\n    __str__ = None\nraise E", "E", ""),
    ("raise ValueError('a\\nb')", "ValueError", "a"),
    ("raise ValueError('x' * 10**7)", "ValueError", "x" * 300 + " …"),
    ("raise ValueError('\\x1b[31m\\ud800')", "ValueError", "\\x1b[31m\\ud800"),
    ("raise type('x' * 10**7, (Exception,), {})", "x" * 300 + " …", ""),
    ("def f():\n    f()\nf()", "RecursionError", "maximum recursion depth exceeded"),
    ("from lnres_utils import blocks\nblocks.PreNormBlock(4)", "NotAvailable",
     "lnres_utils.blocks.PreNormBlock is not available while answers are graded"),
    ("from lnres_utils import audit\naudit(nn.Linear(1, 1))", "NotAvailable",
     "lnres_utils.audit is not available while answers are graded"),
    ("from lnres_utils.norms import LayerNorm\nclass Mine(LayerNorm):\n    pass", "NotAvailable",
     "lnres_utils.norms.LayerNorm is not available while answers are graded"),
    ("from lnres_utils import nothing", "ImportError",
     "cannot import name 'nothing' from 'lnres_utils' (unknown location)"),
    ("x = np.empty(10**12)", "MemoryError",
     "Unable to allocate 7.28 TiB for an array with shape (1000000000000,) and data type float64"),
])
def test_what_stops_a_cell_stops_nothing_more(child, source, kind, message):
    done = child.run(source)
    assert (done["kind"], done["message"]) == (kind, message)
    assert child.run("a = 1") is None


def test_the_shim_has_every_public_name():
    names = {*shim.TOOLS, *shim.ROOMS, "check", "hint", "progress"}
    assert names == set(lnres_utils.__all__)


def solution(chapter):
    """The code cells of a chapter's solutions."""
    cells = json.loads((ROOT / "solutions" / f"{chapter}.ipynb").read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def asked(exercise):
    """An exercise as a worker tells it."""
    return {
        "exercise": exercise.name,
        "drive": f"{exercise.drive.__module__.rpartition('.')[2]}:{exercise.drive.__name__}",
        "outputs": {name: output.compare for name, output in exercise.outputs.items()},
        "array": exercise.array, "kind": exercise.kind, "parameters": exercise.parameters}


def test_the_right_answers_of_a_chapter_come_out_right(child):
    for source in solution("feature-axis"):
        assert child.run(source) is None
    names = [name for name in specs.exercises if specs.get(name).chapter == "feature-axis"]
    assert len(names) > 5
    for name in names:
        exercise = specs.get(name)
        cases = exercise.cases(np.random.default_rng(7))
        results = child.ask(**asked(exercise), cases=[dict(case.inputs) for case in cases])
        for case, result in zip(cases, results, strict=True):
            right = exercise.reference(case.inputs)
            assert result["failure"] is None and result["changed"] == []
            assert same(exercise.outputs, result["outputs"],
                        {key: right[key] for key in case.only or right})


FAILURES = {
    "raises": ("raise ValueError('why')", "ValueError", "why", {"where": "line 2: raise "
                                                              "ValueError('why')"}),
    "open": ("raise NotImplementedError()", "NotImplementedError", "", {"not_attempted": True}),
    "None": ("pass", "WrongKind", "the returned value is None: is there a `return`?",
             {"wrong_kind": True}),
    "objects": ("return np.array([object()])", "WrongKind", "the returned value has dtype object; "
                "real numbers were expected", {"wrong_kind": True}),
    "too long": ("return np.zeros(2_000_000)", "TooLarge", "the returned value has 2,000,000 "
                 "numbers of dtype float64, more than any right answer has", {"wrong_kind": True}),
    "too long to copy": ("return np.broadcast_to(x[:1], (10**9, 10))", "MemoryError",
                         None, {}),
    "longdouble": ("return x.astype(np.longdouble)", "TooLarge", "the returned value has dtype "
                   "float128; float64 or float32 was expected", {"wrong_kind": True}),
    "exits": ("import sys; sys.exit('bye')", "SystemExit", "bye", {}),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt", "", {}),
    "no memory": ("return bytearray(1 << 40)", "MemoryError", "", {}),
    "a forbidden function": ("return np.std(x)", "Forbidden", "numpy.std", {}),
    "a forbidden one inside": ("return F.layer_norm(torch.ones(3), (3,))", "Forbidden",
                               "torch.nn.functional.layer_norm", {}),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_answer_is_told_by_its_failure(child, name):
    body, kind, message, more = FAILURES[name]
    assert child.run(f"def f(x):\n    {body}") is None
    forbid = ["numpy.std", "torch.nn.functional.layer_norm"]
    first, second = child.ask("f", [{"x": X}, {"x": X}], forbid=forbid)
    expected = {"kind": kind, "message": message, "where": first["failure"]["where"],
                "wrong_kind": False, "not_attempted": False, **more}
    assert first["failure"] == second["failure"]
    if message is None:
        expected["message"] = first["failure"]["message"]
    assert first["failure"] == expected and first["outputs"] is None


@pytest.mark.parametrize("source, reply", [
    ("", {"missing": True}),
    ("f = 3", {"problem": "f is an int; a function f(x) was expected."}),
    ("def f():\n    return 1", {"problem": "f() cannot be called as f(x), by position. The "
                               "exercise asks for f(x)."}),
    ("class M(type):\n    __name__ = property(lambda self: 1 / 0)\n"
     "class A(metaclass=M):\n    pass\nf = A()", {"problem": "f cannot be called as f(x)."}),
    ("def f(x):\n    return x\ndel f", {"missing": True}),
])
def test_what_is_no_answer_is_told(child, source, reply):
    assert child.run(source) is None
    assert child.ask("f", [{"x": X}]) == reply


@pytest.mark.parametrize("cell, more, found", [
    ("1 / 0\ndef f(x):\n    return x", {}, False),
    ("def f(x):\n    return x\n1 / 0", {}, True),
    ("pass", {}, True),
    ("1\n1\ndef f(x):\n    return x", {"statements": 2}, False),
    ("def f(x):\n    return x\nwhile True: pass", {"statements": 1}, True),
])
def test_an_answer_whose_cell_stopped_before_it_is_missing(child, cell, more, found):
    assert child.run("def f(x):\n    return 2 * x") is None
    child.run(cell, exercise="f", **more)
    replies = child.ask("f", [{"x": X}])
    assert replies == {"missing": True} if not found else replies[0]["failure"] is None
    child.run("def f(x):\n    return x", exercise="f")
    assert child.ask("f", [{"x": X}])[0]["failure"] is None


def test_changed_inputs_are_told_and_later_cases_keep_theirs(child):
    child.run("def f(x):\n    x *= 2\n    return x")
    for result in child.ask("f", [{"x": X}, {"x": X}]):
        assert result["changed"] == ["x"] and np.array_equal(result["outputs"]["y"], 2 * X)


def test_random_numbers_are_the_same_for_each_answer(child):
    child.run("import random\ndef f(x):\n    return np.array([random.random(), np.random.rand(), "
              "torch.rand(()).item()])")
    first, second = child.ask("f", [{"x": X}, {"x": X}])
    child.run("np.random.seed(3)")
    again, _ = child.ask("f", [{"x": X}, {"x": X}])
    other, _ = child.ask("f", [{"x": X}, {"x": X}], seed=2**40)
    y = [result["outputs"]["y"] for result in (first, second, again, other)]
    assert np.array_equal(y[0], y[2])
    assert not (y[0] == y[1]).any() and not (y[0] == y[3]).any()


def test_further_cases_go_on(child):
    child.run("n = 0\ndef f(x):\n    global n\n    n += 1\n    return x + n")
    child.ask("f", [{"x": X}], first=4)
    child.channel.send({"do": "more", "first": 5, "cases": [{"inputs": {"x": X}, "only": []}]})
    assert child.channel.receive(30) == {"case": 5}
    assert np.array_equal(child.channel.receive(30)["outputs"]["y"], X + 2)


def test_default_settings_are_put_back_after_an_answer(child):
    child.run("def f(x):\n    torch.set_default_dtype(torch.float64)\n    return x")
    child.ask("f", [{"x": X}])
    assert child.run("assert torch.ones(1).dtype == torch.float32") is None


def test_an_array_with_tricks_comes_as_its_numbers(child):
    child.run("class A(np.ndarray):\n    def __array__(self, *a, **k):\n        return np.ones(9)\n"
              "    nbytes = size = 'none'\n    def __eq__(self, other):\n        return True\n"
              "def f(x):\n    return x.view(A)")
    result, = child.ask("f", [{"x": X}])
    assert np.array_equal(result["outputs"]["y"], X)


BOX = {"id": 7, "class": "Box", "width": 2, "calls": 2, "noun": "block", "tokens": 1}
NORM = {"id": 8, "class": "NormBox", "calls": 2}


def test_a_box_asks_whoever_grades(child):
    child.run("def f(box):\n    x = np.ones((1, 3, 2))\n"
              "    return np.array([box(x).sum(), box.vjp(x, 2 * x).sum(), box.calls_left])")
    questions = []

    def answer(question):
        questions.append(question)
        return {"answer": [3 * question["arrays"][-1]]}

    result, = child.ask("f", [{"x": {"$box": BOX}}], answer)
    assert result["failure"] is None
    assert result["outputs"]["y"].tolist() == [18, 36, 0]
    assert [(each["ask"], len(each["arrays"]), each["numbers"]) for each in questions] == [
        (7, 1, []), (7, 2, [])]


def test_a_norm_box_may_change_its_input(child):
    child.run("def f(norm):\n    x = np.ones((3, 2))\n    y = norm(x, np.ones(2), np.zeros(2), 0.5)"
              "\n    return np.array([y.sum(), x.sum()])")

    def answer(question):
        x, gamma, beta = question["arrays"]
        assert question["ask"] == 8 and question["numbers"] == [0.5]
        return {"answer": [x + gamma + beta, 5 * x]}

    result, = child.ask("f", [{"x": {"$box": NORM}}], answer)
    assert result["outputs"]["y"].tolist() == [12, 30]


@pytest.mark.parametrize("raised, kind, message", [
    ({"kind": "ValueError", "message": "no"}, "ValueError", "no"),
    ({"kind": "CallsSpent", "message": "all"}, "CallsSpent", "all"),
    ({"kind": "Strange", "message": "x"}, "Strange", "x"),
    ({"kind": "UnicodeDecodeError", "message": "x"}, "UnicodeDecodeError", "x"),
    ({"kind": "KeyboardInterrupt", "message": "x"}, "KeyboardInterrupt", "x"),
])
def test_what_a_box_raises_reaches_the_answer(child, raised, kind, message):
    child.run("def f(box):\n    return box(np.ones((1, 3, 2)))")
    result, = child.ask("f", [{"x": {"$box": BOX}}], lambda question: {"raised": raised})
    assert (result["failure"]["kind"], result["failure"]["message"]) == (kind, message)


def test_a_box_that_is_asked_too_often_or_too_much_asks_nobody(child):
    def answer(question):
        return {"answer": [question["arrays"][0]]}

    child.run("def f(box):\n    for _ in range(9):\n        box(np.ones((1, 3, 2)))")
    result, = child.ask("f", [{"x": {"$box": BOX}}], answer)
    assert result["failure"]["message"] == "all 2 calls of the block are spent"
    child.run("def f(norm):\n    return norm(np.ones((2**20, 1)), np.ones(1), np.ones(1))")
    result, = child.ask("f", [{"x": {"$box": NORM}}], answer)
    assert result["failure"]["message"].startswith(
        "the norm raised ValueError: the arrays cannot be sent: a message of 8,388,")


FORBIDDEN = {
    "a function": ("F.layer_norm(torch.ones(3), (3,))", "torch.nn.functional.layer_norm"),
    "a name imported before": ("early(torch.ones(3), (3,))", "torch.nn.functional.layer_norm"),
    "torch's own function": ("torch.layer_norm(torch.ones(3), (3,))", "torch.layer_norm"),
    "a class": ("nn.LayerNorm(3)", "torch.nn.LayerNorm"),
    "a class below it": ("Mine(3)", "torch.nn.LayerNorm"),
    "an object made before": ("made(torch.ones(3))", "torch.nn.LayerNorm"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_forbidden_raises_only_while_its_exercise_is_asked(child, name):
    code, forbidden = FORBIDDEN[name]
    assert child.run("from torch.nn.functional import layer_norm as early\nmade = nn.LayerNorm(3)\n"
                     f"class Mine(nn.LayerNorm):\n    pass\n{code}") is None
    done = child.run(code, forbid=[forbidden])
    assert (done["kind"], done["message"]) == ("Forbidden", forbidden)
    assert child.run(code, forbid=["numpy.std"]) is None
    child.run(f"def f(x):\n    return {code}.detach().numpy()")
    result, = child.ask("f", [{"x": X}], forbid=[forbidden])
    assert (result["failure"]["kind"], result["failure"]["message"]) == ("Forbidden", forbidden)


def test_a_wrapped_function_looks_as_before(child):
    assert child.run("import inspect\nassert 'normalized_shape' in inspect.signature("
                     "F.layer_norm).parameters\nassert F.layer_norm.__name__ == 'layer_norm'\n"
                     "assert isinstance(nn.LayerNorm(2), nn.LayerNorm)") is None


def test_children_know_nothing_of_each_other(zygote):
    first, second = zygote.child(), zygote.child()
    first.run("import builtins\nbuiltins.secret = 5\nnp.secret = 6\nopen('a.txt', 'w').close()")
    assert second.run("secret")["kind"] == "NameError"
    assert second.run("np.secret")["kind"] == "AttributeError"
    assert second.run("import os\nassert os.listdir() == []") is None
    assert first.kill()["status"] == second.kill()["status"] == 9


def test_the_end_is_an_end(zygote):
    child = zygote.child()
    child.run("import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()")
    child.channel.send({"do": "end"})
    with pytest.raises(wire.Closed):
        child.channel.receive(30)
    ended = child.kill()
    assert ended["status"] == 0 and 0 < ended["cpu"] < 5 and ended["peak"] > 1 << 20


def test_a_worker_that_goes_takes_its_children_along(tmp_path):
    zygote = Zygote(tmp_path, seats=2)
    first, second = zygote.child(0), zygote.child(1)
    zygote.controls[0].close()
    with pytest.raises(wire.Closed):
        first.channel.receive(30)
    assert second.run("a = 1") is None
    zygote.close()
    assert zygote.process.returncode == 0


def test_a_request_that_makes_no_sense_is_answered(zygote):
    control = zygote.controls[0]
    for request in ({"kill": 1}, {"kill": zygote.process.pid}, {"kill": "all"}, {"what": 1}):
        control.send(request)
        assert "error" in control.receive(30)


def test_one_process_can_be_the_one_child(tmp_path):
    process, child, first = once(tmp_path)
    assert set(first) == {"ready", "boot"}
    assert child.run("def f(x):\n    return 2 * x") is None
    assert child.ask("f", [{"x": X}])[0]["outputs"]["y"].tolist() == [2, 4, 6]
    child.channel.send({"do": "end"})
    assert process.wait(30) == 0
