import hashlib

import numpy as np
import pytest
from scipy.stats import norm

from cmvmed.datasets.gaussian import make_multiview_gaussian, simplex_bayes_error, simplex_vertices

N_LARGE = 100_000


def digest(problem):
    state = hashlib.sha256()
    for array in (problem.data, problem.target, problem.y, problem.posterior, problem.means):
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


def two_class_error(distance, priors):
    """Textbook error of linear discriminant analysis, for class means `distance` standard deviations apart."""
    log_odds = np.log(priors[1] / priors[0])
    return priors[0] * norm.cdf(-distance / 2 + log_odds / distance) + priors[1] * norm.cdf(
        -distance / 2 - log_odds / distance
    )


def standard_error(rate, n):
    return np.sqrt(rate * (1 - rate) / n)


def test_default_two_view_problem_has_a_bayes_accuracy_of_91_percent():
    problem = make_multiview_gaussian(1730, separation=(1.1, 0.8), labeled=30, random_state=0)
    assert problem.data.shape == (1730, 40)
    assert problem.views == {"view1": slice(0, 20), "view2": slice(20, 40)}
    assert np.count_nonzero(problem.y >= 0) == 30
    np.testing.assert_allclose(1 - problem.bayes_error, norm.cdf(np.hypot(1.1, 0.8)), rtol=1e-9)
    np.testing.assert_allclose(1 - problem.bayes_error, 0.913, atol=5e-4)


@pytest.mark.parametrize("priors", [(0.5, 0.5), (0.8, 0.2), (0.03, 0.97)])
@pytest.mark.parametrize("radius", [0.05, 0.7, 2.5])
def test_two_class_error_is_the_closed_form(priors, radius):
    np.testing.assert_allclose(simplex_bayes_error(radius, priors), two_class_error(2 * radius, priors), rtol=1e-7)


def test_error_check_rejects_radius_used_as_distance():
    wrong = two_class_error(0.7, (0.5, 0.5))
    assert abs(simplex_bayes_error(0.7, (0.5, 0.5)) - wrong) > 0.1


def test_no_separation_gives_the_error_of_the_majority_class():
    np.testing.assert_allclose(simplex_bayes_error(0.0, (0.2, 0.5, 0.3)), 0.5, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_simplex_vertices_are_centered_unit_and_equidistant(n_classes):
    vertices = simplex_vertices(n_classes)
    gram = np.full((n_classes, n_classes), -1 / (n_classes - 1))
    np.fill_diagonal(gram, 1.0)
    np.testing.assert_allclose(vertices @ vertices.T, gram, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"separation": (1.1, 0.8)},
        {"separation": (1.0, 0.6), "correlation": 0.7, "class_weights": (3, 1)},
        {"separation": (1.2, 0.7, 0.4), "n_features": (3, 5, 4), "n_classes": 4, "class_weights": (4, 3, 2, 1)},
        {"n_views": 3, "n_features": 4, "n_classes": 3, "missing_rate": 0.4, "correlation": 0.3, "n_noise_views": 2},
    ],
    ids=["independent", "correlated, unequal", "four classes", "missing and noise views"],
)
def test_bayes_error_is_what_the_true_posterior_attains_on_a_large_sample(options):
    problem = make_multiview_gaussian(N_LARGE, random_state=1, **options)
    attained = np.mean(problem.posterior.argmax(axis=1) != problem.target)
    assert abs(attained - problem.bayes_error_observed) < 4 * standard_error(attained, N_LARGE)
    # the same limit from the posterior alone: it is also calibrated
    assert abs(np.mean(1 - problem.posterior.max(axis=1)) - attained) < 4 * standard_error(attained, N_LARGE)


def test_correlated_views_add_less():
    """Two equal views of separation s have r^2 = 2 s^2 / (1 + rho)."""
    problem = make_multiview_gaussian(10, separation=(0.9, 0.9), correlation=0.5, random_state=0)
    np.testing.assert_allclose(problem.effective_separation, np.sqrt(2 * 0.9**2 / 1.5), rtol=1e-12)


