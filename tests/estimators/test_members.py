"""Members beside the consensus: which take part, what they report, how labels were drawn, groups, and warnings."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.members.accuracy import AccuracyEstimate
from cmvmed.model_selection import hide_labels

WIDTHS = [3, 2]
WIDTHS_OF_CLUSTERS = [3, 3]
ALL = ["views", "lda", "graph", "view_graphs", "trees", "trees_all", "consensus"]
WITHOUT_TREES = ["views", "lda", "graph", "view_graphs", "consensus"]
OF_ONE_VIEW = ["view view0", "lda", "graph", "trees", "trees_all", "consensus"]
NAMES = {name: [name] for name in ALL} | {"views": ["view view0", "view view1"]}


def names_of(kinds):
    return [name for kind in ALL if kind in kinds for name in NAMES[kind]]


def clusters(n=120, n_classes=3, labels=4, n_features=3, separation=2.0, seed=0):
    """Two views of noisy class centers; the first ``labels`` rows of each class are labeled."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = np.hstack([rng.normal(size=(n_classes, n_features))[truth] * separation for _ in range(2)])
    X += rng.normal(size=X.shape)
    return X, np.where(np.arange(n) < labels * n_classes, truth, -1), truth


def gaussian_task(n, n_labeled, n_classes=2, seed=0):
    data = make_multiview_gaussian(n, n_classes=n_classes, separation=1.5, random_state=seed)
    return data.data, hide_labels(data.target, n_labeled, random_state=seed), data.target, data.views


def scores_before_calibration(model, X):
    """Of the first member, up to a constant of each class."""
    matrices, present = model._read_views(X)
    member = model._model.members[0]
    return (
        member.logits([term.scores(matrices, present) for term in member.terms], present) - member.offset
    ) / member.scale


class TestWhichTakePart:
    def test_all_by_default(self, partly):
        model = CMVMED(views=WIDTHS).fit(partly.X, partly.y)
        assert model.members_["name"] == names_of(ALL)

    @pytest.mark.parametrize("left_out", ALL)
    def test_each_can_be_left_out(self, left_out, partly):
        kept = [name for name in ALL if name != left_out]
        model = CMVMED(views=WIDTHS, members=kept).fit(partly.X, partly.y)
        assert model.members_["name"] == names_of(kept)
        assert model.score(partly.X, partly.truth) > 0.85

    @pytest.mark.parametrize("name", ALL)
    def test_each_can_be_alone(self, name, partly):
        by_name = CMVMED(views=WIDTHS, members=name).fit(partly.X, partly.y)
        by_list = CMVMED(views=WIDTHS, members=[name]).fit(partly.X, partly.y)
        assert by_name.members_["name"] == names_of([name])
        np.testing.assert_array_equal(by_name.predict_proba(partly.X), by_list.predict_proba(partly.X))
        assert by_name.score(partly.X, partly.truth) > 0.7

    def test_the_order_of_names_does_not_matter(self, partly):
        first, second = (
            CMVMED(views=WIDTHS, members=names).fit(partly.X, partly.y).predict_proba(partly.X)
            for names in (["view_graphs", "consensus", "lda"], ("lda", "view_graphs", "consensus"))
        )
        np.testing.assert_array_equal(first, second)

    @pytest.mark.parametrize(
        "given", ["mean", "Lda", [], ["lda", "mean"], 3, ["lda", None], "linear", ["lda", "rbf"]], ids=str
    )
    def test_bad_names_are_one_clear_error(self, given, partly):
        with pytest.raises(ValueError, match="members"):
            CMVMED(views=WIDTHS, members=given).fit(partly.X, partly.y)

    def test_a_single_view_has_one_graph(self, partly):
        model = CMVMED().fit(partly.X, partly.y)
        assert model.members_["name"] == OF_ONE_VIEW

    @pytest.mark.parametrize("given", ["callable", "precomputed"])
    def test_given_kernels_have_views_and_consensus_alone(self, given, partly, assert_finite):
        X = [partly.a, partly.b]
        kernel = "precomputed" if given == "precomputed" else lambda A, B: A @ B.T
        X = [view @ view.T for view in X] if given == "precomputed" else X
        model = CMVMED(kernel=kernel).fit(X, partly.y)
        assert model.members_["name"] == ["view view0", "view view1", "consensus"]
        assert_finite(model, X)

    def test_a_view_of_no_weight_takes_part_in_no_member(self, partly):
        model = CMVMED(views=WIDTHS, view_weights=[1.0, 0.0]).fit(partly.X, partly.y)
        assert model.members_["name"] == OF_ONE_VIEW
        X = partly.X.copy()
        X[:, 3:] += 100.0
        np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(partly.X))

    @pytest.mark.parametrize("kinds", [["lda"], ["views", "lda", "trees"], ["view_graphs", "trees_all"]])
    def test_without_the_consensus_there_are_no_sweeps(self, kinds, partly):
        model = CMVMED(views=WIDTHS, members=kinds).fit(partly.X, partly.y)
        assert model.n_iter_ == 1
        assert model.consensus_weight_ == 0.0
        assert "consensus" not in model.members_["name"]

    def test_the_paper_has_the_consensus_alone(self, partly):
        model = CMVMED.paper(views=WIDTHS)
        assert model.members is None
        table = model.fit(partly.X, partly.y).members_
        assert table["name"] == ["consensus"]
        np.testing.assert_array_equal(table["weight"], [1.0])


