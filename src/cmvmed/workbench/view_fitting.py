"""Fits the encoders of all views to the training rows."""

from cmvmed.features import FeatureCache
from cmvmed.workbench.column_encoders import fit_column
from cmvmed.workbench.column_messages import bad_cells
from cmvmed.workbench.project_file import AUTO, ProjectSettings, ViewSettings
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.sensor_encoders import fit_sensors
from cmvmed.workbench.user_errors import ProjectError
from cmvmed.workbench.view_encoders import ViewEncoder

__all__ = ["fit_views"]

LEFT_OUT = {"empty": "holds nothing", "identifier": "differs in every row", "unusable": "holds no cells"}
SIGNALS = ("sound", "series")


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
            said[view.name] += bad_cells(rows.table, name, rows.kinds[name], settings.data.day_first)
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
