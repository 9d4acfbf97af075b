"""Progress of a fit: scikit-learn's callbacks, and a printed line per stage."""

from collections.abc import Callable
from typing import Any

from cmvmed.core.annealing import AnnealingResult
from cmvmed.core.linalg import Array


class StageReporter:
    """Tells callbacks and, if asked, the terminal about each stage.

    Callbacks that take ``fitted_estimator`` get the estimator as if the fit had ended with this stage.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        max_stages: int,
        attributes: Callable[[AnnealingResult, Array], dict[str, Any]],
    ) -> None:
        self.estimator, self.data, self.attributes = estimator, {"X": X, "y": y}, attributes
        self.root = estimator._init_callback_context(max_subtasks=max_stages)
        self.root.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.stage: Any = None
        self.passes = self.n_stages = 0

    def begin_stage(self, stage: int, n_stages: int) -> None:
        """Report the beginning of a stage; the first one begins a pass, of which a new class prior asks for another."""
        self.passes += stage == 1
        self.n_stages = n_stages
        self.stage = self.root.subcontext(task_name="stage")
        self.stage.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end_stage(self, stage: int, annealed: AnnealingResult, prior: Array) -> bool:
        """Report the end of a stage; True if a callback asks to stop."""
        stop = self.stage.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: self.attributes(annealed, prior),
            **self.data,
        )
        if self.estimator.verbose:
            last = annealed.history[-1]
            again = f"pass {self.passes}, " * (self.passes > 1)
            print(
                f"[{type(self.estimator).__name__}] {again}stage {stage}/{self.n_stages}: "
                f"consensus weight {last.consensus_weight:.3f}, temperature {last.temperature:.3f}, "
                f"objective {last.objective:.6g}, entropy {last.entropy:.3f}"
            )
        return bool(stop)

    def finish(self, attributes: dict[str, Any]) -> None:
        """Report the end of the fit."""
        self.root.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=lambda: attributes, **self.data
        )
