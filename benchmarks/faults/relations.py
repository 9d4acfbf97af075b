"""Metamorphic relations: two fits that must agree because one follows from the other.

Rows, views or classes in another order, weights in place of repeated rows, features in other units, X in another
container, another mark of unlabeled rows, other numbers of threads, a saved and loaded model: predictions are the same.
"""

import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import cmvmed
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, Fault, fresh_folder
from benchmarks.faults.errors import check_clear

CASES = {"ci": 95, "nightly": 5000}
N_ROWS = 40
EXACT, NUMERICAL = 0.0, 1e-6  # largest difference of probabilities
WITHOUT_TREES = ["views", "lda", "graph", "view_graphs", "consensus"]  # which draw thresholds by the number of a column

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "CMVMED": lambda: cmvmed.CMVMED(n_stages=3),
    "CMVMED, consensus": lambda: cmvmed.CMVMED(members="consensus", n_stages=3),
    "CMVMED.paper()": lambda: cmvmed.CMVMED.paper(n_stages=3),
    "CMVMED, nystroem": lambda: cmvmed.CMVMED(approximation=20, n_stages=2),
    "MVMED": lambda: cmvmed.MVMED(),
    "CoRLS": lambda: cmvmed.CoRLS(),
    "SVM2K": lambda: cmvmed.SVM2K(),
}


@dataclass(frozen=True)
class Inputs:
    """The views, labels and weights of a fit."""

    views: tuple[np.ndarray, ...]
    y: np.ndarray
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """A relation, an estimator and a problem."""

    relation: str = "rows"
    estimator: str = "CMVMED"
    seed: int = 0
    n_classes: int = 2
    n_views: int = 2
    n_labeled: int = 12
    gaps: bool = False


def draw(rng: np.random.Generator, number: int) -> Case:
    """Relations take turns."""
    relation = list(RELATIONS)[number % len(RELATIONS)]
    names = EXACT_FOR.get(relation, tuple(ESTIMATORS))
    estimator = str(rng.choice(names))
    return Case(
        relation=relation,
        estimator=estimator,
        seed=int(rng.integers(2**31)),
        n_classes=int(rng.choice([2, 2, 3])),
        n_views=2 if estimator == "SVM2K" else int(rng.choice([2, 3])),
        n_labeled=int(rng.integers(6, 25)),
        gaps=bool(rng.random() < 0.3),
    )


