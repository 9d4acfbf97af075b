"""A long recording is cut and turned into features in memory that does not grow with its length."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import soundfile

from cmvmed.features import MFCC, WindowFeatures
from cmvmed.recordings import cut_windows, long_recording, read_recording, resample

RATE, SECONDS, CHANNELS = 8000, 300, 4
DECODED = RATE * SECONDS * CHANNELS * 4  # bytes of float32


@pytest.fixture(scope="module")
def wav(tmp_path_factory):
    """Five minutes of four channels at 8 kHz, written in blocks."""
    path = tmp_path_factory.mktemp("long") / "long.wav"
    rng = np.random.default_rng(0)
    with soundfile.SoundFile(path, "w", RATE, CHANNELS, subtype="PCM_16") as file:
        for _ in range(SECONDS // 10):
            file.write(0.1 * rng.normal(size=(10 * RATE, CHANNELS)))
    return path


def peak_bytes(function):
    """Largest memory in use while a function runs, beyond what was in use before."""
    function()  # imports and caches
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_windows_are_read_one_at_a_time(wav):
    def total():
        windows = cut_windows(read_recording(wav), length=1.0)
        return sum(float(signal[0, 0]) for name in windows.columns for signal in windows[name])

    assert peak_bytes(total) < DECODED / 40


def test_reading_everything_is_seen(wav):
    assert peak_bytes(lambda: soundfile.read(wav, dtype="float32")) > DECODED / 2


def test_features_are_computed_in_blocks(wav, monkeypatch):
    """A third of the windows fills a block and takes the same memory as all."""
    monkeypatch.setattr("cmvmed.features.window_features.BLOCK_SAMPLES", 2**17)
    signals = cut_windows(resample(read_recording(wav), 6000), length=0.5)["channel1"]
    peaks = [
        peak_bytes(lambda part=part: WindowFeatures(6000).fit_transform(part)) for part in (signals[:50], signals[:150])
    ]
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length(wav):
    """Twice as long, made of the same file, takes the same memory for MFCC."""
    peaks = []
    for n_files in (4, 8):
        recording = long_recording("day", {"mics": [(SECONDS * i, wav) for i in range(n_files)]})
        windows = cut_windows(recording, length=0.5)
        mfcc = MFCC(RATE, n_frames=2, channel=0)
        peaks.append(peak_bytes(lambda mfcc=mfcc, windows=windows: mfcc.fit_transform(windows["mics"])))
    assert peaks[1] < 1.1 * peaks[0]
