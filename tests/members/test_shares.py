"""The share of each class among the unlabeled rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from cmvmed.auto.class_prior import empirical_bayes_share, label_share
from cmvmed.members.shares import consistent_shares, drawn_per_class, infer_shares
from tests.auto.factories import TUNING
from tests.core.factories import rejects

TRUE = np.array([0.6, 0.3, 0.1])
UNSHRUNK = replace(TUNING, share_prior_labels=0.0)


def draw_predictions(seed=0, *, certainty=12.0, n_labeled=30, n_unlabeled=400, shares=TRUE, errors=0.0):
    """Log-probabilities of rows that favor the true class, with labels class by class: all that is needed for shares."""
    rng = np.random.default_rng(seed)
    K = shares.size
    codes = np.arange(n_labeled) % K
    truth = np.repeat(np.arange(K), np.round(shares * n_unlabeled).astype(int))

    def predicted(classes):
        seen = np.where(rng.uniform(size=classes.size) < errors, rng.integers(K, size=classes.size), classes)
        return np.asarray(log_softmax(certainty * np.eye(K)[seen] + 0.1 * rng.normal(size=(classes.size, K)), axis=1))

    counts = np.bincount(codes, minlength=K).astype(float)
    return predicted(codes), predicted(truth), np.ones(truth.size), codes, np.ones(codes.size), counts


def infer(given, *, per_class=True, tuning=UNSHRUNK):
    return infer_shares(*given, per_class, tuning)


def check_true_shares(shares):
    np.testing.assert_allclose(shares, TRUE, atol=0.03)


def test_perfect_predictions_recover_the_shares():
    """The labels are drawn class by class, so that their own share is wrong."""
    given = draw_predictions(certainty=50.0, n_unlabeled=2000)
    check_true_shares(infer(given))
    check_true_shares(consistent_shares(*given, TUNING))
    rejects(check_true_shares, infer(given, per_class=False))
    rejects(check_true_shares, label_share(given[-1]))
    reversed_rows = (given[0], given[1][:, ::-1], *given[2:])
    rejects(check_true_shares, infer(reversed_rows))


def check_labels_are_left_out(shares_of):
    """The counts of the labels matter unless they were drawn class by class; the consistent share uses them as a unit."""
    given, fixed = draw_predictions(errors=0.2), replace(UNSHRUNK, share_row_weight=0.0)
    more_of_last = (*given[:5], given[5] + [0.0, 0.0, 50.0])
    before, after = (shares_of(case, fixed) for case in (given, more_of_last))
    np.testing.assert_allclose(before, after, atol=1e-9)


def test_per_class_leaves_the_labels_own_share_out():
    check_labels_are_left_out(lambda given, tuning: infer(given, tuning=tuning))
    rejects(check_labels_are_left_out, lambda given, tuning: infer(given, per_class=False, tuning=tuning))


def check_geometric_mean(shares, given, *, per_class):
    left_out, log_p_U, mass, codes, weights, counts = given
    parts = [
        np.average(np.exp(log_p_U), weights=mass, axis=0),
        consistent_shares(left_out, log_p_U, mass, codes, weights, counts, TUNING),
    ]
    if not per_class:
        parts.append(empirical_bayes_share(counts))
    product = np.prod(parts, axis=0) ** (1.0 / len(parts))
    np.testing.assert_allclose(shares, product / product.sum(), rtol=1e-9)


@pytest.mark.parametrize("per_class", [False, True])
def test_sources_are_combined_by_their_geometric_mean(per_class):
    given = draw_predictions(certainty=3.0, errors=0.2)
    check_geometric_mean(infer(given, per_class=per_class), given, per_class=per_class)
    rejects(check_geometric_mean, infer(given, per_class=not per_class), given, per_class=per_class)


def check_shrinkage(shrunk, free, counts):
    """log r = n/(n + 2K) log r of no shrinkage, up to a constant: equal shares count as two labels of each class."""
    weight = counts.sum() / (counts.sum() + 2.0 * counts.size)
    np.testing.assert_allclose(np.diff(np.log(shrunk)), weight * np.diff(np.log(free)), rtol=1e-9)


def test_shares_are_shrunk_towards_equal_ones_while_labels_are_few():
    for n_labeled in (6, 60):
        given = draw_predictions(certainty=3.0, n_labeled=n_labeled)
        check_shrinkage(infer(given, tuning=TUNING), infer(given), given[-1])
        rejects(check_shrinkage, infer(given), infer(given), given[-1])


def check_consistency(shares, given, ridge):
    """r ∝ 1 + ω Σ_m mass_m Q_m, Q ∝ p r/r_labels, where p are the predictions recalibrated to left-out labels.

    ``ridge`` is the scale of that recalibration, which is near 1 here because predictions are calibrated.
    """
    _, log_p_U, mass, _, _, counts = given
    Q = softmax(ridge * log_p_U, axis=1) * shares / label_share(counts)
    Q /= Q.sum(axis=1, keepdims=True)
    total = 1.0 + TUNING.share_row_weight * mass @ Q
    np.testing.assert_allclose(shares, total / total.sum(), atol=1e-6)


def test_the_consistent_share_is_a_fixed_point():
    """With left-out labels of no weight the predictions are taken as they are."""
    given = draw_predictions(certainty=2.0, errors=0.3)
    unweighted = (*given[:4], np.zeros(30), given[5])
    check_consistency(consistent_shares(*unweighted, TUNING), unweighted, 1.0)
    rejects(check_consistency, consistent_shares(*unweighted, TUNING), unweighted, 0.5)
    rejects(check_consistency, TRUE, unweighted, 1.0)


def test_overconfident_predictions_are_recalibrated_by_left_out_labels():
    """Half of the predictions are of a random class, and all are certain; left-out labels show it."""
    calibrated, raw = [], []
    for seed in range(5):
        given = draw_predictions(seed, certainty=8.0, errors=0.5, n_labeled=60, n_unlabeled=1000)
        counted = replace(TUNING, share_row_weight=1.0, share_scale_sd=2.0)
        calibrated.append(consistent_shares(*given, counted))
        raw.append(consistent_shares(*given[:4], np.zeros(60), given[5], counted))
    errors = [np.abs(np.mean(shares, axis=0) - TRUE).max() for shares in (calibrated, raw)]
    assert errors[0] < 0.5 * errors[1]


def test_rows_count_as_often_as_their_weight():
    left_out, log_p_U, mass, codes, weights, counts = draw_predictions(certainty=2.0)
    times = np.random.default_rng(0).integers(0, 4, mass.size)
    weighted = infer((left_out, log_p_U, times * 1.0, codes, weights, counts))
    repeated = np.repeat(log_p_U, times, axis=0)
    np.testing.assert_allclose(
        weighted, infer((left_out, repeated, np.ones(len(repeated)), codes, weights, counts)), rtol=1e-9
    )


def test_without_unlabeled_rows_the_labels_decide():
    left_out, log_p_U, mass, codes, weights, counts = draw_predictions()
    for rows in (slice(0), slice(None)):
        nothing = (left_out, log_p_U[rows], 0.0 * mass[rows], codes, weights, counts)
        np.testing.assert_array_equal(infer(nothing), empirical_bayes_share(counts))


def test_shares_are_positive_even_of_a_class_that_is_predicted_nowhere():
    given = draw_predictions(shares=np.array([0.5, 0.5, 0.0]), certainty=1000.0)
    share = infer(given)
    assert (share > 0.0).all()
    np.testing.assert_allclose(share.sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("counts", "drawn", "expected"),
    [
        ([5.0, 5.0], "unknown", True),
        ([5.0, 6.0, 5.0], "unknown", True),
        ([5.0, 7.0], "unknown", False),
        ([5.0, 5.0], "random", False),
        ([1.0, 9.0], "per_class", True),
    ],
)
def test_equal_counts_are_taken_for_labels_drawn_per_class(counts, drawn, expected):
    assert drawn_per_class(np.array(counts), drawn) is expected
