"""Fitted models of every kind, small, with rows to predict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS
from cmvmed.datasets import make_body_motion
from cmvmed.features import MFCC, SensorFeatures, TextView, WindowFeatures, views_transformer

N, K = 60, 3


@dataclass(frozen=True)
class Example:
    """A fitted model and rows like its training rows."""

    model: Any
    X: Any


def labels(n_classes: int = K, n_labeled: int = 18) -> tuple[Any, Any]:
    """True classes, and the same with most of them hidden."""
    truth = np.arange(N) % n_classes
    return truth, np.where(np.arange(N) < n_labeled, truth, -1)


def two_views(n_classes: int = K, seed: int = 0) -> np.ndarray:
    """One table, columns 0 to 4 and 5 to 11 are the views."""
    rng = np.random.default_rng(seed)
    truth, _ = labels(n_classes)
    return 1.2 * rng.normal(size=(n_classes, 12))[truth] + rng.normal(size=(N, 12))


def sparse_views() -> list[Any]:
    """Two sparse tables of counts."""
    rng = np.random.default_rng(1)
    truth, _ = labels()
    rates = rng.gamma(0.3, 0.5, size=(2, K, 40))
    return [sparse.csr_matrix(rng.poisson(rate[truth]).astype(np.float64)) for rate in rates]


def of_cmvmed(X: Any = None, y: Any = None, **parameters: Any) -> Example:
    """CMVMED on the two views."""
    X = two_views() if X is None else X
    if isinstance(X, np.ndarray):
        parameters = {"views": {"a": slice(0, 5), "b": slice(5, 12)}, **parameters}
    return Example(CMVMED(**parameters).fit(X, labels()[1] if y is None else y), X)


def missing_views() -> Example:
    """Rows that lack one view or the other."""
    X = two_views()
    X[20:30, :5] = np.nan
    X[40:45, 5:] = np.nan
    return of_cmvmed(X)


def precomputed() -> Example:
    """Given kernels."""
    X = two_views()
    kernels = [X[:, :5] @ X[:, :5].T, X[:, 5:] @ X[:, 5:].T]
    return of_cmvmed(kernels, kernel="precomputed")


def frame() -> Example:
    """A data frame, views by prefix."""
    import pandas as pd

    names = [f"a__{i}" for i in range(5)] + [f"b__{i}" for i in range(7)]
    X = pd.DataFrame(two_views(), columns=names)
    return Example(CMVMED(views={"a": "a__", "b": "b__"}).fit(X, labels()[1]), X)


def mostly_zero() -> Example:
    """Dense tables of which few entries are not zero, one of them in Fortran order."""
    first, second = (matrix.toarray() for matrix in sparse_views())
    return of_cmvmed([np.asfortranarray(first), second])


def waveforms() -> Example:
    """MFCC, scaled, and window features."""
    rng = np.random.default_rng(2)
    truth, y = labels(2)
    time = np.arange(800) / 8000.0
    sound = np.sin(2 * np.pi * (300.0 + 400.0 * truth)[:, None, None] * time) + 0.3 * rng.normal(size=(N, 2, 800))
    steps = views_transformer(
        mfcc=(make_pipeline(MFCC(8000, n_frames=2), StandardScaler()), 0), windows=(WindowFeatures(8000.0), [1])
    )
    return Example(make_pipeline(steps, CMVMED(views=steps.views)).fit(sound, y), sound)


def sensors(kind: Any = "auto") -> Example:
    """Signals of three sensors with different rates and lengths, one of which is missing in some cases."""
    made = make_body_motion(6, seconds=1.0, random_state=0)
    signals = {name: list(values) for name, values in made.signals.items()}
    signals["chest"][3:6] = [None] * 3
    signals["ankle"] = [signal[:, : signal.shape[1] - row % 5] for row, signal in enumerate(signals["ankle"])]
    y = np.where(np.arange(len(made.target)) < 24, made.target, -1)
    steps = make_pipeline(SensorFeatures(kind, sampling_rate=made.sampling_rates), CMVMED(n_stages=2))
    return Example(steps.fit(signals, y), signals)


def documents(output: str = "pandas", **parameters: Any) -> Example:
    """Texts of two kinds, one column with gaps."""
    rng = np.random.default_rng(3)
    truth, y = labels(2)
    words = np.array([f"word{i}" for i in range(30)])
    texts = [" ".join(rng.choice(words[15 * c : 15 * c + 20], 12)) for c in truth]
    titles = [" ".join(rng.choice(words[10 * c : 10 * c + 12], 4)) for c in truth]
    titles[5] = ""
    X = {"text": texts, "title": titles}
    steps = views_transformer(
        text=(TextView(**parameters), "text"), title=(TextView(**parameters), "title"), output=output
    )
    steps.fit(X)
    views = steps.views if output == "pandas" else steps.view_slices_
    return Example(make_pipeline(steps, CMVMED(views=views)).fit(X, y), X)


def of_baseline(estimator: Any) -> Example:
    """Another classifier of the library."""
    return Example(estimator.fit(two_views(), labels()[1]), two_views())


TWO = [5, 7]
EXAMPLES: dict[str, Callable[[], Example]] = {
    "cmvmed": of_cmvmed,
    "two classes": lambda: of_cmvmed(two_views(2), labels(2)[1]),
    "texts as classes": lambda: of_cmvmed(y=np.array(["none", "x", "yy", "zzz"])[labels()[1] + 1], unlabeled="none"),
    "objects as classes": lambda: of_cmvmed(y=np.array([None, "x", "yy", "zzz"], dtype=object)[labels()[1] + 1]),
    "float classes": lambda: of_cmvmed(y=labels()[1].astype(np.float64)),
    "booleans": lambda: of_cmvmed(
        two_views(2),
        np.array([None, False, True], dtype=object)[labels(2)[1] + 1],
        random_state=np.random.RandomState(3),
    ),
    "sparse": lambda: of_cmvmed(sparse_views()),
    "sparse arrays": lambda: of_cmvmed([sparse.csr_array(matrix) for matrix in sparse_views()]),
    "mostly zero": mostly_zero,
    "missing views": missing_views,
    "precomputed": precomputed,
    "frame": frame,
    "landmarks": lambda: of_cmvmed(approximation=20),
    "consensus": lambda: of_cmvmed(members="consensus"),
    "no consensus": lambda: of_cmvmed(members=["lda", "view_graphs", "trees"]),
    "not calibrated": lambda: of_cmvmed(members=None, class_prior={0: 0.2, 1: 0.3, 2: 0.5}, kernel=["rbf", "cosine"]),
    "jaakkola": lambda: of_cmvmed(algorithm="jaakkola", scaling=None, gamma={"a": 0.1, "b": np.float64(0.2)}),
    "paper": lambda: Example(CMVMED.paper(views=TWO).fit(two_views(), labels()[1]), two_views()),
    "med": lambda: of_baseline(MED()),
    "mvmed": lambda: of_baseline(MVMED(views=TWO)),
    "svm2k": lambda: of_baseline(SVM2K(views=TWO)),
    "corls": lambda: of_baseline(CoRLS(views=np.array(TWO).tolist())),
    "waveforms": waveforms,
    "sensors": sensors,
    "statistics of sensors": lambda: sensors(
        {"wrist": "statistics", "ankle": "minirocket", "chest": "statistics+minirocket"}
    ),
    "documents": documents,
    "documents as counts": lambda: documents("default", weighting="counts", stop_words="english"),
}


def example(name: str) -> Example:
    """An example by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EXAMPLES[name]()
