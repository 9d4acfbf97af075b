"""Elements of a picture: built as a tree, so that every text is escaped, and colored by the page's style alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10
from xml.etree import ElementTree

Element = ElementTree.Element
CHARACTER = 7.0  # width of a character of the pictures' 12-pixel text, generously


@dataclass(frozen=True)
class Axis:
    """A range of values laid on a range of pixels, evenly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Pixel of a value; values outside lie on the edge."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            part = log(value / self.low) / log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values within [low, high]: multiples of 1, 2 or 5 times a power of ten, about so many."""
    raw = (high - low) / max(about, 1)
    power = 10.0 ** floor(log10(raw))
    step = min((m * power for m in (1.0, 2.0, 5.0, 10.0)), key=lambda step: abs(log(step / raw)))
    return [k * step for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def padded(values: Sequence[float], least: float = 1e-3, part: float = 0.04) -> tuple[float, float]:
    """Range of the values with a little room on both sides, never narrower than ``least``."""
    low, high = min(values), max(values)
    room = max(part * (high - low), least / 2.0)
    return low - room, high + room


def element(tag: str, *children: Element | str, **attributes: object) -> Element:
    """An element; ``class_`` and underscores in names stand for ``class`` and hyphens, numbers are cut to two decimals."""
    node = Element(tag, {name.rstrip("_").replace("_", "-"): _text(value) for name, value in attributes.items()})
    for child in children:
        if isinstance(child, str):
            node.text = (node.text or "") + child
        else:
            node.append(child)
    return node


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def picture(identity: str, title: str, description: str, width: float, height: float, *parts: Element) -> Element:
    """A whole picture with its name and text alternative."""
    return element(
        "svg",
        element("title", title, id=f"{identity}-title"),
        element("desc", description, id=f"{identity}-desc"),
        *parts,
        id=identity,
        role="img",
        aria_labeledby=f"{identity}-title {identity}-desc",
        viewBox=f"0 0 {_text(width)} {_text(height)}",
    )


def path(points: Sequence[tuple[float, float]], closed: bool = False, **attributes: object) -> Element:
    """Straight lines through points."""
    steps = "L".join(f"{_text(float(x))} {_text(float(y))}" for x, y in points)
    return element("path", d=f"M{steps}{'Z' if closed else ''}", **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> Element:
    """One straight line."""
    return path([(x1, y1), (x2, y2)], False, **attributes)


def words(x: float, y: float, text: str, **attributes: object) -> Element:
    """Text at a point."""
    return element("text", text, x=x, y=y, **attributes)


def shortened(text: str, width: float) -> str:
    """The text, or if it is wider than so many pixels what stands before its comma, or its beginning with an ellipsis."""
    room = int(width / CHARACTER)
    if len(text) > room:
        text = text.split(",")[0]
    return text if len(text) <= room else text[: max(room - 1, 1)].rstrip() + "…"


def marker(x: float, y: float, shape: str, size: float = 4.0, **attributes: object) -> Element:
    """A mark: disc, ring, square or diamond."""
    if shape == "square":
        return element("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, **attributes)
    if shape == "diamond":
        reach = 1.35 * size
        return path([(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)], closed=True, **attributes)
    return element("circle", cx=x, cy=y, r=size, **attributes)


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, at least a gap apart and within the bounds as far as they have room."""
    order = sorted(range(len(wanted)), key=lambda k: wanted[k])
    placed = [0.0] * len(wanted)
    floor_ = low
    for k in order:
        placed[k] = max(wanted[k], floor_)
        floor_ = placed[k] + gap
    ceiling = high
    for k in reversed(order):
        placed[k] = min(placed[k], ceiling)
        ceiling = placed[k] - gap
    return placed


def markup(node: Element) -> str:
    """The element as text for an HTML page."""
    return ElementTree.tostring(node, encoding="unicode")
