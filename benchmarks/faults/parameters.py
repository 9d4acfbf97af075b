"""Values of the parameters of all estimators, valid and invalid, by estimator and name."""

from typing import Any

import numpy as np

INVALID_SHARE = 0.05  # of the drawn parameters
MAX_PARAMETERS = 5

KERNELS = ["auto", "linear+rbf", "rbf", "linear", "cosine"]
SHARED: dict[str, list[Any]] = {
    "kernel": KERNELS,
    "gamma": ["median", "0.5*median", 0.1, 1e-12, 1e12, 1],
    "scaling": ["auto", "standard", "unit", None],
    "unlabeled": [-1, -1, -1, 0],
    "random_state": [0, 7, None],
}
PER_VIEW = ("kernel", "gamma", "scaling", "prior_variance", "C", "bias_variance", "regularization")
VARIANCES: list[Any] = ["auto", 1.0, 1e-12, 1e8]
BIASES: list[Any] = [0.0, 0.1, 10.0, 1e6]
VALID: dict[str, dict[str, list[Any]]] = {
    "CMVMED": {
        **SHARED,
        "prior_variance": VARIANCES,
        "C": [1.0, 1e-9, 1e6, 10],
        "bias_variance": BIASES,
        "consensus_weight": ["auto", 0.0, 1.0, 0.5, 1e-12, 1e3],
        "temperature": [0.2, 1.0, 1e-6, 1e6, 0.5],
        "class_prior": ["auto", "labels", None, 0.5, 1e-6, [0.3, 0.7], [0.2, 0.3, 0.5], {0: 0.4, 1: 0.6}],
        "view_weights": ["agreement", "uniform", [1.0, 3.0], [0.0, 1.0], {"view0": 2.0, "view1": 1.0}],
        "members": [
            "auto",
            None,
            "consensus",
            "views",
            "lda",
            "graph",
            "view_graphs",
            "trees",
            "trees_all",
            ["consensus", "view_graphs"],
            ["lda", "trees"],
        ],
        "labels_drawn": ["unknown", "random", "per_class", "chosen"],
        "algorithm": ["bohning", "jaakkola", "exact", "newton", "printed"],
        "n_stages": [1, 2, 8],
        "max_iter": [1, 3, 30],
        "tol": [1e-3, 0.0, 1.0],
        "approximation": ["auto", "exact", "nystroem", 1, 3, 50],
        "rows_tol": [0.002, 0.0, 1.0],
        "n_jobs": [None, 1, 2],
    },
    "MED": {**SHARED, "prior_variance": VARIANCES, "C": [1.0, 1e-9, 1e6], "bias_variance": BIASES},
    "MVMED": {**SHARED, "prior_variance": VARIANCES, "c": [10.0, 1.5, 1e4, 1.0000001], "bias_variance": BIASES},
    "SVM2K": {
        **SHARED,
        "C": [10.0, 1e-6, 1e6],
        "D": [0.1, 0.0, 100.0],
        "epsilon": [0.0, 0.1, 1e3],
        "transductive": [True, False],
    },
    "CoRLS": {
        **SHARED,
        "form": ["least squares", "svm"],
        "regularization": [0.1, 1e-9, 1e6],
        "coupling": [0.01, 0.0, 1e6],
        "bias_variance": BIASES,
    },
}
INVALID: list[Any] = [
    None,
    "word",
    "",
    -1,
    -0.5,
    0,
    float("nan"),
    float("inf"),
    [],
    {},
    [1.0],
    {"other": 1.0},
    True,
    1e400,
    "1",
]
ESTIMATORS = tuple(VALID)


def draw_parameters(
    rng: np.random.Generator, estimator: str, n_views: int, *, names_known: bool
) -> tuple[tuple[str, Any], ...]:
    """Up to five parameters; a few are invalid, and some have one value per view, by name if names are known."""
    names = rng.choice(list(VALID[estimator]), int(rng.integers(0, MAX_PARAMETERS + 1)), replace=False)
    return tuple((str(name), _value(rng, estimator, str(name), n_views, names_known)) for name in names)


def _value(rng: np.random.Generator, estimator: str, name: str, n_views: int, names_known: bool) -> Any:
    if rng.random() < INVALID_SHARE:
        return INVALID[int(rng.integers(len(INVALID)))]
    values = VALID[estimator][name]
    if name in PER_VIEW and estimator != "MED" and rng.random() < 0.15:
        picked = [values[int(rng.integers(len(values)))] for _ in range(n_views)]
        return (
            picked if not names_known or rng.random() < 0.5 else {f"view{i}": value for i, value in enumerate(picked)}
        )
    return values[int(rng.integers(len(values)))]
