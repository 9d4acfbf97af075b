"""The parts of the report of a model: verdict, next steps, calibration, views, map, signals and learning curve."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom

from cmvmed import CMVMED
from cmvmed.members.accuracy import AccuracyEstimate
from cmvmed.pages.formatting import LEVEL, clean, share_interval, short
from cmvmed.workbench import Finding
from cmvmed.workbench.report import learning_curve as curve_module
from cmvmed.workbench.report.comparison import LINEAR, TREES, compare
from cmvmed.workbench.report.held_out import calibration_bins, doubtful_labels
from cmvmed.workbench.report.learning_curve import (
    COST,
    MAX_REPEATS,
    MAX_ROWS,
    CurvePoint,
    curve_seconds,
    forecast,
    learning_curve,
    left_out,
    part_of_labels,
)
from cmvmed.workbench.report.model_facts import HeldOutLabels, column_statistics
from cmvmed.workbench.report.row_map import SHAPES, draw_map, map_positions, shape_path
from cmvmed.workbench.report.sensors import decision_shares, describe_sensors
from cmvmed.workbench.report.verdict import UNKNOWN, next_steps, verdict
from cmvmed.workbench.tables.columns import envelope
from cmvmed.workbench.view_encoders import absent_rows, with_absent_rows


class TestSafeText:
    def test_plain_names_stay(self):
        for name in ("walk", "acc_x", "Größe [m/s²]", "日本語", "<b>", "co\u00adop", "emoji 🚶"):
            assert clean(name) == name == short(name)

    def test_what_is_no_text_is_replaced(self):
        assert clean("a\x00b\x1b\u202e\u2069\ud800\ufeff") == "a\ufffdb" + "\ufffd" * 5
        assert clean("two\nlines\tand \u2028more") == "two lines and more"

    def test_no_mark_of_direction_can_leave_the_isolation(self):
        text = clean("שלום\u2069\u202eabc")
        assert text[0] == "\u2068"
        assert text[-1] == "\u2069"
        assert not set(text[1:-1]) & set("\u2066\u2067\u2068\u2069\u202a\u202b\u202c\u202d\u202e")

    def test_long_names_with_different_ends_stay_different(self):
        one, other = (short("prefix " * 30 + end) for end in ("one", "two"))
        assert one != other
        assert len(one) <= 48
        assert short(" ") == "(empty)"


def estimate_of(mean, low, high, **others):
    known = {"level": LEVEL, "held_out": mean, "n_held_out": 20.0, "labels_only": mean, "gained": 0.0, "lost": 0.0}
    return AccuracyEstimate(mean=mean, low=low, high=high, **(known | others))


def judged(activity, estimate, findings=(), share=0.5):
    """The facts with another estimate and share of the largest class."""
    rest = (1.0 - share) / 2.0
    facts = replace(activity.facts, findings=findings)
    facts.__dict__["estimate"] = estimate
    model = copy(activity.model)
    model.class_prior_, model.labels_drawn = np.array([share, rest, rest]), "random"
    object.__setattr__(facts, "model", model)
    return facts


class TestVerdict:
    @pytest.mark.parametrize(
        ("estimate", "findings", "kind", "label"),
        [
            ((0.92, 0.85, 0.96), [], "yes", "Usable for rows like these"),
            ((0.92, 0.62, 0.98), [], "partial", "too few labels"),
            ((0.60, 0.45, 0.70), [], "open", "Not shown yet"),
            ((0.96, 0.45, 0.99), [], "open", "Cannot be judged yet"),
            ((0.45, 0.30, 0.60), [], "no", "no better than always"),
            ((0.92, 0.85, 0.96), [Finding("error", "marker", "x")], "no", "Correct the data"),
            ((0.92, 0.85, 0.96), [Finding("warning", "leak", "x")], "partial", "warnings"),
            ((0.92, 0.85, 0.96), [Finding("warning", "constant_column", "x")], "yes", "Usable"),
        ],
    )
    def test_by_estimate_largest_class_and_findings(self, activity, estimate, findings, kind, label):
        found = verdict(judged(activity, estimate_of(*estimate), findings))
        assert found.kind == kind
        assert label in found.label

    def test_headline_is_the_mean_or_the_interval(self, activity):
        """An interval is no fact: it holds nine times in ten."""
        for estimate, words in [
            ((0.92, 0.85, 0.96), "Probably about 92 of 100"),
            ((0.92, 0.61, 0.98), "Probably between 61 and 98 of 100"),
            ((0.999, 0.99, 1.0), "Probably nearly all"),
        ]:
            assert verdict(judged(activity, estimate_of(*estimate))).headline.startswith(words)

    def test_an_interval_wider_than_half_says_nothing(self, activity):
        found = verdict(judged(activity, estimate_of(0.963, 0.45, 0.99)))
        assert found.headline == UNKNOWN
        assert "96.3" not in " ".join(found.sentences[:1])
        assert "is unknown with so few labels" in found.sentences[0]

    def test_what_random_rows_say_is_a_sentence_of_its_own(self, activity):
        of_random = {"n_random": 7.0, "random_mean": 0.9, "random_low": 0.7, "random_high": 0.95}
        sentences = verdict(judged(activity, estimate_of(0.92, 0.85, 0.96, **of_random))).sentences
        assert any("labels of random rows say 90.0% (70.0% to 95.0%). This interval" in text for text in sentences)
        others = verdict(judged(activity, estimate_of(0.92, 0.85, 0.96))).sentences
        assert len(others) == len(sentences) - 1

    def test_few_groups_are_named_as_the_reason_of_a_wide_interval(self, activity):
        for n_groups, is_said in [(0, False), (3, True), (8, False)]:
            facts = judged(activity, estimate_of(0.92, 0.61, 0.98, n_groups=n_groups))
            assert ("only 3 groups have labels" in " ".join(verdict(facts).sentences)) is is_said
            assert any("of other groups" in step.action for step in TestNextSteps().steps(facts)) is (n_groups > 0)

    def test_without_opinions_that_learn_from_labels_alone(self, activity):
        found = verdict(judged(activity, estimate_of(0.92, 0.85, 0.96, labels_only=np.nan)))
        assert "nan" not in " ".join(found.sentences)
        assert "labeled rows alone" not in " ".join(found.sentences)


class TestNextSteps:
    def steps(self, facts, curve=None):
        return next_steps(facts, verdict(facts), describe_sensors(facts), curve)

    def test_use_comes_first_if_nothing_is_in_the_way(self, activity):
        found = self.steps(judged(activity, estimate_of(0.93, 0.87, 0.97)))
        assert found[0].action.startswith("Use it: `cmvmed predict")
        assert "7 of 100" in found[0].reason
        assert any(step.action == "Check the views noise and dead" for step in found)

    def test_errors_come_first(self, activity):
        finding = Finding("error", "marker", "The label '?' looks like a marker.")
        found = self.steps(judged(activity, estimate_of(0.93, 0.87, 0.97), [finding]))
        assert found[0].action == "Correct the data"
        assert "Use it" not in " ".join(step.action for step in found)

    def test_number_of_labels_that_narrows_the_interval(self, activity):
        """The width is proportional to 1/√n: at 0.4 it takes four times as many labels to have 0.2."""
        facts = judged(activity, estimate_of(0.7, 0.5, 0.9))
        found = next(step for step in self.steps(facts) if step.action.startswith("Label about"))
        n_more = int(re.search(r"\d+", found.action)[0])
        assert 3 * facts.n_labeled <= n_more < 3 * facts.n_labeled + 5

    def test_a_class_with_few_labels_is_named(self, activity):
        facts = judged(activity, estimate_of(0.93, 0.87, 0.97))
        facts.__dict__["label_counts"] = np.array([30, 20, 2])
        assert any("more rows of walk, until there are at least 3" in step.action for step in self.steps(facts))

    def test_a_class_that_is_not_recognized_is_named(self, activity):
        codes = np.repeat([0, 1, 2], 10)
        predicted = np.where(codes == 1, 2, codes)
        facts = judged(activity, estimate_of(0.93, 0.87, 0.97))
        object.__setattr__(facts, "held_out", HeldOutLabels(np.arange(30), codes, np.eye(3)[predicted]))
        found = next(step for step in self.steps(facts) if step.action == "Label more rows of sit")
        assert found.reason == "0 of its 10 held-out labels are predicted correctly; most others are taken for walk."

    def test_labels_unlike_the_rows(self, activity):
        facts = judged(activity, estimate_of(0.93, 0.87, 0.97), share=0.8)
        facts.model.labels_drawn = "unknown"
        assert any("labels_drawn" in step.action for step in self.steps(facts))

    def test_class_shares_are_asked_for_if_rows_depend_on_them(self, activity):
        for changed, asked in ((0.1, False), (0.37, True)):
            facts = judged(activity, estimate_of(0.92, 0.85, 0.96))
            facts.model.share_sensitivity_ = activity.model.share_sensitivity_ | {"changed": changed}
            found = [step for step in self.steps(facts) if "class_prior in [model]" in step.action]
            assert ["37 %" in step.reason.replace("\N{NO-BREAK SPACE}", " ") for step in found] == [True] * asked


def compared(X, codes, *, groups=None, predicted=None, labels_only=np.nan):
    """The comparison for labeled rows of two classes, all held out, of which the model predicts some wrongly."""
    n = len(codes)
    p = np.eye(2)[codes if predicted is None else predicted]
    table = SimpleNamespace(views={"a": X}, groups=groups)
    estimate = SimpleNamespace(labels_only=labels_only, gained=0.0, lost=0.0)
    held_out = HeldOutLabels(np.arange(n), codes, p)
    facts = SimpleNamespace(codes=codes, table=table, estimate=estimate, held_out=held_out, class_names=["yes", "no"])
    found = compare(facts)
    return {one.name: one for one in found.classifiers}, found


class TestOtherClassifiers:
    def test_labels_are_predicted_by_fits_without_them(self):
        """Classes that have nothing to do with the columns are guessed; fits that knew them would be right."""
        rng = np.random.default_rng(0)
        classifiers, _ = compared(rng.normal(size=(200, 5)), rng.integers(2, size=200))
        assert all(0.3 < classifiers[name].share < 0.7 for name in (TREES, LINEAR))

    def test_groups_are_held_out_together(self):
        """A column that names the group, with one class in each, is of no use for other groups."""
        groups = np.repeat(np.arange(10), 10)
        codes = np.random.default_rng(1).permutation(10)[groups] % 2
        X = np.eye(10)[groups]
        alone, grouped = (compared(X, codes, groups=g)[0] for g in (None, groups.astype(str)))
        assert alone[TREES].share == alone[LINEAR].share == 1.0
        assert max(grouped[TREES].share, grouped[LINEAR].share) < 0.8

    def test_gains_and_losses_are_those_of_the_model(self):
        X = np.repeat([0.0, 1.0], 50)[:, None] + np.zeros((100, 2))
        codes = np.repeat([0, 1], 50)
        classifiers, found = compared(X, codes, predicted=np.where(np.arange(100) < 20, 1, codes))
        assert classifiers["this model"].share == 0.8
        assert (classifiers[TREES].share, classifiers[TREES].gained, classifiers[TREES].lost) == (1.0, 0, 20)
        assert found.sentence.endswith("would do better.")
        assert classifiers[TREES].interval == share_interval(100, 100)

    @pytest.mark.parametrize(
        ("n_wrong", "end"), [(4, "(p = 0.25). On this evidence extra trees would do."), (6, "do better.")]
    )
    def test_the_best_of_two_is_better_by_chance_twice_as_often(self, n_wrong, end):
        """A sign test of four labels that only one predicts correctly has p = 1/8, of six 1/32."""
        X, codes = np.repeat([0.0, 1.0], 50)[:, None] + np.zeros((100, 2)), np.repeat([0, 1], 50)
        _, found = compared(X, codes, predicted=np.where(np.arange(100) < n_wrong, 1, codes))
        assert found.sentence.endswith(end)

    def test_all_are_on_the_scale_of_the_held_out_labels(self):
        codes = np.repeat([0, 1], [30, 10])
        classifiers, found = compared(codes[:, None] + np.zeros((40, 2)), codes, labels_only=0.9)
        assert classifiers["its labels alone"].interval == share_interval(36.0, 40)
        assert "always naming the largest class, yes, 75.0" in found.figure
        assert found.sentence.endswith("On this evidence extra trees would do.")

    def test_gaps_and_labels_of_one_group(self):
        codes = np.repeat([0, 1], 10)
        X = np.where(np.arange(20)[:, None] % 3 == 0, np.nan, codes[:, None]) + np.zeros((20, 2))
        assert compared(X, codes)[0][TREES].share > 0.5
        assert "not compared" in compared(X, codes, groups=np.full(20, "one"))[1].sentence


class TestHeldOut:
    def test_intervals_hold_as_often_as_they_say(self):
        """Jeffreys' interval: coverage over the binomial distribution, averaged over shares."""
        n, shares = 40, np.linspace(0.05, 0.95, 37)
        bounds = np.array([share_interval(k, n) for k in range(n + 1)])
        covered = [binom.pmf(np.arange(n + 1), n, p) @ ((bounds[:, 0] <= p) & (p <= bounds[:, 1])) for p in shares]
        assert abs(np.mean(covered) - LEVEL) < 0.02
        assert share_interval(0, n)[0] == 0.0
        assert share_interval(n, n)[1] == 1.0

    def test_bins_hold_each_label_once(self):
        rng = np.random.default_rng(0)
        p = rng.uniform(0.5, 1.0, 95)
        codes = (rng.random(95) > p).astype(int)
        bins = calibration_bins(HeldOutLabels(np.arange(95), codes, np.column_stack([p, 1.0 - p])))
        n = np.array([entry.n_rows for entry in bins])
        assert n.sum() == 95
        assert n.min() >= 10
        assert n @ [entry.confidence for entry in bins] == pytest.approx(p.sum())
        assert n @ [entry.correct for entry in bins] == pytest.approx((codes == 0).sum())
        assert np.all(np.diff([entry.confidence for entry in bins]) > 0)

    def test_bins_of_equal_probabilities_and_of_few_labels(self):
        same = HeldOutLabels(np.arange(40), np.zeros(40, dtype=int), np.tile([0.9, 0.1], (40, 1)))
        assert [entry.n_rows for entry in calibration_bins(same)] == [40]
        few = HeldOutLabels(np.arange(9), np.zeros(9, dtype=int), np.tile([0.9, 0.1], (9, 1)))
        assert calibration_bins(few) == []

    def test_doubtful_labels_are_contradicted_ones(self, activity):
        codes = np.array([0, 0, 1])
        p = np.array([[0.95, 0.03, 0.02], [0.04, 0.9, 0.06], [0.3, 0.2, 0.5]])
        facts = activity.facts
        object.__setattr__(facts, "held_out", HeldOutLabels(np.array([7, 3, 1]), codes, p))
        (found,) = doubtful_labels(facts)
        assert found[:3] == ("w003", *activity.model.classes_[[0, 1]])


