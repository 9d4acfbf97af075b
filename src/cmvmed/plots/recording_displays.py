"""Figures of recordings: signals of several sensors, what each says, and the consensus."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cmvmed._optional import import_optional
from cmvmed.plots.drawing import (
    class_colors,
    draw_bars,
    draw_consensus,
    draw_sensor,
    draw_signal,
    draw_spectrogram,
    draw_strip,
)
from cmvmed.plots.model_displays import probabilities_alone
from cmvmed.recordings.container import Recordings

FloatArray = NDArray[np.float64]

SIGNAL_HEIGHT, STRIP_HEIGHT, CONSENSUS_HEIGHT = 1.0, 0.16, 0.8  # inches times the scale below
INCHES = 1.25


class RecordingsDisplay:
    """What sensors recorded, and what is said of it: the base of the displays, with the parameters of TimelineDisplay."""

    figure_: Any
    axes_: Any
    plot: Any  # a method of the subclass

    def __init__(
        self,
        *,
        recordings: Recordings,
        probabilities: ArrayLike,
        classes: Sequence[Any],
        by_sensor: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self.recordings, self.classes = recordings, classes
        self.probabilities = _checked("probabilities", probabilities, len(recordings), len(classes))
        self.by_sensor = _opinions(recordings, by_sensor, len(classes))

    @classmethod
    def from_estimator(cls, estimator: Any, recordings: Recordings, **plot_parameters: Any) -> Self:
        """Draw what a fitted pipeline of ``SensorFeatures`` and ``CMVMED`` says.

        Parameters
        ----------
        estimator : fitted Pipeline
        recordings : Recordings
        **plot_parameters : as in ``plot``

        Returns
        -------
        display : the display, drawn
        """
        found = estimator.predict_proba(recordings), estimator.classes_
        return cls.from_predictions(
            recordings, *found, by_sensor=probabilities_alone(estimator, recordings), **plot_parameters
        )

    @classmethod
    def from_predictions(
        cls,
        recordings: Recordings,
        probabilities: ArrayLike,
        classes: Sequence[Any],
        *,
        by_sensor: Mapping[str, ArrayLike] | None = None,
        **plot_parameters: Any,
    ) -> Self:
        """Draw given probabilities.

        Parameters
        ----------
        recordings, probabilities, classes, by_sensor : as for the class
        **plot_parameters : as in ``plot``

        Returns
        -------
        display : the display, drawn
        """
        display = cls(recordings=recordings, probabilities=probabilities, classes=classes, by_sensor=by_sensor)
        drawn: Self = display.plot(**plot_parameters)
        return drawn


class TimelineDisplay(RecordingsDisplay):
    """The signals of several sensors over time, what each says, and the consensus.

    Parameters
    ----------
    recordings : Recordings
        Windows of one recording, as :func:`cmvmed.recordings.cut_windows` makes them: with ``times``.
    probabilities : (n_rows, n_classes)
        Of each class, by all sensors together.
    classes : sequence of n_classes
        Their names in the order of the columns.
    by_sensor : dict of sensor name -> (n_rows, n_classes), default=None
        Probabilities by one sensor alone, drawn as a strip below its signal, NaN where it says nothing.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        From top to bottom.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> from cmvmed.plots import TimelineDisplay
    >>> from cmvmed.recordings import cut_windows, long_recording
    >>> day = long_recording("day", {"wrist": np.random.default_rng(0).normal(size=(3, 500))}, 50.0)
    >>> windows = cut_windows(day, length=2.0)
    >>> probabilities = np.tile([0.8, 0.2], (len(windows), 1))
    >>> display = TimelineDisplay.from_predictions(windows, probabilities, ["walk", "run"])
    >>> len(display.axes_)
    2
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def plot(
        self, *, y_true: Sequence[Any] | None = None, spectrograms: Collection[str] = (), width: float = 9.0
    ) -> Self:
        """Draw the figure.

        Parameters
        ----------
        y_true : sequence of n_rows, default=None
            Known classes, None where unknown, drawn as a strip below the consensus.
        spectrograms : collection of sensor names
            Sensors that are drawn as power over time and frequency, of the first channel, instead of as signals.
        width : float, default=9
            Width of the figure in inches.

        Returns
        -------
        display : TimelineDisplay
            With ``figure_`` and ``axes_``, not shown; ``display.figure_.savefig("timeline.pdf")`` saves it.
        """
        pyplot = import_optional("matplotlib.pyplot", "plot", "TimelineDisplay")
        recordings, spans, opinions = self.recordings, _spans(self.recordings), self.by_sensor
        _check_sensors(recordings, spectrograms)
        colors = class_colors(pyplot, len(self.classes))
        heights = [
            h for name in recordings.sensors for h in (SIGNAL_HEIGHT, *([STRIP_HEIGHT] if name in opinions else []))
        ]
        heights += [CONSENSUS_HEIGHT, *([STRIP_HEIGHT] if y_true is not None else [])]
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
        for name, signals in recordings.sensors.items():
            draw = draw_spectrogram if name in spectrograms else draw_signal
            draw(next(remaining), name, signals, spans)
            if name in opinions:
                draw_strip(next(remaining), f"{name} alone", opinions[name], spans, colors)
        draw_consensus(next(remaining), self.probabilities, self.classes, spans, colors)
        if y_true is not None:
            known = np.array([[label == name for name in self.classes] for label in y_true], dtype=np.float64)
            known[known.sum(axis=1) == 0.0] = np.nan
            draw_strip(next(remaining), "known", known, spans, colors)
        axes[-1, 0].set_xlabel("time (s)")
        axes[-1, 0].set_xlim(spans[:, 0].min(), spans[:, 1].max())
        figure.align_ylabels()
        self.figure_, self.axes_ = figure, axes[:, 0]
        return self


