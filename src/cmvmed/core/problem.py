"""The problem of a fit: V views of the same labeled and unlabeled rows.

The labeled rows form block L, the unlabeled ones block U; a view has the rows of each block in which it is present.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cmvmed.core.posterior import ViewModel
from cmvmed.numerics.nystroem import Basis
from cmvmed.numerics.threads import Mapper
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
    """

    block_L: IntArray
    block_U: IntArray
    weights: Array  # (n,) sample weights
    counts: Array  # (K,) weighted number of labeled rows of each class


def partition_rows(codes: IntArray, n_classes: int, present: Sequence[BoolArray], weights: Array) -> RowPartition:
    """Sort rows with class codes (n,), negative if unlabeled, into the two blocks; ``present`` says which rows each view has."""
    has_view = np.logical_or.reduce(present)
    is_unlabeled = (codes < 0) & (weights > 0.0)
    usable = (codes >= 0) & has_view
    counts = np.bincount(codes[usable], weights=weights[usable], minlength=n_classes).astype(np.float64)
    block_L, block_U = np.flatnonzero(has_view & ~is_unlabeled), np.flatnonzero(has_view & is_unlabeled)
    return RowPartition(block_L, block_U, weights, counts)


class TrainingView(Protocol):
    """What the problem needs of a view's training rows."""

    @property
    def rows_L(self) -> IntArray:
        """Its rows of the labeled block."""

    @property
    def rows_U(self) -> IntArray:
        """Its rows of the unlabeled block."""

    @property
    def C(self) -> float:
        """Weight of the hinge loss."""

    def exact_model(self, weights_U: Array, *, shared_curvature: bool) -> ViewModel:
        """The view with its kernel held whole."""

    def low_rank_model(self, basis: Basis, weights_U: Array) -> ViewModel:
        """The view through low-rank features."""


def build_problem(
    views: Sequence[TrainingView],
    partition: RowPartition,
    Y: Array,
    n_classes: int,
    *,
    shared_curvature: bool,
    bases: Sequence[Basis] | None = None,
    map_views: Mapper = map,
) -> Problem:
    """Kernel blocks and factorizations of all views.

    Parameters
    ----------
    Y : (n_L, F), labels ±1 of the labeled block
    shared_curvature : one eigendecomposition per view (constant curvature) instead of a Cholesky factorization per sweep
    bases : per view, the features that approximate its kernel; None for the kernel itself
    """
    weights_U = partition.weights[partition.block_U]

    def model(i: int) -> ViewModel:
        if bases is not None:
            return views[i].low_rank_model(bases[i], weights_U)
        return views[i].exact_model(weights_U, shared_curvature=shared_curvature)

    return Problem(
        models=tuple(map_views(model, range(len(views)))),
        rows_L=tuple(view.rows_L for view in views),
        rows_U=tuple(view.rows_U for view in views),
        Y=Y,
        box=tuple(view.C * partition.weights[partition.block_L] for view in views),
        weights_U=weights_U,
        n_classes=n_classes,
    )
