"""From what a teacher downloaded, a folder, a zip file or one notebook, to the submissions in it.

Nothing is extracted to disk, and no file is lost in silence: of several notebooks of a student the
newest is taken, and a note tells which were passed over.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from lnres_utils.grading import files, naming
from lnres_utils.grading.errors import GradingError, Unreadable
from lnres_utils.grading.files import Entry, open_source
from lnres_utils.grading.model import Notebook, Source, Submission
from lnres_utils.grading.naming import NOTEBOOK, Owner
from lnres_utils.grading.reading import read

__all__ = ["collect", "opened"]

MOST_COMPARED = 20  # notebooks of one student that are opened to see which chapter they hold


def collect(path: Path, pattern: str | None = None) -> list[Submission]:
    """Find the submissions below ``path``, in the order of the students' names.

    Parameters
    ----------
    path : a notebook; a folder of notebooks, or of a folder for each student; nbgrader's folder
        `submitted`, or the course that has it; a zip file of any of these, or from Canvas or Moodle
    pattern : regular expression with a group `student`, and if wanted `id`, `late`, `assignment`,
        that is searched in the path of each file below ``path``; by default the known forms are

    Returns
    -------
    list of Submission. A student who handed in files but no notebook has one, too: its source is
    such a file, or the folder, and reading it says what is wrong.
    """
    path = Path(path)
    entries, nbgrader = _entries(path)
    found = [each for entry in entries for each in _unzipped(entry)]
    files_found = [each for each in found if not each.entry.is_folder]
    notebooks = [each for each in files_found if each.is_notebook]
    if not notebooks:
        others = f", only {_listed(each.entry for each in files_found)}" if files_found else ""
        raise GradingError(f"{path}: no notebook (*.ipynb) in it{others}; give what was handed in")
    if pattern is None:
        owner_of = naming.by_platform([each.named_by for each in notebooks], nbgrader)
    else:
        found = [replace(each, named_by=each.entry.parts) for each in found]
        owner_of = naming.by_pattern(pattern, [each.entry.parts for each in notebooks])
    groups = _of_students([replace(each, owner=owner_of(each.named_by)) for each in found])
    names = _names([each.owner for group in groups.values() for each in group])
    submissions = [s for (who, _), group in groups.items() for s in _submissions(group, names[who])]
    return sorted(submissions, key=lambda s: (s.student, s.assignment))


def opened(source: Source, chapter: str | None = None) -> tuple[bytes, Notebook]:
    """The bytes of a submission and the notebook that they are; why not is its ``problem``."""
    try:
        data = open_source(source)
    except GradingError as error:
        told = str(error) if isinstance(error, Unreadable) else ""
        return b"", Notebook(chapter or "", problem=str(error), told=told)
    return data, read(data, source.inner or source.member or source.path.name, chapter)


@dataclass(frozen=True)
class _Found:
    """A file or folder, and whose it is."""

    entry: Entry
    named_by: tuple[str, ...]  # the path that tells whose it is: of a file in it, or of the zip
    owner: Owner = Owner("")
    problem: str = ""  # of a zip file that cannot be read

    @property
    def is_notebook(self):
        return not self.entry.is_folder and NOTEBOOK.search(self.entry.name) is not None

    @property
    def age(self):
        """Of two files of a student, the newer one has the larger."""
        again = naming.again_of(self.entry.name)
        return self.owner.number, again, self.entry.source.modified, self.entry.parts


def _entries(path):
    """All files and folders, and whether they stand in the layout of nbgrader."""
    if path.is_dir():
        if (path / "submitted").is_dir():
            path = path / "submitted"
        entries = files.folder_entries(path)
        if len(entries) == 1 and _is_zip(entries[0]):
            return _entries(entries[0].source.path)
        if len(entries) > 1 and all(_is_zip(entry) and _is_of_class(entry) for entry in entries):
            raise GradingError(f"{path}: {len(entries)} zip files of whole classes; give one")
        return entries, path.name == "submitted"
    if not path.exists():
        raise GradingError(f"{path}: no such file or folder; give what was handed in")
    entry = files.file_entry(path)
    if NOTEBOOK.search(path.name):
        return [entry], False
    if not _is_zip(entry):
        raise GradingError(f"{path}: neither a notebook (.ipynb), nor a .zip, nor a folder")
    entries = files.zip_entries(entry.source)
    for inside in (entries, _without_wrapper(entries, naming.stem_of(path.name))):
        submitted = [entry for entry in inside if entry.parts[0] == "submitted"]
        if submitted:
            return _below(submitted), True
    return inside, False


def _is_zip(entry):
    return not entry.is_folder and entry.name.lower().endswith(".zip")


def _is_of_class(entry):
    try:
        inside = files.zip_entries(entry.source)
    except GradingError:
        return False
    return naming.is_from_platform([each.parts for each in inside if not each.is_folder])


def _without_wrapper(entries, stem):
    """Leave out the one folder that holds all of a zip file, unless it is a student's."""
    tops = {entry.parts[0] for entry in entries}
    notebooks = [entry for entry in entries if NOTEBOOK.search(entry.name)]
    if len(tops) != 1 or not all(len(entry.parts) > 1 for entry in notebooks):
        return entries
    of_one = len(notebooks) < 2 or all(naming.is_chapter_alone(each.name) for each in notebooks)
    is_student = of_one and tops != {stem}
    return entries if is_student or naming.of_moodle((*tops,)) else _below(entries)


