"""Kernel expansions f(x) = Σ_i a_i k(x, x_i) + c over training rows or landmarks."""

from dataclasses import dataclass

import numpy as np

from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.model.predictors import InterceptPredictor, KernelPredictor, LowRankPredictor, ViewPredictor
from cmvmed.numerics.kernels import DISTANCE_KERNELS, Kernel
from cmvmed.numerics.linalg import unit_rows
from cmvmed.numerics.types import Array, IntArray, Matrix
from cmvmed.onnx_export.compared_rows import ComparedRows
from cmvmed.onnx_export.graph_builder import Tensor
from cmvmed.onnx_export.view_inputs import ViewInput, unit_length
from cmvmed.views.view_rows import ViewPreprocessor

KERNELS = (*DISTANCE_KERNELS, "linear", "cosine")  # those that consist of operators


@dataclass(frozen=True)
class Expansion:
    """Scores of one view."""

    preprocessor: ViewPreprocessor
    kernel: Kernel
    train: Matrix  # (n, d), in the form of the training rows
    coefficients: Array  # (n, F)
    constant: Array  # (F,)

    @property
    def compares(self) -> bool:
        """Whether distances to rows are needed; a linear kernel needs one weight per feature alone."""
        return self.kernel.kind in DISTANCE_KERNELS

    @property
    def rows(self) -> IntArray:
        """The rows with a coefficient."""
        return np.flatnonzero(self.coefficients.any(axis=1))

    def scores(self, view: ViewInput, rows: ComparedRows) -> Tensor:
        """(n, F), of rows that have the view; arbitrary finite numbers for others.

        Σ_i a_i x·x_i = x·w with w = Σ_i a_i x_i, and the same with rows of unit length for the cosine.
        """
        if self.rows.size == 0:
            return view.mask * np.zeros((1, self.constant.size)) + self.constant
        points, a, kind = view.points(self.preprocessor), self.coefficients, self.kernel.kind
        if kind == "cosine":
            return unit_length(points) @ np.asarray(unit_rows(self.train).T @ a) + self.constant
        linear = points @ np.asarray(self.train.T @ a) if kind != "rbf" else None
        if linear is not None and not self.compares:
            return linear + self.constant
        gaussian = gaussian_values(self.kernel, points, self.train, rows) @ a[rows.used(self.train)]
        total = gaussian if linear is None else (linear + gaussian) * 0.5
        return total + self.constant


def gaussian_values(kernel: Kernel, points: Tensor, train: Matrix, rows: ComparedRows) -> Tensor:
    """exp(-γ‖x - x'‖²) of points and the used rows of a table, (n, p)."""
    return (rows.squared_distances(points, train) * -kernel.gamma).apply("Exp")


def kernel_values(kernel: Kernel, points: Tensor, train: Array) -> Tensor:
    """k(x, x') of points and all rows of a table, (n, p)."""
    if kernel.kind == "cosine":
        return unit_length(points) @ np.asarray(unit_rows(train).T)
    products = ((points * -2.0) @ train.T) * -0.5  # -2x·x' is computed once for the distances, too
    if kernel.kind == "linear":
        return products
    rows = ComparedRows()
    rows.use(train, np.arange(train.shape[0]))
    gaussian = gaussian_values(kernel, points, train, rows)
    return gaussian if kernel.kind == "rbf" else (products + gaussian) * 0.5


def view_expansion(predictor: ViewPredictor) -> Expansion:
    """A fitted view: m(x) = σ²(k_x a + β Σ a) with the bias β, or θᵀ Tᵀ (k(x), 1) of low-rank features."""
    if isinstance(predictor, LowRankPredictor):
        a, basis = predictor.coefficients, predictor.basis
        return Expansion(predictor.preprocessor, basis.kernel, basis.landmarks, a[:-1], a[-1])
    if not isinstance(predictor, KernelPredictor):
        raise TypeError(f"A view of type {type(predictor).__name__} has no kernel expansion.")
    data = predictor.data
    a = data.settings.prior_variance * np.concatenate([predictor.tau, predictor.gamma])
    constant = data.bias * a.sum(axis=0)
    if isinstance(predictor, InterceptPredictor):
        constant = constant + predictor.intercept
    return Expansion(data.preprocessor, data.kernel, data.train, a, constant)


def scorer_expansion(scorer: KernelScorer) -> Expansion:
    """A part of an opinion; a row that occurs several times in the expansion gets the sum of its coefficients."""
    a = scorer.coefficients
    if scorer.index is not None:
        a = np.zeros((scorer.basis.shape[0], scorer.coefficients.shape[1]))
        np.add.at(a, scorer.index, scorer.coefficients)
    return Expansion(scorer.preprocessor, scorer.kernel, scorer.basis, a, scorer.constant)


def check_kernel(kernel: Kernel) -> None:
    """Raise if a kernel cannot be written with the operators of ONNX."""
    if kernel.kind not in KERNELS:
        kind = "a function of Python" if callable(kernel.kind) else f"{kernel.kind!r}"
        raise ValueError(
            f"The kernel of view {kernel.view!r} is {kind}, which an ONNX model cannot compute; use one of "
            f"{', '.join(map(repr, KERNELS))}."
        )
