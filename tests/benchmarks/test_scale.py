"""The scale benchmark's own arithmetic; its measurements take hours."""

from __future__ import annotations

import pytest

from benchmarks.scale import Measurements, measure_growth, middle
from benchmarks.scale_report import exponent, growth_table, threads


def run(seconds):
    return {"seconds": seconds, "mib": 10.0, "accuracy": 0.9, "n": 1000}


def test_the_middle_run_is_kept_beside_all():
    runs = [run(3.0), run(1.0), run(2.0)]
    assert middle(runs) == run(2.0) | {"runs": runs}
    assert middle(runs[:2])["seconds"] == 1.0
    assert middle([run(1.0), {"failed": "out of memory"}]) == {"failed": "out of memory"}


def test_methods_take_turns_and_a_stopped_run_goes_on(tmp_path, monkeypatch):
    calls = []

    def answer(arguments, time_limit):
        calls.append((arguments[1], int(arguments[2])))
        return {"failed": "> 1 s"} if arguments[1] == "slow" else run(float(len(calls)))

    monkeypatch.setattr("benchmarks.scale.run_point", answer)
    monkeypatch.setattr("benchmarks.scale.METHODS", {"CMVMED": None, "other": None, "slow": None})
    monkeypatch.setattr("benchmarks.scale.REPEATS", {10: 2})
    kept = Measurements(tmp_path / "results.json")
    kept.keep("fit CMVMED 10", middle([run(5.0)]))
    measure_growth(kept, (10, 20), 1.0, 1.0)
    assert calls[:4] == [("other", 10), ("slow", 10), ("CMVMED", 10), ("other", 10)]
    assert calls[4:] == [("CMVMED", 20), ("other", 20), ("CMVMED", 20), ("CMVMED", 20)]
    again = Measurements(tmp_path / "results.json")
    assert [len(again.runs(f"fit {name}")) for name in ("CMVMED 10", "other 10", "CMVMED 20", "other 20")] == [
        2,
        2,
        3,
        1,
    ]
    legend = growth_table(again.results)[-1]
    assert "the median of 2 with 10 rows, 3 of CMVMED with 20" in legend


def test_from_where_on_it_is_faster():
    ours = {f"fit CMVMED {n}": run(t) for n, t in ((10, 2.0), (20, 3.0), (40, 4.0))}
    theirs = {"fit LabelSpreading x 10": run(1.0), "fit LabelSpreading x 20": run(3.5)}
    lost = {"fit LabelSpreading x 40": {"failed": "out of memory"}}
    line = growth_table(ours | theirs | lost)[-1]
    assert line.startswith("Faster than LabelSpreading x from 20 rows on; ")
    assert line.endswith("at 10, 20 rows: 90.0 against 90.0, 90.0 against 90.0.")
    again = growth_table(ours | theirs | {"fit LabelSpreading x 40": run(3.9)})  # slower again: nothing is claimed
    assert not any("Faster" in line for line in again)


def test_growth_and_threads_are_ratios_of_times():
    assert exponent({10: 1.0, 100: 10.0, 1000: 100.0}) == pytest.approx(1.0)
    results = {"threads 1000 1": run(4.0), "threads 1000 2": run(2.0), "dask 1000 1": run(9.0)}
    assert threads(results) == [
        "Threads, 1,000 rows: a fit takes 4.0 s with one and 2.0 s with two, 2.00 times faster (medians of 1)."
    ]
    assert threads({"threads 1000 1": run(4.0)}) == []
