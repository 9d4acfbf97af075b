"""Faults of sensors, simulated on held-out rows: ``python -m benchmarks.sensor_health``.

``--write`` writes benchmarks/results/sensor_health.md. For each data set (set CMVMED_DATA to the folder of the data
files; sets that are not there are left out with a message) half of the rows, at most 1000, are for training, with five
labels of each class on average, and the others are held out. Batches of 50 held-out rows are healthy, or have a fault
in one view:

- dead: all rows are zero, or all are the same row;
- shifted: each column by its standard deviation in training;
- gain 2, gain 0.5: values multiplied;
- swapped: exchanged with another view of as many columns;
- columns: the columns of the view in a random order;
- noise: Gaussian noise of the columns' standard deviations added.

Columns of the table: the area under the ROC curve of ``score``, healthy against faulty batches, per fault, mean over views
(the first two) and splits; "found": the share of faulty batches with a fault found in the view, "others": with one found in
a view without a fault; "false alarms": the share of healthy batches in which any view has a fault, drawn at random and
with class shares drawn uniformly from all possible ones. In a second table, which faults were named. In a third,
``novelty``: the share of held-out rows above 1, which should be 1 %, and that with one column of each view at 1e6.
The statistics were chosen on splits 7000 to 8001 of all sets but the last five; the table is of other splits.
"""

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.provenance import RESULTS, write
from benchmarks.suite.sets import LOADERS, DataSet
from benchmarks.suite.splits import Cell, Split, draw
from cmvmed import CMVMED
from cmvmed.monitoring.batch_tests import BatchTests
from cmvmed.monitoring.sensor_health import Batch, Examination, SensorHealth, tests_of
from experiments.datasets import DatasetError
from experiments.tasks import gauss

N_ROWS, N_TRAIN, BUDGET, N_VIEWS = 50, 1000, 5, 2
FIRST_SPLIT = 9000  # splits below were looked at while the tests were designed
UNSEEN = ("mnist", "prokaryotic", "reuters1200", "eyaleb", "breast_cancer")  # no split of these was
SETS = (
    "footsteps",
    "gauss",
    "sensit",
    "mfeat",
    "webkb",
    "ads",
    "racketsports",
    "hyd_pump",
    "gas1",
    "aloi",
    "msrcv1",
    "bbcsport",
    "ngs",
    *UNSEEN,
)
FAULTS = {
    "dead": "dead",
    "shifted": "shifted",
    "gain 2": "gain",
    "gain 0.5": "gain",
    "swapped": "swapped",
    "columns": "swapped",
    "noise": "drift",
}


@dataclass
class Measured:
    """Results of one data set."""

    auc: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    n_others: int = 0  # faulty batches in which a view without a fault has one
    alarms: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    novel: list[float] = field(default_factory=list)
    novel_at_million: list[float] = field(default_factory=list)
    n_train: int = 0


@dataclass(frozen=True)
class Bench:
    """A fitted model and held-out rows by view."""

    split: Split
    model: CMVMED
    held_out: list[Any]
    deviations: list[Any]  # per view the standard deviations of the columns in training
    tests: dict[bytes, BatchTests] = field(default_factory=dict)

    @classmethod
    def fit(cls, split: Split) -> "Bench":
        """A model of the consensus alone, which is fast; the classes of the training rows are by it."""
        model = CMVMED(views=split.views, members=None)
        model.fit(split.X, split.y)
        train = [_dense(split.X[:, columns]) for columns in split.views.values()]
        held_out = [split.X_test[:, columns] for columns in split.views.values()]
        return cls(split, model, held_out, [np.nanstd(view, axis=0) for view in train])

    def batch(self, matrices: Sequence[Any]) -> Batch:
        """Rows as the model would read them."""
        present = self.model._model.row_check.present(0, matrices)
        return Batch(self.model.view_names_, self.model._model.preprocessors, list(matrices), present)

    def health(self, matrices: Sequence[Any]) -> list[SensorHealth]:
        """``model.sensor_health`` with tests that batches with as many rows of each view share."""
        order = np.lexsort(np.stack(self.batch(matrices).present))
        batch = self.batch([matrix[order] for matrix in matrices])
        key = np.stack(batch.present).tobytes()
        if key not in self.tests:
            self.tests[key] = tests_of(self.model._drift_reference(), batch)
        return list(Examination(self.model._drift_reference(), batch, self.tests[key]).result().values())

    def rows(self, rng: np.random.Generator, *, other_shares: bool = False) -> list[Any]:
        """A batch of held-out rows without replacement."""
        y = self.split.y_test
        chances = np.full(y.size, 1.0 / y.size)
        if other_shares:
            counts = np.bincount(y, minlength=self.split.n_classes)
            chances = (rng.dirichlet(np.ones(counts.size)) + 1e-9)[y] / counts[y]
        index = rng.choice(y.size, N_ROWS, replace=False, p=chances / chances.sum())
        return [view[index] for view in self.held_out]


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def with_fault(
    fault: str, rows: list[Any], v: int, number: int, bench: Bench, rng: np.random.Generator
) -> list[Any] | None:
    """A batch with a fault of view v, None if the data have no views that could be exchanged."""
    found = list(rows)
    if fault == "swapped":
        equal = [w for w, other in enumerate(rows) if w != v and other.shape[1] == rows[v].shape[1]]
        if not equal:
            return None
        w = equal[number % len(equal)]
        found[v], found[w] = rows[w], rows[v]
        return found
    x, deviation = _dense(rows[v]), bench.deviations[v]
    found[v] = {
        "dead": np.tile(np.nan_to_num(x[:1]) * (number % 2), (len(x), 1)),
        "shifted": x + deviation,
        "gain 2": 2.0 * x,
        "gain 0.5": 0.5 * x,
        "columns": x[:, rng.permutation(x.shape[1])],
        "noise": x + deviation * rng.normal(size=x.shape),
    }[fault]
    return found


