"""Disagreement of two views, and the bound on the error of one that is independent of the other given the class."""

from __future__ import annotations

import numpy as np
import pytest

from cmvmed.core.consensus import disagreement
from tests.core.factories import rejects

PRIOR = np.array([0.5, 0.3, 0.2])


def population(first, second, prior):
    """Codes and masses of all outcomes of two views that are independent given the class; first[y, c] = P(code c | y)."""
    n = prior.size
    codes = np.array([(i, j) for i in range(n) for j in range(n)])
    mass = np.einsum("y,yi,yj->ij", prior, first, second).ravel()
    return codes[:, 0], codes[:, 1], mass


def confusion(rng, n_classes, error):
    """A confusion matrix whose rows give their own class most."""
    wrong = rng.dirichlet(np.ones(n_classes), size=n_classes) * error
    return (1.0 - wrong.sum(axis=1))[:, None] * np.eye(n_classes) + wrong


def check_bound(bound_of, *, share=0.0):
    """The bound is at least the error, for many populations; ``share`` makes the second view repeat the first."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        prior = rng.dirichlet(5.0 * np.ones(3))
        first, second = (confusion(rng, 3, rng.uniform(0.01, 0.3)) for _ in range(2))
        codes, others, mass = population(first, second, prior)
        if share:
            same = codes == others
            own = np.einsum("y,yi->i", prior, first)
            mass = (1.0 - share) * mass + share * np.where(same, own[codes], 0.0)
        error = 1.0 - prior @ np.diag(first)
        assert bound_of(codes, others, mass, prior).error_bound >= error - 1e-12


def test_the_bound_holds_for_views_that_are_independent_given_the_class():
    check_bound(disagreement)


def test_the_bound_does_not_hold_for_views_that_repeat_each_other():
    rejects(check_bound, disagreement, share=0.9)


def test_the_rates_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    first, second, w = rng.integers(3, size=50), rng.integers(3, size=50), rng.uniform(0.5, 2.0, size=50)
    second[second == 2] = 1
    found = disagreement(first, second, w, PRIOR)
    rate = sum(w[i] for i in range(50) if first[i] != second[i]) / w.sum()
    assert found.rate == pytest.approx(rate)
    for c in (0, 1):
        rows = [i for i in range(50) if second[i] == c]
        expected = sum(w[i] for i in rows if first[i] != c) / sum(w[i] for i in rows)
        assert found.rate_by_class[c] == pytest.approx(expected)
    assert np.isnan(found.rate_by_class[2])


def test_nothing_follows_from_large_or_unknown_rates():
    agree = disagreement(np.array([0, 0, 1]), np.array([0, 0, 1]), np.ones(3), PRIOR)
    assert agree.error_bound == pytest.approx(PRIOR[2])  # no row of the last class
    opposite = disagreement(np.array([0, 1, 2]), np.array([1, 2, 0]), np.ones(3), PRIOR)
    assert (opposite.rate, opposite.error_bound) == (1.0, pytest.approx(1.0))
    empty = disagreement(np.empty(0, dtype=int), np.empty(0, dtype=int), np.empty(0), PRIOR)
    assert np.isnan(empty.rate)
    assert empty.error_bound == pytest.approx(1.0)
