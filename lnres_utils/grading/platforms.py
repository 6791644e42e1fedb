"""Grades into the tables that Canvas and Moodle export: one column filled, all other bytes kept.

The teacher exports a table, this module fills it, and the teacher imports it again. What Canvas
reads is told by its ``gradebook_importer.rb``, what Moodle reads by the plugin
``assignfeedback_offline``.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from lnres_utils.grading import tables
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.filling import Line, Total, filled, number, totals, words
from lnres_utils.grading.texts import clean, folded

__all__ = ["Total", "fill_canvas", "fill_moodle_gradebook", "fill_moodle_worksheet",
           "moodle_names", "totals"]

CANVAS_PEOPLE = ("SIS User ID", "SIS Login ID", "Integration ID")
CANVAS_TOTALS = re.compile("(Current|Final|Override) (Score|Points|Grade|Status)")
CANVAS_TITLE = re.compile(r"(.*) \((\d+)\)")  # a column is called "Title (number)"
CANVAS_KEPT = ("ex", "n/a")  # excused; the assignment is not for this student
MOODLE_PEOPLE = ("ID number", "Email address", "Username")
MOODLE_WORKSHEET = ("Identifier", "Grade", "Last modified (grade)")  # what Moodle needs to read it
MOODLE_MORE = ("Full name", "Maximum grade", "Grade can be changed", "Feedback comments")
MOODLE_COLUMNS = (*MOODLE_WORKSHEET, *MOODLE_MORE, *MOODLE_PEOPLE, "First name", "Last name")
MOODLE_NO = ("no", "nein", "non", "nee", "não", "nie", "ne", "nej", "nei", "ei", "нет", "hayır")
MOODLE_REMEDY = ("Export it again, and keep its columns; or, if the site speaks another language, "
                 "say what it calls them: --moodle-columns 'Identifier=ID' --moodle-columns "
                 "'Grade=Bewertung', and so on.")
MOODLE_TOTALS = ("Course total", "Category total", "Last downloaded")


def fill_canvas(export: bytes, totals: Iterable[Total], column: str | None = None, *,
                overwrite=False, scale=False) -> tuple[bytes, tuple[str, ...]]:
    """Fill one column of an exported Canvas gradebook.

    Parameters
    ----------
    column : the assignment's title, with or without its number, or the number alone; may be left
        out where the table has one assignment
    overwrite : whether a grade that is there may be replaced
    scale : whether points are stretched to the column's "Points Possible"

    Returns
    -------
    (bytes of the filled table, notes for the teacher)

    Raises
    ------
    GradingError where the table is no such export, the column is not there, or points are more
    than the column allows
    """
    table = tables.read(export, ("ID", "Section"), "a Canvas gradebook")
    at = _canvas_column(table, column)
    names = [place for place, name in enumerate(table.header)
             if name in ("Student", "FirstName", "LastName")]
    if not names:
        raise GradingError("A Canvas gradebook has the column 'Student'; this file has not. Export "
                           "it again, and leave the columns as they are.")
    maximum, lines, notes = None, [], []
    for row in table.rows:
        texts = [cell.text.strip() for cell in row]
        if "Points Possible" in texts[0]:
            maximum = _canvas_maximum(texts[at:at + 1])
        elif not _is_canvas_student(texts):
            continue
        elif len(row) <= at:
            notes.append(f"{clean(texts[0])}: the line ends before the column; it is left as it is")
        else:
            lines.append(_canvas_line(table, row, names, at, maximum))
    return filled(table, lines, totals, notes, overwrite, scale)


def _canvas_column(table, asked):
    """The place of the column to fill."""
    after = table.header.index("Section") + 1
    titles = {place: name for place, name in enumerate(table.header)
              if place >= after and not CANVAS_TOTALS.search(name)}
    if asked is None:
        found = [place for place, name in titles.items() if CANVAS_TITLE.fullmatch(name)]
    else:
        found = [place for place, name in titles.items() if name == asked.strip()] or [
            place for place, name in titles.items()
            if folded(asked) in map(folded, (name, *_title_and_number(name)))]
    return _only(found, asked, titles)


def _title_and_number(name):
    match = CANVAS_TITLE.fullmatch(name)
    return match.groups() if match else ()


def _only(found, asked, titles):
    """The one place that was found."""
    if len(found) == 1:
        return found[0]
    have = ", ".join(repr(clean(name)) for name in titles.values()) or "none"
    if asked is None:
        raise GradingError("The column to fill is not named, and this file has not exactly one "
                           f"that can be filled; name one of {have}.")
    raise GradingError(f"The column {asked!r} is {'several times' if found else 'not'} in this "
                       f"file; one of these was expected: {have}.")


def _canvas_maximum(texts):
    said = texts[0] if texts else ""
    if said.startswith("("):  # "(read only)", in the teacher's language
        raise GradingError(f"Canvas does not read this column: its points possible are {said!r}. "
                           "Name the column of an assignment.")
    return number(said)


def _is_canvas_student(texts):
    """Not the line about what is posted by hand, and not the student that the teacher plays."""
    if all(re.fullmatch("|muted|manual posting.*", text, re.IGNORECASE) for text in texts):
        return False
    return folded(texts[0]) not in ("student, test", "test student")


def _canvas_line(table, row, names, at, maximum):
    texts = {name: cell.text.strip() for name, cell in zip(table.header, row, strict=False)}
    shown = ", ".join(row[place].text.strip() for place in names)
    there = row[at].text.strip()
    return Line(
        shown=shown,
        number=texts["ID"],
        words=words([texts["ID"], *(texts.get(name, "") for name in CANVAS_PEOPLE)], shown),
        grade=row[at],
        maximum=maximum,
        kept=f"{there} stands there" if there.casefold() in CANVAS_KEPT else "",
    )


def moodle_names(pairs: Iterable[str]) -> dict[str, str]:
    """What a Moodle site in another language calls its columns, from texts "Grade=Bewertung".

    Raises
    ------
    GradingError for another text, and for a column that is not used
    """
    known, names = {folded(name): name for name in MOODLE_COLUMNS}, {}
    for pair in pairs:
        name, _, word = map(str.strip, pair.partition("="))
        if not word or folded(name) not in known:
            raise GradingError(f"--moodle-columns is {pair!r}; Moodle's English name of a column, "
                               "=, and what this site calls it was expected, such as "
                               f"'Grade=Bewertung', with one of {', '.join(MOODLE_COLUMNS)}.")
        names[known[folded(name)]] = word
    return names


def fill_moodle_worksheet(export: bytes, totals: Iterable[Total], *, overwrite=False, scale=False,
                          comments=False, names: Mapping[str, str] | None = None,
                          ) -> tuple[bytes, tuple[str, ...]]:
    """Fill the offline grading worksheet of a Moodle assignment; compare ``fill_canvas``.

    Parameters
    ----------
    scale : whether points are stretched to the "Maximum grade" of each line
    comments : whether "Feedback comments" gets the outcome of each exercise
    names : what the columns are called where the site speaks another language, such as
        {"Grade": "Bewertung"}
    """
    table = tables.read(export, MOODLE_WORKSHEET, "a Moodle grading worksheet", names,
                        MOODLE_REMEDY)
    places = {folded(name): place for place, name in enumerate(table.header)}

    def cell(row, name):
        place = places.get(folded(name), len(row))
        return row[place] if place < len(row) else None

    def text(row, name):
        return cell(row, name).text.strip() if cell(row, name) else ""

    lines, notes = [], []
    unnamed = ", ".join(repr(name) for name in MOODLE_MORE if folded(name) not in places)
    if names and unnamed:
        notes.append(f"not in this table, or not named with --moodle-columns: {unnamed}")
    for row in table.rows:
        identifier = text(row, "Identifier")
        if len(row) < len(table.header):
            notes.append(f"{clean(identifier)}: the line is too short; it is left as it is")
            continue
        participant = re.search(r"\d*$", identifier).group()
        ids = [identifier, *(text(row, name) for name in MOODLE_PEOPLE)]
        lines.append(Line(
            shown=text(row, "Full name") or identifier,
            number=participant,
            words=words([participant, *ids], text(row, "Full name")),
            grade=cell(row, "Grade"),
            maximum=number(text(row, "Maximum grade")),
            comment=cell(row, "Feedback comments") if comments else None,
            kept="Moodle lets nobody change it"
            if folded(text(row, "Grade can be changed")) in MOODLE_NO else "",
        ))
    return filled(table, lines, totals, notes, overwrite, scale)


def fill_moodle_gradebook(export: bytes, totals: Iterable[Total], column: str | None = None, *,
                          maximum=None, overwrite=False, scale=False,
                          names: Mapping[str, str] | None = None,
                          ) -> tuple[bytes, tuple[str, ...]]:
    """Fill one column of a course's grades, exported by Moodle as plain text.

    Compare ``fill_canvas``. On import, "Email address" or "ID number" tells who a line is about.
    The table does not say how many points a column allows: ``maximum`` does. ``names`` are those
    of ``fill_moodle_worksheet``.
    """
    table = tables.read(export, (), "a Moodle gradebook", names)
    known = [name for name in MOODLE_PEOPLE if name in table.header]
    if not known:
        own = tables.read(export, (), "a Moodle gradebook").header
        raise GradingError("A Moodle gradebook has the column 'Email address' or 'ID number', and "
                           "a grading worksheet 'Identifier'; the first line of this file has "
                           f"{tables.listed(own)}. {MOODLE_REMEDY}")
    if scale and maximum is None:
        raise GradingError("The points cannot be scaled: the table does not say how many the "
                           "column allows. Tell its maximum.")
    at = _moodle_column(table, column)
    lines, notes = [], []
    for row in table.rows:
        texts = {name: cell.text.strip() for name, cell in zip(table.header, row, strict=False)}
        ids = [texts.get(name, "") for name in known]
        name = " ".join(filter(None, (texts.get("First name"),
                                      texts.get("Last name") or texts.get("Surname"))))
        if len(row) <= at:
            notes.append(f"{clean(name)}: the line ends before the column; it is left as it is")
            continue
        lines.append(Line(name or next(filter(None, ids), "a line without a name"), "",
                          words(ids, name), row[at],
                          None if maximum is None else Decimal(str(maximum))))
    return filled(table, lines, totals, notes, overwrite, scale)


def _moodle_column(table, asked):
    titles = {place: name for place, name in enumerate(table.header)  # "Assignment: Title (Real)"
              if name.endswith(")") and not name.startswith(MOODLE_TOTALS)}
    wanted = folded(asked or "")
    found = [place for place, name in enumerate(table.header)
             if folded(name) == wanted and name not in MOODLE_PEOPLE] or [
        place for place, name in titles.items() if wanted in folded(name)]
    return _only(found, asked, titles)
