"""Whether a fit uses exact kernels or low-rank features, and of how many landmarks: the user's choice, or by the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from cmvmed.auto.tuning import Tuning
from cmvmed.numerics.nystroem import Basis, residual
from cmvmed.numerics.threads import Mapper
from cmvmed.views.row_cache import RowCache
from cmvmed.views.view_kernel import view_basis
from cmvmed.views.view_rows import ViewData

# Part of a kernel's trace that landmarks may miss: at 11 % 4 % of the classes differ from those of the exact kernel, at 21 %
# 7 %, at 36 % 13 % (footsteps, benchmarks.agreement).
MAX_RESIDUAL = 0.1
RESIDUAL_ROWS = 500  # whose kernel values show what landmarks miss
MAX_ROWS_WITHOUT_LOW_RANK = 20_000  # unlabeled rows that an algorithm without a low-rank form refuses


@dataclass(frozen=True)
class Approximation:
    """How kernels are handled: exactly if ``n_components`` is None, otherwise through so many landmark rows."""

    n_components: int | None
    may_grow: bool = False  # whether there may be more landmarks where these miss much of a kernel

    @property
    def kind(self) -> str:
        """The name of the choice, as the user would give it."""
        return "exact" if self.n_components is None else "nystroem"


def choose_approximation(approximation: str | int, algorithm: str, n_unlabeled: int, tuning: Tuning) -> Approximation:
    """The choice for so many unlabeled rows; only algorithm "bohning" has a low-rank form.

    A number is that of the landmarks.
    """
    if approximation == "exact":
        return Approximation(None)
    if algorithm == "bohning":
        if approximation == "auto" and n_unlabeled <= tuning.max_exact_rows:
            return Approximation(None)
        if isinstance(approximation, str):
            return Approximation(tuning.min_components, may_grow=True)
        return Approximation(approximation)
    if approximation != "auto":
        raise ValueError(
            f'approximation={approximation!r} needs algorithm="bohning", not {algorithm!r}; change it, or use "exact".'
        )
    if n_unlabeled > MAX_ROWS_WITHOUT_LOW_RANK:
        raise ValueError(
            f"{n_unlabeled} unlabeled rows are too many for algorithm={algorithm!r}, which has no low-rank form: its cost grows "
            'with their cube. Use algorithm="bohning", or approximation="exact" to run it anyway.'
        )
    return Approximation(None)


def view_bases(
    views: Sequence[ViewData],
    cache: RowCache,
    approximation: Approximation,
    random_state: object,
    tuning: Tuning,
    map_views: Mapper,
    *,
    complete: bool,
) -> list[Basis] | None:
    """The views' low-rank features, None if kernels are exact; ``complete`` if all rows are in memory.

    While the landmarks of a view miss more than ``MAX_RESIDUAL`` of its kernel, their number doubles, up to all rows or twice
    ``max_components``; up to ``max_components`` in fits to more rows than are in memory, where it is the cost of each pass.
    """
    n_components = approximation.n_components
    if n_components is None:
        return None
    seeds = check_random_state(random_state).randint(2**31, size=len(views))
    most = n_components
    if approximation.may_grow:
        most = (2 if complete else 1) * tuning.max_components

    def basis(i: int) -> Basis:
        p, view = n_components, views[i]
        found = view_basis(view, cache, p, int(seeds[i]))
        while p < min(most, view.rows.size) and missed_part(view, found) > MAX_RESIDUAL:
            p = min(2 * p, most)
            found = view_basis(view, cache, p, int(seeds[i]))
        return found

    return list(map_views(basis, range(len(views))))


def missed_part(view: ViewData, basis: Basis) -> float:
    """The share of the kernel's trace that the features miss, over at most ``RESIDUAL_ROWS`` rows of the view."""
    rows = np.unique(np.linspace(0, view.rows.size - 1, RESIDUAL_ROWS).astype(np.intp))
    Z = basis.features(view.train[rows])
    return residual(view.training_rows.diagonal(rows) + view.bias, np.einsum("ij,ij->i", Z, Z))
