"""A view as numbers: the features of its columns and sensors side by side, fitted to the training rows.

A row in which no column of a view is present is NaN throughout, which is how the estimators know that the sensor was
absent. Fitted encoders are written to a model file as plain values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import scipy  # its parts are imported when they are used

from cmvmed.features.feature_cache import FeatureCache
from cmvmed.pages.formatting import plural
from cmvmed.workbench.column_encoders import (
    Block,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    TextEncoder,
    fit_column,
    unseen_categories,
)
from cmvmed.workbench.project_file import AUTO, ProjectSettings, ViewSettings
from cmvmed.workbench.sensor_encoders import SensorEncoder, fit_sensors
from cmvmed.workbench.tables.columns import (
    BoolArray,
    Cells,
    FloatArray,
    Matrix,
    RawTable,
    cells_present,
    is_numeric,
    read_cells,
)
from cmvmed.workbench.tables.read import FILE_COLUMN, FOLDER_COLUMN
from cmvmed.workbench.tables.rows import ProjectRows
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

LEFT_OUT = {"empty": "holds nothing", "identifier": "differs in every row", "unusable": "holds no cells"}
SIGNALS = ("sound", "series")
ENCODERS: dict[str, type[Any]] = {
    encoder.kind: encoder for encoder in (NumberEncoder, DateEncoder, CategoryEncoder, TextEncoder, SensorEncoder)
}


@dataclass(frozen=True)
class ViewEncoder:
    """The encoders of the columns of a view."""

    name: str
    columns: tuple[Any, ...]  # encoders of single columns, and of signals

    @property
    def column_names(self) -> list[str]:
        """Names of the columns in the user's data."""
        return [name for column in self.columns for name in column.sources]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return sum(column.n_features for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return [name for column in self.columns for name in column.feature_names]

    def encode(self, table: RawTable) -> Matrix:
        """Features (n, d) of a table; NaN throughout in rows where the view is absent."""
        has_text = any(column.kind == "text" for column in self.columns)
        blocks = [
            column.encode(table, standardize=has_text)
            if set(column.sources) <= set(table.names)
            else column.absent(table.n_rows, standardize=has_text)
            for column in self.columns
        ]
        present = np.any([block.present for block in blocks], axis=0)
        if has_text:
            sparse: list[Any] = [
                block.values if is_sparse(block.values) else scipy.sparse.csr_array(_filled(block)) for block in blocks
            ]
            return with_absent_rows(scipy.sparse.csr_array(scipy.sparse.hstack(sparse, format="csr")), ~present)
        values = np.hstack([_filled(block) for block in blocks])
        values[~present] = np.nan
        return values


def use_memory(encoders: Iterable[ViewEncoder], memory: FeatureCache | None) -> None:
    """Keep the features of signals in a cache."""
    for encoder in encoders:
        for column in encoder.columns:
            if isinstance(column, SensorEncoder):
                column.features.set_params(memory=memory)


def _filled(block: Block) -> FloatArray:
    """The block with zeros for signals that are absent beside other columns of the view."""
    return np.where(np.isnan(block.values), 0.0, block.values)


def is_sparse(matrix: Matrix) -> bool:
    """Whether a matrix is a sparse one (scipy's own test narrows the type to one without methods)."""
    return bool(scipy.sparse.issparse(matrix))


def absent_rows(matrix: Matrix) -> BoolArray:
    """Which rows of an encoded view are NaN throughout, (n,)."""
    if not is_sparse(matrix):
        return np.asarray(np.isnan(matrix).all(axis=1))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.asarray(np.bincount(rows[np.isnan(matrix.data)], minlength=matrix.shape[0]) == matrix.shape[1])


def with_absent_rows(matrix: Matrix, absent: BoolArray) -> Matrix:
    """The matrix with NaN stored in all columns of the absent rows."""
    if not absent.any():
        return matrix
    n_columns = matrix.shape[1]
    keep = scipy.sparse.diags_array(np.where(absent, 0.0, 1.0))
    rows = np.repeat(np.flatnonzero(absent), n_columns)
    columns = np.tile(np.arange(n_columns), int(absent.sum()))
    nan = scipy.sparse.csr_array((np.full(len(rows), np.nan), (rows, columns)), shape=matrix.shape)
    return scipy.sparse.csr_array(keep @ matrix + nan)


def _bad_cells(table: RawTable, column: str, kind: str, day_first: bool | None) -> list[str]:
    """What was assumed of a column, and which cells cannot be read."""
    if kind not in ("number", "boolean", "date"):
        return []
    cells = read_cells(table, column, kind, day_first=day_first)
    if not cells.is_readable:
        row = int(np.flatnonzero(cells.bad)[0])
        raise ProjectError(
            f"Column {column!r}, {table.place(row)}: {str(table.frame[column].iloc[row])!r} is not a {kind}, which [columns] "
            "says it is; correct the cells, or remove the line."
        )
    return _said_of(table, column, kind, cells)


def _said_of(table: RawTable, column: str, kind: str, cells: Cells) -> list[str]:
    said = [f"Column {column!r}: {cells.note}."] if cells.note else []
    if cells.bad.any() and cells.is_readable:
        row = int(np.flatnonzero(cells.bad)[0])
        said.append(
            f"Column {column!r} holds {kind}s except {plural(int(cells.bad.sum()), 'cell')}, such as "
            f"{str(table.frame[column].iloc[row])!r} ({table.place(row)}), taken as gaps."
        )
    return said


def compare_columns(encoders: Sequence[ViewEncoder], table: RawTable, reserved: set[str]) -> list[str]:
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
            what = "without which its signals are absent" if _are_channels(encoder, lacking) else "filled as gaps"
            said.append(f"View {encoder.name!r}: {table.source} lacks {abbreviate(lacking)}, {what}.{hint}")
        empty = [name for name in encoder.column_names if name in names and not cells_present(table, name).any()]
        if table.n_rows > 1 and 0 < len(empty) < len(encoder.column_names):
            said.append(
                f"View {encoder.name!r}: {abbreviate(empty)} of {table.source} {'holds' if len(empty) == 1 else 'hold'} nothing, "
                "filled as gaps."
            )
        for column in encoder.columns:
            if isinstance(column, CategoryEncoder) and column.column in names:
                unseen = unseen_categories(column, table)
                said += [f"Column {column.column!r} has categories without a feature: {unseen}."] if unseen else []
            elif isinstance(column, (NumberEncoder, DateEncoder)) and column.column in names:
                said += _assumed(column, table)
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


def _assumed(encoder: NumberEncoder | DateEncoder, table: RawTable) -> list[str]:
    """What is assumed of a column of new rows, and which of its cells cannot be read, as :func:`_bad_cells`."""
    if isinstance(encoder, DateEncoder):
        cells = read_cells(table, encoder.column, "date", day_first=encoder.day_first)
    elif encoder.is_boolean or is_numeric(table.frame[encoder.column]):
        return []
    else:
        cells = read_cells(table, encoder.column, "number", usual_decimal=encoder.decimal)
    return _said_of(table, encoder.column, encoder.kind, cells)


def _are_channels(encoder: ViewEncoder, names: Sequence[str]) -> bool:
    return any(set(names) & set(column.sources) for column in encoder.columns if isinstance(column, SensorEncoder))


def fit_views(
    settings: ProjectSettings, rows: ProjectRows, memory: FeatureCache | None
) -> tuple[list[ViewEncoder], list[str]]:
    """The encoders of the views, and what was left out, assumed and chosen."""
    said: dict[str, list[str]] = {}
    columns: dict[str, list[str]] = {}
    for view in settings.views:
        columns[view.name], said[view.name] = _used_columns(view, rows)
    signals = {view: _signals(columns[view.name], rows) for view in settings.views}
    _check_features(signals)
    with_signals = {view: names for view, names in signals.items() if names}
    sensors, about = fit_sensors(rows.table, with_signals, rows.labels.values, settings.data, memory)
    encoders = []
    for view in settings.views:
        cells = [name for name in columns[view.name] if rows.kinds[name] not in SIGNALS]
        fitted = []
        for name in cells:
            said[view.name] += _bad_cells(rows.table, name, rows.kinds[name], settings.data.day_first)
            fitted.append(fit_column(rows.table, name, rows.kinds[name], day_first=settings.data.day_first))
        encoders.append(ViewEncoder(view.name, (*fitted, *sensors.get(view.name, ()))))
    return encoders, [*(message for messages in said.values() for message in messages), *about]


def _used_columns(view: ViewSettings, rows: ProjectRows) -> tuple[list[str], list[str]]:
    """The columns of a view that hold something, and what is said of the others."""
    used, said = [], []
    for column in rows.roles.views[view.name]:
        kind = rows.kinds[column]
        reason = LEFT_OUT.get(kind)
        if kind in SIGNALS and all(item is None for item in rows.table.signals[column].items):
            reason = "holds nothing"
        if reason is None:
            used.append(column)
        else:
            said.append(f"View {view.name!r}: column {column!r} {reason} and is left out.")
    if not used:
        raise ProjectError(
            f"View {view.name!r} has no usable column: {' '.join(said)} Remove the view or give it other columns."
        )
    return used, said


def _signals(columns: list[str], rows: ProjectRows) -> list[str]:
    return [column for column in columns if rows.kinds[column] in SIGNALS]


def _check_features(signals: dict[ViewSettings, list[str]]) -> None:
    for view, names in signals.items():
        given = {"features": view.features not in (None, AUTO), "sampling_rate": view.sampling_rate is not None}
        key = next((key for key, is_given in given.items() if is_given), None)
        if key is not None and not names:
            raise ProjectError(
                f"View {view.name!r} sets {key}, which is for signals, but none of its columns holds signals; remove the line."
            )


def encoder_state(encoder: ViewEncoder) -> dict[str, Any]:
    """The encoder as texts, numbers, tuples of them, and the features of signals."""
    columns = [
        {"kind": column.kind, **{field.name: getattr(column, field.name) for field in fields(column)}}
        for column in encoder.columns
    ]
    return {"name": encoder.name, "columns": columns}


def encoder_from_state(state: Mapping[str, Any]) -> ViewEncoder:
    """The encoder that :func:`encoder_state` described; a state that no encoder can have is an error."""
    return ViewEncoder(
        _typed(state["name"], str, "name"), tuple(_column_from_state(entry) for entry in state["columns"])
    )


def _column_from_state(entry: Mapping[str, Any]) -> Any:
    encoder, types = ENCODERS[entry["kind"]], get_type_hints(ENCODERS[entry["kind"]])
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items() if name != "kind"
    }
    column = encoder(**{name: _typed(value, types[name], name) for name, value in given.items()})
    if not getattr(column, "is_consistent", True):
        raise ProjectError(f"the encoder of column {column.sources[0]!r:.100} holds values that do not fit together")
    return column


def _typed(value: Any, kind: Any, name: str) -> Any:
    """The value, if it is of the type that a field is declared with."""
    alternatives = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    for one in alternatives:
        if get_origin(one) is tuple and isinstance(value, tuple):
            if all(type(item) is get_args(one)[0] for item in value):
                return value
        elif type(value) is one or (value is None and one is NoneType):
            return value
        elif one is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    raise ProjectError(f"an encoder has {name} = {value!r:.100}")
