"""The consensus: exact minimizer, one formula for two and many classes, class balance, agreement of views."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from cmvmed.core.consensus import (
    agreement,
    balancing_offset,
    class_scores,
    class_shares,
    entropy,
    n_functions,
    pool,
    positive_probability,
    prior_scores,
    soft_labels,
)
from tests.core.factories import noisy_scores, rejects

SEEDS = st.integers(0, 2**32 - 1)


def draw_scores(seed, n_classes, *, n_rows=40, scale=1.0):
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=(n_rows, n_functions(n_classes)))
    prior = np.maximum(rng.dirichlet(np.full(n_classes, 2.0)), 0.03)
    return scores, rng.uniform(0.2, 2.0, n_rows), prior / prior.sum()


def test_shapes_of_functions_and_classes():
    assert [n_functions(k) for k in (2, 3, 7)] == [1, 3, 7]
    q = np.array([[0.2, 0.8]])
    np.testing.assert_array_equal(positive_probability(q), [[0.8]])
    np.testing.assert_array_equal(positive_probability(np.eye(3)), np.eye(3))
    np.testing.assert_array_equal(class_scores(np.array([[2.0]])), [[-2.0, 2.0]])
    np.testing.assert_array_equal(class_scores(np.eye(3)), np.eye(3))


def check_two_classes_are_a_softmax(soft):
    """Softmax of class_scores(m + o)/2T over two classes is σ((m + o)/T)."""
    m, offset = np.linspace(-4.0, 4.0, 17)[:, None], np.array([0.3])
    for temperature in (1.0, 0.3):
        binary = soft(m, offset, temperature)
        np.testing.assert_allclose(binary[:, 1:], expit((m + offset) / temperature), rtol=1e-14)
        np.testing.assert_allclose(
            soft(class_scores(m), class_scores(offset[None])[0], temperature), binary, rtol=1e-12
        )


def test_c20_two_classes_are_a_softmax():
    check_two_classes_are_a_softmax(soft_labels)
    rejects(check_two_classes_are_a_softmax, lambda m, o, t: soft_labels(m, o, 0.5 * t * m.shape[1]))
    rejects(check_two_classes_are_a_softmax, lambda m, o, t: soft_labels(m, -o, t))


def test_probabilities_of_extreme_scores_are_exact_complements():
    scores = np.array([[-1e300], [-800.0], [0.0], [800.0], [1e300]])
    q = soft_labels(scores, np.zeros(1), 0.25)
    np.testing.assert_array_equal(q, q[::-1, ::-1])
    np.testing.assert_array_equal(q[:, 1], [0.0, 0.0, 0.5, 1.0, 1.0])
    np.testing.assert_array_equal(entropy(q), [0.0, 0.0, np.log(2.0), 0.0, 0.0])
    many = soft_labels(np.array([[1e150, 0.0, -1e150], [0.0, 0.0, 0.0]]), np.zeros(3), 0.25)
    np.testing.assert_allclose(many, [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-15)


@pytest.mark.parametrize("prior", [np.array([0.7, 0.3]), np.array([0.1, 0.2, 0.3, 0.4])])
def test_prior_scores_give_the_prior(prior):
    for temperature in (1.0, 0.25):
        scores = prior_scores(prior, temperature)
        np.testing.assert_allclose(soft_labels(scores[None], np.zeros_like(scores), temperature)[0], prior, rtol=1e-12)


def test_pool_averages_the_views_a_row_has():
    means = [np.array([[1.0], [2.0]]), np.array([[10.0], [20.0]])]
    rows = [np.array([0, 2]), np.array([2, 3])]
    scores, coverage = pool(means, rows, np.array([0.25, 0.75]), 5)
    np.testing.assert_allclose(scores[:, 0], [1.0, 0.0, 0.25 * 2.0 + 0.75 * 10.0, 20.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(coverage, [0.25, 0.0, 1.0, 0.75, 0.0], rtol=1e-15)


def free_energy(q, scores, offset, mass, temperature):
    """The part of objective (A) that depends on q: Σ mass {-(q - ½)·(m + o) - κT H(q)}."""
    kappa = float(min(q.shape[1] - 1, 2))
    return mass @ (
        -((positive_probability(q) - 0.5) * (scores + offset)).sum(axis=1) - kappa * temperature * entropy(q)
    )


def other_distributions(q, rng):
    """Distributions near q and far from it: sharper, flatter, tilted towards or away from a class, mixed with noise."""
    for power in (0.98, 1.02):
        yield q**power / (q**power).sum(axis=1, keepdims=True)
    for tilt in np.concatenate([np.eye(q.shape[1]), -np.eye(q.shape[1])]):
        yield q * np.exp(0.02 * tilt) / (q * np.exp(0.02 * tilt)).sum(axis=1, keepdims=True)
    for step in (1e-3, 0.05, 0.5):
        yield (1.0 - step) * q + step * rng.dirichlet(np.ones(q.shape[1]), size=len(q))


def check_exact_minimizer(soft, n_classes):
    """Every other distribution has a higher objective."""
    rng = np.random.default_rng(n_classes)
    scores, mass, _ = draw_scores(1, n_classes)
    offset = 0.3 * rng.normal(size=n_functions(n_classes))
    for temperature in (1.0, 0.5, 0.3):
        q = soft(scores, offset, temperature)
        least = free_energy(q, scores, offset, mass, temperature)
        for other in other_distributions(q, rng):
            assert free_energy(other, scores, offset, mass, temperature) > least


@pytest.mark.parametrize("n_classes", [2, 4])
def test_consensus_is_the_exact_minimizer(n_classes):
    check_exact_minimizer(soft_labels, n_classes)
    rejects(check_exact_minimizer, lambda m, o, t: soft_labels(m, o, 1.1 * t), n_classes)
    rejects(check_exact_minimizer, lambda m, o, t: soft_labels(m, 0.0 * o, t), n_classes)
    rejects(check_exact_minimizer, lambda m, o, t: soft_labels(-m, o, t), n_classes)


def check_balance(offset_of, seed, n_classes, *, scale=1.0, temperature=0.3, atol=1e-8):
    """C13: the classes' weighted shares of q are the prior."""
    scores, mass, prior = draw_scores(seed, n_classes, scale=scale)
    offset = offset_of(scores, mass, prior, temperature, np.zeros(n_functions(n_classes)))
    shares = class_shares(soft_labels(scores, offset, temperature), mass)
    np.testing.assert_allclose(shares, prior, rtol=0.0, atol=atol)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(seed=SEEDS, n_classes=st.integers(2, 7), temperature=st.sampled_from([1.0, 0.5, 0.25]))
