"""The engine: run an answer, compare it, name the mistake, report. It knows no exercise."""

from lnres_utils.checking.diagnosing import broken_properties, diagnose, hypothesis
from lnres_utils.checking.judging import judge, judge_runs, not_callable, without_runs
from lnres_utils.checking.model import (
    INPUT_KEPT,
    Case,
    Equivalent,
    Exercise,
    Knob,
    Output,
    Property,
    Run,
    equivalent,
)
from lnres_utils.checking.report import Evidence, Mistake, Report
from lnres_utils.checking.running import run_case
from lnres_utils.checking.session import CheckFailed, Session, seed_of

__all__ = [
    "INPUT_KEPT",
    "Case",
    "CheckFailed",
    "Equivalent",
    "Evidence",
    "Exercise",
    "Knob",
    "Mistake",
    "Output",
    "Property",
    "Report",
    "Run",
    "Session",
    "broken_properties",
    "diagnose",
    "equivalent",
    "hypothesis",
    "judge",
    "judge_runs",
    "not_callable",
    "run_case",
    "seed_of",
    "without_runs",
]
