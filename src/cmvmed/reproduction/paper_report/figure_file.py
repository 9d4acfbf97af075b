"""Charts of the report as a figure in a file of its own, such as those of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from cmvmed.pages.rendering import read_template
from cmvmed.pages.svg import Element, element, text_element, to_markup

TITLE_HEIGHT, GAP = 34.0, 24.0
NAMESPACE = "http://www.w3.org/2000/svg"


def figure_file(title: str, panels: Sequence[tuple[str, str]]) -> str:
    """An SVG file with panels side by side, each with a title; colors follow the light or dark color scheme.

    Parameters
    ----------
    title : str
        Text alternative of the figure.
    panels : sequence of (title, chart)
        Charts as returned by ``line_chart`` or ``dot_chart``.
    """
    style = read_template("charts.css")
    charts = [ElementTree.fromstring(markup) for _, markup in panels]  # nosec B314 # made by this package
    sizes = [_size(chart) for chart in charts]
    width = sum(w for w, _ in sizes) + GAP * (len(sizes) + 1)
    height = max(h for _, h in sizes) + TITLE_HEIGHT + GAP
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height}
    root = element("svg", element("title", title), element("style", style), **size)
    root.set("xmlns", NAMESPACE)
    root.append(element("rect", width=width, height=height, style="fill: var(--paper)"))
    left = GAP
    for (panel_title, _), chart, (w, h) in zip(panels, charts, sizes, strict=True):
        heading = text_element(left, 24.0, panel_title, style="font-weight: 700; font-size: 14px; fill: var(--ink)")
        root.append(heading)
        for name, value in {"x": left, "y": TITLE_HEIGHT, "width": w, "height": h}.items():
            chart.set(name, f"{value:g}")
        root.append(chart)
        left += w + GAP
    return to_markup(root) + "\n"


def _size(chart: Element) -> tuple[float, float]:
    _, _, width, height = map(float, chart.attrib["viewBox"].split())
    return width, height
