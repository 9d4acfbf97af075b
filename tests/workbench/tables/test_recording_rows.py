"""Projects whose rows are cut from signals: long tables, HDF5 files, annotated recordings; from files to predictions."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pytest
import soundfile
from click.testing import CliRunner

from cmvmed import CMVMED
from cmvmed.cli.main import main
from cmvmed.features import SignalFeatures
from cmvmed.recordings import cut_windows, from_frame, read_hdf5, read_recording
from cmvmed.workbench import Project, init


def write_long_cases(folder, seed=0):
    """40 cases of 50 samples, 20 of them labeled; the gyroscope is missing in case c7."""
    rng = np.random.default_rng(seed)
    frames = []
    for i in range(40):
        values = (1 + i % 2) * rng.normal(size=(50, 4))
        frame = pd.DataFrame(values, columns=["acc_x", "acc_y", "gyr_x", "gyr_y"])
        frame.insert(0, "id", f"c{i}")
        frame.insert(1, "time", np.arange(50) / 20)
        frame["subject"] = f"s{i % 4}"
        frame["label"] = ["calm", "wild"][i % 2] if i < 20 else ""
        if i == 7:
            frame.loc[:, ["gyr_x", "gyr_y"]] = np.nan
        frames.append(frame)
    pd.concat(frames).to_csv(folder / "long.csv", index=False)


def write_activity(folder, seed=0):
    """Three recordings with a column of activities that change every 25 s, and a pause in the second."""
    rng = np.random.default_rng(seed)
    frames = []
    for r in range(3):
        t = np.arange(2000) / 20
        activity = (t // 25 % 2).astype(int)
        values = (1 + activity[:, None]) * rng.normal(size=(2000, 4))
        frame = pd.DataFrame(values, columns=["acc_x", "acc_y", "gyr_x", "gyr_y"])
        frame.insert(0, "recording", f"r{r}")
        frame.insert(1, "time", t)
        frame["activity"] = np.where(t < 75, np.array(["walk", "run"])[activity], "")
        frames.append(frame if r != 1 else frame.drop(index=range(600, 700)))
    pd.concat(frames).to_csv(folder / "har.csv", index=False)


def write_annotated_sounds(folder, seed=0):
    """Two days of two microphones, of which one is missing on the second day; events of 4 s every 10 s."""
    rng = np.random.default_rng(seed)
    rows = []
    for day in range(2):
        t = np.arange(2000 * 60) / 2000
        x = 0.05 * rng.normal(size=len(t))
        for event in range(6):
            at = (t >= 10 * event + 1) & (t < 10 * event + 5)
            x[at] += 0.3 * np.sin(2 * np.pi * [200, 700][event % 2] * t[at])
            if event < 4:
                rows.append((f"day{day}", 10 * event + 1, 10 * event + 5, ["low", "high"][event % 2]))
        for mic in ("left", "right"):
            (folder / "sounds" / mic).mkdir(parents=True, exist_ok=True)
            if (day, mic) != (1, "right"):
                soundfile.write(folder / "sounds" / mic / f"day{day}.wav", x, 2000)
    table = pd.DataFrame(rows, columns=["recording", "start", "end", "label"])
    table.to_csv(folder / "sounds" / "annotations.csv", index=False)


def write_hdf5(folder, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    with h5py.File(folder / "cases.h5", "w") as file:
        file["acc"] = (1 + y[:, None, None]) * rng.normal(size=(40, 3, 60))
        file["mic"] = (1 + y[:, None]) * rng.normal(size=(40, 300))
        file["acc"].attrs["sampling_rate"], file["mic"].attrs["sampling_rate"] = 20.0, 100.0
        file["labels"] = [["calm", "wild"][c] if i < 20 else "" for i, c in enumerate(y)]


def started(folder, data):
    """Init and check; the project."""
    guesses = init(folder / data, folder / "cmvmed.toml")
    (folder / "cmvmed.toml").write_text(guesses.text, encoding="utf-8")
    project = Project.load(folder / "cmvmed.toml")
    assert project.settings == guesses.settings
    assert [finding for finding in project.check() if finding.level == "error"] == []
    return project


def trained(folder, data):
    """The project, its rows and the model."""
    project = started(folder, data)
    table = project.read()
    return project, table, CMVMED(**project.model_parameters).fit(table.views, table.labels, groups=table.groups)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    """The folder of two days of sound, the project, its rows and the model."""
    folder = tmp_path_factory.mktemp("sounds")
    write_annotated_sounds(folder)
    return folder, *trained(folder, "sounds")


def check_features(project, table, view, signals):
    """The features of a view are those of its signals, of the kind that was chosen."""
    (encoder,) = [encoder for encoder in project.encoders if encoder.name == view]
    (sensor,) = encoder.columns
    expected = SignalFeatures(sensor.features.kind).fit_transform(signals)
    np.testing.assert_array_equal(table.views[view], expected)
    assert any(f"View '{view}': features of kind '{sensor.features.kind}'" in said for said in table.messages)


def test_long_table(tmp_path):
    write_long_cases(tmp_path)
    project, table, model = trained(tmp_path, "long.csv")
    data = project.settings.data
    assert (data.id, data.time, data.labels, data.groups) == ("id", "time", "label", "subject")
    assert [view.name for view in project.settings.views] == ["acc", "gyr"]
    assert table.ids.tolist() == [f"c{i}" for i in range(40)]
    assert np.isnan(table.views["gyr"]).all(axis=1).tolist() == [i == 7 for i in range(40)]
    frame = pd.read_csv(tmp_path / "long.csv")
    cases = from_frame(frame, id="id", time="time", sensors={"acc": ["acc_x", "acc_y"]}, labels="label")
    check_features(project, table, "acc", cases["acc"])
    new = project.read_new(tmp_path / "long.csv")
    assert np.mean(model.predict(new.views) == np.array(["calm", "wild"])[np.arange(40) % 2]) > 0.9


def test_activities_in_a_long_table(tmp_path):
    write_activity(tmp_path)
    project, table, model = trained(tmp_path, "har.csv")
    assert project.settings.windows.length == 10.0
    assert set(table.groups) == {"r0", "r1", "r2"}
    starts = np.array([float(key.partition("@")[2]) for key in table.ids])
    in_pause = (table.groups == "r1") & (starts < 35) & (starts + 10 > 30)
    assert not in_pause.any()
    activity = np.where(starts // 25 % 2 == (starts + 9.9) // 25 % 2, starts // 25 % 2, -1)
    sure = activity >= 0
    predicted = model.predict(project.read_new(tmp_path / "har.csv").views)
    assert np.mean(predicted[sure] == np.array(["walk", "run"])[activity[sure].astype(int)]) > 0.9
    assert {label for label in table.labels if label is not None} == {"walk", "run"}
    assert all(label is None for label, start in zip(table.labels, starts, strict=True) if start >= 75)


def test_annotated_sounds(sounds):
    folder, project, table, model = sounds
    assert project.settings.windows.annotations == "sounds/annotations.csv"
    assert [view.files for view in project.settings.views] == ["left/*.wav", "right/*.wav"]
    absent = np.isnan(table.views["right"]).all(axis=1)
    assert absent.tolist() == [group == "day1" for group in table.groups]
    row = table.ids.tolist().index("day0@11")
    days = [read_recording(folder / "sounds" / "left" / f"day{day}.wav", ["left"]) for day in range(2)]
    check_features(project, table, "left", cut_windows(days, length=2.0, step=1.0)["left"])
    assert table.labels[row] == "high"
    new = project.read_new(folder / "sounds")
    predicted = dict(zip(new.ids, model.predict(new.views), strict=True))
    assert [predicted[f"day0@{10 * e + 2}"] for e in range(6)] == ["low", "high"] * 3
    single = project.read_new(folder / "sounds" / "left" / "day1.wav")
    assert {key.partition("@")[0] for key in single.ids} == {"day1"}


def test_hdf5(tmp_path):
    write_hdf5(tmp_path)
    project, table, model = trained(tmp_path, "cases.h5")
    assert {view.name: view.columns for view in project.settings.views} == {"acc": ("acc*",), "mic": ("mic",)}
    for name, signals in read_hdf5(tmp_path / "cases.h5").sensors.items():
        check_features(project, table, name, signals)
    assert np.mean(model.predict(table.views) == np.array(["calm", "wild"])[np.arange(40) % 2]) > 0.9


def test_one_recording_with_annotations(tmp_path):
    write_annotated_sounds(tmp_path)
    (tmp_path / "sounds" / "left" / "day0.wav").rename(tmp_path / "day0.wav")
    annotations = pd.read_csv(tmp_path / "sounds" / "annotations.csv")
    annotations[annotations["recording"] == "day0"].to_csv(tmp_path / "annotations.csv", index=False)
    rows = started(tmp_path, "day0.wav").rows()
    assert rows.groups is None
    assert list(rows.roles.views) == ["channel0"]
    assert rows.present("channel0").sum() == len(rows.ids) == 59


@pytest.mark.parametrize("write", [write_long_cases, write_activity, write_annotated_sounds, write_hdf5])
def test_commands(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    data = next(path.name for path in sorted(tmp_path.iterdir()))
    runner = CliRunner()
    assert runner.invoke(main, ["init", data]).exit_code == 0
    checked = runner.invoke(main, ["check"])
    assert checked.exit_code == 0, checked.output


def test_encoders_are_kept(sounds):
    folder, project, table, _ = sounds
    other = Project.load(folder / "cmvmed.toml")
    other.set_encoder_states(project.encoder_states())
    new = other.read_new(folder / "sounds")
    for name, view in table.views.items():
        np.testing.assert_array_equal(new.views[name], view)


LONG = "recording,time,acc_x,acc_y,what\n" + "".join(
    f"r{i // 100},{(i % 100) / 10},{i % 7},{i % 3},{'up' if i % 100 < 50 else 'down'}\n" for i in range(300)
)
WINDOWS = """
[data]
path = "long.csv"
id = "recording"
time = "time"
labels = "what"
[windows]
length = 2
[views.a]
columns = "acc_x"
[views.b]
columns = "acc_y"
"""


def write_project(folder, toml=WINDOWS, rows=LONG):
    (folder / "long.csv").write_text(rows, encoding="utf-8")
    (folder / "cmvmed.toml").write_text(toml, encoding="utf-8")
    return Project.load(folder / "cmvmed.toml")


def test_a_project_written_by_hand(tmp_path):
    table = write_project(tmp_path).read()
    assert table.ids.tolist() == [f"r{r}@{2 * k}" for r in range(3) for k in range(5)]
    assert table.labels.tolist() == 3 * ["up", "up", None, "down", "down"]  # the third window has a second of each
    assert set(table.groups) == {"r0", "r1", "r2"}


# replacements in the project file or the table, words of the message
MISTAKES = {
    "no_length": ((("length = 2", ""),), "[windows] needs length"),
    "length_zero": ((("length = 2", "length = 0"),), "length in [windows] is 0"),
    "length_text": ((("length = 2", 'length = "2 s"'),), "'2 s', but must be a number"),
    "unknown_key": ((("length = 2", "length = 2\nhop = 1"),), "[windows] has no key 'hop'", "step"),
    "rule": ((("length = 2", 'length = 2\nlabel = "first"'),), "'majority', 'center'"),
    "overlap": ((("length = 2", "length = 2\nmin_overlap = 3"),), "between 0 and 1"),
    "end": ((("length = 2", 'length = 2\nend = "pad"'),), "'drop', 'shift'"),
    "no_annotations": ((("length = 2", 'length = 2\nannotations = "no.csv"'),), "no file of annotations", "no.csv"),
    "too_long": ((("length = 2", "length = 100"),), "No window of 100 s fits", "lasts 10 s"),
    "no_time": ((('time = "time"', ""),), "set time in [data]"),
    "unknown_time": ((('time = "time"', 'time = "tiem"'),), "no column 'tiem'", "Did you mean 'time'?"),
    "unknown_id": ((('id = "recording"', 'id = "rec"'),), "no column 'rec'"),
    "time_without_id": ((('id = "recording"\n', ""), ("[windows]\nlength = 2\n", "")), "no id"),
    "several_labels": (
        (("[windows]\nlength = 2\n", ""),),
        "'what' of long.csv has several values in row 'r0'",
        "[windows]",
    ),
    "bad_time": ((("r0,0.5,", "r0,noon,"),), "Column 'time', line 7 of long.csv", "'noon'"),
    "same_time": ((("r0,0.5,", "r0,0.4,"),), "Row 'r0' has two lines at the time 0.4"),
    "path_of_view": ((('columns = "acc_x"', 'path = "long.csv"'),), "[windows]", "own paths"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, tmp_path):
    replacements, *words = MISTAKES[name]
    toml, rows = WINDOWS, LONG
    for old, new in replacements:
        assert old in toml + rows
        toml, rows = toml.replace(old, new), rows.replace(old, new)
    with pytest.raises(ValueError, match=r"\w") as error:
        write_project(tmp_path, toml, rows).read()
    for word in words:
        assert word in str(error.value)


def test_annotations_of_another_recording(tmp_path):
    (tmp_path / "a.csv").write_text("recording,start,end,label\nr9,0,1,x\n", encoding="utf-8")
    toml = WINDOWS.replace("length = 2", 'length = 2\nannotations = "a.csv"')
    with pytest.raises(ValueError, match="'r9', but the recordings are 'r0', 'r1', 'r2'"):
        write_project(tmp_path, toml).read()