def test_c13_balance_meets_the_prior(seed, n_classes, temperature):
    check_balance(balancing_offset, seed, n_classes, temperature=temperature)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_c13_check_rejects_wrong_offsets(n_classes):
    def unweighted(scores, mass, prior, temperature, start):
        return balancing_offset(scores, np.ones_like(mass), prior, temperature, start)

    def wrong_temperature(scores, mass, prior, temperature, start):
        return balancing_offset(scores, mass, prior, 1.0, start)

    for broken in (unweighted, wrong_temperature, lambda *args: 0.0 * args[-1], lambda *args: -balancing_offset(*args)):
        rejects(check_balance, broken, 0, n_classes)


@pytest.mark.parametrize("temperature", [1.0, 0.15, 0.01])
@pytest.mark.parametrize("scale", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("n_classes", [2, 4, 10])
def test_c13_balance_meets_the_prior_for_extreme_scores(n_classes, scale, temperature):
    """Scores that are large compared with the temperature make the labels hard."""
    for seed in range(3):
        check_balance(balancing_offset, seed, n_classes, scale=scale, temperature=temperature)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_balance_of_rare_classes_equal_scores_and_any_start(n_classes):
    rng = np.random.default_rng(2)
    prior = np.full(n_classes, 1e-3)
    prior[0] = 1.0 - prior[1:].sum()
    functions, mass = n_functions(n_classes), np.ones(30)
    for scores in (rng.normal(size=(30, functions)), np.ones((30, functions)), 20.0 * rng.normal(size=(30, functions))):
        for start in (np.zeros(functions), 5.0 * rng.normal(size=functions)):
            offset = balancing_offset(scores, mass, prior, 0.5, start)
            np.testing.assert_allclose(class_shares(soft_labels(scores, offset, 0.5), mass), prior, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_balance_is_found_where_one_class_has_almost_all_rows(seed):
    rng = np.random.default_rng(seed)
    K, start_size = int(rng.integers(3, 11)), rng.choice([0.0, 10.0])
    scores = 10.0 ** rng.uniform(-2.0, 2.0) * rng.normal(size=(60, K)) + 20.0 * np.eye(K)[0] + rng.normal(size=K)
    prior = np.maximum(rng.dirichlet(np.full(K, 0.3)), 1e-6)
    prior /= prior.sum()
    offset = balancing_offset(scores, np.ones(60), prior, 0.5, start_size * rng.normal(size=K))
    np.testing.assert_allclose(soft_labels(scores, offset, 0.5).mean(axis=0), prior, rtol=0.0, atol=1e-9)


def test_balance_is_unique_and_follows_a_permutation_of_classes():
    scores, mass, prior = draw_scores(3, 4)
    first = balancing_offset(scores, mass, prior, 0.5, np.zeros(4))
    second = balancing_offset(scores, mass, prior, 0.5, np.array([3.0, -1.0, 0.5, 2.0]))
    q = soft_labels(scores, first, 0.5)
    np.testing.assert_allclose(soft_labels(scores, second, 0.5), q, rtol=0.0, atol=1e-8)
    order = np.array([2, 0, 3, 1])
    permuted = balancing_offset(scores[:, order], mass, prior[order], 0.5, np.zeros(4))
    np.testing.assert_allclose(soft_labels(scores[:, order], permuted, 0.5), q[:, order], rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_balanced_consensus_is_the_minimizer_among_balanced_ones(n_classes):
    """Perturbations that keep every row a distribution and every class share raise the objective."""
    scores, mass, prior = draw_scores(4, n_classes)
    offset = balancing_offset(scores, mass, prior, 0.5, np.zeros(n_functions(n_classes)))
    q = soft_labels(scores, offset, 0.5)
    least = free_energy(q, scores, 0.0 * offset, mass, 0.5)
    rng = np.random.default_rng(4)
    for _ in range(30):
        i, j = rng.choice(len(q), size=2, replace=False)
        c, d = rng.choice(n_classes, size=2, replace=False)
        shift = 0.2 * min(q[i, d] * mass[i], q[j, c] * mass[j])
        other = q.copy()
        other[i, c] += shift / mass[i]
        other[i, d] -= shift / mass[i]
        other[j, c] -= shift / mass[j]
        other[j, d] += shift / mass[j]
        np.testing.assert_allclose(class_shares(other, mass), prior, rtol=0.0, atol=1e-8)
        assert free_energy(other, scores, 0.0 * offset, mass, 0.5) > least


def test_agreement_is_the_positive_part_of_the_correlation():
    means, rows = noisy_scores(3, 3)
    R = agreement(means, rows, np.ones(100))
    expected = np.corrcoef(np.hstack(means).T)
    np.testing.assert_allclose(R, np.maximum(expected, 0.0), rtol=0.0, atol=1e-12)
    opposed = agreement([means[0], -means[1]], rows[:2], np.ones(100))
    np.testing.assert_allclose(opposed, np.eye(2), rtol=0.0, atol=1e-12)


def test_views_that_cannot_be_compared_get_the_mean_agreement():
    """A view without labels has constant scores; two views may have no row in common."""
    means, rows = noisy_scores(5, 3)
    R = agreement([*means, np.full((100, 1), 0.3)], [*rows, np.arange(100)], np.ones(100))
    others = [R[0, 1], R[0, 2], R[1, 2]]
    np.testing.assert_allclose(R[3], [np.mean(others)] * 3 + [1.0], rtol=1e-12)
    np.testing.assert_allclose(R, R.T, rtol=1e-15)
    no_common_row = agreement([np.ones((5, 1)), np.ones((5, 1))], [np.arange(5), np.arange(5, 10)], np.ones(10))
    np.testing.assert_array_equal(no_common_row, np.ones((2, 2)))


def check_agreement_weights_are_repetitions(agreement_of):
    means, _ = noisy_scores(4, 3, n_rows=12)
    counts = np.random.default_rng(4).integers(1, 5, size=12)
    repeated = [np.repeat(mean, counts, axis=0) for mean in means]
    np.testing.assert_allclose(
        agreement_of(means, [np.arange(12)] * 3, counts.astype(float)),
        agreement(repeated, [np.arange(counts.sum())] * 3, np.ones(counts.sum())),
        rtol=0.0,
        atol=1e-12,
    )


def test_agreement_counts_a_row_as_often_as_its_weight():
    check_agreement_weights_are_repetitions(agreement)
    rejects(check_agreement_weights_are_repetitions, lambda means, rows, mass: agreement(means, rows, mass**0))
    rejects(check_agreement_weights_are_repetitions, lambda means, rows, mass: agreement(means, rows, mass**2))
