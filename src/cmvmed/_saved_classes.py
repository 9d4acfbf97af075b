"""The classes that a model file may name, beside the parts of a model: an allow-list of words and where the classes are.

A word is part of the file format: it stays when a class is renamed or moved. A class is imported when a file names its word.
"""

CLASSIFIERS = {
    "cmvmed": "cmvmed.estimators.cmvmed.CMVMED",
    "med": "cmvmed.estimators.med.MED",
    "mvmed": "cmvmed.estimators.mvmed.MVMED",
    "svm2k": "cmvmed.estimators.svm2k.SVM2K",
    "corls": "cmvmed.estimators.corls.CoRLS",
}
STEPS = {
    "mfcc": "cmvmed.features.mfcc.MFCC",
    "text_view": "cmvmed.features.text.TextView",
    "window_features": "cmvmed.features.window_features.WindowFeatures",
    "signal_features": "cmvmed.features.signal_features.SignalFeatures",
    "sensor_features": "cmvmed.features.sensor_features.SensorFeatures",
    "single_view_transformer": "cmvmed.features.per_view.SingleViewTransformer",
    "views_transformer": "cmvmed.features.per_view.ViewsTransformer",
    "pipeline": "sklearn.pipeline.Pipeline",
    "standard_scaler": "sklearn.preprocessing.StandardScaler",
}
EXTRACTORS = {
    "convolutions": "cmvmed.features.extractors.Convolutions",
    "statistics": "cmvmed.features.extractors.Statistics",
    "ranks": "cmvmed.features.extractors.Ranks",
    "cepstra": "cmvmed.features.extractors.Cepstra",
    "catch22": "cmvmed.features.extractors.Catch22",
}
RECORDS = {
    "accuracy": "cmvmed.members.accuracy.HeldOutAccuracy",
    "random_labels": "cmvmed.members.random_labels.RandomLabels",
    "reference": "cmvmed.monitoring.reference.Reference",
}
PROJECT = "cmvmed.workbench.project.TrainedProject"

OUTPUT = "_sklearn_output_config"  # of set_output
# Parameters that are written, where not all of the constructor are: not ``memory``, a folder of the machine that wrote the file.
PARAMETERS = {
    "signal_features": ("kind", "sampling_rate", "random_state", "n_jobs"),
    "sensor_features": ("kind", "candidates", "sampling_rate", "random_state", "n_jobs"),
    "pipeline": ("steps", "transform_input", "verbose"),
}
# Attributes that are written, where not all are: private ones of scikit-learn differ between its releases.
ATTRIBUTES = {
    "signal_features": ("sampling_rate_", "channel_names_", "n_features_out_", "_extractors", OUTPUT),
    "sensor_features": ("kinds_", "choices_", "features_"),
    "views_transformer": (OUTPUT,),
    "pipeline": (OUTPUT,),
    "standard_scaler": ("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_", "feature_names_in_", OUTPUT),
}
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
