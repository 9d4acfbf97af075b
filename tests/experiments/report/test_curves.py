"""Curves have styles and bands; figures in files of their own are valid SVG with the colors of both schemes."""

from xml.etree import ElementTree

import pytest
from scipy import stats

from experiments.comparison import mean_interval
from experiments.report.curves import BAND_CONFIDENCE, GAP, curve_panels, figure_file
from experiments.report.grouping import method_style
from tests.experiments.report.factory import curve_rows

SVG = "{http://www.w3.org/2000/svg}"


def test_panels_are_side_by_side_in_one_valid_file():
    panels = curve_panels(curve_rows(5))
    root = ElementTree.fromstring(figure_file("Both <data sets>", [(panel.title, panel.figure) for panel in panels]))
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title").text == "Both <data sets>"
    charts = root.findall(f"{SVG}svg")
    assert len(charts) == 2
    ends = [float(chart.get("x")) + float(chart.get("width")) for chart in charts]
    assert float(charts[1].get("x")) == ends[0] + GAP
    assert ends[1] + GAP == float(root.get("viewBox").split()[2])
    titles = [text.text for text in root.findall(f"{SVG}text")]
    assert titles == [panel.title for panel in panels]
    assert len(charts[0].findall(f".//{SVG}path[@class='band']")) == 6  # of the paper's methods and the printed one


def test_style_has_colors_of_both_schemes_and_nothing_external():
    (panel, *_) = curve_panels(curve_rows(5))
    text = figure_file("Figure", [(panel.title, panel.figure)])
    assert "prefers-color-scheme: dark" in text
    assert "--complete" in text
    assert "url(" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("method", "style"),
    [
        ("CMV-MED", "complete"),
        ("CMV-MED as printed", "printed"),
        ("MED, view x", "single"),
        ("late fusion of MED", "other"),
    ],
)
def test_styles(method, style):
    assert method_style(method) == style


def test_bands_are_intervals_of_the_mean_and_need_five_splits():
    (panel,) = curve_panels(curve_rows(6, ("webkb",)))
    assert 'class="band"' in panel.figure
    (few,) = curve_panels(curve_rows(4, ("webkb",)))
    assert 'class="band"' not in few.figure
    scores = [row.accuracy for row in curve_rows(6, ("webkb",)) if (row.method, row.n_labeled) == ("CMV-MED", 10)]
    low, high = stats.ttest_1samp(scores, 0.0).confidence_interval(BAND_CONFIDENCE)
    assert mean_interval(scores, BAND_CONFIDENCE) == pytest.approx((low, high))
