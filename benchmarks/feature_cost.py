"""Time of the features of signals: ``python -m benchmarks.feature_cost > benchmarks/results/feature_cost.md``.

One sensor of simulated body-worn sensors, machine vibration and footsteps, 100 signals each, in milliseconds of the processor
per second of signal, after a first call that compiles.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.provenance import heading
from cmvmed.datasets import make_body_motion, make_footsteps
from cmvmed.features import SignalFeatures
from cmvmed.features.sensor_features import MIN_SOUND_RATE
from experiments.datasets import make_machine_vibration

N_SIGNALS, SEED = 100, 0


def footsteps() -> tuple[Any, float]:
    """Signals of one sensor and their rate."""
    steps = make_footsteps(448, 352, random_state=SEED)
    return steps.data[:N_SIGNALS, :1], float(steps.sampling_rate)


def first_sensor(make: Callable[..., Any]) -> tuple[Any, float]:
    """Signals of one sensor and their rate."""
    made = make(random_state=SEED)
    sensor, signals = next(iter(made.signals.items()))
    return signals[:N_SIGNALS], made.sampling_rates[sensor]


SETS: dict[str, Callable[[], tuple[Any, float]]] = {
    "body": lambda: first_sensor(make_body_motion),
    "machines": lambda: first_sensor(make_machine_vibration),
    "footsteps": footsteps,
}


def report() -> str:
    """A line for each set and kind of features, and for aeon's MiniRocket."""
    has_aeon = find_spec("aeon") is not None
    lines = ["| set | rate (Hz) | kind | ms per second of signal |", "| --- | --- | --- | --- |"]
    for name, load in SETS.items():
        given, rate = load()
        signals = given.astype(np.float32)  # as aeon takes them
        sound = ["mfcc"] if rate >= MIN_SOUND_RATE else []
        kinds = ["statistics", "ranks", *sound, *(["minirocket", "multirocket", "catch22"] if has_aeon else [])]
        transforms = {kind: SignalFeatures(kind, sampling_rate=rate).fit(signals).transform for kind in kinds}
        if has_aeon:
            from aeon.transformations.collection.convolution_based import MiniRocket

            transforms["aeon's MiniRocket, 10,000 convolutions"] = MiniRocket(random_state=SEED).fit(signals).transform
        duration = len(signals) * signals.shape[2] / rate
        for kind, transform in transforms.items():
            lines.append(f"| {name} | {rate:g} | {kind} | {1000 * _seconds(transform, signals) / duration:.2f} |")
    return "\n".join(lines)


def _seconds(work: Callable[[Any], Any], signals: Any) -> float:
    work(signals[:2])
    begin = time.process_time()
    work(signals)
    return time.process_time() - begin


if __name__ == "__main__":
    print(f"{heading()}\n\n{report()}")
