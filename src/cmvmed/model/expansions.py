"""Kernel expansions of one view: f(x) = Σ_j a_j (k(x, z_j) + β) + c over training rows, landmarks or weights z_j."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from cmvmed.model.terms import Centers, FewerRows, Present, are_finite, are_indices, check_that
from cmvmed.numerics.kernel_expansions import KernelExpansion, KernelSum, can_sum, kernel_sum
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.linalg import is_sparse, unit_rows, whitening
from cmvmed.numerics.nystroem import RANK_TOLERANCE
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.types import Array, IntArray, Matrix

if TYPE_CHECKING:
    from cmvmed.model.evaluate import FusedSum
    from cmvmed.model.formulas import Formulas, Tensor


@dataclass(frozen=True)
class Expansion(PickledByFields):
    """A term of one view; zero for rows that lack it."""

    rows: Centers
    index: IntArray | None  # (p,), which of the rows are the centers, perhaps several times; None for all
    kernel: Kernel
    coefficients: Array  # (p, K)
    constant: Array  # (K,)
    bias: float = 0.0  # β

    @property
    def view(self) -> int:
        """Its view."""
        return self.rows.view

    @property
    def views(self) -> tuple[int, ...]:
        """The view that it depends on."""
        return (self.rows.view,)

    @property
    def needs(self) -> tuple[int, ...]:
        """The view, unless no training row had it."""
        return self.views if self.rows.size else ()

    @property
    def centers(self) -> tuple[Centers, ...]:
        """The training rows that it holds."""
        return (self.rows,)

    @property
    def n_compared(self) -> int:
        """Number of rows that all new rows are compared with at a time."""
        return len(self.coefficients)

    @property
    def n_kept(self) -> int:
        """Scores alone are kept."""
        return 0

    @cached_property
    def expansion(self) -> KernelExpansion | None:
        """The scores as a sum of kernel functions of dense rows, None if they have no such form."""
        if not can_sum(self.kernel, self.rows.rows):
            return None
        centers = self.rows.rows if self.index is None else self.rows.rows[self.index]
        return KernelExpansion(self.kernel, centers, self.coefficients, self._constant)

    @property
    def _constant(self) -> Array:
        """c + β Σ a, (K,)."""
        return np.asarray(self.constant + self.bias * self.coefficients.sum(axis=0))

    @cached_property
    def _sum(self) -> KernelSum | None:
        return None if self.expansion is None else kernel_sum([self.expansion])

    def values(self, points: Matrix) -> Array:
        """(n, K), of points in the form of the centers."""
        if self._sum is not None and not is_sparse(points):
            return self._sum.values(points)
        return np.asarray(self.kernel.cross(points, self.rows.rows, self.index) @ self.coefficients + self._constant)

    def scores(self, matrices: Sequence[Matrix], present: Present) -> Array:
        """(n, K), of rows given by view; zero for rows that lack the view."""
        rows = np.flatnonzero(present[self.view])
        scores = np.zeros((present[self.view].size, self.constant.size))
        scores[rows] = self.values(self.rows.points(matrices, rows))
        return scores

    def given_views(self, matrices: Sequence[Matrix], present: Present) -> Callable[[Present], Array]:
        """The scores of these rows as a function of the views that they are taken to have."""
        scores = self.scores(matrices, present)
        return lambda has: np.where(has[self.view][:, None], scores, 0.0)

    def join(self, sums: FusedSum, factor: float) -> bool:
        """Add the term to a sum of kernel functions; False if it is none of dense rows."""
        if self.expansion is None:
            return False
        kernel, centers, coefficients, constant = self.expansion
        sums.add_expansion(self.rows, KernelExpansion(kernel, centers, factor * coefficients, factor * constant))
        return True

    def smaller(self, fewer: FewerRows) -> Expansion:
        """The nearest expansion over fewer rows: b = K_ZZ⁻¹ K_Z a leaves f unchanged at the landmarks Z.

        An expansion of a linear kernel is one weight per feature and class, and needs no training rows.
        """
        if self.rows.size == 0:
            return self
        if self.kernel.kind == "linear":
            return self._as_weights()
        if not fewer.project or self.rows.numbers is None:
            return self._used_rows_alone()
        if self.rows.size <= fewer.n_rows:
            return self
        Z = fewer.landmarks(self.rows.numbers)
        coefficients = self._projected(Z)
        return replace(self, rows=self.rows.chosen(Z), index=None, coefficients=coefficients)

    def _as_weights(self) -> Expansion:
        centers = self.rows.rows if self.index is None else self.rows.rows[self.index]
        weights = centers.T @ self.coefficients
        rows = sparse.csr_matrix(weights.T) if is_sparse(centers) else np.ascontiguousarray(weights.T)
        identity = np.eye(rows.shape[0])
        held = Centers(self.view, self.rows.preprocessor, rows)
        return replace(self, rows=held, index=None, coefficients=identity, constant=self._constant, bias=0.0)

    def _used_rows_alone(self) -> Expansion:
        """Without rows that are not in use; all columns of a precomputed kernel are."""
        if self.index is None or self.rows.preprocessor.columns is not None:
            return self
        return replace(self, rows=self.rows.chosen(self.index), index=None)

    def _projected(self, landmarks: IntArray) -> Array:
        """b = K_ZZ⁻¹ K_Z a, (p, K), with the bias in the kernel."""
        train = self.rows.rows
        R = whitening(self.kernel.gram(train, landmarks) + self.bias, RANK_TOLERANCE)
        index = np.arange(self.rows.size) if self.index is None else self.index
        right = (self.kernel.cross(train[landmarks], train, index) + self.bias) @ self.coefficients
        return np.asarray(R @ (R.T @ right))

    @property
    def without_formula(self) -> str | None:
        """Why the kernel has no formula; None if it has one."""
        if self.kernel.mixture is not None or self.kernel.kind == "cosine":
            return None
        kind = "a function of Python" if callable(self.kernel.kind) else f"{self.kernel.kind!r}"
        return f"The kernel of view {self.kernel.view!r} is {kind}"

    def compared(self) -> Iterator[tuple[Matrix, IntArray]]:
        """The rows with a coefficient; a linear kernel needs one weight per feature alone."""
        if self.kernel.mixture is not None and self.kernel.mixture.gaussian:
            yield self.rows.rows, np.flatnonzero(self._row_coefficients.any(axis=1))

    @property
    def _row_coefficients(self) -> Array:
        """Coefficients (m, K) of all rows; one that occurs several times in the expansion has the sum of its own."""
        if self.index is None:
            return self.coefficients
        a = np.zeros((self.rows.size, self.coefficients.shape[1]))
        np.add.at(a, self.index, self.coefficients)
        return a

    def emit(self, formulas: Formulas) -> Tensor:
        """Σ_i a_i x·x_i = x·w with w = Σ_i a_i x_i, and the Gaussian part from distances."""
        view, a, mixture = formulas.views[self.view], self._row_coefficients, self.kernel.mixture
        if not a.any():
            return (view.mask * np.zeros((1, self.constant.size)) + self._constant) * view.mask
        points, train = view.points(self.rows.preprocessor), self.rows.rows
        if mixture is None:  # the cosine
            return (formulas.unit_length(points) @ np.asarray(unit_rows(train).T @ a) + self._constant) * view.mask
        parts = []
        if mixture.linear:
            parts.append(points @ np.asarray(mixture.linear * (train.T @ a)))
        if mixture.gaussian:
            distances, used = formulas.rows.squared_distances(points, train), formulas.rows.used(train)
            parts.append((distances * -self.kernel.gamma).apply("Exp") @ (mixture.gaussian * a[used]))
        return (formulas.sum_of(parts) + self._constant) * view.mask

    def check(self, n_classes: int, widths: Sequence[int]) -> None:
        """Raise a ValueError unless its arrays fit together."""
        n_points = self.rows.rows.shape[1] if self.kernel.kind == "precomputed" else self.rows.size
        p = n_points if self.index is None else self.index.size
        check_that(self.index is None or are_indices(self.index, n_points), "a center is none of the rows")
        check_that(are_finite(self.coefficients, (p, n_classes)), "coefficients do not fit the rows")
        check_that(are_finite(self.constant, (n_classes,)), "a constant does not fit the classes")
