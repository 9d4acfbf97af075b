"""How sure a model is: posterior variances of the views' scores, and prediction sets from held-out labels.

A view's posterior has S(x, x') = σ²(k(x, x') + β - z(x)ᵀz(x')), where the unlabeled rows reduce the variance by z. With the kernel
itself z(x) = Λ⁻¹(r∘k_Ux), ΛΛᵀ = I + diag(r) K_UU diag(r) and r² = σ²λwa; with low-rank features z(x) = Rᵀ(k(x), 1), and the part of
k(x, x) that the features miss keeps its prior variance, so that rows far from all landmarks keep their prior uncertainty.

Prediction sets say which classes are probable enough.

Let s_(1) ≤ ... ≤ s_(n) be the probabilities that labeled rows have of their classes, by fits that did not use their labels.
Were they by the model itself, and labeled and new rows drawn alike, a new row would be as likely to lie in any of the n + 1
gaps between them: the probability of its class is below s_(k) with probability k/(n + 1). The class c therefore belongs
to the set of a row if the model gives it at least the threshold

    t = s_(k)  with  k = α(n + 1),  interpolated between the two next to it if k is not whole.

This is conformal prediction, except that its usual k, the next lower whole number, meets 1 - α or more, and t meets it on
average; with 15 labels and α = 0.1 it would meet 93.8 %. If k < 1, that is n < 1/α - 1, every class belongs to the set.
The s are by fits to fewer labels than the model's, so 1 - α is no guarantee, but near what is measured
(``python -m benchmarks.prediction_sets``).

If every class has 1/α - 1 held-out labels or more, thresholds are by the labels of each class, and 1 - α is met in each
class, whatever the class shares. Else they are by all labels, and 1 - α is met over all rows. If labels were drawn per
class, each then counts as r_c/a_c labels, where class c has the share r_c of all rows and a_c of the labels, and so does
the new row in n + 1.

If rows belong to groups (persons, days) and new rows to new groups, not rows but groups are drawn alike. One label drawn from
each of the G groups and one row of a new group are, so that t is s_(k) of such a draw with n = G, and every class belongs to the
set if G < 1/α - 1. Here t is its mean over all such draws ("repeated subsampling" of R. Dunn, L. Wasserman and A. Ramdas,
"Distribution-free prediction sets for two-layer hierarchical models", 2023), in which the number of groups whose label is at
most s is a sum of independent draws with the probabilities F_g(s), the shares of such labels in each group. The rank k is the
usual one, the next lower whole number: the unlabeled rows of a group take part in the fits without its labels, which makes
their scores a little better than those of a group that is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from cmvmed._warnings import warn_user
from cmvmed.core.full_kernel import predictive_covariance, predictive_variance
from cmvmed.core.surrogates import logistic_curvature
from cmvmed.data.validation import with_rows
from cmvmed.model.terms import Centers, FewerRows, are_finite, are_indices, check_that
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.nystroem import Landmarks, TrainingRows
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix

if TYPE_CHECKING:
    from cmvmed.model.fitted_model import Model

CurvatureKind: TypeAlias = Literal["fitted", "logistic"]  # a of the last sweep, or ν at the posterior means
ROUNDING = 1e-12  # relative, of sums of weights


@dataclass(frozen=True)
class ViewPosterior:
    """The covariance of one view's scores; see the module."""

    rows: Centers  # the unlabeled rows, or landmarks
    index: IntArray | None  # (u,), which of the rows those are; None for all
    kernel: Kernel
    bias: float  # β
    prior_variance: float  # σ²
    n_functions: int  # F
    row_weights: Array  # (u,), λw
    curvature: Array  # (u, 1 or F), a
    reduction: Array | None = None  # (p + 1, r), R of low-rank features; None with the kernel itself

    def check(self) -> None:
        """Raise a ValueError unless its arrays fit together."""
        n_points = self.rows.rows.shape[1 if self.kernel.kind == "precomputed" else 0]
        check_that(self.index is None or are_indices(self.index, n_points), "a posterior is of none of the rows")
        fits = self.row_weights.shape == self.unlabeled.shape == self.curvature.shape[:1] and self.curvature.ndim == 2
        check_that(self.reduction is not None or fits, "curvatures do not fit the rows")

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""
        points = self.rows.preprocessor.transform(rows)
        k_xx = self.kernel.diagonal(points) + self.bias
        if self.reduction is not None:
            z = self._features(points, self.reduction)
            s = np.maximum(k_xx - np.einsum("ij,ij->i", z, z), 0.0)
            return np.repeat((self.prior_variance * s)[:, None], self.n_functions, axis=1)
        precision = self.row_weights[:, None] * self.curvature
        if not precision.any():
            return np.repeat((self.prior_variance * k_xx)[:, None], self.n_functions, axis=1)
        K_UU, K_Ux = self._unlabeled_kernels(points)
        columns = [
            predictive_variance(K_UU, K_Ux, k_xx, self._roots(own), self.prior_variance, self.kernel.view)
            for own in precision.T
        ]
        return np.broadcast_to(np.column_stack(columns), (rows.shape[0], self.n_functions)).copy()

    def covariance(self, rows: Matrix, means: Array | None = None) -> Array:
        """Posterior covariances (F, n, n) of rows that have this view.

        ``means`` (u, F) are those of the unlabeled rows if the curvature is to be ν = p(1 - p) there instead of the fit's.
        """
        points = self.rows.preprocessor.transform(rows)
        K_xx = self.kernel.among(points) + self.bias
        if self.reduction is not None:
            z = self._features(points, self.reduction)
            parts = [self.prior_variance * (K_xx - z @ z.T)]
        else:
            precision = self.row_weights[:, None] * (self.curvature if means is None else logistic_curvature(means))
            parts = [self.prior_variance * K_xx]
            if precision.any():
                K_UU, K_Ux = self._unlabeled_kernels(points)
                parts = [
                    predictive_covariance(K_UU, K_Ux, K_xx, self._roots(own), self.prior_variance, self.kernel.view)
                    for own in precision.T
                ]
        return np.broadcast_to(np.stack(parts), (self.n_functions, *K_xx.shape))

    def _roots(self, precision: Array) -> Array:
        return np.asarray(np.sqrt(self.prior_variance * precision))

    def _features(self, points: Matrix, reduction: Array) -> Array:
        """z of each row, (n, r)."""
        columns = np.arange(self.rows.size) if self.index is None else self.index
        return Landmarks(self.kernel, self.rows.rows, columns).raw(points) @ reduction

    @property
    def unlabeled(self) -> IntArray:
        """Which of the rows are the unlabeled ones, (u,)."""
        return np.arange(self.rows.size) if self.index is None else self.index

    def _unlabeled_kernels(self, points: Matrix) -> tuple[Array, Array]:
        """Kernel of the unlabeled training rows (u, u), and between them and new rows (u, n), with the bias."""
        train, index = self.rows.rows, self.unlabeled
        return self.kernel.gram(train, index) + self.bias, (self.kernel.cross(points, train, index) + self.bias).T

    def smaller(self, fewer: FewerRows) -> ViewPosterior:
        """Through fewer rows: a landmark gets the weight of the unlabeled rows nearest to it, and their mean curvature."""
        if self.reduction is not None or self.rows.numbers is None or self.rows.size <= fewer.n_rows:
            return self
        Z = fewer.landmarks(self.rows.numbers)
        curvature, row_weights = np.zeros((Z.size, self.curvature.shape[1])), np.zeros(Z.size)
        if self.curvature.any() and self.row_weights.any():
            nearest = self._squared_distances(Z).argmin(axis=1)
            np.add.at(row_weights, nearest, self.row_weights)
            np.add.at(curvature, nearest, self.row_weights[:, None] * self.curvature)
            curvature /= np.where(row_weights > 0.0, row_weights, 1.0)[:, None]
        return replace(self, rows=self.rows.chosen(Z), index=None, row_weights=row_weights, curvature=curvature)

    def _squared_distances(self, landmarks: IntArray) -> Array:
        """‖φ(x) - φ(z)‖² less ‖φ(x)‖² between the unlabeled rows and landmarks, (u, p)."""
        train = self.rows.rows
        own = TrainingRows(self.kernel, train).diagonal(landmarks)
        return np.asarray(own - 2.0 * self.kernel.cross(train[self.unlabeled], train, landmarks))


