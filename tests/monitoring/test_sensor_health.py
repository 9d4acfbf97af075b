"""Faults of sensors, planted in new rows of simulated views, are found and named; healthy batches have none."""

import numpy as np
import pytest
from scipy import sparse

import cmvmed
from cmvmed import CMVMED
from cmvmed.monitoring.sensor_health import LEVEL, MIN_ROWS
from tests.core.factories import rejects

FAST = {"members": None}
NAMES = ("acc", "gyro", "mag")
D = 6


def simulate(n, seed, shares=(0.5, 0.5)):
    """Three views of six columns in their own units, from a state of two classes and noise that views share in part."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(99)
    y = rng.choice(2, n, p=shares)
    common = rng.normal(size=(n, 1))
    views = {}
    for name in NAMES:
        center, units = fixed.normal(size=(2, D)), np.exp(fixed.normal(size=D))
        mixing = fixed.normal(size=(D, D))
        offset = fixed.normal(size=D)
        noise = (rng.normal(size=(n, D)) + 0.5 * common) @ mixing
        views[name] = (offset + 1.5 * center[y] + noise) * units
    return views, y


@pytest.fixture(scope="module")
def model():
    views, y = simulate(450, 0)
    return CMVMED(**FAST).fit(views, np.where(np.arange(450) < 30, y, -1))


@pytest.fixture(scope="module")
def deviations():
    return {name: view.std(axis=0) for name, view in simulate(450, 0)[0].items()}


def faults_of(health):
    return {name: found.fault for name, found in health.items()}


def test_healthy_batches_have_no_fault(model):
    for seed in range(1, 11):
        health = model.sensor_health(simulate(50, seed)[0])
        assert faults_of(health) == dict.fromkeys(NAMES, "ok")
        assert all(found.p_value > LEVEL for found in health.values())
    assert health["gyro"].message == "view 'gyro' is as in training."


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e160, 1e308])
def test_huge_numbers_are_a_fault_and_no_overflow(model, value):
    views, _ = simulate(50, 1)
    views["gyro"][3, 2] = value
    health = faults_of(model.sensor_health(views))
    assert health.pop("gyro") != "ok"
    assert set(health.values()) == {"ok"}


@pytest.mark.parametrize("shares", [(0.95, 0.05), (0.2, 0.8), (0.0, 1.0)])
def test_other_class_shares_are_no_fault(model, shares):
    for seed in range(20, 24):
        assert faults_of(model.sensor_health(simulate(50, seed, shares)[0])) == dict.fromkeys(NAMES, "ok")


def plant(views, deviations, fault):
    """The views with a fault in "gyro", and words that the message must have."""
    x, sd = views["gyro"], deviations["gyro"]
    rng = np.random.default_rng(0)
    if fault == "exchanged":
        return views | {"gyro": views["mag"], "mag": views["gyro"]}, "swapped", "looks exchanged with view 'mag'"
    found, name, words = {
        "zero": (0.0 * x, "dead", "same values in all 50 rows: check that the sensor works"),
        "stuck": (np.tile(x[:1], (50, 1)), "dead", "same values in all 50 rows"),
        "absent": (np.full_like(x, np.nan), "dead", "absent from all rows, in training from 0%"),
        "often absent": (np.where(np.arange(50)[:, None] < 20, np.nan, x), "missing", "absent from 40% of the rows"),
        "shift": (x + 1.5 * sd, "shifted", "is shifted by about 1."),
        "double": (2.0 * x, "gain", "times the scale of training: check its gain"),
        "half": (0.5 * x, "gain", "times the scale of training"),
        "reversed": (x[:, ::-1], "swapped", "columns of view 'gyro' look exchanged"),
        "noise": (x + 3.0 * sd * rng.normal(size=x.shape), None, "check"),
    }[fault]
    return views | {"gyro": found}, name, words


FAULTS = (
    "zero",
    "stuck",
    "absent",
    "often absent",
    "shift",
    "double",
    "half",
    "exchanged",
    "reversed",
    "noise",
)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found_and_named(model, deviations, fault):
    views, name, words = plant(simulate(50, 3)[0], deviations, fault)
    health = model.sensor_health(views)
    found = health["gyro"]
    assert found.p_value <= LEVEL
    assert found.score > 3.0
    assert found.fault == name or (name is None and found.fault in ("drift", "gain"))
    assert words in found.message
    expected = "swapped" if fault == "exchanged" else "ok"
    assert health["mag"].fault == expected
    assert health["acc"].fault == "ok"


@pytest.mark.parametrize("gain", [0.5, 2.0, 100.0])
def test_the_message_has_the_gain(model, gain):
    views = simulate(300, 3)[0]
    message = model.sensor_health(views | {"gyro": gain * views["gyro"]})["gyro"].message
    found = float(message.split("about ")[1].split(" times")[0])
    assert 0.85 * gain <= found <= 1.15 * gain


def test_the_score_grows_with_the_fault(model, deviations):
    views = simulate(50, 4)[0]
    scores = [
        model.sensor_health(views | {"acc": views["acc"] + shift * deviations["acc"]})["acc"].score
        for shift in (0.0, 0.5, 1.0, 3.0)
    ]
    assert np.all(np.diff(scores) > 0.0)


def test_a_faulty_view_does_not_count_against_the_others(model, deviations):
    views = simulate(50, 5)[0]
    faulty = views | {"acc": views["acc"] + 5.0 * deviations["acc"], "mag": 1e6 * views["mag"]}
    health = faults_of(model.sensor_health(faulty))
    assert health["gyro"] == "ok"
    assert "ok" not in (health["acc"], health["mag"])


def test_a_change_of_all_views_is_noted(model, deviations):
    views = {name: view + 2.0 * deviations[name] for name, view in simulate(50, 6)[0].items()}
    assert all("All views differ" in found.message for found in model.sensor_health(views).values())


def test_too_few_rows_are_unknown(model):
    views, _ = simulate(MIN_ROWS - 1, 7)
    for found in model.sensor_health(views).values():
        assert found.fault == "unknown"
        assert np.isnan(found.score)
        assert f"pass at least {MIN_ROWS}" in found.message
    views, _ = simulate(50, 7)
    views["mag"][5:] = np.nan
    assert model.sensor_health(views | {"acc": None})["acc"].fault == "dead"
    assert model.sensor_health(views)["mag"].fault == "missing"


def test_views_that_are_often_missing_in_training_may_be_missing():
    views, y = simulate(450, 0)
    views["mag"][np.random.default_rng(1).random(450) < 0.5] = np.nan
    model = CMVMED(**FAST).fit(views, np.where(np.arange(450) < 30, y, -1))
    new = simulate(60, 8)[0]
    new["mag"][:30] = np.nan
    assert faults_of(model.sensor_health(new)) == dict.fromkeys(NAMES, "ok")
    new["mag"][:] = np.nan
    assert model.sensor_health(new)["mag"].fault == "dead"


def test_single_gaps_are_filled(model):
    views, _ = simulate(50, 9)
    views["acc"][np.random.default_rng(0).random(views["acc"].shape) < 0.02] = np.nan
    assert model.sensor_health(views)["acc"].fault == "ok"
    views["acc"][:, :4] = np.nan  # most columns of the sensor have failed
    assert model.sensor_health(views)["acc"].fault != "ok"


def counts(n, seed):
    """Two views of word counts of two classes."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(98)
    y = rng.integers(0, 2, n)
    rates = fixed.gamma(0.3, 0.8, size=(2, 2, 150))
    return {f"v{i}": sparse.csr_matrix(rng.poisson(rate[y]).astype(float)) for i, rate in enumerate(rates)}, y


