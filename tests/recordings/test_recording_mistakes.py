"""Mistakes with recordings: each gives one error that names the file, row or sensor, and says what to do."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile

from cmvmed.recordings import (
    cut_windows,
    from_array,
    from_sensors,
    long_recording,
    read_edf_annotations,
    read_hdf5,
    read_recording,
    read_sounds,
    read_ts,
    resample,
)

X = np.zeros((3, 2, 20))
DAY = {"a": np.zeros(100)}


def cut(annotations, *, length=2, **given):
    """Windows of one short recording."""
    return cut_windows(long_recording("d", DAY, 1), annotations, length=length, **given)


def sound(name, n=100, rate=100, channels=1):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(name, np.zeros((n, channels)), rate)
    return name


def hdf5(name="x.h5", *, fs=None, **datasets):
    with h5py.File(name, "w") as file:
        for key, value in datasets.items():
            file[key] = value
        if fs is not None:
            file.attrs["fs"] = fs
    return name


def written(name, content=b""):
    Path(name).write_bytes(content)
    return name


def bad_header(name):
    """An npy file whose header is no complete expression, at which Python's tokenizer fails."""
    np.save(name, X[0])
    return written(name, Path(name).read_bytes().replace(b"}", b" "))


def two_sounds(**second):
    sound("f/a.wav")
    sound("f/b.wav", **second)
    return "f"


def same_stem():
    sound("f/a.wav")
    sound("f/a.flac")
    return "f"


def truncated():
    data = Path(sound("t.wav", 5000)).read_bytes()
    written("t.wav", data[:3000])
    return read_recording("t.wav")


def cases_with(attribute, *shapes):
    with h5py.File("g.h5", "w") as file:
        for number, shape in enumerate(shapes):
            file.create_group(f"case{number}")["acc"] = np.zeros(shape)
            file[f"case{number}"].attrs["fs"] = 10 if attribute == "same" else 10 + number
    return "g.h5"


