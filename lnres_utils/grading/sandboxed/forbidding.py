"""Functions and classes that an exercise forbids: they raise while it is asked.

The wrappers are in place before any cell runs, so that an early ``from torch.nn.functional import
layer_norm`` has them, too. At all other times they call what they wrap.
"""

import contextlib
import functools
import importlib
import inspect

_now = frozenset()  # the names forbidden at this moment


class Forbidden(Exception):
    """The answer used what its exercise forbids; the text is its dotted name."""


def install(names):
    """Wrap functions in their module and classes in place.

    Parameters
    ----------
    names : dotted, such as "torch.nn.LayerNorm"
    """
    for name in names:
        path, _, last = name.rpartition(".")
        module = importlib.import_module(path)
        found = getattr(module, last)
        if inspect.isclass(found):
            for method in ("__init__", "forward" if hasattr(found, "forward") else "__call__"):
                setattr(found, method, _refusing(name, getattr(found, method)))
        else:
            setattr(module, last, _refusing(name, found))


def _refusing(name, function):
    """The function, but that it raises while ``name`` is forbidden."""

    @functools.wraps(function)
    def wrapper(*args, **options):
        if name in _now:
            raise Forbidden(name)
        return function(*args, **options)

    with contextlib.suppress(TypeError, ValueError):  # some functions in C have none
        wrapper.__signature__ = inspect.signature(function)
    del wrapper.__wrapped__  # the way around it
    return wrapper


@contextlib.contextmanager
def forbidden(names):
    """Within this block the names raise."""
    global _now
    before, _now = _now, frozenset(names)
    try:
        yield
    finally:
        _now = before
