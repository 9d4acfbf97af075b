"""Damaged files of tables and signals in projects: one error that names the file."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cmvmed.recordings import read_hdf5
from cmvmed.workbench.tables.delimited import DelimitedOptions
from cmvmed.workbench.tables.read import read_table
from cmvmed.workbench.user_errors import ProjectError


def read(path):
    return read_table(path, DelimitedOptions()).frame


def test_an_npz_file_with_damaged_contents(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, a=np.random.default_rng(0).normal(size=(50, 4)))
    content = path.read_bytes()
    n_refused = 0
    for start in range(40, len(content) - 60, 101):
        path.write_bytes(content[:start] + bytes(20) + content[start + 20 :])
        with pytest.raises(ProjectError, match=r"rows\.npz"):
            read(path)
        n_refused += 1
    assert n_refused > 10
    path.write_bytes(content[:200] + content[260:])
    with pytest.raises(ProjectError, match=r"rows\.npz.*damaged"):
        read(path)


def test_an_encrypted_npz_file(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, a=np.arange(6.0).reshape(3, 2))
    assert read(path).shape == (3, 2)
    content = bytearray(path.read_bytes())
    for flags in (6, content.index(b"PK\x01\x02") + 8):  # of the entry, and of it in the directory
        content[flags] |= 1
    path.write_bytes(content)
    with pytest.raises(ProjectError, match=r"^rows\.npz.*damaged"):
        read(path)


@pytest.mark.parametrize("metadata", [b"{", json.dumps({"columns": [{"numpy_type": "floatF4"}]}).encode()])
def test_metadata_of_pandas_that_are_damaged(tmp_path, metadata):
    table = pa.table({"a": [1.0, 2.0]}).replace_schema_metadata({b"pandas": metadata})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ProjectError, match=r"rows\.parquet"):
        read(tmp_path / "rows.parquet")


def test_a_feather_file_whose_offsets_lead_outside(tmp_path):
    path = tmp_path / "rows.feather"
    frame = pd.DataFrame({"text": ["abcdef"] * 30})
    pyarrow.feather.write_feather(frame, path, compression="uncompressed")
    content = path.read_bytes()
    width = 8 if content.count(np.arange(6, 30, 6, dtype="i8").tobytes()) else 4
    start = content.index(np.arange(6, 30, 6, dtype=f"i{width}").tobytes())
    path.write_bytes(content[:start] + np.array([2**30], dtype=f"i{width}").tobytes() + content[start + width :])
    with pytest.raises(ProjectError, match=r"rows\.feather.*[Oo]ffset"):
        read(path)


def test_a_checksum_of_hdf5_names_the_file(tmp_path):
    path = tmp_path / "cases.h5"
    signals = np.random.default_rng(0).normal(size=(4, 1, 50))
    with h5py.File(path, "w") as file:
        file.attrs["sampling_rate"] = 10.0
        file.create_dataset("mic", data=signals, chunks=(1, 1, 50), fletcher32=True)
    np.testing.assert_array_equal(read_hdf5(path)["mic"][2], signals[2])
    content = path.read_bytes()
    start = content.index(signals[2].tobytes())
    path.write_bytes(content[:start] + bytes(8) + content[start + 8 :])
    np.testing.assert_array_equal(read_hdf5(path)["mic"][1], signals[1])
    with pytest.raises(ValueError, match=r"cases\.h5.*damaged"):
        read_hdf5(path)["mic"][2]
