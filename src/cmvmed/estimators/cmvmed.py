"""CMVMED: several views, many unlabeled rows, a handful of labels."""

import warnings
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from cmvmed.auto.calibration import AccuracyEstimate, calibrate
from cmvmed.auto.plan import fit_consensus, max_stages
from cmvmed.core.consensus import class_scores, prior_scores, soft_labels
from cmvmed.core.linalg import Array, BoolArray, Matrix
from cmvmed.core.threads import parallel_map
from cmvmed.data.layout import with_rows
from cmvmed.estimators._approximation import approximation_summary
from cmvmed.estimators._base import MultiViewClassifier
from cmvmed.estimators._callbacks import StageReporter
from cmvmed.estimators._fitted import attributes_of_all_rows, fit_warnings, fitted_attributes
from cmvmed.estimators._settings import read_schedule
from cmvmed.estimators._views_of_fit import continue_on_all_rows, read_views_of_fit
from cmvmed.scale.sampling import read_fit_rows


class CMVMED(CallbackSupportMixin, MultiViewClassifier):
    """Consensus-based multi-view maximum entropy discrimination.

    Each view (sensor) has a Bayesian large-margin kernel classifier. A consensus distribution over the classes of the
    unlabeled rows ties the views together: it pools their opinions, and each view is drawn towards it. The pull grows, and
    the consensus sharpens, over the stages of an annealing that starts from the views' independent classifiers.

    Parameters
    ----------
    views : None, list or dict, default=None
        Which columns of X form which view: a list of widths or slices, or a dict from view name to a width, slice, column
        prefix (for data frames), or list of column names or positions. Every column belongs to exactly one view. None
        treats all columns as one view. Leave it None if X is a list or dict with one array per view.
    kernel : {"linear+rbf", "rbf", "linear", "polynomial", "cosine", "precomputed"} or callable, or one per view, \
            default="linear+rbf"
        "linear+rbf" is the mean of a linear and an RBF kernel. A callable takes two matrices of rows and returns their kernel
        matrix. For "precomputed", X holds the square kernel matrix of each view at fit, and the kernel between new and training
        rows at predict.
    gamma : "median" or float, or one per view, default="median"
        Scale of the "rbf", "linear+rbf" and "polynomial" kernels; "median" is one over the median squared distance (squared
        length for "polynomial") of the training rows.
    degree : int, or one per view, default=3
        Degree of the "polynomial" kernel (γ x·x' + coef0)^degree.
    coef0 : float, or one per view, default=1
        Constant of the "polynomial" kernel.
    scaling : {"auto", "standard", "unit", None}, or one per view, default="auto"
        How features are scaled before a named kernel: "standard" centers, divides by the standard deviation and clips at
        two of them; "unit" gives rows unit length; "auto" takes "unit" for sparse or bag-of-words views, else "standard".
    prior_variance : "auto" or float, or one per view, default="auto"
        σ², prior variance of the weights of each view; "auto" is 2.25 for two classes and 10 for more.
    C : float, or one per view, default=1
        Weight of the hinge loss of the labeled rows.
    bias_variance : float, or one per view, default=0.1
        Prior variance of a constant added to each view's score.
    consensus_weight : "auto" or float, default="auto"
        λ, the weight of an unlabeled row; stage s uses λ(1 - exp(-s/2)). 0 leaves the views independent, 1 is the paper's.
        "auto" is 0.5 if the independent views agree on the unlabeled rows (mean correlation of their scores at least
        0.25), and proportionally less if they agree less.
    temperature : float, default=0.2
        T of the last stage: the consensus is softmax(m̄/2T) of the pooled scores m̄, for two classes σ(m̄/T). T = 1 is the
        paper's average of log-odds, T = 1/n_views adds the evidence of independent views.
    class_prior : {"auto", "labels"}, None, float, array or dict, default="auto"
        The share of each class that the consensus must keep among the unlabeled rows. "labels" takes that of the labeled
        rows, "auto" also learns it from the unlabeled rows. A number is the share of the second of two classes, an array or
        dict gives one share per class. None, as in the paper, imposes nothing.
    view_weights : {"agreement", "uniform"}, list or dict, default="agreement"
        Weight of each view in the consensus. "agreement" gives little to a view that agrees with no other.
    neighbors : "auto", int or None, default="auto"
        Whether the nearest training rows, by all views together, have a say: one more opinion in the consensus, for data whose
        rows form clusters. "auto" hears five neighbors as far as the unlabeled rows vouch for them: if they foretell, from one
        view, the scores of another. A number always hears so many; None hears none. They are heard only if kernels are
        "linear+rbf" or "rbf" and handled exactly, and not in mode "literal".
    mode : {"complete", "newton", "literal"}, default="complete"
        "complete" minimizes a bound of the objective, "newton" follows its second-order expansion, both with the consensus
        in each view's update. "literal" is the algorithm as printed in the paper, whose views never see the consensus; it
        takes ``temperature=1``, ``class_prior=None``, no bias, uniform weights and λ = 1 unless given, and one sweep a
        stage.
    bound : {"bohning", "jj"}, default="bohning"
        The bound of mode "complete". "bohning" has constant curvature: one eigendecomposition per view serves all stages
        and classes. "jj" is tighter and includes the variance, at one Cholesky factorization per view, class and sweep.
    n_stages : int, default=8
        Stages of the annealing.
    max_iter : int, default=100
        Most sweeps in one stage.
    tol : float, default=1e-3
        A stage ends when a sweep changes the objective by less than this share of its size.
    calibrate : bool, default=True
        Whether probabilities are scaled by a cross-fit on the labeled rows: five short fits, each without the labels of a fifth of
        them, tell how sure the consensus may be. No predicted class changes. Mode "literal" is never calibrated.
    missing : {"ignore", "error"}, default="ignore"
        What to do with a view whose values are all NaN in a row: leave it out of the row's consensus, or refuse it.
    unlabeled : scalar, default=-1
        Marks unlabeled rows in ``y``; None and NaN always do.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the hinge loss.
    approximation : {"auto", "exact", "nystroem"}, default="auto"
        How kernels are handled. "exact" costs the cube of the number of unlabeled rows. "nystroem" sees each kernel through
        some landmark rows; its cost is proportional to the number of rows. It needs mode "complete" and bound "bohning".
        "auto" is exact up to 2000 unlabeled rows.
    n_components : int or None, default=None
        Number of landmark rows of each view with "nystroem"; None takes nine times the square root of the number of
        unlabeled rows, but at least 600 and at most 1000.
    landmarks : {"k-means++", "uniform", "leverage"}, default="k-means++"
        How landmarks are chosen, beside the labeled rows: far from each other, at random, or where others explain little.
    memory_limit : int, str or None, default=None
        Memory that a fit with "nystroem" and predictions may take beside X itself, in bytes or as a text such as "1.5GiB"; None
        for half of the free memory. With more than 5000 unlabeled rows (fewer if the limit asks for it) the annealing runs on a
        sample of them, and its last stage is continued on all rows, in chunks.
    n_jobs : int or None, default=None
        Threads that set up the views, and cross-fit the folds of the labels; -1 uses all processors, None all with "nystroem" and
        else one.
    random_state : int, RandomState instance or None, default=0
        Chooses the rows of which the median distance is taken if there are more than a thousand, the landmarks, and the rows
        that are annealed if there are too many.
    verbose : int, default=0
        1 prints a line per stage. For a progress bar, ``set_callbacks(sklearn.callback.ProgressBar())``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        Class of each training row: its label, or the consensus if it had none.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Probability of the classes of each training row: the consensus, calibrated; certain for labeled rows. It and
        ``transduction_`` are None if they would not fit ``memory_limit``.
    probability_scale_ : float
        What the log-odds of the consensus were multiplied with to calibrate them; 1 if they were not.
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class that was imposed (that of the labels, if none was).
    consensus_weight_ : float
        λ of the last stage.
    view_names_ : list of str
    view_weights_ : ndarray of shape (n_views,)
    neighbor_weight_ : float
        Weight of the neighbors' opinion in the consensus; the views share the rest.
    n_views_ : int
    n_iter_ : int
        Sweeps over all stages, counting the independent classifiers at the start as the first.
    objective_history_ : ndarray of shape (n_iter_,)
        Objective after each sweep. It falls within a stage and changes its meaning between stages, or where the guard of
        ``class_prior="auto"`` for three or more classes steps in.
    history_ : dict of ndarrays
        Per sweep: stage (0 for the independent classifiers), consensus_weight, temperature, objective, dual_gap, entropy
        (mean over unlabeled rows), class_shares, n_rows (unlabeled rows that took part) and seconds.
    dual_gap_ : float
        Primal minus dual objective of the views' labeled parts at the end, recomputed from the problem.
    converged_ : bool
        Whether the last stage ended by ``tol``.
    approximation_ : dict
        How kernels were handled: "kind" is "exact" or "nystroem". For the latter also "n_components", "landmarks" (how they were
        chosen), and by view "rank" (of the features) and "residual" (the share of the kernel's trace over unlabeled rows that
        the features miss, estimated from at most 1000 of them: the approximation's error), and "n_annealed" if the annealing ran
        on a sample of so many unlabeled rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X is made of data frames with string column names.

    References
    ----------
    T. Xie, N. M. Nasrabadi and A. O. Hero III, "Semi-supervised multi-sensor classification via consensus-based multi-view
    maximum entropy discrimination", ICASSP 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from cmvmed import CMVMED
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 12, y, -1)  # 12 labels, the rest unlabeled
    >>> model = CMVMED(views={"upper": slice(0, 32), "lower": slice(32, 64)}).fit(X, few)
    >>> bool(model.score(X[12:], y[12:]) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        views: Any = None,
        kernel: Any = "linear+rbf",
        gamma: Any = "median",
        degree: Any = 3,
        coef0: Any = 1.0,
        scaling: Any = "auto",
        prior_variance: Any = "auto",
        C: Any = 1.0,
        bias_variance: Any = 0.1,
        consensus_weight: Any = "auto",
        temperature: float = 0.2,
        class_prior: Any = "auto",
        view_weights: Any = "agreement",
        neighbors: Any = "auto",
        mode: str = "complete",
        bound: str = "bohning",
        n_stages: int = 8,
        max_iter: int = 100,
        tol: float = 1e-3,
        calibrate: bool = True,
        missing: str = "ignore",
        unlabeled: Any = -1,
        class_weight: Any = None,
        approximation: str = "auto",
        n_components: int | None = None,
        landmarks: str = "k-means++",
        memory_limit: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.prior_variance = prior_variance
        self.C = C
        self.bias_variance = bias_variance
        self.consensus_weight = consensus_weight
        self.temperature = temperature
        self.class_prior = class_prior
        self.view_weights = view_weights
        self.neighbors = neighbors
        self.mode = mode
        self.bound = bound
        self.n_stages = n_stages
        self.max_iter = max_iter
        self.tol = tol
        self.calibrate = calibrate
        self.missing = missing
        self.unlabeled = unlabeled
        self.class_weight = class_weight
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labeled and unlabeled rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path, dask collection, or list or dict of them by view
            One table whose columns ``views`` assigns to the views, or one table per view. A view whose values are all NaN in a
            row is missing there. Rows need not be in memory: X may be a memory-mapped array, the path of a Parquet, Feather,
            CSV or npy file, of a folder of such files or of a Zarr array, a pyarrow dataset, a Zarr array, or a dask array or
            DataFrame, whose blocks are worked on where they lie.
        y : array-like of shape (n_rows,), dask series or array, or str
            Classes, with ``unlabeled``, None or NaN for unlabeled rows. A text is the name of the column of X, in files or dask
            DataFrames, that holds them.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts, labeled or not.

        Returns
        -------
        self : object
        """
        surrogate, schedule = read_schedule(self)
        fit_rows = read_fit_rows(self, X, y, sample_weight, surrogate)
        labels, partition = fit_rows.training.labels, fit_rows.training.partition
        low_rank = fit_rows.approximation.kind == "nystroem"
        in_parallel = parallel_map(self.n_jobs, low_rank)
        views = read_views_of_fit(self, fit_rows, surrogate, schedule, in_parallel)
        fitted_after = partial(fitted_attributes, fit_rows.training, views)
        class_prior = None if self.mode == "literal" else self.class_prior
        report = StageReporter(self, X, y, max_stages(class_prior, labels.n_classes, schedule), fitted_after)
        with threadpool_limits(1 if low_rank else None):  # sweeps over features wait for memory, not for arithmetic
            annealed, prior = fit_consensus(
                views.setting.problem,
                surrogate,
                replace(schedule, consensus_weight=views.setting.consensus_weight),
                class_prior,
                labels,
                partition,
                views.setting.view_weights,
                before_stage=report.begin_stage,
                on_stage=report.end_stage,
            )
            calibration = None
            if self.calibrate and self.mode != "literal" and not annealed.stopped:
                codes, weights = labels.codes[partition.block_L], partition.weights[partition.block_L]
                problem = views.setting.problem
                calibration = calibrate(problem, surrogate, schedule, annealed, codes, weights, in_parallel)
        fitted = fitted_after(annealed, prior, calibration)
        fitted["approximation_"] = approximation_summary(fit_rows.approximation, views.data, views.bases, views.problem)
        if fit_rows.everything is not None:
            streamed = continue_on_all_rows(fit_rows, views, annealed, schedule)
            annealed = streamed.annealed
            fitted |= fitted_after(annealed, prior, calibration)
            fitted |= attributes_of_all_rows(fit_rows, streamed, prior, fitted["_temperature"], self._memory_limit())
            fitted["approximation_"] |= {"n_annealed": partition.block_U.size}
        settled = annealed.converged or self.mode == "literal"
        for message, category in fit_warnings(
            annealed, settled, self.max_iter, labels, partition, fit_rows.everything is not None
        ):
            warnings.warn(message, category, stacklevel=3)
        self._set_fitted_attributes(fitted)
        report.finish(fitted)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probability of the classes of each row, softmax(c score / 2T) with the scale c of the calibration; σ(c score/T) for two.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        probability : ndarray of shape (n_rows, n_classes)
        """
        return self._predict(X, "probability")

    def accuracy_estimate(self, level: float = 0.9) -> AccuracyEstimate:
        """The accuracy to expect on rows like the unlabeled training rows, from what the fit has seen.

        The mean is that of the largest probability of each unlabeled row (of each labeled row as the cross-fit judged it, if
        there are no unlabeled ones). The interval is that of a share seen in as many rows as the cross-fit judged.

        Parameters
        ----------
        level : float, default=0.9
            Probability that the interval holds the accuracy.

        Returns
        -------
        estimate : AccuracyEstimate
            With the fields ``mean``, ``low``, ``high`` and ``level``.
        """
        check_is_fitted(self)
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a number between 0 and 1, but is {level!r}.")
        if self._calibration is None:
            raise ValueError(
                "The accuracy is estimated by the cross-fit that calibrates probabilities, which this fit did not do: use "
                'calibrate=True, a mode other than "literal", and let the fit run to its end.'
            )
        return self._calibration.accuracy_estimate(float(level))

    def decision_function_by_view(self, X: Any, *, return_std: bool = False) -> dict[str, Any]:
        """Score of each row by each view alone.

        Parameters
        ----------
        X : as in ``decision_function``
        return_std : bool, default=False
            Also return the posterior standard deviation of the scores.

        Returns
        -------
        scores : dict from view name to an array as ``decision_function`` gives it, or to a pair (scores, deviations)
            A row without the view gets the score of the class prior and an infinite deviation.
        """
        matrices, present = self._read_views(X)
        scores = self._scores_by_view(matrices, present)
        shaped = {name: _scikit_shape(values) for name, values in scores.items()}
        if not return_std:
            return shaped
        return {
            name: (shaped[name], _scikit_shape(self._deviations(i, matrices[i], present[i])))
            for i, name in enumerate(self.view_names_)
        }

    def predict_proba_by_view(self, X: Any) -> dict[str, Any]:
        """Probability of each class by each view alone, at the temperature and class balance of the consensus.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        probabilities : dict from view name to an array of shape (n_rows, n_classes)
            A row without the view gets the class prior.
        """
        return {name: self._soft(scores) for name, scores in self._scores_by_view(*self._read_views(X)).items()}

    def score_by_view(self, X: Any, y: Any, sample_weight: Any = None) -> dict[str, float]:
        """Accuracy of each view alone, over the labeled rows of ``y`` that have the view.

        Parameters
        ----------
        X : as in ``decision_function``
        y : array-like of shape (n_rows,)
            True classes; rows marked unlabeled are left out.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        accuracies : dict from view name to float
            A view that no labeled row has is not in it.
        """
        labeled, truth = self._labeled_truth(y)
        matrices, present = self._read_views(X)
        check_consistent_length(matrices[0], y, sample_weight)
        weights = np.ones(matrices[0].shape[0]) if sample_weight is None else np.asarray(sample_weight)
        scores = self._scores_by_view(matrices, present)
        accuracies = {}
        for name, seen in zip(self.view_names_, present, strict=True):
            has_view = seen[labeled]
            rows = labeled[has_view]
            if weights[rows].any():
                guess = self.classes_[class_scores(scores[name][rows]).argmax(axis=1)]
                accuracies[name] = float(np.average(guess == truth[has_view], weights=weights[rows]))
        return accuracies

    def _soft(self, scores: Array) -> Array:
        return soft_labels(scores, np.zeros(scores.shape[1]), self._temperature)

    def _scores_by_view(self, matrices: list[Matrix], present: list[BoolArray]) -> dict[str, Array]:
        rows, means = self._means_by_view(matrices, present)
        n_rows, absent = matrices[0].shape[0], prior_scores(self.class_prior_, self._temperature)
        return {
            name: with_rows(mean + self._offset, index, n_rows, absent)
            for name, index, mean in zip(self.view_names_, rows, means, strict=True)
        }

    def _deviations(self, i: int, matrix: Matrix, present: BoolArray) -> Array:
        predictor = self._predictors[i]
        rows = np.flatnonzero(present & predictor.has_training_rows)
        return with_rows(
            np.sqrt(predictor.variance(matrix[rows])), rows, matrix.shape[0], np.full(predictor.n_functions, np.inf)
        )


def _scikit_shape(values: Array) -> Array:
    """(n,) for one function, (n, K) for more."""
    return values[:, 0] if values.shape[1] == 1 else values
