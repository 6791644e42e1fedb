"""Live cells, run as a reader runs them."""

import re
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from .conftest import BOOK, CDN, first_page

START = 300_000  # ms: a first Run starts Python, and a busy machine runs a long cell
RUN = 20_000


@pytest.fixture
def live(open_live):
    """The first live cell of the book and its page."""
    page = open_live(first_page('class="cell tag_live'))
    return page, page.locator(".cell.tag_live").first


def type_code(cell, code):
    if cell.locator(".live-edit").inner_text() == "Edit":
        cell.locator(".live-edit").click()
    cell.locator("textarea").fill(code)


def run(cell, code=None, timeout=START):
    """Run a cell, possibly with other code, and return what it showed."""
    if code is not None:
        type_code(cell, code)
    cell.locator(".live-run").click()
    expect(cell.locator(".live-state")).to_have_text(
        re.compile("Output of your|Ran without|not passed|ended with|was not run"), timeout=timeout
    )
    return cell.locator(".live-output").inner_text().strip()


def stored_text(cell):
    """The stored output of a cell: text, reports, and the last line of an error.

    The line in which a check ends in a notebook repeats the report above it, and pages omit it.
    """
    return cell.locator(".cell_output").evaluate_all(
        """all => all.flatMap(output => [...output.children])
             .filter(part => !part.matches('.check-failed')).map(part =>
             part.matches('.traceback') ? part.innerText.trim().split('\\n').pop() : part.innerText
           ).join('\\n')"""
    )


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def test_live_cells_show_what_is_stored(open_live, live_page):
    page = open_live(live_page)
    cells = page.locator(".cell.tag_live").all()
    assert cells
    for cell in cells:
        stored = stored_text(cell)
        shown = run(cell)
        if "progress()" in cell.locator(".cell_input pre").text_content():
            # It counts the torch exercises too, which only Jupyter runs.
            assert "points in all" in shown
            continue
        if cell.locator(".live-error").count():
            # Only a stored error may come out, and its first line is the stored one's last.
            error = cell.locator(".live-error").inner_text()
            shown = shown.replace(error, error.splitlines()[0])
        assert squeeze(shown) == squeeze(stored)


def test_nothing_of_python_is_loaded_before_the_first_run(live):
    page, cell = live
    assert page.faults == []
    expect(cell.locator(".live-note")).to_contain_text("cdn.jsdelivr.net")
    run(cell, "1 + 1")
    assert any(CDN in fault for fault in page.faults)


def test_errors_are_short_and_name_the_line(live):
    page, cell = live
    shown = run(cell, "import numpy as np\nx = np.ones(3)\nx.reshape(7)")
    assert shown.splitlines() == [
        "ValueError: cannot reshape array of size 3 into shape (7,)",
        "line 3: x.reshape(7)",
    ]
    assert run(cell, "def f(:").startswith('File "<cell>", line 1')
    # The reader's Python goes on after an error.
    assert run(cell, "x.sum()") == "np.float64(3.0)"


def test_a_wrong_answer_gets_its_report_and_a_link_to_a_page(live, site):
    page, cell = live
    run(
        cell,
        "import numpy as np\nfrom lnres_utils import check\n"
        "def layer_norm(x, gamma, beta, eps=1e-5):\n"
        "    mean = x.mean(-1, keepdims=True)\n"
        "    variance = x.var(-1, ddof=1, keepdims=True)\n"
        "    return gamma * (x - mean) / np.sqrt(variance + eps) + beta\n"
        "check(layer_norm)",
    )
    output = cell.locator(".live-output")
    expect(output.get_by_role("group")).to_contain_text("layer_norm: wrong")
    expect(cell.locator(".live-state")).to_have_text("The check has not passed. Its report:")
    expect(output.locator(".live-error")).to_have_count(0)
    target = output.locator("a").first.get_attribute("href")
    assert page.request.get(urljoin(page.url, target)).ok and target.endswith(".html")


def test_an_endless_loop_is_stopped_and_python_comes_back(live):
    page, cell = live
    assert run(cell, "kept = 1\nkept") == "1"
    type_code(cell, "print('in the loop')\nwhile True:\n    pass")
    cell.locator(".live-run").click()
    expect(cell.locator(".live-output")).to_have_text("in the loop", timeout=RUN)
    cell.locator(".live-stop").click()
    expect(cell.locator(".live-state")).to_contain_text("is lost")
    expect(cell.locator(".live-run")).to_be_focused()
    assert run(cell, "'kept' in globals()") == "False"


