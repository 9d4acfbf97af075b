"""Figure 1 of the paper, the information projection, with the numbers of a fit: two views, three classes, one row.

Step 2(a) projects the views' predictive distributions p_i to their center: the consensus q minimizes Σ_i π_i KL(q ‖ p_i)
and is their normalized geometric mean. A distribution over three classes is a point of a triangle, so that all of it can
be drawn: the views, their center and the geodesics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import rel_entr, softmax

from cmvmed import CMVMED
from cmvmed.datasets import load_digits_views
from cmvmed.pages.rendering import read_template
from cmvmed.pages.svg import Element, element, line, marker, path, svg_root, text_element, to_markup

Distribution: TypeAlias = NDArray[np.float64]  # (3,)

DIGITS = (1, 4, 7)
N_ROWS, N_LABELED = 150, 12
TEMPERATURE = 0.5  # one over the number of views: it adds their evidence


@dataclass(frozen=True)
class Projection:
    """The distributions over the classes of one row: of each view, and of the consensus."""

    classes: tuple[str, ...]
    truth: str
    view_names: tuple[str, ...]
    weights: tuple[float, ...]  # π
    views: tuple[Distribution, ...]
    consensus: Distribution

    @property
    def divergences(self) -> list[float]:
        """KL(consensus ‖ view) of each view."""
        return [divergence(self.consensus, p) for p in self.views]

    @property
    def arithmetic_mean(self) -> Distribution:
        """Σ π_i p_i, which minimizes the reverse divergence Σ π_i KL(p_i ‖ q)."""
        return np.asarray(np.average(self.views, axis=0, weights=self.weights))


@dataclass(frozen=True)
class Example:
    """The same row before and after the annealing."""

    before: Projection
    after: Projection


def divergence(q: Distribution, p: Distribution) -> float:
    """KL(q ‖ p), at least 0 also after rounding."""
    return max(float(rel_entr(q, p).sum()), 0.0)


def mean_divergence(q: Distribution, views: Sequence[Distribution], weights: Sequence[float]) -> float:
    """Σ π_i KL(q ‖ p_i), which step 2(a) minimizes."""
    return sum(weight * divergence(q, p) for weight, p in zip(weights, views, strict=True))


def geometric_mean(views: Sequence[Distribution], weights: Sequence[float]) -> Distribution:
    """Π p_i^{π_i}, normalized."""
    return np.asarray(softmax(sum(weight * np.log(p) for weight, p in zip(weights, views, strict=True))))


def exponential_geodesic(first: Distribution, second: Distribution, n_points: int = 61) -> list[Distribution]:
    """The curve p^{1-t} p'^t, normalized, from the first distribution to the second."""
    return [geometric_mean((first, second), (1.0 - t, t)) for t in np.linspace(0.0, 1.0, n_points)]


def divergence_contour(center: Distribution, level: float, n_points: int = 180) -> list[Distribution]:
    """The distributions q with KL(q ‖ center) = ``level``, or on the boundary of the triangle where that is nearer.

    Σ π_i KL(q ‖ p_i) is KL(q ‖ center) plus its value at the center, so these are its contours too.
    """
    directions = np.array([[1.0, -0.5, -0.5], [0.0, np.sqrt(0.75), -np.sqrt(0.75)]])
    points = []
    for angle in np.linspace(0.0, 2.0 * np.pi, n_points, endpoint=False):
        step = np.array([np.cos(angle), np.sin(angle)]) @ directions
        longest = float(np.min(-center[step < 0.0] / step[step < 0.0]))
        points.append(center + _length(center, step, level, longest) * step)
    return [np.maximum(point, 0.0) for point in points]


def _length(center: Distribution, step: Distribution, level: float, longest: float) -> float:
    """How far to go along ``step`` until the divergence reaches the level, at most ``longest``."""

    def excess(length: float) -> float:
        return divergence(np.maximum(center + length * step, 0.0), center) - level

    return longest if excess(longest) <= 0.0 else float(brentq(excess, 0.0, longest, xtol=1e-10))


