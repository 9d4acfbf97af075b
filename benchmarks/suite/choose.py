"""Choose among settings of CMVMED by leaving one data set out at a time.

For each set, the candidate is taken that is best on the other sets: by the mean over sets of sensors and over others,
which have equal weight, and among those within a tenth of a point of the best mean, by the worst cell against the
start. The mean of these choices, each on the set
that had no part in it, is what one may expect of choosing in this way; the mean of the candidate that is best on all
sets is too favorable.
"""

from collections.abc import Mapping, Sequence

from benchmarks.suite.markdown import markdown
from benchmarks.suite.methods import Method
from benchmarks.suite.sets import KINDS
from benchmarks.suite.splits import Cell
from benchmarks.suite.store import Row
from benchmarks.suite.summary import Summary, balanced_mean, comparable, kind_means, set_means

TIE = 0.1  # points

CellMeans = Mapping[Cell, float]


def best_candidate(candidates: Mapping[str, CellMeans], start: CellMeans) -> str:
    """The candidate with the best mean; of nearly equal ones that with the best worst cell against the start."""
    means = {name: balanced_mean(cells) for name, cells in candidates.items()}
    near = [name for name in candidates if means[name] >= max(means.values()) - TIE]
    return max(near, key=lambda name: (_worst(candidates[name], start), means[name]))


def leave_one_set_out(candidates: Mapping[str, CellMeans], start: CellMeans) -> dict[str, str]:
    """For each set, the candidate that the other sets choose."""
    sets = sorted({cell.set for cells in candidates.values() for cell in cells})
    if len(sets) < 2:
        raise ValueError("to choose by leaving a data set out takes at least two")
    return {out: best_candidate({n: _without(c, out) for n, c in candidates.items()}, start) for out in sets}


def choose(rows: Sequence[Row], methods: Sequence[Method], on: str, against: str = "start") -> str:
    """The choices and what they give, as markdown."""
    summary = Summary(comparable(rows), on)
    found = {method.name: summary.cell_means.get(method.name, {}) for method in methods}
    common = set.intersection(*(set(cells) for cells in found.values())) if found else set()
    candidates = {name: {cell: cells[cell] for cell in common} for name, cells in found.items()}
    start = summary.cell_means.get(against, {})
    if len({cell.set for cell in common}) < 2:
        return "To choose among settings, at least two data sets must have rows of all of them."
    chosen = leave_one_set_out(candidates, start)
    return "\n\n".join(["### Choice", _candidate_table(candidates, start, chosen), _choice_table(candidates, chosen)])


def _candidate_table(candidates: Mapping[str, CellMeans], start: CellMeans, chosen: Mapping[str, str]) -> str:
    lines = [["setting", "mean %", *(f"{kind} %" for kind in KINDS), "worst cell to start", "chosen by"]]
    for name, cells in candidates.items():
        n_sets = sum(winner == name for winner in chosen.values())
        lines.append([name, *_means(cells), f"{_worst(cells, start):+.1f}", f"{n_sets} of {len(chosen)}"])
    honest = {
        cell: value for out, name in chosen.items() for cell, value in candidates[name].items() if cell.set == out
    }
    lines.append(["choice without the set", *_means(honest), "–", "–"])
    return markdown(lines)


def _means(cells: CellMeans) -> list[str]:
    """The mean in which sensors and others have equal weight, and that of each."""
    found = kind_means(cells)
    return [f"{balanced_mean(cells):.2f}", *(f"{found[kind]:.2f}" if kind in found else "–" for kind in KINDS)]


def _choice_table(candidates: Mapping[str, CellMeans], chosen: Mapping[str, str]) -> str:
    by_set = {name: set_means(cells) for name, cells in candidates.items()}
    lines = [["left out", "chosen", "its mean % there", "best there"]]
    for left_out, name in chosen.items():
        best = max(by_set, key=lambda other: by_set[other][left_out])
        lines.append([left_out, name, f"{by_set[name][left_out]:.1f}", f"{best} {by_set[best][left_out]:.1f}"])
    return markdown(lines)


def _worst(cells: CellMeans, start: CellMeans) -> float:
    """The worst difference to the start; 0 if the start was not run."""
    return min((cells[cell] - start[cell] for cell in cells.keys() & start.keys()), default=0.0)


def _without(cells: CellMeans, left_out: str) -> dict[Cell, float]:
    return {cell: value for cell, value in cells.items() if cell.set != left_out}
