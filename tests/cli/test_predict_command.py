"""``cmvmed predict``: tables by their ending, JSON, messages, exit codes; nothing but the model file is needed."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cmvmed.workbench import TrainedProject
from cmvmed.workbench.changes import EvenRows
from cmvmed.workbench.tables import read
from tests.cli.commands import run


@pytest.fixture
def rows(trained_windows, tmp_path, monkeypatch):
    """A folder with the model and new rows only: columns reversed, without labels, one sensor absent in seven rows."""
    monkeypatch.chdir(tmp_path)
    folder, _ = trained_windows
    Path("model.cmvmed").write_bytes((folder / "model.cmvmed").read_bytes())
    frame = pd.read_csv(folder / "windows.csv")
    frame = frame[frame.columns[::-1]].drop(columns=["stroke", "subject", "timestamp"])
    frame.to_csv("new.csv", index=False)
    with pytest.warns(UserWarning, match="labels of 6 groups are too few"):
        return TrainedProject.load("model.cmvmed").predict("new.csv")


def check_same(found, expected, rtol):
    assert found.columns.tolist() == [expected.index.name, *expected.columns]
    assert found[expected.index.name].tolist() == expected.index.tolist()
    for name, values in expected.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found[name], values, rtol=rtol)
        else:
            assert found[name].fillna("").tolist() == values.tolist()


def test_csv_to_the_standard_output(rows):
    shown = run("predict", "new.csv")
    assert shown.exit_code == 0
    check_same(pd.read_csv(StringIO(shown.stdout)), rows, 1e-5)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_the_ending_says_the_format(rows, ending):
    shown = run("predict", "new.csv", "-o", f"out{ending}")
    assert shown.exit_code == 0, shown.output
    check_same(getattr(pd, f"read_{ending[1:]}")(f"out{ending}"), rows, 1e-5 if ending == ".csv" else 0)
    counts = rows["class"].value_counts()
    assert (
        f"out{ending}: 200 rows; {counts.index[0]} {counts.iloc[0]}, {counts.index[1]} {counts.iloc[1]}" in shown.stdout
    )
    assert "7 lack a view" in shown.stdout
    assert sorted(path.name for path in Path().iterdir()) == ["model.cmvmed", "new.csv", f"out{ending}"]


def test_json(rows):
    content = json.loads(run("predict", "new.csv", "--json").stdout)
    assert (content["rows"], content["output"]) == (200, None)
    check_same(pd.DataFrame(content["predictions"]), rows, 1e-9)
    content = json.loads(run("predict", "new.csv", "--json", "-o", "out.csv").stdout)
    assert content == {"rows": 200, "output": "out.csv", "messages": content["messages"]}


def test_what_was_assumed_is_said_on_the_error_stream(rows):
    frame = pd.read_csv("new.csv").drop(columns=["gyr_x", "gyr_y", "gyr_z"]).assign(extra=1)
    frame.to_csv("less.csv", index=False)
    shown = run("predict", "less.csv", "-o", "out.csv")
    assert "note: View 'gyr' is absent in all rows" in shown.stderr
    assert "'extra' was not in training" in shown.stderr
    assert pd.read_csv("out.csv")["missing_views"].eq("gyr").all()
    assert "messages" in json.loads(run("predict", "less.csv", "--json").stdout)


def test_rows_that_differ_from_training_are_told_in_one_line(rows):
    assert "differ from the training rows" not in run("predict", "new.csv", "-o", "same.csv").stderr
    frame = pd.read_csv("new.csv")
    frame[["gyr_x", "gyr_y", "gyr_z"]] *= 5.0
    frame.to_csv("louder.csv", index=False)
    shown = run("predict", "louder.csv", "-o", "out.csv")
    (line,) = [line for line in shown.stderr.splitlines() if "differ from the training rows" in line]
    assert line.startswith("warning: These rows differ from the training rows: view 'gyr' has about ")
    assert "check its gain" in line
    assert any(
        "view 'gyr'" in message for message in json.loads(run("predict", "louder.csv", "--json").stdout)["messages"]
    )


def test_existing_tables_are_replaced_with_force_only(rows):
    Path("out.csv").write_text("precious")
    shown = run("predict", "new.csv", "-o", "out.csv")
    assert (shown.exit_code, shown.stderr) == (1, "Error: out.csv exists and was not changed; --force replaces it.\n")
    assert Path("out.csv").read_text() == "precious"
    assert run("predict", "new.csv", "-o", "out.csv", "--force").exit_code == 0
    assert len(pd.read_csv("out.csv")) == 200


def test_a_table_that_cannot_be_written_completely_leaves_nothing(rows, monkeypatch):
    def fail(self, path, **options):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    Path("out.csv").write_text("precious")
    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    shown = run("predict", "new.csv", "-o", "out.csv", "--force")
    assert shown.exit_code == 1
    assert "No space left on device" in shown.stderr
    assert Path("out.csv").read_text() == "precious"
    assert sorted(path.name for path in Path().iterdir()) == ["model.cmvmed", "new.csv", "out.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["new.csv", "-o", "out.xlsx"], 2, "has no known ending; use .csv, .parquet, .feather"),
        (["new.csv", "-m", "none.cmvmed"], 2, "There is no model file 'none.cmvmed'. `cmvmed train` writes one"),
        (["new.csv", "-m", "new.csv"], 1, "new.csv is not a cmvmed model file"),
        (["nothing.csv"], 1, "There is no file or folder 'nothing.csv'"),
        (["new.csv", "--alpha", "1.5"], 2, "--alpha"),
        ([], 2, "Missing argument 'DATA'"),
    ],
)
def test_mistakes(rows, arguments, code, message):
    shown = run("predict", *arguments)
    assert shown.exit_code == code
    assert message in shown.stderr


def test_identifiers_are_no_formulas_in_a_spreadsheet(rows):
    frame = pd.read_csv("new.csv")
    frame["window_id"] = [f"=cmd{i}" for i in range(len(frame))]
    frame.to_csv("odd.csv", index=False)
    assert run("predict", "odd.csv", "-o", "out.csv").exit_code == 0
    assert pd.read_csv("out.csv")["window_id"].str.startswith("'=cmd").all()
    assert run("predict", "odd.csv", "-o", "out.parquet").exit_code == 0
    assert pd.read_parquet("out.parquet")["window_id"][0] == "=cmd0"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_read_some_at_a_time_have_the_same_predictions(rows, ending, monkeypatch):
    frame = pd.read_csv("new.csv")
    frame.to_csv("more.csv", index=False) if ending == ".csv" else frame.to_parquet("more.parquet", index=False)
    monkeypatch.setattr(read, "PART_BYTES", 3000)
    monkeypatch.setattr(read, "PART_ROWS", 30)
    with pytest.warns(UserWarning, match="labels of 6 groups are too few"):
        parts = list(TrainedProject.load("model.cmvmed").predict_parts(f"more{ending}"))
    assert len(parts) > 3
    shares = [share for _, _, share in parts]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    for out in ("out.csv", "out.parquet", "out.feather"):
        shown = run("predict", f"more{ending}", "-o", out)
        assert shown.exit_code == 0, shown.output
        assert "200 rows" in shown.stdout
        check_same(getattr(pd, f"read_{out[4:]}")(out), rows, 1e-5 if out == "out.csv" else 1e-9)
    shown = json.loads(run("predict", f"more{ending}", "--json").stdout)
    check_same(pd.DataFrame(shown["predictions"]), rows, 1e-9)


@pytest.mark.parametrize(
    ("what", "code"),
    [("a comma", 1), ("a word", 0), ("a repeated identifier", 1), ("no number", 1), ("a missing cell", 1)],
)
def test_rows_that_depend_on_others_are_read_as_a_whole(rows, what, code, monkeypatch):
    """What is read, and each message, is the same as without parts."""
    frame = pd.read_csv("new.csv", dtype=str)
    last = len(frame) - 1
    if what == "a comma":
        frame.loc[last, "gyr_x"] = "0,741"
    elif what == "a word":
        frame.loc[last, "gyr_x"] = "broken"
    elif what == "a repeated identifier":
        frame.loc[last, "window_id"] = frame.loc[0, "window_id"]
    elif what == "no number":
        frame.loc[20:, "gyr_x"] = "broken"
    frame.to_csv("odd.csv", index=False)
    if what == "a missing cell":
        Path("odd.csv").write_text(Path("odd.csv").read_text().strip().rpartition(",")[0] + "\n")
    found = {}
    for size in (1 << 22, 3000):
        monkeypatch.setattr(read, "PART_BYTES", size)
        shown = run("predict", "odd.csv", "-o", "out.csv", "--force")
        found[size] = (shown.exit_code, shown.stderr, Path("out.csv").read_text() if Path("out.csv").exists() else "")
        Path("out.csv").unlink(missing_ok=True)
    assert found[3000] == found[1 << 22]
    assert found[3000][0] == code


@pytest.mark.parametrize("rows_without", ["some", "all"])
def test_what_is_said_of_parts_is_said_of_the_whole(rows, rows_without, monkeypatch):
    frame = pd.read_csv("new.csv")
    name = next(column for column in frame.columns if column.startswith("gyr"))
    frame.loc[frame.index[60 if rows_without == "some" else 0 :], name] = np.nan
    frame.to_csv("gaps.csv", index=False)
    expected = run("predict", "gaps.csv", "-o", "whole.csv")
    monkeypatch.setattr(read, "PART_BYTES", 3000)
    found = run("predict", "gaps.csv", "-o", "parts.csv")
    assert (found.exit_code, found.stderr) == (0, expected.stderr)
    assert found.stdout == expected.stdout.replace("whole", "parts")
    assert ("'gyr" in found.stderr and "holds nothing, filled as gaps" in found.stderr) == (rows_without == "all")


def test_a_named_range_of_a_parquet_file_identifies_rows(rows, monkeypatch):
    frame = pd.read_csv("new.csv").drop(columns="window_id")
    frame.index = pd.RangeIndex(10, 10 + 2 * len(frame), 2, name="window_id")
    frame.to_parquet("range.parquet", row_group_size=50)
    monkeypatch.setattr(read, "PART_ROWS", 30)
    assert run("predict", "range.parquet", "-o", "out.csv").exit_code == 0
    assert pd.read_csv("out.csv")["window_id"].tolist() == frame.index.tolist()


def test_a_file_without_a_line_is_an_error(rows):
    for content in ("", "\n\n  \n"):
        Path("empty.csv").write_text(content)
        shown = run("predict", "empty.csv", "-o", "out.csv")
        assert shown.exit_code == 1
        assert "empty.csv is empty: a line of column names and at least one row are needed" in shown.stderr
        assert not Path("out.csv").exists()


def test_rows_are_numbered_on_if_they_have_no_identifier(rows, monkeypatch):
    pd.read_csv("new.csv").drop(columns="window_id").to_csv("more.csv", index=False)
    monkeypatch.setattr(read, "PART_BYTES", 3000)
    shown = run("predict", "more.csv", "-o", "out.csv")
    assert shown.exit_code == 0
    assert pd.read_csv("out.csv")["window_id"].tolist() == list(range(1, 201))
    assert shown.stderr.count("so its rows are numbered") == 1


def test_the_rows_that_are_tested_for_a_change_are_evenly_spaced():
    tested = EvenRows()
    for start in range(0, 5000, 700):
        tested.add({"a": np.arange(start, min(start + 700, 5000))[:, None]})
    kept = tested.views["a"][:, 0]
    assert np.unique(np.diff(kept)).tolist() == [16]
    assert 200 <= len(kept) <= 400
