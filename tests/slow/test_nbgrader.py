"""nbgrader takes `solutions/` as its source: it releases `exercises/` and grades with our checks.

One assignment of all chapters and two students, one with every answer and one with none. nbgrader
runs in an environment of its own, which `make test-slow` makes.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from grading import classroom

from lnres_utils import specs

CHAPTERS = list(specs.CHAPTERS)
PROGRAMS = Path(os.environ.get("LNRES_NBGRADER", classroom.ROOT / "_build" / "nbgrader" / "bin"))
CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "course"
c.ExecutePreprocessor.timeout = 120
"""
# Run by the Python of that environment: the grades as nbgrader itself tells them.
GRADES = """
import json
from nbgrader.api import Gradebook

with Gradebook("sqlite:///gradebook.db") as gradebook:
    print(json.dumps([
        [student, notebook.name, grade.cell.name, grade.auto_score, grade.max_score]
        for student in ("solved", "unsolved")
        for notebook in gradebook.find_submission("all", student).notebooks
        for grade in notebook.grades
    ]))
"""


def run(folder, *command):
    """What a program of nbgrader's environment prints; it finds others of them by their names."""
    env = {**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
           "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PROGRAMS / command[0], *command[1:]], cwd=folder, env=env, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """nbgrader's folder of the course, after it released and graded."""
    if not (PROGRAMS / "nbgrader").exists():
        pytest.fail(f"no nbgrader in {PROGRAMS}: run `make test-slow`, which installs it")
    folder = tmp_path_factory.mktemp("course")
    (folder / "nbgrader_config.py").write_text(CONFIG)
    shutil.copytree(classroom.ROOT / "solutions", folder / "source" / "all",
                    ignore=shutil.ignore_patterns(".*"))
    run(folder, "nbgrader", "generate_assignment", "all")
    for student, make in (("solved", classroom.solved), ("unsolved", classroom.unsolved)):
        submitted = folder / "submitted" / student / "all"
        submitted.mkdir(parents=True)
        for chapter in CHAPTERS:
            (submitted / f"{chapter}.ipynb").write_bytes(make(chapter))
    run(folder, "nbgrader", "autograde", "all")
    return folder


@pytest.fixture(scope="module")
def grades(course):
    """{(student, chapter): {grade_id: (points, max_points)}}"""
    found = {}
    for student, chapter, cell, points, most in json.loads(run(course, "python", "-c", GRADES)):
        found.setdefault((student, chapter), {})[cell] = points, most
    return found


def shown(cell):
    """What a student sees of a cell and a grader reads, without the locks that nbgrader adds."""
    metadata = json.loads(json.dumps(cell.metadata))
    metadata.get("nbgrader", {}).pop("checksum", None)
    kept = {key: value for key, value in metadata.items() if key not in ("deletable", "editable")}
    return cell.id, cell.cell_type, cell.source, kept


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_it_releases_the_exercises(course, chapter):
    released, ours = (nbformat.read(folder / f"{chapter}.ipynb", as_version=4)
                      for folder in (course / "release" / "all", classroom.ROOT / "exercises"))
    assert list(map(shown, released.cells)) == list(map(shown, ours.cells))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_it_gives_the_solved_notebook_full_marks(grades, chapter):
    points = {f"{name}-check": specs.get(name).max_points for name in specs.CHAPTERS[chapter]}
    assert grades["solved", chapter] == {cell: (most, most) for cell, most in points.items()}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_it_gives_the_unsolved_notebook_nothing(grades, chapter):
    points = {f"{name}-check": specs.get(name).max_points for name in specs.CHAPTERS[chapter]}
    assert grades["unsolved", chapter] == {cell: (0, most) for cell, most in points.items()}
