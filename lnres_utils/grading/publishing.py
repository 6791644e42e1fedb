"""From the stored results to what a teacher opens: tables, and pages for students and the class."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from lnres_utils.grading import storing, tables
from lnres_utils.grading.class_page import class_page
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.feedback import feedback
from lnres_utils.grading.gradebook import gradebook, nbgrader, points
from lnres_utils.grading.pages import address
from lnres_utils.grading.platforms import (
    fill_canvas,
    fill_moodle_gradebook,
    fill_moodle_worksheet,
    totals,
)
from lnres_utils.writing import write_whole

FEEDBACK = "feedback"


def publish(out: Path, *, book="", for_nbgrader=False, watch: Callable = iter):
    """Write the tables and pages of a run; each is replaced whole or not at all.

    Parameters
    ----------
    out : the folder that holds the results
    book : address or folder of the built book, for the links of pages
    for_nbgrader : whether ``nbgrader.csv`` is written, too
    watch : callable that is given the pages of students as an iterable, and gives what it yields

    """
    try:
        pages = out / FEEDBACK
        pages.mkdir(exist_ok=True)
        written = set()
        for name, page in watch(feedback(storing.results(out), address(book, pages))):
            storing.write(pages / name, [page])
            written.add(name)
        for page in pages.glob("*.html"):
            if page.name not in written:  # of a student who is no longer among them
                page.unlink()
        storing.write(out / "class.html", [class_page(storing.results(out), address(book, out))])
        storing.write(out / "results.jsonl",
                      map(storing.text_of, storing.results(out)))
        if for_nbgrader:
            storing.write(out / "nbgrader.csv", nbgrader(storing.results(out)))
        storing.write(out / "totals.csv", points(storing.results(out)))
        storing.write(out / "gradebook.csv", gradebook(storing.results(out)))
    except OSError as error:
        raise storing.cannot_write(out, error) from None


def fill(out: Path, canvas=None, moodle=None, chapter=None, names=None, **settings):
    """Write filled copies of tables that the teacher exported.

    Parameters
    ----------
    canvas, moodle : paths of the exported tables, or None
    chapter : slug, needed if the results are of several: a column is one assignment
    names : {a column of Moodle: what its table calls it}, for a site in another language
    settings : ``column``, ``overwrite``, ``scale``; see ``platforms``

    Returns
    -------
    list of (path of the copy, notes for the teacher)
    """
    tables_given = [(path, filler) for path, filler in _fillers(canvas, moodle, names) if path]
    chapters = {result.chapter for result in storing.results(out)} - {""} if tables_given else ()
    if len(chapters) > 1 and chapter is None:
        raise GradingError(f"The results are of {len(chapters)} chapters, and a column holds one: "
                           f"add --chapter with one of {', '.join(sorted(chapters))}.")
    written = []
    for path, filler in tables_given:
        filled, notes = filler(_bytes(path), totals(storing.results(out), chapter), **settings)
        copy = out / f"filled-{path.name}"
        try:
            write_whole(copy, [filled])
        except OSError as error:
            raise storing.cannot_write(copy, error) from None
        written.append((copy, notes))
    return written


def examine(canvas=None, moodle=None, names=None, **settings):
    """Raise, before anything is graded, what is wrong with the tables; compare ``fill``."""
    for path, filler in _fillers(canvas, moodle, names):
        if path:
            filler(_bytes(path), [], **settings)


def _fillers(canvas, moodle, names):
    return (canvas, fill_canvas), (moodle, partial(_fill_moodle, names=names))


def _fill_moodle(export, found, column=None, names=None, **settings):
    """An assignment's worksheet, or the grades of a course."""
    if "Identifier" in tables.read(export, (), "a Moodle table", names).header:
        if column is not None:
            raise GradingError(f"--column is {column!r}; a Moodle grading worksheet has one "
                               "column for grades. Leave --column out.")
        return fill_moodle_worksheet(export, found, comments=True, names=names, **settings)
    return fill_moodle_gradebook(export, found, column, names=names, **settings)


def _bytes(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise GradingError(f"{str(path)!r} cannot be read: {error.strerror or error}") from None


