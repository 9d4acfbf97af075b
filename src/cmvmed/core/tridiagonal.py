"""The tridiagonal form K = P T Pᵀ of a symmetric matrix, by Householder reflections: half of an eigendecomposition.

P is orthogonal and T symmetric and tridiagonal, so (I + ρK)⁻¹ = P (I + ρT)⁻¹ Pᵀ takes a number of operations in proportion to
n beside the products with P, for every ρ. This is what an eigendecomposition starts from, at half of its cost.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack, lapack

from cmvmed.numerics.linalg import LONG_ROWS, NotPositiveDefiniteError
from cmvmed.numerics.threads import interruptible
from cmvmed.numerics.types import Array

WORK_COLUMNS = 64  # of the work space of LAPACK, for each row


@dataclass(frozen=True)
class Tridiagonal:
    """A symmetric tridiagonal matrix T (n, n)."""

    diagonal: Array  # (n,)
    beside: Array  # (n - 1,), next to the diagonal

    def times(self, B: Array) -> Array:
        """T B for B (n, k)."""
        found = self.diagonal[:, None] * B
        beside = self.beside[:, None]
        found[:-1] += beside * B[1:]
        found[1:] += beside * B[:-1]
        return np.asarray(found)

    def factorize(self, rho: float) -> "TridiagonalFactor":
        """I + ρT = L D Lᵀ."""
        if self.diagonal.size < 2:
            return TridiagonalFactor(1.0 + rho * self.diagonal, self.beside)
        d, e, info = lapack.dpttrf(1.0 + rho * self.diagonal, rho * self.beside)
        if info != 0 or not np.isfinite(d).all():
            raise NotPositiveDefiniteError(f"the leading minor of order {abs(info)} is not positive")
        return TridiagonalFactor(d, e)


@dataclass(frozen=True)
class TridiagonalFactor:
    """L D Lᵀ with a unit lower bidiagonal L."""

    d: Array  # (n,), the diagonal of D
    e: Array  # (n - 1,), beside the diagonal of L

    @property
    def log_determinant(self) -> float:
        """log |L D Lᵀ|."""
        return float(np.log(self.d).sum())

    def inverse_trace(self) -> float:
        """tr (L D Lᵀ)⁻¹, whose diagonal x has x_i = 1/d_i + e_i² x_{i+1}."""
        if self.d.size < 2:
            return float((1.0 / self.d).sum())
        squares = self.e**2
        return float(lapack.dgtsv(np.zeros_like(squares), np.ones_like(self.d), -squares, 1.0 / self.d)[3].sum())

    def solve(self, B: Array) -> Array:
        """(L D Lᵀ)⁻¹ B for B (n, k)."""
        if self.d.size < 2 or B.shape[1] == 0:
            return np.asarray(B / self.d[:, None])
        return np.asarray(lapack.dpttrs(self.d, self.e, B)[0])


def tridiagonal_form(K: Array) -> tuple[Tridiagonal, Array]:
    """T and P (n, n) of a symmetric K = P T Pᵀ."""
    if K.shape[0] < 2:
        return Tridiagonal(np.diagonal(K).copy(), np.empty(0)), np.eye(K.shape[0])
    return _reduce(K) if K.shape[0] < LONG_ROWS else interruptible(_reduce, K)


def _reduce(K: Array) -> tuple[Tridiagonal, Array]:
    """The reduction of a K with two rows or more."""
    n = K.shape[0]
    A = np.array(
        K.T, dtype=np.float64, order="F"
    )  # the transpose, which is the same, because it need not be rearranged
    diagonal, beside, tau, work = np.empty(n), np.empty(n - 1), np.empty(n - 1), np.empty(WORK_COLUMNS * n)
    _call_lapack("dsytrd", b"L", n, A, n, diagonal, beside, tau, work, work.size)  # A holds reflections then
    _call_lapack("dorgtr", b"L", n, A, n, tau, work, work.size)  # whose product P it is then
    return Tridiagonal(diagonal, beside), A


def _call_lapack(name: str, *arguments: bytes | int | Array) -> None:
    """Call a routine of LAPACK by its address; scipy's own wrappers hold the interpreter, so that threads and Ctrl-C wait."""
    numbers = [ctypes.c_int(value) if isinstance(value, int) else value for value in (*arguments, 0)]
    _routine(name, len(numbers))(*(_address(value) for value in numbers))


def _address(value: Any) -> Any:
    if isinstance(value, bytes):
        return ctypes.c_char_p(value)
    return value.ctypes.data_as(ctypes.c_void_p) if isinstance(value, np.ndarray) else ctypes.byref(value)


@cache
def _routine(name: str, n_arguments: int) -> Any:
    """A function of scipy.linalg.cython_lapack, all of whose arguments are addresses."""
    capsules: dict[str, Any] = dict(cython_lapack.__pyx_capi__)
    capsule, api = capsules[name], ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(pointer)
