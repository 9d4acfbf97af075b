"""Headless Chromium for tests of pages, and what they measure in it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

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
MARKS = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's packages chromium and chromium-driver"),
]
SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@contextmanager
def chromium(profile, logs=("browser",)):
    """A browser with a profile of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def open_page(browser, address, width=1280, scheme="light", media="screen"):
    """Open a page at a width and in a color scheme; wait, since the driver may return early at an unchanged address."""
    from selenium.webdriver.support.ui import WebDriverWait

    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features, "media": media})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")
    browser.get(address)
    is_complete = "return document.readyState === 'complete' && document.querySelector('footer') !== null"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(is_complete))


def chart_sizes(browser):
    """Width and height of each chart."""
    return browser.execute_script(
        "return [...document.querySelectorAll('svg[role=img]')]"
        ".map(s => {const b = s.getBoundingClientRect(); return [b.width, b.height]})"
    )


def texts_outside(browser, width):
    """Texts of charts that are cut off at the side of the window."""
    return browser.execute_script(
        "return [...document.querySelectorAll('svg[role=img] text')]"
        ".filter(t => {const b = t.getBoundingClientRect(); return b.width && (b.right > arguments[0] || b.left < 0)})"
        ".map(t => t.textContent)",
        width,
    )


def overflow(browser):
    """How many pixels the page is wider than the window."""
    return browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


def check_no_overflow(browser, width):
    """Nothing is wider than the window, also if all details are open; a wide element would be noticed."""
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert overflow(browser) == 0
    browser.execute_script("document.querySelector('h2').style.width = arguments[0] + 'px'", width + 50)
    assert overflow(browser) > 0


def relative_luminance(color):
    channels = [float(part) / 255 for part in color.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    dark, light = sorted([relative_luminance(one), relative_luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def background(browser):
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


def text_colors(browser, selector):
    """Colors of the texts of elements, and of those in charts."""
    return browser.execute_script(
        "return [...new Set([...[...document.querySelectorAll(arguments[0])].map(n => getComputedStyle(n).color),"
        " ...[...document.querySelectorAll('svg[role=img] text')].map(n => getComputedStyle(n).fill)])]",
        selector,
    )
