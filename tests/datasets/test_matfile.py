"""The reader of numeric MATLAB 5 arrays: equal to scipy's on honest files, one error on any other."""

import io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from cmvmed.datasets import DatasetError
from cmvmed.datasets.matfile import read_arrays

NUMBER_TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


def make_mat(variables, *, compress=True):
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=compress)
    return buffer.getvalue()


def element(kind, content, order="<"):
    return struct.pack(f"{order}II", kind, len(content)) + content + bytes(-len(content) % 8)


def variable(name=b"A", shape=(2, 3), class_code=6, kind=9, values=None, order="<"):
    """A miMATRIX element made by hand, so that any part of it can be wrong."""
    values = np.arange(6.0).astype(f"{order}f8").tobytes() if values is None else values
    flags = element(6, struct.pack(f"{order}II", class_code, 0), order)
    dims = element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
    return element(14, flags + dims + element(1, name, order) + element(kind, values, order), order)


def packed(content):
    compressed = zlib.compress(content)
    return struct.pack("<II", 15, len(compressed)) + compressed


def mat(*elements, mark=b"\x00\x01IM"):
    return b"MATLAB 5.0 MAT-file".ljust(124) + mark + b"".join(elements)


def read(data, **shapes):
    return read_arrays(data, shapes or {"A": (2, 3)}, name="x.mat")


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("dtype", NUMBER_TYPES)
def test_equals_scipy(dtype, compress):
    array = np.array([[1, 2, 3], [4, 5, 100]], dtype=dtype)
    data = make_mat({"other": [[1.0]], "A": array}, compress=compress)
    np.testing.assert_array_equal(read(data)["A"], loadmat(io.BytesIO(data))["A"])


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (7, 5)])
def test_small_and_odd_shapes(shape):
    array = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_array_equal(read(make_mat({"A": array}), A=shape)["A"], array)


def test_the_check_against_scipy_would_see_a_wrong_order_of_the_values():
    array = np.arange(6.0).reshape(2, 3)
    wrong = variable(values=array.tobytes())  # row by row, where MATLAB stores column by column
    assert not np.array_equal(read(mat(wrong))["A"], array)


def test_a_file_of_the_other_byte_order():
    data = mat(variable(order=">"), mark=b"\x01\x00MI")
    np.testing.assert_array_equal(read(data)["A"], loadmat(io.BytesIO(data))["A"])


def test_cells_and_structs_are_passed_over_unread():
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = "text", np.zeros((3, 3))
    data = make_mat({"X": cell, "options": {"a": 1}, "A": np.ones((2, 3)), "name": "text"})
    np.testing.assert_array_equal(read(data)["A"], np.ones((2, 3)))


def test_the_real_files_equal_scipy(data_folder):
    path = data_folder / "webkb_course" / "WebKB.mat"
    ours = read(path.read_bytes(), PAGE=(1051, 3000), LINK=(1051, 1840), Y=(1051, 1))
    scipys = loadmat(path)
    for name, array in ours.items():
        np.testing.assert_array_equal(array, scipys[name])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not begin with the header"),
        (b"MATLAB 7.3 MAT-file".ljust(600), "MATLAB 7.3"),
        (mat(), "no variable A"),
        (mat(variable(name=b"B")), "no variable A"),
        (mat(variable(), variable()), "A twice"),
        (mat(variable(shape=(3, 2))), r"shape \(3, 2\), expected \(2, 3\)"),
        (mat(variable(shape=(2, 3, 1))), "shape"),
        (mat(variable(class_code=1)), "not a plain matrix"),
        (mat(variable(class_code=5)), "not a plain matrix"),
        (mat(variable(class_code=6 | 0x0800)), "not a plain matrix"),
        (mat(variable(kind=16)), "values of type 16"),
        (mat(variable(values=bytes(40))), "40 bytes, too many or too few"),
        (mat(variable(values=bytes(56))), "56 bytes, too many or too few"),
        (mat(variable()[:-8]), "8 bytes early"),
        (mat(variable(), b"\x00\x01"), "unpack"),
        (mat(element(3, bytes(16))), "element of type 3"),
        (mat(element(14, element(6, bytes(8)))), "unpack"),
        (mat(element(14, element(6, bytes(8)) + element(5, bytes(7)) + element(1, b"A"))), "no proper header"),
        (mat(element(14, struct.pack("<I", 6 | 9 << 16) + bytes(12))), "longer than its place"),
        (mat(element(14, struct.pack("<II", 6, 2**31))), "ends early"),
        (mat(packed(variable()[:40])), "ends early|unpack"),
        (mat(packed(variable(values=bytes(8_000_000)))), "ends early"),
        (mat(packed(variable())[:-9] + bytes(9)), "Error -3|incorrect"),
    ],
)  # fmt: skip
def test_everything_else_is_one_error(data, message):
    with pytest.raises(DatasetError, match=rf"x.mat is not the MATLAB 5 file expected: .*({message}).* Get it again"):
        read(data)


def test_a_bomb_takes_no_memory():
    bomb = mat(packed(variable(shape=(2, 3), values=bytes(50_000_000))))
    tracemalloc.start()
    with pytest.raises(DatasetError):
        read(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_a_cell_nested_ten_thousand_deep_is_passed_over():
    inner = b""
    for _ in range(10_000):
        head = element(6, struct.pack("<II", 1, 0)) + element(5, struct.pack("<2i", 1, 1)) + element(1, b"")
        inner = element(14, head + inner)
    np.testing.assert_array_equal(read(mat(inner, variable()))["A"], np.arange(6.0).reshape(2, 3, order="F"))


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1), st.binary(min_size=1, max_size=16), st.booleans())
def test_any_damage_gives_the_array_or_the_error(outcome_of, place, damage, compress):
    data = bytearray(make_mat({"A": np.arange(6.0).reshape(2, 3), "B": "text"}, compress=compress))
    position = int(place * (len(data) - len(damage)))
    data[position : position + len(damage)] = damage
    assert isinstance(outcome_of(read, bytes(data)), (dict, DatasetError))
