"""Figure 1: its points are those of the fit, its geometry that of the triangle, its files those that the command writes."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from benchmarks.figure1 import table
from benchmarks.provenance import RESULTS, body
from experiments.report.projection import (
    LEVELS,
    divergence,
    divergence_contour,
    example,
    exponential_geodesic,
    figures,
    geometric_mean,
    mean_divergence,
    projection_panels,
    standalone,
)
from tests.core.factories import rejects

DOCS = Path(__file__).parents[3] / "docs"
NUMBER = re.compile(r"-?\d+\.?\d*")


@pytest.fixture(scope="module", params=["before", "after"])
def shown(request):
    return getattr(example(), request.param)


def check_center(q, shown):
    """q minimizes the mean divergence: by a general optimizer over all distributions, and by the formula."""

    def objective(logits):
        return mean_divergence(softmax(logits), shown.views, shown.weights)

    best = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(q, softmax(best.x), rtol=0.0, atol=1e-5)
    np.testing.assert_allclose(q, geometric_mean(shown.views, shown.weights), rtol=0.0, atol=1e-12)


def test_the_consensus_of_the_figure_is_the_center_of_the_views(shown):
    check_center(shown.consensus, shown)
    rejects(check_center, shown.arithmetic_mean, shown)


def test_the_arithmetic_mean_is_the_center_of_the_reverse_divergence(shown):
    def reverse(q):
        return sum(weight * divergence(p, q) for weight, p in zip(shown.weights, shown.views, strict=True))

    best = minimize(lambda logits: reverse(softmax(logits)), np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(shown.arithmetic_mean, softmax(best.x), rtol=0.0, atol=1e-5)


def test_the_consensus_is_on_the_geodesic(shown):
    curve = np.array(exponential_geodesic(*shown.views, n_points=2001))
    assert np.abs(curve - shown.consensus).max(axis=1).min() < 1e-3
    assert np.abs(curve - shown.arithmetic_mean).max(axis=1).min() > 0.01
    np.testing.assert_allclose(np.diff(np.log(curve[:, 0] / curve[:, 1]), n=2), 0.0, atol=1e-12)  # log-odds are linear


def test_contours_have_their_value_except_on_the_boundary(shown):
    least = mean_divergence(shown.consensus, shown.views, shown.weights)
    for level in LEVELS:
        contour = divergence_contour(shown.consensus, level)
        values = np.array([mean_divergence(q, shown.views, shown.weights) - least for q in contour])
        inside = np.array([q.min() > 1e-9 for q in contour])
        np.testing.assert_allclose(values[inside], level, rtol=1e-6)
        assert (values <= level + 1e-9).all()
        np.testing.assert_allclose(np.sum(contour, axis=1), 1.0, rtol=1e-12)
        assert inside.any()


def test_the_annealing_brings_the_views_to_each_other():
    found = example()
    assert max(found.after.divergences) < min(found.before.divergences)


@pytest.mark.parametrize(("name", "index"), [("figure1_before.svg", 0), ("figure1_after.svg", 1)])
def test_the_files_are_those_of_the_command(name, index):
    """The same elements, with the same numbers up to a pixel."""
    kept, made = (DOCS / name).read_text(encoding="utf-8"), standalone(figures(example())[index])
    assert NUMBER.sub("0", kept) == NUMBER.sub("0", made)
    kept_numbers, made_numbers = (np.array([float(n) for n in NUMBER.findall(text)]) for text in (kept, made))
    np.testing.assert_allclose(kept_numbers, made_numbers, rtol=0.0, atol=1.0)
    root = ElementTree.fromstring(kept)
    assert root.get("viewBox") == "0 0 440 404"
    assert "prefers-color-scheme: dark" in kept


def test_the_table_is_that_of_the_command():
    kept, made = body(RESULTS / "figure1.md"), table()
    assert NUMBER.sub("0", kept) == NUMBER.sub("0", made)
    np.testing.assert_allclose(
        *([float(n) for n in NUMBER.findall(text)] for text in (kept, made)), rtol=0.0, atol=0.002
    )


def test_panels_show_the_numbers(shown):
    panel = next(
        panel
        for panel in projection_panels(example())
        if panel.least == f"{np.dot(shown.weights, shown.divergences):.3f}"
    )
    assert panel.classes == ("1", "4", "7")
    for (name, shares, kl), p, view, own in zip(
        panel.lines, shown.views, shown.view_names, shown.divergences, strict=False
    ):
        assert name == f"view {view}"
        assert [float(share) for share in shares] == pytest.approx(list(p), abs=5e-4)
        assert float(kl) == pytest.approx(own, abs=5e-4)
    assert panel.lines[2][0] == "consensus"
    for share in shown.consensus:
        assert f"{100.0 * share:.0f} %" in panel.figure
