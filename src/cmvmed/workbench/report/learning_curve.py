"""Accuracy with fewer labels, by refitting, and what more labels may bring.

The model is fitted again with a part of the labels; the labels that are left out judge it. The cost is bounded: at most
two or three fits for each of ``PARTS``, on at most ``MAX_ROWS`` rows, and all of them on ``cost`` times as many rows as
the table has, because the time of a fit is about proportional to its rows.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cmvmed.model_selection import hide_labels
from cmvmed.pages.charts import Chart, Series, line_chart
from cmvmed.pages.formatting import LEVEL, format_percentage, plural, share_interval
from cmvmed.workbench.report.model_facts import ModelFacts
from cmvmed.workbench.tables.columns import FloatArray

PARTS = (0.5, 0.25, 0.75)  # of the labels, the most useful first
COST = 0.2  # rows of all refits, as a multiple of the rows of the table; one refit is always made
MAX_ROWS, MAX_LABELS = 400, 300  # rows of a refit; labels among them, and of those that judge it
MIN_REPEATS, MAX_REPEATS = 2, 3
ENOUGH_JUDGED = 100  # labels that judge a part, over all repeats
MIN_LABELS = 8
CROSS_FIT_PART = 0.8  # of the labels that each fit of the model's own cross-fit has
MULTIPLES = (1.5, 2.0, 4.0)  # of the labels, to look ahead to


@dataclass(frozen=True)
class CurvePoint:
    """Refits with the same number of labels."""

    n_labels: int
    n_judged: int  # labels that were left out, over all repeats
    n_right: int
    n_repeats: int
    is_refit: bool = True  # False: the held-out labels of the model itself

    @property
    def accuracy(self) -> float:
        """Share of the left-out labels that are predicted correctly."""
        return self.n_right / self.n_judged

    @property
    def interval(self) -> tuple[float, float]:
        """That of a share seen once: repeats are judged by the same labels in part."""
        n = self.n_judged / self.n_repeats
        return share_interval(self.accuracy * n, n)


@dataclass(frozen=True)
class Forecast:
    """The accuracy with more labels, if the curve goes on as it has."""

    n_labels: int
    accuracy: float
    low: float
    high: float
    gain: float  # over the labels there are
    least_gain: float  # lower bound of the gain


@dataclass(frozen=True)
class LearningCurve:
    """Points, forecasts, figure and a sentence for the page."""

    points: tuple[CurvePoint, ...]
    forecasts: tuple[Forecast, ...]
    lines: tuple[tuple[str, str, str, str], ...]  # labels, accuracy, interval, how it was found
    sentence: str
    figure: str
    n_refits: int
    n_planned: int  # refits of a complete curve


def learning_curve(facts: ModelFacts, cost: float = COST) -> LearningCurve | None:
    """The curve; None if there are too few labels for two points.

    Parameters
    ----------
    cost : bound of the rows of all refits, as a multiple of the rows of the table; one refit is always made
    """
    labeled = np.flatnonzero(facts.codes >= 0)
    planned = _plan(len(labeled), len(facts.class_names))
    n_rows = len(facts.codes)
    n_refits = int(max(1, min(len(planned), cost * n_rows / min(MAX_ROWS, n_rows)))) if planned else 0
    points = _points(facts, labeled, planned[:n_refits])
    own = _own_point(facts)
    points = [*points, own] if own is not None else points
    if len({point.n_labels for point in points}) < 2:
        return None
    found = forecast(points, facts.n_labeled)
    lines, figure = _lines(points, found), _figure(points, found)
    return LearningCurve(tuple(points), tuple(found), lines, _sentence(found), figure, n_refits, len(planned))


def curve_seconds(fit_seconds: float, n_rows: int) -> float:
    """About how long a curve takes, at most, whose model took some seconds to fit to so many rows."""
    return fit_seconds * min(COST, MAX_REPEATS * len(PARTS) * min(MAX_ROWS, n_rows) / n_rows)


def _own_point(facts: ModelFacts) -> CurvePoint | None:
    """What the model's own held-out labels say, by fits with four fifths of the labels."""
    if facts.held_out is None:
        return None
    n_labels = round(CROSS_FIT_PART * facts.n_labeled)
    return CurvePoint(n_labels, len(facts.held_out.codes), int(facts.held_out.is_right.sum()), 1, is_refit=False)


