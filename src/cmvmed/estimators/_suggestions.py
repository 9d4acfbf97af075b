"""Rows to label next, and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cmvmed._html import html_box, html_table
from cmvmed.auto.suggestions import ViewPoints, choose_rows, random_positions, similarities, uncertainty
from cmvmed.auto.tuning import Tuning, current_tuning
from cmvmed.data.reading import InputSettings
from cmvmed.estimators._settings import check_integer, check_number
from cmvmed.estimators._view_probabilities import probabilities_of_views
from cmvmed.model.compact import held_training_rows
from cmvmed.model.fitted_model import Model
from cmvmed.model.predict import probabilities
from cmvmed.model.uncertainty import posteriors
from cmvmed.numerics.linalg import is_sparse, numerical_errors
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.training_data import generator

CLEAR = 0.5  # probability from which on a view, or the model, is taken to name a class
BETWEEN = 0.5  # of the largest probability, from which on the second is as possible
RANDOM = "drawn at random: shows how accurate the model is, and how frequent the classes are"
SIMILAR = 0.1  # similarity from which on rows have something in common

Views: TypeAlias = tuple[list[Matrix], list[BoolArray]]  # per view the rows, and which of them have it


@dataclass(frozen=True)
class Suggestions:
    """Rows to label next, most useful first, with random ones among them.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Numbers of the rows.
    scores : ndarray of shape (n,)
        What each adds to those before it: the number of rows that it makes similar to a labeled row, each counted as far
        as it becomes similar and as its class is uncertain. Random rows count as before all others, whose scores fall from
        row to row.
    reasons : list of str
        Why each was chosen.
    random : bool ndarray of shape (n,)
        Which were drawn at random.

    Examples
    --------
    >>> from cmvmed import suggest_first
    >>> from cmvmed.datasets import load_breast_cancer_views
    >>> data = load_breast_cancer_views()
    >>> first = suggest_first(data.data, 3, views=data.views)
    >>> len(first.rows), bool(first.scores[0] >= first.scores[2]), first.reasons[0].startswith("typical")
    (3, True, True)
    """

    rows: IntArray
    scores: Array
    reasons: list[str]
    random: BoolArray

    def _repr_html_(self) -> str:
        drawn = np.where(self.random, "random", "chosen")
        rows = zip(self.rows, (f"{score:.1f}" for score in self.scores), drawn, self.reasons, strict=True)
        return html_box(html_table(("row", "score", "how", "why"), "rrll", rows))


@dataclass(frozen=True)
class Pool:
    """Labeled rows, and after them those to choose from."""

    views: Views
    numbers: IntArray  # (c,) of the rows to choose from, in the user's X
    probabilities: Array | None = None  # (c, K) of the rows to choose from, where they are known
    n_all: int = 0  # rows of which those to choose from were drawn

    @property
    def n_labeled(self) -> int:
        """Number of labeled rows."""
        return self.views[1][0].size - self.numbers.size

    @property
    def candidates(self) -> Views:
        """The rows to choose from."""
        return _rows(self.views, np.arange(self.n_labeled, self.views[1][0].size))


def suggest(
    model: Model,
    n: int,
    X: object,
    settings: InputSettings,
    random_state: object,
    known: Array | None,
    random_share: float,
    worths: dict[str, float],
) -> Suggestions:
    """Rows of X to label next, or of the unlabeled training rows if X is None.

    Parameters
    ----------
    known : (n, K), probabilities of all rows of the X of the fit, if they are known
    random_share : part of the labels that are of random rows
    worths : of the views
    """
    tuning = current_tuning()
    n, share, rng = check_count(n, tuning), check_share(random_share), generator(random_state)
    with numerical_errors():
        if X is None:
            pool = _training_pool(model, known, tuning, rng)
        else:
            pool = _pool_of(model, model.read_views(X, settings), tuning, rng)
        n_before = 0 if model.rows is None else int(model.rows.labeled.sum())
        is_random = random_positions(min(n, pool.numbers.size), share, n_before)
        return _suggest(model, pool, is_random, tuning, rng, worths)


def _training_pool(model: Model, known: Array | None, tuning: Tuning, rng: np.random.Generator) -> Pool:
    held, rows = held_training_rows(model), model.rows
    if held is None or rows is None:
        raise ValueError("This model does not hold all its training rows; pass the rows to choose from as X.")
    unlabeled = np.flatnonzero(~rows.labeled)
    chosen = unlabeled[draw_numbers(unlabeled.size, tuning, rng)]
    labeled = _drawn_labeled(rows.labeled, tuning, rng)
    numbers = rows.numbers[chosen]
    p = None if known is None else known[numbers]
    return Pool(_rows(held, np.concatenate([labeled, chosen])), numbers, p, unlabeled.size)


def _pool_of(model: Model, views: Views, tuning: Tuning, rng: np.random.Generator) -> Pool:
    usable = np.flatnonzero(np.any(model.usable(views[1]), axis=0))
    numbers, held = usable[draw_numbers(usable.size, tuning, rng)], held_training_rows(model)
    new = _rows(views, numbers)
    if held is not None and model.rows is not None:
        new = _stacked(_rows(held, _drawn_labeled(model.rows.labeled, tuning, rng)), new)
    return Pool(new, numbers, None, usable.size)


def _drawn_labeled(labeled: BoolArray, tuning: Tuning, rng: np.random.Generator) -> IntArray:
    """As many labeled training rows as are worked on."""
    rows = np.flatnonzero(labeled)
    return rows[draw_numbers(rows.size, tuning, rng)]


def _suggest(
    model: Model, pool: Pool, is_random: BoolArray, tuning: Tuning, rng: np.random.Generator, worths: dict[str, float]
) -> Suggestions:
    """As many rows as ``is_random`` (n,) has, which says which of them are random."""
    n, n_L, candidates = is_random.size, pool.n_labeled, pool.candidates
    p = pool.probabilities
    if p is None:
        p = probabilities(model, *candidates)
    S = similarities(_points(model, pool.views), pool.views[1][0].size, n_L + n, tuning)
    labeled, u = np.arange(n_L), np.concatenate([np.zeros(n_L), uncertainty(p)])
    drawn = n_L + random_order(pool.numbers.size, pool.n_all, rng)[: is_random.sum()]
    chosen, scores = mix_rows(S, u, labeled, np.arange(n_L, u.size), drawn, is_random)
    counts = rows_like(S, labeled, chosen, pool.n_all / max(pool.numbers.size, 1))
    known = S[np.ix_(chosen, labeled)].max(axis=1, initial=0.0) >= SIMILAR
    rows = chosen - n_L
    by_view = _probabilities_by_view(model, _rows(candidates, rows), worths)
    reasons = []
    for i, row in enumerate(rows):
        own = {name: of_view[i] for name, of_view in by_view.items()}
        reasons.append(RANDOM if is_random[i] else "; ".join(_clauses(model.classes, p[row], own, known[i], counts[i])))
    return Suggestions(pool.numbers[rows], scores, reasons, is_random)


def _points(model: Model, views: Views) -> list[ViewPoints]:
    """The rows of each view in the form that its kernel takes."""
    found = []
    for posterior, matrix, has in zip(posteriors(model), views[0], model.usable(views[1]), strict=True):
        rows, preprocessor = np.flatnonzero(has), posterior.rows.preprocessor
        found.append(ViewPoints(posterior.kernel, preprocessor.transform(matrix[rows]), rows))
    return found


def _probabilities_by_view(model: Model, views: Views, worths: dict[str, float]) -> dict[str, Array]:
    """The probabilities (n, K) by each view; NaN for rows that lack it."""
    found = probabilities_of_views(model, worths, *views)
    parts = zip(found.items(), model.usable(views[1]), strict=True)
    return {name: np.where(has[:, None], p, np.nan) for (name, p), has in parts}


def _clauses(classes: NDArray[Any], p: Array, by_view: dict[str, Array], known: bool, count: int) -> Iterator[str]:
    """Why a row was chosen: what is uncertain, whether it is near a labeled row, and how many rows are like it."""
    names = [str(name) for name in classes.tolist()]
    says = {view: int(own.argmax()) for view, own in by_view.items() if _is_clear(own)}
    order = sorted(says, key=lambda view: -by_view[view].max())
    others = [view for view in order if says[view] != says[order[0]]]
    first, second = np.argsort(-p, kind="stable")[:2]
    if others:
        one, other = order[0], others[0]
        yield f"views disagree: {one} says {names[says[one]]}, {other} says {names[says[other]]}"
    elif not _is_clear(p):
        yield f"between {names[first]} ({p[first]:.0%}) and {names[second]} ({p[second]:.0%})"
    else:
        yield f"probably {names[first]} ({p[first]:.0%})"
    if not known:
        yield "unlike any labeled row"
    if count > 1:
        yield typical(count)


def _is_clear(p: Array) -> bool:
    """Whether probabilities (K,) name a class: half or more of all, and no other is half as probable; not if they are NaN."""
    second, first = np.partition(p, -2)[-2:]
    return bool(first >= CLEAR and second <= BETWEEN * first)


def typical(count: int) -> str:
    """The reason to choose a row that is like so many."""
    return f"typical of about {count} rows" if count > 1 else "unlike other rows"


def rows_like(S: Array, labeled: IntArray, chosen: IntArray, times: float) -> list[int]:
    """How many rows are more like each chosen row than like any other chosen or labeled one, times a factor."""
    best = S[:, labeled].max(axis=1, initial=SIMILAR)
    if chosen.size == 0:
        return []
    like = S[:, chosen]
    own = like.max(axis=1) >= best
    return [round(times * count) for count in np.bincount(like.argmax(axis=1)[own], minlength=chosen.size)]


def check_count(n: object, tuning: Tuning) -> int:
    """A number of rows that can be chosen at once."""
    count = check_integer("n", n, 1)
    if count > tuning.suggestion_rows:
        raise ValueError(f"n must be at most {tuning.suggestion_rows}, but is {n!r}; label some of them first.")
    return count


def check_share(random_share: object) -> float:
    """A part of the rows that can be random."""
    return check_number("random_share", random_share, maximum=1.0)


def random_order(n_candidates: int, n_all: int, rng: np.random.Generator) -> IntArray:
    """The candidates in an order that has nothing to do with their own, nor with that of a call with fewer rows left.

    The latter matters where rows are sorted by time: the same generator would draw rows near those drawn before.
    """
    return np.random.default_rng([int(rng.integers(2**31)), n_all]).permutation(n_candidates)


def mix_rows(
    S: Array, u: Array, labeled: IntArray, candidates: IntArray, drawn: IntArray, is_random: BoolArray
) -> tuple[IntArray, Array]:
    """Random and chosen rows in the order of ``is_random`` (n,), and what each adds; the random ones are taken first."""
    rows, scores = np.empty(is_random.size, dtype=np.intp), np.empty(is_random.size)
    rows[is_random], scores[is_random] = choose_rows(S, u, labeled, drawn, drawn.size)
    known, left = np.concatenate([labeled, drawn]), np.setdiff1d(candidates, drawn)
    rows[~is_random], scores[~is_random] = choose_rows(S, u, known, left, is_random.size - drawn.size)
    return rows, scores


def draw_numbers(n_rows: int, tuning: Tuning, rng: np.random.Generator) -> IntArray:
    """The numbers of all rows, or of as many as are worked on, ascending."""
    if n_rows <= tuning.suggestion_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, tuning.suggestion_rows, replace=False))


def _rows(views: Views, rows: IntArray) -> Views:
    return [matrix[rows] for matrix in views[0]], [has[rows] for has in views[1]]


def _stacked(first: Views, second: Views) -> Views:
    pairs = zip(first[0], second[0], strict=True)
    matrices = [
        sparse.vstack([a, b], format="csr") if is_sparse(a) or is_sparse(b) else np.concatenate([a, b])
        for a, b in pairs
    ]
    return matrices, [np.concatenate(pair) for pair in zip(first[1], second[1], strict=True)]
