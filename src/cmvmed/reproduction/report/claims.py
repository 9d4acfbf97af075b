"""Which of the paper's claims hold: each is decided by a stated rule from the rows, setting by setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy import stats

from cmvmed.reproduction.comparison import RivalComparison, scores_by_split, spread_p_value
from cmvmed.reproduction.paper_results import STAND_INS
from cmvmed.reproduction.report.accuracy_table import paper_entry
from cmvmed.reproduction.report.formatting import p_phrase, points
from cmvmed.reproduction.report.grouping import (
    COMPLETE,
    SINGLE_VIEW,
    Setting,
    by_setting,
    scored,
    summaries,
    title_of,
)
from cmvmed.reproduction.report.significance import LEVEL, Verdict, comparisons, verdict_of
from cmvmed.reproduction.result_rows import ResultRow

HOLDS = Verdict("yes", "holds")
HOLDS_HERE = Verdict("here", "holds on these rows")
NOT_SHOWN = Verdict("open", "not shown")
FAILS = Verdict("no", "does not hold")
PAPER_SPLITS = 20
AS_CLAIM = {"yes": HOLDS, "here": HOLDS_HERE, "open": NOT_SHOWN, "no": FAILS}


@dataclass(frozen=True)
class Finding:
    """A claim in one setting: the verdict and the numbers behind it."""

    where: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, by which rule and experiment it is decided here, and what was found."""

    text: str
    source: str
    rule: str
    spec: str
    findings: tuple[Finding, ...]

    @property
    def tally(self) -> tuple[tuple[Verdict, int], ...]:
        """How often each verdict was reached, the best first."""
        counts = Counter(finding.verdict for finding in self.findings)
        return tuple((verdict, counts[verdict]) for verdict in AS_CLAIM.values() if counts[verdict])


def place(setting: Setting) -> str:
    """A setting for the reader; a stand-in is named as one."""
    stand_in = " (stand-in)" if setting.dataset in STAND_INS else ""
    return f"{title_of(setting.dataset)}{stand_in}, {setting.n_labeled} labels, {setting.protocol}"


def table_claims(rows: Sequence[ResultRow]) -> tuple[Claim, ...]:
    """The claims that Table 1 decides."""
    compared = comparisons(rows)
    return (
        _beats(compared, "SVM-2K", lambda rival: rival == "SVM-2K"),
        _beats(compared, "MV-MED", lambda rival: rival == "MV-MED"),
        _beats(compared, "MED on either view alone", lambda rival: rival.startswith(SINGLE_VIEW)),
        _steadier(rows),
        _reached(rows),
    )


def _beats(compared: dict[Setting, list[RivalComparison]], name: str, is_rival: Callable[[str], bool]) -> Claim:
    findings = []
    for setting, rivals in compared.items():
        matching = [entry for entry in rivals if is_rival(entry.rival)]
        if matching:
            strongest = matching[0]  # rivals stand in the order of the mean difference
            findings.append(Finding(place(setting), AS_CLAIM[verdict_of(strongest).kind], _evidence(strongest)))
    return Claim(
        text=f"{COMPLETE} is more accurate than {name}.",
        source="Table 1",
        rule="Holds if the mean difference is positive and both tests, adjusted for all rivals, are below 0.05; holds on these "
        "rows if only the signed-rank test is; does not hold if that test shows the reverse; not shown otherwise.",
        spec="table1",
        findings=tuple(findings),
    )


def _evidence(comparison: RivalComparison) -> str:
    rival = f" against {comparison.rival}" if comparison.rival.startswith(SINGLE_VIEW) else ""
    return (
        f"{points(comparison.paired.mean_difference)} points{rival}, signed-rank {p_phrase(comparison.wilcoxon_holm)}, "
        f"corrected t {p_phrase(comparison.corrected_t_holm)}"
    )


def _steadier(rows: Sequence[ResultRow]) -> Claim:
    findings = []
    for setting, members in by_setting(rows, "table1").items():
        scores = scores_by_split(scored(members, "accuracy"), "accuracy")
        own, theirs = scores.get(COMPLETE, {}), scores.get("SVM-2K", {})
        shared = sorted(own.keys() & theirs.keys())
        if len(shared) >= 3:
            findings.append(_spread_finding(setting, [own[n] for n in shared], [theirs[n] for n in shared]))
    return Claim(
        text=f"{COMPLETE} varies less from split to split than SVM-2K.",
        source="Section 5.3, Table 1",
        rule="Compares standard deviations by the Pitman-Morgan test at 0.05.",
        spec="table1",
        findings=tuple(findings),
    )


def _spread_finding(setting: Setting, own: list[float], theirs: list[float]) -> Finding:
    p = spread_p_value(own, theirs)
    mine, other = (100.0 * float(stats.tstd(scores)) for scores in (own, theirs))
    verdict = NOT_SHOWN if p >= LEVEL else HOLDS if mine < other else FAILS
    return Finding(place(setting), verdict, f"SD {mine:.1f} against {other:.1f} points, {p_phrase(p)}")


def _reached(rows: Sequence[ResultRow]) -> Claim:
    findings = []
    for setting, members in by_setting(rows, "table1").items():
        paper = paper_entry(setting.dataset, setting.n_labeled, COMPLETE)
        ours = summaries(members, "accuracy").get(COMPLETE)
        if paper and ours and ours.deviation:
            mean, deviation = 100.0 * ours.mean, 100.0 * ours.deviation
            p = stats.ttest_ind_from_stats(
                mean, deviation, ours.n, paper.mean, paper.deviation, PAPER_SPLITS, equal_var=False
            ).pvalue
            verdict = HOLDS if mean >= paper.mean or p >= LEVEL else FAILS
            findings.append(
                Finding(
                    place(setting),
                    verdict,
                    f"{mean:.1f} ± {deviation:.1f} here, {paper.mean:.1f} ± {paper.deviation:.1f} there, {p_phrase(float(p))}",
                )
            )
    return Claim(
        text=f"The accuracy that the paper prints for {COMPLETE} can be reached on the same data.",
        source="Table 1",
        rule="Holds unless the mean here is lower and Welch's t-test, with the paper's mean and deviation over 20 splits, is "
        "below 0.05.",
        spec="table1",
        findings=tuple(findings),
    )
