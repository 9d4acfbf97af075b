"""The benchmark of raw recordings on the suite's splits: what is learned from which rows, kept and reported."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.raw_recordings import METHODS, compare, minirocket_features, parse, report, sensor_features
from benchmarks.suite import sets
from benchmarks.suite.sets import SERIES, DataSet, data_folder, load
from benchmarks.suite.splits import Cell, draw
from benchmarks.suite.store import Store
from tests.core.factories import rejects

N_SAMPLES = 40
CELL = Cell("tiny_series", 5, "per_class")
AEON = pytest.mark.skipif(find_spec("aeon") is None, reason="needs aeon")


def tiny(shuffled=False):
    """Three classes of 30 recordings that differ in frequency, in two sensors of two channels and one."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 30)
    phase = rng.uniform(0.0, 2.0 * np.pi, (y.size, 3, 1))
    angle = 2.0 * np.pi * (0.05 + 0.1 * y)[:, None, None] * np.arange(N_SAMPLES) + phase
    X = np.sin(angle) + 0.3 * rng.standard_normal((y.size, 3, N_SAMPLES))
    return DataSet("tiny", X, {"a": slice(0, 2), "b": slice(2, 3)}, rng.permutation(y) if shuffled else y)


@pytest.fixture
def tiny_set(monkeypatch):
    monkeypatch.setitem(sets.SERIES, "tiny_series", tiny)
    load.cache_clear()
    yield "tiny_series"
    load.cache_clear()


def given(folder, *methods, **options):
    """Arguments of a run of two splits of the tiny set."""
    options |= {"sets": "tiny_series", "budgets": 5, "draws": "random", "splits": 2}
    words = [f"--{name}={value}" for name, value in options.items()]
    return parse([*words, "--results", str(folder / f"{methods[0]}.jsonl"), "--methods", *methods])


def check_learns(name, data):
    """Nine of ten held-out recordings are recognized."""
    split = draw(data, CELL, 0, 45)
    answer = METHODS[name].solve(split)
    assert np.mean(answer.unlabeled.argmax(axis=1) == split.truth[split.unlabeled]) > 0.9
    assert np.mean(answer.held_out.argmax(axis=1) == split.y_test) > 0.9


class TestMethods:
    @pytest.mark.parametrize(
        "name", ["cmvmed", "start", "lr", "extra_trees", pytest.param("catch22", marks=[AEON, pytest.mark.slow])]
    )
    @pytest.mark.filterwarnings("ignore:The class of .* depends on the class shares")
    def test_learns_recordings_but_not_chance(self, name):
        check_learns(name, tiny())
        rejects(check_learns, name, tiny(shuffled=True))

    @AEON
    def test_minirocket_learns_recordings(self):
        split = draw(tiny(), CELL, 0, 45)
        assert np.mean(METHODS["minirocket"].solve(split).held_out == split.y_test) > 0.9

    @pytest.mark.parametrize("features", [sensor_features, pytest.param(minirocket_features, marks=AEON)])
    def test_features_do_not_depend_on_held_out_rows(self, features):
        split = draw(tiny(), CELL, 0, 45)
        made, other = features(split), features(replace(split, X_test=5.0 * split.X_test[:7] + 3.0))
        np.testing.assert_array_equal(made.X, other.X)
        assert len(other.X_test) == 7
        same = features(replace(split, X_test=split.X))  # a row has the same features wherever it is
        np.testing.assert_allclose(same.X_test, same.X, rtol=0, atol=1e-12)

    def test_each_sensor_is_a_view(self):
        made = sensor_features(draw(tiny(), CELL, 0, 45))
        assert list(made.views) == ["a", "b"]
        assert made.views["a"].stop == made.views["b"].start
        assert made.views["b"].stop == made.X.shape[1]


def check_means(rows, text):
    values = [100.0 * row["held_out"] for row in rows if row["method"] == "lr"]
    assert f"| tiny | 5 | {np.mean(values):.1f} ± {np.std(values, ddof=1):.1f} |" in text.split("**Held-out rows**")[1]


class TestCommand:
    def test_reports_means_over_splits(self, tiny_set, tmp_path):
        arguments = given(tmp_path, "lr")
        text = compare(arguments)
        rows = list(Store(arguments.results).rows().values())
        assert [row["error"] for row in rows] == ["", ""]
        check_means(rows, text)
        rejects(check_means, [row | {"held_out": row["held_out"] - 0.1} for row in rows], text)
        assert report([], []) == "There are no rows yet."

    def test_one_method_is_run_beside_the_rows_of_others(self, tiny_set, tmp_path):
        peers = given(tmp_path, "lr", "start")
        compare(peers)
        again = given(tmp_path, "cmvmed", "start", "lr", peers=peers.results)
        assert "| set | labels per class | cmvmed | start | lr |" in compare(again)
        assert {key.method for key in Store(again.results).rows()} == {"cmvmed"}


@pytest.mark.skipif(not (data_folder() / "suite").is_dir(), reason="needs the data sets of the suite")
@pytest.mark.parametrize("name", SERIES)
def test_splits_are_those_of_the_tables(name):
    table = name.removesuffix("_series")
    cell = Cell(table, 2, "random")
    of_table, of_series = draw(load(table), cell, 3, 300), draw(load(name), cell, 3, 300)
    np.testing.assert_array_equal(of_series.y, of_table.y)
    np.testing.assert_array_equal(of_series.y_test, of_table.y_test)
    assert len(of_series.views) == len(of_table.views)
    assert max(channels.stop for channels in of_series.views.values()) == of_series.X.shape[1]
