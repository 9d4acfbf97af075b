"""Curves that fall: methods that are less accurate with more labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from cmvmed.pages.formatting import format_interval, format_points
from cmvmed.reproduction.comparison import scores_by_split, train_test_ratio
from cmvmed.reproduction.paper_report.grouping import method_position, with_score
from cmvmed.reproduction.paper_report.verdicts import MIN_SPLITS, Difference, Scores, differences
from cmvmed.reproduction.result_rows import ResultRow

ByCount = dict[int, list[ResultRow]]  # rows by number of labels


@dataclass(frozen=True)
class Fall:
    """The largest fall of a method's mean accuracy from one number of labels to a larger one."""

    method: str
    few: int
    many: int
    difference: Difference

    @property
    def is_shown(self) -> bool:
        """Whether the interval for other splits is below zero, with enough splits for a verdict."""
        return self.difference.n_splits >= MIN_SPLITS and self.difference.same_rows[1] < 0.0

    def __str__(self) -> str:
        """Method, numbers of labels, difference and, if there are enough splits for one, interval."""
        has_interval = self.difference.n_splits >= MIN_SPLITS
        interval = f", {format_interval(self.difference.same_rows)}" if has_interval else ""
        points = f"{format_points(self.difference.mean)} points{interval}"
        return f"{self.method} from {self.few} to {self.many} labels ({points})"


def falls(found: ByCount) -> tuple[Fall, ...]:
    """The largest fall of each method that has one; intervals hold jointly over all methods and pairs of numbers."""
    rows = [row for members in found.values() for row in members]
    by_count = {n: scores_by_split(with_score(members, "accuracy"), "accuracy") for n, members in found.items()}
    names: dict[str, tuple[str, int, int]] = {}
    pairs: dict[str, tuple[Scores, Scores]] = {}
    for few, many in combinations(sorted(found), 2):
        for method in by_count[few].keys() & by_count[many].keys():
            name = f"{method}/{few}/{many}"
            names[name] = method, few, many
            pairs[name] = by_count[many][method], by_count[few][method]
    largest: dict[str, Fall] = {}
    for difference in differences(pairs, train_test_ratio(rows)):
        fall = Fall(*names[difference.name], difference)
        known = largest.get(fall.method)
        if difference.mean < 0.0 and (known is None or difference.mean < known.difference.mean):
            largest[fall.method] = fall
    return tuple(largest[method] for method in sorted(largest, key=method_position))


def falls_sentence(found: Sequence[Fall]) -> str:
    """Which curves fall, beyond chance or within it; empty if none does."""
    shown = "; ".join(str(fall) for fall in found if fall.is_shown)
    within = "; ".join(str(fall) for fall in found if not fall.is_shown)
    parts = [f"Less accurate with more labels: {shown}."] if shown else []
    if within:
        parts.append(f"Means that fall, which may be chance: {within}.")
    return " ".join(parts)
