"""Few labels on raw recordings of several sensors: ``python -m benchmarks.recordings``.

Sets: racket sports and the hydraulic test rig (files of CMVMED_DATA/suite), and simulated footsteps (two and four
sensors), machine vibration and body-worn sensors. Each split has at most 400 training cases, of which 2, 5 or 10 per
class on average are labeled, drawn at random; accuracy is that on the other training cases and on held-out ones.

Features do not depend on labels, except for the choice of their kinds, and are computed once for all cases of a set.
Methods with "auto" features use the kinds that ``SensorFeatures`` chooses from the labels of the split; "plain"
features are MFCC for sensors of 1000 Hz or more and ``WindowFeatures`` for others. LightGBM has only these, because it
takes a minute for each fit to thousands of columns. MiniRocket, MultiRocket and Hydra are the classifiers of aeon, a
ridge regression with cross-validated penalty on the transform of all channels together (10,000 convolutions,
interpolated to the highest rate); signals of more than 1000 samples take MultiRocket and Hydra too long, and those
cells stay empty.

Rows are kept as they come, so that a run that was stopped goes on where it was; splits from 1000 on are for
development. ``--cost`` prints the time of the features per second of signal instead.
"""

import argparse
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from benchmarks.suite.methods import Answer, boosting, cmvmed, label_spreading, logistic, self_training
from benchmarks.suite.run import code_checksum
from benchmarks.suite.scores import accuracy
from benchmarks.suite.sets import HYDRAULIC, DataSet, data_folder
from benchmarks.suite.splits import BUDGETS, Cell, Split, draw
from benchmarks.suite.store import Key, Store
from cmvmed.datasets import make_body_motion, make_footsteps
from cmvmed.features import SignalFeatures
from cmvmed.features.feature_choice import choose_kinds
from cmvmed.features.sensor_features import MIN_SOUND_RATE
from cmvmed.features.signal_features import side_by_side
from experiments.baseline_pipelines import LabeledOnlyClassifier, concatenated_views
from experiments.datasets import make_machine_vibration

N_ROWS, SEED = 400, 0
RIDGE_PENALTIES = np.logspace(-3, 3, 10)  # as in aeon
MAX_CONVOLVED_SAMPLES = 1000  # for MultiRocket and Hydra


@dataclass(frozen=True)
class RecordingSet:
    """Signals of several sensors with classes."""

    signals: dict[str, Any]  # sensor -> (n, channels, samples)
    rates: dict[str, float]
    target: Any

    @property
    def seconds(self) -> float:
        """Duration of all signals of all sensors."""
        return sum(s.shape[0] * s.shape[2] / self.rates[name] for name, s in self.signals.items())

    @property
    def longest(self) -> int:
        """Samples of the longest signal."""
        return max(s.shape[2] for s in self.signals.values())


def racket_sports() -> RecordingSet:
    with np.load(data_folder() / "suite" / "racketsports_series.npz") as file:
        signals = {"accelerometer": file["X"][:, :3], "gyroscope": file["X"][:, 3:]}
        return RecordingSet(signals, dict.fromkeys(signals, 10.0), file["y"])


def hydraulic(target: str) -> RecordingSet:
    with np.load(data_folder() / "suite" / "hydraulic_series.npz") as file:
        rows = np.random.default_rng(SEED).permutation(len(file[target]))[:1000]
        signals = {name: np.stack([file[c][rows] for c in channels], axis=1) for name, channels in HYDRAULIC.items()}
        return RecordingSet(signals, dict.fromkeys(signals, 1.0), file[target][rows])


def footsteps(n_sensors: int) -> RecordingSet:
    steps = make_footsteps(448, 352, random_state=SEED)
    sensors = list(steps.views.items())[:n_sensors]
    signals = {name: steps.data[:, [channel]] for name, channel in sensors}
    return RecordingSet(signals, dict.fromkeys(signals, float(steps.sampling_rate)), steps.target)


def simulated(make: Callable[..., Any]) -> RecordingSet:
    made = make(random_state=SEED)
    return RecordingSet(made.signals, made.sampling_rates, made.target)


