"""Checks of constructor parameters: each error names the parameter, what was expected and what came."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def check_number(
    name: str,
    value: object,
    *,
    minimum: float = 0.0,
    exclusive: bool = False,
    maximum: float = np.inf,
    view: str | None = None,
) -> float:
    """A finite real number in [minimum, maximum], or in (minimum, maximum] if ``exclusive``."""
    where = f" of view {view!r}" if view is not None else ""
    bound = f"{'greater than' if exclusive else 'at least'} {minimum:g}"
    if maximum < np.inf:
        bound += f" and at most {maximum:g}"
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)) or not np.isfinite(float(value)):
        raise ValueError(f"{name}{where} must be a number {bound}, but is {value!r}.")
    number = float(value)
    if number < minimum or (exclusive and number <= minimum) or number > maximum:
        raise ValueError(f"{name}{where} must be a number {bound}, but is {value!r}.")
    return number


def check_integer(name: str, value: object, minimum: int) -> int:
    """A whole number of at least ``minimum``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}, but is {value!r}.")
    return int(value)


def check_choice(name: str, value: object, choices: Sequence[T], *, view: str | None = None) -> T:
    """One of ``choices``."""
    for choice in choices:
        if value is choice or (isinstance(value, str) and value == choice):
            return choice
    where = f" of view {view!r}" if view is not None else ""
    raise ValueError(f"{name}{where} must be one of {', '.join(map(repr, choices))}, but is {value!r}.")
