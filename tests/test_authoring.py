"""``solutions/`` is the one source: what is generated is exact, and what is stale is found out."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

pytest.importorskip("nbclient")
from lnres_utils import _notebooks, authoring  # noqa: E402

ROOT = Path(__file__).parents[1]
SPECS = {
    "twice": SimpleNamespace(max_points=4, version=3),
    "half_of": SimpleNamespace(max_points=2),
}
ANSWER = """def twice(x):
    \"\"\"Return 2 x.\"\"\"
    ### BEGIN SOLUTION
    y = x + x
    return y
    ### END SOLUTION

print("defined")"""
CHECK = """try:
    assert twice(3) == 6
except NotImplementedError:
    print("not attempted")
    raise"""


def cell(source, exercise=None, role=None, kind=new_code_cell, **metadata):
    lnres = {"exercise": exercise, "role": role}
    lnres = {key: value for key, value in lnres.items() if value is not None}
    return kind(source, metadata={"lnres": lnres, **metadata} if lnres else metadata)


def course_cells():
    return [
        cell("# Exercises", kind=new_markdown_cell),
        cell("import os\nprint(os.path.basename(os.getcwd()), os.environ['OMP_NUM_THREADS'])"),
        cell(ANSWER, "twice", tags=["keep"]),
        cell(CHECK, "twice", "check"),
    ]


class Book:
    """A small book in a temporary folder, and the command line on it."""

    def __init__(self, root, capsys):
        self.root, self.capsys = root, capsys
        for folder in ("solutions", "chapters"):
            (root / folder).mkdir()

    def write(self, cells, name="solutions/one.ipynb"):
        nb = new_notebook(cells=cells)
        for number, each in enumerate(nb.cells):
            each.id = f"c{number}"
        nbformat.write(nb, self.root / name)

    def read(self, name="exercises/one.ipynb"):
        return nbformat.read(self.root / name, as_version=4)

    def edit(self, change, name):
        nb = self.read(name)
        change(nb)
        nbformat.write(nb, self.root / name)

    def run(self, *args):
        command = ["--root", str(self.root), *map(str, args)]
        code = authoring.main(command, spec_of=SPECS.__getitem__)
        captured = self.capsys.readouterr()
        assert "Traceback" not in captured.err and captured.out == ""
        return code, captured.err

    def files(self):
        return {p: p.read_bytes() for p in self.root.rglob("*") if p.is_file()}


@pytest.fixture
def book(tmp_path, capsys):
    return Book(tmp_path, capsys)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The files of a book whose exercises are fresh; made once, for it takes a kernel."""
    root = tmp_path_factory.mktemp("generated")
    book = Book(root, None)
    book.write(course_cells())
    assert authoring.main(["--root", str(root), "exercises"], spec_of=SPECS.__getitem__) == 0
    return {path.relative_to(root): data for path, data in book.files().items()}


@pytest.fixture
def fresh(book, generated):
    for path, data in generated.items():
        (book.root / path).parent.mkdir(exist_ok=True)
        (book.root / path).write_bytes(data)
    return book


# Stubs: what nbgrader 0.9.6 makes of the same cells (its ClearSolutions was run on this table).
STUBS = [
    (
        "code",
        "### BEGIN SOLUTION\nx\n### END SOLUTION",
        "# YOUR CODE HERE\nraise NotImplementedError()",
    ),
    (
        "code",
        "def f():\n    ### BEGIN SOLUTION\n    a\n\n    b\n    ### END SOLUTION\n    return 1\n",
        "def f():\n    # YOUR CODE HERE\n    raise NotImplementedError()\n    return 1\n",
    ),
    (
        "code",
        "a\n\t### BEGIN SOLUTION  \n\tb\n### END SOLUTION\nc\n"
        "  ### BEGIN SOLUTION\n  ### END SOLUTION",
        "a\n\t# YOUR CODE HERE\n\traise NotImplementedError()\nc\n"
        "  # YOUR CODE HERE\n  raise NotImplementedError()",
    ),
    (
        "markdown",
        "Why?\n\n### BEGIN SOLUTION\nso\n### END SOLUTION\n",
        "Why?\n\nYOUR ANSWER HERE\n",
    ),
]


@pytest.mark.parametrize("kind, source, expected", STUBS)
def test_stubs_are_those_of_nbgrader(kind, source, expected):
    make = {"code": new_code_cell, "markdown": new_markdown_cell}[kind]
    nb = new_notebook(cells=[make(source, metadata={"lnres": {"exercise": "x"}})])
    assert authoring.unsolved(nb, "x").cells[0].source == expected


