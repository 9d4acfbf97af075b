"""The benchmark of landmarks: draws, what is kept, and the differences of its report."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import landmarks
from benchmarks.suite.sets import DataSet

ROWS = [
    {"set": "one", "split": 0, "method": "exact", "accuracy": 90.0, "seconds": 4.0},
    {"set": "one", "split": 0, "method": "landmarks", "accuracy": 88.0, "seconds": 2.0},
    {"set": "one", "split": 1, "method": "exact", "accuracy": 80.0, "seconds": 9.0},
    {"set": "two", "split": 0, "method": "exact", "accuracy": 70.0, "seconds": 1.0},
    {"set": "two", "split": 0, "method": "landmarks", "accuracy": 71.0, "seconds": 1.0},
]


@pytest.fixture
def drawn(monkeypatch):
    rng = np.random.default_rng(0)
    data = DataSet("one", rng.normal(size=(200, 4)), {"a": slice(0, 2), "b": slice(2, 4)}, np.arange(200) % 12)
    monkeypatch.setattr(landmarks, "load_set", lambda name: data)
    return data


def test_labels_are_three_per_class_on_average_and_every_class_has_one(drawn):
    y = landmarks.draw_labels(drawn, 3)
    assert (y >= 0).sum() == 36
    assert np.unique(y[y >= 0]).size == 12
    np.testing.assert_array_equal(y[y >= 0], drawn.y[y >= 0])
    np.testing.assert_array_equal(y, landmarks.draw_labels(drawn, 3))
    assert not np.array_equal(y, landmarks.draw_labels(drawn, 4))


def test_differences_are_those_of_the_same_splits(drawn, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    report = landmarks.report(["one", "two"], range(2), ["exact", "landmarks"], path)
    assert "| one | 200 | 36 | 85.0 ± 5.0 (2 splits, 2.0x) | 88.0 ± 0.0 (1 splits, 1.0x) |" in report
    assert "- exact - landmarks: +0.50 points, mean over 2 sets; least -1.00 (two), most +2.00" in report


def test_what_is_known_is_not_measured_again(drawn, tmp_path, monkeypatch):
    path, measured = tmp_path / "rows.jsonl", []
    path.write_text(json.dumps(ROWS[0]) + "\n", encoding="utf-8")

    def measure(name, split, method):
        measured.append((name, split, method))
        return ROWS[1]

    monkeypatch.setattr(landmarks, "measure", measure)
    landmarks.run(["one"], range(1), ["exact", "landmarks"], path)
    assert measured == [("one", 0, "landmarks")]
    assert set(landmarks.read_rows(path)) == {("one", 0, "exact"), ("one", 0, "landmarks")}
