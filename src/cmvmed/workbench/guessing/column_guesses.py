"""What the columns of a table are: identifiers, labels and what marks unlabeled rows, groups, and views."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from os import path as os_path
from pathlib import Path

import numpy as np

from cmvmed.data.labels import UNLABELED_WORDS
from cmvmed.pages.formatting import plural
from cmvmed.recordings import SensorSignals
from cmvmed.workbench.project_file import AUTO, DataSettings, ProjectSettings, ViewSettings
from cmvmed.workbench.tables.columns import RawTable, Series, as_text, missing_cells
from cmvmed.workbench.tables.delimited import DelimitedOptions
from cmvmed.workbench.tables.read import TABLE_FORMATS, is_pattern, read_table
from cmvmed.workbench.tables.recording_rows import channel_columns
from cmvmed.workbench.tables.row_labels import LABEL_NAMES, likely_markers, read_label_values
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import ProjectError, abbreviate

MAX_CLASSES = 50
MAX_GUESSED_CLASSES = 20  # of a column that only looks like labels
SEPARATED = re.compile(r"[_.\-/: ]+")
SURE_ID_WORDS = ("id", "uuid", "key")  # never measurements
ID_WORDS = ("id", "uuid", "key", "index", "idx", "name", "filename", "file", "sample", "window")
GROUP_WORDS = ("subject", "participant", "patient", "person", "user", "session", "recording", "group", "animal", "speaker",
               "site", "day", "batch", "device", "run", "trial")  # fmt: skip
TIME_WORDS = ("time", "timestamp", "datetime", "date", "t", "epoch")
MAX_VIEWS = 24  # more prefixes than this are no sensors


@dataclass(frozen=True)
class Guess:
    r"""Something that was guessed, and the line of the project file that says it.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import init
    >>> init("windows.csv").guesses[0].line
    'id = "id"'
    """

    what: str
    line: str


@dataclass(frozen=True)
class Guesses:
    r"""A guessed project.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import init
    >>> guesses = init("windows.csv")
    >>> guesses.settings.data.labels, "[views.acc]" in guesses.text
    ('label', True)
    """

    settings: ProjectSettings
    guesses: tuple[Guess, ...]
    messages: tuple[str, ...]  # what was assumed when files were read
    text: str  # of the project file


Found = tuple[ProjectSettings, list[Guess], list[str]]  # with messages of reading files


def relative_path(path: Path, folder: Path) -> str:
    """The path as the project file writes it: relative, with forward slashes, if that is not longer."""
    relative = os_path.relpath(path.resolve() if not is_pattern(str(path)) else Path.cwd() / path, folder)
    return Path(relative).as_posix()


def read_guessed(path: Path) -> RawTable:
    """A table, read without knowing its separator and decimal sign."""
    return read_table(path, DelimitedOptions())


def guess_id(table: RawTable) -> str | None:
    """The column whose cells are all different, and that is named like an identifier or counts the rows."""
    candidates = []
    for position, column in enumerate(map(str, table.frame.columns)):
        series = table.frame[column]
        if missing_cells(series).any() or series.nunique() < table.n_rows:
            continue
        kind = table.kinds[column]
        named = _last_word(column) in ID_WORDS or column.startswith("unnamed_")
        whole = kind == "number" and bool(series.astype(str).str.fullmatch(r"\s*\d+\s*").all())
        counted = whole and np.ptp(series.astype(int)) == table.n_rows - 1
        first = position == 0 and (kind == "identifier" or counted)
        if first or (named and (whole or kind in ("identifier", "category", "text"))):
            candidates.append((not named, position, column))
    return min(candidates)[2] if candidates else None


def repeated_ids(table: RawTable, taken: Sequence[str]) -> dict[str, Guess]:
    """Columns that are named like an identifier and repeat some of their cells: neither identifiers nor measurements."""
    found = {}
    for column in map(str, table.frame.columns):
        cells = table.frame[column].astype(object).map(as_text)
        named = _last_word(column) in SURE_ID_WORDS or (
            _last_word(column) in ID_WORDS and 2 * cells.nunique() > len(cells)
        )
        repeated = cells[cells.duplicated()]
        if column in taken or not named or table.kinds[column] == "empty" or repeated.empty:
            continue
        count = plural(len(repeated), "row repeats", "rows repeat")
        what = (
            f"{column!r} is named like an identifier, but {count} one, such as {repeated.iloc[0]!r}: it is not "
            "learned from, and rows are numbered. If rows of one value belong together, write it as groups"
        )
        found[column] = Guess(what, toml_line("ignore", [column]))
    return found


def _last_word(column: str) -> str:
    return SEPARATED.split(column.casefold())[-1]


def guess_labels(table: RawTable, taken: Sequence[str]) -> str | None:
    """The column that is named like a label, or that looks most like one: see :func:`_looks_like_labels`."""
    best: tuple[float, str] | None = None
    for column in map(str, table.frame.columns):
        if column in taken:
            continue
        series = table.frame[column]
        if table.kinds[column] == "unusable" or series.nunique() > MAX_CLASSES + 1:
            continue
        texts = series.astype(object).map(as_text).where(~missing_cells(series, frozenset({""})), "")
        distinct = set(texts) - {""}
        words = SEPARATED.split(column.casefold())
        named = column.casefold() in LABEL_NAMES or any(word in LABEL_NAMES for word in words if len(word) > 1)
        if not 1 <= len(distinct) <= min(MAX_CLASSES, max(2, table.n_rows // 2)):
            continue
        score = 3.0 * named + _looks_like_labels(table, column, texts)
        if score > 0 and (best is None or score > best[0]):
            best = (score, column)
    return None if best is None else best[1]


def _looks_like_labels(table: RawTable, column: str, texts: Series) -> float:
    """Evidence that cells are labels: markers or empty cells, -1 beside other whole numbers, or few words in all rows."""
    distinct = set(texts) - {""}
    markers = {text for text in distinct if text.casefold() in UNLABELED_WORDS}
    is_mostly_open = int((texts == "").sum()) + int(texts.isin(markers).sum()) > len(texts) / 2
    if table.kinds[column] in ("category", "boolean", "text"):
        is_group = bool({SEPARATED.split(column.casefold())[0], _last_word(column)} & {*GROUP_WORDS, *ID_WORDS})
        few = 2 <= len(distinct) <= MAX_GUESSED_CLASSES and not is_group
        is_only = [kind for name, kind in table.kinds.items() if table.frame[name].nunique() > 1].count("category") == 1
        is_last = column == str(table.frame.columns[-1])
        is_complete = few and table.kinds[column] == "category" and (is_only or is_last)
        return 1.0 * bool(markers) + 1.0 * is_mostly_open + 0.5 * is_complete
    whole = {text for text in distinct if re.fullmatch(r"-1|\d+", text)}
    if whole != distinct or not 2 <= len(distinct) <= MAX_GUESSED_CLASSES:
        return 0.0
    return 1.0 * is_mostly_open + 0.9 * ("-1" in distinct)


def guess_groups(table: RawTable, taken: Sequence[str]) -> str | None:
    """The column that is named like a group, and whose values repeat."""
    for column in map(str, table.frame.columns):
        words = SEPARATED.split(column.casefold())
        if column in taken or not any(word in GROUP_WORDS for word in (words[0], words[-1])) or len(words) > 2:
            continue
        if 2 <= table.frame[column].nunique() <= table.n_rows / 2:
            return column
    return None


def guess_ignored(table: RawTable, taken: Sequence[str]) -> list[str]:
    """Times, which order rows, and further identifiers."""
    ignored = []
    for column in map(str, table.frame.columns):
        if column in taken:
            continue
        kind = table.kinds[column]
        is_time = kind == "date" or (kind == "number" and column.casefold() in TIME_WORDS)
        if is_time or kind in ("identifier", "unusable"):
            ignored.append(column)
    return ignored


def with_markers(table: RawTable, data: DataSettings) -> tuple[DataSettings, list[Guess]]:
    """Find the values of the column of labels that mark unlabeled rows."""
    values = read_label_values(table.frame[data.labels], replace(data, unlabeled=("",)))
    sure, possible = likely_markers(values.counts, data)
    most = [label for label in possible if label == "-1" or values.counts[label] > table.n_rows / 2]
    markers = ["", *sure, *most] if values.marked else [*sure, *most]
    data = replace(data, unlabeled=tuple(markers or [""]))
    n_unlabeled = sum(values.marked.values()) + sum(values.counts[label] for label in (*sure, *most))
    what = f"{n_unlabeled} of {plural(table.n_rows, 'row')} are not labeled: their label is {abbreviate(markers)}"
    return data, [Guess(what, toml_line("unlabeled", data.unlabeled))] if n_unlabeled else []


def with_label_file(
    place: Path, folder: Path, data: DataSettings, guesses: list[Guess], exclude: Sequence[Path]
) -> tuple[DataSettings, list[Guess]]:
    """Take a file named labels.* beside the data, if there is one."""
    beside = sorted(file for file in place.iterdir() if file.suffix.lower() in TABLE_FORMATS and file not in exclude)
    found = next((file for file in beside if "label" in file.stem.casefold()), None)
    if found is None:
        line = toml_line("labels", data.labels or "labels.csv")
        what = "no column or file of labels was found: write labels.csv with id and label, or name the column"
        if beside:
            what += (
                f". {beside[0].name} needs columns named id and label, or recording, start, end and label for parts of "
                "recordings"
            )
        return (data, guesses) if data.labels else (data, [*guesses, Guess(what, line)])
    name = relative_path(found, folder)
    table = read_guessed(found)
    others = [column for column in map(str, table.frame.columns) if column.casefold() not in ("id", data.id)]
    label = guess_labels(table, []) or others[-1]
    needs_name = label.casefold() not in LABEL_NAMES and len(others) > 1
    column = replace(data, labels=label, label_column=label if needs_name else None)
    marked, about = with_markers(table, column)
    kept = [guess for guess in guesses if not guess.line.startswith(("labels", "unlabeled"))]
    said = [Guess(f"the labels are in the column {label!r} of the file {name}", toml_line("labels", name))]
    if needs_name:
        said.append(Guess(f"of {abbreviate(others)} it looks like labels", toml_line("label_column", label)))
    return replace(marked, labels=name), [*kept, *said, *about]


def guess_views(table: RawTable, data: DataSettings) -> tuple[DataSettings, tuple[ViewSettings, ...], list[Guess]]:
    """Columns of the same sensor, with the same prefix, or of the same kind; each column of texts is a view.

    The settings also ignore empty columns, and columns of no sensor that are constant or hold words.
    """
    kinds = table.kinds
    taken = {data.id, data.labels, data.groups, data.time, *data.ignore}
    columns = [column for column in map(str, table.frame.columns) if column not in taken]
    texts = [column for column in columns if kinds[column] == "text"]
    empty = [column for column in columns if kinds[column] == "empty"]
    others = [column for column in columns if kinds[column] not in ("text", "identifier", "unusable")]
    sensors = _by_sensor(table)
    groups = None if sensors else _by_prefix([*others, *table.signals], empty)
    left_out: list[str] = []
    how = "by prefix"
    if groups is None:
        numbers = [column for column in others if kinds[column] in ("number", "date")]
        groups = {"numbers": numbers, "categories": [c for c in others if c not in (*numbers, *empty)]}
        groups |= sensors or {name: [name] for name in table.signals}
        how = "by sensor" if sensors and not others else "by what the columns hold"
    else:
        alone = {members[0]: name for name, members in groups.items() if len(members) == 1}
        left_out = [column for column, name in alone.items() if _is_aside(table, column, has_prefix=name != column)]
    about = _about_empty(groups, empty) + _about_left_out(left_out) + _about_channels(table, groups)
    dropped = {*empty, *left_out}
    kept = {name: [column for column in members if column not in dropped] for name, members in groups.items()}
    groups = _with_view_names([*kept.items(), *((column, [column]) for column in texts)])
    if not groups:
        raise ProjectError(
            f"{table.source} has no column that can be learned from: besides id, labels and groups it has "
            f"{abbreviate([*data.ignore, *empty, *left_out]) or 'nothing'}. Check the separator and the file."
        )
    data = replace(data, ignore=(*data.ignore, *(column for column in columns if column in dropped)))
    usable = [*(column for column in columns if column not in dropped), *table.signals]
    signals = channel_columns(table, data, data.id) if data.time is not None else table.signals
    views = tuple(
        ViewSettings(name, columns=_patterns(members, usable), features=_features_of(members, signals))
        for name, members in groups.items()
    )
    shown = ", ".join(f"{name} ({_members_shown(name, members)})" for name, members in groups.items())
    first = views[0]
    line = toml_line("columns", first.columns[0] if len(first.columns) == 1 else first.columns).partition("\n")[0]
    said = Guess(f"{plural(len(views), 'view')} {how}: {shown}", f"[views.{first.name}] {line}")
    return data, views, [said, *about]


def _is_aside(table: RawTable, column: str, *, has_prefix: bool) -> bool:
    """Whether a single column says how rows came about rather than what was measured: a constant, or words."""
    if column in table.signals or table.kinds[column] == "empty":
        return False
    is_word = table.kinds[column] == "category" and not has_prefix
    return is_word or table.frame[column].nunique() < 2


def _about_empty(groups: Mapping[str, Sequence[str]], empty: Sequence[str]) -> list[Guess]:
    """What is said of empty columns: those of a whole sensor first."""
    line = toml_line("ignore", list(empty))
    whole = {name: members for name, members in groups.items() if len(members) > 1 and set(members) <= set(empty)}
    said = [
        Guess(f"all columns of {name!r} are empty ({abbreviate(members)}), so it is not a view: was it recorded?", line)
        for name, members in whole.items()
    ]
    single = [column for column in empty if not any(column in members for members in whole.values())]
    verb = "is" if len(single) == 1 else "are"
    return [*said, *([Guess(f"{abbreviate(single)} {verb} empty and left out", line)] if single else [])]


def _about_left_out(columns: Sequence[str]) -> list[Guess]:
    if not columns:
        return []
    verb = "is" if len(columns) == 1 else "are"
    what = (
        f"{abbreviate(columns)} {verb} not learned from: constant, or words, and of no sensor by the name. To learn from one, "
        f"remove it here and add [views.NAME] with columns = {columns[0]!r}"
    )
    return [Guess(what, toml_line("ignore", list(columns)))]


def _about_channels(table: RawTable, groups: Mapping[str, Sequence[str]]) -> list[Guess]:
    """That channels of one array became views of their own, which only their owner can know to be right."""
    arrays: dict[str, list[str]] = {}
    for name in table.signals:
        arrays.setdefault(_prefix(name, 1), []).append(name)
    found = []
    for array, channels in arrays.items():
        if len(channels) > 1 and all([channel] in groups.values() for channel in channels):
            what = (
                f"each of the {len(channels)} channels of {array!r} is a view, as if it were a sensor. Channels of one sensor are "
                f"one view: write columns = {abbreviate(channels[:2])} in it, as a list, and remove the others"
            )
            found.append(Guess(what, f"[views.{view_name(channels[0])}] {toml_line('columns', channels[0])}"))
    return found


def _members_shown(name: str, members: Sequence[str]) -> str:
    """How many columns a view has, and which, if its name does not say it."""
    count = plural(len(members), "column")
    return count if all(member.startswith(name) for member in members) else f"{count}: {abbreviate(members)}"


def _features_of(columns: Sequence[str], signals: Container[str]) -> str | None:
    """Features of a view, if it has signals."""
    return AUTO if any(column in signals for column in columns) else None


def _by_sensor(table: RawTable) -> dict[str, list[str]]:
    """The channels of each sensor, if the file says which channels belong together."""
    sensors: dict[str, list[str]] = {}
    for name, signal in table.signals.items():
        if isinstance(signal.items, SensorSignals):
            sensors.setdefault(signal.items.name, []).append(name)
    return sensors


def _with_view_names(groups: Sequence[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Columns by names that a section can have; groups that get the same name become one."""
    named: dict[str, list[str]] = {}
    for name, members in groups:
        if members:
            named.setdefault(view_name(name), []).extend(members)
    return named


