"""The block of <ln-orders>: the picture and the text agree with the package, without a mouse."""

import pytest
from playwright.sync_api import expect

from lnres_utils import blocks

from .conftest import BOOK, first_page

ORDERS = [name for name in blocks.PLACEMENTS if name != "plain"]
WORDS = {2: "Two norms", 4: "Four norms"}


@pytest.fixture
def demo(open_page):
    return open_page(first_page("<ln-orders")).locator("ln-orders").first


def model(order):
    stack = blocks.Transformer(8, 1, heads=2, placement=order)
    block = stack.blocks[0]
    return len(block.norms) + len(block.output_norms), hasattr(stack.final_norm, "weight")


def test_all_orders_can_be_chosen(demo):
    assert sorted(demo.get_by_role("radio").evaluate_all(
        "all => all.map(input => input.parentElement.textContent)")) == sorted(ORDERS)


@pytest.mark.parametrize("order", ORDERS)
def test_the_norms_are_those_of_the_package(demo, order):
    demo.get_by_label(order, exact=True).check()
    norms, final = model(order)
    status = demo.get_by_role("status")
    expect(status.locator("code")).to_have_text(blocks.PLACEMENTS[order])
    expect(status).to_contain_text(WORDS[norms])
    expect(status).to_contain_text("one final norm" if final else "no final norm")
    expect(demo.locator("rect[data-on=stream], rect[data-on=branch]")).to_have_count(norms)
    expect(demo.locator("rect[data-on=end]")).to_have_count(int(final))


@pytest.mark.parametrize("order", ORDERS)
def test_x_goes_through_whole_where_no_norm_stands_on_the_stream(demo, order):
    demo.get_by_label(order, exact=True).check()
    on_stream = demo.locator("rect[data-on=stream]").count()
    stream = demo.locator("line.ln-orders-rescaled:not([data-on=key])")
    assert (stream.count() > 0) == (on_stream > 0)
    carries = "The stream carries x itself" if not on_stream else "No path carries x itself"
    expect(demo.get_by_role("status")).to_contain_text(carries)


def test_the_keyboard_chooses_and_the_choice_is_announced(demo):
    demo.get_by_label("post", exact=True).focus()
    demo.page.keyboard.press("ArrowDown")
    expect(demo.get_by_label("pre", exact=True)).to_be_checked()
    expect(demo.get_by_role("status")).to_contain_text("x + f(norm(x))")
    demo.page.keyboard.press("Tab")
    expect(demo.locator(":focus")).to_have_count(0)  # one stop of the Tab key, then out


@pytest.mark.parametrize("order", ORDERS)
def test_no_label_leaves_the_picture(open_page, order):
    page = open_page(first_page("<ln-orders"), width=390)
    demo = page.locator("ln-orders").first
    demo.get_by_label(order, exact=True).check()
    outside = demo.locator("svg").evaluate(
        """svg => { const box = svg.getBoundingClientRect();
           return [...svg.querySelectorAll('text, rect')].filter(part => {
             const b = part.getBoundingClientRect();
             return b.left < box.left - 1 || b.right > box.right + 1 || b.bottom > box.bottom + 1;
           }).map(part => part.outerHTML); }"""
    )
    assert outside == []


def test_the_block_works_from_a_file(open_page):
    page = open_page(first_page("<ln-orders"), address=BOOK.as_uri() + "/")
    expect(page.locator("ln-orders").first.get_by_role("status")).to_contain_text("norm(x + f(x))")
    assert page.faults == []