def _below(entries):
    return [replace(e, parts=e.parts[1:]) for e in entries if len(e.parts) > 1]


def _unzipped(entry):
    """The files in a zip file that a student handed in; of any other file, itself."""
    if entry.is_folder:
        return [_Found(entry, (*entry.parts, ""))]
    if not _is_zip(entry):
        return [_Found(entry, entry.parts)]
    try:
        inside = files.zip_entries(entry.source, files.MOST_LISTED)
    except GradingError as error:
        return [_Found(entry, entry.parts, problem=str(error))]
    # Whose it is the name of the zip file says, and nothing in it: that the student wrote.
    whole = [replace(e, parts=(*entry.parts, *e.parts)) for e in inside if not e.is_folder]
    return [_Found(each, entry.parts) for each in whole or [entry]]


def _of_students(found):
    """What was found, by student and assignment, without what belongs to no student."""
    groups = defaultdict(list)
    for each in found:
        groups[each.owner.identity, each.owner.assignment].append(each)
    depths = [len(each.named_by) for each in found if each.is_notebook]
    flat = 2 * depths.count(1) > len(depths)
    known = {who for (who, label), group in groups.items() if label or _holds_notebook(group)}
    return {
        (who, label): group
        for (who, label), group in groups.items()
        if _holds_notebook(group)
        or (label or who not in known) and any(_is_handed_in(each, flat) for each in group)
    }


def _holds_notebook(group):
    return any(each.is_notebook for each in group)


def _is_handed_in(found, flat):
    """Whether a file that is no notebook, or a folder, is a student's all the same.

    Beside notebooks in one ``flat`` folder lies all sorts of things, unless a platform named it.
    """
    if found.owner.is_certain or _is_zip(found.entry):
        return True
    return not flat and not found.owner.note and len(found.named_by) > 1


def _submissions(group, student):
    """The submissions of one student for one assignment: the newest notebook of each chapter."""
    notebooks = [each for each in group if each.is_notebook]
    others = [each for each in group if not each.is_notebook and not each.entry.is_folder]
    if not notebooks:
        newest = max(others or group, key=lambda each: each.age)
        return [_submission(newest, student, _others_note(others))]
    by_chapter, notes = _by_chapter(notebooks)
    submissions = []
    for chapter, several in by_chapter.items():
        newest = max(several, key=lambda each: each.age)
        older = [each.entry for each in several if each is not newest]
        if older:
            notes = [*notes, f"{newest.entry.name} was taken, the newest; passed over: "
                             f"{_listed(older)}"]
        made = _submission(newest, student, [*notes, *_others_note(others)])
        if len(by_chapter) > 1:
            label = "/".join(filter(None, [made.assignment, chapter]))
            made = replace(made, assignment=label)
        submissions.append(made)
        notes, others = [], []
    return submissions


def _submission(found, student, notes):
    owner, own = found.owner, [found.owner.note] if found.owner.note else []
    return Submission(student, found.entry.source, owner.assignment, owner.learner_id, owner.late,
                      tuple([*own, *notes]))


def _others_note(others):
    if not others:
        return []
    problems = [each.problem for each in others if each.problem]
    return [f"no notebooks, and passed over: {_listed(each.entry for each in others)}", *problems]


def _listed(entries):
    """The first names of many."""
    names = sorted(entry.name for entry in entries)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _by_chapter(notebooks):
    """Several notebooks of one student, by chapter; and notes on those that hold no exercise."""
    if len(notebooks) == 1:
        return {"": notebooks}, []
    newest_first = sorted(notebooks, key=lambda each: each.age, reverse=True)
    by_chapter, notes, without = defaultdict(list), [], []
    for each in newest_first[:MOST_COMPARED]:
        chapter, problem = naming.chapter_in(each.entry.name), ""
        if not chapter:
            _, held = opened(_submission(each, "", []).source)
            chapter, problem = held.chapter, held.problem
        if chapter:
            by_chapter[chapter].append(each)
        else:
            without.append(each)
            notes.append(f"{each.entry.name} was passed over: {problem}")
    left = newest_first[MOST_COMPARED:]
    if left:
        notes.append(f"too many notebooks, passed over: {_listed(each.entry for each in left)}")
    return (by_chapter, notes) if by_chapter else ({"": without}, [])


def _names(owners):
    """A name for each identity: the student's, and with a number where two share it."""
    name_of = {}
    for owner in owners:
        name_of.setdefault(owner.identity, (_tidy(owner.student), owner.learner_id))
    shared = defaultdict(list)
    for identity, (name, _) in name_of.items():
        shared[name].append(identity)
    names, taken = {}, {name for name, several in shared.items() if len(several) == 1}
    for identity, (name, learner_id) in sorted(name_of.items()):
        number, final = 1, name
        if len(shared[name]) > 1:
            final = f"{name} ({learner_id or number})"
        while final in taken and len(shared[name]) > 1:
            number += 1
            final = f"{name} ({number})"
        taken.add(final)
        names[identity] = final
    return names


def _tidy(name):
    """A name in one line, without characters that no name has."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "?"
