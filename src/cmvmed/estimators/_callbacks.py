"""Progress of a fit, through the callbacks of scikit-learn."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cmvmed.core.annealing import AnnealingResult

if TYPE_CHECKING:
    from cmvmed.estimators.cmvmed import CMVMED


class StageReporter:
    """Calls the callbacks at the beginning and end of each stage.

    Callbacks that take ``fitted_estimator`` get the estimator as if the fit had ended with this stage.
    """

    def __init__(
        self,
        estimator: "CMVMED",
        X: object,
        y: object,
        max_stages: int,
    ) -> None:
        self.estimator, self.data = estimator, {"X": X, "y": y}
        self.attributes: Callable[[AnnealingResult], dict[str, Any]] = lambda result: {}  # of a fit that ends so
        self.root = estimator._init_callback_context(max_subtasks=max_stages)
        self.root.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.stage: Any = None

    def before_stage(self, stage: int) -> None:
        """Report the beginning of a stage."""
        self.stage = self.root.subcontext(task_name="stage")
        self.stage.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_stage(self, stage: int, result: AnnealingResult) -> bool:
        """Report the end of a stage; True if a callback asks to stop."""
        stop = self.stage.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=lambda: self.attributes(result), **self.data
        )
        return bool(stop)

    def finish(self, attributes: dict[str, Any]) -> None:
        """Report the end of the fit."""
        self.root.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=lambda: attributes, **self.data
        )
