"""Predict blocks, demos and live cells, used as a reader uses them."""

import re
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from .conftest import BOOK, CDN, first_page, pages

START = 90_000  # ms: a first Run starts Python, on a busy machine
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
        re.compile("Output of your run|ended with an error|was not run"), timeout=timeout
    )
    return cell.locator(".live-output").inner_text().strip()


def test_an_answer_opens_only_after_a_choice_by_keyboard(open_page):
    page = open_page(first_page('class="predict admonition'))
    block = page.locator(".admonition.predict").first
    summary, answer = block.locator("summary"), block.locator("details")
    summary.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert not answer.evaluate("d => d.open"), "opened without a choice"
    answer.evaluate("d => { d.open = true }")  # as the browser's own search would
    expect(answer).not_to_have_attribute("open", "")

    block.locator("input[type=radio]").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(block.locator("input[type=radio]").nth(1)).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert answer.evaluate("d => d.open"), "did not open after a choice"


@pytest.mark.parametrize("name", pages('class="predict admonition') or ["(no predict blocks)"])
def test_every_predict_block_is_a_named_group_of_choices(open_page, name):
    page = open_page(name)
    for block in page.locator(".admonition.predict").all():
        group = block.get_by_role("radiogroup")
        assert group.get_by_role("radio").count() >= 2
        name = group.evaluate(
            "g => document.getElementById(g.ariaLabelledByElements?.[0]?.id "
            "?? g.getAttribute('aria-labelledby')).textContent"
        )
        assert "?" in name or "…" in name


def test_without_scripts_a_predict_block_is_a_list_and_a_dropdown(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + first_page('class="predict admonition'))
    block = page.locator(".admonition.predict").first
    assert block.locator("li").count() >= 2
    block.locator("summary").click()
    expect(block.locator("details > div, details > section").first).to_be_visible()
    context.close()


def test_the_vector_demo_follows_the_arrow_keys(open_page):
    page = open_page(first_page("<ln-vector"))
    demo = page.locator("ln-vector").first
    text, slider = demo.get_by_role("status"), demo.get_by_role("slider").first
    before = text.inner_text()
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    after = text.inner_text()
    assert before != after
    # The text is true: recompute it from the sliders.
    values = demo.get_by_role("slider").evaluate_all("all => all.map(i => i.valueAsNumber)")
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    shown = [float(number) for number in re.findall(r"-?\d+\.\d+", after.replace("−", "-"))]
    scaled = [(value - mean) / (variance + 1e-5) ** 0.5 for value in values]
    assert shown == pytest.approx([mean, variance, 1e-5, *scaled], abs=0.0051)


def test_the_vector_demo_works_from_a_file(open_page):
    page = open_page(first_page("<ln-vector"), address=BOOK.as_uri() + "/")
    expect(page.locator("ln-vector").first.get_by_role("status")).to_contain_text("variance")
    assert page.faults == []


def stored_text(cell):
    """What a cell shows as its stored output: text, reports, and the last line of an error."""
    return cell.locator(".cell_output").evaluate_all(
        """all => all.flatMap(output => [...output.children]).map(part =>
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
        shown = run(cell)
        if "progress()" in cell.locator(".cell_input pre").text_content():
            # It counts the torch exercises too, which only Jupyter runs.
            assert "points in all" in shown
            continue
        if cell.locator(".live-error").count():
            # Only a stored error may come out, and its first line is the stored one's last.
            error = cell.locator(".live-error").inner_text()
            shown = shown.replace(error, error.splitlines()[0])
        assert squeeze(shown) == squeeze(stored_text(cell))


def test_nothing_of_python_is_loaded_before_the_first_run(live):
    page, cell = live
    assert page.faults == []
    expect(cell.locator(".live-note")).to_contain_text("cdn.jsdelivr.net")
    run(cell, "1 + 1")
    assert any(CDN in fault for fault in page.faults)


def test_a_cell_is_edited_run_and_reset_by_keyboard(live):
    page, cell = live
    original = cell.locator(".cell_input pre").inner_text()
    cell.locator(".live-edit").focus()
    page.keyboard.press("Enter")
    editor = cell.locator("textarea")
    expect(editor).to_be_focused()
    assert squeeze(editor.input_value()) == squeeze(original)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("for i in range(2):\nprint('row', i)")  # Enter indents by itself
    page.keyboard.press("Shift+Enter")
    expect(cell.get_by_role("status").last).to_have_text(
        re.compile(r"row 0\s+row 1"), timeout=START
    )
    cell.locator(".live-edit").click()
    expect(cell.locator(".cell_input")).to_be_visible()
    expect(editor).to_be_hidden()


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
    expect(output.locator(".live-error")).to_have_text(
        "CheckFailed: layer_norm: wrong (report above)"
    )
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
