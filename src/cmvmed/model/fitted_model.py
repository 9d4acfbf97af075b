"""What a fit leaves behind: all that predictions, explanations, files and exports may use.

A member is a classifier whose logits are a combination of terms, z(x) = scale · (combination of its terms) + offset. The last
member is the consensus of the views, or of a baseline its only classifier; its first terms are those of the views, in their order.
:class:`Pool` says how the members' logits become probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cmvmed.core.consensus import prior_scores, soft_labels
from cmvmed.data.layout import InputSchema
from cmvmed.data.reading import InputSettings, load_new
from cmvmed.data.validation import RowCheck
from cmvmed.model.evaluate import Evaluator
from cmvmed.model.terms import (
    Centers,
    Present,
    Term,
    ViewTerm,
    are_finite,
    are_indices,
    check_that,
    covers,
    holds_finite_numbers,
)
from cmvmed.model.uncertainty import HeldOutScores, ViewPosterior
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.softmax import log_softmax
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.view_rows import ViewPreprocessor

Rule: TypeAlias = Literal["sum", "root", "mean"]


@dataclass(frozen=True)
class Member:
    """One classifier: z = scale · Σ_t w_t s_t / divisor + offset.

    The divisor is 1 ("sum"), the square root of the number of the terms' views that a row has ("root", the mean of kernels over
    views), or Σ w_t over the terms whose views it has ("mean", the consensus).
    """

    name: str
    terms: tuple[Term, ...]
    weights: Array  # (terms,)
    rule: Rule
    scale: float
    offset: Array  # (K,)

    def coverage(self, present: Present) -> Array:
        """Σ w_t over the terms whose views each row has, (n,)."""
        return np.asarray(self.weights @ np.array([covers(term, present) for term in self.terms]))

    def divisor(self, present: Present) -> Array:
        """(n,), one where the row has no view."""
        if self.rule == "mean":
            coverage = self.coverage(present)
            return np.where(coverage > 0.0, coverage, 1.0)
        if self.rule == "root":
            count = np.sum([present[term.views[0]] for term in self.terms], axis=0)
            return np.asarray(np.sqrt(np.maximum(count, 1)))
        return np.ones(present[0].size)

    def logits(self, scores: Sequence[Array], present: Present) -> Array:
        """z (n, K), of the scores (n, K) of each term."""
        total = np.tensordot(self.weights, np.stack(scores), 1)
        return np.asarray(self.scale * total / self.divisor(present)[:, None] + self.offset)

    def check(self, n_classes: int, widths: Sequence[int]) -> None:
        """Raise a ValueError unless its parts fit together."""
        check_that(self.rule in ("sum", "root", "mean"), "a member has an unknown rule")
        check_that(are_finite(self.weights, (len(self.terms),)), "weights do not fit the terms")
        check_that(
            are_finite(self.offset, (n_classes,)) and np.isfinite(self.scale), "an offset does not fit the classes"
        )
        for term in self.terms:
            check_that(all(0 <= view < len(widths) for view in term.views), "a term is of none of the views")
            for own in term.centers:
                known = own.preprocessor.columns
                width = widths[own.view] if known is None else len(known)
                check_that(
                    own.rows.ndim == 2 and own.rows.shape[1] == width, "rows do not have the columns of their view"
                )
            term.check(n_classes, widths)


@dataclass(frozen=True)
class Pool:
    """p = softmax(Σ_j w_j z_j + b) of the logits z_j of members j: the product of their probabilities, each to a power."""

    weights: Array  # (members,), w
    offset: Array  # (K,), b


@dataclass(frozen=True)
class RowNumbers:
    """The training rows, in the order in which terms number them."""

    numbers: IntArray  # (n,), in the X of the fit
    labeled: BoolArray  # (n,)

    def check(self, centers: Sequence[Centers]) -> None:
        """Raise a ValueError unless these rows of terms are among them."""
        n = self.numbers.size
        check_that(
            are_indices(self.numbers, np.iinfo(np.intp).max) and self.labeled.shape == (n,), "rows have no numbers"
        )
        for own in centers:
            fits = own.numbers is None or (own.numbers.size == own.size and are_indices(own.numbers, n))
            check_that(fits, "a term holds rows that are none of the training rows")


@dataclass(frozen=True)
class Model(PickledByFields):
    """A fitted model."""

    schema: InputSchema
    classes: NDArray[Any]  # (K,)
    class_prior: Array  # (K,), given to rows without any view
    preprocessors: tuple[ViewPreprocessor, ...]  # per view
    members: tuple[Member, ...]
    pool: Pool | None = None  # None if there is one member, whose scores are the model's
    posteriors: tuple[ViewPosterior, ...] | None = None  # per view, variances of its scores
    held_out: HeldOutScores | None = None  # probabilities of held-out labels, for prediction sets
    rows: RowNumbers | None = None

    @property
    def consensus(self) -> Member:
        """The consensus of the views, or the classifier of a baseline."""
        return self.members[-1]

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.classes.size)

    @property
    def temperature(self) -> float:
        """T of the consensus softmax(scores/2T)."""
        return 0.5 / self.consensus.scale

    @property
    def score_offset(self) -> Array:
        """The offset of the class balance in the scores of the consensus and of each view, (F,)."""
        offset = self.consensus.offset / self.consensus.scale
        return offset[1:] if self.n_classes == 2 else offset

    @property
    def view_terms(self) -> tuple[ViewTerm, ...]:
        """Per view, its term of the consensus."""
        return cast("tuple[ViewTerm, ...]", self.consensus.terms[: len(self.preprocessors)])

    @property
    def in_use(self) -> list[Member]:
        """The members that take part in the probabilities."""
        if self.pool is None:
            return [self.consensus]
        return [member for member, weight in zip(self.members, self.pool.weights, strict=True) if weight != 0.0]

    @cached_property
    def known_views(self) -> list[bool]:
        """Per view, whether any training row had it."""
        return [bool(term.needs) for term in self.view_terms]

    def usable(self, present: Present) -> list[BoolArray]:
        """Per view, which rows have it, none if no training row had it."""
        return [has if known else np.zeros_like(has) for has, known in zip(present, self.known_views, strict=True)]

    @cached_property
    def row_check(self) -> RowCheck:
        """The check of new rows."""
        widths = self.schema.layout.widths
        unused = tuple(p.unused_columns(width) for p, width in zip(self.preprocessors, widths, strict=True))
        complete = tuple(p.needs_all_cells for p in self.preprocessors)
        return RowCheck(self.schema.view_names, self.schema.columns_by_view, unused, complete)

    def read_views(self, X: object, settings: InputSettings) -> tuple[list[Matrix], list[BoolArray]]:
        """The matrices of new rows and which rows have which view."""
        matrices = load_new(X, self.schema, settings)
        return matrices, self.row_check.present(0, matrices)

    @cached_property
    def _double(self) -> Evaluator:
        return Evaluator(self)

    @cached_property
    def _single(self) -> Evaluator:
        return Evaluator(self, np.float32)

    def evaluator(self, dtype: DTypeLike = np.float64) -> Evaluator:
        """The members' logits of rows, with kernels in a precision."""
        return self._single if dtype == np.float32 else self._double

    def log_probabilities(self, logits: Array) -> Array:
        """(n, K), of the logits of the pool; up to a constant of each row if there is one member."""
        return logits if self.pool is None else log_softmax(logits)

    def probabilities(self, logits: Array, has_view: BoolArray) -> Array:
        """(n, K), of :meth:`log_probabilities`; the class prior for rows without any view."""
        if self.pool is not None:
            p = np.exp(logits)
        else:
            p = soft_labels(2.0 * logits[:, 1:] if self.n_classes == 2 else 2.0 * logits, np.zeros(1), 1.0)
        p[~has_view] = self.class_prior
        return p

    def decision_scores(self, logits: Array, has_view: BoolArray) -> Array:
        """(n, F): log-odds of two classes, centered log-probabilities of more; of one member alone, its scores."""
        if self.pool is None:
            scores = logits / self.consensus.scale
            own = scores[:, 1:] if self.n_classes == 2 else scores
            return np.where(has_view[:, None], own, self.prior_scores)
        log_p = np.where(has_view[:, None], logits, np.log(self.class_prior))
        if self.n_classes == 2:
            return np.asarray(log_p[:, 1:] - log_p[:, :1])
        return np.asarray(log_p - log_p.mean(axis=1, keepdims=True))

    @property
    def prior_scores(self) -> Array:
        """Scores (F,) of the class prior, given to rows without any view."""
        return prior_scores(self.class_prior, self.temperature)

    def check(self) -> None:
        """Raise a ValueError unless the parts of the model fit together: of a file that anybody may have written."""
        K, widths, schema = self.n_classes, self.schema.layout.widths, self.schema
        check_that(holds_finite_numbers(self), "a number is infinite or NaN")
        n_columns = schema.n_features if schema.names is None else len(schema.names)
        check_that(all(are_indices(own, n_columns) for own in schema.layout.columns), "a view has columns that X lacks")
        check_that(K > 1 and are_finite(self.class_prior, (K,)), "the class prior does not fit the classes")
        check_that(len(self.preprocessors) == len(widths) <= len(self.consensus.terms), "a view has no term")
        check_that(self.pool is not None or len(self.members) == 1, "nothing says how members are put together")
        for view, term in enumerate(self.view_terms):
            check_that(term.views == (view,), "the terms of the views are not in their order")
        for member in self.members:
            member.check(K, widths)
        if self.pool is not None:
            check_that(are_finite(self.pool.weights, (len(self.members),)), "a member has no weight")
            check_that(are_finite(self.pool.offset, (K,)), "the offset of the pool does not fit the classes")
        for posterior in self.posteriors or ():
            posterior.check()
        if self.rows is not None:
            self.rows.check([own for member in self.members for term in member.terms for own in term.centers])
        if self.held_out is not None:
            self.held_out.check(K)
