"""How the report writes shares, differences, p-values and names of elements."""

from __future__ import annotations

import re

from cmvmed.pages.formatting import DASH, MINUS


def format_share(value: float | None) -> str:
    """A share in percent, such as "78.5"; a dash for None."""
    return DASH if value is None else f"{100.0 * value:.1f}"


def format_points(difference: float) -> str:
    """A difference of shares in percentage points with its sign, such as "+3.1"."""
    rounded = f"{abs(100.0 * difference):.1f}"
    sign = "" if float(rounded) == 0.0 else "+" if difference > 0.0 else MINUS
    return sign + rounded


def format_interval(bounds: tuple[float, float]) -> str:
    """Bounds in percentage points, such as "−0.4 to +2.9"."""
    return f"{format_points(bounds[0])} to {format_points(bounds[1])}"


def format_p_value(p: float) -> str:
    """A p-value, such as "0.023" or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_value_phrase(p: float) -> str:
    """A p-value in a sentence, such as "p = 0.023" or "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def format_magnitude(value: float) -> str:
    """A time or size with about three significant digits."""
    return f"{value:.0f}" if value >= 100.0 else f"{value:.1f}" if value >= 10.0 else f"{value:.2f}"


def slug(*names: object) -> str:
    """Names as one HTML id: letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(map(str, names))).strip("-")
