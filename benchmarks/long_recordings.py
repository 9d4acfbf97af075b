"""Time and memory for a day of four channels at 8 kHz: cut into windows, resampled or not, and turned into MFCC.

``python -m benchmarks.long_recordings --hours 1``: one file of an hour is written once and stands for each hour.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile

from cmvmed.features import MFCC
from cmvmed.recordings import cut_windows, long_recording

RATE, CHANNELS, HOUR = 8000, 4, 3600


def write_hour(path: Path) -> None:
    rng = np.random.default_rng(0)
    with soundfile.SoundFile(path, "w", RATE, CHANNELS, subtype="PCM_16") as file:
        for _ in range(HOUR // 10):
            file.write(0.1 * rng.normal(size=(10 * RATE, CHANNELS)))


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(hours: int, length: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        hour = Path(folder) / "hour.wav"
        write_hour(hour)
        MFCC(RATE, n_frames=2).fit_transform(np.random.default_rng(0).normal(size=(1, RATE)))  # imports
        before, start = peak_megabytes(), time.process_time()
        recording = long_recording("day", {"mics": [(HOUR * i, hour) for i in range(hours)]})
        windows = cut_windows(recording, length=length)
        cut = time.process_time() - start
        features = MFCC(RATE, n_frames=2, channel=0)
        values = [
            features.fit(windows["mics"]).set_params(channel=c).transform(windows["mics"]) for c in range(CHANNELS)
        ]
        seconds = time.process_time() - start - cut
    decoded = hours * HOUR * RATE * CHANNELS * 4 / 2**20
    print(f"{hours} h, {windows.n} windows of {length:g} s, {values[0].shape[1]} features per channel")
    per_second = 1000 * seconds / (hours * HOUR * CHANNELS)
    print(f"processor time: cut {cut:.2f} s, features {seconds:.1f} s, {per_second:.3f} ms per second of a channel")
    print(f"peak memory {peak_megabytes():.0f} MB, of which {before:.0f} MB before; decoded samples {decoded:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--length", type=float, default=1.0, help="seconds of a window")
    given = parser.parse_args()
    run(given.hours, given.length)


if __name__ == "__main__":
    main()
