"""Simulated vibration of machines: where the power of each fault is, reproducibility, and mistakes."""

import numpy as np
import pytest
from scipy.signal import periodogram

from experiments.datasets import make_machine_vibration
from experiments.datasets.machine_vibration import DEFECT_ORDERS, _draw_machines, _impacts, _orders, _response


def quiet(**changes):
    return make_machine_vibration(40, noise_db=-60.0, fault_db=12.0, random_state=0, **changes)


def test_shapes_and_truth():
    made = make_machine_vibration(3, sampling_rate=1600, seconds=0.5, random_state=1)
    assert {name: values.shape for name, values in made.signals.items()} == dict.fromkeys(
        ("drive_end", "free_end", "frame"), (12, 1, 800)
    )
    assert np.bincount(made.target).tolist() == [3, 3, 3, 3]
    assert np.isneginf(made.severity_db[made.target == 0]).all()
    assert np.isfinite(made.severity_db[made.target > 0]).all()
    assert set(made.bearing[made.target == 3]) <= {0, 1}
    assert (made.bearing[made.target != 3] == -1).all()
    assert set(made.sampling_rates.values()) == {1600.0}


def test_the_same_seed_gives_the_same_bytes():
    one, two, other = (make_machine_vibration(2, random_state=seed) for seed in (0, 0, 1))
    assert one.signals["frame"].tobytes() == two.signals["frame"].tobytes()
    assert one.signals["frame"].tobytes() != other.signals["frame"].tobytes()


def test_looseness_has_half_orders_and_unbalance_has_not():
    made = quiet(seconds=2.0)
    hertz, power = periodogram(made.signals["frame"][:, 0].astype(float), fs=2000, axis=1)
    share = np.empty(made.target.size)
    for case, speed in enumerate(made.speed_hz):
        order = hertz / speed
        near = sum(power[case, np.abs(order - k) < 0.1].sum() for k in (0.5, 1.5, 2.5))
        share[case] = near / power[case, (order > 0.3) & (order < 4.5)].sum()
    assert np.median(share[made.target == 2]) > 10 * np.median(share[made.target == 1])


def test_unbalance_is_at_the_first_order():
    turns = np.arange(4000) * 25.0 / 2000
    wave = _orders(turns, np.array([1.0]), np.array([3.0]), np.random.default_rng(0))
    hertz, power = periodogram(wave, fs=2000)
    assert hertz[power.argmax()] == 25.0
    assert np.sqrt(np.mean(wave**2)) == pytest.approx(3.0)


def test_impacts_follow_the_defect():
    turns = np.arange(40_000) * 25.0 / 2000
    rates = set()
    for seed in range(8):
        impacts = _impacts(turns, turns.size, np.random.default_rng(seed))
        assert np.sqrt(np.mean(impacts**2)) == pytest.approx(1.0)
        rate = np.count_nonzero(impacts) / turns[-1]
        nearest = min(DEFECT_ORDERS, key=lambda order: abs(order - rate))
        assert rate == pytest.approx(nearest, rel=0.03)
        rates.add(nearest)
    assert rates == set(DEFECT_ORDERS)


def test_a_bearing_defect_is_stronger_at_its_own_end():
    made = quiet()
    of = made.target == 3
    crest = {
        mount: np.abs(made.signals[mount][of, 0]).max(axis=1) / made.signals[mount][of, 0].std(axis=1)
        for mount in ("drive_end", "free_end")
    }
    at_drive = made.bearing[of] == 0
    ratio = np.log(crest["drive_end"] / crest["free_end"])
    assert ratio[at_drive].mean() > ratio[~at_drive].mean()


def test_response_has_the_resonances_of_the_path():
    paths = _draw_machines(np.random.default_rng(0)).paths[0]
    paths[0, 1:, 2] = 0.0  # one mode
    paths[0, 0] = [200.0, 0.02, 1.0]
    hertz = np.arange(1.0, 1000.0)
    gain = np.abs(_response(paths, hertz))[0]
    assert abs(hertz[gain.argmax()] - 200.0) <= 2.0
    assert gain[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_per_class": 0}, "n_per_class must be at least 1"),
        ({"sampling_rate": 1000}, "at least 1500 Hz"),
        ({"seconds": 0.1}, "seconds must be at least 0.25"),
    ],
)
def test_mistakes(changes, message):
    with pytest.raises(ValueError, match=message):
        make_machine_vibration(**changes)
