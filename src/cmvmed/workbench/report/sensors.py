"""What each view contributes, where views disagree, and which are weak, dead or redundant."""

from dataclasses import dataclass

import numpy as np

from cmvmed.pages.charts import Chart, DotRow, Mark, dot_chart
from cmvmed.pages.formatting import DASH, format_percentage, join_names, share_interval, short
from cmvmed.workbench.changes import describe_change
from cmvmed.workbench.project import score_of_class
from cmvmed.workbench.report.model_facts import ModelFacts, column_statistics
from cmvmed.workbench.tables.columns import FloatArray
from cmvmed.workbench.view_encoders import absent_rows, with_absent_rows

MAX_EXPLAINED = 300  # rows whose decisions are explained
MAX_PAIRS = 12
REDUNDANT = 0.02  # rate of disagreement below which two views say the same
MOSTLY_ABSENT = 0.5  # share of rows


@dataclass(frozen=True)
class SensorLine:
    """One view."""

    name: str
    accuracy: str  # of the view alone, on held-out labels
    weight: str  # in the consensus
    share: str  # of the decisions
    without: (
        str  # share of the unlabeled rows that keep their class, and their mean largest probability, if it is absent
    )
    remark: str
    fault: str  # "", "dead", "weak" or "redundant"


@dataclass(frozen=True)
class Sensors:
    """All views."""

    lines: tuple[SensorLine, ...]
    pairs: tuple[tuple[str, str, str], ...]  # two views, the rate of unequal classes, the class with the largest
    n_pairs: int
    figure: str
    has_shares: bool  # whether the model explains its decisions
    change: str  # in which view labeled rows are unlike all rows; empty if in none


def describe_sensors(facts: ModelFacts) -> Sensors:
    """Table, figure and pairs."""
    shares = decision_shares(facts)
    pairs = _pairs(facts)
    absences = _absences(facts)
    lines = tuple(_line(facts, i, shares, absences) for i in range(len(facts.model.view_names_)))
    return Sensors(lines, tuple(pairs[:MAX_PAIRS]), len(pairs), _figure(facts), shares is not None, _change(facts))


def _change(facts: ModelFacts) -> str:
    """In which view the labeled rows, if they were not chosen by a rule, are unlike all rows, which the model is used for."""
    if facts.model.labels_drawn == "chosen" or not hasattr(facts.model, "sensor_health"):
        return ""
    labeled = np.flatnonzero(facts.codes >= 0)
    return describe_change(
        facts.model, {name: matrix[labeled] for name, matrix in facts.table.views.items()}, "Labeled rows"
    )


