"""Sums and maps over chunks equal those over all rows, for any container, number of threads and memory limit."""

import numpy as np
import pytest
from scipy import sparse

from cmvmed.data.layout import layout_of_widths
from cmvmed.data.sources import LocalRows, memory_rows
from cmvmed.data.sources.arrays import ArrayTable
from cmvmed.data.sources.base import MAX_CHUNK_ROWS, chunk_size
from cmvmed.numerics.linalg import is_sparse

N_ROWS, WIDTHS = 3 * MAX_CHUNK_ROWS + 17, (3, 2)


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(N_ROWS, width)) for width in WIDTHS]


def moments(first_row, matrices):
    """Products between the views and, to see that the row numbers are right, the sum of rows weighted by them."""
    numbers = first_row + np.arange(matrices[0].shape[0])
    first, second = (m.toarray() if is_sparse(m) else m for m in matrices)
    return first.T @ second, numbers @ first


def check_moments(source, views):
    expected = moments(0, views)
    for total, truth in zip(source.reduce(moments), expected, strict=True):
        np.testing.assert_allclose(total, truth, rtol=1e-10)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("memory_limit", [None, 200_000])
def test_sums_over_chunks(views, n_threads, memory_limit):
    check_moments(memory_rows(views, n_threads=n_threads, memory_limit=memory_limit), views)


def test_a_lost_chunk_is_noticed(views):
    with pytest.raises(AssertionError):
        check_moments(memory_rows([view[:MAX_CHUNK_ROWS] for view in views]), views)


def test_sums_do_not_depend_on_threads(views):
    one, three = (memory_rows(views, n_threads=n).reduce(moments) for n in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))


def test_sums_leave_the_first_result_alone(views):
    kept = np.zeros(1)

    def constant(first_row, matrices):
        return (kept,)

    memory_rows(views).reduce(constant)
    assert kept[0] == 0.0


def test_map_keeps_the_order_of_rows(views):
    source = memory_rows(views, n_threads=3, memory_limit=300_000)
    chunks = list(source.map(lambda first, matrices: first + np.arange(matrices[0].shape[0])))
    assert len(chunks) > 4
    np.testing.assert_array_equal(np.concatenate(chunks), np.arange(N_ROWS))


def test_map_computes_as_it_is_asked(views):
    computed = []
    results = memory_rows(views, n_threads=1).map(lambda first, matrices: computed.append(first) or np.zeros(1))
    next(results)
    assert computed == [0]


def test_containers_of_rows(views, tmp_path):
    path = tmp_path / "view.npy"
    np.save(path, views[0].astype(np.float32))
    rounded = [views[0].astype(np.float32).astype(np.float64), views[1]]
    source = memory_rows([np.load(path, mmap_mode="r"), sparse.csr_array(views[1])])
    check_moments(source, rounded)
    rows = np.array([0, 5, N_ROWS - 1])
    taken = source.take(rows)
    assert taken[0].dtype == np.float64
    np.testing.assert_array_equal(taken[0], rounded[0][rows])
    assert is_sparse(taken[1])
    np.testing.assert_array_equal(taken[1].toarray(), views[1][rows])


def test_one_table_for_all_views(views):
    layout = layout_of_widths(["a", "b"], WIDTHS)
    source = LocalRows([ArrayTable(np.hstack(views))], layout)
    assert source.widths == WIDTHS
    check_moments(source, views)
    np.testing.assert_array_equal(source.take(np.array([3]))[1], views[1][[3]])


def test_chunks_fit_the_memory_limit():
    assert chunk_size(1000, 2, None) == MAX_CHUNK_ROWS
    assert chunk_size(1000, 2, 10**9) == MAX_CHUNK_ROWS
    assert chunk_size(1000, 2, 20_000) == 10
    with pytest.raises(MemoryError, match=r"Raise the limit with cmvmed\.config_context"):
        chunk_size(1000, 2, 1999)


def test_what_the_function_needs_counts(views):
    sizes = []

    def see(first_row, matrices):
        sizes.append(matrices[0].shape[0])
        return (np.zeros(1),)

    source = memory_rows(views, n_threads=1, memory_limit=2_000_000)
    source.reduce(see)
    source.reduce(see, bytes_per_row=10_000)
    assert sizes[0] == MAX_CHUNK_ROWS
    assert sizes[-2] < 100


def test_sparse_rows_count_by_what_they_hold():
    wide = sparse.random_array((300, 1_000_000), density=1e-5, format="csr", rng=np.random.default_rng(0))
    sizes = []

    def see(first_row, matrices):
        sizes.append(matrices[0].shape[0])
        return (np.zeros(1),)

    memory_rows([wide], n_threads=1, memory_limit=10_000_000).reduce(see)
    assert sizes == [300]
    with pytest.raises(MemoryError):
        memory_rows([np.broadcast_to(0.0, (300, 1_000_000))], n_threads=1, memory_limit=10_000_000).reduce(see)


def test_errors_come_from_the_first_bad_chunk(views):
    def refuse(first_row, matrices):
        raise ValueError(f"chunk of row {first_row}")

    with pytest.raises(ValueError, match="chunk of row 0"):
        memory_rows(views, n_threads=3).reduce(refuse)
