"""What the source of one cell says, without running it: names it binds, whether it is a stub."""

import ast
import re
import warnings
from functools import lru_cache

ASKING = frozenset(["check", "hint", "progress"])  # what a learner calls to see how far they are
LONGEST = 200_000  # characters that are parsed
# Magics that run the cell below them as Python, in the same names.
_PYTHON_MAGICS = ("%%time", "%%capture", "%%prun", "%%memit")
# What IPython reads and Python does not: magics, commands, questions, prompts.
_NOT_PYTHON = re.compile(
    r"(?m)^[ \t]*(?:%?[%,;/]\w|[!?]|>>>|In \[)|=[ \t]*[%!]|^[^#\n]*\?[ \t]*$")
# The stub of the exercises; see CODE_STUB in lnres_utils/authoring.py.
_STUB = re.compile(r"^[ \t]*# YOUR CODE HERE[ \t]*\n[ \t]*raise NotImplementedError\(\)", re.M)


def is_stub(source):
    """Whether nothing was written in this cell; a stub below a ``return`` was left over."""
    stub = _STUB.search(source)
    if stub is None:
        return not source.strip()
    return re.search(r"(?m)^[ \t]+return\b", source[: stub.start()]) is None


def bound_names(source, names):
    """Which of ``names`` the cell defines or assigns at its top level; all of them strings."""
    if not any(name in source for name in names):
        return frozenset()
    tree = parsed(source)
    if tree is None:
        starts = re.findall(
            r"(?m)^(?:(?:async +)?(?:def|class) +(\w+)|(\w+) *(?::[^=\n]*)?=(?!=))", source
        )
        return frozenset(first or second for first, second in starts) & frozenset(names)
    return frozenset(name for part in tree.body for name in _bound(part)) & frozenset(names)


def _bound(statement):
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return [
            n.id
            for t in targets
            for n in ast.walk(t)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
    return []


def only_asks(source):
    """Whether the cell does nothing but call ``check``, ``hint`` or ``progress``."""
    if not any(f"{name}(" in source for name in ASKING):
        return False
    tree = parsed(source)
    return tree is not None and bool(tree.body) and all(map(_asks, tree.body))


def _asks(statement):
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    name = getattr(function, "id", None) or getattr(function, "attr", None)
    return name in ASKING


def checked_names(source):
    """The names that the cell hands to ``check``."""
    return re.findall(r"(?m)^check\( *(\w+)", source)


def only_imports(source):
    """Whether the cell does nothing but import."""
    tree = parsed(source) if "import" in source else None
    kinds = ast.Import | ast.ImportFrom
    return tree is not None and bool(tree.body) and all(isinstance(p, kinds) for p in tree.body)


@lru_cache(maxsize=256)
def parsed(source):
    """The syntax tree of a cell, its magics left out; None if it is not Python."""
    if len(source) > LONGEST:
        return None
    first = source.lstrip()
    if first.startswith("%%") and not first.startswith(_PYTHON_MAGICS):
        return ast.Module(body=[], type_ignores=[])
    without = re.sub(r"(?m)^([ \t]*)[%!?].*$", r"\1pass", source)
    for text in (source, without) if without != source else (source,):
        try:
            return _tree(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def syntax_error(source):
    """What is wrong where Python cannot read a cell, and nothing in it is for IPython alone.

    Returns
    -------
    (kind of the exception, line from 1, what Python says), or None
    """
    if len(source) > LONGEST or _NOT_PYTHON.search(source):
        return None
    try:
        _tree(source)
    except SyntaxError as error:
        if error.lineno:
            line = min(error.lineno, source.count("\n") + 1)
            return type(error).__name__, line, error.msg
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _tree(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as: invalid escape sequence
        return ast.parse(text)
