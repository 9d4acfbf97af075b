"""Features of the signals of views, of a kind that is chosen for each by held-out labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np

import cmvmed.features  # its modules are imported when they are used
from cmvmed.features.feature_cache import FeatureCache
from cmvmed.recordings import Recordings
from cmvmed.workbench.frames import Block, RawTable
from cmvmed.workbench.project_file import AUTO, DataSettings, ViewSettings
from cmvmed.workbench.sensor_signals import channels_by_rate, sensor_signals
from cmvmed.workbench.user_errors import as_project_error

__all__ = ["SensorEncoder", "fit_sensors", "why_chosen"]


@dataclass(frozen=True)
class SensorEncoder:
    """Features of the signals of a view, whose columns are the channels.

    The last four fields have one entry for each kind of features that was compared, in the order of the comparison, and
    are empty if the project file says the kind: see :class:`cmvmed.features.SensorFeatures`.
    """

    kind: ClassVar[str] = "signals"
    sources: tuple[str, ...]
    features: "cmvmed.features.SignalFeatures"
    compared: tuple[str, ...] = ()
    held_out_r2: tuple[float, ...] = ()
    agreement: tuple[float, ...] = ()
    score: tuple[float, ...] = ()

    @property
    def is_consistent(self) -> bool:
        """Whether a training table can have given these values."""
        counts = {len(values) for values in (self.compared, self.held_out_r2, self.agreement, self.score)}
        return len(counts) == 1 and self.sources == self.features.channel_names_

    @property
    def n_features(self) -> int:
        """Number of columns of the block."""
        return int(self.features.n_features_out_)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the block."""
        own = [str(name) for name in self.features.get_feature_names_out()]
        starts = tuple(f"{source}_" for source in self.sources)
        return [name if name.startswith(starts) else f"{self.sources[0]}.{name}" for name in own]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        """The features of all rows."""
        with as_project_error():
            sensor = sensor_signals(table, self.sources, self.features.sampling_rate_, self.sources[0])
            values = self.features.transform(sensor)
        return Block(values, ~np.isnan(values).all(axis=1))

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        """The block of a table that lacks a channel."""
        values = np.full((n_rows, self.n_features), np.nan, dtype=np.float32)
        return Block(values, np.zeros(n_rows, dtype=bool))


def fit_sensors(
    table: RawTable,
    columns: Mapping[ViewSettings, Sequence[str]],
    labels: Any,
    data: DataSettings,
    memory: FeatureCache | None,
) -> tuple[dict[str, list[SensorEncoder]], list[str]]:
    """Fit the encoders of the signals of all views together, since the choice of their features compares them.

    Parameters
    ----------
    columns : signals of each view that has some
    labels : (n,) class of each row, None where it is not labeled
    memory : where features are kept

    Returns
    -------
    encoders : dict of view name -> one encoder for each sampling rate
    messages : what was chosen, and why
    """
    sensors: dict[str, Any] = {}
    views: dict[str, str] = {}
    kinds: dict[str, str] = {}
    with as_project_error():
        for view, names in columns.items():
            by_rate = channels_by_rate(table, names, view.sampling_rate, data.sampling_rate)
            for rate, channels in by_rate.items():
                sensor = view.name if len(by_rate) == 1 else f"{view.name}, {rate:g} Hz"
                sensors[sensor] = sensor_signals(table, channels, rate, sensor)
                views[sensor], kinds[sensor] = view.name, view.features or AUTO
        if not sensors:
            return {}, []
        first = next(iter(sensors.values()))
        with catch_warnings(record=True) as caught:
            simplefilter("always")
            made = cmvmed.features.SensorFeatures(kinds, memory=memory).fit(Recordings(sensors, ids=first.ids), labels)
    found: dict[str, list[SensorEncoder]] = {}
    said = [str(warning.message) for warning in caught]
    for sensor, features in made.features_.items():
        encoder = SensorEncoder(sensors[sensor].channel_names, features, **_compared(made.choices_, sensor))
        found.setdefault(views[sensor], []).append(encoder)
        said.append(f"View {sensor!r}: {why_chosen(encoder)}.")
    return found, said


def _compared(choices: Mapping[str, list[Any]], sensor: str) -> dict[str, tuple[Any, ...]]:
    """The columns of a comparison for one sensor."""
    rows = [row for row, name in enumerate(choices["sensor"]) if name == sensor]
    names = {"compared": "kind", "held_out_r2": "held_out_r2", "agreement": "agreement", "score": "score"}
    if len(rows) < 2:
        return {}
    return {field: tuple(choices[column][row] for row in rows) for field, column in names.items()}


def why_chosen(encoder: SensorEncoder) -> str:
    """The kind of features of a sensor and what decided, as a part of a sentence."""
    kind = f"features of kind {encoder.features.kind!r}"
    if not encoder.compared:
        return f"{kind}, with nothing to choose from"
    joined = "+" in encoder.features.kind
    measure = "held-out labels do not reject" if joined else "predicts held-out labels best"
    measure, values = f"{measure} (R² of this and all views", encoder.score
    if np.isnan(encoder.score).any():
        if np.isnan(encoder.agreement).any():
            return (
                f"{kind}, the first of {', '.join(encoder.compared)}, because there are too few labels to compare them"
            )
        measure, values = "agrees most with the other sensors (correlation", encoder.agreement
    listed = ", ".join(f"{name} {value:.2f}" for name, value in zip(encoder.compared, values, strict=True))
    return f"{kind}, which {measure}: {listed})"
