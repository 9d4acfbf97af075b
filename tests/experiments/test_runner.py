"""The runner computes every missing row once; experiments and text tables."""

from dataclasses import replace

import pytest
from cmvmed.reproduction import runner

from experiments.datasets import DatasetNotFoundError
from experiments.experiment import (
    EXPERIMENTS,
    FIGURE_2,
    PAPER_TABLE_1,
    PAPER_VIEWS,
    TABLE_1,
    paper_result,
    quick,
    restrict,
)
from experiments.methods import ALL_METHODS, METHODS, Method
from experiments.result_rows import ResultRow
from experiments.runner import dask_executor, local_executor, plan, run
from experiments.store import ResultStore
from experiments.summary import format_tables, summarize
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
    method = replace(METHODS["SVM-2K"], package=("no_such_package", "baselines"))
    monkeypatch.setitem(METHODS, "SVM-2K", method)
    planned = plan(restrict(SMALL, datasets=["gauss"], methods=["SVM-2K", "CMV-MED"]))
    assert list(planned.missing_methods) == ["SVM-2K"]
    assert {key.method for key in planned.methods} == {"CMV-MED"}


def test_number_of_published_splits_is_not_exceeded(monkeypatch):
    task = replace(TASKS["gauss"], n_published=2)
    monkeypatch.setitem(TASKS, "gauss", task)
    assert {key.split for key in plan(SMALL).methods} == {0, 1}


def test_every_method_uses_the_same_split(monkeypatch, store):
    drawn = []
    draw_split = runner.draw_split
    monkeypatch.setattr(runner, "draw_split", lambda *which: drawn.append(which[1:]) or draw_split(*which))
    both = restrict(SMALL, methods=[CHEAP, "LabelSpreading knn"])
    run(plan(both).methods, store, local_executor(1))
    assert sorted(drawn) == [(0, 30), (1, 30), (2, 30)]
    assert len(store.rows()) == 6


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_experiments_have_known_data_sets_and_methods(experiment):
    assert {cell.dataset for cell in experiment.cells} <= set(TASKS)
    assert set(experiment.methods) <= set(ALL_METHODS)
    assert experiment.n_splits == 20
    assert quick(experiment).n_splits < experiment.n_splits
    assert set(quick(experiment).protocols) == set(experiment.protocols) - {"tuned"}
    for cell in experiment.cells:
        assert cell.n_labeled < TASKS[cell.dataset].n_train


def test_table_1_has_the_papers_numbers_of_labels():
    labels = {cell.dataset: cell.n_labeled for cell in TABLE_1.cells}
    assert labels == {"footsteps": 50, "sensit": 50, "webkb": 15, "ads": 50}
    assert TASKS["ads"].n_train == 600
    for cell in TABLE_1.cells:
        assert cell in FIGURE_2.cells
    assert (FIGURE_2.methods, FIGURE_2.protocols) == (TABLE_1.methods, TABLE_1.protocols)


def test_the_papers_results():
    assert len(PAPER_TABLE_1) == 15
    assert (paper_result("webkb", 15, "CMV-MED").mean, paper_result("ads", 50, "SVM-2K").mean) == (91.7, 82.5)
    assert paper_result("webkb", 15, "MED, view link").mean == 77.1
    assert paper_result("webkb", 25, "CMV-MED") is None
    assert paper_result("footsteps", 50, "CMV-MED") is None  # not the paper's recordings
    assert PAPER_VIEWS == {"webkb": ("page", "link"), "ads": ("image", "context")}


def rows_of(method, accuracies, dataset="webkb"):
    return [
        ResultRow("table1", dataset, 15, n, method, "defaults", "done", accuracy=accuracy, majority_rate=0.75)
        for n, accuracy in enumerate(accuracies)
    ]


def test_text_table():
    failed = ResultRow("table1", "webkb", 15, 9, "CMV-MED", "defaults", "failed", error="no")
    rows = [*rows_of("CMV-MED", [0.9, 0.95]), failed, *rows_of("SVM-2K", [0.8]), *rows_of("MV-MED", [0.5], "ads")]
    by_method = {(entry.dataset, entry.method): entry for entry in summarize(rows)}
    ours = by_method["webkb", "CMV-MED"]
    assert (round(ours.mean, 3), round(ours.deviation, 3), ours.n_splits, ours.n_failed) == (92.5, 3.536, 2, 1)
    assert (ours.paper_mean, ours.paper_deviation) == (91.7, 5.8)
    assert by_method["webkb", "majority class"].mean == 75.0
    lines = format_tables(rows).splitlines()
    assert "92.5 ± 3.5 [91.7 ± 5.8] (1 failed)" in lines[-1]
    assert [line.split("  ")[0] for line in lines[2:]] == ["majority class", "SVM-2K", "MV-MED", "CMV-MED"]


def test_the_balanced_accuracy_has_a_column_where_the_test_rows_have_other_class_shares():
    rows = [
        ResultRow("table1", name, 50, n, "CMV-MED", "defaults", "done", accuracy=a, balanced_accuracy=b)
        for name in ("footsteps", "sensit")
        for n, (a, b) in enumerate([(0.7, 0.6), (0.8, 0.7)])
    ]
    lines = format_tables(rows).splitlines()
    assert "footsteps, 50 labels, balanced" in lines[0]
    assert "sensit, 50 labels, balanced" not in lines[0]
    assert "75.0 ± 7.1" in lines[-1]
    assert "65.0 ± 7.1" in lines[-1]
    entry = summarize(rows)[0]
    assert (round(entry.balanced_mean, 6), round(entry.balanced_deviation, 3)) == (65.0, 7.071)
