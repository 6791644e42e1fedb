"""What an exercise is made of: cases, outputs, knobs and properties, as plain data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

INPUT_KEPT = "input kept"  # the case group that holds when no call changed its input


@dataclass(frozen=True)
class Case:
    """One call of the answer.

    ``group`` says which points it carries. A case that is not ``judged`` may only help to name a
    mistake; it never makes an answer wrong (a square shape, on which broadcasting goes unnoticed).
    """

    group: str
    inputs: Mapping[str, object]  # arrays, numbers, strings, and boxes that are only called
    judged: bool = True
    only: tuple[str, ...] = ()  # the outputs judged here, by default all
    kind: str = ""  # of a detector's black box; boxes of one kind count together
    known: dict = field(default_factory=dict, compare=False, repr=False)  # outputs by hypothesis


@dataclass(frozen=True)
class Output:
    """How one output of a drive is compared, and what its axes are called in a report."""

    compare: str = "close"  # "close": rounding is forgiven; "exact": nothing is; "text": a string
    dtype: bool = False  # whether the dtype is part of the answer
    tolerance: float = 1e-6  # relative and absolute, for float64; comparing.py widens it

    def __post_init__(self):
        if self.compare not in ("close", "exact", "text"):
            raise ValueError(f"compare is {self.compare!r}; use 'close', 'exact' or 'text'")


@dataclass(frozen=True)
class Knob:
    """One mistake: settings that turn the exercise's faulty family away from the right answer.

    ``masks`` names the parameters of the family, or the ids of knobs, that lose their effect once
    this knob is turned; such pairs are not formed, they would be the same answer again.
    """

    id: str
    settings: Mapping[str, object]
    sentence: str
    lesson: str
    case: str = ""
    masks: tuple[str, ...] = ()

    def combines_with(self, other):
        if set(self.settings) & set(other.settings):
            return False
        mine, its = {self.id, *self.settings}, {other.id, *other.settings}
        return not (mine & set(other.masks) or its & set(self.masks))


@dataclass(frozen=True)
class Property:
    """A law two calls must obey, used when no known mistake matches.

    ``pair(rng)`` gives two input mappings, ``holds(first, second)`` judges their outputs;
    ``broken`` is the sentence shown when the law fails.
    """

    broken: str
    pair: Callable
    holds: Callable


@dataclass(frozen=True)
class Equivalent:
    """Sets of knob ids that give the same answer on every legal input, and the reason."""

    hypotheses: tuple[frozenset, ...]
    reason: str


def equivalent(reason, *hypotheses):
    """``Equivalent`` of sets of knob ids."""
    return Equivalent(tuple(map(frozenset, hypotheses)), reason)


@dataclass(frozen=True)
class Exercise:
    """All that the engine knows about one exercise.

    ``reference(inputs)`` gives the right outputs; ``family(**settings)`` gives an answer with the
    mistakes of ``settings``, none by default. Both are compared through ``drive(answer, inputs)``,
    which brings back what is compared; or else raw values, from which ``summary(raw, inputs)``
    makes it. When graded, the drive runs in the student's process and the summary outside of it,
    so ``raw`` may be forged: a summary raises the drives' ``WrongKind`` where it is not as asked.
    """

    name: str
    chapter: str
    lesson: str
    parameters: tuple[str, ...]  # of the call, "eps=1e-5" for one that may be left out
    cases: Callable
    drive: Callable
    reference: Callable
    family: Callable
    knobs: tuple[Knob, ...]
    groups: Mapping[str, int]  # points of each case group
    outputs: Mapping[str, Output]
    hints: tuple[str, ...]
    difficulty: int  # 1 to 3
    minutes: int
    titles: Mapping[str, str]  # of the lessons that its mistakes point to
    kind: str = "function"  # or "class"
    array: str = "NumPy array"  # what the answer is expected to return
    properties: tuple[Property, ...] = ()
    equivalents: tuple[Equivalent, ...] = ()
    separate: bool = False  # each case group is a question of its own, diagnosed by itself
    quiet: str = ""  # said in place of what is wrong: only the points are told
    planted: tuple[str, ...] = ()  # ids of the mistakes that the code has when it is handed out
    detector: bool = False  # it labels black boxes: guessing is no score
    labels: tuple[str, ...] = ()  # the two of such a detector; the groups of its cases
    families: Mapping[str, str] = field(default_factory=dict)  # kind of box: what a report calls it
    opened: Callable = lambda case: case  # adds what a case does not show while an answer runs
    forbid: tuple[str, ...] = ()  # dotted names that an answer is to do without, when graded
    summary: Callable = lambda raw, inputs: raw
    version: int = 1

    @property
    def max_points(self):
        return sum(self.groups.values())

    @property
    def tells_apart(self):
        """Whether it is a detector of two labels."""
        return bool(self.labels)

    @property
    def call(self):
        return f"{self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True)
class Failure:
    """An exception of the answer, as plain text."""

    kind: str  # the class of the exception
    message: str
    where: str = ""  # the line of the answer that raised, if known
    wrong_kind: bool = False  # our drive refused the returned object
    not_attempted: bool = False
    public: str = ""  # the grader stopped it: a sentence of ours that says why


@dataclass(frozen=True)
class Run:
    """What came of one call: outputs or a failure."""

    case: Case
    outputs: Mapping[str, object] | None
    failure: Failure | None = None
    changed: tuple[str, ...] = ()  # inputs that the call changed
    printed: str = ""
    printed_length: int = 0
