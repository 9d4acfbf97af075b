"""Kernels of one view, with a bandwidth from the data.

A fitted :class:`Kernel` compares rows with training rows; it computes from features or looks values up in a given
matrix. ``MIXTURES`` is the only list of formulas: values, diagonals, sums over centers
(:mod:`cmvmed.numerics.kernel_expansions`) and landmarks (:mod:`cmvmed.numerics.nystroem`) follow from it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from cmvmed.numerics.linalg import is_positive_semidefinite, is_sparse, unit_rows
from cmvmed.numerics.types import Array, IntArray, Matrix


class Mixture(NamedTuple):
    """k(x, x') = ``linear`` x·x' + ``gaussian`` exp(-γ‖x - x'‖²)."""

    linear: float
    gaussian: float


MIXTURES = {"linear+rbf": Mixture(0.5, 0.5), "rbf": Mixture(0.0, 1.0), "linear": Mixture(1.0, 0.0)}
NAMED_KERNELS = (*MIXTURES, "cosine", "precomputed")  # "cosine" is "linear" of rows of length one
DISTANCE_KERNELS = tuple(name for name, own in MIXTURES.items() if own.gaussian)  # γ is in units of squared distances
BLOCK_SIZE = 2**17  # numbers worked on at a time
MAX_VALUE = 1e100  # of a kernel; beyond, products of kernels leave the range of numbers
DISTANCE_NOISE = 1e-14  # squared distances below this share of the largest squared length are rounding
SYMMETRY_TOLERANCE = 1e-8  # relative to the largest entry
DEFINITENESS_TOLERANCE = 1e-8  # relative to the largest diagonal entry


@dataclass(frozen=True)
class Kernel:
    """A kernel with all its numbers fixed.

    ``kind`` is one of ``NAMED_KERNELS`` or a callable ``f(A, B) -> (n_A, n_B)``; ``gamma`` is that of Gaussian parts.
    """

    view: str  # named in errors
    kind: str | Callable[[Matrix, Matrix], Array]
    gamma: float = 1.0

    @property
    def mixture(self) -> Mixture | None:
        """The formula of the kernel if it is a mixture."""
        return None if callable(self.kind) else MIXTURES.get(self.kind)

    def gram(self, train: Matrix, index: IntArray) -> Array:
        """Kernel matrix (k, k) of the training rows ``index``."""
        if self.kind == "precomputed":
            return self.checked(train[np.ix_(index, index)])
        rows = train[index]
        return self.checked(self._values(rows, rows))

    def cross(self, rows: Matrix, train: Matrix, index: IntArray | None = None) -> Array:
        """Kernel matrix (n, k) between ``rows`` and the training rows ``index``; all of them if it is left out."""
        if self.kind == "precomputed":
            return self.checked(rows if index is None else np.ascontiguousarray(rows[:, index]))
        chosen = train if index is None else train[index]
        if rows.shape[0] == 0 or chosen.shape[0] == 0:
            return np.zeros((rows.shape[0], chosen.shape[0]))
        return self.checked(self._values(rows, chosen))

    def among(self, rows: Matrix) -> Array:
        """Kernel matrix (n, n) of new rows."""
        self._check_has_features()
        return self.checked(self._values(rows, rows)) if rows.shape[0] else np.zeros((0, 0))

    def diagonal(self, rows: Matrix) -> Array:
        """k(x, x) of each row, (n,)."""
        self._check_has_features()
        if self.mixture is not None:
            return self.mixture.linear * _squared_norms(rows) + self.mixture.gaussian
        if self.kind == "cosine":
            return np.where(_squared_norms(rows) > 0.0, 1.0, 0.0)
        return np.array([self._values(rows[i : i + 1], rows[i : i + 1])[0, 0] for i in range(rows.shape[0])])

    def _check_has_features(self) -> None:
        if self.kind == "precomputed":
            raise ValueError(
                f"View {self.view!r} has a precomputed kernel, which does not hold k(x, x) of new rows, so there is no "
                "standard deviation or covariance; use a named kernel or ask for means only."
            )

    def _values(self, first: Matrix, second: Matrix) -> Array:
        if callable(self.kind):
            return self._called(self.kind, first, second)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by checked, with the view's name
            if self.mixture is None:
                return _products(unit_rows(first), unit_rows(second))
            return self._mixed(self.mixture, first, second)

    def _mixed(self, mixture: Mixture, first: Matrix, second: Matrix) -> Array:
        """Both parts of a mixture from one product, some rows at a time so that they stay in the cache."""
        values = _products(first, second)
        if not mixture.gaussian:
            values *= mixture.linear
            return values
        norms, others = _squared_norms(first), _squared_norms(second)
        for rows in row_blocks(*values.shape):
            distances = _distances(values[rows], norms[rows], others)
            if first is second:
                np.fill_diagonal(distances[:, rows], 0.0)
            distances *= -self.gamma
            np.exp(distances, out=distances)
            distances *= mixture.gaussian
            values[rows] *= mixture.linear
            values[rows] += distances
        return values

    def _called(self, kind: Callable[..., Any], first: Matrix, second: Matrix) -> Array:
        values = np.asarray(kind(first, second), dtype=np.float64)
        expected = (first.shape[0], second.shape[0])
        if values.shape != expected:
            raise ValueError(
                f"The kernel of view {self.view!r}, called with {expected[0]} and {expected[1]} rows, must return an array of "
                f"shape {expected}, but returned one of shape {values.shape}."
            )
        return values

    def checked(self, values: Array, limit: float = MAX_VALUE) -> Array:
        """The values, of kernels or of sums of them, or an error that names the view if they are no usable numbers."""
        largest, smallest = values.max(initial=0.0), values.min(initial=0.0)  # NaN if any value is
        if not (largest <= limit and smallest >= -limit):
            raise ValueError(
                f"The kernel of view {self.view!r} gave values that are NaN or infinite, or too large to compute with; its "
                'features may be too large for this kernel. Use scaling="auto", rescale the view or choose another kernel or gamma.'
            )
        return values


def squared_distances(first: Matrix, second: Matrix) -> Array:
    """‖x - x'‖² of all pairs of rows, (n, k)."""
    values = _products(first, second)
    norms, others = _squared_norms(first), _squared_norms(second)
    for rows in row_blocks(*values.shape):
        values[rows] = _distances(values[rows], norms[rows], others)
    if first is second:
        np.fill_diagonal(values, 0.0)
    return values


def row_blocks(n: int, n_columns: int) -> Iterator[slice]:
    """The rows of an (n, n_columns) matrix in blocks that the processor's cache holds."""
    step = max(1, BLOCK_SIZE // max(1, n_columns))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _products(first: Matrix, second: Matrix) -> Array:
    """x·x' of all pairs of rows, (n, k)."""
    return np.asarray(safe_sparse_dot(first, second.T, dense_output=True))


def _distances(products: Array, norms: Array, others: Array) -> Array:
    """‖x‖² + ‖x'‖² - 2x·x' from the products (n, k) and the squared lengths (n,) and (k,)."""
    distances = (
        -2.0 * products
    )  # in the order of scikit-learn's euclidean_distances, so that the last digits are its own
    distances += norms[:, None]
    distances += others
    return np.asarray(np.maximum(distances, 0.0, out=distances))


def fit_kernel(
    view: str,
    kind: str | Callable[[Matrix, Matrix], Array],
    gamma: str | float,
    train: Matrix,
    weights: Array,
    rng: np.random.Generator,
    median_sample: int,
    numbers: IntArray | None = None,
) -> Kernel:
    """Fix the kernel's numbers on training rows ``train`` (n, d) with row weights (n,) and check given matrices.

    ``numbers`` (n,) are the rows' numbers in the user's data, for messages; 0, 1, ... if left out.

    ``gamma="median"`` is scale-free: 1/median ‖x - x'‖² over pairs of rows, of at most ``median_sample`` rows drawn by
    weight; "0.5*median" is half of it.
    """
    if kind == "precomputed" or callable(kind):
        kernel = Kernel(view, kind)
        all_rows = np.arange(train.shape[0])
        _check_symmetric_and_definite(kernel, kernel.gram(train, all_rows), all_rows if numbers is None else numbers)
        return kernel
    if isinstance(gamma, str):
        return Kernel(view, kind, median_factor(gamma) * _median_gamma(kind, train, weights, rng, median_sample))
    return Kernel(view, kind, float(gamma))


def median_factor(gamma: str) -> float:
    """The factor c of "c*median"; 1 for "median", NaN for any other text."""
    factor, times, median = gamma.rpartition("*")
    try:
        return float(factor if times else 1.0) if median.strip() == "median" else float("nan")
    except ValueError:
        return float("nan")


def _check_symmetric_and_definite(kernel: Kernel, gram: Array, numbers: IntArray) -> None:
    """Raise, naming the view, if a given kernel matrix is not symmetric positive semi-definite."""
    size = np.abs(gram).max(initial=0.0)
    asymmetry = np.abs(gram - gram.T)
    if asymmetry.max(initial=0.0) > SYMMETRY_TOLERANCE * size:
        i, j = np.unravel_index(int(asymmetry.argmax()), gram.shape)
        first, second = numbers[i], numbers[j]
        raise ValueError(
            f"The kernel matrix of view {kernel.view!r} is not symmetric: entry ({first}, {second}) is {gram[i, j]:.6g} but entry "
            f"({second}, {first}) is {gram[j, i]:.6g}. Pass k(x, x') of all pairs of rows, or symmetrize it as (K + K.T) / 2."
        )
    if not is_positive_semidefinite(gram, DEFINITENESS_TOLERANCE):
        smallest = np.linalg.eigvalsh(gram)[0]
        raise ValueError(
            f"The kernel matrix of view {kernel.view!r} is not positive semi-definite (smallest eigenvalue {smallest:.3g}), so it "
            "is not a valid kernel. Use another kernel, or clip its negative eigenvalues before fitting."
        )


def _median_gamma(kind: str, train: Matrix, weights: Array, rng: np.random.Generator, median_sample: int) -> float:
    """1/median over the rows' distribution; 1 where the median, and then the mean, is zero."""
    if kind not in DISTANCE_KERNELS or train.shape[0] == 0:
        return 1.0
    if train.shape[0] > median_sample:
        chosen = np.sort(rng.choice(train.shape[0], median_sample, replace=False, p=weights / weights.sum()))
        train, weights = train[chosen], np.ones(median_sample)
    distances = _pair_distances(train)
    if (weights == weights[0]).all():
        typical, average = _median_of_pairs(distances), float(distances.mean())
    else:
        values = distances.ravel()
        mass = np.asarray(np.outer(weights, weights).ravel(), dtype=np.float64)
        typical, average = _weighted_median(values, mass), float(mass @ values / mass.sum())
    typical = typical or average
    return 1.0 / typical if np.isfinite(typical) and typical > 0.0 and np.isfinite(1.0 / typical) else 1.0


def _pair_distances(train: Matrix) -> Array:
    """Squared distances of all pairs drawn independently from the rows, (n, n).

    Drawing with replacement keeps a pair of equal rows in, so that a row of weight 2 counts like two rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        distances = squared_distances(train, train)
        distances[distances <= DISTANCE_NOISE * _squared_norms(train).max(initial=0.0)] = 0.0
    return np.asarray(distances)


def _median_of_pairs(distances: Array) -> float:
    """The lower median of symmetric distances (n, n): a zero of the diagonal, or of the n(n - 1)/2 pairs, which count twice."""
    n = len(distances)
    middle = (n * n - 1) // 2 - n
    if middle < 0:
        return 0.0
    pairs = distances[np.tri(n, k=-1, dtype=bool)]
    pairs.partition(middle // 2)
    return float(pairs[middle // 2])


def _weighted_median(values: Array, mass: Array) -> float:
    order = np.argsort(values)
    reached = np.cumsum(mass[order])
    return float(values[order[np.searchsorted(reached, 0.5 * reached[-1])]])


def _squared_norms(rows: Matrix) -> Array:
    if is_sparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
