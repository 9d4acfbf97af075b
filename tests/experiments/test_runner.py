"""The runner computes every missing row once."""

from dataclasses import replace

import pytest

from experiments import runner
from experiments.datasets import DatasetNotFoundError
from experiments.experiment import TABLE_1, restrict
from experiments.methods import METHODS, Method
from experiments.result_rows import ResultRow
from experiments.runner import dask_executor, local_executor, plan, run
from experiments.store import ResultStore
from experiments.tasks import TASKS, Task

CHEAP = "logistic regression, labels only"
SMALL = restrict(TABLE_1, n_splits=3, datasets=["gauss"], methods=[CHEAP], protocols=["defaults"])


@pytest.fixture
def store(tmp_path):
    with ResultStore(tmp_path / "results.sqlite") as store:
        yield store


def failing(split):
    raise RuntimeError("broken")


def test_all_rows_are_computed_once(store):
    wanted = plan(SMALL).methods
    received = []
    run(wanted, store, local_executor(1), on_row=lambda row, n_left: received.append((row.key, n_left)))
    assert store.done_keys() == set(wanted)
    assert {key for key, _ in received} == set(wanted)
    assert [n_left for _, n_left in received] == [2, 1, 0]
    run(wanted, store, local_executor(1), on_row=lambda row, n_left: pytest.fail("already finished"))


@pytest.mark.slow
def test_rows_that_two_experiments_have_in_common_are_computed_once(store):
    wanted = plan(SMALL).methods
    run(wanted, store, local_executor(1))
    scores = {row.key[1:]: row.accuracy for row in store.rows()}
    other = plan(replace(SMALL, name="other", n_splits=SMALL.n_splits + 1)).methods
    computed = []
    run(other, store, local_executor(1), on_row=lambda row, n_left: computed.append(row.key[1:]))
    assert set(computed) == {key[1:] for key in other} - set(scores)
    assert computed
    assert scores == {row.key[1:]: row.accuracy for row in store.rows("other") if row.key[1:] in scores}
    assert store.done_keys() == {*wanted, *other}


@pytest.mark.slow
def test_worker_processes_give_the_same_rows(store, tmp_path):
    wanted = plan(SMALL).methods
    run(wanted, store, local_executor(1))
    with ResultStore(tmp_path / "other.sqlite") as other:
        run(wanted, other, local_executor(2))
        assert [scores(row) for row in other.rows()] == [scores(row) for row in store.rows()]


def scores(row):
    return replace(row, fit_seconds=None, predict_seconds=None, peak_mib=None, finished="")


def test_a_dask_cluster_without_workers_is_an_error(store, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs cmvmed[dask]")
    monkeypatch.setattr(runner, "WORKER_SECONDS", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        pytest.raises(TimeoutError, match=r"no worker for 0\.2 s; start at least one"),
    ):
        run(plan(SMALL).methods, store, dask_executor(cluster.scheduler_address))


def test_failures_are_rows_and_are_retried_on_request_only(store):
    wanted = plan(SMALL).methods
    broken = dict.fromkeys(wanted, Method(CHEAP, failing))
    run(broken, store, local_executor(1))
    assert {row.error for row in store.rows()} == {"RuntimeError: broken"}
    run(wanted, store, local_executor(1), on_row=lambda row, n_left: pytest.fail("retry was not requested"))
    run(wanted, store, local_executor(1), retry_failed=True)
    assert {row.status for row in store.rows()} == {"done"}
    run(broken, store, local_executor(1), retry_failed=True, on_row=lambda row, n_left: pytest.fail("done"))


def test_rows_of_another_process_are_skipped(store):
    wanted = plan(restrict(SMALL, n_splits=10)).methods
    received = []
    with ResultStore(store.path) as other:

        def add_remaining_rows(row, n_left):
            received.append(row)
            for key in wanted.keys() - {row.key}:
                other.add(ResultRow(**key._asdict(), status="done", accuracy=0.125))

        run(wanted, store, local_executor(1), on_row=add_remaining_rows)
    assert sum(row.accuracy == 0.125 for row in store.rows()) == 9
    assert len(received) == 2  # the second was started before the store was read again


def test_missing_data_sets_are_reported_and_skipped(monkeypatch):
    def missing():
        raise DatasetNotFoundError("not found")

    monkeypatch.setitem(TASKS, "ads", Task("ads", missing, 50, 550))
    planned = plan(restrict(SMALL, datasets=["ads", "gauss"]))
    assert planned.missing_datasets == {"ads": "not found"}
    assert {key.dataset for key in planned.methods} == {"gauss"}


def test_missing_packages_are_reported_and_skipped(monkeypatch):
    method = replace(METHODS["SVM-2K"], package="no_such_package")
    monkeypatch.setitem(METHODS, "SVM-2K", method)
    planned = plan(restrict(SMALL, datasets=["gauss"], methods=["SVM-2K", "CMV-MED"]))
    assert list(planned.missing_methods) == ["SVM-2K"]
    assert {key.method for key in planned.methods} == {"CMV-MED"}


def test_number_of_published_splits_is_not_exceeded(monkeypatch):
    task = replace(TASKS["gauss"], n_published=2)
    monkeypatch.setitem(TASKS, "gauss", task)
    assert {key.split for key in plan(SMALL).methods} == {0, 1}


@pytest.mark.slow
def test_every_method_uses_the_same_split(monkeypatch, store):
    drawn = []
    draw_split = runner.draw_split
    monkeypatch.setattr(runner, "draw_split", lambda *which: drawn.append(which[1:]) or draw_split(*which))
    both = restrict(SMALL, methods=[CHEAP, "SVC, labels only"])
    run(plan(both).methods, store, local_executor(1))
    assert sorted(drawn) == [(0, 30), (1, 30), (2, 30)]
    assert len(store.rows()) == 6
