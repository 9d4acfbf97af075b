"""What the model was learned from: rows, labels by class, views, columns and gaps."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.pages.formatting import DASH, MINUS, format_percentage, join_names, plural
from cmvmed.workbench.checks import describe_rows
from cmvmed.workbench.report.matrices import absent_rows
from cmvmed.workbench.report.model_facts import ModelFacts
from cmvmed.workbench.report.safe_text import short
from cmvmed.workbench.sensor_encoders import SensorEncoder
from cmvmed.workbench.view_encoders import ViewEncoder

__all__ = ["ClassLine", "FeatureLine", "ViewLine", "class_lines", "feature_lines", "row_facts", "view_lines"]

MAX_COLUMNS = 8  # whose names are listed
KIND_WORDS = {  # of columns, by the kind of their encoder: one, and several
    "number": ("number", "numbers"),
    "date": ("date", "dates"),
    "category": ("category", "categories"),
    "text": ("text", "texts"),
    "signals": ("signal", "signals"),
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


@dataclass(frozen=True)
class FeatureLine:
    """One kind of features that was compared for the signals of a view."""

    name: str  # of the view
    kind: str
    n_features: str  # of the chosen kind
    held_out_r2: str
    agreement: str
    score: str
    is_chosen: bool


def feature_lines(facts: ModelFacts) -> list[FeatureLine]:
    """The kinds of features of all signals, those of a view together."""
    return [
        line
        for encoder in facts.project.encoders or []
        for column in encoder.columns
        if isinstance(column, SensorEncoder)
        for line in _kinds(short(encoder.name), column)
    ]


def _kinds(view: str, encoder: SensorEncoder) -> list[FeatureLine]:
    chosen = encoder.features.n_features_by_kind
    if not encoder.compared:
        return [FeatureLine(view, encoder.features.kind, f"{sum(chosen.values()):,}", DASH, DASH, DASH, True)]
    columns = (encoder.compared, encoder.held_out_r2, encoder.agreement, encoder.score)
    lines = []
    for compared, r2, agreement, score in zip(*columns, strict=True):
        kinds = compared.split("+")
        is_chosen = all(kind in chosen for kind in kinds)
        n_features = f"{sum(chosen[kind] for kind in kinds):,}" if is_chosen else DASH
        lines.append(FeatureLine(view, compared, n_features, _fixed(r2), _fixed(agreement), _fixed(score), is_chosen))
    return lines


def _fixed(value: float) -> str:
    return DASH if np.isnan(value) else f"{value:.2f}".replace("-", MINUS)


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
        found.append(("Groups", f"{n_groups:,} of {short(facts.group_name)}, held out together"))
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
    kinds = Counter(column.kind for column in encoder.columns for _ in column.sources)
    names = [short(name, 24) for name in encoder.column_names]
    more = len(names) - MAX_COLUMNS
    listed = ", ".join(names[:MAX_COLUMNS]) + (f" and {more} more" if more > 0 else "")
    return f"{join_names([plural(count, *KIND_WORDS[kind]) for kind, count in kinds.items()])}: {listed}"
