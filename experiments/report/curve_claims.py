"""The paper's claims that are decided by Figure 2, accuracy against the number of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import fmean

from cmvmed.pages.formatting import plural
from experiments.comparison import scores_by_split, train_test_ratio
from experiments.methods import CMV_MED
from experiments.report.claims import MAX_SIMILAR_DIFFERENCE, Claim, Finding, setting_label
from experiments.report.curves import CURVE_EXPERIMENT, ByCount, falls
from experiments.report.grouping import Setting, by_setting, is_paper_baseline, summaries, with_score
from experiments.report.number_text import format_interval, format_points
from experiments.report.significance import (
    DOES_NOT_HOLD,
    MIN_SPLITS,
    Difference,
    Scores,
    Verdict,
    differences,
    interval_verdict,
)
from experiments.result_rows import ResultRow

_Decide = Callable[[Setting, ByCount], Finding | None]
RULE = (
    "holds if the intervals (95 %, jointly) of all mean differences over the splits {are}, with the variance for new rows; "
    "holds on these rows if those for other splits of the same rows are; does not hold if one of the latter is entirely "
    f"outside; not shown otherwise; no verdict below {MIN_SPLITS} splits."
)


def curve_claims(rows: Sequence[ResultRow]) -> tuple[Claim, ...]:
    """The claims about accuracy as a function of the number of labels."""
    curves = _curves(rows)
    on_webkb = {setting: found for setting, found in curves.items() if setting.dataset.startswith("webkb")}
    return (
        Claim(
            text=f"{CMV_MED} is the best of the paper's methods at every number of labels.",
            source="Figure 2",
            rule=f"Difference to each baseline at each number of labels: {RULE.format(are='are above zero')}",
            spec=CURVE_EXPERIMENT,
            findings=_findings(_always_best, curves),
            effect="smallest lead in points",
        ),
        Claim(
            text="Its gain is largest with few labels.",
            source="Section 5.2 and conclusion",
            rule="Gain over the strongest of the paper's baselines at the smallest number of labels minus that at the "
            f"largest, split by split: {RULE.format(are='are above zero')}",
            spec=CURVE_EXPERIMENT,
            findings=_findings(_larger_gain_with_few_labels, curves),
            effect="difference of the gains in points",
        ),
        Claim(
            text="With many labels all methods have a similar accuracy on WebKB.",
            source="Section 5.2",
            rule="Difference of every two of the paper's methods at the largest number of labels: "
            f"{RULE.format(are='are within two points')}",
            spec=CURVE_EXPERIMENT,
            findings=_findings(_all_similar, on_webkb),
            effect="largest difference in points",
        ),
        Claim(
            text="Every method is more accurate with more labels.",
            source="Section 5.1",
            rule="Difference of the largest to the smallest number of labels for each of the paper's methods: "
            f"{RULE.format(are='are above zero')} It does not hold either if a method falls between any two numbers of "
            "labels by an interval that is below zero.",
            spec=CURVE_EXPERIMENT,
            findings=_findings(_all_increase, curves),
            effect="smallest gain in points",
        ),
    )


def _curves(rows: Sequence[ResultRow]) -> dict[Setting, ByCount]:
    """Rows of the paper's methods by number of labels; the key of a curve is the setting with the fewest labels."""
    names: dict[tuple[str, str], Setting] = {}
    curves: dict[Setting, ByCount] = {}
    for setting, members in by_setting(rows, CURVE_EXPERIMENT).items():
        of_paper = [
            row for row in with_score(members, "accuracy") if is_paper_baseline(row.method) or row.method == CMV_MED
        ]
        if any(row.method == CMV_MED for row in of_paper) and any(is_paper_baseline(row.method) for row in of_paper):
            name = names.setdefault((setting.dataset, setting.protocol), setting)
            curves.setdefault(name, {})[setting.n_labeled] = of_paper
    return {name: found for name, found in curves.items() if len(found) >= 2}


def _findings(decide: _Decide, curves: dict[Setting, ByCount]) -> tuple[Finding, ...]:
    return tuple(filter(None, (decide(setting, found) for setting, found in curves.items())))


def _finding(
    setting: Setting, found: ByCount, verdict: Verdict, evidence: str, main: Difference, compared: Sequence[Difference]
) -> Finding:
    n_splits = min(entry.n_splits for entry in compared)
    text = f"{evidence}; {plural(n_splits, 'split')}"
    return Finding(_curve_label(setting, found), verdict, text, main.mean, main.same_rows, n_splits)


