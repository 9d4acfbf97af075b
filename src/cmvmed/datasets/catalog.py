"""All data sets by name, and what a search for their files finds on this machine."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from cmvmed.datasets.bundled import load_breast_cancer_views, load_digits_views
from cmvmed.datasets.errors import DatasetError, DatasetNotFoundError
from cmvmed.datasets.internet_ads import PACKED_ARCHIVE, UCI_ARCHIVE, fetch_internet_ads
from cmvmed.datasets.locations import DATA_VARIABLE, DataFile, Lookup, cache_folders, data_folders, find
from cmvmed.datasets.multiple_features import CSV_FILES, UCI_ZIP, fetch_multiple_features
from cmvmed.datasets.sensit_vehicle import SUBSET_FILE, TEST_FILES, fetch_sensit_vehicle
from cmvmed.datasets.webkb import FEATURES_FILE, RAW_ARCHIVE, SPLITS_FILE, fetch_webkb_course

FIRST_FULL_FILE = next(iter(TEST_FILES))


@dataclass(frozen=True)
class CatalogEntry:
    """A data set that can be loaded by one call.

    Attributes
    ----------
    name : str
        Short name.
    title : str
        What it is of.
    call : str
        The call of :mod:`cmvmed.datasets` that loads it.
    load : callable
        The same call, which takes ``data_home`` and ``download_if_missing`` if there are files.
    wanted : tuple of DataFile
        The files to get where none is there; empty for a data set that needs none.
    others : tuple of DataFile
        Further forms of the same data, and files that add to it, which are read where they are there.
    """

    name: str
    title: str
    call: str
    load: Callable[..., Any]
    wanted: tuple[DataFile, ...] = ()
    others: tuple[DataFile, ...] = ()


CATALOG = (
    CatalogEntry("webkb", "course pages, from html", "fetch_webkb_course()", fetch_webkb_course, (RAW_ARCHIVE,)),
    CatalogEntry(
        "webkb-preprocessed",
        "course pages, the paper's features",
        "fetch_webkb_course(preprocessed=True)",
        partial(fetch_webkb_course, preprocessed=True),
        (FEATURES_FILE,),
        (SPLITS_FILE,),
    ),
    CatalogEntry(
        "ads", "internet advertisements", "fetch_internet_ads()", fetch_internet_ads, (UCI_ARCHIVE,), (PACKED_ARCHIVE,)
    ),
    CatalogEntry(
        "sensit", "vehicles heard and felt, subset", "fetch_sensit_vehicle()", fetch_sensit_vehicle, (SUBSET_FILE,)
    ),
    CatalogEntry(
        "sensit-full",
        "vehicles heard and felt, all rows",
        'fetch_sensit_vehicle(version="full")',
        partial(fetch_sensit_vehicle, version="full"),
        (FIRST_FULL_FILE, TEST_FILES[FIRST_FULL_FILE]),
        tuple(file for pair in list(TEST_FILES.items())[1:] for file in pair),
    ),
    CatalogEntry(
        "mfeat",
        "handwritten digits in six descriptions",
        "fetch_multiple_features()",
        fetch_multiple_features,
        (UCI_ZIP,),
        tuple(CSV_FILES.values()),
    ),
    CatalogEntry("digits", "halves of handwritten digits", "load_digits_views()", load_digits_views),
    CatalogEntry("breast-cancer", "three views of tumours", "load_breast_cancer_views()", load_breast_cancer_views),
)


@dataclass(frozen=True)
class Finding:
    """What the search for one data set found; the numbers are counted in the loaded data, zero where there are none."""

    entry: CatalogEntry
    state: Literal["there", "missing", "damaged"]
    problem: str = ""  # the loader's own words
    paths: tuple[Path, ...] = ()  # files of this data set that were found
    rows: int = 0
    classes: int = 0
    views: tuple[tuple[str, int], ...] = ()  # names and numbers of columns

    @property
    def bytes(self) -> int:
        """Size of the files together."""
        return sum(path.stat().st_size for path in self.paths)


def searched_folders(data_home: str | os.PathLike[str] | None = None) -> list[tuple[Path, str]]:
    """Return the folders that are searched, in order, each with who named it."""
    named = data_folders(Lookup(data_home))
    origins = ["data folder given"] * (data_home is not None) + [DATA_VARIABLE]
    folders = list(zip(named, origins, strict=False))
    return folders + [(folder, "download cache") for folder in cache_folders()]


def check_datasets(data_home: str | os.PathLike[str] | None = None) -> Iterator[Finding]:
    """Look for every data set and load what is there; nothing is downloaded."""
    for entry in CATALOG:
        yield look_for(entry, data_home)


def look_for(entry: CatalogEntry, data_home: str | os.PathLike[str] | None = None) -> Finding:
    """Look for one data set and load it if it is there; nothing is downloaded."""
    lookup = Lookup(data_home, download_if_missing=False)
    found = (find(file, lookup) for file in (*entry.wanted, *entry.others))
    paths = tuple(path for path in found if path is not None)
    where = {"data_home": data_home, "download_if_missing": False} if entry.wanted else {}
    try:
        bunch = entry.load(**where)
    except DatasetNotFoundError as error:
        return Finding(entry, "missing", str(error), paths)
    except DatasetError as error:
        return Finding(entry, "damaged", str(error), paths)
    views = tuple((name, columns.stop - columns.start) for name, columns in bunch.views.items())
    return Finding(entry, "there", "", paths, bunch.data.shape[0], len(bunch.target_names), views)
