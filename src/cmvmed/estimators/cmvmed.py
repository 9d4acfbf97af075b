"""CMVMED: several views, many unlabeled rows and few labels."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from cmvmed.auto.approximation import Approximation, choose_approximation, view_bases
from cmvmed.auto.plan import ChosenPlan, PlanSettings, choose_plan
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult, anneal
from cmvmed.core.consensus import class_scores
from cmvmed.data.reading import TrainingInput, open_training
from cmvmed.estimators._attributes import all_rows_attributes, approximation_summary, fitted_attributes
from cmvmed.estimators._base import OF_ALL_ROWS, MultiViewClassifier
from cmvmed.estimators._fit_reports import StageReporter, warn_of_fit
from cmvmed.estimators._lowering import FitViews, lower
from cmvmed.estimators._settings import (
    CONSTRAINTS,
    FitSettings,
    check_choice,
    check_number,
    read_input_settings,
    read_random_state,
)
from cmvmed.estimators._suggestions import Suggestions, suggest
from cmvmed.estimators._summary_html import summary_html
from cmvmed.estimators._view_probabilities import probabilities_of_views, view_worths
from cmvmed.members.accuracy import AccuracyEstimate, HeldOutAccuracy
from cmvmed.members.pool import LabelMembers, PoolFit, fit_label_members, fit_pool
from cmvmed.model.explain import explain
from cmvmed.model.fitted_model import Model
from cmvmed.model.predict import probabilities_by_member, probabilities_by_view, scikit_shape, scores_by_view
from cmvmed.model.uncertainty import ClassThresholds, CurvatureKind, covariances, standard_deviations, thresholds
from cmvmed.monitoring.novelty import novelty
from cmvmed.monitoring.reference import Reference, ReferenceRows, reference_rows
from cmvmed.monitoring.sensor_health import SensorHealth, sensor_health
from cmvmed.numerics.linalg import numerical_errors
from cmvmed.numerics.threads import Mapper, blas_limit, parallel_map
from cmvmed.numerics.types import Array, BoolArray, Matrix
from cmvmed.scale.continuation import Continued, continue_on_more_rows
from cmvmed.scale.sampling import Sample, count_unlabeled, draw_sample
from cmvmed.scale.streamed import StreamedView
from cmvmed.views.row_cache import RowCache
from cmvmed.views.training_data import TrainingData, read_weights, row_content
from cmvmed.views.view_kernel import build_problem

CURVATURES: tuple[CurvatureKind, ...] = ("fitted", "logistic")


class CMVMED(
    CallbackSupportMixin,
    MultiViewClassifier,
):
    """Classifier for several sensors, many unlabeled rows and few labels.

    Each view (sensor) has a Bayesian large-margin kernel classifier. A consensus distribution over the classes of the
    unlabeled rows combines the views, and each view learns from it. By default the consensus is one member of a pool, and
    held-out labels set the weight of each member. ``docs/theory.md`` has the method, its section 7 the default.

    Parameters
    ----------
    views : None, list or dict, default=None
        A list of widths or slices, or a dict from view name to a width, slice, column prefix, or list of column names or
        positions. Every column belongs to one view. None takes X as one view, or as a list or dict with an array per view.
    kernel : {"auto", "linear+rbf", "rbf", "linear", "cosine", "precomputed"}, callable or one per view, default="auto"
        "auto" is "linear" for views with more columns than training rows, else "linear+rbf", the mean of both. A callable takes
        two matrices of rows. With "precomputed", X holds the kernel matrices.
    gamma : "median", a multiple such as "0.5*median", or float, or one per view, default="median"
        Scale of RBF kernels; "median" is one over the median squared distance of the training rows.
    scaling : {"auto", "standard", "unit", None}, or one per view, default="auto"
        "standard" standardizes columns and clips them at two standard deviations (five with the "auto" linear kernel). "unit"
        gives rows unit length. "auto" is "unit" for sparse views, else "standard".
    prior_variance : "auto" or float, or one per view, default="auto"
        σ² of the weights of each view; "auto" is 2.25 for two classes and 10 for more.
    C : float, or one per view, default=1
        Weight of the hinge loss of the labeled rows.
    bias_variance : float, or one per view, default=0.1
        Prior variance of a constant added to each view's score.
    consensus_weight : "auto" or float, default="auto"
        λ, the weight of an unlabeled row. 0 leaves views independent, 1 is the paper's, "auto" 0.5 or less if views disagree.
    temperature : float, default=0.2
        T of the last stage. 1 is the paper's average of log-odds, 1/n_views adds the evidence of independent views.
    class_prior : {"auto", "labels"}, None, float, array or dict, default="auto"
        Class shares among the unlabeled rows. "auto" estimates them, "labels" takes those of the labels, None imposes nothing.
        Or an array, a dict, the share of the second of two classes, or ranges: ``{"walk": (0.3, 0.6), "fall": (0, 0.02)}``.
    view_weights : {"agreement", "uniform"}, list or dict, default="agreement"
        Weight of each view in the consensus. "agreement" gives little to a view that agrees with no other.
    members : "auto", None, str or list of str, default="auto"
        The pool: "views" (each alone), "lda" (linear discriminant analysis), "graph" and "view_graphs" (graphs of nearest rows,
        by all views and by each), "trees" and "trees_all" (randomized trees, whose splits try some columns or all) and
        "consensus". "auto" takes all; callable and precomputed kernels allow "views" and "consensus" only. None is the
        consensus without held-out labels, as in the paper.
    labels_drawn : {"unknown", "random", "per_class", "chosen"}, default="unknown"
        How you chose the labeled rows: at "random", a number "per_class", or "chosen" by a rule such as ``suggest``. "random"
        labels give class shares; "chosen" ones say nothing about the accuracy. "unknown" is "per_class" if the classes have
        equally many labels, up to one, else "random".
    algorithm : {"bohning", "jaakkola", "exact", "newton", "printed"}, default="bohning"
        Update of a view given the consensus (``docs/theory.md``, section 3). "bohning" is the fastest.
    n_stages : int, default=8
        Stages of the annealing.
    max_iter : int, default=100
        Maximum number of sweeps per stage.
    tol : float, default=1e-3
        A stage ends when a sweep changes the objective by less than this fraction.
    unlabeled : scalar, default=-1
        Marks unlabeled rows in ``y``; None and NaN always do.
    approximation : {"auto", "exact", "nystroem"} or int, default="auto"
        "exact" kernels cost the cube of the number of unlabeled rows. "nystroem" approximates them by landmarks, a number by as
        many. "auto" is exact up to 1000 unlabeled rows. Landmarks need algorithm "bohning".
    rows_tol : float, default=0.002
        Accuracy that may be lost because not all of very many rows (40 000 and more) are swept. 0 sweeps over all.
    n_jobs : int or None, default=None
        Threads that set up the views and cross-fit the folds; -1 uses all processors.
    random_state : int, RandomState instance or None, default=0
        Draws samples of rows and landmarks. By default the same rows give the same model; None draws anew.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_, label_distributions_ : ndarray of shape (n_rows,) and (n_rows, n_classes)
        Class of each training row (its label, or the most probable one), and probabilities, unless they exceed the memory limit.
    members_ : dict of str to list or ndarray
        Columns ``name``, ``weight``, and by held-out labels ``accuracy``, ``log_loss`` and ``worth``, the probability that the
        member is better than the class shares alone. ``pandas.DataFrame(model.members_)`` shows a table.
    held_out_rows_, held_out_proba_ : ndarray of shape (n_held_out,) and (n_held_out, n_classes)
        Numbers of the labeled rows that were held out, and their class probabilities by fits without their labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class shares that were imposed; those of the labels if none were.
    share_sensitivity_ : dict
        What plausible class shares, "low" to "high", would change: "changed" is the share of unlabeled rows with another class,
        "accuracy_low" and "accuracy_high" the change of the expected accuracy.
    consensus_weight_, prior_variance_, view_weights_ : float and ndarrays of shape (n_views,)
        λ of the last stage, σ² and weight of each view.
    view_names_, n_views_ : list of str and int
    n_iter_, objective_history_ : int and ndarray of shape (`n_iter_`,)
        Number of sweeps, with the independent start, and the objective after each. It falls within a stage, except if "printed".
    history_ : dict of ndarrays
        Per sweep: stage, consensus_weight, temperature, objective, consensus_term, kl_by_view, dual_gap, entropy, class_shares,
        n_rows (unlabeled rows that took part) and seconds.
    support_, dual_coef_ : dict from view name to ndarray of shape (n_support,) and (n_functions, n_support)
        Numbers of the labeled rows with nonzero dual variables, and their y α: one function for two classes, else one per class.
    disagreement_ : dict of str to list or ndarray
        Columns ``view``, ``other``, ``rate`` (share of unlabeled rows to which they give different classes), ``rate_by_class`` and
        ``error_bound`` (docs/inspection.md states its assumptions).
    converged_, dual_gap_ : bool and float
        Whether the last stage met ``tol`` and the duals are solved; their primal minus dual objective at the end.
    approximation_ : dict
        "kind" is "exact" or "nystroem". The latter has "n_components", by view "rank" and "residual" (the part of the kernel that
        landmarks miss), and for many rows "n_annealed", "n_swept" and "change", what all rows would change.
    n_imputed_cells_ : dict of str to int
        By view, how many single NaN were filled with the mean of their column.
    n_features_in_, feature_names_in_ : int and ndarray of shape (`n_features_in_`,)
        The names only if X is made of data frames with string column names.

    References
    ----------
    T. Xie, N. M. Nasrabadi and A. O. Hero III, "Semi-supervised multi-sensor classification via consensus-based
    multi-view maximum entropy discrimination", ICASSP 2015.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    _has_model_probabilities = True
    _accuracy: HeldOutAccuracy | None
    _reference: Reference
    _reference_rows: ReferenceRows

    def __init__(
        self,
        *,
        views: object = None,
        kernel: object = "auto",
        gamma: object = "median",
        scaling: object = "auto",
        prior_variance: object = "auto",
        C: object = 1.0,
        bias_variance: object = 0.1,
        consensus_weight: float | str = "auto",
        temperature: float = 0.2,
        class_prior: object = "auto",
        view_weights: object = "agreement",
        members: str | Sequence[str] | None = "auto",
        labels_drawn: str = "unknown",
        algorithm: str = "bohning",
        n_stages: int = 8,
        max_iter: int = 100,
        tol: float = 1e-3,
        unlabeled: object = -1,
        approximation: str | int = "auto",
        rows_tol: float = 2e-3,
        n_jobs: int | None = None,
        random_state: object = 0,
    ) -> None:
        self.views = views
        self.kernel = kernel
        self.gamma = gamma
        self.scaling = scaling
        self.prior_variance = prior_variance
        self.C = C
        self.bias_variance = bias_variance
        self.consensus_weight = consensus_weight
        self.temperature = temperature
        self.class_prior = class_prior
        self.view_weights = view_weights
        self.members = members
        self.labels_drawn = labels_drawn
        self.algorithm = algorithm
        self.n_stages = n_stages
        self.max_iter = max_iter
        self.tol = tol
        self.unlabeled = unlabeled
        self.approximation = approximation
        self.rows_tol = rows_tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def paper(cls, *, algorithm: str = "bohning", **parameters: Any) -> Self:
        """The paper's method with the missing linear term restored, and a bound of the logistic terms in place of the expansion.

        RBF kernels, computed exactly, equal view weights, λ = 1, T = 1, no bias, no class prior, no other members, no
        calibration. With ``algorithm="printed"`` it is the algorithm as printed, with one sweep per stage.

        Parameters
        ----------
        algorithm : {"bohning", "jaakkola", "exact", "newton", "printed"}, default="bohning"
        **parameters : further parameters of the constructor, which override those of the paper

        Returns
        -------
        model : CMVMED
        """
        of_paper: dict[str, Any] = {
            "algorithm": algorithm,
            "kernel": "rbf",
            "bias_variance": 0.0,
            "consensus_weight": 1.0,
            "temperature": 1.0,
            "class_prior": None,
            "view_weights": "uniform",
            "members": None,
            "max_iter": 1 if algorithm == "printed" else 100,
            "approximation": "exact",
        }
        return cls(**(of_paper | parameters))

    @with_callbacks
    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        groups: object = None,
        random_rows: object = None,
    ) -> Self:
        """Fit to labeled and unlabeled rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path, dask collection, or list or dict of them by view
            One table whose columns ``views`` assigns to the views, or one table per view. A view whose values are all
            NaN in a row is missing there; a single NaN is filled with the mean of its column. Rows need not be in
            memory: X may be a memory-mapped array, the path of a Parquet, Feather, CSV or npy file, of a folder of such
            files or of a Zarr array, a pyarrow dataset, a Zarr array, or a dask array or DataFrame, whose blocks are
            processed where they are stored. With scikit-learn's ``array_api_dispatch``, arrays of another library stay
            on their device: of more than 5,000 unlabeled rows only the annealed ones are copied, of fewer all.
        y : array-like of shape (n_rows,), dask series or array, or str
            Classes, with ``unlabeled``, None or NaN for unlabeled rows. A text is the name of the column of X, in data
            frames, files or dask DataFrames, that holds them.
        sample_weight : array-like of shape (n_rows,), default=None
            How often each row counts, labeled or not.
        groups : array-like of shape (n_rows,), default=None
            The group of each row, such as its recording or subject. Labels of one group are held out together, so that
            the accuracy estimate and prediction sets are for rows of new groups.
        random_rows : bool array-like of shape (n_rows,), default=None
            Which of the labeled rows were drawn at random; the others were chosen. The random ones give the class shares,
            and an accuracy with an interval that holds whatever the probabilities are worth. ``labels_drawn`` is then taken
            to be "chosen", or "random" if all are random.

        Returns
        -------
        self : object
        """
        settings = FitSettings.read(self)
        data, sample, approximation = _read_sample(X, y, settings, sample_weight, groups, random_rows)
        cache, map_parallel = self._new_row_cache(sample.training, settings), _mapper(approximation, settings)
        with (
            numerical_errors(),
            blas_limit(1),
        ):  # more threads gain nothing in products of this size, and wait for each other
            fit = _build_problem(sample, cache, approximation, settings, map_parallel)
            plan_settings = settings.plan_settings(fit.views, fit.training.labels.classes)
            report = StageReporter(self, X, y, settings.n_stages)
            of_labels = _fit_members(fit, settings, plan_settings, complete=sample.is_complete)
            chosen = choose_plan(fit.problem, fit.training, plan_settings, settings.tuning, of_labels.shares[0])
            report.attributes = partial(fitted_attributes, fit, chosen)
            result = anneal(chosen.plan, before_stage=report.before_stage, on_stage=report.on_stage)
            judge = settings.calibrate and not result.stopped
            pool = fit_pool(of_labels, chosen, result, judge=judge, map_folds=map_parallel)
            model = lower(fit, chosen, result, pool)
            fitted = fitted_attributes(fit, chosen, result, pool, model)
            reference = _reference_rows(fit.training, fitted["label_distributions_"], settings.tuning)
        continued = None
        if sample.all_rows is not None:
            continued = _continue(sample, fit, chosen, result, pool, model, settings)
            result = continued.result
            fitted = fitted_attributes(fit, chosen, result, pool, continued.model)
            fitted = all_rows_attributes(fit, fitted, sample.all_rows, data.labels, settings.input.memory_limit)
        summary = approximation_summary(fit, continued)
        fitted |= {"approximation_": summary, "_reference_rows": reference}
        missed = summary.get("residual", {}) if approximation.may_grow else {}
        warn_of_fit(chosen, result, pool, fit.training, missed, complete=sample.is_complete)
        self._set_fitted_attributes(fitted | ({"_row_cache": cache.finish()} if settings.keep_rows else {}))
        report.finish(fitted)
        return self

    def _new_row_cache(self, training: TrainingData, settings: FitSettings) -> RowCache:
        """The results for these rows that are known from an earlier fit, if any."""
        if not settings.keep_rows:
            return RowCache()
        content = row_content(training, settings.views.kernel, settings.random_state, settings.tuning)
        return RowCache(content, vars(self).get("_row_cache"))

    if not TYPE_CHECKING:  # which would otherwise allow any name

        def __getattr__(self, name: str) -> Any:
            """Say why an attribute with a value per training row is not there after a fit to very many rows."""
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in OF_ALL_ROWS and "_model" in vars(self):
                what += (
                    ": the probabilities of all training rows would exceed the memory limit. Use predict_proba on some rows at "
                    "a time, or raise the limit with cmvmed.config_context(memory_limit=...)."
                )
            raise AttributeError(what)

    def _html_repr(self) -> str:
        """What scikit-learn shows in a notebook: its diagram, and below it the summary of a fit that ran to its end."""
        return str(super()._html_repr()) + (summary_html(self) if "members_" in vars(self) else "")

    def __getstate__(self) -> Any:
        """The state for a pickle or a copy, without what is kept for the next fit."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_row_cache"}

    def predict_proba(self, X: object) -> Any:
        """Probability of the classes of each row.

        That of the pool: the product of the members' probabilities, each to the power of its weight, with the offset of the
        class shares. Of the consensus alone, the softmax of its calibrated scores.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        probability : ndarray of shape (n_rows, n_classes)
        """
        return self._predict(X, "probability")

    def predict_set(
        self, X: object, alpha: float = 0.1, *, allow_empty: bool = True, return_proba: bool = False
    ) -> Any:
        """Classes that may be those of each row: a set that holds the true class with a probability of about 1 - alpha.

        A class belongs to the set if its probability is not below most of those that held-out labels had: the conformal
        method. If every class has 1/alpha - 1 or more held-out labels, 1 - alpha holds for the rows of each class, else
        for all rows together, with the class shares ``class_prior_`` if labels were drawn per class. If all classes
        together have fewer, nothing can be said, and all sets hold all classes, with a warning. After ``fit(..., groups=...)``
        sets are for rows of new groups, and groups count instead of labels: with alpha=0.1 labels of nine groups are needed.

        Parameters
        ----------
        X : as in ``decision_function``
        alpha : float, default=0.1
            Share of the rows whose set may lack the true class.
        allow_empty : bool, default=True
            Whether sets may be empty, which is so where no class is probable enough. A classifier that is right more
            often than 1 - alpha has such sets, since they would else hold the true class more often than asked for. If
            not, the most probable class belongs to each set.
        return_proba : bool, default=False
            Whether to return the probabilities as well, which sets are computed from.

        Returns
        -------
        sets : bool ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``. All classes for a row without any view. Of a dask collection, a dask array that
            is not yet computed.
        probability : ndarray of shape (n_rows, n_classes)
            As of ``predict_proba``; only with ``return_proba``.
        """
        check_is_fitted(self)
        alpha = check_number("alpha", alpha, exclusive=True, maximum=1.0)
        found = thresholds(self._model, alpha, allow_empty=bool(allow_empty))
        if not return_proba:
            return self._predict(X, found)
        both = self._predict(X, _SetsBesideProbabilities(found.values, found.allow_empty))
        return both[:, self.classes_.size :] > 0.0, both[:, : self.classes_.size]

    def accuracy_estimate(self, level: float = 0.9) -> AccuracyEstimate:
        """The accuracy to expect on rows like the unlabeled training rows, estimated from the fit.

        The mean combines the share of held-out labels that are predicted correctly, by fits without them, with the mean
        largest probability of the unlabeled rows, which counts as 20 held-out labels. The interval is that of a share seen
        in about a third as many rows as there are held-out labels: so wide that it holds as often as it says on many data
        sets (docs/accuracy.md). With ``labels_drawn="chosen"`` the mean is that of the probabilities alone. After
        ``fit(..., groups=...)`` it is for rows of new groups: the more the groups differ, the fewer labels those of a group
        count as, and neither what unlabeled rows of the same groups add nor their probabilities enter the mean. If labels
        are known to be of random rows, by ``labels_drawn="random"`` or ``fit(..., random_rows=...)``, these alone give a second
        estimate.

        Parameters
        ----------
        level : float, default=0.9
            Probability that the interval holds the accuracy.

        Returns
        -------
        estimate : AccuracyEstimate
            With the fields ``mean``, ``low``, ``high`` and ``level``, what held-out labels say with and without the
            unlabeled rows, and ``random_mean``, ``random_low`` and ``random_high``, what random rows say. ``print`` it for
            plain sentences, which say "unknown" instead of the mean if no label was held out or the interval is wider than
            half (``is_known``).
        """
        check_is_fitted(self)
        if not (isinstance(level, Real) and 0.0 < level < 1.0):
            raise ValueError(f"level must be a number between 0 and 1, but is {level!r}.")
        if self._accuracy is None:
            raise ValueError(
                "The accuracy cannot be estimated, because this fit held out no labels: use members other than None, and let "
                "the fit run to its end."
            )
        return self._accuracy.estimate(float(level))

    def explain(self, X: object) -> dict[str, Any]:
        """Share of each view in the score of each row; the shares add up to ``decision_function(X)``.

        With ``members="consensus"`` a score is the weighted mean of the views' scores and an offset, and its shares
        are the terms of this sum. Otherwise the share of a view is its Shapley value: the mean, over all orders in
        which views become known, of how much the model's score changes when this one does. Of more than eight views it is
        the mean over about 64 random orders, always the same.

        Parameters
        ----------
        X : as in ``decision_function``, except for dask collections

        Returns
        -------
        shares : dict from view name, and "prior", to arrays as ``decision_function`` gives them
            A view that a row does not have is 0. "prior" is what does not depend on the row: the offset of the class
            balance, or the score of the class prior if there are other members or the row has no view.
        """
        check_is_fitted(self)
        return explain(self._model, X, read_input_settings(self))

    def predict_proba_by_member(self, X: object) -> dict[str, Any]:
        """Probability of each class by each member alone.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        probabilities : dict from the names in ``members_`` to arrays of shape (n_rows, n_classes)
            A row without any view gets the class prior.
        """
        views = self._read_views(X)
        return probabilities_by_member(self._model, *views)

    def decision_function_by_view(self, X: object, *, return_std: bool = False) -> dict[str, Any]:
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
        scores = [scikit_shape(values) for values in scores_by_view(self._model, matrices, present)]
        if not return_std:
            return dict(zip(self.view_names_, scores, strict=True))
        deviations = [scikit_shape(values) for values in standard_deviations(self._model, matrices, present)]
        return dict(zip(self.view_names_, zip(scores, deviations, strict=True), strict=True))

    def predict_proba_by_view(self, X: object, *, calibrated: bool = False) -> dict[str, Any]:
        """Probability of each class by each view alone.

        Parameters
        ----------
        X : as in ``decision_function``
        calibrated : bool, default=False
            Whether they are those of the member "view NAME", whose scale is that of held-out labels, averaged with the class
            prior by its worth in ``members_``: what is seen of a view without signal. Otherwise, and without this member,
            they are those of the consensus, at its temperature and class balance: their geometric mean, weighted by
            ``view_weights_``, is ``predict_proba_by_member(X)["consensus"]``, not ``predict_proba(X)`` if there are other
            members.

        Returns
        -------
        probabilities : dict from view name to an array of shape (n_rows, n_classes)
            A row without the view gets the class prior.
        """
        views = self._read_views(X)
        if calibrated:
            return probabilities_of_views(self._model, view_worths(self.members_, self.view_names_), *views)
        found = probabilities_by_view(self._model, *views)
        return dict(zip(self.view_names_, found, strict=True))

    def posterior_covariance_by_view(self, X: object, *, curvature: str = "fitted") -> dict[str, Any]:
        """Posterior covariance of the rows' scores by each view, S(x, x') = σ² K-tilde(x, x').

        Parameters
        ----------
        X : as in ``decision_function``
            The covariance of n rows has n² entries.
        curvature : {"fitted", "logistic"}, default="fitted"
            Curvature of the consensus term: that of ``algorithm`` at the end of the fit, or ν = p(1 - p) at the
            posterior means of the unlabeled rows, as in the paper. "logistic" needs exact kernels.

        Returns
        -------
        covariances : dict from view name to an array of shape (n_rows, n_rows), or (n_classes, n_rows, n_rows) for more \
            than two classes
            NaN in the lines of rows without the view.
        """
        kind = check_choice("curvature", curvature, CURVATURES)
        views = self._read_views(X)
        found = covariances(self._model, *views, kind)
        return {name: S[0] if len(S) == 1 else S for name, S in zip(self.view_names_, found, strict=True)}

    def score_by_view(self, X: object, y: object, sample_weight: object = None) -> dict[str, float]:
        """Accuracy of each view alone, over the labeled rows of ``y`` that have the view.

        Parameters
        ----------
        X : as in ``decision_function``
        y : as in ``score``
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        accuracies : dict from view name to float
            A view that no labeled row has is not in it.
        """
        y, labeled, truth = self._labeled_truth(X, y)
        matrices, present = self._read_views(X)
        check_consistent_length(matrices[0], y, sample_weight)
        weights = np.ones(matrices[0].shape[0]) if sample_weight is None else np.asarray(sample_weight)
        scores = scores_by_view(self._model, matrices, present)
        accuracies = {}
        for name, has, own in zip(self.view_names_, present, scores, strict=True):
            has_view = has[labeled]
            rows = labeled[has_view]
            if weights[rows].any():
                predicted = self.classes_[class_scores(own[rows]).argmax(axis=1)]
                accuracies[name] = float(np.average(predicted == truth[has_view], weights=weights[rows]))
        return accuracies

    def suggest(self, n: int = 10, X: object = None, *, random_share: float = 0.2) -> Suggestions:
        """Rows to label next: those that stand for many rows whose class is uncertain, and some at random.

        The class shares of chosen rows are not those of all rows, and they are harder than others. The random ones among
        them show both: fit again with all labels and ``fit(..., random_rows=...)``, or with ``labels_drawn="chosen"`` if no row
        is random. Before there are labels, use :func:`cmvmed.suggest_first`.

        Parameters
        ----------
        n : int, default=10
            Number of rows, at most 2000. If there are fewer, all of them are suggested.
        X : as in ``decision_function``, default=None
            Rows to choose from; None for the unlabeled training rows. If there are more than 2000, ``random_state`` draws
            2000 of them. A row without any view is not chosen.
        random_share : float, default=0.2
            Part of the labels that are of random rows: by default every fifth, counted with the labels that the model was
            fitted to.

        Returns
        -------
        suggestions : Suggestions
            With the fields ``rows`` (numbers of rows in the X of ``fit``, or in the given X), ``scores``, ``reasons`` and
            ``random``.
        """
        check_is_fitted(self)
        settings, random_state = read_input_settings(self), read_random_state(self)
        worths, known = view_worths(self.members_, self.view_names_), vars(self).get(OF_ALL_ROWS[0])
        return suggest(self._model, n, X, settings, random_state, known, random_share, worths)

    def novelty(self, X: object) -> dict[str, Array]:
        """How unlike the training rows each row is, by view.

        The distance of a row to the nearest training rows, in terms of the leading principal directions of the view, what
        is outside of them, and the largest deviation of a column. One is the distance that 1 % of the training rows
        exceed, each compared with the others, so that about 1 % of new rows of the same distribution are above 1.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        novelty : dict from view name to ndarray of shape (n_rows,)
            NaN where a row does not have the view.
        """
        check_is_fitted(self)
        return novelty(self._model, self._drift_reference(), X, read_input_settings(self))

    def sensor_health(self, X: object) -> dict[str, SensorHealth]:
        """Whether the sensor behind each view works as in training, from a batch of new rows; no labels are needed.

        Location, scale and agreement with the other views are compared with those of healthy batches of as many training
        rows, whatever their class shares. A change that other views explain, such as other class shares, is no fault.

        Parameters
        ----------
        X : as in ``decision_function``
            At least 20 rows that were recorded together; faults of a standard deviation are found within about 50.

        Returns
        -------
        health : dict from view name to SensorHealth
            With the fields ``fault`` ("ok", "dead", "missing", "shifted", "gain", "swapped", "drift" or "unknown"),
            ``score`` (larger is less healthy), ``p_value`` (the probability that any view of a healthy batch has such a
            score; faults have at most 0.01) and ``message``.
        """
        check_is_fitted(self)
        return sensor_health(self._model, self._drift_reference(), X, read_input_settings(self))

    def _drift_reference(self) -> Reference:
        """What new rows are compared with, computed when it is first needed."""
        if not hasattr(self, "_reference"):
            if not hasattr(self, "_reference_rows"):
                raise ValueError(
                    "This model is from one stage of a fit and keeps no rows to compare new ones with: use the model at the end "
                    "of the fit."
                )
            with numerical_errors():
                self._reference = self._reference_rows.build(self._model.preprocessors)
            del self._reference_rows
        return self._reference

    def _to_model_file(self) -> dict[str, Any]:
        """The attributes of a model file, with what new rows are compared with instead of the rows that it is made of."""
        if hasattr(self, "_reference_rows"):
            self._drift_reference()
        return dict(vars(self))

    def _read_views(self, X: object) -> tuple[list[Matrix], list[BoolArray]]:
        check_is_fitted(self)
        return self._model.read_views(X, read_input_settings(self))


class _SetsBesideProbabilities(ClassThresholds):
    """Probabilities and sets of rows as one array (n, 2 K), so that rows are scored once."""

    def sets(self, probabilities: Array, coverage: Array) -> Any:
        """The sets as zeros and ones after the probabilities."""
        return np.hstack([probabilities, super().sets(probabilities, coverage)])


def _read_sample(
    X: object, y: object, settings: FitSettings, sample_weight: object, groups: object, random_rows: object
) -> tuple[TrainingInput, Sample, Approximation]:
    """X and y, the rows to anneal on in memory, and how kernels are handled."""
    data = open_training(X, y, settings.input)
    weights = read_weights(sample_weight, data.labels, groups, random_rows)
    n_unlabeled = count_unlabeled(data.labels, weights)
    approximation = choose_approximation(settings.approximation, settings.algorithm, n_unlabeled, settings.tuning)
    sample = draw_sample(
        data,
        weights,
        approximation,
        kernel=settings.views.kernel,
        memory_limit=settings.input.memory_limit,
        random_state=settings.random_state,
        tuning=settings.tuning,
    )
    return data, sample, approximation


def _mapper(approximation: Approximation, settings: FitSettings) -> Mapper:
    """What computes views or folds, in parallel if that pays."""
    return parallel_map(settings.n_jobs, approximation.n_components is not None)


def _build_problem(
    sample: Sample, cache: RowCache, approximation: Approximation, settings: FitSettings, map_views: Mapper
) -> FitViews:
    """Scale the rows of each view, and compute its kernel blocks or features."""
    training, tuning, random_state = replace(sample.training, cache=cache), settings.tuning, settings.random_state
    by_view = settings.views.by_view(training.schema.view_names, training.labels.n_classes, tuning)
    views = training.views(by_view, random_state)
    complete = sample.is_complete
    bases = view_bases(views, cache, approximation, random_state, tuning, map_views, complete=complete)
    shared_curvature = settings.surrogate.shared_curvature
    problem = build_problem(training, views, bases, shared_curvature=shared_curvature, map_views=map_views)
    return FitViews(training, sample.row_numbers(training.partition.rows), views, approximation, bases, problem)


def _fit_members(fit: FitViews, settings: FitSettings, plan_settings: PlanSettings, *, complete: bool) -> LabelMembers:
    """Fit the members that the settings ask for; ``complete`` if all rows are in memory."""
    weights = plan_settings.view_weights
    return fit_label_members(
        fit.training,
        fit.problem,
        fit.views,
        np.ones(len(fit.views), dtype=bool) if isinstance(weights, str) else weights > 0.0,
        settings.members,
        labels_drawn=settings.draw_of_labels(fit.training),
        max_compared_nodes=None if complete else settings.tuning.max_compared_nodes,
        random_state=settings.random_state,
        tuning=settings.tuning,
    )


def _reference_rows(training: TrainingData, probabilities: Array, tuning: Tuning) -> ReferenceRows:
    """What is kept to compare new rows with."""
    return reference_rows(training, probabilities, tuning.reference_rows, tuning.reference_directions)


def _continue(
    sample: Sample,
    fit: FitViews,
    chosen: ChosenPlan,
    result: AnnealingResult,
    pool: PoolFit,
    model: Model,
    settings: FitSettings,
) -> Continued:
    """Sweep over rows outside of memory."""
    if not settings.keep_rows:
        fit.training.cache.clear()  # the features of the sample, which only fits in memory need

    def lower_streamed(result: AnnealingResult, views: Sequence[StreamedView]) -> Model:
        return lower(fit, chosen, result, pool, views)

    return continue_on_more_rows(
        sample,
        fit.views,
        fit.bases,
        chosen.plan,
        result,
        model,
        lower_streamed,
        settings.rows_tol,
        settings.tuning.row_growth,
    )
