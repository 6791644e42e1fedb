"""What a check says: as text, as HTML that any notebook shows, and as plain data."""

from dataclasses import asdict, dataclass, field
from html import escape

from lnres_utils.markup import code

LESSON_ROOT = "../chapters/"  # from exercises/ and solutions/, where reports are shown
SYMBOLS = {"right": "✓", "wrong": "✗", "raised": "!", "not attempted": "○",
           "not checked": "·"}
LINE = 64  # characters; longer lists of inputs get a line for each
PRINTED_LINES = 12  # shown of what the answer printed


@dataclass(frozen=True)
class Mistake:
    """A named mistake: a slug, one sentence, the lesson that explains it, the catalogue's id."""

    id: str
    sentence: str
    lesson: str = ""
    title: str = ""
    case: str = ""


@dataclass(frozen=True)
class Evidence:
    """The smallest failing case: its inputs, and what was given and expected."""

    group: str
    inputs: tuple[str, ...]
    output: str = ""
    phrase: str = ""
    given: str = ""
    expected: str = ""
    error: str = ""
    where: str = ""


@dataclass(frozen=True)
class Report:
    """The result of a check.

    Attributes
    ----------
    outcome : "right", "wrong", "raised" or "not attempted"
    points, max_points : int
    mistakes : tuple of Mistake; ``certainty`` says whether it is "one" mistake, "both" of two at
        once, "each" of several (one a question), or "one of" several that no input tells apart
    """

    exercise: str
    outcome: str
    points: int
    max_points: int
    lesson: str = ""
    reason: str = ""
    public_reason: str = ""  # where the reason has words that the answer could have chosen
    mistakes: tuple[Mistake, ...] = ()
    certainty: str = "one"
    evidence: Evidence | None = None
    broken: tuple[str, ...] = ()
    scores: tuple[tuple[str, int, int], ...] = ()
    results: str = "numbers"  # what a mistake explains
    quiet: bool = False  # which points are missed is kept for later
    printed: str = field(default="", repr=False)
    printed_length: int = 0

    @property
    def headline(self):
        if self.outcome == "not attempted":
            return f"{self.exercise}: not attempted"
        return f"{self.exercise}: {self.outcome}, {self.points} of {self.max_points} points"

    @property
    def text(self):
        return "\n".join(self._lines())

    def __repr__(self):
        return self.text

    def to_dict(self):
        """Everything, as dicts, lists, strings and numbers."""
        return asdict(self)

    def public(self):
        """What feedback may show: no hidden input, no expected value, no exception text."""
        return {
            "exercise": self.exercise,
            "outcome": self.outcome,
            "points": self.points,
            "max_points": self.max_points,
            "reason": self.public_reason or self.reason,
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
            "certainty": self.certainty,
            "lesson": self.lesson,
            "scores": [] if self.quiet else [list(score) for score in self.scores],
        }

    def _lead(self):
        """The sentence before the named mistakes."""
        count = self._named()
        if count < 2 or self.certainty == "each":
            return ""
        if self.certainty == "both":
            return "Two mistakes at once explain this exactly:"
        return f"These mistakes give the same {self.results} here; it is one of them:"

    def _named(self):
        """How many mistakes explain the numbers; to change the input does not."""
        return sum(1 for mistake in self.mistakes if mistake.lesson)

    def _nothing_named(self):
        """The sentence that stands where a name would: numbers are wrong and nothing fits."""
        if self._named() or not (self.broken or self.evidence and self.evidence.given):
            return ""
        return f"No known mistake gives these {self.results}." + (" But:" if self.broken else "")

    def _facts(self):
        """(label, value) rows of the evidence; a value may have several lines."""
        case = self.evidence
        if case is None or not (case.error or case.phrase):
            return  # the reason has said it all
        if case.error:
            yield "error", case.error.rstrip(":")
            if case.where:
                yield "at", case.where
        if not (case.given and case.phrase.endswith("wrong values")):  # those are shown below
            yield from [("first difference", case.phrase)] if case.phrase else []
        if case.given:
            given, expected = _aligned(case.given, case.expected)
            yield f"your {case.output}", given
            yield from [("expected", expected)] if expected else []
        inputs = "; ".join(case.inputs)
        if inputs:
            yield "inputs", inputs if len(inputs) <= LINE else "\n".join(case.inputs)

    def _printed(self):
        lines = self.printed.splitlines()
        more = len(lines) > PRINTED_LINES or self.printed_length > len(self.printed)
        return lines[:PRINTED_LINES] + (["…"] if more else [])

    def _missed(self):
        if self.points == 0 or self.outcome == "right" or self.quiet:
            return []  # the headline says it
        return [f"{group} ({most})" for group, points, most in self.scores if points == 0]

    def _lines(self):
        yield f"{SYMBOLS[self.outcome]} {self.headline}"
        if self.reason:
            yield f"  {self.reason}"
        if self._lead():
            yield f"  {self._lead()}"
        for mistake in self.mistakes:
            yield f"  → {mistake.sentence}"
            if mistake.lesson:
                yield f"    Read: {LESSON_ROOT}{mistake.lesson}.ipynb"
        if self._nothing_named():
            yield f"  {self._nothing_named()}"
        yield from (f"  → {sentence}" for sentence in self.broken)
        facts = tuple(self._facts())
        width = max((len(label) for label, _ in facts), default=0)
        for label, value in facts:
            yield f"  {label.ljust(width)}  " + value.replace("\n", "\n" + " " * (width + 4))
        if self._missed():
            yield f"  points missed: {', '.join(self._missed())}"
        if self.printed_length:
            yield f"  your code printed {self.printed_length} characters:"
            yield from (f"  | {line}" for line in self._printed())
        if self.outcome != "right":
            yield f'  Stuck? hint("{self.exercise}")'

    def _repr_html_(self):
        """HTML with inline styles and inherited colors only: it survives untrusted notebooks."""
        parts = [f"<strong>{SYMBOLS[self.outcome]} {escape(self.headline)}</strong>"]
        if self.reason:
            parts.append(_paragraph(code(self.reason)))
        if self._lead():
            parts.append(_paragraph(code(self._lead())))
        parts += [_paragraph(_mistake_html(mistake)) for mistake in self.mistakes]
        if self._nothing_named():
            parts.append(_paragraph(self._nothing_named()))
        parts += [_paragraph(f"→ {code(sentence)}") for sentence in self.broken]
        rows = "".join(_row(label, value) for label, value in self._facts())
        if rows:
            parts.append(f'<table style="border-collapse:collapse;margin:.4em 0">{rows}</table>')
        if self._missed():
            parts.append(_paragraph(escape(f"Points missed: {', '.join(self._missed())}")))
        if self.printed_length:
            text = "\n".join(self._printed())
            parts.append(_paragraph(f"Your code printed {self.printed_length} characters:"))
            parts.append(f'<pre style="margin:.2em 0">{escape(text)}</pre>')
        if self.outcome != "right":
            parts.append(_paragraph(code(f'Stuck? `hint("{self.exercise}")`')))
        body = "".join(f"<div>{part}</div>" for part in parts)
        return (f'<div role="group" aria-label="Check of {escape(self.exercise)}" '
                f'style="border-left:.25em solid;padding:.2em .8em">{body}</div>')


def _aligned(*rows):
    """Rows of numbers with their commas one below the other, if they have equally many."""
    cells = [row.split(", ") for row in rows]
    if len({len(row) for row in cells}) > 1 or not all(row.startswith("[") for row in rows):
        return rows
    cells = [[row[0][1:], *row[1:]] for row in cells]  # without the bracket, which stays in front
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = ([text.rjust(width) for text, width in zip(row, widths, strict=True)]
              for row in cells)
    return tuple(f"[{', '.join(row)}" for row in padded)


def _mistake_html(mistake):
    link = ""
    if mistake.lesson:
        link = (f' <a href="{LESSON_ROOT}{escape(mistake.lesson)}.ipynb" '
                f'style="text-decoration:underline">Read “{escape(mistake.title)}”</a>')
    return f"→ {code(mistake.sentence)}{link}"


def _row(label, value):
    cell = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0"
    return (f'<tr style="background:none"><th scope="row" '
            f'style="{cell};font-weight:normal;white-space:nowrap">{escape(label)}</th>'
            f'<td style="{cell};font-family:monospace;white-space:pre-wrap">{escape(value)}</td>'
            "</tr>")


def _paragraph(html):
    return f'<p style="margin:.3em 0">{html}</p>'
