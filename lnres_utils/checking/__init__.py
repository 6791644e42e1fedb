"""The engine: run an answer, compare it, name the mistake, report. It knows no exercise."""

from lnres_utils.checking.diagnosing import broken_properties, diagnose, hypothesis
from lnres_utils.checking.judging import judge, judge_runs, not_callable, without_runs
from lnres_utils.checking.model import (
    INPUT_KEPT,
    Case,
    Equivalent,
    Exercise,
    Failure,
    Knob,
    Output,
    Property,
    Run,
    equivalent,
)
from lnres_utils.checking.report import Evidence, Mistake, Report
from lnres_utils.checking.running import examined, plain, run_case
from lnres_utils.checking.session import CheckFailed, Session, seed_of

__all__ = [
    "INPUT_KEPT",
    "Case",
    "CheckFailed",
    "Equivalent",
    "Evidence",
    "Exercise",
    "Failure",
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
    "examined",
    "hypothesis",
    "judge",
    "judge_runs",
    "not_callable",
    "plain",
    "run_case",
    "seed_of",
    "without_runs",
]
