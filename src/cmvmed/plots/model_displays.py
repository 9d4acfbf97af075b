"""Figures of a fitted CMVMED: its members, and what each view alone is worth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from cmvmed._optional import import_optional

FloatArray = NDArray[np.float64]

LEVEL = 0.9  # of the intervals
ALL = "all views"


class MembersDisplay:
    """Weights of the members of a fitted CMVMED, with their accuracy on labels that they did not see.

    Parameters
    ----------
    names : sequence of str
    weights, accuracies : (n_members,)
        Accuracies are NaN where no label was held out.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from cmvmed import CMVMED
    >>> from cmvmed.datasets import load_breast_cancer_views
    >>> from cmvmed.model_selection import hide_labels
    >>> from cmvmed.plots import MembersDisplay
    >>> data = load_breast_cancer_views()
    >>> y = hide_labels(data.target, 40, random_state=0)
    >>> display = MembersDisplay.from_estimator(CMVMED(views=data.views).fit(data.data, y))
    >>> display.ax_.get_xlabel()
    'weight'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, *, names: Sequence[str], weights: ArrayLike, accuracies: ArrayLike) -> None:
        self.names = list(names)
        self.weights: FloatArray = np.asarray(weights, dtype=np.float64)
        self.accuracies: FloatArray = np.asarray(accuracies, dtype=np.float64)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "MembersDisplay":
        """Draw the members of a fitted CMVMED, or of a pipeline that ends with one.

        Parameters
        ----------
        estimator : fitted CMVMED or Pipeline
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : MembersDisplay
        """
        table = _last_step(estimator).members_
        return cls(names=table["name"], weights=table["weight"], accuracies=table["accuracy"]).plot(ax=ax)

    def plot(self, ax: Any = None) -> "MembersDisplay":
        """Draw a bar per member, the heaviest at the top, with its accuracy at the end.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.

        Returns
        -------
        display : MembersDisplay
        """
        ax = _new_axes(len(self.names)) if ax is None else ax
        order = np.argsort(-self.weights, kind="stable")
        bars = ax.barh([self.names[k] for k in order], self.weights[order])
        known = [("" if np.isnan(a) else f"{a:.0%} right") for a in self.accuracies[order]]
        ax.bar_label(bars, known, padding=4)
        ax.set(xlabel="weight", xlim=(0.0, 1.25 * max(float(self.weights.max()), 0.01)))
        ax.invert_yaxis()
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ViewsDisplay:
    """Accuracy of each view alone, and of all together, with 90 % intervals (Wilson's).

    Parameters
    ----------
    n_right, n_rows : dict from view name to int
        Correct predictions, and labeled rows that have the view.

    Attributes
    ----------
    accuracies : dict from view name to (accuracy, low, high)
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from cmvmed.plots import ViewsDisplay
    >>> display = ViewsDisplay.from_predictions(["a", "b", "b"], ["a", "b", "b"], {"mic": ["a", "b", "a"]})
    >>> {name: round(shares[0], 2) for name, shares in display.accuracies.items()}
    {'mic': 0.67, 'all views': 1.0}
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, *, n_right: Mapping[str, int], n_rows: Mapping[str, int]) -> None:
        self.n_rows = dict(n_rows)
        self.accuracies = {
            name: (right / n_rows[name], *binomtest(right, n_rows[name]).proportion_ci(LEVEL, method="wilson"))
            for name, right in n_right.items()
        }

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Any = None) -> "ViewsDisplay":
        """Draw the accuracies of a fitted CMVMED, or of a pipeline that ends with one, on rows whose classes are known.

        Parameters
        ----------
        estimator : fitted CMVMED or Pipeline
        X : as in ``predict``
        y : array-like of shape (n_rows,)
            Classes, all known.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : ViewsDisplay
        """
        alone = probabilities_alone(estimator, X)
        classes = np.array([*estimator.classes_, None], dtype=object)  # None: the row does not have the view
        by_view = {name: classes[np.where(np.isnan(p[:, 0]), -1, p.argmax(axis=1))] for name, p in alone.items()}
        return cls.from_predictions(y, estimator.predict(X), by_view, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, by_view: Mapping[str, ArrayLike], *, ax: Any = None
    ) -> "ViewsDisplay":
        """Draw the accuracies of given predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_rows,)
            Classes, and predictions by all views.
        by_view : dict from view name to array-like of shape (n_rows,)
            Predictions by each view alone, None where a row does not have it.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : ViewsDisplay
        """
        truth = np.asarray(y_true, dtype=object)
        n_right, n_rows = {}, {}
        for name, given in {**by_view, ALL: y_pred}.items():
            predicted = np.asarray(given, dtype=object)
            if predicted.shape != truth.shape:
                raise ValueError(f"{name!r} has {predicted.size} predictions, but y_true {truth.size} classes.")
            has = np.array([value is not None for value in predicted])
            if has.any():  # a view that no row has is left out
                n_right[name], n_rows[name] = int((predicted == truth)[has].sum()), int(has.sum())
        return cls(n_right=n_right, n_rows=n_rows).plot(ax=ax)

    def plot(self, ax: Any = None) -> "ViewsDisplay":
        """Draw a point with its interval per view.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a figure.

        Returns
        -------
        display : ViewsDisplay
        """
        ax = _new_axes(len(self.accuracies)) if ax is None else ax
        share, low, high = np.array(list(self.accuracies.values())).T
        positions = np.arange(share.size)
        ax.errorbar(share, positions, xerr=np.maximum([share - low, high - share], 0.0), fmt="o", capsize=3)
        ax.set_yticks(positions, [f"{name} ({self.n_rows[name]} rows)" for name in self.accuracies])
        ax.set(xlabel=f"accuracy, with {LEVEL:.0%} interval", xlim=(0.0, 1.02), ylim=(share.size - 0.5, -0.5))
        ax.grid(axis="x", alpha=0.4)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def probabilities_alone(estimator: Any, X: Any) -> dict[str, FloatArray]:
    """Calibrated probabilities by each view alone, (n, K), NaN where a row does not have it."""
    model, features = _last_step(estimator), estimator[:-1].transform(X) if hasattr(estimator, "steps") else X
    present = model._read_views(features)[1]
    found = model.predict_proba_by_view(features, calibrated=True)
    return {name: np.where(has[:, None], found[name], np.nan) for name, has in zip(found, present, strict=True)}


def _last_step(estimator: Any) -> Any:
    return estimator[-1] if hasattr(estimator, "steps") else estimator


def _new_axes(n_lines: int) -> Any:
    pyplot = import_optional("matplotlib.pyplot", "plot", "A display")
    return pyplot.subplots(figsize=(6.5, 0.35 * n_lines + 1.2), layout="constrained")[1]
