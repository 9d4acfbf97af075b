"""Figures of recordings: signals of several sensors, what each says, and the consensus."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

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


class TimelineDisplay:
    """The signals of several sensors over time, what each says, and the consensus.

    Make it with ``from_estimator`` or ``from_predictions``.

    Parameters
    ----------
    cases : Recordings
        Windows of one recording, as :func:`cmvmed.recordings.cut_windows` makes them: with ``times``.
    probabilities : (n_cases, n_classes)
        Of each class, by all sensors together.
    classes : sequence of n_classes
        Their names in the order of the columns.
    by_sensor : dict of sensor name -> (n_cases, n_classes), default=None
        Probabilities by one sensor alone, drawn as a strip below its signal, NaN where it says nothing.
    y_true : sequence of n_cases, default=None
        Known classes, None where unknown, drawn as a strip below the consensus.

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

    def __init__(
        self,
        *,
        cases: Recordings,
        probabilities: ArrayLike,
        classes: Sequence[Any],
        by_sensor: Mapping[str, ArrayLike] | None = None,
        y_true: Sequence[Any] | None = None,
    ) -> None:
        self.cases, self.classes, self.y_true = cases, classes, y_true
        self.probabilities = _checked("probabilities", probabilities, len(cases), len(classes))
        self.by_sensor = _opinions(cases, by_sensor, len(classes))
        self.spans = _spans(cases)

    @classmethod
    def from_estimator(
        cls, estimator: Any, cases: Recordings, y_true: Sequence[Any] | None = None, **plot_parameters: Any
    ) -> "TimelineDisplay":
        """Draw what a fitted pipeline of ``SensorFeatures`` and ``CMVMED`` says of windows.

        Parameters
        ----------
        estimator : fitted Pipeline
        cases : Recordings
            Windows of one recording.
        y_true : sequence of n_cases, default=None
            Known classes, None where unknown.
        **plot_parameters : as in ``plot``

        Returns
        -------
        display : TimelineDisplay
        """
        alone = probabilities_alone(estimator, cases)
        found = estimator.predict_proba(cases), estimator.classes_
        return cls.from_predictions(cases, *found, by_sensor=alone, y_true=y_true, **plot_parameters)

    @classmethod
    def from_predictions(
        cls,
        cases: Recordings,
        probabilities: ArrayLike,
        classes: Sequence[Any],
        *,
        by_sensor: Mapping[str, ArrayLike] | None = None,
        y_true: Sequence[Any] | None = None,
        **plot_parameters: Any,
    ) -> "TimelineDisplay":
        """Draw given probabilities; parameters are those of the class and of ``plot``.

        Parameters
        ----------
        cases, probabilities, classes, by_sensor, y_true : as for the class
        **plot_parameters : as in ``plot``

        Returns
        -------
        display : TimelineDisplay
        """
        display = cls(cases=cases, probabilities=probabilities, classes=classes, by_sensor=by_sensor, y_true=y_true)
        return display.plot(**plot_parameters)

    def plot(self, *, spectrograms: Collection[str] = (), width: float = 9.0) -> "TimelineDisplay":
        """Draw the figure.

        Parameters
        ----------
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
        cases, spans, opinions = self.cases, self.spans, self.by_sensor
        _check_sensors(cases, spectrograms)
        colors = class_colors(pyplot, len(self.classes))
        heights = [h for name in cases.sensors for h in (SIGNAL_HEIGHT, *([STRIP_HEIGHT] if name in opinions else []))]
        heights += [CONSENSUS_HEIGHT, *([STRIP_HEIGHT] if self.y_true is not None else [])]
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
            draw = draw_spectrogram if name in spectrograms else draw_signal
            draw(next(remaining), name, signals, spans)
            if name in opinions:
                draw_strip(next(remaining), f"{name} alone", opinions[name], spans, colors)
        draw_consensus(next(remaining), self.probabilities, self.classes, spans, colors)
        if self.y_true is not None:
            known = np.array([[label == name for name in self.classes] for label in self.y_true], dtype=np.float64)
            known[known.sum(axis=1) == 0.0] = np.nan
            draw_strip(next(remaining), "known", known, spans, colors)
        axes[-1, 0].set_xlabel("time (s)")
        axes[-1, 0].set_xlim(spans[:, 0].min(), spans[:, 1].max())
        figure.align_ylabels()
        self.figure_, self.axes_ = figure, axes[:, 0]
        return self


class CaseDisplay:
    """What each sensor saw in one case: its signal, its spectrogram, and its prediction; below, the consensus.

    Make it with ``from_estimator`` or ``from_predictions``.

    Parameters
    ----------
    cases : Recordings
    row : int
        Number of the case.
    probabilities : (n_cases, n_classes)
        Of each class, by all sensors together.
    classes : sequence of n_classes
        Their names in the order of the columns.
    by_sensor : dict of sensor name -> (n_cases, n_classes), default=None
        Probabilities by one sensor alone, NaN where it says nothing.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_sensors + 1, 3) of matplotlib Axes
        One row per sensor: all channels over time, power of the first channel over time and frequency, probabilities.
        A sensor that is missing in the case has an empty row that says so.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> from cmvmed.plots import CaseDisplay
    >>> from cmvmed.recordings import Recordings
    >>> wrist = SensorSignals([np.random.default_rng(0).normal(size=(3, 100))], 50.0, ("x", "y", "z"))
    >>> display = CaseDisplay.from_predictions(Recordings({"wrist": wrist}), 0, [[0.8, 0.2]], ["walk", "run"])
    >>> display.axes_.shape
    (2, 3)
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(
        self,
        *,
        cases: Recordings,
        row: int,
        probabilities: ArrayLike,
        classes: Sequence[Any],
        by_sensor: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        if not -len(cases) <= row < len(cases):
            raise ValueError(f"There is no case {row}; there are {len(cases)}, numbered from 0.")
        self.cases, self.row, self.classes = cases, row, classes
        self.probabilities = _checked("probabilities", probabilities, len(cases), len(classes))
        self.by_sensor = _opinions(cases, by_sensor, len(classes))

    @classmethod
    def from_estimator(cls, estimator: Any, cases: Recordings, row: int, **plot_parameters: Any) -> "CaseDisplay":
        """Draw what a fitted pipeline of ``SensorFeatures`` and ``CMVMED`` says of a case.

        Parameters
        ----------
        estimator : fitted Pipeline
        cases : Recordings
        row : int
            Number of the case.
        **plot_parameters : as in ``plot``

        Returns
        -------
        display : CaseDisplay
        """
        alone = probabilities_alone(estimator, cases)
        found = estimator.predict_proba(cases), estimator.classes_
        return cls.from_predictions(cases, row, *found, by_sensor=alone, **plot_parameters)

    @classmethod
    def from_predictions(
        cls,
        cases: Recordings,
        row: int,
        probabilities: ArrayLike,
        classes: Sequence[Any],
        *,
        by_sensor: Mapping[str, ArrayLike] | None = None,
        **plot_parameters: Any,
    ) -> "CaseDisplay":
        """Draw given probabilities.

        Parameters
        ----------
        cases, row, probabilities, classes, by_sensor : as for the class
        **plot_parameters : as in ``plot``

        Returns
        -------
        display : CaseDisplay
        """
        display = cls(cases=cases, row=row, probabilities=probabilities, classes=classes, by_sensor=by_sensor)
        return display.plot(**plot_parameters)

    def plot(self, *, width: float = 9.0) -> "CaseDisplay":
        """Draw the figure.

        Parameters
        ----------
        width : float, default=9
            Width of the figure in inches.

        Returns
        -------
        display : CaseDisplay
            With ``figure_`` and ``axes_``, not shown.
        """
        pyplot = import_optional("matplotlib.pyplot", "plot", "CaseDisplay")
        cases, row, p, classes = self.cases, self.row, self.probabilities, self.classes
        colors = class_colors(pyplot, len(classes))
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
        label = cases.labels[row]
        known = "not labeled" if label is None else f"labeled {label}"
        figure.suptitle(f"case {cases.ids[row]}, {known}", fontsize=10)
        axes[-1, 2].set_xlabel("probability")
        figure.align_ylabels(axes[:, 0])
        self.figure_, self.axes_ = figure, axes
        return self


def _opinions(cases: Recordings, by_sensor: Mapping[str, ArrayLike] | None, n_classes: int) -> dict[str, FloatArray]:
    _check_sensors(cases, by_sensor or {})
    return {
        name: _checked(f"by_sensor[{name!r}]", given, len(cases), n_classes)
        for name, given in (by_sensor or {}).items()
    }


def _check_sensors(cases: Recordings, names: Collection[str]) -> None:
    unknown = [name for name in names if name not in cases.sensors]
    if unknown:
        raise ValueError(f"There is no sensor {unknown[0]!r}; the sensors are {', '.join(cases.sensors)}.")


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
