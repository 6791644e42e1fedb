"""The demo of one vector, <ln-vector>: small variances and the band are told truly."""

import pytest
from playwright.sync_api import expect

from .conftest import first_page


def test_the_vector_demo_shows_a_variance_near_epsilon(open_page):
    demo = open_page(first_page("<ln-vector")).locator("ln-vector").first
    demo.get_by_role("slider").evaluate_all(
        """all => all.forEach((input, i) => {
            input.value = i ? 2.9 : 3;
            input.dispatchEvent(new Event("input"));
        })"""
    )
    expect(demo.get_by_role("status")).to_contain_text("variance 0.0019")
    # The band, one standard deviation to either side: 0.0866 and 1.994 of 18 px.
    heights = demo.locator("svg rect[fill-opacity='0.15']").evaluate_all(
        "all => all.slice(0, 2).map(rect => Number(rect.getAttribute('height')))"
    )
    assert heights == pytest.approx([2 * 0.0433 * 18, 2 * 0.9973 * 18], rel=0.01)