class TestTable:
    def test_worth_compares_the_likelihood_of_held_out_labels_with_that_of_the_labels_shares(self, partly):
        model = CMVMED(views=WIDTHS).fit(partly.X, partly.y)
        held = partly.y[model.held_out_rows_]
        counts = np.bincount(partly.y[partly.y >= 0])
        shares = (counts + 0.5) / (counts.sum() + 1.0)
        gain = np.log(shares)[held].sum() + held.size * model.members_["log_loss"]
        np.testing.assert_allclose(model.members_["worth"], 1.0 / (1.0 + np.exp(gain)), rtol=1e-9)
        assert np.isnan(CMVMED(views=WIDTHS, members=None).fit(partly.X, partly.y).members_["worth"]).all()

    @pytest.mark.parametrize("problem", ["partly", "partly_three"])
    def test_weights_sum_to_one_and_all_columns_have_a_value_per_member(self, problem, request):
        data = request.getfixturevalue(problem)
        table = CMVMED(views=WIDTHS).fit(data.X, data.y).members_
        assert list(table) == ["name", "weight", "accuracy", "log_loss", "worth"]
        assert table["weight"].sum() == pytest.approx(1.0)
        assert (table["weight"] > 0.0).all()
        assert ((table["accuracy"] >= 0.0) & (table["accuracy"] <= 1.0)).all()
        assert (table["log_loss"] > 0.0).all()
        frame = pd.DataFrame(table)
        assert frame.shape == (8, 5)
        assert frame.notna().all(axis=None)

    def test_a_view_of_noise_hardly_counts(self):
        """Held-out labels make its probabilities nearly equal, whatever its weight."""
        X, y, _ = clusters(labels=8)
        X = np.hstack([X, np.random.default_rng(1).normal(size=(len(X), 3))])
        model = CMVMED(views=[3, 3, 3]).fit(X, y)
        table = pd.DataFrame(model.members_).set_index("name")
        views = table.loc[["view view0", "view view1"]]
        assert table.loc["view view2", "log_loss"] > views["log_loss"].max()
        assert table.loc["view view2", "worth"] < views["worth"].min()
        largest = {name: p.max(axis=1).mean() for name, p in model.predict_proba_by_member(X).items()}
        assert largest["view view2"] < 0.6 < min(largest["view view0"], largest["view view1"])

    def test_nothing_is_known_where_no_label_was_held_out(self, partly):
        table = CMVMED(views=WIDTHS, members=None).fit(partly.X, partly.y).members_
        assert np.isnan(table["accuracy"]).all()

    def test_files_and_copies_keep_it(self, partly):
        model = CMVMED(views=WIDTHS).fit(partly.X, partly.y)
        copy = pickle.loads(pickle.dumps(model))
        assert copy.members_["name"] == model.members_["name"]
        np.testing.assert_array_equal(copy.predict_proba(partly.X), model.predict_proba(partly.X))


