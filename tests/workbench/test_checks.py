"""Findings of ``check``: what each test plants is found, and nothing in clean data; chance is computed, not guessed."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import soundfile

from cmvmed.workbench import Project, TrainedProject
from cmvmed.workbench.checks import gap_marker
from cmvmed.workbench.label_checks import class_changes, determines
from cmvmed.workbench.tables.join import otherwise_written
from cmvmed.workbench.tables.row_labels import misspelt_classes, one_edit_apart
from tests.workbench.jobs import write_recordings

TOML = """
[data]
path = "x.csv"
id = "id"
labels = "label"
groups = "subject"
[views.acc]
columns = "acc_*"
[views.gyr]
columns = "gyr_*"
"""


def clean_frame(n=120, n_labeled=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(n) % 2
    frame = pd.DataFrame((rng.normal(size=(n, 4)) + y[:, None]).round(3), columns=["acc_x", "acc_y", "gyr_x", "gyr_y"])
    labels = np.where(np.isin(np.arange(n), rng.permutation(n)[:n_labeled]), np.array(["up", "down"])[y], "")
    when = pd.date_range("2024-01-01", periods=n, freq="h").strftime("%Y-%m-%d %H:%M")
    return frame.assign(id=range(n), subject=[f"s{i % 6}" for i in range(n)], label=labels, when=when)


def findings(folder, frame, toml=TOML):
    frame.to_csv(folder / "x.csv", index=False)
    (folder / "cmvmed.toml").write_text(toml, encoding="utf-8")
    return Project.load(folder).check()


def codes(folder, frame, toml=TOML):
    return {finding.code for finding in findings(folder, frame, toml)}


@pytest.mark.parametrize("seed", range(10))
def test_clean_data_have_no_findings(tmp_path, seed):
    assert codes(tmp_path, clean_frame(seed=seed)) == set()


def planted(name):
    frame = clean_frame()
    labeled = frame["label"] != ""
    up = frame["label"] == "up"
    if name == "marker":
        frame.loc[~labeled, "label"] = "n/a"
    elif name == "similar_classes":
        frame.loc[up & (frame["id"] % 3 == 0), "label"] = "UP"
    elif name == "single_label":
        frame.loc[frame.index[labeled][0], "label"] = "left"
    elif name == "misspelt_class":
        frame.loc[frame.index[frame["label"] == "down"][0], "label"] = "dwon"
    elif name == "outlier":
        frame.loc[7, "acc_y"] = -1e20
    elif name == "mixed_column":
        frame["acc_y"] = [f"{i}.5" if i % 4 else "bad" for i in range(len(frame))]
    elif name == "date_as_number":
        frame["acc_y"] = [20250101 + i % 28 for i in range(len(frame))]
    elif name == "bad_column":
        frame.loc[7, "acc_y"] = np.inf
    elif name == "leading_zeros":
        frame["id"] = [f"{i:04d}" for i in frame["id"]]
    elif name == "all_labeled":
        frame = frame[labeled]
    elif name == "empty_column":
        frame["acc_y"] = ""
    elif name == "constant_column":
        frame["acc_y"] = 3
    elif name == "identifier":
        frame["acc_y"] = [f"token{i}" for i in range(len(frame))]
    elif name == "bad_cell":
        frame["acc_y"] = frame["acc_y"].astype(str)
        frame.loc[7, "acc_y"] = "err"
    elif name == "gap_marker":
        frame.loc[[7, 30, 41], "acc_y"] = -999.0
    elif name == "possible_groups":
        frame["acc_hive"] = [f"H{i % 7:02d}" for i in range(len(frame))]
    elif name == "unit":
        frame["acc_y"] = frame["acc_y"].abs().astype(str) + " m/s"
    elif name == "absent_view":
        frame.loc[3:, ["gyr_x", "gyr_y"]] = np.nan
    elif name == "view_without_labels":
        frame.loc[labeled, ["gyr_x", "gyr_y"]] = np.nan
    elif name == "empty_row":
        frame.loc[5, ["acc_x", "acc_y", "gyr_x", "gyr_y"]] = np.nan
    elif name in ("repeated_rows", "crossing_groups"):
        copy = frame[:3].assign(id=[900, 901, 902], when=frame["when"][50:53].to_numpy())
        frame = pd.concat([frame, copy.assign(subject="s5")] if name == "crossing_groups" else [frame, copy])
    elif name == "conflicting_labels":
        first = frame[up].iloc[:1]
        frame = pd.concat([frame, first.assign(id=900, label="down")])
    elif name == "leak":
        frame["acc_y"] = np.where(up, 1.0, -1.0) * np.arange(1, len(frame) + 1)
    elif name == "filled_if_labeled":
        frame["acc_y"] = frame["acc_y"].where(labeled)
    elif name == "one_group":
        frame["subject"] = "s1"
    elif name == "groups_of_one":
        frame["subject"] = frame["id"]
    elif name == "similar_groups":
        frame.loc[frame["id"] % 12 == 0, "subject"] = "S 0"
    elif name == "group_is_class":
        frame.loc[labeled, "subject"] = np.where(up[labeled], "s0", "s1")
    elif name == "class_in_one_group":
        frame.loc[up, "subject"] = "s0"
    elif name == "time_orders_labels":
        frame = frame.sort_values("label")
        frame["when"] = np.sort(frame["when"])
        frame.loc[frame["label"] == "", "when"] = np.random.default_rng(0).choice(
            frame["when"], (frame["label"] == "").sum()
        )
    elif name == "labels_of_one_period":
        frame.loc[labeled, "when"] = "2023-05-01 00:00"
    return frame


CODES = [
    "mixed_column",
    "date_as_number",
    "marker",
    "similar_classes",
    "single_label",
    "misspelt_class",
    "outlier",
    "bad_column",
    "leading_zeros",
    "all_labeled",
    "empty_column",
    "constant_column",
    "identifier",
    "bad_cell",
    "gap_marker",
    "unit",
    "absent_view",
    "view_without_labels",
    "empty_row",
    "conflicting_labels",
    "leak",
    "filled_if_labeled",
    "one_group",
    "groups_of_one",
    "similar_groups",
    "group_is_class",
    "class_in_one_group",
    "time_orders_labels",
    "labels_of_one_period",
    "repeated_rows",
    "crossing_groups",
]


@pytest.mark.parametrize(
    ("values", "marker"),
    [
        ([-999.0, -999.0, 1.0, 2.0], (-999.0, 2)),
        ([9999.9, 0.5, 9999.9, 2.0, np.nan], (9999.9, 2)),
        ([1e30, 1e30, 1.0, 2.0], (1e30, 2)),
        ([1.0, 1.0, 0.0, 0.0], None),
        ([-999.0, 1.0, 2.0], None),  # once
        ([-999.0, -999.0, -990.0, 5.0], None),  # near other values
        ([998.0, 998.0, 1.0, 2.0], None),
        ([99.0, 99.0, 50.0, 98.0], None),  # percentages
        ([99.0, 99.0], None),
        ([], None),
    ],
)
def test_markers_for_gaps_are_repeated_and_far_from_the_rest(values, marker):
    found, count = gap_marker(np.array(values))
    assert (None if count == 0 else (found, count)) == marker


def test_a_column_that_is_said_to_hold_categories_is_no_mixed_one(tmp_path):
    assert "mixed_column" not in codes(tmp_path, planted("mixed_column"), TOML + '[columns]\nacc_y = "category"\n')


def test_names_of_units_are_found_unless_they_are_groups(tmp_path):
    frame = planted("possible_groups")
    assert "possible_groups" in codes(tmp_path, frame, TOML.replace('groups = "subject"\n', ""))
    assert "possible_groups" not in codes(tmp_path, frame)
    words = frame.assign(acc_hive=np.resize(["low", "mid", "high", "off", "on", "idle"], len(frame)))
    assert "possible_groups" not in codes(tmp_path, words, TOML.replace('groups = "subject"\n', ""))


@pytest.mark.parametrize("name", CODES)
def test_what_is_planted_is_found(tmp_path, name):
    assert name in codes(tmp_path, planted(name))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("wlk", "walk", True),
        ("walkk", "walk", True),
        ("wakl", "walk", True),
        ("walt", "walk", True),
        ("alk", "walk", True),
        ("walk", "walk", False),
        ("wk", "walk", False),
        ("klaw", "walk", False),
        ("wlka", "walk", False),
        ("class 1", "class 2", False),
        ("step", "step2", False),
        ("abcd", "abdc", True),
    ],
)
def test_one_letter_is_left_out_added_replaced_or_exchanged(one, other, expected):
    assert one_edit_apart(one, other) is one_edit_apart(other, one) is expected


def test_a_class_of_its_own_is_not_misspelt(tmp_path):
    """As frequent as the other, listed, or named by the section [classes]."""
    assert misspelt_classes({"walk": 30, "talk": 7}, []) == {}
    assert misspelt_classes({"walk": 30, "talk": 6}, []) == {"talk": "walk"}
    assert misspelt_classes({"walk": 30, "talk": 6}, ["talk", "walk"]) == {}
    frame = planted("misspelt_class")
    found = findings(tmp_path, frame)
    assert next(f.message for f in found if f.code == "misspelt_class").count("dwon") == 2
    assert "single_label" not in {f.code for f in found}
    assert codes(tmp_path, frame, TOML + '[classes]\ndwon = "down"\n') == set()
    assert "1 label is renamed by [classes]." in Project.load(tmp_path).rows().messages


def test_labels_are_renamed_wherever_they_come_from(tmp_path):
    """In the data, in a file of labels, in new rows and in the model file; "" makes a row unlabeled."""
    frame = clean_frame().replace({"label": {"up": "hoch"}})
    toml = TOML.replace("[data]", '[data]\nlabel_files = ["more.csv"]') + '[classes]\nhoch = "up"\n"?" = ""\n'
    (tmp_path / "more.csv").write_text(f"id,label\n{frame.loc[frame.label == '', 'id'].iloc[0]},hoch\n1,?\n")
    assert codes(tmp_path, frame, toml) == set()
    project = Project.load(tmp_path)
    labels = project.rows().labels
    assert set(labels.counts) == {"up", "down"}
    assert not labels.labeled[1]
    table = project.read()
    new = project.read_new(tmp_path / "x.csv")
    assert {label for label in new.labels if label is not None} == {"up", "down"}
    trained = project.train(table, n_stages=2)
    trained.save(tmp_path / "m.cmvmed")
    assert TrainedProject.load(tmp_path / "m.cmvmed").project.settings.renamed == {"hoch": "up", "?": ""}


def test_identifiers_that_differ_in_leading_zeros_are_named(tmp_path):
    frame = planted("leading_zeros")
    assert [f.level for f in findings(tmp_path, frame) if f.code == "leading_zeros"] == ["note"]
    frame.loc[5, "id"] = "1"
    found = [f for f in findings(tmp_path, frame) if f.code == "leading_zeros"]
    assert [f.level for f in found] == ["warning"]
    assert "'0001' and '1' differ only in leading zeros (1 pair in all)" in found[0].message


@pytest.mark.parametrize(
    ("some", "others", "named"),
    [
        (["1", "2"], ["0001", "0002"], "'1' and '0001'"),
        (["1,000"], ["1000"], "'1,000' and '1000'"),
        (["w1"], ["w01"], None),
        (["1"], ["10", "1"], None),
        (["1.5"], ["15"], None),
    ],
)
def test_identifiers_that_a_spreadsheet_changed_are_named(some, others, named):
    found = otherwise_written(some, others)
    assert (named in found) if named else found == ""


def test_findings_beside_an_infinite_cell_are_not_lost(tmp_path):
    frame = planted("bad_column").assign(gyr_y=3)
    assert {"bad_column", "constant_column"} <= codes(tmp_path, frame)


@pytest.mark.filterwarnings("error")
def test_numbers_that_overflow_warn_of_nothing_else(tmp_path):
    frame = clean_frame()
    frame.loc[7, "acc_y"] = 1e300
    assert codes(tmp_path, frame) == {"bad_column"}


def test_errors_come_first(tmp_path):
    levels = [finding.level for finding in findings(tmp_path, planted("marker").assign(acc_y=3))]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert {"error", "warning"} <= set(levels)


def test_listed_classes_are_neither_markers_nor_alike(tmp_path):
    frame = planted("similar_classes")
    toml = TOML.replace('labels = "label"', 'labels = "label"\nclasses = ["up", "UP", "down"]')
    assert codes(tmp_path, frame, toml) == set()


def test_a_category_that_is_the_class_in_other_words(tmp_path):
    frame = clean_frame()
    words = {"up": "hoch", "down": "tief", "": "hoch"}
    assert "leak" in codes(tmp_path, frame.assign(acc_y=frame["label"].map(words)))


def test_sound_files_of_different_rates_are_found(tmp_path):
    for name, rate in (("a", 4000), ("b", 4000), ("c", 8000)):
        soundfile.write(tmp_path / f"{name}.wav", 0.1 * np.random.default_rng(rate).normal(size=rate), rate)
    (tmp_path / "cmvmed.toml").write_text('[data]\npath="."\n[views.s]\nfiles="*.wav"\n', encoding="utf-8")
    messages = {finding.code: finding.message for finding in Project.load(tmp_path).check()}
    assert "4000 Hz (2), 8000 Hz (1)" in messages["sampling_rates"]


def test_repeated_sound_files_are_found(tmp_path):
    write_recordings(tmp_path)
    folder = tmp_path / "recordings"
    for mic in ("mic_a", "mic_b"):
        (folder / mic / "009.wav").write_bytes((folder / mic / "008.wav").read_bytes())
    (tmp_path / "cmvmed.toml").write_text(
        '[data]\npath="recordings"\nlabels="recordings/labels.csv"\n[views.a]\nfiles="mic_a/*.wav"\n[views.b]\nfiles="mic_b/*.wav"\n',
        encoding="utf-8",
    )
    (found,) = Project.load(tmp_path).check()
    assert found.code == "repeated_rows"
    assert "'009' (row 10 of recordings) equals '008'" in found.message


def test_the_chance_of_a_separating_column_is_at_least_that_of_counting():
    """The share of orders with one stretch per class, counted, is what ``determines`` compares with its limit."""
    codes_ = np.array([0, 0, 0, 1, 1, 1])
    orders = set(permutations(codes_.tolist()))
    separated = [order for order in orders if np.count_nonzero(np.diff(order)) == 1]
    assert len(separated) / len(orders) == pytest.approx(2 / 20)
    values = np.arange(6.0)
    assert not determines(values, codes_, 1, ordered=True)  # 0.1 > 0.01
    assert determines(np.arange(10.0), np.repeat([0, 1], 5), 1, ordered=True)  # 2 / 252
    assert not determines(np.arange(10.0), np.repeat([0, 1], 5), 2, ordered=True)
    assert not determines(np.arange(40.0), np.tile([0, 1], 20), 1, ordered=True)
    assert not determines(np.array(["a", "b"] * 10 + ["c", "c"]), np.tile([0, 1], 11), 1, ordered=False)


@pytest.mark.parametrize("counts", [(50, 50), (20, 30, 50), (90, 10)])
def test_mean_and_deviation_of_class_changes(counts):
    codes_ = np.repeat(np.arange(len(counts)), counts)
    rng = np.random.default_rng(0)
    drawn = [np.count_nonzero(np.diff(rng.permutation(codes_))) for _ in range(4000)]
    _, mean, deviation = class_changes(np.arange(len(codes_), dtype=float), codes_)
    assert np.mean(drawn) == pytest.approx(mean, rel=0.03)
    assert np.std(drawn) == pytest.approx(deviation, rel=0.1)


def test_columns_in_no_view_are_said_and_not_an_error(tmp_path):
    frame = clean_frame().assign(battery=1.0)
    frame.to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "cmvmed.toml").write_text(TOML, encoding="utf-8")
    messages = Project.load(tmp_path).rows().messages
    assert any("'when', 'battery' of x.csv are in no view and not used" in message for message in messages)
