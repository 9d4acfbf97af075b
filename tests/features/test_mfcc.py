import pickle
import re
import subprocess
import sys
from itertools import pairwise

import librosa
import numpy as np
import pandas as pd
import polars as pl
import pytest
import soundfile
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from cmvmed._optional import install_command
from cmvmed.features import MFCC
from cmvmed.features.mfcc import average_frames, mel_cepstra

RATE = 8000


@pytest.fixture
def noise():
    """Twelve segments whose loudness spans 12 orders of magnitude of power."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, RATE)) * np.logspace(-5, 1, 12)[:, np.newaxis]


def frames_by_librosa(segment, mfcc):
    return librosa.feature.mfcc(y=segment, **mfcc.librosa_arguments_)


# ---- equality with librosa


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-3)])
def test_frames_equal_librosa_segment_by_segment(noise, dtype, tolerance):
    mfcc = MFCC(RATE, amplitude=None, n_frames=101).fit(noise)
    expected = np.stack([frames_by_librosa(segment, mfcc) for segment in noise.astype(dtype)])
    assert expected.shape == (12, 20, 101)
    np.testing.assert_allclose(mfcc.transform(noise.astype(dtype)), expected.reshape(12, -1), atol=tolerance)


def test_equality_rejects_one_librosa_call_on_all_segments(noise):
    """In one call librosa's lower limit of 80 dB is relative to the loudest segment."""
    mfcc = MFCC(RATE, amplitude=None, n_frames=101).fit(noise)
    all_at_once = librosa.feature.mfcc(y=noise, **mfcc.librosa_arguments_).reshape(12, -1)
    assert np.abs(mfcc.transform(noise) - all_at_once).max() > 100


def test_default_is_librosa_of_the_rms_normalized_segment_averaged_in_ten_parts(noise):
    mfcc = MFCC(RATE).fit(noise)
    segment = noise[3] / np.sqrt(np.mean(noise[3] ** 2))
    frames = frames_by_librosa(segment, mfcc)
    parts = np.stack([part.mean(axis=1) for part in np.array_split(frames, 10, axis=1)], axis=1)
    # array_split puts the longer parts first, average_frames spreads them: same parts up to one frame at each border
    assert np.abs(mfcc.transform(noise)[3].reshape(20, 10) - parts).max() < np.ptp(frames)
    np.testing.assert_allclose(mfcc.transform(noise)[3].reshape(20, 10), average_frames(frames, 10), atol=1e-9)


def test_average_frames_is_a_partition_of_the_frames():
    frames = np.arange(23.0)[np.newaxis]
    parts = average_frames(frames, 5)
    bounds = [0, 4, 9, 13, 18, 23]
    expected = [np.arange(23.0)[a:b].mean() for a, b in pairwise(bounds)]
    np.testing.assert_allclose(parts[0], expected, rtol=1e-12)


def test_deltas_and_lifter_and_frequency_range_equal_librosa(noise):
    mfcc = MFCC(RATE, amplitude=None, n_frames=101, deltas=2, lifter=22, fmin=50, fmax=3000).fit(noise)
    frames = frames_by_librosa(noise[0], mfcc)
    slopes = [librosa.feature.delta(frames, order=order, mode="nearest") for order in (1, 2)]
    expected = np.concatenate([frames, *slopes])
    np.testing.assert_allclose(mfcc.transform(noise)[0], expected.ravel(), atol=1e-9)
    assert mfcc.librosa_arguments_["lifter"] == 22
    assert mfcc.librosa_arguments_["fmax"] == 3000


def test_width_and_names():
    mfcc = MFCC(RATE, n_coefficients=20, n_frames=5, deltas=1)
    names = mfcc.get_feature_names_out()
    assert len(names) == len(set(names)) == 200
    assert names[0] == "mfcc0_t0"
    assert names[-1] == "delta1_mfcc19_t4"
    assert MFCC(RATE, drop_energy=True).get_feature_names_out()[0] == "mfcc1_t0"


# ---- known signals


def log_mel(mfcc, segment):
    """Invert the orthonormal DCT: with as many coefficients as bands nothing is lost."""
    cepstra = mel_cepstra(segment[np.newaxis], mfcc.librosa_arguments_)[0]
    return librosa.feature.inverse.mfcc_to_mel(cepstra, n_mels=mfcc.n_mels, norm="ortho")


