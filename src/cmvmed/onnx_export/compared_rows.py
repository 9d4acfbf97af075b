"""The training rows that new rows are compared with: of each table those in use, as one constant."""

import numpy as np

from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.onnx_export.graph_builder import Tensor

MAX_BYTES = 2**28  # of the tables; a file of the ONNX format ends at 2**31


class ComparedRows:
    """Tables of training rows, by the object that holds them."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[Matrix, BoolArray]] = {}
        self._distances: dict[tuple[str, int], Tensor] = {}  # by points and table

    def use(self, train: Matrix, rows: IntArray) -> None:
        """Say that these rows of a table are needed."""
        _, used = self._tables.setdefault(id(train), (train, np.zeros(train.shape[0], dtype=bool)))
        used[rows] = True

    @property
    def n_bytes(self) -> int:
        """Of all tables."""
        return sum(8 * int(used.sum()) * train.shape[1] for train, used in self._tables.values())

    def used(self, train: Matrix) -> IntArray:
        """The rows of a table that are in the graph, ascending."""
        return np.flatnonzero(self._tables[id(train)][1])

    def squared_distances(self, points: Tensor, train: Matrix) -> Tensor:
        """‖x‖² + ‖x'‖² - 2x·x' between points and the used rows of a table, (n, p), not below zero."""
        key = (points.name, id(train))
        if key not in self._distances:
            chosen = train[self.used(train)]
            rows: Array = chosen.toarray() if is_sparse(chosen) else chosen
            norms, others = points.reduce("ReduceSumSquare"), np.asarray(np.einsum("ij,ij->i", rows, rows))
            self._distances[key] = (norms + others + (points * -2.0) @ rows.T).at_least(0.0)
        return self._distances[key]


def check_size(rows: ComparedRows) -> None:
    """Raise if the training rows are too many for a file."""
    if rows.n_bytes > MAX_BYTES:
        raise ValueError(
            f"The ONNX model would hold {rows.n_bytes / 2**20:.0f} MiB of training rows, more than {MAX_BYTES / 2**20:.0f} MiB; "
            "views are dense in it, also those of mostly zeros. Use fewer columns (for texts TextView(max_features=...)), fit "
            'with n_neighbors=None, which leaves graphs out, or with approximation="nystroem" and fewer n_components.'
        )