def test_exercises_differ_from_solutions_in_the_answers_only(fresh):
    solutions, exercises = fresh.read("solutions/one.ipynb"), fresh.read()
    assert [c.id for c in exercises.cells] == [c.id for c in solutions.cells]
    assert [c.metadata for c in exercises.cells] == [c.metadata for c in solutions.cells]
    for number, (ours, theirs) in enumerate(zip(solutions.cells, exercises.cells, strict=True)):
        assert (ours.source == theirs.source) == (number != 2)
    before, rest = ANSWER.split("    ### BEGIN SOLUTION\n")
    after = rest.split("    ### END SOLUTION\n")[1]
    stub = "    # YOUR CODE HERE\n    raise NotImplementedError()\n"
    assert exercises.cells[2].source == before + stub + after


def test_exercises_store_what_a_learner_first_sees(fresh):
    _, first, answer, check = fresh.read().cells
    assert first.outputs[0].text == "exercises 1\n"
    assert answer.outputs[0].text == "defined\n"
    assert check.outputs[0].text == "not attempted\n"
    assert check.outputs[1].ename == "NotImplementedError"
    assert check.outputs[1].traceback == ["NotImplementedError"]
    assert [c.execution_count for c in (first, answer, check)] == [1, 2, 3]


def test_metadata_is_completed_from_the_specification(fresh):
    nb = fresh.read("solutions/one.ipynb")
    answer, check = (c.metadata for c in nb.cells[2:])
    shared = {"schema_version": 3, "task": False, "cell_type": "code"}
    assert answer.lnres == {"exercise": "twice", "version": 3}
    assert answer.nbgrader == shared | {
        "grade_id": "twice", "solution": True, "grade": False, "locked": False
    }  # fmt: skip
    assert answer.tags == ["keep", "answer", "raises-exception"]
    assert check.lnres == {"exercise": "twice", "role": "check", "version": 3}
    assert check.nbgrader == shared | {
        "grade_id": "twice-check", "solution": False, "grade": True, "locked": True, "points": 4
    }  # fmt: skip
    assert check.tags == ["raises-exception"]


def test_completing_twice_changes_nothing_and_versions_default_to_one():
    nb = new_notebook(cells=[cell("f", "half_of"), cell("check", "half_of", "check")])
    authoring.complete(nb, "x", SPECS.__getitem__)
    once = copy.deepcopy(nb)
    authoring.complete(nb, "x", SPECS.__getitem__)
    assert nb == once
    assert nb.cells[0].metadata.lnres.version == 1


def test_a_written_answer_needs_no_check_cell():
    nb = new_notebook(cells=[cell("Why?", "twice", kind=new_markdown_cell)])
    authoring.complete(nb, "x", SPECS.__getitem__)
    assert nb.cells[0].metadata.nbgrader.grade and nb.cells[0].metadata.nbgrader.points == 0


def solved(*lines):
    return [cell("\n".join(lines), "twice"), cell(CHECK, "twice", "check")]


