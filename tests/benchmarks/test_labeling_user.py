"""The simulated user of the labeling page: which rows it labels, and what is reported."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")

from benchmarks import labeling_user
from benchmarks.labeling_user import distance, of_classes, report, simulate, write_project
from benchmarks.suite.sets import load
from cmvmed.workbench import Project


def test_a_project_has_the_rows_of_the_set_and_no_labels(tmp_path):
    data = load("breast_cancer")
    job = write_project(tmp_path, data, 0, 0)
    table = Project.load(tmp_path / "cmvmed.toml").read()
    assert list(table.views) == list(data.views)
    assert len(table.ids) == len(job.truth) == 500
    assert all(label is None for label in table.labels)
    assert len(job.withheld) == 250
    assert job.most == 100


def test_repeats_are_the_same_rows_in_another_order(tmp_path):
    jobs = []
    for repeat in (0, 1):
        (tmp_path / str(repeat)).mkdir()
        jobs.append(write_project(tmp_path / str(repeat), load("breast_cancer"), 0, repeat))
    assert sorted(jobs[0].truth) == sorted(jobs[1].truth)
    assert jobs[0].withheld != jobs[1].withheld


def test_distance_of_shares():
    assert distance(of_classes(["a", "a", "b"], "abc"), np.array([0.0, 0.0, 1.0])) == pytest.approx(1.0)
    assert distance(np.array([0.5, 0.5]), np.array([0.75, 0.25])) == pytest.approx(0.25)


def run_of(way, curve, name="mnist", repeat=0):
    points = [{"labels": n, "accuracy": a} for n, a in curve]
    shares = {"model": 0.02, "as_random": 0.1, "labels": 0.2}
    drawn = {"suggest": "chosen", "random": "unknown"}[way]
    return {"set": name, "split": 0, "way": way, "repeat": repeat, "rows": 500, "classes": 10, "curve": points} | {
        "drawn": drawn,
        "shares": shares,
    }


def test_the_report_has_the_labels_that_are_needed():
    rows = [run_of("suggest", [(10, 0.5), (20, 0.7), (100, 0.9)])]
    rows += [run_of("random", [(100, a)], repeat=r) for r, a in enumerate((0.5, 0.6, 0.7))]
    rows += [run_of("suggest", [(10, 0.5), (20, 0.7)], name="gas1")]  # whose random labels are not there yet
    (line,) = [line for line in report(rows).splitlines() if "mnist" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["mnist", "500", "10", "100", "60.0", "15", "0.15", "2.0", "2.0", "10.0", "20.0"]
    assert "gas1" not in report(rows)
    assert "chosen after suggest, unknown after random" in report(rows)


@pytest.mark.slow
def test_a_user_labels_by_requests_and_never_what_is_withheld(monkeypatch):
    monkeypatch.setattr(labeling_user, "MOST_ROWS", 60)
    monkeypatch.setattr(labeling_user, "MOST_LABELS", 20)
    for way, drawn, counts in (("suggest", "chosen", [10, 20]), ("random", "unknown", [20])):
        found = simulate(load("breast_cancer"), way, 0, 0)
        assert found["drawn"] == drawn
        assert [point["labels"] for point in found["curve"]] == counts
        assert found["curve"][-1]["accuracy"] > 0.8
        assert all(0.0 <= value <= 1.0 for value in found["shares"].values())
