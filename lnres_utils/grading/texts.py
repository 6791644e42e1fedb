"""Words that students chose, on their way into tables, pages and file names."""

import hashlib
import re
import unicodedata

JOINERS = "\u200c\u200d"  # the only unseen characters that words need
# Where a spreadsheet may see a formula: at the start, or where it takes a separator for the end of
# a cell. The wide signs are read as the plain ones in some languages.
FORMULA = re.compile(rf"""(^|[;"])(?=[\s"'`{JOINERS}]*[=+\-@＝＋－＠])""")
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")  # no names for files on Windows
LIKE_A_HASH = re.compile(r"-[0-9a-f]{8}$")
LONGEST = 60  # bytes of the readable part of a file's name


def clean(text):
    """In one line, without control characters and without what UTF-8 has no bytes for."""
    text = str(text)
    seen = text if text.isprintable() else "".join(map(_seen, text))
    return " ".join(seen.split())


def _seen(character):
    category = unicodedata.category(character)
    if category == "Cf" and character not in JOINERS:  # turns text around, or hides in it
        return ""
    return {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": "�"}.get(category, character)


def harmless(text):
    """Clean, and with an apostrophe before what a spreadsheet would take for a formula."""
    return FORMULA.sub(r"\1'", clean(text))


def folded(text):
    """For comparisons: one form of each letter, small, one space between words."""
    return clean(unicodedata.normalize("NFKC", str(text))).casefold()


def file_stem(student):
    """A file's name for a student, without its ending: readable, legal everywhere, unique.

    Two students get two names, also where "Ada" and "ada", or two ways to write an accent, are
    one. A name that is not kept as it stands gets a few digits of its hash.
    """
    letters = "".join(
        character if character in "._" or unicodedata.category(character)[0] in "LMN" else "-"
        for character in folded(student))
    slug = re.sub("[.-]{2,}", "-", letters).encode()[:LONGEST].decode(errors="ignore").strip(".-")
    if DEVICES.match(slug) or not slug:
        slug = f"student-{slug}".rstrip("-")
    elif slug == student and not LIKE_A_HASH.search(slug):
        return slug
    digest = hashlib.sha256(str(student).encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{slug}-{digest}"
