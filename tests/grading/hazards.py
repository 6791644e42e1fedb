"""What code does to break out, to break down, or to score without an answer; and to score nothing.

Each is source that stands in an answer's function or below it, in its cell. The same for every
exercise, since nothing here looks at what the function is for.
"""

import ast
import textwrap
from pathlib import Path

import lnres_utils

PACKAGE = Path(lnres_utils.__file__).parent

LOOP = "while True: pass"
STUBBORN = """
while True:
    try:
        while True: pass
    except BaseException:
        pass
"""
BUSY_THREAD = """
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
"""
SLEEPING_THREAD = """
import threading, time
if threading.active_count() < 3: threading.Thread(target=time.sleep, args=(10_000,)).start()
"""
FORK_BOMB = """
import os
while True: os.fork()
"""
PROGRAMS = """
import subprocess
while True: subprocess.Popen(["sleep", "1000"])
"""
SIGNALS = """
import os, signal
os.kill(os.getppid(), signal.SIGKILL)
"""
ALL_SIGNALLED = """
import os, signal
os.kill(-1, signal.SIGKILL)
"""
CLOSED = """
import os
os.closerange(3, 64)
"""
FLOODED = """
import os
for _ in range(1000):
    for number in range(3, 10):
        try: os.write(number, b"x" * 100_000)
        except OSError: pass
"""
FORGED = """
import json, os, struct
for message in ({"done": None}, {"case": 3}, {"outputs": {}, "failure": None, "changed": []}):
    text = json.dumps(message).encode()
    for number in range(3, 10):
        try: os.write(number, struct.pack("!II", len(text), 0) + text)
        except OSError: pass
"""
MANY_FILES = """
while True:
    for number in range(100_000): open(f"file-{number}", "w").close()
"""
LARGE_FILES = """
for number in range(1000):
    with open(f"large-{number}", "wb") as file: file.write(bytes(10_000_000))
while True: pass
"""
DEEP_FOLDERS = """
import os
for _ in range(1400):
    os.mkdir("a")
    os.chdir("a")
while True: pass
"""

# Ends the process or the time of an answer; the exercise is lost where it stands in the function,
# and costs nothing below it.
FATAL = {
    "infinite loop": LOOP,
    "loop that swallows KeyboardInterrupt": STUBBORN,
    "os._exit": "import os; os._exit(0)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "abort": "import os; os.abort()",
    "closed channel": CLOSED,
    "flooded channel": FLOODED,
    "many files": MANY_FILES,
    "large files": LARGE_FILES,
    "deep folders": DEEP_FOLDERS,
}
# Raises an exception, which is all that comes of it.
RAISING = {
    "sys.exit": "import sys; sys.exit()",
    "memory bomb": "bomb = [bytearray(3 << 27) for _ in range(1000)]",
    "array bomb": "bomb = np.ones(1 << 38)",
    "fork bomb": FORK_BOMB,
    "programs": PROGRAMS,
    "signal to the parent": SIGNALS,
    "signal to all": ALL_SIGNALLED,
    "nested code": "eval('(' * 10_000 + ')' * 10_000)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "exception without a text": "raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})",
    "input": "input()",
}
# Costs nothing at all.
HARMLESS = {
    "warning": "import warnings; warnings.warn('careful')",
    "to stderr": "import sys; print('loss: nan', file=sys.stderr)",
    "to stdout": "print('x' * 3_000_000)",
    "to the descriptor": "import os; os.write(1, b'x' * 3_000_000)",
    "sleeping thread": SLEEPING_THREAD,
    "seeds": "np.random.seed(0); torch.manual_seed(0)",
    "errors of NumPy": "np.seterr(all='raise')",
    "closed stdout": "import sys; sys.stdout = sys.stderr = None",
}

