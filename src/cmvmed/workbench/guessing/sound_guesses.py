"""Folders of sound files: sub-folders, words in names and channels as views."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cmvmed.data.labels import UNLABELED_WORDS
from cmvmed.recordings.sound_files import audio_header, sound_files
from cmvmed.workbench.guessing.guesses import Found, Guess, relative_path
from cmvmed.workbench.guessing.label_guesses import with_label_file
from cmvmed.workbench.guessing.view_guesses import MAX_VIEWS, view_name
from cmvmed.workbench.guessing.window_guesses import annotated_windows, annotation_file
from cmvmed.workbench.project_file import LABEL_COLUMN, DataSettings, ProjectSettings, ViewSettings, WindowSettings
from cmvmed.workbench.readers import TABLE_FORMATS
from cmvmed.workbench.sound_folders import FOLDER_COLUMN, match_files
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import abbreviate, plural

__all__ = ["guess_sound"]


def guess_sound(path: Path, folder: Path) -> Found:
    """Sub-folders are views or labels; in one folder, words in the names of files or channels are views."""
    files = sound_files(path)
    suffixes = {file.suffix for file in files}
    ending = suffixes.pop() if len(suffixes) == 1 else ""
    subfolders = sorted({file.parent.relative_to(path).as_posix() for file in files})
    stems = {name: {file.stem for file in files if file.parent == path / name} for name in subfolders}
    data = DataSettings(path=relative_path(path, folder))
    guesses: list[Guess] = []
    label_file = next(
        (f for f in sorted(path.iterdir()) if "label" in f.stem.casefold() and f.suffix in TABLE_FORMATS), None
    )
    is_labeled = label_file is not None or annotation_file(path) is not None
    if len(subfolders) > 1 and (is_labeled or _mostly_shared(list(stems.values()))):
        views = tuple(ViewSettings(view_name(name), files=f"{name}/*{ending}") for name in subfolders)
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
        windows, about = annotated_windows(path, folder, WindowSettings())
        kept = [guess for guess in guesses if not guess.line.startswith(("labels", "unlabeled"))]
        return ProjectSettings(replace(data, labels=LABEL_COLUMN), views, windows=windows), [*kept, *about], []
    if data.labels is None:
        data, guesses = with_label_file(path, folder, data, guesses, exclude=[])
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
            views = tuple(ViewSettings(view_name(word), files=one) for word, one in patterns.items())
            which = "last" if at else "first"
            said = f"{plural(len(views), 'view')} by the {which} word of the names of files: {abbreviate(words)}"
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