@pytest.mark.parametrize("hertz", [250.0, 1000.0, 3100.0])
def test_a_tone_is_in_its_mel_band_at_all_times(hertz):
    mfcc = MFCC(RATE, n_coefficients=40).fit(np.zeros((1, RATE)))
    tone = np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)
    bands = log_mel(mfcc, tone)
    centers = librosa.mel_frequencies(n_mels=42, fmin=0, fmax=RATE / 2)[1:-1]
    inner = bands[:, 3:-3]  # frames wholly inside the segment
    expected = np.argmin(np.abs(centers - hertz))
    assert np.abs(inner.argmax(axis=0) - expected).max() <= 1
    parts = mfcc.transform(tone[np.newaxis]).reshape(40, 10)
    np.testing.assert_allclose(parts[:, 1:-1], parts[:, [5]] * np.ones(8), atol=0.5)


def test_an_impulse_is_flat_in_frequency_and_short_in_time():
    mfcc = MFCC(RATE, amplitude="peak", n_frames=20).fit(np.zeros((1, RATE)))
    impulse = np.zeros(RATE)
    impulse[RATE // 2] = 1.0
    parts = mfcc.transform(impulse[np.newaxis]).reshape(20, 20)
    quiet = np.delete(parts, [9, 10], axis=1)
    np.testing.assert_allclose(quiet[0], quiet[0, 0], rtol=1e-9)
    assert parts[0, [9, 10]].max() > quiet[0].max() + 100
    # the coefficients of a flat spectrum are zero except for the first, at the impulse and around it
    np.testing.assert_allclose(parts[1:], 0.0, atol=0.1)


def test_flatness_rejects_a_tone():
    tone = np.sin(2 * np.pi * 700 * np.arange(RATE) / RATE)
    assert np.abs(MFCC(RATE).fit_transform(tone[np.newaxis]).reshape(20, 10)[1:]).max() > 10


# ---- normalization


def test_only_rms_and_peak_remove_the_gain(noise):
    for amplitude in ("rms", "peak"):
        mfcc = MFCC(RATE, amplitude=amplitude).fit(noise)
        np.testing.assert_allclose(mfcc.transform(noise * 37.0), mfcc.transform(noise), atol=1e-7)
    raw = MFCC(RATE, amplitude=None).fit(noise)
    assert np.abs(raw.transform(noise[-1:] * 37.0) - raw.transform(noise[-1:])).max() > 10


def test_dropping_the_energy_shifts_to_coefficient_one(noise):
    with_energy = MFCC(RATE, n_coefficients=21).fit_transform(noise).reshape(12, 21, 10)
    without = MFCC(RATE, n_coefficients=20, drop_energy=True).fit_transform(noise).reshape(12, 20, 10)
    np.testing.assert_allclose(without, with_energy[:, 1:], atol=1e-9)


def test_cepstral_mean_normalization_removes_a_fixed_filter():
    noise = np.random.default_rng(1).normal(size=(4, 4 * RATE))
    filtered = np.diff(noise, axis=1, append=0.0)  # a high-pass, the same for all frames
    plain, centered = MFCC(RATE), MFCC(RATE, cepstral="mean")
    changed = np.abs(plain.fit_transform(filtered) - plain.fit_transform(noise)).max()
    left = np.abs(centered.fit_transform(filtered) - centered.fit_transform(noise)).max()
    assert changed > 20
    assert left < changed / 10


def test_mean_and_variance_normalization_over_the_frames(noise):
    features = MFCC(RATE, cepstral="mean_variance", n_frames=101).fit_transform(noise).reshape(12, 20, 101)
    np.testing.assert_allclose(features.mean(axis=2), 0.0, atol=1e-9)
    np.testing.assert_allclose(features.std(axis=2), 1.0, rtol=1e-9)


def test_unit_length(noise):
    np.testing.assert_allclose(np.linalg.norm(MFCC(RATE, unit_length=True).fit_transform(noise), axis=1), 1, rtol=1e-12)


# ---- inputs


def test_lists_of_different_lengths_give_the_same_rows_as_alone(noise):
    segments = [noise[0], noise[1][:5000], noise[2][:6001], noise[3][:5000].astype(np.float32)]
    mfcc = MFCC(RATE).fit(segments)
    together = mfcc.transform(segments)
    alone = np.vstack([mfcc.transform([segment]) for segment in segments])
    np.testing.assert_array_equal(together, alone)


def test_rows_do_not_depend_on_the_others_or_on_blocks(noise, monkeypatch):
    mfcc = MFCC(RATE).fit(noise)
    whole = mfcc.transform(noise)
    np.testing.assert_allclose(mfcc.transform(noise[::-1])[::-1], whole, atol=1e-9)
    monkeypatch.setattr("cmvmed.features.signal_blocks.BLOCK_SAMPLES", 3 * RATE)
    np.testing.assert_allclose(mfcc.transform(noise), whole, atol=1e-9)
    np.testing.assert_allclose(mfcc.transform(list(noise)), whole, atol=1e-9)


@pytest.mark.parametrize("extension", ["wav", "flac"])
def test_files_equal_arrays(tmp_path, noise, extension):
    samples = (noise[-3:] / np.abs(noise[-3:]).max()).astype(np.float32)
    paths = [tmp_path / f"{row}.{extension}" for row in range(3)]
    for path, row in zip(paths, samples, strict=True):
        soundfile.write(path, row, RATE, subtype="PCM_24")
    from_files = MFCC().fit(paths)
    assert from_files.sampling_rate_ == RATE
    np.testing.assert_allclose(from_files.transform(paths), MFCC(RATE).fit_transform(samples), atol=0.05)
    as_column = pd.Series([str(path) for path in paths])
    np.testing.assert_array_equal(from_files.transform(as_column), from_files.transform(paths))
    np.testing.assert_array_equal(from_files.transform(as_column.to_frame()), from_files.transform(paths))
    np.testing.assert_array_equal(from_files.transform(pl.Series(as_column.tolist())), from_files.transform(paths))


def test_files_of_other_rates_are_resampled(tmp_path):
    t = np.arange(2 * RATE) / (2 * RATE)
    tone = 0.5 * np.sin(2 * np.pi * 600 * t).astype(np.float32)
    soundfile.write(tmp_path / "slow.wav", tone[::2], RATE)
    soundfile.write(tmp_path / "fast.wav", tone, 2 * RATE)
    paths = [tmp_path / "slow.wav", tmp_path / "fast.wav"]
    with pytest.raises(ValueError, match=r"8000 Hz .*16000 Hz .*sampling_rate="):
        MFCC().fit(paths)
    features = MFCC(RATE, fmax=2000).fit_transform(paths).reshape(2, 20, 10)
    np.testing.assert_allclose(features[0, :, 1:-1], features[1, :, 1:-1], atol=3.0)


def test_channels(tmp_path, noise):
    stereo = noise[:4].reshape(2, 2, RATE)
    mfcc = MFCC(RATE, channel=1).fit(stereo)
    np.testing.assert_array_equal(mfcc.transform(stereo), MFCC(RATE).fit_transform(stereo[:, 1]))
    mean = MFCC(RATE, channel="mean").fit_transform(stereo)
    np.testing.assert_allclose(mean, MFCC(RATE).fit_transform(stereo.mean(axis=1)), atol=1e-9)
    with pytest.raises(ValueError, match=r"2 channels: .*channel=0 .. channel=1"):
        MFCC(RATE).fit(stereo).transform(stereo)
    with pytest.raises(ValueError, match="channel=2 does not exist"):
        MFCC(RATE, channel=2).fit(stereo).transform(stereo)
    soundfile.write(tmp_path / "stereo.wav", stereo[0].T * 0.01, RATE, subtype="FLOAT")
    from_file = MFCC(RATE, channel=1).fit_transform([tmp_path / "stereo.wav"])
    np.testing.assert_allclose(from_file, mfcc.transform(stereo[:1]), atol=0.01)
    with pytest.raises(ValueError, match=r"stereo.wav.*has 2 channels"):
        MFCC().fit_transform([tmp_path / "stereo.wav"])


@pytest.mark.parametrize(
    ("dtype", "scale", "middle"), [(np.int16, 2**15, 0), (np.int32, 2**31, 0), (np.uint8, 128, 128)]
)
def test_integer_samples_have_full_scale_one(dtype, scale, middle):
    tone = 0.5 * np.sin(2 * np.pi * 500 * np.arange(RATE) / RATE)
    integers = np.round(tone * scale + middle).astype(dtype)[np.newaxis]
    floats = ((integers.astype(float) - middle) / scale).astype(np.float32)
    mfcc = MFCC(RATE, amplitude=None, clipping="ignore").fit(floats)
    np.testing.assert_allclose(mfcc.transform(integers), mfcc.transform(floats), atol=1e-3)


def test_64_bit_integers_are_not_scaled():
    whole = np.random.default_rng(0).integers(-100, 100, size=(2, RATE))
    mfcc = MFCC(RATE, amplitude=None).fit(whole)
    np.testing.assert_array_equal(mfcc.transform(whole), mfcc.transform(whole.astype(float)))
    np.testing.assert_array_equal(mfcc.transform(whole.tolist()), mfcc.transform(whole.astype(float)))


@pytest.mark.parametrize("rate", [500, 2000, 11025, 44100, 96000])
def test_any_sampling_rate_gives_200_finite_features(rate):
    segments = np.random.default_rng(0).normal(size=(2, rate))
    features = MFCC(rate).fit_transform(segments)
    assert features.shape == (2, 200)
    assert np.isfinite(features).all()


# ---- absent, silent, invalid, short, clipped


def test_absent_segments_are_all_nan_rows(noise, tmp_path):
    array = noise.copy()
    array[4] = np.nan
    features = MFCC(RATE).fit_transform(array)
    np.testing.assert_array_equal(np.isnan(features).sum(axis=1), np.where(np.arange(12) == 4, 200, 0))
    soundfile.write(tmp_path / "a.wav", noise[0], RATE, subtype="FLOAT")
    features = MFCC().fit_transform([None, tmp_path / "a.wav", np.nan, ""])
    np.testing.assert_array_equal(np.isnan(features).all(axis=1), [True, False, True, True])
    assert np.isfinite(features[1]).all()


def test_silence_is_missing_kept_or_refused(noise):
    array = noise.copy()
    array[2], array[7] = 0.0, 0.25
    features = MFCC(RATE).fit_transform(array)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(features).all(axis=1)), [2, 7])
    assert np.isfinite(MFCC(RATE, silence="keep", clipping="ignore").fit_transform(array)).all()
    with pytest.raises(ValueError, match="Segment 2 is silent"):
        MFCC(RATE, silence="error").fit_transform(array)
    assert np.isnan(MFCC(RATE).fit_transform(np.zeros((3, RATE)))).all()


