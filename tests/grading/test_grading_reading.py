"""Whatever became of a notebook, it is read, and the answers that are left in it are found."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.reading import read
from lnres_utils.specs import CHAPTERS

ROOT = Path(__file__).parents[2]
SOLVED = {slug: json.loads((ROOT / f"solutions/{slug}.ipynb").read_text("utf-8"))
          for slug in CHAPTERS}  # fmt: skip
SLUG = "feature-axis"


@pytest.fixture
def notebook():
    """The solved notebook of chapter 1, to be changed."""
    return copy.deepcopy(SOLVED[SLUG])


def reading(notebook, name="x.ipynb", chapter=None):
    data = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    return read(data, name, chapter)


def answers(notebook, chapter=None):
    """What is graded: the source of each exercise's answer, in the order in which they run."""
    return {c.exercise: c.source for c in reading(notebook, chapter=chapter).cells if c.exercise}


def cell_of(notebook, grade_id):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id:
            return cell
    raise KeyError(grade_id)


def code(source, **metadata):
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": []}


def without_metadata(notebook):
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return notebook


def noted(notebook, *words):
    """Whether one of the notes for the teacher holds all of ``words``."""
    return any(all(word in note for word in words) for note in reading(notebook).notes)


@pytest.mark.parametrize("folder", ["solutions", "exercises"])
@pytest.mark.parametrize("slug", CHAPTERS)
def test_every_notebook_of_the_course_is_read_whole(folder, slug):
    found = read((ROOT / folder / f"{slug}.ipynb").read_bytes(), f"{slug}.ipynb")
    assert found.chapter == slug
    assert tuple(c.exercise for c in found.cells if c.exercise) == CHAPTERS[slug]
    assert found.notes == () and found.problem == ""
    assert not any(c.source.startswith(("check(", "progress(")) for c in found.cells)
    numbers = [c.number for c in found.cells]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("slug", CHAPTERS)
def test_without_any_metadata_answers_are_found_by_their_names(slug):
    stripped = without_metadata(copy.deepcopy(SOLVED[slug]))
    assert reading(stripped).chapter == slug
    assert answers(stripped) == answers(SOLVED[slug])
    assert noted(stripped, "by their names", CHAPTERS[slug][0])


def test_numbers_are_those_of_the_students_notebook(notebook):
    cells = {c.exercise: c for c in reading(notebook).cells}
    for exercise in CHAPTERS[SLUG]:
        stored = notebook["cells"][cells[exercise].number - 1]
        assert "".join(stored["source"]) == cells[exercise].source


# Forms of the file


def as_format_3(notebook):
    cells = []
    for cell in notebook["cells"]:
        old = {key: value for key, value in cell.items() if key not in ("source", "id")}
        old["input" if cell["cell_type"] == "code" else "source"] = cell["source"]
        cells.append(old)
    cells.insert(0, {"cell_type": "heading", "level": 1, "source": ["A heading"]})
    half = len(cells) // 2
    sheets = [{"cells": cells[:half]}, {"cells": cells[half:]}]
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": sheets}


def in_one_string(notebook):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def in_windows_lines(notebook):
    for cell in notebook["cells"]:
        cell["source"] = [line.replace("\n", "\r\n") for line in cell["source"]]
    return notebook


def from_colab(notebook):
    notebook["metadata"] = {"colab": {"provenance": []}, "accelerator": "GPU"}
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] |= {"id": f"a{number}", "colab": {"base_uri": "https://example.org"}}
        cell["id"] = f"a{number}"
    return notebook


def without_ids(notebook):
    for cell in notebook["cells"]:
        cell.pop("id")
    return notebook


