"""The forms of new rows: the rows of one view with one scaling, each computed once for all that compares rows in it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cmvmed.numerics.types import Array, Matrix
from cmvmed.views.preprocessing import Imputation, Scaling
from cmvmed.views.view_rows import ViewPreprocessor


class RowForms:
    """Forms, by number. Rows that are scaled in the same way up to the clip are scaled once and clipped again."""

    def __init__(self) -> None:
        self._forms: list[tuple[int, ViewPreprocessor]] = []
        self._wider: dict[int, int] = {}  # by form, the same with the widest clip

    def __len__(self) -> int:
        return len(self._forms)

    def number(self, view: int, preprocessor: ViewPreprocessor) -> int:
        """The number of a form, which is a new one unless an equal form is known."""
        for i, (known_view, known) in enumerate(self._forms):
            if known_view == view and same_preprocessing(known, preprocessor):
                return i
        self._forms.append((view, preprocessor))
        self._wider = {}
        for i, (own_view, own) in enumerate(self._forms):
            wider = [
                j
                for j, (other_view, other) in enumerate(self._forms)
                if other_view == own_view and other.scaling.clip > own.scaling.clip and _same_before_clip(other, own)
            ]
            if wider:
                self._wider[i] = max(wider, key=lambda j: self._forms[j][1].scaling.clip)
        return len(self._forms) - 1

    def of(self, matrices: Sequence[Matrix]) -> list[Array]:
        """The rows in each form."""
        found: dict[int, Array] = {}
        for i, (view, preprocessor) in enumerate(self._forms):
            if i not in self._wider:
                # sums in another order would differ in the last digit
                found[i] = np.ascontiguousarray(preprocessor.transform(matrices[view]))
        for i, wider in self._wider.items():
            found[i] = self._forms[i][1].scaling.clipped(found[wider])
        return [found[i] for i in range(len(self._forms))]


def same_preprocessing(first: ViewPreprocessor, second: ViewPreprocessor) -> bool:
    """Whether two preprocessors give the same numbers; not if they choose columns."""
    return (
        first.columns is None
        and second.columns is None
        and _same_scaling(first.scaling, second.scaling)
        and _same_imputation(first.imputation, second.imputation)
    )


def _same_before_clip(first: ViewPreprocessor, second: ViewPreprocessor) -> bool:
    """Whether two preprocessors by standard deviations give the same numbers if neither clips."""
    clip = first.scaling.clip
    return first.scaling.kind == "standard" and same_preprocessing(
        first, replace(second, scaling=replace(second.scaling, clip=clip))
    )


def _same_scaling(first: Scaling, second: Scaling) -> bool:
    return (
        (first.kind, first.size, first.clip) == (second.kind, second.size, second.clip)
        and same_arrays(first.mean, second.mean)
        and same_arrays(first.factor, second.factor)
    )


def _same_imputation(first: Imputation | None, second: Imputation | None) -> bool:
    if first is None or second is None:
        return first is second
    return same_arrays(first.means, second.means)


def same_arrays(first: Array | None, second: Array | None) -> bool:
    """Whether two arrays, or None, hold the same numbers."""
    if first is None or second is None or first is second:
        return first is second
    return first.shape == second.shape and bool(np.array_equal(first, second, equal_nan=True))
