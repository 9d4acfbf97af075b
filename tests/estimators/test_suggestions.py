"""CMVMED.suggest and suggest_first: which rows can be suggested, from whatever the model was fitted to, and the reasons."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import kstest
from sklearn.metrics.pairwise import rbf_kernel

import cmvmed
from cmvmed import CMVMED, suggest_first
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.model.compact import held_training_rows
from tests.core.factories import rejects

VIEWS = {"a": slice(0, 3), "b": slice(3, 5)}
QUICK = {"views": VIEWS, "n_stages": 2}


def affine_kernel(A, B):
    return A @ B.T + 1.0


def check_suggestions(found, allowed, n):
    """n distinct rows among the allowed ones, with scores that fall if they are not random, and a reason each."""
    assert found.rows.shape == found.scores.shape == found.random.shape == (n,)
    assert len(set(found.rows.tolist())) == n
    assert set(found.rows.tolist()) <= set(np.asarray(allowed).tolist())
    assert (np.diff(found.scores[~found.random]) <= 1e-9).all()
    assert (found.scores >= 0.0).all()
    assert len(found.reasons) == n
    assert all(isinstance(reason, str) and reason for reason in found.reasons)


@pytest.fixture(scope="module")
def fitted(partly_three):
    return CMVMED(**QUICK).fit(partly_three.X, partly_three.y)


def test_unlabeled_training_rows_are_suggested(fitted, partly_three):
    unlabeled = np.flatnonzero(partly_three.hidden)
    check_suggestions(fitted.suggest(8), unlabeled, 8)
    rejects(check_suggestions, fitted.suggest(8), np.flatnonzero(~partly_three.hidden), 8)


def test_two_classes_and_texts_as_classes(partly):
    y = np.where(partly.y < 0, "", np.where(partly.y == 1, "walk", "run"))
    model = CMVMED(unlabeled="", **QUICK).fit(partly.X, y)
    found = model.suggest(5)
    check_suggestions(found, np.flatnonzero(partly.hidden), 5)
    assert all("walk" in reason or "run" in reason or "random" in reason for reason in found.reasons)


def test_suggestions_are_the_same_each_time_and_the_first_of_more(fitted, partly_three):
    again = CMVMED(**QUICK).fit(partly_three.X, partly_three.y)
    np.testing.assert_array_equal(fitted.suggest(10).rows, again.suggest(10).rows)
    assert fitted.suggest(10).reasons == again.suggest(10).reasons


def test_all_rows_are_suggested_if_there_are_not_more(fitted, partly_three):
    unlabeled = np.flatnonzero(partly_three.hidden)
    check_suggestions(fitted.suggest(unlabeled.size + 5), unlabeled, unlabeled.size)


def test_the_unlabeled_rows_as_X_give_the_same_rows(fitted, partly_three):
    """Up to the probabilities, which for training rows are those of the fit."""
    unlabeled = np.flatnonzero(partly_three.hidden)
    with_known = fitted.suggest(6)
    given = fitted.suggest(6, partly_three.X[unlabeled])
    check_suggestions(given, np.arange(unlabeled.size), 6)
    assert len(set(unlabeled[given.rows]) & set(with_known.rows)) >= 4


def test_a_row_without_any_view_and_copies_of_labeled_rows_are_not_suggested(fitted, partly_three):
    X = np.vstack([np.full((1, 5), np.nan), partly_three.X[:3], partly_three.X[30:]])
    found = fitted.suggest(X.shape[0] - 4, X)
    assert not set(found.rows) & {0, 1, 2, 3}
    assert fitted.suggest(X.shape[0], X).rows.size == X.shape[0] - 1


def test_rows_that_lack_views(partly_three):
    X = np.array(partly_three.X)
    X[15:25, :3] = np.nan
    X[25:35, 3:] = np.nan
    X[40] = np.nan
    with pytest.warns(UserWarning, match="have all views missing"):
        model = CMVMED(**QUICK).fit(X, partly_three.y)
    usable = np.setdiff1d(np.flatnonzero(partly_three.hidden), [40])
    check_suggestions(model.suggest(usable.size), usable, usable.size)


@pytest.mark.parametrize(
    "parameters",
    [
        {"approximation": 20},
        {"members": "consensus"},
        {"members": ["views", "lda", "consensus"]},
        {"kernel": "cosine"},
        {"kernel": "linear", "scaling": None},
        {"kernel": affine_kernel},
        {"members": None, "labels_drawn": "chosen"},
    ],
    ids=lambda parameters: ", ".join(parameters),
)
def test_settings(partly_three, parameters):
    model = CMVMED(**QUICK, **parameters).fit(partly_three.X, partly_three.y)
    check_suggestions(model.suggest(5), np.flatnonzero(partly_three.hidden), 5)


def test_sparse_views(partly_three):
    model = CMVMED(**QUICK).fit(sparse.csr_matrix(partly_three.X), partly_three.y)
    check_suggestions(model.suggest(5), np.flatnonzero(partly_three.hidden), 5)
    check_suggestions(model.suggest(5, sparse.csr_matrix(partly_three.X)), np.arange(42), 5)
    check_suggestions(model.suggest(5, partly_three.X), np.arange(42), 5)


def test_a_precomputed_kernel(partly_three):
    K = rbf_kernel(partly_three.X / 10.0)
    model = CMVMED(kernel="precomputed", n_stages=2).fit(K, partly_three.y)
    check_suggestions(model.suggest(5), np.flatnonzero(partly_three.hidden), 5)
    check_suggestions(model.suggest(5, K), np.arange(42), 5)


def test_a_loaded_model_suggests_the_same_rows(fitted, tmp_path):
    fitted.save(tmp_path / "m.cmvmed")
    loaded, found = cmvmed.load(tmp_path / "m.cmvmed").suggest(6), fitted.suggest(6)
    np.testing.assert_array_equal(loaded.rows, found.rows)
    np.testing.assert_array_equal(loaded.scores, found.scores)
    assert loaded.reasons == found.reasons


def test_a_model_without_its_training_rows_asks_for_X(partly_three):
    model = CMVMED(**QUICK, approximation=20, members="consensus")
    model.fit(partly_three.X, partly_three.y)
    with pytest.raises(ValueError, match="does not hold all its training rows; pass the rows to choose from as X"):
        model.suggest()
    check_suggestions(model.suggest(5, partly_three.X), np.arange(42), 5)


def test_rows_of_a_sample_have_their_numbers_in_all_of_X():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(300) % 2)
    X = np.where(truth[:, None] > 0, 1.0, -1.0) + rng.normal(size=(300, 5))
    y = np.where(np.arange(300) % 15 == 14, truth, -1)
    few = replace(Tuning(), max_exact_rows=50, sample_rows=80, min_components=20, max_components=20)
    with tuning_context(few):
        model = CMVMED(views=VIEWS, n_stages=2).fit(X, y)
    assert model.approximation_["n_annealed"] == 80
    found = model.suggest(80)
    check_suggestions(found, np.flatnonzero(y < 0), 80)
    held, numbers = held_training_rows(model._model)[0][0], model._model.rows.numbers
    np.testing.assert_allclose(held, np.clip(X[numbers, :3], held.min(axis=0), held.max(axis=0)))


def test_many_rows_are_drawn_from(partly_three):
    model = CMVMED(**QUICK).fit(partly_three.X, partly_three.y)
    with tuning_context(replace(Tuning(), suggestion_rows=10)):
        found = model.suggest(10)
        check_suggestions(found, np.flatnonzero(partly_three.hidden), 10)
        with pytest.raises(ValueError, match="n must be at most 10, but is 11; label some of them first"):
            model.suggest(11)


@pytest.mark.parametrize("n", [0, -1, 2.5, "ten", None, True])
def test_n_that_is_no_number_of_rows(fitted, n):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        fitted.suggest(n)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        suggest_first(np.zeros((3, 2)), n)


def test_reasons_name_the_views_that_disagree_and_the_classes_between_which_a_row_is():
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 2
    X = np.where(truth[:, None] > 0, 3.0, -3.0) + 0.5 * rng.normal(size=(80, 4))
    X[79] = [3.0, 3.0, -3.0, -3.0]  # of class 1 by the first view, 0 by the second
    X[78] = 0.0
    y = np.where(np.arange(80) < 10, truth, -1)
    names = np.array(["cat", "dog", "?"])[y]
    model = CMVMED(views={"sound": 2, "motion": 2}, unlabeled="?").fit(X, names)
    found = model.suggest(70, random_share=0.0)
    reasons = dict(zip(found.rows.tolist(), found.reasons, strict=True))
    assert "views disagree: " in reasons[79]
    assert "sound says dog" in reasons[79]
    assert "motion says cat" in reasons[79]
    assert "between " in reasons[78]
    assert "unlike any labeled row" in reasons[79]
    assert sum("probably " in reason for reason in reasons.values()) > 60


class TestFirst:
    def test_each_cluster_has_its_row_and_the_outlier_has_none(self):
        rng = np.random.default_rng(0)
        of = np.arange(100) % 5
        X = 10.0 * rng.normal(size=(5, 4))[of] + rng.normal(size=(100, 4))
        X[99] = 200.0
        found = suggest_first(X, 5, views=[2, 2], random_share=0.0)
        check_suggestions(found, np.arange(99), 5)
        assert sorted(of[found.rows]) == list(range(5))
        assert all("typical of about" in reason for reason in found.reasons)

    def test_copies_are_not_suggested_together(self):
        X = np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 4, axis=0)
        assert sorted(suggest_first(X, 10, random_share=0.0).rows // 4) == list(range(10))

    def test_frames_missing_views_and_files(self, partly, tmp_path):
        X = np.array(partly.X)
        X[3] = np.nan
        X[5:9, :3] = np.nan
        frame = pd.DataFrame(X, columns=["a_0", "a_1", "a_2", "b_0", "b_1"])
        frame.to_parquet(tmp_path / "rows.parquet")
        views = {"a": "a_", "b": "b_"}
        found = suggest_first(frame, 39, views=views)
        check_suggestions(found, np.setdiff1d(np.arange(40), [3]), 39)
        np.testing.assert_array_equal(suggest_first(tmp_path / "rows.parquet", 39, views=views).rows, found.rows)
        np.testing.assert_array_equal(suggest_first({"a": X[:, :3], "b": X[:, 3:]}, 39).rows, found.rows)

    def test_many_rows_are_drawn_from(self):
        X = np.random.default_rng(0).normal(size=(5000, 6))
        begin = time.process_time()
        found = suggest_first(X, 10, views=[3, 3])
        assert time.process_time() - begin < 10.0  # about half a second; the rest is for slow machines
        check_suggestions(found, np.arange(5000), 10)
        np.testing.assert_array_equal(suggest_first(X, 10, views=[3, 3]).rows, found.rows)


def test_chosen_labels_say_nothing_of_the_class_shares():
    """As with labels drawn per class; a random draw of the same labels would."""
    rng = np.random.default_rng(0)
    truth = np.r_[np.zeros(20, int), np.ones(4, int), np.arange(200) % 2]
    X = np.where(truth[:, None] > 0, 0.8, -0.8) + rng.normal(size=(224, 5))
    y = np.where(np.arange(224) < 24, truth, -1)
    shares = {
        drawn: CMVMED(**QUICK, labels_drawn=drawn).fit(X, y).class_prior_ for drawn in ("chosen", "per_class", "random")
    }
    np.testing.assert_array_equal(shares["chosen"], shares["per_class"])
    assert shares["chosen"][1] > shares["random"][1]


class TestRandomRows:
    def test_every_fifth_label_is_of_a_random_row_whatever_the_number_of_suggestions(self, fitted, partly_three):
        n_labeled = int((~partly_three.hidden).sum())
        numbers = np.flatnonzero(fitted.suggest(20).random) + n_labeled + 1
        np.testing.assert_array_equal(numbers, [n for n in range(n_labeled + 1, n_labeled + 21) if n % 5 == 0])
        assert fitted.suggest(1).random.tolist() == [(n_labeled + 1) % 5 == 0]
        assert np.flatnonzero(suggest_first(partly_three.X, 12).random).tolist() == [4, 9]

    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    def test_their_share_is_that_asked_for(self, fitted, share):
        found = fitted.suggest(10, random_share=share)
        assert found.random.sum() == 10 * share
        assert [reason.startswith("drawn at random") for reason in found.reasons] == found.random.tolist()

    @pytest.mark.parametrize("share", [-0.1, 1.5, "some", None, True])
    def test_a_share_that_is_none(self, fitted, share):
        with pytest.raises(ValueError, match="random_share must be a number at least 0 and at most 1"):
            fitted.suggest(3, random_share=share)

    def test_chosen_rows_are_those_that_the_random_ones_do_not_stand_for(self):
        """Two clusters: one has the random row, so that the chosen one is of the other."""
        X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0) + np.random.default_rng(0).normal(size=(60, 2))
        found = suggest_first(X, 2, random_share=0.5)
        assert found.random.tolist() == [False, True]
        assert {int(row >= 30) for row in found.rows} == {0, 1}

    def test_they_are_spread_over_rows_that_are_sorted(self):
        """The same generator for ever fewer rows would draw neighbors; labels are given one after the other."""
        rng = np.random.default_rng(0)
        X = np.sort(rng.normal(size=300))[:, None] + 0.1 * rng.normal(size=(300, 3))
        y = np.where(np.arange(300) % 60 == 0, np.arange(300) // 150, -1)
        drawn = []
        for _ in range(12):
            row = CMVMED(members="views", n_stages=1).fit(X, y).suggest(1, random_share=1.0).rows[0]
            y[row] = row // 150
            drawn.append(row)
        assert kstest(np.array(drawn) / 300, "uniform").pvalue > 0.05
        assert np.median(np.abs(np.diff(drawn))) > 30


class TestFitWithRandomRows:
    @pytest.fixture(scope="class")
    @classmethod
    def given(cls):
        """Chosen labels that are of both classes alike, and random ones, nine in ten of which are of class 0."""
        rng = np.random.default_rng(0)
        truth = (np.arange(300) % 10 == 0).astype(int)
        X = np.where(truth[:, None] > 0, 0.5, -0.5) + rng.normal(size=(300, 5))
        chosen = np.r_[np.flatnonzero(truth == 0)[:15], np.flatnonzero(truth == 1)[:15]]
        random = np.zeros(300, dtype=bool)
        random[np.setdiff1d(rng.permutation(300)[:40], chosen)] = True
        y = np.full(300, -1)
        y[chosen], y[random] = truth[chosen], truth[random]
        return X, y, random, truth

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_the_class_shares_are_nearer_to_the_true_ones(self, given):
        """Than those of predictions from columns that say little."""
        X, y, random, truth = given
        little = 0.6 * X + np.random.default_rng(1).normal(size=X.shape)

        def error(**parameters):
            marks = {} if parameters else {"random_rows": random}
            return abs(CMVMED(**QUICK, **parameters).fit(little, y, **marks).class_prior_[1] - truth.mean())

        assert error() < 0.9 * error(labels_drawn="chosen")

    def test_the_estimate_has_what_random_rows_say(self, given):
        X, y, random, truth = given
        model = CMVMED(**QUICK).fit(X, y, random_rows=random)
        found = model.accuracy_estimate(0.99)
        held = np.isin(model.held_out_rows_, np.flatnonzero(random))
        hits = np.mean(model.held_out_proba_[held].argmax(axis=1) == y[model.held_out_rows_[held]])
        assert found.n_random == held.sum()
        assert abs(found.random_mean - hits) < 0.08  # the latter by weights that those labels helped to set
        assert found.random_low <= (model.transduction_ == truth)[y < 0].mean() <= found.random_high
        assert f"{found.n_random:.0f} labels of random rows say {found.random_mean:.1%}" in str(found)
        assert found.chosen

    def test_all_rows_random_is_labels_drawn_random_and_none_is_chosen(self, given):
        X, y, *_ = given
        for marks, drawn in ((np.ones(300, bool), "random"), (np.zeros(300, bool), "chosen")):
            found = CMVMED(**QUICK).fit(X, y, random_rows=marks), CMVMED(**QUICK, labels_drawn=drawn).fit(X, y)
            np.testing.assert_array_equal(*(model.predict_proba(X) for model in found))
            assert str(found[0].accuracy_estimate()) == str(found[1].accuracy_estimate())
        assert not CMVMED(**QUICK).fit(X, y).accuracy_estimate().n_random

    def test_a_saved_model_says_the_same(self, given, tmp_path):
        X, y, random, _ = given
        model = CMVMED(**QUICK).fit(X, y, random_rows=random)
        model.save(tmp_path / "m.cmvmed")
        assert cmvmed.load(tmp_path / "m.cmvmed").accuracy_estimate() == model.accuracy_estimate()

    @pytest.mark.parametrize("marks", [np.ones(299, bool), np.ones(300), ["yes"] * 300, np.ones((300, 1), bool)])
    def test_marks_that_are_none(self, given, marks):
        with pytest.raises(ValueError, match="random_rows must say True or False for each of the 300 rows"):
            CMVMED(**QUICK).fit(given[0], given[1], random_rows=marks)

    @pytest.mark.parametrize("drawn", ["random", "per_class"])
    def test_marks_that_contradict_the_parameter(self, given, drawn):
        with pytest.raises(ValueError, match="leave labels_drawn at"):
            CMVMED(**QUICK, labels_drawn=drawn).fit(given[0], given[1], random_rows=given[2])


class TestViewWithoutSignal:
    """Two views with signal, and one of noise."""

    @staticmethod
    def fit(seed, n=300, n_labels=20):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, n)
        signal = np.where(truth == 1, 1.0, -1.0)[:, None]
        X = np.hstack([signal + rng.normal(size=(n, 4)), signal + rng.normal(size=(n, 4)), rng.normal(size=(n, 8))])
        y = np.full(n, -1)
        for k in (0, 1):
            rows = rng.choice(np.flatnonzero(truth == k), n_labels // 2, replace=False)
            y[rows] = k
        return CMVMED(views={"a": 4, "b": 4, "noise": 8}).fit(X, y), X[y < 0]

    @pytest.fixture(scope="class")
    @classmethod
    def fits(cls):
        return [cls.fit(seed) for seed in range(4)]

    def test_it_is_worth_little(self, fits):
        worths = np.array(
            [
                [dict(zip(m.members_["name"], m.members_["worth"], strict=True))[f"view {v}"] for v in "ab"]
                for m, _ in fits
            ]
        )
        noise = [dict(zip(m.members_["name"], m.members_["worth"], strict=True))["view noise"] for m, _ in fits]
        assert worths.min() > 0.9
        assert np.mean(noise) < 0.5

    def test_suggestions_do_not_come_from_it(self, fits):
        reasons = [reason for model, _ in fits for reason in model.suggest(8, random_share=0.0).reasons]
        assert sum("noise says" in reason for reason in reasons) <= 1
        assert sum("views disagree" in reason for reason in reasons) >= 5

    def test_its_probability_is_near_the_class_shares_and_that_of_the_others_is_not(self, fits):
        def largest(name, **calibrated):
            return np.mean([m.predict_proba_by_view(X, **calibrated)[name].max(axis=1).mean() for m, X in fits])

        assert largest("noise", calibrated=True) < 0.6 < 0.7 < largest("noise")
        assert largest("a", calibrated=True) > 0.85

    def test_without_members_of_the_views_probabilities_are_those_of_the_consensus(self, partly):
        model = CMVMED(**QUICK, members="consensus").fit(partly.X, partly.y)
        for name, p in model.predict_proba_by_view(partly.X).items():
            np.testing.assert_array_equal(model.predict_proba_by_view(partly.X, calibrated=True)[name], p)

    def test_rows_without_a_view_get_the_class_prior(self, partly):
        model, X = CMVMED(**QUICK).fit(partly.X, partly.y), np.array(partly.X[:3])
        X[1, :3] = np.nan
        p = model.predict_proba_by_view(X, calibrated=True)
        np.testing.assert_allclose(p["a"][1], model.class_prior_)
        worth = dict(zip(model.members_["name"], model.members_["worth"], strict=True))["view a"]
        member = model.predict_proba_by_member(X)["view a"]
        np.testing.assert_allclose(p["a"][0], worth * member[0] + (1.0 - worth) * model.class_prior_, rtol=1e-9)
