import numpy as np
import pytest
import soundfile

from cmvmed.features import read_audio, segment_events, segment_windows

RATE = 1000


def recording_with_bursts(times, *, seconds=20, n_channels=2, amplitude=(5.0, 0.0), seed=0):
    """White noise of variance 1 with 50 ms bursts; none in a channel with amplitude 0."""
    rng = np.random.default_rng(seed)
    recording = rng.normal(size=(n_channels, seconds * RATE))
    for time in times:
        start = round(time * RATE)
        recording[:, start : start + 50] += np.array(amplitude)[:, np.newaxis] * rng.normal(size=50)
    return recording


@pytest.mark.parametrize(("seconds", "hop"), [(1.0, None), (1.0, 0.25), (0.5, 2.0)])
def test_windows_are_slices_of_all_channels(seconds, hop):
    recording = np.random.default_rng(0).normal(size=(3, 10 * RATE + 17)).astype(np.float32)
    signals, starts = segment_windows(recording, RATE, seconds=seconds, hop_seconds=hop)
    np.testing.assert_allclose(np.diff(starts), hop or seconds, rtol=1e-12)
    assert signals.dtype == np.float32
    assert signals.shape == (len(starts), 3, round(seconds * RATE))
    for signal, start in zip(signals, starts, strict=True):
        first = round(start * RATE)
        np.testing.assert_array_equal(signal, recording[:, first : first + signals.shape[2]])
    assert starts[-1] + seconds + (hop or seconds) > recording.shape[1] / RATE  # no window is omitted


def test_windows_do_not_share_memory_with_the_recording():
    recording = np.zeros((1, RATE))
    signals, _ = segment_windows(recording, RATE, seconds=0.5)
    signals += 1
    assert recording.sum() == 0


def test_one_channel_may_be_one_dimensional():
    signals, _ = segment_windows(np.arange(100.0), 10, seconds=2)
    assert signals.shape == (5, 1, 20)


def test_events_in_one_of_two_channels_are_detected():
    times = [1.2, 4.0, 4.9, 9.6, 15.3]
    recording = recording_with_bursts(times)
    signals, starts = segment_events(recording, RATE, seconds=0.4, threshold_db=8)
    assert signals.shape == (5, 2, 400)
    peaks = starts + 0.1  # the peak is a quarter into the segment
    np.testing.assert_allclose(peaks, np.array(times) + 0.025, atol=0.03)
    first = round(starts[2] * RATE)
    np.testing.assert_array_equal(signals[2], recording[:, first : first + 400])


def test_of_close_events_the_louder_one_is_kept():
    recording = recording_with_bursts([5.0, 5.2])
    recording[:, 5200:5250] *= 3
    _, starts = segment_events(recording, RATE, seconds=1.0, threshold_db=8, lead_seconds=0.5)
    np.testing.assert_allclose(starts, [5.225 - 0.5], atol=0.03)
    _, both = segment_events(recording, RATE, seconds=1.0, threshold_db=8, min_distance_seconds=0.1)
    assert len(both) == 2


def test_events_at_the_edges_give_complete_segments():
    recording = recording_with_bursts([0.0, 19.95])
    signals, starts = segment_events(recording, RATE, seconds=1.0, threshold_db=8)
    np.testing.assert_allclose(starts, [0.0, 19.0], atol=1e-12)
    assert signals.shape == (2, 2, 1000)


def test_nothing_above_the_threshold_gives_no_rows():
    signals, starts = segment_events(recording_with_bursts([]), RATE, seconds=1.0, threshold_db=15)
    assert signals.shape == (0, 2, 1000)
    assert starts.shape == (0,)


def test_gain_and_offset_of_a_sensor_have_no_effect():
    recording = recording_with_bursts([3.0, 8.0])
    _, starts = segment_events(recording, RATE, seconds=0.4, threshold_db=8)
    changed = recording * np.array([[1e-4], [50.0]]) + np.array([[7.0], [-300.0]])
    np.testing.assert_array_equal(segment_events(changed, RATE, seconds=0.4, threshold_db=8).start_seconds, starts)


def test_a_digitally_silent_background_works():
    recording = np.zeros((1, 5 * RATE))
    recording[0, 2000:2040] = np.sin(np.arange(40.0))
    _, starts = segment_events(recording, RATE, seconds=0.4)
    np.testing.assert_allclose(starts, [2.02 - 0.1], atol=0.03)


def test_a_missing_channel_stays_missing_and_has_no_effect():
    recording = recording_with_bursts([3.0, 8.0])
    _, starts = segment_events(recording, RATE, seconds=0.4, threshold_db=8)
    with_missing = np.vstack([recording, np.full(recording.shape[1], np.nan)])
    signals, again = segment_events(with_missing, RATE, seconds=0.4, threshold_db=8)
    np.testing.assert_array_equal(again, starts)
    assert np.isnan(signals[:, 2]).all()
    assert np.isfinite(signals[:, :2]).all()


def test_from_a_stereo_file(tmp_path):
    recording = recording_with_bursts([3.0, 8.0]) / 30
    soundfile.write(tmp_path / "two.wav", recording.T, RATE, subtype="FLOAT")
    samples, rate = read_audio(tmp_path / "two.wav")
    assert len(segment_events(samples, rate, seconds=0.4, threshold_db=8).signals) == 2


@pytest.mark.parametrize("cut", [segment_windows, segment_events])
@pytest.mark.parametrize(
    ("recording", "options", "message"),
    [
        (np.zeros((1000, 2)), {}, "transpose it"),
        (np.zeros((2, 2, 100)), {}, r"real \(n_channels, n_samples\)"),
        (np.zeros((2, 100)), {}, "shorter than one"),
        (np.full((2, 5000), np.nan), {}, "nothing to segment"),
        (np.zeros((2, 5000)), {"seconds": 0.0}, "at least one sample"),
        (np.where(np.arange(10000).reshape(2, 5000) == 7500, np.nan, 0.0), {}, r"Channel 1 has NaN .*2.500 s"),
        (np.array([["a", "b"]]), {}, "real"),
    ],
)
def test_invalid_recordings_are_named(cut, recording, options, message):
    with pytest.raises(ValueError, match=message):
        cut(recording, RATE, **{"seconds": 1.0, **options})


def test_invalid_rate_is_named():
    with pytest.raises(ValueError, match="positive number of Hz"):
        segment_windows(np.zeros((1, 100)), 0, seconds=1)
