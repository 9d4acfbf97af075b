"""Centered kernels: explicit centering, missing views, scale, and the scores of new rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cmvmed.members.centered_kernels import center, kernel_mean, view_rows
from cmvmed.numerics.kernels import Kernel
from tests.auto.factories import draw_rows, read_training
from tests.core.factories import rejects

WEIGHTS = np.random.default_rng(9).integers(0, 4, size=75) * 0.5
KERNELS = {
    "linear": Kernel("", "linear"),
    "rbf": Kernel("", "rbf", 0.7),
    "linear+rbf": Kernel("", "linear+rbf", 0.7),
    "cosine": Kernel("", "cosine"),
    "callable": Kernel("", lambda A, B: (A @ B.T + 1.0) ** 2),
}


def sparse_rows():
    rng = np.random.default_rng(4)
    return [sparse.random(75, 12, 0.2, format="csr", rng=rng)]


def read_case(*, weighted=True, as_sparse=False):
    """A training set with rows of zero weight and without views, and which rows its first view has."""
    matrices, codes, _ = draw_rows(missing=0.4)
    weights = np.where(codes >= 0, np.maximum(WEIGHTS, 0.5), WEIGHTS) if weighted else np.ones(75)
    scaling = "unit" if as_sparse else "standard"
    training = read_training(sparse_rows() if as_sparse else matrices, codes, weights=weights, scaling=scaling)
    return training, rows_of(training, training.labeled_rows().index)


def rows_of(training, labeled):
    return view_rows(0, training.views[0], labeled, training.weights.size)


def mean_of(training, kernel, max_reference=1000):
    return kernel_mean(training.views[0], kernel, max_reference, np.random.default_rng(0))


def read_kernel(kernel, **case):
    training, rows = read_case(**case)
    weights = training.labeled_rows().weights
    return training, center(rows, training.views[0], kernel, mean_of(training, kernel), weights)


def centered_by_hand(training, kernel):
    """H K Hᵀ of all rows of the view, H = I - 1 sᵀ with the shares s of the rows' weights, scaled; zero elsewhere."""
    view, labeled = training.views[0], training.labeled_rows()
    members = np.flatnonzero(training.present[0])
    K = kernel.cross(view.train, view.train)
    share = training.weights[members] / training.weights[members].sum()
    H = np.eye(members.size) - np.outer(np.ones(members.size), share)
    full = np.zeros((training.block.size, training.block.size))
    full[np.ix_(members, members)] = H @ K @ H.T
    has = training.present[0][labeled.index]
    mean = np.average(np.diagonal(full)[labeled.index[has]], weights=labeled.weights[has])
    return full / mean


