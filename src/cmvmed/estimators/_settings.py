"""The constructor parameters, read once per fit and checked: no other module reads them during a fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from cmvmed._config import configured_memory_limit, configured_prediction_dtype, keeps_rows
from cmvmed._warnings import warn_user
from cmvmed.auto.class_prior import given_prior
from cmvmed.auto.plan import PlanSettings
from cmvmed.auto.tuning import Tuning, current_tuning
from cmvmed.core.surrogates import AsPrinted, Bohning, Jaakkola, Newton, Quadrature, Surrogate
from cmvmed.data.layout import per_view
from cmvmed.data.memory import read_memory_limit
from cmvmed.data.reading import InputSettings
from cmvmed.members.pool import CONSENSUS, KINDS
from cmvmed.numerics.kernels import NAMED_KERNELS, median_factor
from cmvmed.numerics.types import Array
from cmvmed.views.preprocessing import SCALINGS
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_rows import ViewData, ViewSettings

if TYPE_CHECKING:
    from cmvmed.estimators._base import MultiViewClassifier
    from cmvmed.estimators.cmvmed import CMVMED

from typing import TypeVar

ALGORITHMS: dict[str, Surrogate] = {
    "bohning": Bohning(),
    "jaakkola": Jaakkola(),
    "exact": Quadrature(),
    "newton": Newton(),
    "printed": AsPrinted(),
}
MEMBERS = (*KINDS, CONSENSUS)
AT_LEAST_0 = Interval(Real, 0, None, closed="left")
AT_LEAST_1 = Interval(Integral, 1, None, closed="left")

# What scikit-learn checks before each fit. Parameters that may differ between views are checked view by view.
CONSTRAINTS: dict[str, list[Any]] = {
    "consensus_weight": [StrOptions({"auto"}), AT_LEAST_0],
    "temperature": [Interval(Real, 0, None, closed="neither")],
    "class_prior": [StrOptions({"auto", "labels"}), None, Real, "array-like", dict],
    "view_weights": [StrOptions({"agreement", "uniform"}), AT_LEAST_0, "array-like", dict],
    "members": [StrOptions({"auto", *MEMBERS}), list, tuple, None],
    "labels_drawn": [StrOptions({"unknown", "random", "per_class", "chosen"})],
    "algorithm": [StrOptions(set(ALGORITHMS))],
    "n_stages": [AT_LEAST_1],
    "max_iter": [AT_LEAST_1],
    "tol": [AT_LEAST_0],
    "approximation": [StrOptions({"auto", "exact", "nystroem"}), AT_LEAST_1],
    "rows_tol": [AT_LEAST_0],
    "n_jobs": [None, AT_LEAST_1, Interval(Integral, None, -1, closed="right")],
    "random_state": ["random_state"],
}


def read_random_state(estimator: "CMVMED") -> object:
    """What draws rows for suggestions."""
    return estimator.random_state


def read_input_settings(estimator: "MultiViewClassifier") -> InputSettings:
    """How an estimator reads X and y; a given memory limit is checked here."""
    n_jobs, limit = getattr(estimator, "n_jobs", None), configured_memory_limit()
    if limit is not None:
        limit = read_memory_limit(limit)
    return InputSettings(
        estimator=estimator,
        views=estimator.views,
        unlabeled=estimator.unlabeled,
        measure_memory=partial(read_memory_limit, limit),
        n_threads=None if n_jobs is None else effective_n_jobs(n_jobs),
        dtype=configured_prediction_dtype(),
    )


@dataclass(frozen=True)
class ViewParameters:
    """Parameters that may be given per view: one value, a list in the views' order, or a dict by view name."""

    kernel: object
    gamma: object = "median"
    scaling: object = "auto"
    prior_variance: object = "auto"
    C: object = 1.0
    bias_variance: object = 0.1

    def by_view(self, names: Sequence[str], n_classes: int, tuning: Tuning) -> list[ViewSettings]:
        """The checked settings of each view."""
        fields = ("kernel", "gamma", "scaling", "prior_variance", "C", "bias_variance")
        columns = {name: per_view(getattr(self, name), names, name) for name in fields}
        return [
            _view_settings(view, {name: values[i] for name, values in columns.items()}, n_classes, tuning)
            for i, view in enumerate(names)
        ]


def _view_settings(view: str, given: dict[str, Any], n_classes: int, tuning: Tuning) -> ViewSettings:
    kernel, gamma, variance = given["kernel"], given["gamma"], given["prior_variance"]
    if not callable(kernel):
        kernel = check_choice("kernel", kernel, ("auto", *NAMED_KERNELS), view=view)
    if gamma is None or (isinstance(gamma, str) and not 0.0 < median_factor(gamma) < np.inf):
        raise ValueError(
            f"gamma of view {view!r} must be 'median', a multiple such as '0.5*median' or a number greater than 0, but is "
            f"{gamma!r}."
        )
    if not isinstance(gamma, str):
        gamma = check_number("gamma", gamma, exclusive=True, view=view)
    if isinstance(variance, str):
        check_choice("prior_variance", variance, ("auto",), view=view)
        variance = tuning.prior_variance_binary if n_classes == 2 else tuning.prior_variance_multiclass
    return ViewSettings(
        name=view,
        kernel=kernel,
        gamma=gamma,
        scaling=check_choice("scaling", given["scaling"], SCALINGS, view=view),
        prior_variance=check_number("prior_variance", variance, exclusive=True, view=view),
        C=check_number("C", given["C"], exclusive=True, view=view),
        bias_variance=check_number("bias_variance", given["bias_variance"], view=view),
        clip=tuning.clip,
        sparse_density=tuning.sparse_density,
        median_sample=tuning.median_sample,
        wide_clip=tuning.wide_clip,
    )


