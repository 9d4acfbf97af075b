"""The suite that judges the default: its splits, yardsticks, store and figures, on small data."""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from benchmarks import pages
from benchmarks.suite import __main__ as command
from benchmarks.suite import sets
from benchmarks.suite.choose import best_candidate, choose, leave_one_set_out
from benchmarks.suite.goals import goal_table
from benchmarks.suite.methods import METHODS, ORACLES, Answer, Method, variant
from benchmarks.suite.report import report
from benchmarks.suite.run import (
    ChangedSettingsError,
    evaluate,
    measures,
    possible_cells,
    run,
    usable_methods,
    wanted_keys,
)
from benchmarks.suite.scores import accuracy, as_distributions, calibration_error
from benchmarks.suite.sets import LOADERS, SENSORS, SUITE, DataSet, data_folder, kind_of, load
from benchmarks.suite.splits import Cell, ImpossibleCellError, Split, apportion, check_cell, draw, draw_groups
from benchmarks.suite.start import TEMPERATURE, balancing_offset, label_shares, shrunk_shares
from benchmarks.suite.store import Key, Store, key_of, rows_of_methods
from benchmarks.suite.summary import Harm, Summary, balanced_mean, comparable
from cmvmed import CMVMED

SIZES = (120, 60, 60)
NUMBER = 4  # the column that holds it


def toy(name="toy", sizes=SIZES, as_sparse=False, n_groups=0):
    """Two views that tell the classes apart; a column of the first holds the number of the row, in thousandths.

    With groups, the last class is of the first two groups only.
    """
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = 4.0 * np.eye(len(sizes), 5)
    X = np.hstack([centers[y] + rng.standard_normal((y.size, 5)) for _ in range(2)])
    X[:, NUMBER] = np.arange(y.size) / 1000.0
    groups = rng.integers(0, np.where(y == len(sizes) - 1, 2, n_groups)) if n_groups else None
    return DataSet(name, sparse.csr_matrix(X) if as_sparse else X, {"a": slice(0, 5), "b": slice(5, 10)}, y, groups)


@pytest.fixture
def toy_set(monkeypatch):
    monkeypatch.setitem(sets.LOADERS, "toy", toy)
    load.cache_clear()
    yield "toy"
    load.cache_clear()


def toy_split(budget=5, way="random", **arguments):
    return draw(toy(**arguments), Cell("toy", budget, way), 0, 400)


def numbers(X):
    """The numbers of the rows."""
    column = X[:, [NUMBER]]
    return np.rint(1000.0 * np.ravel(column.toarray() if sparse.issparse(column) else column)).astype(int)


