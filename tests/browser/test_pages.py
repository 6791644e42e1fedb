"""Every page, in light, in dark and at phone width: nothing from elsewhere, nothing broken."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from .conftest import first_page, pages

LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390)}

# What axe finds in the theme itself, and where; anything else fails.
THEME_FINDINGS = {
    "label-content-name-mismatch": (
        "search-button",
        "theme-switch-button",
        "toggle-details__summary",
        "<summary",
    ),
    "region": ("logo",),
}


def foreign_findings(violations):
    return [
        f"{violation['id']}: {node['html'][:160]} ({node['failureSummary']})"
        for violation in violations
        for node in violation["nodes"]
        if not any(mark in node["html"] for mark in THEME_FINDINGS.get(violation["id"], ()))
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_page_is_whole_and_accessible(open_page, page_name, look):
    page = open_page(page_name, *LOOKS[look])
    assert page.faults == []
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, f"the page is {overflow} px too wide"
    # A choice unlocks each answer; then everything that can be opened is looked at too.
    page.evaluate("document.querySelectorAll('.predict-choices input').forEach(i => i.click())")
    page.add_style_tag(content="* { animation: none !important; transition: none !important; }")
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    found = Axe().run(page).response["violations"]
    assert foreign_findings(found) == []


def test_the_address_of_the_book_leads_to_its_first_page(open_page):
    page = open_page("index.html")
    page.wait_for_url("**/chapters/index.html")
    assert page.locator("h1").count() > 0


def test_formulas_are_typeset_and_readable_aloud(open_page):
    page = open_page(first_page('class="math notranslate'))
    assert page.locator("mjx-container").count() > 0
    assert page.locator("mjx-assistive-mml math").count() == page.locator("mjx-container").count()
    assert page.locator("mjx-merror").count() == 0


def test_figures_are_white_cards_in_dark_mode(open_page):
    page = open_page(first_page("<figure"), mode="dark")
    looks = page.locator(".cell_output img").evaluate_all(
        "all => all.map(i => [getComputedStyle(i).backgroundColor, getComputedStyle(i).filter])"
    )
    assert looks and all(look == ["rgb(255, 255, 255)", "none"] for look in looks)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_captions_are_as_readable_as_the_text(open_page, mode):
    for mark in ("<figcaption", "code-block-caption"):
        page = open_page(first_page(mark), mode=mode)
        looks = page.locator("figcaption .caption-text, .code-block-caption .caption-text")
        look = "e => [getComputedStyle(e).color, getComputedStyle(e).fontWeight]"
        text = page.locator(".bd-article p").first.evaluate(look)
        assert text[1] == "400"
        assert all(caption.evaluate(look) == text for caption in looks.all())


def test_the_text_goes_on_close_below_a_figure(open_page):
    page = open_page("chapters/feature-axis/one-vector.html")
    gaps = page.locator("figcaption").evaluate_all(
        """all => all.map(caption => [caption, caption.closest('.cell')?.nextElementSibling])
             .filter(([caption, next]) => next?.matches('p'))
             .map(([caption, next]) => next.getBoundingClientRect().top
                                       - caption.getBoundingClientRect().bottom)"""
    )
    assert gaps and all(8 <= gap <= 24 for gap in gaps)


# What may be too wide for a phone. The test makes it so: lessons avoid it where they can.
WIDE_ON_PHONES = {
    "formula": "mjx-container[display=true]",
    "formula in a line": "p > .math > mjx-container",
    "code": ".cell_input pre",
    "output": ".cell_output pre",
}


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("kind", WIDE_ON_PHONES)
def test_what_goes_on_beyond_the_edge_of_a_phone_says_so(open_page, kind, mode):
    page = open_page("chapters/feature-axis/scale-bias-epsilon.html", mode=mode, width=390)
    page.add_style_tag(content="mjx-container, pre { font-size: 600% !important; }")
    wide = f".bd-article {WIDE_ON_PHONES[kind]}[data-more=right]"
    page.wait_for_selector(wide)
    box = page.locator(wide).first.element_handle()
    assert box.evaluate("b => b.scrollWidth > b.clientWidth + 1")
    assert box.evaluate("b => b.getBoundingClientRect().right <= innerWidth")
    shadow = "b => getComputedStyle(b).boxShadow"
    right = box.evaluate(shadow)
    assert "inset" in right
    # The keyboard reaches what the shadow tells of.
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("b => b.dataset.more.startsWith('left')", arg=box)
    assert box.evaluate(shadow) != right
    box.evaluate("b => { b.scrollLeft = b.scrollWidth }")
    page.wait_for_function("b => b.dataset.more === 'left'", arg=box)


def test_on_a_wide_screen_nothing_is_shaded_without_need(open_page):
    page = open_page("chapters/feature-axis/scale-bias-epsilon.html")
    page.wait_for_load_state()
    for box in page.locator("[data-more]").all():
        assert box.evaluate("b => b.scrollWidth > b.clientWidth")


@pytest.mark.parametrize("name", pages('class="math notranslate') or ["(no formulas)"])
def test_formulas_are_not_cut_on_a_phone(open_page, name):
    page = open_page(name, width=390)
    room = page.locator("mjx-container[display=true]").evaluate_all(
        """all => all.map(box => [parseFloat(getComputedStyle(box).paddingTop),
                                  parseFloat(getComputedStyle(box).paddingBottom)])"""
    )
    assert all(min(pair) >= 6 for pair in room), "no room above or below a formula"
    # A formula in a line of text that is wider than the line scrolls too.
    page.wait_for_function(
        """() => [...document.querySelectorAll('.bd-article mjx-container:not([display])')]
             .filter(formula => formula.checkVisibility({contentVisibilityAuto: true}))
             .every(formula => formula.getBoundingClientRect().right <= innerWidth)""",
        timeout=5000,
    )


def test_short_code_stays_in_one_piece(open_page):
    page = open_page(first_page(">(B,</span>"), width=390)
    short = page.locator(".bd-article :is(p, li, dd) code").evaluate_all(
        """all => all.filter(code => code.textContent.length <= 28 && code.checkVisibility())
             .map(code => [code.textContent, code.getClientRects().length])"""
    )
    assert short
    assert [text for text, lines in short if lines > 1] == []


def test_code_in_headings_fits_the_narrowest_phone(open_page):
    page = open_page("exercises/feature-axis.html", width=320)
    ends = page.locator("h2 code").evaluate_all(
        "all => all.map(code => code.getBoundingClientRect().right)"
    )
    assert ends and max(ends) <= 320


def test_a_first_visit_meets_no_complaint(browser, site):
    context = browser.new_context()
    page = context.new_page()
    said = []
    page.on("console", lambda text: text.type == "error" and said.append(text.text))
    page.goto(site + "chapters/index.html")
    page.wait_for_load_state("networkidle")
    assert said == []
    expect(page.locator("html")).to_have_attribute("data-mode", "auto")
    context.close()


def test_without_scripts_a_page_has_its_colors(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + "chapters/index.html")
    expect(page.locator("html")).not_to_have_attribute("data-theme", "auto")
    context.close()
