"""The class prior from the labels: label shares, and empirical Bayes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, dirichlet_multinomial

from cmvmed.auto.class_prior import empirical_bayes_share, label_share
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
