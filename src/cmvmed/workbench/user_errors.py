"""What is said of a user's files: errors that stop a command, and findings, each with what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from cmvmed._html import MARKS, html_box, html_sentence, html_table

SHOWN = 6  # names listed before the rest is counted
Level: TypeAlias = Literal["error", "warning", "note"]
FULL, NEARLY_NONE = 0.95, 0.05  # shares of rows


class ProjectError(ValueError):
    """A project file or a data file that cannot be used as it is.

    Examples
    --------
    >>> from cmvmed.workbench import Project, ProjectError
    >>> try:
    ...     Project.load("no_such_file.toml")
    ... except ProjectError as error:
    ...     print("no_such_file.toml" in str(error))
    True
    """


@contextmanager
def as_project_error() -> Iterator[None]:
    """Raise errors of the readers in ``cmvmed.recordings`` as errors in a user's files."""
    try:
        yield
    except ValueError as error:
        raise error if isinstance(error, ProjectError) else ProjectError(str(error)) from error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` for the known name that is most similar, or nothing."""
    by_folded = {item.strip().casefold(): item for item in known}
    close = get_close_matches(name.strip().casefold(), by_folded, n=1)
    return f" Did you mean {by_folded[close[0]]!r}?" if close else ""


def abbreviate(names: Iterable[object]) -> str:
    """The first names, quoted, and how many more there are."""
    items = list(names)
    shown = ", ".join(repr(str(item)) for item in items[:SHOWN])
    return shown if len(items) <= SHOWN else f"{shown} and {len(items) - SHOWN} more"


@dataclass(frozen=True)
class Finding:
    """Something that looks wrong, and what to do.

    Attributes
    ----------
    level : {"error", "warning", "note"}
        An error makes results meaningless, a warning probably worse; a note is for information.
    code : str
        Name of the check.
    message : str
        One or two sentences with the view, column or row, and what to do.

    Examples
    --------
    >>> from cmvmed.workbench import Finding
    >>> finding = Finding("warning", "constant", "Column 'acc_x' is constant; leave it out.")
    >>> finding.level, finding.code
    ('warning', 'constant')
    """

    level: Level
    code: str
    message: str


class Findings(list[Finding]):
    """Findings that a notebook shows as a table.

    Examples
    --------
    >>> from cmvmed.workbench import Finding, Findings
    >>> findings = Findings([Finding("warning", "constant", "Column 'acc_x' is constant; leave it out.")])
    >>> "acc_x" in findings._repr_html_()
    True
    """

    def _repr_html_(self) -> str:
        if not self:
            return html_box(html_sentence("Nothing looks wrong.", mark="yes"))
        rows = ((f"{MARKS[finding.level]} {finding.level}", finding.code, finding.message) for finding in self)
        return html_box(html_table(("", "check", "what to do"), "lll", rows))