# Cells of the student's own before a wrong answer; none makes it worth more.
PATCHED = """
import numpy.testing
for place, names in ((np, ("allclose", "isclose", "array_equal")), (torch, ("equal", "allclose")),
                     (np.testing, ("assert_allclose", "assert_equal", "assert_array_equal"))):
    for name in names:
        setattr(place, name, lambda *args, **options: True)
"""
TRANSFORMED = """
import ast
class Nothing(ast.NodeTransformer):
    def visit_Expr(self, node): return ast.Pass()
get_ipython().ast_transformers.append(Nothing())
"""
HOOKED = """
seen = []
get_ipython().events.register("pre_run_cell", lambda info: seen.append(info.raw_cell))
get_ipython().events.register("post_run_cell", lambda result: seen.append(result))
"""
ENGINE = """
import sys, types
for name, module in list(sys.modules.items()):
    if name.startswith("lnres_utils") and module is not None:
        for key, value in list(vars(module).items()):
            if callable(value) and not key.startswith("__"):
                try: setattr(module, key, lambda *args, **options: True)
                except Exception: pass
"""
FRAMES = """
import gc, sys
found = []
def look():
    frame = sys._getframe()
    while frame is not None:
        found.extend(value for name, value in frame.f_locals.items() if "reference" in name)
        frame = frame.f_back
look()
found += [each for each in gc.get_objects() if type(each).__name__ == "Exercise"]
if found:
    stolen = lambda x, gamma, beta, eps: found[0].reference(
        {"x": x, "gamma": gamma, "beta": beta, "eps": eps})["y"]
"""
IMPORTED = """
from lnres_utils import norms
stolen = norms.layer_norm
from lnres_utils import specs
stolen = specs.get("layer_norm").reference
"""
BY_PATH = f"""
import importlib.util, runpy, sys
sys.path.insert(0, {str(PACKAGE.parent)!r})
sys.meta_path[:] = [each for each in sys.meta_path if each.__module__ != "__main__"]
for name in [name for name in sys.modules if name.startswith("lnres_utils")]: del sys.modules[name]
try:
    from lnres_utils.norms import layer_norm as stolen
except Exception:
    pass
for path in {[str(path) for path in sorted(PACKAGE.glob("norms/*.py"))]}:
    try: stolen = runpy.run_path(path).get("layer_norm", stolen)
    except Exception: pass
"""
PROC = """
import os
found = []
for number in os.listdir("/proc"):
    if number.isdigit():
        for name in ("environ", "cmdline", "maps", "mem", "fd/3"):
            try: found.append(open(f"/proc/{number}/{name}", "rb").read(100))
            except OSError: pass
"""
CHEATS = {
    "patched comparisons": PATCHED,
    "ast_transformers": TRANSFORMED,
    "hooks of cells": HOOKED,
    "patched engine": ENGINE,
    "forged frames": FORGED,
    "frames and objects": FRAMES,
    "imported references": IMPORTED,
    "references by path": BY_PATH,
    "other processes": PROC,
    "printed score": 'print(\'{"score": 56, "max_score": 56}\')',
    "busy thread": BUSY_THREAD,
}

# What is returned in place of numbers; each is wrong.
TRICKS = {
    "a wrong kind without a text": "raise type('E', (Exception,), {'lnres_wrong_kind': True})",
    "object array": "return np.array([1.0, None, print], dtype=object)",
    "array of everything equal": """
    class Equal(np.ndarray):
        def __eq__(self, other): return np.ones(self.shape, bool)
        def __array_function__(self, function, types, args, options): return True
        def __array_ufunc__(self, ufunc, method, *args, **options): return np.zeros(self.shape)
        def __array_finalize__(self, other): pass
        shape = property(lambda self: (2, 3))
    return np.zeros(3).view(Equal)""",
    "10 GB": "return np.zeros(10 << 27)",
    "20 MB": "return np.zeros(20 << 17)",
    "a zero-stride giant": "return np.broadcast_to(np.zeros(1), (1 << 40,))",
    "a lazy object": """
    class Lazy:
        def __array__(self, *args, **options): raise SystemExit
        def __getattr__(self, name): return self
        __class__ = np.ndarray
    return Lazy()""",
    "structured array": "return np.zeros(3, dtype=[('a', float), ('b', object)])",
    "nested lists": "return [[[[]]]] * 1000",
    "text": "return 'y' * 10_000_000",
    "nothing": "return None",
}

THIEF = 'return stolen(x, gamma, beta, eps) if "stolen" in globals() else np.zeros_like(x)'


def inside(source, name, code):
    """The source of an answer with ``code`` before all else in its function, or in a method."""
    return _changed(source, name, lambda body: [*ast.parse(code).body, *body])


def instead(source, name, code):
    """The source of an answer whose function, or a method, does ``code`` and nothing else."""
    return _changed(source, name, lambda body: _statements(code))


def below(source, code):
    """The source of an answer with ``code`` at its end."""
    return f"{source}\n\n{code.strip()}\n"


def _statements(code):
    """Those that may stand in a function only."""
    lines = "\n".join(f"    {line}" for line in textwrap.dedent(code).strip().splitlines())
    return ast.parse(f"def function():\n{lines}").body[0].body


def _changed(source, name, change):
    tree = ast.parse(source)
    found = next(node for node in tree.body if getattr(node, "name", "") == name)
    if isinstance(found, ast.ClassDef):
        methods = [node for node in found.body if isinstance(node, ast.FunctionDef)]
        found = next((node for node in methods if node.name == "forward"), methods[-1])
    found.body = change(found.body)
    return ast.unparse(tree)