def measure_split(measured: Measured, split: Split, n_healthy: int, n_faulty: int, seed: int) -> None:
    """Add the results of one split."""
    bench, rng = Bench.fit(split), np.random.default_rng(seed)
    measured.n_train = split.y.size
    healthy = [bench.health(bench.rows(rng)) for _ in range(n_healthy)]
    shifted = [bench.health(bench.rows(rng, other_shares=True)) for _ in range(n_healthy)]
    measured.alarms["same"] += [any(h.fault != "ok" for h in views) for views in healthy]
    measured.alarms["other"] += [any(h.fault != "ok" for h in views) for views in shifted]
    for fault in FAULTS:
        for v in range(min(N_VIEWS, len(bench.held_out))):
            scores = []
            for number in range(n_faulty):
                batch = with_fault(fault, bench.rows(rng), v, number, bench, rng)
                if batch is None:
                    break
                found = bench.health(batch)
                scores.append(found[v].score)
                measured.names[fault][found[v].fault] += 1
                others = [h.fault != "ok" for w, h in enumerate(found) if w != v]
                measured.n_others += any(others) and fault != "swapped"
            if scores:
                of_healthy = [views[v].score for views in healthy]
                truth = np.repeat([0, 1], [len(of_healthy), len(scores)])
                measured.auc[fault].append(float(roc_auc_score(truth, of_healthy + scores)))
    _measure_novelty(measured, bench, rng)


def _measure_novelty(measured: Measured, bench: Bench, rng: np.random.Generator) -> None:
    measured.novel.append(float(np.mean([(n > 1.0).mean() for n in bench.model.novelty(bench.split.X_test).values()])))
    X = _dense(bench.split.X_test[:200]).copy()
    for columns in bench.split.views.values():
        X[:, rng.integers(columns.start, columns.stop)] = 1e6
    measured.novel_at_million.append(float(np.mean([(n > 1.0).mean() for n in bench.model.novelty(X).values()])))


def load_set(name: str) -> DataSet:
    """A data set of the suite, or the simulated Gaussian views."""
    if name == "gauss":
        data = gauss(0)
        return DataSet(name, data.data, dict(data.views), np.unique(data.target, return_inverse=True)[1])
    return LOADERS[name]()


def percent(hits: Sequence[bool]) -> str:
    return f"{100.0 * np.mean(hits):.1f}"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def result_text(results: dict[str, Measured]) -> str:
    """The three tables."""
    lines, novelty = [], []
    names: dict[str, Counter[str]] = {fault: Counter() for fault in FAULTS}
    for name, found in results.items():
        auc = [f"{np.mean(found.auc[fault]):.3f}" if found.auc[fault] else "–" for fault in FAULTS]
        named = sum((found.names[fault] for fault in FAULTS), Counter[str]())
        n_faulty = named.total()
        n_single = n_faulty - found.names["swapped"].total()
        lines.append(
            [
                name,
                str(found.n_train),
                *auc,
                f"{100.0 * (1.0 - named['ok'] / n_faulty):.1f}",
                f"{100.0 * found.n_others / n_single:.1f}",
                percent(found.alarms["same"]),
                percent(found.alarms["other"]),
            ]
        )
        novelty.append([name, percent(found.novel), percent(found.novel_at_million)])
        for fault in FAULTS:
            names[fault] += found.names[fault]
    alarms = {kind: [a for found in results.values() for a in found.alarms[kind]] for kind in ("same", "other")}
    mean_auc = [f"{np.mean([np.mean(f.auc[fault]) for f in results.values() if f.auc[fault]]):.3f}" for fault in FAULTS]
    found_of_all = sum((names[fault] for fault in FAULTS), Counter[str]())
    n_single = found_of_all.total() - names["swapped"].total()
    lines.append(
        [
            "mean",
            "",
            *mean_auc,
            f"{100.0 * (1.0 - found_of_all['ok'] / found_of_all.total()):.1f}",
            f"{100.0 * sum(f.n_others for f in results.values()) / n_single:.1f}",
            percent(alarms["same"]),
            percent(alarms["other"]),
        ]
    )
    kinds = ["dead", "shifted", "gain", "swapped", "drift", "ok"]
    shares = [
        [fault, *(f"{100.0 * names[fault][k] / max(names[fault].total(), 1):.0f}" for k in kinds)] for fault in FAULTS
    ]
    head = ["data", "training rows", *FAULTS, "found %", "others %", "false alarms %", "other class shares %"]
    return "\n\n".join(
        [
            table(head, lines),
            table(["fault", *(f"named {k} %" for k in kinds)], shares),
            table(["data", "held-out rows above 1 %", "with a column at 1e6 %"], novelty),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=[*LOADERS, "gauss"], default=list(SETS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--healthy", type=int, default=100, help="healthy batches of a split, of each kind")
    parser.add_argument("--faulty", type=int, default=8, help="batches of a split with each fault of each view")
    parser.add_argument("--write", action="store_true", help="write the result file that the documentation shows")
    options = parser.parse_args()
    results: dict[str, Measured] = {}
    for name in options.sets:
        try:
            data = load_set(name)
        except (DatasetError, ImportError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        results[name] = Measured()
        for number in range(FIRST_SPLIT, FIRST_SPLIT + options.splits):
            split = draw(data, Cell(name, BUDGET, "random"), number, N_TRAIN)
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                measure_split(results[name], split, options.healthy, options.faulty, number)
        print(f"{name} done", file=sys.stderr, flush=True)
    text = result_text(results)
    print(text)
    if options.write:
        write(RESULTS / "sensor_health.md", text)


if __name__ == "__main__":
    main()
