"""The editor of live cells: what is typed there is kept, and needs no mouse."""

import re

import pytest
from playwright.sync_api import expect

from .conftest import first_page
from .test_live import START, run, squeeze


@pytest.fixture
def cell(open_page):
    """The first live cell of the book."""
    return open_page(first_page('class="cell tag_live')).locator(".cell.tag_live").first


def test_a_cell_is_edited_run_and_reset_by_keyboard(open_live):
    page = open_live(first_page('class="cell tag_live'))
    cell = page.locator(".cell.tag_live").first
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


def type_over(cell, text):
    """Replace the text of the editor by typing, which indents by itself after a colon."""
    cell.locator(".live-edit").click()
    cell.page.keyboard.press("ControlOrMeta+a")
    cell.page.keyboard.type(text)


def test_what_was_typed_survives_a_reload_and_the_way_back(cell):
    page = cell.page
    type_over(cell, "x = 'mine'")
    editor, other = cell.get_by_role("textbox"), page.locator(".cell.tag_live").nth(1)
    page.reload()
    expect(editor).to_have_value("x = 'mine'")
    expect(cell.locator(".cell_input")).to_be_hidden()
    expect(cell.locator(".live-edit")).to_have_text("Reset")
    expect(other.get_by_role("textbox")).to_have_count(0)
    page.locator(".bd-sidebar-primary nav a").last.click()
    page.wait_for_load_state()
    page.go_back()
    expect(editor).to_have_value("x = 'mine'")


def test_reset_forgets(cell):
    type_over(cell, "x = 'mine'")
    cell.page.reload()
    cell.locator(".live-edit").click()
    expect(cell.locator(".cell_input")).to_be_visible()
    cell.page.reload()
    expect(cell.locator(".cell_input")).to_be_visible()
    expect(cell.get_by_role("textbox")).to_have_count(0)


def test_a_changed_book_does_not_get_the_text_of_another_cell(cell):
    type_over(cell, "x = 'mine'")
    cell.page.evaluate(
        """() => { for (const key of Object.keys(sessionStorage)) if (key.startsWith('live ')) {
             const [original, text] = JSON.parse(sessionStorage.getItem(key));
             sessionStorage.setItem(key, JSON.stringify([original + '#', text])); } }"""
    )
    cell.page.reload()
    expect(cell.locator(".cell_input")).to_be_visible()


def test_a_restored_cell_counts_in_the_ones_below(open_live):
    page = open_live(first_page('class="cell tag_live'))
    cells = page.locator(".cell.tag_live")
    type_over(cells.first, "mine = 7")
    page.reload()
    assert run(cells.nth(1), "mine") == "7"


def test_the_label_tells_what_it_is_and_the_keys(cell):
    cell.locator(".live-edit").click()
    editor = cell.get_by_role("textbox")
    expect(editor).to_have_accessible_name("Your version of this cell")
    expect(editor).to_have_accessible_description(re.compile(r"Shift\+Enter.*Ctrl\+\]"))


def test_keys_and_buttons_indent_the_selected_lines(cell):
    type_over(cell, "a = 1\nb = 2\nc = 3")
    keyboard, editor = cell.page.keyboard, cell.get_by_role("textbox")
    editor.evaluate("e => e.setSelectionRange(2, 9)")  # from inside of a to inside of b
    keyboard.press("Control+]")
    expect(editor).to_have_value("    a = 1\n    b = 2\nc = 3")
    cell.get_by_role("button", name="Indent", exact=True).click()
    expect(editor).to_have_value("        a = 1\n        b = 2\nc = 3")
    expect(editor).to_be_focused()
    for _ in range(3):
        keyboard.press("Control+[")
    expect(editor).to_have_value("a = 1\nb = 2\nc = 3")
    keyboard.press("ControlOrMeta+z")  # undone as other typing is
    expect(editor).to_have_value("    a = 1\n    b = 2\nc = 3")
    cell.get_by_role("button", name="Unindent").click()
    expect(editor).to_have_value("a = 1\nb = 2\nc = 3")


def test_the_cursor_stays_with_its_text(cell):
    type_over(cell, "a = 1\nbc")
    keyboard, editor = cell.page.keyboard, cell.get_by_role("textbox")
    keyboard.press("ArrowLeft")
    keyboard.press("Control+]")
    keyboard.type("|")
    expect(editor).to_have_value("a = 1\n    b|c")
    keyboard.press("Control+[")
    keyboard.type("|")
    expect(editor).to_have_value("a = 1\nb||c")


def test_a_bracket_typed_with_altgr_is_a_bracket(cell):
    type_over(cell, "x")
    pressed = "{key: ']', ctrlKey: true, altKey: true, cancelable: true}"
    assert cell.get_by_role("textbox").evaluate(
        f"e => e.dispatchEvent(new KeyboardEvent('keydown', {pressed}))"
    ), "swallowed"
    expect(cell.get_by_role("textbox")).to_have_value("x")


def test_tab_leaves_the_editor(cell):
    type_over(cell, "x")
    cell.page.keyboard.press("Tab")
    expect(cell.get_by_role("textbox")).not_to_be_focused()
    expect(cell.get_by_role("textbox")).to_have_value("x")
