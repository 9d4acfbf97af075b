"""Curves of the report: accuracy by number of labels (Figure 2) and by annealing stage, and the calibration of probabilities.

Also here: which methods are less accurate with more labels, and charts as a figure in a file of its own, such as those
of the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from xml.etree import ElementTree

import numpy as np

from cmvmed.pages.charts import OTHER, Chart, Series, line_chart
from cmvmed.pages.formatting import DASH, plural
from cmvmed.pages.rendering import read_template
from cmvmed.pages.svg import Element, element, text_element, to_markup
from experiments.comparison import mean_interval, scores_by_split, train_test_ratio
from experiments.methods import CMV_MED, without_kernel
from experiments.report.grouping import (
    Setting,
    by_setting,
    dataset_title,
    format_percent,
    method_position,
    method_style,
    settings_with_score,
    summaries,
    values_by_method,
    with_score,
)
from experiments.report.number_text import format_interval, format_points, slug
from experiments.report.significance import MIN_SPLITS, Difference, Scores, differences
from experiments.result_rows import ResultRow
from experiments.scores import ReliabilityBins, calibration_error, pool_bins

CURVE_EXPERIMENT = "figure2"
BAND_CONFIDENCE = 0.9  # of the interval of a mean that a band shows, for other splits of the same rows
MIN_BAND_SPLITS = 5  # for a band; the interval of fewer splits is wider than the differences between methods
MIN_BIN_ROWS = 20  # bins with fewer test rows over all splits are not drawn
TITLE_HEIGHT, GAP = 34.0, 24.0
NAMESPACE = "http://www.w3.org/2000/svg"

ByCount = dict[int, list[ResultRow]]  # rows by number of labels
Stage = dict[str, float]  # number and accuracies of an annealing stage


@dataclass(frozen=True)
class Fall:
    """The largest fall of a method's mean accuracy from one number of labels to a larger one."""

    method: str
    few: int
    many: int
    difference: Difference

    @property
    def is_shown(self) -> bool:
        """Whether the interval for other splits is below zero, with enough splits for a verdict."""
        return self.difference.n_splits >= MIN_SPLITS and self.difference.same_rows[1] < 0.0

    def __str__(self) -> str:
        """Method, numbers of labels, difference and, if there are enough splits for one, interval."""
        has_interval = self.difference.n_splits >= MIN_SPLITS
        interval = f", {format_interval(self.difference.same_rows)}" if has_interval else ""
        points = f"{format_points(self.difference.mean)} points{interval}"
        return f"{self.method} from {self.few} to {self.many} labels ({points})"


def falls(found: ByCount) -> tuple[Fall, ...]:
    """The largest fall of each method that has one; intervals hold jointly over all methods and pairs of numbers."""
    rows = [row for members in found.values() for row in members]
    by_count = {n: scores_by_split(with_score(members, "accuracy"), "accuracy") for n, members in found.items()}
    names: dict[str, tuple[str, int, int]] = {}
    pairs: dict[str, tuple[Scores, Scores]] = {}
    for few, many in combinations(sorted(found), 2):
        for method in by_count[few].keys() & by_count[many].keys():
            name = f"{method}/{few}/{many}"
            names[name] = method, few, many
            pairs[name] = by_count[many][method], by_count[few][method]
    largest: dict[str, Fall] = {}
    for difference in differences(pairs, train_test_ratio(rows)):
        fall = Fall(*names[difference.name], difference)
        known = largest.get(fall.method)
        if difference.mean < 0.0 and (known is None or difference.mean < known.difference.mean):
            largest[fall.method] = fall
    return tuple(largest[method] for method in sorted(largest, key=method_position))


def falls_sentence(found: Sequence[Fall]) -> str:
    """Which curves fall, beyond chance or within it; empty if none does."""
    shown = "; ".join(str(fall) for fall in found if fall.is_shown)
    within = "; ".join(str(fall) for fall in found if not fall.is_shown)
    parts = [f"Less accurate with more labels: {shown}."] if shown else []
    if within:
        parts.append(f"Means that fall, which may be chance: {within}.")
    return " ".join(parts)


@dataclass(frozen=True)
class CurveLine:
    """Accuracy of one method at each number of labels."""

    method: str
    style: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CurvePanel:
    """Figure and table of one data set and protocol, and which curves fall."""

    dataset: str
    protocol: str
    title: str
    facts: str
    falls: str
    label_counts: tuple[int, ...]
    lines: tuple[CurveLine, ...]
    figure: str


def curve_panels(rows: Sequence[ResultRow]) -> tuple[CurvePanel, ...]:
    """A panel for each data set and protocol with at least two numbers of labels."""
    groups: dict[tuple[str, str], dict[int, list[ResultRow]]] = {}
    for setting, members in settings_with_score(rows, CURVE_EXPERIMENT, "accuracy").items():
        groups.setdefault((setting.dataset, setting.protocol), {})[setting.n_labeled] = members
    return tuple(_curve_panel(*names, by_count) for names, by_count in groups.items() if len(by_count) >= 2)


