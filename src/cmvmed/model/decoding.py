"""From a JSON document and its arrays to a model: the inverse of ``encoding``.

Nothing in a document is trusted: types come from the tables of ``saved_types`` only, sizes are taken from a budget before
memory is, indices of sparse matrices are checked, and a reference leads to an earlier object.
"""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cmvmed._saved_classes import CLASSIFIERS, OUTPUT, STEPS
from cmvmed.model.archive import ArchiveReader, ModelFileError, check_shape, is_plain, product
from cmvmed.model.saved_types import (
    ESTIMATOR,
    EXTRACTOR,
    PROJECT_TYPE,
    SavedEstimator,
    extractor_class,
    field_types,
    part,
    project_class,
    record_types,
)

SPARSE_TYPES = {
    ("csr", True): sparse.csr_matrix,
    ("csr", False): sparse.csr_array,
    ("csc", True): sparse.csc_matrix,
    ("csc", False): sparse.csc_array,
}
NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
MAX_DEPTH = 64  # of values within values


class Decoder:
    """Makes the objects of a document, in their order."""

    def __init__(self, reader: ArchiveReader) -> None:
        self._reader = reader
        self._objects: list[Any] = []

    def decode_all(self, objects: Any, root: Any) -> Any:
        """The value of ``root``, after all objects."""
        for entry in _checked(objects, list):
            self._objects.append(self._object(_checked(entry, dict)))
        return self.decode(root)

    def decode(self, value: Any, annotation: Any = None, depth: int = 0) -> Any:
        """The value of a JSON form; ``annotation`` is that of its field."""
        if depth > MAX_DEPTH:
            raise ModelFileError("its document is nested too deeply")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self.decode(item, annotation, depth + 1) for item in value]
        match value:
            case {"kind": "object", "number": int(number)} if 0 <= number < len(self._objects):
                return self._objects[number]
            case {"kind": "array", "number": int(number)}:
                return self._reader.array(number)
            case {"kind": "float", "value": str(text)} if text in NOT_FINITE:
                return NOT_FINITE[text]
            case {"kind": "tuple", "items": list(items)}:
                return tuple(self.decode(item, annotation, depth + 1) for item in items)
            case {"kind": "record", "fields": dict(fields)}:
                return self._record(fields, annotation, depth)
            case {"kind": "slice", "items": [start, stop, step]}:
                return slice(*(self.decode(own, None, depth + 1) for own in (start, stop, step)))
            case {"kind": "dict", "items": list(pairs)}:
                return {self.decode(key, None, depth + 1): self.decode(v, None, depth + 1) for key, v in pairs}
            case {"kind": "scalar", "dtype": str(text), "value": item}:
                return _dtype(text).type(self.decode(item, None, depth + 1))
        raise ModelFileError(f"its document holds something unknown: {value!r:.100}")

    def _record(self, fields: dict[str, Any], annotation: Any, depth: int) -> Any:
        """A dataclass that the annotation of a field allows."""
        for cls in record_types(annotation):
            if set(fields) <= {own.name for own in dataclass_fields(cls)}:
                return self._made(cls, fields, depth)
        raise ModelFileError(f"it holds a record of {sorted(fields)!s:.100}, which this release does not know")

    def _made(self, cls: Any, fields: dict[str, Any], depth: int = 0) -> Any:
        types = field_types(cls)
        return cls(**{key: self.decode(value, types.get(key), depth + 1) for key, value in fields.items()})

    def _object(self, entry: dict[str, Any]) -> Any:
        word, fields = entry.get("type"), _checked(entry.get("fields"), dict)
        match word:
            case "sparse":
                return self._sparse(**self._plain(fields))
            case "mostly_zero":
                return self._mostly_zero(**self._plain(fields))
            case "object_array":
                return _object_array(**self._plain(fields))
            case "random_state":
                state = np.random.RandomState()
                state.set_state(self.decode(fields["state"]))
                return state
        return self._typed(entry, fields)

    def _typed(self, entry: dict[str, Any], fields: dict[str, Any]) -> Any:
        """An object of one of the types of this library."""
        word, name = entry.get("type"), entry.get("name")
        cls = part(word) if isinstance(word, str) else None
        if cls is not None:
            return self._made(cls, fields)
        if word == PROJECT_TYPE:
            return project_class()._from_model_file(**self._plain(fields))
        if word == EXTRACTOR and isinstance(name, str) and extractor_class(name) is not None:
            return self._made(extractor_class(name), fields)
        if word == ESTIMATOR and isinstance(name, str) and name in CLASSIFIERS | STEPS:
            return self._estimator(name, fields, _checked(entry.get("attributes"), dict))
        raise ModelFileError(f"it holds a {(word if name is None else name)!r:.100}, which this release does not know")

    def _estimator(self, name: str, fields: dict[str, Any], attributes: dict[str, Any]) -> Any:
        return _estimator(SavedEstimator(name), self._plain(fields), self._plain(attributes))

    def _plain(self, values: dict[str, Any]) -> dict[str, Any]:
        return {key: self.decode(value) for key, value in values.items()}

    def _sparse(self, format: str, is_matrix: bool, shape: list[int], data: Any, indices: Any, indptr: Any) -> Any:
        check_shape(_checked(shape, list))
        for own in (data, indices, indptr):
            if _checked(own, np.ndarray).ndim != 1:
                raise ModelFileError("a part of a sparse matrix is not a vector")
            self._reader.budget.take(own.nbytes)  # of the copy: scipy sorts entries in place, and arrays may be shared
        n_major, n_minor = shape if format == "csr" else reversed(shape)
        _check_indices(data, indices, indptr, n_major, n_minor)
        return SPARSE_TYPES[format, is_matrix]((data, indices, indptr), shape=tuple(shape), copy=True)

    def _mostly_zero(self, shape: list[int], dtype: str, order: str, gaps: Any, values: Any) -> NDArray[Any]:
        check_shape(_checked(shape, list))
        size, kind = product(shape), _dtype(dtype)
        self._reader.budget.take(size * kind.itemsize)
        positions = np.cumsum(_checked(gaps, np.ndarray), dtype=np.int64)
        if positions.size and not 0 <= positions.min() <= positions.max() < size:
            raise ModelFileError("an entry is outside of its array")
        flat = np.zeros(size, dtype=kind)
        flat[positions] = _checked(values, np.ndarray)
        return flat.reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def _check_indices(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_major: int, n_minor: int) -> None:
    """Raise unless a compressed sparse matrix is one: scipy's compiled code reads and writes at any index it is given.

    scipy's own check differences the pointers in their own type, in which the difference of small integers can overflow.
    """
    if indices.dtype not in (np.int32, np.int64) or indptr.dtype not in (np.int32, np.int64):
        raise ModelFileError("the indices of a sparse matrix are of an unusual type")
    ends = indptr.astype(np.int64)
    increasing = ends.size == n_major + 1 and ends[0] == 0 and bool((ends[1:] >= ends[:-1]).all())
    if not increasing or ends[-1] != indices.size or indices.size != data.size:
        raise ModelFileError("the pointers of a sparse matrix do not fit its entries")
    if indices.size and not 0 <= indices.min() <= indices.max() < n_minor:
        raise ModelFileError("an index of a sparse matrix is outside of it")
    if data.dtype.kind not in "biuf":
        raise ModelFileError("a sparse matrix holds no numbers")


