"""Axes, ticks, labels and the positions of elements in both chart types."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from cmvmed.pages.charts import Chart, DotRow, Mark, Series, dot_chart, line_chart
from cmvmed.pages.svg import (
    Axis,
    element,
    padded_range,
    round_ticks,
    spread_positions,
    to_markup,
    truncated,
)

CHART = Chart("figure", "Title", "Description", "x axis", "y axis")


def test_axis_maps_and_clips_values():
    axis = Axis(0.0, 10.0, 100.0, 200.0)
    assert [axis(value) for value in (0.0, 5.0, 10.0, -3.0, 99.0)] == [100.0, 150.0, 200.0, 100.0, 200.0]
    assert Axis(1.0, 100.0, 0.0, 2.0, logarithmic=True)(10.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 100.0, [0, 20, 40, 60, 80, 100]),
        (61.3, 88.2, [65, 70, 75, 80, 85]),
        (-0.2, 0.31, [-0.2, -0.1, 0, 0.1, 0.2, 0.3]),
    ],
)
def test_ticks_are_round_and_within(low, high, expected):
    assert round_ticks(low, high) == pytest.approx(expected)


def test_padding_has_a_minimum():
    assert padded_range([3.0, 3.0], min_width=2.0) == (2.0, 4.0)
    assert padded_range([0.0, 100.0]) == (-4.0, 104.0)


def test_labels_do_not_overlap():
    placed = spread_positions([50.0, 51.0, 52.0, 10.0], gap=10.0, low=0.0, high=100.0)
    assert placed[3] == 10.0
    assert [b - a for a, b in zip(sorted(placed), sorted(placed)[1:], strict=False)] == pytest.approx(
        [40.0, 10.0, 10.0]
    )
    crowded = spread_positions([99.0, 98.0, 100.0], gap=10.0, low=0.0, high=100.0)
    assert crowded == [90.0, 80.0, 100.0]


def test_long_names_are_truncated():
    assert truncated("SVC, labels only", 200.0) == "SVC, labels only"
    assert truncated("logistic regression, labels only", 150.0) == "logistic regression"
    assert truncated("a name without any comma", 70.0) == "a name wi…"


def test_text_is_escaped():
    assert to_markup(element("text", "<b>&", class_='"x"')) == '<text class="&quot;x&quot;">&lt;b&gt;&amp;</text>'


def test_curves_have_bands_names_and_all_points():
    named = Series("CMV-MED", "complete", ((10.0, 70.0), (50.0, 90.0)), ((10.0, 65.0, 75.0), (50.0, 88.0, 92.0)))
    gray = Series("baseline", "other", ((10.0, 60.0), (50.0, 80.0)))
    svg = ElementTree.fromstring(line_chart(CHART, [named, gray], [10.0, 50.0]))
    groups = {node.find("title").text: node for node in svg.iter("g") if node.find("title") is not None}
    assert len(groups["CMV-MED"].findall("circle")) == 2
    assert len([node for node in groups["CMV-MED"] if node.get("class") == "band"]) == 1
    assert not groups["baseline"].findall("circle")
    texts = [node.text for node in svg.iter("text")]
    assert "CMV-MED" in texts
    assert "baseline" not in texts
    low, high = (float(node.get("cy")) for node in groups["CMV-MED"].findall("circle"))
    assert high < low  # higher accuracies are drawn higher


def test_dots_are_at_their_values():
    rows = [DotRow("a", "complete", (Mark(0.0, (-10.0, 10.0)),)), DotRow("b", "other", (Mark(30.0), Mark(60.0)))]
    svg = ElementTree.fromstring(dot_chart(CHART, rows, (0.0, "equal")))
    zero, thirty, sixty = (float(node.get("cx")) for node in svg.iter("circle"))
    assert thirty - zero == pytest.approx(sixty - thirty, abs=0.02)
    reference = next(node for node in svg.iter("g") if node.get("class") == "reference")
    assert float(reference.find("path").get("d")[1:].split(" ")[0]) == pytest.approx(zero, abs=0.02)


def test_one_value_and_equal_values_can_be_drawn():
    assert "<circle" in dot_chart(CHART, [DotRow("a", "other", (Mark(5.0),))])
    flat = Series("flat", "complete", ((1.0, 50.0), (2.0, 50.0)))
    assert "nan" not in line_chart(CHART, [flat], [1.0, 2.0])


def test_diagonal_has_equal_values_on_both_axes():
    """A band from 30 to 100 makes the y range wider than the x range, 80 to 100."""
    curve = Series("a", "complete", ((80.0, 80.0), (100.0, 100.0)), ((80.0, 30.0, 100.0), (100.0, 90.0, 100.0)))
    svg = ElementTree.fromstring(line_chart(CHART, [curve], [80.0, 90.0, 100.0], diagonal=True))
    diagonal = next(node for node in svg.iter("path") if node.get("class") == "diagonal")
    ends = [tuple(map(float, point.split())) for point in diagonal.get("d")[1:].split("L")]
    points = [(float(node.get("cx")), float(node.get("cy"))) for node in svg.iter("circle")]
    assert ends == [pytest.approx(point, abs=0.02) for point in points]
