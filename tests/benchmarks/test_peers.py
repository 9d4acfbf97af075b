"""The comparison with other methods: its rows, limits, store and tables; its measurements take hours."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from benchmarks.peers import __main__ as command
from benchmarks.peers import methods, point
from benchmarks.peers.methods import METHODS, joined, two_views
from benchmarks.peers.report import Point, cheapest, curves, draw_picture, section, size_table, target_table
from benchmarks.peers.rows import N_NEAREST, SETS, enlarged, gaussian_rows
from benchmarks.peers.store import Key, Store


def run(seconds, accuracy=0.9, mib=10.0):
    return {
        "seconds": seconds,
        "mib": mib,
        "accuracy": accuracy,
        "predict_us": 1.0,
        "n_labeled": 20,
        "n_real": 30,
        "n_test": 50,
    }


class TestRows:
    def test_further_rows_are_as_far_from_rows_as_their_nearest(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], 20)
        X = rng.normal(size=(40, 3)) + 100.0 * y[:, None]
        more, classes = enlarged(X, y, 4040, rng)
        np.testing.assert_array_equal(more[:40], X)
        np.testing.assert_array_equal(classes, more[:, 0] > 50.0)
        distances = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1 : N_NEAREST + 1]
        centers = np.array([more[classes == k].mean(axis=0) for k in (0, 1)])
        spread, expected = (more[40:] - centers[classes[40:]]).var(), X[:20].var(axis=0).mean()
        added = (distances**2).mean() / 3  # of each of three columns, if the five directions are unlike
        assert spread == pytest.approx(expected + added, rel=0.2)

    def test_classes_do_not_say_where_further_rows_lie(self):
        X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
        first, again = (enlarged(X, c, 200, np.random.default_rng(1))[0] for c in (y, 1 - y))
        np.testing.assert_array_equal(first, again)

    def test_fewer_rows_are_the_first_ones(self):
        X, y = np.arange(8.0)[:, None], np.arange(8) % 2
        few, classes = enlarged(X, y, 3, np.random.default_rng(0))
        assert (few.ravel().tolist(), classes.tolist()) == ([0.0, 1.0, 2.0], [0, 1, 0])
        assert len(y) > N_NEAREST

    def test_draws_differ_and_are_repeatable(self):
        first, again, other = gaussian_rows(200, 0), gaussian_rows(200, 0), gaussian_rows(200, 1)
        np.testing.assert_array_equal(first.X, again.X)
        assert not np.array_equal(first.X, other.X)
        assert (first.y >= 0).sum() == 100
        assert first.n_real == 200


class TestMethods:
    def test_parts_of_a_graph_are_joined_at_their_nearest_rows(self):
        X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [30.0], [31.0]])
        pairs = np.array([[0, 1], [1, 2], [3, 4], [5, 6]])
        weights = sparse.coo_matrix((np.array([0.5, 0.6, 0.7, 0.8]), pairs.T), shape=(7, 7))
        graph = sparse.csr_matrix(weights + weights.T)
        whole = joined(graph, X)
        assert connected_components(whole)[0] == 1
        assert whole[3, 2] == whole[2, 3] == whole[5, 2] == whole[2, 5] == 0.5
        assert whole.nnz == graph.nnz + 4
        assert joined(whole, X) is whole

    def test_co_training_takes_all_views_but_the_first_as_one(self):
        views = {"a": slice(0, 3), "b": slice(3, 5), "c": slice(5, 9)}
        assert two_views(views) == {"first": slice(0, 3), "others": slice(3, 9)}

    @pytest.mark.parametrize("method", METHODS)
    def test_methods_learn(self, method):
        missing = methods.missing_packages(method)
        if missing:
            pytest.skip(f"{', '.join(missing)} is not installed")
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 150)
        X = rng.normal(size=(150, 6)) + 2.0 * y[:, None]
        model = METHODS[method]({"a": slice(0, 3), "b": slice(3, 6)})
        model.fit(X, np.where(np.arange(150) < 20, y, -1))
        assert np.mean(model.predict(X) == y) > 0.8


class TestLimits:
    def measured(self, monkeypatch, fit, **limits):
        class Model:
            def fit(self, X, y):
                if len(X) > point.SMALL:
                    fit()
                return self

            def predict(self, X):
                return np.zeros(len(X))

        monkeypatch.setitem(METHODS, "test", lambda views: Model())
        return point.measure(Key("gauss", "test", 400, 0), **({"seconds": 60.0, "gib": 1.0} | limits))

    def test_a_fit_is_measured(self, monkeypatch):
        def work():
            kept = np.ones(2**23)  # 64 MiB
            end = time.process_time() + 0.3
            while time.process_time() < end:
                kept += 1.0

        found = self.measured(monkeypatch, work)
        assert found["seconds"] == pytest.approx(0.3, abs=0.2)
        assert found["mib"] == pytest.approx(64.0, abs=32.0)
        assert 0.4 < found["accuracy"] < 0.6

    @pytest.mark.slow
    def test_a_fit_ends_at_its_limits(self, monkeypatch):
        def forever():
            while True:
                pass

        assert self.measured(monkeypatch, forever, seconds=1.0) == {"stopped": "> 1 s"}
        assert self.measured(monkeypatch, lambda: np.ones(2**28)) == {"stopped": "> 1 GiB"}

    def test_a_fit_that_fails_or_dies_is_shown(self, monkeypatch):
        assert self.measured(monkeypatch, lambda: 1 // 0)["stopped"].startswith("ZeroDivisionError")
        assert self.measured(monkeypatch, lambda: sys.exit(3)) == {"stopped": "exit 3"}


class TestRun:
    def test_methods_take_turns_and_a_stopped_run_goes_on(self, tmp_path, monkeypatch):
        calls = []

        def answer(key, seconds, gib):
            calls.append((key.method, key.n, key.draw))
            return {"stopped": "> 1 s"} if key.method == "slow" else run(1.0)

        monkeypatch.setattr(command, "measure", answer)
        keys = list(command.wanted(["gauss"], ["fast", "slow"], [20, 10], draws=2))
        store = Store(tmp_path / "results.json")
        store.add(Key("gauss", "fast", 10, 0), run(2.0))
        command.run(keys, store, 1.0, 1.0)
        assert calls == [("slow", 10, 0), ("fast", 10, 1), ("fast", 20, 0), ("fast", 20, 1)]
        again = Store(tmp_path / "results.json")
        assert again.results == store.results
        again.forget([Key("gauss", "slow", 10, 0), Key("gauss", "fast", 20, 1)])
        assert set(again.results) == {Key("gauss", "fast", 10, 0), Key("gauss", "fast", 10, 1)}
        assert not again.was_stopped(Key("gauss", "slow", 20, 0))

    def test_fewer_draws_of_more_rows(self):
        counts = [
            sum(key.n == n for key in command.wanted(["gauss"], ["a"], command.SIZES, None)) for n in command.SIZES
        ]
        assert counts == sorted(counts, reverse=True)
        assert min(counts) == 1

    def test_a_method_without_its_package_is_named(self, monkeypatch, capsys):
        monkeypatch.setitem(methods.PACKAGES, "CMVMED", ("no_such_package",))
        assert command.usable(["CMVMED"]) == []
        assert "CMVMED is left out: pip install no_such_package" in capsys.readouterr().err


RESULTS = {
    Key("gauss", "CMVMED", 10, 0): run(1.0, 0.8),
    Key("gauss", "CMVMED", 10, 1): run(3.0, 0.9),
    Key("gauss", "CMVMED", 20, 0): run(4.0, 0.9),
    Key("gauss", "LabelSpreading knn", 10, 0): run(0.5, 0.84),
    Key("gauss", "LabelSpreading knn", 20, 0): {"stopped": "> 1 s"},
    Key("sensit", "CMVMED", 10, 0): run(9.0),
}


class TestReport:
    def test_cells_have_means_over_draws(self):
        lines = size_table(curves(RESULTS, "gauss"))
        assert lines[2] == "| CMVMED | 85.0 ± 7.1 %, 2.0 s, 10 MiB | 90.0 %, 4.0 s, 10 MiB |"
        assert lines[3] == "| LabelSpreading knn | 84.0 %, 0.50 s, 10 MiB | > 1 s |"

    def test_the_cheapest_fit_that_reaches_an_accuracy(self):
        points = [Point(10, 85.0, 1.0, 5.0, 1.0, 2), Point(20, 86.0, 1.0, 3.0, 1.0, 2)]
        assert cheapest(points, 84.0) is points[1]
        assert cheapest([*points, Point(40, *[np.nan] * 4, 1, "> 1 s")], 86.5) is None
        lines = target_table(curves(RESULTS, "gauss"))
        assert lines[0] == "| method | 89.0 % | 87.0 % | 80.0 % |"
        assert lines[2] == "| CMVMED | 4.0 s, 10 MiB (20 rows) | 4.0 s, 10 MiB (20 rows) | 2.0 s, 10 MiB (10 rows) |"
        assert lines[3] == "| LabelSpreading knn | not reached | not reached | 0.50 s, 10 MiB (10 rows) |"

    def test_the_text_says_what_was_measured(self):
        (text, *_) = section("gauss", curves(RESULTS, "gauss"), RESULTS)
        assert "20 labels, 50 held-out rows; training rows all drawn anew" in text
        assert "(2 with 10 rows, 1 with 20 rows)" in text
        assert section("mnist", curves(RESULTS, "mnist"), RESULTS) == []

    def test_a_picture_is_drawn(self, tmp_path):
        pytest.importorskip("matplotlib")
        draw_picture(RESULTS, tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text()
        assert text.startswith("<?xml")
        assert {"gauss", "sensit"} < set(SETS)
