"""Labels to and from other tools: CSV, Label Studio JSON, Audacity label tracks and Raven selection tables."""

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from cmvmed.workbench.label_store import CHOSEN_BY
from cmvmed.workbench.tables.delimited import escaped_cell, restored_cell
from cmvmed.workbench.tables.row_labels import RANDOM, RANDOM_COLUMN, SUGGESTION_COLUMNS

MAX_MEMBER = 10_000_000  # bytes of a file in an archive
UNSURE = "unsure"
RAVEN_COLUMNS = ("Selection", "View", "Channel", "Begin Time (s)", "End Time (s)", "Begin File", "Annotation")


@dataclass(frozen=True)
class LabeledRow:
    """A row and what was said of it: a class, or None for one that is not clear.

    Examples
    --------
    >>> from cmvmed.labeling import LabeledRow
    >>> LabeledRow("step 1", "human", seconds=1.5).chosen_by
    'import'
    """

    id: str
    label: str | None
    seconds: float | None = None  # length of its recording
    chosen_by: str = "import"  # why it was chosen when it got its first class
    at: str = ""
    annotator: str = ""  # name of the person


def export_rows(rows: Sequence[LabeledRow], form: str) -> bytes:
    """The labels as a file; ``form`` is a key of ``EXPORTS``.

    Examples
    --------
    >>> from cmvmed.labeling import LabeledRow, export_rows
    >>> print(export_rows([LabeledRow("step 1", "human")], "csv").decode().splitlines()[1])
    step 1,human,,import,,
    """
    if form not in EXPORTS:
        raise ValueError(f"The format is one of {', '.join(EXPORTS)}, but is {form!r}.")
    return EXPORTS[form].write(rows)


