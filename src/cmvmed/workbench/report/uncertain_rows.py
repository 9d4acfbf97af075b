"""The unlabeled rows that the model is least sure of, with what each view says and their signals or columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import MINUS, format_percentage, short
from cmvmed.pages.svg import Axis, element, path, svg_root, to_markup
from cmvmed.workbench.report.model_facts import ModelFacts, column_statistics, dense_rows
from cmvmed.workbench.tables.columns import FloatArray, Signal, envelope
from cmvmed.workbench.tables.rows import ProjectRows
from cmvmed.workbench.view_encoders import absent_rows

N_SHOWN = 8
N_COLUMNS = 3  # of each row that are listed
NEAR_CERTAIN = 0.95  # probability from which on a row is not worth a look
WIDTH, HEIGHT, N_POINTS = 220.0, 40.0, 220
MAX_SIGNALS = 6  # per row


@dataclass(frozen=True)
class UncertainRow:
    """A row between two classes."""

    row: str
    first: str  # most probable class with its probability
    second: str
    by_view: tuple[tuple[str, str], ...]  # view, and its class or that it is absent
    columns: tuple[str, ...]  # those furthest from their mean
    signals: tuple[tuple[str, str], ...]  # name and drawing


def _least_sure(facts: ModelFacts) -> NDArray[np.intp]:
    """Unlabeled rows whose largest probability is smallest, those with a view only."""
    rows = np.intersect1d(facts.unlabeled, facts.rows_with_views)
    largest = facts.distributions[rows].max(axis=1)
    order = np.argsort(largest, kind="stable")[:N_SHOWN]
    return np.asarray(rows[order[largest[order] < NEAR_CERTAIN]])


def uncertain_rows(facts: ModelFacts) -> list[UncertainRow]:
    """The rows for the page, the least sure first."""
    rows = _least_sure(facts)
    if not len(rows):
        return []
    X = {name: matrix[rows] for name, matrix in facts.table.views.items()}
    by_view = facts.model.predict_proba_by_view(X, calibrated=True)
    absent = {name: absent_rows(matrix) for name, matrix in X.items()}
    columns = _notable_columns(facts, rows)
    found = []
    for i, row in enumerate(rows):
        p = facts.distributions[row]
        order = np.argsort(-p, kind="stable")
        views = tuple(
            (short(name), "absent" if absent[name][i] else _class(facts, by_view[name][i])) for name in by_view
        )
        signals = tuple(_sparklines(facts.raw, int(row), f"signal-{i}"))
        first, second = (f"{facts.class_names[k]} {format_percentage(p[k], 0)}" for k in order[:2])
        found.append(UncertainRow(short(facts.table.ids[row]), first, second, views, tuple(columns[i]), signals))
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


def _sparklines(rows: ProjectRows | None, row: int, prefix: str) -> list[tuple[str, str]]:
    """Names and drawings of the signals of a row; none if there are none, or the files are gone. ``prefix`` starts the ids."""
    if rows is None:
        return []
    found = []
    for number, (name, signal) in enumerate(list(rows.table.signals.items())[:MAX_SIGNALS]):
        samples = _samples(signal, row)
        if samples is not None and len(samples) > 1:
            found.append((short(name), _draw(samples, f"{prefix}-{number}", short(name))))
    return found


def _samples(signal: Signal, row: int) -> FloatArray | None:
    """The waveform of a row, (n_samples,); None if it has none or the file cannot be read."""
    if signal.items[row] is None:
        return None
    try:
        samples, _ = signal.waveform(row)
    except (OSError, ValueError, ImportError):
        return None
    return np.asarray(samples[np.isfinite(samples)])


def _draw(samples: FloatArray, element_id: str, name: str) -> str:
    drawn, low, high = envelope(samples, N_POINTS)[1], float(samples.min()), float(samples.max())
    x = Axis(0.0, len(drawn) - 1.0, 1.0, WIDTH - 1.0)
    y = Axis(low, high, HEIGHT - 2.0, 2.0) if high > low else Axis(low - 1.0, low + 1.0, HEIGHT - 2.0, 2.0)
    curve = path([(x(i), y(value)) for i, value in enumerate(drawn)], class_="signal")
    description = f"{len(samples):,} samples from {low:.3g} to {high:.3g}."
    svg = svg_root(element_id, f"Signal {name}", description, WIDTH, HEIGHT, element("g", curve))
    svg.set("class", "sparkline")
    return to_markup(svg)
