"""A project: training rows, new rows matched by name, absent sensors, files of single views, labels in a file."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse

from cmvmed import CMVMED
from cmvmed.workbench import Project, init
from tests.workbench.jobs import write_recordings, write_tickets, write_windows


def started(folder, data):
    (folder / "cmvmed.toml").write_text(init(folder / data, folder / "cmvmed.toml").text, encoding="utf-8")
    return Project.load(folder)


def write_project(folder, text):
    (folder / "cmvmed.toml").write_text(text, encoding="utf-8")
    return Project.load(folder / "cmvmed.toml")


def dense(view):
    return view.toarray() if issparse(view) else view


def are_equal(one, other):
    """Whether views have the same names and the same values, NaN included."""
    same_names = one.keys() == other.keys()
    return same_names and all(np.array_equal(dense(one[name]), dense(other[name]), equal_nan=True) for name in one)


def test_sensor_table_from_file_to_predictions(tmp_path):
    truth = write_windows(tmp_path)
    project = started(tmp_path, "windows.csv")
    table = project.read()
    assert table.ids[:2].tolist() == ["w000", "w001"]
    assert sum(label is not None for label in table.labels) == 10
    assert np.isnan(table.views["gyr"][3:10]).all()
    assert np.isfinite(table.views["acc"]).all()
    assert table.views["acc"][20, 0] == pytest.approx(
        np.nanmean(pd.read_csv(tmp_path / "windows.csv")["acc_x"]), rel=1e-12
    )
    model = CMVMED(**project.model_parameters).fit(table.views, table.labels, groups=table.groups)
    assert np.mean(model.predict(project.read_new(tmp_path / "windows.csv").views) == truth) > 0.8


def test_new_rows_are_matched_by_name(tmp_path):
    write_windows(tmp_path)
    project = started(tmp_path, "windows.csv")
    table = project.read()
    frame = pd.read_csv(tmp_path / "windows.csv")
    shuffled = frame[frame.columns[::-1]].drop(columns=["stroke", "subject"]).assign(extra=1)
    shuffled.to_csv(tmp_path / "new.csv", index=False)
    new = project.read_new(tmp_path / "new.csv")
    assert are_equal(new.views, table.views)
    assert new.messages == ("new.csv: 'extra' was not in training and not used.",)


def test_a_missing_group_of_columns_is_an_absent_sensor(tmp_path):
    write_windows(tmp_path)
    project = started(tmp_path, "windows.csv")
    table = project.read()
    frame = pd.read_csv(tmp_path / "windows.csv")
    frame.drop(columns=["gyr_x", "gyr_y", "gyr_z"]).to_csv(tmp_path / "new.csv", index=False)
    new = project.read_new(tmp_path / "new.csv")
    assert np.isnan(new.views["gyr"]).all()
    np.testing.assert_array_equal(new.views["acc"], table.views["acc"])
    assert "View 'gyr' is absent in all rows" in new.messages[0]


def test_a_single_missing_column_is_a_gap_and_a_similar_name_is_proposed(tmp_path):
    write_windows(tmp_path)
    project = started(tmp_path, "windows.csv")
    project.read()
    pd.read_csv(tmp_path / "windows.csv").rename(columns={"acc_x": "Acc_X"}).to_csv(tmp_path / "new.csv", index=False)
    new = project.read_new(tmp_path / "new.csv")
    assert np.ptp(new.views["acc"][:, 0]) == 0
    assert "lacks 'acc_x', filled as gaps. Did you mean 'Acc_X'?" in new.messages[0]


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv"])
def test_the_format_of_new_rows_does_not_matter(tmp_path, ending):
    write_tickets(tmp_path)
    project = started(tmp_path, "tickets.csv")
    table = project.read()
    frame = pd.read_csv(tmp_path / "tickets.csv", sep=";", decimal=",", keep_default_na=False, na_values=["N/A"])
    path = tmp_path / f"new{ending}"
    frame.to_csv(path, index=False) if ending == ".csv" else getattr(frame, f"to_{ending[1:]}")(path)
    assert are_equal(project.read_new(path).views, table.views)


def test_tickets_from_file_to_predictions(tmp_path):
    truth = write_tickets(tmp_path)
    project = started(tmp_path, "tickets.csv")
    table = project.read()
    assert {name: view.shape[1] for name, view in table.views.items()} == {"numbers": 2, "categories": 3, "comment": 8}
    assert np.isnan(table.views["comment"].toarray()).all(axis=1).nonzero()[0].tolist() == list(range(5, 16))
    assert (project.settings.data.separator, project.settings.data.decimal) == (";", ",")
    model = CMVMED(**project.model_parameters).fit(table.views, table.labels)
    assert np.mean(model.predict(table.views) == truth) > 0.8


def test_recordings_from_folder_to_views(tmp_path):
    write_recordings(tmp_path)
    project = started(tmp_path, "recordings")
    table = project.read()
    assert table.ids.tolist() == [f"{i:03d}" for i in range(10)]
    assert table.labels[:5].tolist() == ["high", "low", "high", "low", None]
    assert np.isnan(table.views["mic_b"]).all(axis=1).nonzero()[0].tolist() == [3]
    assert are_equal(project.read_new(tmp_path / "recordings").views, table.views)
    model = CMVMED().fit(table.views, table.labels)
    assert model.predict(table.views)[4:].tolist() == ["high", "low"] * 3


def test_encoders_restored_from_their_state_give_the_same_rows(tmp_path):
    write_tickets(tmp_path)
    project = started(tmp_path, "tickets.csv")
    table = project.read()
    other = Project.load(tmp_path)
    other.set_encoder_states(json.loads(json.dumps(project.encoder_states())))
    assert are_equal(other.read_new(tmp_path / "tickets.csv").views, table.views)


def test_new_rows_do_not_change_the_encoders(tmp_path):
    write_tickets(tmp_path)
    project = started(tmp_path, "tickets.csv")
    table = project.read()
    (tmp_path / "new.csv").write_text(
        "comment;price;weight;color;prime\nrefund and words;10000;1,5;green;\n", encoding="utf-8"
    )
    new = project.read_new(tmp_path / "new.csv")
    assert new.views["numbers"].tolist() == [[10000.0, 1.5]]
    assert new.views["categories"].shape == (1, table.views["categories"].shape[1])
    assert new.ids.tolist() == ["1"]
    assert any("'color' has categories without a feature: 'green'" in message for message in new.messages)


VIEWS_IN_FILES = """
[data]
id = "id"
labels = "label"
[views.acc]
path = "acc.csv"
[views.gyr]
path = "gyr.csv"
columns = ["x"]
"""


def write_views(folder):
    (folder / "acc.csv").write_text("id,x,y,label\na,1,2,up\nb,3,4,\nc,5,6,down\n", encoding="utf-8")
    (folder / "gyr.csv").write_text("id,x,z\nc,7,0\nd,8,0\na,9,0\n", encoding="utf-8")


def test_files_of_single_views_are_joined_by_id(tmp_path):
    write_views(tmp_path)
    project = write_project(tmp_path, VIEWS_IN_FILES)
    table = project.read()
    assert table.ids.tolist() == ["a", "b", "c", "d"]
    assert table.labels.tolist() == ["up", None, "down", None]
    np.testing.assert_array_equal(table.views["acc"], [[1, 2], [3, 4], [5, 6], [np.nan, np.nan]])
    np.testing.assert_array_equal(table.views["gyr"], [[9], [np.nan], [7], [8]])
    assert any("'gyr.z'" in message and "in no view" in message for message in table.messages)


def test_new_files_of_single_views(tmp_path):
    write_views(tmp_path)
    project = write_project(tmp_path, VIEWS_IN_FILES)
    project.read()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "gyr.csv").write_text("id,x\nq,1\n", encoding="utf-8")
    for new in (project.read_new(tmp_path / "new"), project.read_new({"gyr": tmp_path / "new" / "gyr.csv"})):
        assert new.ids.tolist() == ["q"]
        np.testing.assert_array_equal(new.views["gyr"], [[1]])
        np.testing.assert_array_equal(new.views["acc"], [[np.nan, np.nan]])


def test_files_without_ids_are_joined_by_position(tmp_path):
    write_views(tmp_path)
    project = write_project(tmp_path, VIEWS_IN_FILES.replace('id = "id"', 'ignore = ["id"]'))
    np.testing.assert_array_equal(project.read().views["gyr"], [[7], [8], [9]])


def test_labels_in_a_file(tmp_path):
    (tmp_path / "rows.csv").write_text("id,x,y\n1,1,2\n2,3,4\n3,5,6\n", encoding="utf-8")
    (tmp_path / "labels.csv").write_text("name;label\n3;up\n1;?\n9;down\n", encoding="utf-8")
    project = write_project(
        tmp_path, '[data]\npath="rows.csv"\nid="id"\nlabels="labels.csv"\nunlabeled=["?"]\n[views.v]\ncolumns="*"\n'
    )
    table = project.read()
    assert table.labels.tolist() == [None, None, "up"]
    assert table.views["v"].shape == (3, 2)
    assert any("1 label of labels.csv belongs to no row" in message and "'9'" in message for message in table.messages)


def test_labels_lose_surrounding_blanks_and_whole_numbers_their_point(tmp_path):
    pd.DataFrame({"x": [1.0, 2, 3], "y": [1.0, np.nan, 2.0]}).to_parquet(tmp_path / "a.parquet")
    project = write_project(tmp_path, '[data]\npath="a.parquet"\nlabels="y"\n[views.v]\ncolumns="x"\n')
    assert project.read().labels.tolist() == ["1", None, "2"]
    (tmp_path / "a.csv").write_text("x,y\n1,up\n2, up \n3,  \n", encoding="utf-8")
    project = write_project(tmp_path, '[data]\npath="a.csv"\nlabels="y"\n[views.v]\ncolumns="x"\n')
    table = project.read()
    assert table.labels.tolist() == ["up", "up", None]
    assert table.messages == ("1 label has blanks around the name, which are left out.",)


def test_kinds_that_the_project_file_sets(tmp_path):
    (tmp_path / "a.csv").write_text("zip,y\n10115,up\n20095,\n10115,down\n", encoding="utf-8")
    text = '[data]\npath="a.csv"\nlabels="y"\n[views.v]\ncolumns="zip"\n'
    assert write_project(tmp_path, text).read().views["v"].shape == (3, 1)
    project = write_project(tmp_path, text + '[columns]\nzip = "category"\n')
    np.testing.assert_array_equal(project.read().views["v"], [[1, 0], [0, 1], [1, 0]])


def test_columns_that_cannot_be_learned_from_are_left_out(tmp_path):
    lines = [f"{i % 3},,token{i},{'up' if i % 2 else 'down'}" for i in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["x,empty,token,y", *lines]), encoding="utf-8")
    project = write_project(tmp_path, '[data]\npath="a.csv"\nlabels="y"\n[views.v]\ncolumns="*"\n')
    table = project.read()
    assert table.views["v"].shape == (30, 1)
    assert "View 'v': column 'empty' holds nothing and is left out." in table.messages
    assert "View 'v': column 'token' differs in every row and is left out." in table.messages


def test_groups_of_rows_without_one_are_their_own(tmp_path):
    (tmp_path / "a.csv").write_text("x,g,y\n1,s1,up\n2,,down\n3,s1,\n", encoding="utf-8")
    project = write_project(tmp_path, '[data]\npath="a.csv"\nlabels="y"\ngroups="g"\n[views.v]\ncolumns="x"\n')
    assert project.read().groups.tolist() == ["s1", "row 2", "s1"]


def test_model_parameters(tmp_path):
    write_windows(tmp_path)
    project = started(tmp_path, "windows.csv")
    assert project.model_parameters == {"labels_drawn": "unknown"}
    text = (tmp_path / "cmvmed.toml").read_text(encoding="utf-8") + 'n_stages = 4\nkernel = "rbf"\n'
    assert write_project(tmp_path, text).model_parameters == {"labels_drawn": "unknown", "n_stages": 4, "kernel": "rbf"}


def test_a_part_of_the_rows_has_every_class_and_is_evenly_spaced(tmp_path):
    lines = [f"{i},{i / 7:.3f},{'ab'[i % 2] if i < 600 else 'c' if i in (700, 900, 990) else ''}" for i in range(1000)]
    (tmp_path / "x.csv").write_text("\n".join(["id,acc_x,label", *lines]), encoding="utf-8")
    (tmp_path / "cmvmed.toml").write_text(init(tmp_path / "x.csv", tmp_path / "cmvmed.toml").text, encoding="utf-8")
    project = Project.load(tmp_path)
    rows = project.rows()
    part = rows.part(100)
    assert (part.labels.counts, len(part.ids)) == ({"a": 25, "b": 25, "c": 2}, 100)
    assert part.table.frame["acc_x"].tolist() == [rows.table.frame["acc_x"][int(key)] for key in part.ids]
    unlabeled = [int(key) for key, label in zip(part.ids, part.labels.values, strict=True) if label is None]
    assert max(np.diff(unlabeled)) <= 2 * min(np.diff(unlabeled)) + 1
    assert rows.part(1000) is rows
    assert project.read(part).views["numbers"].shape == (100, 1)
    assert "A quick look: 100 of 1000 rows." in part.messages


def test_the_expected_time_grows_with_the_rows(tmp_path, monkeypatch):
    lines = [f"{i},{i % 9},{'ab'[i % 9 > 4] if i < 40 else ''}" for i in range(10_000)]
    (tmp_path / "x.csv").write_text("\n".join(["id,acc_x,label", *lines]), encoding="utf-8")
    (tmp_path / "cmvmed.toml").write_text(init(tmp_path / "x.csv", tmp_path / "cmvmed.toml").text, encoding="utf-8")
    project = Project.load(tmp_path)
    table = project.read()
    fitted = []
    monkeypatch.setattr(Project, "train", lambda self, part: fitted.append(len(part.ids)))
    monkeypatch.setattr("cmvmed.workbench.project.perf_counter", iter([1.0, 3.0]).__next__)
    assert project.expected_seconds(table) == pytest.approx(2.0 * 40**0.85, rel=1e-12)
    assert fitted == [250]
    assert project.expected_seconds(replace(table, ids=table.ids[:9999])) == 0.0