def _by_prefix(columns: Sequence[str], empty: Sequence[str]) -> dict[str, list[str]] | None:
    """Columns by the first word of their names, if these are as many as a machine has sensors.

    A column of no sensor is alone, under its own name. Empty columns help to find the sensors of others.
    """
    for depth in (1, 2):
        groups: dict[str, list[str]] = {}
        for column in columns:
            groups.setdefault(_prefix(column, depth), []).append(column)
        shared = {name: members for name, members in groups.items() if len(members) > 1 or SEPARATED.search(members[0])}
        rest = [column for name, members in groups.items() if name not in shared for column in members]
        n_rest = sum(column not in empty for column in rest)
        if 2 <= len(shared) <= MAX_VIEWS and n_rest <= 0.5 * len(columns) and _is_repeated(shared, columns):
            return shared | {column: [column] for column in rest}
    return None


def _is_repeated(groups: dict[str, list[str]], columns: Sequence[str]) -> bool:
    """Whether prefixes join columns: on average at least two, or the same endings come under each prefix."""
    endings = [{column[len(name) :] for column in members} for name, members in groups.items()]
    return len(columns) >= 2 * len(groups) or all(ending == endings[0] for ending in endings)


def _prefix(column: str, depth: int) -> str:
    words = [word for word in SEPARATED.split(column) if word]
    if len(words) > depth:
        end = 0
        for word in words[:depth]:
            end = column.index(word, end) + len(word)
        return column[:end]
    letters = re.match(r"^([^\d]+)\d+$", column)
    return letters[1] if letters else column


def _patterns(members: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """A pattern that matches exactly these columns, or their names."""
    prefix = _common_start(members) if len(members) > 1 else ""
    words = SEPARATED.search(prefix)
    candidates = [prefix]
    if words:
        candidates.insert(0, prefix[: [m.end() for m in SEPARATED.finditer(prefix)][-1]])
    for candidate in candidates:
        plain = candidate and not is_pattern(candidate)
        if plain and [column for column in columns if column.startswith(candidate)] == list(members):
            return (f"{candidate}*",)
    return tuple(members)


def _common_start(names: Sequence[str]) -> str:
    """The longest text that all names begin with."""
    first, last = min(names), max(names)
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def view_name(text: str) -> str:
    """A text as the name of a view, which a section of the project file can have."""
    return re.sub(r"[^\w-]+", "_", text).strip("_") or "view"
