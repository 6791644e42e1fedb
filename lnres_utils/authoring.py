"""From ``solutions/``, the one source of every exercise, to ``exercises/``; and stored outputs.

    python -m lnres_utils.authoring exercises    write exercises/ from solutions/
    python -m lnres_utils.authoring refresh      execute every notebook again and store its outputs
    python -m lnres_utils.authoring check        fail if exercises/ is not what solutions/ gives

A cell of a solutions notebook takes part in an exercise by its metadata: ``lnres: {exercise:
NAME}`` is the answer, ``lnres: {exercise: NAME, role: check}`` the cell that checks it. The rest
of the metadata, that of nbgrader included, is filled in from the specification of the exercise.
"""

import argparse
import copy
import difflib
import json
import logging
import os
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

# The stubs of nbgrader's ClearSolutions, to the byte: students see one form, whichever tool ran.
CODE_STUB = ["# YOUR CODE HERE", "raise NotImplementedError()"]
TEXT_STUB = ["YOUR ANSWER HERE"]
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
TIMEOUT = 120  # seconds a cell may take

_KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_REGENERATE = "run `python -m lnres_utils.authoring exercises`"


class AuthoringError(Exception):
    """What an author has to put right: one line that names the file, the cell and what to do."""


def spec_of(name):
    """The specification of the exercise ``name``: its ``max_points`` and ``version``."""
    from lnres_utils import specs

    return specs.get(name)


def read(path, root):
    """Read a notebook; whatever is wrong with the file is an AuthoringError of one line."""
    name = _name(path, root)
    try:
        text = path.read_text(encoding="utf-8")
        version = (json.loads(text)["nbformat"], json.loads(text)["nbformat_minor"])
    except (OSError, UnicodeDecodeError) as error:
        raise AuthoringError(f"{name}: cannot be read ({error}); restore it") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise AuthoringError(f"{name}: not valid JSON ({error.msg}, {place}); mend it") from None
    except (KeyError, TypeError):
        raise AuthoringError(f"{name}: not a notebook (no nbformat); restore it") from None
    if version < (4, 5):
        raise AuthoringError(f"{name}: nbformat {version} has no cell ids; save it as 4.5 or later")
    try:
        nb, seen = nbformat.v4.reads(text), set()
        for where, cell in _cells(nb, name):
            if cell.get("id") in seen:
                raise AuthoringError(f"{where}: id used twice; change one")
            seen.add(cell.get("id"))
        nbformat.validate(nb)
    except (nbformat.ValidationError, AttributeError, KeyError, TypeError) as error:
        raise AuthoringError(f"{name}: not a valid notebook ({_line(error)}); mend it") from None
    return nb


def write(nb, path):
    """Replace the file ``path`` in one step, so that no reader ever sees half a notebook."""
    text = nbformat.writes(nb)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _name(path, root):
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _cells(nb, name):
    """Each cell with where it stands, as the first words of an error."""
    return [(f"{name}, cell {n} (id {c.get('id')})", c) for n, c in enumerate(nb.cells, start=1)]


def _line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def complete(nb, name, spec_of=spec_of):
    """Fill in the metadata of the exercise cells of the solutions notebook ``nb``, in place."""
    cells = {}
    for where, cell in _cells(nb, name):
        lnres = cell.metadata.get("lnres")
        if lnres is not None:
            grade_id = _complete_cell(cell, where, lnres, spec_of)
        else:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in cells:
            raise AuthoringError(f"{where}: grade_id {grade_id!r} used twice; rename or drop one")
        if grade_id:
            cells[grade_id] = where, cell
    for grade_id, (where, cell) in cells.items():
        exercise = grade_id.removesuffix("-check")
        for needed in [exercise, f"{exercise}-check"] if cell.cell_type == "code" else []:
            if needed not in cells:
                raise AuthoringError(f"{where}: {grade_id!r} needs a cell {needed!r}; add it")
    return nb


def _complete_cell(cell, where, lnres, spec_of):
    if not isinstance(lnres, dict):
        raise AuthoringError(f"{where}: lnres metadata {lnres!r}; use {{'exercise': NAME}}")
    exercise, role = lnres.get("exercise"), lnres.get("role")
    if role not in (None, "check"):
        raise AuthoringError(f"{where}: lnres role {role!r}; use 'check', or none for an answer")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", str(exercise)):
        raise AuthoringError(f"{where}: lnres exercise {exercise!r}; use letters, digits, _ and -")
    try:
        spec = spec_of(exercise)
    except KeyError:
        raise AuthoringError(
            f"{where}: no exercise {exercise!r} in lnres_utils.specs; add it or mend the metadata"
        ) from None
    lnres["version"] = getattr(spec, "version", 1)
    check, text = role == "check", cell.cell_type != "code"
    if check and text:
        raise AuthoringError(f"{where}: a check must be a code cell; change its type")
    cell.metadata["nbgrader"] = {
        "cell_type": cell.cell_type,
        "grade": check or text,  # nbgrader wants a written answer graded, by a person
        "grade_id": f"{exercise}-check" if check else exercise,
        "locked": check,
        "schema_version": 3,
        "solution": not check,
        "task": False,
        **({"points": spec.max_points} if check else {"points": 0} if text else {}),
    }
    tags = cell.metadata.get("tags", [])
    if check and "raises-exception" not in tags:
        cell.metadata["tags"] = [*tags, "raises-exception"]
    return cell.metadata["nbgrader"]["grade_id"]


