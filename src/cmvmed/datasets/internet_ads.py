"""UCI Internet Advertisements: images on web pages, advertisement or not."""

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cmvmed.datasets.archives import zip_files
from cmvmed.datasets.bunch import Dataset, View, to_bunch
from cmvmed.datasets.descriptions import describe
from cmvmed.datasets.errors import DatasetError
from cmvmed.datasets.locations import DataFile, Lookup, first_there, read

HOME = "https://archive.ics.uci.edu/dataset/51/internet+advertisements"
PACKED_ARCHIVE = DataFile(
    name="ad-dataset.zip",
    folder="internet_ads",
    url="",
    home=HOME,
    max_bytes=4_000_000,
    sha256=("ec24f1b9285079146dad6af5edb1f9c1bde3811576cc53368e60708d2165e47c",),
)
# The checksum of this packaging is not known here; rows, classes and widths are checked instead.
UCI_ARCHIVE = DataFile(
    name="internet+advertisements.zip",
    folder="internet_ads",
    url="https://archive.ics.uci.edu/static/public/51/internet+advertisements.zip",
    home=HOME,
    max_bytes=4_000_000,
)
MAX_MEMBER_BYTES = 32_000_000

# The words before the star of a column's name, for the paper's two views; the columns of the third have no star.
VIEW_TERMS = {"image": ("url", "alt", "caption"), "context": ("origurl", "ancurl")}
GEOMETRY = ("height", "width", "aratio", "local")
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
        Add height, width, aspect ratio and locality of the image as a third view. "complete" takes the view as
        missing in the 920 rows that lack one of the four values; "published" leaves each value as in the file, NaN
        where it is unknown.
    data_home : path, optional
        Folder that holds the archive, either in a subfolder ``internet_ads`` or directly; searched before the folder
        in the environment variable ``CMVMED_DATA`` and the download cache.
    download_if_missing : bool, default=True
        Download the archive of the UCI repository if no folder has it.
    verify : bool, default=True
        Check the archive's SHA-256 where it is known, and the numbers of rows, classes and columns.
    as_frame : bool, default=False
        Return ``data`` (dense) and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        See :func:`cmvmed.datasets.bunch.to_bunch`; ``data`` is a CSR array of shape (3279, 1554), or (3279, 1558) with
        geometry.

    Raises
    ------
    DatasetError
        If the archive is truncated, altered, hostile or another one.
    DatasetNotFoundError
        If the archive is nowhere and cannot be downloaded.
    """
    if geometry not in (None, "complete", "published"):
        raise ValueError(f"geometry={geometry!r} is none of None, 'complete' and 'published'.")
    lookup = Lookup(data_home, download_if_missing, verify)
    archive = first_there([PACKED_ARCHIVE, UCI_ARCHIVE], lookup) or UCI_ARCHIVE
    members = zip_files(
        read(archive, lookup), {"ad.data", "ad.names"}, name=archive.name, max_member_bytes=MAX_MEMBER_BYTES
    )
    table = _parse(members["ad.data"], members["ad.names"])
    views = {view: _phrases(table, view) for view in VIEW_TERMS}
    if verify:
        _refuse_other_counts(table, views)
    if geometry is not None:
        views["geometry"] = _geometry(table, complete=geometry == "complete")
    dataset = Dataset(views, table.target, ["nonad", "ad"], describe("internet_ads"))
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _parse(data: bytes, names: bytes) -> _Table:
    """Parse ad.data, whose lines are values and a class, with the column names of ad.names, lines ``name: values.``."""
    statements = [line for line in names.decode("latin-1").splitlines() if ":" in line and not line.startswith("|")]
    columns = [line.rsplit(":", 1)[0] for line in statements]
    rows = [line.rpartition(",") for line in data.decode("latin-1").splitlines() if line.strip()]
    if not rows:
        raise DatasetError("ad.data holds no rows. Get the archive again.")
    try:
        values = np.loadtxt([row.replace("?", "nan") for row, _, _ in rows], delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        raise DatasetError(f"ad.data is not a table of numbers and question marks ({error}). Get it again.") from error
    if values.shape[1] != len(columns):
        raise DatasetError(
            f"ad.data has {values.shape[1]} columns of features, ad.names names {len(columns)}. Get the archive again."
        )
    labels = [label.strip() for _, _, label in rows]
    if unknown := set(labels) - {"ad.", "nonad."}:
        raise DatasetError(f"ad.data holds the class {sorted(unknown)[0]!r}, expected 'ad.' or 'nonad.'. Get it again.")
    return _Table(columns, values, np.array([label == "ad." for label in labels], dtype=np.int64))


def _phrases(table: _Table, view: str) -> View:
    """Return the 0/1 columns of a view."""
    chosen = [index for index, name in enumerate(table.columns) if name.split("*")[0] in VIEW_TERMS[view]]
    values = table.values[:, chosen]
    if not np.isin(values, (0, 1)).all():
        raise DatasetError(
            f"ad.data holds a value other than 0 and 1 in a phrase column of the view {view}. Get it again."
        )
    return View(sp.csr_array(values), [table.columns[index] for index in chosen])


def _geometry(table: _Table, *, complete: bool) -> View:
    """Return the four columns of the image's geometry as a sparse view with explicit NaN."""
    unknown = [name for name in GEOMETRY if name not in table.columns]
    if unknown:
        raise DatasetError(
            f"ad.names does not name the column {unknown[0]}, so there is no geometry view. Get it again."
        )
    values = table.values[:, [table.columns.index(name) for name in GEOMETRY]]
    unknown_cells = np.isnan(values)
    missing = unknown_cells.any(axis=1) if complete else unknown_cells.all(axis=1)
    return View(sp.csr_array(values), GEOMETRY, missing=np.asarray(missing))


def _refuse_other_counts(table: _Table, views: dict[str, View]) -> None:
    counts = dict(zip(CLASS_COUNTS, np.bincount(table.target, minlength=2).tolist(), strict=True))
    widths = {view: block.values.shape[1] for view, block in views.items()}
    if counts != CLASS_COUNTS or widths != WIDTHS:
        raise DatasetError(
            f"ad.data holds {counts} rows and views of {widths} columns, expected {CLASS_COUNTS} and {WIDTHS}: it is "
            "cut short or altered. Get it again, or pass verify=False to load it anyway."
        )
