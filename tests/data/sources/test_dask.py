"""Dask collections give the sums of the same rows in memory, also if a worker is killed."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait
from scipy import sparse

from cmvmed import CMVMED
from cmvmed.data.layout import layout_of_widths
from cmvmed.data.sources import dask_rows
from cmvmed.data.sources.base import CHUNK_COPIES
from cmvmed.data.sources.dask import block_holders

N_ROWS, WIDTHS = 2000, (3, 2)


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(N_ROWS, width)) for width in WIDTHS]


@pytest.fixture
def cluster():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**settings) as workers, Client(workers) as client:
        yield client


def moments(first_row, matrices):
    """Products between the views, and the sum of rows weighted by their numbers.

    Rows are added one by one: the rounding of a matrix product depends on where its arguments are in memory.
    """
    numbers = first_row + np.arange(matrices[0].shape[0])
    products = matrices[0][:, :, None] * matrices[1][:, None, :]
    return products.sum(axis=0), (numbers[:, None] * matrices[0]).sum(axis=0)


def check_moments(source, views):
    for total, truth in zip(source.reduce(moments), moments(0, views), strict=True):
        np.testing.assert_allclose(total, truth, rtol=1e-10)


def as_frame(matrix, npartitions):
    frame = pd.DataFrame(matrix, columns=[f"x{i}" for i in range(matrix.shape[1])])
    return dd.from_pandas(frame, npartitions=npartitions)


def test_arrays_of_unequal_blocks(views):
    source = dask_rows([da.from_array(views[0], chunks=(300, 2)), da.from_array(views[1], chunks=(450, 1))])
    assert (source.n_rows, source.widths) == (N_ROWS, WIDTHS)
    check_moments(source, views)
    with pytest.raises(AssertionError):
        check_moments(source, [views[0][::-1], views[1]])


def test_frames(views):
    frames = [as_frame(views[0], 7), as_frame(views[1], 4)]
    check_moments(dask_rows(frames), views)
    layout = layout_of_widths(["a", "b"], WIDTHS)
    check_moments(dask_rows([as_frame(np.hstack(views), 7)], layout), views)


def test_blocks_of_unknown_size_and_without_rows(views):
    whole = da.from_array(np.hstack(views), chunks=(100, -1))
    late = whole[da.from_array(np.arange(N_ROWS) >= 250, chunks=100)]
    source = dask_rows([late], layout_of_widths(["a", "b"], WIDTHS))
    assert source.n_rows == N_ROWS - 250
    check_moments(source, [view[250:] for view in views])


def test_rows_and_results_in_order(views):
    source = dask_rows([da.from_array(view, chunks=(300, -1)) for view in views])
    rows = np.array([0, 299, 300, 1999])
    for taken, view in zip(source.take(rows), views, strict=True):
        np.testing.assert_array_equal(taken, view[rows])
    assert [part.shape for part in source.take(np.array([], dtype=np.intp))] == [(0, 3), (0, 2)]
    numbers = np.concatenate(list(source.map(lambda first, matrices: first + np.arange(matrices[0].shape[0]))))
    np.testing.assert_array_equal(numbers, np.arange(N_ROWS))


def test_chosen_rows_stay_in_the_blocks_that_they_come_from(views):
    rows = np.array([0, 299, 300, 301, 1999])
    source = dask_rows([da.from_array(view, chunks=(300, -1)) for view in views]).chosen(rows)
    assert source.arrays[0].chunks[0] == source.arrays[1].chunks[0] == (2, 2, 1)
    check_moments(source, [view[rows] for view in views])
    with pytest.raises(AssertionError):
        check_moments(source, [view[rows + 1 - 2 * (rows == 1999)] for view in views])


def test_sparse_blocks_stay_sparse(views):
    blocks = da.from_array(views[0], chunks=(300, -1)).map_blocks(sparse.csr_array)
    taken = dask_rows([blocks]).take(np.array([1, 1500]))[0]
    assert taken.format == "csr"
    np.testing.assert_array_equal(taken.toarray(), views[0][[1, 1500]])


def test_chunks_within_blocks(views):
    sizes = dask_rows([da.from_array(views[0], chunks=(500, -1))], memory_limit=CHUNK_COPIES * 24 * 100).reduce(
        lambda first, matrices: (np.array([1.0, matrices[0].shape[0]]),)
    )[0]
    np.testing.assert_array_equal(sizes, [20, N_ROWS])


def test_unequal_rows_are_refused(views):
    with pytest.raises(ValueError, match=r"unequal numbers of rows: \[2000, 1990\]"):
        dask_rows([da.from_array(views[0]), da.from_array(views[1][:-10])])
    with pytest.raises(ValueError, match="must have rows and columns"):
        dask_rows([da.from_array(views[0][:, 0])])


def test_an_error_in_a_task_is_the_callers(views):
    def refuse(first_row, matrices):
        raise ValueError(f"row {first_row} is bad")

    with pytest.raises(ValueError, match="row 0 is bad"), dask.config.set(scheduler="synchronous"):
        dask_rows([da.from_array(views[0])]).reduce(refuse)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_blocks_in_memory_are_assigned_to_the_workers_that_hold_them(cluster, views, kind):
    makers = {"array": lambda view: da.from_array(view, chunks=(150, -1)), "frame": lambda view: as_frame(view, 14)}
    persisted = [makers[kind](view).persist() for view in views]
    wait(persisted)  # until then no worker holds the blocks
    source = dask_rows(persisted)
    holders = block_holders(source.origin)
    assert len(holders) == 14
    assert [len({holders[block.number] for block in chain}) for chain in source._chains] == [1, 1]
    check_moments(source, views)


def slow_moments(first_row, matrices):
    time.sleep(0.2)
    return moments(first_row, matrices)


@pytest.mark.slow
@pytest.mark.parametrize("persisted", [False, True], ids=["lazy", "persisted"])
def test_a_killed_worker_changes_nothing(cluster, views, persisted):
    arrays = [da.from_array(view, chunks=(100, -1)) for view in views]
    source = dask_rows([array.persist() for array in arrays] if persisted else arrays)
    before = source.reduce(moments)
    victim = min(cluster.run(os.getpid).values())
    kill = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
    kill.start()
    after = source.reduce(slow_moments)
    kill.join()
    assert victim not in cluster.run(os.getpid).values()
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.fixture
def empty_cluster():
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as scheduler, Client(scheduler) as client:
        yield client


def test_a_cluster_without_workers_is_waited_for_and_then_an_error(empty_cluster, views):
    array = da.from_array(views[0], chunks=300)
    with dask.config.set({"cmvmed.worker-timeout": "200ms"}):
        with pytest.raises(TimeoutError, match=r"inproc.* no worker for 200ms"):
            dask_rows([array])
        y = np.where(views[0][:, 0] > 0, 1, 0)
        with pytest.raises(TimeoutError, match="Start a worker"):
            CMVMED(views=[2, 1]).fit(array, y)


def test_a_late_worker_is_waited_for(empty_cluster, views):
    late = threading.Timer(0.5, empty_cluster.cluster.scale, [1])
    late.start()
    check_moments(dask_rows([da.from_array(view, chunks=300) for view in views]), views)
    late.join()


def test_workers_that_are_gone_when_chains_are_made(empty_cluster, views):
    empty_cluster.cluster.scale(1)
    source = dask_rows([da.from_array(view, chunks=300) for view in views])
    empty_cluster.cluster.scale(0)
    while empty_cluster.nthreads():
        time.sleep(0.01)
    with dask.config.set({"cmvmed.worker-timeout": "200ms"}), pytest.raises(TimeoutError, match="Start a worker"):
        source.reduce(moments)
