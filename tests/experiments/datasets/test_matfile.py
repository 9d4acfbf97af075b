"""Matrices of MATLAB files: the values of scipy for valid files, a DatasetError for all others."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import loadmat, savemat

from experiments.datasets import DatasetError
from experiments.datasets.file_formats import load_matrices

REAL_DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool"]


def make_mat(variables, *, compress=True, **options):
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=compress, **options)
    return buffer.getvalue()


def load(data, **shapes):
    return load_matrices(data, shapes or {"A": (2, 3)}, name="x.mat")


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", REAL_DTYPES)
def test_every_real_type_becomes_float64(dtype, compress):
    array = np.array([[1, 0, 3], [4, 5, 100]]).astype(dtype)
    matrix = load(make_mat({"other": [[1.0]], "A": array}, compress=compress))["A"]
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    np.testing.assert_array_equal(matrix, array)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (7, 5)])
def test_small_and_odd_shapes(shape):
    array = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_array_equal(load(make_mat({"A": array}), A=shape)["A"], array)


def test_other_variables_are_not_read():
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = "text", np.zeros((3, 3))
    data = make_mat({"X": cell, "options": {"a": 1}, "A": np.ones((2, 3)), "name": "text"})
    matrices = load(data)
    assert list(matrices) == ["A"]
    np.testing.assert_array_equal(matrices["A"], np.ones((2, 3)))


def test_the_published_file_has_the_values_of_scipy(data_folder):
    path = data_folder / "webkb_course" / "WebKB.mat"
    matrices = load(path.read_bytes(), PAGE=(1051, 3000), LINK=(1051, 1840), Y=(1051, 1))
    expected = loadmat(path)
    for name, matrix in matrices.items():
        np.testing.assert_array_equal(matrix, expected[name])


CELL = np.empty((2, 3), dtype=object)
CELL[:] = 1.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a MATLAB file"),
        (b"no MATLAB file" * 100, "not a MATLAB file"),
        (b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400), "not a MATLAB file"),
        (make_mat({"A": np.ones((2, 3))}, compress=False)[:-8], "not a MATLAB file|[Nn]o variable A"),
        (make_mat({"B": np.ones((2, 3))}), "no variable A of x.mat: it is a different file"),
        (make_mat({"A": np.ones((3, 2))}), r"Wrong shape of .*: \(3, 2\), expected \(2, 3\)"),
        (make_mat({"A": np.ones((2, 3, 2))}), "Wrong shape"),
        (make_mat({"A": CELL}), "Not a full matrix of real numbers: the variable A of x.mat"),
        (make_mat({"A": np.ones((2, 3)) * 1j}), "Not a full matrix of real numbers"),
        (make_mat({"A": sp.csc_array(np.eye(2, 3))}), "Not a full matrix of real numbers"),
        (make_mat({"A": np.array([list("abc"), list("def")])}), "Not a full matrix of real numbers"),
        (make_mat({"A": {"x": 1}}), "Not a full matrix of real numbers"),
    ],
)  # fmt: skip
def test_every_other_content_is_a_dataset_error(data, message):
    with pytest.raises(DatasetError, match=rf"({message}).* Get (it|the file) again") as caught:
        load(data)
    assert "x.mat" in str(caught.value)
