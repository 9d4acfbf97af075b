"""View weights and consensus weight from the agreement of the independent views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmvmed.auto.consensus_weight import agreement_weights, auto_consensus_weight, mean_agreement
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import supervised_start
from cmvmed.core.consensus import agreement
from cmvmed.core.full_kernel import SpectralView
from tests.core.factories import draw_problem, noisy_scores, rejects

SEEDS = st.integers(0, 2**32 - 1)
TUNING = Tuning()


def weights_by_agreement(means, rows, n_rows):
    return agreement_weights(agreement(means, rows, np.ones(n_rows)), np.full(len(means), True))


def check_noise_gets_little_weight(weights_of):
    for seed in range(5):
        for functions in (1, 3):
            means, rows = noisy_scores(seed, 4, n_functions=functions)
            weights = weights_of(means, rows, 100)
            np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-12)
            assert weights[-1] < 0.1
            assert weights[:-1].min() > 0.25


def test_a_view_of_noise_gets_little_weight():
    check_noise_gets_little_weight(weights_by_agreement)
    rejects(check_noise_gets_little_weight, lambda means, rows, n: np.full(4, 0.25))
    rejects(check_noise_gets_little_weight, lambda means, rows, n: weights_by_agreement(means[::-1], rows, n))


@settings(derandomize=True, max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_two_views_get_equal_weights(seed):
    rng = np.random.default_rng(seed)
    means = [rng.normal(size=(20, 1)), rng.normal(size=(20, 1))]
    np.testing.assert_allclose(weights_by_agreement(means, [np.arange(20)] * 2, 20), [0.5, 0.5], rtol=1e-12)


def test_weights_are_unique_without_agreement_and_follow_the_order_of_views():
    constant = [np.ones((10, 1)), np.zeros((10, 1)), 3.0 * np.ones((10, 1))]
    np.testing.assert_allclose(weights_by_agreement(constant, [np.arange(10)] * 3, 10), np.full(3, 1 / 3), rtol=1e-9)
    np.testing.assert_allclose(weights_by_agreement(constant[:1], [np.arange(10)], 10), [1.0], rtol=1e-15)
    means, rows = noisy_scores(0, 4)
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(
        weights_by_agreement([means[i] for i in order], rows, 100),
        weights_by_agreement(means, rows, 100)[order],
        rtol=1e-9,
    )


def test_weights_depend_on_the_sign_of_scores_but_not_on_their_scale():
    means, rows = noisy_scores(1, 4)
    weights = weights_by_agreement(means, rows, 100)
    rescaled = [1e5 * means[0], 1e-5 * means[1] + 3.0, *means[2:]]
    np.testing.assert_allclose(weights_by_agreement(rescaled, rows, 100), weights, rtol=1e-9)
    opposed = weights_by_agreement([-means[0], *means[1:]], rows, 100)
    assert opposed[0] < 0.1


def test_views_are_compared_on_their_common_rows():
    means, _ = noisy_scores(2, 4)
    kept = [np.arange(0, 80), np.arange(10, 100), np.arange(20, 90), np.arange(100)]
    part = [mean[index] for mean, index in zip(means, kept, strict=True)]
    weights = weights_by_agreement(part, kept, 100)
    assert weights[-1] < 0.1
    no_common_row = weights_by_agreement([np.ones((5, 1)), np.ones((5, 1))], [np.arange(5), np.arange(5, 10)], 10)
    np.testing.assert_allclose(no_common_row, [0.5, 0.5], rtol=1e-12)


def test_views_that_no_row_has_get_no_weight():
    means, rows = noisy_scores(6, 4)
    R = agreement([*means, np.empty((0, 1))], [*rows, np.empty(0, dtype=int)], np.ones(100))
    weights = agreement_weights(R, np.array([True, True, True, True, False]))
    assert weights[-1] == 0.0
    np.testing.assert_allclose(weights[:-1], weights_by_agreement(means, rows, 100), rtol=1e-12)


def test_mean_agreement_counts_pairs_by_the_weights_of_both():
    R = np.array([[1.0, 0.8, 0.2], [0.8, 1.0, 0.4], [0.2, 0.4, 1.0]])
    np.testing.assert_allclose(mean_agreement(R, np.full(3, 1 / 3)), (0.8 + 0.2 + 0.4) / 3.0, rtol=1e-12)
    np.testing.assert_allclose(mean_agreement(R, np.array([0.5, 0.5, 0.0])), 0.8, rtol=1e-12)
    weights = np.array([0.5, 0.3, 0.2])
    by_hand = (0.15 * 0.8 + 0.10 * 0.2 + 0.06 * 0.4) / (0.15 + 0.10 + 0.06)
    np.testing.assert_allclose(mean_agreement(R, weights), by_hand, rtol=1e-12)
    assert mean_agreement(np.eye(1), np.ones(1)) == 1.0
    assert mean_agreement(R, np.array([1.0, 0.0, 0.0])) == 1.0


@pytest.mark.parametrize(("agreement", "expected"), [(0.0, 0.0), (0.1, 0.2), (0.25, 0.5), (0.9, 0.5)])
def test_consensus_weight_is_proportional_to_the_agreement_up_to_its_full_value(agreement, expected):
    tuning = replace(TUNING, consensus_weight=0.5, full_agreement=0.25)
    assert auto_consensus_weight(agreement, tuning) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("signs", "lowest", "highest"), [((1.0, 1.0), 0.5, 0.5), ((1.0, -1.0), 0.0, 0.05)])
def test_consensus_weight_is_full_for_views_that_agree_and_zero_for_opposite_views(signs, lowest, highest):
    """The second view is a copy of the first one, or the same with the two classes exchanged."""
    problem, sensors = draw_problem(7, n_views=1)
    copies = replace(
        problem,
        models=tuple(SpectralView(replace(sensors[0].blocks, UL=sign * sensors[0].blocks.UL)) for sign in signs),
        rows_L=problem.rows_L * 2,
        rows_U=problem.rows_U * 2,
        box=problem.box * 2,
    )
    R = supervised_start(copies).agreement
    lam = auto_consensus_weight(mean_agreement(R, np.array([0.5, 0.5])), TUNING)
    assert lowest - 1e-12 <= lam <= highest + 1e-12
