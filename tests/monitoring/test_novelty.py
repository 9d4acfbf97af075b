"""Novelty: one is the distance that a further row exceeds with a probability of 1 %."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from cmvmed.monitoring.novelty import N_NEIGHBORS, novelty_by_view
from cmvmed.monitoring.reference import Reference, fit_profile


def reference(kept, n_views=1):
    """A reference with the given features, the same for each view."""
    profile = fit_profile(np.random.default_rng(0).normal(size=(20, kept.shape[1] - 2)), kept.shape[1] - 2)
    features = np.hstack([kept] * n_views).astype(np.float32)
    return Reference((profile,) * n_views, features, np.ones((len(kept), 1), dtype=np.float32), len(kept) // 2)


def test_novelty_is_the_ratio_of_distances_to_nearest_rows():
    rng = np.random.default_rng(1)
    kept, new = rng.normal(size=(199, 5)), rng.normal(size=(30, 5))
    kept = kept.astype(np.float32).astype(float)
    neighbors = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(kept)
    left_out = np.sort(neighbors.kneighbors()[0][:, -1])  # of each kept row to the others
    expected = neighbors.kneighbors(new)[0][:, -1] / left_out[198 - 1]  # the 198th of 199: 198/200 = 99 %
    np.testing.assert_allclose(novelty_by_view(reference(kept), new)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("n_kept", [15, 60, 300])
@pytest.mark.parametrize("draw", ["normal", "heavy", "repeated"])
def test_one_in_a_hundred_new_rows_is_above_one(n_kept, draw):
    """The mean over references; of one reference, the share of rows above 1 varies with its 99 % quantile."""

    def rows(rng, n):
        if draw == "repeated":
            return rng.integers(0, 3, size=(n, 4)).astype(float)
        return rng.standard_t(3, size=(n, 4)) if draw == "heavy" else rng.normal(size=(n, 4))

    shares = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shares.append((novelty_by_view(reference(rows(rng, n_kept)), rows(rng, 200))[0] > 1.0).mean())
    assert np.mean(shares) <= (0.05 if n_kept == 15 else 0.02)
    assert np.mean(shares) >= 0.003 or draw != "normal"


def test_missing_views_are_nan_and_do_not_count():
    rng = np.random.default_rng(2)
    kept = rng.normal(size=(100, 4))
    with_gaps = np.vstack([kept, np.full((50, 4), np.nan)])
    new = np.vstack([rng.normal(size=(5, 4)), np.full((1, 4), np.nan)])
    found = novelty_by_view(reference(with_gaps), new)[0]
    assert np.isnan(found[-1])
    np.testing.assert_allclose(found, novelty_by_view(reference(kept), new)[0])


def test_without_rows_nothing_is_known():
    kept = np.full((30, 4), np.nan)
    assert np.isnan(novelty_by_view(reference(kept), np.zeros((3, 4)))[0]).all()
