"""From a model to a JSON document and a list of arrays.

Numbers, texts, None and lists are written as in JSON; what JSON lacks is an object with a "kind". Arrays, sparse
matrices, terms and estimators are written once, however often they occur, and referred to by number; equal arrays are written
once too. An object refers to objects before it only, so that a document has no circles.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cmvmed._saved_classes import CLASSIFIERS, EXTRACTORS, STEPS
from cmvmed.model.archive import DTYPE_KINDS
from cmvmed.model.saved_types import (
    ESTIMATOR,
    EXTRACTOR,
    PROJECT_TYPE,
    SavedEstimator,
    field_types,
    is_project,
    part_word,
    record_types,
    word_of,
)

MIN_SPARSE_BYTES = 1 << 12  # smaller arrays are written as they are
MAX_SPARSE_DENSITY = 0.5  # of entries other than zero, up to which an array is written as its nonzero entries
SPARSE_FORMATS = ("csr", "csc")

Order: TypeAlias = Literal["C", "F"]


class Encoder:
    """Collects the objects and arrays of a model."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: list[NDArray[Any]] = []
        self._known: dict[int, Any] = {}  # by id
        self._kept: list[Any] = []  # so that no id is used again
        self._digests: dict[Any, int] = {}

    def encode(self, value: Any, where: str, annotation: Any = None) -> Any:
        """The JSON form of a value; ``where`` names it in errors, ``annotation`` is that of its field."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}
        if type(value) is list:
            return self._items(value, where, annotation)
        if type(value) is tuple:
            return {"kind": "tuple", "items": self._items(value, where, annotation)}
        if type(value) is slice:
            return {"kind": "slice", "items": self._items([value.start, value.stop, value.step], where)}
        if type(value) in record_types(annotation):
            return {"kind": "record", "fields": self._fields(value, where)}
        if isinstance(value, Mapping) and not sparse.issparse(value):
            keys = [self.encode(key, f"a key of {where}") for key in value]
            values = [self.encode(item, f"{where}[{key!r}]") for key, item in value.items()]
            return {"kind": "dict", "items": [list(pair) for pair in zip(keys, values, strict=True)]}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if isinstance(value, range) or (hasattr(value, "tolist") and not isinstance(value, np.ndarray)):
            return self._items(list(value), where)  # such as columns of a data frame, given as views
        return self._shared(value, where)

    def _fields(self, value: Any, where: str) -> dict[str, Any]:
        """The fields of a dataclass."""
        cls: Any = type(value)
        types = field_types(cls)
        return {
            own.name: self.encode(getattr(value, own.name), f"{where}.{own.name}", types[own.name])
            for own in fields(value)
        }

    def _items(self, values: Any, where: str, annotation: Any = None) -> list[Any]:
        return [self.encode(item, f"{where}[{i}]", annotation) for i, item in enumerate(values)]

    def _scalar(self, value: np.generic, where: str) -> dict[str, Any]:
        if value.dtype.kind not in DTYPE_KINDS or (value.dtype.itemsize > 8 and value.dtype.kind == "f"):
            raise _not_saved(value, where)
        return {"kind": "scalar", "dtype": value.dtype.str, "value": self.encode(value.item(), where)}

    def _shared(self, value: Any, where: str) -> dict[str, Any]:
        """An object that is written once."""
        if id(value) not in self._known:
            self._known[id(value)] = self._written(value, where)
            self._kept.append(value)
        return dict(self._known[id(value)])

    def _written(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sparse.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, np.random.RandomState):
            return self._object("random_state", {"state": self.encode(value.get_state(legacy=True), where)})
        if is_project(value):
            state = value._to_model_file()
            return self._object(PROJECT_TYPE, {key: self.encode(v, f"{where}.{key}") for key, v in state.items()})
        word = part_word(value)
        if word is not None:
            return self._object(word, self._fields(value, where))
        word = word_of(value, EXTRACTORS)
        if word is not None:
            return self._object(EXTRACTOR, self._fields(value, where), name=word)
        return self._estimator(value, where)

    def _estimator(self, value: Any, where: str) -> dict[str, Any]:
        word = word_of(value, CLASSIFIERS | STEPS)
        if word is None:
            raise _not_saved(value, where)
        saved = SavedEstimator(word)
        parameters = {key: self.encode(getattr(value, key), key) for key in saved.parameters}
        learned = {key: self.encode(v, key) for key, v in saved.learned(value).items()}
        return self._object(ESTIMATOR, parameters, name=word, attributes=learned)

    def _object(self, word: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
        self.objects.append({"type": word, "fields": fields, **more})
        return {"kind": "object", "number": len(self.objects) - 1}

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        array = np.asarray(array)
        if array.dtype == object:
            items = self._items(array.ravel().tolist(), where)
            return self._object("object_array", {"shape": list(array.shape), "items": items})
        if array.dtype.kind not in DTYPE_KINDS:
            raise _not_saved(array, where)
        if array.dtype.kind == "f" and array.nbytes >= MIN_SPARSE_BYTES:
            order = _order(array)
            flat = array.ravel(order=order)
            bits = flat.view(f"u{array.itemsize}")  # so that -0.0 counts as another number than 0.0
            positions = np.flatnonzero(bits)
            if positions.size <= MAX_SPARSE_DENSITY * array.size:
                return self._mostly_zero(array, order, positions, flat[positions])
        return self._plain(array)

    def _plain(self, array: NDArray[Any]) -> dict[str, Any]:
        """A reference to an array of the archive, which may be there already."""
        order = _order(array)
        content = array.tobytes(order=order)
        key = (array.dtype.str, array.shape, order, hashlib.blake2b(content, digest_size=16).digest())
        if key not in self._digests:
            self._digests[key] = len(self.arrays)
            self.arrays.append(array)
        return {"kind": "array", "number": self._digests[key]}

    def _mostly_zero(
        self, array: NDArray[Any], order: Order, positions: NDArray[Any], values: NDArray[Any]
    ) -> dict[str, Any]:
        """The nonzero entries, and how far each is from the one before."""
        gaps = np.diff(positions, prepend=0)
        gaps = gaps.astype(np.min_scalar_type(int(gaps.max(initial=0))))
        fields = {
            "shape": list(array.shape),
            "dtype": array.dtype.str,
            "order": order,
            "gaps": self._plain(gaps),
            "values": self._plain(values),
        }
        return self._object("mostly_zero", fields)

    def _sparse(self, matrix: Any, where: str) -> dict[str, Any]:
        if matrix.format not in SPARSE_FORMATS:
            raise _not_saved(matrix, where)
        fields = {
            "format": matrix.format,
            "is_matrix": isinstance(matrix, sparse.spmatrix),
            "shape": [int(length) for length in matrix.shape],
            "data": self._plain(matrix.data),
            "indices": self._plain(matrix.indices),
            "indptr": self._plain(matrix.indptr),
        }
        return self._object("sparse", fields)


def _order(array: NDArray[Any]) -> Order:
    """The order in which an array is in memory."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _not_saved(value: object, where: str) -> TypeError:
    what = (
        f"a function ({getattr(value, '__name__', value)!r})" if callable(value) else f"of type {type(value).__name__}"
    )
    return TypeError(
        f"{where} is {what}, which a model file cannot hold: it holds numbers, texts, arrays and the models and feature "
        "steps of this library. Use a named kernel and the library's own steps, or joblib.dump, whose files can run code "
        "when they are loaded."
    )