def check_centered(centered, training, kernel):
    expected = centered_by_hand(training, kernel)
    labeled = training.labeled_rows().index
    np.testing.assert_allclose(centered.gram(), expected[np.ix_(labeled, labeled)], atol=1e-9)
    coefficients = np.random.default_rng(0).normal(size=(labeled.size, 3))
    np.testing.assert_allclose(centered.scores(coefficients), expected[:, labeled] @ coefficients, atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_is_centered_and_scaled(name):
    training, centered = read_kernel(KERNELS[name])
    check_centered(centered, training, KERNELS[name])
    for broken in (
        replace(centered, mean=replace(centered.mean, total=0.0)),
        replace(centered, mean=replace(centered.mean, of_rows=0.0 * centered.mean.of_rows)),
        replace(centered, scale=1.1 * centered.scale),
    ):
        rejects(check_centered, broken, training, KERNELS[name])


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_sparse_rows_are_centered_too(name):
    training, centered = read_kernel(KERNELS[name], as_sparse=True)
    check_centered(centered, training, KERNELS[name])
    assert sparse.issparse(centered.term(np.ones((15, 1))).rows.rows)


def test_precomputed_kernels_are_centered():
    """The scores of rows of the given matrix are those of the features that it came from."""
    matrices, codes, _ = draw_rows()
    features, given = np.nan_to_num(matrices[0]), KERNELS["rbf"]
    table = given.cross(features, features)
    training = read_training([table], codes, kernel="precomputed")
    view, rows = training.views[0], rows_of(training, np.arange(15))
    centered = center(rows, view, view.kernel, mean_of(training, view.kernel), np.ones(15))
    H = np.eye(75) - 1.0 / 75
    expected = H @ table @ H
    expected /= np.diagonal(expected)[:15].mean()
    np.testing.assert_allclose(centered.gram(), expected[:15, :15], atol=1e-9)
    coefficients = np.random.default_rng(0).normal(size=(15, 2))
    np.testing.assert_allclose(centered.scores(coefficients), expected[:, :15] @ coefficients, atol=1e-9)
    new = centered.term(coefficients).scores([table], [np.ones(75, dtype=bool)])
    np.testing.assert_allclose(new, expected[:, :15] @ coefficients, atol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_rows_without_the_view_have_zeros_and_labeled_rows_a_mean_diagonal_of_one(name):
    training, centered = read_kernel(KERNELS[name])
    labeled, gram = training.labeled_rows(), centered.gram()
    has = training.present[0][labeled.index]
    assert 0 < has.sum() < has.size
    np.testing.assert_array_equal(gram[~has], 0.0)
    np.testing.assert_array_equal(gram[:, ~has], 0.0)
    np.testing.assert_allclose(np.average(np.diagonal(gram)[has], weights=labeled.weights[has]), 1.0, rtol=1e-9)
    scores = centered.scores(np.ones((labeled.codes.size, 1)))
    np.testing.assert_array_equal(scores[~training.present[0]], 0.0)
    np.testing.assert_array_equal(centered.present, training.present[0])


def check_scorer(scores, training, centered, coefficients):
    np.testing.assert_allclose(scores, centered.scores(coefficients), atol=1e-9)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("name", ["linear", "rbf", "linear+rbf"])
def test_new_rows_that_equal_training_rows_have_their_scores(name, as_sparse):
    training, centered = read_kernel(KERNELS[name], as_sparse=as_sparse)
    coefficients = np.random.default_rng(1).normal(size=(15, 2))
    scorer = centered.term(coefficients)
    new = scorer.scores(training.matrices, training.present)
    check_scorer(new, training, centered, coefficients)
    rejects(check_scorer, new - scorer.constant, training, centered, coefficients)
    n_reference = 1 if name == "linear" else centered.mean.shares.size
    assert scorer.n_compared == centered.rows.labeled.size + n_reference


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_a_row_of_weight_two_is_the_row_twice_and_one_of_zero_weight_is_none(name):
    matrices, codes, _ = draw_rows()
    times = np.where(codes >= 0, 1, np.random.default_rng(2).integers(0, 3, size=75))

    def gram(order, weights):
        training = read_training([matrices[0][order]], codes[order], weights=weights)
        kernel, labeled = KERNELS[name], training.labeled_rows().index
        mean, rows = mean_of(training, kernel), rows_of(training, labeled)
        return center(rows, training.views[0], kernel, mean, np.ones(labeled.size)).gram()

    weighted = gram(np.arange(75), times * 1.0)
    repeated = np.repeat(np.arange(75), times)
    np.testing.assert_allclose(weighted, gram(repeated, np.ones(repeated.size)), atol=1e-9)
    assert np.abs(weighted - gram(np.arange(75), np.ones(75))).max() > 1e-3


def test_of_many_rows_a_sample_drawn_by_weight_is_the_reference():
    training, _ = read_case()
    some, everything = (mean_of(training, KERNELS["rbf"], n) for n in (20, 1000))
    assert some.index.size == 20
    np.testing.assert_allclose(some.shares, 1.0 / 20)
    members = np.flatnonzero(training.present[0])
    np.testing.assert_array_equal(training.weights[members[everything.index]] > 0.0, True)
    np.testing.assert_allclose(everything.shares.sum(), 1.0, rtol=1e-12)


def test_a_constant_view_has_a_kernel_of_zeros():
    training = read_training([np.ones((20, 2))], np.where(np.arange(20) < 6, np.arange(20) % 2, -1))
    rows = rows_of(training, np.arange(6))
    for kernel in KERNELS.values():
        gram = center(rows, training.views[0], kernel, mean_of(training, kernel), np.ones(6)).gram()
        np.testing.assert_allclose(gram, 0.0, atol=1e-9)
