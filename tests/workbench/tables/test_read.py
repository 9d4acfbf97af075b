"""Files as tables: what is found out of delimited text, and all formats give the same cells."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from cmvmed.workbench.tables.columns import read_numbers
from cmvmed.workbench.tables.delimited import DelimitedOptions
from cmvmed.workbench.tables.read import read_table
from cmvmed.workbench.user_errors import ProjectError

FRAME = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.5, np.nan, -2.25], "name": ["Grün", "", "the; end"]})


def read(path, **options):
    return read_table(path, DelimitedOptions(**options))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separator_and_encoding_are_found(tmp_path, separator, encoding, end):
    path = tmp_path / "x.csv"
    FRAME.to_csv(path, sep=separator, encoding=encoding, index=False, lineterminator=end)
    table = read(path)
    assert table.frame["name"].tolist() == ["Grün", "", "the; end"]
    np.testing.assert_array_equal(read_numbers(table.frame["x"]).values, FRAME["x"])
    assert table.place(1) == "line 3 of x.csv"
    text = " ".join(table.messages)
    assert ("separated by" in text) == (separator != ",")
    assert ("encoding" in text) == (encoding in ("utf-16", "cp1252"))


def test_decimal_comma_is_found_and_said(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id;x;y\na;1,5;2\nb;-2,25;3\n", encoding="utf-8")
    table = read(path)
    assert table.decimal == ","
    np.testing.assert_array_equal(read_numbers(table.frame["x"], table.decimal).values, [1.5, -2.25])
    assert any('decimal = ","' in message for message in table.messages)
    assert read(path, decimal=".", separator=";").messages == ()


def test_comments_blank_lines_quotes_and_a_column_without_a_name(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('# recorded by me\n\n,x,text\n0,1,"a, ""b"""\n\n1,2,c\n', encoding="utf-8")
    table = read(path)
    assert table.names == ["unnamed_1", "x", "text"]
    assert table.frame["text"].tolist() == ['a, "b"', "c"]
    assert [table.place(row) for row in (0, 1)] == ["line 4 of x.csv", "line 6 of x.csv"]
    assert "1 lines at the top" in table.messages[0]


