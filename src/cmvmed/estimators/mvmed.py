"""MVMED: maximum entropy discrimination of several views that share one margin per row."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cmvmed._warnings import warn_user
from cmvmed.auto.tuning import current_tuning
from cmvmed.baselines.duals import solve_mvmed
from cmvmed.estimators._base import MultiViewClassifier, model_attributes
from cmvmed.estimators._lowering import expansion_of, lower_baseline
from cmvmed.estimators._settings import ViewParameters
from cmvmed.numerics.linalg import OVERFLOW_ADVICE, numerical_errors
from cmvmed.numerics.types import Array
from cmvmed.views.view_rows import ViewData

KKT_TOLERANCE = 1e-8  # largest violation of an optimality condition, in units of margin, that passes without a warning


class MVMED(MultiViewClassifier):
    """Multi-view maximum entropy discrimination: views that must reach the same margin on each labeled row.

    Minimizes KL(p ‖ p₀) over distributions of the views' functions f_v and of one margin γ per labeled row, under E[y
    f_v - γ] >= 0 in every view, where p₀ holds Gaussian processes f_v and p₀(γ) = c exp(-c(1 - γ)), γ <= 1. The
    posterior of each view is Gaussian, and the sign of the mean over views predicts. More than two classes are learned
    one-vs-rest. A single view makes it Jaakkola's maximum entropy discrimination. Unlabeled rows only set scale and
    bandwidth.

    Parameters
    ----------
    views : None, list or dict, default=None
        Which columns of X form which view, as in :class:`cmvmed.CMVMED`.
    kernel : {"auto", "linear+rbf", "rbf", "linear", "cosine", "precomputed"} or callable, or one per view, default="rbf"
        A callable takes two matrices of rows and returns their kernel matrix.
    gamma : "median", a multiple such as "0.5*median", or float, or one per view, default="median"
        Scale of the "rbf" and "linear+rbf" kernels; "median" is one over the median squared distance of the training
        rows, and "0.5*median" half of it.
    scaling : {"auto", "standard", "unit", None}, or one per view, default="auto"
        How features are scaled before a named kernel, as in :class:`cmvmed.CMVMED`.
    prior_variance : "auto" or float, or one per view, default="auto"
        σ², prior variance of the weights of each view; "auto" is 2.25 for two classes and 10 for more.
    c : float, default=10
        Rate of the margin prior, greater than 1: its mean 1 - 1/c must be positive for anything to be learned. The
        larger it is, the larger the loss of a small margin.
    bias_variance : float, or one per view, default=0.1
        Prior variance of a constant added to each view's score.
    unlabeled : scalar, default=-1
        Marks unlabeled rows in ``y``; None and NaN always do.
    random_state : int, RandomState instance or None, default=0
        Chooses the rows of which the median distance is taken if there are more than a thousand; 0, not None, so that the
        same rows give the same model.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class among the labeled rows, (n_c + ½)/(n + K/2); given to rows that have no view.
    view_names_ : list of str
    n_views_ : int
    kkt_violation_ : float
        Largest violation of an optimality condition at the solution, recomputed from the problem.
    n_imputed_cells_ : dict of str to int
        By view, how many single NaN in the training rows were filled with the mean of their column.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if X is made of data frames with string column names.

    References
    ----------
    S. Sun and G. Chao, "Multi-view maximum entropy discrimination", IJCAI 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cmvmed import MVMED
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> MVMED(views=[10, 20]).fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiViewClassifier._parameter_constraints,
        "c": [Interval(Real, 1, None, closed="neither")],
    }
    _has_model_probabilities = True

    def __init__(
        self,
        *,
        views: object = None,
        kernel: object = "rbf",
        gamma: object = "median",
        scaling: object = "auto",
        prior_variance: object = "auto",
        c: float = 10.0,
        bias_variance: object = 0.1,
        unlabeled: object = -1,
        random_state: object = 0,
    ) -> None:
        self.views = views
        self.kernel = kernel
        self.gamma = gamma
        self.scaling = scaling
        self.prior_variance = prior_variance
        self.c = c
        self.bias_variance = bias_variance
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to the labeled rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, or list or dict of them by view
            One table whose columns ``views`` assigns to the views, or one table per view. A view whose values are all
            NaN in a row is missing there; a single NaN is filled with the mean of its column.
        y : array-like of shape (n_rows,), or str
            Classes, with ``unlabeled``, None or NaN for unlabeled rows; or the name of the column of X that holds them.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts.

        Returns
        -------
        self : object
        """
        training = self._read_training(X, y, sample_weight)
        labels, partition, tuning = training.labels, training.partition, current_tuning()
        labeled = partition.block_L[labels.codes[partition.block_L] >= 0]
        training = training.restricted(labeled, labeled[:0])
        parameters = ViewParameters(
            self.kernel, self.gamma, self.scaling, self.prior_variance, bias_variance=self.bias_variance
        )
        settings = parameters.by_view(training.schema.view_names, labels.n_classes, tuning)
        views = training.views_of_one_draw(settings, self.random_state)
        Y = training.signed_labels(labeled)
        with numerical_errors():
            coefficients, violation = _solve(views, Y, partition.weights[labeled], self.c)
        if not all(np.isfinite(tau).all() for tau in coefficients):
            raise ValueError(f"The dual has no finite solution: {OVERFLOW_ADVICE}")
        if violation > KKT_TOLERANCE:
            warn_user(
                f"The dual is not solved: its solution violates the optimality conditions by {violation:.1e}. Use a smaller c "
                "or prior_variance, or scale the features.",
                ConvergenceWarning,
            )
        nothing = np.zeros((0, Y.shape[1]))
        terms = [
            expansion_of(i, view, tau, nothing) for i, (view, tau) in enumerate(zip(views, coefficients, strict=True))
        ]
        self._set_fitted_attributes(
            model_attributes(lower_baseline(training, terms))
            | {"view_names_": list(training.schema.view_names), "n_views_": len(views), "kkt_violation_": violation}
        )
        return self

    def predict_proba(self, X: object) -> Any:
        """Probability of each class, softmax(score / 2) of the mean over views; σ(score) for two classes.

        The method itself predicts by sign alone. This reads the score as log-odds, as the consensus of
        :class:`cmvmed.CMVMED` does at temperature 1.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        probability : ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        return self._predict(X, "probability")


def _solve(views: list[ViewData], Y: Array, weights: Array, c: float) -> tuple[list[Array], float]:
    """Coefficients λ∘y per view (m_v, F) and the largest violation; the kernels are computed once."""
    rows = [view.rows for view in views]
    kernels = [view.settings.prior_variance * view.kernel_of(view.L) for view in views]
    solutions = [solve_mvmed(kernels, rows, y, weights, c) for y in Y.T]
    coefficients = [np.column_stack([solution[0][i] for solution in solutions]) for i in range(len(views))]
    return coefficients, max(violation for _, violation in solutions)