def unsolved(nb, name):
    """Return a copy of the solutions notebook ``nb`` with stubs for answers and no outputs."""
    nb = clear_outputs(copy.deepcopy(nb))
    for where, cell in _cells(nb, name):
        source = _replace_regions(cell, where)
        answer = cell.metadata.get("lnres", {"role": "none"}).get("role") is None
        if source != cell.source and not answer:
            advice = "give the cell the metadata lnres: {exercise: NAME}, without a role"
            raise AuthoringError(f"{where}: a solution outside an answer cell; {advice}")
        if source == cell.source and answer:
            raise AuthoringError(f"{where}: an answer without a solution; put it after {BEGIN!r}")
        cell.source = source
    return nb


def _replace_regions(cell, where):
    stub = CODE_STUB if cell.cell_type == "code" else TEXT_STUB
    kept, inside = [], False
    for line in cell.source.split("\n"):
        marker = line.strip()
        if marker not in (BEGIN, END):
            if "BEGIN SOLUTION" in line or "END SOLUTION" in line:  # nbgrader takes it for one
                raise AuthoringError(f"{where}: {marker!r}; a marker is {BEGIN!r} or {END!r} alone")
            kept += [] if inside else [line]
        elif (marker == BEGIN) == inside:
            problem = f"{BEGIN!r} inside a solution" if inside else f"{END!r} without a beginning"
            raise AuthoringError(f"{where}: {problem}; markers come in pairs")
        else:
            inside = not inside
            indent = line[: len(line) - len(line.lstrip())]
            kept += [indent + part for part in stub] if inside else []
    if inside:
        raise AuthoringError(f"{where}: {BEGIN!r} without an end; add {END!r}")
    return "\n".join(kept)


def clear_outputs(nb):
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nb


def execute(nb, path, root):
    """Execute ``nb`` in place as the notebook ``path``, and keep of its outputs what is stable."""
    name, current, problem = _name(path, root), [0], None
    quiet = logging.getLogger("lnres_utils.authoring.nbclient")
    quiet.disabled = True  # what it would say is in the error of one line
    client = NotebookClient(
        clear_outputs(nb),
        kernel_name="python3",
        timeout=TIMEOUT,
        on_cell_start=lambda cell, cell_index: current.__setitem__(0, cell_index),
        log=quiet,
    )
    search = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONPATH": search}
    path.parent.mkdir(exist_ok=True)
    try:  # what the kernel's process says on stderr (not a cell) is no news to an author
        client.execute(env=env, cwd=str(path.parent), stderr=subprocess.DEVNULL)
    except CellExecutionError as error:
        problem = f"{_line(f'{error.ename}: {error.evalue}')}; mend it or tag it raises-exception"
    except CellTimeoutError:
        problem = f"takes over {TIMEOUT} seconds; make it smaller"
    except DeadKernelError:
        problem = "the kernel died; look for exits and for too much memory"
    except (RuntimeError, NoSuchKernel) as error:
        problem = f"no kernel answers ({_line(error)})"
    if problem:
        where = _cells(nb, name)[current[0]][0] if nb.cells else name
        raise AuthoringError(f"{where}: {problem}")
    for where, cell in _cells(nb, name):
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise AuthoringError(f"{where}: stderr {_line(output.text)!r}; remove its cause")
    return normalize(nb)


def normalize(nb):
    """Drop what differs between two runs or two machines: times, versions, tracebacks."""
    nb.metadata.pop("widgets", None)
    nb.metadata["kernelspec"] = dict(_KERNELSPEC)
    nb.metadata["language_info"] = {"name": "python"}
    for cell in nb.cells:
        cell.metadata.pop("execution", None)
        merged = []
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [": ".join(filter(None, [output.ename, output.evalue]))]
            # Where a stream was cut in pieces depends on timing.
            if merged and output.output_type == "stream" and merged[-1].get("name") == output.name:
                merged[-1].text += output.text
            else:
                merged.append(output)
        if cell.cell_type == "code":
            cell.outputs = merged
    return nb


def _source(path, root, spec_of):
    """The solutions notebook on disk, the same completed, and the exercises that follow."""
    name = _name(path, root)
    if path.parent != root / "solutions":
        raise AuthoringError(f"{name}: give a notebook of solutions/")
    stored = read(path, root)
    completed = complete(copy.deepcopy(stored), name, spec_of)
    return stored, completed, unsolved(completed, name)


