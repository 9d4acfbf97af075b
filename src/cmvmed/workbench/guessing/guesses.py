"""What is guessed of data: a project, and what is said about each guess."""

from dataclasses import dataclass
from os import path as os_path
from pathlib import Path

from cmvmed.workbench.project_file import ProjectSettings
from cmvmed.workbench.readers import is_pattern

__all__ = ["Found", "Guess", "Guesses", "relative_path"]


@dataclass(frozen=True)
class Guess:
    r"""Something that was guessed, and the line of the project file that says it.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import init
    >>> init("windows.csv").guesses[0].line
    'id = "id"'
    """

    what: str
    line: str


@dataclass(frozen=True)
class Guesses:
    r"""A guessed project.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import init
    >>> guesses = init("windows.csv")
    >>> guesses.settings.data.labels, "[views.acc]" in guesses.text
    ('label', True)
    """

    settings: ProjectSettings
    guesses: tuple[Guess, ...]
    messages: tuple[str, ...]  # what was assumed when files were read
    text: str  # of the project file


Found = tuple[ProjectSettings, list[Guess], list[str]]  # with messages of reading files


def relative_path(path: Path, folder: Path) -> str:
    """The path as the project file writes it: relative, with forward slashes, if that is not longer."""
    relative = os_path.relpath(path.resolve() if not is_pattern(str(path)) else Path.cwd() / path, folder)
    return Path(relative).as_posix()
