"""``python -m experiments table1``: output, progress and exit codes."""

import json
import re
import sys
from dataclasses import replace
from io import StringIO

import pytest
from click.testing import CliRunner

from experiments.commands import main
from experiments.methods import METHODS, Method
from experiments.result_rows import ResultRow
from experiments.run_commands import MAX_LOG_LINES, progress
from experiments.store import ResultStore
from experiments.tasks import webkb

CHEAP_METHOD = "logistic regression, labels only"
CHEAP = [
    "table1",
    "--datasets",
    "gauss",
    "--splits",
    "2",
    "--methods",
    CHEAP_METHOD,
    "--protocol",
    "defaults",
    "--jobs",
    "1",
]


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results.sqlite"


def run(*arguments, results):
    return CliRunner().invoke(main, [*arguments, "--results", str(results)])


def test_output_ends_with_the_table_and_the_next_step(results):
    shown = run(*CHEAP, results=results)
    assert shown.exit_code == 0
    assert "2 rows, 0 of them finished before" in shown.stderr
    assert "majority class" in shown.stdout
    assert re.search(f"{CHEAP_METHOD} +linear ", shown.stdout)
    assert f"python -m experiments report --results {results}" in shown.stdout
    with ResultStore(results, read_only=True) as store:
        assert {row.status for row in store.rows("table1")} == {"done"}


def test_second_run_computes_nothing(results):
    first = run(*CHEAP, results=results)
    again = run(*CHEAP, results=results)
    assert "2 rows, 2 of them finished before" in again.stderr
    assert again.stdout == first.stdout


def test_estimate_counts_the_remaining_rows_and_computes_none(results):
    run(*CHEAP, results=results)
    shown = run(*CHEAP, "--splits", "5", "--estimate", results=results)
    assert shown.exit_code == 0
    assert re.match(rf"{re.escape(CHEAP_METHOD)} +defaults +3 ", shown.stdout.splitlines()[1])
    with ResultStore(results, read_only=True) as store:
        assert len(store.rows()) == 2


def test_estimate_needs_finished_rows(results):
    shown = run(*CHEAP, "--estimate", results=results)
    assert shown.exit_code == 1
    assert "python -m experiments" in shown.stderr
    assert not results.exists()


def test_standard_output_is_json_only(results):
    shown = run(*CHEAP, "--json", results=results)
    content = json.loads(shown.stdout)
    assert [entry["method"] for entry in content["table"]] == [CHEAP_METHOD, "majority class"]
    assert [entry["kernel"] for entry in content["table"]] == ["linear", ""]
    assert (content["failed"], content["missing_datasets"]) == ([], {})
    with ResultStore(results) as store:
        mean = sum(row.accuracy for row in store.rows()) / 2
    assert content["table"][0]["mean"] == pytest.approx(100.0 * mean)


def test_missing_data_set_is_reported_and_exits_with_1(results, tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.datasets.locations.find_spec", lambda name: None)  # no download, no cache
    monkeypatch.setenv("CMVMED_DATA", "")
    webkb.cache_clear()
    (tmp_path / "data").mkdir()
    shown = run(*CHEAP, "--datasets", "webkb", "--data-dir", str(tmp_path / "data"), results=results)
    assert shown.exit_code == 1
    assert "Skipped data set webkb: WebKB.mat was not found" in shown.stderr
    assert "--data-dir sets their folder" in shown.stderr
    assert "gauss, 30 labels" in shown.stdout


def test_failures_are_counted_and_exit_with_1(results, monkeypatch):
    def failing(split):
        raise RuntimeError("broken")

    monkeypatch.setitem(METHODS, CHEAP_METHOD, Method(CHEAP_METHOD, failing))
    shown = run(*CHEAP, results=results)
    assert shown.exit_code == 1
    assert "2 rows failed" in shown.stderr
    assert "failed (2)" in shown.stdout


@pytest.mark.parametrize("arguments", [["table3"], ["--splits", "0"], ["--methods", "magic"], ["--datasets", "iris"]])
def test_invalid_command_line_is_rejected(arguments, results):
    shown = run(*arguments, results=results)
    assert shown.exit_code == 2
    assert not results.exists()


def test_other_file_gives_one_line_and_is_not_changed(results):
    results.write_bytes(b"some text\n" * 1000)
    shown = run(*CHEAP, results=results)
    assert shown.exit_code == 1
    assert "is not a file of results, or is damaged" in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1
    assert results.read_bytes() == b"some text\n" * 1000


@pytest.mark.slow
def test_address_without_a_cluster(results):
    pytest.importorskip("distributed")
    shown = run(*CHEAP, "--dask", "tcp://127.0.0.1:9", results=results)
    assert shown.exit_code == 1
    assert "tcp://127.0.0.1:9" in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.slow
def test_dask_cluster_gives_the_same_rows(results, tmp_path):
    distributed = pytest.importorskip("distributed")
    run(*CHEAP, results=results)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        other = tmp_path / "dask.sqlite"
        shown = run(*CHEAP, "--dask", cluster.scheduler_address, results=other)
    assert shown.exit_code == 0
    with ResultStore(results) as one, ResultStore(other) as two:
        assert [(r.key, r.accuracy) for r in one.rows()] == [(r.key, r.accuracy) for r in two.rows()]


@pytest.mark.parametrize("n_rows", [3, 100])
def test_progress_is_a_few_lines_if_the_output_is_no_terminal(capsys, n_rows):
    done = ResultRow("table1", "gauss", 30, 0, "MV-MED", "defaults", "done")
    with progress(n_rows) as on_row:
        for n_left in reversed(range(n_rows)):
            on_row(replace(done, status="failed") if n_left == 1 else done, n_left)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Computing rows"
    assert lines[-1] == f"{n_rows} of {n_rows} rows, 1 failed"
    assert len(lines) <= MAX_LOG_LINES + 2


def test_progress_on_a_terminal_is_a_bar(monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress(4) as on_row:
        on_row(ResultRow("table1", "gauss", 30, 7, "MV-MED", "defaults", "done"), 2)
    assert "2/4" in sys.stderr.getvalue()
    assert "gauss, split 7, MV-MED" in sys.stderr.getvalue()


def test_progress_without_rows_is_silent(capsys):
    with progress(0):
        pass
    assert capsys.readouterr().err == ""