def test_a_header_that_begins_like_a_comment_and_trailing_separators(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("#id,x,\n1,2,\n", encoding="utf-8")
    assert read(path).names == ["id", "x"]


def test_columns_that_are_counted(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("0,1,2\n5,6,7\n", encoding="utf-8")
    assert read(path).names == ["0", "1", "2"]


def test_cells_with_line_breaks(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('id,text\na,"one\ntwo"\nb,three\n', encoding="utf-8")
    table = read(path)
    assert table.frame["text"].tolist() == ["one\ntwo", "three"]
    assert table.place(1) == "row 2 of x.csv"


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_typed_files(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    getattr(FRAME, f"to_{ending[1:]}")(path)
    table = read(path)
    assert table.names == ["id", "x", "name"]
    np.testing.assert_array_equal(table.frame["x"], FRAME["x"])


def test_a_named_index_of_parquet_is_a_column(tmp_path):
    FRAME.set_index("id").to_parquet(tmp_path / "x.parquet")
    assert set(read(tmp_path / "x.parquet").names) == {"id", "x", "name"}


def test_npz(tmp_path):
    rng = np.random.default_rng(0)
    matrix, signals = rng.normal(size=(4, 2)), rng.normal(size=(4, 3, 20))
    np.savez(tmp_path / "x.npz", y=np.array(["a", "b", "", ""]), left=matrix, imu=signals)
    table = read(tmp_path / "x.npz")
    assert table.names == ["y", "left.0", "left.1", "imu.0", "imu.1", "imu.2"]
    np.testing.assert_array_equal(table.frame["left.1"], matrix[:, 1])
    np.testing.assert_array_equal(table.signals["imu.2"].items[3], signals[3, 2])


def test_arrays_of_npz_that_are_not_rows_are_left_out(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.zeros((4, 2)), y=np.arange(4), kind="sensors", names=np.array(["a", "b"]))
    table = read(tmp_path / "x.npz")
    assert table.names == ["X.0", "X.1", "y"]
    assert table.messages == ("x.npz: 'kind', 'names' have no entry per row and are left out.",)


def test_ts(tmp_path):
    (tmp_path / "x.ts").write_text(
        "#a comment\n@problemName x\n@classLabel true up down\n@data\n1,2,3:4,5,6:up\n1,?,2,7:?:down\n",
        encoding="utf-8",
    )
    table = read(tmp_path / "x.ts")
    assert table.frame["class"].tolist() == ["up", "down"]
    np.testing.assert_array_equal(table.signals["dim_0"].items[1], [1, np.nan, 2, 7])
    np.testing.assert_array_equal(table.signals["dim_1"].present, [True, False])


def test_files_of_a_pattern_are_one_table(tmp_path):
    for name, part in (("mon", FRAME[:2]), ("tue", FRAME[2:])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    table = read(tmp_path / "*.csv")
    assert table.frame["id"].tolist() == ["a", "b", "c"]
    assert table.frame["file"].tolist() == ["mon", "mon", "tue"]


def test_the_error_without_pandas_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("id,x\n1,2\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(ImportError, match=r"install .*\[workbench\]"):
        read(tmp_path / "x.csv")


class TestExcel:
    @pytest.fixture(autouse=True)
    def _needs_openpyxl(self):
        pytest.importorskip("openpyxl", reason="xlsx files need cmvmed[excel]")

    def test_cells_are_those_of_a_csv_file(self, tmp_path):
        frame = FRAME.assign(code=["007", "08", "9"], at=pd.to_datetime(["2025-01-01", "2025-01-02", None]), on=True)
        frame.to_excel(tmp_path / "x.xlsx", index=False)
        table = read(tmp_path / "x.xlsx")
        assert table.frame["code"].tolist() == ["007", "08", "9"]
        np.testing.assert_array_equal(read_numbers(table.frame["x"]).values, FRAME["x"])
        assert table.frame["at"].dtype.kind == "M"
        assert table.place(1) == "line 3 of x.xlsx"
        assert table.messages == ()

    def test_the_first_sheet_is_read_and_empty_lines_are_left_out(self, tmp_path):
        with pd.ExcelWriter(tmp_path / "x.xlsx") as book:
            FRAME.reindex([0, 9, 1]).to_excel(book, sheet_name="run 1", index=False)
            FRAME.to_excel(book, sheet_name="run 2", index=False)
        table = read(tmp_path / "x.xlsx")
        assert (table.n_rows, table.place(1)) == (2, "line 4 of x.xlsx")
        assert table.messages == ("x.xlsx: the sheet 'run 1' is read, the first of 2.",)

    def test_lines_above_the_names_and_other_files_are_errors(self, tmp_path):
        FRAME.to_excel(tmp_path / "x.xlsx", index=False, startrow=2)
        pd.DataFrame([["measured by me", None], ["id", "x"]]).to_excel(
            tmp_path / "title.xlsx", index=False, header=False
        )
        (tmp_path / "no.xlsx").write_bytes(b"PK\x03\x04 nothing")
        for name, words in [("title.xlsx", "must name each column"), ("no.xlsx", "cannot be read as an Excel file")]:
            with pytest.raises(ProjectError, match=words) as caught:
                read(tmp_path / name)
            assert name in str(caught.value)

    def test_a_file_that_would_grow_is_refused_before_it_does(self, tmp_path, monkeypatch):
        FRAME.to_excel(tmp_path / "x.xlsx", index=False)
        monkeypatch.setattr("cmvmed.workbench.tables.read.MAX_EXCEL", 100)
        with pytest.raises(ProjectError, match="would unpack to"):
            read(tmp_path / "x.xlsx")


def test_an_excel_file_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    with pytest.raises(ImportError, match="excel"):
        read(tmp_path / "x.xlsx")
