"""The cells of a notebook, run as IPython runs them, but statement by statement and in silence."""

import ast
import asyncio
import contextlib
import inspect
import shutil
import tempfile

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import SList
from traitlets.config import Config

from lnres_utils.checking.running import plain
from lnres_utils.grading.sandboxed import wire

# What a notebook's first cell brings; where a student has deleted it, that costs nothing.
PRELUDE = """
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from lnres_utils import check, hint, progress
"""


class Shell(InteractiveShell):
    """A shell without a terminal, a screen and other programs."""

    def enable_gui(self, gui=None):
        pass

    def enable_matplotlib(self, gui=None):
        return gui, "agg"

    def system(self, command):
        """A line with `!` does nothing; it does not stop the cell either, as in a notebook."""

    def getoutput(self, command, split=True, depth=0):
        return SList() if split else ""


def make_shell():
    """A shell that has run the prelude."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.xmode = "Plain"
    config.InteractiveShell.colors = "NoColor"
    folder = tempfile.mkdtemp()
    shell = Shell.instance(config=config, ipython_dir=folder)
    shutil.rmtree(folder)
    shell.builtin_trap.activate()  # `display` and `get_ipython`, also while an answer is called
    problem = run(shell, PRELUDE, 0, None, lambda statement: None)
    if problem:
        raise RuntimeError(f"the prelude stopped: {problem['kind']}: {problem['message']}")
    return shell


def run(shell, source, number, limit, announce):
    """Run a cell up to its first exception.

    Parameters
    ----------
    number : int, of the cell
    limit : int, how many statements are run at most; None for all
    announce : called with the index of a statement before it runs

    Returns
    -------
    None, or a dict with the ``kind`` and ``message`` of the exception and the ``statement``
    """
    at = 0
    try:
        code, tree = _parsed(shell, source)
        name = shell.compile.cache(code, number, raw_code=source)
        for at, statement in enumerate(tree.body[:limit]):
            announce(at)
            _execute(shell, statement, name)
    except wire.Closed:
        raise
    except BaseException as error:  # SystemExit and KeyboardInterrupt end a cell, nothing more
        return {"kind": plain(type(error).__name__), "message": _message(error), "statement": at}


def _parsed(shell, source):
    """The source as Python, and its tree.

    IPython leaves several lines of Python as they are, which takes it long; a line alone may be the
    name of a magic.
    """
    if "\n" in source.strip():
        with contextlib.suppress(SyntaxError):
            return source, shell.compile.ast_parse(source)
    code = shell.transform_cell(source)
    return code, shell.compile.ast_parse(code)


def _execute(shell, statement, name):
    with shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
        code = shell.compile(ast.Module([statement], []), name, "exec")
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, shell.user_ns))
    else:
        exec(code, shell.user_ns)


def _message(error):
    """The first line of an exception's text; it may refuse to give any."""
    try:
        if isinstance(error, SyntaxError):
            return plain(f"{error.msg} (line {error.lineno})")
        return plain(str(error).strip().split("\n")[0])
    except BaseException:
        return ""