@cache
def example() -> Example:
    """The unlabeled row of three handwritten digits on which the independent views disagree most."""
    data = load_digits_views()
    rows = np.flatnonzero(np.isin(data.target, DIGITS))[:N_ROWS]
    X, truth = data.data[rows], data.target[rows]
    y = np.where(np.arange(N_ROWS) < N_LABELED, truth, -1)
    settings: dict[str, Any] = {
        "views": data.views,
        "temperature": TEMPERATURE,
        "members": None,
    }
    independent = CMVMED(consensus_weight=0.0, **settings).fit(X, y)
    annealed = CMVMED(**settings).fit(X, y)
    unlabeled = np.flatnonzero(y == -1)
    q, views = independent.predict_proba(X[unlabeled]), independent.predict_proba_by_view(X[unlabeled]).values()
    disagreement = sum(rel_entr(q, p).sum(axis=1) for p in views)
    row = unlabeled[int(np.argmax(disagreement))]
    return Example(*(_projection(model, X[row : row + 1], str(truth[row])) for model in (independent, annealed)))


def _projection(model: CMVMED, row: NDArray[np.float64], truth: str) -> Projection:
    by_view = model.predict_proba_by_view(row)
    return Projection(
        classes=tuple(str(name) for name in model.classes_),
        truth=truth,
        view_names=tuple(by_view),
        weights=tuple(float(weight) for weight in model.view_weights_),
        views=tuple(p[0] for p in by_view.values()),
        consensus=model.predict_proba(row)[0],
    )


WIDTH, HEIGHT = 440.0, 404.0
SIDE, LEFT, BOTTOM = 384.0, 28.0, 368.0
LEVELS = (0.02, 0.08, 0.18, 0.32, 0.5, 0.72)  # squares of equal steps: divergences grow with the squared distance
STYLES = ("first", "second")  # of the views
SHAPES = ("square", "diamond")
COLORS = (
    "--paper: #fcfbf8; --ink: #1c1e22; --soft: #5b6069; --rule: #dedad0; "
    "--complete: #00609c; --mvmed: #b34700; --svm2k: #00705a;",
    "--paper: #14161a; --ink: #e9e7e1; --soft: #a3a8b1; --rule: #343841; "
    "--complete: #6db7f0; --mvmed: #ff9c66; --svm2k: #54cfa9;",
)


@dataclass(frozen=True)
class ProjectionPanel:
    """One triangle and the numbers in it."""

    title: str
    figure: str
    lines: tuple[tuple[str, tuple[str, ...], str], ...]  # name, probability of each class, divergence
    classes: tuple[str, ...]
    least: str  # Σ π_i KL(q ‖ p_i) at the consensus
    truth: str  # class of the row


def projection_panels(example: Example) -> list[ProjectionPanel]:
    """Before and after the annealing, for the page."""
    before, after = figures(example)
    return [
        _panel("Independent views", example.before, to_markup(before)),
        _panel("After the annealing", example.after, to_markup(after)),
    ]


def standalone(figure: Element) -> str:
    """A figure as a file of its own, with colors for light and dark pages."""
    rules = read_template("projection.css", "experiments.report")
    light, dark = COLORS
    style = element(
        "style",
        f"svg {{ {light} font-family: system-ui, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif; }}\n"
        f"@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}\n{rules}",
    )
    figure.insert(0, element("rect", class_="page", width="100%", height="100%", rx=8))
    figure.insert(0, style)
    figure.set("xmlns", "http://www.w3.org/2000/svg")
    figure.set("width", str(int(WIDTH)))
    figure.set("height", str(int(HEIGHT)))
    return to_markup(figure) + "\n"


def figures(example: Example) -> tuple[Element, Element]:
    """Both triangles; the second also shows where its points were in the first."""
    return (
        _figure("figure1-before", example.before, None),
        _figure("figure1-after", example.after, example.before),
    )


def _figure(element_id: str, shown: Projection, earlier: Projection | None) -> Element:
    first, second = shown.views
    parts = [
        *_contours(shown),
        _triangle(shown.classes),
        path([_place(p) for p in exponential_geodesic(first, second)], class_="geodesic"),
    ]
    parts += _mixture(shown) if earlier is None else _trails(earlier, shown)
    for name, p, style, shape in zip(shown.view_names, shown.views, STYLES, SHAPES, strict=True):
        parts.append(_point(p, style, shape, f"view {name}"))
    parts.append(_point(shown.consensus, "consensus", "disc", "consensus"))
    when = "before the annealing" if earlier is None else "after the annealing"
    svg = svg_root(element_id, f"The information projection {when}", _description(shown), WIDTH, HEIGHT, *parts)
    svg.set("class", "projection")
    return svg


