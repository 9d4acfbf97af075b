"""The inputs of a graph, one table per view: which rows have the view, gaps filled, features scaled."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.numerics.types import BoolArray
from cmvmed.onnx_export.graph_builder import Graph, Tensor
from cmvmed.views.scaling import Scaling
from cmvmed.views.view_rows import ViewPreprocessor


@dataclass(frozen=True)
class ViewInput:
    """The rows of one view as the user passes them."""

    n_columns: int  # d
    rows: Tensor  # (n, d), NaN where there is no number
    gaps: Tensor  # (n, d), which those are
    has: Tensor  # (n, 1), whether a row has the view; false for all if no training row had it

    @property
    def mask(self) -> Tensor:
        """1 for rows that have the view and 0 for others, (n, 1)."""
        return self.has.as_number()

    def points(self, preprocessor: ViewPreprocessor) -> Tensor:
        """Rows in the form of the training rows, (n, d); those without the view have arbitrary finite numbers.

        Steps as in :class:`cmvmed.views.imputation.Imputation` and :class:`cmvmed.views.scaling.Scaling`.
        """
        imputation = preprocessor.imputation
        empty = np.zeros(self.n_columns, dtype=bool) if imputation is None else imputation.empty
        values = np.zeros(self.n_columns) if imputation is None else np.where(empty, 0.0, imputation.means)
        rows = (self.gaps | empty if empty.any() else self.gaps).where(values, self.rows)
        return scaled(rows, preprocessor.scaling, self.n_columns)


def view_input(
    graph: Graph, name: str, n_columns: int, dtype: Any, unused: BoolArray | None, *, usable: bool
) -> ViewInput:
    """A new input; a row whose used columns are all NaN does not have the view.

    Parameters
    ----------
    unused : columns whose values do not matter, (n_columns,); None if all do
    usable : whether training rows had the view
    """
    rows = graph.input(name, n_columns, dtype).as_number()
    gaps = rows.apply("IsNaN")
    missing = gaps if unused is None else gaps | unused
    has = missing.as_number().reduce("ReduceMin").below(1.0)
    return ViewInput(n_columns, rows, gaps, has if usable else graph.apply("And", has, False))


def scaled(rows: Tensor, scaling: Scaling, n_columns: int) -> Tensor:
    """:meth:`cmvmed.views.scaling.Scaling.apply` of complete rows (n, d).

    Each column has its own divisor: a scalar one would be moved by onnxruntime into the next product of matrices, in single
    precision.
    """
    if scaling.kind is None:
        return rows
    if scaling.kind == "unit":
        return unit_length(rows)
    rows = rows if scaling.size == 1.0 else rows / np.full(n_columns, scaling.size)
    if scaling.mean is None:
        return rows
    centered = rows - scaling.mean
    if scaling.kind == "center" or scaling.factor is None:
        return centered
    clipped = rows.graph.apply("Clip", centered * scaling.factor, -scaling.clip, scaling.clip)
    return clipped / np.full(n_columns, np.sqrt(n_columns))


def unit_length(rows: Tensor) -> Tensor:
    """Each row divided by its length, in two steps so that squares neither overflow nor vanish; zeros stay."""
    largest = rows.apply("Abs").reduce("ReduceMax")
    rows = rows / largest.above(0.0).where(largest, 1.0)
    length = rows.reduce("ReduceL2")
    return rows / length.above(0.0).where(length, 1.0)
