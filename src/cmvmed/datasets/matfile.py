"""Numeric arrays of a MATLAB 5 file, and nothing else of it.

``scipy.io.loadmat`` decompresses without a limit and follows cells, structs and objects as deep as a file nests them.
The files needed here hold a few numeric matrices of known shape, so this module reads just these: it inflates a
variable no further than its known shape allows, skips the others by name, and turns everything unexpected into one
error. The format is that of MathWorks' "MAT-File Format", Level 5.
"""

import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.datasets.errors import DatasetError

HEADER_BYTES = 128
TAG_BYTES = 8
VARIABLE_HEADER_BYTES = 1024  # flags, dimensions and name of an honest variable take less than 200

MI_INT8, MI_INT32, MI_UINT32, MI_MATRIX, MI_COMPRESSED = 1, 5, 6, 14, 15
NUMBER_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
NUMERIC_CLASSES = range(6, 16)  # mxDOUBLE_CLASS to mxUINT64_CLASS
COMPLEX_FLAG = 0x08


class _MalformedError(Exception):
    """What is wrong with the file; becomes the message of a DatasetError."""


@dataclass(frozen=True)
class _Variable:
    name: str
    shape: tuple[int, ...]
    class_code: int
    is_complex: bool
    data_at: int  # where the element of the real values starts


def read_arrays(data: bytes, shapes: Mapping[str, tuple[int, int]], *, name: str) -> dict[str, NDArray[np.float64]]:
    """Return the variables named in `shapes`, as float64 arrays.

    Parameters
    ----------
    data : bytes
        A MATLAB 5 file.
    shapes : mapping from str to (rows, columns)
        The variables wanted and their shapes; other variables are skipped, another shape is an error.
    name : str
        File name, for the message.
    """
    try:
        arrays = _arrays(data, shapes)
        if missing := sorted(shapes.keys() - arrays.keys()):
            raise _MalformedError(f"it holds no variable {' and no '.join(missing)}")
    except (_MalformedError, struct.error, zlib.error) as error:
        raise DatasetError(f"{name} is not the MATLAB 5 file expected: {error}. Get it again.") from error
    return arrays


def _arrays(data: bytes, shapes: Mapping[str, tuple[int, int]]) -> dict[str, NDArray[np.float64]]:
    order = _byte_order(data)
    arrays: dict[str, NDArray[np.float64]] = {}
    for kind, content in _elements(data, order):
        if kind == MI_COMPRESSED:
            variable = _variable(_inflate(content, TAG_BYTES + VARIABLE_HEADER_BYTES)[TAG_BYTES:], order)
        elif kind == MI_MATRIX:
            variable = _variable(content[:VARIABLE_HEADER_BYTES], order)
        else:
            raise _MalformedError(f"it holds an element of type {kind} where a variable should be")
        if variable.name not in shapes:
            continue
        if variable.name in arrays:
            raise _MalformedError(f"it holds the variable {variable.name} twice")
        shape = shapes[variable.name]
        _refuse_other_kind(variable, shape)
        if kind == MI_COMPRESSED:
            most = TAG_BYTES + VARIABLE_HEADER_BYTES + 8 * math.prod(shape)
            content = _inflate(content, most)[TAG_BYTES:]
        arrays[variable.name] = _values(content, variable, order)
    return arrays


def _byte_order(data: bytes) -> str:
    if data.startswith(b"MATLAB 7.3"):
        raise _MalformedError("it is a MATLAB 7.3 (HDF5) file")
    marks = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}
    mark = data[HEADER_BYTES - 4 : HEADER_BYTES]
    if mark not in marks:
        raise _MalformedError("it does not begin with the header of such a file")
    return marks[mark]


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of the top-level elements; their lengths fill the file exactly."""
    at = HEADER_BYTES
    while at < len(data):
        kind, length = struct.unpack_from(f"{order}II", data, at)
        start, end = at + TAG_BYTES, at + TAG_BYTES + length
        if end > len(data):
            raise _MalformedError(f"it ends {end - len(data):,} bytes early")
        yield kind, data[start:end]
        at = end


def _inflate(content: bytes, most: int) -> bytes:
    """Decompress at most `most` bytes."""
    return zlib.decompressobj().decompress(content, most)


def _sub_element(content: bytes, at: int, order: str) -> tuple[int, bytes, int]:
    """Return type, content and end of the element at `at`, in its long or its packed form."""
    (first,) = struct.unpack_from(f"{order}I", content, at)
    if first >> 16:  # packed: length and type share four bytes, the content the next four
        kind, length, start, end = first & 0xFFFF, first >> 16, at + 4, at + TAG_BYTES
        if length > 4:
            raise _MalformedError("an element is longer than its place")
    else:
        kind, length = struct.unpack_from(f"{order}II", content, at)
        start = at + TAG_BYTES
        end = start + length + -length % 8
    if start + length > len(content):
        raise _MalformedError("a variable ends early")
    return kind, content[start : start + length], end


def _variable(content: bytes, order: str) -> _Variable:
    flags_kind, flags, at = _sub_element(content, 0, order)
    dims_kind, dims, at = _sub_element(content, at, order)
    name_kind, name, at = _sub_element(content, at, order)
    if (flags_kind, dims_kind, name_kind) != (MI_UINT32, MI_INT32, MI_INT8) or len(flags) != 8 or len(dims) % 4:
        raise _MalformedError("a variable has no proper header")
    (flag_bits, _) = struct.unpack(f"{order}II", flags)
    shape = struct.unpack(f"{order}{len(dims) // 4}i", dims)
    return _Variable(name.decode("latin-1"), shape, flag_bits & 0xFF, bool(flag_bits >> 8 & COMPLEX_FLAG), at)


def _refuse_other_kind(variable: _Variable, shape: tuple[int, int]) -> None:
    if variable.class_code not in NUMERIC_CLASSES or variable.is_complex:
        raise _MalformedError(f"its variable {variable.name} is not a plain matrix of real numbers")
    if variable.shape != shape:
        raise _MalformedError(f"its variable {variable.name} has shape {variable.shape}, expected {shape}")


def _values(content: bytes, variable: _Variable, order: str) -> NDArray[np.float64]:
    kind, stored, _ = _sub_element(content, variable.data_at, order)
    if kind not in NUMBER_TYPES:
        raise _MalformedError(f"its variable {variable.name} holds values of type {kind}, which is none of numbers")
    dtype = np.dtype(order + NUMBER_TYPES[kind])
    if len(stored) != dtype.itemsize * math.prod(variable.shape):
        raise _MalformedError(
            f"its variable {variable.name} holds {len(stored):,} bytes, too many or too few for its shape"
        )
    return np.frombuffer(stored, dtype).reshape(variable.shape, order="F").astype(np.float64, order="C")
