"""SensIT Vehicle: acoustic and seismic features of vehicles, recorded by the nodes of a wireless sensor network."""

import io
import json
import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from cmvmed.datasets.bunch import Dataset, View, to_bunch
from experiments.datasets.file_formats import bunzip2
from experiments.datasets.locations import DataFile, DatasetError, FetchOptions, describe, first_available, read_file

WIDTHS = {"acoustic": 50, "seismic": 50}
N_FEATURES = sum(WIDTHS.values())
FULL_ROWS, FULL_CLASSES = 98_528, (1, 2, 3)

DITTO_COMMIT = "602f571de561f7796104860108dfa91182bfbcd8"
SUBSET_FILE = DataFile(
    name="mytrain.json",
    folder="sensit_vehicle",
    url=f"https://raw.githubusercontent.com/litian96/ditto/{DITTO_COMMIT}/data/vehicle/data/train/mytrain.json",
    homepage="https://github.com/litian96/ditto (data/vehicle/data/train/mytrain.json)",
    max_bytes=16_000_000,
    sha256=("a8c8b22a89ea64e5a563cffe94352b48c1f44a02100fd3256adfc09dc43d9ddc",),
)
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
MAX_TEXT_BYTES = 400_000_000


def libsvm_file(name: str) -> DataFile:
    """Describe a file of the LIBSVM data page, which has compressed files only."""
    compressed = name.endswith(".bz2")
    return DataFile(
        name=name,
        folder="sensit_vehicle",
        url=f"{LIBSVM}/multiclass/vehicle/{name}" if compressed else "",
        homepage=f"{LIBSVM}/multiclass.html",
        max_bytes=MAX_TEXT_BYTES,
    )


# Training file to test file. The first available training file is read; the first one is downloaded if there is none.
TEST_FILES = {
    libsvm_file(f"{stem}{suffix}"): libsvm_file(f"{stem}.t{suffix}")
    for stem in ("combined", "combined_scale")
    for suffix in (".bz2", "")
}


