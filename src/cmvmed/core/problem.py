"""The problem of a fit: V views of the same labeled and unlabeled rows.

The labeled rows form block L, the unlabeled ones block U; a view has the rows of each block in which it is present.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmvmed.core.posterior import ViewModel
from cmvmed.numerics.types import Array, BoolArray, IntArray


@dataclass(frozen=True)
class Problem:
    """What the EM algorithm works on: V views of n_L labeled and n_U unlabeled rows."""

    models: tuple[ViewModel, ...]
    rows_L: tuple[IntArray, ...]  # per view, its rows of the labeled block
    rows_U: tuple[IntArray, ...]  # per view, its rows of the unlabeled block
    Y: Array  # (n_L, F) labels ±1
    box: tuple[Array, ...]  # per view (n_L,), hinge weight of each labeled row
    weights_U: Array  # (n_U,) sample weight of each unlabeled row
    n_classes: int

    @property
    def n_views(self) -> int:
        """V."""
        return len(self.models)

    @property
    def known_views(self) -> BoolArray:
        """Which views any training row has, (V,)."""
        return np.array([lab.size + unlab.size > 0 for lab, unlab in zip(self.rows_L, self.rows_U, strict=True)])


@dataclass(frozen=True)
class RowPartition:
    """The training rows as labeled and unlabeled block.

    The labeled block holds the rows with a hinge loss, which their sample weights multiply. An unlabeled row of zero
    weight is placed in it: it gets a prediction and influences nothing. Rows without any view are in neither block.

    All else that a fit computes of rows has those of both blocks in the order of the table: ``rows``, m in number, of which
    ``L`` and ``U`` are the labeled and unlabeled ones.
    """

    block_L: IntArray  # (n_L,) row numbers in the table, ascending
    block_U: IntArray  # (n_U,)
    weights: Array  # (n,) sample weights
    counts: Array  # (K,) weighted number of labeled rows of each class

    @cached_property
    def rows(self) -> IntArray:
        """(m,), numbers of the rows of both blocks, ascending."""
        return np.sort(np.concatenate([self.block_L, self.block_U]))

    @cached_property
    def L(self) -> IntArray:
        """(n_L,), where the labeled block is in ``rows``."""
        return np.searchsorted(self.rows, self.block_L)

    @cached_property
    def U(self) -> IntArray:
        """(n_U,), where the unlabeled block is in ``rows``."""
        return np.searchsorted(self.rows, self.block_U)

    @cached_property
    def unlabeled_weights(self) -> Array:
        """(m,), sample weights of the unlabeled rows; zero for the labeled block."""
        return self.joined(np.zeros(self.L.size), self.weights[self.block_U])

    def joined(self, of_L: Array, of_U: Array) -> Array:
        """(m, ...), in the order of the table, from (n_L, ...) for the labeled and (n_U, ...) for the unlabeled block."""
        found = np.empty((self.rows.size, *of_L.shape[1:]))
        found[self.L], found[self.U] = of_L, of_U
        return found


def partition_rows(codes: IntArray, n_classes: int, present: Sequence[BoolArray], weights: Array) -> RowPartition:
    """Sort rows with class codes (n,), negative if unlabeled, into the two blocks; ``present`` says which rows each view has."""
    has_view = np.logical_or.reduce(present)
    is_unlabeled = (codes < 0) & (weights > 0.0)
    usable = (codes >= 0) & has_view
    counts = np.bincount(codes[usable], weights=weights[usable], minlength=n_classes).astype(np.float64)
    block_L, block_U = np.flatnonzero(has_view & ~is_unlabeled), np.flatnonzero(has_view & is_unlabeled)
    return RowPartition(block_L, block_U, weights, counts)