class TestSplits:
    def test_rows_are_either_trained_on_or_held_out(self):
        split = toy_split()
        assert sorted([*numbers(split.X), *numbers(split.X_test)]) == list(range(240))
        assert list(np.bincount(split.truth)) == [60, 30, 30]
        assert list(np.bincount(split.y_test)) == [60, 30, 30]

    def test_the_caps_on_rows(self):
        data = toy(sizes=(2000, 1000))
        split = draw(data, Cell("toy", 2, "random"), 0, 90)
        assert list(np.bincount(split.truth)) == [60, 30]
        assert split.y_test.size == 1000
        assert not set(numbers(split.X)) & set(numbers(split.X_test))

    @pytest.mark.parametrize("as_sparse", [False, True])
    def test_labels_are_true_and_the_others_hidden(self, as_sparse):
        split = toy_split(as_sparse=as_sparse)
        assert (toy().y[numbers(split.X)] == split.truth).all()
        assert (split.y[split.labeled] == split.truth[split.labeled]).all()
        assert split.labeled.size + split.unlabeled.size == split.y.size

    def test_how_labels_are_drawn(self):
        counts = {
            way: [np.bincount(draw(toy(), Cell("toy", 4, way), s, 400).y + 1)[1:] for s in range(20)]
            for way in ("random", "per_class", "biased")
        }
        assert all(c.sum() == 12 and c.min() >= 1 for each in counts.values() for c in each)
        assert all(list(c) == [4, 4, 4] for c in counts["per_class"])
        assert all(sorted(c) == [2, 3, 7] for c in counts["biased"])  # 3 : 1 : 1 of twelve
        assert {int(c.argmax()) for c in counts["biased"]} == {0, 1, 2}  # the seed chooses who gets more
        assert 5.0 < np.mean([c[0] for c in counts["random"]]) < 7.0  # half of the rows are of the first class
        assert len({tuple(c) for c in counts["random"]}) > 3

    def test_a_bias_of_three_to_one(self):
        counts = np.bincount(draw(toy(sizes=(90, 90)), Cell("toy", 10, "biased"), 0, 400).y + 1)[1:]
        assert sorted(counts) == [5, 15]

    def test_splits_depend_on_names_and_numbers_alone(self):
        cell = Cell("toy", 5, "random")
        again, other = (draw(toy(), cell, number, 400) for number in (0, 1))
        assert (toy_split().X == again.X).all()
        assert (toy_split().y == again.y).all()
        assert not np.array_equal(again.X, other.X)
        assert (toy_split(2, "biased").X == again.X).all()  # all cells of a split number share their rows
        assert not np.array_equal(draw(toy("other name"), cell, 0, 400).X, again.X)

    def test_apportionment(self):
        assert list(apportion([1.0, 1.0, 1.0], 5)) == [2, 2, 1]
        assert list(apportion([3.0, 1.0], 4)) == [3, 1]
        assert list(apportion([0.1] * 10, 10)) == [1] * 10

    def test_impossible_cells(self):
        counts = np.array([100, 100, 12])
        check_cell(Cell("x", 5, "per_class"), counts, 400)
        with pytest.raises(ImpossibleCellError, match="6 training rows and may need 10"):
            check_cell(Cell("x", 10, "per_class"), counts, 400)
        with pytest.raises(ImpossibleCellError, match="leave 46 of 106"):
            check_cell(Cell("x", 20, "random"), counts, 400)
        with pytest.raises(ImpossibleCellError, match="5 training rows and may need 6"):
            check_cell(Cell("x", 6, "per_class"), counts, 400, in_groups=True)  # three quarters of six
        check_cell(Cell("x", 3, "biased"), counts, 400)
        small = np.array([17, 16, 21, 34])
        check_cell(Cell("x", 5, "per_class"), small, 400)  # at least half of 44 rows are unlabeled
        with pytest.raises(ImpossibleCellError, match="leave 20 of 44"):
            check_cell(Cell("x", 6, "random"), small, 400)
        with pytest.raises(ImpossibleCellError, match="may need"):
            check_cell(Cell("x", 5, "biased"), counts, 400)

    @pytest.mark.parametrize("number", range(8))
    def test_held_out_rows_are_of_other_groups(self, number):
        data = toy(n_groups=6)
        split = draw(data, Cell("toy", 3, "random"), number, 100)
        of_train, of_test = (set(data.groups[numbers(X)]) for X in (split.X, split.X_test))
        assert not of_train & of_test
        assert len(of_train | of_test) == 6
        assert (data.groups[numbers(split.X)] == split.groups).all()
        assert split.y.size == 100
        assert np.bincount(split.truth).min() >= 0.75 * 25  # 25 of 100 rows would be of the last class
        assert set(split.y_test) == {0, 1, 2}
        assert set(split.y[split.labeled]) == {0, 1, 2}

    def test_groups_of_about_half_of_the_rows(self):
        groups = np.repeat([3, 5, 8, 9], [50, 30, 10, 10])
        drawn = [set(draw_groups(groups, np.random.default_rng(s))) for s in range(20)]
        sizes = [int(np.isin(groups, list(each)).sum()) for each in drawn]
        assert len({frozenset(each) for each in drawn}) > 2
        assert all(30 <= size <= 70 for size in sizes)
        assert draw_groups(np.array([1, 1, 2]), np.random.default_rng(0)).size == 1

    def test_groups_that_cannot_be_divided(self, monkeypatch):
        monkeypatch.setattr("benchmarks.suite.splits.MAX_TRIES", 50)
        data = toy(n_groups=6)
        data.groups[data.y == 2] = 0  # one group has the whole class
        with pytest.raises(ImpossibleCellError, match="no draw of groups"):
            draw(data, Cell("toy", 3, "random"), 0, 100)

    def test_cells_that_cannot_be_run_are_named(self, toy_set, monkeypatch, tmp_path, capsys):
        monkeypatch.setenv("CMVMED_DATA", str(tmp_path))
        cells = possible_cells(["toy", "gas1", "ads"], [5, 30], ["random"], 400)
        assert cells == [Cell("toy", 5, "random")]
        said = capsys.readouterr().err
        assert "gas1: left out." in said
        assert "ads: left out." in said
        assert "toy, 30 labels per class, random: left out, 90 labels leave 30" in said


