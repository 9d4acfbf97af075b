"""The yardsticks "start" and "start_eb": what the labels alone give, pooled over the views.

One MED per view on the labeled rows; the mean of their scores m, all views alike; and the offset o at which the
classes' shares of softmax((m + o)/2T), T = 0.2, over the unlabeled rows are those that the labels tell:

- "start": (n_c + ½)/(n + K/2). This is CMVMED(consensus_weight=0, class_prior="labels", view_weights="uniform")
  without graphs as it was when the suite was made.
- "start_eb": the same for two classes; for more, these shares shrunk towards equal ones by empirical Bayes. This is
  nearer to CMVMED(consensus_weight=0) without graphs as it was then, and better.

Every setting is given here, so that both stay as they are when defaults change; a test holds their figures.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from scipy.stats import dirichlet_multinomial

from cmvmed import MED

TEMPERATURE = 0.2


class PooledMEDs:
    """Labels-only classifier of several views.

    Parameters
    ----------
    views : dict from view name to slice of columns
    shares : callable
        From the number of labels of each class to the share of each class among the unlabeled rows.
    """

    def __init__(self, views: dict[str, slice], shares: Callable[[Any], Any]) -> None:
        self.views = views
        self.shares = shares

    def fit(self, X: Any, y: Any) -> "PooledMEDs":
        """Fit one MED per view and find the offset."""
        counts = np.bincount(y[y >= 0])
        self.models = [_med(counts.size).fit(X[:, columns], y) for columns in self.views.values()]
        self.offset = balancing_offset(self._pooled(X[np.flatnonzero(y < 0)]), self.shares(counts))
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class."""
        return softmax((self._pooled(X) + self.offset) / (2.0 * TEMPERATURE), axis=1)

    def _pooled(self, X: Any) -> Any:
        pairs = zip(self.models, self.views.values(), strict=True)
        return np.mean([_by_class(model.decision_function(X[:, columns])) for model, columns in pairs], axis=0)


def label_shares(counts: Any) -> Any:
    """(n_c + ½)/(n + K/2)."""
    return (counts + 0.5) / (counts.sum() + 0.5 * counts.size)


def shrunk_shares(counts: Any) -> Any:
    """For more than two classes the mean over κ of (n_c + κ)/(n + Kκ), weighted by p(counts | Dirichlet(κ))."""
    if counts.size == 2:
        return label_shares(counts)
    kappa = np.logspace(-0.5, 3.0, 40)[:, None]
    likelihood = dirichlet_multinomial.logpmf(counts, np.repeat(kappa, counts.size, axis=1), counts.sum())
    return softmax(likelihood) @ ((counts + kappa) / (counts.sum() + counts.size * kappa))


def balancing_offset(scores: Any, shares: Any) -> Any:
    """The offset (K,) at which softmax((scores + offset)/2T) has these mean shares: a convex function's minimum."""
    scale = 2.0 * TEMPERATURE

    def objective(offset: Any) -> tuple[float, Any]:
        logits = (scores + offset) / scale
        value = scale * logsumexp(logits, axis=1).mean() - shares @ offset
        return value, softmax(logits, axis=1).mean(axis=0) - shares

    found = minimize(objective, np.zeros(shares.size), jac=True, method="BFGS", options={"gtol": 1e-6})
    if np.abs(objective(found.x)[1]).max() > 1e-4:
        raise RuntimeError(f"the offset of the class shares was not found: {found.message}")
    return found.x


def _med(n_classes: int) -> MED:
    return MED(
        kernel="linear+rbf",
        gamma="median",
        scaling="auto",
        prior_variance=2.25 if n_classes == 2 else 10.0,
        C=1.0,
        bias_variance=0.1,
        random_state=0,
    )


def _by_class(decision: Any) -> Any:
    return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision
