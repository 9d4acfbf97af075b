"""A project: its file, its rows for training, and new rows in the same form.

``Project.load("cmvmed.toml").read()`` gives views, labels and groups for ``CMVMED``; ``read_new`` gives rows to predict,
matched by the names of columns and encoded as in training.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cmvmed.workbench.checks import Finding, check_rows
from cmvmed.workbench.column_kinds import Cells, column_kind, missing_cells, read_booleans, read_numbers, read_times
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.encoders import (
    CategoryEncoder,
    ViewEncoder,
    as_text,
    encoder_from_state,
    encoder_state,
    fit_column,
    unseen_categories,
)
from cmvmed.workbench.frames import RawTable, Series, pandas
from cmvmed.workbench.joining import SourcePaths, open_sources, qualified
from cmvmed.workbench.label_values import LabelValues, likely_markers, read_label_file, read_label_values
from cmvmed.workbench.project_file import DEFAULT_NAME, ProjectSettings, read_project_file
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.readers import FILE_COLUMN, TABLE_FORMATS, read_table
from cmvmed.workbench.recording_rows import WINDOW_COLUMNS, recordings_as_groups
from cmvmed.workbench.sound_folders import FOLDER_COLUMN
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean, plural
from cmvmed.workbench.view_columns import assign_columns, matching

__all__ = ["Project", "ProjectTable"]


@dataclass(frozen=True)
class ProjectTable:
    """Rows of a project as an estimator takes them.

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
    """

    ids: NDArray[np.object_]
    views: dict[str, Any]
    labels: NDArray[np.object_]
    groups: NDArray[np.object_] | None
    messages: tuple[str, ...] = ()


@dataclass
class Project:
    r"""A project file and the encoders of its views.

    Parameters
    ----------
    settings : ProjectSettings
        What the project file says.
    folder : Path
        Paths of the settings are relative to it.
    encoders : list of ViewEncoder or None
        Fitted by :meth:`read`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from cmvmed import CMVMED
    >>> from cmvmed.workbench import Project, init
    >>> lines = [f"{i},{i % 9},{i % 7},{'ab'[i % 9 > 4] if i < 20 else ''}" for i in range(60)]
    >>> _ = Path("rows.csv").write_text("\n".join(["id,acc_x,gyr_x,label", *lines]), encoding="utf-8")
    >>> _ = Path("cmvmed.toml").write_text(init("rows.csv").text, encoding="utf-8")
    >>> project = Project.load("cmvmed.toml")
    >>> table = project.read()
    >>> sorted(table.views), int((table.labels != None).sum())  # noqa: E711
    (['acc', 'gyr'], 20)
    >>> model = CMVMED(**project.model_parameters).fit(table.views, table.labels)
    >>> len(model.predict(project.read_new("rows.csv").views))
    60
    """

    settings: ProjectSettings
    folder: Path
    encoders: list[ViewEncoder] | None = field(default=None)

    @classmethod
    def load(cls, path: str | PathLike[str] = DEFAULT_NAME) -> Self:
        """Read a project file; nothing of the data is read yet."""
        file = Path(path)
        settings = read_project_file(file)
        return cls(settings, file if file.is_dir() else file.parent)

    @property
    def model_parameters(self) -> dict[str, Any]:
        """Parameters of ``CMVMED`` that the project file sets."""
        return {"labels_drawn": self.settings.data.labels_drawn, **self.settings.model}

    def rows(self) -> ProjectRows:
        """The training rows with their labels, before they are encoded."""
        table = open_sources(self.settings, self._paths(), is_training=True)
        roles = assign_columns(self.settings, table)
        ids = _ids(table)
        cells, said = self._label_cells(table, ids)
        labels = read_label_values(cells, self.settings.data)
        groups = self._groups(table, ids)
        kinds = {column: self._kind(table, column) for columns in roles.views.values() for column in columns}
        if labels.n_trimmed:
            said.append(
                f"{plural(labels.n_trimmed, 'label has', 'labels have')} blanks around the name, which are left out."
            )
        messages = (*table.messages, *roles.messages, *said)
        return ProjectRows(table, ids, labels, groups, roles, kinds, messages)

    def read(self) -> ProjectTable:
        """The training rows, encoded; fits the encoders."""
        rows = self.rows()
        self._check_markers(rows.labels)
        encoders, said = [], []
        for view in self.settings.views:
            encoder, about = self._fit_view(view.name, rows)
            encoders.append(encoder)
            said += about
        self.encoders = encoders
        views = {encoder.name: encoder.encode(rows.table) for encoder in encoders}
        return ProjectTable(rows.ids, views, rows.labels.values, rows.groups, (*rows.messages, *said))

    def read_new(self, path: str | PathLike[str] | Mapping[str, str | PathLike[str]]) -> ProjectTable:
        """Rows to predict, matched by the names of columns and encoded as in training.

        Parameters
        ----------
        path : path, or a dict from view name to path
            A file or folder of the same kind as the training data. If views have paths of their own: a folder with
            files of the same names, or a dict. A view without columns or files is absent in all rows.
        """
        if self.encoders is None:
            self.read()
        assert self.encoders is not None
        paths = self._new_paths(path)
        settings = self.settings
        if not any(view.name in paths.by_view or view.path is None for view in settings.views):
            raise ProjectError(f"{_shown(path)} has none of the files that the views of the project read.")
        table = open_sources(settings, paths, is_training=False)
        said = _compare_columns(self.encoders, table, self._reserved_names())
        views = {encoder.name: encoder.encode(table) for encoder in self.encoders}
        ids = _ids(table)
        column = settings.data.labels
        cells = _first_column(table, settings, column) if column else None
        labels = np.full(table.n_rows, None, dtype=object)
        if cells is not None:
            labels = read_label_values(cells, replace(settings.data, classes=())).values
        return ProjectTable(ids, views, labels, None, (*table.messages, *said))

    def check(self) -> list[Finding]:
        """What looks wrong in the data; see :func:`cmvmed.workbench.check_rows`. Nothing is fitted."""
        return check_rows(self.rows(), self.settings.data)

    def encoder_states(self) -> list[dict[str, Any]]:
        """The fitted encoders as texts, numbers and lists, for a file."""
        if self.encoders is None:
            raise ProjectError("The encoders are fitted by Project.read; call it first.")
        return [encoder_state(encoder) for encoder in self.encoders]

    def set_encoder_states(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Use encoders that :meth:`encoder_states` described."""
        self.encoders = [encoder_from_state(state) for state in states]

    def _paths(self) -> SourcePaths:
        data, views = self.settings.data, self.settings.views
        needs_common = data.path is not None and any(view.path is None for view in views)
        needs_common = needs_common or (data.path is not None and not views)
        common = self.folder / data.path if data.path is not None and needs_common else None
        own = {view.name: self.folder / view.path for view in views if view.path is not None}
        return SourcePaths(common, own, self._annotations())

    def _annotations(self) -> Path | None:
        windows = self.settings.windows
        return None if windows is None or windows.annotations is None else self.folder / windows.annotations

    def _new_paths(self, path: str | PathLike[str] | Mapping[str, str | PathLike[str]]) -> SourcePaths:
        with_own = {view.name: view.path for view in self.settings.views if view.path is not None}
        if isinstance(path, Mapping):
            names = [view.name for view in self.settings.views]
            for name in path:
                if name not in names:
                    raise ProjectError(f"The project has no view {name!r}.{did_you_mean(name, names)}")
            return SourcePaths(None, {name: Path(file) for name, file in path.items()})
        folder = Path(path)
        if not with_own:
            return SourcePaths(folder, {})
        if not folder.is_dir():
            raise ProjectError(
                f"Each view of the project has its own file, so new rows need a folder with {abbreviate(with_own.values())}, or "
                f"one path per view; {_shown(path)} is no folder."
            )
        found = {name: folder / Path(file).name for name, file in with_own.items()}
        common = self.settings.data.path
        common_file = (
            folder / Path(common).name if common is not None and len(with_own) < len(self.settings.views) else None
        )
        return SourcePaths(common_file, {name: file for name, file in found.items() if file.exists()})

    def _label_cells(self, table: RawTable, ids: NDArray[np.object_]) -> tuple[Series, list[str]]:
        data = self.settings.data
        if data.labels is None:
            return pandas().Series([""] * table.n_rows, dtype=object), []
        cells = _first_column(table, self.settings, data.labels)
        if cells is not None:
            return cells, []
        file = self.folder / data.labels
        if file.suffix.lower() in TABLE_FORMATS or file.exists():
            options = DelimitedOptions(data.separator, data.decimal, data.encoding)
            if not file.is_file():
                raise ProjectError(
                    f"There is no file of labels {data.labels!r} beside the project file; labels in [data] is a column of the data "
                    "or a file with id and label."
                )
            return read_label_file(read_table(file, options), list(ids), data)
        raise ProjectError(
            f"{table.source} has no column {data.labels!r}, which labels in [data] names.{did_you_mean(data.labels, table.names)} "
            f"Its columns are {abbreviate(table.names)}."
        )

    def _groups(self, table: RawTable, ids: NDArray[np.object_]) -> NDArray[np.object_] | None:
        name = self.settings.data.groups
        if name is None:
            return None if self.settings.windows is None else recordings_as_groups(table)
        cells = _first_column(table, self.settings, name)
        if cells is None:
            raise ProjectError(
                f"{table.source} has no column {name!r}, which groups in [data] names.{did_you_mean(name, table.names)} Its "
                f"columns are {abbreviate(table.names)}."
            )
        missing = missing_cells(cells)
        texts = np.array([as_text(cell) for cell in cells.astype(object)], dtype=object)
        return np.where(missing, [f"row {key}" for key in ids], texts)  # a row without a group is one of its own

    def _kind(self, table: RawTable, column: str) -> str:
        if column in table.signals:
            return "sound" if table.signals[column].is_sound else "series"
        for pattern, kind in self.settings.kinds.items():
            if column == pattern or column in matching(pattern, [column]):
                return "empty" if missing_cells(table.frame[column]).all() else kind
        return column_kind(table.frame[column], table.decimal)

    def _fit_view(self, name: str, rows: ProjectRows) -> tuple[ViewEncoder, list[str]]:
        said, encoders = [], []
        data = self.settings.data
        for column in rows.roles.views[name]:
            kind = rows.kinds[column]
            reason = {"empty": "holds nothing", "identifier": "differs in every row", "unusable": "holds no cells"}.get(
                kind
            )
            if kind in ("sound", "series") and not rows.table.signals[column].present.any():
                reason = "holds nothing"
            if reason is not None:
                said.append(f"View {name!r}: column {column!r} {reason} and is left out.")
                continue
            said += _bad_cells(rows.table, column, kind, data.day_first)
            encoders.append(
                fit_column(rows.table, column, kind, day_first=data.day_first, sampling_rate=data.sampling_rate)
            )
        if not encoders:
            raise ProjectError(
                f"View {name!r} has no usable column: {' '.join(said)} Remove the view or give it other columns."
            )
        return ViewEncoder(name, tuple(encoders)), said

    def _check_markers(self, labels: LabelValues) -> None:
        sure, _ = likely_markers(labels.counts, self.settings.data)
        if sure:
            raise ProjectError(
                f"The label {sure[0]!r} ({plural(labels.counts[sure[0]], 'row')}) looks like a marker for rows that are not "
                "labeled. Add it to unlabeled in [data]; if it is a class, list all classes in classes."
            )

    def _reserved_names(self) -> set[str]:
        data = self.settings.data
        cut = () if self.settings.windows is None else WINDOW_COLUMNS
        names = {name for name in (data.id, data.labels, data.groups, *data.ignore, *cut) if name is not None}
        return names | {qualified(view.name, name) for view in self.settings.views for name in names}


