"""No row of a folder is left out silently, and files that change or are damaged while they are read are refused."""

import os
import time
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zarr

from cmvmed.data.sources.files import FileStamps, open_files
from cmvmed.data.sources.zarr_arrays import open_zarr


def write(path, values, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table({"a": values}), path, **options)


def column(table):
    return np.concatenate([block[:, 0] for block in table.blocks(7)])


def test_partitions_are_read_in_the_order_of_their_names(tmp_path):
    write(tmp_path / "year=2026" / "month=2" / "x.parquet", [4.0, 5.0])
    write(tmp_path / "year=2025" / "x.parquet", [1.0, 2.0])
    write(tmp_path / "year=2026" / "month=1" / "x.parquet", [3.0])
    write(tmp_path / "z.parquet", [6.0])
    table = open_files(tmp_path)
    np.testing.assert_array_equal(column(table), [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(table.take(np.array([0, 2, 5]))[:, 0], [1, 3, 6])


def test_other_folders_are_refused_not_left_out(tmp_path):
    write(tmp_path / "x.parquet", [1.0])
    write(tmp_path / "more" / "y.parquet", [2.0])
    with pytest.raises(ValueError, match="folder 'more'"):
        open_files(tmp_path)


def test_a_link_that_leads_nowhere_is_an_error(tmp_path):
    write(tmp_path / "x.parquet", [1.0])
    (tmp_path / "y.parquet").symlink_to(tmp_path / "gone.parquet")
    with pytest.raises(FileNotFoundError, match=r"y\.parquet leads nowhere"):
        open_files(tmp_path)
    with pytest.raises(FileNotFoundError, match="leads nowhere"):
        open_files(tmp_path / "y.parquet")


def test_links_to_files_are_read(tmp_path):
    write(tmp_path / "real" / "x.parquet", [1.0, 2.0])
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "x.parquet").symlink_to(tmp_path / "real" / "x.parquet")
    np.testing.assert_array_equal(column(open_files(tmp_path / "links")), [1, 2])


@pytest.mark.parametrize("read", [column, lambda table: table.take(np.array([0])), lambda t: t.labels("a", -1)])
def test_a_file_that_was_replaced_is_noticed_after_each_pass(tmp_path, read):
    path = tmp_path / "x.parquet"
    write(path, [1.0, 2.0])
    table = open_files(path)
    read(table)
    write(tmp_path / "new.parquet", [3.0, 4.0])  # as many rows of the same size
    os.replace(tmp_path / "new.parquet", path)
    with pytest.raises(ValueError, match=r"x\.parquet was changed"):
        read(table)


def test_stamps_see_changes_of_time_size_and_file(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    stamps = FileStamps.of([path])
    stamps.check()
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match="was changed"):
        stamps.check()
    path.unlink()
    with pytest.raises(ValueError, match="was deleted"):
        stamps.check()


@pytest.mark.skipif(os.name != "posix", reason="the time of a change of the file can be set")
def test_a_file_that_was_written_over_and_given_its_old_time_is_noticed(tmp_path):
    path = tmp_path / "x.parquet"
    write(path, [1.0, 2.0])
    table, before = open_files(path), path.stat()
    write(tmp_path / "new.parquet", [3.0, 4.0])
    time.sleep(0.02)  # clocks of file systems are coarse
    with path.open("r+b") as file:
        file.write((tmp_path / "new.parquet").read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat()[:7] == before[:7]
    with pytest.raises(ValueError, match=r"x\.parquet was changed"):
        column(table)


def test_a_file_that_was_deleted_is_named(tmp_path):
    write(tmp_path / "x.parquet", [1.0, 2.0])
    table = open_files(tmp_path / "x.parquet")
    (tmp_path / "x.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.parquet is not there, or was deleted while"):
        column(table)


def test_damaged_pages_are_refused_where_the_file_has_checksums(tmp_path):
    path = tmp_path / "x.parquet"
    values = np.random.default_rng(0).normal(size=4000)
    write(path, values, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10  # in the middle of the numbers
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read: .*(CRC|checksum)"):
        column(open_files(path))


def test_rows_lost_by_a_damaged_page_header_are_noticed(tmp_path):
    path = tmp_path / "x.parquet"
    write(path, ["a", "b"] * 10, row_group_size=5, write_page_checksum=True)
    header = pyarrow.parquet.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    content = bytearray(path.read_bytes())
    content[header + 1] ^= 2  # a dictionary becomes a page of data, without rows
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.parquet .* 5 rows less"):
        open_files(path).labels("a", -1)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (["a", "b"], "holds string values, but numbers in other files"),
        ([datetime(2026, 1, 1), datetime(2026, 1, 2)], "holds timestamp.* values, but numbers in other files"),
        ([1, 2**53 + 1], "not a number in double precision"),
    ],
)
def test_cells_of_a_later_file_are_named_with_file_and_column(tmp_path, values, match):
    write(tmp_path / "1.parquet", [1.0, 2.0])
    write(tmp_path / "2.parquet", values)
    with pytest.raises(ValueError, match=rf"Column 'a' of .*2\.parquet .*{match}"):
        column(open_files(tmp_path))


def test_a_lost_chunk_is_not_read_as_zeros(tmp_path):
    folder = tmp_path / "x.zarr"
    array = zarr.create_array(folder, shape=(10, 2), chunks=(5, 2), dtype="f8")
    array[:] = np.arange(1.0, 21.0).reshape(10, 2)
    assert open_zarr(folder).n_rows == 10
    chunks = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != "zarr.json")
    chunks[-1].unlink()
    with pytest.raises(ValueError, match=r"1 of the 2 chunks .*x\.zarr .*0\.0"):
        open_zarr(folder)


def test_a_chunk_that_changes_is_noticed(tmp_path):
    folder = tmp_path / "x.zarr"
    array = zarr.create_array(folder, shape=(10, 2), chunks=(5, 2), dtype="f8")
    array[:] = 1.0
    table = open_zarr(folder)
    column(table)
    array[:5] = np.arange(10.0).reshape(5, 2)
    with pytest.raises(ValueError, match="was changed"):
        column(table)
