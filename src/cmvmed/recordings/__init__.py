"""Raw recordings of several sensors: from arrays, tables and files to rows with labels and groups."""

from cmvmed.recordings.container import Recordings, SensorSignals
from cmvmed.recordings.hdf5_files import read_hdf5
from cmvmed.recordings.long_recordings import LongRecording, long_recording
from cmvmed.recordings.long_tables import annotations_from_frame, from_frame, long_recordings_from_frame
from cmvmed.recordings.recording_files import read_edf_annotations, read_recording
from cmvmed.recordings.resampling import resample
from cmvmed.recordings.row_arrays import from_array, from_sensors
from cmvmed.recordings.sound_files import read_sounds
from cmvmed.recordings.ts_files import read_ts
from cmvmed.recordings.windows import cut_windows

__all__ = [
    "LongRecording",
    "Recordings",
    "SensorSignals",
    "annotations_from_frame",
    "cut_windows",
    "from_array",
    "from_frame",
    "from_sensors",
    "long_recording",
    "long_recordings_from_frame",
    "read_edf_annotations",
    "read_hdf5",
    "read_recording",
    "read_sounds",
    "read_ts",
    "resample",
]
