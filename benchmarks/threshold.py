"""Cost and accuracy of exact kernels and of landmarks on the same rows: ``python -m benchmarks.threshold``.

Set CMVMED_DATA to the folder of the data files. Sets of the suite with enough rows, and Gaussian views, are fitted with all
defaults, once with ``approximation="exact"`` and once with ``"nystroem"``, for several numbers of unlabeled rows; five labels
per class are drawn at random. Accuracy is that on the unlabeled rows, in percent, mean over splits; seconds are those of
the processor. The last lines are means over sets, with the worst set: where landmarks are cheaper and no worse,
``max_exact_rows`` of ``cmvmed.auto.tuning`` may be smaller.
"""

import argparse
import time
import warnings
import zlib
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.suite.sets import DataSet, load
from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

SETS = ("gauss", "digits", "mfeat", "sensit", "mnist", "hyd_pump", "hyd_accu", "scene15", "citeseer", "ads")
SIZES = (500, 1000, 2000, 4000)  # unlabeled rows
KINDS = ("exact", "nystroem")
LABELS_PER_CLASS = 5
MIN_SHARE = 0.85  # of the asked number of unlabeled rows that a set must have


@dataclass(frozen=True)
class Compared:
    """Means over splits of fits to the same rows, by exact kernels and by landmarks."""

    name: str
    n_unlabeled: int
    seconds: tuple[float, float]
    accuracy: tuple[float, float]  # in percent
    spread: float  # standard deviation over splits of the difference

    @property
    def points(self) -> float:
        """What landmarks gain."""
        return self.accuracy[1] - self.accuracy[0]

    @property
    def ratio(self) -> float:
        """Seconds of landmarks relative to those of exact kernels."""
        return self.seconds[1] / self.seconds[0]


def load_set(name: str) -> DataSet:
    """A set of the suite, or two Gaussian views."""
    if name != "gauss":
        return load(name)
    data = make_multiview_gaussian(max(SIZES) + 100, separation=(1.1, 0.8), random_state=0)
    return DataSet(name, data.data, dict(data.views), data.target)


def draw_rows(data: DataSet, n_unlabeled: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, the labeled ones first, and which of them are labeled; every class has a label."""
    rng = np.random.default_rng([zlib.crc32(data.name.encode()), n_unlabeled, split])
    n_classes = data.counts.size
    n_labeled = LABELS_PER_CLASS * n_classes
    order = rng.permutation(data.y.size)
    while np.unique(data.y[order[:n_labeled]]).size < n_classes:
        order = rng.permutation(data.y.size)
    rows = order[: n_labeled + n_unlabeled]
    return rows, np.arange(rows.size) < n_labeled


def fit_both(data: DataSet, n_unlabeled: int, split: int) -> np.ndarray:
    """Seconds and accuracy (2, 2) of both kinds of fit."""
    rows, labeled = draw_rows(data, n_unlabeled, split)
    y = np.where(labeled, data.y[rows], -1)
    found = []
    for kind in KINDS:
        start = time.process_time()
        model = CMVMED(views=data.views, approximation=kind).fit(data.X[rows], y)
        seconds = time.process_time() - start
        found.append((seconds, 100.0 * np.mean((model.transduction_ == data.y[rows])[~labeled])))
    return np.array(found).T


def compare(data: DataSet, n_unlabeled: int, n_splits: int, first: int) -> Compared:
    """Means over splits."""
    every = np.array([fit_both(data, n_unlabeled, split) for split in range(first, first + n_splits)])
    seconds, accuracy = every.mean(axis=0)
    n_used = min(n_unlabeled, data.y.size - LABELS_PER_CLASS * data.counts.size)
    spread = float((every[:, 1, 1] - every[:, 1, 0]).std())
    return Compared(data.name, n_used, tuple(seconds), tuple(accuracy), spread)


def line(found: Compared) -> str:
    """A line of the table."""
    return (
        f"| {found.name} | {found.n_unlabeled} | {found.seconds[0]:.2f} | {found.seconds[1]:.2f} | {found.ratio:.2f} | "
        f"{found.accuracy[0]:.1f} | {found.accuracy[1]:.1f} | {found.points:+.2f} | {found.spread:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="unlabeled rows")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| set | unlabeled | exact s | landmarks s | ratio | exact % | landmarks % | points | sd |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    summary = []
    with threadpool_limits(1):
        for size in options.sizes:
            every = []
            for data in map(load_set, options.sets):
                if data.y.size - LABELS_PER_CLASS * data.counts.size >= MIN_SHARE * size:
                    every.append(compare(data, size, options.splits, options.first))
                    print(line(every[-1]), flush=True)
            if every:
                points, ratios = [found.points for found in every], [found.ratio for found in every]
                worst = min(every, key=lambda found: found.points)
                summary.append(
                    f"{size} unlabeled rows, {len(every)} sets: seconds of landmarks {np.exp(np.mean(np.log(ratios))):.2f} times "
                    f"those of exact kernels, accuracy {np.mean(points):+.2f} points, worst {worst.points:+.2f} ({worst.name})"
                )
    print("", *summary, sep="\n")


if __name__ == "__main__":
    main()