def _plan(n_labeled: int, n_classes: int) -> list[int]:
    """Numbers of labels of all refits of a complete curve: each part once, then again."""
    n = min(n_labeled, MAX_LABELS)
    if n < MIN_LABELS:
        return []
    sizes = [size for size in dict.fromkeys(round(part * n) for part in PARTS) if n_classes <= size <= n - 2]
    repeats = {size: int(np.clip(ENOUGH_JUDGED // (n - size), MIN_REPEATS, MAX_REPEATS)) for size in sizes}
    return [size for repeat in range(MAX_REPEATS) for size in sizes if repeat < repeats[size]]


def _points(facts: ModelFacts, labeled: NDArray[np.intp], refits: Sequence[int]) -> list[CurvePoint]:
    """The points of refits with these numbers of labels."""
    rng = np.random.default_rng(0)
    labeled = part_of_labels(labeled, facts.codes[labeled], min(len(labeled), MAX_LABELS), rng)
    judged: dict[int, list[NDArray[np.bool_]]] = {}
    for size in refits:
        right = _refit(facts, labeled, size, rng)
        if right is not None and len(right):
            judged.setdefault(size, []).append(right)
    return [
        CurvePoint(size, sum(map(len, judged[size])), int(sum(map(np.sum, judged[size]))), len(judged[size]))
        for size in sorted(judged)
    ]


def part_of_labels(
    rows: NDArray[np.intp], codes: NDArray[np.intp], n: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """A random part of the rows with about the same share of each class, at least a row of each."""
    n = max(n, len(np.unique(codes)))
    return np.asarray(rows[hide_labels(codes, n, random_state=int(rng.integers(2**31))) >= 0])


def left_out(
    codes: NDArray[np.intp], groups: NDArray[np.intp], n_kept: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which labels (l,) judge a fit: whole groups, as long as ``n_kept`` labels and one of each class are left."""
    out = np.zeros(len(codes), dtype=np.bool_)
    for group in rng.permutation(np.unique(groups)):
        rest = ~out & (groups != group)
        if rest.sum() >= n_kept and len(np.unique(codes[rest])) == len(np.unique(codes)):
            out = ~rest
    return out


def _refit(
    facts: ModelFacts, labeled: NDArray[np.intp], size: int, rng: np.random.Generator
) -> NDArray[np.bool_] | None:
    """Which of the left-out labels are predicted correctly by a fit to ``size`` labels; None if it cannot be fitted."""
    groups = facts.table.groups
    units = (
        np.arange(len(labeled)) if groups is None else np.unique(groups[labeled].astype(str), return_inverse=True)[1]
    )
    is_judge = left_out(facts.codes[labeled], units, size, rng)
    if not is_judge.any():
        return None
    judges, others = labeled[is_judge], labeled[~is_judge]
    kept = part_of_labels(others, facts.codes[others], size, rng)
    n_unlabeled = max(min(MAX_ROWS - len(kept) - len(judges), len(facts.unlabeled)), 0)
    unlabeled = rng.choice(facts.unlabeled, n_unlabeled, replace=False)
    rows = np.sort(np.concatenate([kept, judges, unlabeled]))
    y = facts.table.labels[rows]  # a copy
    y[~np.isin(rows, kept)] = None
    X = {name: matrix[rows] for name, matrix in facts.table.views.items()}
    model = clone(facts.model).set_params(random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            marks = facts.table.random_rows if facts.model.labels_drawn == "chosen" else None
            model.fit(
                X,
                y,
                groups=None if groups is None else groups[rows],
                random_rows=None if marks is None else marks[rows],
            )
    except ValueError:  # such as a view that no kept row has
        return None
    at = np.searchsorted(rows, judges)
    return np.asarray(model.transduction_[at] == facts.table.labels[judges])


def forecast(points: list[CurvePoint], n_now: int) -> list[Forecast]:
    """The accuracy with more labels, if the error goes on to fall as ε (n/n_now)^(-b) with one b between 0 and 1.

    ε, the error with the labels there are, and b have flat priors; labels that are judged in several repeats count once.
    """
    error, b = np.linspace(0.001, 0.95, 190)[:, None, None], np.linspace(0.0, 1.0, 41)[None, :, None]
    n = np.array([point.n_labels for point in points], dtype=np.float64)
    judged = np.array([point.n_judged / point.n_repeats for point in points])
    wrong = np.array([1.0 - point.accuracy for point in points]) * judged
    p = np.clip(error * (n / n_now) ** -b, 1e-4, 0.97)
    log_posterior = (wrong * np.log(p) + (judged - wrong) * np.log1p(-p)).sum(axis=2)
    weights = np.exp(log_posterior - log_posterior.max())
    weights /= weights.sum()
    found = []
    for multiple in MULTIPLES:
        later = error[:, :, 0] * multiple ** -b[:, :, 0]
        gain = error[:, :, 0] - later
        low, middle, high = 1.0 - _quantiles(later, weights, [0.5 + LEVEL / 2.0, 0.5, 0.5 - LEVEL / 2.0])
        least, usual = _quantiles(gain, weights, [0.5 - LEVEL / 2.0, 0.5])
        found.append(Forecast(round(multiple * n_now), middle, low, high, float(usual), float(least)))
    return found


def _quantiles(values: FloatArray, weights: FloatArray, levels: list[float]) -> FloatArray:
    order = np.argsort(values, axis=None)
    below = np.cumsum(weights.ravel()[order])
    return np.asarray(values.ravel()[order][np.minimum(np.searchsorted(below, levels), order.size - 1)])


def _lines(points: list[CurvePoint], found: list[Forecast]) -> tuple[tuple[str, str, str, str], ...]:
    seen = [
        (
            f"{point.n_labels:,}",
            format_percentage(point.accuracy),
            f"{format_percentage(point.interval[0], 0)} to {format_percentage(point.interval[1], 0)}",
            plural(point.n_repeats, "refit") if point.is_refit else "held-out labels",
        )
        for point in points
    ]
    ahead = [
        (
            f"{entry.n_labels:,}",
            format_percentage(entry.accuracy, 0),
            f"{format_percentage(entry.low, 0)} to {format_percentage(entry.high, 0)}",
            "forecast",
        )
        for entry in found
    ]
    return (*seen, *ahead)


def _sentence(found: list[Forecast]) -> str:
    double = found[MULTIPLES.index(2.0)]
    return (
        f"If the error goes on to fall as it has, twice as many labels ({double.n_labels:,}) would bring about "
        f"{100 * double.gain:.1f} percentage points, and {100 * double.least_gain:.1f} or more with a probability of "
        f"{format_percentage(0.5 + LEVEL / 2.0, 0)}: an accuracy of {format_percentage(double.accuracy, 0)} "
        f"({format_percentage(LEVEL, 0)} interval {format_percentage(double.low, 0)} to "
        f"{format_percentage(double.high, 0)})."
    )


def _figure(points: list[CurvePoint], found: list[Forecast]) -> str:
    ordered = sorted(points, key=lambda point: point.n_labels)
    seen = Series(
        "refits",
        "complete",
        tuple((float(point.n_labels), 100.0 * point.accuracy) for point in ordered),
        tuple((float(point.n_labels), 100.0 * point.interval[0], 100.0 * point.interval[1]) for point in ordered),
    )
    ahead = Series(
        "forecast",
        "single second",
        tuple((float(entry.n_labels), 100.0 * entry.accuracy) for entry in found),
        tuple((float(entry.n_labels), 100.0 * entry.low, 100.0 * entry.high) for entry in found),
        "square",
    )
    ticks = sorted({float(point.n_labels) for point in points} | {float(entry.n_labels) for entry in found})
    chart = Chart(
        "figure-learning",
        "Accuracy by number of labels",
        "Share of left-out labels that are predicted correctly, in percent, with fewer labels than there are, and a forecast for "
        "more; "
        "shaded are 90 % intervals. The table below has the numbers.",
        "number of labels (logarithmic)",
        "predicted correctly, %",
    )
    return line_chart(chart, [seen, ahead], ticks, logarithmic=True)
