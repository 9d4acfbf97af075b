"""Sums over chunks by other array libraries against those by numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.data.array_api import array_place
from cmvmed.data.sources import ArrayApiRows, array_rows
from cmvmed.numerics.kernels import Kernel
from cmvmed.scale.passes import SweepPass
from tests.array_libraries import put
from tests.scale.test_streamed import make_case

pytestmark = pytest.mark.usefixtures("array_api_dispatch")
SETTINGS = pytest.mark.parametrize(
    "settings",
    [{}, {"n_classes": 3, "missing": 0.3}, {"weighted": True, "missing": 0.3}, {"n_classes": 4, "weighted": True}],
)


@pytest.fixture(params=[2**22, 5000])
def chunks(request, monkeypatch):
    """One chunk, and several."""
    monkeypatch.setattr(array_rows, "NUMBERS_AT_A_TIME", request.param)


def in_library(case, xp):
    arrays = [put(xp, matrix) for matrix in case.matrices]
    return replace(case, rows=replace(case.rows, source=ArrayApiRows(array_place(arrays), arrays)))


def sweep_pass(case, n_classes, *, temperature=0.3, size=1.0):
    n_functions, rng = 1 if n_classes == 2 else n_classes, np.random.default_rng(3)
    coefficients = tuple(size * rng.normal(size=(basis.n_landmarks + 1, n_functions)) for basis in case.bases)
    offset = rng.normal(size=n_functions)
    return SweepPass(case.unlabeled, case.chunk_views, coefficients, np.array([0.7, 0.3]), offset, temperature)


def check_same_sums(case, chunk_pass, xp):
    expected, found = case.reduced(chunk_pass), in_library(case, xp).reduced(chunk_pass)
    assert len(found) == len(expected)
    for own, truth in zip(found, expected, strict=True):
        assert isinstance(own, np.ndarray)
        assert own.shape == truth.shape
        np.testing.assert_allclose(own, truth, rtol=1e-10, atol=1e-11 * np.abs(truth).max())


@SETTINGS
@pytest.mark.usefixtures("chunks")
def test_sums_of_a_sweep(xp, settings):
    case = make_case(**settings)
    check_same_sums(case, sweep_pass(case, settings.get("n_classes", 2)), xp)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_certain_rows(xp, n_classes):
    """Probabilities of 0 and 1 to the last digit, of which no logarithm is taken."""
    case = make_case(n_classes=n_classes)
    check_same_sums(case, sweep_pass(case, n_classes, temperature=1e-3, size=100.0), xp)


@pytest.mark.parametrize("kind", ["linear+rbf", "rbf", "linear", "cosine"])
def test_kernels(xp, kind):
    case = make_case(missing=0.2)
    bases = [replace(basis, kernel=Kernel("one", kind, 0.3)) for basis in case.bases]
    case = replace(case, bases=bases)
    check_same_sums(case, sweep_pass(case, 2), xp)


def test_a_sample_of_the_rows_is_swept_over_in_place(xp):
    case = make_case(missing=0.2)
    numbers = np.sort(np.random.default_rng(0).permutation(400)[:150])
    part = in_library(case, xp).rows.source.chosen(numbers)
    taken = part.take(np.arange(20, 150))
    for own, matrix in zip(taken, case.matrices, strict=True):
        np.testing.assert_array_equal(own, matrix[numbers[20:]])
    weights = np.ones(400)
    weights[np.setdiff1d(np.arange(400), numbers)] = 0.0
    labeled = np.intersect1d(case.rows.labeled, numbers)
    of_all = replace(case, rows=replace(case.rows, labeled=labeled, weights=weights))
    expected = of_all.reduced(sweep_pass(of_all, 2))
    in_part = replace(case, rows=replace(case.rows, source=part, labeled=np.searchsorted(numbers, labeled)))
    found = in_part.reduced(sweep_pass(in_part, 2))
    for own, truth in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, truth, rtol=1e-10)


def test_values_that_are_too_large_name_the_view(xp):
    case = make_case()
    case = replace(case, bases=[replace(basis, kernel=Kernel("one", "linear")) for basis in case.bases])
    case.matrices[0][399] = 1e120
    with pytest.raises(ValueError, match=r"kernel of view 'one' .*NaN"):
        in_library(case, xp).reduced(sweep_pass(case, 2))
