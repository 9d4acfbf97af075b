"""The parameters of CMVMED: what they ask for, or an error that names them."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from cmvmed.auto.neighbors import joins_views
from cmvmed.core.annealing import Schedule
from cmvmed.core.linalg import Array
from cmvmed.core.surrogates import AsPrinted, Bohning, JaakkolaJordan, Newton, Surrogate
from cmvmed.data.layout import per_view
from cmvmed.data.view_data import ViewData, ViewSettings
from cmvmed.estimators._parameters import check_choice, check_integer, check_number, view_settings

MODES = ("complete", "newton", "literal")
BOUNDS: dict[str, Surrogate] = {"bohning": Bohning(), "jj": JaakkolaJordan()}
CLASS_PRIORS = ("auto", "labels")
VIEW_WEIGHTS = ("agreement", "uniform")


def read_schedule(estimator: Any) -> tuple[Surrogate, Schedule]:
    """The surrogate and schedule that the parameters ask for."""
    check_choice("mode", estimator.mode, MODES)
    check_choice("bound", estimator.bound, tuple(BOUNDS))
    check_choice("calibrate", estimator.calibrate, (True, False))
    check_integer("verbose", int(estimator.verbose) if isinstance(estimator.verbose, bool) else estimator.verbose, 0)
    if not (estimator.n_jobs is None or (isinstance(estimator.n_jobs, Integral) and estimator.n_jobs != 0)):
        raise ValueError(f"n_jobs must be None or a whole number other than 0, but is {estimator.n_jobs!r}.")
    if isinstance(estimator.class_prior, str):
        check_choice("class_prior", estimator.class_prior, CLASS_PRIORS)
    literal = estimator.mode == "literal"
    surrogates: dict[str, Surrogate] = {"complete": BOUNDS[estimator.bound], "newton": Newton(), "literal": AsPrinted()}
    schedule = Schedule(
        consensus_weight=_read_consensus_weight(estimator),
        temperature=1.0 if literal else check_number("temperature", estimator.temperature, open_left=True),
        n_stages=check_integer("n_stages", estimator.n_stages, 1),
        max_iter=1 if literal else check_integer("max_iter", estimator.max_iter, 1),
        tol=check_number("tol", estimator.tol),
    )
    return surrogates[estimator.mode], schedule


def _read_consensus_weight(estimator: Any) -> float | None:
    """λ, or None to take it from the agreement of the views; the print has λ = 1."""
    if isinstance(estimator.consensus_weight, str):
        check_choice("consensus_weight", estimator.consensus_weight, ("auto",))
        return 1.0 if estimator.mode == "literal" else None
    return check_number("consensus_weight", estimator.consensus_weight)


def consensus_view_settings(estimator: Any, names: Sequence[str], n_classes: int) -> list[ViewSettings]:
    """The settings of each view; the print has no bias."""
    settings = view_settings(estimator, names, n_classes)
    return [replace(s, bias_variance=0.0) for s in settings] if estimator.mode == "literal" else settings


def read_neighbors(estimator: Any, data: Sequence[ViewData]) -> int | None:
    """How many neighbors have a say: None asks the unlabeled rows, 0 is none."""
    if estimator.neighbors is None or estimator.mode == "literal":
        return 0
    if isinstance(estimator.neighbors, str):
        check_choice("neighbors", estimator.neighbors, ("auto",))
        return None
    number = check_integer("neighbors", estimator.neighbors, 1)
    if not joins_views(data):
        raise ValueError(
            f"neighbors={number} needs the distances of rows in all views, which only the kernels 'linear+rbf' and 'rbf' give; "
            "use one of them for every view, or neighbors=None."
        )
    return number


def read_view_weights(estimator: Any, data: Sequence[ViewData]) -> Array | None:
    """Given or uniform weights (V,), None for agreement; a view that no training row has gets none."""
    names = [view.settings.name for view in data]
    known = np.array([view.train.shape[0] > 0 for view in data])
    if not known.all():
        warnings.warn(
            f"View {names[int(np.flatnonzero(~known)[0])]!r} is missing in every training row and will be ignored.",
            stacklevel=5,
        )
    if isinstance(estimator.view_weights, str):
        check_choice("view_weights", estimator.view_weights, VIEW_WEIGHTS)
        if estimator.view_weights == "agreement" and estimator.mode != "literal":
            return None
        weights = np.ones(len(names))
    else:
        if estimator.view_weights is None:
            raise ValueError(
                f"view_weights of view {names[0]!r} must be 'agreement', 'uniform' or a number at least 0, but is None."
            )
        given = per_view(estimator.view_weights, names, "view_weights")
        weights = np.array([check_number("view_weights", w, view=n) for w, n in zip(given, names, strict=True)])
    weights = np.where(known, weights, 0.0)
    if weights.sum() == 0.0:
        raise ValueError(f"view_weights {estimator.view_weights!r} leave no view with a positive weight.")
    return np.asarray(weights / weights.sum())
