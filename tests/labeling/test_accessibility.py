"""The labeling page for people who use a keyboard alone, a screen reader or a high contrast, with every kind of rows.

Each check is followed by a page that is broken on purpose, where it must find something. With axe-core in node_modules
(``npm install --no-save axe-core``), its rules are run too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="browser tests need selenium")
pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")
pytest.importorskip("soundfile", reason="the footsteps are wav files")

from selenium.webdriver.common.keys import Keys

from tests.labeling.accessibility import (
    outside_landmarks,
    small_targets,
    structure_faults,
    tab_order,
    unnamed,
    weak_edges,
    weak_texts,
)
from tests.labeling.driven import JOBS, Page, serving
from tests.pages.browser import MARKS, SCREENS, chromium

pytestmark = MARKS
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
N_LABELS = 12


@pytest.fixture(scope="module", params=list(JOBS))
def shown(request, tmp_path_factory):
    """A browser and the address of a project, some of whose rows are labeled, so that there are opinions."""
    folder = tmp_path_factory.mktemp(request.param)
    truth = list(JOBS[request.param](folder).values())
    with serving(folder) as server, chromium(tmp_path_factory.mktemp("profile")) as browser:
        for row in range(N_LABELS):
            assert server.try_label(5 * row, truth[5 * row]) == 200
        server.wait_until(lambda s: s["estimate"] is not None and not s["learning"])
        yield browser, server.address


@pytest.fixture(params=SCREENS, ids=[f"{width}-{scheme}" for width, scheme in SCREENS])
def page(shown, request):
    """The page with everything that can be opened: list of rows found, keys, a message."""
    browser, address = shown
    opened = Page(browser, address, *request.param)
    opened.wait(lambda: opened.script("return document.querySelectorAll('meter').length") > 0)
    opened.press("9")
    opened.wait(lambda: "no class 9" in opened.text("message"))
    opened.press("/", "1")
    opened.wait(lambda: opened.script("return document.querySelectorAll('#found button').length") > 0)
    opened.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    opened.script("document.querySelectorAll('[hidden]:not(.line)').forEach(e => e.hidden = false)")
    return opened


def test_texts_and_controls_have_contrast_and_size(page):
    assert weak_texts(page.browser) == []
    assert weak_edges(page.browser) == []
    assert small_targets(page.browser) == []
    page.script(
        "const s = getComputedStyle(document.body); reason.style.color = 'rgb(122, 122, 122)'; reason.textContent = 'x';"
        "undo.style.borderColor = undo.style.background = s.backgroundColor;"
        "back.style.padding = '0'; back.style.height = back.style.minHeight = '20px'"
    )
    assert weak_texts(page.browser) == ["reason x"]
    assert [name.split()[0] for name in weak_edges(page.browser)] == ["undo"]
    assert [name.split()[0] for name in small_targets(page.browser)] == ["back"]


def test_everything_has_a_name_and_a_place(page):
    assert unnamed(page.browser) == []
    assert outside_landmarks(page.browser) == []
    assert structure_faults(page.browser) == []
    page.script(
        "undo.textContent = ''; document.querySelector('h3').outerHTML = '<h4>x</h4>';"
        "document.body.append(Object.assign(document.createElement('p'), {textContent: 'lost', id: 'undo'}))"
    )
    assert unnamed(page.browser) == ["button"]
    assert outside_landmarks(page.browser) == ["undo lost"]
    assert "id undo repeated" in structure_faults(page.browser)
    assert "h4 after h2" in structure_faults(page.browser)


def test_tab_reaches_every_control_in_order_and_leaves_the_page(page):
    page.script("document.querySelectorAll('#found li:nth-child(n + 4)').forEach(e => e.remove())")
    order, unseen, controls = tab_order(page.browser, lambda: page.press(Keys.TAB))
    assert order == list(range(len(controls)))  # the order of the document, each once: no keyboard trap
    assert unseen == []


def test_a_caught_or_invisible_focus_would_be_noticed(shown):
    page = Page(*shown, 1280)
    page.script(
        "undo.style.outline = 'none'; forward.addEventListener('keydown', e => e.key === 'Tab' && e.preventDefault())"
    )
    order, unseen, controls = tab_order(page.browser, lambda: page.press(Keys.TAB))
    assert len(set(order)) < len(controls)
    assert [name.split()[0] for name in unseen] == ["undo"]


def test_changes_are_announced(shown):
    page = Page(*shown, 1280)
    live = page.script("return [...document.querySelectorAll('[role=status], [role=alert]')].map(e => [e.id, e.role])")
    assert dict(live) == {"advice": "status", "announce": "status", "message": "alert"}
    page.press_and_wait(Keys.ARROW_RIGHT)
    assert page.text("announce") == f"Row {page.text('row-title')}. {page.text('current')}."
    spoken = page.script("return [...document.querySelectorAll('.class')].map(b => b.textContent)")
    numbered = zip(page.classes(), page.counts(), strict=True)
    assert spoken == [f"{k}{name}{count} labels" for k, (name, count) in enumerate(numbered, 1)]
    pressed = page.script("return [...document.querySelectorAll('.class')].map(b => b.ariaPressed)")
    assert set(pressed) == {"false"}


def test_keys_can_be_switched_off_for_speech_input(shown):
    page = Page(*shown, 1280)
    row = page.text("row-title")
    switch = "const s = document.getElementById('keys-on'); s.closest('details').open = true; s.click()"
    page.script(switch)
    try:
        page = Page(*shown, 1280)  # the choice is kept
        page.press("1", "s", "u", "9", Keys.ARROW_RIGHT)
        assert (page.text("row-title"), page.text("message"), page.text("saved")) == (row, "", "")
    finally:
        page.script(switch)
    page.press_and_wait(Keys.ARROW_RIGHT)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm install --no-save axe-core")
def test_axe_finds_nothing(page):
    page.script("document.getElementById('review-box').hidden = true")
    found = page.browser.execute_async_script(
        AXE.read_text(encoding="utf-8") + ";axe.run(document, {resultTypes: ['violations']})"
        ".then(found => arguments[arguments.length - 1](found.violations.map(v => [v.id, v.nodes.map(n => n.html)])))"
    )
    assert found == []
