"""The simulated user: which rows are labeled, what is measured, and the labels that a curve needs."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks import active_learning
from benchmarks.active_learning import WAYS, complete, draw_task, labels_needed, mean_curve, read, report, run, simulate
from benchmarks.suite.sets import load
from cmvmed import suggest_first
from tests.core.factories import rejects


@pytest.fixture(scope="module")
def task():
    return draw_task(load("breast_cancer"), 1000, 60)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_user_labels_as_many_rows_as_asked_and_measures_all_targets(task, way):
    if way == "typiclust":
        pytest.importorskip("skactiveml")
    curve = simulate(task, WAYS[way])
    counts = [point["labels"] for point in curve]
    assert task.targets == [10, 15, 30]
    assert counts == ([10, 15, 20, 30] if WAYS[way].every_batch else [10, 15, 30])
    assert all(0.5 < point["held_out"] <= 1.0 for point in curve)


@pytest.mark.slow
def test_the_same_user_labels_the_same_rows(task):
    assert simulate(task, WAYS["random"], 1) == simulate(task, WAYS["random"], 1)
    assert simulate(task, WAYS["random"], 1) != simulate(task, WAYS["random"], 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Class 1 has one labeled row")
def test_rows_are_labeled_until_there_are_two_classes(task):
    rare = replace(task, truth=(np.arange(60) == suggest_first(task.X, 23, views=task.views).rows[-1]).astype(int))
    curve = simulate(rare, WAYS["suggest"])
    assert 10 < curve[0]["labels"] <= 60
    assert all(a["labels"] < b["labels"] for a, b in pairwise(curve))


def check_needs(counts, accuracy, target, expected):
    assert labels_needed(np.array(counts), np.array(accuracy), target) == pytest.approx(expected)


def test_labels_that_a_curve_needs():
    counts, accuracy = [10, 20, 40], [0.5, 0.6, 0.8]
    check_needs(counts, accuracy, 0.55, 15.0)
    check_needs(counts, accuracy, 0.7, 30.0)
    check_needs(counts, accuracy, 0.8, 40.0)
    check_needs(counts, accuracy, 0.4, 10.0)
    check_needs(counts, accuracy, 0.81, np.inf)
    check_needs(counts, [0.6, 0.6, 0.8], 0.6, 10.0)
    rejects(check_needs, counts, accuracy, 0.7, 40.0)


def test_the_mean_curve_rises_and_has_the_points_that_all_rows_reach():
    rows = [
        {"curve": [{"labels": n, "held_out": a} for n, a in zip((10, 20, 30), values, strict=True)]}
        for values in ((0.5, 0.9, 0.8), (0.7, 0.7, 0.6))
    ]
    rows.append({"curve": [{"labels": 10, "held_out": 0.6}, {"labels": 20, "held_out": 0.8}]})
    counts, accuracy = mean_curve(rows, "held_out")
    np.testing.assert_array_equal(counts, [10, 20])
    np.testing.assert_allclose(accuracy, [0.6, 0.8])
    _, falling = mean_curve(rows[:2], "held_out")
    np.testing.assert_allclose(falling, [0.6, 0.75, 0.75])


def test_a_run_goes_on_where_it_was_and_is_reported(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    points = {
        "suggest": (0.6, 0.8, 0.9),
        "mixed": (0.55, 0.7, 0.8),
        "random": (0.5, 0.6, 0.7),
        "margin": (0.5, 0.55, 0.65),
    }
    asked = []

    def quick(task, way, repeat):
        name = next(name for name in WAYS if WAYS[name] is way)
        asked.append((name, repeat))
        return [
            {"labels": n, "held_out": a, "unlabeled": a, "expected": a + 0.01, "low": a - 0.1, "high": a + 0.1}
            | {"random_expected": a - 0.02, "random_low": a - 0.05, "random_high": a + 0.05, "share_error": 0.03}
            for n, a in zip(task.targets, points[name], strict=True)
        ]

    monkeypatch.setattr(active_learning, "simulate", quick)
    run(["breast_cancer"], [1000], 60, path)
    assert len(asked) == len(read(path)) == 6
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3]) + "\n")
    run(["breast_cancer"], [1000], 60, path)
    assert len(asked) == 9
    assert [json.loads(line) for line in lines] == read(path)
    assert complete(read(path)) == read(path)
    assert complete(read(path)[:5]) == []
    text = report(read(path))
    assert "| suggest | 60.0 | 80.0 | 90.0 |" in text
    assert "| breast_cancer | 30 | 70.0 | 12 | 15 | > 30 | 1.00 | 0.67 | 0.42 |" in text
    assert "| mixed | the model | +1.0 | 100 | 10.0 | 120 | 3.0 |" in text
    assert "| mixed | random rows | -2.0 | 100 | 5.0 | 30 | 3.0 |" in text
    some = complete(read(path), ["suggest", "random"])
    assert {row["way"] for row in some} == {"suggest", "random"}
    assert "mixed" not in report(some)
    assert "| suggest, on unlabeled rows | 3 | +1.0 | 100 |" in text
