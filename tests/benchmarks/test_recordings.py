"""The benchmark of raw recordings on a small simulated set: what is measured, kept and reported."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import recordings
from benchmarks.recordings import RecordingSet, auto_split, features, load, plain_split, report, rows_of, run, simulated
from benchmarks.suite.store import Store
from cmvmed.datasets import make_body_motion
from cmvmed.features import SignalFeatures
from tests.core.factories import rejects

pytestmark = pytest.mark.slow  # models are fitted

METHODS = ("CMVMED, auto", "ridge, auto", "CMVMED, plain")


@pytest.fixture(scope="module")
def small():
    """Three of the six activities, of 2 s, under the name of a set."""
    made = simulated(lambda random_state: make_body_motion(50, seconds=2.0, random_state=random_state))
    rows = np.flatnonzero(np.isin(made.target, [0, 2, 5]))
    data = RecordingSet({name: s[rows] for name, s in made.signals.items()}, made.rates, made.target[rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(recordings.SETS, "small", lambda: data)
        patch.setattr(recordings, "N_ROWS", 75)
        yield data
        load.cache_clear()
        rows_of.cache_clear()


@pytest.fixture(scope="module")
def store(small, tmp_path_factory):
    """The rows of a run of two splits."""
    kept = Store(tmp_path_factory.mktemp("recordings") / "rows.jsonl")
    run(["small"], METHODS, [5], range(2), kept)
    return kept


def test_rows_have_accuracies_and_kinds(store, small):
    rows = list(store.rows().values())
    assert len(rows) == len(METHODS) * 2
    for row in rows:
        assert row["error"] == ""
        assert 0.5 < row["unlabeled"] <= 1.0  # three classes
        assert 0.5 < row["held_out"] <= 1.0
    kinds = [row["kinds"] for row in rows if row["method"] == "CMVMED, auto"]
    assert all(set(chosen) == set(small.signals) for chosen in kinds)
    assert {part for chosen in kinds for kind in chosen.values() for part in kind.split("+")} <= {"ranks", "minirocket"}
    assert kinds == [row["kinds"] for row in rows if row["method"] == "ridge, auto"]  # the same features


def test_a_run_goes_on_where_it_was(store, monkeypatch):
    before = store.path.read_bytes()
    monkeypatch.setattr(recordings, "evaluate", None)  # would fail
    run(["small"], METHODS, [5], range(2), store)
    assert store.path.read_bytes() == before


def test_splits_hide_labels_and_share_no_rows(small):
    rows = rows_of("small", 5, 0)
    assert len(rows.X) == 75
    assert np.count_nonzero(rows.y >= 0) == 15
    assert not set(rows.X[:, 0]) & set(rows.X_test[:, 0])
    hidden = rows.y < 0
    np.testing.assert_array_equal(rows.y[~hidden], rows.truth[~hidden])
    codes = np.searchsorted([0, 2, 5], small.target)
    np.testing.assert_array_equal(codes[rows.X[:, 0]], rows.truth)


def test_views_of_a_split_are_the_features_of_its_cases(store, small):
    folder = str(store.path.with_suffix(""))
    rows = rows_of("small", 5, 1)
    split, kinds = auto_split("small", rows, folder)
    for name, kind in kinds.items():
        own = SignalFeatures(kind, sampling_rate=small.rates[name]).fit_transform(small.signals[name])
        np.testing.assert_array_equal(split.X[:, split.views[name]], own[rows.X[:, 0]])
        np.testing.assert_array_equal(split.X_test[:, split.views[name]], own[rows.X_test[:, 0]])
    plain = plain_split("small", rows, folder)
    statistics = features("small", "wrist", "statistics", folder)  # below 1000 Hz
    np.testing.assert_array_equal(plain.X[:, plain.views["wrist"]], statistics[rows.X[:, 0]])


def check_means(rows, text):
    for method in METHODS:
        own = [(row["unlabeled"] + row["held_out"]) / 2 for row in rows if row["method"] == method]
        mean = f"{100 * np.mean(own):.1f}"
        assert f"| {method} | {mean} | {mean} | {mean} |" in text  # the set, the budget, all


def test_the_report_has_the_means(store):
    rows = list(store.rows().values())
    text = report(rows)
    check_means(rows, text)
    other = [row | {"held_out": row["held_out"] - 0.1} for row in rows]
    rejects(check_means, other, text)
    assert "2 splits (0 to 1)" in text
    assert "small: " in text
    assert report([]) == "There are no rows yet."
