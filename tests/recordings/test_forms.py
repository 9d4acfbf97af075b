"""Each form of input gives the same signals, labels and groups."""

from __future__ import annotations

import pickle

import h5py
import numpy as np
import polars as pl
import pytest

from cmvmed.recordings import from_array, from_frame, from_sensors, read_hdf5, read_sounds, read_ts
from tests.core.factories import rejects
from tests.recordings.forms import (
    GROUPS,
    IDS,
    LABELS,
    RATES,
    check,
    long_frame,
    make_truth,
    write_hdf5_groups,
    write_sounds,
)


@pytest.fixture(scope="module")
def truth():
    return make_truth()


def test_the_comparison_sees_differences(truth):
    other = make_truth(seed=1)
    recordings = from_sensors(dict(truth.items()), RATES, ids=IDS, labels=LABELS)
    check(recordings, truth)
    rejects(check, recordings, other)


def test_dict_of_lists(truth):
    recordings = from_sensors(dict(truth.items()), RATES, ids=IDS, labels=LABELS, groups=GROUPS)
    check(recordings, truth)
    assert recordings.groups.tolist() == GROUPS
    assert recordings["imu"].channel_names == ("imu0", "imu1", "imu2")


def test_dict_of_dicts_by_identifier(truth):
    signals = {
        name: {case: signal for case, signal in zip(IDS, column, strict=True) if signal is not None}
        for name, column in truth.items()
    }
    labels = {case: label for case, label in zip(IDS, LABELS, strict=True) if label is not None}
    check(from_sensors(signals, RATES, ids=IDS, labels=labels), truth)
    first_seen = [*signals["imu"], *(case for case in signals["mic"] if case not in signals["imu"])]
    assert from_sensors(signals, RATES).ids.tolist() == first_seen


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_long_tables(truth, convert):
    sensors = {"imu": ["x", "y", "z"], "mic": "mic"}
    recordings = from_frame(convert(long_frame(truth)), id="id", time="t", sensors=sensors, labels="label", groups="person",
                            sampling_rate=RATES)  # fmt: skip
    check(recordings, truth)
    assert recordings.groups.tolist() == GROUPS
    found = from_frame(convert(long_frame(truth)), id="id", time="t", sensors=sensors)
    assert found.sampling_rates == pytest.approx(RATES)


def test_hdf5_with_a_group_per_case(truth, tmp_path):
    write_hdf5_groups(tmp_path / "cases.h5", truth)
    recordings = read_hdf5(tmp_path / "cases.h5")
    order = [recordings.ids.tolist().index(case) for case in IDS]
    check(recordings[np.array(order)], truth)
    assert recordings[np.array(order)].groups.tolist() == GROUPS


@pytest.mark.parametrize(("suffix", "dtype"), [("wav", np.float32), ("flac", np.float32)])
def test_sound_folders(truth, tmp_path, suffix, dtype):
    write_sounds(tmp_path, truth, suffix)
    labels = {case: label for case, label in zip(IDS, LABELS, strict=True) if label is not None}
    recordings = read_sounds(tmp_path, {name: f"{name}/*.{suffix}" for name in RATES}, labels=labels)
    order = np.array([recordings.ids.tolist().index(case) for case in IDS])
    check(recordings[order], truth)
    assert recordings["imu"][0].dtype == dtype
    guessed = read_sounds(tmp_path, labels=labels)
    check(guessed[np.array([guessed.ids.tolist().index(case) for case in IDS])], truth)
    assert "mic/walk1" in recordings[order]["mic"].place(0)


