"""The picture of the demonstration: a recording, the comparison, the annealing, and how sure the consensus ends up."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.reproduction.demo.footsteps_demo import CONSENSUS, MAJORITY, Recordings, StageRecorder, draw_split

# Okabe and Ito's colors, which color-blind readers can tell apart.
SENSOR_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
CLASS_COLORS = ("#56b4e9", "#e69f00")
DARK, MIDDLE, FAINT = "#222222", "#666666", "#9a9a9a"


def draw(
    recordings: Recordings, accuracies: Mapping[str, Sequence[float]], recorder: StageRecorder, seed: int, path: Path
) -> None:
    """Draw the four panels and write them to ``path``, whole or not at all.

    Parameters
    ----------
    accuracies : method to its accuracy in each split
    recorder : what the test recordings of the split ``seed`` were taken for after each stage
    """
    figure = _new_figure()
    (heard, compared), (annealed, sure) = figure.subplots(2, 2)
    _, test = draw_split(recordings.y.size, seed)
    truth = recordings.y[test]
    _draw_recording(heard, recordings, _clearest(recordings, test[truth == 1]))
    _draw_comparison(compared, accuracies)
    _draw_annealing(annealed, recorder, truth)
    _draw_certainty(sure, recorder.consensus[-1], truth, recordings.class_names)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    figure.savefig(unfinished, dpi=130, format="png")
    os.replace(unfinished, path)


def _new_figure() -> Any:
    """A figure that knows of no window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError("The picture needs matplotlib: pip install 'cmvmed[plot]'") from error
    layout: Any = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15, wspace=0.02, hspace=0.06)
    figure = Figure(figsize=(12.5, 8.6), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _title(axes: Any, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=12.5, fontweight="bold", color=DARK, pad=10)
    axes.spines[["top", "right"]].set_visible(False)


def _clearest(recordings: Recordings, rows: NDArray[np.intp]) -> int:
    """Of some recordings, the one whose least clear sensor is the clearest."""
    return int(rows[recordings.snr_db[rows].min(axis=1).argmax()])


def _draw_recording(axes: Any, recordings: Recordings, row: int) -> None:
    """Draw one recording's sound at each sensor, one below the other, each on its own scale."""
    sounds = recordings.sounds[row]
    time = np.arange(sounds.shape[1]) / recordings.sampling_rate
    for level, (name, sound, color) in enumerate(zip(recordings.views, sounds, SENSOR_COLORS, strict=True)):
        axes.plot(time, 0.95 * sound / np.abs(sound).max() - 2 * level, color=color, linewidth=0.5)
        axes.text(-0.015, -2 * level, name, color=color, ha="right", va="center", transform=axes.get_yaxis_transform())
    _title(axes, f"What four sensors hear: {recordings.class_names[1]}")
    axes.set(xlabel="seconds", yticks=[], xlim=(0.0, time[-1]), ylim=(-2 * len(sounds) + 0.9, 1.1))
    axes.spines["left"].set_visible(False)


def _draw_comparison(axes: Any, accuracies: Mapping[str, Sequence[float]]) -> None:
    """Draw each method's accuracy: a faint dot for every split, a firm one for their mean."""
    names = [name for name in accuracies if name != MAJORITY]
    colors = (*SENSOR_COLORS, MIDDLE, DARK)  # each sensor alone, side by side, consensus
    for level, (name, color) in enumerate(reversed(list(zip(names, colors, strict=True)))):
        values = 100 * np.asarray(accuracies[name])
        axes.plot(values, np.full(values.size, level), "o", color=color, alpha=0.25, markersize=6, markeredgewidth=0)
        axes.plot(values.mean(), level, "D" if name == CONSENSUS else "o", color=color, markersize=9)
        axes.annotate(
            f"{values.mean():.1f}",
            (values.mean(), level),
            (0, 9),
            textcoords="offset points",
            ha="center",
            color=color,
        )
    guessed = 100 * float(np.mean(accuracies[MAJORITY]))
    axes.axvline(guessed, color=FAINT, linestyle=":", linewidth=1.2)
    axes.annotate(
        "always the\nmajority class", (guessed, -0.45), (4, 0), textcoords="offset points", color=FAINT, fontsize=9
    )
    axes.set_yticks(range(len(names)), [name.replace(", labels", ",\nlabels") for name in reversed(names)], fontsize=9)
    axes.set(xlabel="accuracy on test recordings, percent", ylim=(-0.6, len(names) - 0.3))
    _title(axes, "What the unlabeled recordings add")


def _draw_annealing(axes: Any, recorder: StageRecorder, truth: NDArray[np.int64]) -> None:
    """Draw the accuracy of sensors and consensus after each stage, with their names at the ends of the lines."""
    stages = np.arange(1, len(recorder.consensus) + 1)
    curves = {
        name: [100 * float(np.mean((p[name] > 0.5) == truth)) for p in recorder.by_view] for name in recorder.by_view[0]
    }
    for curve, color in zip(curves.values(), SENSOR_COLORS, strict=True):
        axes.plot(stages, curve, "o-", color=color, linewidth=1.4, markersize=4)
    together = [100 * float(np.mean((p > 0.5) == truth)) for p in recorder.consensus]
    axes.plot(stages, together, "D-", color=DARK, linewidth=2.6, markersize=6)
    labels = [(curve[-1], name, color) for (name, curve), color in zip(curves.items(), SENSOR_COLORS, strict=True)]
    _label_ends(axes, float(stages[-1]), [*labels, (together[-1], "consensus", DARK)])
    axes.set(xlabel="stage of the annealing", ylabel="accuracy, percent", xticks=stages)
    _title(axes, "How sensors teach each other, stage by stage")


def _label_ends(axes: Any, x: float, labels: list[tuple[float, str, str]]) -> None:
    """Write names at the ends of curves, moved apart where they would overlap."""
    bottom, top = axes.get_ylim()
    least = 0.06 * (top - bottom)
    position = -np.inf
    for height, name, color in sorted(labels):
        position = max(height, position + least)
        weight = "bold" if name == "consensus" else "normal"
        axes.annotate(
            name, (x, position), (10, 0), textcoords="offset points", va="center", color=color, fontweight=weight
        )


def _draw_certainty(axes: Any, p: NDArray[np.float64], truth: NDArray[np.int64], names: Sequence[str]) -> None:
    """Draw the final consensus of the test recordings, by what they truly are."""
    by_class = [p[truth == 0], p[truth == 1]]
    labels = [f"truly {name}" for name in names]
    axes.hist(by_class, np.linspace(0.0, 1.0, 21), stacked=True, color=CLASS_COLORS, label=labels, edgecolor="white")
    axes.axvline(0.5, ymax=0.7, color=DARK, linestyle=":", linewidth=1.2)
    axes.set(xlabel=f"consensus probability of {names[1]}", ylabel="test recordings", xlim=(0.0, 1.0))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.6, 1.0))
    _title(axes, "How sure the consensus is in the end")
