"""The figure of the demonstration: a recording, the comparison, the annealing, and the final probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.demo.footsteps_demo import CONSENSUS, MAJORITY_CLASS, Footsteps, Recorder, StageProbabilities, split_rows
from cmvmed.pages.atomic_file import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, which color-blind readers can distinguish.
SENSOR_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
CLASS_COLORS = ("#56b4e9", "#e69f00")
DARK, MIDDLE, LIGHT = "#222222", "#666666", "#9a9a9a"


def draw_figure(
    recordings: Footsteps, accuracies: Mapping[str, Sequence[float]], recorder: Recorder, seed: int, path: Path
) -> None:
    """Draw the four panels and write them to ``path``.

    Parameters
    ----------
    recordings : Footsteps
    accuracies : mapping of method to its accuracy on each split
    recorder : StageRecorder
        Probabilities of the test recordings of the split ``seed`` after each stage.
    seed : int
    path : Path
        The file is written completely or not at all.
    """
    figure = _new_figure()
    (recording, comparison), (annealing, histogram) = figure.subplots(2, 2)
    _, test = split_rows(recordings.y.size, seed)
    truth = recordings.y[test]
    _draw_recording(recording, recordings, _clearest(recordings, test[truth == 1]))
    _draw_comparison(comparison, accuracies)
    _draw_annealing(annealing, recorder.values, truth)
    _draw_probabilities(histogram, recorder.values[-1].consensus, truth, recordings.class_names)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")


def _new_figure() -> Figure:
    """A figure that is not connected to a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout: Any = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15, wspace=0.02, hspace=0.06)
    figure = Figure(figsize=(12.5, 8.6), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _set_title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=12.5, fontweight="bold", color=DARK, pad=10)
    axes.spines[["top", "right"]].set_visible(False)


def _clearest(recordings: Footsteps, rows: NDArray[np.intp]) -> int:
    """The row with the highest minimum over the sensors of the signal-to-noise ratio."""
    return int(rows[recordings.snr_db[rows].min(axis=1).argmax()])


def _draw_recording(axes: Axes, recordings: Footsteps, row: int) -> None:
    """Draw the sound of one recording at each sensor, each on its own scale."""
    sounds = recordings.sounds[row]
    time = np.arange(sounds.shape[1]) / recordings.sampling_rate
    for level, (name, sound, color) in enumerate(zip(recordings.views, sounds, SENSOR_COLORS, strict=True)):
        axes.plot(time, 0.95 * sound / np.abs(sound).max() - 2 * level, color=color, linewidth=0.5)
        axes.text(-0.015, -2 * level, name, color=color, ha="right", va="center", transform=axes.get_yaxis_transform())
    _set_title(axes, f"One recording at four sensors: {recordings.class_names[1]}")
    axes.set(xlabel="seconds", yticks=[], xlim=(0.0, time[-1]), ylim=(-2 * len(sounds) + 0.9, 1.1))
    axes.spines["left"].set_visible(False)


def _draw_comparison(axes: Axes, accuracies: Mapping[str, Sequence[float]]) -> None:
    """Draw the accuracy of each method: a light dot for every split, a dark one for the mean."""
    names = [name for name in accuracies if name != MAJORITY_CLASS]
    colors = (*SENSOR_COLORS, MIDDLE, DARK)  # each sensor alone, concatenated sensors, consensus
    for level, (name, color) in enumerate(reversed(list(zip(names, colors, strict=True)))):
        values = 100 * np.asarray(accuracies[name])
        mean = float(values.mean())
        axes.plot(values, np.full(values.size, level), "o", color=color, alpha=0.25, markersize=6, markeredgewidth=0)
        axes.plot(mean, level, "D" if name == CONSENSUS else "o", color=color, markersize=9)
        axes.annotate(f"{mean:.1f}", (mean, level), (0, 9), textcoords="offset points", ha="center", color=color)
    majority = 100 * float(np.mean(accuracies[MAJORITY_CLASS]))
    axes.axvline(majority, color=LIGHT, linestyle=":", linewidth=1.2)
    axes.annotate("majority\nclass", (majority, -0.45), (4, 0), textcoords="offset points", color=LIGHT, fontsize=9)
    axes.set_yticks(range(len(names)), [name.replace(", labels", ",\nlabels") for name in reversed(names)], fontsize=9)
    axes.set(xlabel="accuracy on test recordings, percent", ylim=(-0.6, len(names) - 0.3))
    _set_title(axes, "Gain from unlabeled recordings")


def _draw_annealing(axes: Axes, stages: Sequence[StageProbabilities], truth: NDArray[np.int64]) -> None:
    """Draw the accuracy of each sensor and of the consensus after each stage, with names at the ends of the lines."""
    numbers = np.arange(1, len(stages) + 1)
    curves = {
        name: [100 * float(np.mean((stage.by_view[name] > 0.5) == truth)) for stage in stages]
        for name in stages[0].by_view
    }
    for curve, color in zip(curves.values(), SENSOR_COLORS, strict=True):
        axes.plot(numbers, curve, "o-", color=color, linewidth=1.4, markersize=4)
    consensus = [100 * float(np.mean((stage.consensus > 0.5) == truth)) for stage in stages]
    axes.plot(numbers, consensus, "D-", color=DARK, linewidth=2.6, markersize=6)
    labels = [(curve[-1], name, color) for (name, curve), color in zip(curves.items(), SENSOR_COLORS, strict=True)]
    _label_ends(axes, float(numbers[-1]), [*labels, (consensus[-1], "consensus", DARK)])
    axes.set(xlabel="annealing stage", ylabel="accuracy, percent", xticks=numbers)
    _set_title(axes, "Accuracy of sensors and consensus by stage")


def _label_ends(axes: Axes, x: float, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names at the ends of the curves without overlap."""
    bottom, top = axes.get_ylim()
    min_distance = 0.06 * (top - bottom)
    position = -np.inf
    for height, name, color in sorted(labels):
        position = max(height, position + min_distance)
        weight = "bold" if name == "consensus" else "normal"
        axes.annotate(
            name, (x, position), (10, 0), textcoords="offset points", va="center", color=color, fontweight=weight
        )


def _draw_probabilities(
    axes: Axes, probabilities: NDArray[np.float64], truth: NDArray[np.int64], names: Sequence[str]
) -> None:
    """Draw a histogram of the final consensus probabilities of the test recordings by true class."""
    by_class = [probabilities[truth == 0], probabilities[truth == 1]]
    labels = [f"true class: {name}" for name in names]
    axes.hist(
        by_class, list(np.linspace(0.0, 1.0, 21)), stacked=True, color=CLASS_COLORS, label=labels, edgecolor="white"
    )
    axes.axvline(0.5, ymax=0.7, color=DARK, linestyle=":", linewidth=1.2)
    axes.set(xlabel=f"consensus probability of {names[1]}", ylabel="test recordings", xlim=(0.0, 1.0))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.6, 1.0))
    _set_title(axes, "Probabilities after the last stage")
