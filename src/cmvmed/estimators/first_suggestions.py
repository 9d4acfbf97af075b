"""Rows to label first, before there are any labels."""

import numpy as np

from cmvmed.auto.suggestions import ViewPoints, random_positions, similarities
from cmvmed.auto.tuning import current_tuning
from cmvmed.data.reading import open_rows
from cmvmed.data.validation import RowCheck
from cmvmed.estimators._settings import ViewParameters, read_input_settings
from cmvmed.estimators._suggestions import (
    RANDOM,
    Suggestions,
    check_count,
    check_share,
    draw_numbers,
    mix_rows,
    random_order,
    rows_like,
    typical,
)
from cmvmed.estimators.cmvmed import CMVMED
from cmvmed.numerics.linalg import numerical_errors
from cmvmed.views.training_data import generator
from cmvmed.views.view_rows import read_view


def suggest_first(
    X: object, n: int = 10, *, views: object = None, random_share: float = 0.2, random_state: object = 0
) -> Suggestions:
    """Rows to label first, before there are any labels: typical ones, which together cover the data, and some at random.

    Parameters
    ----------
    X : as in the fit of :class:`CMVMED`
    n : int, default=10
        Number of rows, at most 2000. If there are fewer, all of them are suggested.
    views : as in :class:`CMVMED`, default=None
    random_share : float, default=0.2
        Part of the rows that are drawn at random: by default every fifth.
    random_state : int, RandomState instance or None, default=0
        Draws the random rows, and 2000 rows to choose from if there are more.

    Returns
    -------
    suggestions : Suggestions
        With the fields ``rows`` (numbers of rows in X), ``scores``, ``reasons`` and ``random``.

    Examples
    --------
    >>> from cmvmed import suggest_first
    >>> from cmvmed.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> first = suggest_first(data.data, 5, views=data.views)
    >>> len(set(first.rows.tolist()))
    5
    """
    tuning, settings = current_tuning(), read_input_settings(CMVMED(views=views))
    n, share, rng = check_count(n, tuning), check_share(random_share), generator(random_state)
    schema, source = open_rows(X, settings)
    drawn = draw_numbers(source.n_rows, tuning, rng)
    matrices = source.take(drawn)
    present = RowCheck(schema.view_names, schema.columns_by_view, (None,) * len(matrices)).present(0, matrices)
    usable = np.flatnonzero(np.any(present, axis=0))  # rows with a view
    none, every, weights = usable[:0], np.arange(drawn.size), np.ones(drawn.size)
    by_view = ViewParameters("linear+rbf").by_view(schema.view_names, 2, tuning)
    with numerical_errors():
        data = [
            read_view(s, matrix, has, every, weights, rng)
            for s, matrix, has in zip(by_view, matrices, present, strict=True)
        ]
        points = [ViewPoints(view.kernel, view.train, np.searchsorted(usable, view.rows)) for view in data]
        S = similarities(points, usable.size, n, tuning)
    is_random = random_positions(min(n, usable.size), share, 0)
    order = random_order(usable.size, source.n_rows, rng)
    chosen, scores = mix_rows(
        S, np.ones(usable.size), none, np.arange(usable.size), order[: is_random.sum()], is_random
    )
    counts = rows_like(S, none, chosen, source.n_rows / drawn.size)
    reasons = [RANDOM if at_random else typical(count) for at_random, count in zip(is_random, counts, strict=True)]
    return Suggestions(drawn[usable[chosen]], scores, reasons, is_random)
