"""Data, features, random splits and methods of the demonstration.

Four acoustic sensors record people who walk past, some of them with an animal. 1200 of the 1500 recordings are for
training, 50 of them labeled; the other 300 are for testing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.utils import Bunch

from cmvmed import CMVMED, MED
from cmvmed.datasets import make_footsteps
from cmvmed.demo.stage_recorder import StageRecorder
from cmvmed.features import MFCC, views_transformer

N_HUMAN, N_ANIMAL = 840, 660
N_RECORDINGS, N_TRAIN, N_LABELED = N_HUMAN + N_ANIMAL, 1200, 50
UNLABELED = -1
MAJORITY_CLASS = "majority class"  # a line of the table: the share of the largest class of the test recordings
CONSENSUS = "CMV-MED, all sensors, labels and unlabeled"
LABELS_ONLY = "MED, all sensors concatenated, labels only"

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Footsteps:
    """Sound and features of all recordings; class 1 is the class of recordings with an animal."""

    sounds: NDArray[np.float32]  # (n, sensors, samples)
    snr_db: Array  # (n, sensors), signal-to-noise ratio
    sampling_rate: int
    X: Array  # (n, columns)
    views: dict[str, slice]  # columns of each sensor
    y: NDArray[np.int64]  # (n,)
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """Scores of one method on the test recordings of one split."""

    method: str
    accuracy: float
    balanced_accuracy: float


@dataclass(frozen=True)
class StageProbabilities:
    """Probability of class 1 for each test recording after a stage of the fit."""

    consensus: Array  # (n,)
    by_view: dict[str, Array]


Recorder = StageRecorder[StageProbabilities]


def simulate(random_state: int = 0) -> Bunch:
    """Return the simulated sounds: the bunch of :func:`cmvmed.datasets.make_footsteps`."""
    return make_footsteps(N_HUMAN, N_ANIMAL, random_state=random_state)


def featurize(steps: Bunch) -> Footsteps:
    """Compute 200 mel-frequency cepstral coefficients for each sensor."""
    sensors = {name: (MFCC(steps.sampling_rate), channel) for name, channel in steps.views.items()}
    to_views = views_transformer(sensors, output="default")
    X = to_views.fit_transform(steps.data)
    return Footsteps(
        sounds=steps.data,
        snr_db=steps.segment_snr_db,
        sampling_rate=steps.sampling_rate,
        X=X,
        views=to_views.view_slices_,
        y=steps.target,
        class_names=tuple(steps.target_names),
    )


def split_rows(n: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the training rows, of which the first 50 are labeled, and the test rows."""
    order = np.random.default_rng(seed).permutation(n)
    return order[:N_TRAIN], order[N_TRAIN:]


Predict = Callable[[IntArray, IntArray], IntArray]  # training and test rows to classes of the test rows


def methods(recordings: Footsteps, recorder: Recorder | None = None) -> dict[str, Predict]:
    """Return the compared methods: functions that fit to training rows and predict the classes of test rows."""
    X, y = recordings.X, recordings.y

    def majority(train: IntArray, test: IntArray) -> IntArray:
        return np.full(test.size, np.bincount(y[test]).argmax())

    def labels_only(columns: slice) -> Predict:
        def predict(train: IntArray, test: IntArray) -> IntArray:
            labeled = train[:N_LABELED]
            classes: IntArray = MED().fit(X[labeled, columns], y[labeled]).predict(X[test, columns])
            return classes

        return predict

    def consensus(train: IntArray, test: IntArray) -> IntArray:
        partly_labeled = np.where(np.arange(train.size) < N_LABELED, y[train], UNLABELED)
        model = CMVMED(views=recordings.views, unlabeled=UNLABELED)
        if recorder is not None:
            model.set_callbacks(recorder)
        classes: IntArray = model.fit(X[train], partly_labeled).predict(X[test])
        return classes

    single = {f"MED, {name} alone, labels only": labels_only(columns) for name, columns in recordings.views.items()}
    return {MAJORITY_CLASS: majority, **single, LABELS_ONLY: labels_only(slice(None)), CONSENSUS: consensus}


def run_split(recordings: Footsteps, seed: int, recorder: Recorder | None = None) -> Iterator[Score]:
    """Fit and score one method after the other on a random split."""
    train, test = split_rows(recordings.y.size, seed)
    truth = recordings.y[test]
    for method, predict in methods(recordings, recorder).items():
        predicted = predict(train, test)
        yield Score(method, float(accuracy_score(truth, predicted)), float(balanced_accuracy_score(truth, predicted)))


def make_recorder(recordings: Footsteps, seed: int) -> Recorder:
    """Return a recorder of the probabilities of the test recordings of a split."""
    _, test = split_rows(recordings.y.size, seed)
    X = recordings.X[test]

    def probabilities(model: CMVMED) -> StageProbabilities:
        by_view = {name: p[:, 1] for name, p in model.predict_proba_by_view(X).items()}
        return StageProbabilities(model.predict_proba(X)[:, 1], by_view)

    return StageRecorder(probabilities)
