"""The view of nearest rows: its kernel, its nodes, and when it gets weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from cmvmed import CMVMED
from cmvmed.auto.neighbors import (
    _evenly_spaced,
    _neighbor_means,
    build_graph,
    laplacian_kernel,
    nearest,
    neighbor_weight,
)
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.core.annealing import Start
from cmvmed.core.kernels import Kernel
from cmvmed.data.scaling import Scaling
from cmvmed.data.view_data import ViewData, ViewSettings
from cmvmed.datasets import load_digits_views, make_multiview_gaussian
from cmvmed.model_selection import hide_labels
from tests.core.factories import rejects

REGULARIZATION = Tuning().graph_regularization


def clusters(n=120, seed=0):
    """Two views of two classes, each of three distant clusters that both views separate."""
    rng = np.random.default_rng(seed)
    center = rng.integers(0, 6, n)
    first, second = rng.normal(size=(6, 5)) * 6.0, rng.normal(size=(6, 4)) * 6.0
    X = np.hstack([first[center] + rng.normal(size=(n, 5)), second[center] + rng.normal(size=(n, 4))])
    return X, center % 2, [5, 4]


def check_laplacian_kernel(K, distances, n_neighbors):
    """K is proportional to the squared inverse of Λ + εI, written entry by entry."""
    n = len(distances)
    joined = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: distances[i, j])
        for j in others[:n_neighbors]:
            joined[i, j] = joined[j, i] = 1.0
    degree = joined.sum(axis=1)
    shifted = (1.0 + REGULARIZATION) * np.eye(n) - joined / np.sqrt(np.outer(degree, degree))
    product = K @ shifted @ shifted
    np.testing.assert_allclose(product, product[0, 0] * np.eye(n), atol=1e-9 * abs(product[0, 0]))
    np.testing.assert_allclose(np.diagonal(K).mean(), 1.0)


def test_the_kernel_is_the_squared_inverse_of_the_laplacian():
    points = np.random.default_rng(0).normal(size=(40, 3))
    distances = euclidean_distances(points, squared=True)
    check_laplacian_kernel(laplacian_kernel(distances, 4, REGULARIZATION), distances, 4)
    rejects(check_laplacian_kernel, laplacian_kernel(distances, 5, REGULARIZATION), distances, 4)
    rejects(check_laplacian_kernel, laplacian_kernel(distances, 4, 2.0 * REGULARIZATION), distances, 4)


def test_all_tied_rows_are_neighbors_and_rows_at_infinite_distance_are_not():
    distances = np.array(
        [[0.0, 1.0, 1.0, 2.0], [1.0, 0.0, np.inf, np.inf], [1.0, np.inf, 0.0, np.inf], [2.0] + [np.inf] * 2 + [0.0]]
    )
    near = nearest(distances, 1)
    assert near[0].tolist() == [False, True, True, False]
    assert near[1].tolist() == [True, False, False, False]
    assert not nearest(np.full((3, 3), np.inf), 2).any()


def test_weight_needs_a_higher_predictability_than_the_agreement_of_the_views(monkeypatch):
    def weight(predictability, agreement, **changed):
        monkeypatch.setattr("cmvmed.auto.neighbors.cross_view_predictability", lambda *given: predictability)
        start = Start((), np.array([[1.0, agreement], [agreement, 1.0]]))
        return neighbor_weight(None, start, [], np.array([0.5, 0.5]), replace(Tuning(), **changed))

    assert weight(0.9, 0.5) == 1.0
    assert weight(0.55, 0.6) == 0.0
    assert weight(0.4, 0.1) == 0.0
    assert 0.0 < weight(0.6, 0.5) < weight(0.7, 0.5) < 1.0
    assert weight(0.9, 0.5, early_reject=0.95) == 0.0


def test_neighbors_get_weight_where_rows_form_clusters_and_not_where_views_are_independent():
    X, truth, views = clusters(400)
    labels = hide_labels(truth, 20, random_state=0)
    assert CMVMED(views=views).fit(X, labels).neighbor_weight_ > 0.5
    gauss = make_multiview_gaussian(400, separation=(1.1, 0.8), random_state=0)
    model = CMVMED(views=gauss.views).fit(gauss.data, hide_labels(gauss.target, 20, random_state=0))
    assert model.neighbor_weight_ == 0.0
    shuffled = X.copy()
    shuffled[:, 5:] = X[
        np.random.default_rng(1).permutation(len(X)), 5:
    ]  # the rows of the views no longer belong together
    assert CMVMED(views=views).fit(shuffled, labels).neighbor_weight_ == 0.0


def test_neighbors_help_on_halves_of_digits():
    digits = load_digits_views(parity=True)
    X, truth = digits.data[:700], digits.target[:700]
    labels = hide_labels(truth, 40, random_state=1)
    automatic = CMVMED(views=digits.views).fit(X, labels)
    without = CMVMED(views=digits.views, n_neighbors=None).fit(X, labels)
    assert automatic.neighbor_weight_ > 0.5
    assert without.neighbor_weight_ == 0.0
    test = digits.data[700:], digits.target[700:]
    assert automatic.score(*test) > without.score(*test) + 0.03


def test_predictions_of_training_rows_are_the_consensus():
    X, truth, views = clusters()
    X[3, :5] = np.nan
    X[4, 5:] = np.nan
    model = CMVMED(views=views, n_neighbors=4).fit(X, hide_labels(truth, 12, random_state=0))
    hidden = hide_labels(truth, 12, random_state=0) == -1
    np.testing.assert_allclose(model.predict_proba(X)[hidden], model.label_distributions_[hidden], atol=1e-9)
    assert model.neighbor_weight_ > 0.0


def check_same_model(first, second, X):
    np.testing.assert_allclose(first.decision_function(X), second.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("n_neighbors", ["auto", 3])
def test_a_row_of_weight_two_counts_like_two_rows(n_neighbors):
    X, truth, views = clusters()
    y = hide_labels(truth, 16, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    weights[y >= 0] = 1.0
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    settings = {"views": views, "n_neighbors": n_neighbors, "tol": 1e-12, "max_iter": 2000, "class_prior": "labels"}
    weighted = CMVMED(**settings).fit(X, y, sample_weight=weights)
    doubled = CMVMED(**settings).fit(X[repeated], y[repeated])
    check_same_model(weighted, doubled, X)
    once = CMVMED(**settings).fit(X, y)
    rejects(check_same_model, weighted, once, X)


def test_the_order_of_rows_does_not_matter():
    X, truth, views = clusters()
    y = hide_labels(truth, 12, random_state=0)
    order = np.random.default_rng(2).permutation(len(X))
    settings = {"views": views, "n_neighbors": 4, "tol": 1e-12, "max_iter": 2000}
    check_same_model(CMVMED(**settings).fit(X, y), CMVMED(**settings).fit(X[order], y[order]), X)


@pytest.mark.parametrize("n_neighbors", [0, -1, 2.5, "many", True])
def test_a_wrong_number_of_neighbors_is_refused(n_neighbors):
    X, truth, views = clusters()
    with pytest.raises((ValueError, TypeError), match="n_neighbors"):
        CMVMED(views=views, n_neighbors=n_neighbors).fit(X, truth)


def test_neighbors_need_distances():
    X, truth, views = clusters()
    with pytest.raises(ValueError, match="'linear\\+rbf' and 'rbf'"):
        CMVMED(views=views, n_neighbors=4, kernel=["rbf", "linear"]).fit(X, truth)
    assert CMVMED(views=views, kernel="linear").fit(X, hide_labels(truth, 12, random_state=0)).neighbor_weight_ == 0.0


def graph_of(matrices, weights, members=None, n_L=2):
    """The nodes of rows given per view; ``members`` says which rows a view has, all if left out."""
    everything = np.arange(len(weights))
    views = []
    for i, matrix in enumerate(matrices):
        own = everything if members is None else np.array(members[i])
        settings = ViewSettings(f"view{i}", "rbf", 1.0, None, 1.0, 1.0, 0.0, 2.0, 0.25, 1000, 2000)
        rows_L, rows_U = own[own < n_L], own[own >= n_L] - n_L
        views.append(ViewData(settings, Scaling(None), Kernel("", "rbf"), matrix[own], None, rows_L, rows_U))
    return build_graph(views, n_L, np.asarray(weights, dtype=float), 2)


def test_equal_rows_with_the_same_views_are_one_node():
    first = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, -0.0], [2.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    second = np.array([[5.0], [5.0], [5.0], [5.0], [6.0], [5.0]])
    graph = graph_of([first, second], np.ones(6))
    assert graph.nodes.tolist() == [0, 3, 4]
    assert graph.node_of_row.tolist() == [0, 0, 0, 1, 2, 1]
    apart = graph_of([first, second], np.ones(6), members=[range(6), [0, 2, 3, 4, 5]])  # row 1 lacks the second view
    assert apart.nodes.tolist() == [0, 1, 3, 4]


def test_equal_rows_of_a_sparse_matrix_are_one_node_however_they_are_stored():
    unsorted = sparse.csr_matrix((np.array([2.0, 1.0, 1.0, 2.0, 0.0, 3.0]), [2, 0, 0, 2, 1, 1], [0, 2, 5, 6]), (3, 3))
    assert graph_of([unsorted], np.ones(3)).node_of_row.tolist() == [0, 0, 1]


def test_a_row_without_weight_is_no_node_even_if_it_comes_first():
    graph = graph_of([np.array([[1.0], [2.0], [1.0], [3.0]])], [0.0, 1.0, 1.0, 0.0])
    assert graph.nodes.tolist() == [1, 2]
    assert graph.node_of_row.tolist() == [-1, 0, 1, -1]


def check_neighbor_means(around, scores, train, probe, n_neighbors):
    """Mean of the known scores among the nearest rows, found one row at a time."""
    for view in range(len(scores)):
        for position, row in enumerate(probe):
            order = np.argsort(((train - train[row]) ** 2).sum(axis=1))
            near = order[order != row][:n_neighbors]
            known = near[~np.isnan(scores[view, near, 0])]
            expected = scores[view, known].mean(axis=0)
            np.testing.assert_allclose(around[view, position], expected, atol=1e-12)


def test_neighbors_means_are_those_of_the_nearest_rows(monkeypatch):
    rng = np.random.default_rng(0)
    train, scores = rng.normal(size=(60, 3)), rng.normal(size=(2, 60, 2))
    scores[:, :4] = np.nan
    probe = np.arange(4, 60, 2)
    whole = _neighbor_means(scores, train, probe, 5)
    check_neighbor_means(whole, scores, train, probe, 5)
    rejects(check_neighbor_means, _neighbor_means(scores, train, probe, 4), scores, train, probe, 5)
    monkeypatch.setattr("cmvmed.core.kernels.BLOCK_SIZE", 60 * 5)  # five rows at a time
    np.testing.assert_allclose(_neighbor_means(scores, train, probe, 5), whole, atol=1e-12)


def test_of_many_rows_an_even_sample_is_probed():
    assert _evenly_spaced(np.arange(10), 10).tolist() == list(range(10))
    assert _evenly_spaced(np.arange(0, 22, 2), 3).tolist() == [0, 10, 20]
    X, truth, views = clusters(400)
    labels = hide_labels(truth, 20, random_state=0)
    with tuning_context(replace(Tuning(), probe_rows=100)):
        assert CMVMED(views=views).fit(X, labels).neighbor_weight_ > 0.5
