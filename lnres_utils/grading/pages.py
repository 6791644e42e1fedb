"""What feedback and the page on the class share: templates, the words for outcomes, links."""

import functools
import re

import jinja2
from markupsafe import Markup

from lnres_utils import specs
from lnres_utils.checking.report import SYMBOLS
from lnres_utils.grading.errors import GradingError
from lnres_utils.grading.texts import clean
from lnres_utils.markup import code

OUTCOMES = ("right", "wrong", "raised", "not attempted")
SCHEMES = ("http", "https", "file")
TITLES = {"pre-and-post-norm": "Pre-norm and post-norm", "rmsnorm": "RMSNorm"}


def render(template, book="", **values):
    """A page as text, complete in itself: no script, nothing from elsewhere."""
    return _templates().get_template(template).render(book=checked_address(book), **values)


def checked_address(book):
    """The address of the book with a slash at its end, or "" where there is none.

    Raises
    ------
    GradingError where it is no address that a page may link to
    """
    book = clean(book)
    scheme, colon, _ = book.partition("/")[0].partition(":")
    if colon and scheme.lower() not in SCHEMES:
        raise GradingError(f"The address of the book is {book!r}; one that starts with https:// or "
                           "a folder was expected.")
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
