"""Every page, in light, in dark and at phone width: nothing from elsewhere, nothing broken."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from .conftest import first_page

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
