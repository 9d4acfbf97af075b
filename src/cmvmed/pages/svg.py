"""SVG elements, built as a tree so that all text is escaped; colors come from the style sheet of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10
from xml.etree import ElementTree

Element = ElementTree.Element
CHARACTER_WIDTH = 7.0  # upper estimate in pixels for 12-pixel text
MARGIN = 0.04  # on both sides of a range, as a share of it


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic map from a range of values to a range of pixels."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Pixel of a value; values outside the range are clipped."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            fraction = log(value / self.low) / log(self.high / self.low)
        else:
            fraction = (value - self.low) / (self.high - self.low)
        return self.start + fraction * (self.end - self.start)


def round_ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten in [low, high], approximately five of them."""
    raw = (high - low) / 5.0
    power = 10.0 ** floor(log10(raw))
    step = min((m * power for m in (1.0, 2.0, 5.0, 10.0)), key=lambda step: abs(log(step / raw)))
    return [k * step for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def padded_range(values: Sequence[float], min_width: float = 1e-3) -> tuple[float, float]:
    """Range of the values with a margin on both sides, at least ``min_width`` wide."""
    low, high = min(values), max(values)
    padding = max(MARGIN * (high - low), min_width / 2.0)
    return low - padding, high + padding


def element(tag: str, *children: Element | str, **attributes: object) -> Element:
    """An element; ``class_`` becomes ``class``, underscores in attribute names hyphens; floats have two decimals."""
    node = Element(tag, {name.rstrip("_").replace("_", "-"): _text(value) for name, value in attributes.items()})
    for child in children:
        if isinstance(child, str):
            node.text = (node.text or "") + child
        else:
            node.append(child)
    return node


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def svg_root(element_id: str, title: str, description: str, width: float, height: float, *parts: Element) -> Element:
    """An <svg> element with title and text alternative."""
    return element(
        "svg",
        element("title", title, id=f"{element_id}-title"),
        element("desc", description, id=f"{element_id}-desc"),
        *parts,
        id=element_id,
        role="img",
        aria_labelledby=f"{element_id}-title {element_id}-desc",
        viewBox=f"0 0 {_text(width)} {_text(height)}",
    )


def path(points: Sequence[tuple[float, float]], closed: bool = False, **attributes: object) -> Element:
    """A polyline through points."""
    steps = "L".join(f"{_text(float(x))} {_text(float(y))}" for x, y in points)
    return element("path", d=f"M{steps}{'Z' if closed else ''}", **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> Element:
    """A straight line."""
    return path([(x1, y1), (x2, y2)], False, **attributes)


def text_element(x: float, y: float, text: str, **attributes: object) -> Element:
    """A <text> element at a point."""
    return element("text", text, x=x, y=y, **attributes)


def truncated(text: str, width: float) -> str:
    """The text, cut at its first comma or with an ellipsis if it is wider than ``width`` pixels."""
    n_characters = int(width / CHARACTER_WIDTH)
    if len(text) > n_characters:
        text = text.split(",")[0]
    return text if len(text) <= n_characters else text[: max(n_characters - 1, 1)].rstrip() + "…"


def marker(x: float, y: float, shape: str, size: float = 4.0, **attributes: object) -> Element:
    """A marker: disc, ring, square or diamond."""
    if shape == "square":
        return element("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, **attributes)
    if shape == "diamond":
        radius = 1.35 * size
        return path([(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)], closed=True, **attributes)
    return element("circle", cx=x, cy=y, r=size, **attributes)


def spread_positions(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, at least ``gap`` apart, within the bounds if there is enough space."""
    order = sorted(range(len(wanted)), key=lambda k: wanted[k])
    placed = [0.0] * len(wanted)
    lowest = low
    for k in order:
        placed[k] = max(wanted[k], lowest)
        lowest = placed[k] + gap
    highest = high
    for k in reversed(order):
        placed[k] = min(placed[k], highest)
        highest = placed[k] - gap
    return placed


def to_markup(node: Element) -> str:
    """The element as HTML."""
    return ElementTree.tostring(node, encoding="unicode")
