"""Tables of other programs, changed cell by cell: every other byte stays as it was."""

import re
from dataclasses import dataclass

from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.texts import clean, folded

DELIMITERS = ",;\t"
BOM = b"\xef\xbb\xbf"
WIDE = (b"\xff\xfe", b"\xfe\xff")  # the marks of UTF-16

WHOLE = re.compile(r'"(?:[^"]|"")*"\s*')  # a cell in quotes


@dataclass(frozen=True)
class Cell:
    """Where a cell stands in the bytes, quotes included, and what it says."""

    start: int
    end: int
    text: str
    quoted: bool = False


@dataclass(frozen=True)
class Table:
    """A table of cells; rows without any text are left out."""

    data: bytes
    delimiter: str
    encoding: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # below the header

    def filled(self, texts):
        """The bytes with other texts in some cells: pairs of a cell and its text."""
        parts, at = [], 0
        for cell, text in sorted(texts, key=lambda pair: pair[0].start):
            parts += [self.data[at:cell.start], self._written(text, cell.quoted)]
            at = cell.end
        return b"".join([*parts, self.data[at:]])

    def _written(self, text, quoted):
        if quoted or re.search(f'[{self.delimiter}"\r\n]', text):
            text = '"' + text.replace('"', '""') + '"'
        return text.encode(self.encoding, errors="replace")


def read(data, columns, kind, called=None, remedy="Export it again, and keep its columns."):
    """Read the bytes of a table.

    Parameters
    ----------
    columns : names that its header must have
    kind : what it is called in an error, such as "a Canvas gradebook"
    called : {name: what this file calls that column}; the Table has the name
    remedy : what to do where a column is missing

    Raises
    ------
    GradingError, in one line
    """
    if data.startswith(WIDE):
        raise GradingError(f"This file for {kind} is in UTF-16; the CSV file as it was exported "
                           "was expected, in UTF-8. Export it again.")
    try:
        data.decode()
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = "cp1252"  # what Excel saves as plain CSV
    delimiter = _delimiter(data)
    rows = _rows(data, delimiter, encoding)
    own = tuple(cell.text.strip() for cell in rows[0]) if rows else ()
    header = _renamed(own, called or {})
    missing = ", ".join(repr(name) for name in columns if name not in header)
    if missing:
        raise GradingError(f"{kind[0].upper()}{kind[1:]} has the column {missing}; the first line "
                           f"of this file has {listed(own)}. {remedy}")
    return Table(data, delimiter, encoding, header, tuple(rows[1:]))


def _renamed(own, called):
    """The header with the names that this package knows."""
    names = {folded(word): name for name, word in called.items()}
    absent = ", ".join(repr(clean(word)) for word in called.values()
                       if folded(word) not in map(folded, own))
    if absent:
        raise GradingError(f"No column of the table is called {absent}; its first line has "
                           f"{listed(own)}. Name columns as they are written there.")
    return tuple(names.get(folded(name), "" if name in called else name) for name in own)


def listed(header):
    """The first of its names, for an error."""
    return ", ".join(repr(clean(name)) for name in header[:12]) or "nothing"


def _delimiter(data):
    """The one that the first line has most often outside its quotes."""
    lines = data.removeprefix(BOM).decode("latin-1").lstrip()
    first = re.match(r'(?:"(?:[^"]|"")*"|[^"\r\n])*', lines).group()
    return max(DELIMITERS, key=re.sub(r'"[^"]*"', "", first).count)


def _rows(data, delimiter, encoding):
    """All rows that say anything. One character a byte: their places are those of the bytes."""
    text = data.decode("latin-1")
    at = len(BOM) if data.startswith(BOM) else 0
    field = re.compile(f'("(?:[^"]|"")*"[^{delimiter}\r\n]*|[^{delimiter}\r\n]*)'
                       f"({delimiter}|\r\n|\r|\n|\\Z)")
    rows, row = [], []
    while at <= len(text):
        match = field.match(text, at)
        raw, end = match.groups()
        if raw.startswith('"') and not WHOLE.fullmatch(raw):
            line = text.count("\n", 0, at) + 1
            raise GradingError(f"The quote in line {line} of the table has no end, or text behind "
                               "its end; a table as it was exported was expected. Export it again.")
        row.append(_cell(raw, match.start(), encoding))
        at = match.end()
        if end != delimiter:
            if any(cell.text.strip() for cell in row):
                rows.append(tuple(row))
            row = []
            if not end:
                break
    return rows


def _cell(raw, start, encoding):
    quoted = raw.startswith('"')
    said = raw.encode("latin-1").decode(encoding, errors="replace")
    if quoted:
        said = said.strip()[1:-1].replace('""', '"')
    return Cell(start, start + len(raw), said, quoted)
