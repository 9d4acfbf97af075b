"""The labels of rows as people write them: in a column, in files with id and label, and on the labeling page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.data.labels import UNLABELED_WORDS, appearance
from cmvmed.pages.formatting import plural
from cmvmed.workbench.label_store import LabelStore
from cmvmed.workbench.project_file import DataSettings, ProjectSettings
from cmvmed.workbench.tables.columns import RawTable, Series, as_text, clean_name, is_number, missing_cells, pandas
from cmvmed.workbench.tables.delimited import DelimitedOptions, restored_cell
from cmvmed.workbench.tables.join import otherwise_written, qualified
from cmvmed.workbench.tables.read import TABLE_FORMATS, is_pattern, read_table, table_files
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

# Values that may be a marker or a class; UNLABELED_WORDS are never a class.
POSSIBLE_MARKERS = frozenset({"none", "other", "0", "-1", "99", "-99", "999", "-999", "x", "tba", "skip", "unsure"})
NUMERIC_MARKERS = frozenset({"0", "-1", "99", "-99", "999", "-999"})
ID_NAMES = ("id", "row", "name", "file", "filename", "key")
LABEL_NAMES = ("label", "labels", "class", "target", "y", "category")
MIN_LETTERS, MUCH_RARER = 3, 5  # of a label that may be misspelt: letters, and how much rarer it is
SUGGESTION_COLUMNS = ("reason", "score")  # of the files of `cmvmed suggest`, beside id and label
RANDOM_COLUMN, RANDOM = "random", "yes"  # a further one: which rows were drawn at random


@dataclass(frozen=True)
class LabelValues:
    """Labels of all rows: text (n,), None where a row is not labeled."""

    values: NDArray[Any]
    counts: Mapping[str, int]  # labeled rows by class, in the order of their names
    marked: Mapping[str, int]  # rows by marker that the project file lists; "" are empty cells
    n_trimmed: int = 0  # labels that had blanks around them
    n_renamed: int = 0  # labels that [classes] gives another name

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Which rows are labeled, (n,)."""
        return np.array([value is not None for value in self.values], dtype=bool)


def is_marker(name: str, settings: DataSettings) -> bool:
    """Whether a name means that a row is not labeled: a marker of the project file, or a word that is never a class."""
    return name not in settings.classes and (
        name in {marker.strip() for marker in settings.unlabeled} or name.casefold() in UNLABELED_WORDS
    )


def read_label_values(
    series: Series, settings: DataSettings, renamed: Mapping[str, str] = MappingProxyType({})
) -> LabelValues:
    """Labels of a column of cells; ``renamed`` are other names of some, "" for none."""
    given = _label_texts(series)
    texts = np.array([renamed.get(text, text) for text in given], dtype=object)
    markers = {marker.strip() for marker in settings.unlabeled} | {""}
    unlabeled = np.array([text in markers for text in texts], dtype=bool)
    values = texts.copy()
    values[unlabeled] = None
    counts = Counter(texts[~unlabeled].tolist())
    unknown = sorted(counts.keys() - set(settings.classes)) if settings.classes else []
    if unknown:
        hint = did_you_mean(unknown[0], settings.classes)
        raise ProjectError(
            f"The label {unknown[0]!r} ({plural(counts[unknown[0]], 'row')}) is neither in classes nor in unlabeled.{hint} Correct "
            "it in the data, or add it to one of the two in [data]."
        )
    n_trimmed = sum(
        isinstance(cell, str) and cell != cell.strip() and bool(cell.strip()) for cell in series.astype(object)
    )
    n_renamed = int((texts != given).sum())
    return LabelValues(values, dict(sorted(counts.items())), Counter(texts[unlabeled].tolist()), n_trimmed, n_renamed)


def likely_markers(counts: Mapping[str, int], settings: DataSettings) -> tuple[list[str], list[str]]:
    """Labels that are markers rather than classes, and those that may be; classes that the user lists are neither."""
    candidates = [label for label in counts if label not in settings.classes]
    sure = [label for label in candidates if label.casefold() in UNLABELED_WORDS]
    numbers = [label for label in candidates if is_number(label)]
    beside_names = [label for label in numbers if label in NUMERIC_MARKERS] if len(numbers) < len(candidates) else []
    negative = ["-1"] if "-1" in candidates and len(numbers) == len(candidates) > 2 else []
    words = [label for label in candidates if label.casefold() in POSSIBLE_MARKERS - NUMERIC_MARKERS]
    return sure, list(dict.fromkeys([*beside_names, *negative, *words]))


