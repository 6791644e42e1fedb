"""What ``lnres_utils`` is in a student's process.

``check``, ``hint`` and ``progress`` do nothing: the answers are checked elsewhere. The rest of the
public names can be imported, so that no cell stops at its import line, and raise when used.
"""

import sys
from types import ModuleType

NAME = "lnres_utils"
ROOMS = ("blocks", "experiments", "figures", "norms")
TOOLS = (
    "AuditReport", "CannotTell", "CheckFailed", "Finding", "Mistake", "Report",
    "assert_all_parameters_train", "assert_causal", "assert_finite_on_constant_rows",
    "assert_half_safe", "assert_no_example_mixing", "assert_padding_ignored",
    "assert_same_in_train_and_eval", "audit", "norm_order",
)  # fmt: skip


class NotAvailable(RuntimeError):
    """A part of the package that a student's process does not have."""


class Absent:
    """Stands for a function or class; calling it or deriving from it raises."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *args, **options):
        raise _not_available(self._name)

    def __mro_entries__(self, bases):
        raise _not_available(self._name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise _not_available(self._name)

    def __repr__(self):
        return f"<{self._name}, not available while answers are graded>"


class AbsentRoom(ModuleType):
    """Stands for a module of which nothing is there; each of its names can be imported."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return Absent(f"{self.__name__}.{name}")


def _not_available(name):
    return NotAvailable(f"{name} is not available while answers are graded")


def check(answer, exercise=None):
    """Nothing: the answer is checked elsewhere."""


def hint(name=None):
    """Nothing."""


def progress():
    """Nothing."""


def furnish(package):
    """Put the public names into the module ``package``, which is empty."""
    for function in (check, hint, progress):
        setattr(package, function.__name__, function)
    for name in TOOLS:
        setattr(package, name, Absent(f"{NAME}.{name}"))
    for name in ROOMS:
        room = AbsentRoom(f"{NAME}.{name}")
        setattr(package, name, room)
        sys.modules[room.__name__] = room
