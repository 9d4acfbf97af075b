"""Sums of kernel functions, evaluated for many rows: one product and one exponential for each row and center.

    f(x) = Σ_j c_j exp(-γ‖x - z_j‖²) + Wᵀx + b

The exponents of all pairs are one product of extended rows, (x, ‖x‖², 1)ᵀ (2γz, -γ, -γ‖z‖²) = -γ‖x - z‖²; linear kernel
functions, also those in "linear+rbf", are one linear function. In single precision the distances keep about six digits;
the sums over the centers are then sums in single precision too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.core.kernels import DISTANCE_KERNELS, Kernel
from cmvmed.core.linalg import is_sparse
from cmvmed.core.types import Array, Matrix

BLOCK_ROWS = 128  # rows whose kernel values stay in the cache between a product and what is made of it
EXACT_EXPONENT = 1e3  # up to which its rounding, even in single precision, changes a kernel value by little
SUMMED_KERNELS = ("linear", *DISTANCE_KERNELS)
MAX_SUM = 1e150  # of a value; coefficients may make it larger than any kernel value may be
MAX_SQUARE = 1e6  # of a center, in units of the kernel


@dataclass(frozen=True)
class GaussianSum:
    """Σ_j c_j exp(-γ‖x - z_j‖²) for F functions with the same centers."""

    centers: NDArray[np.floating]  # (d + 2, p), extended and transposed
    coefficients: NDArray[np.floating]  # (p, F)

    @classmethod
    def of(cls, gamma: float, centers: Array, coefficients: Array, dtype: type = np.float64) -> "GaussianSum":
        """From the centers z (p, d)."""
        return cls(extended_centers(gamma, centers).astype(dtype), coefficients.astype(dtype))

    def values(self, extended_rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """The sums (n, F) at rows (n, d + 2), extended."""
        return np.asarray(gaussian_kernel(extended_rows, self.centers) @ self.coefficients)


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
        if n <= BLOCK_ROWS:
            return self._block(points)
        values = np.empty((n, self.constant.size))
        for rows in blocks_of_rows(n):
            values[rows] = self._block(points[rows])
        return values

    def _block(self, points: Array) -> Array:
        points = np.ascontiguousarray(points)  # sums in another order would differ in the last digit
        with np.errstate(over="ignore", invalid="ignore"):  # reported by the kernel, with the view's name
            values = self.constant if self.linear is None else points @ self.linear + self.constant
            if self.gaussians:
                extended = extend(points, self.gaussians[0].centers.dtype)
                for gaussian in self.gaussians:
                    values = values + gaussian.values(extended)
        every = values if values.ndim == 2 else np.tile(values, (points.shape[0], 1))
        return self.kernel.checked(every, limit=MAX_SUM)


def gaussian_kernel(extended_rows: NDArray[np.floating], centers: NDArray[np.floating]) -> NDArray[np.floating]:
    """exp(-γ‖x - z‖²) of extended rows (n, d + 2) and centers (d + 2, p).

    Where γ‖x‖² is so large that rounding makes exponents positive, these are set to zero.
    """
    exponents = extended_rows @ centers
    if centers.shape[1] and not -centers[-2, 0] * extended_rows[:, -2].max(initial=0.0) < EXACT_EXPONENT:
        np.minimum(exponents, 0.0, out=exponents)
    return np.asarray(np.exp(exponents, out=exponents))


def extended_centers(gamma: float, centers: Array) -> Array:
    """(2γz, -γ, -γ‖z‖²) of the centers z (p, d), (d + 2, p)."""
    centers = np.ascontiguousarray(centers)
    squares = np.einsum("ij,ij->i", centers, centers)
    return np.vstack([2.0 * gamma * centers.T, np.full(len(centers), -gamma), -gamma * squares])


def extend(points: Array, dtype: np.dtype) -> NDArray[np.floating]:
    """Rows (x, ‖x‖², 1), (n, d + 2)."""
    n, d = points.shape
    extended = np.empty((n, d + 2), dtype=dtype)
    extended[:, :d] = points
    extended[:, d] = np.einsum("ij,ij->i", points, points)
    extended[:, d + 1] = 1.0
    return extended


def blocks_of_rows(n: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Some rows at a time, by default so many that their kernel values stay in the cache."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def can_sum(kernel: Kernel, centers: Matrix) -> bool:
    """Whether sums of these kernel functions have the form of :class:`KernelSum`, and lose few digits in it."""
    if kernel.kind not in SUMMED_KERNELS or is_sparse(centers):
        return False
    return are_moderate(centers, kernel.gamma if kernel.kind in DISTANCE_KERNELS else 1.0)


def are_moderate(centers: Array, gamma: float) -> bool:
    """Whether the centers (p, d) are small enough for differences of products, as of γ‖z‖² and 2γx·z, to keep ten digits."""
    squares = np.einsum("ij,ij->i", centers, centers).max(initial=0.0)
    return bool(max(gamma, 1.0) * squares <= MAX_SQUARE)


def kernel_sum(parts: Sequence[tuple[Kernel, Array, Array]], constant: Array, dtype: type = np.float64) -> KernelSum:
    """The sum of several expansions in the rows of one view.

    Parameters
    ----------
    parts : kernel, centers (p, d) and coefficients (p, F) of each
    constant : (F,)
    dtype : in which Gaussian kernels are computed
    """
    gaussians: list[GaussianSum] = []
    linear = None
    for kernel, given, coefficients in parts:
        centers = np.ascontiguousarray(given)
        half = 0.5 if kernel.kind == "linear+rbf" else 1.0
        if kernel.kind != "rbf":
            own = half * (centers.T @ coefficients)
            linear = own if linear is None else linear + own
        if kernel.kind != "linear":
            gaussians.append(GaussianSum.of(kernel.gamma, centers, half * coefficients, dtype))
    return KernelSum(parts[0][0], tuple(gaussians), linear, constant)
