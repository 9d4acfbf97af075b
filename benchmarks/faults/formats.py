"""Small files of every format that the library reads, and how it reads them.

``write`` writes the file of a format, always the same; ``read`` returns its content by the library as plain values:
``values``, which a checksum of the format protects if ``protected``, and ``names``, which none does.
"""

import hashlib
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

N_ROWS, N_COLUMNS = 60, 4


@dataclass(frozen=True)
class Format:
    """A format, or a way in which the library reads one."""

    name: str
    file: str
    write: Callable[[Path], None]
    read: Callable[[Path], dict[str, Any]]
    protected: bool = False  # whether the file has a checksum of its values
    empty_is_new: bool = False  # whether an empty file is one to which nothing has been written yet


def table() -> np.ndarray:
    """Numbers of a table."""
    return np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS)).round(4)


def _frame() -> Any:
    import pandas as pd

    frame = pd.DataFrame(table(), columns=[f"x{i}" for i in range(N_COLUMNS)])
    return frame.assign(label=np.where(np.arange(N_ROWS) % 3 == 0, "one", "two"))


def digest(part: Any) -> str:
    """A short text that differs if the values do."""
    if isinstance(part, np.ndarray) and part.dtype.kind in "fiub":
        content = f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes()
    elif isinstance(part, (list, tuple)):
        content = "|".join(map(digest, part)).encode()
    elif isinstance(part, np.ndarray):
        content = repr(part.tolist()).encode()
    else:
        content = repr(part).encode()
    return hashlib.sha256(content).hexdigest()[:16]


# Tables that are read in blocks, for fits of rows outside of memory.


def _read_blocks(path: Path) -> dict[str, Any]:
    from cmvmed.data.sources.files import FileTable
    from cmvmed.data.sources.parts import open_table

    found = open_table(path)
    if not isinstance(found, FileTable):
        return {"values": list(found.blocks(25)), "names": None}
    rows, labels, n_rows = found.labels("label", -1)
    features = found.select([name for name in found.column_names if name != "label"])
    return {"values": [list(features.blocks(25)), rows, labels, n_rows], "names": found.column_names}


def _write_parquet(path: Path, checksum: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    content = pa.Table.from_pandas(_frame(), preserve_index=False)
    parquet.write_table(content, path, row_group_size=25, write_page_checksum=checksum)


def _write_zarr(path: Path, checksum: bool) -> None:
    import zarr

    codecs = {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]} if checksum else {}
    array = zarr.create_array(path, shape=(N_ROWS, N_COLUMNS), chunks=(20, N_COLUMNS), dtype="f8", **codecs)
    array[:] = table()


# Tables of the workbench.


def _read_workbench(path: Path) -> dict[str, Any]:
    from cmvmed.workbench.tables.delimited import DelimitedOptions
    from cmvmed.workbench.tables.read import read_table

    found = read_table(path, DelimitedOptions())
    columns = [found.frame[name].to_numpy() for name in found.frame.columns]
    signals = [
        [None if item is None else np.asarray(item) for item in signal.items] for signal in found.signals.values()
    ]
    return {"values": [columns, signals], "names": [list(found.frame.columns), list(found.signals)]}


def _write_npz(path: Path) -> None:
    np.savez_compressed(path, features=table(), label=np.where(np.arange(N_ROWS) % 3 == 0, "one", "two"))


def _write_ts(path: Path) -> None:
    head = ["@problemName steps", "@timeStamps false", "@univariate false", "@classLabel true walk rest", "@data"]
    cases = [":".join(",".join(f"{x:.3f}" for x in row) for row in (case, -case)) for case in table()[:20]]
    lines = [f"{case}:{'walk' if i % 2 else 'rest'}" for i, case in enumerate(cases)]
    path.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


# Recordings.


def _signals() -> np.ndarray:
    """Two channels whose values 16 bits hold exactly."""
    return np.random.default_rng(0).integers(-(2**14), 2**14, size=(2, 400)) / 2**15


def _read_recording(path: Path, rate: float | None = None) -> dict[str, Any]:
    from cmvmed.recordings import read_recording

    found = read_recording(path, sampling_rate=rate)
    tracks = [
        [np.asarray(stretch.samples.read(0, stretch.samples.n_samples)) for stretch in track.stretches]
        for track in found.sensors.values()
    ]
    rates = [track.sampling_rate for track in found.sensors.values()]
    return {"values": tracks, "names": [list(found.sensors), rates, found.start]}


def _write_sound(path: Path) -> None:
    import soundfile

    soundfile.write(path, _signals().T, 100, subtype="PCM_16")


def _write_hdf5(path: Path, checksum: bool) -> None:
    import h5py

    with h5py.File(path, "w", libver="latest" if checksum else None) as file:  # the latest has checksums of metadata
        for name, signal in zip(("mic", "geo"), _signals(), strict=True):
            made = file.create_dataset(name, data=signal[None], chunks=(1, 100), fletcher32=checksum)
            made.attrs["sampling_rate"] = 100.0