class ExplainedModel(CMVMED):
    """A model whose decisions are explained by two views in the ratio 3 : 1."""

    def explain(self, X):
        scores = np.ones((len(next(iter(X.values()))), 3))
        return {"acc": 3.0 * scores, "gyr": -scores, "noise": 0.0 * scores, "dead": 0.0 * scores, "prior": 9.0 * scores}


class TestViews:
    def test_faults(self, activity):
        lines = {line.name: line for line in describe_sensors(activity.facts).lines}
        assert {name: line.fault for name, line in lines.items()} == {
            "acc": "redundant",
            "gyr": "redundant",
            "noise": "weak",
            "dead": "dead",
        }
        assert "constant" in lines["dead"].remark
        assert "gyr" in lines["acc"].remark

    def test_labeled_rows_unlike_the_others_are_said_to_be(self, activity):
        """Those of a sensor whose scale was doubled after they were labeled."""
        name = activity.model.view_names_[0]
        assert describe_sensors(activity.facts).change == ""
        views = activity.facts.table.views | {name: 3.0 * activity.facts.table.views[name]}
        facts = replace(activity.facts, table=replace(activity.facts.table, views=views))
        found = describe_sensors(facts)
        assert found.change.startswith(f"Labeled rows differ from the training rows: view {name!r} ")
        steps = next_steps(facts, verdict(facts), found, None)
        assert any(found.change in step.reason for step in steps)
        chosen = judged(activity, None)
        chosen.model.labels_drawn = "chosen"
        assert describe_sensors(replace(chosen, table=facts.table)).change == ""

    def test_shares_of_decisions_leave_the_prior_out(self, activity):
        model = ExplainedModel()
        model.__dict__.update(vars(activity.model))
        facts = activity.facts
        object.__setattr__(facts, "model", model)
        assert decision_shares(facts) == pytest.approx({"acc": 0.75, "gyr": 0.25, "noise": 0.0, "dead": 0.0})
        found = describe_sensors(facts)
        assert found.has_shares
        assert found.lines[0].share.replace("\N{NO-BREAK SPACE}", " ") == "75 %"


