"""How much each view contributes to the score of each row.

The score of one member alone is a sum over views if each of its terms is of one view, and so are its shares: π_i m_i / Σ π over
the views that the row has, and the offset. Otherwise the score is not a sum over views. The share of a view is then its Shapley
value

    φ_i = Σ_{S ∌ i} |S|! (V - |S| - 1)! / V! · (v(S ∪ i) - v(S)),

where v(S) is the score that the model gives to the row if it has the views S alone; v(∅) is that of the class prior.
The values add up to the score, whatever the model is. Of more than a few views, the mean of v(S ∪ i) - v(S) is taken over
random orders in which views join: an estimate of φ_i that adds up to the score as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import factorial
from typing import Any, TypeAlias

import numpy as np

from cmvmed.data.array_api import on_host
from cmvmed.data.reading import InputSettings, open_new
from cmvmed.data.sources import memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, MAX_CHUNK_ROWS, as_numbers
from cmvmed.model.fitted_model import Model
from cmvmed.model.predict import SCORE_COPIES, ScoredRows, bytes_per_row, scikit_shape, warn_without_views
from cmvmed.model.terms import Present
from cmvmed.numerics.types import Array, BoolArray, Matrix

PRIOR = "prior"
MAX_EXACT_VIEWS = 8  # up to which all 2^V sets of views are scored
N_ORDERS = 64  # random orders of more views
MAX_KEPT_DISTANCES = 2**22  # between rows and nodes of a graph, at a time

# By set of views, the weight (V,) of its score in the share of each view.
Coalitions: TypeAlias = dict[tuple[bool, ...], Array]


def explain(model: Model, X: object, settings: InputSettings) -> dict[str, Any]:
    """The shares in the scores of all rows of X, by view; in chunks for many rows."""
    names = model.schema.view_names
    if PRIOR in names:
        raise ValueError(
            f"A view is named {PRIOR!r}, like the part that depends on no view; give the view another name."
        )
    opened, explainer = open_new(on_host(X), model.schema, settings), Explainer.of(model)
    if not isinstance(opened, list) and opened.in_dask:
        raise TypeError(
            "explain does not take dask collections: pass a part of the rows that is in memory, such as "
            "X.partitions[0].compute(), or write them to a file and pass its path."
        )
    if isinstance(opened, list) and opened[0].shape[0] <= MAX_CHUNK_ROWS:
        table = explainer(0, [as_numbers(matrix) for matrix in opened])
    else:
        source = memory_rows(opened) if isinstance(opened, list) else opened.rows(model.schema.layout, settings)
        table = np.concatenate(list(source.map(explainer, bytes_per_row=explainer.bytes_per_row)))
    warn_without_views(ScoredRows.read(table))
    by_name = np.split(table[:, 1:], len(names) + 1, axis=1)
    return {name: scikit_shape(values) for name, values in zip([*names, PRIOR], by_name, strict=True)}


@dataclass(frozen=True)
class Explainer:
    """The shares in the scores of chunks of rows."""

    model: Model
    coalitions: Coalitions

    @classmethod
    def of(cls, model: Model) -> "Explainer":
        """Of a model; a score that is a sum over views needs no sets of views."""
        is_sum = model.pool is None and all(len(term.views) == 1 for term in model.consensus.terms)
        return cls(model, {} if is_sum else shapley_weights(len(model.preprocessors)))

    @cached_property
    def n_kept(self) -> int:
        """How many distances to training rows are kept for each row."""
        return max(term.n_kept for member in self.model.members for term in member.terms)

    @property
    def bytes_per_row(self) -> int:
        """Memory that a row needs while its score is explained."""
        return bytes_per_row(self.model) + SCORE_COPIES * FLOAT_BYTES * self.n_kept

    def __call__(self, first_row: int, matrices: list[Matrix]) -> Array:
        """The coverage of each row, then the shares of the views and of the prior in its scores, (n, 1 + (V + 1) F)."""
        usable, n_rows = self.model.usable(self.model.row_check.present(first_row, matrices)), matrices[0].shape[0]
        shares = self._shapley_values if self.coalitions else self._parts
        step = max(1, MAX_KEPT_DISTANCES // max(1, self.n_kept))
        blocks = [slice(start, start + step) for start in range(0, n_rows, step)]
        return np.concatenate([shares([m[rows] for m in matrices], [has[rows] for has in usable]) for rows in blocks])

    def _parts(self, matrices: list[Matrix], usable: list[BoolArray]) -> Array:
        """π_i m_i / Σ π of the views that a row has, and the offset."""
        member, own = self.model.consensus, slice(1, None) if self.model.n_classes == 2 else slice(None)
        coverage, divisor = member.coverage(usable), member.divisor(usable)[:, None]
        parts = [
            (weight * term.scores(matrices, usable) / divisor)[:, own]
            for weight, term in zip(member.weights, member.terms, strict=True)
        ]
        prior = np.where(coverage[:, None] > 0.0, self.model.score_offset, self.model.prior_scores)
        return np.hstack([coverage[:, None], *parts, prior])

    def _shapley_values(self, matrices: list[Matrix], usable: list[BoolArray]) -> Array:
        """The Shapley values of the views that a row has, and the score of the class prior."""
        score, shares = RowsGivenViews(self.model, matrices, usable), [0.0] * len(matrices)
        for members, weights in self.coalitions.items():
            has = [own if member else np.zeros_like(own) for own, member in zip(usable, members, strict=True)]
            value = score(has)
            shares = [share + weight * value for share, weight in zip(shares, weights, strict=True)]
            if not any(members):
                prior = value
        coverage = self.model.consensus.coverage(usable)
        views = [np.where(own[:, None], share, 0.0) for own, share in zip(usable, shares, strict=True)]
        return np.hstack([coverage[:, None], *views, prior])


class RowsGivenViews:
    """The scores of some rows as a function of the views that they are taken to have: what depends on one is computed once."""

    def __init__(self, model: Model, matrices: Sequence[Matrix], usable: Present) -> None:
        self.model = model
        weights, self.offset = np.ones(1), np.zeros(model.n_classes)
        if model.pool is not None:
            weights, self.offset = model.pool.weights, model.pool.offset
        self.weights, self.members = weights[weights != 0.0], model.in_use
        self.scores = [[term.given_views(matrices, usable) for term in member.terms] for member in self.members]

    def __call__(self, has: Present) -> Array:
        """Scores (n, F), as ``decision_function`` gives them."""
        logits = [
            member.logits([score(has) for score in scores], has)
            for member, scores in zip(self.members, self.scores, strict=True)
        ]
        pooled = np.tensordot(self.weights, np.stack(logits), 1) + self.offset
        has_view = self.model.consensus.coverage(has) > 0.0
        return self.model.decision_scores(self.model.log_probabilities(pooled), has_view)


def shapley_weights(n_views: int) -> Coalitions:
    """The weights of the scores of sets of views in the views' shares; all sets if the views are few."""
    if n_views > MAX_EXACT_VIEWS:
        return _weights_of_orders(n_views)
    weight = [factorial(s) * factorial(n_views - s - 1) / factorial(n_views) for s in range(n_views)] + [0.0]
    found = {}
    for members in product((False, True), repeat=n_views):
        size = sum(members)
        found[members] = np.where(members, weight[size - 1], -weight[size])
    return found


def _weights_of_orders(n_views: int) -> Coalitions:
    """The same over random orders.

    Each is taken with all its rotations, so that every view is at every position equally often, and with the reverse of
    these, so that errors partly cancel.
    """
    rng, n_random = np.random.default_rng(0), -(-N_ORDERS // (2 * n_views))
    rotated = [
        np.roll(order, shift)
        for order in rng.permuted(np.tile(np.arange(n_views), (n_random, 1)), axis=1)
        for shift in range(n_views)
    ]
    orders = [*rotated, *(order[::-1] for order in rotated)]
    found: Coalitions = {}
    for order in orders:
        members = np.zeros(n_views, dtype=bool)
        for view in order:
            for joined, sign in ((False, -1.0), (True, 1.0)):
                members[view] = joined
                found.setdefault(tuple(members.tolist()), np.zeros(n_views))[view] += sign / len(orders)
    return found
