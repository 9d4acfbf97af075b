"""The examples in docs/recordings.md make the data they need, and each form leads to predictions in at most five lines."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import cmvmed.recordings
from cmvmed.features import MFCC, views_transformer
from cmvmed.recordings.recording_files import RECORDING_FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")
MADE, FIRST, SENSORS, LONG_TABLE, FILES, READERS, RECORDINGS, WINDOWS, PICTURES = re.findall(
    r"```python\n(.*?)```", PAGE, flags=re.DOTALL
)
IS_FORE = np.arange(40) % 2


@pytest.fixture(scope="module")
def first_example(tmp_path_factory):
    """The folder of the page's files, and the names that its first two blocks make."""
    folder = tmp_path_factory.mktemp("recordings")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, run(FIRST, run(MADE, {}))


@pytest.fixture
def names(first_example, monkeypatch):
    """A copy of these names, in the folder of the files."""
    folder, made = first_example
    monkeypatch.chdir(folder)
    return dict(made)


def run(code, names):
    exec(compile(code, "docs/recordings.md", "exec"), names)
    return names


def predictions(names):
    """The predictions of the first example, for the rows that another one made."""
    learned = FIRST[FIRST.index("model = ") :]
    return run(learned, names)["predicted"]


def check_rows(rows, X, sensors):
    """The rows are those of the array that the first block learns from."""
    assert rows.columns == list(sensors)
    for name, channels in sensors.items():
        np.testing.assert_allclose(rows[name].to_array(), X[:, channels], rtol=1e-12)
    assert rows.labels.tolist() == [["back", "fore"][c] if i < 20 else None for i, c in enumerate(IS_FORE)]


def test_the_first_example(names):
    assert np.mean(names["predicted"] == np.array(["back", "fore"])[IS_FORE]) > 0.9


def test_from_arrays_to_predictions_takes_at_most_five_lines():
    (lines,) = [[line for line in FIRST.splitlines() if line and "import" not in line]]
    assert len(lines) <= 5


def test_dict_of_sensors(names):
    rows = run(SENSORS, names)["rows"]
    assert rows["mic"].present.tolist() == [False, True]
    assert rows.labels.tolist() == ["walk", None]


def test_long_table(names):
    run(LONG_TABLE, names)
    assert names["rows"].sampling_rates == {"acc": 50.0, "belt": 50.0}
    check_rows(names["rows"], names["X"], {"acc": [0, 1, 2], "belt": [3]})


def test_files_of_rows(names):
    sensors = {"ts(": {"acc": [0, 1, 2], "gyr": [3, 4, 5]}, "hdf5(": {"acc": [0, 1, 2], "gyr": [3, 4, 5]}}
    run(FILES, names)
    for line in READERS.strip().splitlines():
        rows = run(line, names)["rows"]
        for reader, expected in sensors.items():
            if reader in line:
                check_rows(rows, names["X"], expected)
    assert rows.labels.tolist() == ["human", "horse", None, None]
    features = views_transformer({name: (MFCC(), name) for name in rows.columns})
    assert features.fit_transform(rows).shape == (4, 400)


@pytest.mark.filterwarnings("ignore:The model learned nothing")  # the signals are noise
def test_long_recordings(names):
    pytest.importorskip("pyedflib")
    run("import soundfile", names)
    run(RECORDINGS, names)
    days, night = WINDOWS.split("night = ")
    run(days, names)
    rows = names["rows"]
    assert set(rows.labels) == {"walk", "run", None}
    missing = [signal is None for signal in rows["wall"]]
    assert missing == [
        not (g == "monday" and end <= 59.65) for g, (_, end) in zip(rows.groups, rows.times, strict=True)
    ]
    names["rows"] = rows[::3]
    assert len(predictions(names)) == -(-rows.n // 3)
    run("night = " + night, names)
    assert names["rows"].sampling_rates == {"heart": 100.0, "breath": 10.0}
    assert names["rows"].n == 30


def test_pictures(names):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = run(PICTURES, names)["figure"]
    assert len(figure.axes) == 9  # two sensors and the consensus
    matplotlib.pyplot.close("all")


def test_the_page_runs_from_the_top(tmp_path, monkeypatch):
    """Nothing but the page makes the names and files that it uses."""
    pytest.importorskip("pyedflib")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in (MADE, FIRST, SENSORS, LONG_TABLE, FILES, READERS, RECORDINGS, WINDOWS, PICTURES):
        run(block, names)
    assert len(names["figure"].axes) == 9


def test_every_public_function_and_format_is_on_the_page():
    functions = [name for name in cmvmed.recordings.__all__ if name[0].islower()]
    assert [name for name in functions if f"`{name}`" not in PAGE and f"{name}(" not in PAGE] == []
    formats = {"wav", "flac", "npy", "HDF5", "EDF", "BDF", "MiniSEED"}
    assert all(name in PAGE for name in formats)
    assert {".wav", ".flac", ".npy", ".h5", ".edf", ".bdf", ".mseed"} <= set(RECORDING_FORMATS)
