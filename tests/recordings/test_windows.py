"""Windows of long recordings: they cover what they should, lose nothing, and get the labels that brute force gives."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from cmvmed.recordings import (
    annotations_from_frame,
    cut_windows,
    long_recording,
    long_recordings_from_frame,
    read_recording,
    resample,
)
from cmvmed.recordings.windows import window_starts
from tests.core.factories import rejects


def ramp(n, rate=1.0, first=0.0):
    """A signal whose values are its times, so that a window shows where it was cut."""
    return first + np.arange(n) / rate


def check_windows(windows, sensor, truth, rate, start=0.0):
    """Each window of a sensor is the part of the truth (NaN in gaps) from its start, or missing if that has a gap."""
    signals = windows[sensor]
    for (begin, end), signal in zip(windows.times, signals, strict=True):
        first = round((begin - start) * rate)
        n = round((end - begin) * rate)
        part = truth[first : first + n] if first >= 0 else np.empty(0)
        if len(part) < n or np.isnan(part).any():
            assert signal is None, (begin, end)
        else:
            np.testing.assert_array_equal(signal[0], part)


@given(
    n=st.integers(1, 300),
    length=st.integers(1, 40),
    step=st.integers(1, 40),
    end=st.sampled_from(["drop", "shift"]),
    gaps=st.lists(st.tuples(st.integers(0, 299), st.integers(1, 30)), max_size=4),
)
@settings(max_examples=150, deadline=None)
def test_windows_are_the_parts_of_the_signal(n, length, step, end, gaps):
    truth = ramp(n)
    for start, width in gaps:
        truth[start : start + width] = np.nan
    if np.isnan(truth).all() or n < length:
        return
    known = np.flatnonzero(~np.isnan(truth))
    recording = long_recording("r", {"a": truth}, 1.0)
    covered = [
        s
        for s in window_starts(known[0], known[-1] + 1, length, step, end)
        if not np.isnan(truth[round(s) : round(s) + length]).any()
    ]
    if not covered:
        with pytest.raises(ValueError, match="No window"):
            cut_windows(recording, length=length, step=step, end=end)
        return
    windows = cut_windows(recording, length=length, step=step, end=end)
    assert windows.times[:, 0].tolist() == covered
    check_windows(windows, "a", truth, 1.0)
    assert windows["a"].present.all()  # windows without any sensor are left out
    if not gaps:
        seen = np.zeros(n, dtype=bool)
        for begin, stop in windows.times.astype(int):
            seen[begin:stop] = True
        lost = np.flatnonzero(~seen)
        if end == "shift" and step <= length:
            assert len(lost) == 0
        elif step <= length:
            assert len(lost) < step
            assert lost.tolist() == list(range(n - len(lost), n))


def test_the_check_of_windows_sees_a_shift():
    windows = cut_windows(long_recording("r", {"a": ramp(50)}, 1.0), length=10, step=5)
    rejects(check_windows, windows, "a", ramp(50, first=1.0), 1.0)


@given(
    rate=st.sampled_from([10.0, 30.0, 44.1, 99.7]),
    other=st.sampled_from([8.0, 250.0]),
    offset=st.integers(-30, 30),
    length=st.floats(0.3, 3.0),
    step=st.floats(0.1, 3.0),
)
@settings(max_examples=60, deadline=None)
def test_sensors_of_different_rates_are_cut_at_the_same_times(rate, other, offset, length, step):
    seconds, shift = 20.0, offset / 10
    fast, slow = ramp(round(seconds * rate), rate), ramp(round(seconds * other), other)
    recording = long_recording("r", {"a": fast, "b": slow}, {"a": rate, "b": other}, offsets={"b": shift})
    windows = cut_windows(recording, length=length, step=step)
    for (begin, _), a, b in zip(windows.times, windows["a"], windows["b"], strict=True):
        for signal, r, delay in ((a, rate, 0.0), (b, other, shift)):
            if signal is not None:
                assert signal.shape == (1, round(length * r))
                assert abs(signal[0, 0] + delay - begin) <= 1 / r + 1e-9
        inside = begin >= shift and begin + length <= seconds + shift
        assert b is not None or not inside  # nothing that was recorded is lost


def test_contiguous_files_are_one_signal_and_a_pause_is_a_gap(tmp_path):
    whole = np.random.default_rng(0).integers(-1000, 1000, size=(2, 3000)) / 2**15
    for number, part in enumerate(np.split(whole, 3, axis=1)):
        soundfile.write(tmp_path / f"{number}.wav", part.T, 100, subtype="PCM_16")
    hours = [(10.0 * i, tmp_path / f"{i}.wav") for i in range(3)]
    one = long_recording("day", {"mic": hours})
    windows = cut_windows(one, length=4.0, step=1.5)
    for begin, signal in zip(windows.times[:, 0], windows["mic"], strict=True):
        np.testing.assert_array_equal(
            signal, whole[:, round(100 * begin) : round(100 * begin) + 400].astype(np.float32)
        )
    assert windows["mic"].place(1).endswith("0.wav')")
    paused = long_recording("day", {"mic": [*hours[:2], (20.5, hours[2][1])]})
    times = cut_windows(paused, length=4.0, step=0.5).times
    assert not ((times[:, 0] < 20.0) & (times[:, 1] > 20.0)).any()
    assert times[:, 1].max() == 30.5


def test_a_sensor_that_is_missing_for_whole_days():
    days = [long_recording(f"day{d}", {"a": ramp(100), "b": ramp(50)}, {"a": 10, "b": 5}) for d in range(3)]
    days[1] = long_recording("day1", {"a": ramp(100)}, 10)
    windows = cut_windows(days, length=2.0)
    assert windows.columns == ["a", "b"]
    assert windows["a"].present.all()
    assert windows["b"].present.tolist() == [group != "day1" for group in windows.groups]
    assert windows.groups.tolist() == [f"day{d}" for d in range(3) for _ in range(5)]


def brute_force_majority(annotations, begin, end, min_overlap, resolution=1000):
    """The label by counting points of a fine grid."""
    points = begin + (np.arange(resolution) + 0.5) * (end - begin) / resolution
    counts = {}
    for a, b, label in annotations:
        counts[label] = counts.get(label, 0) + np.count_nonzero((points >= a) & (points < b))
    best = max(counts.values(), default=0)
    winners = [label for label, count in counts.items() if count == best]
    return winners[0] if len(winners) == 1 and best >= max(1, min_overlap * resolution) else None


@given(
    annotations=st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 20), st.sampled_from("xyz")), min_size=1, max_size=6
    ),
    min_overlap=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
@settings(max_examples=100, deadline=None)
def test_majority_labels(annotations, min_overlap):
    given_ = [(a / 2, (a + n) / 2, label) for a, n, label in annotations]
    recording = long_recording("r", {"a": ramp(240)}, 10.0)
    table = {"start": [a for a, _, _ in given_], "end": [b for _, b, _ in given_], "label": [c for *_, c in given_]}
    windows = cut_windows(recording, table, length=4.0, step=1.0, min_overlap=min_overlap)
    expected = [brute_force_majority(given_, a, b, min_overlap) for a, b in windows.times]
    assert windows.labels.tolist() == expected


def test_center_labels_and_equal_claims():
    recording = long_recording("r", {"a": ramp(100)}, 10.0)
    annotations = [("r", 0, 3, "x"), ("r", 3, 6, "y"), ("r", 7, 9, ""), ("r", 8, 10, None)]
    center = cut_windows(recording, annotations, length=2.0, step=1.0, label="center")
    assert center.labels.tolist() == ["x", "x", "y", "y", "y", None, None, None, None]
    majority = cut_windows(recording, annotations, length=2.0, step=1.0)
    assert majority.labels.tolist() == ["x", "x", None, "y", "y", "y", None, None, None]  # the third has 1 s of each
    both = cut_windows(recording, [("r", 0, 10, "x"), ("r", 0, 10, "y")], length=2.0, label="center")
    assert both.labels.tolist() == [None] * 5


def test_annotations_with_dates():
    start = "2024-03-31T01:00:00+01:00"  # in Paris, where clocks go forward at 2:00
    recording = long_recording("r", {"a": ramp(7200)}, 1.0, start=start)
    table = {"start": ["2024-03-31 01:30:00"], "end": ["2024-03-31 03:30:00"], "label": ["x"]}
    labels = cut_windows(recording, table, length=600, timezone="Europe/Paris").labels.tolist()
    assert labels == [None] * 3 + ["x"] * 6 + [None] * 3
    with pytest.raises(ValueError, match="not known when recording 'q' started"):
        cut_windows(long_recording("q", {"a": ramp(100)}, 1.0), table, length=10)


def test_labels_in_a_column_of_samples():
    import pandas as pd

    t = np.arange(200) / 10
    frame = pd.DataFrame({"rec": np.repeat(["p", "q"], 100), "t": np.r_[t[:100], t[:100]], "v": np.arange(200.0)})
    frame["what"] = np.where(frame["t"] < 5, "low", np.where(frame["t"] < 8, "high", None))
    recordings = long_recordings_from_frame(frame, time="t", recording="rec", sensors=["v"])
    annotations = annotations_from_frame(frame, time="t", label="what", recording="rec")
    expected = [(r, a, b, what) for r in "pq" for a, b, what in ((0, 5, "low"), (5, 8, "high"))]
    assert [(r, round(a, 9), round(b, 9), what) for r, a, b, what in annotations] == expected
    windows = cut_windows(recordings, annotations, length=1.0)
    assert windows.labels.tolist() == 2 * (["low"] * 5 + ["high"] * 3 + [None] * 2)
    np.testing.assert_array_equal(windows["v"].to_array().ravel(), np.arange(200.0))


def test_long_tables_with_dates_offsets_and_gaps():
    import polars as pl

    stamps = np.datetime64("2024-05-01T08:00:00", "us") + (np.arange(100) * 100_000).astype("timedelta64[us]")
    keep = np.r_[0:40, 50:100]
    frame = pl.DataFrame({"time": stamps[keep], "a": np.arange(100.0)[keep], "b": np.arange(100.0)[keep]})
    (recording,) = long_recordings_from_frame(frame, time="time", offsets={"b": 1.0})
    assert recording.start == np.datetime64("2024-05-01T08:00:00").astype("datetime64[s]").astype(int)
    assert recording.sensors["a"].sampling_rate == pytest.approx(10.0)
    windows = cut_windows(recording, length=1.0)
    gap = np.full(10, np.nan)
    truth = np.r_[np.arange(40.0), gap, np.arange(50.0, 100.0)]
    check_windows(windows, "a", truth, 10.0)
    check_windows(windows, "b", truth, 10.0, start=1.0)


@pytest.mark.parametrize(("rate", "new"), [(100.0, 50.0), (50.0, 80.0), (44.1, 10.0)])
def test_windows_of_a_resampled_recording_are_those_of_the_whole(rate, new):
    x = np.random.default_rng(0).normal(size=(2, 2000))
    recording = resample(long_recording("r", {"a": x}, rate), new)
    track = recording.sensors["a"]
    (piece,) = track.pieces
    whole = piece.read(0, piece.n_samples)
    windows = cut_windows(recording, length=1.3, step=0.7)
    for begin, signal in zip(windows.times[:, 0], windows["a"], strict=True):
        first = round(begin * new)
        np.testing.assert_allclose(signal, whole[:, first : first + signal.shape[1]], atol=1e-12)


def test_resampling_keeps_slow_waves_and_gaps():
    t = np.arange(1000) / 100
    wave = 3.0 + np.sin(2 * np.pi * 1.5 * t)
    wave[400:450] = np.nan
    recording = resample(long_recording("r", {"a": wave}, 100.0), 40.0)
    windows = cut_windows(recording, length=0.5)
    for begin, signal in zip(windows.times[:, 0], windows["a"], strict=True):
        times = begin + np.arange(20) / 40
        np.testing.assert_allclose(signal[0], 3.0 + np.sin(2 * np.pi * 1.5 * times), atol=0.08)
    assert not ((windows.times[:, 0] < 4.5) & (windows.times[:, 1] > 4.0)).any()


def test_files_of_other_formats(tmp_path):
    x = np.random.default_rng(0).integers(-1000, 1000, size=(3, 500))
    np.save(tmp_path / "a.npy", x.astype(">i2"))
    import h5py

    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["acc"], file["mic"] = x, x[0]
        file["acc"].attrs["sampling_rate"], file["mic"].attrs["sampling_rate"] = 50, 100
        file.attrs["start"] = "2024-05-01T08:00:00"
    mapped = read_recording(tmp_path / "a.npy", {"x": 0, "rest": [1, 2]}, sampling_rate=50.0)
    windows = cut_windows(mapped, length=1.0)
    np.testing.assert_array_equal(np.hstack(list(windows["rest"])), x[1:])
    opened = read_recording(tmp_path / "b.h5")
    assert opened.name == "b"
    assert opened.start == 1714550400.0
    windows = cut_windows(opened, length=1.0)
    np.testing.assert_array_equal(np.hstack([w for w in windows["acc"] if w is not None]), x)
    assert windows["mic"].present.tolist() == [True] * 5 + [False] * 5


def test_edf(tmp_path):
    pyedflib = pytest.importorskip("pyedflib")
    from cmvmed.recordings import read_edf_annotations

    x, y = np.sin(np.arange(3000) / 10), np.cos(np.arange(300) / 10)
    header = pyedflib.highlevel.make_signal_header
    writer = pyedflib.EdfWriter(str(tmp_path / "night.edf"), 2)
    writer.setSignalHeaders(
        [
            header(label, sample_frequency=rate, physical_min=-2, physical_max=2)
            for label, rate in (("ecg", 100), ("breath", 10))
        ]
    )
    writer.writeSamples([x, y])
    writer.writeAnnotation(5, 10, "sleep")
    writer.close()
    recording = read_recording(tmp_path / "night.edf")
    windows = cut_windows(recording, read_edf_annotations(tmp_path / "night.edf"), length=5.0)
    assert windows.labels.tolist() == [None, "sleep", "sleep", None, None, None]
    np.testing.assert_allclose(np.hstack(list(windows["ecg"]))[0], x, atol=1e-4)
    np.testing.assert_allclose(np.hstack(list(windows["breath"]))[0], y, atol=1e-4)


def test_miniseed(tmp_path):
    pymseed = pytest.importorskip("pymseed")
    traces = pymseed.MS3TraceList()
    for start in ("2024-01-01T15:00:00Z", "2024-01-01T15:01:00Z"):
        traces.add_data(sourceid="FDSN:XX_TEST__B_H_Z", data_samples=list(range(500)), sample_type="i", sample_rate=40.0,
                        starttime=pymseed.timestr2nstime(start))  # fmt: skip
    traces.to_file(str(tmp_path / "o.mseed"))
    recording = read_recording(tmp_path / "o.mseed", {"z": "XX.TEST..BHZ"})
    windows = cut_windows(recording, length=5.0)
    check_windows(windows, "z", np.r_[np.arange(500.0), np.full(1900, np.nan), np.arange(500.0)], 40.0)
    assert windows.times[:, 0].tolist() == [0.0, 5.0, 60.0, 65.0]
    assert recording.start == 1704121200.0