def check(case: Case) -> str:
    """Fit twice and compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            difference, tolerance = RELATIONS[case.relation](case)
        except Exception as error:
            check_clear(error)
            return CLEAR_ERROR
    if not difference <= tolerance:
        raise Fault(
            f"{case.relation}, {case.estimator}: predictions differ", f"by {difference:.3g} (allowed {tolerance:g})"
        )
    return HELD


def inputs(case: Case) -> Inputs:
    """A problem whose classes are separated in every view."""
    rng = np.random.default_rng(case.seed)
    codes = np.r_[np.arange(case.n_classes), rng.integers(case.n_classes, size=N_ROWS - case.n_classes)]
    views = tuple(
        rng.normal(size=(N_ROWS, 3 + i)) + 2.0 * rng.normal(size=(case.n_classes, 3 + i))[codes]
        for i in range(case.n_views)
    )
    if case.gaps:
        views[0][rng.random(N_ROWS) < 0.15] = np.nan
        views[1][rng.random(views[1].shape) < 0.05] = np.nan
    return Inputs(views, np.where(np.arange(N_ROWS) < case.n_labeled, codes, -1))


def outputs(model: Any, X: Any) -> np.ndarray:
    """Probabilities, or the scores of an estimator that has none, one line per row."""
    found = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    found = np.asarray(found)
    return found if found.ndim == 2 else np.column_stack([-found, found])


def fitted(case: Case, given: Inputs, **parameters: Any) -> Any:
    """The estimator of a case, fitted."""
    model = ESTIMATORS[case.estimator]().set_params(**parameters)
    return model.fit(list(given.views), given.y, sample_weight=given.weights)


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else np.inf


def _rows(case: Case) -> tuple[float, float]:
    given, order = inputs(case), np.random.default_rng(case.seed + 1).permutation(N_ROWS)
    other = Inputs(tuple(view[order] for view in given.views), given.y[order])
    found = [outputs(fitted(case, one), list(given.views)) for one in (given, other)]
    return _difference(*found), NUMERICAL


def _views(case: Case) -> tuple[float, float]:
    given = inputs(case)
    settings = {"members": WITHOUT_TREES} if case.estimator in ("CMVMED", "CMVMED, nystroem") else {}
    found = [
        outputs(fitted(case, replace(given, views=views), **settings), list(views))
        for views in (given.views, given.views[::-1])
    ]
    return _difference(*found), NUMERICAL


def _classes(case: Case) -> tuple[float, float]:
    """Class k becomes -k - 2, so that the order of the classes is reversed."""
    given = inputs(case)
    other = replace(given, y=np.where(given.y < 0, -1, -given.y - 2))
    found = [outputs(fitted(case, one), list(given.views)) for one in (given, other)]
    return _difference(found[0], found[1][:, ::-1]), NUMERICAL


def _weights(case: Case) -> tuple[float, float]:
    """A row of weight 2 counts like two rows."""
    given, rng = inputs(case), np.random.default_rng(case.seed + 1)
    twice = np.flatnonzero((rng.random(N_ROWS) < 0.3) & (given.y < 0))
    index = np.r_[np.arange(N_ROWS), twice]
    repeated = Inputs(tuple(view[index] for view in given.views), given.y[index])
    weighted = replace(given, weights=1.0 + np.isin(np.arange(N_ROWS), twice))
    settings: dict[str, Any] = {"gamma": 0.1, "scaling": None}  # both depend on the rows, not on their weights
    found = [outputs(fitted(case, one, **settings), list(given.views)) for one in (repeated, weighted)]
    return _difference(*found), NUMERICAL


def _zero_weights(case: Case) -> tuple[float, float]:
    """A row of weight 0 does not count."""
    given = inputs(case)
    weights = np.where(np.random.default_rng(case.seed + 1).random(N_ROWS) < 0.2, 0.0, 1.0)
    weights[: case.n_classes] = 1.0
    kept = weights > 0.0
    other = Inputs(tuple(view[kept] for view in given.views), given.y[kept])
    found = [outputs(fitted(case, one), list(given.views)) for one in (replace(given, weights=weights), other)]
    return _difference(*found), NUMERICAL


def _copies(case: Case) -> tuple[float, float]:
    """Repeated rows that differ by rounding are equal ones."""
    given, rng = inputs(case), np.random.default_rng(case.seed + 1)
    index = np.r_[np.arange(N_ROWS), rng.integers(N_ROWS, size=N_ROWS // 2)]
    equal = Inputs(tuple(view[index] for view in given.views), given.y[index])
    alike = replace(equal, views=tuple(view + 1e-10 * rng.normal(size=view.shape) for view in equal.views))
    found = [outputs(fitted(case, one), list(given.views)) for one in (equal, alike)]
    return _difference(*found), NUMERICAL


def _units(case: Case) -> tuple[float, float]:
    """Other units of features that are standardized."""
    given, rng = inputs(case), np.random.default_rng(case.seed + 1)
    other = tuple(
        view * np.exp2(rng.integers(-8, 9, view.shape[1])) + np.round(rng.normal(size=view.shape[1]) * 4) / 4
        for view in given.views
    )
    settings = {"scaling": "standard"}
    found = [
        outputs(fitted(case, replace(given, views=views), **settings), list(views)) for views in (given.views, other)
    ]
    return _difference(*found), NUMERICAL


def _unlabeled_mark(case: Case) -> tuple[float, float]:
    given = inputs(case)
    y = given.y.astype(object)
    y[given.y < 0] = None if case.seed % 2 else np.nan
    found = [outputs(fitted(case, one), list(given.views)) for one in (given, replace(given, y=y))]
    return _difference(*found), EXACT


def _absent_view(case: Case) -> tuple[float, float]:
    """A view that every row lacks is one that is not given."""
    given = inputs(case)
    more = (*given.views, np.full((N_ROWS, 2), np.nan))
    found = [outputs(fitted(case, replace(given, views=views)), list(views)) for views in (given.views, more)]
    return _difference(*found), NUMERICAL


def _single_rows(case: Case) -> tuple[float, float]:
    """A prediction does not depend on the other rows."""
    given = inputs(case)
    model = fitted(case, given)
    together = outputs(model, list(given.views))
    alone = np.vstack([outputs(model, [view[i : i + 1] for view in given.views]) for i in range(6)])
    return _difference(together[:6], alone), 1e-9


def _saved(case: Case) -> tuple[float, float]:
    given, folder = inputs(case), fresh_folder()
    try:
        model = fitted(case, given)
        model.save(folder / "model.cmvmed")
        loaded = cmvmed.load(folder / "model.cmvmed")
        return _difference(outputs(model, list(given.views)), outputs(loaded, list(given.views))), EXACT
    finally:
        shutil.rmtree(folder)


def _threads(case: Case) -> tuple[float, float]:
    given = inputs(case)
    found = [outputs(fitted(case, given, n_jobs=n_jobs), list(given.views)) for n_jobs in (1, 2)]
    return _difference(*found), EXACT


def _contained(kind: str, views: tuple[np.ndarray, ...], folder: Path) -> tuple[Any, Any]:
    """X in a container, and the parameter ``views``."""
    names = [f"view{i}" for i in range(len(views))]
    whole, widths = np.hstack(views), [view.shape[1] for view in views]
    columns = [f"{name}_{j}" for name, width in zip(names, widths, strict=True) for j in range(width)]
    frame, prefixes = pd.DataFrame(whole, columns=columns), {name: f"{name}_" for name in names}
    if kind == "dict":
        return dict(zip(names, views, strict=True)), None
    if kind == "table":
        return whole, widths
    if kind == "Fortran order":
        return [np.asfortranarray(view) for view in views], None
    if kind == "data frame":
        return frame, prefixes
    if kind == "sparse":
        return [sparse.csr_array(view) for view in views], None
    if kind == "Parquet":
        frame.to_parquet(folder / "rows.parquet", row_group_size=15)
        return folder / "rows.parquet", prefixes
    if kind == "memory map":
        np.save(folder / "rows.npy", whole)
        return np.load(folder / "rows.npy", mmap_mode="r"), widths
    if kind == "Dask":
        import dask.array as da

        return [da.from_array(view, chunks=(15, -1)) for view in views], None
    raise ValueError(kind)


def _container(kind: str) -> Callable[[Case], tuple[float, float]]:
    def relation(case: Case) -> tuple[float, float]:
        given, folder = inputs(case), fresh_folder()
        settings = {"scaling": "unit" if kind == "sparse" else "standard"}
        try:
            model = fitted(case, given, **settings)
            X, views = _contained(kind, given.views, folder)
            other = ESTIMATORS[case.estimator]().set_params(views=views, **settings).fit(X, given.y)
            return _difference(outputs(model, list(given.views)), outputs(other, X)), 1e-8
        finally:
            shutil.rmtree(folder)

    return relation


CONTAINERS = ("dict", "table", "Fortran order", "data frame", "sparse", "Parquet", "memory map", "Dask")
RELATIONS: dict[str, Callable[[Case], tuple[float, float]]] = {
    "rows": _rows,
    "views": _views,
    "classes": _classes,
    "weights": _weights,
    "zero weights": _zero_weights,
    "copies": _copies,
    "units": _units,
    "mark of unlabeled rows": _unlabeled_mark,
    "absent view": _absent_view,
    "single rows": _single_rows,
    "saved": _saved,
    "threads": _threads,
    **{f"X as {kind}": _container(kind) for kind in CONTAINERS},
}
ALL_CMVMED = tuple(name for name in ESTIMATORS if name.startswith("CMVMED"))
WITHOUT_DRAWS = tuple(name for name in ESTIMATORS if name != "CMVMED, nystroem")  # landmarks are drawn by row and view
EXACT_FOR = {  # estimators for which a relation is promised, if not for all
    **dict.fromkeys(("rows", "views", "weights", "zero weights", "copies"), WITHOUT_DRAWS),
    "absent view": ("CMVMED", "CMVMED, consensus", "CMVMED.paper()", "MVMED"),
    "threads": ALL_CMVMED,
    "X as Dask": ALL_CMVMED,
}
