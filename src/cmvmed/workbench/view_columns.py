"""Which columns belong to which view."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.joining import qualified
from cmvmed.workbench.project_file import DataSettings, ProjectSettings, ViewSettings
from cmvmed.workbench.readers import FILE_COLUMN, is_pattern, matching
from cmvmed.workbench.recording_rows import WINDOW_COLUMNS
from cmvmed.workbench.sound_folders import FOLDER_COLUMN
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

__all__ = ["ColumnRoles", "assign_columns"]


@dataclass(frozen=True)
class ColumnRoles:
    """What the columns of a table are for."""

    views: dict[str, list[str]]
    reserved: dict[str, str]  # column -> "id", "labels" or "groups"
    messages: tuple[str, ...]


def assign_columns(settings: ProjectSettings, table: RawTable) -> ColumnRoles:
    """Find the columns of each view; each column belongs to one at most."""
    names = table.names
    reserved = _reserved(settings.data, settings, names)
    ignored = [name for pattern in settings.data.ignore for name in _ignored(pattern, names, settings)]
    said = [
        f"ignore in [data] lists {pattern!r}, which is no column of {table.source}."
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
