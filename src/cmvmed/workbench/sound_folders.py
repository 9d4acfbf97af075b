"""Folders of sound files: one row per event, one view per sub-folder, name or channel.

The pattern of a view, such as ``mic_a/*.wav``, says both which files belong to it and which row each belongs to: what the
``*`` stands for is the identifier of the row. Files of different views with the same identifier are one row.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cmvmed.recordings.sound_files import SOUND_FORMATS, audio_header, sound_files
from cmvmed.recordings.sound_files import match_files as files_by_case
from cmvmed.workbench.frames import RawTable, Signal, pandas
from cmvmed.workbench.project_file import ViewSettings
from cmvmed.workbench.user_errors import ProjectError, abbreviate, as_project_error

__all__ = ["FOLDER_COLUMN", "match_files", "read_sound_folder", "sound_files"]

FOLDER_COLUMN = "folder"  # name of the folder of a row's file: classes are often folders


def match_files(folder: Path, pattern: str, files: Sequence[Path] | None = None) -> dict[str, Path]:
    """Files that match a pattern, by the identifier of their row."""
    with as_project_error():
        return files_by_case(folder, pattern, files)


def read_sound_folder(folder: Path, views: Sequence[ViewSettings]) -> RawTable:
    """The rows of a folder of sound files, with one signal per view."""
    if folder.is_file() and folder.suffix.lower() in SOUND_FORMATS:
        return _single_file(folder, views)
    if not folder.is_dir():
        raise ProjectError(f"There is no folder {str(folder)!r}; views with sound files need the folder as path.")
    found = sound_files(folder)
    files = {view.name: match_files(folder, view.files, found) for view in views if view.files is not None}
    if not any(files.values()):
        patterns = abbreviate(view.files for view in views)
        have = abbreviate(file.relative_to(folder).as_posix() for file in found) or "no sound file"
        raise ProjectError(f"No sound file in {str(folder)!r} matches {patterns}; it has {have}.")
    empty = [view for view in views if not files[view.name]]
    messages = tuple(f"View {v.name!r}: no file matches {v.files!r}, so it is absent in all rows." for v in empty)
    ids = sorted({row for by_row in files.values() for row in by_row})
    signals = {
        view.name: Signal(
            [_path(files[view.name].get(row)) for row in ids], is_sound=True, channel=_channel(view, files)
        )
        for view in views
    }
    first = [next(by_row[row] for by_row in files.values() if row in by_row) for row in ids]
    frame = pandas().DataFrame({FOLDER_COLUMN: [file.parent.name for file in first]}, index=range(len(ids)))
    return RawTable(folder.name, frame, signals, messages=messages, ids=ids)


def _single_file(file: Path, views: Sequence[ViewSettings]) -> RawTable:
    """One event in one file, in which each view is a channel or there is one view only."""
    if len(views) > 1 and any(view.channel is None for view in views):
        raise ProjectError(
            f"{file.name} is one sound file, but the project has {len(views)} views with files of their own; give the folder that "
            "holds the files of all views."
        )
    signals = {view.name: Signal([str(file)], is_sound=True, channel=view.channel) for view in views}
    frame = pandas().DataFrame({FOLDER_COLUMN: [file.parent.name]}, index=np.arange(1))
    return RawTable(file.name, frame, signals, ids=[file.stem])


def _channel(view: ViewSettings, files: dict[str, dict[str, Path]]) -> int | None:
    """The channel of a view; a file of several channels needs one."""
    some = next(iter(files[view.name].values()), None)
    if some is None:
        return view.channel
    n_channels = audio_header(some).channels
    if view.channel is None and n_channels > 1:
        raise ProjectError(
            f"View {view.name!r}: {some.name} has {n_channels} channels; give the view channel = 0 to {n_channels - 1}, and add a "
            "view for each other channel."
        )
    if view.channel is not None and not 0 <= view.channel < n_channels:
        raise ProjectError(
            f"View {view.name!r} has channel = {view.channel}, but {some.name} has {n_channels} channels, numbered from 0."
        )
    return view.channel


def _path(file: Path | None) -> str | None:
    return None if file is None else str(file)
