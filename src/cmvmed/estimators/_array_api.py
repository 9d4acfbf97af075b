"""Predictions where the user's arrays are, by any library that follows the array API standard: torch, CuPy and others.

Kernels, sums over landmarks and everything after them are computed by that library in double precision, from the formulas that
:mod:`cmvmed.estimators._onnx_model` writes. Coefficients of landmarks are large and of both signs, so that single precision
would lose digits. What the formulas do not hold is computed by numpy and moved: kernels that are functions or precomputed, sets
of classes, and all on devices without double precision.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cmvmed.data.array_api import ArrayPlace, on_host
from cmvmed.data.layout import InputSchema, check_equal_counts, check_widths, is_view_collection, parts_by_view
from cmvmed.data.reading import InputSettings
from cmvmed.data.sources.array_rows import ArrayApiRows, rows_at_a_time
from cmvmed.data.validation import RowCheck
from cmvmed.estimators._onnx_model import compared_rows, model_formulas
from cmvmed.estimators._prediction import FittedModel, OutputKind, ScoredRows, predict, warn_without_views
from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.types import Array
from cmvmed.onnx_export.array_program import ArrayProgram, ArrayRunner
from cmvmed.onnx_export.expansions import KERNELS, view_expansion


def predict_arrays(model: FittedModel, X: Any, kind: OutputKind, settings: InputSettings, place: ArrayPlace) -> Any:
    """The "score", "class" or "probability" of rows, as an array of their library on their device; texts by numpy."""
    if not has_formulas(model) or not isinstance(kind, str) or not place.has_double_precision:
        return place.put(predict(model, on_host(X), kind, settings))
    logits, coverage = _logits(model, _new_rows(X, model.schema, place), model.row_check)
    _warn_without_views(coverage, place)
    return _output(model, logits, kind, place)


def probabilities_of_rows(model: FittedModel, rows: ArrayApiRows, check: RowCheck) -> tuple[Array, Array]:
    """The probability of each class (n, K) and the coverage (n,), computed where the rows are and moved.

    ``check`` says which columns of rows do not matter.
    """
    logits, coverage = _logits(model, rows, check)
    return on_host(_output(model, logits, "probability", rows.place)), on_host(coverage)[:, 0]


def has_formulas(model: FittedModel) -> bool:
    """Whether all kernels of a model can be computed by other libraries."""
    return all(kernel.kind in KERNELS for kernel in _kernels(model))


def _kernels(model: FittedModel) -> Iterator[Kernel]:
    """All kernels of a model."""
    yield from (view_expansion(predictor).kernel for predictor in model.predictors)
    if model.opinions is not None:
        parts = [part for scorer in model.opinions.pool.scorers for part in scorer.parts]
        yield from (part.kernel for part in parts if isinstance(part, KernelScorer))


def _new_rows(X: Any, schema: InputSchema, place: ArrayPlace) -> ArrayApiRows:
    """The rows of each view; NaN for a view that is None."""
    if not is_view_collection(X):
        _check_shapes({"X": X.shape})
        if X.shape[1] != schema.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but fit saw {schema.n_features}; pass the same columns.")
        return ArrayApiRows(place, [X], schema.layout)
    parts = parts_by_view(X, schema)
    shapes = {view: part.shape for view, part in zip(schema.view_names, parts, strict=True) if part is not None}
    _check_shapes(shapes)
    n_rows = next(iter(shapes.values()))[0]
    full = [
        place.xp.full((n_rows, width), place.xp.nan, device=place.device) if part is None else part
        for part, width in zip(parts, schema.layout.widths, strict=True)
    ]
    check_widths([part.shape[1] for part in full], schema)
    return ArrayApiRows(place, full)


def _check_shapes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless all tables have two dimensions and as many rows, at least one."""
    for name, shape in shapes.items():
        if len(shape) != 2 or shape[0] == 0:
            raise ValueError(f"{name} must be a two-dimensional array with at least one row, but its shape is {shape}.")
    check_equal_counts({name: shape[0] for name, shape in shapes.items()})


def _logits(model: FittedModel, rows: ArrayApiRows, check: RowCheck) -> list[Any]:
    """Logits (n, K) and coverage (n, 1) of all rows, some at a time; an infinite value is an error that names it."""
    program = ArrayProgram()
    expansions = [view_expansion(predictor) for predictor in model.predictors]
    compared = compared_rows(model, expansions)
    formulas = model_formulas(program, model, expansions, compared, np.float64, check)
    runner = ArrayRunner(program, [formulas.logits, formulas.coverage], *rows.place)
    found = []
    for first_row, tables in rows.chunks(rows_at_a_time(runner.widest)):
        rows.check_chunk(check, first_row, tables)
        found.append(runner(dict(zip(model.schema.view_names, tables, strict=True))))
    return [rows.place.xp.concat(parts, axis=0) for parts in zip(*found, strict=True)]


def _warn_without_views(coverage: Any, place: ArrayPlace) -> None:
    """The warning of rows without any view, as for other arrays."""
    if bool(place.xp.any(coverage == 0.0)):
        warn_without_views(ScoredRows(np.empty((coverage.shape[0], 0)), on_host(coverage)[:, 0]))


def _output(model: FittedModel, logits: Any, kind: str, place: ArrayPlace) -> Any:
    """What :meth:`FittedModel.output` gives, from logits (n, K)."""
    xp = place.xp
    if kind == "probability":
        p = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
        return p / xp.sum(p, axis=1, keepdims=True)
    if kind == "class":
        codes = xp.argmax(logits, axis=1)
        if model.classes.dtype.kind not in "biuf":
            return model.classes[on_host(codes)]
        return xp.take(place.put(model.classes), codes, axis=0)
    if model.classes.size == 2:  # log-odds; of the consensus alone, its pooled scores, which are T times as large
        odds = logits[:, 1] - logits[:, 0]
        return odds * model.temperature if model.opinions is None else odds
    if model.opinions is None:
        return logits * (2.0 * model.temperature)
    return logits - xp.mean(logits, axis=1, keepdims=True)