def fetch_sensit_vehicle(
    *,
    version: Literal["subset", "full"] = "subset",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    verify: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load SensIT Vehicle: an acoustic and a seismic view of passing vehicles.

    Parameters
    ----------
    version : {"subset", "full"}, default="subset"
        "subset": 1860 rows of 23 nodes, two vehicles. "full": 98,528 rows, three classes, from the LIBSVM files
        ``combined`` and ``combined.t`` (or ``combined_scale``, scaled to [-1, 1]), plain or as ``.bz2``.
    data_home : path, optional
        Folder with the files, in its subfolder ``sensit_vehicle`` or directly; searched before the folder
        in the environment variable ``CMVMED_DATA`` and the download cache.
    download_if_missing : bool, default=True
        Download the files if they are in no folder.
    verify : bool, default=True
        Check the SHA-256 of the subset, or the numbers of rows and classes of the full version.
    as_frame : bool, default=False
        Return ``data`` and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        A Bunch as :func:`load_digits_views` returns; ``data`` has 100 columns. The subset also has ``groups``
        (n_rows,), the node of each row, and ``group_names``; the full version ``is_test`` (n_rows,).

    Raises
    ------
    DatasetError
        If a file is truncated, altered or of another format.
    DatasetNotFoundError
        If a file is not found and cannot be downloaded.

    Examples
    --------
    >>> from experiments.datasets import DatasetNotFoundError, fetch_sensit_vehicle
    >>> try:
    ...     found = fetch_sensit_vehicle(download_if_missing=False).data.shape[1]
    ... except DatasetNotFoundError:  # the files are not on this machine
    ...     found = 100
    >>> found
    100
    """
    if version not in ("subset", "full"):
        raise ValueError(f"version must be 'subset' or 'full', got {version!r}.")
    options = FetchOptions(data_home, download_if_missing, verify)
    dataset = _subset(options) if version == "subset" else _full(options)
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _views(values: NDArray[np.float64]) -> dict[str, View]:
    acoustic = WIDTHS["acoustic"]
    return {
        "acoustic": View(values[:, :acoustic], [str(column) for column in range(acoustic)]),
        "seismic": View(values[:, acoustic:], [str(column) for column in range(WIDTHS["seismic"])]),
    }


def _subset(options: FetchOptions) -> Dataset:
    nodes = _nodes(read_file(SUBSET_FILE, options))
    values = np.vstack([x for x, _ in nodes.values()])
    target = (np.concatenate([y for _, y in nodes.values()]) > 0).astype(np.int64)
    groups = np.repeat(np.arange(len(nodes)), [len(y) for _, y in nodes.values()])
    extras = {"groups": groups, "group_names": np.array(list(nodes))}
    return Dataset(_views(values), target, ["type -1", "type +1"], describe("sensit_vehicle_subset"), extras)


def _nodes(data: bytes) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return features (n, 100) and classes (n,) of each node, in the order of the list of users in the file."""
    name = SUBSET_FILE.name
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{name} is not a valid JSON file ({error}). Get it again.") from error
    match content:
        case {"users": [_, *_] as users, "user_data": dict(user_data)} if sorted(map(str, users)) == sorted(user_data):
            return {user: _node(user_data[user], f"node {user} of {name}") for user in map(str, users)}
    raise DatasetError(
        f"{name} has no list 'users' with the 'user_data' of each: it is a different file. Get it again."
    )


def _node(content: object, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not (isinstance(content, Mapping) and {"x", "y"} <= content.keys()):
        raise DatasetError(f"The {name} has no 'x' and 'y': it is a different file. Get it again.")
    try:
        x, y = np.array(content["x"], dtype=np.float64), np.ravel(np.array(content["y"], dtype=np.float64))
    except (ValueError, TypeError, OverflowError) as error:
        raise DatasetError(
            f"The {name} has an entry that is not a table of numbers ({error}). Get it again."
        ) from error
    if x.shape != (len(y), N_FEATURES):
        raise DatasetError(
            f"The {name} has features of shape {x.shape}, expected {(len(y), N_FEATURES)}. Get it again."
        )
    if not (np.isfinite(x).all() and np.isin(y, (-1, 1)).all()):
        raise DatasetError(f"The {name} has a feature that is not finite or a class other than -1 and 1. Get it again.")
    return x, y


def _full(options: FetchOptions) -> Dataset:
    train_file = first_available(list(TEST_FILES), options) or next(iter(TEST_FILES))
    test_file = TEST_FILES[train_file]
    parts = [_svmlight(read_file(train_file, options), train_file.name)]
    files = [train_file.name]
    # A training file with all rows needs no test file.
    if len(parts[0][1]) != FULL_ROWS:
        parts.append(_svmlight(read_file(test_file, options), test_file.name))
        files.append(test_file.name)
    values = np.vstack([x for x, _ in parts])
    labels = np.concatenate([y for _, y in parts])
    if options.verify and (len(labels) != FULL_ROWS or set(labels) != set(FULL_CLASSES)):
        raise DatasetError(
            f"{' and '.join(files)} have {len(labels):,} rows of the classes {np.unique(labels).astype(int).tolist()}, "
            f"expected {FULL_ROWS:,} of {list(FULL_CLASSES)}: a file is truncated or altered. Get it again, or pass "
            "verify=False to load it anyway."
        )
    target = labels.astype(np.int64) - 1
    is_test = np.repeat(np.arange(len(parts)) == 1, [len(y) for _, y in parts])
    descr = describe("sensit_vehicle_full", rows=len(labels), files=" and ".join(f"``{name}``" for name in files))
    return Dataset(_views(values), target, ["class 1", "class 2", "class 3"], descr, {"is_test": is_test})


def _svmlight(data: bytes, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features (n, 100) and classes (n,) of a file in LIBSVM format, which may be compressed with bzip2."""
    text = bunzip2(data, name=name, max_bytes=MAX_TEXT_BYTES) if name.endswith(".bz2") else data
    try:
        sparse, labels = load_svmlight_file(io.BytesIO(text), n_features=N_FEATURES, zero_based=False)
    except (ValueError, OverflowError, UnicodeError) as error:
        raise DatasetError(
            f"{name} is not a file in LIBSVM format with {N_FEATURES} features ({error}). Get it again."
        ) from error
    values = sparse.toarray()
    if not len(labels) or not np.isin(labels, FULL_CLASSES).all() or not np.isfinite(values).all():
        raise DatasetError(
            f"{name} has no rows, a class other than {list(FULL_CLASSES)} or a value that is not finite. Get it again."
        )
    return values, labels