SETS: dict[str, Callable[[], RecordingSet]] = {
    "racketsports": racket_sports,
    "hyd_pump": lambda: hydraulic("pump"),
    "hyd_accu": lambda: hydraulic("accumulator"),
    "footsteps2": lambda: footsteps(2),
    "footsteps4": lambda: footsteps(4),
    "machines": lambda: simulated(make_machine_vibration),
    "body": lambda: simulated(make_body_motion),
}


@cache
def load(name: str) -> RecordingSet:
    """The set of this name with class codes."""
    made = SETS[name]()
    return RecordingSet(made.signals, made.rates, np.unique(made.target, return_inverse=True)[1])


def candidates(rate: float) -> list[str]:
    """The kinds that "auto" compares for a sensor."""
    aeon = ["minirocket"] if find_spec("aeon") else []
    return ["ranks", *aeon, *(["mfcc"] if rate >= MIN_SOUND_RATE else [])]


@cache
def features(name: str, sensor: str, kind: str, folder: str) -> Any:
    """Features of all cases of a set, kept in a folder."""
    data = load(name)
    transform = SignalFeatures(kind, sampling_rate=data.rates[sensor], memory=folder)
    return np.asarray(transform.fit_transform(data.signals[sensor]), dtype=np.float64)


@cache
def transformed(name: str, transform: str, folder: str) -> Any:
    """A transform of aeon with its defaults of all channels together."""
    path = Path(folder) / f"{name}-{transform}.npy"
    if path.is_file():
        return np.load(path)
    from aeon.transformations.collection import convolution_based

    data = load(name)
    time_axis = np.linspace(0.0, 1.0, data.longest)
    channels = [
        _interpolated(signals[:, c], time_axis) for signals in data.signals.values() for c in range(signals.shape[1])
    ]
    X = np.stack(channels, axis=1).astype(np.float32)
    X = (X - X.mean(axis=(0, 2), keepdims=True)) / X.std(axis=(0, 2), keepdims=True)
    arguments = {"output_type": "numpy"} if transform == "HydraTransformer" else {}
    made = getattr(convolution_based, transform)(random_state=SEED, **arguments).fit_transform(X)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.asarray(made, dtype=np.float32))
    return np.load(path)


def _interpolated(signals: Any, time_axis: Any) -> Any:
    own = np.linspace(0.0, 1.0, signals.shape[1])
    return signals if own.size == time_axis.size else np.stack([np.interp(time_axis, own, s) for s in signals])


@lru_cache(maxsize=4)
def rows_of(name: str, budget: int, number: int) -> Split:
    """A split of the numbers of the cases."""
    target = load(name).target
    numbers = DataSet(name, np.arange(target.size)[:, None], {}, target)
    return draw(numbers, Cell(name, budget, "random"), number, N_ROWS)


def with_features(rows: Split, by_view: dict[str, Any]) -> Split:
    """The split of a set of these features."""
    X, stops = np.hstack(list(by_view.values())), np.cumsum([values.shape[1] for values in by_view.values()])
    views = {
        name: slice(int(stop) - values.shape[1], int(stop))
        for (name, values), stop in zip(by_view.items(), stops, strict=True)
    }
    return Split(X[rows.X[:, 0]], rows.y, rows.truth, X[rows.X_test[:, 0]], rows.y_test, views)


def auto_split(name: str, rows: Split, folder: str) -> tuple[Split, dict[str, str]]:
    """With the kinds that held-out labels of the split choose."""
    data, train = load(name), rows.X[:, 0]
    every = {s: {k: features(name, s, k, folder) for k in candidates(rate)} for s, rate in data.rates.items()}
    chosen, _ = choose_kinds({s: {k: v[train] for k, v in kinds.items()} for s, kinds in every.items()}, rows.y)
    return with_features(rows, {s: joined(every[s], kinds) for s, kinds in chosen.items()}), chosen


def joined(by_kind: dict[str, Any], kinds: str) -> Any:
    """Several kinds side by side as by ``SignalFeatures``."""
    parts = [by_kind[kind] for kind in kinds.split("+")]
    return np.hstack(parts)[:, side_by_side([part.shape[1] for part in parts])]