@dataclass(frozen=True)
class FitSettings:
    """All parameters of a CMVMED, checked as far as they can be before X is read."""

    input: InputSettings
    views: ViewParameters
    algorithm: str
    consensus_weight: float | str
    temperature: float
    n_stages: int
    max_iter: int
    tol: float
    class_prior: object
    view_weights: object
    members: tuple[str, ...]
    calibrate: bool  # whether labels are held out to set weights and scales
    labels_drawn: str
    approximation: str | int
    rows_tol: float | None  # None to sweep over all rows
    n_jobs: int | None
    random_state: object
    keep_rows: bool
    tuning: Tuning

    @classmethod
    def read(cls, estimator: "CMVMED") -> "FitSettings":
        """Read and check the parameters of an estimator."""
        e = estimator
        e._validate_params()
        return cls(
            input=read_input_settings(e),
            views=ViewParameters(e.kernel, e.gamma, e.scaling, e.prior_variance, e.C, e.bias_variance),
            algorithm=e.algorithm,
            consensus_weight=e.consensus_weight if isinstance(e.consensus_weight, str) else float(e.consensus_weight),
            temperature=float(e.temperature),
            n_stages=int(e.n_stages),
            max_iter=int(e.max_iter),
            tol=float(e.tol),
            class_prior=e.class_prior,
            view_weights=e.view_weights,
            members=_read_members(e.members),
            calibrate=e.members is not None,
            labels_drawn=e.labels_drawn,
            approximation=e.approximation if isinstance(e.approximation, str) else int(e.approximation),
            rows_tol=float(e.rows_tol) or None,
            n_jobs=e.n_jobs,
            random_state=e.random_state,
            keep_rows=keeps_rows(),
            tuning=current_tuning(),
        )

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate of the algorithm."""
        return ALGORITHMS[self.algorithm]

    def draw_of_labels(self, training: TrainingData) -> str:
        """How the labeled rows were drawn: "random" or "chosen" if it is known of each row."""
        if training.random is None:
            return self.labels_drawn
        if self.labels_drawn not in ("unknown", "chosen"):
            raise ValueError(
                f"random_rows says which labeled rows were drawn at random, but labels_drawn={self.labels_drawn!r} says it of all; "
                'leave labels_drawn at "unknown".'
            )
        return "random" if training.random[training.partition.block_L].all() else "chosen"

    def plan_settings(self, views: Sequence[ViewData], classes: NDArray[Any]) -> PlanSettings:
        """What is left to decide once the views and classes are known."""
        prior = self.class_prior
        given = not (prior is None or isinstance(prior, str))
        return PlanSettings(
            surrogate=self.surrogate,
            consensus_weight=self.consensus_weight if CONSENSUS in self.members else 0.0,
            temperature=self.temperature,
            n_stages=self.n_stages,
            max_iter=self.max_iter,
            tol=self.tol,
            class_prior=given_prior(prior, classes) if given else prior,  # type: ignore[arg-type]
            view_weights=_read_view_weights(self.view_weights, views),
        )


def _read_members(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The kinds of members that take part, in their order."""
    if given is None:
        return (CONSENSUS,)
    if given == "auto":
        return MEMBERS
    names = [given] if isinstance(given, str) else given
    if not names or not all(name in MEMBERS for name in names):
        raise ValueError(f"members must be 'auto', None or some of {list(MEMBERS)}, but is {given!r}.")
    return tuple(name for name in MEMBERS if name in names)


def _read_view_weights(given: object, views: Sequence[ViewData]) -> Array | str:
    """Given or uniform weights (V,), or "agreement"; a view that no training row has gets none."""
    names = [view.settings.name for view in views]
    known = np.array([view.train.shape[0] > 0 for view in views])
    if not known.all():
        missing = names[int(np.flatnonzero(~known)[0])]
        warn_user(f"View {missing!r} is missing in every training row and will be ignored.")
    if isinstance(given, str):
        if given == "agreement":
            return "agreement"
        weights = np.ones(len(names))
    else:
        values = per_view(given, names, "view_weights")
        weights = np.array([check_number("view_weights", w, view=n) for w, n in zip(values, names, strict=True)])
    weights = np.where(known, weights, 0.0)
    if weights.sum() == 0.0:
        raise ValueError(f"view_weights {given!r} leave no view with a positive weight.")
    return np.asarray(weights / weights.sum())


T = TypeVar("T")


def check_number(
    name: str,
    value: object,
    *,
    minimum: float = 0.0,
    exclusive: bool = False,
    maximum: float = np.inf,
    view: str | None = None,
) -> float:
    """A finite real number in [minimum, maximum], or in (minimum, maximum] if ``exclusive``."""
    where = f" of view {view!r}" if view is not None else ""
    bound = f"{'greater than' if exclusive else 'at least'} {minimum:g}"
    if maximum < np.inf:
        bound += f" and at most {maximum:g}"
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)) or not np.isfinite(float(value)):
        raise ValueError(f"{name}{where} must be a number {bound}, but is {value!r}.")
    number = float(value)
    if number < minimum or (exclusive and number <= minimum) or number > maximum:
        raise ValueError(f"{name}{where} must be a number {bound}, but is {value!r}.")
    return number


def check_integer(name: str, value: object, minimum: int) -> int:
    """A whole number of at least ``minimum``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}, but is {value!r}.")
    return int(value)


def check_choice(name: str, value: object, choices: Sequence[T], *, view: str | None = None) -> T:
    """One of ``choices``."""
    for choice in choices:
        if value is choice or (isinstance(value, str) and value == choice):
            return choice
    where = f" of view {view!r}" if view is not None else ""
    raise ValueError(f"{name}{where} must be one of {', '.join(map(repr, choices))}, but is {value!r}.")
