"""What a check finds: a level, the name of the check, and a sentence with what to do."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["FULL", "NEARLY_NONE", "Finding", "Level"]

Level: TypeAlias = Literal["error", "warning", "note"]

FULL, NEARLY_NONE = 0.95, 0.05  # shares of rows


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
