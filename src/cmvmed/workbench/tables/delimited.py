"""Delimited text files: encoding, separator and decimal sign are found out.

Columns of plain numbers become numbers. All others stay text, because what a column holds is decided later, from all its
cells (:mod:`columns`). A line with too many or too few cells is an error that names the line.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cmvmed._optional import import_optional
from cmvmed.workbench.tables.columns import Frame, RawTable, is_number
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import ProjectError, abbreviate

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
SNIFFED_LINES = 200
BLOCK_BYTES = 1 << 25  # read at once; a line must fit
COMMENT_START = "#"
UNNAMED = "unnamed_"
PLAIN_NUMBER = r"^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"
WHOLE_DIGITS = 15  # whole numbers of so many digits are exact as floats
FORMULA = re.compile(r"'*[=+@\t\r-]")  # how a cell begins that a spreadsheet computes
LINE_END = re.compile(r"\r\n|\n|\r")
COMMA_NUMBER = re.compile(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
POINT_NUMBER = re.compile(r"[+-]?\d+(,\d{3})*\.\d+([eE][+-]?\d+)?")


class NotInParts(Exception):
    """Rows cannot be read some at a time, because what a cell means depends on others: all have to be read."""


@dataclass(frozen=True)
class DelimitedOptions:
    """What the user says of a file; None is found out.

    ``may_differ`` says that the words are about the training data, from which this file may differ: if its first line does
    not have the separator, separator and decimal sign are found out.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sampling_rate: float | None = None  # of HDF5 files that do not say it
    may_differ: bool = False
    names: tuple[str | None, ...] | None = ()  # columns of identifiers and labels; None for all


def read_delimited(path: Path, options: DelimitedOptions) -> RawTable:
    """Read a csv or tsv file; columns hold text or plain numbers."""
    content, encoding = _decoded(path, path.read_bytes(), options.encoding)
    return _parsed(path, content, encoding, options)[0]


def read_delimited_parts(path: Path, options: DelimitedOptions, size: int) -> Iterator[tuple[RawTable, int]]:
    """The lines of a file some at a time, as tables of about so many bytes, and how many bytes are read so far.

    What was found out from the first lines is taken to hold for all. ``NotInParts`` is raised where it does not.
    """
    header, separator, decimal, rest, done = "", "", "", b"", 0
    with path.open("rb") as file:
        block = file.read(size)
        while block:
            following = file.read(size)
            data, rest = _cut(rest + block) if following else (rest + block, b"")
            block = following
            if not data.strip():
                continue
            content, encoding = _decoded(path, data, options.encoding)
            if encoding not in ("utf-8", "utf-8-sig", options.encoding):
                raise NotInParts
            table, line = _parsed(path, f"{header}\n{content}" if header else content, encoding, options)
            if not header:
                header, separator, decimal = line, table.separator or _usual_separator(path), table.decimal
                options = replace(options, separator=separator, decimal=decimal, may_differ=False)
            elif table.decimal != decimal:
                raise NotInParts
            done += len(data)
            yield table, done
    if not header:  # no line, which is an error of the whole file
        raise NotInParts


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """The whole lines of some bytes, and what follows them; a line break between quotes ends no line."""
    end = data.rfind(b"\n") + 1
    if end == 0 or data.count(b'"', 0, end) % 2:
        raise NotInParts
    return data[:end], data[end:]


def _parsed(path: Path, content: str, encoding: str, options: DelimitedOptions) -> tuple[RawTable, str]:
    """The table and the line of its column names."""
    lines = [(number, line) for number, line in enumerate(LINE_END.split(content), 1) if line.strip()]
    if not lines:
        raise ProjectError(f"{path.name} is empty: a line of column names and at least one row are needed.")
    first = next((i for i, (_, line) in enumerate(lines) if not line.startswith(COMMENT_START)), 0)
    if options.may_differ and (options.separator or "") not in lines[first][1]:
        options = DelimitedOptions(encoding=options.encoding, names=options.names)
    separator = options.separator or _separator(path, [line for _, line in lines[first : first + SNIFFED_LINES]])
    n_comments = sum(line.count(separator) != lines[first][1].count(separator) for _, line in lines[:first])
    lines = lines[n_comments:]
    names = next(_split(path, io.StringIO(content[content.index(lines[0][1]) :], newline=""), separator))
    names = [name.strip().removeprefix(COMMENT_START).strip() for name in names]
    counted = any(names == [str(start + i) for i in range(len(names))] for start in (0, 1))  # names given by pandas
    if len(names) > 1 and not counted and all(is_number(name) for name in names):
        raise ProjectError(
            f"The first line of {path.name} holds numbers ({abbreviate(names)}), where column names are expected; add a line "
            "of names at the top."
        )
    if not counted and _is_first_row(path, names, separator, [line for _, line in lines[1:SNIFFED_LINES]]):
        raise ProjectError(
            f"The first line of {path.name} looks like a row ({abbreviate(names)}), where column names are expected; add a line "
            "of names at the top."
        )
    check_column_names(path.name, names)
    if len(lines) == 1:
        raise ProjectError(f"{path.name} has column names but no rows; check that the file was written completely.")
    cells = _cells(path, content, names, separator, skip=lines[0][0])
    given = options.decimal if options.decimal != separator else None
    decimal = given or _decimal(cells, separator)
    frame = _typed(cells, decimal, cells.column_names if options.names is None else options.names)
    row_lines = np.array([number for number, _ in lines[1:]], dtype=np.intp)
    table = RawTable(
        path.name,
        frame,
        decimal=decimal,
        separator=separator if separator != _usual_separator(path) else None,
        lines=row_lines if len(row_lines) == len(frame) else None,  # cells with line breaks: rows are numbered
        messages=tuple(_assumptions(path, separator, decimal, encoding, n_comments, options)),
    )
    return table, lines[0][1]


