"""Methods that compare new rows with the training rows."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cmvmed.auto.tuning import Tuning
from cmvmed.estimators._prediction import FittedModel
from cmvmed.estimators._settings import read_input_settings
from cmvmed.monitoring.novelty import novelty_by_view
from cmvmed.monitoring.reference import Reference, build_reference
from cmvmed.monitoring.sensor_health import Batch, SensorHealth, sensor_health
from cmvmed.numerics.linalg import numerical_errors
from cmvmed.numerics.types import Array
from cmvmed.views.training_data import TrainingData


class MonitoringMixin:
    """Rows that are unlike the training rows, and sensors with a fault."""

    _model: FittedModel
    _reference: Reference

    def novelty(self, X: object) -> dict[str, Array]:
        """How unlike the training rows each row is, by view.

        The distance of a row to the nearest training rows, in terms of the leading principal directions of the view, what
        is outside of them, and the largest deviation of a column. One is the distance that 1 % of the training rows
        exceed, each compared with the others, so that about 1 % of new rows of the same distribution are above 1.

        Parameters
        ----------
        X : as in ``decision_function``

        Returns
        -------
        novelty : dict from view name to ndarray of shape (n_rows,)
            NaN where a row does not have the view.
        """
        batch = self._read_batch(X)
        with numerical_errors():
            found = novelty_by_view(self._reference, batch.features(self._reference))
        return dict(zip(batch.names, found, strict=True))

    def sensor_health(self, X: object) -> dict[str, SensorHealth]:
        """Whether the sensor behind each view works as in training, from a batch of new rows; no labels are needed.

        Location, scale and agreement with the other views are compared with those of healthy batches of as many training
        rows, whatever their class shares. A change that other views explain, such as other class shares, is no fault.

        Parameters
        ----------
        X : as in ``decision_function``
            At least 20 rows that were recorded together; faults of a standard deviation are found within about 50.

        Returns
        -------
        health : dict from view name to SensorHealth
            With the fields ``fault`` ("ok", "dead", "missing", "shifted", "gain", "swapped", "drift" or "unknown"),
            ``score`` (larger is less healthy), ``p_value`` (the probability that any view of a healthy batch has such a
            score; faults have at most 0.01) and ``message``.
        """
        batch = self._read_batch(X)
        with numerical_errors():
            return sensor_health(self._reference, batch)

    def _read_batch(self, X: object) -> Batch:
        """New rows, for a model that keeps something to compare them with."""
        check_is_fitted(self)
        if not hasattr(self, "_reference"):
            raise ValueError(
                "This model keeps nothing that new rows could be compared with, since it is of an earlier release: fit it again."
            )
        model = self._model
        preprocessors = [predictor.preprocessor for predictor in model.predictors]
        matrices, present = model.read_views(X, read_input_settings(self))  # type: ignore[arg-type]
        return Batch(model.schema.view_names, preprocessors, matrices, present)


def reference_of(training: TrainingData, model: FittedModel, probabilities: Array, tuning: Tuning) -> Reference:
    """What a model keeps of the rows of a fit in memory; those without weight or without any view have no part in it."""
    partition = training.partition
    rows = np.concatenate([partition.block_L, partition.block_U])
    return build_reference(
        training.matrices,
        training.present,
        np.sort(rows[partition.weights[rows] > 0.0]),
        [predictor.preprocessor for predictor in model.predictors],
        probabilities,
        tuning.reference_rows,
        tuning.reference_directions,
    )