def test_some_nan_or_inf_is_an_error_that_names_the_segment(noise):
    for value in (np.nan, np.inf):
        array = noise.copy()
        array[5, 10:13] = value
        with pytest.raises(ValueError, match="Segment 5 has 3 NaN"):
            MFCC(RATE).fit(array).transform(array)


def test_too_short_names_the_segment_and_what_is_needed(noise, tmp_path):
    with pytest.raises(ValueError, match=r"Segment 1 .* 300 samples .*720"):
        MFCC(RATE).fit_transform([noise[0], noise[1][:300]])
    soundfile.write(tmp_path / "short.wav", noise[0][:100] * 0.01, RATE)
    with pytest.raises(ValueError, match=r"Segment 0 \('.*short.wav'\) is too short"):
        MFCC().fit_transform([tmp_path / "short.wav"])


def test_shortest_segment_allowed_works(noise):
    features = MFCC(RATE).fit_transform(noise[:, :720])
    assert np.isfinite(features).all()


def test_clipping_is_a_warning_an_error_or_ignored(noise):
    tone = np.sin(2 * np.pi * 200 * np.arange(RATE) / RATE)
    clipped = np.vstack([noise[0], np.clip(tone, -0.8, 0.8)])
    with pytest.warns(UserWarning, match="1 of 2 .*clipped .*segment 1"):
        MFCC(RATE).fit_transform(clipped)
    with pytest.raises(ValueError, match="clipped"):
        MFCC(RATE, clipping="error").fit_transform(clipped)
    assert np.isfinite(MFCC(RATE, clipping="ignore").fit_transform(clipped)).all()
    assert np.isfinite(MFCC(RATE).fit_transform(np.vstack([noise[0], tone]))).all()  # no warning for an unclipped tone


