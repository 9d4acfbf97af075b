"""Each campaign of faults passes on the library, and fails on a library that is broken on purpose."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import cmvmed
from benchmarks.faults import browsers, certificates, exports, extremes, fits, relations, tables, writers
from benchmarks.faults.__main__ import main
from benchmarks.faults.campaign import (
    CLEAR_ERROR,
    HELD,
    NAMES,
    NOT_DETECTABLE,
    Campaign,
    Fault,
    campaign,
    draw_case,
    group_of,
    run_case,
    shrink,
)
from benchmarks.faults.results import Record, Tally, merged, read_records, table, table_lines
from cmvmed.workbench.tables import columns

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="campaigns use /proc and resource limits")


def found_by(name, numbers):
    """Faults of some cases of a campaign."""
    of = campaign(name)
    outcomes = [run_case(of, draw_case(of, 0, number)) for number in numbers]
    return [str(outcome) for outcome in outcomes if isinstance(outcome, Fault)]


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_drawn_by_their_number_alone(name):
    of = campaign(name)
    assert set(of.cases) == {"ci", "nightly"}
    cases = [draw_case(of, 0, number) for number in range(30)]
    assert cases == [draw_case(of, 0, number) for number in range(30)]
    assert len(set(map(repr, cases))) > 20
    assert draw_case(of, 1, 3) != cases[3]
    assert all(map(group_of, cases))


# Fuzzed fits


def test_fits_hold():
    assert found_by("fits", range(12)) == []


def test_simple_fits_are_not_refused():
    assert {fits.check(fits.Case(estimator=name, widths=(2,))) for name in ("CMVMED", "MED", "MVMED", "CoRLS")} == {
        HELD
    }
    assert fits.check(fits.Case(parameters=(("temperature", -1),))) == CLEAR_ERROR


def not_a_number(self, X):
    return np.full((12, 2), np.nan)


def raise_index_error(self, X, y, **_):
    raise IndexError("list index out of range")


def raise_of_numpy(self, X, y, **_):
    return np.zeros(3) + np.zeros(4)


def change_input(self, X, y, **_):
    X[0][0, 0] += 1.0
    return real_fit(self, X, y)


def overflow(self, X, y, **_):
    np.exp(np.array([1e4]))
    return real_fit(self, X, y)


def forget_class(self, X, y, **_):
    real_fit(self, X, y)
    self.classes_ = self.classes_[::-1][:1]
    return self


def random_predictions(self, X):
    p = np.random.default_rng().random((12, 1))
    return np.hstack([p, 1.0 - p])


real_fit = cmvmed.CMVMED.fit


@pytest.mark.parametrize(
    ("method", "broken", "kind"),
    [
        ("predict_proba", not_a_number, "probabilities are not finite"),
        ("predict_proba", lambda self, X: np.full((12, 2), 0.6), "probabilities do not sum to 1"),
        ("predict_proba", random_predictions, "a second fit differs"),
        ("fit", raise_index_error, "IndexError at"),
        ("fit", raise_of_numpy, "ValueError that no check raised"),
        ("fit", change_input, "input changed"),
        ("fit", overflow, "RuntimeWarning at"),
        ("fit", forget_class, "scores of another shape"),
    ],
)
def test_a_broken_estimator_is_found(monkeypatch, method, broken, kind):
    monkeypatch.setattr(cmvmed.CMVMED, method, broken)
    with pytest.raises(Fault, match=kind):
        fits.check(fits.Case(repeated=True))


# Models elsewhere, files that are written during a fit, extremes, two persons


@pytest.mark.parametrize(
    ("name", "numbers"), [("exports", range(6)), ("writers", (2, 5)), ("extremes", (2,)), ("tables", range(14))]
)
def test_the_other_campaigns_hold(name, numbers):
    assert found_by(name, numbers) == []


@pytest.mark.parametrize("target", exports.TOLERANCES)
def test_an_exported_model_that_differs_is_found(monkeypatch, target):
    path, honest = ("by_dask", exports.by_dask) if target == "Dask" else ("by_onnx", exports.by_onnx)
    monkeypatch.setattr(exports, path, lambda *given: honest(*given) + 2e-5)
    with pytest.raises(Fault, match="probabilities differ"):
        exports.check(exports.Case(target=target))


@pytest.mark.parametrize("format", ["csv", "xlsx"])
def test_a_reader_that_takes_decimals_for_thousands_is_found(monkeypatch, format):
    def without_commas(texts, decimal):
        return pd.to_numeric(texts.str.replace(",", ""), errors="coerce").to_numpy(dtype=float, na_value=np.nan)

    tables.project(".")
    monkeypatch.setattr(columns, "_as_floats", without_commas)
    with pytest.raises(Fault, match="other values: a_small"):
        tables.check(tables.Case(format=format, decimal=",", spelling="sign", texts=True))


def test_a_model_of_neither_content_is_found(monkeypatch):
    monkeypatch.setattr(writers, "fitted", lambda content: (np.zeros((writers.N_ROWS, 2)) + content, 0.0))
    monkeypatch.setattr(writers, "predicted", lambda X: np.full((writers.N_ROWS, 2), 0.5))
    with pytest.raises(Fault, match="a model of neither content"):
        writers.check(writers.Case())


def test_a_fit_that_asks_for_the_time_is_found(monkeypatch):
    monkeypatch.setattr(cmvmed.CMVMED, "predict_proba", lambda self, X: probabilities_of_the_time())
    with pytest.raises(Fault, match="another clock changes a fit"):
        extremes.check(extremes.Case())


def probabilities_of_the_time():
    share = time.time() % 1000.0 / 1000.0
    return np.tile([share, 1.0 - share, 0.0], (60, 1))


def test_labels_that_are_lost_or_of_nobody_are_found():
    said = {"Ann": {"w1": "walk"}, "Ben": {"w2": "run"}}
    browsers.compare(said, {("Ann", "w1"): "walk", ("Ben", "w2"): "run"})
    for found in ({("Ann", "w1"): "walk"}, {("Ann", "w1"): "walk", ("Ben", "w2"): "walk"}):
        with pytest.raises(Fault, match="lost or others"):
            browsers.compare(said, found)
    with pytest.raises(Fault, match="nobody gave"):
        browsers.compare(said, {("Ann", "w1"): "walk", ("Ben", "w2"): "run", ("Ben", "w1"): "run"})


# Relations and certificates


def test_relations_hold():
    assert found_by("relations", range(1, len(relations.RELATIONS), 3)) == []


@pytest.mark.parametrize("relation", ["rows", "views", "single rows", "saved", "X as dict"])
def test_predictions_that_depend_on_what_they_must_not_are_found(monkeypatch, relation):
    calls = iter(range(100))
    honest = relations.outputs
    monkeypatch.setattr(relations, "outputs", lambda model, X: honest(model, X) + 1e-5 * next(calls))
    with pytest.raises(Fault, match="predictions differ"):
        relations.check(relations.Case(relation=relation, estimator="CMVMED, consensus"))


def test_certificates_hold():
    assert found_by("certificates", range(len(certificates.CERTIFICATES))) == []


def broken_fit(change):
    honest = certificates.fit

    def fit(case, **parameters):
        found = honest(case, **parameters)
        change(found.model)
        return found

    return fit


def raise_objective(model):
    model.history_["objective"] = np.arange(len(model.history_["objective"]), dtype=float)


def scale_duals(model):
    model.dual_coef_ = {name: 0.9 * tau for name, tau in model.dual_coef_.items()}


def change_distributions(model):
    model.label_distributions_ = 0.5 * model.label_distributions_ + 0.25


def double_weight(model):
    model.consensus_weight_ *= 2.0


@pytest.mark.parametrize(
    ("certificate", "change"),
    [
        ("monotony", raise_objective),
        ("geometric mean", change_distributions),
        ("class shares", change_distributions),
        ("optimality", scale_duals),
        ("covariance", double_weight),
        ("mean", scale_duals),
    ],
)
def test_a_wrong_solution_is_found(monkeypatch, certificate, change):
    case = certificates.Case(certificate=certificate, n_labeled=9)
    assert certificates.check(case) == HELD
    monkeypatch.setattr(certificates, "fit", broken_fit(change))
    with pytest.raises(Fault, match=certificate):
        certificates.check(case)


def test_views_that_are_not_independent_are_found(monkeypatch):
    monkeypatch.setattr(cmvmed.MED, "decision_function", lambda self, X: np.zeros(len(X)))
    with pytest.raises(Fault, match="independent views"):
        certificates.check(certificates.Case(certificate="independent views"))


# The command


@dataclass(frozen=True)
class Case:
    size: int = 0
    words: tuple[str, ...] = ()
    flag: bool = False

    @property
    def group(self):
        return "all"


def check(case):
    if case.size > 3 and "bad" in case.words:
        raise Fault("too large", str(case))
    return HELD


def test_failures_are_simplified():
    of = Campaign("made", __name__, {"ci": 1, "nightly": 1}, lambda rng, number: Case(), check)
    assert shrink(of, Case(100, ("good", "bad", "other"), True), "too large") == Case(6, ("bad",))


def run(tmp_path, *arguments):
    return main(["--output", str(tmp_path / "faults.json"), *arguments])


def test_a_run_continues_and_parts_are_joined(tmp_path, capsys):
    of = ["--campaign", "certificates"]
    assert run(tmp_path, *of, "--cases", "3") == 0
    assert "certificates: 3 cases" in capsys.readouterr().out
    assert run(tmp_path, *of, "--cases", "5") == 0
    (record,) = read_records(tmp_path / "faults.json")
    assert record.n_done == 5
    for part in ("1/2", "2/2"):
        assert main(["--output", str(tmp_path / part[0]), *of, "--cases", "5", "--part", part]) == 0
    joined = tmp_path / "joined.json"
    assert main(["--output", str(joined), "--merge", str(tmp_path / "1"), str(tmp_path / "2")]) == 0
    assert table(read_records(joined)) == table([record])


def test_a_failure_prints_a_script_that_repeats_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cmvmed.CMVMED, "predict_proba_by_view", lambda self, X: {"view0": np.full((len(X[0]), 2), 0.5)})
    monkeypatch.setattr("benchmarks.faults.campaign.shrink", lambda of, case, kind: case)  # tested above
    assert run(tmp_path, "--campaign", "certificates", "--cases", "2") == 1
    printed = capsys.readouterr().out
    assert "1 failures" in printed
    lines = printed[printed.index("from benchmarks.faults.certificates") :].split("\n\n")[:2]
    with pytest.raises((Fault, ValueError)):
        exec("\n".join(lines))
    assert run(tmp_path, "--campaign", "certificates", "--case", "1") == 1
    assert run(tmp_path, "--campaign", "certificates", "--case", "0") == 0


def test_the_table_adds_up():
    tally = Tally({"csv": {HELD: 2, "failure": 1, NOT_DETECTABLE: 4, "skipped": 9}})
    records = [Record("damaged_files", 0, first, 2, 7, 1.0, tally) for first in (0, 1)]
    lines = table_lines(merged([records, records[:1]]))
    assert lines[1:] == [
        ["damaged files", "1", "14", "4", "0", "8", "0", "2"],
        ["all", "1", "14", "4", "0", "8", "0", "2"],
    ]


@pytest.mark.parametrize(
    "case",
    [fits.Case(widths=(3,), weights="huge", estimator="MVMED", parameters=(("prior_variance", [1e8]),))],
)
def test_what_fuzzed_fits_found(case):
    assert fits.check(case) in (HELD, CLEAR_ERROR)
