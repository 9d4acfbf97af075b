"""The class prior from the labels: label shares, empirical Bayes, intervals, and how shares are imposed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, dirichlet_multinomial

from cmvmed.auto.class_prior import (
    counted_share,
    empirical_bayes_share,
    initial_balance,
    label_interval,
    label_share,
    relaxed_balance,
)
from cmvmed.auto.tuning import Tuning
from tests.core.factories import rejects

COUNTS = st.lists(st.integers(0, 30), min_size=2, max_size=6).map(lambda counts: np.array(counts, dtype=float))


def check_label_share(share_of):
    """(n_c + ½)/(N + K/2), the mean of the Jeffreys posterior."""
    np.testing.assert_allclose(share_of(np.array([3.0, 12.0])), [3.5 / 16.0, 12.5 / 16.0], rtol=1e-15)
    np.testing.assert_allclose(share_of(np.array([0.0, 4.0, 6.0])), [0.5 / 11.5, 4.5 / 11.5, 6.5 / 11.5], rtol=1e-15)
    np.testing.assert_allclose(share_of(np.array([3.0, 12.0]))[1], beta(12.5, 3.5).mean(), rtol=1e-14)


def test_label_share():
    check_label_share(label_share)
    rejects(check_label_share, lambda counts: counts / counts.sum())
    rejects(check_label_share, lambda counts: (counts + 1.0) / (counts.sum() + counts.size))


@settings(derandomize=True, max_examples=30, deadline=None)
@given(counts=COUNTS)
def test_shares_are_positive_and_sum_to_one(counts):
    for share in (label_share(counts), empirical_bayes_share(counts)):
        np.testing.assert_allclose(share.sum(), 1.0, rtol=1e-12)
        assert share.min() > 0.0


def check_empirical_bayes(share_of, counts):
    """An average over concentrations κ, weighted by the Dirichlet-multinomial probability of the counts."""
    kappas = np.logspace(-0.5, 3.0, 40)
    evidence = np.array([dirichlet_multinomial(np.full(counts.size, k), int(counts.sum())).pmf(counts) for k in kappas])
    means = np.array([(counts + k) / (counts.sum() + counts.size * k) for k in kappas])
    np.testing.assert_allclose(share_of(counts.astype(float)), evidence @ means / evidence.sum(), rtol=1e-9)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(counts=COUNTS)
def test_empirical_bayes_is_the_evidence_weighted_average(counts):
    check_empirical_bayes(empirical_bayes_share, counts.astype(int))


def test_empirical_bayes_check_rejects_other_shares():
    counts = np.array([1, 4, 9])
    rejects(check_empirical_bayes, label_share, counts)
    rejects(check_empirical_bayes, lambda n: empirical_bayes_share(n + 1.0), counts)
    rejects(check_empirical_bayes, lambda n: empirical_bayes_share(n)[::-1], counts)


def test_empirical_bayes_shrinks_towards_equal_classes_as_much_as_the_counts_allow():
    alike = empirical_bayes_share(np.array([5.0, 6.0, 4.0, 5.0]))
    assert np.abs(alike - 0.25).max() < 0.5 * np.abs(np.array([5.0, 6.0, 4.0, 5.0]) / 20.0 - 0.25).max()
    apart = empirical_bayes_share(np.array([170.0, 10.0, 10.0, 10.0]))
    np.testing.assert_allclose(apart, [0.85, 0.05, 0.05, 0.05], rtol=0.0, atol=0.02)


def check_interval(interval_of):
    """Each share lies below the interval with probability 2.5 % and above it with 2.5 %, given the counts."""
    counts = np.array([2.0, 5.0, 13.0])
    lower, upper = interval_of(counts)
    posterior = beta(counts + 0.5, counts.sum() - counts + 0.5)
    np.testing.assert_allclose(posterior.cdf(lower), 0.025, rtol=1e-9)
    np.testing.assert_allclose(posterior.sf(upper), 0.025, rtol=1e-9)
    assert ((lower < counts / counts.sum()) & (counts / counts.sum() < upper)).all()


def test_label_interval():
    check_interval(lambda counts: label_interval(counts, 0.95))
    rejects(check_interval, lambda counts: label_interval(counts, 0.9))
    rejects(check_interval, lambda counts: label_interval(counts, 0.95)[::-1])
    rejects(check_interval, lambda counts: label_interval(counts.sum() - counts, 0.95))


@pytest.mark.parametrize(("n_stages", "constrained"), [(8, 4), (5, 2), (1, 1)])
def test_shares_are_imposed_in_the_first_half_of_the_stages(n_stages, constrained):
    counts = np.array([2.0, 5.0, 13.0])
    balance = relaxed_balance(counts, n_stages, Tuning())
    assert balance.constrained_stages == constrained
    np.testing.assert_array_equal(balance.prior, empirical_bayes_share(counts))
    np.testing.assert_array_equal((balance.lower, balance.upper), label_interval(counts, 0.95))


def test_counted_share_has_the_moments_of_the_jeffreys_posterior():
    estimate, posterior = counted_share(np.array([12.0, 3.0])), beta(3.5, 12.5)
    np.testing.assert_allclose((estimate.mean, estimate.variance), (posterior.mean(), posterior.var()), rtol=1e-14)


def test_initial_balance_of_each_class_prior():
    two, three, tuning = np.array([12.0, 3.0]), np.array([2.0, 5.0, 13.0]), Tuning()
    given = np.array([0.3, 0.7])
    for class_prior, counts, expected in (
        ("labels", two, label_share(two)),
        ("auto", two, label_share(two)),
        ("labels", three, label_share(three)),
        ("auto", three, empirical_bayes_share(three)),
        (given, two, given),
    ):
        prior, balance = initial_balance(class_prior, counts, 8, tuning)
        np.testing.assert_array_equal(prior, expected)
        np.testing.assert_array_equal(balance.prior, expected)
        relaxed = isinstance(class_prior, str) and class_prior == "auto" and counts.size > 2
        assert balance.constrained_stages == (4 if relaxed else None)
    prior, balance = initial_balance(None, two, 8, tuning)
    np.testing.assert_array_equal(prior, label_share(two))
    assert balance is None
