"""Variables of a MATLAB file of unknown content: numbers, cells and structures, read in Python alone.

The format is that of MATLAB 5 to 7.2 (MathWorks, "MAT-File Format"): a header of 128 bytes, then data elements with a
tag of type and size, possibly compressed. Every size is compared with the bytes that are there before it is used.
"""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from cmvmed.datasets.errors import DatasetError

HEADER_BYTES, MAX_DEPTH = 128, 16
MATRIX, COMPRESSED = 14, 15  # types of elements that contain others
NUMBER_TYPES = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
CELL, STRUCTURE, NUMBERS = 1, 2, range(6, 16)  # classes of matrices
COMPLEX_FLAG = 0x0800

Element = tuple[int, memoryview]  # type and content


def read_variable(data: bytes, variable: str, *, name: str, max_bytes: int) -> Any:
    """Return a variable: an array of numbers, an object array for a cell array, a dict for a structure.

    An array of structures is an object array of dicts. Text, sparse and complex matrices are None. The variable may not
    have more than `max_bytes` bytes when it is decompressed.
    """
    _check_header(data, name)
    try:
        for content in _matrices(memoryview(data)[HEADER_BYTES:], max_bytes):
            if _matrix_name(content) == variable:
                return _value(content, depth=0)
    except (ValueError, IndexError, zlib.error, UnicodeDecodeError) as error:
        raise DatasetError(f"{name} is not a complete MATLAB file ({error}). Get it again.") from error
    raise DatasetError(f"There is no variable {variable!r} in {name}: it is a different file. Get it again.")


def _check_header(data: bytes, name: str) -> None:
    if data.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise DatasetError(
            f"{name} is a MATLAB 7.3 file, which is not supported. Load it in MATLAB and save its variables with -v7."
        )
    if len(data) < HEADER_BYTES or data[124:128] != b"\x00\x01IM":
        raise DatasetError(f"{name} is not a MATLAB 5 file (versions 5 to 7.2, little endian). Get it again.")


def _matrices(content: memoryview, max_bytes: int) -> Iterator[memoryview]:
    """Yield the content of each variable."""
    for kind, part in _elements(content, align=False):
        if kind == COMPRESSED:
            plain = zlib.decompressobj().decompress(part, max_bytes + 1)
            if len(plain) > max_bytes:
                raise ValueError(f"a variable has more than {max_bytes:,} bytes")
            kind, part = next(_elements(memoryview(plain), align=False))
        if kind == MATRIX:
            yield part


def _elements(content: memoryview, *, align: bool = True) -> Iterator[Element]:
    """Yield type and content of consecutive elements, which begin at multiples of 8 bytes if `align`."""
    position = 0
    while position + 8 <= len(content):
        first, size = np.frombuffer(content[position : position + 8], "<u4").tolist()
        if first >> 16:  # a small element has its size in the upper half of the first word and at most 4 bytes
            kind, size, start, end = first & 0xFFFF, first >> 16, position + 4, position + 8
            if size > 4:
                raise ValueError("an element has a wrong size")
        else:
            kind, start = first, position + 8
            end = start + (-(-size // 8) * 8 if align else size)
        if start + size > len(content):
            raise ValueError("an element is longer than the file")
        yield kind, content[start : start + size]
        position = end


def _matrix_name(content: memoryview) -> str:
    _, _, (_, name), *_ = _leading(content, 3)
    return bytes(name).decode("ascii")


def _leading(content: memoryview, number: int) -> list[Element]:
    """Return the first elements of a matrix: flags, dimensions, name."""
    elements = _elements(content)
    found = [element for element, _ in zip(elements, range(number), strict=False)]
    if len(found) < number:
        raise ValueError("a matrix is incomplete")
    return found


def _value(content: memoryview, depth: int) -> Any:
    """Return the value of a matrix from its elements."""
    if len(content) == 0:
        return np.empty((0, 0))
    if depth > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} nested matrices")
    elements = _elements(content)
    (_, flags), (_, dimensions), _ = (next(elements, (0, memoryview(b""))) for _ in range(3))
    if len(flags) != 8 or len(dimensions) < 8:
        raise ValueError("a matrix is incomplete")
    flag = int(np.frombuffer(flags[:4], "<u4")[0])
    shape = tuple(np.frombuffer(dimensions, "<i4").tolist())
    if min(shape) < 0 or flag & COMPLEX_FLAG:
        return None
    if flag & 0xFF in NUMBERS:
        return _numbers(next(elements, (0, memoryview(b""))), shape)
    if flag & 0xFF == CELL:
        return _reshaped([_value(part, depth + 1) for _, part in elements], shape)
    if flag & 0xFF == STRUCTURE:
        return _structures(elements, shape, depth)
    return None


def _numbers(element: Element, shape: tuple[int, ...]) -> Any:
    kind, content = element
    if kind not in NUMBER_TYPES:
        raise ValueError(f"numbers of the unknown type {kind}")
    return np.frombuffer(content, NUMBER_TYPES[kind]).reshape(shape, order="F")  # a ValueError for another number


def _structures(elements: Iterator[Element], shape: tuple[int, ...], depth: int) -> Any:
    """Return a dict, or an object array of dicts; the values come by structure, then by field."""
    (_, width), (_, names) = next(elements), next(elements)
    step = int(np.frombuffer(width, "<i4")[0])
    if step <= 0:
        raise ValueError("field names without length")
    fields = [bytes(names[i : i + step]).split(b"\0")[0].decode("ascii") for i in range(0, len(names), step)]
    values = [_value(part, depth + 1) for _, part in elements]
    if not fields or len(values) % len(fields):
        raise ValueError("a structure is incomplete")
    count = len(values) // len(fields)
    dicts = [dict(zip(fields, values[i * len(fields) :], strict=False)) for i in range(count)]
    return dicts[0] if shape == (1, 1) and count == 1 else _reshaped(dicts, shape)


def _reshaped(values: list[Any], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(values), dtype=object)
    for number, value in enumerate(values):
        array[number] = value
    return array.reshape(shape, order="F")