class TestStart:
    def test_the_offset_gives_the_shares(self):
        scores = np.random.default_rng(0).standard_normal((200, 4))
        shares = np.array([0.7, 0.1, 0.1, 0.1])
        q = softmax((scores + balancing_offset(scores, shares)) / (2.0 * TEMPERATURE), axis=1)
        assert q.mean(axis=0) == pytest.approx(shares, abs=1e-4)

    def test_shares(self):
        assert label_shares(np.array([3, 1])) == pytest.approx([0.7, 0.3])
        assert shrunk_shares(np.array([3, 1])) == pytest.approx([0.7, 0.3])
        shrunk = shrunk_shares(np.array([6, 3, 3]))
        assert shrunk.sum() == pytest.approx(1.0)
        assert 1.0 / 3.0 < shrunk[0] < label_shares(np.array([6, 3, 3]))[0]

    FIGURES = (  # as measured when the suite was made; a change of the library must not move them
        ("start", "digits", "random", 0.773, 0.802),
        ("start", "breast_cancer", "per_class", 0.874, 0.878),
        ("start_eb", "digits", "random", 0.847, 0.837),
        ("start_eb", "digits", "biased", 0.747, 0.776),
    )

    @pytest.mark.parametrize(("method", "name", "way", "unlabeled", "held_out"), FIGURES)
    def test_its_figures_stay(self, method, name, way, unlabeled, held_out):
        row = evaluate(Key(name, 5, way, 200, 0, method), METHODS[method])
        assert row["error"] == ""
        assert (row["unlabeled"], row["held_out"]) == pytest.approx((unlabeled, held_out), abs=0.005)


class TestMethods:
    @pytest.mark.parametrize("as_sparse", [False, True])
    @pytest.mark.parametrize("name", METHODS)
    def test_each_learns(self, name, as_sparse, monkeypatch):
        if reason := METHODS[name].lacks():
            pytest.skip(reason)
        data = toy(f"toy {as_sparse}", as_sparse=as_sparse)
        if not METHODS[name].suits(data):
            pytest.skip("the method does not suit such data")
        monkeypatch.setitem(sets.LOADERS, data.name, lambda: data)
        row = evaluate(Key(data.name, 5, "random", 400, 0, name), METHODS[name])
        load.cache_clear()
        assert row["error"] == ""
        assert row["unlabeled"] > 0.6
        assert row["held_out"] > 0.6
        assert (row["n_labeled"], row["n_unlabeled"], row["n_held_out"], row["n_classes"]) == (15, 105, 120, 3)
        assert row["seconds"] > 0.0
        assert ("low" in row) == (name in {"cmvmed", *ORACLES})

    @pytest.mark.filterwarnings("ignore")
    def test_groups_reach_the_fit_if_asked_for(self, monkeypatch):
        given, fit = [], CMVMED.fit
        monkeypatch.setattr(CMVMED, "fit", lambda *args, **named: given.append(named) or fit(*args, **named))
        split = draw(toy(n_groups=6), Cell("toy", 5, "per_class"), 0, 100)
        for name in ("cmvmed", "cmvmed_groups"):
            assert METHODS[name].solve(split).estimate
        assert given[0] == {}
        assert (given[1]["groups"] == split.groups).all()

    def test_a_variant_is_cmvmed_with_other_settings(self, toy_set):
        given = variant('uncalibrated={"members": null}')
        assert given.settings == {"members": None}
        row = evaluate(Key("toy", 5, "random", 400, 0, "uncalibrated"), given)
        assert row["error"] == ""
        assert "held out no labels" in row["no_estimate"]
        plain = evaluate(Key("toy", 5, "random", 400, 0, "cmvmed"), METHODS["cmvmed"])
        assert plain["low"] <= plain["estimate"] <= plain["high"]

    @pytest.mark.parametrize("text", ["name", 'start={"C": 1}', "name=3", "name={", '={"C": 1}'])
    def test_what_is_no_variant(self, text):
        with pytest.raises(argparse.ArgumentTypeError):
            command._variant(text)

    @pytest.mark.skipif(find_spec("graphlearning") is None, reason="needs graphlearning")
    @pytest.mark.filterwarnings("ignore")
    def test_labels_reach_every_row_of_the_graph(self):
        from scipy.sparse.csgraph import connected_components
        from sklearn.neighbors import NearestNeighbors

        from benchmarks.suite.poisson import connected_graph

        X = np.random.default_rng(0).standard_normal((60, 2))
        X[20:40] += 100.0
        X[40:] = 50.0  # equal rows
        graph = connected_graph(X, NearestNeighbors(n_neighbors=5).fit(X))
        assert connected_components(graph)[0] == 1
        assert np.abs(graph - graph.T).max() < 1e-12
        assert np.isfinite(graph.data).all()
        assert graph.data.min() > 0.0