def similar_classes(labels: Sequence[str]) -> list[list[str]]:
    """Groups of labels that look alike, apart from case, blanks, underscores and hyphens."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        ignored = "" if is_number(label) else " _-\t"
        groups.setdefault("".join(c for c in appearance(label) if c not in ignored), []).append(label)
    return [group for key, group in groups.items() if len(group) > 1 and key]


def misspelt_classes(counts: Mapping[str, int], listed: Sequence[str]) -> dict[str, str]:
    """Rare labels that are one letter away from a frequent one, such as "wlk" beside "walk", and that one.

    One letter is left out, added, replaced or exchanged with the next. Names that differ in a digit are different classes.
    """
    found = {}
    for label, count in counts.items():
        if label in listed or len(label) < MIN_LETTERS:
            continue
        near = [name for name in counts if MUCH_RARER * count <= counts[name] and one_edit_apart(label, name)]
        if near:
            found[label] = max(near, key=lambda name: counts[name])
    return found


def one_edit_apart(one: str, other: str) -> bool:
    """Whether one letter is left out, added, replaced or exchanged with the next, and no digit."""
    if "".join(filter(str.isdigit, one)) != "".join(filter(str.isdigit, other)) or one == other:
        return False
    short, long = sorted((one, other), key=len)
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest, longer = short[start:], long[start:]
    if len(short) < len(long):
        return rest == longer[1:]
    return rest[1:] == longer[1:] or (rest[:2] == longer[1::-1] and rest[2:] == longer[2:])


def _label_columns(table: RawTable, settings: DataSettings) -> tuple[str, str]:
    """Names of the columns of identifiers and of labels in a file of labels."""
    names = [str(name) for name in table.frame.columns]
    if len(names) < 2:
        raise ProjectError(
            f"The file of labels {table.source} has {plural(len(names), 'column')} ({abbreviate(names)}), but needs two: the "
            "identifier of a row and its label."
        )
    by_name = {name.casefold(): name for name in names}
    id_column = next(
        (by_name[n.casefold()] for n in (settings.id or "", *ID_NAMES) if n.casefold() in by_name), names[0]
    )
    wanted = settings.label_column
    if wanted is not None and wanted not in names:
        raise ProjectError(
            f"label_column = {wanted!r} is not a column of {table.source}.{did_you_mean(wanted, names)} Its columns are "
            f"{abbreviate(names)}."
        )
    others = [name for name in names if name != id_column]
    label = wanted or next((by_name[n] for n in LABEL_NAMES if n in by_name and by_name[n] != id_column), None)
    if label is None and len(others) > 1:
        raise ProjectError(
            f"The file of labels {table.source} has several columns that may be the label ({abbreviate(others)}); add "
            f'label_column = "{others[0]}" to [data].'
        )
    return id_column, label or others[0]


def _read_label_file(table: RawTable, ids: Sequence[str], settings: DataSettings) -> tuple[Series, list[str]]:
    """The cells of a file of labels in the order of the rows, and messages about rows that are not in both."""
    id_column, label_column = _label_columns(table, settings)
    keys = np.array([as_text(cell) for cell in table.frame[id_column].astype(object)], dtype=object)
    labels = _label_texts(table.frame[label_column])
    known = set(ids)
    if id_column in known:
        raise ProjectError(
            f"The first line of {table.source} looks like a row, because {id_column!r} is the identifier of one, where column "
            "names are expected; add a line of names at the top, such as id,label."
        )
    keys = np.array([key if key in known else restored_cell(key) for key in keys], dtype=object)
    labels = np.array([restored_cell(label) for label in labels], dtype=object)
    label_of: dict[str, str] = {}
    for row, (key, label) in enumerate(zip(keys, labels, strict=True)):
        if label_of.get(key, label) != label:
            raise ProjectError(
                f"{table.source} gives row {key!r} two labels, {label_of[key]!r} and {label!r} ({table.place(row)}); keep one."
            )
        label_of[key] = label
    unknown = [key for key in label_of if key not in known]
    if label_of and len(unknown) == len(label_of):
        raise ProjectError(
            f"None of the {len(label_of)} identifiers in column {id_column!r} of {table.source} is one of the data: the file has "
            f"{abbreviate(unknown[:2])}, the data have {abbreviate(ids[:2])}.{otherwise_written(unknown, ids)} Check id in [data] "
            "and how identifiers are written."
        )
    said = []
    if unknown:
        said.append(
            f"{plural(len(unknown), 'label')} of {table.source} {'belongs' if len(unknown) == 1 else 'belong'} to no row of the "
            f"data and {'is' if len(unknown) == 1 else 'are'} left out: {abbreviate(unknown)}.{otherwise_written(unknown, ids)}"
        )
    return pandas().Series([label_of.get(key, "") for key in ids], dtype=object), said


def _replace_labels(
    cells: Series, table: RawTable, ids: Sequence[str], settings: DataSettings
) -> tuple[Series, list[str]]:
    """Cells of labels after those of a further file, of which empty cells and markers replace nothing."""
    found, said = _read_label_file(table, ids, settings)
    before, after = _label_texts(cells), _label_texts(found)
    markers = {marker.strip() for marker in settings.unlabeled} | {""}
    given = ~pandas().Series(after).isin(markers).to_numpy(dtype=bool)
    labeled = ~pandas().Series(before).isin(markers).to_numpy(dtype=bool)
    n_changed = int((given & labeled & (before != after)).sum())
    said.append(f"{plural(n := int(given.sum()), 'label')} of {table.source} {'was' if n == 1 else 'were'} taken.")
    if n_changed:
        what = plural(
            n_changed,
            "label of {} replaces another label of its row",
            "labels of {} replace other labels of their rows",
        )
        said.append(f"{what.format(table.source)}.")
    return pandas().Series(np.where(given, after, before), dtype=object), said


def _label_texts(series: Series) -> NDArray[Any]:
    """Labels as texts in one form of Unicode, without blanks around them and without invisible characters.

    An empty cell is ''; only blank cells count as empty here.
    """
    missing = missing_cells(series, frozenset({""}))
    names = [clean_name(as_text(cell)) for cell in series.astype(object)]
    return np.where(missing, "", np.array(names, dtype=object))


def read_labels(
    settings: ProjectSettings, folder: Path, table: RawTable, ids: Sequence[str]
) -> tuple[Series, list[str], set[str] | None]:
    """Labels of the column or file, after those of further files, messages about them, and which rows are random.

    Rows of a file that has the columns of ``cmvmed suggest`` were chosen, except for those that it marks as random. Without
    such a file the last is None.
    """
    cells, said = _first_labels(settings, folder, table, ids)
    random: set[str] | None = None
    for path in (path for pattern in settings.data.label_files for path in _label_files(folder, pattern)):
        further = read_table(path, _options(settings.data))
        cells, about = _replace_labels(cells, further, ids, settings.data)
        said += about
        if set(SUGGESTION_COLUMNS) <= set(further.names):
            random = (random or set()) | _random_rows(further, set(ids), settings.data)
    return cells, said, random


def _random_rows(table: RawTable, known: set[str], settings: DataSettings) -> set[str]:
    """Rows that a file of ``cmvmed suggest`` marks as random."""
    if RANDOM_COLUMN not in table.names:
        return set()
    keys = [as_text(cell) for cell in table.frame[_label_columns(table, settings)[0]].astype(object)]
    marks = [as_text(cell).strip() for cell in table.frame[RANDOM_COLUMN].astype(object)]
    marked = {key for key, mark in zip(keys, marks, strict=True) if mark == RANDOM}
    return {key if key in known else restored_cell(key) for key in marked}


def with_page_labels(cells: Series, path: Path | None, ids: Sequence[str]) -> tuple[Series, list[str], set[str] | None]:
    """Labels after those of the labeling page, messages about them, and which rows are random; None if none was chosen.

    What was said last of a row on the page counts; a row that is marked as unsure is not labeled.

    Parameters
    ----------
    path : the file of labels; None, or one that does not exist, changes nothing
    """
    if path is None or not path.exists():
        return cells, [], None
    with LabelStore(path) as store:
        events, random = store.current(), store.random_items
    given = {item: event.label or "" for item, event in events.items() if event.action != "reset"}
    known = set(ids)
    unknown = [item for item in given if item not in known]
    n_labels = sum(bool(label) and item in known for item, label in given.items())
    said = [f"{plural(n_labels, 'label')} of the labeling page ({path.name})."] if given else []
    if unknown:
        said.append(
            f"{plural(len(unknown), 'label')} of {path.name} {'belongs' if len(unknown) == 1 else 'belong'} to no row of the "
            f"data: {abbreviate(unknown)}."
        )
    merged = [given.get(key, cell) for key, cell in zip(ids, cells.astype(object), strict=True)]
    return pandas().Series(merged, dtype=object), said, random


def _first_labels(
    settings: ProjectSettings, folder: Path, table: RawTable, ids: Sequence[str]
) -> tuple[Series, list[str]]:
    labels = settings.data.labels
    if labels is None:
        return pandas().Series([""] * table.n_rows, dtype=object), []
    cells = first_column(table, settings, labels)
    if cells is not None:
        return cells, []
    file = folder / labels
    if file.suffix.lower() not in TABLE_FORMATS and not file.exists():
        raise table.lacks(labels, "labels")
    if not file.is_file():
        raise ProjectError(
            f"There is no file of labels {labels!r} beside the project file; labels in [data] is a column of the data "
            "or a file with id and label."
        )
    return _read_label_file(read_table(file, _options(settings.data)), ids, settings.data)


def _label_files(folder: Path, pattern: str) -> list[Path]:
    """The files of labels that a name or pattern stands for, in the order of their names."""
    path = folder / pattern
    if not is_pattern(pattern) and not path.is_file():
        raise ProjectError(
            f"There is no file of labels {pattern!r}, which label_files in [data] names; paths are relative to the project file."
        )
    return table_files(path)


def _options(data: DataSettings) -> DelimitedOptions:
    return DelimitedOptions(data.separator, data.decimal, data.encoding, may_differ=True, names=None)


def first_column(table: RawTable, settings: ProjectSettings, name: str) -> Series | None:
    """The cells of a column of the common table, or of the first file of a view that has it."""
    candidates = [name, *(qualified(view.name, name) for view in settings.views if view.path is not None)]
    found = [table.frame[candidate] for candidate in candidates if candidate in table.frame.columns]
    if not found:
        return None
    cells = found[0]
    for other in found[1:]:
        cells = cells.astype(object).where(~missing_cells(cells, frozenset({""})), other)
    return cells
