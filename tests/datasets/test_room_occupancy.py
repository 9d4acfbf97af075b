"""The bundled sample of the room table: its rule, its files, and what its description says."""

import csv
import os
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cmvmed.datasets import bundled, load_room, write_room

ROOT = Path(__file__).parents[2]
DAYS = ("2017-12-22", "2017-12-23", "2018-01-10")
COLUMNS = [*(f"S{n}_{kind}" for kind in ("Temp", "Light", "Sound") for n in range(1, 5)), "S5_CO2", "S5_CO2_Slope", "S6_PIR",
           "S7_PIR"]  # fmt: skip


def published_rows():
    home = Path(os.environ.get("CMVMED_DATA", ROOT.parent / "shared" / "data"))
    path = home / "room_occupancy" / "Occupancy_Estimation.csv"
    if not path.exists():
        pytest.skip(f"needs the published table, which is not at {path} (set CMVMED_DATA)")
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["Date"] in DAYS and all(row.values())]


def values(rows):
    return np.array([[float(row[name]) for name in COLUMNS] for row in rows])


@pytest.mark.parametrize(("subset", "first", "step"), [("train", 0, 12), ("new", 6, 60)])
def test_the_rows_are_those_of_the_rule(subset, first, step):
    rows, room = published_rows()[first::step], load_room(subset)
    np.testing.assert_allclose(room.data, values(rows), rtol=0, atol=5.1e-5)  # the slope is rounded
    assert room.target.tolist() == [int(row["Room_Occupancy_Count"]) for row in rows]
    assert room.time.astype(str).tolist() == [f"{row['Date']}T{row['Time']:0>8}" for row in rows]


def test_six_rows_of_each_class_are_labeled_evenly():
    room = load_room()
    labeled = np.array([label is not None for label in room.labels])
    for code, name in enumerate(room.target_names):
        own = np.flatnonzero(room.target == code)
        expected = [own[int((k + 0.5) * len(own) / 6)] for k in range(6)]
        assert np.flatnonzero(labeled & (room.target == code)).tolist() == expected
        assert set(room.labels[expected]) == {name}


def test_the_files_hide_the_other_labels(tmp_path):
    paths = write_room(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["room.csv", "room_new.csv"]
    train, new = (list(csv.DictReader(paths[subset].read_text().splitlines())) for subset in ("train", "new"))
    room = load_room()
    assert [row["people"] or None for row in train] == room.labels.tolist()
    assert "people" not in new[0]
    assert len(new) == len(load_room("new").target)
    sensors = [name.replace("__", "_") for name in room.feature_names]
    np.testing.assert_array_equal([[float(row[name]) for name in sensors] for row in train], room.data)


def test_the_description_states_rows_classes_source_and_license():
    text = load_room().DESCR
    for subset, words in (("train", "To learn from: "), ("new", "New: ")):
        room = load_room(subset)
        counts = Counter(room.target_names[room.target].tolist())
        assert words + ", ".join(f"{counts[name]} {name}" for name in room.target_names) in text
        assert str(len(room.target)) in text
    assert all(word in text for word in ("UCI", "CC BY 4.0", "doi:10.24432/C5P605", "changes"))


def test_the_table_is_small_and_its_license_is_among_those_of_the_package():
    folder = Path(bundled.__file__).parent / "room"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 60_000
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert str((folder / "README.txt").relative_to(ROOT)) in project["license-files"]


def test_an_unknown_subset_is_named():
    with pytest.raises(ValueError, match="'test', but must be one of 'train', 'new'"):
        load_room("test")
