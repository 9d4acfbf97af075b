"""Predictions before and after a change of the code: ``python -m benchmarks.pinned record FILE``, later ``compare FILE``.

Two development splits of each of the nine tasks, with exact and low-rank kernels, missing views, all algorithms, given parameters
and the baselines, and two larger simulated sets that are streamed. ``predict_proba`` on test rows (the score where there is no
probability), ``class_prior_``, ``view_weights_`` and ``objective_history_`` are recorded. ``compare`` prints every array that
differs by more than rounding and exits with 1 if there is any.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.datasets import make_multiview_gaussian
from experiments.tasks import TASKS, Split, draw_split

TOLERANCE = 1e-9  # of the largest value of an array
SINGLE_TOLERANCE = 1e-6  # of a streamed fit, which keeps features in single precision
PRINTED = {"kernel": "linear+rbf"}
KERNELS_ALONE = ["views", "lda", "consensus"]
SETTINGS = {
    "default": CMVMED(),
    "low-rank": CMVMED(approximation=150),
    "prior-labels": CMVMED(class_prior="labels"),
    "kernels-alone": CMVMED(members=KERNELS_ALONE),
    "neighbors": CMVMED(),
    "consensus": CMVMED(members="consensus"),
    "start": CMVMED(consensus_weight=0.0, members=KERNELS_ALONE),
    "lambda-1": CMVMED(consensus_weight=1.0, class_prior=None, temperature=1.0, members=KERNELS_ALONE),
    "uniform": CMVMED(view_weights="uniform"),
    "printed": CMVMED.paper(algorithm="printed", **PRINTED),
    "newton": CMVMED(algorithm="newton", n_stages=3),
    "jaakkola": CMVMED(algorithm="jaakkola", n_stages=3),
    "exact": CMVMED(algorithm="exact", n_stages=3),
    "rbf": CMVMED(kernel="rbf"),
    "linear": CMVMED(kernel="linear"),
    "missing": CMVMED(),
    "missing-low-rank": CMVMED(approximation=100),
    "MVMED": MVMED(),
    "SVM2K": SVM2K(),
    "CoRLS": CoRLS(),
    "MED": MED(),
}
TUNINGS = {"neighbors": Tuning(n_neighbors=10)}
SLOW = ("printed", "newton", "jaakkola", "exact")
STREAMED = {"stream2": 2, "stream3": 3}  # number of classes

Key = tuple[str, int, str]  # task, split, setting


def keys() -> Iterator[Key]:
    yield from ((name, 0, "default") for name in STREAMED)
    for task in TASKS:
        for number in (0, 1) if task == "webkb12" else (3000, 3001):
            for setting in SETTINGS:
                slow = setting in SLOW and (task in ("mfeat", "digits") or number % 2)
                if not slow and not (setting == "SVM2K" and task == "mfeat"):
                    yield task, number, setting


def with_missing_views(split: Split) -> np.ndarray:
    X = np.array(split.X.toarray() if sparse.issparse(split.X) else split.X, dtype=float)
    rng, views = np.random.default_rng(5), list(split.views.values())
    for i, columns in enumerate(views):
        X[np.flatnonzero(rng.integers(len(views) + 2, size=len(X)) == i), columns] = np.nan
    return X


def fitted(key: Key) -> tuple[object, object]:
    """The fitted model and some test rows."""
    task, number, setting = key
    if task in STREAMED:
        data = make_multiview_gaussian(7400, separation=(1.1, 0.8), n_classes=STREAMED[task], random_state=number)
        y = np.where(np.arange(7000) < 40, data.target[:7000], -1)
        return CMVMED(views=dict(data.views), approximation=100).fit(data.data[:7000], y), data.data[7000:]
    split = draw_split(TASKS[task], number)
    model = SETTINGS[setting]
    if "views" in model.get_params():
        model = model.set_params(views=split.views)
    X = with_missing_views(split) if setting.startswith("missing") else split.X
    with tuning_context(TUNINGS.get(setting, Tuning())):
        return model.fit(X, split.y), split.X_test[:200]


def results(key: Key) -> dict[str, np.ndarray]:
    """The arrays to compare, by name."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, X = fitted(key)
        except ValueError as error:  # for instance MED on rows in which one of the views is missing
            return {"error": np.array(f"{type(error).__name__}{error}"[:100])}
        predict = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
        names = ("class_prior_", "view_weights_", "objective_history_")
        return {"proba": predict(X)} | {name: getattr(model, name) for name in names if hasattr(model, name)}


def record() -> dict[str, np.ndarray]:
    from benchmarks.pinned import results  # by its full name, so that worker processes find it

    wanted = list(keys())
    found = Parallel(2)(delayed(results)(key) for key in wanted)
    return {
        "/".join(map(str, (*key, name))): array
        for key, arrays in zip(wanted, found, strict=True)
        for name, array in arrays.items()
    }


def tolerance(name: str) -> float:
    return SINGLE_TOLERANCE if name.startswith(tuple(STREAMED)) else TOLERANCE


def differences(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> list[str]:
    """A line for each array that differs by more than rounding."""
    lines = [f"{name}: only before" for name in before.keys() - after.keys()]
    lines += [f"{name}: only after" for name in after.keys() - before.keys()]
    for name in before.keys() & after.keys():
        a, b = before[name], after[name]
        if a.shape != b.shape:
            lines.append(f"{name}: shape {a.shape} before, {b.shape} after")
        elif a.dtype.kind != "f":
            lines += [f"{name}: {a} before, {b} after"] * bool((a != b).any())
        elif not np.abs(a - b).max(initial=0.0) <= tolerance(name) * max(1.0, float(np.abs(a).max(initial=0.0))):
            lines.append(f"{name}: differs by up to {np.abs(a - b).max():.2g}")
    return sorted(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    if arguments.action == "record":
        np.savez_compressed(arguments.file, **record())
        return
    with np.load(arguments.file) as file:
        before = dict(file)
    lines = differences(before, record())
    print("\n".join([*lines, f"{len(lines)} of {len(before)} arrays differ"]))
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
