"""How the consensus and each view's own opinion fare from stage to stage of the annealing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.reproduction.report.charts import Chart, Series, line_chart
from cmvmed.reproduction.report.formatting import plural, points, slug
from cmvmed.reproduction.report.grouping import COMPLETE, by_setting, title_of
from cmvmed.reproduction.result_rows import ResultRow

Stage = dict[str, float]


@dataclass(frozen=True)
class AnnealingPanel:
    """One setting: the picture, the table and what was gained."""

    title: str
    sentence: str
    stages: tuple[int, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    figure: str


def annealing_panels(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[AnnealingPanel, ...]:
    """A panel for each setting in which the complete algorithm recorded its stages."""
    panels = []
    for setting, members in by_setting(rows, spec).items():
        runs = [row.annealing for row in members if row.method == COMPLETE and row.annealing]
        if runs:
            title = f"{title_of(setting.dataset)}, {setting.n_labeled} labels, {setting.protocol}"
            identity = slug("figure annealing", *setting)
            panels.append(_panel(identity, title, len(runs), mean_stages(runs)))
    return tuple(panels)


def mean_stages(runs: Sequence[Sequence[Mapping[str, float]]]) -> list[Stage]:
    """Mean over the runs of each stage's accuracies; a run that had ended earlier stays at its last stage."""
    longest = max(len(run) for run in runs)
    held = [[*run, *[run[-1]] * (longest - len(run))] for run in runs]
    names = sorted({name for run in held for stage in run for name in stage} - {"stage"})
    first = min(run[0]["stage"] for run in held)
    return [
        {"stage": first + k}
        | {name: float(np.mean([run[k][name] for run in held if name in run[k]])) for name in names}
        for k in range(longest)
    ]


def _panel(identity: str, title: str, n_splits: int, stages: Sequence[Stage]) -> AnnealingPanel:
    views = [name for name in stages[0] if name not in ("stage", "consensus")]
    styles = {"consensus": "complete"} | {name: "single second" if k else "single" for k, name in enumerate(views)}
    curves = [
        Series(name, style, tuple((stage["stage"], 100.0 * stage[name]) for stage in stages))
        for name, style in styles.items()
    ]
    chart = Chart(
        identity,
        f"Accuracy over the annealing on {title}",
        f"Mean held-out accuracy in percent over {plural(n_splits, 'split')} of the consensus and of each view's own opinion after "
        "each stage; the table that follows holds the same figures.",
        "stage of the annealing",
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
    parts = [f"Consensus {points(last['consensus'] - first['consensus'])} points from the first stage to the last"]
    if views:
        best = max(views, key=lambda view: last[view])
        parts.append(f"at the end {points(last['consensus'] - last[best])} against the better view ({best})")
    return "; ".join(parts) + "."
