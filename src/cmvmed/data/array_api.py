"""Arrays of other libraries, such as torch on a GPU, if scikit-learn's setting ``array_api_dispatch`` is on."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config  # type: ignore[attr-defined]
from sklearn.externals.array_api_compat import is_array_api_obj, is_dask_array, is_numpy_array
from sklearn.utils._array_api import get_namespace_and_device, move_to

from cmvmed.data.layout import collection_items, is_view_collection


class ArrayPlace(NamedTuple):
    """The library of some arrays, as array-api-compat wraps it, and the device where they are."""

    xp: Any
    device: Any

    @property
    def has_double_precision(self) -> bool:
        """Whether the device can compute in it."""
        return "float64" in self.xp.__array_namespace_info__().dtypes(device=self.device, kind="real floating")

    def put(self, array: Any) -> Any:
        """An array of numpy as one of the library, on the device; texts, which others cannot hold, as they are."""
        if array.dtype.kind not in "biuf":
            return array
        return move_to(np.ascontiguousarray(array), xp=self.xp, device=self.device)


def array_place(X: object) -> ArrayPlace | None:
    """Where the array, or the arrays of a list or dict, are; None if they are numpy's or no arrays, or dispatch is off."""
    if not get_config()["array_api_dispatch"]:
        return None
    parts = [part for _, part in collection_items(X)] if is_view_collection(X) else [X]
    arrays = [part for part in parts if _is_of_other_library(part)]
    if not arrays:
        return None
    others = [part for part in parts if part is not None and not _is_of_other_library(part)]
    if others:
        raise TypeError(
            f"Some views are arrays of type {type(arrays[0]).__name__}, another is {type(others[0]).__name__}; give all views "
            "as arrays of one library."
        )
    xp, _, device = get_namespace_and_device(*arrays)
    return ArrayPlace(xp, device)


def _is_of_other_library(part: object) -> bool:
    """Whether it is an array in memory that numpy does not own."""
    return is_array_api_obj(part) and not is_numpy_array(part) and not is_dask_array(part)


def like_rows(values: Any, X: object) -> Any:
    """An array of numpy at the place of the rows X that it is for."""
    place = array_place(X)
    return values if place is None else place.put(values)


def on_host(X: Any) -> Any:
    """The arrays of other libraries as numpy's; anything else as it is."""
    if array_place(X) is None:
        return X
    if isinstance(X, Mapping):
        return {name: _as_numpy(part) for name, part in X.items()}
    return [_as_numpy(part) for part in X] if isinstance(X, (list, tuple)) else _as_numpy(X)


def _as_numpy(array: Any) -> Any:
    numpy_compat = get_namespace_and_device(np.empty(0))[0]
    return None if array is None else move_to(array, xp=numpy_compat, device="cpu")
