"""Feedback and the page on the class: readable in light, in dark, on phones, without a network."""

import pytest
from answers.graded_class import results
from axe_playwright_python.sync_playwright import Axe

from lnres_utils.grading.class_page import class_page
from lnres_utils.grading.feedback import feedback

LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390),
         "narrow": ("dark", 320)}
BOOK = "https://book.example/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All pages of a class, and one of a class so small that it is warned about."""
    folder = tmp_path_factory.mktemp("grades")
    (folder / "class.html").write_text(class_page(results(), BOOK), encoding="utf-8")
    (folder / "few.html").write_text(class_page(results()[:3]), encoding="utf-8")
    for name, text in feedback(results(), BOOK):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def open_file(browser, folder):
    contexts = []

    def opener(name, scheme="light", width=1280, **media):
        context = browser.new_context(viewport={"width": width, "height": 900},
                                      color_scheme=scheme, **media)
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        page.on("request", lambda request: request.url.startswith("file:")
                or page.faults.append(f"asked for {request.url}"))
        page.on("console", lambda text: page.faults.append(f"console: {text.text}"))
        page.goto((folder / name).as_uri())
        return page

    yield opener
    for context in contexts:
        context.close()


PAGES = ("class.html", "few.html", "leonhard.html", "unreadable.html")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_page_is_whole_and_accessible(open_file, name, look):
    page = open_file(name, *LOOKS[look])
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, f"the page is {overflow} px too wide"
    assert page.faults == []
    found = Axe().run(page).response["violations"]
    assert [f"{each['id']}: {node['html'][:160]} ({node['failureSummary']})"
            for each in found for node in each["nodes"]] == []


def test_every_students_page_fits_a_phone(open_file, folder):
    page = open_file("class.html", width=320)
    for path in sorted(folder.iterdir()):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path.name


def test_no_script_of_a_student_runs(open_file):
    page = open_file("script-alert-1-script-5c140d35.html")
    assert page.locator("h1").inner_text() == "<script>alert(1)</script>"
    assert page.locator("script").count() == 0
    # Nor would one that had come in.
    page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = "document.title = 'run'";
        document.body.append(script);
    }""")
    assert page.title() == "Feedback: <script>alert(1)</script>"


def test_the_parts_of_a_bar_are_as_long_as_the_counts_say(open_file):
    page = open_file("class.html")
    rows = page.locator(".stacks > li")
    assert rows.count() == 7
    for row in rows.all():
        counts = [int(text.split()[0]) for text in row.locator(".part").all_inner_texts()]
        widths = row.locator(".stack > span").evaluate_all(
            "all => all.map(part => part.getBoundingClientRect().width)")
        shares = [width / sum(widths) for width in widths]
        assert shares == pytest.approx([count / sum(counts) for count in counts], abs=0.01)


def test_the_columns_of_the_histogram_are_as_high_as_the_counts_say(open_file):
    page = open_file("class.html")
    heights = page.locator(".histogram .bar").evaluate_all(
        "all => all.map(bar => bar.getBoundingClientRect().height)")
    counts = [int(text or 0) for text in page.locator(".histogram span").all_inner_texts()]
    assert sum(counts) == len(results())
    assert [height / max(heights) for height in heights] == pytest.approx(
        [count / max(counts) for count in counts], abs=0.01)


def test_outcomes_differ_in_pattern_and_not_in_color_alone(open_file):
    page = open_file("class.html")
    looks = page.locator(".swatch").evaluate_all(
        "all => all.map(s => getComputedStyle(s).backgroundImage.split('(')[0] "
        "+ (getComputedStyle(s).backgroundColor == "
        "getComputedStyle(s.closest('.card')).backgroundColor))")
    assert len(looks) == len(set(looks)) == 4


def test_on_paper_nothing_is_dark_and_a_card_is_in_one_piece(open_file):
    page = open_file("leonhard.html", "dark")
    page.emulate_media(media="print", color_scheme="dark")
    look = page.evaluate("""() => {
        const body = getComputedStyle(document.body);
        const card = getComputedStyle(document.querySelector('.card'));
        const word = getComputedStyle(document.querySelector('.outcome.right'));
        return [body.backgroundColor, body.color, card.breakInside, word.color];
    }""")
    assert look == ["rgb(255, 255, 255)", "rgb(0, 0, 0)", "avoid", "rgb(0, 102, 75)"]


def test_the_keyboard_reaches_links_and_tables(open_file):
    page = open_file("class.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    assert page.locator("details[open] table").count() == 1
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
