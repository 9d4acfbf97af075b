"""Figure 1 of the paper, the information projection, with the numbers of a fit: two views, three classes, one row.

Step 2(a) projects the views' predictive distributions p_i to their center: the consensus q minimizes Σ_i π_i KL(q ‖ p_i)
and is their normalized geometric mean. A distribution over three classes is a point of a triangle, so that all of it can
be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import rel_entr, softmax

from cmvmed import CMVMED
from cmvmed.datasets import load_digits_views

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
    """KL(q ‖ p)."""
    return float(rel_entr(q, p).sum())


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
        "opinions": "consensus",
        "n_neighbors": None,
        "calibrate": False,
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
