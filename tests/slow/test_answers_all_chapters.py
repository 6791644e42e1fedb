"""All answers of ``tests/answers`` end in a graded notebook as ``check`` says in a live one."""

import pytest
from grading.answer_cells import differences

from lnres_utils import specs

# How many answers there are at least; chapter 1 is tested with every change.
FEW = {"before-and-after": 10, "residual-path": 150, "pre-and-post-norm": 150, "rmsnorm": 150,
       "practical-checks": 100, "bug-hunt": 80}


def test_every_chapter_has_a_number():
    assert set(FEW) | {"feature-axis"} == set(specs.CHAPTERS)


@pytest.mark.parametrize("chapter", FEW)
def test_the_answers_are_graded_as_they_are_checked(chapter):
    count, found = differences(chapter)
    assert not found
    assert count >= FEW[chapter]
