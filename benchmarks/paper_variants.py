"""What the paper leaves open, measured: ``python -m benchmarks.paper_variants > benchmarks/results/paper_variants.md``.

Set CMVMED_DATA to the folder of the data files. Three tables over splits 0, 1, ... of the sets of Table 1, with default
parameters:

- normalization: the footsteps' cepstral coefficients as this library scales them (each column standardized), with unit length
  (usual with the sparse representations of the report that the paper refers to) and as they are; balanced accuracy
- weighting: the weights of the three terms as the printed dual has them (C = 1), as step 2(b) and eq. (4) at λ = 1 have them
  (C = V), and as eq. (2) has them (C = V/|U|, λ = 1/|U|), for the completed algorithm; accuracy
- confidence: the claim that the consensus term is "sensitive" where views of low confidence agree and "lenient" where they
  are confident. Unlabeled rows are divided into thirds by the independent views' mean log-odds; the table has the mean of
  |m_1 - m_2| after the fit relative to before. The claim predicts that it falls most in the first third.
"""

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED, MED, MVMED, SVM2K
from experiments.tasks import TASKS, Split, draw_split

SETS = ("webkb", "ads", "sensit", "footsteps")
SCALINGS = {"columns standardized": "auto", "unit length": "unit", "as they are": None}
METHODS: Mapping[str, Callable[..., Any]] = {
    "SVM-2K": SVM2K,
    "MV-MED": MVMED,
    "CMV-MED as printed": lambda **settings: CMVMED.paper(algorithm="printed", **settings),
    "CMVMED.paper()": CMVMED.paper,
}
WEIGHTINGS: Mapping[str, Callable[[int, int], dict[str, float]]] = {
    "printed dual: C = 1": lambda n_views, n_unlabeled: {},
    "step 2(b), eq. (4): C = V": lambda n_views, n_unlabeled: {"C": float(n_views)},
    "eq. (2): C = V/n_U, λ = 1/n_U": lambda n_views, n_unlabeled: {
        "C": n_views / n_unlabeled,
        "consensus_weight": 1.0 / n_unlabeled,
    },
}
THIRDS = ("low confidence", "middle", "high confidence")


def by_scaling(split: Split) -> list[list[float]]:
    """Balanced accuracy of each method with each scaling of the footsteps."""
    found = []
    for scaling in SCALINGS.values():
        models = [build(views=split.views, scaling=scaling).fit(split.X, split.y) for build in METHODS.values()]
        scores = [balanced_accuracy_score(split.y_test, model.predict(split.X_test)) for model in models]
        first = split.views["sensor1"]
        alone = MED(scaling=scaling).fit(split.X[:, first], split.y).predict(split.X_test[:, first])
        found.append([balanced_accuracy_score(split.y_test, alone), *scores])
    return found


def by_weighting(split: Split) -> list[float]:
    """Accuracy of the completed algorithm with each weighting."""
    n_unlabeled = int((split.y == -1).sum())
    return [
        CMVMED.paper(views=split.views, **settings(len(split.views), n_unlabeled))
        .fit(split.X, split.y)
        .score(split.X_test, split.y_test)
        for settings in WEIGHTINGS.values()
    ]


def disagreement_left(split: Split) -> list[float]:
    """Mean |m_1 - m_2| after the fit over that before, for each third of the unlabeled rows by confidence."""
    unlabeled = split.X[split.y == -1]
    models = [CMVMED.paper(views=split.views, consensus_weight=weight).fit(split.X, split.y) for weight in (0.0, 1.0)]
    before, after = (list(model.decision_function_by_view(unlabeled).values()) for model in models)
    thirds = np.array_split(np.argsort(np.abs(before[0] + before[1])), len(THIRDS))
    old, new = (np.abs(first - second) for first, second in (before, after))
    return [float(new[rows].mean() / old[rows].mean()) for rows in thirds]


def cell(values: Sequence[float], scale: float = 100.0) -> str:
    digits = 1 if scale == 100.0 else 2
    return f"{scale * np.mean(values):.{digits}f} ± {scale * np.std(values, ddof=1):.{digits}f}"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        splits = {name: [draw_split(TASKS[name], k) for k in range(options.splits)] for name in SETS}
        scaled = np.array([by_scaling(split) for split in splits["footsteps"]])  # (splits, scalings, methods)
        weighted = {name: np.array([by_weighting(split) for split in own]) for name, own in splits.items()}
        left = {name: np.array([disagreement_left(split) for split in own]) for name, own in splits.items()}
    print(f"{heading()}\n\n### Normalization\n")
    lines = [[name, *map(cell, scaled[:, k].T)] for k, name in enumerate(SCALINGS)]
    print(table([f"{options.splits} splits", "MED, view sensor1", *METHODS], lines))
    print("\n### Weighting\n")
    lines = [[name, *(cell(weighted[task][:, k]) for task in SETS)] for k, name in enumerate(WEIGHTINGS)]
    print(table([f"{options.splits} splits", *SETS], lines))
    print("\n### Confidence\n")
    lines = [[name, *(cell(left[task][:, k], 1.0) for task in SETS)] for k, name in enumerate(THIRDS)]
    print(table([f"{options.splits} splits", *SETS], lines))


if __name__ == "__main__":
    main()
