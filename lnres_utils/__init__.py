"""Helpers of the course on layer normalization and residual connections.

A learner needs three names: ``check``, ``hint`` and ``progress``. Lessons also use ``norms`` and
``blocks``, the book's own implementations, ``experiments`` and ``figures``, its probes, training
loop and plots. ``audit`` asks the practical questions of any module; ``norm_order`` tells how a
transformer block is wired. Importing this package imports no torch.
"""

import importlib

from lnres_utils import specs as _specs
from lnres_utils.checking import CheckFailed, Mistake, Report, Session

__all__ = [
    "CheckFailed",
    "Mistake",
    "Report",
    "blocks",
    "check",
    "experiments",
    "figures",
    "hint",
    "norms",
    "progress",
]

_OF_AUDITING = (
    "AuditReport",
    "CannotTell",
    "Finding",
    "assert_all_parameters_train",
    "assert_causal",
    "assert_finite_on_constant_rows",
    "assert_half_safe",
    "assert_no_example_mixing",
    "assert_padding_ignored",
    "assert_same_in_train_and_eval",
    "audit",
    "norm_order",
)
__all__ += _OF_AUDITING
_session = Session(_specs.exercises)


def check(answer, exercise=None):
    """Check your answer and, if it is wrong, name the mistake.

    Parameters
    ----------
    answer : the function or class you wrote
    exercise : str, optional
        The name of the exercise; by default the name of the function or class.

    Returns
    -------
    Report, if the answer is right.

    Raises
    ------
    CheckFailed after showing the report, if it is not, or if no exercise has that name.
    """
    return _session.check(answer, exercise)


def hint(name=None):
    """Show the next hint of an exercise: ``hint("layer_norm")``; call it again for more."""
    return _session.hint(name)


def progress():
    """Show the exercises of the chapters begun, and what was checked since the kernel started."""
    return _session.progress()


def __getattr__(name):
    if name in ("blocks", "experiments", "figures", "norms"):
        return importlib.import_module(f"lnres_utils.{name}")
    if name in _OF_AUDITING:
        return getattr(importlib.import_module("lnres_utils.auditing"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
