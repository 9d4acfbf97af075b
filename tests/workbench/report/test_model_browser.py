"""The report of a model in headless Chromium: wide, narrow, dark, printed, and as a screen reader finds it."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest

from cmvmed.workbench.report import write_report
from tests.pages.browser import (
    MARKS,
    SCREENS,
    background,
    chart_sizes,
    check_no_overflow,
    chromium,
    contrast,
    open_page,
    overflow,
    relative_luminance,
    text_colors,
    texts_outside,
)
from tests.workbench.jobs import write_windows
from tests.workbench.report.trained import train

pytestmark = MARKS


@pytest.fixture(scope="module")
def addresses(tmp_path_factory, activity, hostile):
    """A page with all sections, one with hostile names, and one with few labels in groups."""
    folder = tmp_path_factory.mktemp("reports")
    write_windows(folder)
    cases = {"activity": activity, "hostile": hostile, "few": train(folder, "windows.csv")}
    found = {}
    for name, case in cases.items():
        path = folder / f"{name}.html"
        write_report(path, case.trained, case.table, case.findings, with_learning_curve=name == "activity")
        found[name] = path.as_uri()
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(params=["activity", "hostile", "few"])
def address(request, addresses):
    return addresses[request.param]


@pytest.fixture(params=SCREENS, ids=lambda p: f"{p[0]}-{p[1]}")
def opened(request, browser, address):
    width, scheme = request.param
    open_page(browser, address, width, scheme)
    return browser, width, scheme


def test_console_has_no_messages(opened):
    assert opened[0].get_log("browser") == []


def test_no_sideways_scrolling(opened):
    check_no_overflow(*opened[:2])


def test_charts_are_visible_and_not_cut_off(opened):
    browser, width, _ = opened
    sizes = chart_sizes(browser)
    assert len(sizes) >= 3
    assert all(w > 250 and h > 60 for w, h in sizes)
    assert texts_outside(browser, width) == []


def test_first_screen_has_verdict_and_first_step(opened):
    browser, width, _ = opened
    bottoms = browser.execute_script(
        "return ['h1', '.answer', '.found .lede', '.next li', '.next'].map(s => "
        "document.querySelector(s).getBoundingClientRect().bottom)"
    )
    assert max(bottoms[:3]) < 500
    assert bottoms[3] < 900
    assert width < 600 or bottoms[4] < 900


def test_colors_follow_the_scheme_and_have_contrast(opened):
    browser, _, scheme = opened
    page = background(browser)
    assert (relative_luminance(page) > 0.5) == (scheme == "light")
    colors = text_colors(browser, "p, th, td, figcaption, dt, dd, a, h1, h2, li span, .verdict, .level, .fault")
    raised = browser.execute_script("return getComputedStyle(document.querySelector('.next')).backgroundColor")
    assert len(colors) > 3
    assert all(contrast(color, page) >= 4.5 for color in colors)
    in_box = browser.execute_script("return getComputedStyle(document.querySelector('.next li span')).color")
    assert contrast(in_box, raised) >= 4.5
    marks = browser.execute_script(
        "return [...document.querySelectorAll('.legend svg')].map(n => getComputedStyle(n).color)"
    )
    assert len(set(marks)) == len(marks) > 1  # classes differ by color, and by shape
    assert all(contrast(color, raised) >= 3.0 for color in marks)


def test_no_script_of_a_name_ran(browser, addresses):
    open_page(browser, addresses["hostile"])
    assert browser.execute_script("return document.querySelectorAll('script, img, iframe').length") == 0
    names = browser.execute_script("return [...document.querySelectorAll('.classes tbody th')].map(n => n.textContent)")
    assert "<script>alert(1)</script>" in names


def test_printed_page_fits_and_shows_what_is_folded(browser, address):
    open_page(browser, address, 740, media="print")  # A4 without its margins
    assert overflow(browser) == 0
    hidden = browser.execute_script("return getComputedStyle(document.querySelector('nav')).display")
    assert hidden == "none"
    folded = browser.execute_script(
        "return [...document.querySelectorAll('details table')].map(t => t.getBoundingClientRect().height)"
    )
    assert all(height > 0 for height in folded)
    document = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert document.startswith(b"%PDF")


def test_names_for_screen_readers(browser, address):
    """The accessibility tree: landmarks, headings without gaps, and names of images, tables and regions."""
    open_page(browser, address)
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    by_role = {}
    for node in nodes:
        if not node.get("ignored"):
            by_role.setdefault(node["role"]["value"], []).append(node)
    assert {"banner", "main", "contentinfo", "navigation"} <= set(by_role)
    for role in ("image", "table", "region", "navigation"):
        assert all(node["name"]["value"].strip() for node in by_role[role]), role
    headings = [
        next(p["value"]["value"] for p in node["properties"] if p["name"] == "level") for node in by_role["heading"]
    ]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert {"columnheader", "rowheader"} <= set(by_role)


def test_options_are_not_broken_across_lines(browser, addresses):
    """Each option stays on one line with its value, in sentences and in the command; plain text would break."""
    open_page(browser, addresses["few"], 390)
    script = """
    const made = document.createElement('div');
    made.style.width = '6.5rem';
    const box = document.querySelector('.next');
    box.append(made);
    made.replaceChildren(...[...box.querySelectorAll('code')].map((code) => code.cloneNode(true)));
    const range = document.createRange();
    const lines = (node) => {
      range.selectNodeContents(node);
      return new Set([...range.getClientRects()].map((box) => box.top)).size;
    };
    const options = [...made.querySelectorAll('span')].filter((span) => span.textContent.startsWith('-'));
    const kept = options.map(lines);
    options.forEach((span) => { span.style.display = 'inline'; span.before('xxxxxxx '); });
    return [kept, options.map(lines)];
    """
    kept, broken = browser.execute_script(script)
    assert kept
    assert set(kept) == {1}
    assert max(broken) > 1