def curve_style(method: str, methods: Sequence[str]) -> str:
    """Style of a curve; all single views but the first are dashed, and our default has its color with any kernel."""
    style = method_style(method)
    if without_kernel(method) == CMV_MED and CMV_MED not in methods:
        return method_style(CMV_MED)
    singles = [name for name in methods if method_style(name) == "single"]
    return "single second" if style == "single" and singles.index(method) > 0 else style


def _curve_panel(dataset: str, protocol: str, by_count: dict[int, list[ResultRow]]) -> CurvePanel:
    counts = tuple(sorted(by_count))
    columns = {count: summaries(by_count[count], "accuracy") for count in counts}
    methods = sorted({method for column in columns.values() for method in column}, key=method_position)
    sizes = [len({row.split for row in members if row.status == "done"}) for members in by_count.values()]
    n_splits = plural(max(sizes), "split") if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)} splits"
    title = f"{dataset_title(dataset)}, {protocol}"
    values = {count: values_by_method(by_count[count], "accuracy") for count in counts}
    curves = [_curve(method, curve_style(method, methods), values) for method in methods]
    chart = Chart(
        slug("figure", CURVE_EXPERIMENT, dataset, protocol),
        f"Accuracy against the number of labels on {title}",
        f"Mean accuracy in percent over {n_splits} at {counts[0]} to {counts[-1]} labels, with bands of "
        f"the {100 * BAND_CONFIDENCE:.0f} % interval of the mean; the following table contains the same numbers.",
        "labeled rows",
        "accuracy on held-out rows, %",
    )
    return CurvePanel(
        dataset=dataset,
        protocol=protocol,
        title=title,
        falls=falls_sentence(falls(by_count)),
        facts=n_splits,
        label_counts=counts,
        lines=tuple(
            CurveLine(method, method_style(method), tuple(format_percent(columns[n].get(method)) for n in counts))
            for method in methods
        ),
        figure=line_chart(chart, curves, [float(n) for n in counts], logarithmic=counts[-1] >= 4 * counts[0]),
    )


def _curve(method: str, style: str, values: dict[int, dict[str, list[float]]]) -> Series:
    found = [
        (float(count), [100.0 * score for score in column[method]])
        for count, column in values.items()
        if method in column
    ]
    band = tuple((x, *mean_interval(scores, BAND_CONFIDENCE)) for x, scores in found if len(scores) >= MIN_BAND_SPLITS)
    points = tuple((x, fmean(scores)) for x, scores in found)
    return Series(method, style, points, band if style != OTHER else ())


