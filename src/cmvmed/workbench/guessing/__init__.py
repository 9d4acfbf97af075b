"""A first project file from the data: views, labels, identifiers and groups are guessed, and every guess is said."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

from cmvmed.recordings.sound_files import sound_files
from cmvmed.workbench.guessing.column_guesses import Guess, Guesses
from cmvmed.workbench.guessing.recording_guesses import guess_recordings, guess_sound, recordings_in
from cmvmed.workbench.guessing.table_guesses import guess_file, guess_folder
from cmvmed.workbench.project_file import AUTO, DEFAULT_NAME
from cmvmed.workbench.tables.read import is_pattern, table_files
from cmvmed.workbench.toml_text import project_text, toml_line

__all__ = ["Guess", "Guesses", "init"]


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
        found = guess_recordings(place, folder)
    elif place.is_dir() and sound_files(place):
        found = guess_sound(place, folder)
    elif place.is_dir() and recordings_in(place):
        found = guess_recordings(place, folder)
    elif place.is_dir():
        found = guess_folder(place, folder)
    else:
        found = guess_file(place, folder)
    settings, guesses, messages = found
    if settings.windows is not None or any(view.files is not None for view in settings.views):
        settings = replace(settings, views=tuple(replace(view, features=AUTO) for view in settings.views))
    ignored = toml_line("ignore", settings.data.ignore)  # one line for what is ignored, whatever the reason
    guesses = [replace(guess, line=ignored) if guess.line.startswith("ignore = ") else guess for guess in guesses]
    header = ["Written by `cmvmed init`. `cmvmed check` shows what looks wrong; paths are relative to this file."]
    return Guesses(settings, tuple(guesses), tuple(messages), project_text(settings, header))
