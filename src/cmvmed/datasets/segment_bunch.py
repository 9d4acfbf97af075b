"""Recordings of several synchronized sensors: sound files, and the Bunch of segments that the loaders return."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import wavfile
from scipy.signal import resample_poly
from sklearn.utils import Bunch

from cmvmed.datasets.errors import DatasetError

Float32Array = NDArray[np.float32]


def check_numbers(name: str, numbers: Sequence[int], largest: int) -> None:
    """Raise a ValueError unless `numbers` are different numbers from 1 to `largest`, at least one."""
    valid = len(numbers) > 0 and len(set(numbers)) == len(numbers) and set(numbers) <= set(range(1, largest + 1))
    if not valid:
        raise ValueError(f"{name} must be different numbers from 1 to {largest}, got {numbers!r}.")


def read_wav(data: bytes, sampling_rate: int, *, name: str) -> Float32Array:
    """Return (n_channels, n_samples) of a wav file, resampled to `sampling_rate`; the full scale of integers is 1."""
    try:
        rate, samples = wavfile.read(io.BytesIO(data))
    except Exception as error:  # scipy documents no exceptions and raises many kinds
        raise DatasetError(
            f"{name} is not a complete wav file ({str(error) or type(error).__name__}). Get it again."
        ) from error
    if rate <= 0 or samples.size == 0:
        raise DatasetError(f"{name} has no samples or no sampling rate. Get it again.")
    channels = _full_scale(np.atleast_2d(samples.T))
    if not np.isfinite(channels).all():
        raise DatasetError(f"{name} has a sample that is not finite. Get it again.")
    if rate == sampling_rate:
        return channels
    return np.asarray(resample_poly(channels, sampling_rate, rate, axis=1), dtype=np.float32)


def _full_scale(samples: NDArray[Any]) -> Float32Array:
    if samples.dtype.kind == "f":
        return samples.astype(np.float32)
    if samples.dtype == np.uint8:  # the only unsigned format; 128 is silence
        return ((samples.astype(np.float32) - 128) / 128).astype(np.float32)
    return np.asarray(samples / -float(np.iinfo(samples.dtype).min), dtype=np.float32)


def cut(signal: Float32Array, n_samples: int) -> Float32Array:
    """Return the first `n_samples` along the last axis, with zeros after a shorter signal."""
    missing = max(n_samples - signal.shape[-1], 0)
    return np.pad(signal[..., :n_samples], [(0, 0)] * (signal.ndim - 1) + [(0, missing)])


def to_recordings(
    data: Float32Array,
    target: NDArray[np.int64],
    target_names: Sequence[str],
    sensors: Sequence[str],
    sampling_rate: int,
    descr: str,
    extras: Mapping[str, object],
) -> Bunch:
    """Return the Bunch of (n_segments, n_sensors, n_samples) recordings, as :func:`cmvmed.datasets.make_footsteps`."""
    return Bunch(
        data=data,
        target=target,
        target_names=list(target_names),
        views={sensor: channel for channel, sensor in enumerate(sensors)},
        sampling_rate=sampling_rate,
        DESCR=descr,
        **extras,
    )
