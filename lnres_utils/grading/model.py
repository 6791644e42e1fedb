"""What grading is about, as plain data: submissions, settings of a run, results."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """Where the bytes of one notebook lie: a file, or a member of a zip file."""

    path: Path
    member: str = ""  # of the zip file ``path``
    modified: float = 0.0  # seconds since 1970, to take the newest of two
    inner: str = ""  # of the zip file ``member``: what a student zipped, and a platform again

    @property
    def shown(self):
        return ": ".join(filter(None, [self.path.name, self.member, self.inner]))


@dataclass(frozen=True)
class Submission:
    """One notebook of one student."""

    student: str  # who it is, as the gradebook writes it; unique together with the assignment
    source: Source
    assignment: str = ""  # a folder's name in nbgrader's layout; empty where nothing says it
    learner_id: str = ""  # the number that a learning platform gave, if the file name has one
    late: bool = False  # the platform's mark in the file name
    notes: tuple[str, ...] = ()  # for the teacher: an older file was passed over, and the like


@dataclass(frozen=True)
class Cell:
    """One code cell of a submission that will be run."""

    number: int  # in the notebook, from 1, text cells included
    source: str
    exercise: str = ""  # the one it answers


@dataclass(frozen=True)
class Notebook:
    """What was read of a notebook."""

    chapter: str  # slug of the chapter whose exercises it holds; "" if it holds none
    cells: tuple[Cell, ...] = ()  # in the order in which they run; checks are left out
    notes: tuple[str, ...] = ()  # for the teacher: a cell's type restored, a copy passed over
    problem: str = ""  # why nothing can be graded, in one line
    told: str = ""  # of that, what the student may read


@dataclass(frozen=True)
class Limits:
    """What a submission may use."""

    seconds: float = 10.0  # of the processor, for one cell and for one exercise
    patience: float = 4.0  # times ``seconds``, by the clock on the wall
    memory: int = 1 << 30  # bytes beyond what the process has when it starts
    file_bytes: int = 16 << 20  # the longest file that it can write into its own folder


@dataclass(frozen=True)
class Graded:
    """The result of one exercise."""

    exercise: str
    outcome: str  # of a Report
    points: int
    max_points: int
    reason: str  # one line for the teacher
    public: dict = field(default_factory=dict)  # ``Report.public()``: all that feedback shows
    report: dict = field(default_factory=dict)  # ``Report.to_dict()``: for the teacher alone
    notes: tuple[str, ...] = ()  # for the teacher: calls what it must not, and the like


@dataclass(frozen=True)
class Result:
    """The result of one submission, as it is stored."""

    student: str
    chapter: str
    file: str
    fingerprint: str  # of the notebook's bytes and of all that decides how it is graded
    exercises: tuple[Graded, ...]
    problem: str = ""  # why nothing could be graded
    told: str = ""  # of that, what the student may read
    notes: tuple[str, ...] = ()
    learner_id: str = ""
    late: bool = False
    stopped: int = 0  # cells and calls that were ended: too long, too large, or the process died
    seconds: float = 0.0  # of the processor, for all of it

    @property
    def points(self):
        return sum(each.points for each in self.exercises)

    @property
    def max_points(self):
        return sum(each.max_points for each in self.exercises)
