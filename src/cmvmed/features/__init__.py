"""Features of raw sensor recordings: scikit-learn transformers for sound, text and multi-channel signals."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmvmed.features.feature_cache import FeatureCache
    from cmvmed.features.mfcc import MFCC
    from cmvmed.features.per_view import ViewsTransformer, views_transformer
    from cmvmed.features.segmentation import Segments, segment_events, segment_windows
    from cmvmed.features.sensor_features import SensorFeatures
    from cmvmed.features.signal_features import SignalFeatures
    from cmvmed.features.text import TextView
    from cmvmed.features.window_features import WindowFeatures
    from cmvmed.recordings.sound_files import read_audio

__all__ = [
    "MFCC",
    "FeatureCache",
    "Segments",
    "SensorFeatures",
    "SignalFeatures",
    "TextView",
    "ViewsTransformer",
    "WindowFeatures",
    "read_audio",
    "segment_events",
    "segment_windows",
    "views_transformer",
]
_HOMES = {
    "FeatureCache": "cmvmed.features.feature_cache",
    "MFCC": "cmvmed.features.mfcc",
    "ViewsTransformer": "cmvmed.features.per_view",
    "views_transformer": "cmvmed.features.per_view",
    "Segments": "cmvmed.features.segmentation",
    "segment_events": "cmvmed.features.segmentation",
    "segment_windows": "cmvmed.features.segmentation",
    "SensorFeatures": "cmvmed.features.sensor_features",
    "SignalFeatures": "cmvmed.features.signal_features",
    "TextView": "cmvmed.features.text",
    "WindowFeatures": "cmvmed.features.window_features",
    "read_audio": "cmvmed.recordings.sound_files",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for, so that the labeling page need not wait for scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cmvmed.features' has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
