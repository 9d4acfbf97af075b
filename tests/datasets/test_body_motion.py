"""Simulated body-worn sensors: cadence, gravity, orientation, reproducibility, and mistakes."""

import numpy as np
import pytest
from scipy.signal import periodogram

from cmvmed.datasets import make_body_motion
from cmvmed.datasets.body_motion import ACTIVITIES, GRAVITY


def test_shapes_and_truth():
    made = make_body_motion(2, seconds=2.0, random_state=0)
    assert {name: values.shape for name, values in made.signals.items()} == {
        "wrist": (12, 3, 100),
        "ankle": (12, 3, 200),
        "chest": (12, 3, 50),
    }
    assert np.bincount(made.target).tolist() == [2] * 6
    assert made.sampling_rates == {"wrist": 50.0, "ankle": 100.0, "chest": 25.0}
    assert made.target_names == list(ACTIVITIES)


def test_the_same_seed_gives_the_same_bytes():
    one, two, other = (make_body_motion(1, random_state=seed) for seed in (0, 0, 1))
    assert one.signals["chest"].tobytes() == two.signals["chest"].tobytes()
    assert one.signals["chest"].tobytes() != other.signals["chest"].tobytes()


def test_the_mean_is_gravity_and_not_changed_by_orientation():
    made = make_body_motion(10, seconds=20.0, noise=0.0, random_state=0)
    standing = made.target == list(ACTIVITIES).index("standing")
    for signals in made.signals.values():
        length = np.linalg.norm(signals[standing].mean(axis=2), axis=1)
        np.testing.assert_allclose(length, GRAVITY, rtol=0.02)


def test_the_ankle_moves_once_per_stride():
    made = make_body_motion(10, seconds=20.0, noise=0.0, random_state=0)
    walking = np.flatnonzero(made.target == 0)
    ankle = made.signals["ankle"][walking].astype(float)
    hertz, power = periodogram(ankle - ankle.mean(axis=2, keepdims=True), fs=100, axis=2)
    peak = hertz[power.sum(axis=1).argmax(axis=1)]
    ratio = peak / made.cadence[walking]
    nearest = np.round(2 * ratio) / 2  # strides, steps and their harmonics
    np.testing.assert_allclose(ratio, nearest, atol=0.1)
    assert np.median(ratio) < 1.1


def test_noise_adds_power():
    quiet, loud = (make_body_motion(10, noise=noise, random_state=0).signals["wrist"] for noise in (0.0, 2.0))
    assert loud.var(axis=2).mean() > quiet.var(axis=2).mean() + 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_per_class": 0}, "n_per_class must be at least 1"),
        ({"seconds": 0.1}, "seconds must be at least 0.5"),
        ({"noise": -1.0}, "noise must not be negative"),
    ],
)
def test_mistakes(changes, message):
    with pytest.raises(ValueError, match=message):
        make_body_motion(**changes)
