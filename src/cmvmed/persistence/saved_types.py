"""Which types a model file may hold, under which names, with which fields.

A name is a word of the file format: it stays when a class is renamed or moved. A new field of a dataclass needs an
entry here and a default, which models of older files get; a field that loses its meaning stays readable by a new
version of the format (``FORMAT_VERSION``) and code that converts the old one.
"""

from dataclasses import dataclass, fields
from importlib import import_module
from inspect import signature
from typing import Any

FORMAT = "cmvmed model"
FORMAT_VERSION = 1

# What concerns fits only, and is not written: callbacks, their state during a fit, requests of metadata routing, and what
# is kept for the next fit.
NOT_SAVED = (
    "_row_cache",
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
    "_metadata_request",
)


@dataclass(frozen=True)
class SavedPart:
    """A dataclass and its fields."""

    path: str  # module and class
    fields: tuple[str, ...]

    def resolve(self) -> Any:
        """The class."""
        return _imported(self.path)

    def state(self, part: Any, name: str) -> dict[str, Any]:
        """The values of all fields."""
        unknown = {field.name for field in fields(part)} - set(self.fields)
        if unknown:
            raise TypeError(
                f"A field of {name!r} is not part of the file format: {sorted(unknown)}; see saved_types.py."
            )
        return {field: getattr(part, field) for field in self.fields}


@dataclass(frozen=True)
class SavedEstimator:
    """An estimator: its parameters and what it has learned."""

    path: str
    parameters: tuple[str, ...] | None = None  # all of its constructor if None
    attributes: tuple[str, ...] | None = None  # all that it has after a fit if None
    is_classifier: bool = False  # of this library

    def resolve(self) -> Any:
        """The class."""
        return _imported(self.path)

    def parameter_names(self) -> tuple[str, ...]:
        """The parameters that are written and read."""
        return tuple(signature(self.resolve()).parameters) if self.parameters is None else self.parameters

    def learned(self, estimator: Any) -> dict[str, Any]:
        """The attributes to write, by name; a class that has the method ``_to_model_file`` says itself which."""
        found: dict[str, Any] = estimator._to_model_file() if hasattr(estimator, "_to_model_file") else vars(estimator)
        left_out = {*NOT_SAVED, *signature(type(estimator)).parameters}
        names = [name for name in found if name not in left_out]
        return {name: found[name] for name in names if self.attributes is None or name in self.attributes}

    def may_have(self, name: str) -> bool:
        """Whether a file may set this attribute: none that would hide a method or a parameter."""
        if self.attributes is not None:
            return name in self.attributes
        cls = self.resolve()
        special = name.startswith("__") or not name.isidentifier()
        return not (special or hasattr(cls, name) or name in signature(cls).parameters)


@dataclass(frozen=True)
class SavedProject:
    """A model with what is needed to read files for it: the class says itself what is written, and makes itself of it.

    It does so by ``_to_model_file`` and the class method ``_from_model_file``, which takes the same fields.
    """

    path: str
    fields: tuple[str, ...]

    def resolve(self) -> Any:
        """The class."""
        return _imported(self.path)


OUTPUT = "_sklearn_output_config"  # of set_output

