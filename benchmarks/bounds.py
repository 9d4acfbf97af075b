"""How loose the bounds on objective (A) are: ``python -m benchmarks.bounds``.

Set CMVMED_DATA to the folder of the data files. For each task, the consensus alone (class shares of the labels) is
fitted with each algorithm on development splits that no reported table uses. The table shows means over splits: what
the algorithm's value for E A(f) exceeds E A(f) by, per unlabeled row and view (E A(f) itself is between 0.69 and
|m|/2 + 0.69); objective (A) with E A(f) by quadrature where the algorithm ends, relative to where "exact" ends;
accuracy on held-out rows, and sweeps. The objective of "newton" has no covariance, so it is not shown.
"""

import argparse
import warnings
from dataclasses import astuple, dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED
from cmvmed.core.surrogates import Bohning, Jaakkola, Newton, Quadrature
from experiments.tasks import TASKS, Split, draw_split

SURROGATES = {"bohning": Bohning(), "jaakkola": Jaakkola(), "newton": Newton(), "exact": Quadrature()}
FIRST_SPLIT = 7000


@dataclass(frozen=True)
class Measurement:
    """Where one fit ended."""

    excess: float  # of the algorithm's value over E A(f), per unlabeled row and view
    objective: float  # (A) with E A(f) by quadrature
    accuracy: float
    sweeps: int


def measure(split: Split, algorithm: str) -> Measurement:
    model = CMVMED(
        views=split.views,
        algorithm=algorithm,
        class_prior="labels",
        view_weights="uniform",
        consensus_weight=0.5,
        members=None,
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.X, split.y)
    excesses, surplus = [], 0.0
    by_view = model.decision_function_by_view(split.X[split.y == -1], return_std=True)
    for weight, (scores, deviations) in zip(model.view_weights_, by_view.values(), strict=True):
        m, s = (values.reshape(len(scores), -1) for values in (scores, deviations**2))
        present = np.isfinite(s[:, 0])
        m, s = m[present] - model._model.score_offset, s[present]
        excesses.append(SURROGATES[algorithm].energy(m, s) - SURROGATES["exact"].energy(m, s))
        surplus += weight * float(excesses[-1].sum())
    value = model.objective_history_[-1] - model.consensus_weight_ * surplus
    return Measurement(
        excess=float(np.concatenate(excesses).mean()),
        objective=float(value),
        accuracy=float(100.0 * model.score(split.X_test, split.y_test)),
        sweeps=model.n_iter_,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["webkb", "ads", "sensit"])
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    print(f"{heading()}\n")
    print("| task | algorithm | value less E A(f), per row | objective (A), % above exact | accuracy % | sweeps |")
    print("| --- | --- | --- | --- | --- | --- |")
    for task in options.tasks:
        splits = [draw_split(TASKS[task], FIRST_SPLIT + number) for number in range(options.splits)]
        found = {name: np.array([astuple(measure(split, name)) for split in splits]) for name in SURROGATES}
        least = found["exact"][:, 1]
        for name, values in found.items():
            excess, _, accuracy, sweeps = values.mean(axis=0)
            above = "–" if name == "newton" else f"{100.0 * np.mean(values[:, 1] / least - 1.0):.2f}"
            print(
                f"| {task} | {name} | {excess:.4f} | {above} | {accuracy:.1f} | {sweeps:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
