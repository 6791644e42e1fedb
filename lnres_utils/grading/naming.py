"""Whose file it is: what the names say that Canvas, Moodle, nbgrader and people give to files."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from lnres_utils.grading.errors import GradingError
from lnres_utils.specs import CHAPTERS

NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.IGNORECASE)  # some browsers add an ending

# Moodle: a folder `Full Name_12345_assignsubmission_file`, in older versions with _ at its end; or
# without folders `Full Name_12345_assignsubmission_file_x.ipynb`. In an anonymous assignment
# the name is the word for "participant" in the site's language.
_MOODLE = re.compile(r"(?P<student>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(_.*)?", re.DOTALL)
# Canvas: sortable name, `late`, user, file, the name it was uploaded with; all in lower case. An
# anonymous assignment has no name, or `anon` and letters and digits for the user.
_CANVAS = re.compile(
    r"(?:(?P<student>.+?)_)?(?P<late>late_)?(?P<id>\d+)_(?P<file>\d+)_(?P<name>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CANVAS_ANONYMOUS = re.compile(
    r"(?P<student>anon)_(?P<late>late_)?(?P<id>[^_]+)_(?P<file>\d+)_(?P<name>.+)",
    re.IGNORECASE | re.DOTALL,
)
_SLUGS = "|".join(slug.replace("-", "[-_ ]") for slug in CHAPTERS)
_AGAIN = r"(?:-(?P<again>\d{1,3})|[ _]?\((?P<copy>\d{1,3})\))?"  # uploaded or downloaded again
_WITH_CHAPTER = re.compile(
    rf"(?P<student>.*?)(?P<between>[-_. ]*)(?P<chapter>{_SLUGS}){_AGAIN}", re.IGNORECASE | re.DOTALL
)
_STEM = re.compile(rf"(?P<stem>.*?){_AGAIN}", re.DOTALL)


@dataclass(frozen=True)
class Owner:
    """Whose file it is."""

    student: str
    learner_id: str = ""
    assignment: str = ""
    late: bool = False
    number: int = 0  # that the platform gave to the file: a newer file has a larger one
    is_certain: bool = False  # a platform or the teacher's pattern says so
    note: str = ""

    @property
    def identity(self):
        """Files of one student, and of no other, have the same."""
        return ("", self.learner_id) if self.learner_id else (self.student, "")


def of_moodle(parts):
    """The Owner that the names of Moodle's folders and files tell, or None."""
    for part in parts:
        match = _MOODLE.fullmatch(part)
        if match:
            return Owner(match["student"], match["id"], is_certain=True)
    return None


def of_canvas(parts):
    """The Owner that the name of a file from Canvas tells, or None."""
    match = _CANVAS.fullmatch(parts[-1]) or _CANVAS_ANONYMOUS.fullmatch(parts[-1])
    if match is None:
        return None
    who, number = match["student"] or match["id"], int(match["file"])
    return Owner(who, match["id"], late=bool(match["late"]), number=number, is_certain=True)


def of_nbgrader(parts):
    """The Owner of ``student/assignment/.../file``."""
    return Owner(parts[0], assignment=parts[1]) if len(parts) > 2 else of_people(parts)


def of_people(parts):
    """The Owner of a file in a student's folder, or of a file that is called as the student."""
    if len(parts) > 1:
        return Owner(parts[0])
    stem = stem_of(parts[0])
    match = _with_chapter(parts[0])
    # ana_feature-axis is Ana's; feature-axis alone, or after letters, says nothing about whose.
    return Owner(match["student"] if match and match["student"] and match["between"] else stem)


def by_platform(paths, nbgrader=False):
    """The function that tells the Owner of each of ``paths``, chosen by the form of most of them.

    Parameters
    ----------
    paths : list of the parts of the path of each file
    nbgrader : whether they come from a folder `submitted`
    """
    others = [parts for parts in paths if of_moodle(parts) is None]
    rest: Callable = of_nbgrader if nbgrader or _has_assignments(others) else of_people
    canvas = sum(of_canvas(parts) is not None for parts in others)
    if not nbgrader and 2 * canvas > len(others):
        return lambda parts: of_moodle(parts) or of_canvas(parts) or rest(parts)
    return lambda parts: of_moodle(parts) or rest(parts)


def _has_assignments(paths):
    """Whether all are `student/assignment/file`: the same few folders in the folders of many."""
    assignments = {parts[1] for parts in paths if len(parts) > 2}
    students = {parts[0] for parts in paths}
    deep = all(len(parts) > 2 for parts in paths)
    return deep and 0 < 2 * len(assignments) <= len(students)


def by_pattern(pattern, paths):
    """The function that tells the Owner of a path by the teacher's own ``pattern``.

    Raises
    ------
    GradingError if it is no regular expression, has no group `student`, or fits none of ``paths``.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise GradingError(f"pattern {pattern!r} is no regular expression: {error}") from None
    if "student" not in compiled.groupindex:
        raise GradingError(f"pattern {pattern!r} has no group (?P<student>...); add it")

    def owner(parts):
        match = compiled.search("/".join(parts))
        groups = {key: text.strip() for key, text in match.groupdict("").items()} if match else {}
        if not groups.get("student"):
            return replace(of_people(parts), note="the pattern does not fit its path")
        known = (groups.get(key, "") for key in ("id", "assignment"))
        return Owner(groups["student"], *known, late=bool(groups.get("late")), is_certain=True)

    if all(owner(parts).note for parts in paths):
        tried = f"; tried on {'/'.join(paths[0])!r}" if paths else ""
        raise GradingError(f"pattern {pattern!r} fits no path{tried}")
    return owner


def is_from_platform(paths):
    """Whether most of ``paths`` are named by Canvas or Moodle."""
    named = sum(bool(of_moodle(parts) or of_canvas(parts)) for parts in paths)
    return 2 * named > len(paths)


def stem_of(name):
    """The name of a file without its ending."""
    return NOTEBOOK.sub("", name) if NOTEBOOK.search(name) else PurePosixPath(name).stem


def again_of(name):
    """How many times the file was uploaded before, as ``-1`` or ``(1)`` in its name says."""
    match = _STEM.fullmatch(stem_of(name))
    return int(match["again"] or match["copy"] or 0)


def chapter_in(name):
    """Slug of the chapter in the name of a file, "" if it names none."""
    match = _with_chapter(name)
    return re.sub("[_ ]", "-", match["chapter"].lower()) if match else ""


def is_chapter_alone(name):
    """Whether the name of a file is that of a chapter, as the course hands it out."""
    match = _with_chapter(name)
    return match is not None and not match["student"]


def _with_chapter(name):
    # Longer ones no file system has, but a zip file: the time to match grows with their square.
    return _WITH_CHAPTER.fullmatch(stem_of(name)) if len(name) < 300 else None