PARTS = {
    "kernel": SavedPart("cmvmed.numerics.kernels.Kernel", ("view", "kind", "gamma")),
    "landmarks": SavedPart("cmvmed.numerics.nystroem.Landmarks", ("kernel", "landmarks", "columns")),
    "basis": SavedPart("cmvmed.numerics.nystroem.Basis", ("kernel", "landmarks", "columns", "transform")),
    "scaling": SavedPart("cmvmed.views.scaling.Scaling", ("kind", "size", "clip", "mean", "factor")),
    "view_layout": SavedPart("cmvmed.data.layout.ViewLayout", ("names", "columns")),
    "input_schema": SavedPart("cmvmed.data.layout.InputSchema", ("layout", "names", "table_columns")),
    "view_settings": SavedPart(
        "cmvmed.views.view_rows.ViewSettings",
        (
            "name",
            "kernel",
            "gamma",
            "scaling",
            "prior_variance",
            "C",
            "bias_variance",
            "clip",
            "sparse_density",
            "median_sample",
            "double_precision_rows",
            "wide_clip",
        ),
    ),
    "imputation": SavedPart("cmvmed.views.imputation.Imputation", ("means", "gaps", "n_cells")),
    "view_data": SavedPart(
        "cmvmed.views.view_rows.ViewData",
        ("settings", "scaling", "kernel", "train", "columns", "rows_L", "rows_U", "imputation"),
    ),
    "view_preprocessor": SavedPart(
        "cmvmed.views.view_rows.ViewPreprocessor", ("settings", "scaling", "columns", "imputation")
    ),
    "kernel_predictor": SavedPart(
        "cmvmed.model.predictors.KernelPredictor", ("data", "tau", "gamma", "row_weights", "curvature")
    ),
    "intercept_predictor": SavedPart(
        "cmvmed.model.predictors.InterceptPredictor", ("data", "tau", "gamma", "row_weights", "curvature", "intercept")
    ),
    "low_rank_predictor": SavedPart(
        "cmvmed.model.predictors.LowRankPredictor", ("preprocessor", "basis", "theta", "d")
    ),
    "nodes": SavedPart(
        "cmvmed.graphs.nodes.Nodes",
        ("views", "indices", "members", "place", "present", "node_of_row", "weights", "n_neighbors"),
    ),
    "neighbor_predictor": SavedPart("cmvmed.auto.neighbors.NeighborPredictor", ("nodes", "scores")),
    "graph_scorer": SavedPart("cmvmed.graphs.nodes.GraphScorer", ("nodes", "node_scores")),
    "kernel_scorer": SavedPart(
        "cmvmed.members.centered_kernels.KernelScorer",
        ("view", "preprocessor", "kernel", "basis", "index", "coefficients", "constant"),
    ),
    "opinion_scorer": SavedPart("cmvmed.members.candidates.OpinionScorer", ("parts", "views", "intercept")),
    "pool_scorer": SavedPart("cmvmed.members.pool.PoolScorer", ("scorers", "scales", "offsets", "weights")),
    "mixture": SavedPart("cmvmed.members.accuracy.Mixture", ("weights", "scales", "scale")),
    "held_out_accuracy": SavedPart(
        "cmvmed.members.accuracy.HeldOutAccuracy",
        ("hits", "labels_only", "gained", "lost", "largest", "n_held_out", "divisor", "chosen"),
    ),
    "held_out_scores": SavedPart(
        "cmvmed.members.prediction_sets.HeldOutScores", ("scores", "codes", "weights", "class_weights")
    ),
    "view_profile": SavedPart(
        "cmvmed.monitoring.reference.ViewProfile",
        ("scaling", "center", "directions", "mean", "deviation", "columns"),
    ),
    "reference": SavedPart(
        "cmvmed.monitoring.reference.Reference", ("profiles", "features", "probabilities", "n_second")
    ),
    "fitted_opinions": SavedPart(
        "cmvmed.estimators._prediction.FittedOpinions",
        ("names", "pool", "pool_offset", "mixture", "with_consensus"),
    ),
    "convolutions": SavedPart(
        "cmvmed.features.extractors.Convolutions",
        ("kind", "random_state", "n_jobs", "length", "mean", "deviation", "learned", "n_features"),
    ),
    "statistics": SavedPart("cmvmed.features.extractors.Statistics", ("sampling_rate", "channel_names", "n_bands")),
    "ranks": SavedPart("cmvmed.features.extractors.Ranks", ("statistics", "reference")),
    "cepstra": SavedPart("cmvmed.features.extractors.Cepstra", ("sampling_rate", "channel_names")),
    "catch22": SavedPart("cmvmed.features.extractors.Catch22", ("channel_names", "n_jobs")),
    "fitted_model": SavedPart(
        "cmvmed.estimators._prediction.FittedModel",
        (
            "schema",
            "classes",
            "class_prior",
            "predictors",
            "pool_weights",
            "offset",
            "temperature",
            "neighbors",
            "opinions",
        ),
    ),
}

ESTIMATORS = {
    "cmvmed": SavedEstimator("cmvmed.estimators.cmvmed.CMVMED", is_classifier=True),
    "med": SavedEstimator("cmvmed.estimators.med.MED", is_classifier=True),
    "mvmed": SavedEstimator("cmvmed.estimators.mvmed.MVMED", is_classifier=True),
    "svm2k": SavedEstimator("cmvmed.estimators.svm2k.SVM2K", is_classifier=True),
    "corls": SavedEstimator("cmvmed.estimators.corls.CoRLS", is_classifier=True),
    "mfcc": SavedEstimator("cmvmed.features.mfcc.MFCC"),
    "text_view": SavedEstimator("cmvmed.features.text.TextView"),
    "window_features": SavedEstimator("cmvmed.features.window_features.WindowFeatures"),
    # without ``memory``, a folder of the machine that wrote the file
    "signal_features": SavedEstimator(
        "cmvmed.features.signal_features.SignalFeatures",
        ("kind", "sampling_rate", "random_state", "n_jobs"),
        ("sampling_rate_", "channel_names_", "n_features_out_", "_extractors", OUTPUT),
    ),
    "sensor_features": SavedEstimator(
        "cmvmed.features.sensor_features.SensorFeatures",
        ("kind", "candidates", "sampling_rate", "random_state", "n_jobs"),
        ("kinds_", "choices_", "features_"),
    ),
    "single_view_transformer": SavedEstimator("cmvmed.features.per_view.SingleViewTransformer"),
    "views_transformer": SavedEstimator("cmvmed.features.per_view.ViewsTransformer", attributes=(OUTPUT,)),
    # Those of scikit-learn by name, since their private attributes differ between its releases. A pipeline has no
    # ``memory``: a cache is a folder of pickles.
    "pipeline": SavedEstimator("sklearn.pipeline.Pipeline", ("steps", "transform_input", "verbose"), (OUTPUT,)),
    "standard_scaler": SavedEstimator(
        "sklearn.preprocessing.StandardScaler",
        attributes=("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_", "feature_names_in_", OUTPUT),
    ),
}

PROJECTS = {
    "trained_project": SavedProject("cmvmed.workbench.project.TrainedProject", ("settings", "encoders", "model")),
}

SavedType = SavedPart | SavedEstimator | SavedProject
TYPES: dict[str, SavedType] = {**PARTS, **ESTIMATORS, **PROJECTS}


def type_of(value: object) -> tuple[str, SavedType] | None:
    """The name and entry of a value's type, None if a file cannot hold it."""
    for name, saved in TYPES.items():
        if saved.path.endswith(f".{type(value).__name__}") and type(value) is saved.resolve():
            return name, saved
    return None


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
