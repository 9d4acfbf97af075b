"""The page in headless Chromium: no errors, visible charts, no horizontal scrolling, correct numbers."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest

from experiments.report import report_page, write_page
from experiments.store import ResultStore
from tests.experiments.report.factory import curve_rows, failed_row, table_rows
from tests.pages.browser import (
    MARKS,
    SCREENS,
    background,
    chart_sizes,
    check_no_overflow,
    chromium,
    contrast,
    open_page,
    relative_luminance,
    text_colors,
    texts_outside,
)

pytestmark = MARKS


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
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(params=SCREENS, ids=lambda p: f"{p[0]}-{p[1]}")
def opened(request, browser, address):
    """The page at a width and in a color scheme."""
    width, scheme = request.param
    open_page(browser, address, width, scheme)
    return browser, width, scheme


def test_console_has_no_messages(opened):
    assert opened[0].get_log("browser") == []


def test_every_chart_is_visible(opened):
    sizes = chart_sizes(opened[0])
    assert len(sizes) == 28
    assert all(width > 250 and height > 150 for width, height in sizes)


def test_text_of_charts_is_inside_the_window(opened):
    browser, width, _ = opened
    assert texts_outside(browser, width) == []


def test_first_screen_shows_what_was_found(opened):
    browser, width, _ = opened
    # on a narrow screen the other lines and the claims follow
    shown = [".leads tbody tr:first-child"] if width < 600 else [".leads tbody tr:last-child", ".found li"]
    bottoms = browser.execute_script(
        "return arguments[0].map(s => document.querySelector(s).getBoundingClientRect().bottom + window.scrollY)", shown
    )
    assert max(bottoms) < 900


def test_no_horizontal_scrolling(opened):
    check_no_overflow(*opened[:2])


def test_colors_follow_the_scheme_and_have_contrast(opened):
    browser, _, scheme = opened
    page = background(browser)
    assert (relative_luminance(page) > 0.5) == (scheme == "light")
    colors = text_colors(browser, "p, th, td, figcaption, dt, dd, a, .verdict")
    assert len(colors) > 2
    assert all(contrast(color, page) >= 4.5 for color in colors)


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
