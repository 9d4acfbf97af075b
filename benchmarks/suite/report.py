"""The report as markdown: one table per draw and one over all, one line per method; goals; accuracies by set; failures.

Every figure has a column for sets of sensors and one for the others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.suite.goals import SIDES, goal_tables
from benchmarks.suite.markdown import markdown, named, number
from benchmarks.suite.methods import Method
from benchmarks.suite.splits import DRAWS, Cell
from benchmarks.suite.store import Row
from benchmarks.suite.summary import Harm, Summary, by_kind, comparable, mean_over_sets, set_means

BEST_PEER = "best peer per cell"
Figure = Callable[[Summary, str, Mapping[Cell, float]], str]


def report(rows: Sequence[Row], methods: Sequence[Method], on: str, start: str = "start") -> str:
    """All tables."""
    if not rows:
        return "There are no rows yet."
    kept = comparable(rows)
    parts = [_heading(rows, kept, on, start)]
    for draw in [draw for draw in DRAWS if any(row["draw"] == draw for row in kept)]:
        parts += [f"### Labels drawn: {draw}", table([row for row in kept if row["draw"] == draw], methods, on, start)]
    parts += ["### All draws", table(kept, methods, on, start), *goal_tables(kept, methods, start)]
    for kind, of_kind in by_kind(kept).items():
        for side in SIDES:
            parts += [f"### By set: {kind}, {side.replace('_', ' ')} rows", set_table(of_kind, methods, side)]
    return "\n\n".join([*parts, *notes(rows, methods)])


def _heading(rows: Sequence[Row], kept: Sequence[Row], on: str, start: str) -> str:
    splits = sorted({row["split"] for row in kept})
    sets = ", ".join(f"{len({row['set'] for row in part})} {kind}" for kind, part in by_kind(kept).items())
    counts = f"Sets: {sets}; budgets {sorted({row['budget'] for row in kept})}"
    left = f" {len(rows) - len(kept)} rows wait for other methods of their split." if len(kept) < len(rows) else ""
    numbers = f"{len(splits)} splits ({splits[0]} to {splits[-1]})" if splits else "no splits"
    return (
        f"{counts}, {numbers}, {len(kept)} rows.{left} Compared on {on.replace('_', ' ')} rows: rank, differences to "
        f"the method {start} (mean over sets, worst cell, number of cells more than 1 point below, share of single "
        "splits more than 3 below), share of cells within 1 point of the best peer, picked per cell afterwards."
    )


def table(rows: Sequence[Row], methods: Sequence[Method], on: str, start: str = "start") -> str:
    """One line per method; each figure for sensors and for others."""
    summaries = {kind: Summary(part, on, start) for kind, part in by_kind(rows).items()}
    peers = [method.name for method in methods if method.is_peer]
    best = {kind: summary.best_peer(peers) for kind, summary in summaries.items()}
    head = ["method", *(f"{name}: {kind}" for name in FIGURES for kind in summaries), "s", "failed"]
    everything = Summary(rows, on, start)
    lines = [
        [method.name]
        + [figure(summaries[kind], method.name, best[kind]) for figure in FIGURES.values() for kind in summaries]
        + [number(everything.seconds(method.name), 2), _n_failed(rows, method.name)]
        for method in methods
    ]
    return markdown([head, *lines, _best_line(summaries, peers)])


def _best_line(summaries: Mapping[str, Summary], peers: Sequence[str]) -> list[str]:
    """Number of cells and accuracy of the best peer of each."""
    known = [str(len(summary.best_peer(peers))) for summary in summaries.values()]
    for on in SIDES:
        known += [number(mean_over_sets(Summary(summary.rows, on).best_peer(peers))) for summary in summaries.values()]
    return [BEST_PEER, *known, *["–"] * (len(FIGURES) * len(summaries) + 2 - len(known))]


def _worst_cell(summary: Summary, name: str) -> str:
    harm = Harm.of(summary.gains(name))
    return f"{number(harm.worst, signed=True)}{named(harm.worst_cell)}"


def _holds(summary: Summary, name: str, on: str) -> str:
    """Share of fits whose interval holds."""
    return number(summary.share_held(name, on))


def _holds_least(summary: Summary, name: str) -> str:
    """The set where the interval holds least often."""
    worst = summary.least_held(name)
    return f"{worst[1]:.0f} ({worst[0]})" if worst else "–"


FIGURES: Mapping[str, Figure] = {
    "cells": lambda summary, name, best: str(len(summary.cell_means.get(name, {}))),
    "unlabeled %": lambda summary, name, best: number(summary.mean(name, "unlabeled")),
    "held out %": lambda summary, name, best: number(summary.mean(name, "held_out")),
    "rank": lambda summary, name, best: number(summary.rank(name), 2),
    "to start": lambda summary, name, best: number(Harm.of(summary.gains(name)).mean, signed=True),
    "worst cell to start": lambda summary, name, best: _worst_cell(summary, name),
    "cells < -1": lambda summary, name, best: str(Harm.of(summary.gains(name)).n_cells_below),
    "splits < -3 %": lambda summary, name, best: number(Harm.of(summary.gains(name)).share_of_splits),
    "near best peer %": lambda summary, name, best: number(summary.share_near(name, best)),
    "interval holds, unlabeled %": lambda summary, name, best: _holds(summary, name, "unlabeled"),
    "interval holds, held out %": lambda summary, name, best: _holds(summary, name, "held_out"),
    "interval holds least": lambda summary, name, best: _holds_least(summary, name),
    "ECE": lambda summary, name, best: number(summary.mean(name, "ece") / 100.0, 3),
}


def _n_failed(rows: Sequence[Row], name: str) -> str:
    return str(sum(row["method"] == name and bool(row["error"]) for row in rows))


def set_table(rows: Sequence[Row], methods: Sequence[Method], on: str) -> str:
    """Mean accuracy over the cells of each set, one column per method."""
    summary = Summary(rows, on)
    columns = {method.name: set_means(summary.cell_means.get(method.name, {})) for method in methods}
    columns[BEST_PEER] = set_means(summary.best_peer(method.name for method in methods if method.is_peer))
    sets = sorted({cell.set for cell in summary.cells})
    lines = [[name, *(number(column.get(name, float("nan"))) for column in columns.values())] for name in sets]
    return markdown([["set", *columns], *lines])


def notes(rows: Sequence[Row], methods: Iterable[Method]) -> list[str]:
    """Failures, and rows of several states of the library."""
    found = []
    for method in methods:
        own = [row for row in rows if row["method"] == method.name]
        found += _failures(method.name, own)
        codes = sorted({row["code"] for row in own})
        if not method.is_peer and len(codes) > 1:
            found.append(f"**{method.name}**: rows of {len(codes)} states of the library ({', '.join(codes)}).")
    return found


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
