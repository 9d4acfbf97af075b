"""Tables and numbers as markdown."""

from collections.abc import Iterable, Sequence

from benchmarks.suite.splits import Cell


def markdown(lines: Iterable[Sequence[str]]) -> str:
    """A table; the first line is its head."""
    head, *rest = lines
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rest])


def number(value: float, digits: int = 1, signed: bool = False) -> str:
    """A number, or a dash if there is none."""
    if value != value:
        return "–"
    return f"{value:{'+' if signed else ''}.{digits}f}"


def named(cell: Cell | None) -> str:
    """A cell in brackets, after a space."""
    return f" ({cell.set}, {cell.budget}, {cell.draw})" if cell else ""
