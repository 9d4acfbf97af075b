"""What notebooks show: the numbers of the objects, all names escaped, no colors that only one theme can show."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from cmvmed import CMVMED, MED
from cmvmed._html import html_interval
from cmvmed.datasets import load_digits_views
from cmvmed.model_selection import hide_labels
from cmvmed.workbench import Finding, Findings

EVIL = "<script>alert('x')</script>"


class Cells(HTMLParser):
    """Texts of table cells, row by row, and the names of all tags."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.tags, self.inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag in ("td", "th")
        if tag == "tr":
            self.rows.append([])
        if self.inside:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def own_part(page):
    """What stands below the diagram of scikit-learn."""
    return page[page.rindex('<div style="font:14px') :]


@pytest.fixture(scope="module")
def digits():
    data = load_digits_views()
    return data.data[:300], hide_labels(data.target[:300], 60, random_state=0), data


@pytest.fixture(scope="module")
def model(digits):
    X, y, _ = digits
    return CMVMED(views={EVIL: slice(0, 32), "lower": slice(32, 64)}, n_stages=2).fit(X, y)


def test_a_fitted_model_shows_diagram_verdict_views_and_members(model):
    page = model._repr_html_()
    assert "sk-toggleable" in page  # of scikit-learn
    shown, estimate = own_part(page), model.accuracy_estimate()
    assert estimate.judge(float(model.class_prior_.max()))[1] in unescape(shown)
    assert str(estimate) in unescape(shown)
    rows = Cells(shown).rows
    of_views = {row[0]: row[1:] for row in rows[1:3]}
    assert list(of_views) == [EVIL, "lower"]
    alone = dict(zip(model.members_["name"], model.members_["accuracy"], strict=True))
    assert of_views["lower"] == ["32", f"{model.view_weights_[1]:.2f}", f"{alone['view lower']:.1%}"]
    weights = [float(row[1]) for row in rows[4:]]
    assert len(weights) == len(model.members_["name"])
    assert weights == sorted(weights, reverse=True)
    assert model._repr_mimebundle_()["text/html"].count(EVIL) == page.count(EVIL)


def test_no_name_becomes_markup(model):
    for page in (own_part(model._repr_html_()), Findings([Finding("error", EVIL, EVIL)])._repr_html_()):
        assert EVIL in "".join(cell for row in Cells(page).rows for cell in row)
        assert "script" not in Cells(page).tags


def test_colors_are_those_of_the_page(model):
    """Texts and lines have no color of their own; the blue of the interval has contrast on white and on black."""
    pages = model._repr_html_(), model.accuracy_estimate()._repr_html_(), model.suggest(3)._repr_html_()
    colors = {color for page in pages for color in re.findall(r"#[0-9a-f]{3,6}\b", own_part(page))}
    assert colors == {"#3b82c4"}
    luminance = relative_luminance("#3b82c4")
    assert min(1.05 / (luminance + 0.05), (luminance + 0.05) / 0.05) > 3.0


def relative_luminance(color):
    parts = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_models_without_an_estimate_and_other_estimators(digits):
    X, y, data = digits
    paper = CMVMED.paper(views=data.views, n_stages=2).fit(X, y)
    assert "The accuracy is not known" in paper._repr_html_()
    assert "Members of the pool" in paper._repr_html_()
    for plain in (CMVMED(), MED().fit(X, y)):
        assert "Members of the pool" not in plain._repr_html_()


def test_an_interval_is_drawn_to_scale():
    page = html_interval(0.25, 0.5, 0.875, other=0.1)
    assert "left:25.00%;width:62.50%" in page
    assert "left:calc(50.00% - 1.5px)" in page
    assert "left:calc(10.00% - 0.5px)" in page
    assert 'aria-label="50.0%, between 25.0% and 87.5%"' in page


def test_suggestions_are_a_table_of_their_rows(model):
    found = model.suggest(4)
    head, *rows = Cells(found._repr_html_()).rows
    assert head == ["row", "score", "how", "why"]
    assert [int(row[0]) for row in rows] == found.rows.tolist()
    assert [row[3] for row in rows] == found.reasons


def test_findings_are_a_list_and_a_table():
    findings = Findings([Finding("warning", "constant", "Column 'a' is constant.")])
    assert findings == [Finding("warning", "constant", "Column 'a' is constant.")]
    assert Cells(findings._repr_html_()).rows[1] == ["! warning", "constant", "Column 'a' is constant."]
    assert "Nothing looks wrong" in Findings()._repr_html_()