B, E = authoring.BEGIN, authoring.END
FAULTS = {
    "no end": (solved(B, "1"), "c0", "without an end"),
    "no beginning": (solved("1", E), "c0", "without a beginning"),
    "nested": (solved(B, B, E, E), "c0", "inside a solution"),
    "second end": (solved(B, E, E), "c0", "without a beginning"),
    "marker after code": (solved("x = 1  " + B, E), "c0", "alone"),
    "marker misspelt": (solved("# BEGIN SOLUTION", "# END SOLUTION"), "c0", "alone"),
    "answer without a solution": (solved("x = 1"), "c0", "an answer without a solution"),
    "no lnres metadata": ([cell(f"{B}\n{E}")], "c0", "outside an answer cell"),
    "solution in a check": (
        [*solved(B, E)[:1], cell(f"{B}\n{E}", "twice", "check")], "c1", "outside an answer cell"
    ),
    "answer twice": (solved(B, E) + solved(B, E), "c2", "'twice' used twice"),
    "grade_id by hand": (
        [*solved(B, E), cell("1", nbgrader={"grade_id": "twice"})], "c2", "'twice' used twice"
    ),
    "no check cell": (solved(B, E)[:1], "c0", "needs a cell 'twice-check'"),
    "no answer cell": (solved(B, E)[1:], "c0", "needs a cell 'twice'"),
    "unknown exercise": ([cell("1", "thrice")], "c0", "no exercise 'thrice'"),
    "no exercise": ([cell("1", role="check")], "c0", "exercise None"),
    "grade_id letters": ([cell("1", "tw ice")], "c0", "letters, digits, _ and -"),
    "metadata of another form": ([cell("1", lnres="twice")], "c0", "lnres metadata 'twice'"),
    "nbgrader metadata only": (
        [cell(f"{B}\n{E}", nbgrader={"grade_id": "a-check", "solution": True}),
         cell("1", nbgrader={"grade_id": "a"})], "c0", "outside an answer cell"
    ),
    "unknown role": ([cell("1", "twice", "chekc")], "c0", "role 'chekc'"),
    "check in prose": (
        [cell("1", "twice", "check", kind=new_markdown_cell)], "c0", "must be a code cell"
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", ["exercises", "check"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_malformed_notebook_gets_one_clear_line(book, fault, command):
    cells, cell_id, words = FAULTS[fault]
    book.write(copy.deepcopy(cells))
    before = book.files()
    code, message = book.run(command)
    assert code == 1
    assert re.fullmatch(rf"error: solutions/one.ipynb, cell \d+ \(id {cell_id}\): .*\n", message)
    assert words in message
    assert book.files() == before


def as_json(**changes):
    nb = new_notebook(cells=[new_code_cell("1", id="a"), new_code_cell("2", id="b")])
    return json.dumps({**nb, **changes})


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"cells": [', "not valid JSON (Expecting value, line 1, column 12)"),
        ("[1, 2]", "not a notebook"),
        ("{}", "not a notebook"),
        (as_json(nbformat_minor=4), "no cell ids"),
        (as_json(cells=[{"cell_type": "code"}]), "not a valid notebook"),
        (as_json(cells=[new_code_cell("1", id="a")] * 2), "cell 2 (id a): id used twice"),
        (b"\xff\xfe{", "cannot be read"),
    ],
)
def test_a_file_that_is_no_notebook_gets_one_clear_line(book, text, words):
    path = book.root / "solutions" / "one.ipynb"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for command in ("exercises", "check", "refresh"):
        code, message = book.run(command)
        assert (code, message.count("\n")) == (1, 1)
        assert message.startswith("error: solutions/one.ipynb") and words in message


def test_a_missing_file_or_folder_is_named(book):
    for path in ("solutions/none.ipynb", "nowhere"):
        code, message = book.run("exercises", book.root / path)
        assert code == 1 and path in message and message.count("\n") == 1


def test_fresh_exercises_pass(fresh):
    before = fresh.files()
    assert fresh.run("check") == (0, "")
    assert fresh.files() == before


def edit_source(nb):
    nb.cells[1].source += "\n# by hand"


def edit_output(nb):
    nb.cells[2].outputs[0].text = "by hand\n"


def edit_points(nb):
    nb.cells[3].metadata.nbgrader.points = 40


def edit_answer_text(nb):
    nb.cells[2].source = nb.cells[2].source.replace("Return 2 x.", "Return x + x.")


def drop_cell(nb):
    del nb.cells[1]


def edit_title(nb):
    nb.metadata["title"] = "by hand"


def fill_answer(nb):
    nb.cells[2].source = ANSWER


STALE = {
    "exercise source": (edit_source, "exercises", "cell 2 (id c1)", "-# by hand"),
    "exercise output": (edit_output, "exercises", "cell 3 (id c2)", "by hand"),
    "exercise metadata": (edit_points, "exercises", "cell 4 (id c3)", '"points": 40'),
    "exercise cell dropped": (drop_cell, "exercises", "cell 2 (id c1)", "+import os"),
    "exercise notebook metadata": (edit_title, "exercises", "notebook", "by hand"),
    "exercise solved": (fill_answer, "exercises", "cell 3 (id c2)", "### BEGIN SOLUTION"),
    "solution source": (edit_source, "solutions", "cell 2 (id c1)", "+# by hand"),
    "solution docstring": (edit_answer_text, "solutions", "cell 3 (id c2)", "Return x + x"),
    "solution metadata": (edit_points, "solutions", "cell 4 (id c3)", '"points": 40'),
}  # fmt: skip


@pytest.mark.parametrize("edit", STALE)
def test_a_stale_exercise_is_found_out(fresh, edit):
    change, folder, where, words = STALE[edit]
    fresh.edit(change, f"{folder}/one.ipynb")
    before = fresh.files()
    code, message = fresh.run("check")
    assert code == 1
    assert f"one.ipynb, {where}: not up to date" in message and words in message
    assert "lnres_utils.authoring exercises" in message
    assert len(message.splitlines()) <= 8
    assert fresh.files() == before


def test_an_answer_may_change_without_a_new_exercise(fresh):
    def change(nb):
        nb.cells[2].source = ANSWER.replace("x + x", "2 * x")

    fresh.edit(change, "solutions/one.ipynb")
    assert fresh.run("check") == (0, "")


def test_exercises_without_a_source_and_missing_ones_are_found_out(fresh):
    exercise = fresh.root / "exercises" / "one.ipynb"
    exercise.rename(exercise.with_name("old.ipynb"))
    code, message = fresh.run("check")
    assert code == 1
    assert "exercises/one.ipynb: missing" in message
    assert "exercises/old.ipynb: without a source" in message


EXECUTION_FAULTS = {
    "error": ("1 / 0", "ZeroDivisionError: division by zero"),
    "warning": ("import warnings; warnings.warn('careful')", "stderr"),
    "slow cell": ("import time; time.sleep(60)", "takes over 2 seconds"),
    "dead kernel": ("import os; os._exit(1)", "the kernel died"),
}


@pytest.mark.parametrize("fault", EXECUTION_FAULTS)
def test_a_cell_that_cannot_be_stored_is_named_and_nothing_is_written(book, monkeypatch, fault):
    source, words = EXECUTION_FAULTS[fault]
    cells = [cell("1"), cell(source)]
    if fault == "slow cell":
        monkeypatch.setattr(_notebooks, "TIMEOUT", 2)
        cells[0] = cell("Text.", kind=new_markdown_cell)  # on a busy machine 1 may be slow, too
    book.write(cells)
    before = book.files()
    for command in ("exercises", "refresh"):
        code, message = book.run(command)
        assert (code, message.count("\n")) == (1, 1), message
        folder = "exercises" if command == "exercises" else "solutions"
        assert message.startswith(f"error: {folder}/one.ipynb, cell 2 (id c1): ")
        assert words in message
        assert book.files() == before


def test_a_solution_that_fails_its_own_check_is_not_stored(book):
    cells = course_cells()
    cells[2].source = ANSWER.replace("x + x", "3 * x")
    book.write(cells)
    before = book.files()
    code, message = book.run("refresh")
    assert code == 1
    assert "solutions/one.ipynb, cell 4 (id c3): the solution fails its check" in message
    assert book.files() == before


def test_refresh_stores_stable_outputs_and_goes_on_after_a_failure(book):
    book.write([cell("1 / 0")], "chapters/bad.ipynb")
    lesson = [
        cell("import sys, threading\nprint('a', flush=True)\nprint('b')", tags=["live"]),
        cell("1 / 0", tags=["raises-exception"], execution={"iopub.status.busy": "2020-01-01"}),
        cell("from pathlib import Path\nPath.cwd().name"),
    ]
    book.write(lesson, "chapters/lesson.ipynb")
    book.edit(lambda nb: nb.metadata.update(widgets={"state": {}}), "chapters/lesson.ipynb")
    book.write(course_cells())
    code, message = book.run("refresh")
    assert code == 1 and message.count("\n") == 1 and "chapters/bad.ipynb" in message

    nb = book.read("chapters/lesson.ipynb")
    assert nb.metadata == {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    assert [c.id for c in nb.cells] == ["c0", "c1", "c2"]
    assert [output.text for output in nb.cells[0].outputs] == ["a\nb\n"]
    assert nb.cells[1].outputs[0].traceback == ["ZeroDivisionError: division by zero"]
    assert nb.cells[1].metadata == {"tags": ["raises-exception"]}
    assert nb.cells[2].outputs[0].data["text/plain"] == "'chapters'"

    assert book.read("solutions/one.ipynb").cells[2].outputs[0].text == "defined\n"
    assert book.run("check") == (0, "")
    before = book.files()
    assert book.run("refresh", book.root / "chapters" / "lesson.ipynb") == (0, "")
    assert book.files() == before


def test_generated_notebooks_cannot_be_refreshed_or_given_as_sources(fresh):
    path = fresh.root / "exercises" / "one.ipynb"
    assert "refresh solutions/one.ipynb" in fresh.run("refresh", path)[1]
    assert "give a notebook of solutions/" in fresh.run("exercises", path)[1]
    assert "give a notebook of solutions/" in fresh.run("check", path)[1]


def test_an_interrupted_write_leaves_the_old_notebook(fresh, monkeypatch):
    def full_disk(descriptor):
        os.ftruncate(descriptor, 10)
        raise OSError("no space left on device")

    before = fresh.files()
    nb = fresh.read()
    edit_source(nb)
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        _notebooks.write(nb, fresh.root / "exercises" / "one.ipynb")
    assert fresh.files() == before


def test_the_command_explains_itself():
    command = [sys.executable, "-m", "lnres_utils.authoring"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, env=env)
    assert shown.returncode == 0
    for word in ("exercises", "refresh", "check", "--root", "solutions/"):
        assert word in shown.stdout
    with pytest.raises(SystemExit, match="2"):
        authoring.main(["chekc"])
