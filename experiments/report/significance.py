"""Paired comparison of CMV-MED with each baseline, average ranks over the data sets, and verdicts on a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from cmvmed.pages.charts import Chart, DotRow, Mark, dot_chart
from cmvmed.pages.formatting import join_names, plural
from experiments.comparison import (
    MIN_DATASETS,
    BaselineComparison,
    compare_with_baselines,
    joint_confidence,
    mean_interval,
    rank_comparison,
)
from experiments.methods import CMV_MED
from experiments.report.grouping import Setting, by_setting, method_position, method_style, summaries
from experiments.report.number_text import format_interval, format_p_value, format_points, p_value_phrase, slug
from experiments.result_rows import ResultRow

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


BETTER = Verdict("yes", "better")
BETTER_ON_THESE_ROWS = Verdict("partial", "better on these rows")
UNDECIDED = Verdict("open", "undecided")
WORSE = Verdict("no", "worse")


@dataclass(frozen=True)
class SignificanceLine:
    """One baseline: mean difference in points, its interval, splits won and lost, and both tests after Holm."""

    baseline: str
    style: str
    difference: str
    interval: str
    record: str
    wilcoxon: str
    corrected_t: str
    verdict: Verdict


@dataclass(frozen=True)
class SignificancePanel:
    """Figure and table of one setting."""

    title: str
    facts: str
    lines: tuple[SignificanceLine, ...]
    figure: str


@dataclass(frozen=True)
class RankPanel:
    """Average ranks of the methods over the data sets under one protocol."""

    title: str
    sentence: str
    lines: tuple[tuple[str, str], ...]
    figure: str


def verdict_of(mean_difference: float, wilcoxon_p: float, corrected_t_p: float) -> Verdict:
    """Better if both tests are significant, better on these rows if only the signed-rank test is."""
    if wilcoxon_p >= LEVEL:
        return UNDECIDED
    if mean_difference <= 0.0:
        return WORSE
    return BETTER if corrected_t_p < LEVEL else BETTER_ON_THESE_ROWS


def comparison_verdict(comparison: BaselineComparison) -> Verdict:
    """Verdict from the p-values that are adjusted by Holm's method."""
    return verdict_of(comparison.paired.mean_difference, comparison.wilcoxon_holm, comparison.corrected_t_holm)


def comparisons(
    rows: Sequence[ResultRow], spec: str = "table1", reference: str = CMV_MED
) -> dict[Setting, list[BaselineComparison]]:
    """Comparisons of the reference method with the other methods, by setting; settings without any are omitted."""
    found = {setting: compare_with_baselines(group, reference) for setting, group in by_setting(rows, spec).items()}
    return {setting: baselines for setting, baselines in found.items() if baselines}


def too_few_splits(compared: dict[Setting, list[BaselineComparison]]) -> str:
    """A warning if the signed-rank test cannot be significant in some settings because of the number of splits.

    With n splits its smallest p-value is 2^(1 - n), which Holm's method multiplies by the number of baselines.
    """
    required = [min_splits(len(baselines)) for baselines in compared.values()]
    short = [
        n_splits
        for n_splits, baselines in zip(required, compared.values(), strict=True)
        if max(entry.paired.n_splits for entry in baselines) < n_splits
    ]
    if not short:
        return ""
    where = "any setting" if len(short) == len(required) else f"{len(short)} of {len(required)} settings"
    return (
        f"There are too few splits for a verdict in {where}: with this number of baselines, a method that wins every "
        f"split passes the signed-rank test with {plural(max(short), 'split')} or more."
    )


def min_splits(n_baselines: int) -> int:
    """Smallest number of splits n with n_baselines · 2^(1 - n) < 0.05."""
    n = 1
    while n_baselines * 2.0 ** (1 - n) >= LEVEL:
        n += 1
    return n


def significance_panels(rows: Sequence[ResultRow]) -> tuple[SignificancePanel, ...]:
    """A panel for each setting of Table 1."""
    return tuple(_panel(setting, baselines) for setting, baselines in comparisons(rows).items())


