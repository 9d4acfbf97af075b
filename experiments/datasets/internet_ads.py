"""UCI Internet Advertisements: images on web pages, advertisement or not."""

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cmvmed.datasets.bunch import Dataset, View, to_bunch
from experiments.datasets.file_formats import parse_table, read_zip
from experiments.datasets.locations import DataFile, DatasetError, FetchOptions, describe, first_available, read_file

HOMEPAGE = "https://archive.ics.uci.edu/dataset/51/internet+advertisements"
AD_DATASET_ARCHIVE = DataFile(
    name="ad-dataset.zip",
    folder="internet_ads",
    url="",
    homepage=HOMEPAGE,
    max_bytes=4_000_000,
    sha256=("ec24f1b9285079146dad6af5edb1f9c1bde3811576cc53368e60708d2165e47c",),
)
# No checksum of this archive is known; rows, classes and numbers of columns are checked instead.
UCI_ARCHIVE = DataFile(
    name="internet+advertisements.zip",
    folder="internet_ads",
    url="https://archive.ics.uci.edu/static/public/51/internet+advertisements.zip",
    homepage=HOMEPAGE,
    max_bytes=4_000_000,
)
MAX_MEMBER_BYTES = 32_000_000

# Prefixes (the part before the star) of the column names of the two views in the paper.
VIEW_PREFIXES = {"image": ("url", "alt", "caption"), "context": ("origurl", "ancurl")}
GEOMETRY_COLUMNS = ("height", "width", "aratio", "local")
WIDTHS = {"image": 587, "context": 967}
CLASS_COUNTS = {"nonad": 2820, "ad": 459}


@dataclass(frozen=True)
class _Table:
    columns: list[str]  # n_columns names
    values: NDArray[np.float64]  # (n_rows, n_columns), NaN where the file has a question mark
    target: NDArray[np.int64]  # (n_rows,), 1 for an advertisement


def fetch_internet_ads(
    *,
    geometry: Literal["complete", "published"] | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    verify: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load UCI Internet Advertisements: 587 + 967 binary features in two views, 3279 rows.

    Parameters
    ----------
    geometry : {"complete", "published"}, optional
        Add height, width, aspect ratio and locality of the image as a third view. "complete": the view is missing
        in the 920 rows without one of the four values. "published": each value as in the file, NaN where it is
        unknown.
    data_home : path, optional
        Folder with the archive, in its subfolder ``internet_ads`` or directly; searched before the folder in
        the environment variable ``CMVMED_DATA`` and the download cache.
    download_if_missing : bool, default=True
        Download the archive of the UCI repository if it is in no folder.
    verify : bool, default=True
        Check the SHA-256 of the archive if it is known, and the numbers of rows, classes and columns.
    as_frame : bool, default=False
        Return ``data`` (dense) and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        A Bunch as :func:`load_digits_views` returns; ``data`` is a CSR array of shape (3279, 1554), or (3279, 1558) with
        geometry.

    Raises
    ------
    DatasetError
        If the archive is truncated, altered, malicious or a different one.
    DatasetNotFoundError
        If the archive is not found and cannot be downloaded.

    Examples
    --------
    >>> from experiments.datasets import DatasetNotFoundError, fetch_internet_ads
    >>> try:
    ...     found = fetch_internet_ads(download_if_missing=False).data.shape
    ... except DatasetNotFoundError:  # the files are not on this machine
    ...     found = (3279, 1554)
    >>> found
    (3279, 1554)
    """
    if geometry not in (None, "complete", "published"):
        raise ValueError(f"geometry must be None, 'complete' or 'published', got {geometry!r}.")
    options = FetchOptions(data_home, download_if_missing, verify)
    archive = first_available([AD_DATASET_ARCHIVE, UCI_ARCHIVE], options) or UCI_ARCHIVE
    members = read_zip(
        read_file(archive, options), {"ad.data", "ad.names"}, name=archive.name, max_member_bytes=MAX_MEMBER_BYTES
    )
    table = _parse(members["ad.data"], members["ad.names"])
    views = {view: _phrase_view(table, view) for view in VIEW_PREFIXES}
    if verify:
        _check_counts(table, views)
    if geometry is not None:
        views["geometry"] = _geometry_view(table, complete=geometry == "complete")
    dataset = Dataset(views, table.target, ["nonad", "ad"], describe("internet_ads"))
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _parse(data: bytes, names: bytes) -> _Table:
    """Parse ad.data, whose lines are values and a class, with the column names of ad.names, lines ``name: values.``."""
    definitions = [line for line in names.decode("latin-1").splitlines() if ":" in line and not line.startswith("|")]
    columns = [line.rsplit(":", 1)[0] for line in definitions]
    rows = [line.rpartition(",") for line in data.decode("latin-1").splitlines() if line.strip()]
    if not rows:
        raise DatasetError("ad.data has no rows. Get the archive again.")
    values = parse_table([row.replace("?", "nan") for row, _, _ in rows], name="ad.data", delimiter=",")
    if values.shape[1] != len(columns):
        raise DatasetError(
            f"ad.data has {values.shape[1]} feature columns, ad.names has {len(columns)}. Get the archive again."
        )
    labels = [label.strip() for _, _, label in rows]
    if unknown := set(labels) - {"ad.", "nonad."}:
        raise DatasetError(f"ad.data has the class {sorted(unknown)[0]!r}, expected 'ad.' or 'nonad.'. Get it again.")
    return _Table(columns, values, np.array([label == "ad." for label in labels], dtype=np.int64))


def _phrase_view(table: _Table, view: str) -> View:
    """Return the binary columns of a view."""
    chosen = [index for index, name in enumerate(table.columns) if name.split("*")[0] in VIEW_PREFIXES[view]]
    values = table.values[:, chosen]
    if not np.isin(values, (0, 1)).all():
        raise DatasetError(
            f"ad.data has a value other than 0 and 1 in a phrase column of the view {view}. Get it again."
        )
    return View(sp.csr_array(values), [table.columns[index] for index in chosen])


def _geometry_view(table: _Table, *, complete: bool) -> View:
    """Return the four columns of the image geometry as a sparse view with explicit NaN."""
    absent = [name for name in GEOMETRY_COLUMNS if name not in table.columns]
    if absent:
        raise DatasetError(f"ad.names has no column {absent[0]}, which the geometry view needs. Get it again.")
    values = table.values[:, [table.columns.index(name) for name in GEOMETRY_COLUMNS]]
    is_unknown = np.isnan(values)
    missing = is_unknown.any(axis=1) if complete else is_unknown.all(axis=1)
    return View(sp.csr_array(values), GEOMETRY_COLUMNS, missing=np.asarray(missing))


def _check_counts(table: _Table, views: dict[str, View]) -> None:
    counts = dict(zip(CLASS_COUNTS, np.bincount(table.target, minlength=2).tolist(), strict=True))
    widths = {name: view.values.shape[1] for name, view in views.items()}
    if counts != CLASS_COUNTS or widths != WIDTHS:
        raise DatasetError(
            f"ad.data has {counts} rows and views of {widths} columns, expected {CLASS_COUNTS} and {WIDTHS}: it is "
            "truncated or altered. Get it again, or pass verify=False to load it anyway."
        )
