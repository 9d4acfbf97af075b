"""A fit to a sample continued on more rows, up to all, and the probabilities of all rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed._warnings import warn_user
from cmvmed.core.annealing import AnnealingResult, Plan
from cmvmed.data.labels import Labels
from cmvmed.data.sources import ArrayApiRows
from cmvmed.data.sources.base import FLOAT_BYTES
from cmvmed.model.array_program import probabilities_of_rows
from cmvmed.model.fitted_model import Model
from cmvmed.model.formulas import has_formulas
from cmvmed.model.predict import RowScorer, probabilities
from cmvmed.numerics.nystroem import Basis
from cmvmed.numerics.types import Array
from cmvmed.scale.passes import StreamedRows
from cmvmed.scale.row_change import RowChange, remaining_change
from cmvmed.scale.sampling import Sample
from cmvmed.scale.streamed import StreamedView, streamed_stages
from cmvmed.views.training_data import NO_VIEW_WARNING
from cmvmed.views.view_rows import ViewData

TABLE_COPIES = 8  # scores, coverage, probabilities, and some room


@dataclass(frozen=True)
class Continued:
    """Where a fit to a sample ended after sweeps over more rows."""

    result: AnnealingResult
    model: Model
    n_swept: int  # unlabeled rows that were swept over last
    change: RowChange | None = None  # what all rows would still change; None if it was not estimated


def continue_on_more_rows(
    sample: Sample,
    views: Sequence[ViewData],
    bases: Sequence[Basis] | None,
    plan: Plan,
    result: AnnealingResult,
    model: Model,
    lower: Callable[[AnnealingResult, Sequence[StreamedView]], Model],
    rows_tol: float | None,
    row_growth: int,
) -> Continued:
    """The last stage continued on larger samples and all rows, where the consensus has weight.

    Parameters
    ----------
    bases : per view, its low-rank features
    plan, result, model : the fit in memory
    lower : the model of a later result, given the views after sweeps over more rows
    rows_tol : it ends after a sample that is expected to cost no more than this accuracy; None for all rows
    row_growth : by which a sample is larger than the one before, at most
    """
    if bases is None or sample.all_rows is None:
        raise ValueError("Only a fit on a sample, with low-rank features, can be continued on all rows.")
    at = Continued(result, model, sample.training.partition.U.size)
    if result.consensus_weight == 0.0 or result.stopped:
        return at
    preprocessors = [view.preprocessor for view in views]
    held_out = None if sample.larger is None or rows_tol is None else sample.larger.held_out()
    change: RowChange | None = None

    def samples() -> Iterator[StreamedRows]:
        size = None if sample.larger is None else sample.larger.smallest
        while sample.larger is not None and size is not None:
            yield sample.larger.sample(size)
            ratio = change.accuracy / rows_tol if change is not None and rows_tol else None
            size = sample.larger.next_size(size, ratio, row_growth)
        if sample.all_rows is not None:
            yield sample.all_rows

    for streamed in streamed_stages(samples(), preprocessors, bases, plan, result):
        model = lower(streamed.result, streamed.views)
        last, at = at, Continued(streamed.result, model, streamed.n_rows)
        if held_out is not None and rows_tol is not None and streamed.n_rows < sample.all_rows.n_unlabeled:
            before, after = (probabilities(m, *held_out) for m in (last.model, model))
            change = remaining_change(before, after, last.n_swept, at.n_swept, sample.all_rows.n_unlabeled)
            if change.accuracy <= rows_tol:
                return replace(at, change=change)
    return at


def probabilities_of_all_rows(model: Model, rows: StreamedRows, labels: Labels, memory_limit: int) -> Array | None:
    """The probabilities of every training row, (n, K), certain for labeled ones; None if too large for the limit."""
    if TABLE_COPIES * FLOAT_BYTES * rows.source.n_rows * labels.n_classes > memory_limit:
        return None
    q, coverage = _probabilities(model, rows)
    without_views = int((coverage == 0.0).sum())
    if without_views:
        warn_user(NO_VIEW_WARNING.format(without_views))
    q[labels.labeled] = np.eye(labels.n_classes)[labels.codes[labels.labeled]]
    return q


def _probabilities(model: Model, rows: StreamedRows) -> tuple[Array, Array]:
    """The probabilities (n, K) of all rows by the model, and the weight of the views that each has, (n,)."""
    if isinstance(rows.source, ArrayApiRows) and has_formulas(model):
        return probabilities_of_rows(model, rows.source, rows.check)
    scored = RowScorer(model, rows.check).of_source(rows.source)  # type: ignore[arg-type]
    return model.probabilities(scored.logits, scored.has_view), scored.coverage
