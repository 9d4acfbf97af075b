"""Guesses of a first project file: views by prefix, kind, folder, name and channel; labels, ids and groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import soundfile

from cmvmed.workbench import DataSettings, Project, ProjectError, ProjectSettings, ViewSettings, init
from cmvmed.workbench.project_file import parse_project
from cmvmed.workbench.toml_text import project_text
from tests.workbench.jobs import write_recordings, write_tickets, write_windows


def guessed(folder, data):
    return init(folder / data, folder / "cmvmed.toml")


def views_of(guesses):
    return {view.name: view.columns or view.files or view.path for view in guesses.settings.views}


def test_sensor_table(tmp_path):
    write_windows(tmp_path)
    guesses = guessed(tmp_path, "windows.csv")
    assert guesses.settings.data == DataSettings(
        path="windows.csv",
        id="window_id",
        labels="stroke",
        unlabeled=("unknown",),
        groups="subject",
        ignore=("timestamp",),
    )
    assert views_of(guesses) == {"acc": ("acc_*",), "gyr": ("gyr_*",)}


def test_tickets(tmp_path):
    write_tickets(tmp_path)
    guesses = guessed(tmp_path, "tickets.csv")
    assert guesses.settings.data == DataSettings(
        path="tickets.csv", id="ticket", labels="category", ignore=("bought",), separator=";", decimal=","
    )
    assert 'separator = ";"' in guesses.text
    assert 'decimal = ","' in guesses.text
    assert views_of(guesses) == {
        "numbers": ("price", "weight"),
        "categories": ("color", "prime"),
        "comment": ("comment",),
    }
    assert len(guesses.messages) == 2


def test_recordings(tmp_path):
    write_recordings(tmp_path)
    guesses = guessed(tmp_path, "recordings")
    assert guesses.settings.data == DataSettings(path="recordings", labels="recordings/labels.csv")
    assert views_of(guesses) == {"mic_a": "mic_a/*.wav", "mic_b": "mic_b/*.wav"}


@pytest.mark.parametrize("data", ["windows.csv", "tickets.csv", "recordings"])
def test_every_guess_names_a_line_of_the_file_and_the_file_reads_back(tmp_path, data):
    write_windows(tmp_path), write_tickets(tmp_path), write_recordings(tmp_path)
    guesses = guessed(tmp_path, data)
    assert parse_project(guesses.text) == guesses.settings
    for guess in guesses.guesses:
        section, _, line = guess.line.rpartition("] ") if guess.line.startswith("[views") else ("", "", guess.line)
        assert line in guesses.text
        assert not section or f"{section}]\n" in guesses.text
    assert len(guesses.text.splitlines()) < 25


def test_any_settings_survive_the_text():
    data = DataSettings(
        path='a "b"\\c.csv',
        id="é",
        unlabeled=("", "?"),
        classes=("x\ty",),
        day_first=True,
        sampling_rate=50.0,
        decimal=",",
    )
    views = (ViewSettings("left hand", columns=("a*", "b")), ViewSettings("m", path="x", files="*.wav", channel=2))
    wide = ViewSettings("wide", columns=tuple(f"column_{i}" for i in range(40)))
    settings = ProjectSettings(
        data, (*views, wide), {"zip code": "category"}, {"n_stages": 4, "class_prior": {"a": 0.3}}
    )
    assert parse_project(project_text(settings)) == settings
    assert parse_project(project_text(replace(settings, data=DataSettings(path="a")))) != settings


@pytest.mark.parametrize(
    ("columns", "views"),
    [
        (["acc.x", "acc.y", "mag.x", "mag.y"], {"acc": ("acc.*",), "mag": ("mag.*",)}),
        (["a1", "a2", "b1", "b2"], {"a": ("a*",), "b": ("b*",)}),
        (["f_acc_x", "f_acc_y", "f_gyr_x", "f_gyr_y"], {"f_acc": ("f_acc_*",), "f_gyr": ("f_gyr_*",)}),
        (["acc_x", "acc_y", "accel_x", "accel_y"], {"acc": ("acc_*",), "accel": ("accel_*",)}),
        (["x", "y", "z"], {"numbers": ("x", "y", "z")}),
        (["acc_x", "gyr_x"], {"acc": ("acc_x",), "gyr": ("gyr_x",)}),
        (["left hand x", "left hand y", "right hand x", "right hand y"], {"left": ("left hand *",), "right": ("right hand *",)}),
    ],
)  # fmt: skip
def test_views_by_prefix(tmp_path, columns, views):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, len(columns))), columns=columns).assign(label=["a", "b", ""] * 4)
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert views_of(guessed(tmp_path, "x.csv")) == views


@pytest.mark.parametrize(
    ("cells", "unlabeled"),
    [
        (["a", "b", "", ""], ("",)),
        (["a", "b", "?", "?"], ("?",)),
        (["a", "b", "Unknown", ""], ("", "Unknown")),
        (["a", "b", "-1", "-1", "-1"], ("-1",)),
        (["a", "b", "a", "b"], ("",)),
    ],
)
def test_markers(tmp_path, cells, unlabeled):
    frame = pd.DataFrame({"x": np.arange(6 * len(cells)) * 0.5, "label": cells * 6})
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert guessed(tmp_path, "x.csv").settings.data.unlabeled == unlabeled


def test_prefixes_that_give_the_same_name_of_a_view_lose_no_column(tmp_path):
    columns = ["a b_x", "a b_y", "a-b_x", "a-b_y", "c_x", "c_y"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 6)), columns=columns).assign(
        label=["u", "v", ""] * 4
    )
    frame.to_csv(tmp_path / "x.csv", index=False)
    found = guessed(tmp_path, "x.csv")
    (tmp_path / "cmvmed.toml").write_text(found.text, encoding="utf-8")
    assert sum(view.shape[1] for view in Project.load(tmp_path).read().views.values()) == 6


def test_no_labels_are_found(tmp_path):
    pd.DataFrame({"x": np.linspace(0, 1, 30), "z": np.linspace(2, 3, 30)}).to_csv(tmp_path / "x.csv", index=False)
    guesses = guessed(tmp_path, "x.csv")
    assert guesses.settings.data.labels is None
    assert any("no column or file of labels was found" in guess.what for guess in guesses.guesses)


@pytest.mark.parametrize("columns", ["file,from,to,state", "recording,start,end,label"])
def test_a_table_beside_sound_files_is_taken_or_what_it_lacks_is_said(tmp_path, columns):
    write_sounds(
        tmp_path / "pump", "mic/monday.wav", "mic/tuesday.wav", "vibration/monday.wav", "vibration/tuesday.wav"
    )
    (tmp_path / "pump" / "log.csv").write_text(f"{columns}\nmonday,0.0,0.2,on\n", encoding="utf-8")
    said = " ".join(guess.what for guess in guessed(tmp_path, "pump").guesses)
    taken = columns.startswith("recording")
    assert ("files of the same name are one recording" in said) is taken
    assert ("log.csv needs columns named id and label, or recording, start, end and label" in said) is not taken


def write_table(folder, **columns):
    """x.csv with two sensors, mic and scale, in 40 rows and further columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)).round(3), columns=["mic_a", "mic_b", "scale_a", "scale_b"])
    frame.assign(**columns).to_csv(folder / "x.csv", index=False)


