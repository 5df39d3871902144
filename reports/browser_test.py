"""The HTML report in a real headless Chromium, opened from a file as a user opens it."""

import shutil
import time

import pytest

from reports.matrix import all_cells
from reports.record import Errors, Record
from reports.store import write_records
from reports.write import write_reports
from reports.write_test import CELLS, COMMON, example

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed"),
]


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1500,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_records(example(), folder / "records.jsonl")
    (folder / "reproducers").mkdir()
    (folder / "reproducers" / "add int8.py").write_text("print('<b>' & 1)\n")
    write_reports(folder, folder, CELLS)
    return folder


@pytest.fixture
def page(browser):
    """Return a function that opens a page and waits for its script; no error may be on the console at the end."""

    def open_page(path, fragment=""):
        browser.get("about:blank")
        browser.get(path.as_uri() + fragment)
        assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
        return browser

    yield open_page
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def select(browser, name, value):
    browser.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input'));",
        name,
        value,
    )


def eventually(check):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if check():
            return True
        time.sleep(0.02)
    return False


def texts(browser, selector):
    """Texts of elements, read in one go: the page may draw its table anew between two calls."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim())", selector
    )


def test_every_cell_has_a_sign_and_a_name_and_what_no_case_reached_is_there(report, page):
    browser = page(report / "index.html")
    cells = browser.find_elements("css selector", "#matrix .cell")
    assert {cell.get_attribute("aria-label"): cell.text for cell in cells} == {
        "Add-14 float32: passed (1 passed)": "✓",
        "Add-14 int8: wrong result (1 wrong result)": "✗",
        "STFT-14 float32: unreached": "·",
        "STFT-14 int8: unreached": "·",
        "Slice-13 float32: unsupported (1 unsupported, 1 oracle disagreement)": "∅",
        "Slice-14 float32: unreached": "·",
        "Slice-14 int8: unreached": "·",
        "My/Op-0 : crash (1 crash)": "‼",
    }
    assert browser.find_element("id", "totals").text == (
        "5 cases in 4 cells of 3 operators: 1 passed, 1 of them on the accelerator; 4 cells that no case reached."
    )


def test_a_click_on_a_cell_leads_to_its_cases_and_a_click_on_a_case_to_its_figures(report, page):
    browser = page(report / "index.html")
    browser.find_element("css selector", "a.cell.s-wrong_result").click()
    assert browser.title.startswith("Add")
    assert texts(browser, "#cases td.id") == ["onnx/Add-14/int8/2x3/random"]
    browser.find_element("css selector", "#cases td.id button").click()
    detail = browser.find_element("css selector", "#cases .detail")
    for part in ("no int8 & no uint8", "at node 'n<0>'", "127 where -128 is expected", "Infinity"):
        assert part in detail.text
    assert browser.switch_to.active_element.get_attribute("aria-expanded") == "true"
    link = browser.find_element("css selector", "#cases .detail a")
    assert link.text == "add int8.py"
    assert link.get_attribute("href") == (report / "reproducers" / "add int8.py").as_uri()
    browser.find_element("css selector", ".detail summary").click()
    assert browser.find_element("css selector", ".detail pre").text == "print('<b>' & 1)"


def test_filters_narrow_the_matrix_and_the_totals(report, page):
    browser = page(report / "index.html")
    select(browser, "outcome", "oracle_disagreement")
    assert eventually(lambda: texts(browser, "#matrix .cell") == ["≠"])
    select(browser, "outcome", "")
    select(browser, "search", "add")
    assert eventually(lambda: texts(browser, "#matrix .cell") == ["✓", "✗"])
    select(browser, "placement", "accelerator")
    assert eventually(lambda: texts(browser, "#matrix .cell") == ["✓"])
    select(browser, "placement", "")
    select(browser, "shows", "placement")
    assert eventually(lambda: texts(browser, "#matrix .cell") == ["A", "M"])
    assert browser.find_element("id", "totals").text.startswith("2 cases in 2 cells of 1 operator:")


def test_a_disagreement_is_listed_with_its_ruling_and_leads_to_its_case(report, page):
    browser = page(report / "index.html")
    row = browser.find_element("xpath", "//h2[contains(., 'References that disagree')]/following::tbody[1]/tr")
    assert "ends beyond the size are clamped" in row.text
    row.find_element("tag name", "a").click()
    assert texts(browser, "#cases td.id") == ["onnx/Slice-13/float32/ends=max"]
    assert "reference\ndiffers" in browser.find_element("css selector", ".detail").text


def test_cases_sort_by_a_figure_both_ways_with_missing_figures_last(page, tmp_path):
    cases = [
        Record(
            **COMMON,
            case_id=name,
            domain="ai.onnx",
            operator="Add",
            stage="compare",
            outcome="passed",
            errors=Errors(max_ulp=ulp),
        )
        for name, ulp in [("a", 9.0), ("b", None), ("c", 10.0)]
    ]
    write_records(cases, tmp_path / "records.jsonl")
    write_reports(tmp_path, tmp_path, CELLS)
    browser = page(tmp_path / "operators" / "onnx.Add.html")
    for order in (["a", "c", "b"], ["c", "a", "b"]):
        browser.find_element("css selector", "button[data-sort=max_ulp]").click()
        assert texts(browser, "#cases td.id") == order


def test_the_theme_changes_on_request(report, page):
    browser = page(report / "index.html")
    before = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    browser.find_element("id", "theme").click()
    after = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert {before, after} == {"rgb(255, 255, 255)", "rgb(13, 17, 23)"}


def contrast(one, two):
    """Contrast ratio of two colours by WCAG 2.1, relative luminance and all."""

    def luminance(colour):
        channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_signs_are_readable_in_both_themes(report, page, theme):
    browser = page(report / "index.html")
    pairs = browser.execute_script(
        "document.documentElement.dataset.theme = arguments[0];"
        "return [...document.querySelectorAll('.cell, .badge')].map((e) => {"
        "const s = getComputedStyle(e); return [e.className, s.color, s.backgroundColor]; });",
        theme,
    )
    assert len({name for name, _, _ in pairs}) > 12
    assert [name for name, one, two in pairs if contrast(one, two) < 4.5] == []


@pytest.mark.slow
def test_twenty_thousand_cases_open_in_two_seconds(page, tmp_path):
    cells = all_cells("onnx", "ai.onnx")
    records = (
        Record(
            **COMMON,
            case_id=f"onnx/{cell.operator}-{cell.since_version}/{cell.dtype}/{number}",
            domain=cell.domain,
            operator=cell.operator,
            since_version=cell.since_version,
            dtype=cell.dtype,
            stage="compare",
            outcome="passed",
            placement="accelerator",
        )
        for number in range(4)
        for cell in cells[:5000]
    )
    write_records(records, tmp_path / "records.jsonl")
    write_reports(tmp_path, tmp_path)
    start = time.monotonic()
    browser = page(tmp_path / "index.html")
    seconds = time.monotonic() - start
    assert browser.find_element("id", "totals").text.startswith("20,000 cases")
    assert seconds < 2
