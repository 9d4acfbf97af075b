"""CoRLS: functions of several views whose mean fits the labels and which agree on the unlabeled rows."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from cmvmed.auto.tuning import current_tuning
from cmvmed.baselines.coregularization import CoRegularization, coregularize, fit_hinge, fit_least_squares
from cmvmed.core.problem import RowPartition
from cmvmed.data.layout import per_view
from cmvmed.estimators._base import MultiViewClassifier, model_attributes
from cmvmed.estimators._lowering import expansion_of, lower_baseline
from cmvmed.estimators._settings import AT_LEAST_0, ViewParameters, check_number
from cmvmed.numerics.linalg import numerical_errors
from cmvmed.views.view_rows import ViewData


class CoRLS(MultiViewClassifier):
    """Co-regularized least squares, and its support vector machine.

    Minimizes Σ loss(y, f̄) over the labeled rows, plus Σ_v γ_v ‖f_v‖² and μ Σ (f_v - f_u)² over the unlabeled rows and
    pairs of views, where f̄ is the mean of the views' functions. The loss is (y - f̄)² or, with the penalties halved,
    [1 - y f̄]₊. Both are solved through the co-regularization kernel, the first in closed form. More than two classes
    are learned one-vs-rest. A single view makes it regularized least squares or a support vector machine.

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
    form : {"least squares", "svm"}, default="least squares"
        The loss of the labeled rows: squared or hinge.
    regularization : float, or one per view, default=0.1
        γ_v, the penalty of each view's function.
    coupling : float, default=0.01
        μ, the penalty of a difference between two views on an unlabeled row.
    bias_variance : float, or one per view, default=0.1
        Added to each view's kernel: the variance of a constant in its score.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiViewClassifier._parameter_constraints,
        "form": [StrOptions({"least squares", "svm"})],
        "coupling": [AT_LEAST_0],
    }

    def __init__(
        self,
        *,
        views: object = None,
        kernel: object = "rbf",
        gamma: object = "median",
        scaling: object = "auto",
        form: str = "least squares",
        regularization: object = 0.1,
        coupling: float = 0.01,
        bias_variance: object = 0.1,
        unlabeled: object = -1,
        random_state: object = 0,
    ) -> None:
        self.views = views
        self.kernel = kernel
        self.gamma = gamma
        self.scaling = scaling
        self.form = form
        self.regularization = regularization
        self.coupling = coupling
        self.bias_variance = bias_variance
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to labeled and unlabeled rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, or list or dict of them by view
            One table whose columns ``views`` assigns to the views, or one table per view. A view whose values are all
            NaN in a row is missing there; a single NaN is filled with the mean of its column.
        y : array-like of shape (n_rows,), or str
            Classes, with ``unlabeled``, None or NaN for unlabeled rows; or the name of the column of X that holds them.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts, labeled or not.

        Returns
        -------
        self : object
        """
        training = self._read_training(X, y, sample_weight)
        labels, partition, tuning = training.labels, training.partition, current_tuning()
        parameters = ViewParameters(self.kernel, self.gamma, self.scaling, 1.0, 1.0, self.bias_variance)
        settings = parameters.by_view(training.schema.view_names, labels.n_classes, tuning)
        views = training.views_of_one_draw(settings, self.random_state)
        Y = training.signed_labels(partition.block_L)
        fit_loss = fit_hinge if self.form == "svm" else fit_least_squares
        with numerical_errors():
            space = self._coregularize(views, partition)
            coefficients, violation = fit_loss(space.kernel, Y, partition.weights[partition.block_L])
            expansions = [expansion @ coefficients for expansion in space.expansions]
        terms = [
            expansion_of(i, view, own[: view.L.size], own[view.L.size :])
            for i, (view, own) in enumerate(zip(views, expansions, strict=True))
        ]
        self._set_fitted_attributes(
            model_attributes(lower_baseline(training, terms))
            | {"view_names_": list(training.schema.view_names), "n_views_": len(views), "kkt_violation_": violation}
        )
        return self

    def _coregularize(self, views: list[ViewData], partition: RowPartition) -> CoRegularization:
        names, n_L = [view.settings.name for view in views], partition.block_L.size
        given = per_view(self.regularization, names, "regularization")
        return coregularize(
            kernels=(view.kernel_of(np.concatenate([view.L, view.U])) for view in views),
            rows=[np.concatenate([view.rows_in(partition.L), n_L + view.rows_in(partition.U)]) for view in views],
            n_labeled=n_L,
            regularization=[
                check_number("regularization", value, exclusive=True, view=name)
                for value, name in zip(given, names, strict=True)
            ],
            coupling=self.coupling * partition.weights[partition.block_U],
        )
