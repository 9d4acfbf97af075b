"""Features that were computed before, by a key that stands for signals and settings."""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed._file_errors import NPY_ERRORS

Features = NDArray[np.floating[Any]]

MEMORY_BYTES = 2**28  # of the features that are kept in memory; the last ones are kept in any case
FOLDER_BYTES = 2**31  # of the files of a folder; those that were not used for the longest time are removed


class FeatureCache:
    """The features of the last signals in memory, and those of further ones in a folder, if one is given.

    A folder holds .npy files without Python objects, so that reading them cannot run code. One that cannot be written is
    not an error: features are then in memory only.

    Parameters
    ----------
    folder : path, optional
        It is made when the first features are written.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.features import FeatureCache, SignalFeatures
    >>> signals = np.random.default_rng(0).normal(size=(5, 2, 100))
    >>> cache = FeatureCache()
    >>> features = SignalFeatures("statistics", sampling_rate=50, memory=cache).fit(signals)
    >>> features.transform(signals).shape  # a second call takes them from the cache
    (5, 40)
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._kept: OrderedDict[str, Features] = OrderedDict()

    def get(self, key: str, compute: Callable[[], Features]) -> Features:
        """Return the features of a key, computed if they are not known."""
        features = self._kept.get(key)
        if features is None:
            features = self._read(key)
        if features is None:
            features = compute()
            self._write(key, features)
        self._keep(key, features)
        return features.copy()

    def _keep(self, key: str, features: Features) -> None:
        self._kept[key] = features
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(kept.nbytes for kept in self._kept.values()) > MEMORY_BYTES:
            self._kept.popitem(last=False)

    def _read(self, key: str) -> Features | None:
        if self.folder is None:
            return None
        file = self.folder / f"{key}.npy"
        with suppress(OSError, *NPY_ERRORS):  # no file, or a damaged one
            features: Features = np.load(file, allow_pickle=False)
            with suppress(OSError):
                os.utime(file)
            return features
        return None

    def _write(self, key: str, features: Features) -> None:
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            part = self.folder / f"{key}.{secrets.token_hex(4)}.part"
            try:
                with part.open("wb") as file:
                    np.save(file, features, allow_pickle=False)
                part.replace(self.folder / f"{key}.npy")
            finally:
                part.unlink(missing_ok=True)
            _remove_oldest(self.folder)


def _remove_oldest(folder: Path) -> None:
    """Remove the files that were not used for the longest time, until the others take no more than they may."""
    files = [(file.stat().st_mtime, file.stat().st_size, file) for file in folder.glob("*.npy")]
    excess = sum(size for _, size, _ in files) - FOLDER_BYTES
    for _, size, file in sorted(files)[:-1]:
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= size
