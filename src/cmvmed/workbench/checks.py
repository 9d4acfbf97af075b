"""What ruins results silently: labels, rows, columns, groups and times that look wrong. Nothing is fitted."""

from collections import Counter
from typing import Any

import numpy as np

from cmvmed.workbench.column_checks import column_findings, gap_findings, repeated_row_findings, sound_findings
from cmvmed.workbench.column_kinds import cells_present
from cmvmed.workbench.findings import Finding
from cmvmed.workbench.group_checks import group_findings, time_findings
from cmvmed.workbench.label_checks import label_findings
from cmvmed.workbench.leak_checks import leak_findings
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.project_rows import ProjectRows

__all__ = ["check_rows", "describe_rows"]


def check_rows(rows: ProjectRows, data: DataSettings) -> list[Finding]:
    r"""All findings about the rows of a project, errors first.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, check_rows, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> findings = check_rows(project.rows(), project.settings.data)
    >>> all(finding.message for finding in findings)
    True
    """
    findings = [
        *label_findings(rows, data),
        *column_findings(rows),
        *sound_findings(rows),
        *gap_findings(rows),
        *repeated_row_findings(rows),
        *leak_findings(rows),
        *group_findings(rows, data),
        *time_findings(rows),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(findings, key=lambda finding: order[finding.level])


def describe_rows(rows: ProjectRows) -> dict[str, Any]:
    r"""Counts of rows, labels per class, columns and gaps per view.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, describe_rows, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> facts = describe_rows(project.rows())
    >>> facts["rows"], facts["labeled"], facts["labels_per_class"]
    (3, 2, {'a': 1, 'b': 1})
    """
    n_rows = rows.table.n_rows
    views = {}
    for name, columns in rows.roles.views.items():
        present = rows.present(name)
        cells = np.array([cells_present(rows.table, column)[present].sum() for column in columns])
        total = int(present.sum()) * len(columns)
        views[name] = {
            "columns": len(columns),
            "kinds": dict(Counter(rows.kinds[column] for column in columns)),
            "rows_absent": int(n_rows - present.sum()),
            "cells_missing": int(total - cells.sum()),
        }
    labeled = int(sum(rows.labels.counts.values()))
    return {
        "rows": n_rows,
        "labeled": labeled,
        "unlabeled": n_rows - labeled,
        "labels_per_class": dict(rows.labels.counts),
        "groups": None if rows.groups is None else len(set(rows.groups)),
        "views": views,
    }
