"""The first screen: can this model be used, how accurate is it and beside what, and what to do next."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from cmvmed.pages.formatting import LEVEL, clean, format_percentage, join_names, plural
from cmvmed.workbench.report.held_out import confusion_counts, doubtful_labels
from cmvmed.workbench.report.learning_curve import LearningCurve
from cmvmed.workbench.report.model_facts import AccuracyEstimate, ModelFacts
from cmvmed.workbench.report.sensors import Sensors

UNKNOWN = "It is unknown how many rows are classified correctly"
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
MAX_STEPS = 3
MAX_NAMES = 4  # of classes that are listed
FEW_LABELS = 3  # of a class, below which its share of correct predictions means nothing
POOR_RECALL = 0.15  # below the mean share of correct predictions
WORTHWHILE = 0.01  # least gain in accuracy for which more labels are suggested
DEPENDS = 0.2  # share of the unlabeled rows whose class depends on the class shares, from which on they are asked for
UNLIKE = 0.1  # difference of a class share between labels and unlabeled rows


@dataclass(frozen=True)
class Verdict:
    """Whether the model can be used."""

    kind: str  # yes, partial, open or no: color and symbol
    label: str
    headline: str
    sentences: tuple[str, ...]


def verdict(facts: ModelFacts) -> Verdict:
    """The answer of the first screen."""
    kind, label = _judgement(facts)
    estimate = facts.estimate
    if estimate is None:
        return Verdict(kind, label, UNKNOWN, (_no_estimate(facts),))
    return Verdict(kind, label, _headline(estimate), tuple(_sentences(facts, estimate)))


def _headline(estimate: AccuracyEstimate) -> str:
    low, mean, high = (round(100.0 * value) for value in (estimate.low, estimate.mean, estimate.high))
    if not estimate.is_known:
        return UNKNOWN
    if estimate.high - estimate.low > estimate.wide:
        return f"Probably between {low} and {high} of 100 rows are classified correctly"
    return (
        "Probably nearly all rows are classified correctly"
        if mean == 100
        else f"Probably about {mean} of 100 rows are classified correctly"
    )


def _judgement(facts: ModelFacts) -> tuple[str, str]:
    estimate, (_, largest) = facts.estimate, facts.largest_class
    if any(finding.level == "error" for finding in facts.findings):
        return "no", "Correct the data before you use it"
    kind, label = ("open", "Cannot be judged yet") if estimate is None else estimate.judge(largest)
    if kind == "yes" and any(finding.code in CAUTION_CODES for finding in facts.findings):
        return "partial", "Usable if the warnings about the data turn out harmless"
    return kind, label


def _no_estimate(facts: ModelFacts) -> str:
    if (facts.label_counts < 2).all():
        return "No class has two labels, so no label could be held out to judge the model."
    return "No labels were held out when it was trained: label more rows, of several groups if there are groups."


def _sentences(facts: ModelFacts, estimate: AccuracyEstimate) -> list[str]:
    name, share = facts.largest_class
    groups = facts.group_name
    which = "rows like the unlabeled ones" if facts.table.groups is None else f"rows of new groups ({groups})"
    mean = f"is {format_percentage(estimate.mean)} (" if estimate.is_known else "is unknown with so few labels ("
    n, n_right = round(estimate.n_held_out), format_percentage(estimate.held_out)
    found = [
        f"The expected accuracy on {which} {mean}{format_percentage(LEVEL, 0)} interval {format_percentage(estimate.low)} "
        f"to {format_percentage(estimate.high)}, which is wrong one time in ten); always naming the largest class, {name}, "
        f"would be right for {format_percentage(share)}.",
        *([estimate.few_groups] if estimate.few_groups else []),
    ]
    if estimate.n_random:
        found.append(f"{estimate.of_random_rows()} This interval does not rely on the probabilities.")
    held_out = f"Of {plural(n, 'held-out label')}, {n_right} {'is' if n == 1 else 'are'} predicted correctly"
    if np.isnan(estimate.labels_only):
        return [*found, f"{held_out}."]
    return [
        *found,
        f"{held_out}, and {format_percentage(estimate.labels_only)} by the labeled rows alone: the unlabeled rows "
        f"{estimate.effect()}.",
    ]


@dataclass(frozen=True)
class Step:
    """Something to do, and why."""

    action: str
    reason: str


def next_steps(facts: ModelFacts, answer: Verdict, sensors: Sensors, curve: LearningCurve | None) -> list[Step]:
    """At most three steps, the most useful first: to use the model, if nothing is in the way of it."""
    found = [
        *_use(facts, answer),
        *_data(facts),
        *_few_labels(facts),
        *_wide_interval(facts),
        *_sensors(sensors),
        *_poor_class(facts),
        *_doubtful(facts),
        *_class_shares(facts),
        *_drawn(facts),
        *_more_labels(curve),
    ]
    return found[:MAX_STEPS]


def _data(facts: ModelFacts) -> Iterator[Step]:
    errors = [finding for finding in facts.findings if finding.level == "error"]
    if errors:
        more = f" ({plural(len(errors), 'error')} in all)" if len(errors) > 1 else ""
        yield Step(f"Correct the data{more}", clean(errors[0].message))
    cautions = [finding for finding in facts.findings if finding.code in CAUTION_CODES]
    if cautions and not errors:
        more = f" ({plural(len(cautions), 'warning')} in all)" if len(cautions) > 1 else ""
        yield Step(f"Check what may make the estimate too high{more}", clean(cautions[0].message))


def _few_labels(facts: ModelFacts) -> Iterator[Step]:
    few = [k for k in np.argsort(facts.label_counts, kind="stable") if facts.label_counts[k] < FEW_LABELS]
    if few:
        names = [facts.class_names[k] for k in few]
        listed = join_names(names if len(names) <= MAX_NAMES else [*names[:MAX_NAMES], "others"])
        each = " each" if len(few) > 1 else ""
        yield Step(
            f"Label more rows of {listed}, until there are at least {FEW_LABELS}{each}",
            f"With fewer than {FEW_LABELS} labels, how well a class is recognized cannot be estimated.",
        )


def _wide_interval(facts: ModelFacts) -> Iterator[Step]:
    """The width of the interval falls with the square root of the number of held-out labels."""
    estimate = facts.estimate
    if estimate is None:
        yield Step(
            "Label more rows of each class", "Only labels that are held out say how accurate the model is on new rows."
        )
        return
    width = estimate.high - estimate.low
    if width > estimate.wide:
        n_more = 5 * ceil(facts.n_labeled * ((width / estimate.wide) ** 2 - 1.0) / 5.0)
        yield Step(
            f"Label about {plural(n_more, 'more row')}{', of other groups' if estimate.n_groups else ''}",
            f"The interval of the accuracy is {100 * width:.0f} points wide; it takes about {facts.n_labeled + n_more:,} labels to "
            f"bring it to {100 * estimate.wide:.0f} points. `cmvmed suggest -n {n_more}` chooses rows that help most.",
        )


def _sensors(sensors: Sensors) -> Iterator[Step]:
    faulty = [line for line in sensors.lines if line.fault in ("dead", "weak")]
    if len(faulty) == 1:
        yield Step(f"Check view {faulty[0].name}", faulty[0].remark)
    elif faulty:
        remarks = [f"{line.name}: {line.remark}" for line in faulty[:3]]
        yield Step(f"Check the views {join_names([line.name for line in faulty])}", " ".join(remarks))
    if sensors.change:
        yield Step(
            "Label rows of all kinds and times",
            f"{clean(sensors.change)} What held-out labels say may not hold for the other rows.",
        )


def _poor_class(facts: ModelFacts) -> Iterator[Step]:
    """The class that is recognized worst, with what it is taken for."""
    if facts.held_out is None:
        return
    counts = confusion_counts(facts.held_out, len(facts.class_names))
    n = counts.sum(axis=1)
    recall = np.where(n >= FEW_LABELS, np.diag(counts) / np.maximum(n, 1), 1.0)
    worst, mean = int(recall.argmin()), float(facts.held_out.is_right.mean())
    if recall[worst] < mean - POOR_RECALL:
        taken = np.where(np.arange(len(n)) == worst, -1, counts[worst])
        yield Step(
            f"Label more rows of {facts.class_names[worst]}",
            f"{np.diag(counts)[worst]} of its {n[worst]} held-out labels are predicted correctly; most others are taken for "
            f"{facts.class_names[int(taken.argmax())]}.",
        )


def _doubtful(facts: ModelFacts) -> Iterator[Step]:
    found = doubtful_labels(facts)
    if found:
        (row, label, predicted, _), n_more = found[0], len(found) - 1
        yield Step(
            f"Check the label of {row}" + (f" and {n_more} more" if n_more else ""),
            f"It is {label}, but the fit without it takes the row for {predicted}.",
        )


def _class_shares(facts: ModelFacts) -> Iterator[Step]:
    changed = facts.model.share_sensitivity_["changed"]
    if changed > DEPENDS:
        yield Step(
            "If you know roughly how often each class occurs, set class_prior in [model] of the project file",
            f"The class of {format_percentage(changed, 0)} of the unlabeled rows depends on it.",
        )


def _drawn(facts: ModelFacts) -> Iterator[Step]:
    """Labels whose classes are unlike those of the rows they stand for, without a word on how they were chosen."""
    share = facts.label_counts / facts.label_counts.sum()
    difference = np.abs(share - facts.model.class_prior_)
    k = int(difference.argmax())
    if facts.model.labels_drawn == "unknown" and difference[k] > UNLIKE:
        yield Step(
            "Say how the labeled rows were chosen: labels_drawn in [data]",
            f"{facts.class_names[k]} is {format_percentage(share[k], 0)} of the labels, but an estimated "
            f"{format_percentage(facts.model.class_prior_[k], 0)} of the unlabeled rows.",
        )


def _more_labels(curve: LearningCurve | None) -> Iterator[Step]:
    if curve is not None:
        best = next((entry for entry in curve.forecasts if entry.least_gain >= WORTHWHILE), None)
        if best is not None:
            yield Step(
                f"Label more rows, up to {best.n_labels:,} in all",
                f"Fits with fewer labels suggest a gain of about {100 * best.gain:.0f} percentage points.",
            )


def _use(facts: ModelFacts, answer: Verdict) -> Iterator[Step]:
    if answer.kind == "yes" and facts.estimate is not None:
        wrong = round(100.0 * (1.0 - facts.estimate.mean))
        yield Step(
            "Use it: `cmvmed predict new.csv -o predictions.csv`",
            f"Expect about {wrong} of 100 predictions to be wrong." if wrong else "Expect hardly any wrong prediction.",
        )
