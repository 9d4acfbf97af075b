"""The paper's claims that are decided by Figure 2, accuracy against the number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from cmvmed.reproduction.comparison import paired_comparison, scores_by_split, train_test_ratio
from cmvmed.reproduction.method_names import CMV_MED
from cmvmed.reproduction.report.claims import CLAIM_VERDICTS, DOES_NOT_HOLD, HOLDS, Claim, Finding, setting_label
from cmvmed.reproduction.report.formatting import format_points, join_names, p_value_phrase, plural
from cmvmed.reproduction.report.grouping import (
    Setting,
    Summary,
    by_setting,
    is_paper_baseline,
    summaries,
    with_score,
)
from cmvmed.reproduction.report.label_curves import SPEC
from cmvmed.reproduction.report.significance import verdict_of
from cmvmed.reproduction.result_rows import ResultRow

MAX_SIMILAR_DIFFERENCE = 0.02  # of accuracies that are called similar

ByCount = dict[int, list[ResultRow]]  # rows by number of labels


def curve_claims(rows: Sequence[ResultRow]) -> tuple[Claim, ...]:
    """The claims about accuracy as a function of the number of labels."""
    curves = _curves(rows)
    return (
        Claim(
            text=f"{CMV_MED} is the best of the paper's methods at every number of labels.",
            source="Figure 2",
            rule="Holds if its mean accuracy is the highest at every number of labels.",
            spec=SPEC,
            findings=tuple(_always_best(setting, found) for setting, found in curves.items()),
        ),
        Claim(
            text="Its gain is largest with few labels.",
            source="Section 5.2 and conclusion",
            rule="Compares the gain over the strongest of the paper's baselines at the smallest and at the largest "
            "number of labels, split by split, by the tests of Table 1.",
            spec=SPEC,
            findings=tuple(
                filter(None, (_larger_gain_with_few_labels(setting, found) for setting, found in curves.items()))
            ),
        ),
        Claim(
            text="With many labels all methods have a similar accuracy on WebKB.",
            source="Section 5.2",
            rule="Holds if the means of the paper's methods are within two points at the largest number of labels.",
            spec=SPEC,
            findings=tuple(
                _all_similar(setting, found) for setting, found in curves.items() if setting.dataset.startswith("webkb")
            ),
        ),
        Claim(
            text="Every method is more accurate with more labels.",
            source="Section 5.1",
            rule="Holds if the mean of each of the paper's methods is higher at the largest number of labels than "
            "at the smallest.",
            spec=SPEC,
            findings=tuple(_all_increase(setting, found) for setting, found in curves.items()),
        ),
    )


def _curves(rows: Sequence[ResultRow]) -> dict[Setting, ByCount]:
    """Rows of the paper's methods by number of labels; the key of a curve is the setting with the fewest labels."""
    names: dict[tuple[str, str], Setting] = {}
    curves: dict[Setting, ByCount] = {}
    for setting, members in by_setting(rows, SPEC).items():
        of_paper = [
            row for row in with_score(members, "accuracy") if is_paper_baseline(row.method) or row.method == CMV_MED
        ]
        if any(row.method == CMV_MED for row in of_paper) and any(is_paper_baseline(row.method) for row in of_paper):
            name = names.setdefault((setting.dataset, setting.protocol), setting)
            curves.setdefault(name, {})[setting.n_labeled] = of_paper
    return {name: found for name, found in curves.items() if len(found) >= 2}


def _curve_label(setting: Setting, found: ByCount) -> str:
    return setting_label(setting).replace(f"{setting.n_labeled} labels", f"{min(found)} to {max(found)} labels")


def _paper_baselines(means: dict[str, Summary]) -> dict[str, Summary]:
    return {method: entry for method, entry in means.items() if is_paper_baseline(method)}


def _always_best(setting: Setting, found: ByCount) -> Finding:
    leads = {}
    for number, members in found.items():
        means = summaries(members, "accuracy")
        leads[number] = means[CMV_MED].mean - max(entry.mean for entry in _paper_baselines(means).values())
    won = [number for number, lead in leads.items() if lead > 0.0]
    verdict = HOLDS if len(won) == len(leads) else DOES_NOT_HOLD
    lowest, highest = min(leads.values()), max(leads.values())
    evidence = (
        f"best at {len(won)} of {plural(len(leads), 'number')} of labels, "
        f"lead {format_points(lowest)} to {format_points(highest)} points"
    )
    return Finding(_curve_label(setting, found), verdict, evidence)


def _larger_gain_with_few_labels(setting: Setting, found: ByCount) -> Finding | None:
    few, many = _gain_by_split(found[min(found)]), _gain_by_split(found[max(found)])
    shared = sorted(few.keys() & many.keys())
    if len(shared) < 2:
        return None
    rows = [row for members in found.values() for row in members]
    paired = paired_comparison([few[n] for n in shared], [many[n] for n in shared], train_test_ratio(rows))
    outcome = verdict_of(paired.mean_difference, paired.wilcoxon_p, paired.corrected_t_p)
    verdict = CLAIM_VERDICTS[outcome.kind]
    evidence = (
        f"{format_points(fmean(few[n] for n in shared))} points at {min(found)} labels, "
        f"{format_points(fmean(many[n] for n in shared))} at {max(found)}, "
        f"signed-rank {p_value_phrase(paired.wilcoxon_p)}, corrected t {p_value_phrase(paired.corrected_t_p)}"
    )
    return Finding(_curve_label(setting, found), verdict, evidence)


def _gain_by_split(members: Sequence[ResultRow]) -> dict[int, float]:
    """Accuracy of CMV-MED minus that of the paper's baseline with the highest mean accuracy, by split."""
    baselines = _paper_baselines(summaries(members, "accuracy"))
    strongest = max(baselines, key=lambda method: baselines[method].mean)
    scores = scores_by_split(members, "accuracy")
    ours, theirs = scores[CMV_MED], scores[strongest]
    return {split: ours[split] - theirs[split] for split in ours.keys() & theirs.keys()}


def _all_similar(setting: Setting, found: ByCount) -> Finding:
    means = [entry.mean for entry in summaries(found[max(found)], "accuracy").values()]
    difference = max(means) - min(means)
    evidence = f"means from {100.0 * min(means):.1f} to {100.0 * max(means):.1f} at {max(found)} labels"
    verdict = HOLDS if difference <= MAX_SIMILAR_DIFFERENCE else DOES_NOT_HOLD
    return Finding(_curve_label(setting, found), verdict, evidence)


def _all_increase(setting: Setting, found: ByCount) -> Finding:
    few, many = (summaries(found[number], "accuracy") for number in (min(found), max(found)))
    gains = {method: many[method].mean - few[method].mean for method in few if method in many}
    exceptions = [method for method, gain in gains.items() if gain <= 0.0]
    evidence = f"{format_points(min(gains.values()))} to {format_points(max(gains.values()))} points"
    if exceptions:
        evidence += f"; exceptions: {join_names(exceptions)}"
    return Finding(_curve_label(setting, found), DOES_NOT_HOLD if exceptions else HOLDS, evidence)
