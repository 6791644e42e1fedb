"""From the bytes of a notebook to its cells, with the answers among them found.

An answer is found by the metadata of its cell, or else by the name that the cell defines. Nothing
that a learner can do to a notebook raises here: what was put right is a note for the teacher, and
what cannot be read is a problem of one line.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from lnres_utils.grading.errors import GradingError, Unreadable
from lnres_utils.grading.model import Cell, Notebook
from lnres_utils.grading.sources import (
    bound_names,
    checked_names,
    is_stub,
    only_asks,
    only_imports,
)
from lnres_utils.grading.unpacking import cells_of
from lnres_utils.specs import CHAPTERS

MOST_CODE = 2_000_000  # characters, all cells together
CHAPTER_OF = {name: chapter for chapter, names in CHAPTERS.items() for name in names}


def read(data: bytes, name: str, chapter: str | None = None) -> Notebook:
    """Read the notebook whose bytes are ``data`` and whose file is called ``name``.

    Parameters
    ----------
    data, name : bytes and str
    chapter : slug of the chapter that is graded; by default the one that the notebook belongs to

    Raises
    ------
    GradingError if there is no such chapter. Whatever is wrong with the notebook does not raise:
    it is the ``problem`` of the Notebook.
    """
    if chapter is not None and chapter not in CHAPTERS:
        raise GradingError(f"no chapter {chapter!r}; choose one of {', '.join(CHAPTERS)}")
    try:
        raw, notes = cells_of(data, name)
    except Unreadable as error:
        return _unreadable(chapter, str(error))
    marked = [_Marked(each.number, each.kind, each.source, *_mark(each.metadata)) for each in raw]
    if sum(len(cell.source) for cell in marked if cell.kind == "code") > MOST_CODE:
        return _unreadable(chapter, f"over {MOST_CODE:,} characters of code in it")
    chapter = chapter or _chapter_of(marked)
    if not chapter:
        return _unreadable("", "no exercise of the course in it", notes)
    answers = _answers(marked, chapter, notes)
    _note_others(marked, answers, chapter, notes)
    return Notebook(chapter, _in_order(marked, answers, chapter, notes), tuple(notes))


def _unreadable(chapter, why, notes=()):
    return Notebook(chapter or "", notes=tuple(notes), problem=why, told=why)


@dataclass(frozen=True, eq=False)
class _Marked:
    """A cell, and what its metadata says that it is."""

    number: int
    kind: str
    source: str
    exercise: str  # the one it answers or checks
    is_check: bool

    @cached_property
    def defines(self):
        return bound_names(self.source, CHAPTER_OF)

    @cached_property
    def stub(self):
        return is_stub(self.source)

    @cached_property
    def runs(self):
        """Whether it is one of the cells that are run where it is no answer."""
        if self.kind != "code" or not self.source.strip():
            return False
        return not self.is_check and not only_asks(self.source)


def _mark(metadata):
    """The exercise that a cell's metadata names, and whether the cell checks it."""
    nbgrader, lnres = (metadata.get(key) for key in ("nbgrader", "lnres"))
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    if isinstance(grade_id, str):
        exercise = grade_id.removesuffix("-check")
        if exercise in CHAPTER_OF:
            return exercise, exercise != grade_id
    exercise, role = (lnres.get(k) if isinstance(lnres, dict) else "" for k in ("exercise", "role"))
    if isinstance(exercise, str) and exercise in CHAPTER_OF and role in (None, "check"):
        return exercise, role == "check"
    return "", False


def _chapter_of(cells):
    """The chapter of most exercises; of several such the first in the course; "" if there is none.

    Metadata decides if there is any: a name such as LayerNorm is also a helper of other chapters.
    """
    code = [cell for cell in cells if cell.kind == "code"]
    exercises = {cell.exercise for cell in cells if cell.exercise}
    defined = {name for cell in code for name in cell.defines}
    checked = {name for cell in code for name in checked_names(cell.source)} & CHAPTER_OF.keys()
    votes = Counter(CHAPTER_OF[name] for name in exercises or [*defined, *checked])
    return max(CHAPTERS, key=lambda chapter: votes[chapter]) if votes else ""