def biased(n_drawn=(24, 6), seed=0):
    """Two well separated classes of 30 % and 70 %, whose labels are mostly of the first."""
    rng = np.random.default_rng(seed)
    truth = (np.arange(300) % 10 >= 3).astype(int)
    X = np.hstack([3.0 * truth[:, None] * [1.0, 0.5] + rng.normal(size=(300, 2)) for _ in range(2)])
    y = np.full(300, -1)
    for code, n in enumerate(n_drawn):
        y[np.flatnonzero(truth == code)[:n]] = code
    return X, y, truth


DRAW = "The labels do not look like a random draw"


class TestHowLabelsWereDrawn:
    def test_a_biased_draw_warns(self):
        X, y, _ = biased()
        with pytest.warns(UserWarning, match=rf"{DRAW} .* class 0 is 80% of the labeled rows.*labels_drawn=.per_class"):
            CMVMED(views=[2, 2]).fit(X, y)

    @pytest.mark.parametrize("settings", [{"labels_drawn": "per_class"}, {"class_prior": [0.3, 0.7]}], ids=str)
    def test_no_warning_where_it_would_not_help(self, settings):
        X, y, _ = biased()
        assert CMVMED(views=[2, 2], **settings).fit(X, y).n_views_ == 2

    def test_a_fair_draw_does_not_warn(self):
        X, y, _ = biased(n_drawn=(9, 21))
        assert CMVMED(views=[2, 2]).fit(X, y).class_prior_[1] == pytest.approx(0.7, abs=0.05)

    def test_the_labels_shares_do_not_count_if_drawn_per_class(self):
        X, y, truth = biased()
        per_class = CMVMED(views=[2, 2], labels_drawn="per_class").fit(X, y)
        with pytest.warns(UserWarning, match=DRAW):
            random = CMVMED(views=[2, 2], labels_drawn="random").fit(X, y)
        assert per_class.class_prior_[1] == pytest.approx(truth[y == -1].mean(), abs=0.05)
        assert random.class_prior_[1] < per_class.class_prior_[1]

    def test_equal_counts_are_taken_as_drawn_per_class(self):
        X, y, _ = biased(n_drawn=(8, 9))
        unknown, per_class, random = (
            CMVMED(views=[2, 2], labels_drawn=drawn).fit(X, y).predict_proba(X)
            for drawn in ("unknown", "per_class", "random")
        )
        np.testing.assert_array_equal(unknown, per_class)
        assert np.abs(unknown - random).max() > 1e-4

    def test_unequal_counts_are_taken_as_drawn_at_random(self):
        X, y, _ = biased(n_drawn=(9, 21))
        unknown, random = (
            CMVMED(views=[2, 2], labels_drawn=drawn).fit(X, y).predict_proba(X) for drawn in ("unknown", "random")
        )
        np.testing.assert_array_equal(unknown, random)

    @pytest.mark.parametrize("given", ["stratified", None, True])
    def test_a_bad_choice_is_an_error(self, given, partly):
        with pytest.raises(ValueError, match="labels_drawn"):
            CMVMED(views=WIDTHS, labels_drawn=given).fit(partly.X, partly.y)


