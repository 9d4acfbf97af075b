"""Small partly labeled problems that the estimator tests share."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]


@dataclass(frozen=True)
class Partly:
    """A problem of two views, columns 0-2 and 3-4, of which a few rows are labeled.

    The features are whole numbers, so that every number type holds them unchanged.
    """

    X: np.ndarray  # (n, 5)
    y: np.ndarray  # (n,), -1 for unlabeled rows
    truth: np.ndarray  # (n,)

    @property
    def a(self):
        return self.X[:, :3]

    @property
    def b(self):
        return self.X[:, 3:]

    @property
    def hidden(self):
        return self.y == -1


def partly_labeled(n_classes, n_rows, n_labeled, seed):
    """Labeled rows first, one class after the other; each class has its own center in both views."""
    random = np.random.default_rng(seed)
    truth = np.arange(n_rows) % n_classes
    centers = random.normal(size=(n_classes, 5))
    centers *= 2.2 / np.linalg.norm(centers - centers.mean(axis=0), axis=1, keepdims=True)
    X = np.round(4.0 * (centers[truth] + random.normal(size=(n_rows, 5))))
    y = np.where(np.arange(n_rows) < n_labeled, truth, -1)
    for array in (X, y, truth):
        array.setflags(write=False)  # shared by many tests
    return Partly(X, y, truth)


@pytest.fixture(scope="session")
def partly():
    """Two classes, 40 rows, 10 labels."""
    return partly_labeled(2, 40, 10, seed=0)


@pytest.fixture(scope="session")
def partly_three():
    """Three classes, 42 rows, 12 labels."""
    return partly_labeled(3, 42, 12, seed=1)


@pytest.fixture(scope="session")
def fresh_rows():
    """Rows that no model was fitted to, for the two-class problem."""
    return partly_labeled(2, 20, 20, seed=0).X[::-1] + 1.0


@pytest.fixture
def assert_same_model():
    """Two fitted models give the same scores for the same rows, each in its own form."""

    def check(model, X, other, other_X, *, atol=1e-8):
        np.testing.assert_allclose(model.decision_function(X), other.decision_function(other_X), atol=atol, rtol=0.0)
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(other_X), atol=atol, rtol=0.0)

    return check


@pytest.fixture
def assert_finite():
    """No prediction of a fitted model for X, and nothing that it stores about its fit, is NaN or infinite."""

    def check(model, X):
        predicted = [model.predict_proba(X), model.decision_function(X)]
        stored = [getattr(model, name, 0.0) for name in ("label_distributions_", "objective_history_", "dual_gap_")]
        stored += [getattr(model, name, 0.0) for name in ("class_prior_", "view_weights_")]
        stored += list(getattr(model, "history_", {}).values())
        assert all(np.isfinite(values).all() for values in (*predicted, *stored))
        np.testing.assert_allclose(predicted[0].sum(axis=1), 1.0, atol=1e-12)

    return check


@pytest.fixture
def fitted():
    """Fit a copy of a model, so that parametrized models stay unfitted."""

    def fit(model, X, y, **metadata):
        return clone(model).fit(X, y, **metadata)

    return fit
