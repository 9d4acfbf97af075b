"""The first screen: can this model be used, how accurate is it, and beside what."""

from dataclasses import dataclass

import numpy as np

from cmvmed.pages.charts import Chart, DotRow, Mark, dot_chart
from cmvmed.pages.formatting import format_percentage, plural
from cmvmed.workbench.report.model_facts import LEVEL, AccuracyEstimate, ModelFacts, share_interval

__all__ = ["CAUTION_CODES", "WIDE", "Verdict", "verdict"]

WIDE = 0.2  # width of the interval from which on more labels are needed to judge the model
# Findings that make an estimate from held-out labels too good.
CAUTION_CODES = (
    "leak",
    "repeated_rows",
    "crossing_groups",
    "time_orders_labels",
    "labels_of_one_period",
    "filled_if_labeled",
    "group_is_class",
)


@dataclass(frozen=True)
class Verdict:
    """Whether the model can be used."""

    kind: str  # yes, partial, open or no: color and symbol
    label: str
    headline: str
    sentences: tuple[str, ...]
    figure: str  # empty without an estimate


def verdict(facts: ModelFacts) -> Verdict:
    """The answer of the first screen."""
    kind, label = _judgement(facts)
    estimate = facts.estimate
    if estimate is None:
        return Verdict(kind, label, "The accuracy of this model is not known", (_no_estimate(facts),), "")
    return Verdict(kind, label, _headline(estimate), tuple(_sentences(facts, estimate)), _figure(facts, estimate))


def _headline(estimate: AccuracyEstimate) -> str:
    low, mean, high = (round(100.0 * value) for value in (estimate.low, estimate.mean, estimate.high))
    if estimate.high - estimate.low > WIDE:
        return f"Between {low} and {high} of 100 rows are classified correctly"
    return (
        "Nearly all rows are classified correctly"
        if mean == 100
        else f"About {mean} of 100 rows are classified correctly"
    )


def _judgement(facts: ModelFacts) -> tuple[str, str]:
    estimate, (_, largest) = facts.estimate, facts.largest_class
    if any(finding.level == "error" for finding in facts.findings):
        return "no", "Correct the data before you use it"
    if estimate is None:
        return "open", "Cannot be judged yet"
    if estimate.mean <= largest:
        return "no", "Not usable yet: no better than always naming the largest class"
    if estimate.low <= largest:
        return "open", "Not shown yet to be better than always naming the largest class"
    if estimate.high - estimate.low > WIDE:
        return "partial", "Promising, but there are too few labels to be sure"
    if any(finding.code in CAUTION_CODES for finding in facts.findings):
        return "partial", "Usable if the warnings about the data turn out harmless"
    return "yes", "Usable for rows like these"


def _no_estimate(facts: ModelFacts) -> str:
    if (facts.label_counts < 2).all():
        return "No class has two labels, so no label could be held out to judge the model."
    return "No labels were held out when it was trained; train it with calibrate = true in [model]."


def _sentences(facts: ModelFacts, estimate: AccuracyEstimate) -> list[str]:
    name, share = facts.largest_class
    groups = facts.group_name
    which = "rows like the unlabeled ones" if facts.table.groups is None else f"rows of new groups ({groups})"
    found = [
        f"The estimated accuracy on {which} is {format_percentage(estimate.mean)} ({format_percentage(LEVEL, 0)} "
        f"interval {format_percentage(estimate.low)} to {format_percentage(estimate.high)}); always naming the largest class, "
        f"{name}, would be right for {format_percentage(share)}."
    ]
    held_out = f"Of {plural(round(estimate.n_held_out), 'held-out label')}, {format_percentage(estimate.held_out)} are predicted"
    if np.isnan(estimate.labels_only):
        return [*found, f"{held_out}."]
    return [
        *found,
        f"{held_out}, and {format_percentage(estimate.labels_only)} by the labeled rows alone: the unlabeled rows "
        f"{estimate.effect()}.",
    ]


def _figure(facts: ModelFacts, estimate: AccuracyEstimate) -> str:
    """The model, the labels alone, and the largest class, on one axis."""
    name, share = facts.largest_class
    described = f"this model {100 * estimate.mean:.1f}, interval {100 * estimate.low:.1f} to {100 * estimate.high:.1f}"
    rows = [DotRow("this model", "complete", (_mark(estimate.mean, (estimate.low, estimate.high)),))]
    if not np.isnan(estimate.labels_only):
        n = estimate.n_held_out
        interval = share_interval(estimate.labels_only * n, n)
        rows.append(DotRow("labels only", "single", (_mark(estimate.labels_only, interval, "square"),)))
        described += f"; labels only {100 * estimate.labels_only:.1f}"
    chart = Chart(
        "figure-accuracy",
        "Estimated accuracy",
        f"In percent: {described}; always naming the largest class, {name}, {100 * share:.1f}.",
        "accuracy, %; lines are 90 % intervals",
    )
    return dot_chart(chart, rows, reference=(100.0 * share, "largest class"))


def _mark(value: float, interval: tuple[float, float], shape: str = "disc") -> Mark:
    return Mark(100.0 * value, (100.0 * interval[0], 100.0 * interval[1]), shape)
