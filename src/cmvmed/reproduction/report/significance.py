"""CMV-MED against each rival, split by split, and all methods by rank where there are enough data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.reproduction.comparison import (
    FEWEST_DATASETS,
    RivalComparison,
    compare_with_rivals,
    rank_comparison,
)
from cmvmed.reproduction.report.charts import Chart, DotRow, Mark, dot_chart, method_style
from cmvmed.reproduction.report.formatting import interval, listing, p_phrase, p_value, plural, points, slug
from cmvmed.reproduction.report.grouping import COMPLETE, Setting, by_setting, method_position, summaries, title_of
from cmvmed.reproduction.result_rows import ResultRow

LEVEL = 0.05


@dataclass(frozen=True)
class Verdict:
    """What the tests say: ``kind`` is "yes", "here", "open" or "no"; ``word`` is for the reader."""

    kind: str
    word: str


BETTER = Verdict("yes", "better")
BETTER_HERE = Verdict("here", "better on these rows")
UNDECIDED = Verdict("open", "undecided")
WORSE = Verdict("no", "worse")


@dataclass(frozen=True)
class SignificanceLine:
    """One rival: mean difference in points, its interval, the splits won and lost, and both tests after Holm."""

    rival: str
    style: str
    difference: str
    interval: str
    record: str
    wilcoxon: str
    corrected_t: str
    verdict: Verdict


@dataclass(frozen=True)
class SignificancePanel:
    """One setting: the picture and the table."""

    title: str
    facts: str
    lines: tuple[SignificanceLine, ...]
    figure: str


@dataclass(frozen=True)
class RankPanel:
    """Average ranks of the methods over the data sets of one protocol."""

    title: str
    sentence: str
    lines: tuple[tuple[str, str], ...]
    figure: str


def verdict_of(comparison: RivalComparison) -> Verdict:
    """Better if both tests say so, better on these rows if only the signed-rank test does, worse if it says the reverse."""
    if comparison.wilcoxon_holm >= LEVEL:
        return UNDECIDED
    if comparison.paired.mean_difference <= 0.0:
        return WORSE
    return BETTER if comparison.corrected_t_holm < LEVEL else BETTER_HERE


def comparisons(
    rows: Sequence[ResultRow], spec: str = "table1", reference: str = COMPLETE
) -> dict[Setting, list[RivalComparison]]:
    """The reference method against its rivals in every setting where there is something to compare."""
    found = {setting: compare_with_rivals(group, reference) for setting, group in by_setting(rows, spec).items()}
    return {setting: rivals for setting, rivals in found.items() if rivals}


def too_few_splits(compared: dict[Setting, list[RivalComparison]]) -> str:
    """A warning if the signed-rank test cannot pass in any setting, however large the differences; else nothing.

    With n splits its smallest p-value is 2^(1 - n), which Holm's method multiplies by the number of rivals at first.
    """
    needed = [splits_needed(len(rivals)) for rivals in compared.values()]
    short = [
        need
        for need, rivals in zip(needed, compared.values(), strict=True)
        if max(entry.paired.n_splits for entry in rivals) < need
    ]
    if not short:
        return ""
    where = "any setting" if len(short) == len(needed) else f"{len(short)} of {len(needed)} settings"
    return (
        f"There are too few splits for a verdict in {where}: with so many rivals even a method that wins every split passes the "
        f"signed-rank test only from {plural(max(short), 'split')} on."
    )


def splits_needed(n_rivals: int) -> int:
    """Fewest splits n with n_rivals · 2^(1 - n) < 0.05."""
    n = 1
    while n_rivals * 2.0 ** (1 - n) >= LEVEL:
        n += 1
    return n


def significance_panels(rows: Sequence[ResultRow]) -> tuple[SignificancePanel, ...]:
    """A panel for each setting of Table 1."""
    return tuple(_panel(setting, rivals) for setting, rivals in comparisons(rows).items())


def _panel(setting: Setting, rivals: Sequence[RivalComparison]) -> SignificancePanel:
    title = f"{title_of(setting.dataset)}, {setting.n_labeled} labels, {setting.protocol}"
    identity = slug("figure significance", *setting)
    chart = Chart(
        identity,
        f"{COMPLETE} against its rivals on {title}",
        "Mean difference in accuracy in percentage points with its corrected 95 % interval; to the right of zero "
        f"{COMPLETE} is better. The table that follows holds the same figures.",
        f"{COMPLETE} minus rival, points of accuracy",
    )
    dots = [
        DotRow(
            entry.rival,
            method_style(entry.rival),
            (
                Mark(
                    100.0 * entry.paired.mean_difference,
                    (100.0 * entry.paired.interval[0], 100.0 * entry.paired.interval[1]),
                ),
            ),
        )
        for entry in rivals
    ]
    n_splits = max(entry.paired.n_splits for entry in rivals)
    return SignificancePanel(
        title, plural(n_splits, "split"), tuple(map(_line, rivals)), dot_chart(chart, dots, (0.0, "equal"))
    )


def _line(comparison: RivalComparison) -> SignificanceLine:
    paired = comparison.paired
    return SignificanceLine(
        rival=comparison.rival,
        style=method_style(comparison.rival),
        difference=points(paired.mean_difference),
        interval=interval(paired.interval),
        record=f"{paired.wins} / {paired.ties} / {paired.losses}",
        wilcoxon=p_value(comparison.wilcoxon_holm),
        corrected_t=p_value(comparison.corrected_t_holm),
        verdict=verdict_of(comparison),
    )


def mean_accuracies(rows: Sequence[ResultRow], protocol: str) -> dict[str, dict[str, float]]:
    """Mean accuracy by data set and method under a protocol; Figure 2, which varies the labels, is left out."""
    return {
        f"{setting.spec}/{setting.dataset}/{setting.n_labeled}": {
            m: s.mean for m, s in summaries(group, "accuracy").items()
        }
        for setting, group in by_setting(rows).items()
        if setting.protocol == protocol and setting.spec != "figure2"
    }


def rank_panels(rows: Sequence[ResultRow]) -> tuple[RankPanel, ...]:
    """A panel for each protocol with at least five data sets and three methods that finished on all of them."""
    panels = []
    for protocol in sorted({row.protocol for row in rows}):
        table = {name: column for name, column in mean_accuracies(rows, protocol).items() if column}
        everywhere = set.intersection(*map(set, table.values())) if table else set()
        if len(table) >= FEWEST_DATASETS and len(everywhere) >= 3:
            methods = sorted(everywhere, key=method_position)
            panels.append(_rank_panel(protocol, {m: [column[m] for column in table.values()] for m in methods}))
    return tuple(panels)


def _rank_panel(protocol: str, scores: dict[str, list[float]]) -> RankPanel:
    ranks = rank_comparison(scores)
    reach = ranks.critical_difference / 2.0
    chart = Chart(
        slug("figure ranks", protocol),
        f"Average ranks over {ranks.n_datasets} data sets, {protocol}",
        "Average rank of each method, 1 being the best, with half the critical difference on both sides: methods whose bars do "
        "not touch differ. The table that follows holds the ranks.",
        "average rank (1 is best)",
    )
    pairs = list(zip(ranks.methods, ranks.average_ranks, strict=True))
    dots = [DotRow(name, method_style(name), (Mark(rank, (rank - reach, rank + reach)),)) for name, rank in pairs]
    best = [name for name, rank in pairs if rank <= pairs[0][1] + ranks.critical_difference and name != pairs[0][0]]
    told_apart = f"not told apart from {listing(best)}" if best else "told apart from all others"
    return RankPanel(
        title=chart.title,
        sentence=f"Friedman's test of all methods being equal: {p_phrase(ranks.friedman_p)}. The critical difference is "
        f"{ranks.critical_difference:.2f} ranks; {pairs[0][0]}, first by rank, is {told_apart}.",
        lines=tuple((name, f"{rank:.2f}") for name, rank in pairs),
        figure=dot_chart(chart, dots),
    )
