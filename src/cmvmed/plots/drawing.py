"""Parts of the figures of recordings: signals, spectrograms, strips of classes, and bars of probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import spectrogram as power_by_time

from cmvmed.recordings.container import SensorSignals

FloatArray = NDArray[np.float64]

DYNAMIC_RANGE_DB = 60.0  # of spectrograms
SPECTRA_PER_WINDOW = 8  # of a spectrogram, each overlapping the next by the share
OVERLAP, OVERLAP_OF_ROW = 0.5, 0.9
TRACE_COLORS = ("#1f2933", "#7b8794", "#b6bfc9")


def draw_sensor(panels: Any, name: str, one: SensorSignals) -> None:
    """Draw signal and spectrogram of a single row, or that the sensor is missing in it."""
    signal = one[0]
    if signal is None:
        panels[0].text(0.5, 0.5, "missing", ha="center", va="center", transform=panels[0].transAxes, color="gray")
        panels[0].set_ylabel(name)
        panels[1].set_axis_off()
        return
    span = np.array([[0.0, signal.shape[1] / one.sampling_rate]])
    draw_signal(panels[0], name, one, span)
    draw_spectrogram(panels[1], name, one, span, OVERLAP_OF_ROW)
    panels[1].set_ylabel("Hz")


def class_colors(pyplot: Any, n_classes: int) -> FloatArray:
    """A color per class, (K, 4)."""
    colors: FloatArray = pyplot.get_cmap("tab10" if n_classes <= 10 else "tab20")(np.arange(n_classes))
    return colors


def draw_bars(axis: Any, p: FloatArray, classes: Sequence[Any], colors: FloatArray) -> None:
    """Draw the probability of each class as a bar beside its name; nothing if it is not known."""
    if np.isnan(p).any():
        axis.set_axis_off()
        return
    positions = np.arange(len(classes))
    axis.barh(positions, p, color=colors)
    axis.set_yticks(positions, [str(name) for name in classes])
    axis.invert_yaxis()
    axis.set_xlim(0.0, 1.0)
    axis.set_xticks([0.0, 1.0])
    axis.tick_params(labelsize=7)


def parts(signals: SensorSignals, spans: FloatArray) -> list[tuple[float, FloatArray]]:
    """Return start and samples of each window that has the sensor, up to the next window."""
    parts = []
    for signal, (start, end) in zip(signals, spans, strict=True):
        if signal is not None:
            n_samples = min(signal.shape[1], max(1, round((end - start) * signals.sampling_rate)))
            parts.append((float(start), np.asarray(signal[:, :n_samples], dtype=np.float64)))
    return parts


def draw_signal(axis: Any, name: str, signals: SensorSignals, spans: FloatArray) -> None:
    """Draw all channels of a sensor over time."""
    for start, samples in parts(signals, spans):
        time = start + np.arange(samples.shape[1]) / signals.sampling_rate
        for channel, values in enumerate(samples):
            axis.plot(time, values, linewidth=0.5, color=TRACE_COLORS[channel % len(TRACE_COLORS)])
    axis.set_ylabel(name)
    axis.tick_params(labelsize=7)


def draw_spectrogram(axis: Any, name: str, signals: SensorSignals, spans: FloatArray, overlap: float = OVERLAP) -> None:
    """Draw the power of the first channel of a sensor over time and frequency."""
    rate, images = signals.sampling_rate, []
    for start, samples in parts(signals, spans):
        centered, n_window = samples[0] - samples[0].mean(), max(1, samples.shape[1] // SPECTRA_PER_WINDOW)
        power = power_by_time(centered, rate, nperseg=n_window, noverlap=int(overlap * n_window))[2]
        images.append((start, start + samples.shape[1] / rate, 10.0 * np.log10(power + np.finfo(float).tiny)))
    top = max((level.max() for _, _, level in images), default=0.0)
    for start, end, level in images:
        extent = (start, end, 0.0, rate / 2)
        axis.imshow(
            level, origin="lower", aspect="auto", extent=extent, cmap="magma", vmin=top - DYNAMIC_RANGE_DB, vmax=top
        )
    axis.set_ylim(0.0, rate / 2)
    axis.set_ylabel(f"{name} (Hz)")
    axis.tick_params(labelsize=7)


def draw_strip(axis: Any, name: str, p: FloatArray, spans: FloatArray, colors: FloatArray) -> None:
    """Draw the most probable class as a colored bar, paler the less probable it is."""
    n_classes = p.shape[1]
    for row, (start, end) in zip(p, spans, strict=True):
        if not np.isnan(row).any():
            certainty = (row.max() - 1.0 / n_classes) / (1.0 - 1.0 / n_classes)
            alpha = float(np.clip(0.15 + 0.85 * certainty, 0.0, 1.0))
            axis.axvspan(start, end, color=colors[int(row.argmax())], alpha=alpha, linewidth=0)
    axis.set_yticks([])
    axis.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)


def draw_consensus(axis: Any, p: FloatArray, classes: Sequence[Any], spans: FloatArray, colors: FloatArray) -> None:
    """Draw the probabilities of all classes above each other."""
    base = np.zeros(len(p))
    for k, name in enumerate(classes):
        axis.bar(
            spans[:, 0],
            p[:, k],
            np.diff(spans, axis=1)[:, 0],
            bottom=base,
            align="edge",
            color=colors[k],
            label=str(name),
        )
        base += p[:, k]
    axis.set_ylim(0.0, 1.0)
    axis.set_yticks([0.0, 1.0])
    axis.set_ylabel("consensus")
    axis.figure.legend(loc="outside upper center", ncols=min(len(classes), 6), fontsize=8, frameon=False)
