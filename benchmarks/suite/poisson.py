"""Poisson learning (Calder et al., 2020) as graphlearning implements it, on a connected graph, also for new rows.

The graph joins each row to its ten nearest, weighted as graphlearning does by default. Edges of the minimum spanning
tree that it lacks are added with its smallest weight, so that labels reach every row. New rows get the mean of their
ten nearest training rows.
"""

from typing import Any, Self

import graphlearning
import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

N_NEIGHBORS = 10


class PoissonLearning(ClassifierMixin, BaseEstimator):
    """Semi-supervised classifier; -1 marks unlabeled rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    scores_ : ndarray of shape (n_rows, n_classes)
    transduction_ : ndarray of shape (n_rows,)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Solve the Poisson equation on the graph of the training rows."""
        self.neighbors_ = NearestNeighbors(n_neighbors=min(N_NEIGHBORS, X.shape[0] - 1)).fit(X)
        labeled = np.flatnonzero(y >= 0)
        self.classes_, codes = np.unique(y[labeled], return_inverse=True)
        self.scores_ = graphlearning.ssl.poisson(connected_graph(X, self.neighbors_)).fit(labeled, codes)
        if not np.isfinite(self.scores_).all():
            raise RuntimeError("the Poisson equation was not solved")
        self.transduction_ = self.classes_[self.scores_.argmax(axis=1)]
        return self

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        nearest = self.neighbors_.kneighbors(X, return_distance=False)
        return self.classes_[self.scores_[nearest].mean(axis=1).argmax(axis=1)]


def connected_graph(X: Any, neighbors: NearestNeighbors) -> Any:
    """Symmetric weights (n, n) of the nearest neighbors and the minimum spanning tree."""
    distances, nearest = neighbors.kneighbors()
    themselves = np.arange(X.shape[0])
    nearest = np.column_stack([themselves, nearest])
    distances = np.column_stack([np.zeros(X.shape[0]), np.maximum(distances, 1e-9)])  # equal rows have no scale
    weights = graphlearning.weightmatrix.knn(X, nearest.shape[1] - 1, knn_data=(nearest, distances))
    tree = minimum_spanning_tree(pairwise_distances(X) + 1e-9)  # a distance of zero would be no edge
    edges = (tree + tree.T).sign()
    lacking = edges - edges.multiply(weights.sign())
    return sparse.csr_matrix(weights + weights.data.min() * lacking)