def standard_deviations(model: Model, matrices: Sequence[Matrix], present: Sequence[BoolArray]) -> list[Array]:
    """Per view, the posterior standard deviations (n, F) of its scores; infinite for rows that lack it."""
    found = []
    for posterior, matrix, has in zip(posteriors(model), matrices, model.usable(present), strict=True):
        rows, infinite = np.flatnonzero(has), np.full(posterior.n_functions, np.inf)
        found.append(with_rows(np.sqrt(posterior.variance(matrix[rows])), rows, matrix.shape[0], infinite))
    return found


def covariances(
    model: Model, matrices: Sequence[Matrix], present: Sequence[BoolArray], curvature: CurvatureKind
) -> list[Array]:
    """Per view, the posterior covariances (F, n, n) of its scores; NaN in the lines of rows that lack it."""
    found = []
    for i, (posterior, matrix, has) in enumerate(zip(posteriors(model), matrices, model.usable(present), strict=True)):
        means = _unlabeled_means(model, i, posterior) if curvature == "logistic" else None
        rows = np.flatnonzero(has)
        S = np.full((posterior.n_functions, *(2 * matrix.shape[:1])), np.nan)
        S[:, rows[:, None], rows] = posterior.covariance(matrix[rows], means)
        found.append(S)
    return found


def posteriors(model: Model) -> tuple[ViewPosterior, ...]:
    """Those of the views; an error if the model has none."""
    if model.posteriors is None:
        raise ValueError("This model holds no posterior variances.")
    return model.posteriors


def _unlabeled_means(model: Model, view: int, posterior: ViewPosterior) -> Array:
    """Posterior means (u, F) of a view's unlabeled training rows."""
    if posterior.reduction is not None:
        raise ValueError(
            f"View {posterior.kernel.view!r} has a low-rank kernel and does not keep its unlabeled rows, which "
            'curvature="logistic" needs; use curvature="fitted", or fit with approximation="exact".'
        )
    scores = model.view_terms[view].values(posterior.rows.rows[posterior.unlabeled])
    return scores[:, 1:] if posterior.n_functions == 1 else scores


