"""The data sets of the suite in one form: all views side by side, the columns of each view, and class codes.

Files are looked for in the folder of the environment variable ``CMVMED_DATA``, else in ``shared/data`` beside the
repository. The 24 sets of its subfolder ``suite`` are described in the README there. Nothing is downloaded.

Twelve sets are measured by several sensors and are reported apart from the others (texts, links, images, biology). Of
some of them ``suite`` also has the recordings (``SERIES``), which are no part of the suite itself: their X has channels
and samples, and a view is a range of channels.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from cmvmed.datasets import load_breast_cancer_views, load_digits_views
from cmvmed.datasets.bunch import column_slices, concatenate_views
from experiments.datasets import (
    DatasetNotFoundError,
    fetch_internet_ads,
    fetch_multiple_features,
    fetch_sensit_vehicle,
    fetch_webkb_course,
)
from experiments.tasks import TASKS

SUITE = (
    "racketsports",
    "hyd_pump",
    "hyd_accu",
    "gas1",
    "bbcsport",
    "ngs",
    "cornell",
    "wisconsin",
    "reuters1200",
    "citeseer",
    "msrcv1",
    "aloi",
    "mnist",
    "scene15",
    "eyaleb",
    "prokaryotic",
    "proteinfold",
    "robot_grasp",
    "robot_approach",
    "room",
    "stress",
    "wall",
    "natops",
    "epilepsy",
)
SENSORS = (
    "racketsports",
    "hyd_pump",
    "hyd_accu",
    "gas1",
    "robot_grasp",
    "robot_approach",
    "room",
    "stress",
    "wall",
    "natops",
    "epilepsy",
    "sensit",
)
KINDS = ("sensors", "others")
HYDRAULIC = {  # the channels of each group of sensors
    "pressure": ("PS1", "PS2", "PS3", "PS4", "PS5", "PS6"),
    "flow": ("FS1", "FS2", "EPS1"),
    "temperature": ("TS1", "TS2", "TS3", "TS4"),
    "vibration": ("VS1", "CE", "CP", "SE"),
}


@dataclass(frozen=True)
class DataSet:
    """Rows with several views.

    Attributes
    ----------
    name : str
    X : array or CSR matrix of shape (n_rows, n_columns), or array of shape (n_rows, n_channels, n_samples)
    views : dict from view name to slice of columns or channels
    y : ndarray of shape (n_rows,)
        Classes 0, ..., K - 1.
    groups : ndarray of shape (n_rows,) or None
        Person, day or stretch of time of each row; held-out rows are of other groups than training rows.
    """

    name: str
    X: Any
    views: dict[str, slice]
    y: Any
    groups: Any = None

    @property
    def counts(self) -> Any:
        """Number of rows of each class, (K,)."""
        return np.bincount(self.y)


def kind_of(name: str) -> str:
    """Whether a set is one of the "sensors" or of the "others"."""
    return "sensors" if name in SENSORS or name in SERIES else "others"


def data_folder() -> Path:
    """The folder of the data files, which need not be there."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("CMVMED_DATA") or beside).expanduser()


def read_suite_file(name: str) -> Any:
    """Views, target and groups (None if there are none) from ``suite/NAME.npz``."""
    with np.load(_suite_path(name)) as file:
        return read_views(file), file["y"], file.get("groups")


def _suite_path(name: str) -> Path:
    path = data_folder() / "suite" / f"{name}.npz"
    if not path.is_file():
        raise DatasetNotFoundError(
            f"{path} does not exist; set CMVMED_DATA to the folder that holds suite/{path.name}."
        )
    return path


def read_views(file: Any) -> dict[str, Any]:
    """The views v0, v1, ... of a file, as arrays or from their CSR parts."""
    views: dict[str, Any] = {}
    while (name := f"v{len(views)}") in file or f"{name}_data" in file:
        if name in file:
            views[name] = np.asarray(file[name], dtype=np.float64)
        else:
            parts = tuple(file[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
            views[name] = sparse.csr_matrix(parts, shape=tuple(file[f"{name}_shape"]), dtype=np.float64)
    return views


def _of_suite(name: str) -> DataSet:
    views, target, groups = read_suite_file(name)
    columns = column_slices({view: matrix.shape[1] for view, matrix in views.items()})
    return _coded(name, concatenate_views(list(views.values())), columns, target, groups)


def _of_series(name: str, widths: dict[str, int]) -> DataSet:
    """Recordings under the name of the set of their features, whose rows are the same: so are the splits."""
    with np.load(_suite_path(f"{name}_series")) as file:
        return _coded(name, file["X"], column_slices(widths), file["y"])


def _of_hydraulic(name: str, target: str) -> DataSet:
    with np.load(_suite_path("hydraulic_series")) as file:
        signals = np.stack([file[channel] for channels in HYDRAULIC.values() for channel in channels], axis=1)
        widths = {view: len(channels) for view, channels in HYDRAULIC.items()}
        return _coded(name, signals, column_slices(widths), file[target])


def _of_bunch(name: str, load: Callable[..., Any], **arguments: Any) -> DataSet:
    data = load(**arguments)
    return _coded(name, data.data, dict(data.views), data.target)


def _of_file(name: str, fetch: Callable[..., Any], **arguments: Any) -> DataSet:
    folder = data_folder()
    if not folder.is_dir():
        raise DatasetNotFoundError(f"{folder} does not exist; set CMVMED_DATA to the folder of the data files.")
    return _of_bunch(name, fetch, data_home=folder, download_if_missing=False, **arguments)


def _coded(name: str, X: Any, views: dict[str, slice], target: Any, groups: Any = None) -> DataSet:
    X = sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    return DataSet(name, X, views, np.unique(np.asarray(target), return_inverse=True)[1], groups)


LOADERS: dict[str, Callable[[], DataSet]] = {
    **{name: partial(_of_suite, name) for name in SUITE},
    "webkb": partial(_of_file, "webkb", fetch_webkb_course, preprocessed=True),
    "ads": partial(_of_file, "ads", fetch_internet_ads),
    "sensit": partial(_of_file, "sensit", fetch_sensit_vehicle),
    "footsteps": partial(_of_bunch, "footsteps", TASKS["footsteps"].load),
    "mfeat": partial(_of_file, "mfeat", fetch_multiple_features),
    "digits": partial(_of_bunch, "digits", load_digits_views),
    "breast_cancer": partial(_of_bunch, "breast_cancer", load_breast_cancer_views),
}
SERIES: dict[str, Callable[[], DataSet]] = {
    "natops_series": partial(_of_series, "natops", dict.fromkeys(("hand_tips", "elbows", "wrists", "thumbs"), 6)),
    "epilepsy_series": partial(_of_series, "epilepsy", {"x": 1, "y": 1, "z": 1}),
    "racketsports_series": partial(_of_series, "racketsports", {"accelerometer": 3, "gyroscope": 3}),
    "hyd_pump_series": partial(_of_hydraulic, "hyd_pump", "pump"),
    "hyd_accu_series": partial(_of_hydraulic, "hyd_accu", "accumulator"),
}


@cache
def load(name: str) -> DataSet:
    """The data set of this name; a DatasetError or ImportError says why it cannot be had."""
    return (LOADERS | SERIES)[name]()
