"""Text as HTML, and in one line, for all reports."""

from html import escape


def flat(text):
    """Without line breaks, with one space between words."""
    return " ".join(str(text).split())


def one_line(error, most=160):
    """An exception in one line of so many characters."""
    text = flat(error)
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= most else text[:most - 3] + "..."


def code(text):
    """Escape, and show `backticked` parts as code."""
    parts = escape(text, quote=False).split("`")
    if len(parts) % 2 == 0:  # an odd backtick: leave the text as it is
        return escape(text, quote=False)
    return "".join(f"<code>{part}</code>" if index % 2 else part
                   for index, part in enumerate(parts))
