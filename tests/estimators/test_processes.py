"""Predictions in another process: the same bits with as many threads of linear algebra, and nearly the same with others."""

import multiprocessing

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

TOLERANCE = 1e-12  # of probabilities, between numbers of threads; docs/scaling.md names it


def probabilities(model, X, n_threads):
    with threadpool_limits(n_threads):
        return model.predict_proba(X)


@pytest.mark.parametrize("approximation", ["exact", pytest.param("nystroem", marks=pytest.mark.slow)])
def test_predictions_of_spawned_processes_have_the_same_bits(approximation):
    data = make_multiview_gaussian(250, labeled=40, random_state=0)
    new = make_multiview_gaussian(133, random_state=1).data
    model = CMVMED(views=data.views, approximation=approximation, random_state=0).fit(data.data, data.y)
    here = [probabilities(model, new, n_threads) for n_threads in (1, 2)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.starmap(probabilities, [(model, new, n_threads) for n_threads in (1, 2)])
    for mine, theirs in zip(here, there, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(here[0], here[1], rtol=0.0, atol=TOLERANCE)


def test_predictions_do_not_depend_on_where_rows_are_in_memory():
    data = make_multiview_gaussian(200, labeled=40, random_state=0)
    model = CMVMED(views=data.views, random_state=0).fit(data.data, data.y)
    expected = model.predict_proba(data.data)
    for shift in (1, 3, 5):  # multiples of 8 bytes: other alignments for vector instructions
        room = np.empty(data.data.size + shift)
        shifted = room[shift:].reshape(data.data.shape)
        shifted[:] = data.data
        np.testing.assert_array_equal(model.predict_proba(shifted), expected)