def _panel(setting: Setting, baselines: Sequence[BaselineComparison]) -> SignificancePanel:
    chart = Chart(
        slug("figure significance", *setting),
        f"{CMV_MED} compared with its baselines on {setting.title}",
        "Mean difference in accuracy in percentage points with its corrected 95 % interval; positive if "
        f"{CMV_MED} is better. The following table contains the same numbers.",
        f"{CMV_MED} minus baseline, points of accuracy",
    )
    n_splits = max(entry.paired.n_splits for entry in baselines)
    return SignificancePanel(
        setting.title,
        plural(n_splits, "split"),
        tuple(map(_line, baselines)),
        dot_chart(chart, list(map(_dot_row, baselines)), (0.0, "equal")),
    )


def _dot_row(comparison: BaselineComparison) -> DotRow:
    low, high = comparison.paired.interval
    mark = Mark(100.0 * comparison.paired.mean_difference, (100.0 * low, 100.0 * high))
    return DotRow(comparison.baseline, method_style(comparison.baseline), (mark,))


def _line(comparison: BaselineComparison) -> SignificanceLine:
    paired = comparison.paired
    return SignificanceLine(
        baseline=comparison.baseline,
        style=method_style(comparison.baseline),
        difference=format_points(paired.mean_difference),
        interval=format_interval(paired.interval),
        record=f"{paired.wins} / {paired.ties} / {paired.losses}",
        wilcoxon=format_p_value(comparison.wilcoxon_holm),
        corrected_t=format_p_value(comparison.corrected_t_holm),
        verdict=comparison_verdict(comparison),
    )


def mean_accuracies(rows: Sequence[ResultRow], protocol: str) -> dict[str, dict[str, float]]:
    """Mean accuracy by data set and method under a protocol, without Figure 2, which varies the number of labels."""
    return {
        f"{setting.spec}/{setting.dataset}/{setting.n_labeled}": {
            method: summary.mean for method, summary in summaries(group, "accuracy").items()
        }
        for setting, group in by_setting(rows).items()
        if setting.protocol == protocol and setting.spec != "figure2"
    }


def rank_panels(rows: Sequence[ResultRow]) -> tuple[RankPanel, ...]:
    """A panel for each protocol with at least five data sets and three methods that have results on all of them."""
    panels = []
    for protocol in sorted({row.protocol for row in rows}):
        table = {name: column for name, column in mean_accuracies(rows, protocol).items() if column}
        complete = set.intersection(*map(set, table.values())) if table else set()
        if len(table) >= MIN_DATASETS and len(complete) >= 3:
            methods = sorted(complete, key=method_position)
            panels.append(_rank_panel(protocol, {m: [column[m] for column in table.values()] for m in methods}))
    return tuple(panels)


def _rank_panel(protocol: str, scores: dict[str, list[float]]) -> RankPanel:
    ranks = rank_comparison(scores)
    half = ranks.critical_difference / 2.0
    chart = Chart(
        slug("figure ranks", protocol),
        f"Average ranks over {ranks.n_datasets} data sets, {protocol}",
        "Average rank of each method, 1 is the best, plus and minus half the critical difference: methods differ "
        "significantly if their bars do not overlap. The table contains the ranks.",
        "average rank (1 is best)",
    )
    pairs = list(zip(ranks.methods, ranks.average_ranks, strict=True))
    (first, first_rank), *others = pairs
    dots = [DotRow(name, method_style(name), (Mark(rank, (rank - half, rank + half)),)) for name, rank in pairs]
    similar = [name for name, rank in others if rank <= first_rank + ranks.critical_difference]
    different = (
        f"not significantly different from {join_names(similar)}" if similar else "significantly better than all others"
    )
    return RankPanel(
        title=chart.title,
        sentence=f"Friedman's test that all methods are equal: {p_value_phrase(ranks.friedman_p)}. The critical "
        f"difference is {ranks.critical_difference:.2f} ranks; {first} has the best rank and is {different}.",
        lines=tuple((name, f"{rank:.2f}") for name, rank in pairs),
        figure=dot_chart(chart, dots),
    )