def test_sparse_views():
    views, y = counts(300, 0)
    model = CMVMED(**FAST).fit(views, np.where(np.arange(300) < 20, y, -1))
    new, _ = counts(50, 1)
    assert faults_of(model.sensor_health(new)) == {"v0": "ok", "v1": "ok"}
    assert model.sensor_health(new | {"v0": 3.0 * new["v0"]})["v0"].fault == "gain"
    assert model.sensor_health(new | {"v0": 0.0 * new["v0"]})["v0"].fault == "dead"
    assert faults_of(model.sensor_health({"v0": new["v1"], "v1": new["v0"]})) == {"v0": "swapped", "v1": "swapped"}


def test_a_single_view_and_a_precomputed_kernel():
    views, y = simulate(300, 0)
    partly = np.where(np.arange(300) < 20, y, -1)
    train, new = views["acc"], simulate(60, 2)[0]["acc"]
    alone = CMVMED(**FAST).fit({"acc": train}, partly)
    assert alone.sensor_health({"acc": new})["acc"].fault == "ok"
    assert alone.sensor_health({"acc": new + 2.0 * train.std(axis=0)})["acc"].fault == "shifted"
    given = CMVMED(**FAST, kernel="precomputed").fit({"acc": train @ train.T}, partly)
    assert given.sensor_health({"acc": new @ train.T})["acc"].fault == "ok"
    assert given.sensor_health({"acc": 0.0 * new @ train.T})["acc"].fault == "dead"


def check_no_false_alarm_by_mean(model, shares):
    """What a comparison of means with training would say of rows of one class."""
    views, _ = simulate(50, 20, shares)
    train, _ = simulate(450, 0)
    for name in NAMES:
        z = (views[name].mean(axis=0) - train[name].mean(axis=0)) / (train[name].std(axis=0) / np.sqrt(50))
        assert np.abs(z).max() < 4.0


def test_a_test_of_means_alone_would_raise_false_alarms(model):
    """Broken twin of the test with other class shares."""
    rejects(check_no_false_alarm_by_mean, model, (0.0, 1.0))


def test_models_say_the_same_after_loading(model, deviations, tmp_path):
    views, _, _ = plant(simulate(50, 3)[0], deviations, "shift")
    model.save(tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")
    assert loaded.sensor_health(views) == model.sensor_health(views)