def _write_hdf5_cases(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.attrs["sampling_rate"] = 100.0
        for name, signal in zip(("mic", "geo"), _signals(), strict=True):
            file[name] = signal.reshape(8, 50)
        file["labels"] = ["walk", "rest"] * 4


def _write_edf(path: Path) -> None:
    import pyedflib

    header = pyedflib.highlevel.make_signal_header
    with pyedflib.EdfWriter(str(path), 2) as writer:
        writer.setSignalHeaders(
            [header(name, sample_frequency=100, physical_min=-1, physical_max=1) for name in ("a", "b")]
        )
        writer.writeSamples(list(_signals()))


def _write_mseed(path: Path) -> None:
    import pymseed

    traces = pymseed.MS3TraceList()
    start = pymseed.timestr2nstime("2024-01-01T00:00:00Z")
    values = np.round(_signals()[0] * 2**15).astype(np.int32)
    traces.add_data("FDSN:XX_TEST__B_H_Z", values.tolist(), "i", 100.0, starttime=start)
    traces.to_file(str(path))


# Files that the library writes.


def _write_results(path: Path) -> None:
    from experiments.result_rows import Key, ResultRow
    from experiments.store import ResultStore

    with ResultStore(path) as store:
        for split in range(12):
            key = Key("table1", "gauss", 30, split, "MED, each view", "defaults")
            store.add(ResultRow(**key._asdict(), status="done", accuracy=0.5 + 0.01 * split, n_train=1030, n_test=200))


def _read_results(path: Path) -> dict[str, Any]:
    from experiments.store import ResultStore

    with ResultStore(path, read_only=True) as store:
        rows = [astuple(row) for row in store.rows()]
        return {"values": [rows, sorted(store.done_keys())], "names": None}


def _write_labels(path: Path) -> None:
    from cmvmed.workbench.label_store import LabelStore

    with LabelStore(path) as store:
        store.add_classes(["walk", "rest"])
        for i in range(25):
            label = "walk" if i % 2 else "rest"
            store.record(f"w{i:03d}", "label", label, chosen_by="random", window="w", seen=None)


def _read_labels(path: Path) -> dict[str, Any]:
    from cmvmed.workbench.label_store import LabelStore

    with LabelStore(path) as store:
        events = [(event.item, event.action, event.label, event.chosen_by) for event in store.events()]
        current = {item: event.label for item, event in store.current().items()}
        return {"values": [events, sorted(current.items()), store.classes], "names": None}


def _write_model(path: Path) -> None:
    import cmvmed

    X, y = table(), np.where(np.arange(N_ROWS) < 12, np.arange(N_ROWS) % 2, -1)
    cmvmed.CMVMED(views=[2, 2], n_stages=2).fit(X, y).save(path)


def _read_model(path: Path) -> dict[str, Any]:
    import cmvmed

    model = cmvmed.load(path)
    return {"values": [model.predict_proba(table()), model.classes_, model.get_params()], "names": None}


PROJECT = """# A project
[data]
path = "windows.csv"
id = "window"
labels = "stroke"
unlabeled = ["", "unknown"]

[views.first]
columns = ["x0", "x1"]

[views.second]
columns = ["x2", "x3"]

[model]
temperature = 0.3
"""


def _write_project(path: Path) -> None:
    path.write_text(PROJECT, encoding="utf-8")


def _read_project(path: Path) -> dict[str, Any]:
    from cmvmed.workbench import Project

    return {"values": repr(Project.load(path).settings), "names": None}


FORMATS = {
    one.name: one
    for one in (
        Format("csv, in blocks", "rows.csv", lambda path: _frame().to_csv(path, index=False), _read_blocks),
        Format("Parquet, in blocks", "rows.parquet", lambda path: _write_parquet(path, False), _read_blocks),
        Format("Parquet with checksums", "rows.parquet", lambda path: _write_parquet(path, True), _read_blocks, True),
        Format("Feather, in blocks", "rows.feather", lambda path: _frame().to_feather(path), _read_blocks),
        Format("npy, in blocks", "rows.npy", lambda path: np.save(path, table()), _read_blocks),
        Format("Zarr", "rows.zarr", lambda path: _write_zarr(path, False), _read_blocks),
        Format("Zarr with checksums", "rows.zarr", lambda path: _write_zarr(path, True), _read_blocks, True),
        Format("csv", "rows.csv", lambda path: _frame().to_csv(path, index=False), _read_workbench),
        Format("Parquet", "rows.parquet", lambda path: _write_parquet(path, False), _read_workbench),
        Format("Feather", "rows.feather", lambda path: _frame().to_feather(path), _read_workbench),
        Format("npz", "rows.npz", _write_npz, _read_workbench, True),
        Format("ts", "cases.ts", _write_ts, _read_workbench),
        Format("HDF5 cases", "cases.h5", _write_hdf5_cases, _read_workbench),
        Format("HDF5", "long.h5", lambda path: _write_hdf5(path, False), _read_recording),
        Format("HDF5 with checksums", "long.h5", lambda path: _write_hdf5(path, True), _read_recording, True),
        Format("npy", "long.npy", lambda path: np.save(path, _signals()), lambda path: _read_recording(path, 100.0)),
        Format("wav", "long.wav", _write_sound, _read_recording),
        Format("flac", "long.flac", _write_sound, _read_recording, True),
        Format("EDF", "long.edf", _write_edf, _read_recording),
        Format("MiniSEED", "long.mseed", _write_mseed, _read_recording),
        Format("project file", "cmvmed.toml", _write_project, _read_project),
        Format("result store", "results.sqlite", _write_results, _read_results, True),
        Format("label store", "cmvmed.labels.sqlite", _write_labels, _read_labels, True, empty_is_new=True),
        Format("model file", "model.cmvmed", _write_model, _read_model, True),
    )
}
