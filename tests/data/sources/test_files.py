"""Tables in files hold what was written, block by block, and say which file, column or row is wrong."""

import itertools
import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

from cmvmed.data.sources import LocalRows
from cmvmed.data.sources.files import open_files
from cmvmed.data.sources.parts import open_table
from cmvmed.data.sources.zarr_arrays import open_zarr

N_ROWS, COLUMNS = 1000, ["a", "b", "c"]
PIECES = (0, 300, 650, N_ROWS)  # where one file ends and the next begins

WRITERS = {
    "parquet": lambda table, path: pyarrow.parquet.write_table(table, path, row_group_size=77),
    "feather": lambda table, path: pyarrow.feather.write_feather(table, str(path), chunksize=77),
    "csv": lambda table, path: pyarrow.csv.write_csv(table, path),
}


@pytest.fixture(scope="module")
def matrix():
    return np.round(np.random.default_rng(0).normal(size=(N_ROWS, len(COLUMNS))), 6)


@pytest.fixture(params=sorted(WRITERS))
def kind(request):
    return request.param


def arrow_table(matrix, **extra):
    return pa.table({name: matrix[:, i] for i, name in enumerate(COLUMNS)} | extra)


def write_folder(folder, kind, table):
    folder.mkdir()
    for i, (start, stop) in enumerate(itertools.pairwise(PIECES)):
        WRITERS[kind](table.slice(start, stop - start), folder / f"part{i}.{kind}")
    return folder


def check_table(table, matrix):
    assert (table.n_rows, table.n_columns) == matrix.shape
    for size in (1, 64, 5000):
        blocks = list(table.blocks(size))
        assert {len(block) for block in blocks[:-1]} <= {size}
        np.testing.assert_array_equal(np.concatenate(blocks), matrix)
    for rows in ([0, 299, 300, 999], [5], [], [640, 660]):
        np.testing.assert_array_equal(table.take(np.array(rows, dtype=np.intp)), matrix[rows])


def test_one_file(tmp_path, kind, matrix):
    path = tmp_path / f"all.{kind}"
    WRITERS[kind](arrow_table(matrix), path)
    table = open_files(path)
    assert table.column_names == COLUMNS
    check_table(table, matrix)


def test_folder_of_files(tmp_path, kind, matrix):
    folder = write_folder(tmp_path / "sensor", kind, arrow_table(matrix))
    (folder / ".hidden").write_text("not data")
    (folder / "_SUCCESS").write_text("")
    table = open_files(folder)
    check_table(table, matrix)
    with pytest.raises(AssertionError):
        check_table(table, matrix[::-1])


def test_pyarrow_dataset(tmp_path, kind, matrix):
    folder = write_folder(tmp_path / "sensor", kind, arrow_table(matrix))
    check_table(open_files(pyarrow.dataset.dataset(folder, format=kind)), matrix)


def test_a_dataset_may_leave_columns_out(tmp_path, matrix):
    path = tmp_path / "all.parquet"
    table = arrow_table(matrix, name=["x"] * N_ROWS)
    WRITERS["parquet"](table, path)
    narrow = pyarrow.dataset.dataset(path, schema=table.schema.remove(3))
    check_table(open_files(narrow), matrix)


def test_columns_can_be_chosen(tmp_path, kind, matrix):
    path = tmp_path / f"all.{kind}"
    WRITERS[kind](arrow_table(matrix, name=["x"] * N_ROWS), path)
    check_table(open_files(path).select(["c", "a"]), matrix[:, [2, 0]])
    with pytest.raises(ValueError, match=r"no column 'd'.*'name'"):
        open_files(path).select(["d"])
    with pytest.raises(ValueError, match=r"'name' of .* string"):
        open_files(path).select(["a", "name"])


def test_null_is_nan_and_other_numbers_are_doubles(tmp_path, kind):
    table = pa.table({"a": pa.array([1, None, 3], pa.int32()), "b": pa.array([True, False, None])})
    path = tmp_path / f"all.{kind}"
    WRITERS[kind](table, path)
    np.testing.assert_array_equal(
        np.concatenate(list(open_files(path).blocks(2))), [[1.0, 1.0], [np.nan, 0.0], [3.0, np.nan]]
    )


