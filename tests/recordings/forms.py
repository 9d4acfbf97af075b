"""The same cases in every form: two sensors with different rates and lengths, one missing in some cases."""

from __future__ import annotations

from dataclasses import dataclass

import h5py
import numpy as np
import pandas as pd
import soundfile

RATES = {"imu": 50.0, "mic": 400.0}
IDS = ["walk1", "walk2", "rest1", "rest2", "run1"]
LABELS = ["walk", None, "rest", None, "run"]
GROUPS = ["anna", "anna", "ben", "ben", "ben"]


@dataclass
class Truth:
    """Signals by sensor and case; None where the sensor is missing."""

    imu: list
    mic: list

    def items(self):
        return {"imu": self.imu, "mic": self.mic}.items()


def make_truth(seed=0):
    """Signals whose values are multiples of 2^-15, which 16-bit files hold exactly."""
    rng = np.random.default_rng(seed)
    seconds = [1.0, 1.2, 0.8, 1.0, 1.4]

    def signal(n_channels, rate, s):
        return rng.integers(-(2**14), 2**14, size=(n_channels, round(rate * s))) / 2**15

    imu = [signal(3, RATES["imu"], s) for s in seconds]
    mic = [signal(1, RATES["mic"], s) for s in seconds]
    imu[3], mic[1] = None, None
    return Truth(imu, mic)


def check(recordings, truth, *, ids=IDS, labels=LABELS, atol=0.0):
    """The signals, rates, identifiers and labels of recordings are those of the truth."""
    assert recordings.n == len(recordings) == len(ids)
    assert recordings.ids.tolist() == list(ids)
    assert recordings.labels.tolist() == list(labels)
    assert recordings.sampling_rates == RATES
    for name, signals in truth.items():
        assert recordings[name].present.tolist() == [signal is not None for signal in signals]
        for read, expected in zip(recordings[name], signals, strict=True):
            if expected is not None:
                assert read.shape == expected.shape
                assert read.dtype.kind == "f"
                assert read.dtype.isnative
                np.testing.assert_allclose(read, expected, rtol=0, atol=atol)


def long_frame(truth):
    """One row per sample and sensor; the columns of the other sensor are empty, and rows are in no order."""
    parts = []
    for row, (case, label, group) in enumerate(zip(IDS, LABELS, GROUPS, strict=True)):
        known = {"id": case, "label": label, "person": group}
        if truth.imu[row] is not None:
            times = 100 + np.arange(truth.imu[row].shape[1]) / RATES["imu"]
            parts.append(pd.DataFrame({"t": times, **dict(zip("xyz", truth.imu[row], strict=True)), **known}))
        if truth.mic[row] is not None:
            # between the times of the other sensor, so that no time occurs twice
            times = 100.0003 + np.arange(truth.mic[row].shape[1]) / RATES["mic"]
            parts.append(pd.DataFrame({"t": times, "mic": truth.mic[row][0], **known}))
    frame = pd.concat(parts, ignore_index=True)
    shuffled = frame.sample(frac=1, random_state=0)
    return pd.concat([shuffled[shuffled["id"] == case] for case in IDS], ignore_index=True)


def write_hdf5_groups(path, truth):
    with h5py.File(path, "w", track_order=True) as file:
        for row, case in enumerate(IDS):
            group = file.create_group(case)
            group.attrs["group"] = GROUPS[row]
            if LABELS[row] is not None:
                group.attrs["label"] = LABELS[row]
            for name, signals in truth.items():
                if signals[row] is not None:
                    group[name] = signals[row].astype(">f8") if name == "imu" else signals[row][0]
                    group[name].attrs["sampling_rate"] = RATES[name]


def write_sounds(folder, truth, suffix="wav"):
    for name, signals in truth.items():
        (folder / name).mkdir(parents=True)
        for case, signal in zip(IDS, signals, strict=True):
            if signal is not None:
                soundfile.write(folder / name / f"{case}.{suffix}", signal.T, int(RATES[name]), subtype="PCM_16")
