"""Checks of constructor parameters: each error names the parameter, what was expected and what came."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from cmvmed.core.kernels import NAMED_KERNELS
from cmvmed.data.layout import per_view
from cmvmed.data.scaling import SCALINGS
from cmvmed.data.view_data import ViewSettings

# σ² for two classes and for more. One-vs-rest functions of many classes see few positive labels each and need more freedom
# before any of their scores turns positive. Chosen on development splits (docs/accuracy.md).
AUTO_PRIOR_VARIANCE = (2.25, 10.0)


def check_number(
    name: str, value: Any, *, least: float = 0.0, open_left: bool = False, most: float = np.inf, view: str | None = None
) -> float:
    """A finite real number in [least, most], or in (least, most] if ``open_left``."""
    where = f" of view {view!r}" if view is not None else ""
    bound = f"{'greater than' if open_left else 'at least'} {least:g}" + (
        f" and at most {most:g}" if most < np.inf else ""
    )
    valid = isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and np.isfinite(float(value))
    if not valid or float(value) < least or (open_left and float(value) <= least) or float(value) > most:
        raise ValueError(f"{name}{where} must be a number {bound}, but is {value!r}.")
    return float(value)


def check_integer(name: str, value: Any, least: int, *, view: str | None = None) -> int:
    """A whole number of at least ``least``."""
    where = f" of view {view!r}" if view is not None else ""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}{where} must be a whole number of at least {least}, but is {value!r}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[Any], *, view: str | None = None) -> Any:
    """One of ``choices``."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        where = f" of view {view!r}" if view is not None else ""
        raise ValueError(f"{name}{where} must be one of {', '.join(map(repr, choices))}, but is {value!r}.")
    return value


def view_settings(estimator: Any, names: Sequence[str], n_classes: int) -> list[ViewSettings]:
    """The settings of each view from parameters given as one value, a list or a dict by view name."""
    default_variance = AUTO_PRIOR_VARIANCE[n_classes > 2]
    columns = {
        name: per_view(getattr(estimator, name), names, name)
        for name in ("kernel", "gamma", "degree", "coef0", "scaling", "prior_variance", "C", "bias_variance")
    }
    return [
        _one_view(view, {name: values[i] for name, values in columns.items()}, default_variance)
        for i, view in enumerate(names)
    ]


def _one_view(view: str, given: dict[str, Any], default_variance: float) -> ViewSettings:
    kernel = given["kernel"]
    if not callable(kernel):
        check_choice("kernel", kernel, NAMED_KERNELS, view=view)
    gamma = given["gamma"]
    if gamma is None or (isinstance(gamma, str) and gamma != "median"):
        raise ValueError(f"gamma of view {view!r} must be 'median' or a number greater than 0, but is {gamma!r}.")
    if gamma != "median":
        gamma = check_number("gamma", gamma, open_left=True, view=view)
    variance = given["prior_variance"]
    if isinstance(variance, str):
        check_choice("prior_variance", variance, ("auto",), view=view)
        variance = default_variance
    return ViewSettings(
        name=view,
        kernel=kernel,
        gamma=gamma,
        degree=check_integer("degree", given["degree"], 1, view=view),
        coef0=check_number("coef0", given["coef0"], view=view),
        scaling=check_choice("scaling", given["scaling"], SCALINGS, view=view),
        prior_variance=check_number("prior_variance", variance, open_left=True, view=view),
        C=check_number("C", given["C"], open_left=True, view=view),
        bias_variance=check_number("bias_variance", given["bias_variance"], view=view),
    )
