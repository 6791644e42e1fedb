"""The picker of norms, <ln-axes>: what it says is true, and it needs no mouse."""

import re

import pytest
from playwright.sync_api import expect

from .conftest import BOOK, first_page

# For a block (2, 4, 6) and two groups: numbers in one mean, and means in the block.
NORMS = {
    "layer (over D)": (6, 8),
    "batch (over B and T)": (8, 6),
    "instance (over T)": (4, 12),
    "group (over T and half of D)": (12, 4),
    "slip: over T": (4, 12),
    "slip: over T and D": (24, 2),
}


@pytest.fixture
def demo(open_page):
    return open_page(first_page("<ln-axes")).locator("ln-axes").first


@pytest.mark.parametrize("norm", NORMS)
def test_the_text_counts_what_is_striped(demo, norm):
    demo.get_by_label(norm, exact=True).check()
    together, means = NORMS[norm]
    text = demo.get_by_role("status")
    assert [
        int(n) for n in re.findall(r"(\d+) (?:numbers share|such means)", text.inner_text())
    ] == [together, means]
    for cell in demo.get_by_role("gridcell").all()[::7]:
        cell.hover()
        expect(demo.locator("[aria-selected=true]")).to_have_count(together)
        expect(cell).to_have_attribute("aria-selected", "true")
        striped = demo.locator("path[visibility=visible]")
        expect(striped).to_have_count(together)


WIDE = (("End", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"), (2, 4, 2))
NARROW = (("End", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft"), (2, 1, 5))


@pytest.mark.parametrize("size, keys, end", [(1280, *WIDE), (390, *NARROW)])
def test_the_arrow_keys_go_through_both_examples(demo, size, keys, end):
    """Example 2 is reached where it stands: to the right, or on a narrow page below."""
    demo.page.set_viewport_size({"width": size, "height": 900})
    keyboard = demo.page.keyboard
    demo.get_by_label("layer (over D)").focus()
    keyboard.press("ArrowDown")
    expect(demo.get_by_label("batch (over B and T)")).to_be_checked()
    keyboard.press("ArrowUp")
    keyboard.press("Tab")
    expect(demo.get_by_label("example 1, token 2, feature 3")).to_be_focused()
    for key in keys:
        keyboard.press(key)
    example, token, feature = end
    here = f"example {example}, token {token}, feature {feature}"
    expect(demo.get_by_label(here)).to_be_focused()
    expect(demo.get_by_role("status")).to_contain_text(f"token {token} in example {example}")
    keyboard.press("ArrowUp" if size < 600 else "Home")
    back = "example 1, token 4, feature 5" if size < 600 else "example 2, token 4, feature 1"
    expect(demo.get_by_label(back)).to_be_focused()
    keyboard.press("ArrowLeft")
    back = "example 1, token 4, feature 4" if size < 600 else "example 1, token 4, feature 6"
    expect(demo.get_by_label(back)).to_be_focused()
    keyboard.press("Tab")
    expect(demo.locator(":focus")).to_have_count(0)  # one stop of the Tab key, then out


def test_the_picker_works_from_a_file(open_page):
    page = open_page(first_page("<ln-axes"), address=BOOK.as_uri() + "/")
    expect(page.locator("ln-axes").first.get_by_role("status")).to_contain_text("8 such means")
    assert page.faults == []
