"""Grades into the lines of a table: who is who, what is there already, what is allowed.

Who cannot be found, or is found twice, is told in a note and left alone.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import groupby

from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.gradebook import every_exercise
from lnres_utils.grading.model import Result
from lnres_utils.grading.tables import Cell
from lnres_utils.grading.texts import clean, folded

CENT = Decimal("0.01")  # platforms show two decimals
NO_GRADE = ("", "-")


@dataclass(frozen=True)
class Total:
    """What one student earned, and how a table may call this student."""

    student: str
    points: int
    max_points: int
    learner_id: str = ""  # the number in the platform's file names
    comment: str = ""  # a sentence an exercise
    problem: str = ""  # why nothing could be graded


@dataclass(frozen=True)
class Line:
    """One student's line of a table."""

    shown: str
    number: str  # the one that the platform's file names have
    words: frozenset[str]  # names and ids, folded
    grade: Cell
    maximum: Decimal | None = None
    comment: Cell | None = None
    kept: str = ""  # why its grade is not for us to change


def totals(results: Iterable[Result], chapter: str | None = None) -> list[Total]:
    """The totals of results that are sorted by student, of one chapter or of all."""
    if chapter is not None:
        results = (result for result in results if result.chapter in (chapter, ""))
    return [_total(student, list(all_of_one))
            for student, all_of_one in groupby(results, key=lambda result: result.student)]


def _total(student, results):
    exercises = [graded for result in results for graded in every_exercise(result)]
    return Total(
        student=student,
        points=sum(graded.points for graded in exercises),
        max_points=sum(graded.max_points for graded in exercises),
        learner_id=next((result.learner_id for result in results if result.learner_id), ""),
        comment="; ".join(f"{graded.exercise}: {graded.outcome}, {graded.points} of "
                          f"{graded.max_points}" for graded in exercises if graded.exercise),
        problem=next((result.problem for result in results if result.problem), ""),
    )


def words(ids, name):
    """What a student may be called: ids, and the name in both orders."""
    last, comma, first = name.partition(",")
    names = [name, f"{first} {last}" if comma else ""]
    return frozenset(filter(None, map(folded, [*ids, *names])))


def number(text):
    try:
        return Decimal(text.replace(",", "."))
    except InvalidOperation:
        return None


def filled(table, lines, totals, notes, overwrite, scale):
    """The bytes with the grades of all whose line is certain, and notes about all others."""
    by_number, by_word, claims = defaultdict(list), defaultdict(list), defaultdict(list)
    for line in lines:
        by_number[line.number].append(line)
        for word in line.words:
            by_word[word].append(line)
    totals = list(totals)
    notes, texts = [*notes, *_other_maximum(lines, totals, scale)], []
    for total in totals:
        found = _found(total, by_number, by_word)
        if len(found) == 1:
            claims[id(found[0])].append(total)
            continue
        why = f"{len(found)} lines of the table fit" if found else "no line of the table fits"
        notes.append(f"{clean(total.student)}: {total.points} points, not filled in: {why}")
    mark = "," if any(re.fullmatch(r"-?\d+,\d+", cell.text.strip())
                      for row in table.rows for cell in row) else "."
    for line in lines:
        changed, said = _line(line, claims[id(line)], overwrite, scale, mark)
        texts += changed
        notes += [f"{clean(line.shown)}: {note}" for note in said]
    return table.filled(texts), tuple(notes)


def _other_maximum(lines, totals, scale):
    """A note where the table allows another number of points than the exercises are worth."""
    allowed = next((line.maximum for line in lines if line.maximum is not None), None)
    worth = max((total.max_points for total in totals), default=0)
    if scale or allowed in (None, worth):
        return []
    return [f"The column allows {allowed} points, the exercises are worth {worth}; the points are "
            "filled in unscaled"]


def _found(total, by_number, by_word):
    """The lines that may be this student's. The platform's number decides, unless the name is
    another's.
    """
    numbered = by_number[total.learner_id] if total.learner_id else []
    called = by_word[folded(total.student)]
    if len(numbered) == 1 and (not called or numbered[0] in called):
        return numbered
    return [*numbered, *(line for line in called if line not in numbered)]


def _line(line, claims, overwrite, scale, mark):
    """([(cell, text)], notes) of one line."""
    there = line.grade.text.strip()
    if not claims:
        return [], ["no submission"]
    if len(claims) > 1:
        students = ", ".join(clean(total.student) for total in claims)
        return [], [f"not filled in: several submissions fit ({students})"]
    total, = claims
    notes = [f"nothing could be graded: {clean(total.problem)}"] if total.problem else []
    if notes and not total.points:
        return [], [f"{notes[0]}; left as it is"]
    grade = _grade(total, line, scale)
    if line.kept:
        return [], [*notes, f"{grade} not filled in: {line.kept}"]
    if there not in NO_GRADE and number(there) != grade:
        if not overwrite:
            return [], [*notes, f"{clean(there)} is there and kept; graded were {grade}"]
        notes.append(f"{clean(there)} is replaced by {grade}")
    texts = [] if number(there) == grade else [(line.grade, str(grade).replace(".", mark))]
    if line.comment and total.comment and not line.comment.text.strip():  # the teacher's own stays
        texts.append((line.comment, total.comment))
    return texts, notes


def _grade(total, line, scale):
    """The points as a number of two decimals, within what the line allows."""
    points = Decimal(total.points)
    if scale:
        if not line.maximum:
            raise GradingError(f"The points of {clean(total.student)} cannot be scaled: the table "
                               "does not say how many the column allows. Leave the scaling out.")
        points = points * line.maximum / total.max_points if total.max_points else points
    points = points.quantize(CENT, ROUND_HALF_UP)
    if points < 0 or line.maximum is not None and points > line.maximum:
        raise GradingError(f"{clean(total.student)} has {points} points, but the column allows 0 "
                           f"to {line.maximum}. Change that on the platform, or scale the points.")
    return points
