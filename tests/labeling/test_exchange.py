"""Labels to and from other tools: what is written is read again, and files of other kinds are refused."""

import io
import json
import zipfile

import pytest

from cmvmed.labeling.exchange import EXPORTS, LabeledRow, export_rows, import_rows

ROWS = [
    LabeledRow("seg1", "human", 1.5),
    LabeledRow("seg 2", "anımal, <b>", 2.25),
    LabeledRow("seg3", None, 0.5),
]


def essence(rows):
    return [(row.id, row.label) for row in rows]


@pytest.mark.parametrize("form", EXPORTS)
def test_labels_are_the_same_after_a_round_trip(form):
    data = export_rows(ROWS, form)
    found = import_rows(data, EXPORTS[form].file_name, [row.id for row in ROWS])
    assert essence(found) == essence(ROWS)


def test_csv_keeps_the_names_of_annotators():
    rows = [LabeledRow("seg1", "human", annotator="=anna"), LabeledRow("seg3", None)]
    found = import_rows(export_rows(rows, "csv"), "labels.csv", [])
    assert [row.annotator for row in found] == ["=anna", ""]


@pytest.mark.parametrize("form", ["csv", "labelstudio"])
def test_rows_keep_why_they_were_chosen(form):
    rows = [LabeledRow("seg1", "human", chosen_by="random"), LabeledRow("seg2", "car", chosen_by="suggest")]
    found = import_rows(export_rows(rows, form), EXPORTS[form].file_name, [])
    assert [row.chosen_by for row in found] == ["random", "suggest"]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("id,label,reason,score,random\na,x,new,1.0,\nb,y,drawn,0.0,yes\n", ["suggest", "random"]),
        ("id,label,chosen_by\na,x,by hand\nb,y,\n", ["import", "import"]),
    ],
)
def test_files_of_suggest_mark_random_rows_and_unknown_reasons_are_none(text, reasons):
    assert [row.chosen_by for row in import_rows(text.encode(), "next.csv", ["a", "b"])] == reasons


@pytest.mark.parametrize("form", ["csv", "labelstudio"])
def test_names_that_track_files_cannot_hold_survive_in_csv_and_json(form):
    rows = [LabeledRow("a\tb", 'x"\n,y'), LabeledRow("../../etc", "ok")]
    assert essence(import_rows(export_rows(rows, form), EXPORTS[form].file_name, [])) == essence(rows)


@pytest.mark.parametrize("form", ["audacity", "raven"])
def test_tabs_and_rows_without_a_recording_are_refused_by_track_formats(form):
    with pytest.raises(ValueError, match="tab or a line break"):
        export_rows([LabeledRow("x", "a\tb", 1.0)], form)
    with pytest.raises(ValueError, match="without a recording"):
        export_rows([LabeledRow("x", "a")], form)


def test_an_audacity_archive_has_one_track_per_row_with_its_times():
    with zipfile.ZipFile(io.BytesIO(export_rows(ROWS, "audacity"))) as archive:
        assert archive.read("000002.txt").decode() == "0.000000\t2.250000\tanımal, <b>\n"
        assert archive.read("index.tsv").decode().splitlines()[0] == "000001.txt\tseg1"


def test_a_single_track_is_known_by_the_name_of_its_row():
    assert essence(import_rows(b"0.0\t1.0\thuman\n", "seg1.txt", ["seg1"])) == [("seg1", "human")]
    with pytest.raises(ValueError, match="several labels"):
        import_rows(b"0.0\t1.0\thuman\n1.0\t2.0\tanimal\n", "seg1.txt", ["seg1"])


def test_a_raven_table_has_the_columns_of_raven():
    head, first, *_ = export_rows(ROWS, "raven").decode().splitlines()
    line = dict(zip(head.split("\t"), first.split("\t"), strict=True))
    assert (line["Begin File"], line["End Time (s)"], line["Annotation"]) == ("seg1", "1.500000", "human")


def test_a_label_studio_file_with_several_annotations_gives_the_last():
    choice = [{"type": "choices", "value": {"choices": [name]}} for name in ("old", "new")]
    task = {"data": {"id": 7}, "annotations": [{"result": [choice[0]]}, {"result": [choice[1]]}]}
    assert essence(import_rows(json.dumps([task]).encode(), "x.json", [])) == [("7", "new")]


@pytest.mark.parametrize(
    ("data", "name", "match"),
    [
        (b"name,class\na,b\n", "x.csv", "columns id and label"),
        (b"", "x.csv", "columns id and label"),
        (b"\xff\xfe\x00a", "x.csv", "UTF-8"),
        (b"{}", "x.json", "Label Studio"),
        (b"[1]", "x.json", "Label Studio"),
        (b"[{", "x.json", "Label Studio"),
        (b"no archive", "x.zip", "archive of label tracks"),
        (b"Begin Time (s)\tEnd\n0\t1\n", "x.txt", "Begin File"),
    ],
)
def test_other_files_are_refused_with_their_name(data, name, match):
    with pytest.raises(ValueError, match=match) as caught:
        import_rows(data, name, [])
    assert name in str(caught.value)


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="csv, labelstudio"):
        export_rows(ROWS, "xls")


def test_formulas_are_no_formulas_in_a_spreadsheet_and_come_back():
    rows = [LabeledRow(item, label) for item, label in [("=1+1", "@x"), ("+a", "-b"), ("'=q", "'p"), ("-3", "+4.5")]]
    written = export_rows(rows, "csv")
    cells = [line.split(",")[:2] for line in written.decode().splitlines()[1:]]
    assert cells == [["'=1+1", "'@x"], ["'+a", "'-b"], ["''=q", "'p"], ["-3", "+4.5"]]
    found = import_rows(written, "labels.csv", known=["=1+1", "'=q"])
    assert [(row.id, row.label) for row in found] == [(row.id, row.label) for row in rows]
