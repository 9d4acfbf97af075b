"""The claims that Figure 2, accuracy against the number of labels, decides."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from cmvmed.reproduction.comparison import PairedComparison, paired_comparison, scores_by_split, train_test_ratio
from cmvmed.reproduction.report.claims import FAILS, HOLDS, HOLDS_HERE, NOT_SHOWN, Claim, Finding, place
from cmvmed.reproduction.report.formatting import listing, p_phrase, plural, points
from cmvmed.reproduction.report.grouping import COMPLETE, Setting, Summary, by_setting, is_of_paper, scored, summaries
from cmvmed.reproduction.report.label_curves import SPEC
from cmvmed.reproduction.report.significance import LEVEL, Verdict
from cmvmed.reproduction.result_rows import ResultRow

SIMILAR = 0.02  # accuracies within two points are called similar

ByNumber = dict[int, list[ResultRow]]


def curve_claims(rows: Sequence[ResultRow]) -> tuple[Claim, ...]:
    """The claims on how accuracy grows with labels."""
    curves = _curves(rows)
    return (
        Claim(
            text=f"{COMPLETE} is the best of the paper's methods at every number of labels.",
            source="Figure 2",
            rule="Holds if its mean accuracy is the highest at every number of labels that was run.",
            spec=SPEC,
            findings=tuple(_always_best(where, found) for where, found in curves.items()),
        ),
        Claim(
            text="It gains most where labels are few.",
            source="Section 5.2 and conclusion",
            rule="Compares the gain over the strongest of the paper's rivals at the fewest and at the most labels, split by split, "
            "by the tests of Table 1.",
            spec=SPEC,
            findings=tuple(filter(None, (_gains_early(where, found) for where, found in curves.items()))),
        ),
        Claim(
            text="With many labels all methods are similarly good on WebKB.",
            source="Section 5.2",
            rule="Holds if the means of the paper's methods lie within two points at the most labels that were run.",
            spec=SPEC,
            findings=tuple(
                _all_similar(where, found) for where, found in curves.items() if where.dataset.startswith("webkb")
            ),
        ),
        Claim(
            text="Every method grows more accurate with more labels.",
            source="Section 5.1",
            rule="Holds if every one of the paper's methods has a higher mean at the most labels than at the fewest.",
            spec=SPEC,
            findings=tuple(_all_grow(where, found) for where, found in curves.items()),
        ),
    )


def _curves(rows: Sequence[ResultRow]) -> dict[Setting, ByNumber]:
    """Rows of the paper's methods by number of labels; the setting that names a curve is that of the fewest labels."""
    names: dict[tuple[str, str], Setting] = {}
    curves: dict[Setting, ByNumber] = {}
    for setting, members in by_setting(rows, SPEC).items():
        of_paper = [row for row in scored(members, "accuracy") if is_of_paper(row.method) or row.method == COMPLETE]
        if any(row.method == COMPLETE for row in of_paper) and any(is_of_paper(row.method) for row in of_paper):
            name = names.setdefault((setting.dataset, setting.protocol), setting)
            curves.setdefault(name, {})[setting.n_labeled] = of_paper
    return {name: found for name, found in curves.items() if len(found) >= 2}


def _where(setting: Setting, found: ByNumber) -> str:
    return place(setting).replace(f"{setting.n_labeled} labels", f"{min(found)} to {max(found)} labels")


def _rivals(means: dict[str, Summary]) -> dict[str, Summary]:
    return {method: entry for method, entry in means.items() if is_of_paper(method)}


def _always_best(setting: Setting, found: ByNumber) -> Finding:
    leads = {}
    for number, members in found.items():
        means = summaries(members, "accuracy")
        leads[number] = means[COMPLETE].mean - max(entry.mean for entry in _rivals(means).values())
    won = [number for number, lead in leads.items() if lead > 0.0]
    verdict = HOLDS if len(won) == len(leads) else FAILS
    least, most = min(leads.values()), max(leads.values())
    evidence = (
        f"best at {len(won)} of {plural(len(leads), 'number')} of labels, lead {points(least)} to {points(most)} points"
    )
    return Finding(_where(setting, found), verdict, evidence)


def _gains_early(setting: Setting, found: ByNumber) -> Finding | None:
    few, many = _gain_by_split(found[min(found)]), _gain_by_split(found[max(found)])
    shared = sorted(few.keys() & many.keys())
    if len(shared) < 2:
        return None
    rows = [row for members in found.values() for row in members]
    paired = paired_comparison([few[n] for n in shared], [many[n] for n in shared], train_test_ratio(rows))
    evidence = (
        f"{points(fmean(few[n] for n in shared))} points at {min(found)} labels, "
        f"{points(fmean(many[n] for n in shared))} at {max(found)}, signed-rank {p_phrase(paired.wilcoxon_p)}, "
        f"corrected t {p_phrase(paired.corrected_t_p)}"
    )
    return Finding(_where(setting, found), _paired_verdict(paired), evidence)


def _gain_by_split(members: Sequence[ResultRow]) -> dict[int, float]:
    """Accuracy of the complete method minus that of the paper's rival with the highest mean, by split."""
    rivals = _rivals(summaries(members, "accuracy"))
    strongest = max(rivals, key=lambda method: rivals[method].mean)
    scores = scores_by_split(members, "accuracy")
    own, theirs = scores[COMPLETE], scores[strongest]
    return {split: own[split] - theirs[split] for split in own.keys() & theirs.keys()}


def _paired_verdict(paired: PairedComparison) -> Verdict:
    if paired.wilcoxon_p >= LEVEL:
        return NOT_SHOWN
    if paired.mean_difference <= 0.0:
        return FAILS
    return HOLDS if paired.corrected_t_p < LEVEL else HOLDS_HERE


def _all_similar(setting: Setting, found: ByNumber) -> Finding:
    means = [entry.mean for entry in summaries(found[max(found)], "accuracy").values()]
    reach = max(means) - min(means)
    evidence = f"means from {100.0 * min(means):.1f} to {100.0 * max(means):.1f} at {max(found)} labels"
    return Finding(_where(setting, found), HOLDS if reach <= SIMILAR else FAILS, evidence)


def _all_grow(setting: Setting, found: ByNumber) -> Finding:
    few, many = (summaries(found[number], "accuracy") for number in (min(found), max(found)))
    growth = {method: many[method].mean - few[method].mean for method in few if method in many}
    losers = [method for method, gain in growth.items() if gain <= 0.0]
    evidence = f"{points(min(growth.values()))} to {points(max(growth.values()))} points"
    if losers:
        evidence += f"; not {listing(losers)}"
    return Finding(_where(setting, found), FAILS if losers else HOLDS, evidence)
