r"""Simulated Gaussian views with exactly known Bayes error.

Construction for K classes and V informative views:

* the K class centers u_1 .. u_K are the vertices of a regular simplex with circumradius 1 (two classes: +1 and -1);
* view v has the mean ``separation[v] * u_y`` and standard normal noise. The same noise coordinate of two views has
  correlation rho given the class, so that R = (1 - rho) I + rho 11' is its covariance between views;
* coordinates independent of the class are added up to the width of the view, which is then rotated at random.

All views together are equivalent to one simplex of circumradius r with r^2 = s' R^{-1} s (s: the separations), because
the log-likelihood ratio of two classes depends on the data only through s' R^{-1} (the discriminative coordinates).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.special import log_softmax, ndtr
from scipy.stats import ortho_group
from sklearn.utils import Bunch

from cmvmed.datasets.bunch import column_slices

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def make_multiview_gaussian(
    n_samples: int = 1000,
    n_views: int | None = None,
    *,
    n_features: int | Sequence[int] = 20,
    n_classes: int = 2,
    separation: float | Sequence[float] = 1.0,
    class_weights: Sequence[float] | None = None,
    correlation: float = 0.0,
    n_noise_views: int = 0,
    missing_rate: float | Sequence[float] = 0.0,
    labeled: int | float | None = None,
    return_X_y: bool = False,
    random_state: int | None = None,
) -> Bunch | tuple[FloatArray, IntArray]:
    r"""Simulate Gaussian views of given class separation, with the exact Bayes error.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    n_views : int, optional
        Number of informative views. None: the length of ``n_features`` or ``separation`` if a sequence, else 2.
    n_features : int or sequence of int
        Width of each informative view, at least K - 1. A noise view is as wide as the widest informative one.
    n_classes : int
        Number of classes K.
    separation : float or sequence of float
        Distance of each class mean from the center of all class means, per view, in within-class standard deviations.
        Two class means are ``2 * separation`` apart for K = 2, ``separation * sqrt(2 K / (K - 1))`` in general.
    class_weights : sequence of float, optional
        Class probabilities up to a factor; None: equal. The class counts are these shares of ``n_samples``,
        rounded, with at least one row per class.
    correlation : float
        Correlation rho in [0, 1) between the same coordinate of two informative views given the class. 0: the views are
        conditionally independent.
    n_noise_views : int
        Number of additional views that are independent of the class.
    missing_rate : float or sequence of float
        Probability that a view (in the order of ``views``, noise views last) is missing in a row, independently. A row
        that would lose every view keeps one, drawn at random.
    labeled : int, float or None
        Number (int) or share (float) of rows whose label is known in ``y``; None: all. Every class keeps at least one
        label; the other labeled rows are drawn uniformly.
    return_X_y : bool
        Return ``(data, y)`` only.
    random_state : int, optional
        Seed; the same seed gives the same bytes.

    Returns
    -------
    Bunch
        data : (n_samples, sum of widths), missing views as NaN.
        views : dict of view name -> slice of columns; ``view1``, ..., ``noise1``, ...
        target : (n_samples,) true class, 0 .. K - 1.
        y : (n_samples,) the same with -1 where the label is hidden.
        target_names, feature_names : lists of str.
        bayes_error : float, error of the best classifier on complete rows.
        bayes_error_observed : float, the same averaged over the rows of this sample, given the views they have.
        view_bayes_error : dict of view name -> error of the best classifier on this view alone.
        posterior : (n_samples, K) true class probabilities given the views present in the row.
        means : (K, sum of widths) class means.
        rotations : dict of view name -> (width, width) orthogonal matrix; ``x_view = rotation @ coordinates``.
        class_probabilities : (K,). separation : (V,). correlation : float.
        effective_separation : float, separation of one view that is equivalent to all views together.
        DESCR : str.

    Notes
    -----
    The errors are exact, also for unequal classes and K > 2: see ``simplex_bayes_error`` in ``cmvmed.datasets.gaussian``.
    ``make_multiview_gaussian(separation=(1.1, 0.8))`` has r = 1.36 and a Bayes accuracy of Phi(1.36) = 91.3 %.

    Examples
    --------
    >>> problem = make_multiview_gaussian(500, separation=(1.1, 0.8), labeled=30, random_state=0)
    >>> problem.data.shape, int((problem.y >= 0).sum()), round(problem.bayes_error, 4)
    ((500, 40), 30, 0.0869)
    """
    model = _make_model(n_views, n_features, n_classes, separation, class_weights, correlation, n_noise_views)
    missing_rates = _missing_rates(missing_rate, len(model.names))
    rng = np.random.default_rng(random_state)

    target = _draw_classes(n_samples, model.class_probabilities, rng)
    coordinates = _draw_coordinates(target, model, rng)
    rotations = {name: _random_rotation(width, rng) for name, width in zip(model.names, model.widths, strict=True)}
    present = _draw_presence(n_samples, missing_rates, rng)
    y = _hide_labels(target, labeled, n_classes, rng)

    rotated = [c @ rotations[name].T for c, name in zip(coordinates, model.names, strict=True)]
    data = np.hstack([np.where(present[:, [v]], x, np.nan) for v, x in enumerate(rotated)])
    if return_X_y:
        return data, y
    return Bunch(
        data=data,
        views=column_slices(dict(zip(model.names, model.widths, strict=True))),
        target=target,
        y=y,
        target_names=[f"class{k}" for k in range(n_classes)],
        feature_names=[f"{n}_{j}" for n, w in zip(model.names, model.widths, strict=True) for j in range(w)],
        bayes_error=simplex_bayes_error(model.effective_separation(), model.class_probabilities),
        bayes_error_observed=_observed_bayes_error(present, model),
        view_bayes_error=_view_bayes_errors(model),
        posterior=_posterior(coordinates, present, model),
        means=np.hstack([model.view_means(v) @ rotations[name].T for v, name in enumerate(model.names)]),
        rotations=rotations,
        class_probabilities=model.class_probabilities,
        separation=model.separation,
        correlation=model.correlation,
        effective_separation=model.effective_separation(),
        DESCR=_describe(model, missing_rates),
    )


@dataclass(frozen=True)
class _Model:
    """Parameters of the distribution; noise views come last."""

    widths: tuple[int, ...]
    separation: FloatArray  # (V,) informative views only
    class_probabilities: FloatArray  # (K,)
    correlation: float
    vertices: FloatArray  # (K, K - 1), rows of norm 1

    @property
    def n_informative(self) -> int:
        return len(self.separation)

    @property
    def names(self) -> list[str]:
        informative = [f"view{v + 1}" for v in range(self.n_informative)]
        return informative + [f"noise{v + 1}" for v in range(len(self.widths) - self.n_informative)]

    @property
    def all_separations(self) -> FloatArray:
        """The separations with a zero for each noise view."""
        return np.concatenate([self.separation, np.zeros(len(self.widths) - self.n_informative)])

    def view_means(self, v: int) -> FloatArray:
        """Return the (K, width) class means of view v before rotation."""
        means = np.zeros((len(self.vertices), self.widths[v]))
        means[:, : self.vertices.shape[1]] = self.all_separations[v] * self.vertices
        return means

    def discriminant(self, present: BoolArray) -> FloatArray:
        """Return w = R_oo^{-1} s_o over the present informative views o, zero elsewhere; shape (V,)."""
        weights = np.zeros(self.n_informative)
        chosen = np.flatnonzero(present)
        correlation_matrix = np.full((len(chosen), len(chosen)), self.correlation)
        np.fill_diagonal(correlation_matrix, 1.0)
        weights[chosen] = np.linalg.solve(correlation_matrix, self.separation[chosen])
        return weights

    def effective_separation(self, present: BoolArray | None = None) -> float:
        """Return r with r^2 = s_o' R_oo^{-1} s_o over the present informative views o (None: all)."""
        mask = np.ones(self.n_informative, dtype=bool) if present is None else present
        return float(np.sqrt(self.discriminant(mask) @ self.separation))


