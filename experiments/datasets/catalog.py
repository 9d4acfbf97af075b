"""List of all data sets, and a check of which are available on this machine."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from cmvmed.datasets import load_breast_cancer_views, load_digits_views
from experiments.datasets.afpild import afpild_file, fetch_afpild
from experiments.datasets.internet_ads import AD_DATASET_ARCHIVE, UCI_ARCHIVE, fetch_internet_ads
from experiments.datasets.locations import (
    DATA_VARIABLE,
    DataFile,
    DatasetError,
    DatasetNotFoundError,
    FetchOptions,
    cache_folders,
    data_folders,
    find_file,
)
from experiments.datasets.multiple_features import CSV_FILES, UCI_ZIP, fetch_multiple_features
from experiments.datasets.sensit_vehicle import SUBSET_FILE, TEST_FILES, fetch_sensit_vehicle
from experiments.datasets.webkb import FEATURES_FILE, RAW_ARCHIVE, SPLITS_FILE, fetch_webkb_course

FIRST_FULL_FILE = next(iter(TEST_FILES))


@dataclass(frozen=True)
class CatalogEntry:
    """A data set that can be loaded by one call.

    Attributes
    ----------
    name : str
        Short name.
    title : str
        Short description.
    call : str
        The call that loads it, of ``experiments.datasets``, or of ``cmvmed.datasets`` if it has no files.
    load : callable
        Function of this call; takes ``data_home`` and ``download_if_missing`` if the data set has files.
    files : tuple of DataFile
        Files to get if none is available; empty for a data set without files.
    other_files : tuple of DataFile
        Other versions of the same data, and optional additional files.
    tasks : tuple of str
        Names that the option ``--datasets`` of the experiments takes; empty for data that they do not use.
    """

    name: str
    title: str
    call: str
    load: Callable[..., Any]
    files: tuple[DataFile, ...] = ()
    other_files: tuple[DataFile, ...] = ()
    tasks: tuple[str, ...] = ()


CATALOG = (
    CatalogEntry("webkb", "course pages, from html", "fetch_webkb_course()", fetch_webkb_course, (RAW_ARCHIVE,)),
    CatalogEntry(
        "webkb-preprocessed",
        "course pages, the paper's features",
        "fetch_webkb_course(preprocessed=True)",
        partial(fetch_webkb_course, preprocessed=True),
        (FEATURES_FILE,),
        (SPLITS_FILE,),
        tasks=("webkb", "webkb12"),
    ),
    CatalogEntry(
        "ads",
        "internet advertisements",
        "fetch_internet_ads()",
        fetch_internet_ads,
        (UCI_ARCHIVE,),
        (AD_DATASET_ARCHIVE,),
        tasks=("ads",),
    ),
    CatalogEntry(
        "sensit",
        "acoustic and seismic features of vehicles, subset",
        "fetch_sensit_vehicle()",
        fetch_sensit_vehicle,
        (SUBSET_FILE,),
        tasks=("sensit",),
    ),
    CatalogEntry(
        "sensit-full",
        "acoustic and seismic features of vehicles, all rows",
        'fetch_sensit_vehicle(version="full")',
        partial(fetch_sensit_vehicle, version="full"),
        (FIRST_FULL_FILE, TEST_FILES[FIRST_FULL_FILE]),
        tuple(file for pair in list(TEST_FILES.items())[1:] for file in pair),
    ),
    CatalogEntry(
        "mfeat",
        "six sets of features of handwritten digits",
        "fetch_multiple_features()",
        fetch_multiple_features,
        (UCI_ZIP,),
        tuple(CSV_FILES.values()),
        tasks=("mfeat",),
    ),
    CatalogEntry(
        "afpild",
        "footsteps at four microphones, the first session of S01",
        "fetch_afpild(subjects=[1], sessions=[1])",
        partial(fetch_afpild, subjects=[1], sessions=[1]),
        tuple(afpild_file(1, 1, kind) for kind in ("audio.wav", "annotation.csv")),
    ),
    CatalogEntry(
        "digits",
        "halves of handwritten digits",
        "load_digits_views()",
        load_digits_views,
        tasks=("digits", "digits-parity"),
    ),
    CatalogEntry("breast-cancer", "three views of tumors", "load_breast_cancer_views()", load_breast_cancer_views),
)


@dataclass(frozen=True)
class DatasetStatus:
    """Result of the check of one data set; the numbers are those of the loaded data, zero if it was not loaded."""

    entry: CatalogEntry
    state: Literal["available", "missing", "damaged"]
    problem: str = ""  # error message of the loader
    paths: tuple[Path, ...] = ()  # files of this data set that were found
    rows: int = 0
    classes: int = 0
    views: tuple[tuple[str, int], ...] = ()  # names and numbers of columns

    @property
    def bytes(self) -> int:
        """Total size of the files."""
        return sum(path.stat().st_size for path in self.paths)


def searched_folders(data_home: str | os.PathLike[str] | None = None) -> list[tuple[Path, str]]:
    """Return the folders that are searched, in order, each with its origin."""
    folders = data_folders(FetchOptions(data_home))
    origins = ["data folder given"] * (data_home is not None) + [DATA_VARIABLE]
    named_folders = list(zip(folders, origins, strict=False))
    return named_folders + [(folder, "download cache") for folder in cache_folders()]


def check_datasets(data_home: str | os.PathLike[str] | None = None) -> Iterator[DatasetStatus]:
    """Search for the files of every data set and load it if they are available; nothing is downloaded."""
    for entry in CATALOG:
        yield check_dataset(entry, data_home)


def check_dataset(entry: CatalogEntry, data_home: str | os.PathLike[str] | None = None) -> DatasetStatus:
    """Search for the files of one data set and load it if they are available; nothing is downloaded."""
    options = FetchOptions(data_home, download_if_missing=False)
    found = (find_file(file, options) for file in (*entry.files, *entry.other_files))
    paths = tuple(path for path in found if path is not None)
    arguments = {"data_home": data_home, "download_if_missing": False} if entry.files else {}
    try:
        bunch = entry.load(**arguments)
    except DatasetNotFoundError as error:
        return DatasetStatus(entry, "missing", str(error), paths)
    except DatasetError as error:
        return DatasetStatus(entry, "damaged", str(error), paths)
    views = tuple((name, _width(columns, bunch.data)) for name, columns in bunch.views.items())
    return DatasetStatus(entry, "available", "", paths, bunch.data.shape[0], len(bunch.target_names), views)


def _width(columns: slice | int, data: Any) -> int:
    """Return the number of columns of a view, or of samples of a channel of recordings."""
    return columns.stop - columns.start if isinstance(columns, slice) else int(data.shape[-1])
