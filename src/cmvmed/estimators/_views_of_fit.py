"""The views of a fit as the annealing sees them: read with their settings, through their kernels or features, with neighbors."""

from dataclasses import dataclass
from typing import Any

from cmvmed.core.annealing import AnnealingResult, Problem, Schedule
from cmvmed.core.nystroem import Basis
from cmvmed.core.problem import Surroundings, add_neighbor_view, build_problem, view_predictors
from cmvmed.core.surrogates import Surrogate
from cmvmed.core.threads import Mapper
from cmvmed.data.view_data import ViewData
from cmvmed.estimators._approximation import view_bases
from cmvmed.estimators._settings import consensus_view_settings, read_neighbors, read_view_weights
from cmvmed.scale.sampling import FitRows
from cmvmed.scale.streamed import StreamedResult, run_streamed_stage


@dataclass(frozen=True)
class ViewsOfFit:
    """The views' rows and features, and the problem to anneal."""

    data: list[ViewData]
    bases: list[Basis] | None  # None if kernels are handled exactly
    problem: Problem  # of the sensors alone
    setting: Surroundings  # the problem with the neighbors' opinion, if they have one, and its weights


def read_views_of_fit(
    estimator: Any, fit_rows: FitRows, surrogate: Surrogate, schedule: Schedule, map_views: Mapper
) -> ViewsOfFit:
    """Scale the rows of each view and set up its kernel blocks or features."""
    training, partition = fit_rows.training, fit_rows.training.partition
    settings = consensus_view_settings(estimator, training.columns.view_names, training.labels.n_classes)
    data = training.view_data(settings, partition.block_L, partition.block_U, estimator.random_state)
    pi, n_neighbors = read_view_weights(estimator, data), read_neighbors(estimator, data)
    bases = view_bases(data, partition, fit_rows.approximation, estimator.random_state, map_views)
    problem = build_problem(
        data,
        partition,
        training.signed_labels(partition.block_L),
        training.labels.n_classes,
        spectral=surrogate.shared_curvature,
        bases=bases,
        map_views=map_views,
    )
    setting = Surroundings(problem, pi, schedule.consensus_weight)
    if n_neighbors != 0 and bases is None:
        setting = add_neighbor_view(problem, data, partition, pi, schedule.consensus_weight, n_neighbors)
    return ViewsOfFit(data, bases, problem, setting)


def continue_on_all_rows(
    fit_rows: FitRows, views: ViewsOfFit, annealed: AnnealingResult, schedule: Schedule
) -> StreamedResult:
    """The last stage continued on all rows, where the views, which are low-rank ones, have something to teach each other."""
    assert views.bases is not None
    assert fit_rows.everything is not None
    if annealed.consensus_weight > 0.0 and not annealed.stopped:
        readers = [view.reader for view in views.data]
        samples = [rows for rows in (fit_rows.between, fit_rows.everything) if rows is not None]
        return run_streamed_stage(samples, readers, views.bases, views.problem, annealed, schedule)
    gap = float(sum(w * state.gap for w, state in zip(annealed.view_weights, annealed.states, strict=True)))
    return StreamedResult(annealed, view_predictors(views.data, views.bases, views.problem, annealed), gap)
