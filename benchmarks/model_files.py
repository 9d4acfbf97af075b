"""Sizes of model files: ``python -m benchmarks.model_files`` writes benchmarks/results/model_files.md.

Models of 2000 rows in two views with 40 labels of four classes: generated texts as 5000 columns of tf-idf weights,
sparse and as dense arrays, and 100 columns of numbers. Each is saved as a pickle and as a model file, the last also
without graphs and as a compact file of 300 rows per view. Probabilities of new rows by the loaded model are compared
with those of the saved one.
"""

import pickle
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import cmvmed
from benchmarks.provenance import RESULTS, write

N_ROWS, N_NEW, N_LABELS, N_CLASSES, N_WORDS, WORDS_PER_TEXT, N_TERMS, N_NUMBERS = 2000, 500, 40, 4, 6000, 80, 5000, 100
HEAD = ["model", "pickle MB", "model file MB", "save s", "load s", "same class on new rows %", "largest difference"]


def text_views(classes: np.ndarray, rng: np.random.Generator) -> list[Any]:
    """Texts whose words depend on the class, as sparse tf-idf weights."""
    views = []
    for _ in range(2):
        words = np.array([f"word{i}" for i in range(N_WORDS)])
        share = rng.gamma(0.5, size=(N_CLASSES, N_WORDS)) / np.arange(1, N_WORDS + 1) ** 0.8
        share /= share.sum(axis=1, keepdims=True)
        texts = [" ".join(rng.choice(words, WORDS_PER_TEXT, p=share[c])) for c in classes]
        views.append(TfidfVectorizer(max_features=N_TERMS).fit_transform(texts))
    return views


def number_views(classes: np.ndarray, rng: np.random.Generator) -> list[Any]:
    centers = 0.4 * rng.normal(size=(2, N_CLASSES, N_NUMBERS))
    return [center[classes] + rng.normal(size=(classes.size, N_NUMBERS)) for center in centers]


def measure(name: str, model: cmvmed.CMVMED, new: list[Any], folder: Path, *, compact: bool = False) -> list[str]:
    """A line of the table."""
    path, start = folder / "model.cmvmed", time.perf_counter()
    model.save(path, overwrite=True, compact=compact)
    saved = time.perf_counter()
    loaded = cmvmed.load(path)
    seconds = saved - start, time.perf_counter() - saved
    before, after = model.predict_proba(new), loaded.predict_proba(new)
    same = (before.argmax(axis=1) == after.argmax(axis=1)).mean()
    sizes = len(pickle.dumps(model)) / 1e6, path.stat().st_size / 1e6
    difference = np.abs(after - before).max()
    numbers = (
        [f"{size:.1f}" for size in sizes] + [f"{s:.1f}" for s in seconds] + [f"{100 * same:.1f}", f"{difference:.2g}"]
    )
    return [name, *numbers]


def main() -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, N_CLASSES, N_ROWS + N_NEW)
    y = np.where(np.arange(N_ROWS) < N_LABELS, classes[:N_ROWS], -1)
    texts, numbers = text_views(classes, rng), number_views(classes, rng)
    dense = [view.toarray() for view in texts]
    lines = [HEAD, ["---"] * len(HEAD)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, views in {"text, sparse": texts, "text, dense arrays": dense, "numbers": numbers}.items():
            model = cmvmed.CMVMED().fit([view[:N_ROWS] for view in views], y)
            lines.append(measure(name, model, [view[N_ROWS:] for view in views], Path(folder)))
        without = cmvmed.CMVMED(members=["views", "lda", "consensus"])
        without.fit([view[:N_ROWS] for view in numbers], y)
        new = [view[N_ROWS:] for view in numbers]
        lines.append(measure("numbers, kernels alone", without, new, Path(folder)))
        lines.append(measure("numbers, kernels alone, compact", without, new, Path(folder), compact=True))
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    print(text)
    write(RESULTS / "model_files.md", text)


if __name__ == "__main__":
    main()
