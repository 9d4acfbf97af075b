"""A scikit-learn callback that records a value after every annealing stage of a CMV-MED fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackContext

from cmvmed import CMVMED

T = TypeVar("T")


@dataclass
class StageRecorder(Generic[T]):
    """Records a value computed from the model after every stage; does not influence the fit.

    If the fit runs the stages again, the values of the new pass replace those of the pass before.

    Attributes
    ----------
    measure : callable
        Computes the value from the estimator, which is fitted as if the fit had ended with the stage.
    values : list
        One value per stage.
    seconds : float
        Time spent in ``measure``, to be subtracted from the time of the fit.
    """

    measure: Callable[[CMVMED], T]
    values: list[T] = field(default_factory=list)
    seconds: float = 0.0

    def setup(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing before the fit."""

    def teardown(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing after the fit."""

    def on_fit_task_begin(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing at the beginning of a stage."""

    def on_fit_task_end(self, estimator: BaseEstimator, context: CallbackContext, *, fitted_estimator: CMVMED) -> None:
        """Record the value at the end of a stage."""
        if context.task_name != "stage":
            return
        start = time.perf_counter()
        stage = int(fitted_estimator.history_["stage"].max())
        self.values[stage - 1 :] = [self.measure(fitted_estimator)]
        self.seconds += time.perf_counter() - start
