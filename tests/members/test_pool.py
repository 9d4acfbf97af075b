"""The pool of members and consensus: one rule, set by labels that were held out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from cmvmed import CMVMED
from cmvmed.auto.class_prior import empirical_bayes_share, label_share
from cmvmed.auto.cross_fitting import consensus_logits, cross_fit
from cmvmed.auto.plan import ChosenPlan, PlanSettings, choose_plan
from cmvmed.core.annealing import AnnealingResult, anneal
from cmvmed.core.surrogates import Bohning
from cmvmed.members.pool import CONSENSUS, KINDS, LabelMembers, fit_pool
from cmvmed.members.shares import estimate_shares, share_offset
from cmvmed.members.stacking import fit_logits, pool, pool_weights, prior_weights
from cmvmed.model.evaluate import member_logits
from tests.auto.factories import TUNING, Training, draw_rows, draw_training, read_training
from tests.core.factories import rejects

FEW = replace(TUNING, n_trees=20)
SETTINGS = PlanSettings(Bohning(), 0.3, 0.2, 2, 20, 1e-3, "auto", "agreement")
KERNELS = ("views", "lda", "view_graphs")


@dataclass(frozen=True)
class Fit:
    """All that is put together."""

    training: Training
    of_labels: LabelMembers
    chosen: ChosenPlan
    result: AnnealingResult

    def pooled(self, *, judge=True):
        return fit_pool(self.of_labels, self.chosen, self.result, judge=judge)

    @property
    def consensus(self):
        """Logits of the consensus, and the unlabeled weights that shares are imposed on."""
        logits, coverage = consensus_logits(self.chosen.plan, self.result, self.training.partition)
        return logits, self.training.partition.unlabeled_weights * coverage

    @property
    def tau(self):
        return self.chosen.tau(self.consensus[1].sum(), self.of_labels.rows.n_classes, FEW)


def fit_all(kinds=(*KINDS, CONSENSUS), *, training=None, settings=SETTINGS, labels_drawn="random", n_classes=2):
    training = draw_training(n_classes=n_classes, n_labeled=20, missing=0.2) if training is None else training
    of_labels = training.label_members(kinds, FEW, labels_drawn=labels_drawn)
    chosen = choose_plan(training.problem, training.data, settings, FEW, of_labels.shares[0])
    return Fit(training, of_labels, chosen, anneal(chosen.plan))


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    return fit_all(n_classes=request.param)


def judged_logits(fit):
    """Held-out scores (J, l, K) of all members, not calibrated: the consensus is the last."""
    of = fit.of_labels
    shares = [fit.chosen.shares(s, of.rows.counts(~fold)) for s, fold in zip(of.shares[1], of.folds, strict=True)]
    consensus = cross_fit(fit.chosen.plan, fit.result, of.rows, of.folds, shares, FEW)
    return np.stack([*(part.held_out(of.rows, of.folds) for part in of.parts), consensus])


def check_calibrated(calibrated, fit):
    """Each member is softmax(c s + b) with c and b of its own held-out labels; b of the consensus has no label shares."""
    of, scores = fit.of_labels, judged_logits(fit)
    log_r = np.log(label_share(of.rows.counts(np.ones(of.rows.codes.size, dtype=bool))))
    of_rows = [*(part.scores for part in of.parts), fit.consensus[0]]
    for j, own in enumerate(scores):
        is_consensus = j == len(of.parts)
        center, log_prior = (1.0, 0.0 * log_r) if is_consensus else (of.parts[j].scale, log_r)
        c, b = fit_logits(own[None], of.rows.codes, of.judged, log_prior, np.array([center]), FEW)
        held, every = (log_softmax(c[0] * s + b[0] + log_prior, axis=1) for s in (own, of_rows[j]))
        np.testing.assert_allclose(calibrated.held_out[j], held, atol=1e-6)
        np.testing.assert_allclose(calibrated.log_p[j], every, atol=1e-6)


def test_members_are_calibrated_by_held_out_labels(fitted):
    found = fitted.pooled()
    assert found.kinds == ["views", "views", *KINDS[1:], "consensus"]
    check_calibrated(found.calibrated, fitted)
    rejects(check_calibrated, replace(found.calibrated, log_p=found.calibrated.log_p[::-1]), fitted)
    rejects(check_calibrated, replace(found.calibrated, held_out=found.calibrated.held_out[::-1]), fitted)


def check_pooled(found, fit, tau):
    """log p = Σ_j v_j log p_j + b with weights of held-out labels, and b that brings it towards the class shares."""
    of, own = fit.of_labels, found.calibrated
    v = pool_weights(own.held_out, of.rows.codes, of.judged, found.kinds, FEW)
    b = share_offset(pool(own.log_p, v), fit.consensus[1], fit.chosen.plan.shares, tau)
    np.testing.assert_allclose(found.log_p, log_softmax(np.tensordot(v, own.log_p, 1) + b, axis=1), atol=1e-9)
    np.testing.assert_allclose(found.held_out, log_softmax(np.tensordot(v, own.held_out, 1) + b, axis=1), atol=1e-9)


def test_members_are_pooled_by_weight_and_brought_towards_the_shares(fitted):
    found, tau = fitted.pooled(), fitted.tau
    check_pooled(found, fitted, tau)
    rejects(check_pooled, found, fitted, np.inf)
    rejects(check_pooled, replace(found, weights=found.weights[::-1]), fitted, tau)


def test_class_shares_are_those_of_the_pool_of_the_label_members(fitted):
    of = fitted.of_labels
    mass, weights = fitted.training.partition.unlabeled_weights, of.weights()
    whole, by_fold = of.shares
    everything = np.ones(of.rows.codes.size, dtype=bool)
    expected = estimate_shares(pool(of.calibrated.log_p, weights), mass, *2 * [of.rows.counts(everything)], FEW)
    np.testing.assert_allclose(whole, expected, rtol=1e-12)
    np.testing.assert_array_equal(fitted.chosen.plan.shares, whole)
    for i, (fold, found) in enumerate(zip(of.folds, by_fold, strict=True)):
        scores = np.stack([part.fold_scores[i] for part in of.parts])
        log_p = log_softmax(of.calibrated.scales[:, None, None] * scores + of.calibrated.offsets[:, None], axis=2)
        expected = estimate_shares(pool(log_p, weights), mass, *2 * [of.rows.counts(~fold)], FEW)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_new_rows_that_equal_training_rows_have_their_logits(missing):
    fit = fit_all(training=draw_training(n_classes=3, n_labeled=20, missing=missing))
    found = fit.pooled()
    logits = member_logits(found.members(), fit.training.matrices, fit.training.present)
    np.testing.assert_allclose(log_softmax(logits, axis=2), found.calibrated.log_p[:-1], atol=1e-7)


@pytest.mark.parametrize("kinds", [(CONSENSUS,), KINDS, ("lda", CONSENSUS), ("trees",)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_training_rows_have_the_probabilities_of_new_rows(n_classes, kinds):
    matrices, codes, _ = draw_rows(n_classes=n_classes, n_labeled=20, missing=0.2)
    X, views = np.hstack(matrices), {"first": slice(0, 3), "second": slice(3, 6)}
    model = CMVMED(views=views, members=kinds, n_stages=2).fit(X, codes)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p[codes < 0], model.label_distributions_[codes < 0], atol=1e-8)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)
    assert p.max() > 0.8


def test_the_consensus_alone_is_calibrated_and_otherwise_left_as_it_is():
    fit = fit_all((CONSENSUS,), n_classes=3)
    assert fit.of_labels.shares == (None, [None] * 5)
    found, left = fit.pooled(), fit.pooled(judge=False)
    assert found.members() == []
    assert found.kinds == ["consensus"]
    check_pooled(found, fit, fit.tau)
    unlabeled = fit.training.partition.U
    np.testing.assert_allclose(np.exp(left.log_p[unlabeled]), fit.result.consensus.q, atol=1e-9)
    np.testing.assert_array_equal(left.offset, 0.0)
    assert left.accuracy is None
    assert left.held_out_probabilities() is None
    assert left.held_out_scores(np.full(3, 1 / 3)) is None
    assert np.isnan(found.accuracy.labels_only)


def test_the_consensus_takes_part_if_nothing_else_can():
    matrices, codes, _ = draw_rows()
    training = read_training(matrices, codes, kernel=lambda A, B: A @ B.T)
    assert training.label_members(["lda", "trees"]).with_consensus
    assert not training.label_members(["views", "trees"]).with_consensus


def test_without_the_consensus_the_members_are_pooled_alone():
    both, alone = fit_all((*KERNELS, CONSENSUS)), fit_all(KERNELS)
    found = alone.pooled()
    assert found.kinds == both.pooled().kinds[:-1]
    check_pooled(found, alone, alone.tau)
    np.testing.assert_allclose(found.calibrated.log_p, both.pooled().calibrated.log_p[:-1], atol=1e-12)


def test_without_judgment_members_have_their_prior_weights(fitted):
    found = fitted.pooled(judge=False)
    np.testing.assert_array_equal(found.weights, prior_weights(found.kinds))
    assert found.accuracy is None
    assert found.calibrated.scales[-1] == 1.0
    assert np.isnan(found.table()["accuracy"]).all()


def test_offsets_scales_and_weights_are_those_of_the_prior_if_no_label_can_be_held_out():
    matrices, codes, _ = draw_rows(n_labeled=2)
    fit = fit_all(training=read_training(matrices, codes))
    of, found = fit.of_labels, fit.pooled()
    assert of.folds == []
    assert not of.judged.any()
    np.testing.assert_allclose(found.calibrated.scales, [*(part.scale for part in of.parts), 1.0])
    log_r = np.log(label_share(np.ones(2)))
    np.testing.assert_allclose(found.calibrated.offsets[:-1], np.broadcast_to(log_r, (len(of.parts), 2)))
    np.testing.assert_allclose(found.weights, prior_weights(found.kinds))
    assert found.accuracy.n_held_out == 0.0
    assert "no label could be held out" in str(found.accuracy.estimate(0.9))
    assert np.isnan(found.table()["accuracy"]).all()
    assert found.held_out_scores(np.full(2, 0.5)) is None
    assert np.isfinite(found.log_p).all()


def test_rows_in_no_fold_are_not_judged():
    matrices, codes, _ = draw_rows(n_classes=3, n_labeled=20)
    codes[:20] = np.append(np.arange(19) % 2, 2)
    of = read_training(matrices, codes, weights=np.arange(1.0, 81.0)).label_members(["lda"], FEW)
    np.testing.assert_array_equal(of.judged, [*range(1, 20), 0.0])


@pytest.mark.parametrize("given", [np.array([0.2, 0.8]), np.array([0.6, 0.3, 0.1])])
@pytest.mark.parametrize("kinds", [(*KINDS, CONSENSUS), KERNELS, (CONSENSUS,)])
def test_given_shares_are_met_exactly_over_the_unlabeled_rows(kinds, given):
    matrices, codes, _ = draw_rows(n_classes=given.size, n_labeled=20)
    X, views = np.hstack(matrices), {"first": slice(0, 3), "second": slice(3, 6)}
    model = CMVMED(views=views, members=kinds, class_prior=given, n_stages=2).fit(X, codes)
    np.testing.assert_allclose(model.predict_proba(X)[codes < 0].mean(axis=0), given, atol=1e-7)


RANGES = [{1: (0.65, 0.9)}, {0: (0.05, 0.25), 1: (0.0, 0.7)}]  # which exclude what is estimated


def check_ranges(shares, given):
    for k, (low, high) in given.items():
        assert low - 1e-7 <= shares[k] <= high + 1e-7


@pytest.mark.parametrize("given", RANGES)
@pytest.mark.parametrize("kinds", [(*KINDS, CONSENSUS), KERNELS, (CONSENSUS,), None])
def test_ranges_hold_over_the_unlabeled_rows(kinds, given):
    matrices, codes, _ = draw_rows(n_classes=len(given) + 1, n_labeled=20)
    X, views = np.hstack(matrices), {"first": slice(0, 3), "second": slice(3, 6)}

    def shares(**settings):
        model = CMVMED(views=views, members=kinds, n_stages=2, **settings).fit(X, codes)
        return model.predict_proba(X)[codes < 0].mean(axis=0), model.class_prior_

    for within, free in zip(shares(class_prior=given), shares(), strict=True):
        check_ranges(within, given)
        rejects(check_ranges, free, given)


@pytest.mark.parametrize(("ranges", "same"), [({0: (0.0, 1.0)}, "auto"), ({0: (0.4, 0.4), 1: (0.6, 0.6)}, [0.4, 0.6])])
def test_nothing_known_is_automatic_and_a_range_of_one_number_is_that_share(ranges, same):
    matrices, codes, _ = draw_rows(n_labeled=20)
    X = np.hstack(matrices)
    found = [CMVMED(views=[3, 3], class_prior=prior, n_stages=2).fit(X, codes) for prior in (ranges, same)]
    for name in ("label_distributions_", "held_out_proba_", "class_prior_"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


def test_no_class_prior_imposes_nothing():
    fit = fit_all(settings=replace(SETTINGS, class_prior=None))
    np.testing.assert_array_equal(fit.pooled().offset, 0.0)


def test_inferred_shares_are_imposed_on_the_consensus_but_not_all_the_way_on_the_pool(fitted):
    shares, (_, mass), found = fitted.chosen.plan.shares, fitted.consensus, fitted.pooled()
    mean = np.average(np.exp(found.log_p), weights=mass, axis=0)
    np.testing.assert_allclose(mean + found.offset / fitted.tau, shares, atol=1e-9)
    assert np.abs(mean - shares).max() > 1e-6


def test_chosen_labels_say_nothing_of_shares_and_accuracy():
    training = draw_training(n_labeled=20)
    chosen, drawn = (fit_all(training=training, labels_drawn=own) for own in ("chosen", "random"))
    of = chosen.of_labels
    assert of.per_class
    assert of.chosen
    assert not drawn.of_labels.per_class
    predictions = pool(of.calibrated.log_p, of.weights())
    expected = estimate_shares(
        predictions, training.partition.unlabeled_weights, training.partition.counts, np.zeros(2), FEW
    )
    np.testing.assert_allclose(of.shares[0], expected, rtol=1e-12)
    found = chosen.pooled()
    largest = np.exp(found.log_p[training.partition.U]).max(axis=1).mean()
    assert found.accuracy.estimate(0.9).mean == pytest.approx(largest)


def test_without_unlabeled_rows_shares_are_those_of_the_labels():
    fit = fit_all(("lda", CONSENSUS), training=draw_training(n_labeled=30, n_unlabeled=0))
    np.testing.assert_array_equal(fit.of_labels.shares[0], empirical_bayes_share(fit.training.partition.counts))
    found = fit.pooled()
    np.testing.assert_array_equal(found.offset, 0.0)
    assert found.accuracy.largest == found.accuracy.hits


def test_the_members_that_learn_from_labels_alone_ignore_the_graphs():
    training = draw_training(n_labeled=20)
    whole, without = training.label_members(KERNELS, FEW), training.label_members(("views", "lda"), FEW)
    np.testing.assert_allclose(whole.labels_only(), without.labels_only(), atol=1e-7)
    np.testing.assert_allclose(without.labels_only(), pool(without.calibrated.held_out, without.weights()), atol=1e-12)
    assert np.abs(pool(whole.calibrated.held_out, whole.weights()) - whole.labels_only()).max() > 1e-3
    assert training.label_members(["view_graphs"], FEW).labels_only() is None


def check_table(table, found):
    own, rows, w = found.calibrated, found.of_labels.rows, found.of_labels.judged
    assert table["name"] == [*(part.name for part in found.of_labels.parts), "consensus"]
    np.testing.assert_allclose(table["weight"], found.weights / found.weights.sum())
    np.testing.assert_allclose(table["weight"].sum(), 1.0, rtol=1e-12)
    for j, log_p in enumerate(own.held_out):
        np.testing.assert_allclose(table["accuracy"][j], np.average(log_p.argmax(axis=1) == rows.codes, weights=w))
        loss = np.average(-log_p[np.arange(rows.codes.size), rows.codes], weights=w)
        np.testing.assert_allclose(table["log_loss"][j], loss)


def test_the_table_of_members(fitted):
    found = fitted.pooled()
    table = found.table()
    check_table(table, found)
    rejects(check_table, table | {"weight": table["weight"][::-1]}, found)
    rejects(check_table, table | {"accuracy": 1.0 - table["accuracy"]}, found)


def test_probabilities_and_scores_of_held_out_labels(fitted):
    """With labels drawn per class, scores count each class by its share over that of the labels."""
    found, rows = fitted.pooled(), fitted.of_labels.rows
    numbers, p = found.held_out_probabilities()
    np.testing.assert_array_equal(fitted.training.data.labels.codes[numbers], rows.codes)
    np.testing.assert_allclose(p, softmax(found.held_out, axis=1))
    prior = np.arange(1.0, rows.n_classes + 1.0) / np.arange(1.0, rows.n_classes + 1.0).sum()
    scores = found.held_out_scores(prior)
    np.testing.assert_allclose(scores.weights, rows.weights)
    per_class = replace(found, of_labels=replace(fitted.of_labels, per_class=True)).held_out_scores(prior)
    counts = np.bincount(rows.codes)
    np.testing.assert_allclose(per_class.weights, (prior * counts.sum() / counts)[rows.codes])


def by_table_row(training, of_labels):
    log_p = pool(of_labels.calibrated.log_p, of_labels.weights())
    found = np.empty_like(log_p)
    found[training.block] = log_p
    return found


def test_a_row_of_weight_two_is_the_row_twice_and_the_order_does_not_matter():
    matrices, codes, _ = draw_rows(n_labeled=20)
    times = np.random.default_rng(3).integers(1, 3, size=80)
    order = np.random.default_rng(4).permutation(np.repeat(np.arange(80), times))
    weighted = read_training(matrices, codes, weights=times * 1.0)
    repeated = read_training([matrix[order] for matrix in matrices], codes[order])
    expected = by_table_row(weighted, weighted.label_members(tuning=FEW))
    found = by_table_row(repeated, repeated.label_members(tuning=FEW))
    np.testing.assert_allclose(found, expected[order], atol=1e-5)
    plain = read_training(matrices, codes)
    other = by_table_row(plain, plain.label_members(tuning=FEW))
    rejects(np.testing.assert_allclose, other, expected, atol=1e-5)


def test_only_known_kinds_are_fitted_in_the_order_asked_for():
    found = draw_training().label_members(["trees", "unknown", "lda"], FEW, labels_drawn="per_class")
    assert found.kinds == ["trees", "lda"]
    assert found.per_class


class TestRandomLabels:
    def test_labels_have_no_part_in_what_judges_them(self):
        """Classes that have nothing to do with the rows are guessed; weights of the same labels look better."""
        found = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            codes = np.r_[rng.permutation(np.arange(40) % 2), np.full(80, -1)]
            training = read_training([rng.normal(size=(120, 3)) for _ in range(2)], codes)
            accuracy = fit_all(("views", "lda", "graph"), training=training).pooled().accuracy
            grouped = replace(training, data=replace(training.data, groups=np.arange(120)))
            of_groups = fit_all(("views", "lda", "graph"), training=grouped).pooled().accuracy
            found.append((accuracy.random.mean, of_groups.hits, of_groups.labels_only, accuracy.hits))
        *judged, by_all = np.mean(found, axis=0)
        assert np.abs(np.array(judged) - 0.5).max() < 0.05
        assert by_all > max(judged) + 0.01

    def test_the_consensus_alone_has_the_share_of_hits(self):
        fitted = fit_all((CONSENSUS,), labels_drawn="random")
        found = fitted.pooled().accuracy.random
        assert found.confidence == 0.5
        assert found.variance == 0.0
        np.testing.assert_allclose(found.mean * found.n, round(found.mean * found.n), atol=1e-9)

    def test_the_only_label_of_a_class_counts_as_wrong(self):
        """No fit without it knows the class."""
        rng, codes = np.random.default_rng(0), np.r_[np.arange(30) % 2, np.full(80, -1)]
        X = [rng.normal(size=(110, 3)) for _ in range(2)]
        with_third = np.where(np.arange(110) == 30, 2, codes)
        without, found = (
            fit_all(("views",), training=read_training(X, own)).pooled().accuracy.random for own in (codes, with_third)
        )
        assert (without.n_labels, found.n_labels) == (30.0, 31.0)
        assert found.residual * 31.0 < without.residual * 30.0 - 0.3

    def test_groups_are_the_unit_if_there_are_groups(self):
        rng, codes = np.random.default_rng(0), np.r_[np.arange(30) % 2, np.full(80, -1)]
        X, groups = [rng.normal(size=(110, 3)) for _ in range(2)], np.arange(110) // 2 % 5 + 40
        one, many = (
            fit_all(("views",), training=read_training(X, codes, groups=own)).pooled().accuracy.random
            for own in (groups, None)
        )
        assert (many.n, many.n_unlabeled) == pytest.approx((30.0, 80.0))
        assert (one.n, one.n_unlabeled, one.n_labels) == pytest.approx((5.0, 5.0, 30.0), rel=0.05)
