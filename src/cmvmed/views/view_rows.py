"""A view's training rows: from raw rows to scaled ones with a kernel."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from cmvmed.core.problem import RowPartition
from cmvmed.numerics.kernels import Kernel, fit_kernel
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.nystroem import TrainingRows
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.preprocessing import Imputation, Scaling, fit_imputation, fit_scaling


@dataclass(frozen=True)
class ViewSettings:
    """The user's choices for one view."""

    name: str
    kernel: str | Callable[[Matrix, Matrix], Array]
    gamma: str | float
    scaling: str | None
    prior_variance: float  # σ²
    C: float
    bias_variance: float  # σ_b²
    clip: float  # see :class:`cmvmed.auto.tuning.Tuning` for this and the following
    sparse_density: float
    median_sample: int
    wide_clip: float = np.inf

    @property
    def key(self) -> "ViewSettings":
        """Settings that can be a key during a fit: a given kernel function is named by its identity."""
        return replace(self, kernel=f"function {id(self.kernel)}") if callable(self.kernel) else self


def _no_rows() -> IntArray:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class ViewData:
    """One view's training rows in the order of the table, scaled, with its kernel, and which of them are labeled.

    Only ``L`` and ``U`` depend on labels. With a precomputed kernel ``train`` is the square matrix of the rows.
    """

    settings: ViewSettings
    scaling: Scaling
    kernel: Kernel
    train: Matrix  # (m_v, d)
    columns: IntArray | None  # the columns of a precomputed kernel that belong to ``train``
    rows: IntArray  # (m_v,), which of the rows of a fit have the view, ascending
    weights: Array  # (m_v,), sample weights
    imputation: Imputation | None = None  # None for a precomputed kernel, which must have no gaps
    L: IntArray = field(default_factory=_no_rows)  # rows of ``train`` that belong to the labeled block
    U: IntArray = field(default_factory=_no_rows)  # rows of ``train`` that belong to the unlabeled block

    @property
    def bias(self) -> float:
        """σ_b²/σ², the constant a Gaussian bias adds to the kernel."""
        return self.settings.bias_variance / self.settings.prior_variance

    def with_labels(self, partition: RowPartition) -> "ViewData":
        """The view with the labeled and unlabeled block of a partition of the same rows."""
        L, U = (np.flatnonzero(np.isin(self.rows, block)) for block in (partition.L, partition.U))
        return replace(self, L=L, U=U)

    def rows_in(self, block: IntArray) -> IntArray:
        """Which rows of a block of the fit's rows the view has, as positions in the block."""
        return np.flatnonzero(np.isin(block, self.rows))

    def kernel_of(self, rows: IntArray) -> Array:
        """The kernel between some rows of ``train``, with the bias."""
        return self.kernel.gram(self.train, rows) + self.bias

    @property
    def training_rows(self) -> TrainingRows:
        """The rows as the kernel sees them."""
        return TrainingRows(self.kernel, self.train)

    @property
    def preprocessor(self) -> "ViewPreprocessor":
        """How new rows take the form of ``train``."""
        return ViewPreprocessor(self.scaling, self.columns, self.imputation)


@dataclass(frozen=True)
class ViewPreprocessor:
    """What is done to a view's rows before its kernel is applied."""

    scaling: Scaling
    columns: IntArray | None  # of a precomputed kernel, those of training rows
    imputation: Imputation | None = None  # None for a precomputed kernel

    def transform(self, rows: Matrix) -> Matrix:
        """Rows of new data in the form of the training rows."""
        return self.scaling.apply(self.complete(rows))

    def complete(self, rows: Matrix) -> Matrix:
        """Rows of new data without gaps, not yet scaled."""
        if self.columns is None:
            return rows if self.imputation is None else self.imputation.apply(rows)
        return (rows.toarray() if is_sparse(rows) else rows)[:, self.columns]

    def inverse_transform(self, rows: Matrix, n_columns: int) -> Matrix:
        """Rows of new data (n, n_columns) that take the form of the given ones, up to rounding."""
        if self.columns is None:
            return self.scaling.invert(rows)
        kernel = np.zeros((rows.shape[0], n_columns))
        kernel[:, self.columns] = rows
        return kernel

    @property
    def needs_all_cells(self) -> bool:
        """Whether a single NaN is an error, as in a precomputed kernel."""
        return self.imputation is None

    def unused_columns(self, n_columns: int) -> BoolArray | None:
        """Columns of new rows that do not matter, (n_columns,); None if all do.

        They are those of a given kernel that belong to no row in use, and those that were NaN in all training rows.
        """
        if self.columns is not None:
            return ~np.isin(np.arange(n_columns), self.columns)
        empty = None if self.imputation is None else self.imputation.empty
        return None if empty is None or empty.all() or not empty.any() else empty


def read_view(
    settings: ViewSettings,
    matrix: Matrix,
    present: BoolArray,
    rows: IntArray,
    weights: Array,
    rng: np.random.Generator,
) -> ViewData:
    """Fill the gaps of a view's rows, scale them and fix the view's kernel; no row counts as labeled yet.

    The kernel "auto" is "linear+rbf", but "linear" for standardized views of more columns than rows, which are then
    clipped only far out. In so many dimensions distances are nearly equal, so that the RBF kernel adds little but a
    constant and a diagonal, and a single column has little influence, so that it needs no bound.

    Parameters
    ----------
    matrix : (n, d), all rows of the view
    present : (n,), which rows have the view; all of them count in imputation, scaling and bandwidth
    rows : ascending numbers of the rows that a fit uses
    weights : (n,), sample weight of each row
    """
    own = np.flatnonzero(present[rows])
    used = rows[own]
    s = settings
    if s.kernel == "precomputed":
        train = _square_part(s.name, matrix, used)
        kernel = fit_kernel(s.name, s.kernel, s.gamma, train, weights[used], rng, s.median_sample, used)
        return ViewData(s, Scaling(None), kernel, train, used, own, weights[used])
    reference = present & (weights > 0.0)
    imputation = fit_imputation(matrix[reference], weights[reference])
    complete = imputation.apply(matrix[reference])
    scaling = fit_scaling(_scaling_kind(s), complete, weights[reference], clip=s.clip, sparse_density=s.sparse_density)
    if s.kernel == "auto":
        is_wide = scaling.kind == "standard" and complete.shape[1] > complete.shape[0]
        s = replace(s, kernel="linear", clip=s.wide_clip) if is_wide else replace(s, kernel="linear+rbf")
        scaling = replace(scaling, clip=s.clip)
    scaled, numbers = scaling.apply(complete), np.flatnonzero(reference)
    del complete
    kernel = fit_kernel(s.name, s.kernel, s.gamma, scaled, weights[reference], rng, s.median_sample, numbers)
    train = scaling.apply(imputation.apply(matrix[used]))
    return ViewData(s, scaling, kernel, train, None, own, weights[used], imputation)


def _scaling_kind(settings: ViewSettings) -> str | None:
    """The scaling of a view; an unscaled "rbf" view is centered, which changes no distance."""
    if callable(settings.kernel):
        return None
    return "center" if settings.kernel == "rbf" and settings.scaling is None else settings.scaling


def _square_part(view: str, matrix: Matrix, used: IntArray) -> Array:
    """The used rows and columns of a precomputed kernel."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"View {view!r} has a precomputed kernel, which at fit must be a square matrix with one column per row, but its shape "
            f"is {matrix.shape}."
        )
    dense = matrix.toarray() if is_sparse(matrix) else matrix
    return np.asarray(dense[np.ix_(used, used)])
