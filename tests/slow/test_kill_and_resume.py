"""A grader killed at any moment: the same command goes on and ends with the same gradebook."""

import time

import numpy as np
import pytest
from grading import classroom
from grading.runs import book, graded, start

from lnres_utils.grading.model import Limits

KILLS = 20
LIMITS = Limits(seconds=60)
NOTEBOOKS = dict(classroom.mixed_class("feature-axis", 20))
MOMENTS = np.random.default_rng(20).uniform(0, 1.1, KILLS)  # shares of an undisturbed run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The gradebook, and the seconds until it is there."""
    folder = tmp_path_factory.mktemp("undisturbed")
    since = time.monotonic()
    grader = start(folder, NOTEBOOKS)
    assert grader.communicate(timeout=500) == ("0\n", "")
    return book(folder), time.monotonic() - since


@pytest.mark.parametrize("moment", MOMENTS.round(3))
def test_the_same_command_goes_on_after_a_kill(undisturbed, tmp_path, moment):
    expected, seconds = undisturbed
    grader = start(tmp_path, NOTEBOOKS)
    time.sleep(moment * seconds)
    grader.kill()
    grader.communicate()
    there = len(list((tmp_path / "grades").glob("results/*.json")))
    summary, found = graded(tmp_path, NOTEBOOKS, limits=LIMITS)
    assert len(found) == len(NOTEBOOKS)
    assert summary.kept >= there  # a worker may have kept one more while it was ended
    assert book(tmp_path) == expected
    assert not list((tmp_path / "grades").rglob(".new-*"))


def test_killed_again_and_again_it_comes_to_the_same_end(undisturbed, tmp_path):
    expected, seconds = undisturbed
    for _ in range(3):
        grader = start(tmp_path, NOTEBOOKS)
        time.sleep(0.7 * seconds)
        grader.kill()
        grader.communicate()
    graded(tmp_path, NOTEBOOKS, limits=LIMITS)
    assert book(tmp_path) == expected
