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
import re
import sys
from itertools import zip_longest
from pathlib import Path

from lnres_utils._notebooks import (
    AuthoringError,
    clear_outputs,
    execute,
    normalize,
    places,
    read,
    shown,
    write,
)

# The stubs of nbgrader's ClearSolutions, to the byte: students see one form, whichever tool ran.
CODE_STUB = ["# YOUR CODE HERE", "raise NotImplementedError()"]
TEXT_STUB = ["YOUR ANSWER HERE"]
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
_REGENERATE = "run `python -m lnres_utils.authoring exercises`"


def spec_of(name):
    """The specification of the exercise ``name``: its ``max_points`` and ``version``."""
    from lnres_utils import specs

    return specs.get(name)


def complete(nb, name, spec_of=spec_of):
    """Fill in the metadata of the exercise cells of the solutions notebook ``nb``, in place."""
    cells = {}
    for where, cell in places(nb, name):
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
    if not text:  # "Run All" goes on after a failed check, and after a slip in an answer
        tags = cell.metadata.get("tags", [])
        wanted = ["raises-exception"] if check else ["answer", "raises-exception"]
        cell.metadata["tags"] = tags + [tag for tag in wanted if tag not in tags]
    return cell.metadata["nbgrader"]["grade_id"]


def unsolved(nb, name):
    """Return a copy of the solutions notebook ``nb`` with stubs for answers and no outputs."""
    nb = clear_outputs(copy.deepcopy(nb))
    for where, cell in places(nb, name):
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


def _source(path, root, spec_of):
    """The solutions notebook on disk, the same completed, and the exercises that follow."""
    name = shown(path, root)
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
    nb, name = read(path, root), shown(path, root)
    if path.parent == root / "exercises":
        raise AuthoringError(f"{name}: generated; refresh solutions/{path.name}")
    solutions = path.parent == root / "solutions"
    if solutions:
        complete(nb, name, spec_of)
    execute(nb, path, root)
    for where, cell in places(nb, name):
        failed = any(output.output_type == "error" for output in cell.get("outputs", []))
        if solutions and failed and cell.metadata.get("lnres", {}).get("role") == "check":
            raise AuthoringError(f"{where}: the solution fails its check; mend one of them")
    write(nb, path)
    if solutions:
        write_exercise(path, root, spec_of)


def check(path, root, spec_of=spec_of):
    """Raise an AuthoringError unless the exercises on disk are those that ``path`` gives."""
    stored, completed, expected = _source(path, root, spec_of)
    _compare(completed, stored, shown(path, root))
    target = root / "exercises" / path.name
    name = shown(target, root)
    if not target.exists():
        raise AuthoringError(f"{name}: missing; {_REGENERATE}")
    found = read(target, root)
    # Sources first: they tell more than the outputs that follow from them, and need no kernel.
    _compare(normalize(expected), clear_outputs(copy.deepcopy(found)), name)
    _compare(execute(expected, target, root), found, name)


def _compare(expected, found, name):
    pairs = list(zip_longest(places(expected, name), places(found, name), fillvalue=(name, {})))
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
                problems.append(f"{shown(path, root)}: without a source in solutions/; remove it")
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
            status = f"[{bar}] {number + 1}/{len(paths)} {shown(path, root)}"
            print(f"\r\x1b[K{status}", end="", file=sys.stderr, flush=True)
        yield path
    print("\r\x1b[K" if live else "", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
