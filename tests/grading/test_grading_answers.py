"""All answers of ``tests/answers`` end in a graded notebook as ``check`` says in a live one."""

from grading.answer_cells import differences


def test_the_answers_of_chapter_1_are_graded_as_they_are_checked():
    count, found = differences("feature-axis")
    assert not found
    assert count > 150
