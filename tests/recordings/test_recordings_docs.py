"""The examples in docs/recordings.md run on made files, and each form leads to predictions in at most five lines."""

from __future__ import annotations

import re
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import soundfile

import cmvmed.recordings
from cmvmed.features import MFCC, views_transformer
from cmvmed.recordings.recording_files import RECORDING_FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
RNG = np.random.default_rng(0)
Y = np.arange(40) % 2


def noise(power, *shape):
    """Noise whose power tells the class."""
    return (1 + power) * RNG.normal(size=shape) / 20


def sound(name, seconds, rate=4000):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(name, noise(0, round(seconds * rate)), rate)


@pytest.fixture(scope="module")
def first_example(tmp_path_factory):
    """Data under the names that the page uses, and what its first block makes of them."""
    folder = tmp_path_factory.mktemp("recordings")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, run(BLOCKS[0], make_data())


@pytest.fixture
def names(first_example, monkeypatch):
    """A copy of these names, in the folder of their files."""
    folder, made = first_example
    monkeypatch.chdir(folder)
    return dict(made)


def make_data():
    labels = [["back", "fore"][c] if i < 20 else "" for i, c in enumerate(Y)]
    X = np.stack([noise(c, 6, 60) for c in Y])
    lines = [":".join(",".join(map(str, s)) for s in case) for case in X]
    Path("rackets.ts").write_text("@classLabel true\n@data\n" + "\n".join(
        f"{line}:{label or '?'}" for line, label in zip(lines, labels, strict=True)))  # fmt: skip
    with h5py.File("trials.h5", "w") as file:
        file["acc"], file["gyr"], file["labels"] = X[:, :3], X[:, 3:], labels
        file.attrs["sampling_rate"] = 50
    for side in ("left", "right"):
        for number in range(1, 5):
            sound(f"steps/{side}/{number:03d}.wav", 1.0)
    for file in ("monday_floor.wav", "monday_wall.flac", "tuesday_floor.wav"):
        sound(file, 60, 500)
    samples = pd.concat(
        pd.DataFrame({"trial": i, "t": np.arange(60) / 50, "stroke": labels[i], "ax": x[0], "ay": x[1], "az": x[2],
                      "force": x[3]}) for i, x in enumerate(X))  # fmt: skip
    log = pd.concat(
        pd.DataFrame({"day": day, "time": np.arange(3000) / 50, "ax": noise(0, 3000), "ay": noise(0, 3000),
                      "activity": np.repeat(["walk", "run", None], 1000)}) for day in ("mon", "tue"))  # fmt: skip
    return {
        "X": X, "y": [label or None for label in labels], "samples": samples, "log": log,
        "walk": noise(0, 3, 200), "rest": noise(0, 3, 180), "sound": noise(0, 14400),
    }  # fmt: skip


def run(code, names):
    exec(compile(code, "docs/recordings.md", "exec"), names)
    return names


def predictions(names):
    """The predictions of the first block, for the cases that another one made."""
    _, made, learned = BLOCKS[0].partition("labels=y)  # X: (cases, channels, samples)\n")
    assert made
    return run(learned, names)["predicted"]


def check_cases(cases, X, sensors):
    """The cases are those of the array that the first block learns from."""
    assert cases.columns == list(sensors)
    for name, channels in sensors.items():
        np.testing.assert_allclose(cases[name].to_array(), X[:, channels], rtol=1e-12)
    assert cases.labels.tolist() == [["back", "fore"][c] if i < 20 else None for i, c in enumerate(Y)]


def test_the_first_example(names):
    assert np.mean(names["predicted"] == np.array(["back", "fore"])[Y]) > 0.9


def test_from_arrays_to_predictions_takes_at_most_five_lines():
    (lines,) = [[line for line in BLOCKS[0].splitlines() if line and "import" not in line]]
    assert len(lines) <= 5


def test_dict_of_sensors(names):
    cases = run(BLOCKS[1], names)["cases"]
    assert cases["mic"].present.tolist() == [False, True]
    assert cases.labels.tolist() == ["walk", None]


def test_long_table(names):
    run(BLOCKS[2], names)
    assert names["cases"].sampling_rates == {"acc": 50.0, "belt": 50.0}
    check_cases(names["cases"], names["X"], {"acc": [0, 1, 2], "belt": [3]})


def test_files_of_cases(names):
    sensors = {"ts(": {"acc": [0, 1, 2], "gyr": [3, 4, 5]}, "hdf5(": {"acc": [0, 1, 2], "gyr": [3, 4, 5]}}
    for line in BLOCKS[3].strip().splitlines():
        cases = run(line, names)["cases"]
        for reader, expected in sensors.items():
            if reader in line:
                check_cases(cases, names["X"], expected)
    assert cases.labels.tolist() == ["human", "horse", None, None]
    features = views_transformer({name: (MFCC(), name) for name in cases.columns})
    assert features.fit_transform(cases).shape == (4, 400)


@pytest.mark.filterwarnings("ignore:Held-out labels are predicted correctly no more often")  # the signals are noise
def test_long_recordings(names):
    pytest.importorskip("pyedflib")
    write_edf("night.edf")
    days, night = BLOCKS[4].split("night = ")
    run(days, names)
    cases = names["cases"]
    assert set(cases.labels) == {"walk", "run", None}
    missing = [signal is None for signal in cases["wall"]]
    assert missing == [
        not (g == "monday" and end <= 59.65) for g, (_, end) in zip(cases.groups, cases.times, strict=True)
    ]
    names["cases"] = cases[::3]
    assert len(predictions(names)) == -(-cases.n // 3)
    run("night = " + night, names)
    assert names["cases"].sampling_rates == {"heart": 100.0, "breath": 10.0}
    assert names["cases"].n == 30


def write_edf(name):
    import pyedflib

    header = pyedflib.highlevel.make_signal_header
    writer = pyedflib.EdfWriter(name, 2)
    writer.setSignalHeaders([header("ecg", sample_frequency=100), header("resp", sample_frequency=10)])
    writer.writeSamples([noise(0, 30000), noise(0, 3000)])
    writer.close()


def test_labels_in_a_long_table(names):
    run(BLOCKS[4].splitlines()[0], names)
    cases = run(BLOCKS[5], names)["cases"]
    assert set(cases.labels) == {"walk", "run", None}
    assert cases.n == 2 * 59


def test_pictures(names):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = run(BLOCKS[6], names)["figure"]
    assert len(figure.axes) == 9  # two sensors and the consensus
    matplotlib.pyplot.close("all")


def test_every_public_function_and_format_is_on_the_page():
    functions = [name for name in cmvmed.recordings.__all__ if name[0].islower()]
    assert [name for name in functions if f"`{name}`" not in PAGE and f"{name}(" not in PAGE] == []
    formats = {"wav", "flac", "npy", "HDF5", "EDF", "BDF", "MiniSEED"}
    assert all(name in PAGE for name in formats)
    assert {".wav", ".flac", ".npy", ".h5", ".edf", ".bdf", ".mseed"} <= set(RECORDING_FORMATS)