# name -> what the user does, words of the message
MISTAKES = {
    # arrays
    "one_case": (lambda: from_array(X[0, 0]), "shape (20,)", "X[np.newaxis]"),
    "four_dimensions": (lambda: from_array(X[np.newaxis]), "n_rows, n_channels, n_timepoints"),
    "no_cases": (lambda: from_array([]), "no rows"),
    "dict_for_array": (lambda: from_array({"a": X}), "from_sensors"),
    "texts": (lambda: from_array([["a", "b"]]), "row 0", "real numbers"),
    "objects": (lambda: from_array([np.array([1, "x"], dtype=object)], ids=["w"]), "row 'w'", "not numbers"),
    "complex": (lambda: from_array(X * 1j), "complex", "real numbers"),
    "unequal_channels": (lambda: from_array([X[0], X[0, :1]], ids=["p", "q"]), "row 'p' has 2", "row 'q' has 1", "(1, 20)"),
    "case_of_three_dimensions": (lambda: from_sensors({"mic": [X]}), "row 0, sensor 'mic'", "(3, 2, 20)"),
    "channel_beyond": (lambda: from_array(X, sensors={"a": 2}), "'a'", "channels 0 to 1"),
    "too_few_names": (lambda: from_array(X, sensors=["a"]), "names 1 channels", "X has 2"),
    "empty_sensor": (lambda: from_array(X, sensors={"a": []}), "'a' has no channels"),
    "rate_zero": (lambda: from_array(X, 0), "positive number of Hz"),
    "rate_missing": (lambda: from_sensors({"a": X, "b": X}, {"a": 1.0}), "no entry for sensor 'b'"),
    "nothing_at_all": (lambda: from_sensors({"a": [None, None]}), "No row of sensor 'a' has a signal"),
    "all_nan": (lambda: from_array(X * np.nan), "all are None, empty or NaN"),
    "dicts_and_lists": (lambda: from_sensors({"a": X, "b": {"x": X[0]}}), "Either all sensors are dicts"),
    "label_of_no_case": (lambda: from_sensors({"a": {"p": X[0]}}, labels={"q": 1}), "'q'", "rows are 'p'"),
    "numbers_of_cases": (lambda: from_sensors({"a": X, "b": X[:2]}), "'a' (3)", "'b' (2)"),
    "too_many_ids": (lambda: from_array(X, ids="abcd"), "ids has 4 entries for 3 rows"),
    # long recordings
    "transposed": (lambda: long_recording("d", {"a": np.zeros((100, 2))}, 1), "'d', sensor 'a'", "transpose"),
    "no_rate": (lambda: long_recording("d", DAY), "rate of sensor 'a' is unknown"),
    "no_sensor": (lambda: long_recording("d", {}, 1), "dict of sensor name"),
    "all_gaps": (lambda: long_recording("d", {"a": np.full(9, np.nan)}, 1), "'a' of recording 'd' has no samples"),
    "overlap": (lambda: long_recording("d", {"a": [(0, np.zeros(9)), (8, np.zeros(9))]}, 1), "'a' overlap by 1 s", "at 8.000 s"),
    "offset_of_no_sensor": (lambda: long_recording("d", DAY, 1, offsets={"b": 1}), "no sensor 'b'", "'a'"),
    "offset_nan": (lambda: long_recording("d", DAY, 1, offsets={"a": np.nan}), "offset of sensor 'a'"),
    "date_without_start": (lambda: long_recording("d", {"a": [("2024-01-01", np.zeros(9))]}, 1), "pass start="),
    "start_is_a_number": (lambda: long_recording("d", DAY, 1, start=3), "start is 3", "date and time"),
    "channels_change": (lambda: long_recording("d", {"a": [(0, X[0, 0]), (20, X[0])]}, 1), "1 channels", "has 2"),
    "rate_of_file": (lambda: long_recording("d", {"a": sound("a.wav")}, 50), "says 50 Hz", "'a.wav' has 100 Hz", "resample"),
    "rates_of_files": (
        lambda: long_recording("d", {"a": [(0, sound("a.wav")), (9, sound("b.wav", rate=50))]}),
        "100 Hz ('a.wav')", "50 Hz ('b.wav')",
    ),
    "resample_unknown": (lambda: resample(long_recording("d", DAY, 1), {"b": 2}), "no sensor 'b'"),
    "resample_by_too_much": (lambda: resample(from_array(X, 1e6), 1.0), "factor"),
    # windows
    "window_too_long": (lambda: cut(None, length=200), "No window of 200 s", "lasts 100 s"),
    "window_of_no_sample": (lambda: cut(None, length=0.2), "one sample of sensor 'a' (1 Hz)"),
    "negative_step": (lambda: cut(None, length=2, step=-1), "step must be a positive"),
    "unknown_rule": (lambda: cut(None, length=2, label="first"), '"majority" or "center"'),
    "same_name": (lambda: cut_windows([long_recording("d", DAY, 1)] * 2, length=2), "the name 'd'"),
    "no_recordings": (lambda: cut_windows([], length=2), "no recordings"),
    "other_rate": (
        lambda: cut_windows([long_recording("d", DAY, 1), long_recording("e", DAY, 2)], length=2),
        "1 Hz in recording 'd'", "2 Hz in 'e'", "resample",
    ),
    "annotation_of_no_recording": (
        lambda: cut([("x", 0, 1, "p")]), "'x'", "recordings are 'd'",
    ),
    "annotation_backwards": (
        lambda: cut([("d", 0, 1, "p"), ("d", 5, 5, "p")]),
        "Annotation 1 of recording 'd' ends at 5 s",
    ),
    "annotation_without_end": (lambda: cut([("d", 0, None, "p")]), "has no end"),
    "annotation_of_three": (lambda: cut([(0, 1, "p")]), "(recording, start, end, label)"),
    "annotation_columns": (lambda: cut({"start": [0], "label": ["p"]}), "no column 'end'"),
    "annotations_no_table": (lambda: cut(3), "DataFrame or a list"),
    # files
    "no_file": (lambda: read_recording("none.wav"), "no file 'none.wav'"),
    "unknown_ending": (lambda: read_recording(written("a.xyz")), "ending of 'a.xyz'", ".edf"),
    "empty_wav": (lambda: read_recording(written("a.wav")), "'a.wav' is not a readable sound file"),
    "wav_without_samples": (lambda: read_recording(sound("a.wav", 0)), "'a.wav' is empty"),
    "truncated_wav": (lambda: list(cut_windows(truncated(), length=1)["channel0"]), "'t.wav' is truncated"),
    "empty_npy": (lambda: read_recording(written("a.npy"), sampling_rate=1), "'a.npy' is empty or damaged"),
    "npy_header": (lambda: read_recording(bad_header("a.npy"), sampling_rate=1), "'a.npy' is empty or damaged"),
    "npy_without_rate": (lambda: (np.save("a.npy", X[0]), read_recording("a.npy")), "'a.npy' has no sampling rate"),
    "npy_of_cases": (lambda: (np.save("a.npy", X), read_recording("a.npy", sampling_rate=1)), "shape (3, 2, 20)"),
    "empty_hdf5": (lambda: read_hdf5(written("a.h5")), "'a.h5' is empty or damaged"),
    "hdf5_without_signals": (lambda: read_hdf5(hdf5(labels=[1, 2])), "holds no signals", "'labels'"),
    "long_hdf5_without_signals": (lambda: read_recording(hdf5()), "'x.h5' holds no signals"),
    "long_hdf5_of_rate_zero": (lambda: read_recording(hdf5(fs=0, a=X[0])), "'x.h5' is damaged", "positive number of Hz"),
    "ts_of_one_sign": (lambda: read_ts(written("a.ts", b"@")), "a.ts has no rows after a line @data"),
    "hdf5_of_a_type": (lambda: read_hdf5(hdf5(a=np.dtype("f8"))), "'x.h5' holds no signals", "it has 'a'"),
    "hdf5_without_rate": (lambda: read_hdf5(hdf5(acc=X)), "rate of sensor 'acc' is unknown", "sampling_rate"),
    "hdf5_cases_differ": (lambda: read_hdf5(hdf5(fs=1, a=X, b=X[:2])), "'a' (3), 'b' (2)"),
    "hdf5_unknown_dataset": (lambda: read_hdf5(hdf5(fs=1, a=X), sensors={"m": "b"}), "no dataset 'b'", "has 'a'"),
    "hdf5_other_channels": (lambda: read_hdf5(cases_with("same", (2, 30), (3, 30))), "'case0' has 2 channels", "'case1' has 3"),
    "hdf5_other_rates": (lambda: read_hdf5(cases_with("other", (2, 30), (2, 30))), "at 10 Hz", "at 11 Hz"),
    "empty_edf": (lambda: read_recording(written("a.edf")), "'a.edf' cannot be read as an EDF"),
    "no_edf": (lambda: read_edf_annotations("a.edf"), "no file 'a.edf'"),
    "no_ts": (lambda: read_ts("a.ts"), "no file 'a.ts'"),
    "empty_ts": (lambda: read_ts(written("a.ts")), "no rows after a line @data"),
    "text_in_ts": (lambda: read_ts(written("a.ts", b"@data\n1,2\n1,x\n")), "Line 3 of a.ts", "not a number"),
    "no_folder": (lambda: read_sounds("none"), "no folder 'none'"),
    "no_sounds": (lambda: (Path("f").mkdir(), read_sounds("f")), "no sound files"),
    "pattern_without_star": (lambda: read_sounds(two_sounds(), {"m": "a.wav"}), "needs a *"),
    "pattern_of_nothing": (lambda: read_sounds(two_sounds(), {"m": "mic/*.wav"}), "'mic/*.wav' of sensor 'm'", "a.wav"),
    "sounds_of_other_rates": (lambda: read_sounds(two_sounds(rate=50)), "100 Hz ('f/a.wav')", "50 Hz ('f/b.wav')"),
    "sounds_of_other_channels": (lambda: read_sounds(two_sounds(channels=2)), "'f/a.wav' has 1", "'f/b.wav' has 2"),
    "empty_sound": (lambda: read_sounds(two_sounds(n=0)), "'f/b.wav' is empty"),
    "same_stem": (lambda: read_sounds(same_stem()), "a.flac and a.wav are both 'a'"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_one_error_says_what_is_wrong(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    action, *words = MISTAKES[name]
    with pytest.raises((ValueError, TypeError, FileNotFoundError)) as error:
        action()
    for word in words:
        assert word in str(error.value)
    assert len(str(error.value)) < 400


def test_packages_of_formats_are_named(monkeypatch, tmp_path):
    for module, file in (("h5py", "a.h5"), ("pyedflib", "a.edf"), ("pymseed", "a.mseed")):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        (tmp_path / file).write_bytes(b"x")
        with pytest.raises(ImportError, match=rf"needs {module}.*install .*\[recordings\]"):
            read_recording(tmp_path / file)