def import_rows(data: bytes, name: str, known: Iterable[str]) -> list[LabeledRow]:
    r"""The labels in a file of one of the formats, which its name and first line show.

    Parameters
    ----------
    name : of the file
    known : identifiers of the project's rows

    Examples
    --------
    >>> from cmvmed.labeling import import_rows
    >>> rows = import_rows(b"id,label\nstep 1,human\n", "labels.csv", known=["step 1", "step 2"])
    >>> rows[0].id, rows[0].label
    ('step 1', 'human')
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".zip":
        return _read_audacity(data, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 text; save it as UTF-8.") from error
    if suffix == ".json":
        return _read_label_studio(text, name)
    if "Begin Time (s)" in text.partition("\n")[0]:
        return _read_raven(text, name)
    if suffix == ".txt" and PurePosixPath(name).stem in set(known):
        return _read_track(text, PurePosixPath(name).stem, name)
    return _read_csv(text, name, set(known))


def _write_csv(rows: Sequence[LabeledRow]) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["id", "label", "unsure", "chosen_by", "at", "annotator"])
    for row in rows:
        writer.writerow(
            [
                escaped_cell(row.id),
                escaped_cell(row.label or ""),
                "yes" if row.label is None else "",
                row.chosen_by,
                row.at,
                escaped_cell(row.annotator),
            ]
        )
    return stream.getvalue().encode()


def _read_csv(text: str, name: str, known: set[str]) -> list[LabeledRow]:
    lines = list(csv.DictReader(io.StringIO(text)))
    if not lines or not {"id", "label"} <= lines[0].keys():
        raise ValueError(f"{name} needs the columns id and label in its first line.")
    found = []
    for line in lines:
        label, is_unsure = (line["label"] or "").strip(), bool((line.get("unsure") or "").strip())
        if label or is_unsure:
            item = line["id"] or ""
            item = item if item in known else restored_cell(item)
            person = restored_cell(line.get("annotator") or "")
            found.append(LabeledRow(item, restored_cell(label) or None, chosen_by=_reason(line), annotator=person))
    return found


def _reason(line: dict[str, Any]) -> str:
    """Why a row was chosen, by a line of an export or of ``cmvmed suggest``: random rows are to stay random ones."""
    if line.keys() >= set(SUGGESTION_COLUMNS):
        return "random" if (line.get(RANDOM_COLUMN) or "").strip() == RANDOM else "suggest"
    reason = line.get("chosen_by")
    return reason if reason in CHOSEN_BY else "import"


def _write_label_studio(rows: Sequence[LabeledRow]) -> bytes:
    tasks = [
        {
            "data": {"id": row.id, "chosen_by": row.chosen_by},
            "annotations": [
                {
                    "was_cancelled": row.label is None,
                    "result": []
                    if row.label is None
                    else [
                        {"type": "choices", "from_name": "label", "to_name": "row", "value": {"choices": [row.label]}}
                    ],
                }
            ],
        }
        for row in rows
    ]
    return json.dumps(tasks, ensure_ascii=False, indent=1).encode()


def _read_label_studio(text: str, name: str) -> list[LabeledRow]:
    try:
        tasks = json.loads(text)
        if not isinstance(tasks, list):
            raise TypeError("the file is not a list of tasks")
        return [row for task in tasks for row in _read_task(task)]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(
            f"{name} is not a JSON export of Label Studio with data.id and choices ({type(error).__name__}: {error})."
        ) from error


def _read_task(task: dict[str, Any]) -> list[LabeledRow]:
    last = task["annotations"][-1:] or []
    found = []
    for annotation in last:
        choices = [part["value"]["choices"][0] for part in annotation["result"] if part["type"] == "choices"]
        if choices or annotation.get("was_cancelled"):
            label = str(choices[0]) if choices else None
            found.append(LabeledRow(str(task["data"]["id"]), label, chosen_by=_reason(task["data"])))
    return found


def _write_audacity(rows: Sequence[LabeledRow]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, row in enumerate(_with_times(rows, "Audacity"), 1):
            name = zipfile.ZipInfo(f"{number:06d}.txt")  # identifiers may be no names of files
            archive.writestr(name, f"0.000000\t{row.seconds:.6f}\t{_in_line(row.label or UNSURE)}\n")
        index = "".join(f"{number:06d}.txt\t{_in_line(row.id)}\n" for number, row in enumerate(rows, 1))
        archive.writestr(zipfile.ZipInfo("index.tsv"), index)
    return stream.getvalue()


def _read_audacity(data: bytes, name: str) -> list[LabeledRow]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            texts = {
                member.filename: archive.read(member).decode()
                for member in archive.infolist()
                if member.file_size <= MAX_MEMBER
            }
        entries = [line.split("\t", 1) for line in texts["index.tsv"].splitlines() if line]
        return [row for file, item in entries for row in _read_track(texts[file], item, name)]
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{name} is not an archive of label tracks with an index.tsv ({error}).") from error


def _read_track(text: str, item: str, name: str) -> list[LabeledRow]:
    labels = {line.split("\t", 2)[2].strip() for line in text.splitlines() if line.count("\t") >= 2}
    if len(labels) > 1:
        raise ValueError(f"{name}: row {item!r} has several labels, {', '.join(sorted(labels))}; keep one.")
    return [LabeledRow(item, None if label == UNSURE else label) for label in labels if label]


def _write_raven(rows: Sequence[LabeledRow]) -> bytes:
    lines = ["\t".join(RAVEN_COLUMNS)]
    for number, row in enumerate(_with_times(rows, "Raven"), 1):
        cells = (
            number,
            "Waveform 1",
            1,
            "0.000000",
            f"{row.seconds:.6f}",
            _in_line(row.id),
            _in_line(row.label or UNSURE),
        )
        lines.append("\t".join(map(str, cells)))
    return ("\n".join(lines) + "\n").encode()


def _read_raven(text: str, name: str) -> list[LabeledRow]:
    lines = list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted = {"Begin File", "Annotation"}
    if lines and not wanted <= lines[0].keys():
        raise ValueError(f"{name} needs the columns 'Begin File' and 'Annotation'.")
    found = []
    for line in lines:
        label = (line["Annotation"] or "").strip()
        if label:
            found.append(LabeledRow(line["Begin File"] or "", None if label == UNSURE else label))
    return found


def _with_times(rows: Sequence[LabeledRow], tool: str) -> Sequence[LabeledRow]:
    if any(row.seconds is None for row in rows):
        raise ValueError(f"Rows without a recording cannot be written for {tool}; use csv or labelstudio.")
    return rows


def _in_line(text: str) -> str:
    """A text without line breaks and tabs, which separate the cells of a label track."""
    if any(c in text for c in "\t\r\n"):
        raise ValueError(f"{text!r} has a tab or a line break, which this format cannot hold; use csv or labelstudio.")
    return text


@dataclass(frozen=True)
class Export:
    """How labels are written for a tool."""

    write: Callable[[Sequence[LabeledRow]], bytes]
    file_name: str
    media_type: str


EXPORTS = {
    "csv": Export(_write_csv, "labels.csv", "text/csv"),
    "labelstudio": Export(_write_label_studio, "labels.json", "application/json"),
    "audacity": Export(_write_audacity, "labels.zip", "application/zip"),
    "raven": Export(_write_raven, "labels.raven.txt", "text/plain"),
}