def _ids(table: RawTable) -> NDArray[np.object_]:
    ids = table.ids if table.ids is not None else [str(row + 1) for row in range(table.n_rows)]
    return np.array(ids, dtype=object)


def _first_column(table: RawTable, settings: ProjectSettings, name: str) -> Series | None:
    """The cells of a column of the common table, or of the first file of a view that has it."""
    candidates = [name, *(qualified(view.name, name) for view in settings.views if view.path is not None)]
    found = [table.frame[candidate] for candidate in candidates if candidate in table.frame.columns]
    if not found:
        return None
    cells = found[0]
    for other in found[1:]:
        cells = cells.astype(object).where(~missing_cells(cells, frozenset({""})), other)
    return cells


def _bad_cells(table: RawTable, column: str, kind: str, day_first: bool | None) -> list[str]:
    """What was assumed of a column, and which cells cannot be read."""
    readers: dict[str, Callable[[Series], Cells]] = {
        "number": lambda series: read_numbers(series, table.decimal),
        "boolean": read_booleans,
        "date": lambda series: read_times(series, day_first=day_first),
    }
    if kind not in readers:
        return []
    cells = readers[kind](table.frame[column])
    said = [f"Column {column!r}: {cells.note}."] if cells.note else []
    if not cells.is_readable:
        row = int(np.flatnonzero(cells.bad)[0])
        raise ProjectError(
            f"Column {column!r}, {table.place(row)}: {str(table.frame[column].iloc[row])!r} is not a {kind}, which [columns] "
            "says it is; correct the cells, or remove the line."
        )
    if cells.bad.any():
        row = int(np.flatnonzero(cells.bad)[0])
        said.append(
            f"Column {column!r} holds {kind}s except {plural(int(cells.bad.sum()), 'cell')}, such as "
            f"{str(table.frame[column].iloc[row])!r} ({table.place(row)}), taken as gaps."
        )
    return said


