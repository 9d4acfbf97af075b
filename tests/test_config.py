"""Settings of the process: the memory limit is set, restored, checked, and named by the errors that it causes."""

import threading

import numpy as np
import pytest

from cmvmed import CMVMED, MED, config_context
from cmvmed._config import configured_memory_limit, keeps_rows
from cmvmed.datasets import make_multiview_gaussian


@pytest.fixture(scope="module")
def problem():
    return make_multiview_gaussian(60, labeled=20, random_state=0)


def test_there_is_no_limit_by_default():
    assert configured_memory_limit() is None


def test_a_limit_is_set_and_restored():
    with config_context(memory_limit="2GiB"):
        assert configured_memory_limit() == "2GiB"
        with config_context(memory_limit=1000):
            assert configured_memory_limit() == 1000
        assert configured_memory_limit() == "2GiB"
        with config_context():  # nothing is changed
            assert configured_memory_limit() == "2GiB"
        with config_context(memory_limit=None):
            assert configured_memory_limit() is None
        assert configured_memory_limit() == "2GiB"
    assert configured_memory_limit() is None


def test_a_limit_is_restored_after_an_error():
    with config_context(memory_limit="2GiB"):
        with pytest.raises(ArithmeticError), config_context(memory_limit=1000):
            raise ArithmeticError
        assert configured_memory_limit() == "2GiB"
    assert configured_memory_limit() is None


def test_a_limit_may_decorate_a_function():
    @config_context(memory_limit=1000)
    def limited():
        return configured_memory_limit()

    assert [limited(), configured_memory_limit(), limited()] == [1000, None, 1000]


def test_a_limit_holds_in_its_own_thread_only():
    seen = []
    with config_context(memory_limit=1000):
        thread = threading.Thread(target=lambda: seen.append(configured_memory_limit()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_limits_are_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        config_context("2GiB")
    with pytest.raises(TypeError, match="unexpected keyword argument 'memory'"):
        config_context(memory="2GiB")


@pytest.mark.parametrize("bad", ["", "a lot", "1.2.3GB", "5 potatoes", 0, -1, True, [1]], ids=repr)
@pytest.mark.parametrize("estimator", [CMVMED(n_stages=1), MED()])
def test_a_bad_limit_is_an_error_of_fits_and_predictions(estimator, bad, problem):
    message = r"memory_limit must be None, a number of bytes or a text such as '1.5GiB', but is"
    with config_context(memory_limit=bad), pytest.raises(ValueError, match=message):
        estimator.fit(problem.data, problem.y)
    model = estimator.fit(problem.data, problem.y)
    with config_context(memory_limit=bad), pytest.raises(ValueError, match=message):
        model.predict(problem.data)


def test_kept_rows_are_a_setting_of_their_own():
    assert not keeps_rows()
    with config_context(keep_rows=True):
        with config_context(memory_limit=1000):
            assert keeps_rows()
        with config_context(keep_rows=False):
            assert not keeps_rows()
        assert keeps_rows()
    assert not keeps_rows()
    with pytest.raises(ValueError, match="keep_rows"), config_context(keep_rows="yes"):
        pass


LIMIT_ERROR = r"cmvmed\.config_context"


def test_a_tiny_limit_is_an_error_of_a_low_rank_fit_that_names_the_context(problem):
    model = CMVMED(views=problem.views, approximation=20, n_stages=1)
    with config_context(memory_limit="10KiB"), pytest.raises(MemoryError, match=LIMIT_ERROR):
        model.fit(problem.data, problem.y)
    with config_context(memory_limit=100), pytest.raises(MemoryError, match=LIMIT_ERROR):
        model.fit(problem.data, problem.y)
    assert model.fit(problem.data, problem.y).n_views_ == 2


@pytest.mark.parametrize("memory_limit", [100, "10KiB"])
def test_a_tiny_limit_is_an_error_of_files_that_names_the_context(memory_limit, problem, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, problem.data)
    model = CMVMED(views=problem.views, n_stages=1)
    with config_context(memory_limit=memory_limit), pytest.raises(MemoryError, match=LIMIT_ERROR):
        model.fit(path, problem.y)
    model.fit(path, problem.y)
    with config_context(memory_limit=100), pytest.raises(MemoryError, match=LIMIT_ERROR):
        model.predict(path)
    with config_context(memory_limit="1MiB"):
        assert model.predict(path).shape == (60,)