def said_of(guesses):
    return " ".join(guess.what for guess in guesses.guesses)


LABELS = ["u", "v", "", ""] * 10


def test_words_and_constants_of_no_sensor_are_left_out_and_said(tmp_path):
    write_table(
        tmp_path,
        firmware=[2.1] * 40,
        observer=["AK", "MS"] * 20,
        heat=np.arange(40) / 7,
        door=[True, False] * 20,
        label=LABELS,
    )
    guesses = guessed(tmp_path, "x.csv")
    assert views_of(guesses) == {"mic": ("mic_*",), "scale": ("scale_*",), "heat": ("heat",), "door": ("door",)}
    assert guesses.settings.data.ignore == ("firmware", "observer")
    assert "'firmware', 'observer' are not learned from: constant, or words, and of no sensor" in said_of(guesses)


def test_repeated_identifiers_are_no_measurements(tmp_path):
    write_table(tmp_path, id=[*range(1, 39), 38, 38], label=LABELS)
    guesses = guessed(tmp_path, "x.csv")
    assert (guesses.settings.data.id, guesses.settings.data.ignore) == (None, ("id",))
    assert set(views_of(guesses)) == {"mic", "scale"}
    assert "'id' is named like an identifier, but 2 rows repeat one, such as '38'" in said_of(guesses)
    write_table(tmp_path, window=[1, 2, 3, 4] * 10, label=LABELS)  # a number that is often the same is no identifier
    assert "window" in views_of(guessed(tmp_path, "x.csv"))


