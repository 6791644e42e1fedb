"""Predict blocks and demos, used as a reader uses them."""

import re

import pytest
from playwright.sync_api import expect

from .conftest import BOOK, first_page, pages


@pytest.fixture
def predict(open_page):
    """The first predict block of the book, within sight."""
    block = open_page(first_page('class="predict admonition')).locator(".admonition.predict").first
    block.scroll_into_view_if_needed()
    return block


def is_open(block):
    return block.locator("details").evaluate("d => d.open")


def test_an_answer_stays_closed_before_a_choice(predict):
    predict.locator("summary").focus()
    predict.page.keyboard.press("Enter")
    predict.page.keyboard.press("Space")
    assert not is_open(predict)
    answer = predict.locator("details")
    answer.evaluate("d => { d.open = true }")  # as the browser's own search would
    expect(answer).not_to_have_attribute("open", "")


def test_choosing_with_the_mouse_opens_the_answer_and_moves_nothing(predict):
    places = """block => [...block.querySelectorAll('label, summary')]
                  .map(part => part.getBoundingClientRect().top)"""
    before = predict.evaluate(places)
    predict.locator("label").nth(1).click()
    assert is_open(predict)
    assert predict.evaluate(places) == before
    expect(predict.get_by_role("status")).to_have_text("The answer is open.")
    expect(predict.get_by_role("radio").nth(1)).to_be_focused()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_arrow_keys_look_at_choices_and_enter_or_space_chooses(predict, key):
    keyboard = predict.page.keyboard
    predict.get_by_role("radio").first.focus()
    for _ in range(2):
        keyboard.press("ArrowDown")
    keyboard.down("ArrowUp")
    keyboard.down("ArrowUp")  # held down, it repeats
    keyboard.up("ArrowUp")
    assert not is_open(predict), "opened while the choices were read"
    keyboard.press(key)
    assert is_open(predict)
    expect(predict.get_by_role("radio", checked=True)).to_be_focused()


def test_a_choice_by_arrow_key_lets_the_dropdown_open(predict):
    predict.get_by_role("radio").first.focus()
    predict.page.keyboard.press("ArrowDown")
    predict.page.keyboard.press("Tab")
    predict.page.keyboard.press("Enter")
    assert is_open(predict)


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
