"""Features of raw sensor recordings: scikit-learn transformers for sound, text and multi-channel signals."""

from cmvmed.features.feature_cache import FeatureCache
from cmvmed.features.mfcc import MFCC
from cmvmed.features.per_view import ViewsTransformer, views_transformer
from cmvmed.features.segmentation import Segments, segment_events, segment_windows
from cmvmed.features.sensor_features import SensorFeatures
from cmvmed.features.signal_features import SignalFeatures
from cmvmed.features.text import TextView
from cmvmed.features.window_features import WindowFeatures
from cmvmed.recordings.audio_files import read_audio

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