@pytest.mark.parametrize(
    ("cells", "unlabeled"),
    [
        ([-1, 1] * 20, ("",)),
        ([0, 1, -1, -1] * 10, ("-1",)),
        ([0, 1, 0, -1] * 10, ("-1",)),
        ([1, 2, "", ""] * 9 + [""] * 4, ("",)),
        (["walk", "run", "rest", "run"] * 10, ("",)),
    ],
)
def test_labels_are_found_by_what_they_look_like(tmp_path, cells, unlabeled):
    write_table(tmp_path, state=cells)
    data = guessed(tmp_path, "x.csv").settings.data
    assert (data.labels, data.unlabeled) == ("state", unlabeled)


def test_counts_and_one_of_several_words_are_no_labels(tmp_path):
    write_table(tmp_path, steps=[0, 1, 2, 1] * 10)
    assert guessed(tmp_path, "x.csv").settings.data.labels is None
    write_table(tmp_path, observer=["AK", "MS"] * 20, weather=["sun", "rain"] * 20, heat=np.arange(40) / 7)
    assert guessed(tmp_path, "x.csv").settings.data.labels is None


def test_an_empty_sensor_is_said_and_its_neighbor_stays_one_view(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["acc_x", "acc_y", "acc_z"])
    frame.assign(gyr_x=None, gyr_y=None, label=LABELS).to_csv(tmp_path / "x.csv", index=False)
    guesses = guessed(tmp_path, "x.csv")
    assert views_of(guesses) == {"acc": ("acc_*",)}
    assert guesses.settings.data.ignore == ("gyr_x", "gyr_y")
    assert "all columns of 'gyr' are empty ('gyr_x', 'gyr_y'), so it is not a view" in said_of(guesses)
    frame.assign(gyr_x=None, gyr_y=frame["acc_x"] / 2, label=LABELS).to_csv(tmp_path / "x.csv", index=False)
    guesses = guessed(tmp_path, "x.csv")
    assert views_of(guesses) == {"acc": ("acc_*",), "gyr": ("gyr_y",)}
    assert "'gyr_x' is empty and left out" in said_of(guesses)


def test_what_is_ignored_is_one_line_of_the_file(tmp_path):
    write_table(
        tmp_path, id=[*range(39), 3], time=np.arange(40) * 60.0, firmware=[7] * 40, gap=[None] * 40, label=LABELS
    )
    guesses = guessed(tmp_path, "x.csv")
    lines = {guess.line for guess in guesses.guesses if guess.line.startswith("ignore")}
    assert lines == {'ignore = ["id", "time", "firmware", "gap"]'}
    assert lines.pop() in guesses.text


