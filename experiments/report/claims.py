"""Which of the paper's claims hold for CMV-MED, decided from the rows by a stated rule for every setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import stats

from cmvmed.pages.formatting import plural
from experiments.comparison import (
    BaselineComparison,
    deviation_ratio_interval,
    pitman_morgan_p_value,
    scores_by_split,
)
from experiments.experiment import PAPER_SPLITS, SUBSTITUTES, PaperResult, paper_result
from experiments.methods import CMV_MED, MV_MED, SINGLE_VIEW_PREFIX, SVM_2K, without_kernel
from experiments.report.grouping import (
    Setting,
    Summary,
    by_setting,
    dataset_title,
    summaries,
    with_score,
)
from experiments.report.number_text import format_interval, format_points, p_value_phrase
from experiments.report.significance import (
    CLAIM_VERDICTS,
    CONFIDENCE,
    DOES_NOT_HOLD,
    HOLDS,
    KINDS,
    LEVEL,
    MIN_SPLITS,
    NOT_SHOWN,
    Interval,
    Verdict,
    comparison_verdict,
    comparisons,
    guarded,
    too_few,
)
from experiments.result_rows import ResultRow

DIFFERENCE = "difference in points"  # of accuracies of two methods
MAX_SIMILAR_DIFFERENCE = 0.02  # of accuracies that are called similar


@dataclass(frozen=True)
class Finding:
    """A claim in one setting: the verdict and the numbers that it is based on.

    ``effect`` is the main number, ``interval`` its interval for other splits of the same rows.
    """

    where: str
    verdict: Verdict
    evidence: str
    effect: float
    interval: Interval
    n_splits: int


@dataclass(frozen=True)
class Claim:
    """A claim, its source in the paper, the rule and the experiment that decide it, and the findings.

    ``effect`` names the main number of a finding, and ``format_effect`` formats it.
    """

    text: str
    source: str
    rule: str
    spec: str
    findings: tuple[Finding, ...]
    effect: str = DIFFERENCE
    format_effect: Callable[[float], str] = format_points

    @property
    def tally(self) -> tuple[tuple[Verdict, int], ...]:
        """Number of findings by verdict, decided ones first; those with too few splits are counted together."""
        few = [finding.n_splits for finding in self.findings if finding.verdict.kind == "few"]
        together = too_few(min(few), max(few)) if few else None
        counts = Counter(
            together if together and finding.verdict.kind == "few" else finding.verdict for finding in self.findings
        )
        return tuple(sorted(counts.items(), key=lambda item: (KINDS.index(item[0].kind), item[0].label)))

    @property
    def sentence(self) -> str:
        """The verdicts, and the range of the main number over the settings."""
        total = len(self.findings)
        verdicts = ", ".join(
            verdict.label if count == total else f"{verdict.label} in {count} of {total}"
            for verdict, count in self.tally
        )
        ordered = sorted(self.findings, key=lambda finding: finding.effect)
        ends = list(dict.fromkeys(map(self._with_interval, (ordered[0], ordered[-1]))))
        numbers = f"{self.effect} {'' if len(ends) == 1 else 'from '}{' to '.join(ends)}"
        if all(finding.verdict.kind == "few" for finding in self.findings):
            return f"so far {numbers}; {verdicts}"
        splits = sorted({min(f.n_splits for f in self.findings), max(f.n_splits for f in self.findings)})
        return f"{verdicts}; {numbers}; {' to '.join(map(str, splits))} splits"

    def _with_interval(self, finding: Finding) -> str:
        low, high = map(self.format_effect, finding.interval)
        return f"{self.format_effect(finding.effect)} ({low} to {high})"


def setting_label(setting: Setting) -> str:
    """Title of a setting that marks substitutes for the paper's data."""
    substitute = " (substitute)" if setting.dataset in SUBSTITUTES else ""
    return f"{dataset_title(setting.dataset)}{substitute}, {setting.n_labeled} labels, {setting.protocol}"


def table_claims(rows: Sequence[ResultRow]) -> tuple[Claim, ...]:
    """The claims that are decided by Table 1."""
    compared = comparisons(rows)
    return (
        _more_accurate(compared, SVM_2K, lambda method: without_kernel(method) == SVM_2K),
        _more_accurate(compared, MV_MED, lambda method: without_kernel(method) == MV_MED),
        _more_accurate(compared, "MED on either view alone", lambda method: method.startswith(SINGLE_VIEW_PREFIX)),
        _less_variable(rows),
        _paper_accuracy_reached(rows),
    )


def _more_accurate(
    compared: dict[Setting, list[BaselineComparison]], name: str, is_match: Callable[[str], bool]
) -> Claim:
    findings = []
    for setting, baselines in compared.items():
        matching = [entry for entry in baselines if is_match(entry.baseline)]
        if matching:
            strongest = matching[0]  # baselines are sorted by mean difference
            verdict = guarded(CLAIM_VERDICTS[comparison_verdict(strongest).kind], strongest.paired.n_splits)
            paired = strongest.paired
            findings.append(
                Finding(
                    setting_label(setting),
                    verdict,
                    _evidence(strongest, name),
                    paired.mean_difference,
                    paired.split_interval,
                    paired.n_splits,
                )
            )
    return Claim(
        text=f"{CMV_MED} is more accurate than {name}.",
        source="Table 1",
        rule="Holds if the mean difference is positive and the p-values of both tests, adjusted for all baselines, are "
        "below 0.05; holds on these rows if only that of the signed-rank test is; does not hold if the signed-rank "
        f"test shows a negative difference; not shown otherwise; no verdict below {MIN_SPLITS} splits. Intervals: 95 %, "
        "for other splits of the same rows and for new rows. Of several kernels or views the strongest counts.",
        spec="table1",
        findings=tuple(findings),
    )


