"""The unlabeled rows that the model is least sure of, with what each view says and their signals or columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import MINUS, format_percentage
from cmvmed.workbench.frames import FloatArray
from cmvmed.workbench.report.matrices import absent_rows, column_statistics, dense_rows
from cmvmed.workbench.report.model_facts import ModelFacts
from cmvmed.workbench.report.safe_text import short
from cmvmed.workbench.report.sparklines import Sparkline, sparklines

__all__ = ["UnsureRow", "least_sure", "unsure_rows"]

N_SHOWN = 8
N_COLUMNS = 3  # of each row that are listed
NEAR_CERTAIN = 0.95  # probability from which on a row is not worth a look


@dataclass(frozen=True)
class UnsureRow:
    """A row between two classes."""

    row: str
    first: str  # most probable class with its probability
    second: str
    by_view: tuple[tuple[str, str], ...]  # view, and its class or that it is absent
    columns: tuple[str, ...]  # those furthest from their mean
    signals: tuple[Sparkline, ...]


def least_sure(facts: ModelFacts, n: int = N_SHOWN) -> NDArray[np.intp]:
    """Unlabeled rows whose largest probability is smallest, those with a view only."""
    rows = np.intersect1d(facts.unlabeled, facts.rows_with_views)
    largest = facts.distributions[rows].max(axis=1)
    order = np.argsort(largest, kind="stable")[:n]
    return np.asarray(rows[order[largest[order] < NEAR_CERTAIN]])


def unsure_rows(facts: ModelFacts) -> list[UnsureRow]:
    """The rows for the page, the least sure first."""
    rows = least_sure(facts)
    if not len(rows):
        return []
    X = {name: matrix[rows] for name, matrix in facts.table.views.items()}
    by_view = facts.model.predict_proba_by_view(X)
    absent = {name: absent_rows(matrix) for name, matrix in X.items()}
    columns = _notable_columns(facts, rows)
    found = []
    for i, row in enumerate(rows):
        p = facts.distributions[row]
        order = np.argsort(-p, kind="stable")
        views = tuple(
            (short(name), "absent" if absent[name][i] else _class(facts, by_view[name][i])) for name in by_view
        )
        signals = tuple(sparklines(facts.raw, int(row), f"signal-{i}"))
        first, second = (f"{facts.class_names[k]} {format_percentage(p[k], 0)}" for k in order[:2])
        found.append(UnsureRow(short(facts.table.ids[row]), first, second, views, tuple(columns[i]), signals))
    return found


def _class(facts: ModelFacts, p: FloatArray) -> str:
    k = int(p.argmax())
    return f"{facts.class_names[k]} {format_percentage(p[k], 0)}"


def _notable_columns(facts: ModelFacts, rows: NDArray[np.intp]) -> list[list[str]]:
    """For each row, the features that differ most from their mean, in standard deviations, with their values."""
    names, values, z = [], [], []
    encoders = {encoder.name: encoder for encoder in facts.project.encoders or []}
    for view, matrix in facts.table.views.items():
        own = encoders[view].feature_names if view in encoders else [f"{view}.{j}" for j in range(matrix.shape[1])]
        mean, scale = column_statistics(matrix)
        block = dense_rows(matrix, rows)
        deviation = np.divide(block - mean, scale, out=np.zeros_like(block), where=scale > 0.0)
        names += own
        values.append(block)
        z.append(np.nan_to_num(deviation, nan=0.0))
    values_of, z_of = np.hstack(values), np.hstack(z)
    found = []
    for block, deviation in zip(values_of, z_of, strict=True):
        order = np.argsort(-np.abs(deviation), kind="stable")[:N_COLUMNS]
        found.append([f"{short(names[j], 30)} = {_number(block[j])} ({_signed(deviation[j])} sd)" for j in order])
    return found


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", MINUS)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", MINUS)
