"""Random result rows of Table 1 and Figure 2 with fixed seeds."""

from __future__ import annotations

import zlib

import numpy as np

from experiments.result_rows import ResultRow

VIEWS = {
    "footsteps": ("sensor1", "sensor2"),
    "sensit": ("acoustic", "seismic"),
    "webkb": ("page", "link"),
    "ads": ("image", "context"),
}
SIZES = {"footsteps": (1200, 300), "sensit": (1000, 860), "webkb": (500, 551), "ads": (600, 2679)}
LABELS = {"footsteps": 50, "sensit": 50, "webkb": 15, "ads": 50}
MAJORITY = {"footsteps": 0.55, "sensit": 0.5, "webkb": 0.785, "ads": 0.86}
LEVELS = {
    "SVC, labels only": 0.70,
    "logistic regression, labels only": 0.75,
    "late fusion of MED": 0.72,
    "LabelSpreading rbf": 0.74,
    "LabelSpreading knn": 0.71,
    "SelfTraining (LR)": 0.76,
    "SVM-2K": 0.77,
    "MV-MED": 0.775,
    "CoRLS": 0.76,
    "CMV-MED as printed": 0.78,
    "CMV-MED": 0.86,
}
NO_PROBABILITIES = {"SVC, labels only", "SVM-2K", "CoRLS", "LabelSpreading knn"}
VERSIONS = {"cmvmed": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.0", "python": "3.11.7"}


def levels(dataset):
    """Typical accuracy of each method."""
    first, second = VIEWS[dataset]
    return {f"MED, view {first}": 0.70, f"MED, view {second}": 0.66} | LEVELS


def make_row(spec, dataset, n_labeled, split, method, protocol, level):
    """One finished row."""
    name = f"{spec}/{dataset}/{n_labeled}/{split}/{method}/{protocol}"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    shared = np.random.default_rng(zlib.crc32(f"{dataset}/{split}".encode())).normal(0.0, 0.02)
    accuracy = float(np.clip(level + shared + rng.normal(0.0, 0.015), 0.0, 1.0))
    n_train, n_test = SIZES[dataset]
    has_probabilities = method not in NO_PROBABILITIES
    return ResultRow(
        spec,
        dataset,
        n_labeled,
        split,
        method,
        protocol,
        "done",
        settings={"chosen": {}},
        versions=VERSIONS,
        accuracy=accuracy,
        balanced_accuracy=accuracy - 0.02,
        f1=accuracy - 0.05,
        auc=min(1.0, accuracy + 0.06),
        log_loss=1.2 - accuracy if has_probabilities else None,
        calibration_error=0.1 if has_probabilities else None,
        fit_seconds=float(rng.gamma(3.0, 0.1)),
        predict_seconds=float(rng.gamma(3.0, 0.001)),
        peak_mib=float(rng.gamma(4.0, 5.0)),
        majority_rate=MAJORITY[dataset],
        n_train=n_train,
        n_test=n_test,
        finished=f"2026-01-{1 + split % 3:02d}T10:00:00Z",
        reliability=make_reliability(rng, accuracy, n_test) if has_probabilities else (),
        annealing=make_annealing(dataset, accuracy) if method == "CMV-MED" and protocol == "defaults" else (),
    )


def make_reliability(rng, accuracy, n_test):
    """Bins of confidence above one half."""
    centers = (np.arange(8, 15) + 0.5) / 15
    shares = rng.dirichlet(np.full(centers.size, 4.0))
    correct = np.clip(centers + rng.normal(accuracy - 0.82, 0.03, centers.size), 0.0, 1.0)
    return tuple((int(n_test * s) + 1, float(c), float(r)) for s, c, r in zip(shares, centers, correct, strict=True))


def make_annealing(dataset, accuracy):
    """Six stages, the last one with the given accuracy."""
    first, second = VIEWS[dataset]
    gain = accuracy - 0.76
    return tuple(
        {
            "stage": float(stage),
            "consensus": accuracy - gain * (0.5 ** (stage - 1) - 0.5**5),
            first: accuracy - 0.02 - gain * 0.7**stage,
            second: accuracy - 0.06 - gain * 0.8**stage,
        }
        for stage in range(1, 7)
    )


def table_rows(n_splits=8, datasets=tuple(VIEWS), protocols=("defaults", "tuned")):
    """Rows of Table 1."""
    return [
        make_row("table1", dataset, LABELS[dataset], split, method, protocol, level - 0.01 * (protocol == "tuned"))
        for dataset in datasets
        for protocol in protocols
        for split in range(n_splits)
        for method, level in levels(dataset).items()
    ]


def curve_rows(n_splits=4, datasets=("webkb", "ads"), numbers=(10, 25, 50, 100)):
    """Rows of Figure 2: the accuracies of all methods approach the same level, that of CMV-MED fastest."""
    return [
        make_row("figure2", dataset, n, split, method, "defaults", 0.93 - (0.93 - level) * (10 / n) ** 0.6)
        for dataset in datasets
        for n in numbers
        for split in range(n_splits)
        for method, level in levels(dataset).items()
    ]


def failed_row(**changes):
    """A row that failed."""
    fields = {"spec": "table1", "dataset": "ads", "n_labeled": 50, "split": 3, "method": "CoRLS", "protocol": "tuned"}
    return ResultRow(**(fields | {"status": "failed", "error": "LinAlgError: singular matrix"} | changes))
