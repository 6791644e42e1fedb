"""From the bytes of a file to the cells of a notebook, or to one line on why it has none.

Notebooks are read as JSON and nothing more: nothing is converted or validated, so that whatever
still holds cells is read. An old format (3, with worksheets) and the present one (4) come out
the same.
"""

import json
import re
from dataclasses import dataclass

from lnres_utils.grading.errors import Unreadable

LARGEST = 64 << 20  # bytes of a notebook
MOST_VALUES = 4_000_000  # about 300 MB once they are Python objects
_TEXT_KINDS = ("markdown", "raw", "heading", "html")
_OTHER_FILES = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a zip archive or an Office file",
    b"PK\x05\x06": "an empty zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"{\\rtf": "an RTF text",
    b"version https://git-lfs": "a pointer of Git LFS",
}


@dataclass(frozen=True)
class RawCell:
    """A cell as it stands in the file."""

    number: int  # from 1, all kinds of cells counted
    kind: str  # "code", "markdown", "raw", "heading"
    source: str
    metadata: dict


def cells_of(data, name):
    """Read the cells of the notebook whose bytes are ``data``.

    Returns
    -------
    list of RawCell, and a list of notes for the teacher.

    Raises
    ------
    Unreadable with one line on why there are none.
    """
    if len(data) > LARGEST:
        raise Unreadable(too_large(len(data)))
    if not data.strip(b"\0 \t\r\n"):
        raise Unreadable("holds nothing but zero bytes" if b"\0" in data else "an empty file")
    for start, kind in _OTHER_FILES.items():
        if data.startswith(start):
            raise Unreadable(f"{kind}, not a notebook")
    if sum(data.count(mark) for mark in b",[{") > MOST_VALUES:
        raise Unreadable(f"over {MOST_VALUES:,} values in it; clear its outputs and save it")
    text, notes = _decoded(data)
    listed = _listed(_loaded(text, name))
    numbered = ((number, cell) for number, cell in enumerate(listed, 1) if isinstance(cell, dict))
    return [_raw_cell(number, cell) for number, cell in numbered], notes


def too_large(size):
    """Why a file of ``size`` bytes is not read."""
    return (
        f"{size / 2**20:.0f} MiB, over the {LARGEST >> 20} MiB that are read; "
        "clear its outputs and save it"
    )


def _decoded(data):
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding), []
    except UnicodeDecodeError:
        notes = [f"some of its bytes are no {encoding.upper()}; they were replaced"]
        return data.decode(encoding, "replace"), notes


def _loaded(text, name):
    try:
        return json.loads(text.rstrip("\0"), strict=False)
    except json.JSONDecodeError as error:
        raise Unreadable(_why_no_json(text, error, name)) from None
    except RecursionError:
        raise Unreadable("its JSON is nested too deeply for a notebook") from None
    except ValueError:  # Python refuses integers of more than 4300 digits
        raise Unreadable("a number of thousands of digits in it: not a notebook") from None


def _why_no_json(text, error, name):
    start = text[:1000].lstrip()
    conflict = re.search(r"(?m)^<{7}( |$)", text)
    place = f"line {error.lineno}, column {error.colno}"
    if re.match(r"(?i)<(!doctype|html|head|body|\?xml|!--)", start):
        return "an HTML page, not the notebook itself; download the .ipynb file"
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        return f"an unresolved git merge conflict in it (line {line}); resolve it"
    if re.match(r"[\[{][\s\[{]*'", start):
        return "written as Python (single quotes), not as JSON; save it in Jupyter"
    if re.search(r"\.ipynb(\.\w+)?$", name, re.IGNORECASE) is None:
        return f"a file named {name.split('/')[-1][-60:]!r}, not a notebook"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"truncated: its JSON ends too early ({place})"
    return f"not valid JSON: {error.msg} ({place})"


def _listed(content):
    """The cells of a notebook of either format."""
    if not isinstance(content, dict):
        kind = "a list" if isinstance(content, list) else "a single value"
        raise Unreadable(f"its JSON is {kind}, not a notebook")
    sheets = content.get("worksheets")
    sheets = [sheet for sheet in sheets if isinstance(sheet, dict)] if _is_list(sheets) else []
    for cells in (content.get("cells"), *(sheet.get("cells") for sheet in sheets)):
        if cells is not None and not _is_list(cells):
            raise Unreadable("its `cells` are not a list: not a notebook")
    if content.get("cells") is None and not sheets:
        raise Unreadable("no cells in its JSON: not a notebook")
    return [*(content.get("cells") or []), *(c for s in sheets for c in s.get("cells") or [])]


def _is_list(value):
    return isinstance(value, list)


def _raw_cell(number, cell):
    kind = cell.get("cell_type")
    if kind not in ("code", *_TEXT_KINDS):
        kind = "code" if "outputs" in cell or "execution_count" in cell else "raw"
    metadata = cell.get("metadata")
    source = _text(cell.get("source")) or _text(cell.get("input"))
    return RawCell(number, kind, source, metadata if isinstance(metadata, dict) else {})


def _text(value):
    """The text of a source, whole or in lines; what cannot be written as UTF-8 is replaced."""
    lines = value if _is_list(value) else [value]
    text = "".join(line for line in lines if isinstance(line, str))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace").decode("utf-8")
