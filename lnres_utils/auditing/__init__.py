"""Practical checks as tools for any module: what it does is probed, not how it is written.

Importing this imports no torch; ``audit`` does.
"""

import importlib

from lnres_utils.auditing.placement import LABELS, norm_order, order_of_function
from lnres_utils.auditing.report import AuditReport, Finding

__all__ = ["CHECKS", "LABELS", "AuditReport", "Finding", "Subject", "audit", "norm_order",
           "order_of_function"]
ASSERTIONS = ("CannotTell", "assert_all_parameters_train", "assert_causal",
              "assert_finite_on_constant_rows", "assert_half_safe", "assert_no_example_mixing",
              "assert_padding_ignored", "assert_same_in_train_and_eval")
__all__ += ASSERTIONS
LAZY = {"audit": "auditing", "CHECKS": "auditing", "Subject": "subject"}
LAZY |= dict.fromkeys(ASSERTIONS, "asserting")


def __getattr__(name):
    if name in LAZY:
        return getattr(importlib.import_module(f"lnres_utils.auditing.{LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
