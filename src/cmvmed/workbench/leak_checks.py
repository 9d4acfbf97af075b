"""Columns that alone determine the class, or are filled in labeled rows only."""

from collections.abc import Iterator
from itertools import pairwise
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.workbench.column_kinds import cells_present, missing_cells, read_booleans, read_numbers, read_times
from cmvmed.workbench.findings import FULL, NEARLY_NONE, Finding
from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.user_errors import plural

__all__ = ["determines", "leak_findings"]

CHANCE = 0.01  # probability under which a pattern is not called chance, over all columns together


def leak_findings(rows: ProjectRows) -> Iterator[Finding]:
    """Columns that alone determine the class, or are filled only where there is a label."""
    labeled = rows.labels.labeled
    if not labeled.any():
        return
    classes, codes = np.unique(rows.labels.values[labeled].astype(str), return_inverse=True)
    owners = [(view, column) for view, columns in rows.roles.views.items() for column in columns]
    for view, column in owners:
        if column in rows.table.signals:
            continue
        kind = rows.kinds[column]
        if kind in ("number", "boolean", "date", "category") and len(classes) > 1:
            values = _comparable(rows.table, column, kind)[labeled]
            if determines(values, codes, len(owners), ordered=kind in ("number", "date")):
                yield Finding(
                    "warning",
                    "leak",
                    f"View {view!r}, column {column!r} alone determines the class of all "
                    f"{plural(int(labeled.sum()), 'labeled row')}. If it was derived from the label, or is not known for new "
                    "rows, put it into ignore in [data].",
                )
        present = cells_present(rows.table, column)
        if (~labeled).any() and present[labeled].mean() >= FULL and present[~labeled].mean() <= NEARLY_NONE:
            yield Finding(
                "warning",
                "filled_if_labeled",
                f"View {view!r}, column {column!r} is filled in labeled rows only, as something noted together with the label "
                "is. Put it into ignore in [data] unless new rows will have it.",
            )


def determines(values: NDArray[Any], codes: NDArray[np.intp], n_columns: int, *, ordered: bool) -> bool:
    """Whether the values determine the classes, and chance would not do that in one of ``n_columns`` columns.

    Of all n!/Π n_k! orders of the labels, at most K! have each class in one stretch of the sorted values, and at most
    K^V are constant on each of V different values.
    """
    known = np.array([value is not None and value == value for value in values])
    if not known.all():
        return False
    counts = np.bincount(codes)
    log_orders = lgamma(counts.sum() + 1) - sum(lgamma(count + 1) for count in counts)
    pairs = sorted(set(zip(values.tolist(), codes.tolist(), strict=True)))
    if len({value for value, _ in pairs}) < len(pairs):
        return False  # a value with two classes
    n_stretches = 1 + sum(a[1] != b[1] for a, b in pairwise(pairs))
    in_stretches = ordered and n_stretches == len(counts)
    log_ways = min(
        lgamma(len(counts) + 1) if in_stretches else np.inf,
        len(pairs) * log(len(counts)) if len(pairs) < len(codes) else np.inf,
    )
    return bool(log_ways - log_orders + log(n_columns) < log(CHANCE))


def _comparable(table: RawTable, column: str, kind: str) -> NDArray[Any]:
    """The cells of a column as values with an order; None or NaN where there is none."""
    series = table.frame[column]
    if kind in ("number", "boolean"):
        return (read_booleans(series) if kind == "boolean" else read_numbers(series, table.decimal)).values
    if kind == "date":
        return read_times(series).values
    cells = series.astype(object).map(str).to_numpy(dtype=object)
    cells[missing_cells(series)] = None
    return np.asarray(cells)
