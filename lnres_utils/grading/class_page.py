"""A page on the class, without names: scores, exercises, and which mistakes were made.

It goes once over the results and keeps counts alone, so that a thousand students need no more
memory than ten.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from lnres_utils import specs
from lnres_utils.grading.gradebook import PLACES, every_exercise
from lnres_utils.grading.model import Result
from lnres_utils.grading.pages import OUTCOMES, chapter_title, render

FEW = 5  # fewer students: what one of them did can be guessed
BINS = 10
MOST = 10  # mistakes that are shown at once
ORDER = {chapter: place for place, chapter in enumerate(specs.CHAPTERS)}


@dataclass
class Chapter:
    """Counts of one chapter's submissions."""

    submissions: int = 0
    not_graded: int = 0
    late: int = 0
    stopped: int = 0  # submissions in which something was stopped
    stops: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    points: Counter = field(default_factory=Counter)  # how many students have so many
    max_points: int = 0
    outcomes: dict = field(default_factory=lambda: defaultdict(Counter))  # by exercise
    mistakes: Counter = field(default_factory=Counter)  # by (exercise, id)
    one_of: Counter = field(default_factory=Counter)  # by (exercise, ids that give the same)
    unknown: Counter = field(default_factory=Counter)  # by exercise: numbers that nothing explains
    untold: Counter = field(default_factory=Counter)  # by exercise: wrong in another way
    told: dict = field(default_factory=dict)  # (exercise, id): the mistake's sentence and lesson


def class_page(results: Iterable[Result], book="") -> str:
    """The page as text, of results that are sorted by student."""
    students, chapters = counted(results)
    return render("class.html", book, students=students, most=MOST,
                  few=FEW if students < FEW else 0,
                  chapters=[_shown(name, chapter) for name, chapter in chapters.items()])


def counted(results: Iterable[Result]) -> tuple[int, dict[str, Chapter]]:
    """How many students there are, and the counts of each chapter, in the order of the course."""
    chapters, students, last = defaultdict(Chapter), 0, None
    for result in results:
        students += result.student != last
        last = result.student
        _count(chapters[result.chapter], result)
    ordered = sorted(chapters, key=lambda chapter: (ORDER.get(chapter, len(ORDER)), chapter))
    return students, {chapter: chapters[chapter] for chapter in ordered}


def _count(chapter, result):
    chapter.submissions += 1
    chapter.not_graded += bool(result.problem)
    chapter.late += result.late
    chapter.stopped += bool(result.stopped)
    chapter.stops += result.stopped
    chapter.seconds += result.seconds
    chapter.longest = max(chapter.longest, result.seconds)
    exercises = [graded for graded in every_exercise(result) if graded.exercise]
    chapter.points[sum(graded.points for graded in exercises)] += 1
    chapter.max_points = max(chapter.max_points, sum(graded.max_points for graded in exercises))
    for graded in exercises:
        chapter.outcomes[graded.exercise][graded.outcome] += 1
        _count_mistakes(chapter, graded)


def _count_mistakes(chapter, graded):
    mistakes = graded.public.get("mistakes", ())
    named = [mistake for mistake in mistakes if mistake["lesson"]]
    for mistake in mistakes:
        chapter.told.setdefault((graded.exercise, mistake["id"]), mistake)
    if graded.public.get("certainty") == "one of" and len(named) > 1:
        chapter.one_of[graded.exercise, tuple(sorted(each["id"] for each in named))] += 1
        mistakes = [mistake for mistake in mistakes if not mistake["lesson"]]
    for mistake in mistakes:
        chapter.mistakes[graded.exercise, mistake["id"]] += 1
    if graded.outcome == "wrong" and not named:
        evidence = graded.report.get("evidence") or {}
        unexplained = graded.report.get("broken") or evidence.get("given")
        if unexplained or not mistakes:
            (chapter.unknown if unexplained else chapter.untold)[graded.exercise] += 1


def _shown(name, chapter):
    """What the template shows of a chapter."""
    names = sorted(chapter.outcomes, key=lambda each: (PLACES.get(each, len(PLACES)), each))
    return {
        "title": chapter_title(name),
        "facts": _facts(chapter),
        "bins": _bins(chapter) if chapter.max_points else [],
        "exercises": [{"name": each, "counts": {outcome: chapter.outcomes[each][outcome]
                                                for outcome in OUTCOMES},
                       "total": chapter.outcomes[each].total()} for each in names],
        "mistakes": _rows(chapter, chapter.mistakes, lambda id_: (id_,)),
        "one_of": _rows(chapter, chapter.one_of, lambda ids: ids),
        "unnamed": [{"exercise": each, "unknown": chapter.unknown[each],
                     "untold": chapter.untold[each]}
                    for each in names if chapter.unknown[each] or chapter.untold[each]],
    }


def _rows(chapter, counts, ids_of):
    """The most frequent first; a share is of those who handed in an answer to the exercise."""
    rows = sorted(counts.items(), key=lambda row: (
        -row[1], PLACES.get(row[0][0], len(PLACES)), row[0]))
    return [{
        "exercise": exercise,
        "mistakes": [chapter.told[exercise, each] for each in ids_of(key)],
        "count": count,
        "answers": _answers(chapter, exercise),
        "share": round(100 * count / _answers(chapter, exercise)),
    } for (exercise, key), count in rows]


def _answers(chapter, exercise):
    outcomes = chapter.outcomes[exercise]
    return (outcomes.total() - outcomes["not attempted"]) or outcomes.total()


def _facts(chapter):
    """(label, value, what to say of it) of what counts for the whole chapter."""
    count = chapter.submissions
    yield "Submissions", str(count), f"{chapter.late} late" if chapter.late else ""
    if chapter.max_points:
        mean = sum(points * many for points, many in chapter.points.items()) / count
        yield "Median", _plain(_median(chapter.points)), f"of {chapter.max_points} points"
        yield "Mean", _plain(round(mean, 1)), f"of {chapter.max_points} points"
    if chapter.not_graded:
        yield "Not graded", str(chapter.not_graded), "counted as 0 points"
    if chapter.stopped:
        yield ("Stopped", str(chapter.stops),
               f"cells or calls, in {chapter.stopped} of the submissions")
    if chapter.seconds:
        yield ("Processor time", f"{chapter.seconds:.1f} s",
               f"{chapter.longest:.1f} s for the longest submission")


def _median(counts):
    values = sorted(counts)
    total = counts.total()
    seen, middle = 0, []
    for value in values:
        for place in ((total - 1) // 2, total // 2):
            if seen <= place < seen + counts[value]:
                middle.append(value)
        seen += counts[value]
    return sum(middle) / 2


def _plain(value):
    return f"{value:g}"


def _bins(chapter):
    """Tenths of the points: the bounds in percent, how many students, and the part of the highest.
    """
    counts = [0] * BINS
    for points, many in chapter.points.items():
        counts[min(points * BINS // chapter.max_points, BINS - 1)] += many
    return [{"low": place * 100 // BINS, "high": (place + 1) * 100 // BINS, "count": count,
             "part": round(count / max(counts), 3)}
            for place, count in enumerate(counts)]
