"""Speed of the features, and difficulty of the simulated footsteps.

``python -m benchmarks.features`` cuts a five-minute two-channel recording into segments, turns them into MFCC views, and prints
how many times faster than real time that is, and how it compares with calling librosa once per segment.

``python -m benchmarks.features --difficulty`` prints the accuracy of a support vector machine on the simulated footsteps, for
each sensor and for sensors together, with 50 labels and with all 1200.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import librosa
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.provenance import heading
from cmvmed.datasets.footsteps import make_footsteps
from cmvmed.features import MFCC, Segments, WindowFeatures, segment_events, segment_windows, views_transformer

MINUTES, N_CHANNELS, SEGMENT_SECONDS = 5, 2, 1.0
RATES = (8000, 44100)
REPEATS = 5
SENSORS = {
    "sensor 1": [0],
    "sensor 2": [1],
    "sensor 3": [2],
    "sensor 4": [3],
    "sensors 1 and 2": [0, 1],
    "all four": [0, 1, 2, 3],
}
N_SETS, N_SPLITS, N_TRAIN_PER_CLASS, N_LABELED_PER_CLASS = 5, 20, 600, 25


def recording(rate: int) -> np.ndarray:
    """Noise with a 50 ms burst every 1.5 s, in both channels."""
    rng = np.random.default_rng(0)
    sound = rng.standard_normal((N_CHANNELS, MINUTES * 60 * rate), dtype=np.float32)
    for start in range(rate, sound.shape[1] - rate, 3 * rate // 2):
        sound[:, start : start + rate // 20] *= 5
    return sound


def seconds_taken(work: Callable[[], object]) -> float:
    """Return the median time of REPEATS calls, after one to warm up (librosa compiles and loads at first use)."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def mfcc_views(segments: Segments, rate: int) -> np.ndarray:
    to_views = views_transformer(left=(MFCC(rate), 0), right=(MFCC(rate), 1), output="default")
    return to_views.fit_transform(segments.signals)


def mfcc_one_by_one(segments: Segments, rate: int) -> list[np.ndarray]:
    """The same frames by one librosa call per segment and channel, without averaging or checks."""
    arguments = MFCC(rate).fit(segments.signals[:, 0]).librosa_arguments_
    return [librosa.feature.mfcc(y=channel, **arguments) for segment in segments.signals for channel in segment]


def report_speed() -> None:
    print(f"{MINUTES} minutes, {N_CHANNELS} channels, segments of {SEGMENT_SECONDS:g} s; median of {REPEATS} runs\n")
    print(f"{'rate (Hz)':>9}  {'work':<44}{'seconds':>9}{'x real time':>13}")
    for rate in RATES:
        sound = recording(rate)
        windows = segment_windows(sound, rate, seconds=SEGMENT_SECONDS)
        events = segment_events(sound, rate, seconds=SEGMENT_SECONDS)
        tasks = {
            f"windows ({len(windows.signals)}) and MFCC views": lambda sound=sound, rate=rate: mfcc_views(
                segment_windows(sound, rate, seconds=SEGMENT_SECONDS), rate
            ),
            f"events ({len(events.signals)}) and MFCC views": lambda sound=sound, rate=rate: mfcc_views(
                segment_events(sound, rate, seconds=SEGMENT_SECONDS), rate
            ),
            "  windows alone": lambda sound=sound, rate=rate: segment_windows(sound, rate, seconds=SEGMENT_SECONDS),
            "  events alone": lambda sound=sound, rate=rate: segment_events(sound, rate, seconds=SEGMENT_SECONDS),
            "  MFCC views of the windows": lambda windows=windows, rate=rate: mfcc_views(windows, rate),
            "  librosa once per segment": lambda windows=windows, rate=rate: mfcc_one_by_one(windows, rate),
            "  WindowFeatures of the windows": lambda windows=windows, rate=rate: WindowFeatures(rate).fit_transform(
                windows.signals
            ),
        }
        for name, work in tasks.items():
            taken = seconds_taken(work)
            print(f"{rate:>9}  {name:<44}{taken:>9.3f}{MINUTES * 60 / taken:>12.0f}x")


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


def report_difficulty(n_frames: int, first_seeds: Sequence[int]) -> None:
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--difficulty", action="store_true", help="accuracy on the simulated footsteps instead of speed"
    )
    parser.add_argument("--frames", type=int, default=10, help="parts of a segment, for --difficulty")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[100, 0], help="seeds of the first of five sets, for --difficulty"
    )
    options = parser.parse_args()
    if options.difficulty:
        report_difficulty(options.frames, options.seeds)
    else:
        report_speed()


if __name__ == "__main__":
    main()
