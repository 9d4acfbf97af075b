"""Figures in files of their own: valid SVG with all panels, styles and colors of both schemes."""

from xml.etree import ElementTree

from experiments.report.curves import GAP, curve_panels, figure_file
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