def _place(p: Distribution) -> tuple[float, float]:
    """Pixel of a distribution: the first class is at the left, the last at the right, the other at the top."""
    x, y = p[2] + 0.5 * p[1], p[1] * sqrt(0.75)
    return LEFT + SIDE * float(x), BOTTOM - SIDE * float(y)


def _triangle(classes: Sequence[str]) -> Element:
    left, top, right = (_place(p) for p in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]))  # type: ignore[arg-type]
    return element(
        "g",
        path([left, top, right], closed=True),
        text_element(left[0], left[1] + 22.0, f"class {classes[0]}", text_anchor="middle"),
        text_element(top[0], top[1] - 10.0, f"class {classes[1]}", text_anchor="middle"),
        text_element(right[0], right[1] + 22.0, f"class {classes[2]}", text_anchor="middle"),
        class_="frame",
    )


def _contours(shown: Projection) -> list[Element]:
    """Areas within each contour, from the outside; where they overlap they are darker."""
    return [
        path([_place(p) for p in divergence_contour(shown.consensus, level)], closed=True, class_="contour")
        for level in reversed(LEVELS)
    ]


def _trails(earlier: Projection, shown: Projection) -> list[Element]:
    """From where each point was to where it is."""
    pairs = zip(
        (*earlier.views, earlier.consensus), (*shown.views, shown.consensus), (*STYLES, "consensus"), strict=True
    )
    shapes = (*SHAPES, "disc")
    return [
        element(
            "g",
            line(*_place(start), *_place(end), class_="trail"),
            marker(*_place(start), shape, 4.0, class_="ghost"),
            class_=style,
        )
        for (start, end, style), shape in zip(pairs, shapes, strict=True)
    ]


def _mixture(shown: Projection) -> list[Element]:
    """The straight line of weighted arithmetic means, and the one with the views' weights."""
    x, y = _place(shown.arithmetic_mean)
    mean = element(
        "g",
        marker(x, y, "ring", 4.0, class_="ring"),
        text_element(x, y + 20.0, "arithmetic mean", text_anchor="middle"),
        class_="mean",
    )
    return [path([_place(p) for p in shown.views], class_="mixture"), mean]


def _point(p: Distribution, style: str, shape: str, name: str) -> Element:
    """A mark with its name beside it: the first view's at the left, the second's at the right, the consensus' above."""
    x, y = _place(p)
    anchor, dx, dy = {"first": ("end", -11.0, 5.0), "second": ("start", 11.0, 5.0)}.get(style, ("middle", 0.0, -13.0))
    return element(
        "g",
        marker(x, y, shape, 5.5, class_="mark"),
        text_element(x + dx, y + dy, name, text_anchor=anchor),
        class_=style,
    )


def _description(shown: Projection) -> str:
    views = " and ".join(
        f"view {name} at {_percentages(p)}" for name, p in zip(shown.view_names, shown.views, strict=True)
    )
    return (
        f"The triangle of all distributions over classes {', '.join(shown.classes)}: {views}; on the curve of their weighted "
        f"geometric means between them, the consensus at {_percentages(shown.consensus)}, and around it the contours of the "
        "mean divergence."
    )


def _percentages(p: Distribution) -> str:
    return ", ".join(f"{100.0 * share:.0f} %" for share in p)


def _panel(title: str, shown: Projection, figure: str) -> ProjectionPanel:
    rows = [
        (f"view {name}", p, f"{kl:.3f}")
        for name, p, kl in zip(shown.view_names, shown.views, shown.divergences, strict=True)
    ]
    rows += [("consensus", shown.consensus, ""), ("arithmetic mean", shown.arithmetic_mean, "")]
    return ProjectionPanel(
        title=title,
        figure=figure,
        lines=tuple((name, tuple(f"{share:.3f}" for share in p), kl) for name, p, kl in rows),
        classes=shown.classes,
        least=f"{mean_divergence(shown.consensus, shown.views, shown.weights):.3f}",
        truth=shown.truth,
    )
