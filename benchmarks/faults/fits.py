"""Fuzzed fits: a clear error, or finite probabilities that sum to 1, with inputs unchanged, the same in a second fit.

Problems and parameters of every estimator are drawn at random, valid and invalid ones. A fit either raises a
``ValueError`` or ``TypeError`` by a check of the library, or its predictions are finite and the classes those of y.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import cmvmed
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, Fault
from benchmarks.faults.errors import check_clear, only_user_warnings
from benchmarks.faults.parameters import ESTIMATORS, draw_parameters
from benchmarks.faults.problems import Data, Problem, build, draw_problem

CASES = {"ci": 600, "nightly": 20_000}
SUM_TOLERANCE = 1e-9
REPEATED_SHARE = 0.3  # of the cases, which are fitted twice
# Methods that are called after a fit; what they may refuse is documented.
METHODS = (
    "explain",
    "predict_set",
    "novelty",
    "sensor_health",
    "suggest",
    "accuracy_estimate",
    "decision_function_by_view",
    "posterior_covariance_by_view",
    "predict_proba_by_member",
    "save",
)


@dataclass(frozen=True)
class Case(Problem):
    """A problem, an estimator with its parameters, and a method that is called after the fit."""

    estimator: str = "CMVMED"
    parameters: tuple[tuple[str, Any], ...] = ()
    method: str = ""
    repeated: bool = False

    @property
    def group(self) -> str:
        """The line of the table."""
        return self.estimator


def draw(rng: np.random.Generator, number: int) -> Case:
    """A random case."""
    estimator = str(rng.choice(list(ESTIMATORS), p=[0.6, 0.1, 0.1, 0.1, 0.1]))
    problem = draw_problem(rng)
    limit = {"MED": 1, "SVM2K": 2}.get(estimator, len(problem["widths"]))
    if rng.random() < 0.95:  # more views than an estimator has are an error
        problem["widths"] = problem["widths"][:limit]
    method = str(rng.choice(METHODS)) if estimator == "CMVMED" and rng.random() < 0.25 else ""
    names = problem["form"] in ("dict", "frame", "frames")
    parameters = draw_parameters(rng, estimator, len(problem["widths"]), names_known=names)
    return Case(
        **problem, estimator=estimator, parameters=parameters, method=method, repeated=rng.random() < REPEATED_SHARE
    )


def check(case: Case) -> str:
    """The property of this campaign."""
    data = build(case)
    before = copy.deepcopy(data)
    model = _estimator(case, data)
    parameters = repr(sorted(model.get_params(deep=False).items()))
    fit = _fit_arguments(case, data)
    with only_user_warnings():
        try:
            model.fit(data.X, data.y, **fit)
        except Exception as error:
            check_clear(error)
            check_unchanged(before, data)
            return CLEAR_ERROR
        predicted = _predictions(case, model, data)
        _call_method(case, model, data)
    check_unchanged(before, data)
    if repr(sorted(model.get_params(deep=False).items())) != parameters:
        raise Fault("parameters changed", parameters)
    _check_classes(model, before)
    if case.repeated and model.random_state is not None:  # None: members draw anew, as those of scikit-learn
        with only_user_warnings():
            again = _predictions(case, clone(model).fit(data.X, data.y, **fit), data)
        if not np.array_equal(predicted, again):
            raise Fault("a second fit differs", f"by {np.abs(predicted - again).max():.3g}")
    return HELD


def _estimator(case: Case, data: Data) -> Any:
    parameters = dict(case.parameters)
    if case.form == "precomputed":
        parameters["kernel"] = "precomputed"
    if data.views is not None and case.estimator != "MED":
        parameters["views"] = data.views
    return getattr(cmvmed, case.estimator)(**parameters)


def _fit_arguments(case: Case, data: Data) -> dict[str, Any]:
    given = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
    return given | ({"groups": data.groups} if data.groups is not None and case.estimator == "CMVMED" else {})


def _predictions(case: Case, model: Any, data: Data) -> np.ndarray:
    """Probabilities, or scores of an estimator without, of the training rows, after checks."""
    n_rows, n_classes = case.n_rows, len(model.classes_)
    scores = np.asarray(model.decision_function(data.X))
    if not np.isfinite(scores).all():
        raise Fault("scores are not finite", repr(scores))
    if scores.shape != ((n_rows,) if n_classes == 2 else (n_rows, n_classes)):
        raise Fault("scores of another shape", repr(scores.shape))
    classes = np.asarray(model.predict(data.X))
    if classes.shape != (n_rows,) or not set(classes.tolist()) <= set(model.classes_.tolist()):
        raise Fault("predicted classes that are not in y", repr(classes))
    if not hasattr(model, "predict_proba"):
        return scores
    probabilities = np.asarray(model.predict_proba(data.X))
    check_probabilities(probabilities, n_rows, n_classes)
    if getattr(model, "label_distributions_", None) is not None:
        check_probabilities(model.label_distributions_, n_rows, n_classes)
    return probabilities


def check_probabilities(probabilities: np.ndarray, n_rows: int, n_classes: int) -> None:
    """Raise a fault unless the lines are distributions over the classes."""
    if probabilities.shape != (n_rows, n_classes):
        raise Fault("probabilities of another shape", repr(probabilities.shape))
    if not np.isfinite(probabilities).all():
        raise Fault("probabilities are not finite", repr(probabilities))
    if probabilities.min(initial=0.0) < 0.0 or np.abs(probabilities.sum(axis=1) - 1.0).max(initial=0.0) > SUM_TOLERANCE:
        raise Fault("probabilities do not sum to 1", repr(probabilities))


def check_unchanged(before: Data, after: Data) -> None:
    """Raise a fault if X, y, weights or groups are not what they were."""
    for name in ("X", "y", "sample_weight", "groups"):
        if _contents(getattr(before, name)) != _contents(getattr(after, name)):
            raise Fault("input changed", name)


def _contents(part: Any) -> Any:
    """Types, shapes and bytes, which also tell NaN from NaN of another sign."""
    if isinstance(part, dict):
        return {name: _contents(view) for name, view in part.items()}
    if isinstance(part, list):
        return [_contents(view) for view in part]
    if sparse.issparse(part):
        return [_contents(array) for array in (part.data, part.indices, part.indptr)]
    if part is None:
        return None
    array = np.asarray(part)
    content = repr(array.tolist()) if array.dtype.kind == "O" else array.tobytes()
    return type(part).__name__, str(array.dtype), array.shape, content


def _check_classes(model: Any, data: Data) -> None:
    """Every class of ``classes_`` is a label of y, and every labeled class of positive weight is in it."""
    given = {label for label in np.ravel(data.y).tolist() if not _is_unlabeled(label, model.unlabeled)}
    if not set(model.classes_.tolist()) <= given:
        raise Fault("classes that are not in y", repr(model.classes_))
    if data.sample_weight is None and len(model.classes_) != len(given):
        raise Fault("classes of y that are lost", f"{model.classes_!r} of {given!r}")


def _is_unlabeled(label: Any, mark: Any) -> bool:
    is_mark = label == mark and isinstance(label, bool) == isinstance(mark, bool)
    return label is None or is_mark or label != label


def _call_method(case: Case, model: Any, data: Data) -> None:
    """Call one more method: what it returns is finite, or it refuses with a clear error."""
    if not case.method:
        return
    from benchmarks.faults.methods import call

    try:
        call(case.method, model, data.X)
    except Fault:
        raise
    except Exception as error:
        check_clear(error)
