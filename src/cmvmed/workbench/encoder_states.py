"""Fitted encoders as texts, numbers, tuples of them, and the features of signals, so that a model file can hold them."""

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from cmvmed.workbench.column_encoders import CategoryEncoder, DateEncoder, NumberEncoder, TextEncoder
from cmvmed.workbench.sensor_encoders import SensorEncoder
from cmvmed.workbench.user_errors import ProjectError
from cmvmed.workbench.view_encoders import ViewEncoder

__all__ = ["encoder_from_state", "encoder_state"]

ENCODERS: dict[str, type[Any]] = {
    encoder.kind: encoder for encoder in (NumberEncoder, DateEncoder, CategoryEncoder, TextEncoder, SensorEncoder)
}


def encoder_state(encoder: ViewEncoder) -> dict[str, Any]:
    """The encoder as texts, numbers, tuples of them, and the features of signals."""
    columns = [
        {"kind": column.kind, **{field.name: getattr(column, field.name) for field in fields(column)}}
        for column in encoder.columns
    ]
    return {"name": encoder.name, "columns": columns}


def encoder_from_state(state: Mapping[str, Any]) -> ViewEncoder:
    """The encoder that :func:`encoder_state` described; a state that no encoder can have is an error."""
    return ViewEncoder(
        _typed(state["name"], str, "name"), tuple(_column_from_state(entry) for entry in state["columns"])
    )


def _column_from_state(entry: Mapping[str, Any]) -> Any:
    encoder, types = ENCODERS[entry["kind"]], get_type_hints(ENCODERS[entry["kind"]])
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items() if name != "kind"
    }
    column = encoder(**{name: _typed(value, types[name], name) for name, value in given.items()})
    if not getattr(column, "is_consistent", True):
        raise ProjectError(f"the encoder of column {column.sources[0]!r:.100} holds values that do not fit together")
    return column


def _typed(value: Any, kind: Any, name: str) -> Any:
    """The value, if it is of the type that a field is declared with."""
    alternatives = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    for one in alternatives:
        if get_origin(one) is tuple and isinstance(value, tuple):
            if all(type(item) is get_args(one)[0] for item in value):
                return value
        elif type(value) is one or (value is None and one is NoneType):
            return value
        elif one is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    raise ProjectError(f"an encoder has {name} = {value!r:.100}")
