"""The page in headless Chromium: no errors, visible charts, no horizontal scrolling, correct numbers."""

from __future__ import annotations

import shutil
from statistics import fmean, stdev

import pytest

from cmvmed.reproduction.paper_report import report_page, write_page
from cmvmed.reproduction.store import ResultStore
from tests.reproduction.paper_report.factory import curve_rows, failed_row, table_rows

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's packages chromium and chromium-driver"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "results.sqlite"
    with ResultStore(path) as results:
        for row in [*table_rows(4), *curve_rows(3), failed_row()]:
            results.add(row)
    return path


@pytest.fixture(scope="module")
def address(store):
    path = store.with_name("page.html")
    with ResultStore(store, read_only=True) as results:
        write_page(report_page(results.rows()), path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def open_page(browser, address):
    """Open the page and wait until it is loaded; the driver may return early if the address is unchanged."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get("about:blank")
    browser.get(address)
    is_complete = "return document.readyState === 'complete' && document.querySelector('footer') !== null"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(is_complete))


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def opened(request, browser, address):
    """The page at a width and in a color scheme."""
    width, scheme = request.param
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    open_page(browser, address)
    return browser, width, scheme


def test_console_has_no_messages(opened):
    assert opened[0].get_log("browser") == []


def test_every_chart_is_visible(opened):
    sizes = opened[0].execute_script(
        "return [...document.querySelectorAll('svg[role=img]')]"
        ".map(s => {const b = s.getBoundingClientRect(); return [b.width, b.height]})"
    )
    assert len(sizes) == 28
    assert all(width > 250 and height > 150 for width, height in sizes)


def test_text_of_charts_is_inside_the_window(opened):
    browser, width, _ = opened
    outside = browser.execute_script(
        "return [...document.querySelectorAll('svg[role=img] text')]"
        ".filter(t => {const b = t.getBoundingClientRect(); return b.width && (b.right > arguments[0] || b.left < 0)})"
        ".map(t => t.textContent)",
        width,
    )
    assert outside == []


def test_first_screen_shows_what_was_found(opened):
    browser, width, _ = opened
    tops = browser.execute_script(
        "return ['.leads tbody tr:last-child', '.found li'].map(s => {"
        "const b = document.querySelector(s).getBoundingClientRect(); return b.bottom + window.scrollY})"
    )
    assert tops[0] < 900
    assert width < 600 or tops[1] < 900  # on a narrow screen the claims follow the table


def overflow(browser):
    return browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_no_horizontal_scrolling(opened):
    browser, width, _ = opened
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert overflow(browser) == 0
    browser.execute_script("document.querySelector('h2').style.width = arguments[0] + 'px'", width + 50)
    assert overflow(browser) > 0  # the check detects overflow


def relative_luminance(color):
    channels = [float(part) / 255 for part in color.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    dark, light = sorted([relative_luminance(one), relative_luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_colors_follow_the_scheme_and_have_contrast(opened):
    browser, _, scheme = opened
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (relative_luminance(background) > 0.5) == (scheme == "light")
    text_colors = browser.execute_script(
        "return [...new Set([...document.querySelectorAll('p, th, td, figcaption, dt, dd, a, .verdict')]"
        ".map(n => getComputedStyle(n).color))]"
    )
    fills = browser.execute_script(
        "return [...new Set([...document.querySelectorAll('svg[role=img] text')].map(n => getComputedStyle(n).fill))]"
    )
    assert len(text_colors) > 2
    assert all(contrast(color, background) >= 4.5 for color in [*text_colors, *fills])


def test_table_1_equals_the_database(opened, store):
    browser = opened[0]
    tables = browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('table.accuracy')].map(t => [t.dataset.dataset,"
        " [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.innerText.replace(/\\s+/g, ' ').trim()))]))"
    )
    with ResultStore(store, read_only=True) as results:
        rows = [row for row in results.rows("table1") if row.status == "done"]
    assert set(tables) == {row.dataset for row in rows}
    n_cells = 0
    for dataset, lines in tables.items():
        for method, _, *cells in lines[:-1]:  # the second is the kernel
            for protocol, cell in zip(("defaults", "tuned"), cells, strict=False):
                key = (dataset, method, protocol)
                values = [row.accuracy for row in rows if (row.dataset, row.method, row.protocol) == key]
                assert cell == f"{100 * fmean(values):.1f} ± {100 * stdev(values):.1f}"
                n_cells += 1
    assert n_cells == len({(row.dataset, row.method, row.protocol) for row in rows})