def test_overflowing_power_is_an_error_not_a_nan():
    loud = np.random.default_rng(0).normal(size=(1, RATE)).astype(np.float32) * np.float32(1e25)
    assert np.isfinite(MFCC(RATE).fit_transform(loud)).all()
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="exceeds the range of float32"):
        MFCC(RATE, amplitude=None).fit_transform(loud)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_coefficients": 0}, "n_coefficients must be positive"),
        ({"sampling_rate": -1.0}, "positive number of Hz"),
        ({"deltas": 3}, r"deltas must be one of \(0, 1, 2\)"),
        ({"amplitude": "loud"}, "amplitude must be one of"),
        ({"n_coefficients": 41}, "n_mels=40 mel bands"),
        ({"cepstral": "mean", "n_frames": 1}, "would give zeros only"),
        ({"fmax": 5000.0}, "half the sampling rate"),
        ({"sampling_rate": None}, "Arrays have no sampling rate"),
        ({"n_mels": 2000, "frame_seconds": 0.001}, "fewer bands"),
    ],
)
def test_invalid_parameters_are_named(noise, options, message):
    with pytest.raises(ValueError, match=message):
        MFCC(**{"sampling_rate": RATE, **options}).fit(noise)


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ("a.wav", "single path"),
        (["no_such.wav"], "No sound file at 'no_such.wav'"),
        ([{"a": 1}], "one-dimensional real array"),
        (np.zeros(100), "Reshape your data"),
        (np.zeros((0, 100)), "0 segments"),
        (np.zeros((3, 0)), "the segments are empty"),
    ],
)
def test_invalid_inputs_are_named(segments, message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        MFCC(RATE).fit(segments).transform(segments)


def test_missing_librosa_says_how_to_install_it(noise, monkeypatch):
    monkeypatch.setitem(sys.modules, "librosa", None)
    with pytest.raises(ImportError, match=re.escape(install_command("audio"))):
        MFCC(RATE).fit(noise)


def test_importing_the_package_does_not_import_librosa():
    code = "import cmvmed.features, sys; sys.exit(bool({'librosa', 'soundfile'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- scikit-learn conventions

TINY = "the check's segments have two or three samples, too short for any frame"
LENGTH = "segments may have any length, so there is no number of input features to compare"
EXPECTED_FAILURES = {
    "check_fit_score_takes_y": TINY,
    "check_pipeline_consistency": TINY,
    "check_f_contiguous_array_estimator": TINY,
    "check_transformer_data_not_an_array": TINY,
    "check_transformer_general": TINY,
    "check_transformer_preserve_dtypes": TINY,
    "check_methods_sample_order_invariance": TINY,
    "check_methods_subset_invariance": TINY,
    "check_dict_unchanged": TINY,
    "check_fit_idempotent": TINY,
    "check_estimators_pickle": TINY,
    "check_n_features_in": LENGTH,
    "check_n_features_in_after_fitting": LENGTH,
    "check_estimators_nan_inf": "fit determines the sampling rate only; transform refuses NaN",
}


def test_scikit_learn_checks():
    tiny = MFCC(100.0, n_mels=1, n_coefficients=1, n_frames=1, clipping="ignore")
    results = check_estimator(tiny, expected_failed_checks=EXPECTED_FAILURES, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED_FAILURES)  # every listed check still fails


def test_clone_pickle_and_unfitted(noise):
    mfcc = MFCC(RATE, n_frames=4, deltas=1)
    copy = clone(mfcc)
    assert copy.get_params() == mfcc.get_params()
    fitted = pickle.loads(pickle.dumps(mfcc.fit(noise)))
    np.testing.assert_array_equal(fitted.transform(noise), mfcc.transform(noise))
    with pytest.raises(NotFittedError):
        copy.transform(noise)


def test_set_output_names_the_columns(noise):
    frame = MFCC(RATE).set_output(transform="pandas").fit_transform(noise)
    assert list(frame.columns[:2]) == ["mfcc0_t0", "mfcc0_t1"]
    assert frame.shape == (12, 200)


def test_in_a_search_over_a_pipeline():
    rng = np.random.default_rng(0)
    low_or_high = np.repeat([300, 900], 10)
    t = np.arange(RATE) / RATE
    tones = np.sin(2 * np.pi * low_or_high[:, np.newaxis] * t) + 0.1 * rng.normal(size=(20, RATE))
    pipeline = make_pipeline(MFCC(RATE), LogisticRegression(max_iter=5000))
    search = GridSearchCV(pipeline, {"mfcc__n_frames": [1, 5]}, cv=2).fit(tones, low_or_high > 500)
    assert search.best_score_ == 1.0
