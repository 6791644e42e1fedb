"""A page for each student: what came out of every exercise, which mistake it was, where to read on.

It shows ``Report.public()`` and hints, and nothing else: no hidden input, no expected value, no
text of an exception, nothing that code printed, no note for the teacher.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from lnres_utils import specs
from lnres_utils.grading.gradebook import every_exercise
from lnres_utils.grading.model import Result
from lnres_utils.grading.pages import OUTCOMES, chapter_title, render
from lnres_utils.grading.texts import clean, file_stem

LEADS = {
    "both": "Two mistakes at once explain this exactly:",
    "one of": "These mistakes give the same results here; it is one of them:",
}
NOTHING_GRADED = ("Nothing in this notebook could be graded: it could not be read, or no exercise "
                  "of the course was found in it. Ask your teacher what to hand in.")
NOT_READ = ("Nothing in this notebook could be graded. The reason: {}. See that it is the notebook "
            "with your answers, a file that ends in .ipynb, and that it opens in Jupyter. Save it "
            "there, and ask your teacher how to hand it in again.")


def feedback(results: Iterable[Result], book="") -> Iterator[tuple[str, str]]:
    """(name of a file, page) for each student, of results that are sorted by student.

    Parameters
    ----------
    book : address of the built book, for links to its lessons, as ``pages.address`` gives it;
        without, their titles are named
    """
    for student, all_of_one in groupby(results, key=lambda result: result.student):
        yield f"{file_stem(student)}.html", page(student, list(all_of_one), book)


def page(student, results, book=""):
    """The page of one student as text."""
    return render("feedback.html", book, student=clean(student),
                  chapters=[_chapter(result) for result in results])


def _chapter(result):
    exercises = [_exercise(graded) for graded in every_exercise(result)]
    return {
        "title": chapter_title(result.chapter),
        "not_graded": _not_graded(result),
        "exercises": [each for each in exercises if each["name"]],
        "all_right": all(each["outcome"] == "right" for each in exercises),
        "points": sum(each["points"] for each in exercises),
        "max_points": sum(each["max_points"] for each in exercises),
    }


def _not_graded(result):
    told = clean(result.told).rstrip(".")
    return (NOT_READ.format(told) if told else NOTHING_GRADED) if result.problem else ""


def _exercise(graded):
    public = graded.public
    mistakes = public.get("mistakes", ())
    named = sum(1 for mistake in mistakes if mistake["lesson"])
    return {
        "name": graded.exercise,
        "outcome": graded.outcome if graded.outcome in OUTCOMES else "not attempted",
        "points": graded.points,
        "max_points": graded.max_points,
        "reason": public.get("reason", ""),
        "lead": LEADS.get(public.get("certainty"), "") if named > 1 else "",
        "mistakes": mistakes,
        "lesson": public.get("lesson", "") or _spec(graded.exercise, "lesson", ""),
        "scores": public.get("scores", ()),
        "hint": "" if graded.outcome == "right" else next(
            iter(_spec(graded.exercise, "hints", ())), ""),
    }


def _spec(name, attribute, default):
    return getattr(specs.exercises.get(name), attribute, default)