@dataclass(frozen=True)
class AnnealingPanel:
    """Figure, table and summary of one setting."""

    title: str
    sentence: str
    stages: tuple[int, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    figure: str


def annealing_panels(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[AnnealingPanel, ...]:
    """A panel for each setting in which CMV-MED recorded its stages."""
    panels = []
    for setting, members in by_setting(rows, spec).items():
        runs = [row.annealing for row in members if row.method == CMV_MED and row.annealing]
        if runs:
            element_id = slug("figure annealing", *setting)
            panels.append(_annealing_panel(element_id, setting.title, len(runs), mean_stages(runs)))
    return tuple(panels)


def mean_stages(runs: Sequence[Sequence[Mapping[str, float]]]) -> list[Stage]:
    """Mean accuracy of each stage over the runs; a shorter run is continued with its last stage."""
    n_stages = max(len(run) for run in runs)
    extended = [[*run, *[run[-1]] * (n_stages - len(run))] for run in runs]
    names = sorted({name for run in extended for stage in run for name in stage} - {"stage"})
    first = min(run[0]["stage"] for run in extended)
    return [
        {"stage": first + k}
        | {name: float(np.mean([run[k][name] for run in extended if name in run[k]])) for name in names}
        for k in range(n_stages)
    ]


def _annealing_panel(element_id: str, title: str, n_splits: int, stages: Sequence[Stage]) -> AnnealingPanel:
    views = [name for name in stages[0] if name not in ("stage", "consensus")]
    styles = {"consensus": "complete"} | {name: "single second" if k else "single" for k, name in enumerate(views)}
    curves = [
        Series(name, style, tuple((stage["stage"], 100.0 * stage[name]) for stage in stages))
        for name, style in styles.items()
    ]
    chart = Chart(
        element_id,
        f"Accuracy over the annealing on {title}",
        f"Mean held-out accuracy in percent over {plural(n_splits, 'split')} of the consensus and of each view after "
        "each stage; the following table contains the same numbers.",
        "annealing stage",
        "accuracy on held-out rows, %",
    )
    return AnnealingPanel(
        title=title,
        sentence=_annealing_sentence(stages, views),
        stages=tuple(int(stage["stage"]) for stage in stages),
        lines=tuple((name, tuple(f"{100.0 * stage[name]:.1f}" for stage in stages)) for name in styles),
        figure=line_chart(chart, curves, _ticks(stages)),
    )


def _ticks(stages: Sequence[Stage]) -> list[float]:
    values = [stage["stage"] for stage in stages]
    return values if len(values) > 1 else [values[0], values[0] + 1.0]


def _annealing_sentence(stages: Sequence[Stage], views: Sequence[str]) -> str:
    first, last = stages[0], stages[-1]
    gain = format_points(last["consensus"] - first["consensus"])
    parts = [f"Consensus {gain} points from the first to the last stage"]
    if views:
        best = max(views, key=lambda view: last[view])
        lead = format_points(last["consensus"] - last[best])
        parts.append(f"{lead} points compared with the best view ({best}) at the last stage")
    return "; ".join(parts) + "."


@dataclass(frozen=True)
class CalibrationLine:
    """Calibration error of one method over the test rows of all splits, and mean log-loss."""

    method: str
    style: str
    calibration_error: str
    log_loss: str


@dataclass(frozen=True)
class CalibrationPanel:
    """Figure and table of one setting."""

    title: str
    lines: tuple[CalibrationLine, ...]
    figure: str


def calibration_panels(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[CalibrationPanel, ...]:
    """A panel for each setting in which at least one method has probabilities."""
    panels = []
    for setting, members in by_setting(rows, spec).items():
        bins: dict[str, list[ReliabilityBins]] = {}
        for row in members:
            if row.status == "done" and row.reliability:
                bins.setdefault(row.method, []).append(row.reliability)
        if bins:
            panels.append(
                _calibration_panel(
                    setting, members, {method: bins[method] for method in sorted(bins, key=method_position)}
                )
            )
    return tuple(panels)


def _calibration_panel(
    setting: Setting, members: Sequence[ResultRow], bins: dict[str, list[ReliabilityBins]]
) -> CalibrationPanel:
    curves = [_reliability(method, curve_style(method, list(bins)), splits) for method, splits in bins.items()]
    drawn = [curve for curve in curves if curve.points]
    lowest = min((curve.points[0][0] for curve in drawn), default=50.0)
    ticks = [float(value) for value in range(10 * int(min(lowest, 90.0) // 10), 101, 10)]
    chart = Chart(
        slug("figure calibration", *setting),
        f"Calibration on {setting.title}",
        "Share of correct predictions against their confidence, both in percent; calibrated probabilities are on the "
        "dashed diagonal, overconfident ones below it. The following table contains the errors.",
        "confidence, %",
        "correct, %",
    )
    return CalibrationPanel(
        setting.title, _calibration_lines(members, bins), line_chart(chart, drawn, ticks, diagonal=True)
    )


def _reliability(method: str, style: str, splits: Sequence[ReliabilityBins]) -> Series:
    bins = [entry for entry in pool_bins(splits) if entry[0] >= MIN_BIN_ROWS]
    return Series(method, style, tuple((100.0 * confidence, 100.0 * correct) for _, confidence, correct in bins))


def _calibration_lines(
    members: Sequence[ResultRow], bins: dict[str, list[ReliabilityBins]]
) -> tuple[CalibrationLine, ...]:
    losses = summaries(members, "log_loss")
    return tuple(
        CalibrationLine(
            method,
            method_style(method),
            f"{calibration_error(splits):.3f}",
            f"{losses[method].mean:.3f}" if method in losses else DASH,
        )
        for method, splits in bins.items()
    )


def figure_file(title: str, panels: Sequence[tuple[str, str]]) -> str:
    """An SVG file with panels side by side, each with a title; colors follow the light or dark color scheme.

    Parameters
    ----------
    title : str
        Text alternative of the figure.
    panels : sequence of (title, chart)
        Charts as returned by ``line_chart`` or ``dot_chart``.
    """
    style = read_template("charts.css")
    charts = [ElementTree.fromstring(markup) for _, markup in panels]  # nosec B314 # made by this package
    sizes = [_size(chart) for chart in charts]
    width = sum(w for w, _ in sizes) + GAP * (len(sizes) + 1)
    height = max(h for _, h in sizes) + TITLE_HEIGHT + GAP
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height}
    root = element("svg", element("title", title), element("style", style), **size)
    root.set("xmlns", NAMESPACE)
    root.append(element("rect", width=width, height=height, style="fill: var(--paper)"))
    left = GAP
    for (panel_title, _), chart, (w, h) in zip(panels, charts, sizes, strict=True):
        heading = text_element(left, 24.0, panel_title, style="font-weight: 700; font-size: 14px; fill: var(--ink)")
        root.append(heading)
        for name, value in {"x": left, "y": TITLE_HEIGHT, "width": w, "height": h}.items():
            chart.set(name, f"{value:g}")
        root.append(chart)
        left += w + GAP
    return to_markup(root) + "\n"


def _size(chart: Element) -> tuple[float, float]:
    _, _, width, height = map(float, chart.attrib["viewBox"].split())
    return width, height
