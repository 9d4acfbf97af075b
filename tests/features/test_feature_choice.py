"""The choice of features: closed-form held-out scores, agreement between sensors, and what decides."""

import numpy as np
import pytest

from cmvmed.features.feature_choice import EVIDENCE, RIDGE, _alignment, _held_out_r2, _kernel, _left_out, choose_kinds


def problem(n=80, seed=0):
    """Two sensors with one informative and one useless kind of features, and ten labels per class."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat([0, 1], n // 2))
    codes = np.where(np.arange(n) < 20, truth, -1)
    good = {s: rng.normal(size=(n, 6)) + 1.5 * truth[:, None] for s in "ab"}
    bad = {s: rng.normal(size=(n, 6)) for s in "ab"}
    return {s: {"bad": bad[s], "good": good[s]} for s in "ab"}, codes


def test_held_out_scores_are_those_of_refits():
    rng = np.random.default_rng(1)
    K, present = _kernel(rng.normal(size=(12, 5)))
    codes = np.array([0, 1, 2] * 3 + [-1] * 3)
    labeled = np.arange(9)
    Y = np.eye(3)[codes[labeled]]
    Y -= Y.mean(axis=0)
    left_out = np.empty_like(Y)
    for i in labeled:
        kept = labeled[labeled != i]
        left_out[i] = K[i, kept] @ np.linalg.solve(K[np.ix_(kept, kept)] + RIDGE * np.eye(8), Y[kept])
    expected = 1 - np.sum((Y - left_out) ** 2) / np.sum(Y**2)
    assert _held_out_r2(K, present, codes) == pytest.approx(expected, rel=1e-10)


def test_informative_features_are_chosen():
    features, codes = problem()
    chosen, scores = choose_kinds(features, codes)
    assert chosen == {"a": "good", "b": "good"}
    assert [(s.sensor, s.kind) for s in scores if s.chosen] == [("a", "good"), ("b", "good")]
    own = next(s for s in scores if s.sensor == "a" and s.kind == "good")
    other = next(s for s in scores if s.sensor == "b" and s.kind == "good")
    assert own.score == pytest.approx(0.5 * own.held_out_r2 + 0.25 * (own.held_out_r2 + other.held_out_r2))


def test_kinds_that_labels_do_not_reject_are_joined():
    """The likelihood ratio of the left-out labels decides: the same difference of R² rejects only with enough labels."""
    features, codes = problem()
    _, scores = choose_kinds(features, codes)
    score = {s.kind: s.score for s in scores if s.sensor == "a"}
    ratio = ((1 - score["bad"]) / (1 - score["good"])) ** (20 / 2)
    assert ratio > EVIDENCE
    few = np.full_like(codes, -1)
    for c in (0, 1):
        few[np.flatnonzero(codes == c)[:2]] = c
    chosen, scores = choose_kinds(features, few)
    for sensor in "ab":
        own = {s.kind: s for s in scores if s.sensor == sensor}
        best = min(1 - s.score for s in own.values())
        kept = [k for k, s in own.items() if ((1 - s.score) / best) ** (4 / 2) <= EVIDENCE]
        assert chosen[sensor] == "+".join(kept)
        assert [k for k, s in own.items() if s.chosen] == kept
    assert chosen["a"] == "bad+good"


def test_labels_of_single_classes_are_not_counted():
    codes = np.array([0, 0, 1, 1, 1, 2, -1])
    np.testing.assert_array_equal(_left_out(codes), [0, 1, 2, 3, 4])
    assert _left_out(np.array([0, 0, 1, -1])).size == 0


def test_without_labels_agreement_decides():
    features, codes = problem()
    for unlabeled in (np.full_like(codes, -1), np.where(np.arange(codes.size) < 1, 0, -1)):
        chosen, scores = choose_kinds(features, unlabeled)
        assert chosen == {"a": "good", "b": "good"}
        assert all(np.isnan(score.held_out_r2) for score in scores)


def test_without_any_evidence_the_first_kind_is_taken():
    features, codes = problem()
    chosen, scores = choose_kinds({"a": features["a"]}, np.full_like(codes, -1))
    assert chosen == {"a": "bad"}
    assert all(np.isnan(score.agreement) for score in scores)


def test_alignment_of_independent_features_has_mean_zero():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(200):
        A, present = _kernel(rng.normal(size=(20, 50)))
        B, _ = _kernel(rng.normal(size=(20, 50)))
        values.append(_alignment(A, present, B, present))
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(200)
    assert _alignment(A, present, 3 * A, present) == pytest.approx(1.0)


def test_rows_without_a_sensor_are_left_out():
    features, codes = problem()
    gaps = {s: {k: v.copy() for k, v in kinds.items()} for s, kinds in features.items()}
    for kind in ("bad", "good"):
        gaps["a"][kind][10:20] = np.nan
    _, scores = choose_kinds(gaps, codes)
    _, expected = choose_kinds(
        {"a": {k: np.delete(v, range(10, 20), axis=0) for k, v in features["a"].items()}},
        np.delete(codes, range(10, 20)),
    )
    assert scores[0].held_out_r2 == pytest.approx(expected[0].held_out_r2)
    few = {
        s: {k: np.where(np.arange(80)[:, None] < 3, v, np.nan) for k, v in kinds.items()} for s, kinds in gaps.items()
    }
    assert np.isnan(choose_kinds(few, codes)[1][0].agreement)


def test_constant_features_do_no_harm():
    features, codes = problem()
    features["a"]["constant"] = np.ones((80, 4))
    assert choose_kinds(features, codes)[0]["a"] == "good"
