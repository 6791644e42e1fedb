"""Text as HTML, for all reports."""

from html import escape


def code(text):
    """Escape, and show `backticked` parts as code."""
    parts = escape(text, quote=False).split("`")
    if len(parts) % 2 == 0:  # an odd backtick: leave the text as it is
        return escape(text, quote=False)
    return "".join(f"<code>{part}</code>" if index % 2 else part
                   for index, part in enumerate(parts))
