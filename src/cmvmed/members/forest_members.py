"""The members that are forests of extremely randomized trees (Geurts et al., 2006), on the columns of all views together.

==============  ========================================================================================
trees           each split looks at a few columns, the square root of their number
trees_all       each split looks at all columns, up to a limit
==============  ========================================================================================

The trees are dealt to the folds of the labels. Those of a fold do not see its labels, so that one forest both predicts new rows and
judges itself. A tree that lacks a fold's labels sees fewer of their classes; dividing its votes by the classes' shares among the
labels that it did see undoes that.
"""

import numpy as np
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier

from cmvmed.auto.class_prior import label_share
from cmvmed.members.contract import MemberInputs, MemberScores
from cmvmed.model.fitted_model import Member
from cmvmed.model.forests import forest_term, log_votes
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, Matrix
from cmvmed.views.training_data import generator


def fit_forest(inputs: MemberInputs, kind: str) -> MemberScores:
    """The member of a kind."""
    rows, tuning, points = inputs.rows, inputs.tuning, side_by_side(inputs)
    keep = inputs.keep[1:] or inputs.keep
    n_columns = points.shape[1]
    max_features = "sqrt" if kind == "trees" else min(n_columns, tuning.max_split_columns)
    seeds = generator(inputs.random_state).integers(2**31, size=len(keep))
    forests = [
        ExtraTreesClassifier(-(-tuning.n_trees // len(keep)), max_features=max_features, random_state=int(seed)).fit(
            points[rows.index[kept]], rows.codes[kept], sample_weight=rows.weights[kept]
        )
        for kept, seed in zip(keep, seeds, strict=True)
    ]
    votes = np.zeros((len(keep), inputs.n_rows, rows.n_classes))
    for own, forest in zip(votes, forests, strict=True):
        own[:, forest.classes_] = forest.predict_proba(points)
    every = inputs.keep[0]
    log_r = np.log(label_share(rows.counts(every)))
    log_r_fold = np.log([label_share(rows.counts(kept)) for kept in keep])
    preprocessors = [view.preprocessor for view in inputs.features.values()]
    term = forest_term(forests, inputs.indices, preprocessors, [view.train.shape[1] for view in inputs.features.values()], tuning.vote_smoothing, rows.n_classes)
    member = Member(kind, (term,), np.ones(1), "sum", 1.0, -log_r)
    scores = log_votes(votes.mean(axis=0), tuning.vote_smoothing) - log_r
    fold_scores = log_votes(votes, tuning.vote_smoothing) - log_r_fold[:, None]
    return MemberScores(kind, member, scores, fold_scores[: len(inputs.folds)])


def side_by_side(inputs: MemberInputs) -> Matrix:
    """The features of all views, (n, d), in single precision; zero, which is the mean of scaled ones, where a view is missing."""
    parts = []
    for view in inputs.features.values():
        train = view.train.astype(np.float32)
        if is_sparse(train):
            place = sparse.csr_matrix((np.ones(view.rows.size, dtype=np.float32), (view.rows, np.arange(view.rows.size))), shape=(inputs.n_rows, view.rows.size))
            parts.append(place @ train)
        else:
            full = np.zeros((inputs.n_rows, train.shape[1]), dtype=np.float32)
            full[view.rows] = train
            parts.append(full)
    if any(is_sparse(part) for part in parts):
        return sparse.csr_matrix(sparse.hstack(parts))
    return np.hstack(parts)
