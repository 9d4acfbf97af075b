"""The graph of nearest rows: its nodes, its kernel against dense formulas, and the scores of new rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from cmvmed.graphs.kernel import graph_kernel
from cmvmed.graphs.search import WIDE_LISTS, NearestPairs, nearest_means, nearest_shares
from cmvmed.model.graph_votes import graph_vote
from cmvmed.numerics.kernels import Kernel
from cmvmed.views.preprocessing import Scaling
from cmvmed.views.view_rows import ViewData, ViewSettings
from tests.auto.factories import TUNING, draw_rows, read_training, view_nodes
from tests.core.factories import rejects

REGULARIZATION = TUNING.graph_regularization


def nodes_of(matrices, weights=None, members=None, n_neighbors=2):
    """The nodes of rows given per view; ``members`` says which rows a view has, all if left out."""
    everything = np.arange(matrices[0].shape[0])
    weights = np.ones(everything.size) if weights is None else np.asarray(weights, dtype=float)
    views = []
    for i, matrix in enumerate(matrices):
        own = everything if members is None else np.array(members[i])
        settings = ViewSettings(f"view{i}", "rbf", 1.0, None, 1.0, 1.0, 0.0, 2.0, 0.25, 1000)
        views.append(ViewData(settings, Scaling(None), Kernel("", "rbf"), matrix[own], None, own, weights[own]))
    return view_nodes(views, weights, n_neighbors)


def draw_points(n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def joined_by_hand(distances, n_neighbors):
    """Which rows are joined: each with its nearest, in either direction."""
    n = len(distances)
    joined = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: distances[i, j])
        for j in others[:n_neighbors]:
            joined[i, j] = joined[j, i] = 1.0
    return joined


def test_nodes_are_joined_with_their_nearest():
    points = draw_points()
    nodes = nodes_of([points], n_neighbors=4)
    expected = joined_by_hand(euclidean_distances(points, squared=True), 4)
    np.testing.assert_array_equal(nodes.adjacency.toarray(), expected)
    np.testing.assert_allclose(nodes.root_degrees, np.sqrt(expected.sum(axis=1)), rtol=1e-14)


def test_distances_of_several_views_are_their_mean():
    """As one product of all views, and view by view where one of them is sparse."""
    matrices = [draw_points(seed=0), 0.5 * draw_points(seed=1)]
    expected = np.mean([euclidean_distances(own, squared=True) for own in matrices], axis=0)
    np.fill_diagonal(expected, np.inf)
    for own in (matrices, [matrices[0], sparse.csr_matrix(matrices[1])]):
        found = np.vstack(list(nodes_of(own)._distances_to_others()))
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_distances_in_blocks_are_the_same(monkeypatch):
    points = draw_points()
    whole = nodes_of([points], n_neighbors=4).adjacency.toarray()
    monkeypatch.setattr("cmvmed.numerics.kernels.BLOCK_SIZE", 40 * 7)  # seven rows at a time
    np.testing.assert_array_equal(nodes_of([points], n_neighbors=4).adjacency.toarray(), whole)


def test_distances_are_means_over_the_views_that_both_rows_have():
    first, second = draw_points(6), draw_points(6, 1)
    nodes = nodes_of([first, second], members=[range(5), [0, 1, 4, 5]])
    everything = [first[:5], second[[0, 1, 4, 5]]], [np.arange(5), np.array([0, 1, 4, 5])]
    found = nodes.between.of_points(*everything, 6)
    in_first, in_second = (euclidean_distances(view, squared=True) for view in (first, second))
    assert found[0, 1] == pytest.approx(0.5 * (in_first[0, 1] + in_second[0, 1]))
    assert found[0, 2] == pytest.approx(in_first[0, 2])
    assert found[4, 5] == pytest.approx(in_second[4, 5])
    assert found[2, 5] == np.inf
    np.testing.assert_allclose(found, found.T)


def check_kernel(columns, points, n_neighbors, labeled, weights, *, epsilon=REGULARIZATION, power=-2):
    """The columns of D^(-1/2) (Λ + εI)^(-2) D^(-1/2), centered over the rows by weight, scaled on labeled rows."""
    joined = joined_by_hand(euclidean_distances(points, squared=True), n_neighbors)
    degree = joined.sum(axis=1)
    shifted = (1.0 + epsilon) * np.eye(len(points)) - joined / np.sqrt(np.outer(degree, degree))
    H = np.linalg.matrix_power(shifted, power) / np.sqrt(np.outer(degree, degree))
    center = np.eye(len(points)) - np.outer(np.ones(len(points)), weights / weights.sum())
    centered = center @ H @ center.T
    centered /= np.average(np.diagonal(centered)[labeled], weights=weights[labeled])
    np.testing.assert_allclose(columns, centered[:, labeled], atol=1e-7)


def test_columns_are_those_of_the_dense_formula():
    points, labeled = draw_points(), np.array([0, 3, 1])
    for weights in (np.ones(40), np.random.default_rng(1).uniform(0.5, 2.0, 40)):
        nodes = nodes_of([points], weights, n_neighbors=4)
        kernel = graph_kernel(nodes, labeled, weights[labeled], REGULARIZATION)
        check_kernel(kernel.columns, points, 4, labeled, weights)
        np.testing.assert_allclose(kernel.gram(), kernel.columns[labeled], rtol=1e-14)
        rejects(check_kernel, kernel.columns, points, 5, labeled, weights)
        rejects(check_kernel, kernel.columns, points, 4, labeled, weights, epsilon=2.0 * REGULARIZATION)
        rejects(check_kernel, kernel.columns, points, 4, labeled, weights, power=-1)
        rejects(check_kernel, kernel.columns, points, 4, labeled, weights**2 + np.arange(40))


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 1.0])
def test_columns_are_those_of_any_regularization(epsilon):
    points, labeled = draw_points(120), np.arange(10)
    nodes = nodes_of([points], n_neighbors=3)
    kernel = graph_kernel(nodes, labeled, np.ones(10), epsilon)
    joined = joined_by_hand(euclidean_distances(points, squared=True), 3)
    assert sparse.csgraph.connected_components(joined)[0] == 1
    check_kernel(kernel.columns, points, 3, labeled, np.ones(120), epsilon=epsilon)


def test_the_kernel_of_labeled_rows_is_positive_semidefinite():
    points = draw_points()
    kernel = graph_kernel(nodes_of([points], n_neighbors=4), np.arange(12), np.ones(12), REGULARIZATION)
    gram = kernel.gram()
    np.testing.assert_allclose(gram, gram.T, atol=1e-8)
    assert np.linalg.eigvalsh(gram).min() > -1e-8
    np.testing.assert_allclose(np.diagonal(gram).mean(), 1.0, rtol=1e-9)


def test_all_tied_rows_are_neighbors_and_rows_at_infinite_distance_are_not():
    distances = np.array([[np.inf, 1.0, 1.0, 2.0], [1.0, np.inf, np.inf, np.inf], [np.inf] * 4])
    rows, columns = nearest_pairs(distances, 1)
    assert rows.tolist() == [0, 0, 1]
    assert columns.tolist() == [1, 2, 0]
    assert nearest_pairs(np.zeros((3, 0)), 2)[0].size == 0
    assert nearest_pairs(np.zeros((0, 40)), 2)[0].size == 0


def nearest_pairs(distances, n_neighbors):
    """Rows and columns of the nearest, from two blocks of rows."""
    half = len(distances) // 2
    found = NearestPairs.gather([distances[:half], distances[half:]], n_neighbors)
    return found.rows, found.points


def pairs_by_sorting(distances, n_neighbors):
    """All columns up to the k-th nearest of each row, with its ties."""
    reach = np.sort(distances, axis=1)[:, min(n_neighbors, distances.shape[1]) - 1, None] * (1 + 1e-6) + 1e-12
    return np.nonzero((distances <= reach) & np.isfinite(distances))


@pytest.mark.parametrize("n_columns", [3, 90, 700])
@pytest.mark.parametrize("kind", ["different", "tied", "infinite"])
def test_groups_of_columns_change_no_neighbor(n_columns, kind):
    rng = np.random.default_rng(n_columns)
    distances = rng.random((40, n_columns))
    if kind == "tied":
        distances = np.round(distances, 1)
    if kind == "infinite":
        distances[rng.random(distances.shape) < 0.5] = np.inf
        distances[::2] = np.inf
    for found, expected in zip(nearest_pairs(distances, 5), pairs_by_sorting(distances, 5), strict=True):
        np.testing.assert_array_equal(found, expected)
    values = rng.random((n_columns, 3))
    shares = nearest_shares(distances, 5)
    np.testing.assert_allclose(nearest_means(distances, 5, values), shares @ values, rtol=1e-12)


def test_the_nearest_share_equally_but_an_equal_one_is_used_alone():
    shares = nearest_shares(np.array([[1.0, 3.0, 2.0], [0.0, 1.0, 0.0], [np.inf, 5.0, np.inf], [np.inf] * 3]), 2)
    np.testing.assert_allclose(shares.toarray(), [[0.5, 0.0, 0.5], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])


def test_equal_rows_with_the_same_views_are_one_node():
    first = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, -0.0], [2.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    second = np.array([[5.0], [5.0], [5.0], [5.0], [6.0], [5.0]])
    nodes = nodes_of([first, second])
    assert nodes.node_of_row.tolist() == [0, 0, 0, 1, 2, 1]
    assert nodes.weights.tolist() == [3.0, 2.0, 1.0]
    assert nodes.size == 3
    apart = nodes_of([first, second], members=[range(6), [0, 2, 3, 4, 5]])  # row 1 lacks the second view
    assert apart.node_of_row.tolist() == [0, 1, 0, 2, 3, 2]
    assert apart.place[1].tolist() == [0, -1, 2, 3]


def test_equal_rows_of_a_sparse_matrix_are_one_node_however_they_are_stored():
    unsorted = sparse.csr_matrix((np.array([2.0, 1.0, 1.0, 2.0, 0.0, 3.0]), [2, 0, 0, 2, 1, 1], [0, 2, 5, 6]), (3, 3))
    assert nodes_of([unsorted]).node_of_row.tolist() == [0, 0, 1]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_that_differ_by_rounding_are_one_node_wherever_they_lie(form):
    """Also those whose values an edge of rounding separates."""
    rng = np.random.default_rng(0)
    first = np.round(rng.normal(size=(2000, 1)), 3) + 1e-7 * (0.5 - 0.118)
    rows = np.vstack([first, first + 1e-12 * rng.normal(size=first.shape)])
    nodes = nodes_of([form(rows)])
    np.testing.assert_array_equal(nodes.node_of_row[:2000], nodes.node_of_row[2000:])
    assert nodes.size == np.unique(first).size


def test_a_row_without_weight_is_no_node_even_if_it_comes_first():
    nodes = nodes_of([np.array([[1.0], [2.0], [1.0], [3.0]])], [0.0, 1.0, 1.0, 0.0])
    assert nodes.node_of_row.tolist() == [-1, 0, 1, -1]
    assert nodes.present.all()
    values = nodes.of_rows(np.array([[10.0], [20.0]]))
    assert values.ravel().tolist() == [20.0, 10.0, 20.0, 15.0]  # the first equals the third; the last has two neighbors


def test_values_of_nodes_and_rows_belong_together():
    points = np.repeat(draw_points(5), [1, 2, 1, 3, 1], axis=0)
    nodes = nodes_of([points])
    values = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_array_equal(nodes.of_rows(values), np.repeat(values, [1, 2, 1, 3, 1], axis=0))


def test_rows_without_any_of_the_views_have_zeros():
    nodes = nodes_of([draw_points(6)], members=[[0, 1, 3, 4]])
    assert nodes.present.tolist() == [True, True, False, True, True, False]
    values = nodes.of_rows(np.ones((4, 1)))
    assert values.ravel().tolist() == [1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
    kernel = graph_kernel(nodes, np.array([0, 2]), np.ones(2), REGULARIZATION)
    np.testing.assert_array_equal(kernel.shares_L.toarray(), [[1.0, 0.0, 0.0, 0.0], [0.0] * 4])
    np.testing.assert_array_equal(kernel.columns[:, 1], 0.0)
    np.testing.assert_array_equal(kernel.gram()[1], 0.0)


def scores_of(matrices, codes, weights, coefficients):
    """Scores of the labeled rows, by their numbers, and the kernel."""
    training = read_training(matrices, codes, weights=weights)
    rows = training.labeled_rows()
    kernel = graph_kernel(training.nodes(4), rows.index, rows.weights, REGULARIZATION)
    return training, kernel, kernel.scores(coefficients)


def test_a_row_of_weight_two_is_the_row_twice_and_one_of_zero_weight_changes_nothing():
    matrices, codes, _ = draw_rows()
    rng = np.random.default_rng(0)
    times = np.where(codes >= 0, 1, rng.integers(0, 3, size=75))
    coefficients = rng.normal(size=(15, 2))
    weighted, _, scores = scores_of(matrices, codes, times * 1.0, coefficients)
    order = np.repeat(np.arange(75), times)
    doubled, _, repeated = scores_of([m[order] for m in matrices], codes[order], np.ones(order.size), coefficients)
    of_weighted, of_doubled = np.empty((75, 2)), np.empty((order.size, 2))
    of_weighted[weighted.block], of_doubled[doubled.block] = scores, repeated
    np.testing.assert_allclose(of_doubled, of_weighted[order], atol=1e-8)
    _, _, plain = scores_of(matrices, codes, np.ones(75), coefficients)
    assert np.abs(plain[:15] - scores[:15]).max() > 1e-3


def check_new_rows(scores, expected):
    np.testing.assert_allclose(scores, expected, rtol=0.0, atol=1e-12)


def test_new_rows_that_equal_training_rows_have_their_scores():
    matrices, codes, _ = draw_rows(missing=0.3)
    matrices = [np.concatenate([matrix, matrix[5:9]]) for matrix in matrices]
    codes, weights = np.append(codes, [-1] * 4), np.ones(79)
    weights[[20, 30]] = 0.0
    training, kernel, scores = scores_of(matrices, codes, weights, np.random.default_rng(0).normal(size=(15, 2)))
    scorer = graph_vote(*kernel.node_scores(np.random.default_rng(0).normal(size=(15, 2))))
    check_new_rows(scorer.scores(training.matrices, training.present), scores)
    rejects(check_new_rows, scorer.scores(training.matrices[::-1], training.present), scores)
    assert scorer.n_compared == 0  # it compares some rows at a time


def test_a_new_row_has_the_mean_score_of_its_nearest_nodes(monkeypatch):
    matrices, codes, _ = draw_rows(n_views=1)
    training, kernel, _ = scores_of(matrices, codes, np.ones(75), np.ones((15, 1)))
    scorer = graph_vote(*kernel.node_scores(np.random.default_rng(0).normal(size=(15, 2))))
    new, view = draw_points(10, 3), training.views[0]
    distances = euclidean_distances(view.scaling.apply(new), view.train)
    nearest = np.argsort(distances, axis=1)[:, :4]
    expected = scorer.node_scores[kernel.nodes.node_of_row[nearest]].mean(axis=1)
    present = [np.ones(10, dtype=bool)]
    np.testing.assert_allclose(scorer.scores([new], present), expected, atol=1e-12)
    monkeypatch.setattr("cmvmed.model.graph_votes.row_blocks", lambda n, m: (slice(i, i + 1) for i in range(n)))
    np.testing.assert_allclose(scorer.scores([new], present), expected, atol=1e-12)
    assert not scorer.scores([new], [np.zeros(10, dtype=bool)]).any()


def test_distances_that_rounding_made_negative_are_zero():
    distances = np.array([[-1e-3, -2e-3, 1.0, 2.0]])
    assert nearest_pairs(distances, 1)[1].tolist() == [0, 1]  # all ties
    assert nearest_pairs(distances, 3)[1].tolist() == [0, 1, 2]


def test_rows_with_many_ties_have_the_mean_of_all_of_them():
    rng = np.random.default_rng(0)
    distances, values = rng.uniform(1.0, 2.0, (4, 300)), rng.normal(size=(300, 2))
    distances[1] = 1.5
    found = nearest_means(distances, 3, values)
    assert WIDE_LISTS * 3 < 300
    np.testing.assert_allclose(found[1], values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found, nearest_shares(distances, 3) @ values, rtol=1e-12)
    np.testing.assert_allclose(found[[0, 2, 3]], nearest_means(distances[[0, 2, 3]], 3, values), rtol=1e-12)
