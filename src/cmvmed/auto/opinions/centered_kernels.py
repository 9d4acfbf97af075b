"""Centered kernels of one view, between any rows and the labeled ones.

With the mean μ over reference rows in feature space, the centered kernel is

    k̃(x, x') = ⟨φ(x) - μ, φ(x') - μ⟩ = k(x, x') - μ(x) - μ(x') + ‖μ‖²,   μ(x) = Σ_r w_r k(x, x_r),

times a scale that makes its mean over the labeled rows, k̃(x_l, x_l), one. A row that lacks the view is at the mean: its
kernel values are zero.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cmvmed.core.kernels import Kernel
from cmvmed.core.linalg import is_sparse
from cmvmed.core.types import Array, BoolArray, IntArray, Matrix
from cmvmed.data.view_data import ViewData, ViewPreprocessor


@dataclass(frozen=True)
class ViewRows:
    """Which training rows have a view, and which of its rows are labeled rows and reference rows of the kernels.

    Training rows are those of the labeled block, then those of the unlabeled one. The labeled rows are those of the
    labeled block that opinions learn from.
    """

    view: int
    members: IntArray  # the training rows that have the view, in the order of its ``train``
    n_rows: int
    n_labeled: int
    labeled: IntArray  # (l_v,) which of the labeled rows have the view
    index_L: IntArray  # (l_v,) where those are in ``train``
    reference: IntArray  # (r,) rows of ``train`` whose mean is the center
    shares: Array  # (r,) their weights, which sum to 1

    @property
    def present(self) -> BoolArray:
        """Whether each training row has the view, (n,)."""
        present = np.zeros(self.n_rows, dtype=bool)
        present[self.members] = True
        return present


@dataclass(frozen=True)
class KernelScorer:
    """Scores of new rows: a kernel expansion, zero for rows without the view."""

    view: int
    preprocessor: ViewPreprocessor
    kernel: Kernel
    basis: Matrix
    index: IntArray | None
    coefficients: Array  # (p, K)
    constant: Array  # (K,)

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""
        return len(self.coefficients)

    def scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Scores (m, K) of rows given by view, with which rows have which view."""
        rows = np.flatnonzero(present[self.view])
        scores = np.zeros((present[self.view].size, self.constant.size))
        points = self.preprocessor.transform(matrices[self.view][rows])
        scores[rows] = self.kernel.cross(points, self.basis, self.index) @ self.coefficients + self.constant
        return scores


@dataclass(frozen=True)
class CenteredKernel:
    """A kernel of one view, centered and scaled.

    ``index`` says which rows of ``basis`` are the labeled rows, first, and the reference rows; None means all in order.
    """

    rows: ViewRows
    data: ViewData
    kernel: Kernel
    basis: Matrix
    index: IntArray | None
    shares: Array  # (r,) weights of the reference rows
    mean_L: Array  # (l_v,) μ(x_l)
    total: float  # ‖μ‖²
    scale: float

    @property
    def present(self) -> BoolArray:
        """Whether each training row has the view, (n,)."""
        return self.rows.present

    def gram(self) -> Array:
        """The kernel of the labeled rows, (l, l), with zeros for those without the view."""
        gram = np.zeros((self.rows.n_labeled, self.rows.n_labeled))
        gram[np.ix_(self.rows.labeled, self.rows.labeled)] = self._values(self.data.train[self.rows.index_L])
        return gram

    def scores(self, coefficients: Array) -> Array:
        """Scores (n, F) of all training rows, for coefficients (l, F) of the labeled rows."""
        scores = np.zeros((self.rows.n_rows, coefficients.shape[1]))
        scores[self.rows.members] = self._values(self.data.train) @ coefficients[self.rows.labeled]
        return scores

    def scorer(self, coefficients: Array) -> KernelScorer:
        """The scores of new rows for coefficients (l, K)."""
        a = self.scale * coefficients[self.rows.labeled]
        total = a.sum(axis=0)
        extended = np.concatenate([a, -np.outer(self.shares, total)])
        constant = self.total * total - self.mean_L @ a
        return KernelScorer(
            self.rows.view, self.data.preprocessor, self.kernel, self.basis, self.index, extended, constant
        )

    def _values(self, points: Matrix) -> Array:
        """k̃ between points and the labeled rows, (m, l_v)."""
        values = self.kernel.cross(points, self.basis, self.index)
        n_L = self.rows.labeled.size
        centered = values[:, :n_L] - (values[:, n_L:] @ self.shares)[:, None] - self.mean_L + self.total
        return np.asarray(self.scale * centered)


def view_rows(
    view: int, data: ViewData, n_L: int, labeled: IntArray, weights: Array, max_reference: int, rng: np.random.Generator
) -> ViewRows:
    """Which rows of a view take part, and its reference rows: all that have weight, or a sample drawn by weight.

    Parameters
    ----------
    n_L : number of rows of the labeled block
    labeled : (l,), rows of the labeled block that opinions learn from
    weights : (n,), sample weight of each training row
    """
    members = np.concatenate([data.rows_L, n_L + data.rows_U])
    place = np.full(weights.size, -1)
    place[members] = np.arange(members.size)
    has = np.flatnonzero(place[labeled] >= 0)
    own = weights[members]
    reference = np.flatnonzero(own > 0.0)
    if reference.size > max_reference:
        p = own[reference] / own[reference].sum()
        reference = np.sort(rng.choice(reference, max_reference, replace=False, p=p))
        own = np.ones(members.size)
    shares = own[reference] / own[reference].sum() if reference.size else np.zeros(0)
    return ViewRows(view, members, weights.size, labeled.size, has, place[labeled[has]], reference, shares)


def center(rows: ViewRows, data: ViewData, kernel: Kernel, weights_L: Array) -> CenteredKernel:
    """The centered form of a kernel; ``weights_L`` (l,) are the labeled rows' weights in the mean that the scale sets to 1."""
    if kernel.kind == "linear":  # the mean of linear kernel functions is that of the mean row
        basis, index, shares = _with_mean_row(rows, data), None, np.ones(1)
        mean_rows = basis[rows.index_L.size :]
    else:
        basis, shares = data.train, rows.shares
        index = np.concatenate([rows.index_L, rows.reference])
        mean_rows = data.train[rows.reference]
    n_L = rows.labeled.size
    to_mean = kernel.cross(mean_rows, basis, index)
    total = float(shares @ to_mean[:, n_L:] @ shares) if shares.size else 0.0
    values = kernel.cross(data.train[rows.index_L], basis, index)
    mean_L = values[:, n_L:] @ shares
    diagonal = np.diagonal(values) - 2.0 * mean_L + total
    w = weights_L[rows.labeled]
    mean = float(w @ diagonal / w.sum()) if w.sum() > 0.0 else 0.0
    negligible = max(1e-9 * float(np.abs(values).max(initial=0.0)), float(np.finfo(np.float64).tiny))
    return CenteredKernel(
        rows, data, kernel, basis, index, shares, mean_L, total, 1.0 / mean if mean > negligible else 1.0
    )


def _with_mean_row(rows: ViewRows, data: ViewData) -> Matrix:
    """The labeled rows, and below them the mean of the reference rows."""
    labeled, reference = data.train[rows.index_L], data.train[rows.reference]
    mean = rows.shares[None, :] @ reference
    if is_sparse(data.train):
        return sparse.vstack([labeled, sparse.csr_matrix(mean)]).tocsr()
    return np.concatenate([labeled, mean])