def _evidence(comparison: BaselineComparison, claimed: str) -> str:
    """The numbers of a comparison; names the baseline if the claim does not."""
    paired = comparison.paired
    baseline = f" against {comparison.baseline}" if comparison.baseline != claimed else ""
    return (
        f"{format_points(paired.mean_difference)} points{baseline}, "
        f"{format_interval(paired.split_interval)} for other splits, {format_interval(paired.interval)} for new rows, "
        f"{plural(paired.n_splits, 'split')}; signed-rank {p_value_phrase(comparison.wilcoxon_holm)}, "
        f"corrected t {p_value_phrase(comparison.corrected_t_holm)}"
    )


def _less_variable(rows: Sequence[ResultRow]) -> Claim:
    findings = []
    for setting, members in by_setting(rows, "table1").items():
        scores = scores_by_split(with_score(members, "accuracy"), "accuracy")
        ours, theirs = scores.get(CMV_MED, {}), scores.get(SVM_2K, {})
        shared = sorted(ours.keys() & theirs.keys())
        if len(shared) >= 3:
            findings.append(_deviation_finding(setting, [ours[n] for n in shared], [theirs[n] for n in shared]))
    return Claim(
        text=f"{CMV_MED} varies less from split to split than {SVM_2K}.",
        source="Section 5.3, Table 1",
        rule="Compares the standard deviations by the Pitman-Morgan test at the level 0.05; the interval of their ratio "
        f"(95 %) consists of the ratios that the test does not reject; no verdict below {MIN_SPLITS} splits.",
        spec="table1",
        findings=tuple(findings),
        effect="ratio of the standard deviations",
        format_effect=lambda ratio: f"{ratio:.2f}",
    )


def _deviation_finding(setting: Setting, ours: list[float], theirs: list[float]) -> Finding:
    p = pitman_morgan_p_value(ours, theirs)
    our_deviation, their_deviation = (100.0 * float(np.std(scores, ddof=1)) for scores in (ours, theirs))
    verdict = NOT_SHOWN if p >= LEVEL else HOLDS if our_deviation < their_deviation else DOES_NOT_HOLD
    low, high = deviation_ratio_interval(ours, theirs, CONFIDENCE)
    ratio = our_deviation / their_deviation if their_deviation else 1.0
    evidence = (
        f"SD {our_deviation:.1f} against {their_deviation:.1f} points, ratio {ratio:.2f}, {low:.2f} to {high:.2f}, "
        f"{plural(len(ours), 'split')}; {p_value_phrase(p)}"
    )
    return Finding(setting_label(setting), guarded(verdict, len(ours)), evidence, ratio, (low, high), len(ours))


def _paper_accuracy_reached(rows: Sequence[ResultRow]) -> Claim:
    findings = []
    for setting, members in by_setting(rows, "table1").items():
        paper = paper_result(setting.dataset, setting.n_labeled, CMV_MED)
        ours = summaries(members, "accuracy").get(CMV_MED)
        if paper and ours and ours.deviation:
            findings.append(_paper_finding(setting, ours, ours.deviation, paper))
    return Claim(
        text=f"The accuracy that the paper reports for {CMV_MED} can be reached on the same data.",
        source="Table 1",
        rule="The interval (95 %, Welch) of the difference to the paper's mean, with its standard deviation over 20 "
        "splits: does not hold if it is entirely below zero, holds if it is entirely above −2 points, not shown "
        f"otherwise; no verdict below {MIN_SPLITS} splits.",
        spec="table1",
        findings=tuple(findings),
        effect="difference to the paper in points",
    )


def _paper_finding(setting: Setting, ours: Summary, deviation: float, paper: PaperResult) -> Finding:
    """Welch's interval of the difference of two means with unequal variances; ``deviation`` is that of ours."""
    difference = ours.mean - paper.mean / 100.0
    variances = deviation**2 / ours.n, (paper.deviation / 100.0) ** 2 / PAPER_SPLITS
    degrees = sum(variances) ** 2 / (variances[0] ** 2 / (ours.n - 1) + variances[1] ** 2 / (PAPER_SPLITS - 1))
    half_width = float(stats.t.ppf(0.5 + CONFIDENCE / 2.0, degrees)) * sqrt(sum(variances))
    low, high = difference - half_width, difference + half_width
    verdict = DOES_NOT_HOLD if high < 0.0 else HOLDS if low > -MAX_SIMILAR_DIFFERENCE else NOT_SHOWN
    evidence = (
        f"{100.0 * ours.mean:.1f} ± {100.0 * deviation:.1f} here, {paper.mean:.1f} ± {paper.deviation:.1f} in the "
        f"paper, {format_points(difference)} points, {format_interval((low, high))}, {plural(ours.n, 'split')}"
    )
    return Finding(setting_label(setting), guarded(verdict, ours.n), evidence, difference, (low, high), ours.n)
