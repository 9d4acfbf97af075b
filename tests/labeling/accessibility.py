"""Faults of a page for people who use a keyboard, a screen reader or a high contrast, found in a browser."""

from __future__ import annotations

from itertools import pairwise

from tests.pages.browser import contrast

CONTROLS = "a[href], button, select, input, summary"
TEXT_CONTRAST, EDGE_CONTRAST = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11, level AA
MIN_TARGET = 24.0  # pixels: 2.5.8, level AA
NAMED_ROLES = ("button", "checkbox", "combobox", "searchbox", "textbox", "link", "meter", "image", "group", "region")
BEHIND = """
const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (c.startsWith('rgb(')) return c; } return 'rgb(255, 255, 255)'; };
const shown = e => e.checkVisibility({visibilityProperty: true});
const words = e => (e.id || e.className || e.tagName) + ' ' + e.textContent.trim().slice(0, 40);
"""


def weak_texts(browser):
    """Texts whose contrast to what is behind them is too low."""
    found = browser.execute_script(
        BEHIND + "return [...document.querySelectorAll('body *')].filter(e => shown(e) && "
        "[...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))"
        ".map(e => [words(e), getComputedStyle(e).color, behind(e)])"
    )
    assert len(found) > 20
    return [name for name, front, back in found if contrast(front, back) < TEXT_CONTRAST]


def weak_edges(browser):
    """Controls whose edge cannot be seen: neither it nor the area inside differs enough from what is around."""
    found = browser.execute_script(
        BEHIND + "return [...document.querySelectorAll('button, select, input')].filter(shown)"
        ".map(e => [words(e), getComputedStyle(e).borderTopColor, behind(e), behind(e.parentElement)])"
    )
    assert len(found) > 5
    return [
        name
        for name, edge, inside, outside in found
        if max(contrast(edge, outside), contrast(inside, outside)) < EDGE_CONTRAST
    ]


def small_targets(browser):
    """Controls that are hard to hit; links and boxes within a line of text are excepted, as in WCAG."""
    return browser.execute_script(
        BEHIND + "return [...document.querySelectorAll('button, select, input:not([type=checkbox]), summary')]"
        ".filter(e => { const b = e.getBoundingClientRect(); return shown(e) && "
        "(b.width < arguments[0] || b.height < arguments[0]) }).map(words)",
        MIN_TARGET,
    )


def unnamed(browser):
    """Roles of controls, pictures and areas that a screen reader has no name for."""
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = [
        (n["role"]["value"], n.get("name", {}).get("value", ""), n.get("value", {}))
        for n in nodes
        if not n.get("ignored")
    ]
    assert {"banner", "navigation", "main", "search", "button", "heading"} <= {role for role, *_ in named}
    return [role for role, name, _ in named if role in NAMED_ROLES and not name.strip()]


def outside_landmarks(browser):
    """Texts that are in no landmark, where those who go from landmark to landmark do not find them."""
    return browser.execute_script(
        BEHIND + "return [...document.querySelectorAll('body *')].filter(e => shown(e) && "
        "[...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && "
        "!e.closest('header, nav, main, [role=status], [role=alert], .skip')).map(words)"
    )


def structure_faults(browser):
    """Headings that skip a level, repeated ids, references to ids that are not there, missing language or title."""
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].filter(h => h.checkVisibility())"
        ".map(h => Number(h.tagName[1]))"
    )
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    referred = browser.execute_script(
        "return [...document.querySelectorAll('[aria-labelledby], [list], label[for]')]"
        ".flatMap(e => ['aria-labelledby', 'list', 'for'].map(a => e.getAttribute(a)).filter(Boolean))"
    )
    faults = [f"h{after} after h{before}" for before, after in pairwise(levels) if after - before > 1]
    faults += [] if levels.count(1) == 1 and levels[0] == 1 else [f"headings {levels}"]
    faults += [f"id {name} repeated" for name in set(ids) if ids.count(name) > 1]
    faults += [f"no id {name}" for name in referred if name not in ids]
    wanted = "return document.documentElement.lang === 'en' && document.title.trim() !== ''"
    return faults + ([] if browser.execute_script(wanted) else ["no language or title"])


def tab_order(browser, press_tab):
    """What Tab reaches, in its order, until it has left the page; and controls without a visible focus."""
    controls = browser.execute_script(
        BEHIND + "const all = [...document.querySelectorAll(arguments[0])].filter(shown);"
        "all.forEach((e, k) => e.dataset.tab = k); document.activeElement.blur(); return all.map(words)",
        CONTROLS,
    )
    browser.execute_script("window.scrollTo(0, 0); document.body.tabIndex = -1; document.body.focus()")
    order, unseen = [], []
    for _ in range(3 * len(controls)):  # more than enough, unless the focus is caught
        press_tab()
        number, width, style, edge, back = browser.execute_script(
            BEHIND + "const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.dataset.tab ?? null, s.outlineWidth, s.outlineStyle, s.outlineColor, behind(e.parentElement)]"
        )
        if number is None and order:
            break
        if number is not None:
            order.append(int(number))
            if width != "3px" or style == "none" or contrast(edge, back) < EDGE_CONTRAST:
                unseen.append(controls[int(number)])
    browser.execute_script("document.body.removeAttribute('tabindex')")
    return order, unseen, controls
