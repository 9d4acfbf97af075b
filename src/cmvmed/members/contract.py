"""What members are made from, and what every member gives, so that it can be calibrated, weighed and pooled.

A member is any classifier. It is fitted to all labels and, to be judged, without the labels of each fold. Its scores are logits up
to a scale, offsets, and the classes' shares among the labels, which the calibration learns or adds: a member must not favor a
class because it has more labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmvmed.auto.labeled_rows import LabeledRows
from cmvmed.auto.tuning import Tuning
from cmvmed.model.fitted_model import Member
from cmvmed.numerics.kernels import DISTANCE_KERNELS
from cmvmed.numerics.types import Array, BoolArray
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_rows import ViewData


@dataclass(frozen=True)
class MemberInputs:
    """The rows, labels and folds that members are fitted to."""

    training: TrainingData
    views: Sequence[ViewData]  # with the user's scaling and kernels
    used: BoolArray  # (V,), views that take part
    rows: LabeledRows
    folds: list[BoolArray]  # which labeled rows (l,) each fold holds out
    per_class: bool  # whether labels are taken to be drawn class by class
    max_compared_nodes: (
        int | None
    )  # nodes of a graph that new rows are compared with, beside labeled ones; None for all
    random_state: object
    tuning: Tuning

    @cached_property
    def indices(self) -> list[int]:
        """The views that take part and that some row has."""
        return [i for i, view in enumerate(self.views) if self.used[i] and view.rows.size]

    @property
    def n_rows(self) -> int:
        """Training rows, n."""
        return self.training.partition.rows.size

    @property
    def keep(self) -> list[BoolArray]:
        """The labeled rows (l,) of each fit: all of them, then those outside of each fold."""
        return [np.ones(self.rows.codes.size, dtype=bool), *(~fold for fold in self.folds)]

    @property
    def have_features(self) -> bool:
        """Whether rows can be compared otherwise than by given kernels."""
        kernels = [self.views[i].settings.kernel for i in self.indices]
        return bool(kernels) and all(isinstance(kernel, str) and kernel != "precomputed" for kernel in kernels)

    @cached_property
    def features(self) -> dict[int, ViewData]:
        """By view, its rows scaled and clipped only far out, with a bandwidth."""
        return {i: self._features(self.views[i], i) for i in self.indices}

    def _features(self, view: ViewData, i: int) -> ViewData:
        if view.scaling.kind == "unit" and view.settings.kernel in DISTANCE_KERNELS:
            return view
        settings = replace(view.settings, clip=self.tuning.wide_clip, kernel="linear+rbf", gamma="median")
        if settings.scaling is None:  # raw features are only brought to a magnitude that can be squared
            settings = replace(settings, scaling="magnitude")
        return self.training.view(i, settings, self.random_state)


@dataclass(frozen=True)
class MemberScores:
    """A member fitted to all labels, and to those outside of each fold, S in number."""

    kind: str
    member: Member  # on new rows, not calibrated
    scores: Array  # (n, K), of the training rows
    fold_scores: Array  # (S, n, K), by fits without the labels of a fold
    scale: float = 1.0  # from scores to logits, before any label was held out
    uses_unlabeled: bool = False  # whether it learns from unlabeled rows

    @property
    def name(self) -> str:
        """Of the member."""
        return self.member.name

    def held_out(self, rows: LabeledRows, folds: Sequence[BoolArray]) -> Array:
        """Scores (l, K) of the labeled rows by fits without their labels; zero for those in no fold."""
        held = np.zeros((rows.codes.size, rows.n_classes))
        for own, fold in zip(self.fold_scores, folds, strict=True):
            held[fold] = own[rows.index[fold]]
        return held
