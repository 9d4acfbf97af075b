"""Difficulty of the simulated footsteps: ``python -m benchmarks.difficulty > benchmarks/results/difficulty.md``.

Accuracy of a support vector machine for each sensor and for sensors together, with 50 labels and with all 1200.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.provenance import heading
from cmvmed.datasets.footsteps import make_footsteps
from cmvmed.features import MFCC

SENSORS = {
    "sensor 1": [0],
    "sensor 2": [1],
    "sensor 3": [2],
    "sensor 4": [3],
    "sensors 1 and 2": [0, 1],
    "all four": [0, 1, 2, 3],
}
N_SETS, N_SPLITS, N_TRAIN_PER_CLASS, N_LABELED_PER_CLASS = 5, 20, 600, 25


def accuracies(features: np.ndarray, target: np.ndarray, n_labeled_per_class: int, n_splits: int) -> list[float]:
    """Accuracy on the rows outside the training set of 600 + 600, in percent, one per split."""
    scores = []
    for split in range(n_splits):
        rng = np.random.default_rng(split)
        by_class = [rng.permutation(np.flatnonzero(target == label)) for label in (0, 1)]
        labeled = np.concatenate([rows[:n_labeled_per_class] for rows in by_class])
        test = np.concatenate([rows[N_TRAIN_PER_CLASS:] for rows in by_class])
        model = make_pipeline(StandardScaler(), SVC()).fit(features[labeled], target[labeled])
        scores.append(100 * model.score(features[test], target[test]))
    return scores


def difficulty(n_frames: int, first_seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Accuracy (sets, splits) of each choice of sensors, with 50 labels and with all."""
    few: dict[str, list[list[float]]] = {name: [] for name in SENSORS}
    all_labels: dict[str, list[list[float]]] = {name: [] for name in SENSORS}
    for seed in range(first_seed, first_seed + N_SETS):
        steps = make_footsteps(random_state=seed)
        views = [
            MFCC(steps.sampling_rate, n_frames=n_frames).fit_transform(steps.data[:, sensor]) for sensor in range(4)
        ]
        for name, sensors in SENSORS.items():
            features = np.hstack([views[sensor] for sensor in sensors])
            few[name].append(accuracies(features, steps.target, N_LABELED_PER_CLASS, N_SPLITS))
            all_labels[name].append(accuracies(features, steps.target, N_TRAIN_PER_CLASS, 3))
    return {name: np.array(few[name]) for name in SENSORS}, {name: np.array(all_labels[name]) for name in SENSORS}


def report(n_frames: int, first_seeds: Sequence[int]) -> None:
    """Mean accuracy over five data sets, and in parentheses the standard deviation over the splits of a data set."""
    found = [difficulty(n_frames, seed) for seed in first_seeds]
    heads = [f"50 labels, seeds {seed} to {seed + N_SETS - 1} | all 1200 labels" for seed in first_seeds]
    print(heading(), end="\n\n")
    print(f"| view | {' | '.join(heads)} |\n|{' --- |' * (1 + 2 * len(first_seeds))}")
    for name in SENSORS:
        parts = [scores[name] for pair in found for scores in pair]
        print(f"| {name} | {' | '.join(f'{p.mean():.1f} ({p.std(axis=1).mean():.1f})' for p in parts)} |")
    for seed, (few, _) in zip(first_seeds, found, strict=True):
        means = " ".join(f"{mean:.1f}" for mean in few["sensor 1"].mean(axis=1))
        print(f"\nSensor 1 with 50 labels, data set by data set from seed {seed}: {means}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=10, help="parts of a segment")
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 0], help="seeds of the first of five sets")
    options = parser.parse_args()
    report(options.frames, options.seeds)


if __name__ == "__main__":
    main()
