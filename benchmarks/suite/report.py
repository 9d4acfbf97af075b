"""The report as markdown: one table per draw and one over all, one line per method; accuracies by set; what failed."""

from collections.abc import Iterable, Sequence

from benchmarks.suite.methods import Method
from benchmarks.suite.splits import DRAWS, Cell
from benchmarks.suite.store import Row
from benchmarks.suite.summary import Harm, Summary, comparable, mean_over_sets, set_means

BEST_PEER = "best peer per cell"
COLUMNS = (
    "method",
    "cells",
    "unlabeled %",
    "held out %",
    "rank",
    "to start",
    "worst cell to start",
    "cells < -1",
    "splits < -3 %",
    "near best peer %",
    "interval holds %: unlabeled",
    "held out",
    "worst set",
    "ECE",
    "s",
    "failed",
)


def report(rows: Sequence[Row], methods: Sequence[Method], on: str, start: str = "start") -> str:
    """All tables."""
    if not rows:
        return "There are no rows yet."
    kept = comparable(rows)
    parts = [_heading(rows, kept, on, start)]
    for draw in [draw for draw in DRAWS if any(row["draw"] == draw for row in kept)]:
        parts += [f"### Labels drawn: {draw}", table([row for row in kept if row["draw"] == draw], methods, on, start)]
    parts += ["### All draws", table(kept, methods, on, start), "### By set", set_table(kept, methods, on)]
    return "\n\n".join([*parts, *_notes(rows, methods)])


def _heading(rows: Sequence[Row], kept: Sequence[Row], on: str, start: str) -> str:
    splits = sorted({row["split"] for row in kept})
    counts = f"{len({row['set'] for row in kept})} sets, budgets {sorted({row['budget'] for row in kept})}"
    left = f" {len(rows) - len(kept)} rows wait for other methods of their split." if len(kept) < len(rows) else ""
    numbers = f"{len(splits)} splits ({splits[0]} to {splits[-1]})" if splits else "no splits"
    return (
        f"{counts}, {numbers}, {len(kept)} rows.{left} Compared on {on.replace('_', ' ')} rows: rank, differences to "
        f"the method {start} (mean over sets, worst cell, number of cells more than 1 point below, share of single "
        "splits more than 3 below), share of cells within 1 point of the best peer, picked per cell afterwards."
    )


def table(rows: Sequence[Row], methods: Sequence[Method], on: str, start: str = "start") -> str:
    """One line per method."""
    summary = Summary(rows, on, start)
    best = summary.best_peer(method.name for method in methods if method.is_peer)
    lines = [_line(summary, method.name, best) for method in methods]
    other = "held_out" if on == "unlabeled" else "unlabeled"
    best_other = Summary(rows, other).best_peer(method.name for method in methods if method.is_peer)
    means = {on: mean_over_sets(best), other: mean_over_sets(best_other)}
    blank = ["–"] * (len(COLUMNS) - 4)
    lines.append([BEST_PEER, str(len(best)), _number(means["unlabeled"]), _number(means["held_out"]), *blank])
    return markdown([COLUMNS, *lines])


def _line(summary: Summary, name: str, best: dict[Cell, float]) -> list[str]:
    harm = Harm.of(summary.gains(name))
    failed = sum(row["method"] == name and bool(row["error"]) for row in summary.rows)
    return [
        name,
        str(len(summary.cell_means.get(name, {}))),
        _number(summary.mean(name, "unlabeled")),
        _number(summary.mean(name, "held_out")),
        _number(summary.rank(name), 2),
        _number(harm.mean, signed=True),
        f"{_number(harm.worst, signed=True)}{_named(harm.worst_cell)}",
        str(harm.n_cells_below),
        _number(harm.share_of_splits),
        _number(summary.share_near(name, best)),
        *_coverage(summary, name),
        _number(summary.mean(name, "ece") / 100.0, 3),
        _number(summary.seconds(name), 2),
        str(failed),
    ]


def _coverage(summary: Summary, name: str) -> list[str]:
    """Share of fits whose interval holds, on unlabeled and on held-out rows, and the set where it holds least often."""
    shares = []
    for on in ("unlabeled", "held_out"):
        by_set = summary.coverage(name, on)
        fits = [value for values in by_set.values() for value in values]
        shares.append(_number(sum(fits) / len(fits)) if fits else "–")
    by_set = {name: sum(values) / len(values) for name, values in summary.coverage(name, summary.on).items()}
    worst = min(by_set, key=lambda key: by_set[key], default=None)
    return [*shares, f"{by_set[worst]:.0f} ({worst})" if worst else "–"]


def set_table(rows: Sequence[Row], methods: Sequence[Method], on: str) -> str:
    """Mean accuracy over the cells of each set, one column per method."""
    summary = Summary(rows, on)
    columns = {method.name: set_means(summary.cell_means.get(method.name, {})) for method in methods}
    columns[BEST_PEER] = set_means(summary.best_peer(method.name for method in methods if method.is_peer))
    sets = sorted({cell.set for cell in summary.cells})
    lines = [[name, *(_number(column.get(name, float("nan"))) for column in columns.values())] for name in sets]
    return markdown([["set", *columns], *lines])


def _notes(rows: Sequence[Row], methods: Iterable[Method]) -> list[str]:
    notes = []
    for method in methods:
        own = [row for row in rows if row["method"] == method.name]
        notes += _failures(method.name, own)
        codes = sorted({row["code"] for row in own})
        if not method.is_peer and len(codes) > 1:
            notes.append(f"**{method.name}**: rows of {len(codes)} states of the library ({', '.join(codes)}).")
    return notes


def _failures(name: str, rows: Sequence[Row]) -> list[str]:
    failed = [row for row in rows if row["error"]]
    notes = []
    if failed:
        sets = ", ".join(sorted({row["set"] for row in failed}))
        notes.append(f"**{name}** failed on {len(failed)} of {len(rows)} splits ({sets}): {failed[0]['error']}")
    without = [row for row in rows if row.get("no_estimate")]
    if without:
        notes.append(f"**{name}** gave no estimate in {len(without)} of {len(rows)} fits: {without[0]['no_estimate']}")
    return notes


def markdown(lines: Iterable[Sequence[str]]) -> str:
    head, *rest = lines
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rest])


def _number(value: float, digits: int = 1, signed: bool = False) -> str:
    if value != value:
        return "–"
    return f"{value:{'+' if signed else ''}.{digits}f}"


def _named(cell: Cell | None) -> str:
    return f" ({cell.set}, {cell.budget}, {cell.draw})" if cell else ""