def _estimator(saved: SavedEstimator, parameters: dict[str, Any], learned: dict[str, Any]) -> Any:
    """An estimator with its parameters and what it has learned."""
    unknown = set(parameters) - set(saved.parameters)
    if unknown:
        raise ModelFileError(
            f"a model or step of it has the parameter {min(unknown)!r:.100}, which this release does not know"
        )
    wrong = [name for name in learned if not saved.may_have(name)]
    if wrong:
        raise ModelFileError(f"a model or step of it has the attribute {wrong[0]!r:.100}, which it cannot have")
    estimator = saved.cls(**parameters)
    if hasattr(estimator, "_from_model_file"):
        learned = estimator._from_model_file(learned)
    for name, value in learned.items():
        setattr(estimator, name, _installed_output(value) if name == OUTPUT else value)
    return estimator


def _installed_output(config: dict[str, str]) -> dict[str, str]:
    """The containers of ``set_output``, arrays where their package is not installed."""
    return {
        method: container if container == "default" or find_spec(container) else "default"
        for method, container in config.items()
        if container in ("default", "pandas", "polars")
    }


def _object_array(shape: list[int], items: list[Any]) -> NDArray[Any]:
    check_shape(_checked(shape, list))
    if product(shape) != len(_checked(items, list)):
        raise ModelFileError("an array has another number of entries than its shape")
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def _dtype(text: str) -> np.dtype[Any]:
    dtype = np.dtype(text)
    if not is_plain(dtype):
        raise ModelFileError(f"it holds values of type {text!r:.100}, not numbers or texts")
    return dtype


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ModelFileError(f"it holds {value!r:.100} where a {kind.__name__} belongs")
    return value