def _make_model(
    n_views: int | None,
    n_features: int | Sequence[int],
    n_classes: int,
    separation: float | Sequence[float],
    class_weights: Sequence[float] | None,
    correlation: float,
    n_noise_views: int,
) -> _Model:
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}.")
    if n_noise_views < 0:
        raise ValueError(f"n_noise_views must not be negative, got {n_noise_views}.")
    if not 0.0 <= correlation < 1.0:
        raise ValueError(f"correlation must be in [0, 1), got {correlation}.")
    lengths = [np.size(values) for values in (n_features, separation) if np.ndim(values) == 1]
    n_informative = n_views if n_views is not None else max(lengths, default=2)
    widths = _one_per_view(n_features, n_informative, "n_features")
    separations = _one_per_view(separation, n_informative, "separation")
    if widths.min() < n_classes - 1:
        raise ValueError(
            f"n_features must be at least n_classes - 1 = {n_classes - 1} in every view, got {int(widths.min())}: "
            f"{n_classes} equally distant class means need that many dimensions."
        )
    if separations.min() < 0.0 or not np.isfinite(separations).all():
        raise ValueError(f"separation must be finite and not negative, got {separation}.")
    return _Model(
        widths=(*(int(w) for w in widths), *[int(widths.max())] * n_noise_views),
        separation=separations,
        class_probabilities=_class_probabilities(class_weights, n_classes),
        correlation=float(correlation),
        vertices=simplex_vertices(n_classes),
    )


