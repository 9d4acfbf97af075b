"""SVM2K: two support vector machines, one per view, with a penalty on the difference of their scores."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cmvmed._warnings import warn_user
from cmvmed.auto.tuning import current_tuning
from cmvmed.baselines.duals import TwoViewSolution, solve_two_view, svm2k_program
from cmvmed.core.problem import RowPartition
from cmvmed.estimators._base import MultiViewClassifier, model_attributes
from cmvmed.estimators._lowering import expansion_of, lower_baseline
from cmvmed.estimators._settings import AT_LEAST_0, ViewParameters
from cmvmed.model.expansions import Expansion
from cmvmed.numerics.types import Array
from cmvmed.views.view_rows import ViewData

# Largest violation of an optimality condition, in units of margin, that passes without a warning: an interior-point
# solver leaves a multiplier and its slack at the root of their product where both are zero.
KKT_TOLERANCE = 1e-5


class SVM2K(MultiViewClassifier):
    """SVM-2K: a support vector machine in each of two views, trained jointly with a penalty on the difference of their scores.

    Minimizes ½‖w_A‖² + ½‖w_B‖² + Σ C_A[1 - y f_A]₊ + Σ C_B[1 - y f_B]₊ + D Σ [abs(f_A - f_B) - ε]₊, where each f has an
    unpenalized bias, and predicts the sign of f_A + f_B. More than two classes are learned one-vs-rest. A single view
    makes it a support vector machine. Needs piqp: ``pip install 'cmvmed[baselines]'``.

    Parameters
    ----------
    views : None, list or dict, default=None
        Which columns of X form which of the two views, as in :class:`cmvmed.CMVMED`.
    kernel : {"auto", "linear+rbf", "rbf", "linear", "cosine", "precomputed"} or callable, or one per view, default="rbf"
        A callable takes two matrices of rows and returns their kernel matrix.
    gamma : "median", a multiple such as "0.5*median", or float, or one per view, default="median"
        Scale of the "rbf" and "linear+rbf" kernels; "median" is one over the median squared distance of the training
        rows, and "0.5*median" half of it.
    scaling : {"auto", "standard", "unit", None}, or one per view, default="auto"
        How features are scaled before a named kernel, as in :class:`cmvmed.CMVMED`.
    C : float, or one per view, default=10
        Weight of the hinge losses.
    D : float, default=0.1
        Weight of the views' disagreement; 0 trains two independent machines.
    epsilon : float, default=0
        ε, a difference of the views' scores that costs nothing.
    transductive : bool, default=False
        Whether the views' differences on the unlabeled rows are penalized too, instead of those on the labeled ones
        only.
    unlabeled : scalar, default=-1
        Marks unlabeled rows in ``y``; None and NaN always do. Without ``transductive`` they only set scale and
        bandwidth.
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
    J. D. R. Farquhar, D. R. Hardoon, H. Meng, J. Shawe-Taylor and S. Szedmak, "Two view learning: SVM-2K, theory and
    practice", NIPS 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cmvmed import SVM2K
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> SVM2K(views=[10, 20]).fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiViewClassifier._parameter_constraints,
        "D": [AT_LEAST_0],
        "epsilon": [AT_LEAST_0],
        "transductive": ["boolean"],
    }

    def __init__(
        self,
        *,
        views: object = None,
        kernel: object = "rbf",
        gamma: object = "median",
        scaling: object = "auto",
        C: object = 10.0,
        D: float = 0.1,
        epsilon: float = 0.0,
        transductive: bool = False,
        unlabeled: object = -1,
        random_state: object = 0,
    ) -> None:
        self.views = views
        self.kernel = kernel
        self.gamma = gamma
        self.scaling = scaling
        self.C = C
        self.D = D
        self.epsilon = epsilon
        self.transductive = transductive
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to the labeled rows and, if ``transductive``, to the unlabeled ones.

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
        _check_two_views(training.schema.view_names)
        labels, tuning = training.labels, current_tuning()
        if not self.transductive:
            training = training.restricted(training.partition.block_L, training.partition.block_U[:0])
        partition = training.partition
        parameters = ViewParameters(
            self.kernel, self.gamma, self.scaling, 1.0, self.C, 0.0
        )  # C and the bias replace the prior
        settings = parameters.by_view(training.schema.view_names, labels.n_classes, tuning)
        views = training.views_of_one_draw(settings, self.random_state)
        Y = training.signed_labels(partition.block_L)
        solutions = self._solve(views, partition, Y)
        violation = max(solution.violation for solution in solutions)
        if violation > KKT_TOLERANCE:
            warn_user(
                f"The quadratic program is not solved: its solution violates the optimality conditions by {violation:.1e}. Use "
                "smaller C and D, or scale the features.",
                ConvergenceWarning,
            )
        terms = [_term(i, view, solutions) for i, view in enumerate(views)]
        self._set_fitted_attributes(
            model_attributes(lower_baseline(training, terms))
            | {"view_names_": list(training.schema.view_names), "n_views_": len(views), "kkt_violation_": violation}
        )
        return self

    def _solve(self, views: list[ViewData], partition: RowPartition, Y: Array) -> list[TwoViewSolution]:
        """One solution per column of ``Y`` (n_L, F); the kernels are computed once."""
        kernels = [view.kernel_of(np.arange(view.rows.size)) for view in views]
        nothing, used = np.zeros(partition.U.size), partition.rows
        hinge = [view.settings.C * partition.joined(partition.weights[partition.block_L], nothing) for view in views]
        similarity, rows = self.D * partition.weights[used], [view.rows for view in views]
        return [
            solve_two_view(svm2k_program(kernels, rows, partition.joined(y, nothing), hinge, similarity, self.epsilon))
            for y in Y.T
        ]


def _check_two_views(names: Sequence[str]) -> None:
    if len(names) > 2:
        raise ValueError(
            f"SVM2K compares two views, but X has {len(names)}: {list(names)}. Join some of them, or use CMVMED, MVMED or "
            "CoRLS, which take any number."
        )


def _term(i: int, view: ViewData, solutions: list[TwoViewSolution]) -> Expansion:
    coefficients = np.column_stack([solution.coefficients[i] for solution in solutions])
    intercept = np.array([solution.biases[i] for solution in solutions])
    return expansion_of(i, view, coefficients[view.L], coefficients[view.U], intercept)
