"""The gradebook as CSV: a row a student and exercise, or nbgrader's columns.

UTF-8 without a byte order mark: programs that read tables would take the mark for a part of the
first column's name. Excel needs to be told: Data, From Text/CSV, file origin "65001: Unicode".
Lines end in a line feed, fields are quoted as in RFC 4180, and the same results give the same
bytes.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import groupby

from lnres_utils import specs
from lnres_utils.grading.model import Graded, Result
from lnres_utils.grading.texts import harmless

COLUMNS = ("student", "exercise", "points", "max_points", "outcome", "reason", "mistakes")
TOTALS = ("student", "id", "chapter", "points", "max_points", "late", "problem")
NBGRADER = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
            "raw_score", "late_submission_penalty", "score", "max_score")
PLACES = {name: place for place, name in enumerate(specs.exercises)}  # in the order of the course


def gradebook(results: Iterable[Result]) -> Iterator[str]:
    """The lines of ``gradebook.csv``, of results that are sorted by student."""
    yield _line(COLUMNS)
    for student, all_of_one in groupby(results, key=lambda result: result.student):
        exercises = [graded for result in all_of_one for graded in every_exercise(result)]
        for graded in sorted(exercises, key=_place):
            mistakes = "; ".join(each["id"] for each in graded.public.get("mistakes", ()))
            yield _line((student, graded.exercise, graded.points, graded.max_points,
                         graded.outcome, graded.reason, mistakes))


def points(results: Iterable[Result]) -> Iterator[str]:
    """The lines of ``totals.csv``: a row a submission."""
    yield _line(TOTALS)
    for result in results:
        most = sum(each.max_points for each in every_exercise(result))
        yield _line((result.student, result.learner_id, result.chapter, result.points, most,
                     "late" if result.late else "", result.problem))


def nbgrader(results: Iterable[Result]) -> Iterator[str]:
    """The lines of a table with the columns of ``nbgrader export``, a row a submission.

    What this package does not know is empty: names, dates and addresses. A chapter is an
    assignment.
    """
    yield _line(NBGRADER)
    for result in results:
        points = float(result.points)
        yield _line((result.chapter, "", "", result.student, "", "", "", points, 0.0, points,
                     float(sum(each.max_points for each in every_exercise(result)))))


def every_exercise(result: Result) -> tuple[Graded, ...]:
    """The exercises of a result in the order of the course; of one that could not be read, all of
    its chapter, or one without a name where nothing tells the chapter.
    """
    if result.exercises:
        return tuple(sorted(result.exercises, key=_place))
    names = specs.CHAPTERS.get(result.chapter, ())
    return tuple(
        Graded(name, "not attempted", 0, specs.get(name).max_points, result.problem)
        for name in names) or (Graded("", "not attempted", 0, 0, result.problem),)


def _place(graded):
    return PLACES.get(graded.exercise, len(PLACES)), graded.exercise


def _line(fields):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(
        harmless(field) if isinstance(field, str) else field for field in fields)
    return buffer.getvalue()
