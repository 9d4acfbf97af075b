"""Damaged files of tables: an error that names the file, whatever the library that decodes them raises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.feather
import pytest
import zarr

from cmvmed.data.sources.files import open_files
from cmvmed.data.sources.parts import open_table
from cmvmed.data.sources.zarr_arrays import open_zarr


def rows_of(table):
    return np.concatenate(list(table.blocks(7)))


@pytest.fixture
def array(tmp_path):
    values = np.arange(60.0).reshape(20, 3) + 1.0
    made = zarr.create_array(tmp_path / "rows.zarr", shape=values.shape, chunks=(5, 3), dtype="f8")
    made[:] = values
    np.testing.assert_array_equal(rows_of(open_zarr(tmp_path / "rows.zarr")), values)
    return tmp_path / "rows.zarr"


def chunks_of(array):
    return sorted(file for file in (array / "c").rglob("*") if file.is_file())


def test_a_lost_chunk_names_the_array(array):
    chunks_of(array)[1].unlink()
    with pytest.raises(ValueError, match=r"1 of the 4 chunks .*rows\.zarr"):
        open_zarr(array)


def test_a_damaged_chunk_names_the_array(array):
    chunks_of(array)[2].write_bytes(b"no frame of a compressor")
    table = open_zarr(array)
    with pytest.raises(ValueError, match=r"rows\.zarr cannot be read"):
        rows_of(table)
    with pytest.raises(ValueError, match=r"rows\.zarr cannot be read"):
        table.take(np.array([0, 11]))


def test_an_array_of_one_dimension_is_named(tmp_path):
    zarr.create_array(tmp_path / "signal.zarr", shape=(4,), dtype="f8")[:] = 1.0
    with pytest.raises(ValueError, match=r"signal\.zarr has the shape \(4,\)"):
        open_zarr(tmp_path / "signal.zarr")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', ("], ids=["empty", "header"])
def test_what_is_left_of_an_npy_file(tmp_path, content):
    (tmp_path / "rows.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.npy cannot be read"):
        open_table(tmp_path / "rows.npy")


def test_offsets_of_a_feather_file_that_lead_outside_of_memory(tmp_path):
    """Uncompressed buffers have no checksum: Arrow reads what their offsets say, unless they are validated."""
    path = tmp_path / "rows.feather"
    frame = pd.DataFrame({"number": np.arange(40.0), "text": [f"word{i:02d}" for i in range(40)]})
    pyarrow.feather.write_feather(frame, path, compression="uncompressed")
    content = path.read_bytes()
    assert open_files(path).labels("text", -1).labels[3] == "word03"
    width = 8 if content.count(np.arange(6, 30, 6, dtype="i8").tobytes()) else 4
    start = content.index(np.arange(6, 30, 6, dtype=f"i{width}").tobytes())
    wrong = np.array([2**30], dtype=f"i{width}").tobytes()
    path.write_bytes(content[: start + 2 * width] + wrong + content[start + 3 * width :])
    with pytest.raises(ValueError, match=r"rows\.feather cannot be read: .*[Oo]ffset"):
        open_files(path).labels("text", -1)
    np.testing.assert_array_equal(rows_of(open_files(path).select(["number"]))[:, 0], np.arange(40.0))


def test_a_size_that_no_memory_has_names_the_file(tmp_path):
    path = tmp_path / "rows.feather"
    pd.DataFrame({"a": np.arange(5.0)}).to_feather(path)
    table = open_files(path)

    class Fragment:
        format, filesystem = table.dataset.format, table.dataset.filesystem

        def __init__(self):
            self.path = str(path)

        def to_batches(self, *_, **__):
            raise pyarrow.lib.ArrowMemoryError("malloc of size 7575752763121033472 failed")

    with pytest.raises(MemoryError, match=r"rows\.feather cannot be read: malloc"):
        list(table._matrices(Fragment(), 5))
