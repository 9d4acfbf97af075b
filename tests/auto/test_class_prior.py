"""The class prior from the labels: label shares, empirical Bayes, intervals, and shares with a variance."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, dirichlet_multinomial

from cmvmed.auto.class_prior import (
    ShareEstimate,
    empirical_bayes_share,
    label_interval,
    label_share,
    share_estimate,
)
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
    evidence = np.ones(len(kappas))  # no counts are certain; older scipy does not say so
    if counts.any():
        evidence[:] = [dirichlet_multinomial(np.full(counts.size, k), int(counts.sum())).pmf(counts) for k in kappas]
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


def test_the_share_of_the_labels_has_the_moments_of_the_jeffreys_posterior():
    counts, posterior = np.array([12.0, 3.0]), beta(3.5, 12.5)
    estimate = share_estimate(label_share(counts), counts)
    np.testing.assert_allclose((estimate.mean, estimate.variance), (posterior.mean(), posterior.var()), rtol=1e-14)


def check_combined(combine):
    """The product of two normal densities has its maximum there."""
    first, second = ShareEstimate(0.2, 0.01), ShareEstimate(0.5, 0.04)
    shares = np.linspace(0.0, 1.0, 100_001)
    log_density = -((shares - 0.2) ** 2) / 0.02 - (shares - 0.5) ** 2 / 0.08
    np.testing.assert_allclose(combine(first, second), shares[log_density.argmax()], atol=1e-5)
    np.testing.assert_allclose(combine(second, first), combine(first, second), rtol=1e-14)


def test_estimates_are_combined_by_precision():
    check_combined(ShareEstimate.combined)
    rejects(check_combined, lambda first, second: 0.5 * (first.mean + second.mean))
    rejects(
        check_combined,
        lambda first, second: ShareEstimate(first.mean, second.variance).combined(
            ShareEstimate(second.mean, first.variance)
        ),
    )
