"""The view of nearest rows: its kernel, what it changes in a plan, and its weight in fitted models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed import CMVMED, config_context
from cmvmed.auto.neighbors import (
    NeighborEvidence,
    add_neighbor_view,
    neighbor_model,
)
from cmvmed.core.full_kernel import CholeskyView, SpectralView
from cmvmed.core.posterior import supervised_state
from cmvmed.core.surrogates import Jaakkola
from cmvmed.graphs.kernel import laplacian_kernel
from cmvmed.model.graph_votes import graph_vote
from cmvmed.model.terms import covers
from cmvmed.model_selection import hide_labels
from tests.auto.factories import TUNING, draw_training
from tests.core.factories import make_plan, rejects

REGULARIZATION = TUNING.graph_regularization


def check_laplacian_kernel(K, nodes, *, regularization=REGULARIZATION):
    """K is proportional to the squared inverse of Λ + εI, Λ = I - D^(-1/2) W D^(-1/2)."""
    joined = nodes.adjacency.toarray()
    degree = joined.sum(axis=1)
    shifted = (1.0 + regularization) * np.eye(nodes.size) - joined / np.sqrt(np.outer(degree, degree))
    product = K @ shifted @ shifted
    np.testing.assert_allclose(product, product[0, 0] * np.eye(nodes.size), atol=1e-9 * abs(product[0, 0]))
    np.testing.assert_allclose(np.diagonal(K).mean(), 1.0)


def test_the_kernel_is_the_squared_inverse_of_the_laplacian():
    nodes = draw_training().nodes(4)
    K = laplacian_kernel(nodes, REGULARIZATION)
    check_laplacian_kernel(K, nodes)
    rejects(check_laplacian_kernel, K, nodes, regularization=2.0 * REGULARIZATION)
    rejects(check_laplacian_kernel, laplacian_kernel(draw_training().nodes(5), REGULARIZATION), nodes)
    rejects(check_laplacian_kernel, 2.0 * K, nodes)


def check_blocks(blocks, training, nodes, bias):
    """The kernel of the labeled and unlabeled rows, plus the bias."""
    K = laplacian_kernel(nodes, REGULARIZATION) + bias
    L, U = nodes.node_of_row[training.partition.L], nodes.node_of_row[training.partition.U]
    np.testing.assert_allclose(blocks.LL, K[np.ix_(L, L)], rtol=1e-12)
    np.testing.assert_allclose(blocks.UL, K[np.ix_(U, L)], rtol=1e-12)
    np.testing.assert_allclose(blocks.UU, K[np.ix_(U, U)], rtol=1e-12)


def test_blocks_hold_the_kernel_of_all_rows_with_the_mean_settings_of_the_views():
    training = draw_training()
    views = [
        replace(view, settings=replace(view.settings, prior_variance=variance))
        for view, variance in zip(training.views, (1.0, 3.0), strict=True)
    ]
    nodes = training.nodes(4)
    blocks = neighbor_model(nodes, views, training.data, TUNING, shared_curvature=True).blocks
    assert blocks.prior_variance == 2.0
    check_blocks(blocks, training, nodes, 0.1 / 2.0)
    rejects(check_blocks, blocks, training, nodes, 0.0)


def plan_with_neighbors(weight=0.4, *, chosen=(), surrogate=None):
    training = draw_training(missing=0.2)
    plan = make_plan(training.problem, chosen=chosen, surrogate=surrogate)
    evidence = NeighborEvidence(training.nodes(4), weight)
    return plan, add_neighbor_view(plan, evidence, training.views, training.data, TUNING)


def test_neighbors_are_the_last_view_and_the_others_share_the_rest():
    plan, joined = plan_with_neighbors(0.4)
    assert joined.problem.models[:2] == plan.problem.models
    np.testing.assert_allclose(joined.view_weights, [*(0.6 * plan.view_weights), 0.4], rtol=1e-14)
    np.testing.assert_array_equal(joined.problem.rows_L[-1], np.arange(15))
    np.testing.assert_array_equal(joined.problem.rows_U[-1], np.arange(60))
    np.testing.assert_array_equal(joined.problem.box[-1], 1.0)
    state = supervised_state(joined.problem.models[-1], plan.problem.Y, np.ones(15))
    np.testing.assert_array_equal(joined.start.states[-1].m_U, state.m_U)
    np.testing.assert_array_equal(joined.start.agreement, plan.start.agreement)


@pytest.mark.parametrize(("surrogate", "model"), [(None, SpectralView), (Jaakkola(), CholeskyView)])
def test_the_model_is_that_of_the_surrogate(surrogate, model):
    assert isinstance(plan_with_neighbors(surrogate=surrogate)[1].problem.models[-1], model)


def test_only_an_automatic_consensus_weight_is_lowered():
    plan, given = plan_with_neighbors(0.4)
    assert given.schedule == plan.schedule
    plan, automatic = plan_with_neighbors(0.4, chosen=["consensus_weight"])
    expected = 0.6 * plan.schedule.consensus_weight + 0.4 * TUNING.neighbor_consensus_weight
    assert automatic.schedule.consensus_weight == pytest.approx(expected, rel=1e-12)


def check_predictor(known, means, training, nodes, scores):
    """Training rows have the scores of their nodes; rows without any view have none."""
    np.testing.assert_array_equal(known, np.arange(training.block.size))
    np.testing.assert_allclose(means, scores[nodes.node_of_row], atol=1e-12)


def test_new_rows_have_the_mean_of_their_nearest_and_equal_ones_their_scores():
    training = draw_training(missing=0.3)
    nodes = training.nodes(4)
    scores = np.random.default_rng(0).normal(size=(nodes.size, 1))
    vote = graph_vote(nodes, scores)
    known = np.flatnonzero(covers(vote, training.present))
    means = vote.scores(training.matrices, training.present)[known]
    check_predictor(known, means, training, nodes, scores)
    rejects(check_predictor, known, means[::-1], training, nodes, scores)
    without = [own & (np.arange(75) > 0) for own in training.present]
    np.testing.assert_array_equal(np.flatnonzero(covers(vote, without)), np.arange(1, 75))
    assert (vote.scores(training.matrices, without)[0] == 0.0).all()
    new, rows = [matrix + 0.01 for matrix in training.matrices], [np.flatnonzero(own) for own in training.present]
    means = vote.scores(new, training.present)
    points = [view.scaling.apply(m[own]) for view, m, own in zip(training.views, new, rows, strict=True)]
    distances = nodes.between.of_points(points, rows, 75)
    np.testing.assert_allclose(means[3], scores[np.argsort(distances[3])[:4]].mean(axis=0), atol=1e-12)


def clusters(n=120, seed=0):
    """Two views of two classes, each of three distant clusters that both views separate."""
    rng = np.random.default_rng(seed)
    center = rng.integers(0, 6, n)
    first, second = rng.normal(size=(6, 5)) * 6.0, rng.normal(size=(6, 4)) * 6.0
    X = np.hstack([first[center] + rng.normal(size=(n, 5)), second[center] + rng.normal(size=(n, 4))])
    return X, center % 2, [5, 4]


def test_neighbors_get_weight_where_rows_form_clusters():
    X, truth, views = clusters(400)
    labels = hide_labels(truth, 20, random_state=0)
    assert CMVMED(views=views).fit(X, labels).neighbor_weight_ > 0.4
    without = CMVMED(views=views, opinions=["linear", "rbf", "views", "consensus"]).fit(X, labels)
    assert without.neighbor_weight_ == 0.0
    assert not any("graph" in name for name in without.opinions_["name"])


def test_predictions_of_training_rows_are_those_of_training():
    X, truth, views = clusters()
    X[3, :5] = np.nan
    X[4, 5:] = np.nan
    y = hide_labels(truth, 12, random_state=0)
    model = CMVMED(views=views).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[y < 0], model.label_distributions_[y < 0], atol=1e-7)
    assert model.neighbor_weight_ > 0.0


def test_a_warm_fit_with_neighbors_is_a_cold_one():
    X, truth, views = clusters(200)
    warm = CMVMED(views=views)
    for n_labels in (16, 20):
        y = hide_labels(truth, n_labels, random_state=0)
        cold = CMVMED(views=views).fit(X, y)
        assert cold.neighbor_weight_ > 0.0
        with config_context(keep_rows=True):
            warm.fit(X, y)
        np.testing.assert_array_equal(warm.predict_proba(X), cold.predict_proba(X))


def check_same_model(first, second, X):
    np.testing.assert_allclose(first.decision_function(X), second.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("opinions", ["auto", ["graph", "linear", "consensus"]])
def test_a_row_of_weight_two_counts_like_two_rows(opinions):
    X, truth, views = clusters()
    y = hide_labels(truth, 16, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    weights[y >= 0] = 1.0
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    settings = {"views": views, "opinions": opinions, "tol": 1e-12, "max_iter": 2000}
    weighted = CMVMED(**settings, class_prior="labels").fit(X, y, sample_weight=weights)
    doubled = CMVMED(**settings, class_prior="labels").fit(X[repeated], y[repeated])
    check_same_model(weighted, doubled, X)
    once = CMVMED(**settings, class_prior="labels").fit(X, y)
    rejects(check_same_model, weighted, once, X)


def test_the_order_of_rows_does_not_matter():
    X, truth, views = clusters()
    y = hide_labels(truth, 12, random_state=0)
    order = np.random.default_rng(2).permutation(len(X))
    settings = {"views": views, "tol": 1e-12, "max_iter": 2000}
    check_same_model(CMVMED(**settings).fit(X, y), CMVMED(**settings).fit(X[order], y[order]), X)


def test_neighbors_need_features():
    X, truth, _ = clusters()
    y = hide_labels(truth, 12, random_state=0)
    model = CMVMED(kernel="precomputed").fit([X[:, :5] @ X[:, :5].T, X[:, 5:] @ X[:, 5:].T], y)
    assert model.neighbor_weight_ == 0.0
    assert model.opinions_["name"] == ["joint", "view view0", "view view1", "consensus"]
