"""The comparison of settings and tuned numbers reads its arguments and fits under them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from benchmarks import settings
from benchmarks.settings import accuracy, main, read_tuning
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, current_tuning


def test_tuned_numbers_are_read_from_json():
    assert read_tuning('{"clip": 3, "interval_labels": [0.1, 0.9]}') == {"clip": 3, "interval_labels": (0.1, 0.9)}


@pytest.mark.parametrize("text", ['{"clip": 3, "clips": 3}', "[1]", "{"])
def test_an_unknown_name_gets_an_error_that_lists_the_fields(text, capsys):
    with pytest.raises(SystemExit):
        main(["--tuning", text])
    shown = capsys.readouterr().err
    assert "argument --tuning" in shown
    assert "no JSON" in shown or all(field.name in shown for field in fields(Tuning))


def test_fits_run_under_the_tuned_numbers(monkeypatch):
    seen = []

    class Recorder(CMVMED):
        def fit(self, X, y):
            seen.append((self.get_params()["n_stages"], current_tuning()))
            return super().fit(X, y)

    monkeypatch.setattr(settings, "CMVMED", Recorder)
    assert 0.5 < accuracy("gauss", 3000, {"n_stages": 1, "members": None}, {"clip": 3.0}) <= 1.0
    assert [(n_stages, tuning.clip) for n_stages, tuning in seen] == [(1, 3.0)]
    assert current_tuning() == Tuning()


def test_one_row_per_setting_and_tuned_number(monkeypatch, capsys):
    calls = []

    def score(task, number, changed, tuning):
        calls.append((number, changed, tuning))
        return 0.5 + tuning.get("clip", 0.0) / 10.0 + number / 1e6

    class InThisProcess:
        def __init__(self, n_jobs):
            pass

        def __enter__(self):
            return lambda tasks: [function(*arguments, **named) for function, arguments, named in tasks]

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(settings, "accuracy", score)
    monkeypatch.setattr(settings, "Parallel", InThisProcess)
    tuned = ["--tuning", "{}", "--tuning", '{"clip": 3.0}']
    main(['{"C": 2}', "{}", *tuned, "--tasks", "gauss", "--splits", "2", "--first", "7"])
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("  ")[-1] for row in rows] == ['{"C": 2}', '{"C": 2} {"clip": 3.0}', "{}", '{} {"clip": 3.0}']
    assert [row.split()[1] for row in rows] == ["50.0", "80.0", "50.0", "80.0"]
    assert [number for number, _, _ in calls] == [7, 8] * 4
