"""The built book and the notebooks as they are stored: what a reader is promised."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from docutils import nodes

from lnres_utils import specs
from lnres_utils.specs import CHAPTERS

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted(
    path for path in ROOT.glob("chapters/*/*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
NOTEBOOKS = (
    LESSONS + sorted(ROOT.glob("solutions/*.ipynb")) + sorted(ROOT.glob("exercises/*.ipynb"))
)
# The first page says how to use the course; every other one has a lesson's form.
TAUGHT = [path for path in LESSONS if path.stem != "how-to-use"]

# The parts of a lesson, in order.
ANATOMY = {
    "the path and its minutes": r"(Core path|Deep)\b.*\b\d+\s+minutes",
    "a predict block": r":class: predict",
    "the mathematics": r"\{math\}|^\$\$|\\begin\{",
    "a real case, cited": r"^#+ What goes wrong in practice(?s:.*?)\{cite",
    "three lines to remember": r"^#+ Three lines to remember",
    "recall questions": r"^#+ Recall",
    "what to do next": r"^#+ What to do next",
}


def relative(path):
    return path.relative_to(ROOT).as_posix()


def cells(path, kind):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def prose(path):
    return "\n\n".join(cell.source for cell in cells(path, "markdown"))


def toc_files(toc):
    return [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]


class Loads(HTMLParser):
    """Collects what a page makes the browser load: not what it merely links to."""

    def __init__(self, html):
        super().__init__()
        self.addresses = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            links = name == "href" and tag in ("a", "area")
            if name in ("src", "href", "srcset", "poster", "data") and not links and value:
                self.addresses.append(value)


def build(folder, solutions):
    """Build one edition of the book strictly into a folder, as `make book` does."""
    toc = folder / "_toc.yml"
    python = [sys.executable, str(ROOT / "assets/ext/toc.py")]
    subprocess.run(
        [*python, str(ROOT / "_toc.yml"), str(toc), "--solutions", solutions], check=True
    )
    program = Path(sys.executable).with_name("jupyter-book")
    command = [program, "build", ROOT, "--toc", toc, "--path-output", folder, "-W", "-n"]
    done = subprocess.run(
        [*command, "--keep-going"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYODIDE": ""},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "_build/html"


def edition(name, solutions, tmp_path_factory):
    """What `make test` has just built, or a build of our own when pytest is run alone."""
    built = os.environ.get("LNRES_BUILT")
    if built:
        return Path(built, name, "_build/html")
    return build(tmp_path_factory.mktemp(name), solutions)


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    return edition("with-solutions", "1", tmp_path_factory)


@pytest.fixture(scope="session")
def book_without_solutions(tmp_path_factory):
    return edition("without-solutions", "0", tmp_path_factory)


def pages(folder):
    found = [path for path in folder.rglob("*.html") if "_static" not in path.parts]
    assert len(found) > 10
    return found


def test_no_page_loads_anything_from_another_host(book):
    for page in pages(book):
        outside = [
            address
            for address in Loads(page.read_text(encoding="utf-8")).addresses
            if re.match(r"(https?:)?//", address)
        ]
        assert outside == [], page.name
        assert "thebe" not in page.read_text(encoding="utf-8"), page.name


def test_every_page_says_which_versions_it_was_checked_with(book):
    pins = dict(
        line.split("==") for line in (ROOT / "requirements.txt").read_text().split() if "==" in line
    )
    stamp = f"Checked with torch {pins['torch']}, numpy {pins['numpy']}."
    for page in pages(book / "chapters"):
        text = page.read_text(encoding="utf-8")
        assert stamp in text, page.name
        assert "Report a correction" not in text, "its address is not set"


def test_no_page_links_to_a_notebook_but_to_download_it(book):
    for page in pages(book):
        html = page.read_text(encoding="utf-8")
        assert not re.findall(r'href="(?!https?:|[./]*_sources/)[^"]*\.ipynb', html), page.name


def test_a_link_in_a_check_report_leads_to_a_page():
    """In the report it is a notebook beside the exercises, so that it also works in JupyterLab."""
    spec = importlib.util.spec_from_file_location("course", ROOT / "assets/ext/course.py")
    course = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(course)
    report = '<a href="../chapters/feature-axis/which-axis.ipynb#why">Read</a>'
    tree = nodes.container("", nodes.raw("", report, format="html"))
    app = SimpleNamespace(
        env=SimpleNamespace(found_docs={"chapters/feature-axis/which-axis"}),
        builder=SimpleNamespace(get_relative_uri=lambda page, target: f"{page} -> {target}.html"),
    )
    course.mend_html(app, tree, "exercises/feature-axis")
    page = "exercises/feature-axis -> chapters/feature-axis/which-axis.html"
    assert tree.astext() == f'<a href="{page}#why">Read</a>'


def test_the_in_page_python_gets_the_package(book):
    with zipfile.ZipFile(book / "lnres_utils.zip") as archive:
        names = archive.namelist()
    assert "lnres_utils/__init__.py" in names
    assert all(name.endswith(".py") for name in names)


def test_an_edition_without_solutions_has_no_trace_of_them(book_without_solutions):
    assert not (book_without_solutions / "solutions").exists()
    for page in pages(book_without_solutions):
        html = page.read_text(encoding="utf-8")
        assert not re.findall(r'href="[^"]*solutions/[^"]*"', html), page.name
    solved = (ROOT / "solutions/feature-axis.ipynb").read_text(encoding="utf-8")
    assert "BEGIN SOLUTION" in solved
    for path in book_without_solutions.rglob("*.ipynb"):
        assert "BEGIN SOLUTION" not in path.read_text(encoding="utf-8"), path


def test_exercises_and_solutions_differ_in_name(book):
    menu = (book / "chapters/glossary.html").read_text(encoding="utf-8")
    for folder, name in (("exercises", "Exercises: "), ("solutions", "Solutions: ")):
        for chapter in CHAPTERS:
            html = (book / folder / f"{chapter}.html").read_text(encoding="utf-8")
            assert re.search(rf"<h1>{name}", html)
            assert re.search(rf"<title>\s*{name}", html)
            assert re.search(rf'{folder}/{chapter}.html">\s*{name}', menu)
    # What comes after the last page of exercises.
    html = (book / "exercises" / f"{list(CHAPTERS)[-1]}.html").read_text(encoding="utf-8")
    assert re.search(r'class="prev-next-title">Solutions: ', html)


def test_the_order_of_lessons_stands_in_the_toc_alone():
    toc = toc_files(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))
    assert len(toc) == len(set(toc))
    assert {relative(path).removesuffix(".ipynb") for path in NOTEBOOKS} <= set(toc)
    for name in toc:
        assert not re.match(r"\d", Path(name).name), (
            f"{name}: a number would have to change one day"
        )


@pytest.mark.parametrize("path", TAUGHT, ids=relative)
def test_a_lesson_has_all_its_parts_in_order(path):
    text = prose(path)
    places = {}
    for part, pattern in ANATOMY.items():
        found = re.search(pattern, text, re.MULTILINE)
        assert found, f"{relative(path)} lacks {part}"
        places[part] = found.start()
    assert list(places.values()) == sorted(places.values()), places
    assert f"(lesson-{path.stem})=" in text
    recall = text[places["recall questions"] : places["what to do next"]]
    assert recall.count("{dropdown}") == 2, "two recall questions"
    remember = text[places["three lines to remember"] : places["recall questions"]]
    assert len(re.findall(r"^(?:\d\.|-) ", remember, re.MULTILINE)) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=relative)
def test_stored_outputs_are_fit_to_be_read(path):
    for cell in cells(path, "code"):
        for output in cell.outputs:
            assert output.get("name") != "stderr", cell.source
            shown = str(output.get("text", "")) + str(output.get("data", {}).get("text/plain", ""))
            assert "Warning" not in shown, cell.source
            assert not re.search(r"(/home/|/tmp/|/usr/|[A-Z]:\\\\)", shown), cell.source
        assert not cell.source.rstrip().endswith(";"), cell.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=relative)
def test_every_figure_has_a_caption_and_an_alt_text(path):
    for cell in cells(path, "code"):
        if not any("image/png" in output.get("data", {}) for output in cell.outputs):
            continue
        settings = cell.metadata.get("mystnb", {})
        figure, image = settings.get("figure", {}), settings.get("image", {})
        assert figure.get("name", "").startswith("fig-"), cell.source
        assert len(figure.get("caption", "")) > 10, cell.source
        assert len(image.get("alt", "")) > 40, cell.source


def test_live_cells_import_nothing_that_the_page_lacks():
    lacking = re.compile(
        r"^\s*(?:import|from)\s+(?:torch|matplotlib)|import .*\bfigures\b", re.MULTILINE
    )
    for path in NOTEBOOKS:
        for cell in cells(path, "code"):
            if {"live", "setup"} & set(cell.metadata.get("tags", [])):
                assert not lacking.search(cell.source), f"{relative(path)}: {cell.source}"


def test_every_pin_is_exact():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    assert not [pin for pin in pins if pin.startswith(("nvidia", "cuda", "triton"))]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_alone_lists_the_commands():
    # `make` in here must not take over the flags of the `make test` around it.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, env=clean, check=True)
    for target in ("book", "test", "lab", "exercises", "refresh", "serve"):
        assert re.search(rf"^  make {target}\b", done.stdout, re.MULTILINE), target


def test_instructors_are_told_the_true_minutes_and_points():
    text = (ROOT / "chapters/instructors.md").read_text(encoding="utf-8")
    row = r"^\| \[.*\]\(\.\./exercises/(.*)\.ipynb\) \| (\d+) \| (\d+) \| (\d+) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    told = {chapter: tuple(map(int, numbers)) for chapter, *numbers in rows}
    true = {}
    for chapter, names in CHAPTERS.items():
        each = [specs.get(name) for name in names]
        minutes, points = ([getattr(exercise, what) for exercise in each]
                           for what in ("minutes", "max_points"))
        true[chapter] = (len(names), sum(minutes), sum(points))
    assert told == true
    minutes = {"Core path": 0, "Deep": 0}
    for path in LESSONS:
        kind, number = re.search(r"^\*(Core path|Deep) · (\d+) minutes", prose(path),
                                 re.MULTILINE).groups()
        minutes[kind] += int(number)
    assert "read in about five hours; the deep ones take another hour and a\nquarter" in text
    assert 4.75 < minutes["Core path"] / 60 < 5.25 and 1 < minutes["Deep"] / 60 < 1.5, minutes
