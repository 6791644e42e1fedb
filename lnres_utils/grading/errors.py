"""What a teacher can set right: the command prints it in one line."""


class GradingError(Exception):
    """Names the value, what was expected, and what to do."""


class Interrupted(GradingError):
    """Somebody pressed Ctrl-C; the text says what is kept."""