def plain_split(name: str, rows: Split, folder: str) -> Split:
    kinds = {s: "mfcc" if rate >= MIN_SOUND_RATE else "statistics" for s, rate in load(name).rates.items()}
    return with_features(rows, {s: features(name, s, kind, folder) for s, kind in kinds.items()})


def ridge(split: Split) -> Answer:
    from benchmarks.suite.methods import _inductive

    model = LabeledOnlyClassifier(RidgeClassifierCV(alphas=RIDGE_PENALTIES))
    return _inductive(concatenated_views(split.X, model), split)


AUTO: dict[str, Callable[[Split], Answer]] = {
    "CMVMED, auto": cmvmed,
    "ridge, auto": ridge,
    "logistic, auto": logistic,
    "self-training, auto": self_training,
    "LabelSpreading, auto": label_spreading,
}
AEON = {"MiniRocket": "MiniRocket", "MultiRocket": "MultiRocket", "Hydra": "HydraTransformer"}
PLAIN: dict[str, Callable[[Split], Answer]] = {"CMVMED, plain": cmvmed, "LightGBM, plain": boosting}
METHODS = ("CMVMED, auto", "CMVMED, plain", *list(AUTO)[1:], "LightGBM, plain", *AEON)
PACKAGES = {
    "LightGBM, plain": ("lightgbm",),
    "MiniRocket": ("aeon",),
    "MultiRocket": ("aeon",),
    "Hydra": ("aeon", "torch"),
}


def is_possible(name: str, method: str) -> bool:
    """Whether the packages of a method are there, and it is not too slow for a set."""
    if any(find_spec(package) is None for package in PACKAGES.get(method, ())):
        return False
    return method not in ("MultiRocket", "Hydra") or load(name).longest <= MAX_CONVOLVED_SAMPLES


def solve(name: str, method: str, rows: Split, folder: str) -> tuple[Answer, dict[str, str]]:
    if method in AEON:
        return ridge(with_features(rows, {"all": transformed(name, AEON[method], folder)})), {}
    if method in PLAIN:
        return PLAIN[method](plain_split(name, rows, folder)), {}
    split, kinds = auto_split(name, rows, folder)
    return AUTO[method](split), kinds


def evaluate(key: Key, folder: str) -> dict[str, Any]:
    rows = rows_of(key.set, key.budget, key.split)
    row: dict[str, Any] = {**key._asdict(), "code": code_checksum(), "error": ""}
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer, kinds = solve(key.set, key.method, rows, folder)
    except Exception as error:
        return row | {"error": f"{type(error).__name__}: {error}"}
    return row | {
        "unlabeled": accuracy(answer.unlabeled, rows.y, rows.truth[rows.unlabeled]),
        "held_out": accuracy(answer.held_out, rows.y, rows.y_test),
        "seconds": answer.seconds,
        "kinds": kinds,
    }


def run(sets: Sequence[str], methods: Sequence[str], budgets: Sequence[int], splits: range, store: Store) -> None:
    done = store.rows()
    keys = [
        Key(name, budget, "random", N_ROWS, number, method)
        for number in splits
        for name in sets
        for budget in budgets
        for method in methods
        if is_possible(name, method)
    ]
    pending = [key for key in keys if key not in done]
    begin = time.monotonic()
    for i, key in enumerate(pending):
        row = evaluate(key, str(store.path.with_suffix("")))
        store.add(row)
        left = (time.monotonic() - begin) / (i + 1) * (len(pending) - i - 1)
        if row["error"] or i % 20 == 0:
            print(
                f"{i + 1} of {len(pending)}, {left / 60:.0f} minutes left. {row['error']}", file=sys.stderr, flush=True
            )


