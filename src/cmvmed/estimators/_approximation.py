"""Whether a fit handles kernels exactly or by low rank: what the parameters ask for, and what the number of rows calls for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from cmvmed.core.annealing import Problem
from cmvmed.core.nystroem import LANDMARK_CHOICES, Basis, residual
from cmvmed.core.problem import RowPartition, landmark_basis
from cmvmed.core.surrogates import Surrogate
from cmvmed.core.threads import Mapper
from cmvmed.data.view_data import ViewData
from cmvmed.estimators._parameters import check_choice, check_integer

APPROXIMATIONS = ("auto", "exact", "nystroem")
EXACT_ROWS = 2000  # unlabeled rows up to which "auto" is exact: beyond, the eigendecompositions take seconds each
LARGEST_EXACT_ROWS = 20_000  # the same for modes and bounds without a low-rank form
COMPONENTS_PER_ROOT = 9  # n_components by default, per square root of the number of unlabeled rows
FEWEST_COMPONENTS, MOST_COMPONENTS = 600, 1000


@dataclass(frozen=True)
class Approximation:
    """How kernels are handled: exactly if ``n_components`` is None, else through as many landmarks."""

    n_components: int | None
    landmarks: str

    @property
    def kind(self) -> str:
        """The name of the choice, as a user would ask for it."""
        return "exact" if self.n_components is None else "nystroem"


def read_approximation(estimator: Any, surrogate: Surrogate, n_unlabeled: int) -> Approximation:
    """The choice for ``n_unlabeled`` rows."""
    check_choice("approximation", estimator.approximation, APPROXIMATIONS)
    check_choice("landmarks", estimator.landmarks, LANDMARK_CHOICES)
    asked = estimator.n_components
    if asked is not None:
        check_integer("n_components", asked, 1)
    exact, low_rank = (
        Approximation(None, estimator.landmarks),
        Approximation(asked or default_components(n_unlabeled), estimator.landmarks),
    )
    if estimator.approximation == "exact":
        return exact
    if surrogate.shared_curvature:
        return low_rank if estimator.approximation == "nystroem" or n_unlabeled > EXACT_ROWS else exact
    needs = 'mode="complete" with bound="bohning"'
    given = f"mode={estimator.mode!r} with bound={estimator.bound!r}"
    if estimator.approximation == "nystroem":
        raise ValueError(f'approximation="nystroem" needs {needs}, not {given}; change them, or use "exact".')
    if n_unlabeled > LARGEST_EXACT_ROWS:
        raise ValueError(
            f"{n_unlabeled} unlabeled rows are too many for {given}, which has no low-rank form: its cost grows with their "
            f'cube. Use {needs}, or approximation="exact" if you mean it.'
        )
    return exact


def default_components(n_unlabeled: int) -> int:
    """9 √n, but at least 600 and at most 1000."""
    return int(np.clip(round(COMPONENTS_PER_ROOT * np.sqrt(n_unlabeled)), FEWEST_COMPONENTS, MOST_COMPONENTS))


def view_bases(
    data: Sequence[ViewData],
    partition: RowPartition,
    approximation: Approximation,
    random_state: Any,
    map_views: Mapper,
) -> list[Basis] | None:
    """The views' low-rank features, None if kernels are handled exactly."""
    n_components = approximation.n_components
    if n_components is None:
        return None
    seeds = check_random_state(random_state).randint(2**31, size=len(data))

    def basis(i: int) -> Basis:
        return landmark_basis(
            data[i], partition, n_components, approximation.landmarks, np.random.default_rng(seeds[i])
        )

    return list(map_views(basis, range(len(data))))


def approximation_summary(
    approximation: Approximation, data: Sequence[ViewData], bases: Sequence[Basis] | None, problem: Problem
) -> dict[str, Any]:
    """What was chosen, and its error on the unlabeled rows in memory, for the user."""
    if bases is None:
        return {"kind": "exact"}
    lost = {
        view.settings.name: residual(view.training_rows.diagonal(view.index_U) + view.bias, model.blocks.diagonal_U)
        for view, model in zip(data, problem.models, strict=True)
    }
    return {
        "kind": "nystroem",
        "n_components": approximation.n_components,
        "landmarks": approximation.landmarks,
        "rank": {view.settings.name: basis.rank for view, basis in zip(data, bases, strict=True)},
        "residual": lost,
    }
