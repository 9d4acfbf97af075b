"""From raw sound of four sensors and 50 labels to a classifier: simulate, featurise, fit, compare, draw.

Four sensors hear people walk by, some of whom lead an animal. 1200 recordings are for training, 50 of them labelled; the other
300 are for the test. The table compares what one can do with the labels alone with what the unlabelled recordings add, and
the picture shows how the sensors' opinions sharpen over the stages of the annealing.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from cmvmed import CMVMED, MED
from cmvmed.datasets import make_footsteps
from cmvmed.features import MFCC, views_transformer

mpl.use("Agg")
import matplotlib.pyplot as plt

N_LABELED, N_TRAIN = 50, 1200


class StageRecorder:
    """A scikit-learn callback that keeps the test rows' probabilities after every stage."""

    def __init__(self, X_test):
        self.X_test, self.consensus, self.by_view = X_test, [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "stage":
            if fitted_estimator.history_["stage"][-1] == 1:  # a fit that has learned a new class prior starts over
                self.consensus, self.by_view = [], []
            self.consensus.append(fitted_estimator.predict_proba(self.X_test)[:, 1])
            self.by_view.append(
                {name: p[:, 1] for name, p in fitted_estimator.predict_proba_by_view(self.X_test).items()}
            )


def draw_split(target, seed):
    """Rows for training, the first 50 of them labelled, and rows for the test."""
    order = np.random.default_rng(seed).permutation(target.size)
    return order[:N_TRAIN], order[N_TRAIN:]


def predictions(X, views, y, train, test, recorder):
    """Predicted classes of the test rows by each method."""
    labelled = train[:N_LABELED]
    partly = np.where(np.arange(train.size) < N_LABELED, y[train], -1)
    majority = np.bincount(y[labelled]).argmax()
    guesses = {"majority class of the labels": np.full(test.size, majority)}
    for name, columns in views.items():
        alone = MED().fit(X[labelled][:, columns], y[labelled])
        guesses[f"MED, {name} alone, labels only"] = alone.predict(X[test][:, columns])
    guesses["MED, all sensors side by side, labels only"] = MED().fit(X[labelled], y[labelled]).predict(X[test])
    model = CMVMED(views=views).set_callbacks(recorder).fit(X[train], partly)
    guesses["CMV-MED, all sensors, labels and unlabelled"] = model.predict(X[test])
    return guesses


def draw_annealing(recorder, y_test, path):
    """Accuracy of sensors and consensus over the stages, and how the consensus sharpens."""
    stages = np.arange(1, len(recorder.consensus) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name in recorder.by_view[0]:
        left.plot(stages, [accuracy_score(y_test, p[name] > 0.5) for p in recorder.by_view], "o--", label=name)
    left.plot(
        stages, [accuracy_score(y_test, p > 0.5) for p in recorder.consensus], "s-", color="black", label="consensus"
    )
    left.set(xlabel="stage of the annealing", ylabel="accuracy on test recordings", title="Sensors and consensus")
    left.legend()
    bins = np.linspace(0.0, 1.0, 26)
    for stage in (0, len(stages) // 2, len(stages) - 1):
        right.hist(recorder.consensus[stage], bins, histtype="step", linewidth=1.8, label=f"stage {stage + 1}")
    right.set(
        xlabel="consensus probability of 'human and animal'", ylabel="test recordings", title="The consensus sharpens"
    )
    right.legend(loc="upper center")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5, help="random splits to average over (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output"), help="folder for the picture (default: %(default)s)"
    )
    arguments = parser.parse_args()

    print("Simulating 1500 recordings of footsteps at four sensors ...", flush=True)
    steps = make_footsteps(random_state=0)
    print("Computing 200 mel-frequency cepstral coefficients per sensor ...", flush=True)
    sensors = {name: (MFCC(steps.sampling_rate), channel) for name, channel in steps.views.items()}
    to_views = views_transformer(sensors, output="default")
    X, y = to_views.fit_transform(steps.data), steps.target
    scores = {}
    for split in range(arguments.splits):
        print(f"Fitting split {split + 1} of {arguments.splits} ...", flush=True)
        train, test = draw_split(y, split)
        recorder = StageRecorder(X[test])
        for method, guess in predictions(X, to_views.view_slices_, y, train, test, recorder).items():
            scores.setdefault(method, []).append(
                (accuracy_score(y[test], guess), balanced_accuracy_score(y[test], guess))
            )
    print(
        f"\n{N_LABELED} labelled and {train.size - N_LABELED} unlabelled recordings, {test.size} test recordings "
        f"({np.bincount(y[test]).max() / test.size:.1%} of one class), mean ± SD over {arguments.splits} random splits\n"
    )
    print(f"{'':46} {'accuracy':>15} {'balanced accuracy':>18}")
    for method, values in scores.items():
        mean, deviation = 100 * np.mean(values, axis=0), 100 * np.std(values, axis=0, ddof=1)
        print(f"{method:46} {mean[0]:8.1f} ± {deviation[0]:4.1f} {mean[1]:11.1f} ± {deviation[1]:4.1f}")
    path = arguments.out / "annealing.png"
    draw_annealing(recorder, y[test], path)
    print(f"\nHow sensors and consensus sharpen over the annealing (last split): {path}")


if __name__ == "__main__":
    main()