class RowDisplay(RecordingsDisplay):
    """What each sensor saw in one row: its signal, its spectrogram, and its prediction; below, the consensus.

    Parameters
    ----------
    recordings : Recordings
    probabilities, classes, by_sensor : as for :class:`TimelineDisplay`

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_sensors + 1, 3) of matplotlib Axes
        One row per sensor: all channels over time, power of the first channel over time and frequency, probabilities.
        A sensor that is missing in the row has an empty row that says so.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> from cmvmed.plots import RowDisplay
    >>> from cmvmed.recordings import Recordings, SensorSignals
    >>> wrist = SensorSignals([np.random.default_rng(0).normal(size=(3, 100))], 50.0, ("x", "y", "z"))
    >>> display = RowDisplay.from_predictions(Recordings({"wrist": wrist}), [[0.8, 0.2]], ["walk", "run"], row=0)
    >>> display.axes_.shape
    (2, 3)
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def plot(self, *, row: int, width: float = 9.0) -> Self:
        """Draw the figure.

        Parameters
        ----------
        row : int
            Number of the row.
        width : float, default=9
            Width of the figure in inches.

        Returns
        -------
        display : RowDisplay
            With ``figure_`` and ``axes_``, not shown.
        """
        pyplot = import_optional("matplotlib.pyplot", "plot", "RowDisplay")
        recordings, p, classes = self.recordings, self.probabilities, self.classes
        if not -len(recordings) <= row < len(recordings):
            raise ValueError(f"There is no row {row}; there are {len(recordings)}, numbered from 0.")
        colors = class_colors(pyplot, len(classes))
        n_sensors = len(recordings.sensors)
        figure, axes = pyplot.subplots(
            n_sensors + 1,
            3,
            figsize=(width, INCHES * (n_sensors + 1) + 0.5),
            squeeze=False,
            layout="constrained",
            width_ratios=(2.0, 2.0, 1.0),
        )
        for panels, (name, signals) in zip(axes, recordings.sensors.items(), strict=False):
            draw_sensor(panels, name, signals[[row]])
            draw_bars(panels[2], self.by_sensor.get(name, np.full_like(p, np.nan))[row], classes, colors)
        for panel in axes[-1, :2]:
            panel.set_axis_off()
        axes[0, 0].set_title("signal", fontsize=9)
        axes[0, 1].set_title("spectrogram", fontsize=9)
        axes[0, 2].set_title("this sensor alone", fontsize=9)
        axes[-1, 2].set_title("all sensors", fontsize=9)
        for panel in axes[-2, :2]:
            panel.set_xlabel("time (s)")
        draw_bars(axes[-1, 2], p[row], classes, colors)
        label = recordings.labels[row]
        known = "not labeled" if label is None else f"labeled {label}"
        figure.suptitle(f"row {recordings.ids[row]}, {known}", fontsize=10)
        axes[-1, 2].set_xlabel("probability")
        figure.align_ylabels(axes[:, 0])
        self.figure_, self.axes_ = figure, axes
        return self


def _opinions(
    recordings: Recordings, by_sensor: Mapping[str, ArrayLike] | None, n_classes: int
) -> dict[str, FloatArray]:
    _check_sensors(recordings, by_sensor or {})
    return {
        name: _checked(f"by_sensor[{name!r}]", given, len(recordings), n_classes)
        for name, given in (by_sensor or {}).items()
    }


def _check_sensors(recordings: Recordings, names: Collection[str]) -> None:
    unknown = [name for name in names if name not in recordings.sensors]
    if unknown:
        raise ValueError(f"There is no sensor {unknown[0]!r}; the sensors are {', '.join(recordings.sensors)}.")


def _spans(recordings: Recordings) -> FloatArray:
    """Return start and end of each window, cut where the next one begins, so that overlaps are drawn once."""
    if recordings.times is None:
        raise ValueError("The recordings have no times: plot windows of a long recording, as cut_windows makes them.")
    if recordings.groups is not None and len(set(recordings.groups.tolist())) > 1:
        raise ValueError("The rows are of several recordings: plot one at a time, rows[rows.groups == name].")
    spans = np.array(recordings.times, dtype=np.float64)
    order = np.argsort(spans[:, 0], kind="stable")
    spans[order[:-1], 1] = np.minimum(spans[order[:-1], 1], spans[order[1:], 0])
    return spans


def _checked(name: str, values: ArrayLike, n: int, n_classes: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n, n_classes):
        raise ValueError(
            f"{name} must be ({n}, {n_classes}), one line per row and one column per class, got {array.shape}."
        )
    return array
