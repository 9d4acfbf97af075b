"""Small random problems: rows, views, labels and weights of many forms, with or without what is hard about real data."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

FORMS = ("list", "dict", "table", "sparse", "frame", "frames", "precomputed")
DTYPES = (
    "float64",
    "float32",
    "float16",
    "int64",
    "int8",
    "uint8",
    "bool",
    "object",
    "longdouble",
    "complex128",
    "str",
)
SCALES = (1.0, 1e-3, 1e6, 1e-30, 1e30, 1e-160, 1e160, 1e-310, 1e300)
CELLS = (
    "constant column",
    "constant view",
    "repeated rows",
    "equal views",
    "all rows equal",
    "repeated column",
    "single gaps",
    "column of gaps",
    "missing views",
    "view missing everywhere",
    "row without views",
    "labeled rows without a view",
    "infinite cell",
    "huge cell",
    "subnormal column",
    "wide",
    "mostly zeros",
)
LABELS = (
    "texts",
    "floats",
    "booleans",
    "none marks",
    "nan marks",
    "negative",
    "large numbers",
    "one class",
    "single label per class",
    "rare class",
    "no unlabeled row",
    "one unlabeled row",
    "no label",
    "column vector",
    "fractions",
    "wrong length",
)
WEIGHTS = (
    "random",
    "whole numbers",
    "some zero",
    "all zero",
    "negative",
    "nan",
    "tiny",
    "huge",
    "labeled zero",
    "wrong length",
)


@dataclass(frozen=True)
class Problem:
    """The fields that describe X, y, the weights and the groups."""

    seed: int = 0
    n_rows: int = 12
    n_labeled: int = 6
    n_classes: int = 2
    widths: tuple[int, ...] = (2, 2)
    form: str = "list"
    dtype: str = "float64"
    scale: float = 1.0
    shift: float = 0.0
    cells: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    weights: str = ""
    groups: bool = field(default=False)


@dataclass(frozen=True)
class Data:
    """What ``fit`` is given."""

    X: Any
    y: Any
    sample_weight: Any
    groups: Any
    views: Any  # the parameter


def draw_problem(rng: np.random.Generator) -> dict[str, Any]:
    """Fields of a problem; most cases have few peculiarities, so that each is also seen alone."""
    n_views, n_rows = int(rng.choice([1, 2, 2, 2, 3, 4])), int(rng.integers(2, 33))
    plain = rng.random() < 0.3
    return {
        "seed": int(rng.integers(2**31)),
        "n_rows": n_rows,
        "n_labeled": int(rng.integers(0, n_rows + 1)) if rng.random() < 0.1 else int(rng.integers(2, max(3, n_rows))),
        "n_classes": int(rng.choice([2, 2, 2, 3, 4, 6])),
        "widths": tuple(int(width) for width in rng.integers(1, 6, n_views)),
        "form": str(rng.choice(FORMS, p=[0.35, 0.15, 0.15, 0.1, 0.1, 0.1, 0.05])),
        "dtype": "float64" if plain or rng.random() < 0.7 else str(rng.choice(DTYPES)),
        "scale": 1.0 if plain or rng.random() < 0.7 else float(rng.choice(SCALES)),
        "shift": 0.0 if plain or rng.random() < 0.85 else float(rng.choice([1.0, -1e3, 1e9, 1e15])),
        "cells": () if plain else some(rng, CELLS, 0.5),
        "labels": () if plain else some(rng, LABELS, 0.4),
        "weights": "" if plain or rng.random() < 0.75 else str(rng.choice(WEIGHTS)),
        "groups": bool(rng.random() < 0.1),
    }


def some(rng: np.random.Generator, names: tuple[str, ...], share: float) -> tuple[str, ...]:
    """None of the names with probability ``1 - share``, else one to three."""
    if rng.random() > share:
        return ()
    return tuple(str(name) for name in rng.choice(names, int(rng.choice([1, 1, 1, 2, 3])), replace=False))


def build(problem: Any) -> Data:
    """The data of a problem; any dataclass with its fields will do."""
    rng = np.random.default_rng(problem.seed)
    codes, n_labeled = _codes(problem, rng), _n_labeled(problem)
    views = [_view(problem, codes, width, i, n_labeled) for i, width in enumerate(problem.widths)]
    if "equal views" in problem.cells:
        views = [views[0].copy() for _ in views]
    _remove_views(problem, views, n_labeled)
    y = _labels(problem, codes, n_labeled)
    groups = np.arange(problem.n_rows) % 3 if problem.groups else None
    X, parameter = _contained(problem, [_typed(view, problem.dtype) for view in views])
    return Data(X, y, _weights(problem, n_labeled, rng), groups, parameter)


def _codes(problem: Any, rng: np.random.Generator) -> np.ndarray:
    codes = np.arange(problem.n_rows) % problem.n_classes
    rng.shuffle(codes[problem.n_classes :])  # the first rows, which are labeled, have all classes
    if "one class" in problem.labels:
        codes = np.zeros_like(codes)
    if "rare class" in problem.labels:
        codes = np.where(np.arange(problem.n_rows) > 1, 0, codes)
    return codes


def _n_labeled(problem: Any) -> int:
    n_rows = problem.n_rows
    limits = {
        "no unlabeled row": n_rows,
        "one unlabeled row": n_rows - 1,
        "no label": 0,
        "single label per class": min(n_rows, problem.n_classes),
    }
    return next((limits[name] for name in problem.labels if name in limits), min(problem.n_labeled, n_rows))


def _view(problem: Any, codes: np.ndarray, width: int, number: int, n_labeled: int) -> np.ndarray:
    rng, cells = np.random.default_rng([problem.seed, number]), problem.cells
    width = width * 20 if "wide" in cells else width
    values = rng.normal(size=(codes.size, width)) + 2.0 * rng.normal(size=(problem.n_classes, width))[codes]
    if "mostly zeros" in cells:
        values *= rng.random(values.shape) < 0.15
    if "constant column" in cells:
        values[:, 0] = 3.0
    if "constant view" in cells and number == 0:
        values[:] = 1.0
    if "repeated rows" in cells:
        values = values[np.arange(codes.size) // 2]
    if "all rows equal" in cells:
        values = np.repeat(values[:1], codes.size, axis=0)
    if "repeated column" in cells:
        values[:, -1] = values[:, 0]
    if "subnormal column" in cells:
        values[:, 0] *= 5e-324
    with np.errstate(over="ignore"):
        values = values * problem.scale + problem.shift
    values = np.clip(values, -1.7e308, 1.7e308)
    if "huge cell" in cells:
        values[rng.integers(codes.size), 0] = 1e300
    if "infinite cell" in cells:
        values[rng.integers(codes.size), 0] = np.inf
    if "single gaps" in cells:
        values[rng.random(values.shape) < 0.1] = np.nan
    if "column of gaps" in cells:
        values[:, -1] = np.nan
    return values


def _remove_views(problem: Any, views: list[np.ndarray], n_labeled: int) -> None:
    rng, cells = np.random.default_rng([problem.seed, 99]), problem.cells
    if "missing views" in cells:
        for view in views:
            view[rng.random(problem.n_rows) < 0.2] = np.nan
    if "view missing everywhere" in cells:
        views[-1][:] = np.nan
    if "labeled rows without a view" in cells:
        views[0][:n_labeled] = np.nan
    if "row without views" in cells:
        for view in views:
            view[rng.integers(problem.n_rows)] = np.nan


def _typed(values: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind in "iub":
            limit = 100 if np.dtype(dtype).kind != "b" else 1
            return np.clip(np.nan_to_num(values), -limit if np.dtype(dtype).kind == "i" else 0, limit).astype(dtype)
        return values.astype(dtype)


def _labels(problem: Any, codes: np.ndarray, n_labeled: int) -> Any:
    labels = problem.labels
    names: Any = codes
    mark: Any = -1
    if "texts" in labels:
        names, mark = np.array([f"class {code}" for code in codes], dtype=object), None
    elif "floats" in labels:
        names, mark = codes.astype(float), -1.0
    elif "fractions" in labels:
        names, mark = codes + 0.5, np.nan
    elif "booleans" in labels:
        names, mark = (codes > 0).astype(object), None
    elif "negative" in labels:
        names, mark = -10 * codes - 5, -1
    elif "large numbers" in labels:
        names, mark = codes + 2**53, -1
    if "none marks" in labels:
        names, mark = np.asarray(names).astype(object), None
    if "nan marks" in labels:
        names, mark = np.asarray(names).astype(object), np.nan
    y = np.array(names)
    if mark is None or (isinstance(mark, float) and np.isnan(mark) and y.dtype.kind not in "fO"):
        y = y.astype(object)
    y[n_labeled:] = mark
    if "wrong length" in labels:
        y = y[:-1]
    return y[:, None] if "column vector" in labels else y


def _weights(problem: Any, n_labeled: int, rng: np.random.Generator) -> Any:
    n = problem.n_rows
    made = {
        "": lambda: None,
        "random": lambda: rng.random(n) + 0.1,
        "whole numbers": lambda: rng.integers(1, 4, n),
        "some zero": lambda: rng.integers(0, 3, n),
        "all zero": lambda: np.zeros(n),
        "negative": lambda: rng.normal(size=n),
        "nan": lambda: np.where(np.arange(n) == n // 2, np.nan, 1.0),
        "tiny": lambda: np.full(n, 1e-300),
        "huge": lambda: np.full(n, 1e300),
        "labeled zero": lambda: np.where(np.arange(n) < n_labeled, 0.0, 1.0),
        "wrong length": lambda: np.ones(n + 1),
    }
    return made[problem.weights]()


def _contained(problem: Any, views: list[np.ndarray]) -> tuple[Any, Any]:
    """X in its container, and the parameter ``views``."""
    names = [f"view{i}" for i in range(len(views))]
    widths = [view.shape[1] for view in views]
    if problem.form == "dict":
        return dict(zip(names, views, strict=True)), None
    if problem.form in ("table", "sparse") and problem.dtype not in ("object", "str", "float16", "longdouble"):
        table = np.hstack(views)
        return (sparse.csr_array(table) if problem.form == "sparse" else table), widths
    if problem.form == "frame":
        columns = [f"{name}_{j}" for name, width in zip(names, widths, strict=True) for j in range(width)]
        return pd.DataFrame(np.hstack(views), columns=columns), {name: f"{name}_" for name in names}
    if problem.form == "frames":
        return {name: pd.DataFrame(view).rename(columns=str) for name, view in zip(names, views, strict=True)}, None
    if problem.form == "precomputed" and np.asarray(views[0]).dtype.kind in "fiub":
        with np.errstate(all="ignore"):
            return [np.asarray(view, dtype=float) @ np.asarray(view, dtype=float).T for view in views], None
    return views, None
