"""The rows of a project: which columns belong to which view, the training rows as files hold them, and encoded rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import plural
from cmvmed.workbench.project_file import DataSettings, ProjectSettings, ViewSettings
from cmvmed.workbench.tables.columns import BoolArray, RawTable, as_text, cells_present, column_kind, missing_cells
from cmvmed.workbench.tables.join import open_sources, qualified, training_paths
from cmvmed.workbench.tables.read import FILE_COLUMN, FOLDER_COLUMN, is_pattern, matching
from cmvmed.workbench.tables.recording_rows import WINDOW_COLUMNS, recordings_as_groups
from cmvmed.workbench.tables.row_labels import (
    LabelValues,
    first_column,
    read_label_values,
    read_labels,
    with_page_labels,
)
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean


@dataclass(frozen=True)
class ColumnRoles:
    """What the columns of a table are for."""

    views: dict[str, list[str]]
    reserved: dict[str, str]  # column -> "id", "labels" or "groups"
    messages: tuple[str, ...]


def _assign_columns(settings: ProjectSettings, table: RawTable) -> ColumnRoles:
    """Find the columns of each view; each column belongs to one at most."""
    names = table.names
    reserved = _reserved(settings.data, settings, names)
    ignored = [name for pattern in settings.data.ignore for name in _ignored(pattern, names, settings)]
    said = [
        f"ignore in [data] lists {pattern!r}, which is not a column of {table.source}."
        for pattern in settings.data.ignore
        if not _ignored(pattern, names, settings)
    ]
    views: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    for view in settings.views:
        views[view.name] = _columns_of(view, names, table, reserved, set(ignored))
        for column in views[view.name]:
            if column in owner:
                raise ProjectError(
                    f"Column {column!r} belongs to view {owner[column]!r} and to view {view.name!r}; give it to one of them."
                )
            owner[column] = view.name
    made = {FILE_COLUMN, FOLDER_COLUMN, *(() if settings.windows is None else WINDOW_COLUMNS)}
    used = owner.keys() | reserved.keys() | set(ignored) | made
    unused = [name for name in names if name not in used]
    if unused:
        said.append(
            f"{abbreviate(unused)} of {table.source} {'is' if len(unused) == 1 else 'are'} in no view and not used; add "
            f"{'it' if len(unused) == 1 else 'them'} to a view, or to ignore in [data] to silence this."
        )
    return ColumnRoles(views, reserved, tuple(said))


def _reserved(data: DataSettings, settings: ProjectSettings, names: Sequence[str]) -> dict[str, str]:
    roles = {"id": data.id, "labels": data.labels, "groups": data.groups}
    views = [None, *(view.name for view in settings.views if view.path is not None)]
    return {
        qualified(view, column): role
        for role, column in roles.items()
        if column is not None
        for view in views
        if qualified(view, column) in names
    }


def _ignored(pattern: str, names: Sequence[str], settings: ProjectSettings) -> list[str]:
    views = [None, *(view.name for view in settings.views if view.path is not None)]
    wanted = [qualified(view, pattern) for view in views]
    return [name for text in wanted for name in names if name == text or (is_pattern(text) and fnmatchcase(name, text))]


def _columns_of(
    view: ViewSettings, names: Sequence[str], table: RawTable, reserved: dict[str, str], ignored: set[str]
) -> list[str]:
    if view.files is not None:
        return [view.name if view.path is None else qualified(view.name, "sound")]
    own = view.name if view.path is not None else None
    patterns = [qualified(own, pattern) for pattern in (view.columns or ("*",))]
    free = [name for name in names if name not in reserved and name not in ignored]
    columns: list[str] = []
    for pattern in patterns:
        if pattern in reserved:
            raise ProjectError(
                f"View {view.name!r} lists column {pattern!r}, which [data] uses as {reserved[pattern]}; remove it from one of the "
                "two: a view that holds the label would be of no use for new rows."
            )
        if pattern in ignored:
            raise ProjectError(
                f"View {view.name!r} lists column {pattern!r}, which ignore in [data] lists too; remove it from one of them."
            )
        found = matching(pattern, free)
        if not found:
            shown = pattern if own is None else pattern.removeprefix(f"{own}.")
            what = "no column matches" if is_pattern(shown) else "there is no column"
            raise ProjectError(
                f"View {view.name!r}: {what} {shown!r} in {table.source}.{did_you_mean(pattern, free)} Its columns are "
                f"{abbreviate(free)}."
            )
        columns += [name for name in found if name not in columns]
    return columns


@dataclass(frozen=True)
class ProjectRows:
    r"""Rows of a project before they are encoded.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> rows = project.rows()
    >>> rows.ids.tolist(), rows.present("gyr").tolist()
    (['1', '2', '3'], [True, True, True])
    """

    table: RawTable
    ids: NDArray[np.object_]
    labels: LabelValues
    groups: NDArray[np.object_] | None
    roles: ColumnRoles
    kinds: Mapping[str, str]  # of the columns of views
    declared: frozenset[str]  # columns whose kind the project file says
    messages: tuple[str, ...]
    labels_drawn: str = "unknown"  # parameter of CMVMED
    random_rows: BoolArray | None = None  # (n,), of its fit

    def present(self, view: str) -> BoolArray:
        """Which rows have a view, (n,)."""
        present = [cells_present(self.table, column) for column in self.roles.views[view]]
        return np.asarray(np.any(present, axis=0))

    def part(self, n: int) -> "ProjectRows":
        """About ``n`` rows, chosen by ``part_of_rows``; all if there are no more."""
        return self if len(self.ids) <= n else self._take(part_of_rows(self.labels.values, n))

    def _take(self, rows: NDArray[np.intp]) -> "ProjectRows":
        table = replace(
            self.table,
            frame=self.table.frame.iloc[rows].reset_index(drop=True),
            signals={name: signal.take(rows) for name, signal in self.table.signals.items()},
            lines=None if self.table.lines is None else self.table.lines[rows],
            ids=None if self.table.ids is None else [self.table.ids[row] for row in rows],
        )
        values = self.labels.values[rows]
        counts = {name: int((values == name).sum()) for name in self.labels.counts}
        labels = replace(self.labels, values=values, counts=counts)
        said = f"A quick look: {len(rows)} of {len(self.ids)} rows."
        return replace(
            self,
            table=table,
            ids=self.ids[rows],
            labels=labels,
            groups=None if self.groups is None else self.groups[rows],
            messages=(*self.messages, said),
            random_rows=None if self.random_rows is None else self.random_rows[rows],
        )


def part_of_rows(labels: NDArray[np.object_], n: int) -> NDArray[np.intp]:
    """Positions of about ``n`` rows: all labeled ones, or as many as half of ``n``, two of each class at least.

    They are evenly spaced in each class and among the unlabeled rows.
    """
    labeled = np.array([label is not None for label in labels], dtype=bool)
    share = min(1.0, n / 2 / max(int(labeled.sum()), 1))
    by_class = [np.flatnonzero(labels == name) for name in sorted(set(labels[labeled]))]
    chosen = [_evenly(rows, max(2, round(share * len(rows)))) for rows in by_class]
    unlabeled = _evenly(np.flatnonzero(~labeled), max(n - sum(map(len, chosen)), 0))
    return np.sort(np.concatenate([*chosen, unlabeled]))


def _evenly(rows: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """At most ``n`` of the rows, evenly spaced."""
    return rows if n >= len(rows) else rows[np.floor((np.arange(n) + 0.5) * len(rows) / n).astype(np.intp)]


@dataclass(frozen=True)
class ProjectTable:
    r"""Rows of a project as an estimator takes them.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Identifiers as text; the numbers of rows if the data have none.
    views : dict of str to array or sparse matrix of shape (n, d)
        ``X`` of the estimators. A row whose view is absent is NaN in all its columns.
    labels : ndarray of shape (n,)
        ``y`` of the estimators: text, and None where a row is not labeled.
    groups : ndarray of shape (n,) or None
    messages : tuple of str
        What was assumed and left out.
    labels_drawn : str
        Parameter of ``CMVMED``: that of the project file, or "chosen" if it says "unknown" and rows were labeled on the
        page, or after `cmvmed suggest`, because of what they are.
    random_rows : bool ndarray of shape (n,) or None
        Which rows were drawn at random, if ``labels_drawn`` became "chosen" so.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n4,0.2,2.0,b\n5,0.2,1.5,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> table = project.read()
    >>> table.labels.tolist(), table.views["acc"].shape
    (['a', 'b', 'a', 'b', None], (5, 1))
    """

    ids: NDArray[np.object_]
    views: dict[str, Any]
    labels: NDArray[np.object_]
    groups: NDArray[np.object_] | None
    messages: tuple[str, ...] = ()
    labels_drawn: str = "unknown"
    random_rows: BoolArray | None = None

    def take(self, rows: NDArray[np.intp]) -> "ProjectTable":
        """Some of the rows."""
        return replace(
            self,
            ids=self.ids[rows],
            views={name: view[rows] for name, view in self.views.items()},
            labels=self.labels[rows],
            groups=None if self.groups is None else self.groups[rows],
            random_rows=None if self.random_rows is None else self.random_rows[rows],
        )


def read_training_rows(settings: ProjectSettings, folder: Path, page_labels: Path | None) -> ProjectRows:
    """Read the files that the settings name, relative to a folder, and the labels of the labeling page."""
    table = open_sources(settings, training_paths(settings, folder), is_training=True)
    roles = _assign_columns(settings, table)
    ids = row_ids(table)
    cells, said, of_files = read_labels(settings, folder, table, list(ids))
    cells, about, of_page = with_page_labels(cells, page_labels, list(ids))
    said += about
    labels = read_label_values(cells, settings.data, settings.renamed)
    if labels.n_renamed:
        said.append(f"{plural(labels.n_renamed, 'label is', 'labels are')} renamed by [classes].")
    groups = _groups(settings, table, ids)
    declared = {c: _declared(settings, c) for columns in roles.views.values() for c in columns}
    kinds = {column: _kind(table, column, kind) for column, kind in declared.items()}
    given = frozenset(column for column, kind in declared.items() if kind is not None)
    if labels.n_trimmed:
        said.append(
            f"{plural(labels.n_trimmed, 'label has', 'labels have')} blanks around the name, which are left out."
        )
    messages = (*table.messages, *roles.messages, *said)
    drawn, random_rows = settings.data.labels_drawn, None
    if drawn == "unknown" and not (of_files is None and of_page is None):
        random = (of_files or set()) | (of_page or set())
        drawn, random_rows = "chosen", np.array([key in random for key in ids], dtype=bool)
    return ProjectRows(table, ids, labels, groups, roles, kinds, given, messages, drawn, random_rows)


def row_ids(table: RawTable) -> NDArray[np.object_]:
    """Identifiers of the rows, or their numbers if they have none."""
    ids = table.ids if table.ids is not None else [str(row + 1) for row in range(table.n_rows)]
    return np.array(ids, dtype=object)


def _groups(settings: ProjectSettings, table: RawTable, ids: NDArray[np.object_]) -> NDArray[np.object_] | None:
    name = settings.data.groups
    if name is None:
        return None if settings.windows is None else recordings_as_groups(table)
    cells = first_column(table, settings, name)
    if cells is None:
        raise table.lacks(name, "groups")
    missing = missing_cells(cells)
    texts = np.array([as_text(cell) for cell in cells.astype(object)], dtype=object)
    return np.where(missing, [f"row {key}" for key in ids], texts)  # a row without a group is one of its own


def _declared(settings: ProjectSettings, column: str) -> str | None:
    """The kind that [columns] says; None if it says none."""
    matching_kinds = (
        kind for pattern, kind in settings.kinds.items() if column == pattern or matching(pattern, [column])
    )
    return next(matching_kinds, None)


def _kind(table: RawTable, column: str, declared: str | None) -> str:
    if column in table.signals:
        return "sound" if table.signals[column].is_sound else "series"
    if declared is not None:
        return "empty" if missing_cells(table.frame[column]).all() else declared
    return column_kind(table.frame[column], table.decimal)
