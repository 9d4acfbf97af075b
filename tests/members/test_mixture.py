"""Pool and consensus put together, and judged by labels that were held out of every decision."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from cmvmed.members.mixture import MixtureInputs, combine, opinions_table
from scipy.special import log_softmax, softmax

from cmvmed.auto.cross_fitting import consensus_logits
from cmvmed.auto.plan import ChosenPlan, PlanSettings, choose_plan
from cmvmed.core.annealing import AnnealingResult, anneal, supervised_start
from cmvmed.core.surrogates import Bohning
from cmvmed.members.accuracy import share_offset
from cmvmed.members.pool import SupervisedFit, fit_supervised
from tests.auto.factories import TUNING, Training, draw_training
from tests.core.factories import rejects

SETTINGS = PlanSettings(Bohning(), 0.3, 0.2, 2, 20, 1e-3, "auto", "agreement")


@dataclass(frozen=True)
class Fit:
    """All that is put together."""

    training: Training
    supervised: SupervisedFit
    chosen: ChosenPlan
    result: AnnealingResult

    def parts(self, *, pool=True, consensus=True, per_class=False):
        own = self.supervised
        partition = self.training.partition
        return MixtureInputs(own if pool else None, consensus, own.rows, own.folds, partition, per_class)

    def combined(self, parts, *, calibrate=True, **changes):
        given = {"chosen": self.chosen, "result": self.result} | changes
        return combine(parts, given["chosen"], given["result"], TUNING, calibrate=calibrate)


def fit_all(n_classes=2, *, settings=SETTINGS):
    training = draw_training(n_classes=n_classes, n_labeled=20, missing=0.2)
    supervised = training.supervised()
    plan = choose_plan(
        training.problem, training.views, training.data, settings, TUNING, inferred=supervised.pool.share
    )
    return Fit(training, supervised, plan, anneal(plan.plan))


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    return fit_all(request.param)


def parts_of(fit):
    """Each way to choose the parts."""
    return {
        "both": fit.parts(),
        "pool": fit.parts(consensus=False),
        "consensus": fit.parts(pool=False),
    }


def test_names_of_the_parts(fitted):
    assert {key: parts.names for key, parts in parts_of(fitted).items()} == {
        "both": ["pool", "consensus"],
        "pool": ["pool"],
        "consensus": ["consensus"],
    }


def check_probabilities(fit, combined, *, with_pool, with_consensus):
    """softmax(c log Σ_k w_k softmax(c_k z_k)), with the pool brought to the class shares."""
    mixture, pool = combined.mixture, fit.supervised.pool
    consensus, coverage = consensus_logits(fit.chosen.plan, fit.result, fit.training.partition)
    offset = share_offset(pool.log_p, fit.training.mass * coverage, fit.chosen.plan.shares)
    logits = [pool.log_p + offset] * with_pool + [consensus] * with_consensus
    total = sum(w * softmax(c * z, axis=1) for w, c, z in zip(mixture.weights, mixture.scales, logits, strict=True))
    np.testing.assert_allclose(combined.log_p, log_softmax(mixture.scale * np.log(total), axis=1), atol=1e-8)


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("name", ["both", "pool", "consensus"])
def test_probabilities_are_the_mixture_of_the_parts(fitted, name, calibrate):
    combined = fitted.combined(parts_of(fitted)[name], calibrate=calibrate)
    given = {"with_pool": name != "consensus", "with_consensus": name != "pool"}
    check_probabilities(fitted, combined, **given)
    rejects(check_probabilities, fitted, replace(combined, log_p=combined.log_p[:, ::-1]), **given)
    assert (combined.accuracy is None) == (combined.held_out is None) == (not calibrate)
    np.testing.assert_allclose(combined.mixture.weights.sum(), 1.0, rtol=1e-9)


def test_the_consensus_alone_is_left_as_it_is_without_calibration(fitted):
    combined = fitted.combined(fitted.parts(pool=False), calibrate=False)
    assert combined.consensus_scale == 1.0
    unlabeled = fitted.training.partition.U
    np.testing.assert_allclose(np.exp(combined.log_p[unlabeled]), fitted.result.consensus.q, atol=1e-9)
    np.testing.assert_array_equal(combined.pool_offset, 0.0)


def test_the_scale_of_the_consensus_is_one_if_it_takes_no_part(fitted):
    assert fitted.combined(fitted.parts(consensus=False)).consensus_scale == 1.0
    both = fitted.combined(fitted.parts())
    assert both.consensus_scale == both.mixture.scales[-1] != 1.0


def with_other_label(fit, row):
    """The same fit, in which the label of one row is another class; kernels and folds stay."""
    rows, training = fit.supervised.rows, fit.training
    codes = rows.codes.copy()
    codes[row] = (codes[row] + 1) % rows.n_classes
    candidates = replace(fit.supervised.candidates, rows=replace(rows, codes=codes))
    supervised = fit_supervised(candidates, fit.supervised.folds, training.mass, per_class=False, tuning=TUNING)
    Y = fit.chosen.plan.problem.Y.copy()
    one_hot = np.eye(rows.n_classes)[codes[row]]
    Y[rows.positions[row]] = 2.0 * (one_hot[1:] if rows.n_classes == 2 else one_hot) - 1.0
    problem = replace(fit.chosen.plan.problem, Y=Y)
    plan = replace(fit.chosen.plan, problem=problem, start=supervised_start(problem))
    return replace(fit, supervised=supervised, chosen=replace(fit.chosen, plan=plan))


def check_own_fold_is_the_same(first, second, fold):
    np.testing.assert_allclose(first[..., fold, :], second[..., fold, :], atol=1e-6)


def test_held_out_logits_do_not_depend_on_the_labels_of_the_own_fold(fitted):
    """Neither the parts nor the class shares that they are brought to."""
    changed = with_other_label(fitted, 4)
    before, after = (fit.combined(fit.parts()).held_out for fit in (fitted, changed))
    (own,) = (fold for fold in fitted.supervised.folds if fold[4])
    check_own_fold_is_the_same(before.logits, after.logits, own)
    check_own_fold_is_the_same(before.labels_only, after.labels_only, own)
    for k in range(2):
        rejects(check_own_fold_is_the_same, before.logits[k], after.logits[k], ~own)


def test_given_shares_are_imposed_on_folds_too():
    """Then the held-out pool has the same shares over the unlabeled rows as the pool itself."""
    given = np.array([0.35, 0.65])
    fit = fit_all(settings=replace(SETTINGS, class_prior=given))
    combined = fit.combined(fit.parts(consensus=False))
    _, coverage = consensus_logits(fit.chosen.plan, fit.result, fit.training.partition)
    mass, rows = fit.training.mass * coverage, fit.supervised.rows
    for pool, fold in zip(fit.supervised.fold_pools, fit.supervised.folds, strict=True):
        offset = share_offset(pool.log_p, mass, given)
        expected = (pool.log_p + offset)[rows.index[fold]]
        np.testing.assert_allclose(combined.held_out.logits[0][fold], expected, atol=1e-9)


def test_rows_in_no_fold_are_not_judged(fitted):
    held_out = fitted.combined(fitted.parts()).held_out
    judged = np.any(fitted.supervised.folds, axis=0)
    np.testing.assert_array_equal(held_out.weights, np.where(judged, fitted.supervised.rows.weights, 0.0))


def test_without_any_fold_the_prior_decides(fitted):
    nothing = replace(fitted.supervised, folds=[], fold_pools=[])
    fit = replace(fitted, supervised=nothing)
    combined, K = fit.combined(fit.parts()), nothing.rows.n_classes
    np.testing.assert_allclose(combined.mixture.weights, [1.0 - 1.0 / K, 1.0 / K])
    assert combined.accuracy.n_held_out == 0.0
    assert "No label could be held out" in str(combined.accuracy.estimate(0.9))


def test_labels_drawn_per_class_widen_the_interval(fitted):
    widths = []
    for per_class in (False, True):
        combined = fitted.combined(fitted.parts(consensus=False, per_class=per_class))
        estimate = combined.accuracy.estimate(0.9)
        widths.append(estimate.high - estimate.low)
    assert widths[0] < widths[1]


def check_table(table, fit, combined):
    pool, rows = fit.supervised.pool, fit.supervised.rows
    assert table["name"] == [*(member.name for member in fit.supervised.candidates.members), "consensus"]
    np.testing.assert_allclose(table["weight"].sum(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(table["weight"][:-1], combined.mixture.weights[0] * pool.weights)
    for j in range(pool.weights.size):
        np.testing.assert_allclose(table["accuracy"][j], np.average(pool.hits[:, j], weights=pool.judged))
        loss = np.average(-np.log(pool.likelihood[:, j]), weights=pool.judged)
        np.testing.assert_allclose(table["log_loss"][j], loss)
    p = softmax(combined.mixture.scales[1] * combined.held_out.logits[1], axis=1)
    own, w = p[np.arange(rows.codes.size), rows.codes], combined.held_out.weights
    np.testing.assert_allclose(table["accuracy"][-1], np.average(p.argmax(axis=1) == rows.codes, weights=w))
    np.testing.assert_allclose(table["log_loss"][-1], np.average(-np.log(own), weights=w))


def test_the_table_of_members(fitted):
    combined = fitted.combined(fitted.parts())
    table = opinions_table(combined)
    check_table(table, fitted, combined)
    rejects(check_table, table | {"weight": table["weight"][::-1]}, fitted, combined)
    rejects(check_table, table | {"accuracy": 1.0 - table["accuracy"]}, fitted, combined)


def test_the_table_of_the_consensus_alone_has_no_accuracy_without_held_out_labels(fitted):
    table = opinions_table(fitted.combined(fitted.parts(pool=False), calibrate=False))
    assert table["name"] == ["consensus"]
    assert table["weight"].tolist() == [1.0]
    assert np.isnan(table["accuracy"]).all()
    assert np.isnan(table["log_loss"]).all()
