"""From result rows to figures: means of cells and sets, ranks, harm against the start, coverage of intervals.

A cell is a data set with a budget and a draw. Accuracies are in percent. Where a run is not finished, a cell is
compared on the splits that all of its methods have done, so that no method gains by easy splits. A split on which a
method failed has no accuracy of it. Sets of sensors and other sets are summed up apart.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.suite.sets import KINDS, kind_of
from benchmarks.suite.splits import Cell
from benchmarks.suite.store import Row, key_of

NEAR = 1.0  # points from the best peer that count as equal, or below the start that do not count as harm
HARMED = 3.0  # points below the start that harm a single split


def comparable(rows: Iterable[Row]) -> list[Row]:
    """The rows of splits that every method of the cell has done, failed or not."""
    done: dict[Cell, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    rows = list(rows)
    for row in rows:
        done[key_of(row).cell][row["split"]].add(row["method"])
    methods = {cell: set().union(*splits.values()) for cell, splits in done.items()}
    return [row for row in rows if done[key_of(row).cell][row["split"]] == methods[key_of(row).cell]]


def by_kind(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of sensors and of other sets; a kind without rows is left out."""
    found = {kind: [row for row in rows if kind_of(row["set"]) == kind] for kind in KINDS}
    return {kind: of_kind for kind, of_kind in found.items() if of_kind}


@dataclass(frozen=True)
class Summary:
    """Figures of methods on comparable rows.

    Attributes
    ----------
    rows : list of rows
        Those of comparable splits.
    on : {"unlabeled", "held_out"}
        Which rows of the data are compared.
    start : str
        The method against which harm is measured.
    """

    rows: Sequence[Row]
    on: str
    start: str = "start"

    @cached_property
    def scores(self) -> Mapping[str, Mapping[Cell, Mapping[int, float]]]:
        """Accuracy by method, cell and split."""
        return self.collect(self.on)

    def collect(self, name: str) -> Mapping[str, Mapping[Cell, Mapping[int, float]]]:
        """A measure in percent by method, cell and split, where there is one."""
        found: dict[str, dict[Cell, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        for row in self.rows:
            if row.get(name) is not None:
                found[row["method"]][key_of(row).cell][row["split"]] = 100.0 * row[name]
        return found

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells."""
        return sorted({key_of(row).cell for row in self.rows})

    @cached_property
    def cell_means(self) -> Mapping[str, Mapping[Cell, float]]:
        """Accuracy by method and cell, mean over splits."""
        return {method: _means(cells) for method, cells in self.scores.items()}

    def mean(self, method: str, name: str) -> float:
        """Mean over sets of a measure."""
        return mean_over_sets(_means(self.collect(name).get(method, {})))

    def rank(self, method: str) -> float:
        """Average over cells of the rank among the methods, 1 for the best."""
        ranks = []
        for cell in self.cell_means.get(method, {}):
            compared = [name for name, means in self.cell_means.items() if cell in means]
            order = rankdata([-round(self.cell_means[name][cell], 6) for name in compared])
            ranks.append(order[compared.index(method)])
        return mean(ranks)

    def gains(self, method: str, other: str | None = None) -> Mapping[Cell, list[float]]:
        """Differences to another method, the start unless named, on single splits, by cell."""
        ours, start = self.scores.get(method, {}), self.scores.get(other or self.start, {})
        pairs = {cell: sorted(ours[cell].keys() & start[cell].keys()) for cell in ours.keys() & start.keys()}
        return {cell: [ours[cell][s] - start[cell][s] for s in splits] for cell, splits in pairs.items() if splits}

    def set_gains(self, method: str, other: str | None = None) -> dict[str, float]:
        """Mean difference to another method, the start unless named, by set."""
        return set_means({cell: mean(values) for cell, values in self.gains(method, other).items()})

    def best_peer(self, peers: Iterable[str]) -> Mapping[Cell, float]:
        """Mean of the best peer of each cell, picked afterwards."""
        peers = [name for name in peers if name in self.cell_means]
        found = {cell: [self.cell_means[p][cell] for p in peers if cell in self.cell_means[p]] for cell in self.cells}
        return {cell: max(means) for cell, means in found.items() if means}

    def share_near(self, method: str, best: Mapping[Cell, float]) -> float:
        """Percentage of cells within a point of the best peer."""
        means = self.cell_means.get(method, {})
        return 100.0 * mean([means[cell] >= best[cell] - NEAR for cell in means.keys() & best.keys()])

    def coverage(self, method: str, on: str) -> Mapping[str, list[float]]:
        """Whether the intervals of single fits hold, in percent, by set."""
        found: dict[str, list[float]] = defaultdict(list)
        for cell, splits in self.collect(f"holds_{on}").get(method, {}).items():
            found[cell.set] += splits.values()
        return found

    def share_held(self, method: str, on: str) -> float:
        """Percentage of fits whose interval holds."""
        return mean([value for values in self.coverage(method, on).values() for value in values])

    def least_held(self, method: str) -> tuple[str, float] | None:
        """The set where the interval holds least often, with the percentage; None if there are no intervals."""
        shares = {name: mean(values) for name, values in self.coverage(method, self.on).items()}
        return min(shares.items(), key=lambda item: item[1], default=None)

    def seconds(self, method: str) -> float:
        """Mean time of a fit."""
        return mean([row["seconds"] for row in self.rows if row["method"] == method and not row["error"]])


@dataclass(frozen=True)
class Harm:
    """How a method compares with the start: points, and shares in percent."""

    mean: float
    worst: float
    worst_cell: Cell | None
    n_cells_below: int
    share_of_splits: float

    @classmethod
    def of(cls, gains: Mapping[Cell, list[float]]) -> "Harm":
        """From differences on single splits."""
        means = {cell: mean(values) for cell, values in gains.items()}
        single = [value for values in gains.values() for value in values]
        worst = min(means, key=lambda cell: means[cell], default=None)
        return cls(
            mean=mean_over_sets(means),
            worst=means[worst] if worst else float("nan"),
            worst_cell=worst,
            n_cells_below=sum(value < -NEAR for value in means.values()),
            share_of_splits=100.0 * mean([value < -HARMED for value in single]),
        )


def mean_over_sets(cells: Mapping[Cell, float]) -> float:
    """Mean over sets of the mean over the cells of each."""
    return mean(list(set_means(cells).values()))


def balanced_mean(cells: Mapping[Cell, float]) -> float:
    """Mean over sensors and other sets, with equal weight, of the mean over their sets."""
    return mean(list(kind_means(cells).values()))


def kind_means(cells: Mapping[Cell, float]) -> dict[str, float]:
    """Mean over the sets of each kind that has any."""
    found: dict[str, list[float]] = defaultdict(list)
    for name, value in set_means(cells).items():
        found[kind_of(name)].append(value)
    return {kind: mean(found[kind]) for kind in KINDS if kind in found}


def set_means(cells: Mapping[Cell, float]) -> dict[str, float]:
    """Mean over the cells of each set."""
    found: dict[str, list[float]] = defaultdict(list)
    for cell, value in cells.items():
        found[cell.set].append(value)
    return {name: mean(values) for name, values in found.items()}


def _means(cells: Mapping[Cell, Mapping[int, float]]) -> dict[Cell, float]:
    return {cell: mean(list(splits.values())) for cell, splits in cells.items()}


def mean(values: Sequence[Any]) -> float:
    """The mean, NaN of nothing."""
    return float(np.mean(values)) if len(values) else float("nan")