def _is_first_row(path: Path, names: Sequence[str], separator: str, lines: Sequence[str]) -> bool:
    """Whether the names are cells: some are numbers in no order, and the others words that occur below them.

    Numbers in order, such as frequencies, may be names.
    """
    numbers = [float(name) for name in names if is_number(name)]
    words = {position: name for position, name in enumerate(names) if name and not is_number(name)}
    if not numbers or not words:
        return False
    below = [cells for cells in _split(path, lines, separator) if len(cells) == len(names)]
    is_repeated = any(cells[position].strip() == name for cells in below for position, name in words.items())
    steps = np.diff(numbers)
    is_ordered = len(numbers) > 2 and bool((steps > 0).all() or (steps < 0).all())
    return is_repeated or not is_ordered


def check_column_names(source: str, names: Sequence[str]) -> None:
    """Raise for column names that are repeated."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if name in seen and name:
            raise ProjectError(
                f"{source} has two columns named {name!r} (positions {seen[name]} and {position}); rename one of them, "
                "because views choose columns by name."
            )
        seen[name] = position


def _decoded(path: Path, data: bytes, encoding: str | None) -> tuple[str, str]:
    """Text of a file's bytes and its encoding: UTF-8, UTF-16 with a mark, else Windows-1252 if nobody said otherwise."""
    if data.startswith(b"PK\x03\x04"):
        raise ProjectError(f"{path.name} is a spreadsheet or zip file; save it as csv (comma-separated values) first.")
    guess = encoding or ("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    try:
        text = data.decode(guess)
    except LookupError as error:
        raise ProjectError(
            f"encoding = {encoding!r} is not an encoding that Python knows; use for instance 'utf-8' or 'cp1252'."
        ) from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        if encoding is not None:
            raise ProjectError(
                f"{path.name} is not in the encoding {encoding!r} that the project file names (line {line}); remove "
                "the key encoding to have it found out, or correct it."
            ) from error
        text, guess = data.decode("cp1252", errors="replace"), "cp1252"
    if "\x00" in text:
        raise ProjectError(f"{path.name} is not a text file (it holds zero bytes); expected comma-separated values.")
    return text.removeprefix("\ufeff"), guess


def _separator(path: Path, sample: Sequence[str]) -> str:
    """The separator that splits the lines into the same number of cells, more than one; the comma if none does."""
    if path.suffix.lower() == ".tsv" and "\t" in sample[0]:
        return "\t"
    width: dict[str, tuple[float, int]] = {}
    for separator in SEPARATORS:
        counts = [len(cells) for cells in _split(path, sample, separator)]
        header = counts[0]
        width[separator] = (float(np.mean([count == header for count in counts])) if header > 1 else 0.0, header)
    best = max(width, key=lambda separator: width[separator])
    return best if width[best][0] > 0 else ","


def _split(path: Path, lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """The cells of some lines."""
    try:
        yield from csv.reader(lines, delimiter=separator)
    except csv.Error as error:
        raise ProjectError(
            f"{path.name} cannot be read as a table: {error}. Close double quotes, and leave out columns of texts of more than "
            f"{csv.field_size_limit():,} characters."
        ) from error


def _cells(path: Path, content: str, names: list[str], separator: str, skip: int) -> Any:
    """All cells after the header as texts of a pyarrow.Table, with a check of the number of cells of each line."""
    arrow = import_optional("pyarrow", "workbench", "Reading csv files")
    arrow_csv = import_optional("pyarrow.csv", "workbench", "Reading csv files")
    named = _named(names)
    problems: list[tuple[int, str]] = []

    def on_invalid(row: Any) -> str:
        problems.append((row.actual_columns, row.text))
        return "error"

    try:
        table = arrow_csv.read_csv(
            io.BytesIO(content.encode("utf-8")),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=BLOCK_BYTES, column_names=named, skip_rows=skip
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=on_invalid
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(named, arrow.string()), strings_can_be_null=False
            ),
        )
    except arrow.ArrowInvalid as error:
        if not problems:
            raise ProjectError(f"{path.name} cannot be read as a table: {error}") from error
        raise ProjectError(_ragged_message(path, content, names, separator, *problems[0])) from error
    return table


def _named(names: Sequence[str]) -> list[str]:
    """The names, with ``unnamed_<position>`` for a column without one."""
    return [name or f"{UNNAMED}{position}" for position, name in enumerate(names, 1)]


def _ragged_message(path: Path, content: str, names: list[str], separator: str, found: int, text: str) -> str:
    line = next((i for i, whole in enumerate(LINE_END.split(content), 1) if whole.strip() == text.strip()), None)
    where = "A line" if line is None else f"Line {line}"
    reason = (
        f"If a cell contains the separator {separator!r}, put the cell in double quotes"
        if found > len(names)
        else "Add the missing cells, empty if unknown"
    )
    return (
        f"{where} of {path.name} has {found} cells, but the line of column names has {len(names)}. {reason}, or set "
        "separator in the project file if another one is used."
    )


def _decimal(cells: Any, separator: str) -> str:
    """The decimal sign that more cells use.

    Between commas, only quoted cells can hold one, where it more often separates thousands: only what begins with 0 or
    has other than three digits counts.
    """
    texts = [text.strip() for column in cells.slice(0, SNIFFED_LINES).columns for text in column.to_pylist()]
    if separator == ",":
        texts = [text for text in texts if not THOUSANDS.fullmatch(text)]
    n_comma, n_point = (sum(bool(form.fullmatch(text)) for text in texts) for form in (COMMA_NUMBER, POINT_NUMBER))
    return "," if n_comma > n_point else "."


def escaped_cell(text: str) -> str:
    """A text that a spreadsheet shows and does not compute: a formula gets an apostrophe before it."""
    return f"'{text}" if FORMULA.match(text) and not is_number(text) else text


def restored_cell(text: str) -> str:
    """The inverse of :func:`escaped_cell`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def _typed(cells: Any, decimal: str, names: Sequence[str | None]) -> Frame:
    """The cells as a frame, in which columns of plain numbers are numbers; nameless empty columns are left out.

    ``names`` are columns in which 7.10 and 1E5 are names; whole numbers such as 7.0 stay numbers.
    """
    compute = import_optional("pyarrow.compute", "workbench", "Reading csv files")
    columns = {}
    for name in cells.column_names:
        trimmed = compute.utf8_trim_whitespace(cells[name])
        empty = compute.equal(trimmed, "")
        if not (name.startswith(UNNAMED) and compute.all(empty).as_py()):
            numbers = _numbers(cells[name], trimmed, empty, decimal)
            columns[name] = cells[name] if name in names and _are_names(cells[name], numbers) else numbers
    return import_optional("pyarrow", "workbench", "Reading csv files").table(columns).to_pandas()


def _numbers(texts: Any, trimmed: Any, empty: Any, decimal: str) -> Any:
    """A column of plain numbers as such, with null for empty cells; any other column as it is.

    Numbers must not lose what may matter: 007 stays text, and whole numbers become whole numbers, so that identifiers and
    labels are still written as in the file.
    """
    arrow = import_optional("pyarrow", "workbench", "Reading csv files")
    compute = import_optional("pyarrow.compute", "workbench", "Reading csv files")
    form = PLAIN_NUMBER.replace("[.]", f"[{decimal}]")
    if (
        compute.all(empty).as_py()
        or not compute.all(compute.or_(empty, compute.match_substring_regex(trimmed, form))).as_py()
    ):
        return texts
    points = compute.replace_substring(trimmed, ",", ".") if decimal == "," else trimmed
    known = compute.if_else(empty, None, points)
    is_whole = not compute.any(compute.match_substring_regex(points, r"[.eE]")).as_py()
    if not is_whole:
        return compute.cast(known, arrow.float64())
    if compute.max(compute.utf8_length(points)).as_py() > WHOLE_DIGITS:
        return texts
    whole = compute.cast(known, arrow.int64())
    return compute.cast(whole, arrow.float64()) if compute.any(empty).as_py() else whole


def _are_names(texts: Any, numbers: Any) -> bool:
    """Whether a column of plain numbers has fractions or exponents, such as the well 1E5 of a plate."""
    arrow = import_optional("pyarrow", "workbench", "Reading csv files")
    compute = import_optional("pyarrow.compute", "workbench", "Reading csv files")
    if numbers.type != arrow.float64():
        return False
    has_exponents = compute.any(compute.match_substring_regex(texts, "[eE]")).as_py()
    return bool(has_exponents or compute.any(compute.not_equal(compute.floor(numbers), numbers)).as_py())


def _assumptions(
    path: Path, separator: str, decimal: str, encoding: str, n_comments: int, options: DelimitedOptions
) -> list[str]:
    said = []
    if options.separator is None and separator != _usual_separator(path):
        name = SEPARATORS.get(separator, separator)
        said.append(f"{path.name}: cells are separated by a {name} ({toml_line('separator', separator)}).")
    if options.decimal is None and decimal == ",":
        key = "" if separator == "," else ' (decimal = ",")'
        said.append(f"{path.name}: numbers have a decimal comma{key}.")
    if options.encoding is None and encoding not in ("utf-8", "utf-8-sig"):
        said.append(f"{path.name}: the text is not UTF-8 and was read as {encoding} (encoding = {encoding!r}).")
    if n_comments:
        said.append(f"{path.name}: {n_comments} lines at the top that begin with {COMMENT_START!r} are left out.")
    return said


def _usual_separator(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","
