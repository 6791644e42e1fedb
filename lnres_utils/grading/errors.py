"""What a teacher can set right: the command prints it in one line."""


class GradingError(Exception):
    """Names the value, what was expected, and what to do."""


class Unreadable(GradingError):
    """Says what is wrong with a file in words that whoever handed it in may read."""


class Interrupted(GradingError):
    """Somebody pressed Ctrl-C; the text says what is kept."""