def _curve_label(setting: Setting, found: ByCount) -> str:
    return setting_label(setting).replace(f"{setting.n_labeled} labels", f"{min(found)} to {max(found)} labels")


def _scores(members: Sequence[ResultRow]) -> dict[str, Scores]:
    return scores_by_split(members, "accuracy")


def _ratio(found: ByCount) -> float:
    return train_test_ratio([row for members in found.values() for row in members])


def _number(difference: Difference) -> str:
    """A difference with its interval for other splits."""
    return f"{format_points(difference.mean)} points, {format_interval(difference.same_rows)}"


def _always_best(setting: Setting, found: ByCount) -> Finding | None:
    pairs: dict[str, tuple[Scores, Scores]] = {}
    for number, members in found.items():
        scores = _scores(members)
        ours = scores.pop(CMV_MED, {})
        pairs |= {f"{method} at {number} labels": (ours, theirs) for method, theirs in scores.items()}
    compared = differences(pairs, _ratio(found))
    if not compared:
        return None
    ahead = sum(entry.same_rows[0] > 0.0 for entry in compared)
    behind = sum(entry.same_rows[1] < 0.0 for entry in compared)
    smallest = min(compared, key=lambda entry: entry.mean)
    evidence = (
        f"better in {ahead} and worse in {behind} of {plural(len(compared), 'comparison')}; smallest lead: "
        f"{_number(smallest)}, over {smallest.name}"
    )
    return _finding(setting, found, interval_verdict(compared), evidence, smallest, compared)


def _larger_gain_with_few_labels(setting: Setting, found: ByCount) -> Finding | None:
    few, many = _gain_by_split(found[min(found)]), _gain_by_split(found[max(found)])
    compared = differences({"gain": (few, many)}, _ratio(found), largest=2.0)
    if not compared:
        return None
    shared = few.keys() & many.keys()
    evidence = (
        f"gain {format_points(fmean(few[n] for n in shared))} points at {min(found)} labels, "
        f"{format_points(fmean(many[n] for n in shared))} at {max(found)}, difference {_number(compared[0])}"
    )
    return _finding(setting, found, interval_verdict(compared), evidence, compared[0], compared)


def _gain_by_split(members: Sequence[ResultRow]) -> Scores:
    """Accuracy of CMV-MED minus that of the paper's baseline with the highest mean accuracy, by split."""
    means = {method: entry.mean for method, entry in summaries(members, "accuracy").items()}
    strongest = max((method for method in means if method != CMV_MED), key=lambda method: means[method])
    scores = _scores(members)
    ours, theirs = scores.get(CMV_MED, {}), scores[strongest]
    return {split: ours[split] - theirs[split] for split in ours.keys() & theirs.keys()}


def _all_similar(setting: Setting, found: ByCount) -> Finding | None:
    members = found[max(found)]
    scores = _scores(members)
    means = {method: entry.mean for method, entry in summaries(members, "accuracy").items()}
    ordered = sorted(scores, key=lambda method: -means[method])
    pairs = {f"{one} and {other}": (scores[one], scores[other]) for one, other in combinations(ordered, 2)}
    compared = differences(pairs, _ratio(found))
    if not compared:
        return None
    largest = max(compared, key=lambda entry: abs(entry.mean))
    evidence = (
        f"means from {100.0 * min(means.values()):.1f} to {100.0 * max(means.values()):.1f} at {max(found)} labels; "
        f"largest difference: {_number(largest)}, of {largest.name}"
    )
    verdict = interval_verdict(compared, -MAX_SIMILAR_DIFFERENCE, MAX_SIMILAR_DIFFERENCE)
    return _finding(setting, found, verdict, evidence, largest, compared)


def _all_increase(setting: Setting, found: ByCount) -> Finding | None:
    few, many = _scores(found[min(found)]), _scores(found[max(found)])
    pairs = {method: (many[method], few[method]) for method in few if method in many}
    compared = differences(pairs, _ratio(found))
    if not compared:
        return None
    smallest = min(compared, key=lambda entry: entry.mean)
    evidence = f"smallest gain: {_number(smallest)}, of {smallest.name}"
    falling = [fall for fall in falls(found) if fall.is_shown]
    if falling:
        evidence += f"; falls: {'; '.join(map(str, falling))}"
    verdict = DOES_NOT_HOLD if falling else interval_verdict(compared)
    return _finding(setting, found, verdict, evidence, smallest, compared)
