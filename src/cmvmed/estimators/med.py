"""MED: the Bayesian large-margin kernel classifier of one view, trained on the labeled rows alone."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cmvmed.auto.tuning import current_tuning
from cmvmed.core.consensus import soft_labels
from cmvmed.core.posterior import supervised_state
from cmvmed.data.array_api import like_rows
from cmvmed.estimators._base import MultiViewClassifier, model_attributes
from cmvmed.estimators._lowering import exact_view, lower_baseline
from cmvmed.estimators._settings import ViewParameters, read_input_settings
from cmvmed.model.predict import score_rows, warn_without_views
from cmvmed.model.uncertainty import posteriors
from cmvmed.views.view_kernel import exact_model


class MED(MultiViewClassifier):
    """Maximum entropy discrimination: the Bayesian large-margin classifier of a single view.

    Minimizes KL(q(w) ‖ N(0, σ²I)) + C Σ [1 - y E f(x)]₊ over the labeled rows. The posterior is Gaussian and its mean
    is that of a kernel support vector machine with penalty Cσ². Unlabeled rows only set scale and bandwidth; to learn
    from them, and from several views, use :class:`cmvmed.CMVMED`.

    Parameters
    ----------
    kernel : {"auto", "linear+rbf", "rbf", "linear", "cosine", "precomputed"} or callable, default="rbf"
        "linear+rbf" is the mean of a linear and an RBF kernel. Where k(x, x) differs from row
        to row, as there, a row of higher score may be less certain and so less probable. A callable takes two matrices
        of rows and returns their kernel matrix.
    gamma : "median", a multiple such as "0.5*median", or float, default="median"
        Scale of the "rbf" and "linear+rbf" kernels; "median" is one over the median squared distance of the training
        rows, and "0.5*median" half of it.
    scaling : {"auto", "standard", "unit", None}, default="auto"
        How features are scaled before a named kernel: "standard" centers, divides by the standard deviation and clips
        at two of them; "unit" gives rows unit length; "auto" is "unit" if at most a quarter of the entries is nonzero,
        as in bags of words, else "standard".
    prior_variance : "auto" or float, default="auto"
        σ², prior variance of the weights; "auto" is 2.25 for two classes and 10 for more.
    C : float, default=1
        Weight of the hinge loss.
    bias_variance : float, default=0.1
        Prior variance of a constant added to the score.
    unlabeled : scalar, default=-1
        Marks unlabeled rows in ``y``; None and NaN always do.
    random_state : int, RandomState instance or None, default=0
        Chooses the rows of which the median distance is taken if there are more than a thousand; 0, not None, so that the
        same rows give the same model.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class among the labeled rows, (n_c + ½)/(n + K/2); given to rows that are missing.
    dual_gap_ : float
        Primal minus dual objective at the solution, recomputed from the problem.
    n_imputed_cells_ : dict of str to int
        By view, how many single NaN in the training rows were filled with the mean of their column.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if X is a data frame with string column names.

    See Also
    --------
    cmvmed.CMVMED : several views and unlabeled rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cmvmed import MED
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> MED().fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.9
    True
    """

    views = None

    def __init__(
        self,
        *,
        kernel: object = "rbf",
        gamma: object = "median",
        scaling: object = "auto",
        prior_variance: object = "auto",
        C: float = 1.0,
        bias_variance: float = 0.1,
        unlabeled: object = -1,
        random_state: object = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.scaling = scaling
        self.prior_variance = prior_variance
        self.C = C
        self.bias_variance = bias_variance
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to the labeled rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
            A single NaN is filled with the mean of its column; a row of NaN is not used.
        y : array-like of shape (n_rows,), or str
            Classes, with ``unlabeled``, None or NaN for unlabeled rows; or the name of the column of X that holds them.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts.

        Returns
        -------
        self : object
        """
        training = self._read_training(X, y, sample_weight)
        if len(training.matrices) > 1:
            raise ValueError(f"MED has one view but X holds {len(training.matrices)}; use CMVMED for several views.")
        labels, partition, tuning = training.labels, training.partition, current_tuning()
        labeled = partition.block_L[labels.codes[partition.block_L] >= 0]
        training = training.restricted(labeled, labeled[:0])
        parameters = ViewParameters(
            self.kernel, self.gamma, self.scaling, self.prior_variance, self.C, self.bias_variance
        )
        settings = parameters.by_view(training.schema.view_names, labels.n_classes, tuning)
        (view,) = training.views_of_one_draw(settings, self.random_state)
        Y = training.signed_labels(labeled)
        solver = exact_model(view, training.cache, shared_curvature=True)
        state = supervised_state(solver, Y, settings[0].C * partition.weights[labeled])
        term, posterior = exact_view(0, view, state, 0.0)
        model = lower_baseline(training, [term], [posterior])
        self._set_fitted_attributes(model_attributes(model) | {"dual_gap_": state.gap})
        return self

    def predict_proba(self, X: object) -> Any:
        """Probability of each class: the logistic of the score, averaged over the score's posterior.

        softmax(m / 2T) with T² = 1 + πs/8, where s is the posterior variance of the score; σ(m/T) for two classes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        probability : ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        model = self._model
        matrices, present = model.read_views(X, read_input_settings(self))
        scored = warn_without_views(score_rows(model, matrices, present))
        scores = model.decision_scores(scored.logits, scored.has_view)
        temperature = np.full_like(scores, model.temperature)
        if not (isinstance(self.kernel, str) and self.kernel == "precomputed"):
            variance = posteriors(model)[0].variance(matrices[0][present[0]])
            temperature[present[0]] = np.sqrt(1.0 + np.pi / 8.0 * variance)
        return like_rows(soft_labels(scores / temperature, np.zeros(scores.shape[1]), 1.0), X)