def report(rows: Sequence[dict[str, Any]]) -> str:
    """Mean accuracy over splits by set and method, the mean over sets by budget, and what "auto" chose."""
    good = [row for row in rows if not row["error"]]
    if not good:
        return "There are no rows yet."
    sets = [name for name in SETS if any(row["set"] == name for row in good)]
    budgets = sorted({row["budget"] for row in good})
    methods = [method for method in METHODS if any(row["method"] == method for row in good)]
    numbers = sorted({row["split"] for row in good})
    heading = (
        f"Accuracy in %, mean of unlabeled training cases and held-out ones, {len(numbers)} splits ({numbers[0]} to "
        f"{numbers[-1]}); by set, the mean over {', '.join(map(str, budgets))} labels per class."
    )

    def mean(method: str, name: str, budget: int | None = None) -> float:
        found = [
            (row["unlabeled"] + row["held_out"]) / 2
            for row in good
            if (row["method"], row["set"]) == (method, name) and budget in (None, row["budget"])
        ]
        return 100 * float(np.mean(found)) if found else np.nan

    lines = [
        [method, *(f"{mean(method, name):.1f}" for name in sets)]
        + [f"{np.mean([mean(method, name, b) for name in sets]):.1f}" for b in budgets]
        + [f"{np.mean([mean(method, name) for name in sets]):.1f}"]
        for method in methods
    ]
    head = ["method", *sets, *(f"mean, {b} labels" for b in budgets), "mean"]
    table = "\n".join(f"| {' | '.join(line)} |".replace("nan", "–") for line in [head, ["---"] * len(head), *lines])
    return "\n\n".join([textwrap.fill(heading, 120), table, textwrap.fill(_choices(good, sets), 120)])


def _choices(rows: Sequence[dict[str, Any]], sets: Sequence[str]) -> str:
    """How often each kind was among those of a sensor, by set."""
    parts = []
    for name in sets:
        chosen = [
            k for row in rows if row["set"] == name and row["method"] == "CMVMED, auto" for k in row["kinds"].values()
        ]
        kinds = [kind for joined_kinds in chosen for kind in joined_kinds.split("+")]
        shares = {kind: 100 * kinds.count(kind) / len(chosen) for kind in dict.fromkeys(kinds)}
        parts.append(f"{name}: " + ", ".join(f"{kind} {share:.0f} %" for kind, share in shares.items()))
    return f"Sensors that have each kind, over splits and budgets: {'; '.join(parts)}."


def report_cost() -> str:
    """Milliseconds per second of signal of one sensor, after a first call that compiles."""
    lines = ["| set | rate (Hz) | kind | ms per second of signal |", "| --- | --- | --- | --- |"]
    for name in ("body", "machines", "footsteps2"):
        data = load(name)
        sensor, rate = next(iter(data.rates.items()))
        signals = data.signals[sensor][:100]
        seconds = len(signals) * signals.shape[2] / rate
        for kind in [*candidates(rate), *(["multirocket", "catch22"] if find_spec("aeon") else [])]:
            transform = SignalFeatures(kind, sampling_rate=rate).fit(signals)
            lines.append(
                f"| {name} | {rate:g} | {kind} | {1000 * _seconds(transform.transform, signals) / seconds:.2f} |"
            )
        if find_spec("aeon"):
            from aeon.transformations.collection.convolution_based import MiniRocket

            own = MiniRocket(random_state=SEED).fit(signals.astype(np.float32))
            taken = _seconds(own.transform, signals.astype(np.float32))
            lines.append(
                f"| {name} | {rate:g} | aeon's MiniRocket, 10,000 convolutions | {1000 * taken / seconds:.2f} |"
            )
    return "\n".join(lines)


def _seconds(work: Callable[[Any], Any], signals: Any) -> float:
    work(signals[:2])
    begin = time.perf_counter()
    work(signals)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS), help="labels per class, on average")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="number of the first split; 1000 and more for development")
    parser.add_argument("--results", type=Path, default=Path("recordings.jsonl"), help="where rows are kept")
    parser.add_argument("--no-run", action="store_true", help="only report the rows that are there")
    parser.add_argument("--cost", action="store_true", help="time of the features instead")
    given = parser.parse_args()
    if given.cost:
        print(f"{heading()}\n\n{report_cost()}")
        return
    store, splits = Store(given.results), range(given.first, given.first + given.splits)
    if not given.no_run:
        run(given.sets, given.methods, given.budgets, splits, store)
    wanted = {"split": splits, "set": given.sets, "budget": given.budgets, "method": given.methods}
    rows = [row for row in store.rows().values() if all(row[name] in some for name, some in wanted.items())]
    print(f"{heading()}\n\n{report(rows)}")


if __name__ == "__main__":
    main()