class TestMatrices:
    def test_statistics_of_sparse_and_dense_views_are_equal(self):
        rng = np.random.default_rng(0)
        dense = np.where(rng.random((30, 6)) < 0.3, rng.random((30, 6)), 0.0)
        absent = np.arange(30) % 7 == 2
        sparse = with_absent_rows(csr_array(dense), absent)
        gaps = np.where(absent[:, None], np.nan, dense)
        assert np.array_equal(absent_rows(sparse), absent)
        assert np.array_equal(absent_rows(gaps), absent)
        for one, other in zip(column_statistics(sparse), column_statistics(gaps), strict=True):
            assert np.allclose(one, other)
        assert np.allclose(column_statistics(gaps)[1], dense[~absent].std(axis=0))


class TestMap:
    def test_positions_are_the_principal_components(self):
        """By the singular values of the standardized columns, computed independently."""
        rng = np.random.default_rng(0)
        views = {"a": rng.normal(size=(40, 3)) * [1.0, 5.0, 0.1], "b": rng.normal(size=(40, 6)) + 3.0}
        positions, explained = map_positions(views, np.arange(40))
        blocks = []
        for matrix in views.values():
            z = np.clip((matrix - matrix.mean(axis=0)) / matrix.std(axis=0), -3.0, 3.0)
            blocks.append(z / np.sqrt(matrix.shape[1]))
        Z = np.hstack(blocks)
        U, s, _ = np.linalg.svd(Z - Z.mean(axis=0))
        assert np.allclose(np.abs(positions), np.abs(U[:, :2] * s[:2]))
        assert explained == pytest.approx((s[:2] ** 2).sum() / (s**2).sum())

    def test_absent_views_are_at_their_mean_and_constant_columns_do_not_count(self):
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
        b[:5] = np.nan
        with_constant = np.column_stack([b, np.ones(40)])
        one, _ = map_positions({"a": a, "b": b}, np.arange(40))
        other, _ = map_positions({"a": a, "b": with_constant}, np.arange(40))
        assert np.isfinite(one).all()
        assert np.allclose(one, other)
        assert map_positions({"a": np.ones((40, 3))}, np.arange(40)) is None

    def test_every_row_has_one_mark_of_its_class(self, activity):
        found = draw_map(activity.facts)
        marks = dict(
            re.findall(r'<g class="((?:consensus|labeled) k\d)"><title>[^<]*</title><path d="([^"]*)"', found.figure)
        )
        drawn = {style: path.count("M") for style, path in marks.items()}
        order = np.argsort(-activity.model.class_prior_, kind="stable")
        codes = activity.model.label_distributions_.argmax(axis=1)
        labeled = np.array([label is not None for label in activity.table.labels])
        for slot, k in enumerate(order):
            assert drawn[f"labeled k{slot}"] == (labeled & (codes == k)).sum()
            assert drawn[f"consensus k{slot}"] == (~labeled & (codes == k)).sum()
        assert [name for name, _, _ in found.legend] == [activity.model.classes_[k] for k in order]

    @pytest.mark.parametrize("slot", range(len(SHAPES)))
    def test_shapes_are_around_their_point(self, slot):
        path = shape_path(100.0, 200.0, slot, 5.0)
        if SHAPES[slot] == "disc":
            assert path.startswith("M94.8 200.0a5.2 5.2")
            return
        corners = np.array([[float(v) for v in pair.split()] for pair in path.strip("Mz").split("L")])
        assert np.all(corners.min(axis=0) < [100.0, 200.0])
        assert np.all(corners.max(axis=0) > [100.0, 200.0])
        assert np.abs(corners - [100.0, 200.0]).max() <= 8.0


