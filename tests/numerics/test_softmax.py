"""The softmax over the last axis, against scipy's."""

import numpy as np
import pytest
from scipy import special

from cmvmed.numerics.softmax import log_softmax, softmax


@pytest.mark.parametrize("shape", [(7,), (5, 2), (40, 9), (3, 11, 4), (0, 3)])
def test_values_are_those_of_scipy(shape):
    z = 30.0 * np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(softmax(z), special.softmax(z, axis=-1), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(log_softmax(z), special.log_softmax(z, axis=-1), rtol=1e-13, atol=1e-13)
    assert softmax(z).shape == shape


def test_large_scores_do_not_overflow_and_the_scores_are_left_as_they_are():
    z = np.array([[1e300, -1e300], [0.0, -1e4]])
    given = z.copy()
    np.testing.assert_array_equal(softmax(z), [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(log_softmax(z)[1], [0.0, -1e4])
    np.testing.assert_array_equal(z, given)
