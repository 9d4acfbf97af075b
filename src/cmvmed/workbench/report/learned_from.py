"""What the model was learned from: rows, labels by class, views, columns and gaps."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.pages.formatting import DASH, format_percentage, join_names, plural
from cmvmed.workbench.checks import describe_rows
from cmvmed.workbench.encoders import ViewEncoder
from cmvmed.workbench.report.matrices import absent_rows
from cmvmed.workbench.report.model_facts import ModelFacts
from cmvmed.workbench.report.safe_text import short

__all__ = ["ClassLine", "ViewLine", "class_lines", "row_facts", "view_lines"]

MAX_COLUMNS = 8  # whose names are listed
KIND_WORDS = {  # of columns, by the kind of their encoder: one, and several
    "number": ("number", "numbers"),
    "date": ("date", "dates"),
    "category": ("category", "categories"),
    "text": ("text", "texts"),
    "sound": ("sound", "sounds"),
    "series": ("time series", "time series"),
}


@dataclass(frozen=True)
class ClassLine:
    """Labels of one class."""

    name: str
    n_labels: str
    share_of_labels: str
    estimated_share: str  # among the unlabeled rows


@dataclass(frozen=True)
class ViewLine:
    """Columns and gaps of one view."""

    name: str
    columns: str
    n_features: str
    n_absent: str
    n_missing_cells: str


def row_facts(facts: ModelFacts) -> list[tuple[str, str]]:
    """Name and value of each fact about the rows."""
    found = [
        ("Data", short(facts.project.settings.data.path or "a file for each view")),
        ("Rows", f"{facts.n_rows:,}, of which {facts.n_labeled:,} are labeled"),
        ("Classes", join_names(facts.class_names[:6]) + (" and others" if len(facts.class_names) > 6 else "")),
        ("Views", join_names([short(name) for name in facts.model.view_names_])),
    ]
    if facts.table.groups is not None:
        n_groups = len(set(facts.table.groups))
        found.append(("Groups", f"{n_groups:,} of {short(facts.project.settings.data.groups)}, held out together"))
    return found


def class_lines(facts: ModelFacts) -> list[ClassLine]:
    """A line for each class, the largest first."""
    counts, shares = facts.label_counts, facts.model.class_prior_
    order = np.lexsort([np.arange(len(counts)), -counts])
    return [
        ClassLine(
            facts.class_names[k],
            f"{counts[k]:,}",
            format_percentage(counts[k] / counts.sum()),
            format_percentage(shares[k]),
        )
        for k in order
    ]


def view_lines(facts: ModelFacts) -> list[ViewLine]:
    """A line for each view."""
    encoders = {encoder.name: encoder for encoder in facts.project.encoders or []}
    in_files: Mapping[str, Any] = {} if facts.raw is None else describe_rows(facts.raw)["views"]
    lines = []
    for name, matrix in facts.table.views.items():
        n_absent = int(absent_rows(matrix).sum())
        missing = in_files[name]["cells_missing"] if name in in_files else None
        lines.append(
            ViewLine(
                short(name),
                _columns(encoders[name]) if name in encoders else DASH,
                f"{matrix.shape[1]:,}",
                f"{n_absent:,} ({format_percentage(n_absent / facts.n_rows, 0)})" if n_absent else "0",
                DASH if missing is None else f"{missing:,}",
            )
        )
    return lines


def _columns(encoder: ViewEncoder) -> str:
    """Kinds and names of the columns of a view."""
    kinds = Counter(column.kind for column in encoder.columns)
    names = [short(name, 24) for name in encoder.column_names]
    more = len(names) - MAX_COLUMNS
    listed = ", ".join(names[:MAX_COLUMNS]) + (f" and {more} more" if more > 0 else "")
    return f"{join_names([plural(count, *KIND_WORDS[kind]) for kind, count in kinds.items()])}: {listed}"
