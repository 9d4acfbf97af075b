"""Pickles without what is computed from the fields of an object and kept for the next call."""

from dataclasses import fields
from typing import Any


class PickledByFields:
    """A dataclass whose pickles and copies hold its fields, not its cached properties."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
