"""Whatever a reasonable teacher accepts gets all points, on the notebook's inputs and on others."""

import pytest
from answers import (
    legal,
    legal_boxes,
    legal_bug_hunt,
    legal_checks,
    legal_choices,
    legal_residual,
    legal_rmsnorm,
    legal_wiring,
)
from conftest import checked

from lnres_utils import specs

ANSWERS = {**legal.ANSWERS, **legal_residual.ANSWERS, **legal_wiring.ANSWERS,
           **legal_boxes.ANSWERS, **legal_choices.ANSWERS, **legal_checks.ANSWERS,
           **legal_rmsnorm.ANSWERS, **legal_bug_hunt.ANSWERS}


@pytest.mark.parametrize("seed", [None, 11])
@pytest.mark.parametrize(("exercise", "way"), [
    pytest.param(exercise, way, id=f"{exercise}-{way}")
    for exercise, ways in ANSWERS.items() for way in ways])
def test_a_legal_variant_gets_all_points(exercise, way, seed):
    report = checked(exercise, ANSWERS[exercise][way], seed)
    assert report.outcome == "right", report.text
    assert report.points == report.max_points


def test_there_are_many_ways_to_write_each_exercise():
    for name in specs.exercises:
        few = 5 if specs.get(name).separate else 15  # answers on paper leave little freedom
        assert len(ANSWERS[name]) >= few, name
