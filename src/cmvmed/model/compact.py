"""A fitted model through fewer rows, for small model files.

Kernel expansions over all training rows become the nearest ones over some of them, and graphs keep some of their nodes
(``smaller`` of each kind of term). Expansions of smooth kernels lose little. A graph of fewer nodes is another graph, which may
lose much. What changes is therefore measured on the training rows, and a model that changes too much is not used.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from cmvmed.model.fitted_model import Member, Model
from cmvmed.model.predict import probabilities
from cmvmed.model.terms import Centers, FewerRows
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix

MAX_CHANGED = 0.01  # share of the training rows whose class a compact model may change


@dataclass(frozen=True)
class Compacted:
    """A compact model, and how its predictions of the training rows differ from those of the whole one."""

    model: Model
    n_rows: int  # landmarks of each view
    same_class: float  # share of the training rows whose most probable class is the same
    mean_change: float  # of the probability of that class


def compact_model(model: Model, n_rows: int) -> Compacted:
    """The model through ``n_rows`` rows of each view, and of each graph; an error if it would predict other classes."""
    fewer = FewerRows(n_rows, _priority(model, n_rows), project=_holds_rows(model))
    smaller = replace(
        model,
        members=tuple(_smaller_member(member, fewer) for member in model.members),
        posteriors=None if model.posteriors is None else tuple(own.smaller(fewer) for own in model.posteriors),
    )
    found = Compacted(_with_columns(smaller), n_rows, *_change(model, smaller))
    changed = 1.0 - found.same_class
    if changed > MAX_CHANGED:
        raise ValueError(
            f"A compact file with {n_rows} rows of each view would give another class to {changed:.1%} of the training rows, "
            f"more than {MAX_CHANGED:.0%}. Pass a larger number as compact, or fit with members that are not graphs, "
            "such as ['views', 'lda', 'trees', 'consensus']: graphs need all rows."
        )
    return found


def _smaller_member(member: Member, fewer: FewerRows) -> Member:
    return replace(member, terms=tuple(term.smaller(fewer) for term in member.terms))


def _with_columns(model: Model) -> Model:
    """The model whose views use only the columns of a precomputed kernel that their terms use."""
    own = [term.centers[0].preprocessor for term in model.view_terms]
    return replace(model, preprocessors=tuple(own))


def _holds_rows(model: Model) -> bool:
    """Whether the views compare new rows with all training rows, not with landmarks."""
    return all(own.numbers is not None for term in model.view_terms for own in term.centers)


def _priority(model: Model, n_rows: int) -> Array:
    """The order in which training rows become landmarks, the same in all views that have a row.

    Labeled rows come first if they are at most half of the landmarks; the others are in a random order.
    """
    if model.rows is None:
        sizes = [own.size for member in model.members for term in member.terms for own in term.centers]
        return np.random.default_rng(1).random(max(sizes))
    labeled, priority = model.rows.labeled, np.empty(model.rows.labeled.size)
    n_labeled = int(labeled.sum())
    priority[labeled] = np.random.default_rng(0).random(n_labeled)
    priority[~labeled] = np.random.default_rng(1).random(labeled.size - n_labeled)
    if n_labeled <= n_rows // 2:
        priority[labeled] -= 1.0
    return priority


def _change(model: Model, smaller: Model) -> tuple[float, float]:
    """The share of the training rows that keep their class, and the mean change of its probability."""
    rows = held_training_rows(model)
    if rows is None:
        return 1.0, 0.0
    before, after = (probabilities(own, *rows) for own in (model, smaller))
    best, every = before.argmax(axis=1), np.arange(len(before))
    return float((after.argmax(axis=1) == best).mean()), float(np.abs(after - before)[every, best].mean())


def held_training_rows(model: Model) -> tuple[list[Matrix], list[BoolArray]] | None:
    """The training rows as the user gave them, up to the clipping of features; None if the model does not hold them all."""
    if model.rows is None:
        return None
    n_rows, matrices, present = model.rows.numbers.size, [], []
    for view, width in enumerate(model.schema.layout.widths):
        held = _held(model, view)
        if held is None or held.numbers is None:
            return None
        matrices.append(_at_rows(held, held.numbers, n_rows, width))
        present.append(np.isin(np.arange(n_rows), held.numbers))
    return matrices, present


def _held(model: Model, view: int) -> Centers | None:
    """All training rows that have a view, by the consensus or else by the term that clips features least."""
    for members in ([model.consensus], model.members[:-1]):
        every = [own for member in members for term in member.terms for own in term.centers]
        held = [own for own in every if own.view == view and own.numbers is not None]
        if held:
            return max(held, key=lambda own: own.preprocessor.scaling.clip) if len(members) > 1 else held[0]
    return None


def _at_rows(held: Centers, numbers: IntArray, n_rows: int, n_columns: int) -> Any:
    """The rows of a view among all training rows, zero for those that lack it."""
    m = held.size
    to_all_rows = sparse.csr_matrix((np.ones(m), (numbers, np.arange(m))), shape=(n_rows, m))
    return to_all_rows @ held.preprocessor.inverse_transform(held.rows, n_columns)
