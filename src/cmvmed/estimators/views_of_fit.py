"""The views of a fit as the annealing sees them: read with their settings, through their kernels or features, with neighbours."""

from dataclasses import dataclass
from typing import Any

from cmvmed.annealing import Annealed, Problem, Schedule
from cmvmed.estimators.approximation import view_bases
from cmvmed.estimators.consensus_parameters import consensus_view_settings, read_neighbors, read_view_weights
from cmvmed.estimators.fit_rows import FitRows
from cmvmed.machines import ViewData
from cmvmed.nystroem import Basis
from cmvmed.parallel import Mapper
from cmvmed.streamed_training import Streamed, continue_on_rows
from cmvmed.surrogates import Surrogate
from cmvmed.training import Surroundings, build_problem, hear_neighbours, view_machines


@dataclass(frozen=True)
class ViewsOfFit:
    """The views' rows and features, and the problem to anneal."""

    data: list[ViewData]
    bases: list[Basis] | None  # None if kernels are handled exactly
    problem: Problem  # of the sensors alone
    setting: Surroundings  # the problem with the neighbours' opinion, if they have one, and its weights


def read_views_of_fit(
    estimator: Any, fit_rows: FitRows, surrogate: Surrogate, schedule: Schedule, map_views: Mapper
) -> ViewsOfFit:
    """Scale the rows of each view and set up its kernel blocks or features."""
    training, roles = fit_rows.training, fit_rows.training.roles
    settings = consensus_view_settings(estimator, training.columns.view_names, training.labels.n_classes)
    data = training.view_data(settings, roles.block_L, roles.block_U, estimator.random_state)
    pi, n_neighbors = read_view_weights(estimator, data), read_neighbors(estimator, data)
    bases = view_bases(data, roles, fit_rows.approximation, estimator.random_state, map_views)
    problem = build_problem(
        data,
        roles,
        training.signed_labels(roles.block_L),
        training.labels.n_classes,
        spectral=surrogate.shared_curvature,
        bases=bases,
        map_views=map_views,
    )
    setting = Surroundings(problem, pi, schedule.consensus_weight)
    if n_neighbors != 0 and bases is None:
        setting = hear_neighbours(problem, data, roles, pi, schedule.consensus_weight, n_neighbors)
    return ViewsOfFit(data, bases, problem, setting)


def finished_on_all_rows(fit_rows: FitRows, views: ViewsOfFit, annealed: Annealed, schedule: Schedule) -> Streamed:
    """The last stage continued on all rows, where the views, which are low-rank ones, have something to teach each other."""
    assert views.bases is not None
    assert fit_rows.everything is not None
    if annealed.consensus_weight > 0.0 and not annealed.stopped:
        readers = [view.reader for view in views.data]
        samples = [rows for rows in (fit_rows.between, fit_rows.everything) if rows is not None]
        return continue_on_rows(samples, readers, views.bases, views.problem, annealed, schedule)
    gap = float(sum(w * state.gap for w, state in zip(annealed.view_weights, annealed.states, strict=True)))
    return Streamed(annealed, view_machines(views.data, views.bases, views.problem, annealed), gap)