class TestOneArray:
    """One rate and one length, as in aeon and sktime."""

    X = np.random.default_rng(0).integers(-100, 100, size=(4, 3, 25)).astype(float)
    SENSORS = {"a": [0, 2], "b": 1}  # noqa: RUF012

    def compare(self, recordings):
        for row in range(4):
            np.testing.assert_array_equal(recordings["a"][row], self.X[row, [0, 2]])
            np.testing.assert_array_equal(recordings["b"][row], self.X[row, [1]])

    def test_array(self):
        self.compare(from_array(self.X, 10.0, sensors=self.SENSORS))
        each = from_array(self.X, sensors=["p", "q", "r"])
        assert each.columns == ["p", "q", "r"]
        np.testing.assert_array_equal(each["q"].to_array(), self.X[:, [1]])
        np.testing.assert_array_equal(np.asarray(from_array(self.X, sensors={"all": slice(None)})["all"]), self.X)
        np.testing.assert_array_equal(from_array(self.X[:, 0])["channel0"].to_array(), self.X[:, [0]])

    @pytest.mark.parametrize("dtype", ["<i2", ">i2", ">f4", "<f8", ">f8", "i8", "f2", "O"])
    def test_types_and_byte_orders(self, dtype):
        recordings = from_array(self.X.astype(dtype), sensors=self.SENSORS)
        self.compare(recordings)
        assert recordings["b"][0].dtype.isnative
        assert recordings["b"][0].dtype in (np.float32, np.float64)

    def test_unequal_lengths_in_a_list_or_padded(self):
        lengths = [25, 20, 25, 3]
        cut = [case[:, :n] for case, n in zip(self.X, lengths, strict=True)]
        padded = self.X.copy()
        for case, n in zip(padded, lengths, strict=True):
            case[:, n:] = np.nan
        objects = np.empty(4, dtype=object)
        objects[:] = cut
        for form in (cut, padded, np.ma.masked_invalid(padded), objects):
            recordings = from_array(form, sensors={"all": slice(None)})
            assert [signal.shape[1] for signal in recordings["all"]] == lengths
            for signal, case in zip(recordings["all"], cut, strict=True):
                np.testing.assert_array_equal(signal, case)

    def test_ts_file(self, tmp_path):
        lines = [":".join(",".join(map(repr, map(float, series))) for series in case) for case in self.X]
        labels = ["up", "?", "down", "up"]
        text = "@classLabel true up down\n@data\n" + "\n".join(
            f"{line}:{label}" for line, label in zip(lines, labels, strict=True)
        )
        (tmp_path / "cases.ts").write_text(text, encoding="utf-8")
        recordings = read_ts(tmp_path / "cases.ts", 10.0, sensors=self.SENSORS)
        self.compare(recordings)
        assert recordings.labels.tolist() == ["up", None, "down", "up"]
        assert recordings.ids[0] == "line 3"

    def test_hdf5_with_a_dataset_per_sensor(self, tmp_path):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["a"] = self.X[:, [0, 2]].astype(">i2")
            file["b"] = self.X[:, 1]
            file["labels"] = ["up", "", "down", "up"]
            file["ids"] = list("pqrs")
            file.attrs["fs"] = 10
        recordings = read_hdf5(tmp_path / "x.h5")
        self.compare(recordings)
        assert recordings.labels.tolist() == ["up", None, "down", "up"]
        assert recordings.sampling_rates == {"a": 10.0, "b": 10.0}
        self.compare(pickle.loads(pickle.dumps(recordings)))  # for joblib: only the path is sent


class TestGaps:
    X = np.random.default_rng(0).normal(size=(3, 2, 10))

    def with_gap(self):
        X = self.X.copy()
        X[1, 0, 4:6] = np.nan
        return X

    def test_a_gap_is_a_missing_sensor(self):
        with pytest.warns(UserWarning, match="row 1, sensor 'channel0' has gaps"):
            recordings = from_array(self.with_gap())
        assert recordings["channel0"].present.tolist() == [True, False, True]
        assert recordings["channel1"].present.all()

    def test_or_interpolated_or_an_error(self):
        filled = from_array(self.with_gap(), gaps="interpolate")["channel0"][1][0]
        left, right = self.X[1, 0, 3], self.X[1, 0, 6]
        np.testing.assert_allclose(filled[4:6], [left + (right - left) / 3, left + 2 * (right - left) / 3])
        with pytest.raises(ValueError, match="row 'b', sensor 'channel0' has 2 NaN"):
            from_array(self.with_gap(), ids="abc", gaps="error")

    def test_a_dead_channel_is_a_missing_sensor_and_no_gap(self):
        X = self.X.copy()
        X[2, 1] = np.nan
        recordings = from_array(X)
        assert recordings["channel1"].present.tolist() == [True, True, False]
