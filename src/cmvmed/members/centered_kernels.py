"""Centered kernels of one view, between any rows and the labeled ones.

With the mean μ over reference rows in feature space, the centered kernel is

    k̃(x, x') = ⟨φ(x) - μ, φ(x') - μ⟩ = k(x, x') - μ(x) - μ(x') + ‖μ‖²,   μ(x) = Σ_r w_r k(x, x_r),

times a scale that makes its mean over the labeled rows, k̃(x_l, x_l), one. A row that lacks the view is at the mean: its
kernel values are zero.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cmvmed.model.expansions import Expansion
from cmvmed.model.terms import Centers
from cmvmed.numerics.kernels import Kernel, row_blocks
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.view_rows import ViewData


@dataclass(frozen=True)
class ViewRows:
    """Which training rows have a view, and which of its rows are the labeled rows that members learn from."""

    view: int
    members: IntArray  # the training rows that have the view, in the order of its ``train``
    n_rows: int
    n_labeled: int
    labeled: IntArray  # (l_v,) which of the labeled rows have the view
    index_L: IntArray  # (l_v,) where those are in ``train``

    @property
    def present(self) -> BoolArray:
        """Whether each training row has the view, (n,)."""
        present = np.zeros(self.n_rows, dtype=bool)
        present[self.members] = True
        return present


@dataclass(frozen=True)
class KernelMean:
    """The mean μ of a kernel's reference rows, which does not depend on labels.

    ``index`` says which rows of ``basis`` are the reference rows; None means all.
    """

    basis: Matrix
    index: IntArray | None
    shares: Array  # (r,) weights of the reference rows
    of_rows: Array  # (m,) μ(x) of the view's training rows
    total: float  # ‖μ‖²


@dataclass(frozen=True)
class CenteredKernel:
    """A kernel of one view, centered and scaled."""

    rows: ViewRows
    data: ViewData
    kernel: Kernel
    mean: KernelMean
    scale: float

    @property
    def present(self) -> BoolArray:
        """Whether each training row has the view, (n,)."""
        return self.rows.present

    def gram(self) -> Array:
        """The kernel of the labeled rows, (l, l), with zeros for those without the view."""
        gram = np.zeros((self.rows.n_labeled, self.rows.n_labeled))
        gram[np.ix_(self.rows.labeled, self.rows.labeled)] = self._values(self.rows.index_L)
        return gram

    def scores(self, coefficients: Array) -> Array:
        """Scores (n, F) of all training rows, for coefficients (l, F) of the labeled rows."""
        scores = np.zeros((self.rows.n_rows, coefficients.shape[1]))
        every = np.arange(self.data.train.shape[0])
        scores[self.rows.members] = self._values(every) @ coefficients[self.rows.labeled]
        return scores

    def term(self, coefficients: Array) -> Expansion:
        """The scores of new rows for coefficients (l, K)."""
        a = self.scale * coefficients[self.rows.labeled]
        total, mean = a.sum(axis=0), self.mean
        extended = np.concatenate([a, -np.outer(mean.shares, total)])
        constant = mean.total * total - mean.of_rows[self.rows.index_L] @ a
        own, preprocessor = self.rows.index_L, self.data.preprocessor
        if mean.index is None:
            basis = _stacked(self.data.train[own], mean.basis)
            return Expansion(Centers(self.rows.view, preprocessor, basis), None, self.kernel, extended, constant)
        held = Centers(self.rows.view, preprocessor, self.data.train, self.rows.members)
        return Expansion(held, np.concatenate([own, mean.index]), self.kernel, extended, constant)

    def _values(self, own: IntArray) -> Array:
        """k̃ between some rows of ``train`` and the labeled rows, (m, l_v)."""
        values = self.kernel.cross(self.data.train[own], self.data.train, self.rows.index_L)
        mean = self.mean.of_rows
        return np.asarray(self.scale * (values - mean[own][:, None] - mean[self.rows.index_L] + self.mean.total))


def view_rows(view: int, data: ViewData, labeled: IntArray, n_rows: int) -> ViewRows:
    """Which rows of a view take part.

    Parameters
    ----------
    labeled : (l,), training rows that members learn from
    n_rows : number of training rows
    """
    members = data.rows
    place = np.full(n_rows, -1)
    place[members] = np.arange(members.size)
    has = np.flatnonzero(place[labeled] >= 0)
    return ViewRows(view, members, n_rows, labeled.size, has, place[labeled[has]])


def kernel_mean(data: ViewData, kernel: Kernel, max_reference: int, rng: np.random.Generator) -> KernelMean:
    """The mean of all rows of a view that have weight, or of a sample drawn by weight."""
    weights = data.weights
    reference = np.flatnonzero(weights > 0.0)
    if reference.size > max_reference:
        p = weights[reference] / weights[reference].sum()
        reference = np.sort(rng.choice(reference, max_reference, replace=False, p=p))
        weights = np.ones(weights.size)
    shares = weights[reference] / weights[reference].sum() if reference.size else np.zeros(0)
    if kernel.kind == "linear":  # the mean of linear kernel functions is that of the mean row
        basis, index, shares = _mean_row(data.train[reference], shares), None, np.ones(1)
        mean_rows = basis
    else:
        basis, index, mean_rows = data.train, reference, data.train[reference]
    total = float(shares @ kernel.cross(mean_rows, basis, index) @ shares) if shares.size else 0.0
    blocks = row_blocks(data.train.shape[0], max(shares.size, 1))
    parts = [kernel.cross(data.train[rows], basis, index) @ shares for rows in blocks]
    return KernelMean(basis, index, shares, np.concatenate([np.empty(0), *parts]), total)


def center(rows: ViewRows, data: ViewData, kernel: Kernel, mean: KernelMean, weights_L: Array) -> CenteredKernel:
    """The centered form of a kernel; ``weights_L`` (l,) are the labeled rows' weights in the mean that the scale sets to 1."""
    values, own = kernel.cross(data.train[rows.index_L], data.train, rows.index_L), mean.of_rows[rows.index_L]
    diagonal = np.diagonal(values) - 2.0 * own + mean.total
    w = weights_L[rows.labeled]
    size = float(w @ diagonal / w.sum()) if w.sum() > 0.0 else 0.0
    largest = max(float(np.abs(values).max(initial=0.0)), float(np.abs(own).max(initial=0.0)))
    negligible = max(1e-9 * largest, float(np.finfo(np.float64).tiny))
    return CenteredKernel(rows, data, kernel, mean, 1.0 / size if size > negligible else 1.0)


def _mean_row(rows: Matrix, shares: Array) -> Matrix:
    """The mean of some rows as a matrix of one row."""
    mean = shares[None, :] @ rows
    return sparse.csr_matrix(mean) if is_sparse(rows) else mean


def _stacked(first: Matrix, second: Matrix) -> Matrix:
    return sparse.vstack([first, second]).tocsr() if is_sparse(first) else np.concatenate([first, second])
