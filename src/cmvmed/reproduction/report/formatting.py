"""Numbers as the page writes them."""

from __future__ import annotations

import re

from cmvmed.reproduction.report.grouping import Summary

MINUS, DASH = "−", "–"


def percent(summary: Summary | None) -> str:
    """Accuracy in percent, "94.8 ± 2.3"; a dash if there is none."""
    if summary is None:
        return DASH
    if summary.deviation is None:
        return f"{100.0 * summary.mean:.1f}"
    return f"{100.0 * summary.mean:.1f} ± {100.0 * summary.deviation:.1f}"


def share(value: float | None) -> str:
    """A share in percent, "78.5"; a dash if there is none."""
    return DASH if value is None else f"{100.0 * value:.1f}"


def points(difference: float) -> str:
    """A difference of shares in percentage points with its sign, "+3.1"."""
    rounded = f"{abs(100.0 * difference):.1f}"
    sign = "" if float(rounded) == 0.0 else "+" if difference > 0.0 else MINUS
    return sign + rounded


def interval(bounds: tuple[float, float]) -> str:
    """Bounds in percentage points, "−0.4 to +2.9"."""
    return f"{points(bounds[0])} to {points(bounds[1])}"


def p_value(p: float) -> str:
    """A p-value, "0.023" or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_phrase(p: float) -> str:
    """A p-value within a sentence, "p = 0.023" or "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def three_digits(value: float) -> str:
    """A time or size, with three digits or so."""
    return f"{value:.0f}" if value >= 100.0 else f"{value:.1f}" if value >= 10.0 else f"{value:.2f}"


def plural(n: int, singular: str, plural_form: str | None = None) -> str:
    """A number with its noun, "1 split", "20 splits"."""
    return f"{n:,} {singular if n == 1 else plural_form or singular + 's'}"


def listing(names: list[str]) -> str:
    """Names in a sentence, "a, b and c"; with semicolons if a name has a comma itself."""
    separator = "; " if any("," in name for name in names) else ", "
    return " and ".join(filter(None, [separator.join(names[:-1]), names[-1]])) if names else "none"


def slug(*names: object) -> str:
    """Names as one identifier of the page: letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(map(str, names))).strip("-")
