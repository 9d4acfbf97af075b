"""Rows in arrays of other libraries: what they give is that of numpy's rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from cmvmed.data.array_api import array_place
from cmvmed.data.layout import ViewLayout
from cmvmed.data.sources import ArrayApiRows, array_rows, memory_rows
from cmvmed.data.validation import RowCheck
from tests.array_libraries import put

pytestmark = pytest.mark.usefixtures("array_api_dispatch")
N_ROWS = 500
LAYOUT = ViewLayout(("a", "b"), (np.array([0, 2, 4]), np.array([3, 1])))


def draw():
    return np.random.default_rng(0).normal(size=(N_ROWS, 5))


def source_of(xp, X, **options):
    array = put(xp, X)
    return ArrayApiRows(array_place(array), [array], LAYOUT, **options)


@dataclass(frozen=True)
class Moments:
    """Products between the views, and the sum of the first weighted by the numbers of rows."""

    def __call__(self, first_row, matrices):
        first, second = matrices
        return first.T @ second, (first_row + np.arange(first.shape[0])) @ first


@dataclass(frozen=True)
class MomentsOnDevice(Moments):
    def __call__(self, first_row, matrices):
        raise AssertionError("computed by numpy")

    def on_device(self, place):
        def moments(first_row, tables):
            first, second = tables
            numbers = place.put(first_row + np.arange(first.shape[0], dtype=float))
            return first.T @ second, numbers @ first

        return moments


@pytest.mark.parametrize("function", [Moments(), MomentsOnDevice()])
@pytest.mark.parametrize("numbers", [None, np.arange(3, N_ROWS, 7)])
def test_sums(xp, function, numbers, monkeypatch):
    monkeypatch.setattr(array_rows, "NUMBERS_AT_A_TIME", 300)
    X = draw()
    rows = source_of(xp, X, memory_limit=20_000)
    rows = rows if numbers is None else rows.chosen(numbers)
    matrices = LAYOUT.split(X if numbers is None else X[numbers])
    for own, truth in zip(rows.reduce(function), Moments()(0, matrices), strict=True):
        assert isinstance(own, np.ndarray)
        np.testing.assert_allclose(own, truth, rtol=1e-10)


def test_shape_rows_and_maps_are_those_of_numpy(xp):
    X, numbers = draw().astype(np.float32), np.array([1, 5, 499])
    rows, expected = source_of(xp, X, memory_limit=20_000), memory_rows(LAYOUT.split(X.astype(float)))
    assert (rows.n_rows, rows.widths, rows.row_sizes) == (N_ROWS, (3, 2), (3, 2))
    for own, truth in zip(rows.take(numbers), expected.take(numbers), strict=True):
        assert own.dtype == np.float64
        np.testing.assert_array_equal(own, truth)
    chosen = rows.chosen(np.arange(0, N_ROWS, 2)).chosen(numbers[:2])
    assert chosen.n_rows == 2
    np.testing.assert_array_equal(chosen.take(np.array([1]))[0], X[10:11, [0, 2, 4]])
    parts = list(rows.map(lambda first, matrices: matrices[1] + first))
    assert len(parts) > 1
    starts = np.repeat(np.cumsum([0, *map(len, parts[:-1])]), [len(part) for part in parts])
    np.testing.assert_allclose(np.concatenate(parts), X[:, [3, 1]] + starts[:, None], rtol=1e-12)


def test_an_infinite_value_is_named_in_any_chunk(xp, monkeypatch):
    monkeypatch.setattr(array_rows, "NUMBERS_AT_A_TIME", 300)
    X, check = draw(), RowCheck(LAYOUT.names, (None, None), (None, None))
    X[7] = np.nan
    source_of(xp, X).check_values(check)
    X[417, 1] = np.inf
    with pytest.raises(ValueError, match="view 'b', row 417, column 1"):
        source_of(xp, X).check_values(check)