def test_numbers_of_csv_files_are_not_guessed_from_their_beginning(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("a,b\n" + "1,\n" * 400_000 + "2.5,7\n")
    table = open_files(path)
    np.testing.assert_array_equal(table.take(np.array([0, 400_000])), [[1.0, np.nan], [2.5, 7.0]])


def test_labels_keep_their_type(tmp_path, kind, matrix):
    labels = {"text": ["x", None] * (N_ROWS // 2), "number": [7, None] * (N_ROWS // 2)}
    path = tmp_path / f"all.{kind}"
    WRITERS[kind](arrow_table(matrix, **labels), path)
    for column, values in labels.items():
        rows, found, n_rows = open_files(path).labels(column, -1)
        assert n_rows == N_ROWS
        np.testing.assert_array_equal(rows, np.arange(0, N_ROWS, 2))
        assert found.tolist() == values[::2]
        assert type(found[0]) is type(values[0])


def test_labels_of_categories_and_markers(tmp_path):
    path = tmp_path / "all.parquet"
    WRITERS["parquet"](pa.table({"y": pa.array(["a", "?", "b"]).dictionary_encode()}), path)
    rows, found, _ = open_files(path).labels("y", "?")
    assert (rows.tolist(), found.tolist()) == ([0, 2], ["a", "b"])


def test_damaged_file_is_named(tmp_path, matrix):
    folder = write_folder(tmp_path / "sensor", "parquet", arrow_table(matrix))
    damaged = folder / "part1.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"part1\.parquet cannot be read"):
        open_files(folder)


def test_damage_inside_a_file_is_named(tmp_path, matrix):
    path = tmp_path / "all.parquet"
    WRITERS["parquet"](arrow_table(matrix), path)
    content = bytearray(path.read_bytes())
    content[4:3000] = bytes(2996)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"all.parquet cannot be read"):
        list(open_files(path).blocks(100))


def test_bad_number_in_csv_is_named(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("a,b\n" + "1,2\n" * 300_000 + "1,two\n")
    with pytest.raises(ValueError, match=r"all.csv cannot be read: .*'two'"):
        list(open_files(path).blocks(1000))


def test_a_file_without_a_column_is_named(tmp_path, kind, matrix):
    folder = write_folder(tmp_path / "sensor", kind, arrow_table(matrix))
    WRITERS[kind](arrow_table(matrix).drop_columns("b"), folder / f"part3.{kind}")
    with pytest.raises(ValueError, match=rf"part3.{kind} has no column 'b'"):
        open_files(folder)


def test_a_file_that_shrinks_is_noticed(tmp_path, matrix):
    path = tmp_path / "all.parquet"
    WRITERS["parquet"](arrow_table(matrix), path)
    table = open_files(path)
    WRITERS["parquet"](arrow_table(matrix[:500]), path)
    with pytest.raises(ValueError, match=r"had 1000 rows .* 500 now"):
        list(table.blocks(100))


def test_places_without_a_table(tmp_path, matrix):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        open_files(tmp_path / "nowhere.parquet")
    with pytest.raises(ValueError, match="holds no files"):
        open_files(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match=r"notes.txt cannot be read; the formats are"):
        open_files(tmp_path)


def test_formats_do_not_mix(tmp_path, matrix):
    folder = write_folder(tmp_path / "sensor", "csv", arrow_table(matrix))
    WRITERS["parquet"](arrow_table(matrix), folder / "more.parquet")
    with pytest.raises(ValueError, match="mixes the formats csv, parquet"):
        open_files(folder)


def test_csv_needs_names(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"bare\.csv .* first line"):
        open_files(path)


def test_zarr(tmp_path, matrix):
    array = zarr.create_array(tmp_path / "view.zarr", shape=matrix.shape, chunks=(90, 2), dtype="f8")
    array[:] = matrix
    check_table(open_zarr(array), matrix)
    check_table(open_zarr(tmp_path / "view.zarr"), matrix)


def test_zarr_must_have_columns(tmp_path):
    with pytest.raises(ValueError, match=r"rows and columns, but .* has the shape \(5,\)"):
        open_zarr(zarr.zeros((5,), chunks=(5,)))


def test_zarr_folder_that_is_none(tmp_path):
    with pytest.raises((ValueError, FileNotFoundError), match=r"nothing.zarr|No array found"):
        open_zarr(tmp_path / "nothing.zarr")


def test_reading_counts_in_the_memory_limit(tmp_path, kind, matrix):
    path = tmp_path / f"all.{kind}"
    WRITERS[kind](arrow_table(matrix), path)
    table = open_files(path)
    message = r"Write them with smaller row groups or chunks, or raise the limit with cmvmed\.config_context"
    with pytest.raises(MemoryError, match=message):
        next(LocalRows([table], memory_limit=table.reading_bytes).map(lambda first, matrices: matrices[0]))
    next(LocalRows([table], memory_limit=table.reading_bytes + 10_000).map(lambda first, matrices: matrices[0]))


def test_small_row_groups_take_less(tmp_path, matrix):
    sizes = []
    for rows in (50, 1000):
        pyarrow.parquet.write_table(arrow_table(matrix), tmp_path / "all.parquet", row_group_size=rows)
        sizes.append(open_files(tmp_path / "all.parquet").reading_bytes)
    assert sizes[0] < sizes[1]


class _MakesFolder:
    """An object whose pickle makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("as_array", [True, False])
def test_pickled_objects_are_not_loaded(tmp_path, as_array):
    path, folder = tmp_path / "x.npy", tmp_path / "made"
    objects = _MakesFolder(str(folder))
    if as_array:
        np.save(path, np.array([[objects]], dtype=object), allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(objects))
    with pytest.raises(ValueError, match=r"x\.npy cannot be read"):
        open_table(path)
    assert not folder.exists()
    pickle.loads(pickle.dumps(objects))
    assert folder.exists()
