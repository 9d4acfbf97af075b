"""Verdicts on a claim, and when there are enough splits for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from cmvmed.reproduction.comparison import joint_confidence, mean_interval

LEVEL = 0.05
CONFIDENCE = 1.0 - LEVEL  # of intervals, jointly over all comparisons that a verdict is based on
# A signed-rank test of n splits, adjusted for 25 methods or fewer, cannot be significant below n = 10; a t-interval of
# fewer is wide and depends on whether differences are normally distributed.
MIN_SPLITS = 10

Interval = tuple[float, float]
Scores = dict[int, float]  # by split


@dataclass(frozen=True)
class Verdict:
    """Outcome: ``kind`` is "yes", "partial", "open", "few" or "no"; ``label`` is the text on the page."""

    kind: str
    label: str


HOLDS = Verdict("yes", "holds")
HOLDS_ON_THESE_ROWS = Verdict("partial", "holds on these rows")
NOT_SHOWN = Verdict("open", "not shown")
DOES_NOT_HOLD = Verdict("no", "does not hold")
CLAIM_VERDICTS = {verdict.kind: verdict for verdict in (HOLDS, HOLDS_ON_THESE_ROWS, NOT_SHOWN, DOES_NOT_HOLD)}
KINDS = ("yes", "partial", "no", "open", "few")  # in the order of a summary


def guarded(verdict: Verdict, n_splits: int) -> Verdict:
    """The verdict, or that there are too few splits for one."""
    return verdict if n_splits >= MIN_SPLITS else too_few(n_splits, n_splits)


def too_few(fewest: int, most: int) -> Verdict:
    """No verdict, because there are so many splits only."""
    n_splits = str(fewest) if fewest == most else f"{fewest} to {most}"
    return Verdict("few", f"too few splits to say ({n_splits} of at least {MIN_SPLITS})")


@dataclass(frozen=True)
class Difference:
    """Mean difference of two scores over the same splits.

    Attributes
    ----------
    name : str
    mean : float
    n_splits : int
    same_rows, new_rows : tuple of two floats
        Intervals of the mean for other splits of the same rows, and with the corrected variance for new rows of the same
        distribution. Both hold jointly with the other differences that were computed together.
    """

    name: str
    mean: float
    n_splits: int
    same_rows: Interval
    new_rows: Interval


def differences(
    pairs: dict[str, tuple[Scores, Scores]], train_test_ratio: float, largest: float = 1.0
) -> list[Difference]:
    """First minus second scores of each pair that has splits in common, with intervals that hold jointly.

    Intervals are limited to differences that are possible, at most ``largest``; one split alone excludes none.
    """
    paired = {
        name: [first[split] - second[split] for split in sorted(first.keys() & second.keys())]
        for name, (first, second) in pairs.items()
    }
    known = {name: values for name, values in paired.items() if values}
    confidence = joint_confidence(CONFIDENCE, max(len(known), 1))

    def interval(values: Sequence[float], ratio: float) -> Interval:
        low, high = mean_interval(values, confidence, ratio) if len(values) > 1 else (-inf, inf)
        return max(low, -largest), min(high, largest)

    return [
        Difference(name, fmean(values), len(values), interval(values, inf), interval(values, train_test_ratio))
        for name, values in known.items()
    ]


def interval_verdict(found: Sequence[Difference], low: float = 0.0, high: float = inf) -> Verdict:
    """Whether all differences are between two bounds.

    It holds if all corrected intervals are between them, holds on these rows if all plain ones are, does not hold if a
    plain interval is entirely outside, and is not shown otherwise.
    """
    if any(entry.same_rows[1] < low or entry.same_rows[0] > high for entry in found):
        verdict = DOES_NOT_HOLD
    elif all(_inside(entry.new_rows, low, high) for entry in found):
        verdict = HOLDS
    elif all(_inside(entry.same_rows, low, high) for entry in found):
        verdict = HOLDS_ON_THESE_ROWS
    else:
        verdict = NOT_SHOWN
    return guarded(verdict, min(entry.n_splits for entry in found))


def _inside(interval: Interval, low: float, high: float) -> bool:
    return low < interval[0] and interval[1] < high
