"""Forests as members: what trees see, and that held-out scores come from trees that did not see the labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesRegressor

from cmvmed.auto.class_prior import label_share
from cmvmed.members.forest_members import fit_forest, side_by_side
from cmvmed.model.evaluate import member_logits
from cmvmed.model.forests import fill_values
from cmvmed.views.training_data import generator
from tests.auto.factories import TUNING, draw_rows, draw_training, read_training
from tests.core.factories import rejects

FEW = replace(TUNING, n_trees=20)
FORESTS = ["trees", "trees_all"]


def fit(training, kind="trees", tuning=FEW, **given):
    return fit_forest(training.inputs(tuning, **given), kind)


def sparse_training(seed=0):
    """One sparse and one dense view, in rows of unit length and standardized."""
    matrices, codes, truth = draw_rows(seed, n_labeled=20)
    counts = np.random.default_rng(seed).poisson(0.2 + 0.8 * np.eye(12)[:, :2].T[truth])
    return read_training([sparse.csr_matrix(counts.astype(float)), matrices[1]], codes, scaling="auto")


def check_same_scores(first, second):
    np.testing.assert_allclose(first, second, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_training_rows_have_the_scores_of_new_rows(n_classes, missing, kind):
    training = draw_training(n_classes=n_classes, n_labeled=24, missing=missing)
    found = fit(training, kind)
    (logits,) = member_logits([found.member], training.matrices, training.present)
    check_same_scores(logits, found.scores)
    rejects(check_same_scores, logits[:, ::-1], found.scores)
    assert np.ptp(found.scores, axis=0).min() > 0.1
    assert (found.kind, found.name, found.scale, found.uses_unlabeled) == (kind, kind, 1.0, False)


def test_training_rows_of_sparse_views_have_the_scores_of_new_rows():
    training = sparse_training()
    found = fit(training)
    (logits,) = member_logits([found.member], training.matrices, training.present)
    check_same_scores(logits, found.scores)
    assert np.ptp(found.scores) > 0.5


def check_votes(found, inputs, max_features):
    """log((v + s/K)/(1 + s)) - log r of the mean votes v of forests, each fitted without the labels of a fold."""
    views, rows, s = list(inputs.features.values()), inputs.rows, inputs.tuning.vote_smoothing
    fill = [fill_values(view.preprocessor, view.train.shape[1]) for view in views]
    points = side_by_side(views, fill, inputs.n_rows)
    seeds = generator(0).integers(2**31, size=len(inputs.folds))
    votes = []
    for seed, fold in zip(seeds, inputs.folds, strict=True):
        forest = ExtraTreesRegressor(4, max_features=max_features, random_state=int(seed))
        own, is_class = rows.index[~fold], np.eye(rows.n_classes)[rows.codes[~fold]]
        votes.append(forest.fit(points[own], is_class, rows.weights[~fold]).predict(points))

    def log_ratio(v, kept):
        return np.log((v + s / rows.n_classes) / (1.0 + s)) - np.log(label_share(rows.counts(kept)))

    check_same_scores(found.scores, log_ratio(np.mean(votes, axis=0), np.ones(rows.codes.size, dtype=bool)))
    for v, own, fold in zip(votes, found.fold_scores, inputs.folds, strict=True):
        check_same_scores(own, log_ratio(v, ~fold))


def test_scores_are_votes_divided_by_the_shares_of_the_labels():
    training = draw_training(n_classes=3, n_labeled=24, weights=np.random.default_rng(0).uniform(0.5, 2.0, 84))
    inputs = training.inputs(FEW)
    assert len(inputs.folds) == 5
    check_votes(fit_forest(inputs, "trees"), inputs, "sqrt")
    check_votes(fit_forest(inputs, "trees_all"), inputs, 6)
    few_columns = replace(inputs, tuning=replace(FEW, max_split_columns=3))
    check_votes(fit_forest(few_columns, "trees_all"), inputs, 3)
    rejects(check_votes, fit_forest(inputs, "trees"), inputs, 6)


@pytest.mark.parametrize("kind", FORESTS)
def test_held_out_scores_do_not_depend_on_the_labels_of_the_own_fold(kind):
    inputs = draw_training(n_classes=3, n_labeled=24).inputs(FEW)
    rows, before = inputs.rows, fit_forest(inputs, kind)
    for i, fold in enumerate(inputs.folds):
        others = replace(rows, codes=np.where(fold, (rows.codes + 1) % 3, rows.codes))
        after = fit_forest(replace(inputs, rows=others), kind)
        np.testing.assert_array_equal(after.fold_scores[i], before.fold_scores[i])
        assert np.abs(after.fold_scores - before.fold_scores).max() > 0.1
        held, own = before.held_out(rows, inputs.folds), rows.index[fold]
        np.testing.assert_array_equal(held[fold], before.fold_scores[i][own])
        assert np.abs(held[fold] - before.scores[own]).max() > 0.1


def test_labels_that_cannot_be_held_out_are_seen_by_all_trees():
    """One label of each class: a single forest, and no held-out score."""
    matrices, codes, _ = draw_rows(n_labeled=2)
    found = fit(read_training(matrices, codes))
    assert found.fold_scores.shape == (0, 62, 2)
    assert (found.scores[:2].argmax(axis=1) == codes[:2]).all()


def test_trees_are_dealt_to_the_folds():
    inputs = draw_training(n_labeled=20).inputs(replace(TUNING, n_trees=12))
    (term,) = fit_forest(inputs, "trees").member.terms
    assert term.trees.n_trees == 5 * 3


def test_given_groups_are_held_out_together():
    groups = np.arange(95) // 4
    inputs = draw_training(n_labeled=20, n_unlabeled=75, groups=groups).inputs(FEW)
    for fold in inputs.folds:
        assert not set(groups[:20][fold]) & set(groups[:20][~fold])
    codes = np.where(inputs.folds[0], 1 - inputs.rows.codes, inputs.rows.codes)
    changed = fit_forest(replace(inputs, rows=replace(inputs.rows, codes=codes)), "trees")
    np.testing.assert_array_equal(changed.fold_scores[0], fit_forest(inputs, "trees").fold_scores[0])


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    training = draw_training(n_labeled=20, missing=0.2)
    first, second, other = (fit(training, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.scores, second.scores)
    np.testing.assert_array_equal(first.fold_scores, second.fold_scores)
    assert np.abs(first.scores - other.scores).max() > 0.01


def by_table_row(training, scores):
    found = np.empty_like(scores)
    found[training.block] = scores
    return found


def test_neither_the_order_of_rows_nor_the_names_of_classes_matter_and_weights_are_repetitions():
    """Up to ties between splits that are equally good, which rounding may break differently."""
    matrices, codes, _ = draw_rows(n_classes=3, n_labeled=24)
    rng = np.random.default_rng(4)
    times = rng.integers(1, 3, size=codes.size)
    order, renamed = rng.permutation(np.repeat(np.arange(codes.size), times)), np.array([2, 0, 1])
    weighted = read_training(matrices, codes, weights=times * 1.0)
    expected = by_table_row(weighted, fit(weighted).scores)
    repeated = read_training([matrix[order] for matrix in matrices], codes[order])
    check_close = np.testing.assert_allclose
    check_close(by_table_row(repeated, fit(repeated).scores), expected[order], atol=1e-9)
    other_names = read_training(matrices, np.where(codes >= 0, renamed[codes], -1), weights=times * 1.0)
    check_close(by_table_row(other_names, fit(other_names).scores)[:, renamed], expected, atol=1e-9)
    plain = read_training(matrices, codes)
    rejects(check_close, by_table_row(plain, fit(plain).scores), expected, atol=1e-9)


def test_missing_views_have_the_mean_of_their_columns():
    training = draw_training(missing=0.4)
    views = list(training.inputs().features.values())
    fill = [fill_values(view.preprocessor, view.train.shape[1]) for view in views]
    points = side_by_side(views, fill, training.block.size)
    assert points.dtype == np.float32
    for i, view in enumerate(views):
        own, has = points[:, 3 * i : 3 * i + 3], training.present[i]
        np.testing.assert_array_equal(own[has], view.train.astype(np.float32))
        np.testing.assert_allclose(own[~has], np.broadcast_to(fill[i], (np.sum(~has), 3)), atol=1e-7)
        means = view.preprocessor.transform(np.nanmean(training.matrices[i], axis=0)[None])[0]
        np.testing.assert_allclose(fill[i], means, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sparse_columns_side_by_side_are_those_of_dense_rows(missing):
    training = sparse_training()
    views = list(training.inputs().features.values())
    kept = np.flatnonzero(np.random.default_rng(0).uniform(size=training.block.size) >= missing)
    views[0] = replace(views[0], train=views[0].train[kept], rows=kept)
    points = side_by_side(views, [np.zeros(12), np.zeros(3)], training.block.size)
    expected = np.zeros((training.block.size, 15))
    expected[kept, :12], expected[:, 12:] = views[0].train.toarray(), views[1].train
    assert sparse.issparse(points)
    np.testing.assert_array_equal(points.toarray(), expected.astype(np.float32))


def test_views_that_take_no_part_change_nothing():
    """Rows that have no other view are scored as new rows are: all votes are equal."""
    training = draw_training(n_views=3, n_labeled=20, missing=0.5)
    found = fit(training, used=[True, False, True])
    assert found.member.terms[0].views == (0, 2)
    moved = [matrix.copy() for matrix in training.matrices]
    moved[1] += 7.0
    (logits,) = member_logits([found.member], moved, training.present)
    check_same_scores(logits, found.scores)
    without = ~(training.present[0] | training.present[2])
    assert without.any()
    assert np.ptp(found.scores[without], axis=0).max() == np.ptp(found.fold_scores[:, without], axis=1).max() == 0.0
