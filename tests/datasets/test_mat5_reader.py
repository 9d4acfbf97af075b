"""The reader of MATLAB files agrees with scipy on files that scipy writes, and refuses damaged ones by a DatasetError."""

import io

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from cmvmed.datasets.errors import DatasetError
from cmvmed.datasets.mat5_reader import read_variable


def cell(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def mat_file(variables, *, compressed=True):
    stream = io.BytesIO()
    savemat(stream, variables, do_compression=compressed)
    return stream.getvalue()


def read(data, variable="x", max_bytes=1_000_000):
    return read_variable(data, variable, name="file.mat", max_bytes=max_bytes)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_numbers_as_scipy_reads_them(dtype, compressed):
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    data = mat_file({"other": np.ones(3), "x": values}, compressed=compressed)
    np.testing.assert_array_equal(read(data), loadmat(io.BytesIO(data))["x"])
    np.testing.assert_array_equal(read(data, "other"), np.ones((1, 3)))


@pytest.mark.parametrize("compressed", [True, False])
def test_nested_cells_and_structures(compressed):
    traces = np.empty((2, 3), dtype=object)
    for row in range(2):
        for column in range(3):
            traces[row, column] = np.full(5, 10.0 * row + column)
    nested = cell({"Sen": cell({"S": cell(traces, np.empty((0, 0)))}, np.empty((0, 0))), "name": "text"})
    found = read(mat_file({"x": nested}, compressed=compressed))
    assert found.shape == (1, 1)
    person = found[0, 0]
    assert sorted(person) == ["Sen", "name"]
    assert person["name"] is None  # text is not read
    first, second = person["Sen"].ravel()
    assert second.size == 0
    table = first["S"].ravel()[0]
    assert table.shape == (2, 3)
    np.testing.assert_array_equal(table[1, 2], np.full((1, 5), 12.0))


def test_arrays_of_structures_and_complex_numbers():
    structures = np.array([(1.0, 2.0), (3.0, 4.0)], dtype=[("a", "f8"), ("b", "f8")])
    found = read(mat_file({"x": structures})).ravel()
    assert [float(s["b"][0, 0]) for s in found] == [2.0, 4.0]
    assert read(mat_file({"x": np.array([1j])})) is None


def test_named_errors():
    data = mat_file({"x": np.zeros(1000)})
    with pytest.raises(DatasetError, match=r"no variable 'y' in file\.mat"):
        read(data, "y")
    with pytest.raises(DatasetError, match="more than 1,000 bytes"):
        read(data, max_bytes=1000)
    with pytest.raises(DatasetError, match=r"7\.3.*save its variables with -v7"):
        read(b"MATLAB 7.3 MAT-file" + data)
    with pytest.raises(DatasetError, match="not a MATLAB 5 file"):
        read(b"PK" + data)


@pytest.mark.parametrize("compressed", [True, False])
def test_damaged_files_give_a_value_or_a_dataset_error(compressed, outcome_of):
    data = mat_file({"x": cell({"a": cell(np.arange(9.0), np.arange(4))})}, compressed=compressed)
    rng = np.random.default_rng(0)
    for _ in range(400):
        damaged = bytearray(data[: rng.integers(128, len(data) + 1)])
        for position in rng.integers(0, len(damaged), 3):
            damaged[position] = rng.integers(256)
        outcome_of(read, bytes(damaged))
    truncated = [outcome_of(read, data[:length]) for length in range(len(data))]
    assert all(isinstance(result, DatasetError) for result in truncated[:-8])