def test_correlation_increases_the_bayes_error():
    correlated = make_multiview_gaussian(10, separation=(0.9, 0.9), correlation=0.5, random_state=0)
    independent = make_multiview_gaussian(10, separation=(0.9, 0.9), random_state=0)
    assert correlated.bayes_error - independent.bayes_error > 0.02


def test_sample_moments_are_those_of_the_distribution():
    problem = make_multiview_gaussian(
        N_LARGE, n_features=(4, 3), separation=(1.5, 0.5), n_classes=3, correlation=0.6, random_state=3
    )
    within = problem.data - problem.means[problem.target]
    covariance = np.eye(7)
    cross = 0.6 * problem.rotations["view1"] @ np.eye(4, 3) @ problem.rotations["view2"].T
    covariance[:4, 4:], covariance[4:, :4] = cross, cross.T
    np.testing.assert_allclose(np.cov(within.T), covariance, atol=0.02)
    for k in range(3):
        np.testing.assert_allclose(problem.data[problem.target == k].mean(axis=0), problem.means[k], atol=0.03)
    edges = np.linalg.norm(problem.means[0, :4] - problem.means[1:, :4], axis=1)
    np.testing.assert_allclose(edges, 1.5 * np.sqrt(2 * 3 / 2), rtol=1e-12)


def test_noise_view_is_independent_of_the_class():
    problem = make_multiview_gaussian(50, n_noise_views=1, class_weights=(3, 2), random_state=0)
    np.testing.assert_allclose(problem.view_bayes_error["noise1"], 0.4, rtol=1e-12)
    np.testing.assert_array_equal(problem.means[:, problem.views["noise1"]], 0.0)


def test_missing_views_are_whole_rows_of_nan_and_no_row_is_empty():
    problem = make_multiview_gaussian(2000, n_views=2, n_features=3, missing_rate=0.6, random_state=0)
    absent = np.stack([np.isnan(problem.data[:, s]).sum(axis=1) for s in problem.views.values()], axis=1)
    assert set(np.unique(absent)) == {0, 3}
    assert (absent.sum(axis=1) < 6).all()
    # each view is missing with probability 0.6; of the rows (0.36) without both, half keep this view
    np.testing.assert_allclose(np.mean(absent == 3), 0.6 - 0.18, atol=0.03)


def test_class_counts_follow_the_weights_and_no_class_is_empty():
    problem = make_multiview_gaussian(100, n_classes=3, class_weights=(98, 1.9, 0.1), labeled=3, random_state=0)
    np.testing.assert_array_equal(np.bincount(problem.target), [97, 2, 1])
    np.testing.assert_array_equal(np.sort(problem.y[problem.y >= 0]), [0, 1, 2])
    known = problem.y >= 0
    np.testing.assert_array_equal(problem.y[known], problem.target[known])


def test_labeled_share_and_return_x_y():
    data, y = make_multiview_gaussian(200, labeled=0.25, return_X_y=True, random_state=0)
    assert data.shape == (200, 40)
    assert np.count_nonzero(y >= 0) == 50


def test_seed_reproduces_bytes():
    options = {"n_classes": 3, "missing_rate": 0.2, "n_noise_views": 1, "labeled": 10}
    first = make_multiview_gaussian(300, random_state=5, **options)
    again = make_multiview_gaussian(300, random_state=5, **options)
    other = make_multiview_gaussian(300, random_state=6, **options)
    assert digest(first) == digest(again)
    assert digest(first) != digest(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"n_classes": 4, "n_features": (2, 20)}, "at least n_classes - 1 = 3"),
        ({"separation": (1.0, 2.0), "n_views": 3}, "there are 3 views"),
        ({"separation": -1.0}, "not negative"),
        ({"separation": np.nan}, "finite"),
        ({"correlation": 1.0}, r"\[0, 1\)"),
        ({"class_weights": (1, 0)}, "2 positive numbers"),
        ({"missing_rate": 1.5}, r"\[0, 1\]"),
        ({"labeled": 1}, "one per class"),
        ({"labeled": 1.5}, "at most"),
        ({"n_noise_views": -1}, "negative"),
        ({"n_samples": 1}, "n_samples must be at least"),
    ],
)
def test_invalid_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_multiview_gaussian(**{"n_samples": 20, **options})
