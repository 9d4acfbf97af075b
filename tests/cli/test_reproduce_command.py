"""The command ``cmvmed reproduce``: what it prints, where, and with which exit code."""

import json

import pytest
from click.testing import CliRunner

from cmvmed.cli.main import main
from cmvmed.reproduction.methods import METHODS, Method
from cmvmed.reproduction.store import ResultStore
from cmvmed.reproduction.tasks import webkb

CHEAP = ["table1", "--datasets", "gauss", "--splits", "2", "--methods", "majority class", "--jobs", "1"]


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results.sqlite"


def reproduce(*arguments, results):
    return CliRunner().invoke(main, ["reproduce", *arguments, "--results", str(results)])


def test_it_ends_with_the_table_and_the_next_step(results):
    answer = reproduce(*CHEAP, results=results)
    assert answer.exit_code == 0
    assert "2 rows wanted, 0 there already" in answer.stderr
    assert "majority class" in answer.stdout
    assert f"cmvmed report --results {results}" in answer.stdout
    with ResultStore(results, read_only=True) as store:
        assert {row.status for row in store.rows("table1")} == {"done"}


def test_the_second_time_nothing_is_left_to_do(results):
    first = reproduce(*CHEAP, results=results)
    again = reproduce(*CHEAP, results=results)
    assert "2 rows wanted, 2 there already" in again.stderr
    assert again.stdout == first.stdout


def test_json_alone_is_on_the_output(results):
    answer = reproduce(*CHEAP, "--json", results=results)
    content = json.loads(answer.stdout)
    assert [entry["method"] for entry in content["table"]] == ["majority class", "commonest class"]
    assert (content["failed"], content["missing_datasets"]) == ([], {})
    with ResultStore(results) as store:
        mean = sum(row.accuracy for row in store.rows()) / 2
    assert content["table"][0]["mean"] == pytest.approx(100.0 * mean)


def test_a_missing_data_set_is_named_and_the_exit_code_says_so(results, tmp_path, monkeypatch):
    monkeypatch.setattr("cmvmed.datasets.locations.find_spec", lambda name: None)  # no download, no cache
    monkeypatch.setenv("CMVMED_DATA", "")
    webkb.cache_clear()
    (tmp_path / "data").mkdir()
    answer = reproduce(*CHEAP, "--datasets", "webkb", "--data-dir", str(tmp_path / "data"), results=results)
    assert answer.exit_code == 1
    assert "Left out: data set webkb. WebKB.mat was not found" in answer.stderr
    assert "--data-dir names their folder" in answer.stderr
    assert "gauss, 30 labels" in answer.stdout


def test_failures_are_counted_and_the_exit_code_says_so(results, monkeypatch):
    def failing(split):
        raise RuntimeError("out of luck")

    monkeypatch.setitem(METHODS, "majority class", Method("majority class", failing))
    answer = reproduce(*CHEAP, results=results)
    assert answer.exit_code == 1
    assert "2 rows failed" in answer.stderr
    assert "failed (2)" in answer.stdout


@pytest.mark.parametrize("arguments", [["table3"], ["--splits", "0"], ["--methods", "magic"], ["--datasets", "iris"]])
def test_a_wrong_command_line_is_refused(arguments, results):
    answer = reproduce(*arguments, results=results)
    assert answer.exit_code == 2
    assert not results.exists()


def test_a_foreign_file_gives_one_clear_line_and_stays_as_it_is(results):
    results.write_bytes(b"my diary\n" * 1000)
    answer = reproduce(*CHEAP, results=results)
    assert answer.exit_code == 1
    assert "is not a file of results, or is damaged" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
    assert results.read_bytes() == b"my diary\n" * 1000


@pytest.mark.slow
def test_an_address_without_a_cluster(results):
    pytest.importorskip("distributed")
    answer = reproduce(*CHEAP, "--dask", "tcp://127.0.0.1:9", results=results)
    assert answer.exit_code == 1
    assert "tcp://127.0.0.1:9" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_rows(results, tmp_path):
    distributed = pytest.importorskip("distributed")
    reproduce(*CHEAP, results=results)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        other = tmp_path / "dask.sqlite"
        answer = reproduce(*CHEAP, "--dask", cluster.scheduler_address, results=other)
    assert answer.exit_code == 0
    with ResultStore(results) as one, ResultStore(other) as two:
        assert [(r.key, r.accuracy) for r in one.rows()] == [(r.key, r.accuracy) for r in two.rows()]
