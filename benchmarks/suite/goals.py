"""The figures by which a default of CMVMED is accepted, for sensors and others, on unlabeled and on held-out rows."""

from collections.abc import Mapping, Sequence

from benchmarks.suite.markdown import markdown, named, number
from benchmarks.suite.methods import BEFORE, ORACLES, STARTS, Method
from benchmarks.suite.splits import DRAWS
from benchmarks.suite.store import Row
from benchmarks.suite.summary import NEAR, Harm, Summary, by_kind, mean

RIVALS = ("extra_trees", "lr", "tabpfn", BEFORE)  # whose means are compared with ours
USUAL = ("extra_trees", "lr")  # what users would take instead: no set should be far below the better of them
SIDES = ("unlabeled", "held_out")


def goal_tables(rows: Sequence[Row], methods: Sequence[Method], start: str = "start") -> list[str]:
    """A heading and a table for each method of the library that has rows."""
    done = {row["method"] for row in rows}
    ours = [m.name for m in methods if not m.is_peer and m.name not in (*STARTS, *ORACLES) and m.name in done]
    peers = [m.name for m in methods if m.is_peer]
    return [part for name in ours for part in (f"### Goals: {name}", goal_table(rows, name, peers, start))]


def goal_table(rows: Sequence[Row], name: str, peers: Sequence[str], start: str = "start") -> str:
    """One line per figure; a column for each kind of sets and kind of rows."""
    columns = {
        f"{kind}, {on.replace('_', ' ')}": _figures(Summary(part, on, start), name, peers)
        for kind, part in by_kind(rows).items()
        for on in SIDES
    }
    lines = dict.fromkeys(line for column in columns.values() for line in column)
    return markdown(
        [["figure", *columns], *([line, *(column.get(line, "–") for column in columns.values())] for line in lines)]
    )


def _figures(summary: Summary, name: str, peers: Sequence[str]) -> Mapping[str, str]:
    harm = Harm.of(summary.gains(name))
    best = summary.best_peer(peers)
    below = {set_: gain for set_, gain in summary.set_gains(name).items() if gain < -NEAR}
    least = summary.least_held(name)
    found = {"mean %": number(summary.mean(name, summary.on))}
    for rival in (summary.start, *RIVALS):
        if rival != name and (gains := summary.set_gains(name, rival)):
            found[f"to {rival}"] = f"{number(mean(list(gains.values())), signed=True)}{_lowest(gains)}"
    found["to the better of extra_trees and lr, lowest set"] = _to_the_better(summary, name)
    found["cells within 1 of the best peer, %"] = number(summary.share_near(name, best))
    for draw in DRAWS:
        found[f"rank, {draw}"] = _place(summary, name, draw, peers)
    found["sets more than 1 below the start"] = ", ".join([str(len(below)), *sorted(below)])
    found["worst cell to the start"] = f"{number(harm.worst, signed=True)}{named(harm.worst_cell)}"
    found["splits more than 3 below the start, %"] = number(harm.share_of_splits)
    found["90 % interval holds, %"] = number(summary.share_held(name, summary.on))
    found["holds least in"] = f"{least[1]:.0f} ({least[0]})" if least else "–"
    if summary.on == "held_out":
        found["ECE"] = number(summary.mean(name, "ece") / 100.0, 3)
    return found


def _lowest(gains: Mapping[str, float]) -> str:
    """The set that loses most, in brackets, after a space."""
    worst = min(gains, key=lambda name: gains[name])
    return f" ({worst} {number(gains[worst], signed=True)})"


def _to_the_better(summary: Summary, name: str) -> str:
    """The set that is furthest below the better of the usual methods, each by its mean on the set."""
    found = [summary.set_gains(name, rival) for rival in USUAL]
    gains = {set_: min(part[set_] for part in found) for set_ in found[0] if all(set_ in part for part in found)}
    return _lowest(gains).strip(" ()") if gains else "–"


def _place(summary: Summary, name: str, draw: str, peers: Sequence[str]) -> str:
    """Average rank for a draw among peers and starts, and the place of that rank among all that did every cell."""
    compared = {name, *peers, *STARTS}
    rows = [row for row in summary.rows if row["draw"] == draw and row["method"] in compared]
    drawn = Summary(rows, summary.on, summary.start)
    full = [method for method, cells in drawn.cell_means.items() if len(cells) == len(drawn.cells)]
    ranks = {method: drawn.rank(method) for method in full}
    if name not in ranks:
        return "–"
    place = 1 + sum(rank < ranks[name] for rank in ranks.values())
    return f"{number(ranks[name], 2)} (place {place} of {len(ranks)})"
