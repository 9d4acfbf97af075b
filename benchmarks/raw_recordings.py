"""Few labels on raw recordings of public data sets, beside time-series classifiers: ``python -m benchmarks.raw_recordings``.

Sets, splits, budgets and draws are those of ``benchmarks.suite``: a set has the same training, labeled and held-out rows
as the table of its features there, as long as ``--rows`` is the same. All features are learned from the training rows of
a split, labeled or not, never from held-out ones.

- cmvmed, start, lr, extra_trees: the methods of the suite on the views of ``SensorFeatures()``;
- minirocket: ridge regression with cross-validated penalty on the transform of all channels together (10,000
  convolutions, by aeon; channels are standardized first);
- catch22: extra trees on the 24 statistics of each channel, by aeon.

Rows are kept in a file as they come, so that a run that was stopped goes on where it was. ``--peers FILE`` takes the rows
of all methods but CMVMED from the file of an earlier run; if ``SensorFeatures`` has changed since, only those of
minirocket and catch22 are still right. Splits from 1000 on are for development.
"""

import argparse
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV

from benchmarks.provenance import heading
from benchmarks.suite.markdown import markdown, number
from benchmarks.suite.methods import Answer, Method, _inductive, cmvmed, extra_trees, logistic, package, start
from benchmarks.suite.report import notes
from benchmarks.suite.run import ChangedSettingsError, possible_cells, run, usable_methods, wanted_keys
from benchmarks.suite.sets import SERIES
from benchmarks.suite.splits import BUDGETS, Split
from benchmarks.suite.store import Row, Store, rows_of_methods
from benchmarks.suite.summary import Summary, comparable
from cmvmed.datasets.bunch import column_slices
from cmvmed.features import FeatureCache, SensorFeatures, SignalFeatures
from experiments.baseline_pipelines import LabeledOnlyClassifier, concatenated_views

DRAWS = ("random", "per_class")
SIDES = {"unlabeled": "Unlabeled training rows", "held_out": "Held-out rows"}
RIDGE_PENALTIES = np.logspace(-3, 3, 10)  # as in aeon
CACHE = FeatureCache()  # the methods of a split have the same features


def sensor_features(split: Split) -> Split:
    """One view per sensor, of the kinds that the labels of the split choose."""
    transform = SensorFeatures(sampling_rate=1.0, memory=CACHE)
    by_sensor = transform.fit_transform(_sensors(split.X, split.views), split.y)
    by_sensor_test = transform.transform(_sensors(split.X_test, split.views))
    views = column_slices({name: values.shape[1] for name, values in by_sensor.items()})
    return replace(split, X=_side_by_side(by_sensor), X_test=_side_by_side(by_sensor_test), views=views)


def catch22_features(split: Split) -> Split:
    transform = SignalFeatures("catch22", sampling_rate=1.0, memory=CACHE).fit(split.X)
    return replace(split, X=transform.transform(split.X), X_test=transform.transform(split.X_test))


def minirocket_features(split: Split) -> Split:
    from aeon.transformations.collection.convolution_based import MiniRocket

    mean, deviation = split.X.mean(axis=(0, 2), keepdims=True), split.X.std(axis=(0, 2), keepdims=True)
    train, test = (np.float32((X - mean) / np.where(deviation > 0, deviation, 1)) for X in (split.X, split.X_test))
    transform = MiniRocket(random_state=0).fit(train)
    return replace(split, X=np.asarray(transform.transform(train)), X_test=np.asarray(transform.transform(test)))


def ridge(split: Split) -> Answer:
    model = LabeledOnlyClassifier(RidgeClassifierCV(alphas=RIDGE_PENALTIES))
    return _inductive(concatenated_views(split.X, model), split)


def _sensors(signals: Any, views: dict[str, slice]) -> dict[str, Any]:
    return {name: signals[:, channels] for name, channels in views.items()}


def _side_by_side(by_sensor: dict[str, Any]) -> Any:
    return np.hstack(list(by_sensor.values())).astype(np.float64)


def on_features(features: Callable[[Split], Split], solve: Callable[[Split], Answer], split: Split) -> Answer:
    """The answer of a method for tables."""
    return solve(features(split))


