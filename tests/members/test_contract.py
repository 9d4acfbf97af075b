"""What members are made from, and what they give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cmvmed.members.contract import MemberScores
from cmvmed.model.fitted_model import Member
from tests.auto.factories import TUNING, draw_rows, draw_training, read_training

MEMBER = Member("some", (), np.zeros(0), "sum", 1.0, np.zeros(2))


def test_views_that_some_row_has_take_part():
    matrices, codes, _ = draw_rows(n_views=3)
    training = read_training([matrices[0], np.full((75, 2), np.nan), *matrices[1:]], codes)
    assert training.inputs().indices == [0, 2, 3]
    assert training.inputs(used=[True, True, False, True]).indices == [0, 3]
    assert training.inputs().n_rows == 75


def test_fits_keep_all_labels_or_those_outside_of_a_fold():
    inputs = draw_training(n_labeled=20).inputs()
    assert inputs.keep[0].all()
    np.testing.assert_array_equal(~np.array(inputs.keep[1:]), inputs.folds)


@pytest.mark.parametrize(("kernel", "expected"), [("rbf", True), ("precomputed", False), (np.inner, False)])
def test_only_kernels_with_a_name_have_features(kernel, expected):
    matrices, codes, _ = draw_rows(n_views=1)
    views = [matrices[0] @ matrices[0].T] if kernel == "precomputed" else matrices
    assert read_training(views, codes, kernel=kernel).inputs().have_features is expected
    assert not read_training(views, codes, kernel=kernel).inputs(used=[False]).have_features


def test_features_are_clipped_only_far_out_and_have_a_bandwidth():
    matrices, codes, _ = draw_rows(n_views=1)
    matrices[0][40] = 1e3
    training = read_training(matrices, codes, kernel="linear")
    (found,) = training.inputs().features.values()
    assert found.settings.kernel == "linear+rbf"
    largest = [np.abs(view.train).max() for view in (training.views[0], found)]
    assert largest[1] / largest[0] == pytest.approx(TUNING.wide_clip / 2.0)


def test_raw_features_are_brought_to_a_magnitude_that_can_be_squared():
    matrices, codes, _ = draw_rows(n_views=1)
    training = read_training([1e40 * matrices[0]], codes, kernel="linear", scaling=None)
    (found,) = training.inputs().features.values()
    assert 0.1 < np.abs(found.train).max() < 100.0 < np.abs(training.views[0].train).min()


def test_rows_of_unit_length_with_a_bandwidth_are_used_as_they_are():
    codes = draw_rows()[1]
    rows = sparse.random(75, 12, 0.4, format="csr", rng=np.random.default_rng(4))
    training = read_training([rows], codes, kernel="rbf", scaling="unit")
    assert training.inputs().features[0] is training.views[0]


def test_held_out_scores_are_those_of_the_fold_of_a_label():
    inputs = draw_training(n_labeled=20).inputs()
    fold_scores = np.random.default_rng(0).normal(size=(5, inputs.n_rows, 2))
    found = MemberScores("kind", MEMBER, np.zeros((inputs.n_rows, 2)), fold_scores)
    assert found.name == "some"
    held = found.held_out(inputs.rows, inputs.folds)
    for i, row in enumerate(inputs.rows.index):
        (own,) = (f for f, fold in enumerate(inputs.folds) if fold[i])
        np.testing.assert_array_equal(held[i], fold_scores[own, row])
    few = MemberScores("kind", MEMBER, found.scores, fold_scores[:1]).held_out(inputs.rows, inputs.folds[:1])
    np.testing.assert_array_equal(few[~inputs.folds[0]], 0.0)
