"""The problem that views form: kernel blocks and features of labeled and unlabeled rows, in whatever order they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.core.full_kernel import CholeskyView, SpectralView
from cmvmed.views.view_kernel import build_problem, low_rank_model, view_basis
from tests.auto.factories import draw_rows, read_training
from tests.core.factories import rejects


def mixed_training(seed=0, *, shared_curvature=True):
    """Labeled rows among unlabeled ones, some without weight, views that miss rows, and a row without any view."""
    matrices, codes, _ = draw_rows(seed, missing=0.3)
    order = np.random.default_rng(seed).permutation(codes.size)
    for matrix in matrices:
        matrix[order[7]] = np.nan
    weights = np.random.default_rng(1).integers(0, 3, size=75) * 1.0
    weights[codes >= 0] = 1.0
    return read_training(
        [m[order] for m in matrices], codes[order], weights=weights[order], shared_curvature=shared_curvature
    )


def by_number(training, i):
    """Rows of view i by their numbers in the table, and the kernel of pairs of numbers."""
    view = training.views[i]
    place = {int(training.partition.rows[row]): at for at, row in enumerate(view.rows)}
    K = view.kernel.cross(view.train, view.train) + view.bias
    return place, K


def root(weights):
    """√w √wᵀ."""
    return np.sqrt(np.outer(weights, weights))


def check_blocks(problem, training):
    """Every entry of the blocks is the kernel value of the two rows that its position stands for."""
    partition = training.partition
    for i, model in enumerate(problem.models):
        place, K = by_number(training, i)
        L = [place[int(row)] for row in partition.block_L[problem.rows_L[i]]]
        U = [place[int(row)] for row in partition.block_U[problem.rows_U[i]]]
        assert len(L) + len(U) == len(place)
        np.testing.assert_allclose(model.blocks.LL, K[np.ix_(L, L)], atol=1e-12)
        np.testing.assert_allclose(model.blocks.UL, K[np.ix_(U, L)], atol=1e-12)
        weights = partition.weights[partition.block_U[problem.rows_U[i]]]
        UU = model.blocks.UU if isinstance(model, CholeskyView) else model.Q * model.omega @ model.Q.T / root(weights)
        np.testing.assert_allclose(UU, K[np.ix_(U, U)], atol=1e-12)
        np.testing.assert_allclose(model.blocks.diagonal_U, np.diag(K)[U], atol=1e-12)
        np.testing.assert_array_equal(model.blocks.weights, weights)


@pytest.mark.parametrize(("shared_curvature", "kind"), [(True, SpectralView), (False, CholeskyView)])
def test_blocks_are_those_of_the_labeled_and_unlabeled_rows(shared_curvature, kind):
    training = mixed_training(shared_curvature=shared_curvature)
    problem, partition = training.problem, training.partition
    assert all(isinstance(model, kind) for model in problem.models)
    check_blocks(problem, training)
    reversed_rows = [replace(view, train=view.train[::-1]) for view in training.views]
    rejects(check_blocks, problem, replace(training, views=reversed_rows))
    np.testing.assert_array_equal(problem.weights_U, partition.weights[partition.block_U])
    np.testing.assert_array_equal(problem.box[0], training.views[0].settings.C * partition.weights[partition.block_L])
    np.testing.assert_array_equal(problem.Y, training.data.signed_labels(partition.block_L))


def test_rows_of_a_view_are_scaled_rows_of_the_table():
    training = mixed_training()
    for i, view in enumerate(training.views):
        np.testing.assert_array_equal(view.rows, np.flatnonzero(training.present[i]))
        np.testing.assert_allclose(view.train, view.preprocessor.transform(training.matrices[i][view.rows]))
        np.testing.assert_array_equal(view.weights, training.weights[view.rows])
        np.testing.assert_array_equal(np.sort(np.concatenate([view.L, view.U])), np.arange(view.rows.size))
        np.testing.assert_array_equal(view.rows_in(training.partition.L), training.problem.rows_L[i])


def test_features_are_those_of_the_labeled_and_unlabeled_rows():
    training = mixed_training()
    view, cache = training.views[0], training.data.cache
    basis = view_basis(view, cache, view.rows.size, 0)
    model = low_rank_model(view, basis, cache)
    Z_L, Z_U = (basis.features(view.train[own]) for own in (view.L, view.U))
    np.testing.assert_allclose(model.blocks.LL, Z_L @ Z_L.T, atol=1e-9)
    np.testing.assert_allclose(model.blocks.diagonal_U, (Z_U**2).sum(axis=1), atol=1e-9)
    np.testing.assert_array_equal(model.blocks.weights, training.problem.models[0].blocks.weights)
    bases = [basis, view_basis(training.views[1], cache, 5, 0)]
    problem = build_problem(training.data, training.views, bases, shared_curvature=True)
    np.testing.assert_allclose(problem.models[0].blocks.diagonal_U, model.blocks.diagonal_U, rtol=1e-12)
