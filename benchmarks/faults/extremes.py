"""Fits at the edge of what is usual: 100,000 columns, 300 classes, a clock that jumps, members that are trees under each.

A fit ends with finite probabilities that sum to 1, is the same bit by bit when it is repeated under another clock, and its
model file predicts the same.
"""

import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

import cmvmed
from benchmarks.faults.campaign import HELD, Fault, fresh_folder
from benchmarks.faults.fits import check_probabilities

CASES = {"ci": 3, "nightly": 300}
SHAPES = {
    "100,000 columns": (40, 50_000, 3),
    "300 classes": (400, 4, 300),
    "clock": (60, 4, 3),
}  # rows, columns, classes
CLOCKS = ("time", "monotonic", "perf_counter", "process_time")
JUMPS = (-3600.0, 86_400.0, -1e9, 0.0)  # seconds, from one call to the next


@dataclass(frozen=True)
class Case:
    """A shape and a model."""

    shape: str = "clock"
    seed: int = 0
    members: tuple[str, ...] = ("lda", "trees", "trees_all")
    is_sparse: bool = False
    gaps: bool = False


def draw(rng: np.random.Generator, number: int) -> Case:
    """Shapes take turns."""
    members = [("trees",), ("lda", "trees", "trees_all"), ("views", "trees", "consensus"), ()]
    return Case(
        shape=list(SHAPES)[number % len(SHAPES)],
        seed=int(rng.integers(2**31)),
        members=members[int(rng.integers(len(members)))],
        is_sparse=bool(rng.random() < 0.3),
        gaps=bool(rng.random() < 0.3),
    )


def check(case: Case) -> str:
    """Fit, fit again under a jumping clock, save and load."""
    views, y, n_classes = rows(case)
    members: Any = list(case.members) or "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cmvmed.CMVMED(members=members, n_stages=2, random_state=0).fit(views, y)
        found = model.predict_proba(views)
        check_probabilities(found, len(y), n_classes)
        if case.shape == "clock":
            with jumping_clock(np.random.default_rng(case.seed)):
                again = cmvmed.CMVMED(members=members, n_stages=2, random_state=0).fit(views, y).predict_proba(views)
            if not np.array_equal(found, again):
                raise Fault("another clock changes a fit", f"by {np.abs(found - again).max():.3g}")
        folder = fresh_folder()
        try:
            model.save(folder / "model.cmvmed")
            loaded = cmvmed.load(folder / "model.cmvmed").predict_proba(views)
        finally:
            shutil.rmtree(folder)
    if not np.array_equal(found, loaded):
        raise Fault("a model file predicts otherwise", f"by {np.abs(found - loaded).max():.3g}")
    return HELD


def rows(case: Case) -> tuple[list[Any], np.ndarray, int]:
    """Two views, labels and the number of classes."""
    n, d, n_classes = SHAPES[case.shape]
    rng, codes = np.random.default_rng(case.seed), np.arange(n) % n_classes
    views: list[Any] = [rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[codes] for _ in range(2)]
    if case.is_sparse:
        return [sparse.csr_array(view * (rng.random(view.shape) < 0.05)) for view in views], labels(codes, n), n_classes
    if case.gaps:
        views[0][rng.random(n) < 0.1] = np.nan
    return views, labels(codes, n), n_classes


def labels(codes: np.ndarray, n: int) -> np.ndarray:
    """Four fifths of the rows are labeled."""
    return np.where(np.arange(n) < 4 * n // 5, codes, -1)


@contextmanager
def jumping_clock(rng: np.random.Generator) -> Iterator[None]:
    """All clocks of Python jump at each call."""
    now = time.time()

    def clock() -> float:
        nonlocal now
        now += float(rng.choice(JUMPS))
        return now

    def clock_ns() -> int:
        return int(clock() * 1e9)

    changes = dict.fromkeys(CLOCKS, clock) | {f"{name}_ns": clock_ns for name in CLOCKS}
    with patch.multiple(time, **changes):
        yield
