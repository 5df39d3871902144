"""The report of a run in a real headless Chromium: plots are drawn, tables sort, nothing is on the console."""

import shutil

import pytest

from reports.browser_test import browser, page, texts  # noqa: F401 - fixtures
from reports.performance import write_performance
from reports.performance_test import example

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")), reason="chromium is not installed"
    ),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_performance(example(), tmp_path_factory.mktemp("run"), with_trace=True)


def test_both_plots_are_drawn_with_every_operator_that_has_a_place(report, page):  # noqa: F811
    browser = page(report)  # noqa: F811
    drawn = browser.execute_script(
        "return ['roofline', 'occupancy'].map((id) => document.querySelectorAll(`#${id} .scatterlayer .trace`).length)"
    )
    assert drawn[0] == 5
    assert drawn[1] == 2
    points = browser.execute_script("return document.querySelectorAll('#roofline .points path').length")
    assert points == 2


def test_a_click_on_a_heading_sorts_by_it_and_a_second_one_the_other_way(report, page):  # noqa: F811
    browser = page(report)  # noqa: F811
    button = "#operators thead th:nth-child(7) button"
    for expected in (["500", "300", "200"], ["200", "300", "500"]):
        browser.execute_script("document.querySelector(arguments[0]).click()", button)
        assert texts(browser, "#operators tbody td:nth-child(7)") == expected
    assert texts(browser, "#operators th[aria-sort]") == ["cycles"]


def test_the_theme_changes_the_plots_too(report, page):  # noqa: F811
    browser = page(report)  # noqa: F811
    grounds = set()
    for _ in range(2):
        browser.execute_script("document.getElementById('theme').click()")
        grounds.add(browser.execute_script("return document.getElementById('roofline').layout.paper_bgcolor"))
    assert len(grounds) == 2


def test_the_page_links_to_its_timeline(report, page):  # noqa: F811
    assert "timeline.json" in texts(page(report), "main a")
