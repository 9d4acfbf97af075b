"""Sums of kernel functions, evaluated for many rows: one product and one exponential for each row and center.

    f(x) = Σ_j c_j exp(-γ‖x - z_j‖²) + Wᵀx + b

The exponents of all pairs are one product of extended rows, (x, ‖x‖², 1)ᵀ (2γz, -γ, -γ‖z‖²) = -γ‖x - z‖²; linear kernel
functions, also those in "linear+rbf", are one linear function. In single precision the distances keep about six digits;
the sums over the centers are then sums in single precision too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, Matrix

BLOCK_ROWS = 128  # rows whose kernel values stay in the cache between a product and what is made of it
EXACT_EXPONENT = 1e3  # up to which its rounding, even in single precision, changes a kernel value by little
OPPOSITE = np.array([-1.0, 1.0])  # of two classes, what the scores of the second are multiplied by
MAX_SUM = 1e150  # of a value; coefficients may make it larger than any kernel value may be
MAX_SQUARE = 1e6  # of a center, in units of the kernel


class KernelExpansion(NamedTuple):
    """Σ_j c_j k(x, z_j) + b for F functions."""

    kernel: Kernel
    centers: Array  # (p, d)
    coefficients: Array  # (p, F)
    constant: Array  # (F,)


class FormedRows:
    """Some rows (n, d) in the form of the centers; what several sums need of them is computed once."""

    def __init__(self, points: Array) -> None:
        self.points = np.ascontiguousarray(points)  # sums in another order would differ in the last digit
        self._double: Array | None = None
        self._single: NDArray[np.float32] | None = None
        self._largest = 0.0  # ‖x‖²

    @property
    def extended(self) -> Array:
        """(x, ‖x‖², 1) of each row, (n, d + 2)."""
        if self._double is None:
            self._double = extend(self.points)
            self._largest = float(self._double[:, -2].max(initial=0.0))
        return self._double

    def extended_in(self, dtype: DTypeLike) -> NDArray[np.floating]:
        """The same in a precision."""
        if dtype == np.float64:
            return self.extended
        if self._single is None:
            self._single = self.extended.astype(np.float32)
        return self._single

    def gaussian_kernel(self, gamma: float, centers: NDArray[np.floating]) -> NDArray[np.floating]:
        """exp(-γ‖x - z‖²) between the rows and centers (d + 2, p), extended with this γ, (n, p).

        Where γ‖x‖² is so large that rounding makes exponents positive, these are set to zero.
        """
        exponents = self.extended_in(centers.dtype) @ centers
        if not gamma * self._largest < EXACT_EXPONENT:
            np.minimum(exponents, 0.0, out=exponents)
        return np.asarray(np.exp(exponents, out=exponents))


@dataclass(frozen=True)
class GaussianSum:
    """Σ_j c_j exp(-γ‖x - z_j‖²) for F functions with the same centers."""

    gamma: float
    centers: NDArray[np.floating]  # (d + 2, p), extended and transposed
    coefficients: NDArray[np.floating]  # (p, F); of two opposite functions those of the second alone, (p, 1)
    are_opposite: bool = False

    @classmethod
    def of(cls, gamma: float, centers: Array, coefficients: Array, dtype: type = np.float64) -> "GaussianSum":
        """From the centers z (p, d) and coefficients (p, F): each center once, and none whose coefficients are zero."""
        used = coefficients.any(axis=1)
        points = np.ascontiguousarray(centers[used])
        contents: NDArray[np.void] = points.view(np.dtype((np.void, points.shape[1] * points.itemsize))).ravel()
        _, first, number = np.unique(contents, return_index=True, return_inverse=True)
        total = np.zeros((first.size, coefficients.shape[1]))
        np.add.at(total, number.ravel(), coefficients[used])
        are_opposite = total.shape[1] == 2 and np.array_equal(total[:, 0], -total[:, 1])
        own: NDArray[np.floating] = np.ascontiguousarray(total[:, 1:] if are_opposite else total, dtype=dtype)
        return cls(gamma, extended_centers(gamma, points[first]).astype(dtype), own, are_opposite)

    def values(self, rows: FormedRows) -> NDArray[np.floating]:
        """The sums (n, F)."""
        values = rows.gaussian_kernel(self.gamma, self.centers) @ self.coefficients
        return np.asarray(values * OPPOSITE if self.are_opposite else values)


@dataclass(frozen=True)
class KernelSum:
    """F sums of kernel functions of the rows of one view."""

    kernel: Kernel  # named in errors
    gaussians: tuple[GaussianSum, ...]
    linear: Array | None  # (d, F), W
    constant: Array  # (F,), b

    def values(self, points: Array) -> Array:
        """f(x) of each of the rows (n, d), scaled as the centers are, (n, F)."""
        n = points.shape[0]
        values = np.empty((n, self.constant.size))
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in blocks_of_rows(n):
                values[rows] = self.of_rows(FormedRows(points[rows]))
        return self.checked(values)

    def of_rows(self, rows: FormedRows) -> Array:
        """f(x) of so few rows that their kernel values stay in the cache, (n, F), not checked."""
        if self.linear is None:
            values = np.tile(self.constant, (len(rows.points), 1))
        else:
            values = rows.points @ self.linear
            values += self.constant
        for gaussian in self.gaussians:
            values += gaussian.values(rows)
        return values

    def checked(self, values: Array, limit: float = MAX_SUM) -> Array:
        """The values, or an error that names the view if they are no usable numbers."""
        return self.kernel.checked(values, limit)


def extended_centers(gamma: float, centers: Array) -> Array:
    """(2γz, -γ, -γ‖z‖²) of the centers z (p, d), (d + 2, p)."""
    centers = np.ascontiguousarray(centers)
    squares = np.einsum("ij,ij->i", centers, centers)
    return np.vstack([2.0 * gamma * centers.T, np.full(len(centers), -gamma), -gamma * squares])


def extend(points: Array) -> Array:
    """Rows (x, ‖x‖², 1), (n, d + 2)."""
    n, d = points.shape
    extended = np.empty((n, d + 2))
    extended[:, :d] = points
    extended[:, d] = np.einsum("ij,ij->i", points, points)
    extended[:, d + 1] = 1.0
    return extended


def blocks_of_rows(n: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Some rows at a time, by default so many that their kernel values stay in the cache."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def can_sum(kernel: Kernel, centers: Matrix) -> bool:
    """Whether sums of these kernel functions have the form of :class:`KernelSum`, and lose few digits in it."""
    if kernel.mixture is None or is_sparse(centers):
        return False
    return are_moderate(centers, kernel.gamma if kernel.mixture.gaussian else 1.0)


def are_moderate(centers: Array, gamma: float) -> bool:
    """Whether the centers (p, d) are small enough for differences of products, as of γ‖z‖² and 2γx·z, to keep ten digits."""
    squares = np.einsum("ij,ij->i", centers, centers).max(initial=0.0)
    return bool(max(gamma, 1.0) * squares <= MAX_SQUARE)


def kernel_sum(expansions: Sequence[KernelExpansion], dtype: type = np.float64) -> KernelSum:
    """The sum of several expansions in the rows of one view; ``dtype`` is that of Gaussian kernels."""
    gaussians: dict[float, list[tuple[Array, Array]]] = {}
    linear = None
    for kernel, given, coefficients, _ in expansions:
        centers, mixture = np.ascontiguousarray(given), kernel.mixture
        if mixture is None:
            raise ValueError(f"the kernel {kernel.kind!r} has no such form")
        if mixture.linear:
            own = mixture.linear * (centers.T @ coefficients)
            linear = own if linear is None else linear + own
        if mixture.gaussian:
            gaussians.setdefault(kernel.gamma, []).append((centers, mixture.gaussian * coefficients))
    constant = np.sum([expansion.constant for expansion in expansions], axis=0)
    sums = [
        GaussianSum.of(gamma, np.concatenate([z for z, _ in parts]), np.concatenate([c for _, c in parts]), dtype)
        for gamma, parts in gaussians.items()
    ]
    return KernelSum(expansions[0].kernel, tuple(sums), linear, constant)
