"""Figures of recordings. Needs matplotlib, which the extra ``plot`` installs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import spectrogram as power_by_time

from cmvmed._optional import import_optional
from cmvmed.recordings.container import Recordings, SensorSignals

__all__ = ["plot_timeline"]

FloatArray = NDArray[np.float64]

DYNAMIC_RANGE_DB = 60.0  # of spectrograms
SPECTRA_PER_WINDOW = 8  # of a spectrogram, each overlapping the next by the share
OVERLAP, OVERLAP_OF_CASE = 0.5, 0.9
SIGNAL_HEIGHT, STRIP_HEIGHT, CONSENSUS_HEIGHT = 1.0, 0.16, 0.8  # inches times the scale below
INCHES = 1.25
TRACE_COLORS = ("#1f2933", "#7b8794", "#b6bfc9")


def plot_timeline(
    cases: Recordings,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    *,
    by_sensor: Mapping[str, ArrayLike] | None = None,
    truth: Sequence[Any] | None = None,
    spectrograms: Collection[str] = (),
    width: float = 9.0,
) -> Any:
    """Draw the signals of several sensors over time, what each says, and the consensus.

    Parameters
    ----------
    cases : Recordings
        Windows of one recording, as :func:`cmvmed.recordings.cut_windows` makes them: with ``times``.
    probabilities : (n_cases, n_classes)
        Of each class, by all sensors together: ``model.predict_proba(cases)``.
    classes : sequence of n_classes
        Their names in the order of the columns: ``model.classes_``.
    by_sensor : dict of sensor name -> (n_cases, n_classes), optional
        Probabilities by one sensor alone, drawn as a strip below its signal, NaN where it says nothing.
    truth : sequence of n_cases, optional
        Known classes, None where unknown, drawn as a strip below the consensus.
    spectrograms : collection of sensor names
        Sensors that are drawn as power over time and frequency, of the first channel, instead of as signals.
    width : float
        Width of the figure in inches.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown; ``figure.savefig("timeline.pdf")`` saves it.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> from cmvmed.plots import plot_timeline
    >>> from cmvmed.recordings import cut_windows, long_recording
    >>> day = long_recording("day", {"wrist": np.random.default_rng(0).normal(size=(3, 500))}, 50.0)
    >>> windows = cut_windows(day, length=2.0)
    >>> probabilities = np.tile([0.8, 0.2], (len(windows), 1))
    >>> figure = plot_timeline(windows, probabilities, ["walk", "run"])
    >>> len(figure.axes) > 1
    True
    >>> matplotlib.pyplot.close(figure)
    """
    pyplot = import_optional("matplotlib.pyplot", "plot", "plot_timeline")
    spans = _spans(cases)
    p = _checked("probabilities", probabilities, len(cases), len(classes))
    opinions = _opinions(cases, by_sensor, len(classes))
    unknown = [name for name in spectrograms if name not in cases.sensors]
    if unknown:
        raise ValueError(f"There is no sensor {unknown[0]!r}; the sensors are {', '.join(cases.sensors)}.")
    colors = _class_colors(pyplot, len(classes))
    heights = [h for name in cases.sensors for h in (SIGNAL_HEIGHT, *([STRIP_HEIGHT] if name in opinions else []))]
    heights += [CONSENSUS_HEIGHT, *([STRIP_HEIGHT] if truth is not None else [])]
    figure, axes = pyplot.subplots(
        len(heights),
        1,
        figsize=(width, INCHES * sum(heights) + 0.9),
        sharex=True,
        squeeze=False,
        layout="constrained",
        height_ratios=heights,
    )
    remaining = iter(axes[:, 0])
    for name, signals in cases.sensors.items():
        draw = _draw_spectrogram if name in spectrograms else _draw_signal
        draw(next(remaining), name, signals, spans)
        if name in opinions:
            _draw_strip(next(remaining), f"{name} alone", opinions[name], spans, colors)
    _draw_consensus(next(remaining), p, classes, spans, colors)
    if truth is not None:
        known = np.array([[label == name for name in classes] for label in truth], dtype=np.float64)
        known[known.sum(axis=1) == 0.0] = np.nan
        _draw_strip(next(remaining), "known", known, spans, colors)
    axes[-1, 0].set_xlabel("time (s)")
    axes[-1, 0].set_xlim(spans[:, 0].min(), spans[:, 1].max())
    figure.align_ylabels()
    return figure


def plot_case(
    cases: Recordings,
    row: int,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    *,
    by_sensor: Mapping[str, ArrayLike] | None = None,
    width: float = 9.0,
) -> Any:
    """Draw what each sensor saw in one case: its signal, its spectrogram, and its prediction; below, the consensus.

    Parameters
    ----------
    cases : Recordings
    row : int
        Number of the case.
    probabilities : (n_cases, n_classes)
        Of each class, by all sensors together: ``model.predict_proba(cases)``.
    classes : sequence of n_classes
        Their names in the order of the columns: ``model.classes_``.
    by_sensor : dict of sensor name -> (n_cases, n_classes), optional
        Probabilities by one sensor alone, NaN where it says nothing: for a pipeline of ``SensorFeatures`` and
        ``CMVMED``, ``model[-1].predict_proba_by_view(model[0].transform(cases))``.
    width : float
        Width of the figure in inches.

    Returns
    -------
    matplotlib.figure.Figure
        One row per sensor: all channels over time, power of the first channel over time and frequency, probabilities.
        A sensor that is missing in the case has an empty row that says so.
    """
    pyplot = import_optional("matplotlib.pyplot", "plot", "plot_case")
    if not -len(cases) <= row < len(cases):
        raise ValueError(f"There is no case {row}; there are {len(cases)}, numbered from 0.")
    p = _checked("probabilities", probabilities, len(cases), len(classes))
    opinions = _opinions(cases, by_sensor, len(classes))
    colors = _class_colors(pyplot, len(classes))
    n_sensors = len(cases.sensors)
    figure, axes = pyplot.subplots(
        n_sensors + 1,
        3,
        figsize=(width, INCHES * (n_sensors + 1) + 0.5),
        squeeze=False,
        layout="constrained",
        width_ratios=(2.0, 2.0, 1.0),
    )
    for panels, (name, signals) in zip(axes, cases.sensors.items(), strict=False):
        one = signals[[row]]
        signal = one[0]
        span = np.array([[0.0, 0.0 if signal is None else signal.shape[1] / signals.sampling_rate]])
        if signal is None:
            panels[0].text(0.5, 0.5, "missing", ha="center", va="center", transform=panels[0].transAxes, color="gray")
            panels[0].set_ylabel(name)
            panels[1].set_axis_off()
        else:
            _draw_signal(panels[0], name, one, span)
            _draw_spectrogram(panels[1], name, one, span, OVERLAP_OF_CASE)
            panels[1].set_ylabel("Hz")
        _draw_bars(panels[2], opinions.get(name, np.full_like(p, np.nan))[row], classes, colors)
    for panel in axes[-1, :2]:
        panel.set_axis_off()
    axes[0, 0].set_title("signal", fontsize=9)
    axes[0, 1].set_title("spectrogram", fontsize=9)
    axes[0, 2].set_title("this sensor alone", fontsize=9)
    axes[-1, 2].set_title("all sensors", fontsize=9)
    for panel in axes[-2, :2]:
        panel.set_xlabel("time (s)")
    _draw_bars(axes[-1, 2], p[row], classes, colors)
    label = cases.labels[row]
    known = "not labeled" if label is None else f"labeled {label}"
    figure.suptitle(f"case {cases.ids[row]}, {known}", fontsize=10)
    axes[-1, 2].set_xlabel("probability")
    figure.align_ylabels(axes[:, 0])
    return figure


def _class_colors(pyplot: Any, n_classes: int) -> FloatArray:
    colors: FloatArray = pyplot.get_cmap("tab10" if n_classes <= 10 else "tab20")(np.arange(n_classes))
    return colors


def _opinions(cases: Recordings, by_sensor: Mapping[str, ArrayLike] | None, n_classes: int) -> dict[str, FloatArray]:
    unknown = [name for name in by_sensor or {} if name not in cases.sensors]
    if unknown:
        raise ValueError(f"There is no sensor {unknown[0]!r}; the sensors are {', '.join(cases.sensors)}.")
    return {
        name: _checked(f"by_sensor[{name!r}]", given, len(cases), n_classes)
        for name, given in (by_sensor or {}).items()
    }


def _draw_bars(axis: Any, p: FloatArray, classes: Sequence[Any], colors: FloatArray) -> None:
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


def _spans(cases: Recordings) -> FloatArray:
    """Return start and end of each window, cut where the next one begins, so that overlaps are drawn once."""
    if cases.times is None:
        raise ValueError("The cases have no times: plot windows of a long recording, as cut_windows makes them.")
    if cases.groups is not None and len(set(cases.groups.tolist())) > 1:
        raise ValueError("The cases are of several recordings: plot one at a time, cases[cases.groups == name].")
    spans = np.array(cases.times, dtype=np.float64)
    order = np.argsort(spans[:, 0], kind="stable")
    spans[order[:-1], 1] = np.minimum(spans[order[:-1], 1], spans[order[1:], 0])
    return spans


def _checked(name: str, values: ArrayLike, n: int, n_classes: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n, n_classes):
        raise ValueError(
            f"{name} must be ({n}, {n_classes}), one row per case and one column per class, got {array.shape}."
        )
    return array


def _parts(signals: SensorSignals, spans: FloatArray) -> list[tuple[float, FloatArray]]:
    """Return start and samples of each window that has the sensor, up to the next window."""
    parts = []
    for signal, (start, end) in zip(signals, spans, strict=True):
        if signal is not None:
            n_samples = min(signal.shape[1], max(1, round((end - start) * signals.sampling_rate)))
            parts.append((float(start), np.asarray(signal[:, :n_samples], dtype=np.float64)))
    return parts


def _draw_signal(axis: Any, name: str, signals: SensorSignals, spans: FloatArray) -> None:
    for start, samples in _parts(signals, spans):
        time = start + np.arange(samples.shape[1]) / signals.sampling_rate
        for channel, values in enumerate(samples):
            axis.plot(time, values, linewidth=0.5, color=TRACE_COLORS[channel % len(TRACE_COLORS)])
    axis.set_ylabel(name)
    axis.tick_params(labelsize=7)


def _draw_spectrogram(
    axis: Any, name: str, signals: SensorSignals, spans: FloatArray, overlap: float = OVERLAP
) -> None:
    rate, images = signals.sampling_rate, []
    for start, samples in _parts(signals, spans):
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


def _draw_strip(axis: Any, name: str, p: FloatArray, spans: FloatArray, colors: FloatArray) -> None:
    """Draw the most probable class as a colored bar, paler the less probable it is."""
    n_classes = p.shape[1]
    for row, (start, end) in zip(p, spans, strict=True):
        if not np.isnan(row).any():
            certainty = (row.max() - 1.0 / n_classes) / (1.0 - 1.0 / n_classes)
            alpha = float(np.clip(0.15 + 0.85 * certainty, 0.0, 1.0))
            axis.axvspan(start, end, color=colors[int(row.argmax())], alpha=alpha, linewidth=0)
    axis.set_yticks([])
    axis.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)


def _draw_consensus(axis: Any, p: FloatArray, classes: Sequence[Any], spans: FloatArray, colors: FloatArray) -> None:
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