def decision_shares(facts: ModelFacts) -> dict[str, float] | None:
    """Share of each view in the scores of the predicted classes; None if the model does not explain them.

    The share in a row is |contribution| / Σ |contributions|, and the result its mean over at most ``MAX_EXPLAINED`` rows.
    """
    if not hasattr(facts.model, "explain"):
        return None
    rows = facts.rows_with_views
    rows = rows[:: -(-len(rows) // MAX_EXPLAINED)]
    parts = facts.model.explain({name: matrix[rows] for name, matrix in facts.table.views.items()})
    codes = facts.distributions[rows].argmax(axis=1)
    size = {name: np.abs(score_of_class(part, codes)) for name, part in parts.items() if name != "prior"}
    total = np.maximum(sum(size.values()), np.finfo(float).tiny)
    return {name: float(np.mean(values / total)) for name, values in size.items()}


def _absences(facts: ModelFacts) -> dict[str, tuple[float, float]]:
    """By view, what becomes of unlabeled rows that lose it: the share that keeps its class, and the mean largest probability.

    They are at most ``MAX_EXPLAINED`` rows, and those that have the view and another one count.
    """
    views, rows = facts.table.views, np.intersect1d(facts.unlabeled, facts.rows_with_views)
    if not len(rows):
        return {}
    rows = rows[:: -(-len(rows) // MAX_EXPLAINED)]
    X = {name: matrix[rows] for name, matrix in views.items()}
    before, found = facts.model.predict_proba(X).argmax(axis=1), {}
    present = {name: ~absent_rows(matrix) for name, matrix in X.items()}
    for name, has in present.items():
        own = has & (np.sum(list(present.values()), axis=0) > 1)
        if own.any():
            some = {other: matrix[own] for other, matrix in X.items()}
            some[name] = with_absent_rows(some[name], np.ones(int(own.sum()), dtype=bool))
            after = facts.model.predict_proba(some)
            same = after.argmax(axis=1) == before[own]
            found[name] = float(same.mean()), float(after.max(axis=1).mean())
    return found


def _line(
    facts: ModelFacts, i: int, shares: dict[str, float] | None, absences: dict[str, tuple[float, float]]
) -> SensorLine:
    model, name = facts.model, facts.model.view_names_[i]
    accuracy = facts.member_accuracy(f"view {name}")
    fault, remark = _fault(facts, name, accuracy)
    return SensorLine(
        short(name),
        DASH if np.isnan(accuracy) else format_percentage(accuracy),
        format_percentage(model.view_weights_[i], 0),
        DASH if shares is None else format_percentage(shares.get(name, 0.0), 0),
        " / ".join(format_percentage(value, 0) for value in absences[name]) if name in absences else DASH,
        remark,
        fault,
    )


def _fault(facts: ModelFacts, name: str, accuracy: float) -> tuple[str, str]:
    """What is wrong with a view, and a sentence about it."""
    matrix = facts.table.views[name]
    absent = absent_rows(matrix)
    constant = column_statistics(matrix)[1] == 0.0
    if absent.all():
        return "dead", "Absent in all rows."
    if constant.all():
        return "dead", "All its columns are constant, as those of a dead sensor."
    most = facts.label_counts.max() / max(facts.label_counts.sum(), 1)
    if accuracy <= most:
        return "weak", f"Alone no better than always naming the class with most labels ({format_percentage(most, 0)})."
    if absent.mean() > MOSTLY_ABSENT:
        return "weak", f"Absent in {format_percentage(float(absent.mean()), 0)} of the rows."
    same = _says_the_same(facts, name)
    if same:
        return "redundant", f"Gives nearly the same classes as {join_names(same)}; one of them may suffice."
    if constant.any():
        return "", f"{int(constant.sum())} of {len(constant)} columns are constant."
    return "", ""


def _says_the_same(facts: ModelFacts, name: str) -> list[str]:
    found = facts.model.disagreement_
    rows = zip(found["view"], found["other"], found["rate"], strict=True)
    return [short(other) for view, other, rate in rows if view == name and rate <= REDUNDANT]


def _pairs(facts: ModelFacts) -> list[tuple[str, str, str]]:
    """Each pair of views once, those that disagree most first."""
    found = facts.model.disagreement_
    names = facts.model.view_names_
    order = np.argsort(-np.nan_to_num(found["rate"], nan=-1.0), kind="stable")
    return [
        (
            f"{short(found['view'][i])} and {short(found['other'][i])}",
            DASH if np.isnan(found["rate"][i]) else format_percentage(found["rate"][i]),
            _worst_class(facts, found["rate_by_class"][i]),
        )
        for i in order
        if names.index(found["view"][i]) < names.index(found["other"][i])
    ]


def _worst_class(facts: ModelFacts, rates: FloatArray) -> str:
    known = np.nan_to_num(rates, nan=-1.0)
    worst = int(known.argmax())
    return f"{facts.class_names[worst]} ({format_percentage(known[worst], 0)})" if known[worst] > 0.0 else DASH


def _figure(facts: ModelFacts) -> str:
    """Held-out accuracy of each view alone and of all together; empty if there is none."""
    estimate = facts.estimate
    if estimate is None:
        return ""
    n = estimate.n_held_out
    found = [("all views", "complete", estimate.held_out, "disc")]
    for name in facts.model.view_names_:
        accuracy = facts.member_accuracy(f"view {name}")
        if not np.isnan(accuracy):
            found.append((short(name, 30), "single", accuracy, "square"))
    if len(found) < 2:
        return ""
    rows = [_dots(name, style, accuracy, n, shape) for name, style, accuracy, shape in found]
    described = ", ".join(f"{name} {100 * accuracy:.0f}" for name, _, accuracy, _ in found)
    chart = Chart(
        "figure-views",
        "Accuracy of each view alone",
        f"Percentage of held-out labels that are predicted correctly: {described}. Lines are 90 % intervals.",
        "held-out labels predicted correctly, %; 90 % intervals",
    )
    return dot_chart(chart, rows)


def _dots(name: str, style: str, accuracy: float, n: float, shape: str) -> DotRow:
    low, high = share_interval(accuracy * n, n)
    return DotRow(name, style, (Mark(100.0 * accuracy, (100.0 * low, 100.0 * high), shape),))
