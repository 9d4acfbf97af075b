"""Where the files of a project are: those of the training rows, and those of new rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from cmvmed.workbench.project_file import ProjectSettings
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

__all__ = ["NewPaths", "SourcePaths", "new_paths", "training_paths"]

NewPaths: TypeAlias = str | PathLike[str] | Mapping[str, str | PathLike[str]]  # of all views, or by name of view


@dataclass(frozen=True)
class SourcePaths:
    """Where the tables of a project are: the common one, and those of single views."""

    common: Path | None
    by_view: Mapping[str, Path]
    annotations: Path | None = None


def training_paths(settings: ProjectSettings, folder: Path) -> SourcePaths:
    """The files that the settings name, relative to a folder."""
    data, views, windows = settings.data, settings.views, settings.windows
    needs_common = any(view.path is None for view in views) or not views
    common = folder / data.path if data.path is not None and needs_common else None
    own = {view.name: folder / view.path for view in views if view.path is not None}
    annotations = None if windows is None or windows.annotations is None else folder / windows.annotations
    return SourcePaths(common, own, annotations)


def new_paths(settings: ProjectSettings, path: NewPaths) -> SourcePaths:
    """The files of new rows, which have the names of the training files if each view has its own."""
    paths = _paths_by_view(settings, path) if isinstance(path, Mapping) else _paths_at(settings, path)
    if not any(view.name in paths.by_view or view.path is None for view in settings.views):
        shown = abbreviate(path.values()) if isinstance(path, Mapping) else repr(str(path))
        raise ProjectError(f"{shown} has none of the files that the views of the project read.")
    return paths


def _paths_by_view(settings: ProjectSettings, paths: Mapping[str, str | PathLike[str]]) -> SourcePaths:
    names = [view.name for view in settings.views]
    for name in paths:
        if name not in names:
            raise ProjectError(f"The project has no view {name!r}.{did_you_mean(name, names)}")
    return SourcePaths(None, {name: Path(file) for name, file in paths.items()})


def _paths_at(settings: ProjectSettings, path: str | PathLike[str]) -> SourcePaths:
    folder = Path(path)
    with_own = {view.name: view.path for view in settings.views if view.path is not None}
    if not with_own:
        return SourcePaths(folder, {})
    if not folder.is_dir():
        raise ProjectError(
            f"Each view of the project has its own file, so new rows need a folder with {abbreviate(with_own.values())}, or "
            f"one path per view; {str(path)!r} is no folder."
        )
    found = {name: folder / Path(file).name for name, file in with_own.items()}
    common = settings.data.path
    common_file = folder / Path(common).name if common is not None and len(with_own) < len(settings.views) else None
    return SourcePaths(common_file, {name: file for name, file in found.items() if file.exists()})
