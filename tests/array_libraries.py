"""Array libraries beside numpy, as tests use them."""

from importlib.util import find_spec

import pytest

LIBRARIES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed"))
    for name in ("array_api_strict", "torch")
]


def put(xp, values):
    """An array of the library, on another device than the usual one if the library has several on any machine."""
    if xp.__name__ == "array_api_strict":
        return xp.asarray(values, device=xp.Device("device1"))
    return xp.asarray(values)
