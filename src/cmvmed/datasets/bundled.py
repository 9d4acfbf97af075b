"""Data that need no download: data sets of scikit-learn, split into views, and a sample of a published table.

The table has sensors of a room and the number of people in it, as arrays and as csv files.
"""

import csv
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from cmvmed.datasets.bunch import Dataset, View, to_bunch

CLASSES = ("nobody", "one", "two", "three")
FOLDER = files("cmvmed.datasets").joinpath("room")
LABEL, PART, TIME = "people", "part", "time"
PARTS = {"train": ("labeled", "unlabeled"), "new": ("new",)}
FILES = {"train": "room.csv", "new": "room_new.csv"}


def load_digits_views(*, parity: bool = False, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load scikit-learn's digits with the upper and the lower half of the image as two views.

    Parameters
    ----------
    parity : bool, default=False
        Classify even (0) against odd (1) digits instead of the ten digits.
    as_frame : bool, default=False
        Return ``data`` and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        The Bunch holds ``data`` of shape (1797, 64), ``views`` (name to slice of columns), ``missing`` (n_rows,
        n_views), ``target`` (n_rows,) of indices into ``target_names``, ``feature_names`` (``<view>__<feature>``),
        ``frame`` and ``DESCR``.

    Examples
    --------
    >>> from cmvmed.datasets import load_digits_views
    >>> digits = load_digits_views()
    >>> digits.data.shape, digits.views
    ((1797, 64), {'upper': slice(0, 32, None), 'lower': slice(32, 64, None)})
    """
    digits = load_digits()
    half = digits.data.shape[1] // 2
    names = digits.feature_names
    target = digits.target % 2 if parity else digits.target
    dataset = Dataset(
        views={"upper": View(digits.data[:, :half], names[:half]), "lower": View(digits.data[:, half:], names[half:])},
        target=target.astype(np.int64),
        target_names=["even", "odd"] if parity else [str(digit) for digit in digits.target_names],
        descr=_description("digits_views"),
    )
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def load_breast_cancer_views(*, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load scikit-learn's breast cancer data with mean, standard error and worst value of ten features as three views.

    Parameters
    ----------
    as_frame : bool, default=False
        Return ``data`` and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        A Bunch as :func:`load_digits_views` returns; ``data`` has shape (569, 30).

    Examples
    --------
    >>> from cmvmed.datasets import load_breast_cancer_views
    >>> cancer = load_breast_cancer_views(as_frame=True)
    >>> list(cancer.views), cancer.target_names.tolist()
    (['mean', 'error', 'worst'], ['malignant', 'benign'])
    >>> cancer.data.columns[0]
    'mean__radius'
    """
    cancer = load_breast_cancer()
    # scikit-learn names the columns "mean radius", "radius error" and "worst radius"; here the first word is the view.
    columns = {
        view: [index for index, name in enumerate(cancer.feature_names) if view in name.split()]
        for view in ("mean", "error", "worst")
    }
    views = {
        view: View(cancer.data[:, indices], [_without_word(view, cancer.feature_names[index]) for index in indices])
        for view, indices in columns.items()
    }
    dataset = Dataset(
        views, cancer.target.astype(np.int64), list(cancer.target_names), _description("breast_cancer_views")
    )
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _without_word(removed: str, feature: str) -> str:
    return " ".join(word for word in feature.split() if word != removed)


def _description(name: str) -> str:
    return files("cmvmed.datasets").joinpath("descriptions", f"{name}.txt").read_text(encoding="utf-8")


def load_room(subset: str = "train", *, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load the number of people in a room, and its sensors: temperature, light, sound, CO2 and motion.

    Parameters
    ----------
    subset : {"train", "new"}, default="train"
        The 419 rows to learn from, of which 24 count as labeled, or 84 rows between them.
    as_frame : bool, default=False
        Return ``data`` and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        A Bunch as :func:`load_digits_views` returns. ``target`` is the class of all rows; ``labels`` is the name of the
        class where :func:`write_room` writes it, and None in the other rows; ``time`` has the times of the rows.

    Examples
    --------
    >>> from cmvmed.datasets import load_room
    >>> room = load_room()
    >>> list(room.views), room.data.shape
    (['temperature', 'light', 'sound', 'co2', 'motion'], (419, 16))
    >>> sum(label is not None for label in room.labels)
    24
    """
    if subset not in PARTS:
        raise ValueError(f"subset is {subset!r}, but must be one of {', '.join(map(repr, PARTS))}.")
    rows = _rows(subset)
    sensors = [name for name in rows[0] if name not in (TIME, PART, LABEL)]
    columns: dict[str, list[str]] = {}
    for sensor in sensors:
        columns.setdefault(sensor.partition("_")[0], []).append(sensor)
    dataset = Dataset(
        views={
            view: View(
                np.array([[float(row[name]) for name in names] for row in rows]),
                [name.partition("_")[2] for name in names],
            )
            for view, names in columns.items()
        },
        target=np.array([CLASSES.index(row[LABEL]) for row in rows], dtype=np.int64),
        target_names=CLASSES,
        descr=FOLDER.joinpath("README.txt").read_text(encoding="utf-8"),
        extras={
            "labels": np.array([row[LABEL] if row[PART] == "labeled" else None for row in rows], dtype=object),
            "time": np.array([row[TIME] for row in rows]).astype("datetime64[s]"),
        },
    )
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def write_room(folder: str | PathLike[str] = ".") -> dict[str, Path]:
    """Write the rows of :func:`load_room` as a user has them: ``room.csv`` and ``room_new.csv``.

    Parameters
    ----------
    folder : path, default="."
        Files of these names in it are replaced.

    Returns
    -------
    paths : dict from "train" and "new" to Path
        ``room.csv`` has a column ``people``, which is empty in rows that are not labeled; ``room_new.csv`` lacks it.

    Examples
    --------
    >>> from cmvmed.datasets import write_room
    >>> paths = write_room()
    >>> with paths["train"].open() as file:
    ...     next(file).split(",")[:3]
    ['time', 'temperature_1', 'temperature_2']
    """
    paths = {subset: Path(folder) / name for subset, name in FILES.items()}
    for subset, path in paths.items():
        rows = [row | {LABEL: row[LABEL] if row[PART] == "labeled" else ""} for row in _rows(subset)]
        names = [name for name in rows[0] if name != PART and (subset == "train" or name != LABEL)]
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return paths


def _rows(subset: str) -> list[dict[str, str]]:
    """The cells of the bundled table by name of column, in the rows of a subset."""
    lines = FOLDER.joinpath("room_occupancy.csv").read_text(encoding="utf-8").splitlines()
    return [row for row in csv.DictReader(lines) if row[PART] in PARTS[subset]]