def _one_per_view(values: float | Sequence[float], n_views: int, name: str) -> FloatArray:
    per_view = np.asarray(values, dtype=float)
    if per_view.ndim == 0:
        per_view = np.full(n_views, float(per_view))
    if n_views < 1 or per_view.shape != (n_views,):
        raise ValueError(f"{name} needs one value or one per view: there are {n_views} views, got {values!r}.")
    return per_view


def _class_probabilities(class_weights: Sequence[float] | None, n_classes: int) -> FloatArray:
    weights = np.ones(n_classes) if class_weights is None else np.asarray(class_weights, dtype=float)
    if weights.shape != (n_classes,) or not np.isfinite(weights).all() or weights.min() <= 0.0:
        raise ValueError(f"class_weights must be {n_classes} positive numbers, one per class, got {class_weights!r}.")
    return np.asarray(weights / weights.sum())


def _missing_rates(missing_rate: float | Sequence[float], n_views: int) -> FloatArray:
    rates = _one_per_view(missing_rate, n_views, "missing_rate")
    if not (rates.min() >= 0.0 and rates.max() <= 1.0):
        raise ValueError(f"missing_rate must be in [0, 1], got {missing_rate!r}.")
    return rates


def _draw_classes(n_samples: int, class_probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return shuffled classes whose counts are the rounded shares, at least one of each."""
    n_classes = len(class_probabilities)
    if n_samples < n_classes:
        raise ValueError(f"n_samples must be at least n_classes = {n_classes}, got {n_samples}.")
    free = n_samples - n_classes  # one row of each class is assigned first
    expected = np.maximum(class_probabilities * n_samples - 1.0, 0.0)
    shares = expected / max(expected.sum(), 1.0) * free
    counts = np.floor(shares).astype(int)
    largest_remainders = np.argsort(counts - shares, kind="stable")[: free - counts.sum()]
    counts[largest_remainders] += 1
    return rng.permutation(np.repeat(np.arange(n_classes), counts + 1))


def _draw_coordinates(target: IntArray, model: _Model, rng: np.random.Generator) -> list[FloatArray]:
    """Return one (n_samples, width) array per view, before rotation."""
    shared = rng.standard_normal((len(target), max(model.widths)))
    coordinates = []
    for v, width in enumerate(model.widths):
        own = rng.standard_normal((len(target), width))
        rho = model.correlation if v < model.n_informative else 0.0
        noise = np.sqrt(1.0 - rho) * own + np.sqrt(rho) * shared[:, :width]
        coordinates.append(model.view_means(v)[target] + noise)
    return coordinates


def _random_rotation(width: int, rng: np.random.Generator) -> FloatArray:
    if width == 1:  # scipy's ortho_group needs at least two dimensions
        return np.array([[rng.choice([-1.0, 1.0])]])
    return np.asarray(ortho_group.rvs(width, random_state=rng))


def _draw_presence(n_samples: int, missing_rates: FloatArray, rng: np.random.Generator) -> BoolArray:
    """Return which view is present in which row, (n_samples, n_views); every row has at least one view."""
    present = rng.random((n_samples, len(missing_rates))) >= missing_rates
    kept_view = rng.integers(len(missing_rates), size=n_samples)
    empty = np.flatnonzero(~present.any(axis=1))
    present[empty, kept_view[empty]] = True
    return present


def _hide_labels(target: IntArray, labeled: int | float | None, n_classes: int, rng: np.random.Generator) -> IntArray:
    if labeled is None:
        return target.copy()
    n_labeled = round(labeled * len(target)) if isinstance(labeled, float) else int(labeled)
    if not n_classes <= n_labeled <= len(target):
        raise ValueError(
            f"labeled={labeled!r} means {n_labeled} labels; expected at least one per class ({n_classes}) and at "
            f"most n_samples ({len(target)}). An int is a number of rows, a float a share of them."
        )
    order = rng.permutation(len(target))
    first_of_each_class = np.unique(target[order], return_index=True)[1]
    chosen = np.concatenate([order[first_of_each_class], np.delete(order, first_of_each_class)])[:n_labeled]
    y = np.full_like(target, -1)
    y[chosen] = target[chosen]
    return y


def _posterior(coordinates: list[FloatArray], present: BoolArray, model: _Model) -> FloatArray:
    """Return p(class | present views), (n_samples, K): softmax over k of log pi_k + u_k' (sum over v of w_v c_v).

    The terms -|mean_k|^2 / 2 of the Gaussian log-likelihood are equal for all classes: all vertices have norm 1.
    """
    n_discriminative = model.vertices.shape[1]
    discriminative = np.stack([c[:, :n_discriminative] for c in coordinates[: model.n_informative]], axis=1)
    patterns, pattern_of_row = np.unique(present[:, : model.n_informative], axis=0, return_inverse=True)
    weights = np.stack([model.discriminant(pattern) for pattern in patterns])[pattern_of_row.ravel()]
    statistic = np.einsum("nv,nvd->nd", weights, discriminative)
    return np.asarray(np.exp(log_softmax(np.log(model.class_probabilities) + statistic @ model.vertices.T, axis=1)))


def _observed_bayes_error(present: BoolArray, model: _Model) -> float:
    patterns, counts = np.unique(present[:, : model.n_informative], axis=0, return_counts=True)
    errors = [simplex_bayes_error(model.effective_separation(p), model.class_probabilities) for p in patterns]
    return float(np.average(errors, weights=counts))


def _view_bayes_errors(model: _Model) -> dict[str, float]:
    return {
        name: simplex_bayes_error(float(s), model.class_probabilities)
        for name, s in zip(model.names, model.all_separations, strict=True)
    }


def _describe(model: _Model, missing_rates: FloatArray) -> str:
    lines = [
        "Simulated Gaussian views with known Bayes error (cmvmed.datasets.make_multiview_gaussian)",
        f"class probabilities: {np.round(model.class_probabilities, 4).tolist()}",
        f"correlation between informative views given the class: {model.correlation}",
        f"effective separation of all views together: {model.effective_separation():.4f}",
    ]
    for name, width, s, rate in zip(model.names, model.widths, model.all_separations, missing_rates, strict=True):
        lines.append(f"{name}: {width} features, separation {s:g}, missing rate {rate:g}")
    return "\n".join(lines)


def simplex_vertices(n_classes: int) -> NDArray[np.float64]:
    """Return the (K, K - 1) vertices of the regular simplex with circumradius 1 around the origin.

    For two classes: +1 and -1.
    """
    centered = np.eye(n_classes) - 1.0 / n_classes
    # Helmert's orthonormal basis of the space orthogonal to the ones vector, with fixed signs
    basis = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        basis[:j, j - 1] = 1.0 / np.sqrt(j * (j + 1))
        basis[j, j - 1] = -j / np.sqrt(j * (j + 1))
    return np.asarray(centered @ basis * np.sqrt(n_classes / (n_classes - 1)))


def simplex_bayes_error(circumradius: float, class_probabilities: ArrayLike) -> float:
    r"""Return the Bayes error of Gaussian classes of unit variance on the vertices of a regular simplex.

    Parameters
    ----------
    circumradius : float
        Distance r of every class mean from the center, in units of the common standard deviation.
    class_probabilities : (K,)
        Class probabilities, summing to one.

    Returns
    -------
    float
        1 - P(correct).

    Notes
    -----
    The vertices are K orthogonal vectors of length a = r sqrt(K / (K - 1)) minus their mean, and a translation does
    not change the error. In orthogonal coordinates the K scores are independent normal variables, so that with class
    probabilities pi

    .. math::
        P(\text{correct}) = \sum_k \pi_k \int \phi(t - a)
            \prod_{j \ne k} \Phi\bigl(t + \log(\pi_k / \pi_j) / a\bigr)\, dt .

    For K = 2 equal classes this is 1 - Phi(-r).
    """
    priors = np.asarray(class_probabilities, dtype=float)
    n_classes = len(priors)
    a = circumradius * np.sqrt(n_classes / (n_classes - 1))
    if a < 1e-9:  # no information: predict the majority class
        return float(1.0 - priors.max())

    def correct(t: float, k: int) -> float:
        others = np.delete(priors, k)
        density = math.exp(-0.5 * (t - a) ** 2) / math.sqrt(2.0 * math.pi)
        return density * float(np.prod(ndtr(t + np.log(priors[k] / others) / a)))

    p_correct = sum(priors[k] * quad(correct, a - 10.0, a + 10.0, args=(k,), limit=200)[0] for k in range(n_classes))
    return float(1.0 - p_correct)