@pytest.mark.parametrize(("columns", "named"), [("id,state", False), ("id,observer,state", True)])
def test_the_column_of_a_file_of_labels_is_said(tmp_path, columns, named):
    pd.DataFrame({"id": range(30), "x": np.linspace(0, 1, 30)}).to_csv(tmp_path / "x.csv", index=False)
    extra = ",AK" * named
    lines = [f"{i}{extra},{'up' if i % 2 else 'down'}" for i in range(20)]
    (tmp_path / "labels.csv").write_text("\n".join([columns, *lines]), encoding="utf-8")
    guesses = guessed(tmp_path, "x.csv")
    assert "the labels are in the column 'state' of the file labels.csv" in said_of(guesses)
    assert guesses.settings.data.label_column == ("state" if named else None)
    assert any(guess.line == 'label_column = "state"' for guess in guesses.guesses) is named


def test_that_channels_of_one_array_are_views_is_said(tmp_path):
    rng = np.random.default_rng(0)
    label = np.array(["a", "b", "", ""] * 5)
    np.savez(tmp_path / "x.npz", label=label, X=rng.normal(size=(20, 3, 30)))
    guesses = guessed(tmp_path, "x.npz")
    assert list(views_of(guesses)) == ["X_0", "X_1", "X_2"]
    assert "each of the 3 channels of 'X' is a view, as if it were a sensor" in said_of(guesses)
    np.savez(tmp_path / "x.npz", label=label, acc=rng.normal(size=(20, 3, 30)), gyr=rng.normal(size=(20, 3, 30)))
    guesses = guessed(tmp_path, "x.npz")
    assert list(views_of(guesses)) == ["acc", "gyr"]
    assert "channels of" not in said_of(guesses)


def write_below(folder, first):
    """x.csv with a first line and twenty rows below it."""
    lines = [f"w{i + 2},{i / 7:.3f},{i / 3:.2f},{i % 5},{'walk' if i % 2 else 'run'}" for i in range(20)]
    (folder / "x.csv").write_text("\n".join([first, *lines]), encoding="utf-8")


# The second is in order by chance, but its class occurs below.
@pytest.mark.parametrize("first", ["w1,0.13,0.72,0.3,walk", "w1,0.13,0.72,0.9,walk"])
def test_a_row_in_place_of_the_names_is_an_error(tmp_path, first):
    write_below(tmp_path, first)
    with pytest.raises(ProjectError, match=r"first line of x\.csv looks like a row .* add a line of names"):
        guessed(tmp_path, "x.csv")


@pytest.mark.parametrize("first", ["id,a,b,c,label", "id,400.5,401.0,401.5,label"])
def test_names_may_be_numbers_in_order_such_as_frequencies(tmp_path, first):
    write_below(tmp_path, first)
    assert guessed(tmp_path, "x.csv").settings.data.labels == "label"


def test_a_file_of_labels_beside_the_table(tmp_path):
    pd.DataFrame({"id": range(30), "x": np.linspace(0, 1, 30)}).to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "labels.csv").write_text("id,label\n1,up\n2,down\n", encoding="utf-8")
    for data in ("x.csv", "."):
        guesses = guessed(tmp_path, data)
        assert (guesses.settings.data.path, guesses.settings.data.labels) == ("x.csv", "labels.csv")


def test_a_folder_of_parts_is_one_table_and_a_folder_of_sensors_is_several_views(tmp_path):
    frame = pd.DataFrame({"id": [f"r{i}" for i in range(40)], "x": np.arange(40.0), "y": np.arange(40.0) ** 2})
    for name, start in (("mon", 0), ("tue", 20)):
        (tmp_path / "days").mkdir(exist_ok=True)
        frame[start : start + 20].to_csv(tmp_path / "days" / f"{name}.csv", index=False)
    assert guessed(tmp_path, "days").settings.data.path == "days/*.csv"
    (tmp_path / "sensors").mkdir()
    for name in ("acc", "gyr"):
        frame.to_csv(tmp_path / "sensors" / f"{name}.csv", index=False)
    guesses = guessed(tmp_path, "sensors")
    assert views_of(guesses) == {"acc": "sensors/acc.csv", "gyr": "sensors/gyr.csv"}
    (tmp_path / "cmvmed.toml").write_text(guesses.text, encoding="utf-8")
    assert {name: view.shape for name, view in Project.load(tmp_path).read().views.items()} == {
        "acc": (40, 2),
        "gyr": (40, 2),
    }


