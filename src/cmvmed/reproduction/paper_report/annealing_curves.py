"""Accuracy of the consensus and of each view after every annealing stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.pages.charts import Chart, Series, line_chart
from cmvmed.pages.formatting import format_points, plural, slug
from cmvmed.reproduction.method_names import CMV_MED
from cmvmed.reproduction.paper_report.grouping import by_setting
from cmvmed.reproduction.result_rows import ResultRow

Stage = dict[str, float]


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
            panels.append(_panel(element_id, setting.title, len(runs), mean_stages(runs)))
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


def _panel(element_id: str, title: str, n_splits: int, stages: Sequence[Stage]) -> AnnealingPanel:
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
        sentence=_sentence(stages, views),
        stages=tuple(int(stage["stage"]) for stage in stages),
        lines=tuple((name, tuple(f"{100.0 * stage[name]:.1f}" for stage in stages)) for name in styles),
        figure=line_chart(chart, curves, _ticks(stages)),
    )


def _ticks(stages: Sequence[Stage]) -> list[float]:
    values = [stage["stage"] for stage in stages]
    return values if len(values) > 1 else [values[0], values[0] + 1.0]


def _sentence(stages: Sequence[Stage], views: Sequence[str]) -> str:
    first, last = stages[0], stages[-1]
    gain = format_points(last["consensus"] - first["consensus"])
    parts = [f"Consensus {gain} points from the first to the last stage"]
    if views:
        best = max(views, key=lambda view: last[view])
        lead = format_points(last["consensus"] - last[best])
        parts.append(f"{lead} points compared with the best view ({best}) at the last stage")
    return "; ".join(parts) + "."
