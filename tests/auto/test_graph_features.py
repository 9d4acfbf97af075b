"""The neighbors' view through landmarks of the graph: its features, and fits that equal exact ones with all as landmarks."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from cmvmed import CMVMED, load
from cmvmed.auto.graph_features import graph_features, low_rank_neighbors
from cmvmed.auto.neighbors import laplacian_kernel, neighbor_view
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.core.posterior import supervised_state
from cmvmed.core.row_cache import RowCache
from cmvmed.model_selection import hide_labels
from tests.auto.factories import TUNING, draw_training
from tests.auto.test_neighbors import clusters
from tests.core.factories import rejects

EPSILON = TUNING.graph_regularization
ALL = replace(Tuning(), neighbor_landmarks=100_000)


def features(nodes, sampled, labeled=(), cache=None):
    return graph_features(nodes, np.array(sampled), np.array(labeled, dtype=np.intp), EPSILON, cache or RowCache())


def check_products(Z, K, lines=slice(None)):
    np.testing.assert_allclose((Z @ Z.T)[lines], K[lines], atol=1e-8)


def test_with_all_nodes_as_landmarks_products_are_the_kernel():
    nodes = draw_training().nodes(4)
    Z, K = features(nodes, range(nodes.size)), laplacian_kernel(nodes, EPSILON)
    check_products(Z, K)
    rejects(check_products, Z, laplacian_kernel(nodes, 2.0 * EPSILON))


def test_products_with_a_landmark_are_exact_up_to_the_scale():
    nodes = draw_training().nodes(4)
    sampled, labeled = np.arange(0, 70, 7), np.array([1, 2])
    Z, K = features(nodes, sampled, labeled), laplacian_kernel(nodes, EPSILON)
    scaled = K / np.diagonal(K)[sampled].mean()
    check_products(Z, scaled, [*sampled, *labeled])
    rejects(check_products, Z, scaled)
    assert Z.shape[1] == sampled.size + labeled.size


def test_nodes_that_no_landmark_is_joined_with_have_no_features():
    training = draw_training(clusters=True, n_unlabeled=150)
    nodes = training.nodes(3)
    reached = laplacian_kernel(nodes, EPSILON)[0] > 0.0
    assert 0 < reached.sum() < nodes.size
    Z = features(nodes, [0])
    np.testing.assert_array_equal(np.abs(Z).sum(axis=1) > 0.0, reached)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_view_with_all_nodes_as_landmarks_is_the_exact_one(missing):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 75)
    training = draw_training(missing=missing, weights=weights)
    nodes, problem = training.nodes(4), training.problem
    exact = neighbor_view(nodes, training.views, training.data, TUNING).exact_model(
        problem.weights_U, shared_curvature=True
    )
    sigma2, bias = exact.blocks.prior_variance, 0.1 / exact.blocks.prior_variance

    def view(n_landmarks):
        return low_rank_neighbors(nodes, training.data, n_landmarks, EPSILON, sigma2, bias, 0, single=False)

    def check_equal(model):
        state = supervised_state(model, problem.Y, problem.box[0])
        np.testing.assert_allclose(state.m_U, supervised_state(exact, problem.Y, problem.box[0]).m_U, atol=1e-6)
        a = np.full(problem.weights_U.size, 0.25)
        np.testing.assert_allclose(model.condition(0.5, a).S_LL, exact.condition(0.5, a).S_LL, atol=1e-6)

    check_equal(view(75))
    rejects(check_equal, view(10))


def fit(X, y, views, tuning=ALL, **settings):
    with tuning_context(tuning):
        return CMVMED(views=views, **settings).fit(X, y)


def check_same_fit(model, exact, X):
    np.testing.assert_allclose(model.label_distributions_, exact.label_distributions_, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-5)
    assert model.neighbor_weight_ == pytest.approx(exact.neighbor_weight_, rel=1e-9)


def test_a_fit_with_all_rows_as_landmarks_is_the_exact_one():
    X, truth, views = clusters(200)
    X[3, :5] = np.nan
    X[4, 5:] = np.nan
    y, new = hide_labels(truth, 16, random_state=0), X + 0.1
    exact = fit(X, y, views)
    assert exact.neighbor_weight_ > 0.1
    low_rank = {"approximation": "nystroem", "n_components": len(X)}
    check_same_fit(fit(X, y, views, **low_rank), exact, new)
    rejects(check_same_fit, fit(X, y, views, replace(ALL, neighbor_landmarks=0), **low_rank), exact, new)


@pytest.mark.parametrize("labels", [16, 150])
def test_few_landmarks(labels):
    X, truth, views = clusters(300)
    y = hide_labels(truth, labels, random_state=0)
    model = fit(X, y, views, replace(Tuning(), neighbor_landmarks=20), approximation="nystroem", n_components=60)
    assert model.neighbor_weight_ > 0.0
    assert model.score(X, truth) > 0.95
    np.testing.assert_allclose(model.predict_proba(X)[y < 0], model.label_distributions_[y < 0], atol=1e-6)


def test_fits_are_repeatable_and_rows_are_drawn_by_the_random_state():
    X, truth, views = clusters(300)
    y = hide_labels(truth, 16, random_state=0)
    few = replace(Tuning(), neighbor_landmarks=10)
    low_rank = {"approximation": "nystroem", "n_components": 60}
    first, second, other = (fit(X, y, views, few, **low_rank, random_state=state) for state in (0, 0, 1))
    np.testing.assert_array_equal(first.label_distributions_, second.label_distributions_)
    assert not np.array_equal(first.label_distributions_, other.label_distributions_)


@pytest.mark.parametrize("approximation", ["exact", "nystroem"])
@pytest.mark.parametrize("max_graph_rows", [100, 2000], ids=["labeled rows become nodes", "all rows are nodes"])
def test_a_warm_fit_with_neighbors_is_a_cold_one(approximation, max_graph_rows):
    X, truth, views = clusters(200)
    tuning = replace(Tuning(), max_graph_rows=max_graph_rows)
    settings = {"views": views, "approximation": approximation, "n_components": 60}
    warm = CMVMED(**settings, warm_start=True)
    for n_labels in (16, 20):
        y = hide_labels(truth, n_labels, random_state=0)
        cold = fit(X, y, tuning=tuning, **settings)
        assert cold.neighbor_weight_ > 0.0
        with tuning_context(tuning):
            np.testing.assert_array_equal(warm.fit(X, y).predict_proba(X), cold.predict_proba(X))


def test_rows_outside_of_memory_leave_the_view_out():
    X, truth, views = clusters(400)
    y = hide_labels(truth, 20, random_state=0)
    low_rank = {"approximation": "nystroem", "n_components": 60}
    assert fit(X, y, views, Tuning(), **low_rank).neighbor_weight_ > 0.0
    sampled = fit(X, y, views, replace(Tuning(), sample_rows=200, min_components=60), **low_rank)
    assert sampled.neighbor_weight_ == 0.0
    assert sampled.score(X, truth) > 0.95


def test_a_model_with_neighbors_and_landmarks_is_saved_and_explained(tmp_path):
    X, truth, views = clusters(300)
    y, new = hide_labels(truth, 16, random_state=0), X + 0.1
    model = fit(X, y, views, Tuning(), approximation="nystroem", n_components=60)
    assert model.neighbor_weight_ > 0.0
    shares = model.explain(new)
    np.testing.assert_allclose(sum(shares.values()), model.decision_function(new), atol=1e-9)
    model.save(tmp_path / "model.cmvmed")
    np.testing.assert_array_equal(load(tmp_path / "model.cmvmed").predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), model.predict_proba(new))