def test_a_page_opened_from_a_file_says_how_to_run_cells(open_page):
    page = open_page(first_page('class="cell tag_live'), address=BOOK.as_uri() + "/")
    cell = page.locator(".cell.tag_live").first
    cell.locator(".live-run").click()
    expect(cell.locator(".live-state")).to_contain_text("make serve")


def test_without_a_network_the_page_says_so(open_page):
    page = open_page(first_page('class="cell tag_live'))
    page.context.route(f"{CDN}**", lambda route: route.abort())
    cell = page.locator(".cell.tag_live").first
    cell.locator(".live-run").click()
    expect(cell.locator(".live-state")).to_contain_text("could not run", timeout=RUN)
    expect(cell.locator(".live-stop")).to_be_hidden()


def test_the_download_is_told_once_and_on_every_run_button(live):
    page, cell = live
    expect(page.locator(".live-note")).to_have_count(1)
    expect(cell.locator(".live-note")).to_be_visible()
    runs = page.locator(".live-run").all()
    assert len(runs) > 1
    for button in runs:
        expect(button).to_have_accessible_description(re.compile("downloads Python.*jsdelivr"))
    expect(runs[1]).to_have_attribute("title", re.compile("downloads Python"))
    run(cell, "1 + 1")
    expect(page.locator(".live-note")).to_have_count(0)
    for button in runs:
        expect(button).to_have_accessible_description("")
        assert button.get_attribute("title") is None


def test_a_run_folds_the_stored_output_under_its_title(open_live):
    page = open_live(first_page("standardize: not attempted"))
    cell = page.locator(".cell.tag_live", has_text="standardize: not attempted").first
    stored = cell.locator("details.live-stored")
    expect(stored.locator("summary")).to_have_text("Output stored in the book")
    expect(stored.get_by_text("not attempted").first).to_be_visible()
    run(cell, "1 + 1")
    expect(stored.get_by_text("not attempted").first).to_be_hidden()
    stored.locator("summary").click()
    expect(stored.get_by_text("not attempted").first).to_be_visible()
    # Reset brings back the book's cell as a whole.
    stored.locator("summary").click()
    cell.locator(".live-edit").click()
    expect(stored.get_by_text("not attempted").first).to_be_visible()
    assert cell.locator(".live-output").inner_text() == ""


def test_every_stored_output_of_a_live_cell_has_its_title(open_page, live_page):
    page = open_page(live_page)
    outputs = page.locator(".cell.tag_live .cell_output")
    titled = page.locator(".cell.tag_live > details.live-stored > .cell_output")
    assert titled.count() == outputs.count() > 0


def test_a_run_without_output_says_so(live):
    page, cell = live
    assert run(cell, "def f():\n    pass") == ""
    expect(cell.locator(".live-state")).to_have_text("Ran without output.")


def test_a_check_of_no_exercise_is_an_error(live):
    page, cell = live
    shown = run(cell, "from lnres_utils import check\ncheck(None)")
    assert shown.startswith("CheckFailed: this is None")
    expect(cell.locator(".live-state")).to_have_text("Your run ended with an error:")


def test_links_of_reports_open_a_new_tab(live):
    page, cell = live
    run(
        cell,
        "import numpy as np\nfrom lnres_utils import check\n"
        "def layer_norm(x, gamma, beta, eps=1e-5):\n"
        "    v = x.var(-1, ddof=1, keepdims=True)\n"
        "    return gamma * (x - x.mean(-1, keepdims=True)) / np.sqrt(v + eps) + beta\n"
        "check(layer_norm)",
    )
    link = cell.locator(".live-output a").first
    expect(link).to_have_accessible_name(re.compile(r"Read .* \(opens in a new tab\)"))
    expect(link).to_have_attribute("rel", "noopener")
    with page.context.expect_page() as opened:
        link.click()
    assert opened.value.url != page.url
    # Here nothing is lost, Python included.
    expect(cell.locator(".live-output")).to_contain_text("layer_norm: wrong")
    assert run(cell, "layer_norm.__name__", timeout=RUN) == "'layer_norm'"


def test_links_of_stored_reports_open_a_new_tab(open_page):
    page = open_page(first_page('aria-label="Check of layer_norm"'))
    links = page.locator(".cell_output [role=group] a")
    if links.count() == 0:
        pytest.skip("no stored report of this page has a link")
    for link in links.all():
        expect(link).to_have_attribute("target", "_blank")
        expect(link).to_have_accessible_name(re.compile("new tab"))
