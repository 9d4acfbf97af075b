"""The members that are forests of extremely randomized trees (Geurts et al., 2006), on the columns of all views together.

==============  ========================================================================================
trees           each split looks at a few columns, the square root of their number
trees_all       each split looks at all columns, up to a limit
==============  ========================================================================================

The trees are dealt to the folds of the labels. Those of a fold do not see its labels, so that one forest both predicts new rows and
judges itself. A tree that lacks a fold's labels sees fewer of their classes; dividing its votes by the classes' shares among the
labels that it did see undoes that, and what a draw per class has of unequal classes, too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context  # type: ignore[attr-defined]
from sklearn.tree import ExtraTreeRegressor

from cmvmed.auto.class_prior import label_share
from cmvmed.members.contract import MemberInputs, MemberScores
from cmvmed.model.fitted_model import Member
from cmvmed.model.forests import fill_values, filled, forest_term, log_votes
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, IntArray, Matrix
from cmvmed.views.training_data import generator
from cmvmed.views.view_rows import ViewData


def fit_forest(inputs: MemberInputs, kind: str) -> MemberScores:
    """The member of a kind."""
    rows, tuning, keep = inputs.rows.as_drawn, inputs.tuning, inputs.keep[1:] or inputs.keep
    views = list(inputs.features.values())
    fill = [fill_values(view.preprocessor, view.train.shape[1]) for view in views]
    points = side_by_side(views, fill, inputs.n_rows)
    max_features = "sqrt" if kind == "trees" else min(points.shape[1], tuning.max_split_columns)
    seeds = generator(inputs.random_state).integers(2**31, size=len(keep))
    n_trees = -(-tuning.n_trees // len(keep))
    trees, codes, votes = [], [], np.zeros((len(keep), inputs.n_rows, rows.n_classes))
    for own, kept, seed in zip(votes, keep, seeds, strict=True):
        labels, weights = rows.codes[kept], rows.weights[kept]
        grown = grow_trees(points[rows.index[kept]], labels, weights, n_trees, max_features, int(seed))
        classes = np.unique(labels)
        own[:, classes] = sum(tree.predict(points).reshape(inputs.n_rows, -1) for tree in grown) / n_trees
        trees += grown
        codes += [classes] * n_trees
    present = np.any([np.isin(np.arange(inputs.n_rows), view.rows) for view in views], axis=0)[:, None]
    log_r = np.log(label_share(rows.counts(inputs.keep[0])))
    log_r_fold = np.log([label_share(rows.counts(kept)) for kept in keep])
    preprocessors = [view.preprocessor for view in views]
    term = forest_term(trees, codes, inputs.indices, preprocessors, fill, tuning.vote_smoothing, rows.n_classes)
    member = Member(kind, (term,), np.ones(1), "sum", 1.0, -log_r)
    scores = np.where(present, log_votes(votes.mean(axis=0), tuning.vote_smoothing), 0.0) - log_r
    fold_scores = np.where(present, log_votes(votes, tuning.vote_smoothing), 0.0) - log_r_fold[:, None]
    return MemberScores(kind, member, scores, fold_scores[: len(inputs.folds)])


def grow_trees(
    points: Matrix, codes: IntArray, weights: Array, n_trees: int, max_features: str | int, seed: int
) -> list[Any]:
    """The attributes ``tree_`` of ``ExtraTreesRegressor(n_trees, max_features=max_features, random_state=seed)``, to the bit.

    It is fitted to a column for each class, of which the mean squared error is the Gini impurity. A classifier grows the same
    trees, but for ties of splits, and checks the labels for each of them, which takes longer than to grow one from few labels.
    """
    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n_trees)
    points = points.tocsc() if is_sparse(points) else points
    is_class = (codes[:, None] == np.unique(codes)).astype(np.float64)
    given = None if (weights == 1.0).all() else weights  # the same, and not checked again
    with config_context(skip_parameter_validation=True, assume_finite=True):
        return [
            ExtraTreeRegressor(max_features=max_features, random_state=int(own))
            .fit(points, is_class, sample_weight=given, check_input=False)
            .tree_
            for own in seeds
        ]


def side_by_side(views: Sequence[ViewData], fill: Sequence[Array], n_rows: int) -> Matrix:
    """The features of all views, (n, d), in single precision; those of a missing view are filled."""
    if any(is_sparse(view.train) for view in views):
        return sparse.csr_matrix(sparse.hstack([_in_all_rows(view, n_rows) for view in views]), dtype=np.float32)
    points, present = [], []
    for view in views:
        has, full = np.zeros(n_rows, dtype=bool), np.zeros((n_rows, view.train.shape[1]))
        has[view.rows], full[view.rows] = True, view.train
        points.append(full)
        present.append(has)
    return filled(points, present, fill)


def _in_all_rows(view: ViewData, n_rows: int) -> sparse.csr_matrix:
    """A view's features as a sparse matrix of all rows, zero where the view is missing."""
    shape = (n_rows, view.rows.size)
    place = sparse.csr_matrix((np.ones(view.rows.size), (view.rows, np.arange(view.rows.size))), shape=shape)
    return sparse.csr_matrix(place @ sparse.csr_matrix(view.train))
