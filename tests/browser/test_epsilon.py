"""The demo of epsilon, <ln-epsilon>: what it says is true, and it needs no mouse."""

import re

import pytest
from playwright.sync_api import expect

from .conftest import BOOK, first_page


@pytest.fixture
def demo(open_page):
    return open_page(first_page("<ln-epsilon")).locator("ln-epsilon").first


@pytest.mark.parametrize("eps_key, s_key", [("ArrowLeft", "ArrowRight"), ("Home", "End"),
                                            ("End", "Home")])  # fmt: skip
def test_the_text_follows_the_keys_and_is_true(demo, eps_key, s_key):
    text, keyboard = demo.get_by_role("status"), demo.page.keyboard
    before = text.inner_text()
    demo.get_by_label("epsilon ε").focus()
    keyboard.press(eps_key)
    keyboard.press("Tab")
    expect(demo.get_by_label("input std s")).to_be_focused()
    for _ in range(3):
        keyboard.press(s_key)
    assert text.inner_text() != before

    values = demo.get_by_role("slider").evaluate_all("all => all.map(i => i.valueAsNumber)")
    eps, s = (10**value for value in values)
    shown = [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", text.inner_text())]
    assert shown[:2] == pytest.approx([s, eps], rel=0.05)  # two digits
    assert shown[2:] == pytest.approx([s / (s**2 + eps) ** 0.5, s / (s + eps)], abs=0.0006)


@pytest.mark.parametrize("where, exponent, shown", [("inside", -2.74, "0.499"),
                                                    ("outside", -5, "0.500")])  # fmt: skip
def test_the_lesson_can_ask_for_the_s_that_halves_the_output(demo, where, exponent, shown):
    demo.get_by_label("input std s").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }",
        exponent,
    )
    expect(demo.get_by_role("status")).to_contain_text(f"{where} the root: {shown}")


def test_the_epsilon_demo_works_from_a_file(open_page):
    page = open_page(first_page("<ln-epsilon"), address=BOOK.as_uri() + "/")
    expect(page.locator("ln-epsilon").first.get_by_role("status")).to_contain_text("0.302")
    assert page.faults == []
