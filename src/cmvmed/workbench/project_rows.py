"""The rows of a project: between files and features, and as an estimator takes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.workbench.column_kinds import cells_present
from cmvmed.workbench.frames import BoolArray, RawTable
from cmvmed.workbench.label_values import LabelValues
from cmvmed.workbench.view_columns import ColumnRoles

__all__ = ["ProjectRows", "ProjectTable"]


@dataclass(frozen=True)
class ProjectRows:
    r"""Rows of a project before they are encoded.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> rows = project.rows()
    >>> rows.ids.tolist(), rows.present("gyr").tolist()
    (['1', '2', '3'], [True, True, True])
    """

    table: RawTable
    ids: NDArray[np.object_]
    labels: LabelValues
    groups: NDArray[np.object_] | None
    roles: ColumnRoles
    kinds: Mapping[str, str]  # of the columns of views
    messages: tuple[str, ...]
    labels_drawn: str = "unknown"  # parameter of CMVMED

    def present(self, view: str) -> BoolArray:
        """Which rows have a view, (n,)."""
        present = [cells_present(self.table, column) for column in self.roles.views[view]]
        return np.asarray(np.any(present, axis=0))


@dataclass(frozen=True)
class ProjectTable:
    r"""Rows of a project as an estimator takes them.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Identifiers as text; the numbers of rows if the data have none.
    views : dict of str to array or sparse matrix of shape (n, d)
        ``X`` of the estimators. A row whose view is absent is NaN in all its columns.
    labels : ndarray of shape (n,)
        ``y`` of the estimators: text, and None where a row is not labeled.
    groups : ndarray of shape (n,) or None
    messages : tuple of str
        What was assumed and left out.
    labels_drawn : str
        Parameter of ``CMVMED``: that of the project file, or "chosen" if it says "unknown" and rows were labeled on the
        page, or after `cmvmed suggest`, because of what they are.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n4,0.2,2.0,b\n5,0.2,1.5,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> table = project.read()
    >>> table.labels.tolist(), table.views["acc"].shape
    (['a', 'b', 'a', 'b', None], (5, 1))
    """

    ids: NDArray[np.object_]
    views: dict[str, Any]
    labels: NDArray[np.object_]
    groups: NDArray[np.object_] | None
    messages: tuple[str, ...] = ()
    labels_drawn: str = "unknown"
