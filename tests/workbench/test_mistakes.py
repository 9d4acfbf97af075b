"""Mistakes that users make: each gives one sentence that names the place, what was expected and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import soundfile

from cmvmed.workbench import Project, ProjectError, init
from cmvmed.workbench.tables.delimited import DelimitedOptions
from cmvmed.workbench.tables.read import read_table

ROWS = "id,a_x,a_y,b_x,b_y,label\n" + "".join(
    f"r{i},{i % 5}.5,{i % 7},{i % 3}.25,{i % 11},{'up' if i % 2 else 'down'}\n"
    if i < 10
    else f"r{i},{i % 5}.5,{i % 7},1,2,\n"
    for i in range(30)
)
TOML = """
[data]
path = "rows.csv"
id = "id"
labels = "label"
[views.a]
columns = "a_*"
[views.b]
columns = "b_*"
"""


def changed(text, *pairs):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def toml(*pairs):
    return {"cmvmed.toml": changed(TOML, *pairs)}


def rows(*pairs):
    return {"rows.csv": changed(ROWS, *pairs)}


def sound_views(a, b):
    return toml(("rows.csv", "."), ('columns = "a_*"', f'files = "{a}"'), ('columns = "b_*"', f'files = "{b}"'))


def said(folder):
    """All that check says, or the error that it meets."""
    try:
        return [f"{finding.level}: {finding.message}" for finding in Project.load(folder / "cmvmed.toml").check()]
    except ProjectError as error:
        return [f"error: {error}"]


FEW = "".join(f"r{i},1,2,3,4,\n" for i in range(30))
VIEW_FILES = '[data]\n[views.a]\npath="a.csv"\n[views.b]\npath="b.csv"\n'
HEADER = "id,a_x,a_y,b_x,b_y,label\n"

# name -> files besides those of the correct project (None removes one), words of the message
MISTAKES = {
    # the project file
    "toml_syntax": ({"cmvmed.toml": "[data]\npath = rows.csv\n"}, "not valid TOML", "line 2", "quotation marks"),
    "toml_backslash": ({"cmvmed.toml": '[data]\npath = "C:\\data\\x.csv"\n'}, "not valid TOML", "backslash"),
    "toml_not_utf8": ({"cmvmed.toml": b"[data]\npath = \"r\xe4w.csv\"\n"}, "not UTF-8"),
    "unknown_section": (toml(("[views.b]", "[view.b]")), "no section [view]", "Did you mean 'views'?"),
    "unknown_key": (toml(("labels =", "lables =")), "line 5", "no key 'lables'", "Did you mean 'labels'?"),
    "unknown_view_key": (toml(('columns = "b_*"', 'colums = "b_*"')), "line 9", "[views.b]", "Did you mean 'columns'?"),
    "unknown_model_key": ({"cmvmed.toml": TOML + "[model]\ntempratur = 1\n"}, "[model]", "Did you mean 'temperature'?"),
    "model_sets_views": ({"cmvmed.toml": TOML + "[model]\nviews = 1\n"}, "must not set 'views'", "[views]"),
    "wrong_type": (toml(('id = "id"', "id = 3")), "id in [data] is 3", "must be a text"),
    "empty_text": (toml(('id = "id"', 'id = ""')), "id in [data] is empty", "remove the line"),
    "section_is_text": ({"cmvmed.toml": 'data = "rows.csv"\n'}, "data must be a section [data]"),
    "labels_drawn": (toml(("[views.a]", 'labels_drawn = "randomly"\n[views.a]')), "labels_drawn", "'random', 'per_class'"),
    "decimal": (toml(("[views.a]", 'decimal = "comma"\n[views.a]')), "must be one of '.', ','"),
    "separator": (toml(("[views.a]", 'separator = "; "\n[views.a]')), "must be one character"),
    "both_commas": (toml(("[views.a]", 'separator = ","\ndecimal = ","\n[views.a]')), "both a comma"),
    "sampling_rate": (toml(("[views.a]", "sampling_rate = -5\n[views.a]")), "must be positive"),
    "no_views": ({"cmvmed.toml": '[data]\npath = "rows.csv"\n'}, "no views", "[views.sensor]"),
    "view_without_columns": (toml(('columns = "b_*"', "")), "view 'b' has no columns"),
    "view_with_empty_list": (toml(('columns = "b_*"', "columns = []")), "view 'b' has no columns"),
    "no_path": (toml(('path = "rows.csv"\n', "")), "no path in [data]", "say where the data are"),
    "channel_without_files": (toml(('columns = "b_*"', 'columns = "b_*"\nchannel = 1')), "no sound files", "files ="),
    "columns_and_files": (toml(('columns = "b_*"', 'columns = "b_*"\nfiles = "*.wav"')), "both columns and files"),
    "kind": ({"cmvmed.toml": TOML + '[columns]\na_x = "numeric"\n'}, "'a_x' the kind 'numeric'", "'number', 'boolean'"),
    # files
    "wrong_path": (toml(("rows.csv", "row.csv")), "no file or folder", "Did you mean 'rows.csv'?"),
    "wrong_folder": (toml(("rows.csv", "nowhere/rows.csv")), "Its folder", "does not exist either"),
    "pattern_of_files": (toml(("rows.csv", "days/*.csv")), "No file matches", "days/*.csv"),
    "unknown_format": ({**toml(("rows.csv", "rows.dat")), "rows.dat": "1 2"}, "ending of rows.dat is not known", ".parquet"),
    "spreadsheet": ({**toml(("rows.csv", "rows.ods")), "rows.ods": b"PK\x03\x04"}, "spreadsheet", "save the sheet as xlsx or csv"),
    "spreadsheet_named_csv": ({"rows.csv": b"PK\x03\x04\x00\x00"}, "rows.csv is a spreadsheet", "save it as csv"),
    "empty_file": ({"rows.csv": ""}, "rows.csv is empty"),
    "blank_file": ({"rows.csv": "\n  \n"}, "rows.csv is empty"),
    "header_only": ({"rows.csv": HEADER}, "column names but no rows"),
    "no_header": ({"rows.csv": "1.5,2,3\n4,5,6\n"}, "holds numbers", "add a line of names"),
    "repeated_columns": (rows(("a_y", "a_x")), "two columns named 'a_x' (positions 2 and 3)", "rename one"),
    "too_many_cells": (rows(("r4,", "r4,9,")), "Line 6 of rows.csv has 7 cells", "has 6", "double quotes"),
    "too_few_cells": (rows((",up\nr2", "\nr2")), "Line 3 of rows.csv has 5 cells", "Add the missing cells"),
    "binary_file": ({"rows.csv": b"id,a\n\x00\x01,2\n"}, "not a text file", "zero bytes"),
    "wrong_encoding": (
        {**toml(("[views.a]", 'encoding = "ascii"\n[views.a]')), "rows.csv": ROWS.replace("up", "grün")},
        "not in the encoding 'ascii'",
        "line 3",
    ),
    "unknown_encoding": (toml(("[views.a]", 'encoding = "utf-9"\n[views.a]')), "'utf-9' is not an encoding", "'utf-8'"),
    "wrong_separator": (toml(("[views.a]", 'separator = ";"\n[views.a]')), "no column 'id'", "'id,a_x,a_y,b_x,b_y,label'"),
    "sound_as_table": ({**toml(("rows.csv", "x.wav")), "x.wav": b"RIFF"}, "x.wav is a sound file", "files ="),
    "damaged_parquet": ({**toml(("rows.csv", "x.parquet")), "x.parquet": b"PAR1 nothing"}, "cannot be read as a Parquet file"),
    "damaged_feather": ({**toml(("rows.csv", "x.feather")), "x.feather": b"ARROW1 no"}, "cannot be read as a Feather file"),
    "damaged_npz": ({**toml(("rows.csv", "x.npz")), "x.npz": b"PK\x03\x04 no"}, "not an npz file", "numpy.savez"),
    "ts_without_data": ({**toml(("rows.csv", "x.ts")), "x.ts": "@problemName x\n"}, "no rows after a line @data"),
    "ts_text": ({**toml(("rows.csv", "x.ts")), "x.ts": "@data\n1,2,x\n"}, "Line 2 of x.ts", "not a number"),
    "empty_folder": ({**toml(("rows.csv", "sub")), "sub/readme.md": "x"}, "no file of a known format", "'readme.md'"),
    "unlike_files": (
        {**toml(("rows.csv", "d*.csv")), "d1.csv": ROWS, "d2.csv": ROWS.replace("a_x", "a_q")},
        "must have the same columns",
        "d2.csv lacks 'a_x'",
        "one path per view",
    ),
    # columns
    "glob_matches_nothing": (toml(("b_*", "c_*")), "View 'b': no column matches 'c_*'", "Its columns are 'a_x'"),
    "unknown_column": (toml(('"b_*"', '["b_x", "b_yy"]')), "View 'b': there is no column 'b_yy'", "Did you mean 'b_y'?"),
    "column_in_two_views": (toml(('"b_*"', '["b_x", "a_x"]')), "'a_x' belongs to view 'a' and to view 'b'"),
    "label_in_view": (toml(('"b_*"', '["b_x", "label"]')), "lists column 'label'", "[data] uses as labels"),
    "ignored_in_view": (toml(('"b_*"', '["b_x"]'), ("[views.a]", 'ignore = ["b_x"]\n[views.a]')), "ignore in [data]"),
    "label_column_missing": (toml(('"label"', '"lable"')), "no column 'lable'", "Did you mean 'label'?"),
    "id_column_missing": (toml(('"id"', '"ID"')), "no column 'ID'", "Did you mean 'id'?"),
    "group_column_missing": (toml(("[views.a]", 'groups = "subject"\n[views.a]')), "no column 'subject'", "groups"),
    "ignored_is_no_column": (toml(("[views.a]", 'ignore = ["tme"]\n[views.a]')), None),
    "text_in_declared_number": (
        {**rows(("r1,1.5", "r1,one")), "cmvmed.toml": TOML + '[columns]\n"b_*" = "number"\n'},
        "column 'a_x': 1 cell cannot be read as a number",
        "line 3",
    ),
    "empty_view": ({"rows.csv": HEADER + "".join(f"r{i},1,{i},,,up\n" for i in range(9))}, "View 'b'", "hold nothing"),
    "renamed_to_a_number": ({"cmvmed.toml": TOML + "[classes]\nup = 1\n"}, "renames 'up' to 1", "must say a text"),
    "renamed_twice": ({"cmvmed.toml": TOML + '[classes]\na = "b"\nb = "c"\n'}, "renames 'a' to 'b', which is renamed too"),
    "labels_without_zeros": (
        {
            **toml(('labels = "label"', 'labels = "l.csv"'), ("[views.a]", 'ignore = ["label"]\n[views.a]')),
            "rows.csv": ROWS.replace("\nr", "\n00"),
            "l.csv": "id,label\n1,up\n2,down\n",
        },
        "'1' and '001' may be the same",
        "leading zeros",
    ),
    "infinite": (rows(("r1,1.5", "r1,inf")), "Column 'a_x', line 3", "'inf' is infinite", "Leave the cell empty"),
    "too_large": (rows(("r2,2.5", "r2,1e999")), "Column 'a_x', line 4", "is infinite"),
    "huge": (rows(("r2,2.5", "r2,-1e300")), "Column 'a_x', line 4", "'-1e+300' is too large to be a measurement"),
    "two_decimal_signs": (
        rows(("r1,1.5", 'r1,"0,741"')),
        "Column 'a_x': '0.5' (line 2 of rows.csv) has a decimal point, but '0,741' (line 3 of rows.csv) a decimal comma",
    ),
    "thousands_or_decimals": (
        rows(*((f"\nr{i},{i % 5}.5", f'\nr{i},"{i % 5 + 1},741"') for i in range(30))),
        "column 'a_x': '1,741' is read as 1741, with a comma between thousands",
    ),
    "units": (rows((".5,", ".5 kg,")), "numbers with a unit", "Remove the unit"),
    # identifiers
    "repeated_id": (rows(("r5,", "r4,")), "'r4' occurs in line 6 of rows.csv and again in line 7"),
    "empty_id": (rows(("\nr5,", "\n,")), "'id', which identifies rows, is empty in line 7"),
    # labels
    "labels_not_set": (toml(('labels = "label"\n', "")), "labels is not set"),
    "no_labels": ({"rows.csv": HEADER + FEW}, "No row is labeled", "Label some rows"),
    "one_class": (rows(("down", "up")), "the class 'up'", "at least 2 classes"),
    "marker_question_mark": (rows((",1,2,\n", ",1,2,?\n")), "'?' (20 rows, 67 %) looks like a marker", 'unlabeled = ["", "?"]'),
    "marker_unknown": (rows((",1,2,\n", ",1,2,Unknown\n")), "'Unknown'", "looks like a marker"),
    "marker_minus_one": (rows((",1,2,\n", ",1,2,-1\n")), "'-1' (20 rows, most of all) may mark"),
    "marker_zero": (rows((",1,2,\n", ",1,2,0\n")), "'0' (20 rows, most of all) may mark"),
    "case": (rows(("r3,3.5,3,0.25,3,up", "r3,3.5,3,0.25,3,Up")), "'Up' (1), 'up' (4) differ only by case"),
    "cyrillic_letter": (
        rows(("r3,3.5,3,0.25,3,up", "r3,3.5,3,0.25,3,u\u0440")),
        "The classes 'up' (4), 'u\\u0440' (1) look alike. Write them alike",
    ),
    "leading_zero": (rows(("up", "1"), ("r3,3.5,3,0.25,3,1", "r3,3.5,3,0.25,3,01")), "The classes '01' (1), '1' (4) look alike"),
    "inner_blank": (rows(("down", "go down"), ("r2,2.5,2,2.25,2,go down", "r2,2.5,2,2.25,2,go  down")), "differ only by case"),
    "single_label": (rows(("r3,3.5,3,0.25,3,up", "r3,3.5,3,0.25,3,left")), "a single label: 'left'"),
    "measured_label": (
        {"rows.csv": HEADER + "".join(f"r{i},1,{i},3,4,{i}.37\n" for i in range(40))},
        "40 different values",
        "classes of ranges",
    ),
    "label_not_in_classes": (
        toml(("[views.a]", 'classes = ["up", "dawn"]\n[views.a]')),
        "'down' (5 rows) is neither in classes nor in unlabeled",
        "Did you mean 'dawn'?",
    ),
    "label_file_missing": (toml(('"label"', '"labels.csv"')), "no file of labels 'labels.csv'"),
    "label_file_other_ids": (
        {**toml(('"label"', '"labels.csv"')), "labels.csv": "id,label\n1,up\n2,down\n"},
        "None of the 2 identifiers",
        "the file has '1', '2', the data have 'r0', 'r1'",
    ),
    "label_file_two_labels": (
        {**toml(('"label"', '"labels.csv"')), "labels.csv": "id,label\nr1,up\nr1,down\n"},
        "gives row 'r1' two labels, 'up' and 'down' (line 3 of labels.csv)",
    ),
    "label_file_one_column": ({**toml(('"label"', '"labels.csv"')), "labels.csv": "label\nup\ndown\n"}, "needs two"),
    "label_file_without_names": (
        {**toml(('"label"', '"labels.csv"')), "labels.csv": "r1,up\nr2,down\nr3,up\n"},
        "The first line of labels.csv looks like a row, because 'r1' is the identifier of one",
    ),
    "label_file_which_column": (
        {**toml(('"label"', '"labels.csv"')), "labels.csv": "id,anna,bert\nr1,up,up\n"},
        "several columns that may be the label ('anna', 'bert')",
        'label_column = "anna"',
    ),
    "label_file_wrong_column": (
        {**toml(('"label"', '"labels.csv"\nlabel_column = "ana"')), "labels.csv": "id,anna,bert\nr1,up,up\n"},
        "label_column = 'ana' is not a column",
        "Did you mean 'anna'?",
    ),
    # groups and views in files of their own
    "one_group": (
        {**toml(("[views.a]", 'groups = "g"\n[views.a]')), "rows.csv": ROWS.replace(",label", ",g,label")
         .replace(",up", ",s,up").replace(",down", ",s,down").replace(",1,2,\n", ",1,2,s,\n")},
        "All rows are in one group",
    ),
    "unequal_views": (
        {"cmvmed.toml": VIEW_FILES, "a.csv": "x,y\n1,2\n3,4\n", "b.csv": "x,y\n1,2\n"},
        "their numbers differ: a.csv (2), b.csv (1)",
        "Set id",
    ),
    "views_in_other_orders": (
        {"cmvmed.toml": VIEW_FILES, "a.csv": "key,x\np,2\nq,4\nr,5\n", "b.csv": "key,y\nq,1\np,2\nr,3\n"},
        "the column 'key' of a.csv and b.csv holds the same values in another order",
        "Set id",
    ),
    "view_file_without_id": (
        {"cmvmed.toml": VIEW_FILES.replace("[data]", '[data]\nid="id"'), "a.csv": "id,y\n1,2\n", "b.csv": "x,y\n1,2\n"},
        "b.csv has no column 'id'",
    ),
    "no_sound_files": (sound_views("*.wav", "x/*.wav"), "No sound file", "'*.wav', 'x/*.wav'"),
    "sound_without_star": (sound_views("a.wav", "b.wav"), "needs a *"),
    "sound_and_columns": (toml(('columns = "b_*"', 'files = "*.wav"')), "view 'a' a path of its own"),
}  # fmt: skip


def write(folder, files):
    for name, content in {"cmvmed.toml": TOML, "rows.csv": ROWS, **files}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))


def test_the_correct_project_has_no_finding(tmp_path):
    write(tmp_path, {})
    assert said(tmp_path) == []


@pytest.mark.parametrize("name", [name for name, (_, *words) in MISTAKES.items() if words[0] is not None])
def test_a_mistake_is_named(tmp_path, name):
    files, *words = MISTAKES[name]
    write(tmp_path, files)
    messages = said(tmp_path)
    assert any(all(word in message for word in words) for message in messages), messages
    assert all("\n" not in message and len(message) < 600 for message in messages)


def test_an_ignored_column_that_is_absent_is_said(tmp_path):
    write(tmp_path, MISTAKES["ignored_is_no_column"][0])
    project = Project.load(tmp_path)
    assert project.check() == []
    assert any("'tme', which is not a column" in message for message in project.rows().messages)


def test_there_is_no_project_file(tmp_path):
    with pytest.raises(ProjectError, match="cmvmed init"):
        Project.load(tmp_path / "cmvmed.toml")


def test_the_advice_for_texts_of_pandas_helps(tmp_path):
    texts = pd.Series(["up", "down"] * 3)
    np.savez(tmp_path / "x.npz", a=texts.astype(str).to_numpy(dtype=object), b=np.zeros((6, 2)))
    with pytest.raises(ProjectError, match=r"numpy\.array\(a, dtype=str\)"):
        read_table(tmp_path / "x.npz", DelimitedOptions())
    np.savez(tmp_path / "x.npz", a=np.array(texts, dtype=str), b=np.zeros((6, 2)))
    assert read_table(tmp_path / "x.npz", DelimitedOptions()).frame["a"].tolist() == texts.tolist()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": np.zeros((3, 2)), "b": np.zeros((4, 2))}, r"same number of rows.*a \(3\), b \(4\)"),
        (
            {"a": np.array(["x", None], dtype=object)},
            r"Array 'a' of .* holds Python objects.*can run code.*numpy\.array\(a, dtype=str\)",
        ),
        ({"a": np.zeros((2, 2, 2, 2))}, "'a' of x.npz has 4 dimensions"),
    ],
)
def test_arrays_that_are_no_table(tmp_path, arrays, words):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ProjectError, match=words):
        init(tmp_path / "x.npz", tmp_path / "cmvmed.toml")


def test_sound_files_of_several_channels_need_a_channel(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros((100, 2)), 4000)
    write(tmp_path, {"cmvmed.toml": '[data]\npath="."\n[views.s]\nfiles="*.wav"\n'})
    assert "a.wav has 2 channels; give the view channel = 0 to 1" in said(tmp_path)[0]
    write(tmp_path, {"cmvmed.toml": '[data]\npath="."\n[views.s]\nfiles="*.wav"\nchannel=2\n'})
    assert "channel = 2, but a.wav has 2 channels, numbered from 0" in said(tmp_path)[0]


def test_two_files_of_one_row(tmp_path):
    for name in ("a.wav", "a.flac"):
        soundfile.write(tmp_path / name, np.zeros(100), 4000)
    write(tmp_path, {"cmvmed.toml": '[data]\npath="."\n[views.s]\nfiles="*"\n'})
    assert "both match '*' as row 'a'" in said(tmp_path)[0]


NEW_MISTAKES = {
    "other_columns": ("x,y\n1,2\n", "has no column of the training data"),
    "text_for_numbers": (ROWS.replace(".5,", ".5m,"), r"'a_x', line 2 of new.csv: '0.5m' is not a number"),
    "open_quote": (
        ROWS.replace("r3,", 'r3"' + "x" * 200_000 + ","),
        r"new.csv cannot be read as a table.*131,072 characters",
    ),
    "missing_file": (None, "There is no file or folder"),
    "huge": (ROWS.replace("r3,3.5", "r3,1e308"), "'a_x', line 5 of new.csv: '1e.308' is too large to be a measurement"),
    "ragged": (ROWS + "r99,1\n", "Line 32 of new.csv has 2 cells"),
}


@pytest.mark.parametrize("name", NEW_MISTAKES)
def test_mistakes_in_new_rows(tmp_path, name):
    content, words = NEW_MISTAKES[name]
    write(tmp_path, {} if content is None else {"new.csv": content})
    with pytest.raises(ProjectError, match=words):
        Project.load(tmp_path).read_new(tmp_path / "new.csv")


def test_columns_of_new_rows_that_hold_nothing_are_said(tmp_path):
    write(tmp_path, {"new.csv": "id,a_x,a_y,b_x,b_y\n" + "".join(f"n{i},,{i},2,3\n" for i in range(5))})
    messages = Project.load(tmp_path).read_new(tmp_path / "new.csv").messages
    assert list(messages) == ["View 'a': 'a_x' of new.csv holds nothing, filled as gaps."]


def test_new_rows_of_views_with_files_of_their_own_need_a_folder(tmp_path):
    write(tmp_path, {"cmvmed.toml": '[data]\n[views.a]\npath="a.csv"\n', "a.csv": "x,y\n1,2\n3,5\n"})
    project = Project.load(tmp_path)
    with pytest.raises(ProjectError, match="need a folder"):
        project.read_new(tmp_path / "a.csv")
    with pytest.raises(ProjectError, match=r"no view 'aa'. Did you mean 'a'\?"):
        project.read_new({"aa": tmp_path / "a.csv"})


def test_a_marker_is_not_learned_as_a_class(tmp_path):
    write(tmp_path, rows((",1,2,\n", ",1,2,?\n")))
    with pytest.raises(ProjectError, match="looks like a marker"):
        Project.load(tmp_path).read()
    write(
        tmp_path, {**rows((",1,2,\n", ",1,2,?\n")), **toml(("[views.a]", 'classes = ["up", "down", "?"]\n[views.a]'))}
    )
    assert set(Project.load(tmp_path).read().labels) == {"up", "down", "?"}