def write_sounds(folder, *names, channels=1):
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, 0.1 * np.random.default_rng(i).normal(size=(2400, channels)), 4000)


def test_sound_folders_by_class_name_and_channel(tmp_path):
    write_sounds(tmp_path / "classes", "dog/1.wav", "dog/2.wav", "cat/3.wav", "unknown/4.wav")
    guesses = guessed(tmp_path, "classes")
    assert (guesses.settings.data.labels, guesses.settings.data.unlabeled) == ("folder", ("", "unknown"))
    (tmp_path / "cmvmed.toml").write_text(guesses.text, encoding="utf-8")
    table = Project.load(tmp_path).read()
    assert dict(zip(table.ids, table.labels, strict=True)) == {
        "cat/3": "cat",
        "dog/1": "dog",
        "dog/2": "dog",
        "unknown/4": None,
    }
    write_sounds(tmp_path / "flat", *(f"{event}_{mic}.wav" for event in ("e1", "e2", "e3") for mic in ("near", "far")))
    assert views_of(guessed(tmp_path, "flat")) == {"far": "*_far.wav", "near": "*_near.wav"}
    write_sounds(tmp_path / "stereo", "e1.flac", "e2.flac", channels=2)
    guesses = guessed(tmp_path, "stereo")
    assert [(view.name, view.files, view.channel) for view in guesses.settings.views] == [
        ("channel_0", "*.flac", 0),
        ("channel_1", "*.flac", 1),
    ]
    write_sounds(tmp_path / "mono", "e1.wav", "e2.wav")
    assert views_of(guessed(tmp_path, "mono")) == {"sound": "*.wav"}


def test_npz_and_ts(tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "", ""] * 5)
    np.savez(tmp_path / "x.npz", label=y, left=rng.normal(size=(20, 3)), right=rng.normal(size=(20, 2)))
    assert views_of(guessed(tmp_path, "x.npz")) == {"left": ("left.*",), "right": ("right.*",)}
    rows = [":".join(",".join(map(str, rng.normal(size=20).round(3))) for _ in range(2)) for _ in range(8)]
    (tmp_path / "x.ts").write_text(
        "@classLabel true a b\n@data\n" + "\n".join(f"{row}:{'ab'[i % 2]}" for i, row in enumerate(rows)),
        encoding="utf-8",
    )
    guesses = guessed(tmp_path, "x.ts")
    assert guesses.settings.data.labels == "class"
    assert views_of(guesses) == {"dim_0": ("dim_0",), "dim_1": ("dim_1",)}
    (tmp_path / "cmvmed.toml").write_text(guesses.text, encoding="utf-8")
    assert {view.features for view in guesses.settings.views} == {"auto"}
    assert guessed(tmp_path, "x.npz").settings.views[0].features is None  # columns of numbers
    plain = Project.load(tmp_path, changes={"views.dim_0.features": "statistics", "views.dim_1.features": "statistics"})
    assert {name: view.shape for name, view in plain.read().views.items()} == {"dim_0": (8, 20), "dim_1": (8, 20)}


def test_nothing_to_learn_from(tmp_path):
    (tmp_path / "x.csv").write_text(
        "id,label\n" + "".join(f"r{i},{'ab'[i % 2]}\n" for i in range(30)), encoding="utf-8"
    )
    with pytest.raises(ProjectError, match="no column"):
        guessed(tmp_path, "x.csv")