class TestScores:
    def test_calibration_error(self):
        p = np.array([[0.95, 0.05], [0.95, 0.05], [0.55, 0.45], [0.45, 0.55]])
        truth = np.array([0, 1, 0, 0])
        assert calibration_error(p, truth) == pytest.approx((2 * 0.45 + 2 * 0.05) / 4)
        assert calibration_error(np.array([[1.0, 0.0]]), np.array([0])) == 0.0

    def test_a_row_without_opinion_gets_the_shares_of_the_labels(self):
        y = np.array([1, 1, 0, -1])
        p = as_distributions(np.array([[np.nan, np.nan], [0.0, 0.0], [2.0, 0.0]]), y)
        assert p == pytest.approx(np.array([[1 / 3, 2 / 3], [1 / 3, 2 / 3], [1.0, 0.0]]))
        assert as_distributions(np.array([0, 1]), y) is None
        assert accuracy(np.array([0, 1]), y, np.array([0, 0])) == 0.5

    def test_whether_the_interval_holds(self):
        y, truth = np.array([0, 1, -1, -1]), np.array([0, 1, 0, 1])
        split = Split(None, y, truth, None, np.array([0, 1, 1, 1]), {})
        answer = Answer(np.array([0, 0]), np.array([0, 1, 1, 1]), 0.5, (0.6, 0.5, 0.7))
        row = measures(split, answer)
        assert (row["unlabeled"], row["held_out"], row["ece"]) == (0.5, 1.0, None)
        assert (row["holds_unlabeled"], row["holds_held_out"]) == (True, False)


def counting(name, calls, fails=()):
    """A method that says the truth is class 0, writes down its calls and fails at some of them."""

    def solve(split):
        calls.append(name)
        if len(calls) in fails:
            raise RuntimeError("no such luck")
        return Answer(np.zeros(split.unlabeled.size, int), np.zeros(split.y_test.size, int), 0.1)

    return Method(name, solve)


