"""The data sets that come with scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from cmvmed.datasets import load_breast_cancer_views, load_digits_views


def test_digits_are_split_into_halves():
    bunch, digits = load_digits_views(), load_digits()
    assert bunch.views == {"upper": slice(0, 32), "lower": slice(32, 64)}
    np.testing.assert_array_equal(bunch.data[:, bunch.views["upper"]], digits.images[:, :4].reshape(-1, 32))
    np.testing.assert_array_equal(bunch.data[:, bunch.views["lower"]], digits.images[:, 4:].reshape(-1, 32))
    np.testing.assert_array_equal(bunch.target, digits.target)
    assert bunch.target_names.tolist() == list("0123456789")
    assert bunch.feature_names[32] == "lower__pixel_4_0"


def test_digits_by_parity():
    bunch = load_digits_views(parity=True)
    assert bunch.target_names.tolist() == ["even", "odd"]
    assert np.bincount(bunch.target).tolist() == [891, 906]
    np.testing.assert_array_equal(bunch.target, load_digits().target % 2)


def test_breast_cancer_is_split_into_mean_error_and_worst():
    bunch, cancer = load_breast_cancer_views(), load_breast_cancer()
    assert bunch.views == {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    np.testing.assert_array_equal(bunch.data, cancer.data)
    assert bunch.feature_names[::10] == ["mean__radius", "error__radius", "worst__radius"]
    assert bunch.target_names[bunch.target[0]] == "malignant"


@pytest.mark.parametrize("load", [load_digits_views, load_breast_cancer_views])
def test_nothing_is_missing_and_no_row_is_duplicated(load):
    bunch = load()
    assert not bunch.missing.any()
    assert np.isfinite(bunch.data).all()
    assert len(np.unique(bunch.data, axis=0)) == len(bunch.data)


@pytest.mark.parametrize("load", [load_digits_views, load_breast_cancer_views])
def test_as_frame_and_return_x_y(load):
    data, target = load(as_frame=True, return_X_y=True)
    bunch = load()
    np.testing.assert_array_equal(data, bunch.data)
    np.testing.assert_array_equal(target, bunch.target)
    assert list(data.columns) == bunch.feature_names


@pytest.mark.parametrize(
    ("load", "facts"),
    [
        (load_digits_views, ["1797", "891", "906", "CC BY 4.0"]),
        (load_breast_cancer_views, ["569", "212", "357", "CC BY 4.0"]),
    ],
)
def test_the_description_states_the_facts(load, facts):
    description = load().DESCR
    for fact in facts:
        assert fact in description