def _compare_columns(encoders: Sequence[ViewEncoder], table: RawTable, reserved: set[str]) -> list[str]:
    """Messages about columns that new rows lack, have in addition, or write differently."""
    said, names = [], table.names
    known = {name for encoder in encoders for name in encoder.column_names}
    extra = [name for name in names if name not in known | reserved | {FILE_COLUMN, FOLDER_COLUMN}]
    for encoder in encoders:
        lacking = [name for name in encoder.column_names if name not in names]
        hint = did_you_mean(lacking[0], extra) if lacking else ""
        if len(lacking) == len(encoder.column_names):
            said.append(f"View {encoder.name!r} is absent in all rows: {table.source} has none of its columns.{hint}")
        elif lacking:
            said.append(f"View {encoder.name!r}: {table.source} lacks {abbreviate(lacking)}, filled as gaps.{hint}")
        for column in encoder.columns:
            if isinstance(column, CategoryEncoder) and column.column in names:
                unseen = unseen_categories(column, table)
                said += [f"Column {column.column!r} has categories without a feature: {unseen}."] if unseen else []
    if not known & set(names):
        raise ProjectError(
            f"{table.source} has no column of the training data; they are {abbreviate(sorted(known))}, it has "
            f"{abbreviate(names)}. Check the separator and the names in its first line."
        )
    if extra:
        said.append(
            f"{table.source}: {abbreviate(extra)} {'was' if len(extra) == 1 else 'were'} not in training and not used."
        )
    return said


def _shown(path: object) -> str:
    return repr(str(path)) if not isinstance(path, Mapping) else f"{abbreviate(path.values())}"
