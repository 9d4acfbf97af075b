"""New rows compared with the training rows: what ``novelty`` and ``sensor_health`` of a fitted model do."""

import numpy as np

from cmvmed.auto.tuning import Tuning
from cmvmed.data.reading import InputSettings
from cmvmed.model.fitted_model import Model
from cmvmed.monitoring.novelty import novelty_by_view
from cmvmed.monitoring.reference import Reference, ReferenceRows, draw_reference_rows
from cmvmed.monitoring.sensor_health import Batch, SensorHealth, sensor_health
from cmvmed.numerics.linalg import numerical_errors
from cmvmed.numerics.types import Array
from cmvmed.views.training_data import TrainingData


def novelty(model: Model, reference: Reference, X: object, settings: InputSettings) -> dict[str, Array]:
    """How unlike the training rows each row is, by view."""
    batch = read_batch(model, X, settings)
    with numerical_errors():
        found = novelty_by_view(reference, batch.features(reference))
    return dict(zip(batch.names, found, strict=True))


def health(model: Model, reference: Reference, X: object, settings: InputSettings) -> dict[str, SensorHealth]:
    """Whether the sensor behind each view works as in training."""
    batch = read_batch(model, X, settings)
    with numerical_errors():
        return sensor_health(reference, batch)


def read_batch(model: Model, X: object, settings: InputSettings) -> Batch:
    """New rows by view."""
    return Batch(model.schema.view_names, model.preprocessors, *model.read_views(X, settings))


def reference_rows(training: TrainingData, probabilities: Array, tuning: Tuning) -> ReferenceRows:
    """What a model keeps of the rows of a fit in memory; those without weight or without any view have no part in it."""
    partition = training.partition
    rows = np.concatenate([partition.block_L, partition.block_U])
    return draw_reference_rows(
        training.matrices,
        training.present,
        np.sort(rows[partition.weights[rows] > 0.0]),
        probabilities,
        tuning.reference_rows,
        tuning.reference_directions,
    )
