"""A view as numbers: the features of its columns and sensors side by side.

A row in which no column of a view is present is NaN throughout, which is how the estimators know that the sensor was
absent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are used

from cmvmed.features.feature_cache import FeatureCache
from cmvmed.workbench.frames import Block, BoolArray, FloatArray, Matrix, RawTable
from cmvmed.workbench.sensor_encoders import SensorEncoder

__all__ = ["ViewEncoder", "use_memory", "with_absent_rows"]


@dataclass(frozen=True)
class ViewEncoder:
    """The encoders of the columns of a view."""

    name: str
    columns: tuple[Any, ...]  # ColumnEncoder

    @property
    def column_names(self) -> list[str]:
        """Names of the columns in the user's data."""
        return [name for column in self.columns for name in column.sources]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return sum(column.n_features for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return [name for column in self.columns for name in column.feature_names]

    def encode(self, table: RawTable) -> Matrix:
        """Features (n, d) of a table; NaN throughout in rows where the view is absent."""
        has_text = any(column.kind == "text" for column in self.columns)
        blocks = [
            column.encode(table, standardize=has_text)
            if set(column.sources) <= set(table.names)
            else column.absent(table.n_rows, standardize=has_text)
            for column in self.columns
        ]
        present = np.any([block.present for block in blocks], axis=0)
        if has_text:
            sparse: list[Any] = [
                block.values if scipy.sparse.issparse(block.values) else scipy.sparse.csr_array(_filled(block))
                for block in blocks
            ]
            return with_absent_rows(scipy.sparse.csr_array(scipy.sparse.hstack(sparse, format="csr")), ~present)
        values = np.hstack([_filled(block) for block in blocks])
        values[~present] = np.nan
        return values


def use_memory(encoders: Iterable[ViewEncoder], memory: FeatureCache | None) -> None:
    """Keep the features of signals in a cache."""
    for encoder in encoders:
        for column in encoder.columns:
            if isinstance(column, SensorEncoder):
                column.features.set_params(memory=memory)


def _filled(block: Block) -> FloatArray:
    """The block with zeros for signals that are absent beside other columns of the view."""
    return np.where(np.isnan(block.values), 0.0, block.values)


def with_absent_rows(matrix: Matrix, absent: BoolArray) -> Matrix:
    """The matrix with NaN stored in all columns of the absent rows."""
    if not absent.any():
        return matrix
    n_columns = matrix.shape[1]
    keep = scipy.sparse.diags_array(np.where(absent, 0.0, 1.0))
    rows = np.repeat(np.flatnonzero(absent), n_columns)
    columns = np.tile(np.arange(n_columns), int(absent.sum()))
    nan = scipy.sparse.csr_array((np.full(len(rows), np.nan), (rows, columns)), shape=matrix.shape)
    return scipy.sparse.csr_array(keep @ matrix + nan)