FORMS = {
    "format 3": as_format_3,
    "sources as strings": in_one_string,
    "CRLF in sources": in_windows_lines,
    "Colab": from_colab,
    "no ids": without_ids,
    "no metadata of the notebook": lambda nb: {"cells": nb["cells"]},
    "wrong formats": lambda nb: {**nb, "nbformat": "four", "nbformat_minor": None},
    "no outputs": lambda nb: {**nb, "cells": [{**c, "outputs": None} for c in nb["cells"]]},
    "UTF-8 with BOM": lambda nb: b"\xef\xbb\xbf" + json.dumps(nb, ensure_ascii=False).encode(),
    "UTF-16": lambda nb: json.dumps(nb, ensure_ascii=False).encode("utf-16"),
    "UTF-16, big end first": lambda nb: b"\xfe\xff" + json.dumps(nb).encode("utf-16-be"),
    "CRLF in the file": lambda nb: json.dumps(nb, indent=1).replace("\n", "\r\n").encode(),
    "zero bytes at the end": lambda nb: json.dumps(nb).encode() + b"\0" * 512,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_notebook_reads_the_same(form, notebook):
    expected = answers(notebook)
    changed = form(copy.deepcopy(notebook))
    assert answers(changed) == expected
    assert reading(changed).problem == "" and reading(changed).notes == ()


def test_bytes_that_are_no_utf_8_are_replaced_and_told(notebook):
    cell_of(notebook, "layer_norm")["source"] = "def layer_norm(x):\n    return x  # für\n"
    broken = json.dumps(notebook, ensure_ascii=False).encode().replace(b"f\xc3\xbcr", b"f\xfcr")
    assert answers(broken)["layer_norm"] == "def layer_norm(x):\n    return x  # f\ufffdr\n"
    assert noted(broken, "UTF-8")


def test_a_tab_as_it_is_in_a_string_is_read(notebook):
    cell_of(notebook, "layer_norm")["source"] = "layer_norm = '\t'"
    loose = json.dumps(notebook).replace("\\t'", "\t'").encode()
    assert b"\t" in loose and answers(loose)["layer_norm"] == "layer_norm = '\t'"


def test_half_a_character_does_not_reach_those_who_write_files(notebook):
    cell_of(notebook, "layer_norm")["source"] = "layer_norm = '\ud800'"
    answers(notebook)["layer_norm"].encode("utf-8")


WHOLE = json.dumps(SOLVED[SLUG], indent=1)
PROBLEMS = {
    "empty": (b"", "an empty file"),
    "blank": (b"\n \n", "an empty file"),
    "zeros": (b"\0" * 4096, "zero bytes"),
    "truncated": (WHOLE[: len(WHOLE) // 2].encode(), "truncated: its JSON ends too early (line "),
    "a comma missing": (b'{"cells": [] "nbformat": 4}', "line 1, column 14"),
    "HTML": (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", "HTML page"),
    "conflict": (WHOLE.replace('   "source"', '<<<<<<< HEAD\n   "source"', 1).encode(),
                 "git merge conflict in it (line "),
    "zip": (b"PK\x03\x04 and so on", "a zip archive"),
    "PDF": (b"%PDF-1.7", "a PDF"),
    "LFS": (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    "a list": (b"[1, 2]", "a list, not a notebook"),
    "a number": (b"4", "a single value"),
    "Python": (b"{'cells': []}", "single quotes"),
    "no cells": (b'{"nbformat": 4}', "no cells"),
    "cells a dict": (b'{"cells": {"source": "1"}}', "not a list"),
    "cells of a worksheet a number": (b'{"worksheets": [{"cells": 3}]}', "not a list"),
    "no exercise": (b'{"cells": []}', "no exercise of the course"),
    "deep": (b"[" * 200_000, "nested too deeply"),
    "a long number": (b"1" * 5000, "thousands of digits"),
    "too large": (b'{"cells": []}' + b" " * (64 << 20), "64 MiB"),
    "too many values": (b"[" + b"0," * 4_000_001 + b"0]", "over 4,000,000 values"),
    "too much code": (json.dumps({"cells": [code("layer_norm = 1\n" * 150_000)]}).encode(),
                      "over 2,000,000 characters of code"),
}  # fmt: skip


@pytest.mark.parametrize("data, problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_file_that_cannot_be_graded_says_why_in_one_line(data, problem):
    found = read(data, "x.ipynb")
    assert problem in found.problem and found.cells == ()
    assert found.told == found.problem  # nothing in it that its owner may not read
    assert "\n" not in found.problem and len(found.problem) < 120
    assert read(data, "x.ipynb", SLUG).chapter == SLUG


def test_another_file_is_not_called_bad_json():
    assert "'hw.py'" in read(b"import numpy\n", "hw.py").problem


def test_an_unknown_chapter_is_the_teachers_mistake(notebook):
    with pytest.raises(GradingError, match="'chapter-1'.*feature-axis"):
        reading(notebook, chapter="chapter-1")


# Which cells answer


def test_the_metadata_of_nbgrader_or_ours_is_enough(notebook):
    expected = answers(notebook)
    for key in ("lnres", "nbgrader"):
        half = copy.deepcopy(notebook)
        for cell in half["cells"]:
            cell["metadata"].pop(key, None)
        assert answers(half) == expected and reading(half).notes == ()


def found_unmarked(source, notebook):
    """The answers found where an unmarked cell stands in place of that of layer_norm."""
    notebook["cells"] = [c for c in notebook["cells"] if c is not cell_of(notebook, "layer_norm")]
    notebook["cells"].append(code(source))
    return answers(notebook)


@pytest.mark.parametrize(
    "source",
    [
        "def layer_norm(x): return 1",
        "async def layer_norm(x): return 1",
        "class layer_norm: pass",
        "layer_norm = lambda x: 1",
        "other, (layer_norm, third) = 1, (2, 3)",
        "layer_norm: object = print",
        "%timeit 1\n!ls\nx = 1\ndef layer_norm(x): return 1",
        "%%time\ndef layer_norm(x): return 1",
        "def layer_norm(x):\n    return (x +",
        "this is no Python\nlayer_norm = 3",
    ],
)
def test_an_unmarked_answer_is_found_by_the_name_it_binds(source, notebook):
    assert found_unmarked(source, notebook).get("layer_norm") == source


@pytest.mark.parametrize(
    "source",
    [
        "print('''\nlayer_norm = 1\n''')",
        "# def layer_norm(x):",
        "layer_norm == 1",
        "def f():\n    layer_norm = 1",
        "%%writefile x.py\ndef layer_norm(x): return 1",
        "%timeit 1\nprint('''\nlayer_norm = 1\n''')",
        "my_layer_norm = 1",
    ],
)
def test_a_name_that_is_only_mentioned_is_no_answer(source, notebook):
    assert "layer_norm" not in found_unmarked(source, notebook)


def test_a_deleted_answer_is_not_there_and_nothing_is_said(notebook):
    notebook["cells"].remove(cell_of(notebook, "axis_norm"))
    assert list(answers(notebook)) == [name for name in CHAPTERS[SLUG] if name != "axis_norm"]
    assert reading(notebook).problem == "" and reading(notebook).notes == ()


STUB = "def layer_norm(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"


def test_of_copies_the_last_that_is_no_stub_is_graded_and_all_run(notebook):
    marked = cell_of(notebook, "layer_norm")
    place = notebook["cells"].index(marked)
    sources = ["layer_norm = 1", "layer_norm = 2", STUB]
    copies = [{**marked, "source": source} for source in sources]
    notebook["cells"][place : place + 1] = copies
    assert answers(notebook)["layer_norm"] == "layer_norm = 2"
    assert set(sources) <= {c.source for c in reading(notebook).cells}
    numbers = f"cells {place + 1}, {place + 2}, {place + 3}; cell {place + 2} is graded"
    assert noted(notebook, "layer_norm", numbers)


def test_of_very_many_copies_the_first_are_listed(notebook):
    notebook["cells"] += [cell_of(notebook, "layer_norm")] * 30
    assert noted(notebook, "layer_norm", "and 21 more; cell")


def test_an_answer_above_the_rest_of_a_stub_is_no_stub(notebook):
    marked = cell_of(notebook, "layer_norm")
    written = STUB.replace("    # YOUR", "    return 3 * x\n    # YOUR")
    place = notebook["cells"].index(marked)
    notebook["cells"][place : place + 1] = [{**marked, "source": s} for s in (written, STUB)]
    assert answers(notebook)["layer_norm"] == written


def test_an_answer_below_its_untouched_stub_is_found(notebook):
    cell_of(notebook, "layer_norm")["source"] = STUB
    notebook["cells"].append(code("def layer_norm(x): return 7"))
    assert answers(notebook)["layer_norm"] == "def layer_norm(x): return 7"
    assert noted(notebook, "by their names", "layer_norm")


def test_text_below_a_stub_is_no_answer(notebook):
    cell_of(notebook, "layer_norm")["source"] = STUB
    notebook["cells"].append({**code("layer_norm = 7"), "cell_type": "raw"})
    assert answers(notebook)["layer_norm"] == STUB


def test_of_copies_in_code_and_in_text_the_code_is_graded(notebook):
    marked = cell_of(notebook, "layer_norm")
    text = {**marked, "cell_type": "markdown", "source": "layer_norm = 7"}
    notebook["cells"].append(text)
    assert answers(notebook) == answers(SOLVED[SLUG])


def test_what_was_given_above_a_stub_is_no_answer():
    unsolved = json.loads((ROOT / "exercises/bug-hunt.ipynb").read_text("utf-8"))
    assert answers(unsolved)["TinyTransformer"].startswith("# YOUR CODE HERE")


def test_the_marked_answer_is_graded_and_a_later_definition_told(notebook):
    notebook["cells"].append(code("def layer_norm(x): return 7"))
    assert answers(notebook) == answers(SOLVED[SLUG])
    number = len(notebook["cells"])
    assert noted(notebook, "layer_norm", f"defined again in cell {number}")


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize("strip", [lambda nb: nb, without_metadata])
def test_an_answer_turned_into_text_is_code_again(kind, strip, notebook):
    expected = answers(notebook)
    cell = cell_of(notebook, "layer_norm")
    cell["cell_type"] = kind
    number = notebook["cells"].index(cell) + 1
    assert answers(strip(notebook)) == expected
    assert noted(notebook, f"cell {number}", "layer_norm", f"was a {kind} cell")


def test_merged_cells_answer_each_of_their_exercises(notebook):
    first, second = cell_of(notebook, "standardize"), cell_of(notebook, "layer_norm")
    first["source"] = "".join([*first["source"], "\n\n", *second["source"]])
    notebook["cells"].remove(second)
    cells = [c for c in reading(notebook).cells if c.exercise in ("standardize", "layer_norm")]
    assert [c.exercise for c in cells] == ["standardize", "layer_norm"]
    assert cells[0].source == first["source"] and cells[1].source == ""
    assert cells[0].number == cells[1].number


def test_checks_are_left_out_and_all_else_runs(notebook):
    ours = [c.source for c in reading(notebook).cells]
    theirs = ["import math", "x = 3\ncheck(x)", "print('hello')", "%matplotlib inline"]
    asking = ["check(layer_norm)\nhint('layer_norm')", "# look\nprogress()", "lnres_utils.check(x)"]
    notebook["cells"] += [code(source) for source in theirs + asking]
    for key, exercise in [("lnres", "layer_norm-check"), ("nbgrader", "axis_norm-check")]:
        check = cell_of(notebook, exercise)
        check["source"] = "assert False"
        del check["metadata"][key]
    assert [c.source for c in reading(notebook).cells] == ours + theirs


def test_an_answer_written_into_its_check_is_graded(notebook):
    notebook["cells"].remove(cell_of(notebook, "layer_norm"))
    cell_of(notebook, "layer_norm-check")["source"] = "def layer_norm(x): return 7"
    assert answers(notebook)["layer_norm"] == "def layer_norm(x): return 7"


# Order and chapter


def test_a_reversed_notebook_runs_in_the_order_of_the_chapter(notebook):
    expected = answers(notebook)
    notebook["cells"].insert(1, code("import math"))
    notebook["cells"].reverse()
    found = reading(notebook)
    assert [c.exercise for c in found.cells if c.exercise] == list(CHAPTERS[SLUG])
    assert answers(notebook) == expected
    assert found.cells[0].source.startswith("import")
    assert "import math" in [c.source for c in found.cells[:3]]
    assert noted(notebook, "not in the order of the chapter")


def test_a_moved_answer_takes_the_cells_above_it_and_leaves_the_first_cells_first(notebook):
    cells = notebook["cells"]
    start = code("SHARED = 1")
    cells.insert(2, start)
    moved, helper = cell_of(notebook, "LayerNorm"), code("HELPER = 2")
    cells.remove(moved)
    place = cells.index(cell_of(notebook, "axis_norm"))
    cells[place:place] = [helper, moved]
    sources = [c.source for c in reading(notebook).cells]
    assert sources.index("SHARED = 1") < sources.index("".join(cells[4]["source"]))
    assert len(sources) == len(set(sources))
    answer = sources.index("".join(moved["source"]))
    backward = "".join(cell_of(notebook, "layer_norm_backward")["source"])
    assert sources.index(backward) < sources.index("HELPER = 2") < answer
    assert list(answers(notebook)) == list(CHAPTERS[SLUG])


def test_the_chapter_of_most_exercises_is_graded_and_the_others_told(notebook):
    other = copy.deepcopy(cell_of(SOLVED["rmsnorm"], "rms_norm"))
    notebook["cells"].insert(0, other)
    found = reading(notebook)
    assert found.chapter == SLUG and answers(notebook) == answers(SOLVED[SLUG])
    assert found.cells[0].exercise == "" and "".join(other["source"]) == found.cells[0].source
    assert noted(notebook, "other chapters", "rms_norm (rmsnorm)")


def test_of_as_many_exercises_the_first_chapter_of_the_course_counts():
    cells = [cell_of(SOLVED["rmsnorm"], "rms_norm"), cell_of(SOLVED[SLUG], "layer_norm")]
    assert reading({"cells": cells}).chapter == SLUG


def test_the_teachers_chapter_counts(notebook):
    notebook["cells"].append(copy.deepcopy(cell_of(SOLVED["rmsnorm"], "rms_norm")))
    assert list(answers(notebook, "rmsnorm")) == ["rms_norm"]
    assert answers({"cells": []}, "rmsnorm") == {} and not reading({"cells": []}, "x", SLUG).problem


def test_a_helper_with_the_name_of_another_chapters_exercise_does_not_decide():
    stripped = without_metadata(copy.deepcopy(SOLVED["bug-hunt"]))  # it defines LayerNorm, twice
    assert reading(stripped).chapter == "bug-hunt"
    assert not noted(stripped, "LayerNorm")
    marked = cell_of(SOLVED["bug-hunt"], "TinyTransformer")
    helpers = code("class RMSNorm: pass\nclass PreNormBlock: pass\nclass PreNormStack: pass")
    assert reading({"cells": [helpers, marked]}).chapter == "bug-hunt"


# Anything at all


def nodes(value, path=()):
    """Paths of all nodes of a JSON value."""
    yield path
    children = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else ())
    for key, child in children:
        yield from nodes(child, (*path, key))


SMALL = {**SOLVED[SLUG], "cells": SOLVED[SLUG]["cells"][:14]}
PATHS = [path for path in nodes(SMALL) if path]
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just([]), st.just({}),
    st.just([[1, None, {}]]), st.just({"exercise": [1], "grade_id": {}}),
)  # fmt: skip


def changed(notebook, path, how, junk):
    *above, key = path
    parent = notebook
    for step in above:
        parent = parent[step]
    if how == "replace":
        parent[key] = junk
    elif how == "delete":
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    else:
        parent[f"{key} again"] = copy.deepcopy(parent[key])


CHANGE = st.tuples(st.sampled_from(PATHS), st.sampled_from(["delete", "replace", "copy"]), JUNK)


@settings(max_examples=200, deadline=None)
@given(st.lists(CHANGE, min_size=1, max_size=4))
def test_no_change_of_a_notebook_raises_or_hides_the_answers_left_intact(changes):
    notebook = copy.deepcopy(SMALL)
    for change in changes:
        try:
            changed(notebook, *change)
        except (KeyError, IndexError, TypeError, AttributeError):
            pass  # the node went with a change before
    found = reading(notebook)
    assert "\n" not in found.problem
    if not isinstance(notebook.get("cells"), list):
        return
    graded = {c.exercise: c.source for c in found.cells if c.exercise}
    for exercise in ("standardize", "layer_norm", "axis_norm"):
        answer = cell_of(SMALL, exercise)
        marks = [c for c in notebook["cells"] if isinstance(c, dict) and exercise in str(c)]
        if answer in notebook["cells"] and all(
            c == answer or c in SMALL["cells"] for c in marks
        ):
            assert graded[exercise] == "".join(answer["source"])