@dataclass(frozen=True)
class ClassThresholds:
    """The smallest probability with which each class belongs to a set."""

    values: Array  # (K,), minus infinity for a class that belongs to all sets
    allow_empty: bool = True  # if not, the most probable class belongs to each set

    def sets(self, probabilities: Array, coverage: Array) -> BoolArray:
        """Which classes (n, K) belong to the set of each row; all of a row without any view, whose coverage is zero."""
        sets = (probabilities >= self.values) | (coverage == 0.0)[:, None]
        if not self.allow_empty:
            sets[np.arange(len(sets)), probabilities.argmax(axis=1)] = True
        return np.asarray(sets)


@dataclass(frozen=True)
class HeldOutScores:
    """Probabilities of labels by fits that did not use them."""

    scores: Array  # (l,), s
    codes: IntArray  # (l,), classes
    weights: Array  # (l,), labels that each counts as
    class_weights: Array  # (K,), labels that a new row of each class counts as
    groups: IntArray | None = None  # (l,), numbers of the groups, if the user gave groups

    def check(self, n_classes: int) -> None:
        """Raise a ValueError unless its arrays fit together."""
        n = self.codes.size
        known = are_indices(self.codes, n_classes) and (self.groups is None or self.groups.shape == (n,))
        numbers = are_finite(self.scores, (n,)) and are_finite(self.weights, (n,))
        fits = known and numbers and are_finite(self.class_weights, (n_classes,))
        check_that(fits, "held-out labels do not fit the classes")

    @property
    def n_groups(self) -> int:
        """Groups with labels; 0 if the user gave none."""
        return 0 if self.groups is None else np.unique(self.groups).size

    @property
    def counts(self) -> Array:
        """Number of labels of each class, (K,)."""
        K = self.class_weights.size
        return np.bincount(self.codes, weights=self.weights, minlength=K) / self.class_weights

    def thresholds(self, alpha: float) -> Array:
        """(K,), by the labels of each class if all are finite, else by all labels."""
        everything = np.ones(self.codes.size, dtype=bool)
        by_class = [self._threshold(c, self.codes == c, alpha) for c in range(self.class_weights.size)]
        if np.isfinite(by_class).all():
            return np.array(by_class)
        return np.array([self._threshold(c, everything, alpha) for c in range(self.class_weights.size)])

    def _threshold(self, c: int, used: BoolArray, alpha: float) -> float:
        """t of class c by some of the labels."""
        order = np.argsort(self.scores[used])
        scores, weights = self.scores[used][order], self.weights[used][order]
        if self.groups is not None:
            return between_groups(scores, weights, self.groups[used][order], alpha)
        n = np.cumsum(weights)
        k = alpha * (n[-1] + self.class_weights[c]) if n.size else 0.0
        return float(np.interp(k, n, scores)) if n.size and k >= n[0] * (1.0 - ROUNDING) else -np.inf


def between_groups(scores: Array, weights: Array, groups: IntArray, alpha: float) -> float:
    """Mean t over all draws of one label from each group; ``scores`` (l,) in ascending order."""
    own = np.unique(groups, return_inverse=True)[1]
    G = int(own.max(initial=-1)) + 1
    k = min(floor(alpha * (G + 1) * (1.0 + ROUNDING)), G)
    if k < 1:
        return -np.inf
    counts = np.zeros((k, scores.size))  # row j: probability that j groups have a label up to each score
    counts[0] = 1.0
    for g in range(G):
        F = np.cumsum(np.where(own == g, weights, 0.0))
        F = F / F[-1]
        counts[1:] = counts[1:] * (1.0 - F) + counts[:-1] * F
        counts[0] *= 1.0 - F
    above = counts.sum(axis=0)  # probability that s_(k) is above each score
    return float(scores[0] + above[:-1] @ np.diff(scores))


def thresholds(model: Model, alpha: float, *, allow_empty: bool) -> ClassThresholds:
    """The thresholds at which the sets of a model lack the true class of a share ``alpha`` of the rows."""
    if model.held_out is None:
        raise ValueError(
            "Prediction sets need held-out labels, and this fit has none: use members other than None, label two rows or more of "
            "some class, and let the fit run to its end."
        )
    values = model.held_out.thresholds(alpha)
    if not np.isfinite(values).any():
        n, n_groups = ceil(1.0 / alpha) - 1, model.held_out.n_groups
        if n_groups:
            have, what = f"Held-out labels of {n_groups} groups", f"rows of at least {n} groups"
        else:
            have, what = f"{model.held_out.counts.sum():g} held-out labels", f"at least {n} rows"
        rows = " of rows of new groups" if n_groups else ""
        warn_user(
            f"{have} are too few for sets{rows} with alpha={alpha:g}, so all sets hold all classes; label {what}, or use a "
            "larger alpha."
        )
    return ClassThresholds(values, allow_empty)
