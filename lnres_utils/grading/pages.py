"""What feedback and the page on the class share: templates, the words for outcomes, links."""

import functools
import os
import re
from pathlib import Path
from urllib.parse import quote, urlsplit

import jinja2
from markupsafe import Markup

from lnres_utils import specs
from lnres_utils.checking.report import SYMBOLS
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.texts import clean
from lnres_utils.markup import code

OUTCOMES = ("right", "wrong", "raised", "not attempted")
TITLES = {"pre-and-post-norm": "Pre-norm and post-norm", "rmsnorm": "RMSNorm"}


def render(template, book="", **values):
    """A page as text, complete in itself: no script, nothing from elsewhere.

    ``book`` is an ``address``, or "".
    """
    return _templates().get_template(template).render(book=book, **values)


def address(book, folder):
    """How pages in ``folder`` link to the book: its address, or a relative one, with a slash at
    its end; "" where there is none.

    Parameters
    ----------
    book : an address on the web, or the folder of a built book
    folder : Path

    Raises
    ------
    GradingError where it is neither
    """
    if not _is_built(book):
        return _web_address(book)
    inside, book = os.path.abspath(folder), os.path.abspath(book)
    try:
        return quote(Path(os.path.relpath(book, inside)).as_posix()) + "/"
    except ValueError:  # on another drive of Windows
        return Path(book).as_uri() + "/"


def _is_built(book):
    try:
        return book != "" and any((Path(book) / "chapters" / f"{slug}.html").is_file()
                                  for slug in specs.LESSONS)
    except (OSError, ValueError):  # too long for a path, or with a null byte in it
        return False


def _web_address(book):
    """An address on the web with a slash at its end, or "" where there is none.

    Raises
    ------
    GradingError where it is no address that a page may link to
    """
    book = clean(book)
    try:
        parts = urlsplit(book)
    except ValueError:
        parts = urlsplit("")
    if book and not (parts.scheme in ("http", "https") and parts.netloc):
        raise GradingError(f"The address of the book is {book!r}; one that starts with https:// or "
                           "http:// was expected, or the folder of a built book, in which "
                           "chapters/ and index.html lie.")
    return book and book.rstrip("/") + "/"


def chapter_title(chapter):
    return TITLES.get(chapter) or chapter.replace("-", " ").capitalize() or "No chapter"


@functools.cache
def _templates():
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("lnres_utils.grading"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"prose": lambda text: Markup(code(clean(text))), "name": _name,
                          "plain": clean, "class_name": lambda outcome: outcome.replace(" ", "-")}
    templates.globals |= {"symbols": SYMBOLS, "outcomes": OUTCOMES, "lessons": specs.LESSONS,
                          "chapter_title": chapter_title}
    return templates


def _name(text):
    """The name of an exercise, which a narrow screen may break after an underscore."""
    return Markup("<code>{}</code>").format(
        Markup(re.sub("_(?=.)", "_<wbr>", str(Markup.escape(clean(text))))))