METHODS = {
    method.name: method
    for method in (
        Method("cmvmed", partial(on_features, sensor_features, cmvmed), is_peer=False),
        Method("start", partial(on_features, sensor_features, start), is_peer=False),
        Method("lr", partial(on_features, sensor_features, logistic)),
        Method("extra_trees", partial(on_features, sensor_features, extra_trees)),
        Method("minirocket", partial(on_features, minirocket_features, ridge), lacks=package("aeon")),
        Method("catch22", partial(on_features, catch22_features, extra_trees), lacks=package("aeon")),
    )
}


def report(rows: Sequence[Row], methods: Sequence[Method]) -> str:
    """Accuracy by set and budget on unlabeled and on held-out rows, and what failed."""
    kept = comparable(rows)
    if not kept:
        return "There are no rows yet."
    splits = sorted({row["split"] for row in kept})
    draws = " and ".join(draw for draw in DRAWS if any(row["draw"] == draw for row in kept))
    heading = (
        f"Accuracy in %, mean ± standard deviation over {len(splits)} splits ({splits[0]} to {splits[-1]}), each the mean "
        f"over labels drawn {draws}; at most {max(row['n_rows'] for row in kept)} training rows. Rank: mean over sets, "
        "budgets and draws."
    )
    parts = [textwrap.fill(heading, 120)]
    for on, title in SIDES.items():
        parts += [f"**{title}**", budget_table(Summary(kept, on), [method.name for method in methods])]
    return "\n\n".join([*parts, *notes(rows, methods)])


def budget_table(summary: Summary, names: Sequence[str]) -> str:
    """A line per set and budget, the mean over sets of each budget and of all, and the rank."""
    by_budget = {name: split_means(summary, name) for name in names}
    keys = sorted({key for found in by_budget.values() for key in found})
    lines = [
        [
            set_.removesuffix("_series"),
            str(budget),
            *(_spread(by_budget[name].get((set_, budget), [])) for name in names),
        ]
        for set_, budget in keys
    ]
    budgets = sorted({budget for _, budget in keys})
    for title, some in [*((str(budget), [budget]) for budget in budgets), ("all", budgets)]:
        lines.append(["mean", title, *(_mean_over_sets(by_budget[name], some) for name in names)])
    lines.append(["rank", "all", *(number(summary.rank(name), 2) for name in names)])
    return markdown([["set", "labels per class", *names], *lines])


def split_means(summary: Summary, name: str) -> dict[tuple[str, int], list[float]]:
    """Accuracy of each split, mean over draws, by set and budget."""
    found: dict[tuple[str, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell, by_split in summary.scores.get(name, {}).items():
        for split, value in by_split.items():
            found[cell.set, cell.budget][split].append(value)
    return {key: [float(np.mean(values)) for values in by_split.values()] for key, by_split in found.items()}


def _spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return number(values[0]) if values else "–"
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


def _mean_over_sets(found: dict[tuple[str, int], list[float]], budgets: Sequence[int]) -> str:
    means = [float(np.mean(values)) for (_, budget), values in found.items() if budget in budgets]
    return number(float(np.mean(means))) if means else "–"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.raw_recordings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=SERIES, default=list(SERIES), metavar="SET")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS), help="labels per class, on average")
    parser.add_argument("--draws", nargs="+", choices=DRAWS, default=list(DRAWS), metavar="DRAW")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="number of the first split; 1000 and more for development")
    parser.add_argument("--rows", type=int, default=300, help="most training rows")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("raw_recordings.jsonl"), help="where rows are kept")
    parser.add_argument("--peers", nargs="+", type=Path, default=[], metavar="FILE", help="rows of all but CMVMED")
    parser.add_argument("--no-run", action="store_true", help="only report the rows that are there")
    parser.add_argument("--retry-failed", action="store_true")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    try:
        print(f"{heading()}\n\n{compare(given)}")
    except (ChangedSettingsError, FileNotFoundError) as error:
        sys.exit(str(error))


def compare(given: argparse.Namespace) -> str:
    """Run what is missing, and report."""
    methods = usable_methods(METHODS[name] for name in given.methods)
    cells = possible_cells(given.sets, given.budgets, given.draws, given.rows)
    wanted = wanted_keys(cells, methods, range(given.first, given.first + given.splits), given.rows)
    borrowed = rows_of_methods(given.peers, [method.name for method in methods if method.name != "cmvmed"])
    store = Store(given.results, borrowed)
    if not given.no_run:
        run(wanted, store, given.jobs, given.retry_failed)
    return report([row for key, row in store.rows().items() if key in wanted], methods)


if __name__ == "__main__":
    main()