class TestRun:
    def wanted(self, *methods, splits=2):
        return wanted_keys([Cell("toy", 5, "random")], methods, range(splits), 400)

    def test_a_run_goes_on_where_it_was(self, toy_set, tmp_path):
        store, calls = Store(tmp_path / "r.jsonl"), []
        run(self.wanted(counting("a", calls)), store, 1)
        run(self.wanted(counting("a", calls), counting("b", calls), splits=3), store, 1)
        assert sorted(calls) == ["a"] * 3 + ["b"] * 3
        assert {(key.split, key.method) for key in store.rows()} == {(s, m) for s in range(3) for m in "ab"}

    def test_failures_are_kept_named_and_tried_again_on_request(self, toy_set, tmp_path, capsys):
        store, calls = Store(tmp_path / "r.jsonl"), []
        wanted = self.wanted(counting("a", calls, fails=(2,)))
        run(wanted, store, 1)
        assert sorted(row["error"] for row in store.rows().values()) == ["", "RuntimeError: no such luck"]
        assert "failed. RuntimeError: no such luck" in capsys.readouterr().err
        text = report(list(store.rows().values()), list(wanted.values())[:1], "unlabeled")
        assert "**a** failed on 1 of 2 splits (toy): RuntimeError: no such luck" in text
        run(wanted, store, 1)
        assert len(calls) == 2
        run(wanted, store, 1, retry_failed=True)
        assert len(calls) == 3
        assert not any(row["error"] for row in store.rows().values())

    def test_a_broken_line_costs_one_row(self, toy_set, tmp_path, capsys):
        store, calls = Store(tmp_path / "r.jsonl"), []
        wanted = self.wanted(counting("a", calls))
        run(wanted, store, 1)
        whole = store.path.read_bytes()
        store.path.write_bytes(whole[:-20])  # killed while it wrote
        run(wanted, store, 1)
        assert len(calls) == 3
        assert store.rows().keys() == wanted.keys()
        assert "1 broken line" in capsys.readouterr().err

    def test_a_name_stands_for_one_setting(self, toy_set, tmp_path):
        store = Store(tmp_path / "r.jsonl")
        given = variant('v={"consensus_weight": 0.0}')
        run(self.wanted(given, splits=1), store, 1)
        run(self.wanted(given, splits=1), store, 1)
        with pytest.raises(ChangedSettingsError, match="v with"):
            run(self.wanted(variant('v={"consensus_weight": 0.1}'), splits=2), store, 1)

    def test_rows_of_other_code_are_named(self, toy_set, tmp_path, capsys):
        store = Store(tmp_path / "r.jsonl")
        wanted = self.wanted(METHODS["start"], splits=1)
        run(wanted, store, 1)
        row = next(iter(store.rows().values()))
        store.path.write_text(json.dumps(row | {"code": "old"}) + "\n")
        capsys.readouterr()
        run(wanted, store, 1)
        assert "start: 1 rows were made by other code" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("name", "suiting"),
        [("breast_cancer", {"lr", "lda", "tabpfn"}), ("toy", {"lr", "lda", "tabpfn", "co_training", "cmvmed_groups"})],
    )
    def test_methods_that_do_not_suit_a_set_have_no_rows_there(self, monkeypatch, name, suiting):
        monkeypatch.setitem(sets.LOADERS, "toy", lambda: toy(n_groups=3))
        load.cache_clear()
        methods = [METHODS[method] for method in ("co_training", "lr", "lda", "tabpfn", "cmvmed_groups")]
        assert {key.method for key in wanted_keys([Cell(name, 2, "random")], methods, range(1), 400)} == suiting
        load.cache_clear()

    def test_what_is_missing_is_named(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setenv("CMVMED_TABPFN", str(tmp_path / "none"))
        assert usable_methods([METHODS["tabpfn"], METHODS["lr"]]) == [METHODS["lr"]]
        assert "tabpfn: left out, its weights are not at" in capsys.readouterr().err

    def test_peers_of_another_file_are_not_fitted_again(self, toy_set, tmp_path):
        calls = []
        run(self.wanted(counting("a", calls)), Store(tmp_path / "peers.jsonl"), 1)
        store = Store(tmp_path / "r.jsonl", rows_of_methods([tmp_path / "peers.jsonl"], ["a"]))
        run(self.wanted(counting("a", calls), counting("b", calls)), store, 1)
        assert calls == ["a", "a", "b", "b"]
        assert {key.method for key in store.rows()} == {"a", "b"}
        assert {key.method for key in Store(tmp_path / "r.jsonl").rows()} == {"b"}
        with pytest.raises(FileNotFoundError, match="does not exist"):
            rows_of_methods([tmp_path / "none.jsonl"], ["a"])

    @pytest.mark.slow
    def test_processes_find_what_one_process_finds(self, tmp_path):
        cells = [Cell("breast_cancer", 2, "random"), Cell("digits", 2, "per_class")]
        wanted = wanted_keys(cells, [METHODS["start"], METHODS["lr"]], range(2), 200)
        one, two = Store(tmp_path / "1.jsonl"), Store(tmp_path / "2.jsonl")
        run(wanted, one, 1)
        run(wanted, two, 2)
        accuracies = [{key: row["held_out"] for key, row in store.rows().items()} for store in (one, two)]
        assert accuracies[0] == accuracies[1]
        assert accuracies[0].keys() == wanted.keys()

    def test_the_command(self, toy_set, tmp_path, monkeypatch, capsys):
        arguments = ["suite", "--sets", "toy", "--methods", "start", "lr", "--budgets", "2", "--draws", "biased"]
        arguments += ["--splits", "2", "--first", "1000", "--results", str(tmp_path / "r.jsonl")]
        monkeypatch.setattr("sys.argv", arguments)
        command.main()
        first = capsys.readouterr()
        assert "### Labels drawn: biased" in first.out
        assert "4 of 4 rows" in first.err
        assert {key.split for key in Store(tmp_path / "r.jsonl").rows()} == {1000, 1001}
        monkeypatch.setattr("sys.argv", [*arguments, "--no-run", "--on", "held_out", "--methods", "lr"])
        command.main()
        again = capsys.readouterr().out
        assert "| lr |" in again
        assert "| start |" not in again
        rest = ["--before", str(tmp_path / "r.jsonl"), "--peers", str(tmp_path / "r.jsonl"), "--results"]
        monkeypatch.setattr("sys.argv", [*arguments, *rest, str(tmp_path / "new.jsonl"), "--methods", "cmvmed", "lr"])
        command.main()
        first = capsys.readouterr().out
        assert "### Goals: cmvmed" in first
        assert "### Goals: before" not in first  # the file has no rows of it
        again = [*arguments, "--before", str(tmp_path / "new.jsonl"), "--results", str(tmp_path / "new.jsonl")]
        monkeypatch.setattr("sys.argv", [*again, "--no-run", "--methods", "cmvmed"])
        command.main()
        assert "| to before | +0.0 (toy +0.0) | +0.0 (toy +0.0) |" in capsys.readouterr().out
        monkeypatch.setattr("sys.argv", [*arguments, "--peers", str(tmp_path / "none.jsonl")])
        with pytest.raises(SystemExit, match="does not exist"):
            command.main()

    def test_a_kind_stands_for_its_sets(self):
        assert set(command.parse(["--sets", "sensors"]).sets) == set(SENSORS)
        assert set(command.parse(["--sets", "others", "gas1"]).sets) == set(LOADERS) - set(SENSORS) | {"gas1"}


def rows_of(method, accuracies, **further):
    """Rows of a method from {(set, draw): [accuracy of split 0, 1, ...]}; the same on held-out rows."""
    return [
        {"set": name, "budget": 2, "draw": way, "n_rows": 400, "split": s, "method": method, "code": "c", "error": ""}
        | {"settings": {}, "unlabeled": a, "held_out": a, "ece": 0.1, "seconds": 1.0}
        | further
        for (name, way), values in accuracies.items()
        for s, a in enumerate(values)
    ]


A, B, C = ("a", "random"), ("b", "random"), ("b", "biased")


class TestSummary:
    rows = (
        rows_of("start", {A: [0.5, 0.5], B: [0.6, 0.6], C: [0.7, 0.7]})
        + rows_of("cmvmed", {A: [0.6, 0.7], B: [0.5, 0.62], C: [0.695, 0.695]})
        + rows_of("lr", {A: [0.655, 0.655], B: [0.6, 0.6], C: [0.5, 0.5]})
        + rows_of("ridge", {A: [0.1, 0.1], B: [0.1, 0.1], C: [0.8, 0.8]})
    )

    def test_means_are_over_sets(self):
        summary = Summary(self.rows, "unlabeled")
        assert summary.mean("start", "unlabeled") == pytest.approx((50.0 + 65.0) / 2)
        assert summary.mean("start", "ece") == pytest.approx(10.0)

    def test_ranks(self):
        summary = Summary(self.rows, "unlabeled")
        assert summary.rank("lr") == pytest.approx((1 + 1.5 + 4) / 3)  # in the cell b random it shares the first place

    def test_harm(self):
        harm = Harm.of(Summary(self.rows, "unlabeled").gains("cmvmed"))
        assert harm.mean == pytest.approx((15.0 + (-4.0 - 0.5) / 2) / 2)
        assert (harm.worst, harm.worst_cell) == (pytest.approx(-4.0), Cell("b", 2, "random"))
        assert harm.n_cells_below == 1
        assert harm.share_of_splits == pytest.approx(100.0 / 6)

    def test_near_the_best_peer(self):
        summary = Summary(self.rows, "unlabeled")
        best = summary.best_peer(["lr", "ridge"])
        assert best == {
            Cell("a", 2, "random"): pytest.approx(65.5),
            Cell("b", 2, "random"): pytest.approx(60.0),
            Cell("b", 2, "biased"): pytest.approx(80.0),
        }
        assert summary.share_near("cmvmed", best) == pytest.approx(100.0 / 3)

    def test_coverage(self):
        good = rows_of("cmvmed", {A: [0.6, 0.7]}, holds_unlabeled=True, holds_held_out=False)
        bad = rows_of("cmvmed", {B: [0.6]}, holds_unlabeled=False, holds_held_out=False)
        text = report(good + bad, [METHODS["cmvmed"]], "unlabeled")
        line = next(line for line in text.splitlines() if line.startswith("| cmvmed"))
        assert "| 66.7 | 0.0 | 0 (b) |" in line
        assert Summary(good + bad, "unlabeled").least_held("cmvmed") == ("b", 0.0)

    def test_unfinished_splits_wait(self):
        rows = rows_of("start", {A: [0.5, 0.9]}) + rows_of("lr", {A: [0.5]})
        assert [row["split"] for row in comparable(rows)] == [0, 0]
        assert Summary(comparable(rows), "unlabeled").mean("start", "unlabeled") == pytest.approx(50.0)
        failed = [*rows, rows_of("lr", {A: [0.5, 0.5]}, error="E")[1] | {"unlabeled": None}]
        assert len(comparable(failed)) == 4
        assert Summary(failed, "unlabeled").mean("start", "unlabeled") == pytest.approx(70.0)

    def test_tables(self):
        text = report(self.rows, [METHODS[name] for name in ("cmvmed", "start", "lr", "ridge")], "unlabeled")
        assert text.count("| method | cells: others | unlabeled %: others |") == 3
        assert "| cmvmed | 3 | 63.9 | 63.9 | 2.67 | +6.4 | -4.0 (b, 2, random) | 1 | 16.7 | 33.3 |" in text
        assert "| best peer per cell | 3 | 67.8 |" in text
        assert "| b | 62.8 | 65.0 | 55.0 | 45.0 | 70.0 |" in text
        assert report([], [], "unlabeled") == "There are no rows yet."

    def test_sensors_and_others_have_columns_of_their_own(self):
        S, T = ("gas1", "random"), ("room", "random")
        rows = [*self.rows, *rows_of("start", {S: [0.3], T: [0.5]}), *rows_of("cmvmed", {S: [0.5], T: [0.48]})]
        rows += rows_of("lr", {S: [0.45], T: [0.6]}) + rows_of("ridge", {S: [0.4], T: [0.2]})
        methods = [METHODS[name] for name in ("cmvmed", "start", "lr", "ridge")]
        text = report(rows, methods, "unlabeled")
        lines = text.split("### All draws")[1].splitlines()
        head, ours, best = (next(line for line in lines if line.startswith(f"| {w}")) for w in ("me", "cmvmed", "best"))
        named = dict(zip(head.strip("| ").split(" | "), ours.strip("| ").split(" | "), strict=True))
        assert named["cells: sensors"] == "2"
        assert named["unlabeled %: sensors"] == "49.0"
        assert named["unlabeled %: others"] == "63.9"
        assert named["rank: sensors"] == "2.00"
        assert named["worst cell to start: sensors"] == "-2.0 (room, 2, random)"
        assert named["cells < -1: others"] == "1"
        assert best.startswith("| best peer per cell | 2 | 3 | 52.5 | 67.8 | 52.5 | 67.8 | – |")
        assert (
            text.index("### By set: sensors, held out rows")
            < text.rindex("| gas1 |")
            < text.index("### By set: others")
        )
        assert pages.suite_table(text, ["method", "rank"]).startswith("| method | rank: sensors | rank: others |\n")
        head, _, first, *rest = pages.headline_table(text).splitlines()
        assert head == "| held-out rows, % | sensors | others |"
        assert first == f"| **`CMVMED()`** | {named['held out %: sensors']} | {named['held out %: others']} |"
        assert not any("ridge" in line for line in rest)
        with pytest.raises(ValueError, match="no column 'rang'"):
            pages.suite_table(text, ["rang"])

    def test_goals(self):
        S, T = ("gas1", "random"), ("room", "random")
        rows = rows_of("start", {S: [0.3, 0.3], T: [0.5, 0.5]}) + rows_of("lr", {S: [0.45, 0.45], T: [0.6, 0.6]})
        rows += rows_of("cmvmed", {S: [0.5, 0.4], T: [0.44, 0.5]}, holds_unlabeled=True, holds_held_out=False)
        rows += rows_of("extra_trees", {S: [0.35, 0.35], T: [0.45, 0.45]})
        lines = goal_table(rows, "cmvmed", ["lr", "extra_trees"]).splitlines()
        found = {cells[1]: cells[2:-1] for cells in ([c.strip() for c in line.split("|")] for line in lines)}
        assert found["figure"] == ["sensors, unlabeled", "sensors, held out"]
        assert found["mean %"][0] == "46.0"
        assert found["to lr"][0] == "-6.5 (room -13.0)"
        assert found["to extra_trees"][0] == "+6.0 (room +2.0)"
        assert found["to the better of extra_trees and lr, lowest set"][0] == "room -13.0"
        assert found["cells within 1 of the best peer, %"][0] == "50.0"
        assert found["rank, random"][0] == "2.25 (place 2 of 4)"
        assert found["rank, biased"][0] == "–"
        assert found["sets more than 1 below the start"][0] == "1, room"
        assert found["splits more than 3 below the start, %"][0] == "25.0"
        assert found["90 % interval holds, %"] == ["100.0", "0.0"]
        assert found["ECE"] == ["–", "0.100"]

    def test_states_of_the_library_are_told_apart(self):
        rows = rows_of("cmvmed", {A: [0.5]}) + rows_of("cmvmed", {B: [0.5]}, code="d")
        assert "rows of 2 states of the library (c, d)" in report(rows, [METHODS["cmvmed"]], "unlabeled")


class TestChoice:
    a, b, c = (Cell(name, 2, "random") for name in "abc")

    def test_a_set_has_no_say_in_its_own_choice(self):
        candidates = {"x": {self.a: 90.0, self.b: 50.0, self.c: 50.0}, "y": {self.a: 50.0, self.b: 60.0, self.c: 60.0}}
        assert best_candidate(candidates, {}) == "x"
        assert leave_one_set_out(candidates, {}) == {"a": "y", "b": "x", "c": "x"}

    def test_of_equal_means_the_better_worst_cell(self):
        start = {self.a: 50.0, self.b: 50.0}
        candidates = {"x": {self.a: 40.0, self.b: 70.05}, "y": {self.a: 54.0, self.b: 56.0}}
        assert best_candidate(candidates, start) == "y"
        candidates["x"][self.b] = 71.0
        assert best_candidate(candidates, start) == "x"

    def test_sensors_and_others_weigh_the_same(self):
        cells = {Cell("gas1", 2, "random"): 90.0, self.a: 50.0, self.b: 60.0, self.c: 70.0}
        assert balanced_mean(cells) == pytest.approx(75.0)

    def test_the_mean_of_honest_choices(self):
        named = {"x": (0.9, 0.5, 0.5), "y": (0.5, 0.6, 0.6)}
        rows = [
            row
            for m, v in named.items()
            for row in rows_of(m, {(n, "random"): [a] for n, a in zip("abc", v, strict=True)})
        ]
        methods = [variant(f"{name}={{}}") for name in named]
        text = choose(rows, methods, "unlabeled")
        assert "| choice without the set | 50.00 |" in text
        assert "| a | y | 50.0 | x 90.0 |" in text
        assert "at least two data sets" in choose(rows[:1], methods[:1], "unlabeled")


class TestFiles:
    @pytest.fixture(autouse=True)
    def folder(self):
        if not (data_folder() / "suite").is_dir():
            pytest.skip(f"needs the files of the suite, which are not at {data_folder() / 'suite'} (set CMVMED_DATA)")

    @pytest.mark.parametrize(
        ("name", "n_rows", "widths", "smallest", "largest"),
        [
            ("gas1", 445, [32, 32, 32, 32], 30, 98),
            ("cornell", 195, [195, 1588], 19, 83),
            ("proteinfold", 694, [27] * 12, 12, 77),
            ("robot_grasp", 88, [39, 39], 16, 34),
            ("robot_approach", 117, [39, 39], 21, 72),
            ("room", 10129, [4, 4, 4, 2, 2], 459, 8228),
            ("stress", 1656, [12, 12, 12, 39], 516, 1140),
            ("wall", 5456, [6, 6, 6, 6], 328, 2205),
            ("natops", 360, [87] * 4, 60, 60),
            ("epilepsy", 275, [12, 12, 12], 60, 74),
        ],
    )
    def test_sizes_are_those_of_the_readme(self, name, n_rows, widths, smallest, largest):
        data = load(name)
        assert data.X.shape == (n_rows, sum(widths))
        assert [view.stop - view.start for view in data.views.values()] == widths
        assert (data.counts.min(), data.counts.max()) == (smallest, largest)
        assert sparse.issparse(data.X) == (name == "cornell")

    def test_all_sets_can_be_had(self):
        small = [name for name in SUITE if load(name).counts.size >= 2]
        assert len(small) == 24
        assert {name for name in SUITE if load(name).groups is not None} == {"room", "stress", "wall"}
        assert sum(kind_of(name) == "sensors" for name in LOADERS) == 12
        with np.load(data_folder() / "suite" / "gas1.npz") as file:
            assert load("gas1").X[:, 32:64] == pytest.approx(file["v1"])


def test_the_bundled_sets():
    assert load("digits").X.shape == (1797, 64)
    assert list(load("breast_cancer").counts) == [212, 357]
    row = rows_of("m", {A: [0.5]})[0]
    assert key_of(row) == Key("a", 2, "random", 400, 0, "m")
