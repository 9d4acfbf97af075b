import numpy as np
import pytest
from scipy.stats import iqr, kurtosis, skew
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from cmvmed.features import WindowFeatures, segment_windows

RATE = 50.0


@pytest.fixture
def windows():
    return np.random.default_rng(0).gamma(2.0, size=(6, 3, 128))


def named(features, transformer):
    return dict(zip(transformer.get_feature_names_out(), features.T, strict=True))


def test_statistics_are_those_of_each_channel(windows):
    transformer = WindowFeatures(RATE)
    columns = named(transformer.fit_transform(windows), transformer)
    y = windows[:, 1]
    expected = {
        "mean": y.mean(axis=1),
        "std": y.std(axis=1),
        "min": y.min(axis=1),
        "max": y.max(axis=1),
        "median": np.median(y, axis=1),
        "iqr": iqr(y, axis=1),
        "skew": skew(y, axis=1),
        "kurtosis": kurtosis(y, axis=1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(columns[f"ch1_{name}"], values, rtol=1e-9, err_msg=name)


def test_a_sine_has_its_frequency_band_and_crossings():
    t = np.arange(500) / RATE
    window = 3.0 + np.sin(2 * np.pi * 7.0 * t + 0.1)[np.newaxis, np.newaxis]
    transformer = WindowFeatures(RATE, n_bands=5)
    columns = named(transformer.fit_transform(window), transformer)
    np.testing.assert_allclose(columns["ch0_peak_hz"], 7.0, atol=RATE / 500)
    np.testing.assert_allclose(columns["ch0_centroid_hz"], 7.0, atol=0.05)
    np.testing.assert_allclose(columns["ch0_crossings"], 14.0, atol=0.2)
    bands = np.array([columns[f"ch0_band{b}"][0] for b in range(5)])
    assert bands.argmax() == 1  # 5 to 10 Hz
    np.testing.assert_allclose(bands[1], 0.0, atol=1e-3)
    assert columns["ch0_entropy"][0] < 0.25
    white = np.random.default_rng(0).normal(size=(1, 1, 500))
    assert named(transformer.transform(white), transformer)["ch0_entropy"][0] > 0.8


def test_band_shares_sum_to_one(windows):
    features = WindowFeatures(RATE, statistics=False, spectrum=False, n_bands=6).fit_transform(windows)
    np.testing.assert_allclose((10 ** features.reshape(6, 3, 6)).sum(axis=2), 1.0, rtol=1e-9)


def test_names_and_widths(windows):
    transformer = WindowFeatures(RATE, n_bands=2, channel_names=["x", "y", "z"]).fit(windows)
    names = transformer.get_feature_names_out()
    assert names[0] == "x_mean"
    assert names[-1] == "z_band1"
    assert transformer.transform(windows).shape == (6, len(names)) == (6, 3 * 14)


def test_constant_channel_is_finite(windows):
    windows[:, 0] = 0.1
    windows[:, 2] = 0.0
    transformer = WindowFeatures(RATE)
    features = transformer.fit_transform(windows)
    assert np.isfinite(features).all()
    columns = named(features, transformer)
    np.testing.assert_array_equal(columns["ch0_skew"], 0.0)
    np.testing.assert_array_equal(columns["ch0_entropy"], 0.0)
    np.testing.assert_allclose(columns["ch0_band0"], np.log10(1 / 8), rtol=1e-9)


def test_missing_channel_is_nan_and_others_do_not_change(windows):
    transformer = WindowFeatures(RATE).fit(windows)
    complete = transformer.transform(windows)
    windows[2, 1] = np.nan
    features = transformer.transform(windows)
    of_channel = np.array([name.startswith("ch1_") for name in transformer.get_feature_names_out()])
    assert np.isnan(features[2, of_channel]).all()
    features[2, of_channel] = complete[2, of_channel]
    np.testing.assert_allclose(features, complete, rtol=1e-12)


def test_blocks_do_not_change_the_features(windows, monkeypatch):
    whole = WindowFeatures(RATE).fit_transform(windows)
    monkeypatch.setattr("cmvmed.features.window_features.BLOCK_SAMPLES", 300)
    np.testing.assert_allclose(WindowFeatures(RATE).fit_transform(windows), whole, rtol=1e-12)


def test_from_a_recording_to_features():
    recording = np.random.default_rng(0).normal(size=(6, 1000))
    signals, _ = segment_windows(recording, RATE, seconds=2.0, hop_seconds=1.0)
    assert WindowFeatures(RATE).fit_transform(signals).shape == (19, 6 * 20)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda w: w[:, :2], {}, "X has 2 channels, but the data of fit had 3"),
        (lambda w: w[:, :, :10], {}, "too short for 8 frequency bands"),
        (lambda w: np.where(np.arange(128) == 5, np.nan, w), {}, "Window 0, channel 0 has some NaN"),
        (lambda w: w[np.newaxis], {}, "got shape"),
    ],
)
def test_invalid_windows_are_named(windows, change, options, message):
    with pytest.raises(ValueError, match=message):
        WindowFeatures(RATE, **options).fit(windows).transform(change(windows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_rate": 0.0}, "positive number of Hz"),
        ({"channel_names": ["x"]}, "1 names for 3 channels"),
        ({"statistics": False, "spectrum": False, "n_bands": 0}, "Nothing to compute"),
        ({"n_bands": -1}, "n_bands must not be negative"),
    ],
)
def test_invalid_options_are_named(windows, options, message):
    with pytest.raises(ValueError, match=message):
        WindowFeatures(**options).fit(windows)


LENGTH = "windows may have any length, so there is no number of input features to compare"
EXPECTED_FAILURES = {
    "check_n_features_in": LENGTH,
    "check_n_features_in_after_fitting": LENGTH,
    "check_transformer_general": LENGTH,
}


def test_scikit_learn_checks():
    results = check_estimator(WindowFeatures(n_bands=0), expected_failed_checks=EXPECTED_FAILURES, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED_FAILURES)


def test_clone_keeps_the_parameters():
    assert clone(WindowFeatures(RATE, n_bands=3)).get_params()["n_bands"] == 3