def _answers(cells, chapter, notes):
    """The cell that answers each exercise of the chapter, for those that have one."""
    answers, by_name = {}, []
    for exercise in CHAPTERS[chapter]:
        copies = [cell for cell in cells if cell.exercise == exercise and not cell.is_check]
        written = [cell for cell in copies if not cell.stub]
        code = [cell for cell in written if cell.kind == "code"]
        last = copies[-1].number if copies else 0
        others = [] if written else _by_name(cells, exercise, last)
        chosen = (code or written or others or copies or [None])[-1]
        if chosen is None:
            continue
        answers[exercise] = chosen
        if chosen in others:
            by_name.append(f"{exercise} (cell {chosen.number})")
        if chosen.kind != "code":
            notes.append(
                f"cell {chosen.number}, the answer {exercise}: code again, was a {chosen.kind} cell"
            )
        alike = copies if chosen in copies else others
        if len(alike) > 1:
            numbers = ", ".join(str(cell.number) for cell in alike[:10])
            numbers += f" and {len(alike) - 10} more" if len(alike) > 10 else ""
            notes.append(f"{exercise}: answered in cells {numbers}; cell {chosen.number} is graded")
    if by_name:
        notes.append(f"answers found by their names, without metadata: {', '.join(by_name)}")
    return answers


def _by_name(cells, exercise, after):
    """Unmarked answers: cells that define ``exercise``, below the stub in cell ``after`` if any.

    An answer that was written into its check, or together with another one, is among them.
    """
    named = [cell for cell in cells if cell.number > after and exercise in cell.defines]
    code = [
        cell
        for cell in named
        if cell.kind == "code" and (cell.exercise != exercise or cell.is_check)
    ]
    written = [cell for cell in code if not cell.stub]
    text = [cell for cell in named if cell.kind != "code" and not cell.exercise]
    return written or ([] if after else code or text)


def _note_others(cells, answers, chapter, notes):
    """Tell of answers that are not graded: of other chapters, and written again further down."""
    foreign = sorted(
        {cell.exercise for cell in cells if cell.exercise} - {*CHAPTERS[chapter]},
        key=list(CHAPTER_OF).index,
    )
    if foreign:
        shown = ", ".join(f"{name} ({CHAPTER_OF[name]})" for name in foreign)
        notes.append(f"exercises of other chapters in it, which are not graded: {shown}")
    for exercise, chosen in answers.items():
        again = [
            cell.number
            for cell in cells
            if cell.number > chosen.number
            and cell.kind == "code"
            and not cell.stub
            and exercise in cell.defines
            and cell.exercise != exercise
        ]
        if again:
            notes.append(
                f"{exercise}: defined again in cell {again[-1]}, below its answer; "
                f"cell {chosen.number} is graded"
            )


def _in_order(cells, answers, chapter, notes):
    """The cells that run: those of the notebook, sorted by exercise if the answers are not.

    Each answer takes with it the cells between the answer before and itself. What precedes all
    answers stays first, and cells of imports join it: in a reversed notebook they come last.
    """
    names_of = {}
    for exercise, cell in answers.items():
        names_of.setdefault(cell, []).append(exercise)
    segments, open_cells, places = [], [], []
    for cell in cells:
        if cell in names_of:
            first, *more = names_of[cell]
            # A cell that answers several exercises is run once: the others follow it, empty.
            run = [Cell(cell.number, cell.source, first), *(Cell(cell.number, "", m) for m in more)]
            segments.append([*open_cells, *run])
            places.append(CHAPTERS[chapter].index(first))
            open_cells = []
        elif cell.runs:
            open_cells.append(Cell(cell.number, cell.source))
    if places != sorted(places):
        notes.append("its answers are not in the order of the chapter; they were run in that order")
        start = [cell for cell in segments[0] if not cell.exercise]
        segments[0] = segments[0][len(start) :]
        imports = [cell for cell in open_cells if only_imports(cell.source)]
        open_cells = [cell for cell in open_cells if not only_imports(cell.source)]
        ordered = sorted(range(len(segments)), key=places.__getitem__)
        segments = [[*imports, *start], *(segments[i] for i in ordered)]
    return tuple(cell for segment in [*segments, open_cells] for cell in segment)
