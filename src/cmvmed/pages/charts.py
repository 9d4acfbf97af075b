"""The chart types of the reports: curves with bands, and dots with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.pages.svg import (
    CHARACTER_WIDTH,
    Axis,
    Element,
    element,
    line,
    marker,
    padded_range,
    path,
    round_ticks,
    spread_positions,
    svg_root,
    text_element,
    to_markup,
    truncated,
)

WIDTH = 440.0
OTHER = "other"  # style of curves that are drawn in gray, without label


@dataclass(frozen=True)
class Series:
    """A curve through points (x, y) with a band (x, low, high); it is labeled at its end unless its style is OTHER."""

    name: str
    style: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float, float], ...] = ()
    shape: str = "disc"


@dataclass(frozen=True)
class Chart:
    """Description of a chart: HTML id, title, text alternative and axis labels."""

    element_id: str
    title: str
    description: str
    x_label: str
    y_label: str = ""


@dataclass(frozen=True)
class Mark:
    """A value with an interval, and the shape of its marker."""

    value: float
    interval: tuple[float, float] | None = None
    shape: str = "disc"


@dataclass(frozen=True)
class DotRow:
    """A labeled row of marks."""

    name: str
    style: str
    marks: tuple[Mark, ...]


def line_chart(
    chart: Chart,
    series: Sequence[Series],
    x_ticks: Sequence[float],
    *,
    logarithmic: bool = False,
    diagonal: bool = False,
) -> str:
    """Curves over x, drawn in reverse order so that the first is on top; y is in percent."""
    top, bottom, left, height = 30.0, 262.0, 38.0, 304.0
    named = [curve for curve in series if curve.style != OTHER]
    right = WIDTH - 14.0 - CHARACTER_WIDTH * min(max((len(curve.name) for curve in named), default=0), 18)
    x = Axis(min(x_ticks), max(x_ticks), left + 8.0, right - 8.0, logarithmic)
    values = [y for curve in series for _, y in curve.points]
    values += [bound for curve in named for _, low, high in curve.band for bound in (low, high)]
    low, high = padded_range([*values, *(x_ticks if diagonal else ())], min_width=4.0)
    y = Axis(max(low, 0.0), min(high, 100.0), bottom, top)
    parts = [_grid(x, y, x_ticks, left, right), _axis_labels(chart, left, right, bottom)]
    if diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)  # an axis clips what the other one shows
        parts.append(line(x(low), y(low), x(high), y(high), class_="diagonal"))
    parts += [_curve(curve, x, y) for curve in reversed(series)]
    parts += _end_labels(named, x, y, right)
    return to_markup(svg_root(chart.element_id, chart.title, chart.description, WIDTH, height, *parts))


def _grid(x: Axis, y: Axis, x_ticks: Sequence[float], left: float, right: float) -> Element:
    group = element("g", class_="ticks")
    for value in round_ticks(y.low, y.high):
        group.append(line(left, y(value), right, y(value)))
        group.append(text_element(left - 6.0, y(value) + 4.0, f"{value:g}", text_anchor="end"))
    last_end = -1.0
    for value in x_ticks:
        half = CHARACTER_WIDTH * len(f"{value:g}") / 2.0
        group.append(line(x(value), y.start, x(value), y.start + 5.0))
        if x(value) - half > last_end + 3.0:  # labels that would overlap are omitted
            group.append(text_element(x(value), y.start + 19.0, f"{value:g}", text_anchor="middle"))
            last_end = x(value) + half
    group.append(line(left, y.start, right, y.start, class_="axis"))
    return group


def _axis_labels(chart: Chart, left: float, right: float, bottom: float) -> Element:
    return element(
        "g",
        text_element(2.0, 14.0, chart.y_label),
        text_element((left + right) / 2.0, bottom + 38.0, chart.x_label, text_anchor="middle"),
        class_="labels",
    )


def _curve(curve: Series, x: Axis, y: Axis) -> Element:
    group = element("g", element("title", curve.name), class_=f"series {curve.style}")
    if curve.band and curve.style != OTHER:
        upper = [(x(at), y(high)) for at, _, high in curve.band]
        lower = [(x(at), y(low)) for at, low, _ in reversed(curve.band)]
        group.append(path(upper + lower, closed=True, class_="band"))
    group.append(path([(x(at), y(value)) for at, value in curve.points], class_="curve"))
    if curve.style != OTHER:
        for at, value in curve.points:
            group.append(marker(x(at), y(value), curve.shape, 3.2, class_=curve.shape))
    return group


def _end_labels(named: Sequence[Series], x: Axis, y: Axis, right: float) -> list[Element]:
    """Names at the ends of the curves, without overlap, each connected to its curve by a thin line."""
    heights = spread_positions([y(curve.points[-1][1]) for curve in named], 14.5, y.end + 2.0, y.start - 2.0)
    labels = []
    for curve, height in zip(named, heights, strict=True):
        end_x, end_y = x(curve.points[-1][0]), y(curve.points[-1][1])
        labels.append(
            element(
                "g",
                line(end_x + 5.0, end_y, right + 6.0, height, class_="leader"),
                text_element(right + 9.0, height + 4.0, truncated(curve.name, WIDTH - right - 9.0)),
                class_=f"series {curve.style}",
            )
        )
    return labels


def dot_chart(chart: Chart, rows: Sequence[DotRow], reference: tuple[float, str] | None = None) -> str:
    """Rows of marks over one axis, with a dashed line at a labeled reference value."""
    row_height, top = 23.0, 26.0
    left = 14.0 + CHARACTER_WIDTH * min(max(len(row.name) for row in rows), 31)
    bottom, right = top + row_height * len(rows), WIDTH - 12.0
    values = [bound for row in rows for mark in row.marks for bound in (mark.value, *(mark.interval or ()))]
    low, high = padded_range([*values, *([reference[0]] if reference else [])], min_width=2.0)
    x = Axis(low, high, left, right)
    grid = element("g", class_="ticks")
    for value in round_ticks(low, high):
        grid.append(line(x(value), top, x(value), bottom))
        grid.append(text_element(x(value), bottom + 17.0, f"{value:g}".replace("-", "−"), text_anchor="middle"))
    parts = [grid, element("g", text_element(right, bottom + 35.0, chart.x_label, text_anchor="end"), class_="labels")]
    if reference:
        parts.append(_reference(x(reference[0]), reference[1], top, bottom, left, right))
    for number, row in enumerate(rows):
        parts.append(_dots(row, x, top + row_height * (number + 0.5), left))
    return to_markup(svg_root(chart.element_id, chart.title, chart.description, WIDTH, bottom + 42.0, *parts))


def _reference(at: float, name: str, top: float, bottom: float, left: float, right: float) -> Element:
    half = CHARACTER_WIDTH * len(name) / 2.0
    middle = min(max(at, left + half), right - half)
    return element(
        "g",
        line(at, top - 4.0, at, bottom),
        text_element(middle, top - 10.0, name, text_anchor="middle"),
        class_="reference",
    )


def _dots(row: DotRow, x: Axis, middle: float, left: float) -> Element:
    group = element("g", element("title", row.name), class_=f"series {row.style}")
    group.append(text_element(left - 10.0, middle + 4.0, truncated(row.name, left - 10.0), text_anchor="end"))
    for number, mark in enumerate(row.marks):
        height = middle + 6.0 * (number - (len(row.marks) - 1) / 2.0)
        if mark.interval is not None:
            group.append(line(x(mark.interval[0]), height, x(mark.interval[1]), height, class_="interval"))
        group.append(marker(x(mark.value), height, mark.shape, 3.4, class_=mark.shape))
    return group
