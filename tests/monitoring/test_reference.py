"""Features of a view's rows: principal coordinates, distance from their space, and size; each computed another way."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

from cmvmed.monitoring.reference import fit_profile

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 12)) @ RNG.normal(size=(12, 12)) + 5.0
NEW = RNG.normal(size=(7, 12)) @ RNG.normal(size=(12, 12)) + 5.0
COUNTS = RNG.poisson(0.2, size=(60, 40)).astype(float)


def raw(profile, rows):
    """The features before they are divided by their standard deviations."""
    return profile.features(rows) * profile.deviation + profile.mean


def test_features_of_numbers_are_principal_components_residual_and_largest_deviation():
    profile = fit_profile(ROWS, 4)
    scaler = StandardScaler().fit(ROWS)
    z = scaler.transform(NEW)
    pca = PCA(4).fit(scaler.transform(ROWS))
    coordinates = pca.transform(z)
    outside = np.linalg.norm(z - pca.inverse_transform(coordinates), axis=1)
    found = raw(profile, NEW)
    np.testing.assert_allclose(np.abs(found[:, :4]), np.abs(coordinates) / np.sqrt(12), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[:, 4], outside / np.sqrt(12), rtol=1e-4)
    np.testing.assert_allclose(found[:, 5], np.abs(z).max(axis=1), rtol=1e-6)


def test_features_of_training_rows_have_mean_zero_and_variance_one():
    features = fit_profile(ROWS, 4).features(ROWS)
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(features.std(axis=0), 1.0, atol=1e-9)


def test_features_of_unit_rows_use_the_length_before():
    profile = fit_profile(COUNTS, 3, unit=True)
    found = raw(profile, COUNTS[:5])
    np.testing.assert_allclose(found[:, -1], np.linalg.norm(COUNTS[:5], axis=1), rtol=1e-6)
    pca = PCA(3).fit(normalize(COUNTS))
    np.testing.assert_allclose(np.abs(found[:, :3]), np.abs(pca.transform(normalize(COUNTS[:5]))), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("unit", [True, False])
def test_sparse_and_dense_rows_have_the_same_features(unit):
    dense, spare = fit_profile(COUNTS, 3, unit=unit), fit_profile(sparse.csr_matrix(COUNTS), 3, unit=unit)
    expected = dense.features(COUNTS)
    np.testing.assert_allclose(np.abs(spare.features(sparse.csr_matrix(COUNTS))), np.abs(expected), atol=1e-4)
    np.testing.assert_allclose(dense.features(sparse.csr_matrix(COUNTS)), expected, atol=1e-6)


@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_a_constant_column_has_a_scale(constant):
    rows = ROWS.copy()
    rows[:, 2] = constant
    profile = fit_profile(rows, 4)
    changed = rows[:5].copy()
    changed[:, 2] = 1e6
    assert np.linalg.norm(profile.features(changed), axis=1).min() > 1e3
    assert np.linalg.norm(profile.features(rows[:5]), axis=1).max() < 20.0


@pytest.mark.parametrize("value", [1e200, -1e308, 1e-300])
@pytest.mark.parametrize("unit", [True, False])
def test_features_are_finite(value, unit):
    changed = ROWS[:3].copy()
    changed[:, 1] = value
    assert np.isfinite(fit_profile(ROWS, 4, unit=unit).features(changed)).all()
    assert np.isfinite(fit_profile(changed, 4, unit=unit).features(ROWS)).all()


def test_rows_that_are_all_the_same_have_features_zero():
    same = np.ones((10, 3))
    profile = fit_profile(same, 2)
    np.testing.assert_allclose(profile.features(same), 0.0, atol=1e-12)
    assert np.abs(profile.features(same + 1.0)).max() > 0.5