def recordings(seed=0, n_groups=24, size=8, effect=6.0):
    """Rows of recordings that have an offset of their own, far larger than what the class changes."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    truth = group % 2
    X = np.hstack(
        [
            rng.normal(size=(n_groups, 3))[group] * effect
            + 0.5 * truth[:, None]
            + 0.3 * rng.normal(size=(group.size, 3))
            for _ in range(2)
        ]
    )
    y = np.where(group < n_groups // 2, truth, -1)
    return X, y, truth, group


class TestGroups:
    @pytest.mark.filterwarnings("ignore:The expected accuracy", "ignore:The model learned nothing")
    def test_labels_of_one_group_are_held_out_together(self):
        X, y, truth, group = recordings()
        alone = CMVMED(views=[3, 3]).fit(X, y)
        grouped = CMVMED(views=[3, 3]).fit(X, y, groups=group)
        assert alone.accuracy_estimate().held_out > 0.95  # other rows of the same recording tell the class
        assert grouped.accuracy_estimate().held_out < 0.8
        accuracy = grouped.score(X[y == -1], truth[y == -1])
        assert abs(grouped.accuracy_estimate().held_out - accuracy) < abs(alone.accuracy_estimate().held_out - accuracy)

    @pytest.mark.filterwarnings("ignore:The expected accuracy", "ignore:The model learned nothing")
    def test_the_names_of_groups_do_not_matter(self):
        X, y, _, group = recordings()
        names = np.array([f"recording {number:02d}" for number in group])
        model = CMVMED(views=[3, 3], n_stages=1)
        expected = model.fit(X, y, groups=group).predict_proba(X)
        for given in (names, names.astype(object), names.tolist(), pd.Series(names), group + 0.5):
            found = model.fit(X, y, groups=given).predict_proba(X)
            np.testing.assert_allclose(found, expected, atol=1e-12)

    def test_groups_of_one_row_are_no_groups(self):
        X, y, _ = clusters()
        first, second = (CMVMED(views=[3, 3], members="lda").fit(X, y, groups=own) for own in (None, np.arange(len(y))))
        found, expected = (scores_before_calibration(model, X) for model in (second, first))  # whose folds differ
        np.testing.assert_allclose(found, expected, atol=1e-10)

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (np.arange(7), r"groups must have one entry for each of the 40 rows, but has the shape \(7,\)"),
            (np.zeros((40, 2)), r"groups must have one entry for each of the 40 rows, but has the shape \(40, 2\)"),
            ("subject", r"groups must have one entry for each of the 40 rows"),
            ([None] * 40, "groups has no group for row 0"),
            (np.where(np.arange(40) == 3, np.nan, 1.0), "groups has no group for row 3"),
            (pd.Series([1.0] * 5 + [None] * 35), "groups has no group for row 5"),
        ],
        ids=["short", "table", "text", "None", "NaN", "pandas"],
    )
    def test_bad_groups_are_one_clear_error(self, groups, message, partly):
        with pytest.raises(ValueError, match=message):
            CMVMED(views=WIDTHS).fit(partly.X, partly.y, groups=groups)

    def test_a_class_of_a_single_group_is_warned_of(self, partly):
        group = np.where(partly.y == 1, 100, np.arange(40))
        with pytest.warns(UserWarning, match="Class 1 has labeled rows of one group only, or equal ones, which"):
            CMVMED(views=WIDTHS).fit(partly.X, partly.y, groups=group)


class TestWarnings:
    @pytest.mark.parametrize("problem", ["partly", "partly_three"])
    def test_none_for_good_data(self, problem, request):
        data = request.getfixturevalue(problem)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            CMVMED(views=WIDTHS).fit(data.X, data.y)
        assert [str(warning.message) for warning in seen] == []

    def test_a_class_with_a_single_label(self, partly_three):
        y = partly_three.y.copy()
        y[np.flatnonzero(y == 2)[1:]] = -1
        with pytest.warns(UserWarning, match="Class 2 has one labeled row, which cannot be held out"):
            CMVMED(views=WIDTHS).fit(partly_three.X, y)
        y[np.flatnonzero(y == 1)[1:]] = -1
        with pytest.warns(UserWarning, match=r"Class 1 has one labeled row \(and 1 more such class\), which"):
            CMVMED(views=WIDTHS).fit(partly_three.X, y)

    def test_nothing_learned(self):
        rng = np.random.default_rng(3)
        X, y = rng.normal(size=(300, 6)), np.where(np.arange(300) < 30, np.arange(300) % 2, -1)
        with pytest.warns(
            UserWarning, match="The model learned nothing: held-out labels are predicted correctly no more often"
        ):
            CMVMED(views=[3, 3]).fit(X, y)

    def test_expected_accuracy_below_the_largest_class(self):
        rng = np.random.default_rng(0)
        noise = rng.normal(size=(300, 3))
        X = np.hstack([noise, noise + 0.1 * rng.normal(size=(300, 3))])  # views that agree, on nothing
        y = np.where(np.arange(300) < 30, np.arange(300) % 4 == 0, -1)
        with pytest.warns(UserWarning, match="The expected accuracy, .* is not above the share of the largest class"):
            CMVMED(views=[3, 3]).fit(X, y)

    @pytest.mark.filterwarnings("ignore:The model learned nothing")  # with given shares
    def test_shares_that_labels_leave_open(self):
        """Also what to write; shares that are given leave nothing open."""
        rng = np.random.default_rng(6)
        truth = (rng.random(200) < 0.6).astype(int)
        X = 0.8 * truth[:, None] + rng.normal(size=(200, 4))
        y = np.where(np.arange(200) < 8, np.array(["rest", "walk"])[truth], "")
        model = CMVMED(views=[2, 2], unlabeled="")
        with pytest.warns(UserWarning, match=r"depends on the class shares, and 8 labels .*class_prior=\{'rest': \(0"):
            model.fit(X, y)
        found = model.share_sensitivity_
        assert found["changed"] > 0.5
        assert found["accuracy_low"] < -0.05
        given = CMVMED(views=[2, 2], unlabeled="", class_prior={"walk": 0.6}).fit(X, y).share_sensitivity_
        np.testing.assert_allclose([given["low"], given["high"]], [[0.4, 0.6]] * 2, atol=1e-9)
        assert given["changed"] == 0.0

    def test_one_line_each(self, partly):
        y = np.where(np.arange(40) < 2, partly.y, -1)
        with pytest.warns(UserWarning, match="one labeled row") as caught:
            CMVMED(views=WIDTHS).fit(partly.X, y)
        assert len(caught) == 1
        assert "\n" not in str(caught[0].message)
        assert caught[0].filename == __file__


class TestAccuracyEstimate:
    def test_fields(self, partly):
        estimate = CMVMED(views=WIDTHS).fit(partly.X, partly.y).accuracy_estimate()
        assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0
        assert estimate.level == 0.9
        assert estimate.n_held_out == 10.0
        assert estimate.gained >= 0.0
        assert estimate.lost >= 0.0
        difference = (estimate.gained - estimate.lost) / estimate.n_held_out
        assert estimate.held_out - estimate.labels_only == pytest.approx(difference)

    @pytest.mark.parametrize(
        ("gained", "lost", "effect"),
        [
            (12.0, 1.0, "helped"),
            (1.0, 12.0, "did harm"),
            (2.0, 1.0, "helped (2 gained, 1 lost), which may be chance"),
            (0.0, 0.0, "made no"),
        ],
    )
    def test_text_says_whether_the_unlabeled_rows_helped(self, gained, lost, effect):
        estimate = AccuracyEstimate(0.8, 0.7, 0.9, 0.9, 0.8, 50.0, 0.8 - (gained - lost) / 50.0, gained, lost)
        text = str(estimate)
        assert text.startswith("Expected accuracy 80.0% (90% interval 70.0% to 90.0%). Of 50 held-out labels 80.0%")
        assert f"by the labels alone: the unlabeled rows {effect}" in text

    def test_text_of_a_fit(self, partly):
        text = str(CMVMED(views=WIDTHS).fit(partly.X, partly.y).accuracy_estimate())
        assert "by the labels alone: the unlabeled rows" in text
        alone = str(CMVMED(views=WIDTHS, members="consensus").fit(partly.X, partly.y).accuracy_estimate())
        assert alone.endswith("are predicted correctly.")

    def test_text_without_held_out_labels(self, partly):
        y = np.where(np.arange(40) < 2, partly.y, -1)
        with pytest.warns(UserWarning, match="one labeled row"):
            estimate = CMVMED(views=WIDTHS).fit(partly.X, y).accuracy_estimate()
        assert estimate.n_held_out == 0.0
        assert str(estimate).startswith("Expected accuracy unknown: no label could be held out.")

    def test_unlabeled_rows_that_help_are_said_to_help(self):
        angle = np.random.default_rng(0).uniform(0.0, np.pi, 400)
        truth = np.arange(400) % 2
        moons = np.column_stack(
            [np.cos(angle) * (1 - 2 * truth) + truth, np.sin(angle) * (1 - 2 * truth) + 0.3 * truth]
        )
        X = np.hstack([moons, moons]) + 0.03 * np.random.default_rng(1).normal(size=(400, 4))
        y = np.where(np.arange(400) < 40, truth, -1)
        model = CMVMED(views=[2, 2], members=["lda", "view_graphs"]).fit(X, y)
        assert "the unlabeled rows helped" in str(model.accuracy_estimate())
        assert model.score(X, truth) > 0.95


def check_training_rows(model, X, y, atol=1e-8):
    """Training rows without a label are predicted as the fit has them."""
    unlabeled = y == -1
    expected = model.label_distributions_[unlabeled]
    np.testing.assert_allclose(model.predict_proba(X[unlabeled]), expected, rtol=0.0, atol=atol)
    np.testing.assert_array_equal(model.predict(X[unlabeled]), model.transduction_[unlabeled])
    assert np.isfinite(model.decision_function(X)).all()


class TestTrainingRows:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_dense_and_sparse(self, n_classes):
        X, y, _ = clusters(n_classes=n_classes)
        check_training_rows(CMVMED(views=[3, 3]).fit(X, y), X, y)
        counts = sparse.csr_array(np.where(X > 1.0, np.round(X), 0.0))
        check_training_rows(CMVMED(views=[3, 3]).fit(counts, y), counts, y)

    @pytest.mark.parametrize("grid", [False, True])
    def test_missing_views(self, grid):
        """On a grid, rows that lack a view may be equal to others in all that they have."""
        X, y, _ = clusters(n=200)
        X, rng = np.round(X) if grid else X.copy(), np.random.default_rng(0)
        first, second = rng.uniform(size=(2, 200)) < 0.3
        X[first, :3], X[second & ~first, 3:] = np.nan, np.nan
        check_training_rows(CMVMED(views=[3, 3]).fit(X, y), X, y)

    @pytest.mark.filterwarnings("ignore:The (expected accuracy|class of)")
    @pytest.mark.parametrize("scaling", ["standard", "unit", None])
    def test_rows_that_scaling_makes_equal(self, scaling):
        X, y, _ = clusters(n_features=1)
        X = np.round(X)
        model = CMVMED(views=[1, 1], scaling=scaling).fit(X, y)
        check_training_rows(model, X, y)

    def test_low_rank(self):
        X, y, _, views = gaussian_task(400, 24, n_classes=3)
        check_training_rows(CMVMED(views=views, approximation=60).fit(X, y), X, y)

    def test_given_kernels(self, partly):
        K = [partly.a @ partly.a.T, partly.b @ partly.b.T]
        model = CMVMED(kernel="precomputed").fit(K, partly.y)
        rows = [kernel[partly.hidden] for kernel in K]
        np.testing.assert_allclose(model.predict_proba(rows), model.label_distributions_[partly.hidden], atol=1e-8)


def assert_same_probabilities(first, second, atol=1e-6):
    np.testing.assert_allclose(first, second, rtol=0.0, atol=atol)


SETTINGS = [{}, {"kernel": "cosine"}, {"scaling": "unit"}, {"labels_drawn": "random"}]


class TestSymmetries:
    """What must not matter; rows on a grid have many ties."""

    @pytest.fixture(
        params=[(2, False), (3, True), pytest.param((5, True), marks=pytest.mark.slow)], ids=["2", "3, grid", "5, grid"]
    )
    def task(self, request):
        n_classes, grid = request.param
        X, y, _ = clusters(n=90, n_classes=n_classes, labels=4, separation=1.5, seed=n_classes)
        return np.round(X) if grid else X, y

    @pytest.mark.parametrize("settings", SETTINGS, ids=str)
    def test_the_order_of_rows_and_classes(self, task, settings):
        X, y = task
        rng, model = np.random.default_rng(0), CMVMED(**settings)
        views = [X[:, :3], X[:, 3:]]
        expected = model.fit(views, y).predict_proba(views)
        order = rng.permutation(len(y))
        assert_same_probabilities(model.fit([v[order] for v in views], y[order]).predict_proba(views), expected)
        other = rng.permutation(y.max() + 1)
        exchanged = model.fit(views, np.where(y == -1, -1, other[y])).predict_proba(views)
        assert_same_probabilities(exchanged[:, other], expected)

    @pytest.mark.parametrize("settings", SETTINGS, ids=str)
    def test_the_order_of_views(self, task, settings):
        X, y = task
        views, model = [X[:, :3], X[:, 3:]], CMVMED(members=WITHOUT_TREES, **settings)
        expected = model.fit(views, y).predict_proba(views)
        assert_same_probabilities(model.fit(views[::-1], y).predict_proba(views[::-1]), expected)

    def test_the_order_of_views_changes_few_classes_by_trees(self, task):
        """Trees draw columns and thresholds by the numbers of columns."""
        X, y = task
        views, model = [X[:, :3], X[:, 3:]], CMVMED()
        first, second = (model.fit(own, y).predict_proba(own) for own in (views, views[::-1]))
        assert (first.argmax(axis=1) == second.argmax(axis=1)).mean() > 0.95
        assert np.abs(first - second).mean() < 0.03

    @pytest.mark.parametrize("settings", SETTINGS, ids=str)
    def test_scale_and_container(self, task, settings):
        X, y = task
        model = CMVMED(views=[3, 3], **settings)
        expected = model.fit(X, y).predict_proba(X)
        other = X * np.repeat([1e-3, 1e5], 3)
        assert_same_probabilities(model.fit(other, y).predict_proba(other), expected)
        assert_same_probabilities(model.fit(sparse.csr_matrix(X), y).predict_proba(X), expected)

    @pytest.mark.parametrize("settings", SETTINGS, ids=str)
    @pytest.mark.parametrize("grouped", [False, True])
    def test_a_weight_counts_a_row_that_often(self, task, settings, grouped):
        X, y = task
        rng = np.random.default_rng(0)
        counts = rng.integers(0, 4, len(y))
        counts[np.unique(y, return_index=True)[1]] = 1  # a label of each class
        counts[y.max() + 1 : 2 * y.max() + 2] = 2  # and another
        groups = rng.integers(0, 25, len(y)) if grouped else None
        model, repeated = CMVMED(views=[3, 3], **settings), np.repeat(np.arange(len(y)), counts)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Class .* has labeled rows of one group")
            weighted = model.fit(X, y, sample_weight=counts, groups=groups).predict_proba(X)
            groups = None if groups is None else groups[repeated]
            assert_same_probabilities(model.fit(X[repeated], y[repeated], groups=groups).predict_proba(X), weighted)

    def test_rows_of_no_weight_change_nothing(self, task):
        X, y = task
        weights = np.ones(len(y))
        weights[[1, 30, 31, 50]] = 0.0
        kept = weights > 0.0
        model = CMVMED(views=[3, 3])
        found = model.fit(X, y, sample_weight=weights)
        assert_same_probabilities(found.label_distributions_[[30, 31, 50]], found.predict_proba(X[[30, 31, 50]]))
        assert_same_probabilities(found.predict_proba(X), model.fit(X[kept], y[kept]).predict_proba(X))


class TestManyRows:
    def test_low_rank_kernels_by_themselves(self):
        X, y, truth, views = gaussian_task(2100, 30, n_classes=3)
        model = CMVMED(views=views, n_stages=2).fit(X, y)
        assert model.approximation_["kind"] == "nystroem"
        assert model.members_["name"][2] == "lda"
        check_training_rows(model, X, y, atol=1e-5)
        assert model.score(X, truth) > 0.8

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_a_sample_of_the_rows(self, n_classes):
        X, y, truth, views = gaussian_task(1500, 30, n_classes=n_classes)
        model = CMVMED(views=views, approximation=60)
        with tuning_context(replace(Tuning(), sample_rows=500)):
            model.fit(X, y)
        assert model.approximation_["n_annealed"] == 500
        check_training_rows(model, X, y)
        assert model.members_["weight"].sum() == pytest.approx(1.0)
        assert model.score(X, truth) > 0.8

    @pytest.mark.slow
    @pytest.mark.parametrize("members", ["auto", ["lda", "view_graphs"]])
    def test_a_file_of_many_rows(self, members, tmp_path):
        X, y, truth, views = gaussian_task(6000, 40)
        np.save(tmp_path / "rows.npy", X)
        model = CMVMED(views=views, approximation=100, n_stages=2, members=members)
        in_memory = model.fit(X, y).predict_proba(X)
        model.fit(tmp_path / "rows.npy", y)
        assert model.approximation_["n_annealed"] == 5000
        assert_same_probabilities(model.predict_proba(tmp_path / "rows.npy"), in_memory, atol=1e-5)
        check_training_rows(model, X, y, atol=1e-5)
        assert model.score(X, truth) > 0.8

    def test_more_labels_than_members_learn_from(self):
        X, y, truth, views = gaussian_task(1300, 1100)
        model = CMVMED(views=views, members=["views", "lda"]).fit(X, y)
        assert model.accuracy_estimate().n_held_out <= 1000.0
        assert abs(model.accuracy_estimate().mean - model.score(X[y == -1], truth[y == -1])) < 0.1
        check_training_rows(model, X, y)

    def test_few_of_many_labels_may_be_of_a_rare_class(self):
        X, y, _, views = gaussian_task(300, 260, n_classes=3)
        y[np.flatnonzero(y == 2)[3:]] = -1
        with tuning_context(replace(Tuning(), max_member_labels=40)):
            model = CMVMED(views=views, labels_drawn="per_class", n_stages=1).fit(X, y)
        assert model.accuracy_estimate().n_held_out <= 43.0
        check_training_rows(model, X, y)


@pytest.mark.parametrize("n_classes", [2, 12, 40])
def test_many_classes(n_classes, assert_finite):
    X, y, truth = clusters(n=10 * n_classes, n_classes=n_classes, labels=2, separation=6.0)
    model = CMVMED(views=[3, 3], n_stages=2).fit(X, y)
    assert_finite(model, X)
    assert model.predict_proba(X).shape == (10 * n_classes, n_classes)
    assert model.score(X, truth) > 0.8


def test_many_views(assert_finite):
    views = np.hstack([clusters(seed=seed)[0][:, :1] for seed in range(12)])
    _, y, truth = clusters()
    model = CMVMED(views=[1] * 12).fit(views, y)
    assert len(model.members_["name"]) == 18
    assert_finite(model, views)
    assert model.score(views, truth) > 0.9


def test_a_fit_that_is_stopped_has_the_prior_weights(partly):
    class Stop:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context):
            return context.task_name == "stage"

    model = CMVMED(views=WIDTHS).set_callbacks(Stop()).fit(partly.X, partly.y)
    expected = [1 / 14, 1 / 14, *[1 / 7] * 6]  # equal for all kinds, and among the two views
    np.testing.assert_allclose(model.members_["weight"], expected, rtol=1e-12)
    assert model.history_["stage"].max() == 1
    with pytest.raises(ValueError, match="let the fit run to its end"):
        model.accuracy_estimate()


def test_probabilities_by_member_are_those_that_are_pooled():
    """Each is a distribution; the one member of a model with a single one is, up to its scale and shares, the model."""
    X, y, _ = clusters()
    model = CMVMED(views=WIDTHS_OF_CLUSTERS).fit(X, y)
    found = model.predict_proba_by_member(X)
    assert list(found) == model.members_["name"]
    for p in found.values():
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    consensus = CMVMED(views=WIDTHS_OF_CLUSTERS, members="consensus").fit(X, y)
    np.testing.assert_allclose(consensus.predict_proba_by_member(X)["consensus"], consensus.predict_proba(X))
    alone = CMVMED(views=WIDTHS_OF_CLUSTERS, members=["lda"], class_prior=None).fit(X, y)
    assert (alone.predict_proba_by_member(X)["lda"].argmax(axis=1) == alone.predict_proba(X).argmax(axis=1)).all()


def test_a_row_without_any_view_has_the_class_prior_by_every_member():
    X, y, _ = clusters()
    model = CMVMED(views=WIDTHS_OF_CLUSTERS).fit(X, y)
    with pytest.warns(UserWarning, match="no view present"):
        found = model.predict_proba_by_member(np.full((1, 6), np.nan))
    for p in found.values():
        np.testing.assert_allclose(p[0], model.class_prior_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_rows_that_noise_makes_unequal_change_nothing(n_classes):
    """Whether rows are equal decides how labels are held out and which nodes a graph has: a tiny difference must not matter."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(75) % n_classes, 2)
    X = np.repeat(rng.normal(size=(n_classes, 8))[truth[::2]] * 1.2 + rng.normal(size=(75, 8)), 2, axis=0)
    order = rng.permutation(150)
    X, y = X[order], np.where(np.arange(150) < 6 * n_classes, truth[order], -1)
    model, noise = CMVMED(views=[4, 4]), 1e-12 * rng.normal(size=X.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = (model.fit(rows, y).label_distributions_ for rows in (X, X + noise))
    np.testing.assert_allclose(after, before, rtol=0.0, atol=1e-3)
