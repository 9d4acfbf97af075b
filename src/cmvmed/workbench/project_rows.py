"""The rows of a project between files and features: cells, labels, groups and what each column is for."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.workbench.encoders import cells_present
from cmvmed.workbench.frames import BoolArray, RawTable
from cmvmed.workbench.label_values import LabelValues
from cmvmed.workbench.view_columns import ColumnRoles

__all__ = ["ProjectRows"]


@dataclass(frozen=True)
class ProjectRows:
    """Rows of a project before they are encoded."""

    table: RawTable
    ids: NDArray[np.object_]
    labels: LabelValues
    groups: NDArray[np.object_] | None
    roles: ColumnRoles
    kinds: Mapping[str, str]  # of the columns of views
    messages: tuple[str, ...]

    def present(self, view: str) -> BoolArray:
        """Which rows have a view, (n,)."""
        present = [cells_present(self.table, column) for column in self.roles.views[view]]
        return np.asarray(np.any(present, axis=0))