def write_exercise(path, root, spec_of=spec_of):
    """Complete the solutions notebook ``path`` and write the exercises that follow from it."""
    _, completed, exercise = _source(path, root, spec_of)
    target = root / "exercises" / path.name
    execute(exercise, target, root)
    write(completed, path)
    write(exercise, target)


def refresh(path, root, spec_of=spec_of):
    """Execute the notebook ``path`` in place; solutions must pass their own checks."""
    nb, name = read(path, root), _name(path, root)
    if path.parent == root / "exercises":
        raise AuthoringError(f"{name}: generated; refresh solutions/{path.name}")
    solutions = path.parent == root / "solutions"
    if solutions:
        complete(nb, name, spec_of)
    execute(nb, path, root)
    for where, cell in _cells(nb, name):
        failed = any(output.output_type == "error" for output in cell.get("outputs", []))
        if solutions and failed and cell.metadata.get("lnres", {}).get("role") == "check":
            raise AuthoringError(f"{where}: the solution fails its check; mend one of them")
    write(nb, path)
    if solutions:
        write_exercise(path, root, spec_of)


def check(path, root, spec_of=spec_of):
    """Raise an AuthoringError unless the exercises on disk are those that ``path`` gives."""
    stored, completed, expected = _source(path, root, spec_of)
    _compare(completed, stored, _name(path, root))
    target = root / "exercises" / path.name
    name = _name(target, root)
    if not target.exists():
        raise AuthoringError(f"{name}: missing; {_REGENERATE}")
    found = read(target, root)
    # Sources first: they tell more than the outputs that follow from them, and need no kernel.
    _compare(normalize(expected), clear_outputs(copy.deepcopy(found)), name)
    _compare(execute(expected, target, root), found, name)


def _compare(expected, found, name):
    pairs = list(zip_longest(_cells(expected, name), _cells(found, name), fillvalue=(name, {})))
    frames = [(f"{name}, notebook", {**nb, "cells": len(nb.cells)}) for nb in (expected, found)]
    for (where, wanted), (_, given) in [*pairs, frames]:
        lines = [_stable_lines(node) for node in (given, wanted)]
        diff = list(difflib.unified_diff(*lines, n=0))[2:]
        if diff:
            old, new = ([line for line in diff if line.startswith(sign)][:3] for sign in "-+")
            message = f"{where}: not up to date (- on disk, + generated); {_REGENERATE}"
            raise AuthoringError("\n    ".join([message, *(line[:100] for line in old + new)]))


def _stable_lines(node):
    """The text of a cell or of notebook metadata, without the pixels of pictures."""
    node = copy.deepcopy(node) or {}
    for output in node.get("outputs", []):
        if "image/png" in output.get("data", {}):
            output["data"]["image/png"] = "pixels"
    source = node.pop("source", "").split("\n")
    return source + json.dumps(node, indent=1, sort_keys=True).split("\n")


COMMANDS = {"exercises": write_exercise, "refresh": refresh, "check": check}


def main(argv=None, spec_of=spec_of):
    """Run the command line; return 0, or 1 with one line on stderr for each notebook at fault."""
    parser = argparse.ArgumentParser(
        prog="python -m lnres_utils.authoring",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS)
    default = "default: all in solutions/, and for refresh in chapters/ too"
    parser.add_argument("paths", nargs="*", type=Path, help=f"notebooks or folders ({default})")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the book (default: .)")
    args = parser.parse_args(argv)
    root, problems = args.root.resolve(), []
    folders = ["chapters", "solutions"] if args.command == "refresh" else ["solutions"]
    try:
        paths = _notebooks([p.resolve() for p in args.paths] or [root / f for f in folders])
    except AuthoringError as error:
        paths, problems = [], [str(error)]
    for path in _progress(paths, root):
        try:
            COMMANDS[args.command](path, root, spec_of)
        except AuthoringError as error:
            problems.append(str(error))
    if args.command == "check":
        sources = {path.name for path in (root / "solutions").glob("*.ipynb")}
        for path in sorted((root / "exercises").glob("*.ipynb")):
            if path.name not in sources:
                problems.append(f"{_name(path, root)}: without a source in solutions/; remove it")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return int(bool(problems))


def _notebooks(paths):
    found = []
    for path in paths:
        if not path.exists():
            raise AuthoringError(f"{path}: no such file or folder; run in the book or give --root")
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        found += [p for p in inside if ".ipynb_checkpoints" not in p.parts and p not in found]
    return found


def _progress(paths, root):
    live = sys.stderr.isatty()
    for number, path in enumerate(paths):
        if live:
            bar = ("#" * (20 * number // len(paths))).ljust(20, ".")
            status = f"[{bar}] {number + 1}/{len(paths)} {_name(path, root)}"
            print(f"\r\x1b[K{status}", end="", file=sys.stderr, flush=True)
        yield path
    print("\r\x1b[K" if live else "", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
