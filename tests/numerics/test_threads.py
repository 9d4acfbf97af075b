"""Parallel work on views and folds, and the number of BLAS threads."""

from __future__ import annotations

import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED
from cmvmed.numerics import threads
from cmvmed.numerics.linalg import LONG_ROWS, eigen_psd
from cmvmed.numerics.threads import (
    blas_limit,
    blas_threads,
    interruptible,
    parallel_map,
    usable_threads,
)


@pytest.mark.parametrize(
    ("n_jobs", "low_rank", "workers"), [(None, False, 1), (None, True, 2), (1, True, 1), (2, False, 2), (3, True, 3)]
)
def test_number_of_workers(n_jobs, low_rank, workers, monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 4)
    with threadpool_limits(2):
        mapper = parallel_map(n_jobs, low_rank)
        together = threading.Barrier(workers, timeout=20.0)  # passes only if so many wait for each other
        assert list(mapper(lambda item: together.wait() * 0 + item, range(workers))) == list(range(workers))
    if workers == 1:
        assert mapper is map


def test_workers_share_the_blas_threads_and_restore_their_number():
    with threadpool_limits(2):
        assert list(parallel_map(2, False)(lambda item: blas_threads(), range(2))) == [1, 1]
        assert blas_threads() == 2


def test_no_more_threads_than_processors(monkeypatch):
    """As in a container whose quota is below the number of its processors, which BLAS does not know."""
    with threadpool_limits(2):
        monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
        assert (blas_threads(), usable_threads()) == (2, 1)
        assert parallel_map(None, True) is map


def test_libraries_of_later_imports_are_found(monkeypatch):
    before = threads._libraries()
    assert threads._libraries() is before
    monkeypatch.setitem(sys.modules, "a_module_that_was_not_there", threads)
    assert threads._libraries() is not before


def test_no_items_and_errors():
    mapper = parallel_map(2, False)
    assert list(mapper(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        mapper(lambda item: 1 / item, [1, 0])


def test_overlapping_limits_of_two_threads_are_restored():
    entered, first_left = threading.Event(), threading.Event()

    def second():
        with blas_limit(1):
            entered.set()
            first_left.wait(20.0)
            assert blas_threads() == 1  # the first limit's end does not end this one

    with threadpool_limits(2):
        other = ThreadPoolExecutor(1)
        with blas_limit(1):
            done = other.submit(second)
            entered.wait(20.0)
        first_left.set()
        done.result()
        assert blas_threads() == 2


def test_the_smallest_limit_applies():
    with threadpool_limits(3), blas_limit(2):
        assert blas_threads() == 2
        with blas_limit(1):
            assert blas_threads() == 1
        with blas_limit(None):
            assert blas_threads() == 2


@pytest.fixture
def end():
    """Ends the long calls of a test, in which Ctrl-C raises; it is ignored in jobs that a shell runs in the background."""
    before, others, end = (
        signal.signal(signal.SIGINT, signal.default_int_handler),
        threading.enumerate(),
        threading.Event(),
    )
    yield end
    signal.signal(signal.SIGINT, before)
    end.set()
    for thread in set(threading.enumerate()) - set(others):
        thread.join(20.0)


LONG_CALLS = {
    "one call": lambda end: interruptible(end.wait, 30.0),
    "two workers": lambda end: parallel_map(2, False)(end.wait, [30.0] * 5),
}


@pytest.mark.parametrize("call", LONG_CALLS.values(), ids=LONG_CALLS)
def test_an_interrupt_ends_the_wait_for_a_long_call_at_once(call, end):
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call(end)
    assert time.monotonic() - start < 20.0  # of 30, however busy the machine is


def test_results_errors_and_settings_of_the_other_thread():
    assert interruptible(abs, -3) == 3
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda x: 1 / x, 0)
    with np.errstate(divide="raise"):
        assert interruptible(lambda name: np.geterr()[name], "divide") == "raise"
    assert interruptible(lambda _: threading.current_thread(), None) is not threading.current_thread()
    with ThreadPoolExecutor(1) as pool:  # a thread that is not interrupted computes by itself
        ours, theirs = pool.submit(
            lambda: (threading.get_ident(), interruptible(lambda _: threading.get_ident(), None))
        ).result()
    assert ours == theirs


def test_the_eigendecomposition_is_the_same_in_another_thread():
    A = np.random.default_rng(0).normal(size=(LONG_ROWS, 40))
    values, vectors = eigen_psd(A @ A.T)
    expected = np.linalg.eigh(A @ A.T)
    np.testing.assert_array_equal(values, np.maximum(expected[0], 0.0))
    np.testing.assert_array_equal(vectors, expected[1])


def test_an_interrupted_call_goes_on_with_one_thread_of_linear_algebra(end):
    with threadpool_limits(2):
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(end.wait, 30.0)
        assert blas_threads() == 1  # OpenBLAS would wait for more at the end of the process
        end.set()
        start = time.monotonic()
        while blas_threads() == 1 and time.monotonic() - start < 20.0:  # an interrupted join does not wait again
            time.sleep(0.01)
        assert blas_threads() == 2  # given back


def test_an_interrupted_fit_gives_the_threads_back(monkeypatch):
    seen = []

    def interrupted(*given, **settings):
        seen.append(blas_threads())
        raise KeyboardInterrupt

    monkeypatch.setattr("cmvmed.estimators.cmvmed.anneal", interrupted)
    X = np.random.default_rng(0).normal(size=(30, 4))
    with threadpool_limits(2):
        with pytest.raises(KeyboardInterrupt):
            CMVMED(views={"a": [0, 1], "b": [2, 3]}).fit(X, np.where(np.arange(30) < 10, np.arange(30) % 2, -1))
        assert seen == [1]
        assert blas_threads() == 2
