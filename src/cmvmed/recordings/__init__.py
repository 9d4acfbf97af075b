"""Raw recordings of several sensors: from arrays, tables and files to cases with labels and groups."""

from cmvmed.recordings.container import Recordings, SensorSignals

__all__ = ["Recordings", "SensorSignals"]
