"""Work for views and folds side by side."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_limits

from cmvmed.core.threads import algebra_threads, parallel_map


@pytest.mark.parametrize(
    ("n_jobs", "low_rank", "workers"), [(None, False, 1), (None, True, 2), (1, True, 1), (2, False, 2), (3, True, 3)]
)
def test_as_many_workers_as_asked_for_or_as_the_algebra_has(n_jobs, low_rank, workers):
    with threadpool_limits(2):
        mapper = parallel_map(n_jobs, low_rank)
        together = threading.Barrier(workers, timeout=20.0)  # passes only if so many wait for each other
        assert list(mapper(lambda item: together.wait() * 0 + item, range(workers))) == list(range(workers))
    if workers == 1:
        assert mapper is map


def test_workers_share_the_threads_of_the_algebra_and_give_them_back():
    with threadpool_limits(2):
        assert list(parallel_map(2, False)(lambda item: algebra_threads(), range(2))) == [1, 1]
        assert algebra_threads() == 2


def test_no_items_and_errors():
    mapper = parallel_map(2, False)
    assert list(mapper(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        mapper(lambda item: 1 / item, [1, 0])
