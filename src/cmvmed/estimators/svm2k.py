"""SVM2K: two support vector predictors, one per view, that are asked to agree."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cmvmed.baselines.duals import TwoViewSolution, solve_two_view, svm2k_program
from cmvmed.core.linalg import Array, Matrix
from cmvmed.core.problem import RowPartition
from cmvmed.data.view_data import KernelPredictor, ViewData
from cmvmed.estimators._base import MultiViewClassifier
from cmvmed.estimators._parameters import check_choice, check_number, view_settings

# Largest violation of an optimality condition, in units of margin, that passes without a warning: an interior-point solver leaves
# a multiplier and its slack at the root of their product where both are zero.
KKT_TOLERANCE = 1e-5


class SVM2K(MultiViewClassifier):
    """SVM-2K: a support vector predictor in each of two views, trained together and asked to give similar scores.

    Minimizes ½‖w_A‖² + ½‖w_B‖² + Σ C_A[1 - y f_A]₊ + Σ C_B[1 - y f_B]₊ + D Σ [|f_A - f_B| - ε]₊, where each f has an
    unpenalized bias, and predicts the sign of f_A + f_B. Several classes are each told from the rest. A single view makes it
    a support vector predictor. Needs piqp: ``pip install 'cmvmed[rivals]'``.

    Parameters
    ----------
    views : None, list or dict, default=None
        Which columns of X form which of the two views, as in :class:`cmvmed.CMVMED`.
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
    C : float, or one per view, default=10
        Weight of the hinge losses.
    D : float, default=0.1
        Weight of the views' disagreement; 0 trains two independent predictors.
    epsilon : float, default=0
        ε, a difference of the views' scores that costs nothing.
    transductive : bool, default=False
        Whether the views are asked to agree on the unlabeled rows too, instead of on the labeled ones only.
    missing : {"ignore", "error"}, default="ignore"
        What to do with a view whose values are all NaN in a row: leave its losses out and judge by the other, or refuse it.
    unlabeled : scalar, default=-1
        Marks unlabeled rows in ``y``; None and NaN always do. Without ``transductive`` they only set scale and bandwidth.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the hinge losses.
    random_state : int, RandomState instance or None, default=0
        Chooses the rows of which the median distance is taken if there are more than a thousand.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class among the labeled rows, (n_c + ½)/(n + K/2); given to rows that have no view.
    view_names_ : list of str
    n_views_ : int
    kkt_violation_ : float
        Largest violation of an optimality condition at the solution, recomputed from the problem.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
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

    # The hinge's C and the unpenalized bias say what a prior would say twice.
    prior_variance = 1.0
    bias_variance = 0.0

    def __init__(
        self,
        *,
        views: Any = None,
        kernel: Any = "rbf",
        gamma: Any = "median",
        degree: Any = 3,
        coef0: Any = 1.0,
        scaling: Any = "auto",
        C: Any = 10.0,
        D: float = 0.1,
        epsilon: float = 0.0,
        transductive: bool = False,
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
        self.C = C
        self.D = D
        self.epsilon = epsilon
        self.transductive = transductive
        self.missing = missing
        self.unlabeled = unlabeled
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the labeled rows and, if ``transductive``, to the unlabeled ones.

        Parameters
        ----------
        X : array, sparse matrix, data frame, or list or dict of them by view
            One table whose columns ``views`` assigns to the views, or one table per view. A view whose values are all NaN in a
            row is missing there.
        y : array-like of shape (n_rows,)
            Classes, with ``unlabeled``, None or NaN for unlabeled rows.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts, labeled or not.

        Returns
        -------
        self : object
        """
        check_choice("transductive", self.transductive, (True, False))
        training = self._read_training(X, y, sample_weight)
        _check_two_views(training.columns.view_names)
        labels, partition = training.labels, training.partition
        block_U = partition.block_U if self.transductive else np.empty(0, dtype=np.intp)
        settings = view_settings(self, training.columns.view_names, labels.n_classes)
        data = training.view_data(settings, partition.block_L, block_U, self.random_state)
        Y = training.signed_labels(partition.block_L)
        solutions = self._solve(data, partition, Y)
        violation = max(solution.violation for solution in solutions)
        if violation > KKT_TOLERANCE:
            warnings.warn(
                f"The quadratic program was solved only to a violation of {violation:.1e} of its optimality conditions; smaller "
                "C and D, or scaled features, make it easier.",
                ConvergenceWarning,
                stacklevel=2,
            )
        predictors = [_machine(view, i, solutions) for i, view in enumerate(data)]
        self._set_fitted_attributes(
            training.fitted(
                predictors, view_names_=list(training.columns.view_names), n_views_=len(data), kkt_violation_=violation
            )
        )
        return self

    def _solve(self, data: list[ViewData], partition: RowPartition, Y: Array) -> list[TwoViewSolution]:
        """One solution per column of ``Y`` (n_L, F); the kernels are computed once."""
        D, epsilon = check_number("D", self.D), check_number("epsilon", self.epsilon)
        n_L, block_U = len(Y), partition.block_U if self.transductive else partition.block_U[:0]
        rows = [np.concatenate([view.rows_L, n_L + view.rows_U]) for view in data]
        kernels = [view.kernel.gram(view.train, np.arange(view.train.shape[0])) for view in data]
        nothing = np.zeros(block_U.size)
        hinge = [np.concatenate([view.settings.C * partition.hinge[partition.block_L], nothing]) for view in data]
        similarity = D * partition.weights[np.concatenate([partition.block_L, block_U])]
        return [
            solve_two_view(svm2k_program(kernels, rows, np.concatenate([y, nothing]), hinge, similarity, epsilon))
            for y in Y.T
        ]


@dataclass(frozen=True)
class InterceptPredictor(KernelPredictor):
    """A view's kernel predictor with a constant that no prior restrains."""

    intercept: Array  # (F,)

    def mean(self, rows: Matrix) -> Array:
        """Scores (n, F) of rows that have this view."""
        return np.asarray(super().mean(rows) + self.intercept)


def _check_two_views(names: Sequence[str]) -> None:
    if len(names) > 2:
        raise ValueError(
            f"SVM2K compares two views, but X has {len(names)}: {list(names)}. Join some of them, or use CMVMED, MVMED or "
            "CoRLS, which take any number."
        )


def _machine(view: ViewData, i: int, solutions: list[TwoViewSolution]) -> InterceptPredictor:
    coefficients = np.column_stack([solution.coefficients[i] for solution in solutions])
    n_L = view.rows_L.size
    intercept = np.array([solution.biases[i] for solution in solutions])
    return InterceptPredictor(view, coefficients[:n_L], coefficients[n_L:], np.zeros((0, 1)), intercept)
