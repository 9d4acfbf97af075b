"""A first project file from the data: views, labels, identifiers and groups are guessed, and every guess is said."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from os import path as os_path
from pathlib import Path

import numpy as np

from cmvmed.data.labels import UNLABELED_WORDS
from cmvmed.recordings import SensorSignals
from cmvmed.recordings.audio_files import audio_header
from cmvmed.recordings.sound_files import sound_files
from cmvmed.workbench.column_kinds import column_kind, missing_cells
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.encoders import as_text
from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.label_values import LABEL_NAMES, likely_markers, read_label_values
from cmvmed.workbench.project_file import (
    AUTO,
    DEFAULT_NAME,
    LABEL_COLUMN,
    DataSettings,
    ProjectSettings,
    ViewSettings,
    WindowSettings,
)
from cmvmed.workbench.readers import TABLE_FORMATS, is_pattern, read_table, table_files
from cmvmed.workbench.recording_guesses import (
    LongColumns,
    annotation_file,
    annotation_windows,
    annotations_of_edf,
    long_columns,
    recordings_in,
    signals_in,
    window_of,
)
from cmvmed.workbench.recording_sources import channel_columns
from cmvmed.workbench.sound_folders import FOLDER_COLUMN, match_files
from cmvmed.workbench.toml_text import project_text, toml_line
from cmvmed.workbench.user_errors import ProjectError, abbreviate, plural

__all__ = ["Guess", "Guesses", "init"]

MAX_VIEWS = 24  # more prefixes than this are no sensors
MAX_CLASSES = 50
SEPARATED = re.compile(r"[_.\-/: ]+")
ID_WORDS = ("id", "uuid", "key", "index", "idx", "name", "filename", "file", "sample", "window")
GROUP_WORDS = ("subject", "participant", "patient", "person", "user", "session", "recording", "group", "animal", "speaker",
               "site", "day", "batch", "device", "run", "trial")  # fmt: skip
TIME_WORDS = ("time", "timestamp", "datetime", "date", "t", "epoch")


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


def init(path: str | PathLike[str], project: str | PathLike[str] = DEFAULT_NAME) -> Guesses:
    r"""Look at data and guess a project file; nothing is written.

    Parameters
    ----------
    path : path
        File, folder or pattern of files.
    project : path
        Where the project file is to be: paths in it are relative to its folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import init
    >>> guesses = init("windows.csv")
    >>> _ = Path("cmvmed.toml").write_text(guesses.text)
    >>> [view.name for view in guesses.settings.views]
    ['acc', 'gyr']
    """
    place = Path(path)
    if not is_pattern(str(place)) and not place.exists():
        table_files(place)  # raises
    folder = Path(project).resolve().parent
    if place.is_file() and recordings_in(place):
        found = _guess_recordings(place, folder)
    elif place.is_dir() and sound_files(place):
        found = _guess_sound(place, folder)
    elif place.is_dir() and recordings_in(place):
        found = _guess_recordings(place, folder)
    elif place.is_dir():
        found = _guess_folder(place, folder)
    else:
        found = _guess_file(place, folder)
    settings, guesses, messages = found
    if settings.windows is not None or any(view.files is not None for view in settings.views):
        settings = replace(settings, views=tuple(replace(view, features=AUTO) for view in settings.views))
    header = ["Written by `cmvmed init`. `cmvmed check` shows what looks wrong; paths are relative to this file."]
    return Guesses(settings, tuple(guesses), tuple(messages), project_text(settings, header))


_Found = tuple[ProjectSettings, list[Guess], list[str]]


@dataclass(frozen=True)
class _Looked:
    """A table and the kinds of its columns."""

    table: RawTable
    kinds: Mapping[str, str]


def _look(path: Path) -> _Looked:
    table = read_table(path, DelimitedOptions())
    kinds = {str(name): column_kind(table.frame[name], table.decimal) for name in table.frame.columns}
    return _Looked(table, kinds)


def _guess_file(path: Path, folder: Path) -> _Found:
    rows = _look(path)
    samples = long_columns(rows.table, rows.kinds, _guess_id(rows))
    if samples is not None:
        return _guess_long_table(rows, samples, _relative(path, folder))
    data, guesses = _guess_data(rows, _relative(path, folder))
    if data.labels is None:
        data, guesses = _with_label_file(path.parent, folder, data, guesses, exclude=[path])
    views, about_views = _guess_views(rows, data)
    return ProjectSettings(data, views), [*guesses, *about_views], list(rows.table.messages)


def _guess_long_table(rows: _Looked, samples: LongColumns, path: str) -> _Found:
    """A table with one row per sample: cases if each has one label, else recordings to be cut into windows."""
    table = rows.table
    taken = [name for name in (samples.case, samples.time) if name is not None]
    labels = _guess_labels(rows, taken)
    groups = _guess_groups(rows, [*taken, labels or ""])
    if labels is None:  # the only column of words beside samples says what happened
        words = [name for name, kind in rows.kinds.items() if kind == "category" and name not in (*taken, groups)]
        labels = words[0] if len(words) == 1 else None
    data = DataSettings(path=path, id=samples.case, labels=labels, groups=groups, time=samples.time)
    what = f"each row is a sample at the time {samples.time!r}"
    guesses = [Guess(what, toml_line("time", samples.time))]
    if samples.case is not None:
        guesses.append(Guess(f"{samples.case!r} names what the samples belong to", toml_line("id", samples.case)))
    if labels is not None:
        data, about = _with_markers(table, data)
        guesses += [Guess(f"{labels!r} holds the labels", toml_line("labels", labels)), *about]
    windows = _guess_windows(table, samples, data)
    if windows is not None:
        others = [
            str(name)
            for name in table.frame.columns
            if name not in (*channel_columns(table, data, samples.case), *taken, labels, groups)
        ]
        data = replace(data, ignore=tuple(others))
        said = f"rows are windows of {windows.length:g} s, because labels change within recordings"
        said = said if labels is not None and samples.case is not None else f"rows are windows of {windows.length:g} s"
        guesses.append(Guess(said, toml_line("length", windows.length)))
    views, about_views = _guess_views(rows, data)
    return ProjectSettings(data, views, windows=windows), [*guesses, *about_views], list(table.messages)


def _guess_windows(table: RawTable, samples: LongColumns, data: DataSettings) -> WindowSettings | None:
    """Windows, unless each case has one label."""
    period = float(np.median(np.diff(samples.seconds)))
    if data.labels is None:
        return window_of([], period) if samples.case is None else None
    cells = table.frame[data.labels].astype(object).map(as_text)
    case = cells * 0 if samples.case is None else table.frame[samples.case].astype(str)
    if samples.case is not None and cells.groupby(case, sort=False).nunique().max() <= 1:
        return None
    run = ((cells != cells.shift()) | (case != case.shift())).cumsum().to_numpy()
    labeled = ~cells.isin([*data.unlabeled, ""]).to_numpy()
    return window_of((np.bincount(run[labeled]) * period).tolist(), period)


def _guess_recordings(path: Path, folder: Path) -> _Found:
    """Files that are long recordings, with annotations beside or in them if there are any."""
    files = recordings_in(path)
    signals = signals_in(files)
    suffix, place = files[0].suffix, path if path.is_dir() else path.parent
    below = sorted({file.parent.name for file in files if file.parent != place})
    if below:
        where = _relative(path, folder)
        views = tuple(ViewSettings(_view_name(name), files=f"{name}/*{suffix}") for name in below)
        what = f"each of the {len(below)} sub-folders is a view; recordings of the same name belong together"
    else:
        where = _relative(path, folder) + (f"/*{suffix}" if path.is_dir() else "")
        views = tuple(ViewSettings(_view_name(name), columns=(name,)) for name in signals)
        what = f"{plural(len(files), 'long recording')} with {plural(len(views), 'signal')}, each a view"
    windows, about = _annotated(place, folder, window_of([], 1 / min(signals.values())))
    durations = annotations_of_edf(files) if windows.annotations is None else []
    if durations:
        windows = window_of(durations, 1.0, annotations=where)
        said = f"the recordings hold annotations; rows are windows of {windows.length:g} s"
        about = [Guess(said, toml_line("length", windows.length))]
    data = DataSettings(path=where, labels=LABEL_COLUMN if windows.annotations else None)
    return ProjectSettings(data, views, windows=windows), [Guess(what, toml_line("path", where)), *about], []


def _annotated(place: Path, folder: Path, otherwise: WindowSettings) -> tuple[WindowSettings, list[Guess]]:
    """Windows with the annotations in a folder, if there are any."""
    found = annotation_file(place)
    if found is None:
        what = "no annotations were found: write annotations.csv with recording, start, end and label"
        return otherwise, [
            Guess(what, toml_line("annotations", "annotations.csv")),
            Guess(f"rows are windows of {otherwise.length:g} s", toml_line("length", otherwise.length)),
        ]
    name = _relative(found, folder)
    windows = annotation_windows(found, name)
    return windows, [
        Guess(f"{name} says from when to when what was observed", toml_line("annotations", name)),
        Guess(f"rows are windows of {windows.length:g} s", toml_line("length", windows.length)),
    ]


def _guess_folder(path: Path, folder: Path) -> _Found:
    """A folder of tables: one table, parts of one table, or one table per view."""
    label_files = [file for file in table_files(path) if "label" in file.stem.casefold()]
    files = [file for file in table_files(path) if file not in label_files] or label_files
    tables = [_look(file) for file in files]
    if len(files) == 1:
        data, guesses = _guess_data(tables[0], _relative(files[0], folder))
        views, about_views = _guess_views(tables[0], data)
    else:
        data, guesses, views, about_views = _guess_several(path, folder, files, tables)
    if data.labels is None or (label_files and files != label_files):
        data, guesses = _with_label_file(path, folder, data, guesses, exclude=files)
    return (
        ProjectSettings(data, views),
        [*guesses, *about_views],
        [said for rows in tables for said in rows.table.messages],
    )


def _guess_several(
    path: Path, folder: Path, files: Sequence[Path], looked: Sequence[_Looked]
) -> tuple[DataSettings, list[Guess], tuple[ViewSettings, ...], list[Guess]]:
    tables = [rows.table for rows in looked]
    first = tables[0]
    ids = [_guess_id(rows) for rows in looked]
    alike = all(table.names == first.names for table in tables)
    same_id = len(set(ids)) == 1 and ids[0] is not None
    keys = [_keys(table, ids[0]) for table in tables] if same_id else []
    overlap = bool(keys) and len(set.intersection(*keys)) > 0
    same_rows = len({table.n_rows for table in tables}) == 1
    if alike and not overlap and not (same_rows and not same_id):
        suffix = files[0].suffix
        together = _look(path / f"*{suffix}")
        data, guesses = _guess_data(together, _relative(path, folder) + f"/*{suffix}")
        views, about = _guess_views(together, data)
        what = f"the {len(files)} files have the same columns and different rows: they are one table"
        return data, [Guess(what, toml_line("path", data.path)), *guesses], views, about
    data, guesses = _guess_data(looked[0], None)
    for rows in looked[1:]:
        if data.labels is None:
            data = replace(data, labels=_guess_labels(rows, [data.id or ""]))
    own = tuple(
        ViewSettings(_view_name(file.stem), path=_relative(file, folder), features=AUTO if table.signals else None)
        for file, table in zip(files, tables, strict=True)
    )
    how = f"rows with the same {ids[0]!r} belong together" if overlap else "rows belong together in their order"
    said = Guess(f"each of the {len(files)} files is a view; {how}", toml_line("path", own[0].path))
    if len({(table.separator, table.decimal) for table in tables}) > 1:
        data = replace(data, separator=None, decimal=None)
    return replace(data, ignore=()), guesses, own, [said]


def _guess_data(rows: _Looked, path: str | None) -> tuple[DataSettings, list[Guess]]:
    guesses: list[Guess] = []
    table = rows.table
    identifier = _guess_id(rows)
    labels = _guess_labels(rows, [identifier or ""])
    groups = _guess_groups(rows, [identifier or "", labels or ""])
    decimal = None if table.decimal == "." else table.decimal
    data = DataSettings(
        path=path, id=identifier, labels=labels, groups=groups, separator=table.separator, decimal=decimal
    )
    if identifier is not None:
        guesses.append(Guess(f"{identifier!r} identifies a row", toml_line("id", identifier)))
    if labels is not None:
        data, about = _with_markers(table, replace(data, labels=labels))
        guesses += [Guess(f"{labels!r} holds the labels", toml_line("labels", labels)), *about]
    if groups is not None:
        n_groups = table.frame[groups].nunique()
        guesses.append(Guess(f"{groups!r} holds {plural(n_groups, 'group')} of rows", toml_line("groups", groups)))
    ignored = _guess_ignored(rows, [name for name in (identifier, labels, groups) if name is not None])
    if ignored:
        data = replace(data, ignore=tuple(ignored))
        what = f"{abbreviate(ignored)} {'is' if len(ignored) == 1 else 'are'} not learned from (a time, an identifier or empty)"
        guesses.append(Guess(what, toml_line("ignore", ignored)))
    return data, guesses


def _with_markers(table: RawTable, data: DataSettings) -> tuple[DataSettings, list[Guess]]:
    values = read_label_values(table.frame[data.labels], replace(data, unlabeled=("",)))
    sure, possible = likely_markers(values.counts, data)
    most = [label for label in possible if values.counts[label] > table.n_rows / 2]
    markers = ["", *sure, *most] if values.marked else [*sure, *most]
    data = replace(data, unlabeled=tuple(markers or [""]))
    n_unlabeled = sum(values.marked.values()) + sum(values.counts[label] for label in (*sure, *most))
    what = f"{n_unlabeled} of {plural(table.n_rows, 'row')} are not labeled: their label is {abbreviate(markers)}"
    return data, [Guess(what, toml_line("unlabeled", data.unlabeled))] if n_unlabeled else []


def _with_label_file(
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
    name = _relative(found, folder)
    rows = _look(found)
    table = rows.table
    others = [column for column in map(str, table.frame.columns) if column.casefold() not in ("id", data.id)]
    label = _guess_labels(rows, []) or others[-1]
    needs_name = label.casefold() not in LABEL_NAMES and len(others) > 1
    column = replace(data, labels=label, label_column=label if needs_name else None)
    marked, about = _with_markers(table, column)
    kept = [guess for guess in guesses if not guess.line.startswith(("labels", "unlabeled"))]
    said = Guess(f"the labels are in the file {name}", toml_line("labels", name))
    return replace(marked, labels=name), [*kept, said, *about]


def _guess_id(rows: _Looked) -> str | None:
    table = rows.table
    candidates = []
    for position, column in enumerate(map(str, table.frame.columns)):
        series = table.frame[column]
        if missing_cells(series).any() or series.nunique() < table.n_rows:
            continue
        kind = rows.kinds[column]
        words = SEPARATED.split(column.casefold())
        named = words[-1] in ID_WORDS or column.casefold() in ID_WORDS or column.startswith("unnamed_")
        whole = kind == "number" and bool(series.astype(str).str.fullmatch(r"\s*\d+\s*").all())
        counted = whole and np.ptp(series.astype(int)) == table.n_rows - 1
        first = position == 0 and (kind == "identifier" or counted)
        if first or (named and (whole or kind in ("identifier", "category", "text"))):
            candidates.append((not named, position, column))
    return min(candidates)[2] if candidates else None


def _guess_labels(rows: _Looked, taken: Sequence[str]) -> str | None:
    """The column that is named like a label, or that looks like one: few values, and markers or many empty cells."""
    table = rows.table
    best: tuple[float, str] | None = None
    for column in map(str, table.frame.columns):
        if column in taken:
            continue
        series = table.frame[column]
        if rows.kinds[column] == "unusable" or series.nunique() > MAX_CLASSES + 1:
            continue
        texts = series.astype(object).map(as_text).where(~missing_cells(series, frozenset({""})), "")
        distinct = set(texts) - {""}
        words = SEPARATED.split(column.casefold())
        named = column.casefold() in LABEL_NAMES or any(word in LABEL_NAMES for word in words if len(word) > 1)
        if not 1 <= len(distinct) <= min(MAX_CLASSES, max(2, table.n_rows // 2)):
            continue
        markers = {text for text in distinct if text.casefold() in UNLABELED_WORDS}
        n_unlabeled = int((texts == "").sum()) + int(texts.isin(markers).sum())
        is_word = rows.kinds[column] in ("category", "boolean", "text")
        score = 3.0 * named + 1.0 * (bool(markers) and is_word) + 1.0 * (n_unlabeled > table.n_rows / 2 and is_word)
        if score > 0 and (best is None or score > best[0]):
            best = (score, column)
    return None if best is None else best[1]


def _guess_groups(rows: _Looked, taken: Sequence[str]) -> str | None:
    table = rows.table
    for column in map(str, table.frame.columns):
        words = SEPARATED.split(column.casefold())
        if column in taken or not any(word in GROUP_WORDS for word in (words[0], words[-1])) or len(words) > 2:
            continue
        if 2 <= table.frame[column].nunique() <= table.n_rows / 2 and rows.kinds[column] != "date":
            return column
    return None


def _guess_ignored(rows: _Looked, taken: Sequence[str]) -> list[str]:
    """Times, which order rows, further identifiers, and empty columns."""
    table = rows.table
    ignored = []
    for column in map(str, table.frame.columns):
        if column in taken:
            continue
        kind = rows.kinds[column]
        is_time = kind == "date" or (kind == "number" and column.casefold() in TIME_WORDS)
        if is_time or kind in ("identifier", "empty", "unusable"):
            ignored.append(column)
    return ignored


def _guess_views(rows: _Looked, data: DataSettings) -> tuple[tuple[ViewSettings, ...], list[Guess]]:
    table = rows.table
    taken = {data.id, data.labels, data.groups, data.time, *data.ignore}
    columns = [column for column in map(str, table.frame.columns) if column not in taken]
    kinds = rows.kinds
    texts = [column for column in columns if kinds[column] == "text"]
    others = [column for column in columns if kinds[column] not in ("text", "identifier", "empty", "unusable")]
    sensors = _by_sensor(table)
    groups, how = _by_prefix([*others, *table.signals]) if not sensors else (None, "")
    if groups is None:
        numbers = [column for column in others if kinds[column] in ("number", "date")]
        groups = {"numbers": numbers, "categories": [c for c in others if c not in numbers]}
        groups |= sensors or {name: [name] for name in table.signals}
        how = "by sensor" if sensors and not others else "by what the columns hold"
    groups = _with_view_names([*groups.items(), *((column, [column]) for column in texts)])
    if not groups:
        raise ProjectError(
            f"{table.source} has no column that can be learned from: besides id, labels and groups it has "
            f"{abbreviate(data.ignore) or 'nothing'}. Check the separator and the file."
        )
    usable = [*columns, *table.signals]
    signals = channel_columns(table, data, data.id) if data.time is not None else table.signals
    views = tuple(
        ViewSettings(name, columns=_patterns(members, usable), features=_features_of(members, signals))
        for name, members in groups.items()
    )
    shown = ", ".join(f"{name} ({_members_shown(name, members)})" for name, members in groups.items())
    first = views[0]
    line = toml_line("columns", first.columns[0] if len(first.columns) == 1 else first.columns).partition("\n")[0]
    return views, [Guess(f"{plural(len(views), 'view')} {how}: {shown}", f"[views.{first.name}] {line}")]


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
            named.setdefault(_view_name(name), []).extend(members)
    return named


def _by_prefix(columns: Sequence[str]) -> tuple[dict[str, list[str]] | None, str]:
    """Columns by the first word of their names, if these are as many as a machine has sensors."""
    for depth in (1, 2):
        groups: dict[str, list[str]] = {}
        for column in columns:
            groups.setdefault(_prefix(column, depth), []).append(column)
        shared = {name: members for name, members in groups.items() if len(members) > 1 or SEPARATED.search(members[0])}
        rest = [column for name, members in groups.items() if name not in shared for column in members]
        if 2 <= len(shared) <= MAX_VIEWS and len(rest) <= 0.5 * len(columns) and _is_repeated(shared, columns):
            return {**shared, "other": rest}, "by prefix"
    return None, ""


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


def _guess_sound(path: Path, folder: Path) -> _Found:
    files = sound_files(path)
    suffixes = {file.suffix for file in files}
    ending = suffixes.pop() if len(suffixes) == 1 else ""
    subfolders = sorted({file.parent.relative_to(path).as_posix() for file in files})
    stems = {name: {file.stem for file in files if file.parent == path / name} for name in subfolders}
    data = DataSettings(path=_relative(path, folder))
    guesses: list[Guess] = []
    label_file = next(
        (f for f in sorted(path.iterdir()) if "label" in f.stem.casefold() and f.suffix in TABLE_FORMATS), None
    )
    is_labeled = label_file is not None or annotation_file(path) is not None
    if len(subfolders) > 1 and (is_labeled or _mostly_shared(list(stems.values()))):
        views = tuple(ViewSettings(_view_name(name), files=f"{name}/*{ending}") for name in subfolders)
        row = "row" if annotation_file(path) is None else "recording"
        what = f"each of the {len(views)} sub-folders is a view; files of the same name are one {row}"
        guesses.append(Guess(what, _files_line(views[0])))
    elif len(subfolders) > 1:
        views = _channels(files[0], f"*/*{ending}")
        data, about = _folders_as_labels(data, stems)
        guesses += about
    else:
        below = "" if subfolders == ["."] else f"{subfolders[0]}/"
        views, about = _flat_views(path / below, below, files, ending)
        guesses += about
    if annotation_file(path) is not None:
        windows, about = _annotated(path, folder, WindowSettings())
        kept = [guess for guess in guesses if not guess.line.startswith(("labels", "unlabeled"))]
        return ProjectSettings(replace(data, labels=LABEL_COLUMN), views, windows=windows), [*kept, *about], []
    if data.labels is None:
        data, guesses = _with_label_file(path, folder, data, guesses, exclude=[])
    return ProjectSettings(data, views), guesses, []


def _folders_as_labels(data: DataSettings, stems: dict[str, set[str]]) -> tuple[DataSettings, list[Guess]]:
    markers = [name for name in stems if name.casefold() in UNLABELED_WORDS]
    data = replace(data, labels=FOLDER_COLUMN, unlabeled=("", *markers))
    said = f"the names of the {len(stems)} sub-folders are the labels, because their files have different names"
    guesses = [Guess(said, toml_line("labels", FOLDER_COLUMN))]
    if markers:
        guesses.append(Guess(f"files in {abbreviate(markers)} are not labeled", toml_line("unlabeled", data.unlabeled)))
    return data, guesses


def _flat_views(
    folder: Path, below: str, files: Sequence[Path], ending: str
) -> tuple[tuple[ViewSettings, ...], list[Guess]]:
    """Files of one folder: a common last or first word of their names is a sensor, or each file is a row."""
    for pattern in ("{below}*_{word}{ending}", "{below}{word}_*{ending}"):
        at = -1 if pattern.startswith("{below}*") else 0
        words = sorted({file.stem.split("_")[at] for file in files if "_" in file.stem})
        if not 2 <= len(words) <= MAX_VIEWS or any("_" not in file.stem for file in files):
            continue
        patterns = {word: pattern.format(below=below, word=word, ending=ending) for word in words}
        base = folder if not below else folder.parent
        rows = [set(match_files(base, one, files)) for one in patterns.values()]
        if _mostly_shared(rows):
            views = tuple(ViewSettings(_view_name(word), files=one) for word, one in patterns.items())
            said = f"{plural(len(views), 'view')} by the {'last' if at else 'first'} word of the names of files: "
            f"{abbreviate(words)}"
            return views, [Guess(said, _files_line(views[0]))]
    views = _channels(files[0], f"{below}*{ending}")
    what = "each file is a row" + (f", each of its {len(views)} channels a view" if len(views) > 1 else "")
    return views, [Guess(what, _files_line(views[0]))]


def _channels(file: Path, pattern: str) -> tuple[ViewSettings, ...]:
    n_channels = audio_header(file).channels
    if n_channels == 1:
        return (ViewSettings("sound", files=pattern),)
    return tuple(ViewSettings(f"channel_{c}", files=pattern, channel=c) for c in range(n_channels))


def _mostly_shared(rows: Sequence[set[str]]) -> bool:
    """Whether most identifiers occur in at least two of the sets."""
    everything = set.union(*rows)
    return sum(sum(key in one for one in rows) > 1 for key in everything) > len(everything) / 2


def _files_line(view: ViewSettings) -> str:
    return f"[views.{view.name}] {toml_line('files', view.files)}"


def _keys(table: RawTable, column: str | None) -> set[str]:
    return set(map(as_text, table.frame[column].astype(object)))


def _view_name(text: str) -> str:
    return re.sub(r"[^\w-]+", "_", text).strip("_") or "view"


def _relative(path: Path, folder: Path) -> str:
    """The path as the project file writes it: relative, with forward slashes, if that is not longer."""
    relative = os_path.relpath(path.resolve() if not is_pattern(str(path)) else Path.cwd() / path, folder)
    return Path(relative).as_posix()
