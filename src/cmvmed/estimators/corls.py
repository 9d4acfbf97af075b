"""CoRLS: functions of several views whose mean fits the labels and which agree on the unlabelled rows."""

from typing import Any, Self

import numpy as np

from cmvmed.coregularised import CoRegularisation, coregularise, fit_hinge, fit_least_squares
from cmvmed.estimators.base import MultiViewClassifier
from cmvmed.estimators.parameters import check_choice, check_number, view_settings
from cmvmed.linalg import Array
from cmvmed.machines import ViewData, ViewMachine
from cmvmed.training import RowRoles
from cmvmed.views import per_view

FORMS = ("least squares", "svm")


class CoRLS(MultiViewClassifier):
    """Co-regularised least squares, and its support vector machine.

    Minimises Σ loss(y, f̄) over the labelled rows, plus Σ_v γ_v ‖f_v‖² and μ Σ (f_v - f_u)² over the unlabelled rows and pairs of
    views, where f̄ is the mean of the views' functions. The loss is (y - f̄)² or, with the penalties halved, [1 - y f̄]₊. Both
    are solved through the co-regularisation kernel, the first in closed form. Several classes are each told from the
    rest. A single view makes it regularised least squares or a support vector machine.

    Parameters
    ----------
    views : None, list or dict, default=None
        Which columns of X form which view, as in :class:`cmvmed.CMVMED`.
    kernel : {"rbf", "linear", "polynomial", "cosine", "precomputed"} or callable, or one per view, default="rbf"
        A callable takes two matrices of rows and returns their kernel matrix.
    gamma : "median" or float, or one per view, default="median"
        Scale of the "rbf" and "polynomial" kernels; "median" is one over the median squared distance (squared length for
        "polynomial") of the training rows.
    degree : int, or one per view, default=3
        Degree of the "polynomial" kernel (γ x·x' + coef0)^degree.
    coef0 : float, or one per view, default=1
        Constant of the "polynomial" kernel.
    scaling : {"auto", "standard", "unit", None}, or one per view, default="auto"
        How features are scaled before a named kernel, as in :class:`cmvmed.CMVMED`.
    form : {"least squares", "svm"}, default="least squares"
        The loss of the labelled rows: squared or hinge.
    regularization : float, or one per view, default=0.1
        γ_v, the penalty of each view's function.
    coupling : float, default=0.01
        μ, the penalty of a difference between two views on an unlabelled row.
    bias_variance : float, or one per view, default=0.1
        Added to each view's kernel: the variance of a constant in its score.
    missing : {"ignore", "error"}, default="ignore"
        What to do with a view whose values are all NaN in a row: leave it out of the row's mean and differences, or refuse it.
    unlabeled : scalar, default=-1
        Marks unlabelled rows in ``y``; None and NaN always do.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the loss.
    random_state : int, RandomState instance or None, default=0
        Chooses the rows of which the median distance is taken if there are more than a thousand.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class among the labelled rows, (n_c + ½)/(n + K/2); given to rows that have no view.
    view_names_ : list of str
    n_views_ : int
    kkt_violation_ : float
        Largest violation of an optimality condition at the solution, recomputed from the problem.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X is made of data frames with string column names.

    References
    ----------
    V. Sindhwani and D. S. Rosenberg, "An RKHS for multi-view learning and manifold co-regularization", ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cmvmed import CoRLS
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 100, y, -1)
    >>> CoRLS(views=[10, 20]).fit(X, few).score(X[100:], y[100:]) > 0.9
    True
    """

    # The regularisation says what a prior and a hinge weight would say twice.
    prior_variance = 1.0
    C = 1.0

    def __init__(
        self,
        *,
        views: Any = None,
        kernel: Any = "rbf",
        gamma: Any = "median",
        degree: Any = 3,
        coef0: Any = 1.0,
        scaling: Any = "auto",
        form: str = "least squares",
        regularization: Any = 0.1,
        coupling: float = 0.01,
        bias_variance: Any = 0.1,
        missing: str = "ignore",
        unlabeled: Any = -1,
        class_weight: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.views = views
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.form = form
        self.regularization = regularization
        self.coupling = coupling
        self.bias_variance = bias_variance
        self.missing = missing
        self.unlabeled = unlabeled
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, or list or dict of them by view
            One table whose columns ``views`` assigns to the views, or one table per view. A view whose values are all NaN in a
            row is missing there.
        y : array-like of shape (n_rows,)
            Classes, with ``unlabeled``, None or NaN for unlabelled rows.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts, labelled or not.

        Returns
        -------
        self : object
        """
        check_choice("form", self.form, FORMS)
        training = self._read_training(X, y, sample_weight)
        labels, roles = training.labels, training.roles
        settings = view_settings(self, training.columns.view_names, labels.n_classes)
        data = training.view_data(settings, roles.block_L, roles.block_U, self.random_state)
        Y = training.signed_labels(roles.block_L)
        space = self._coregularise(data, roles)
        fit_loss = fit_hinge if self.form == "svm" else fit_least_squares
        coefficients, violation = fit_loss(space.kernel, Y, roles.hinge[roles.block_L])
        machines = [
            _machine(view, expansion @ coefficients) for view, expansion in zip(data, space.expansions, strict=True)
        ]
        self._become(
            training.fitted(
                machines, view_names_=list(training.columns.view_names), n_views_=len(data), kkt_violation_=violation
            )
        )
        return self

    def _coregularise(self, data: list[ViewData], roles: RowRoles) -> CoRegularisation:
        names, n_L = [view.settings.name for view in data], roles.block_L.size
        given = per_view(self.regularization, names, "regularization")
        return coregularise(
            kernels=(view.kernel.gram(view.train, np.arange(view.train.shape[0])) + view.bias for view in data),
            rows=[np.concatenate([view.rows_L, n_L + view.rows_U]) for view in data],
            n_labelled=n_L,
            regularization=[
                check_number("regularization", value, open_left=True, view=name)
                for value, name in zip(given, names, strict=True)
            ],
            coupling=check_number("coupling", self.coupling) * roles.weights[roles.block_U],
        )


def _machine(view: ViewData, coefficients: Array) -> ViewMachine:
    n_L = view.rows_L.size
    return ViewMachine(view, coefficients[:n_L], coefficients[n_L:], np.zeros((0, 1)))