def test_envelope_keeps_the_peaks():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=10_001)
    samples[1234], samples[8765] = 50.0, -40.0
    drawn = envelope(samples, 220)[1]
    assert len(drawn) == 220
    assert (drawn.max(), drawn.min()) == (50.0, -40.0)
    assert np.array_equal(envelope(samples[:200], 220)[1], samples[:200])


class TestLearningCurve:
    @pytest.mark.parametrize(("n_rows", "n_refits"), [(100, 1), (3000, 1), (4000, 2), (8000, 4), (16_000, 8)])
    def test_refits_have_a_bounded_part_of_the_rows_of_the_table(self, monkeypatch, n_rows, n_refits):
        made = []
        monkeypatch.setattr(
            curve_module, "_refit", lambda facts, labeled, size, rng: made.append(size) or np.ones(9, bool)
        )
        codes = np.where(np.arange(n_rows) < 60, np.arange(n_rows) % 2, -1)
        facts = SimpleNamespace(codes=codes, class_names=["a", "b"], held_out=None, n_labeled=60)
        curve = learning_curve(facts)
        assert made == [30, 15, 45, 30, 15, 45, 30, 45][:n_refits]
        assert n_refits == 1 or n_refits * min(MAX_ROWS, n_rows) <= COST * n_rows
        assert curve is None or curve.n_refits == n_refits
        made.clear()
        complete = learning_curve(facts, np.inf)
        assert (complete.n_refits, len(made)) == (complete.n_planned, complete.n_planned)

    def test_the_time_of_a_curve_is_bounded_by_its_cost_and_by_its_refits(self):
        assert curve_seconds(10.0, 3000) == curve_seconds(10.0, 10_000) == 10.0 * COST
        assert curve_seconds(10.0, 100_000) == 10.0 * MAX_REPEATS * 3 * MAX_ROWS / 100_000

    def test_a_single_refit_is_told_from_held_out_labels(self, monkeypatch):
        monkeypatch.setattr(curve_module, "_refit", lambda facts, labeled, size, rng: np.ones(9, bool))
        held_out = SimpleNamespace(codes=np.arange(40) % 2, is_right=np.arange(40) < 30)
        facts = SimpleNamespace(codes=np.arange(40) % 2, class_names=["a", "b"], held_out=held_out, n_labeled=40)
        assert [line[-1] for line in learning_curve(facts).lines][:2] == ["1 refit", "held-out labels"]

    def test_judges_and_kept_labels_share_no_group_and_leave_all_classes(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            groups, codes = rng.integers(8, size=40), rng.integers(3, size=40)
            out = left_out(codes, groups, 20, rng)
            assert not set(groups[out]) & set(groups[~out])
            assert (~out).sum() >= 20
            assert set(codes[~out]) == set(codes)
        assert left_out(codes, np.zeros(40, dtype=int), 20, rng).sum() == 0  # one group judges nothing
        assert left_out(codes, np.arange(40), 20, rng).sum() == 20

    def test_parts_keep_the_shares_of_the_classes(self):
        rng = np.random.default_rng(0)
        codes = np.repeat([0, 1, 2], [60, 36, 4])
        for n in (3, 25, 50):
            part = part_of_labels(np.arange(100), codes, n, rng)
            assert len(np.unique(part)) == n
            counts = np.bincount(codes[part], minlength=3)
            assert counts.min() >= 1
            assert np.abs(counts - n * np.array([0.6, 0.36, 0.04])).max() <= 2.0

    def points(self, errors, judged):
        return [CurvePoint(n, judged, round(judged * (1.0 - error)), 1) for n, error in errors.items()]

    def test_a_power_law_is_continued(self):
        errors = {n: 0.4 * (n / 10) ** -0.5 for n in (10, 20, 40, 80)}
        found = forecast(self.points(errors, 100_000), 80)
        assert [entry.n_labels for entry in found] == [120, 160, 320]
        for entry in found:
            assert entry.accuracy == pytest.approx(1.0 - 0.4 * (entry.n_labels / 10) ** -0.5, abs=0.01)

    def test_no_gain_is_promised_where_there_was_none(self):
        found = forecast(self.points({10: 0.2, 20: 0.2, 40: 0.2}, 2000), 40)
        assert all(entry.least_gain < 0.005 for entry in found)
        assert found[1].accuracy == pytest.approx(0.8, abs=0.02)

    def test_few_labels_give_wide_intervals(self):
        errors = {10: 0.3, 20: 0.2, 40: 0.15}
        few, many = (forecast(self.points(errors, judged), 40)[1] for judged in (20, 2000))
        assert few.high - few.low > 3 * (many.high - many.low)
        assert few.least_gain < many.least_gain

    def test_repeats_by_the_same_labels_count_once(self):
        one = forecast([CurvePoint(10, 30, 20, 1), CurvePoint(20, 30, 24, 1)], 20)
        three = forecast([CurvePoint(10, 90, 60, 3), CurvePoint(20, 90, 72, 3)], 20)
        assert one == three
