"""Two Gaussian views of as many rows as are asked for, and the time and memory of what is done with them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, N_LABELED, N_TEST = 50, 100, 5000
SEPARATION = (1.1, 0.8)  # of the two views, in within-class standard deviations from the middle
VIEWS = {"first": slice(0, WIDTH), "second": slice(WIDTH, 2 * WIDTH)}


def draw_rows(n: int, rng: np.random.Generator, width: int = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian views side by side, independent given the class, and the class."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2 * width))
    for i, separation in enumerate(SEPARATION):
        X[:, i * width : (i + 1) * width] += ((2.0 * y - 1.0) * separation / np.sqrt(width))[:, None]
    return X, y


def hidden(y: np.ndarray, n_labeled: int) -> np.ndarray:
    """Labels of the first rows, -1 for all others."""
    return np.where(np.arange(y.size) < n_labeled, y, -1)


def memory_now(field: str) -> float:
    """Resident memory of this process in MiB: "VmRSS" now, "VmHWM" the most since it was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What the work returns, its seconds of the processor, and the MiB by which it made the process grow."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, start = memory_now("VmRSS"), time.process_time()
    result = work()
    return result, time.process_time() - start, memory_now("VmHWM") - before
