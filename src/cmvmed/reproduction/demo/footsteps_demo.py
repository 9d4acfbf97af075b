"""Four sensors hear people walk by, some of whom lead an animal: recordings, features, random splits and methods.

1200 of the 1500 recordings are for training, 50 of them labeled; the other 300 are for the test.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from cmvmed import CMVMED, MED
from cmvmed.datasets import make_footsteps
from cmvmed.features import MFCC, views_transformer

N_HUMAN, N_ANIMAL = 840, 660
N_RECORDINGS, N_TRAIN, N_LABELED = N_HUMAN + N_ANIMAL, 1200, 50
UNLABELED = -1
CONSENSUS = "CMV-MED, all sensors, labels and unlabeled"
LABELS_ONLY = "MED, all sensors side by side, labels only"
MAJORITY = "majority class of the labels"


@dataclass(frozen=True)
class Recordings:
    """Sounds and what is computed of them; class 1 is the one of two walkers."""

    sounds: NDArray[np.float32]  # (n, sensors, samples)
    snr_db: NDArray[np.float64]  # (n, sensors) how far the sound stands out of the background
    sampling_rate: int
    X: NDArray[np.float64]  # (n, columns)
    views: dict[str, slice]  # columns of each sensor
    y: NDArray[np.int64]  # (n,)
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """How one method did on the test recordings of one split."""

    method: str
    accuracy: float
    balanced_accuracy: float


@dataclass
class StageRecorder:
    """A scikit-learn callback that keeps the probabilities of some recordings after every stage of a fit."""

    X: NDArray[np.float64]
    consensus: list[NDArray[np.float64]] = field(default_factory=list)  # per stage (n,)
    by_view: list[dict[str, NDArray[np.float64]]] = field(default_factory=list)

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing before the fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing after it."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing as a stage begins."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> None:
        """Keep what the model says after a stage."""
        if context.task_name != "stage":
            return
        if fitted_estimator.history_["stage"][-1] == 1:  # a fit that has learned a new class prior starts over
            self.consensus, self.by_view = [], []
        self.consensus.append(fitted_estimator.predict_proba(self.X)[:, 1])
        self.by_view.append({name: p[:, 1] for name, p in fitted_estimator.predict_proba_by_view(self.X).items()})


def simulate(random_state: int = 0) -> Any:
    """Return the simulated sounds: the bunch of :func:`cmvmed.datasets.make_footsteps`."""
    return make_footsteps(N_HUMAN, N_ANIMAL, random_state=random_state)


def featurize(steps: Any) -> Recordings:
    """Compute 200 mel-frequency cepstral coefficients of each sensor's sound."""
    sensors = {name: (MFCC(steps.sampling_rate), channel) for name, channel in steps.views.items()}
    to_views = views_transformer(sensors, output="default")
    X = to_views.fit_transform(steps.data)
    return Recordings(
        sounds=steps.data,
        snr_db=steps.segment_snr_db,
        sampling_rate=steps.sampling_rate,
        X=X,
        views=to_views.view_slices_,
        y=steps.target,
        class_names=tuple(steps.target_names),
    )


def draw_split(n: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows for training, of which the first 50 are labeled, and rows for the test."""
    order = np.random.default_rng(seed).permutation(n)
    return order[:N_TRAIN], order[N_TRAIN:]


Predict = Callable[[NDArray[np.intp], NDArray[np.intp]], Any]  # training and test rows to classes of the test rows


def methods(recordings: Recordings, recorder: StageRecorder | None = None) -> dict[str, Predict]:
    """Return what is compared: each learns from training rows and says the class of test rows."""
    X, y = recordings.X, recordings.y

    def majority(train: NDArray[np.intp], test: NDArray[np.intp]) -> Any:
        return np.full(test.size, np.bincount(y[train[:N_LABELED]]).argmax())

    def labels_only(columns: slice) -> Predict:
        def predict(train: NDArray[np.intp], test: NDArray[np.intp]) -> Any:
            labeled = train[:N_LABELED]
            return MED().fit(X[labeled, columns], y[labeled]).predict(X[test, columns])

        return predict

    def consensus(train: NDArray[np.intp], test: NDArray[np.intp]) -> Any:
        partly = np.where(np.arange(train.size) < N_LABELED, y[train], UNLABELED)
        model = CMVMED(views=recordings.views, unlabeled=UNLABELED)
        if recorder is not None:
            model.set_callbacks(recorder)
        return model.fit(X[train], partly).predict(X[test])

    alone = {f"MED, {name} alone, labels only": labels_only(columns) for name, columns in recordings.views.items()}
    return {MAJORITY: majority, **alone, LABELS_ONLY: labels_only(slice(None)), CONSENSUS: consensus}


def run_split(recordings: Recordings, seed: int, recorder: StageRecorder | None = None) -> Iterator[Score]:
    """Fit and score one method after the other on a random split."""
    train, test = draw_split(recordings.y.size, seed)
    truth = recordings.y[test]
    for method, predict in methods(recordings, recorder).items():
        guess = predict(train, test)
        yield Score(method, float(accuracy_score(truth, guess)), float(balanced_accuracy_score(truth, guess)))


def recorder_for(recordings: Recordings, seed: int) -> StageRecorder:
    """Return a recorder of what the test recordings of a split are taken for."""
    _, test = draw_split(recordings.y.size, seed)
    return StageRecorder(recordings.X[test])
