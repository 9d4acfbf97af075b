"""AFPILD: footsteps of 40 people at an array of four microphones.

The layout is that of the authors' description of AFPILD_v1 and of their script of features
(github.com/Cratial/AFPILD-CRNN). The folder, the names of the files and of the columns, and the four channels are
described there. That ``sample_loc`` counts samples at 16 kHz follows from the script, which resamples the sound to this
rate and cuts it there.
"""

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import wavfile
from scipy.signal import resample_poly
from sklearn.utils import Bunch

from experiments.datasets.locations import DataFile, DatasetError, FetchOptions, describe, read_file

Float32Array = NDArray[np.float32]

N_SUBJECTS, N_SESSIONS, N_CHANNELS = 40, 4, 4
SAMPLING_RATE = 16_000  # Hz
SKIPPED_FIRST, SKIPPED_LAST = 5, 3  # events that the authors leave out: silence at the beginning, and the end
COLUMNS = ("sample_loc", "loc_x", "loc_y")
HOMEPAGE = "https://github.com/Cratial/AFPILD-CRNN (links to the archive; license CC BY-NC-SA 4.0)"


@dataclass(frozen=True)
class Session:
    """The footsteps of one session of one person."""

    sound: Float32Array  # (n_events, 4, n_samples)
    position: NDArray[np.float64]  # (n_events, 2)


def afpild_file(subject: int, session: int, kind: str) -> DataFile:
    """Describe a file of one session: "audio.wav" or "annotation.csv"."""
    return DataFile(
        name=f"s{subject:02d}_{session}_footstep_{kind}",
        folder=f"AFPILD_v1/S{subject:02d}",
        url="",
        homepage=HOMEPAGE,
        max_bytes=500_000_000,
    )


def fetch_afpild(
    *,
    subjects: Sequence[int] = (1, 2),
    sessions: Sequence[int] = (1, 2, 3, 4),
    seconds: float = 0.64,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch:
    """Load footsteps of AFPILD: single steps of walking people at four synchronized microphones.

    A recording of one session is cut at the annotated limits of the footsteps; the first five and the last three are
    left out, as by the authors. All 40 people have some 62,000 footsteps, 10 GB in memory; a person has 0.25 GB.

    Parameters
    ----------
    subjects : sequence of int, default=(1, 2)
        Numbers of the people, 1 to 40; they are the classes.
    sessions : sequence of int, default=(1, 2, 3, 4)
        1: with coat, anticlockwise. 2: without coat, clockwise. 3: other shoes, anticlockwise. 4: lab coat, clockwise.
    seconds : float, default=0.64
        Duration of a segment: longer footsteps are cut, shorter ones followed by zeros.
    data_home : path, optional
        Folder that contains the unpacked folder ``AFPILD_v1``; searched before the folder in the environment variable
        ``CMVMED_DATA``.
    download_if_missing : bool, default=True
        No effect: the archive is not offered for automatic downloads. Error messages name its page.

    Returns
    -------
    Bunch
        data : (n_footsteps, 4, n_samples) float32, of full scale 1. target : (n_footsteps,) index into
        target_names. views : dict of microphone -> channel, the keys of :func:`cmvmed.features.views_transformer`.
        sampling_rate : int, 16000. session : (n_footsteps,). position : (n_footsteps, 2), annotated position of the
        foot. DESCR : str.

    Raises
    ------
    DatasetError
        If a file is damaged or its content is not as described.
    DatasetNotFoundError
        If a file is not found.

    Examples
    --------
    >>> from experiments.datasets import DatasetNotFoundError, fetch_afpild
    >>> try:
    ...     found = fetch_afpild(download_if_missing=False).data.shape[1]
    ... except DatasetNotFoundError:  # the files are not on this machine
    ...     found = 4
    >>> found
    4
    """
    _check_numbers("subjects", subjects, N_SUBJECTS)
    _check_numbers("sessions", sessions, N_SESSIONS)
    if not 0.01 <= seconds <= 10.0:
        raise ValueError(f"seconds must be between 0.01 and 10, got {seconds!r}.")
    options = FetchOptions(data_home, download_if_missing)
    keys = [(subject, session) for subject in subjects for session in sessions]
    parts = [_session(subject, session, round(seconds * SAMPLING_RATE), options) for subject, session in keys]
    counts = [len(part.sound) for part in parts]
    return Bunch(
        data=np.concatenate([part.sound for part in parts]),
        target=np.repeat([list(subjects).index(subject) for subject, _ in keys], counts).astype(np.int64),
        target_names=[f"S{subject:02d}" for subject in subjects],
        views={f"microphone{channel + 1}": channel for channel in range(N_CHANNELS)},
        sampling_rate=SAMPLING_RATE,
        DESCR=describe("afpild", rows=sum(counts), subjects=len(subjects)),
        session=np.repeat([session for _, session in keys], counts),
        position=np.concatenate([part.position for part in parts]),
    )


def _session(subject: int, session: int, n_samples: int, options: FetchOptions) -> Session:
    annotation, audio = (afpild_file(subject, session, kind) for kind in ("annotation.csv", "audio.wav"))
    limits, position = _annotation(read_file(annotation, options), annotation.name)
    sound = read_wav(read_file(audio, options), SAMPLING_RATE, name=audio.name)
    if len(sound) != N_CHANNELS:
        raise DatasetError(f"{audio.name} has {len(sound)} channels, expected {N_CHANNELS}. It is a different file.")
    if limits[-1] > sound.shape[1]:
        raise DatasetError(
            f"{annotation.name} has a footstep at sample {limits[-1]:,}, after the end of {audio.name}, which has "
            f"{sound.shape[1]:,} samples at {SAMPLING_RATE} Hz: the files do not belong together or one is truncated."
        )
    events = range(SKIPPED_FIRST, len(limits) - SKIPPED_LAST)
    cuts = [_cut(sound[:, limits[event] : limits[event + 1]], n_samples) for event in events]
    return Session(np.stack(cuts), position[events.start : events.stop])


def _annotation(data: bytes, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the limits of the footsteps in samples, increasing, and the annotated positions."""
    try:
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
        table = np.array([[float(row[column]) for column in COLUMNS] for row in rows])
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise DatasetError(
            f"{name} is not a table with numbers in the columns {', '.join(COLUMNS)} ({error}). Get it again."
        ) from error
    if len(table) <= SKIPPED_FIRST + SKIPPED_LAST:
        raise DatasetError(f"{name} has {len(table)} footsteps, too few for a session. Get it again.")
    if not np.isfinite(table[:, 0]).all() or (np.diff(table[:, 0]) <= 0).any() or table[0, 0] < 0:
        raise DatasetError(f"The sample_loc of {name} are not increasing numbers of samples. Get it again.")
    return table[:, 0].astype(np.int64), table[:, 1:]


def _check_numbers(name: str, numbers: Sequence[int], largest: int) -> None:
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


def _cut(signal: Float32Array, n_samples: int) -> Float32Array:
    """Return the first `n_samples` along the last axis, with zeros after a shorter signal."""
    missing = max(n_samples - signal.shape[-1], 0)
    return np.pad(signal[..., :n_samples], [(0, 0)] * (signal.ndim - 1) + [(0, missing)])
