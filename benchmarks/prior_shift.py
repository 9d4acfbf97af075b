"""What a shift of the class shares does to each method: ``python -m benchmarks.prior_shift``.

The footsteps have 600 + 600 training rows and 240 + 60 test rows, as in the paper. Every method is fitted once per split
with its default parameters. With r the accuracy on the test rows of each class, the accuracy for test shares pi is
sum_k pi_k r_k: "50:50" is the balanced accuracy, "80:20" the accuracy on the test rows. "weighted" multiplies the
predicted probabilities by the test shares over the training shares, which is exact for true probabilities if only the
shares change (Saerens, Latinne and Decaestecker, Neural Computation 14, 2002); "–": the method has no probabilities. The
last line gives the test shares to the fit as ``class_prior``, although the unlabeled training rows have other shares.
Percent, mean ± SD over the splits. "labels" is the correlation over the splits of the accuracy on "human" with the share
of "human" among the 50 labels, a random draw: 1 for a method that takes the share of the labels for that of the rows.
"""

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import recall_score
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED
from experiments.methods import ALL_METHODS, CMV_MED, Candidate, Method, methods_for
from experiments.scores import class_scores, is_distribution
from experiments.tasks import TASKS, Split, draw_split

TASK = TASKS["footsteps"]
TRAINING_SHARES, TEST_SHARES = np.array([0.5, 0.5]), np.array([0.8, 0.2])
COLUMNS = ["human", "human and animal", "50:50", "80:20", "80:20, weighted", "50:50, weighted", "labels"]


def with_test_shares(split: Split) -> Candidate:
    return Candidate(CMVMED(views=split.views, class_prior=TEST_SHARES))


def compared(names: Sequence[str]) -> list[Method]:
    """The named methods, and CMV-MED with the test shares."""
    given = Method(f"{CMV_MED}, class_prior=(0.8, 0.2)", with_test_shares)
    return [*methods_for(names, list(TASK.load().views)), *([given] if CMV_MED in names else [])]


def class_accuracies(scores: NDArray[np.float64], truth: NDArray[np.intp]) -> NDArray[np.float64]:
    """Accuracy on the test rows of each class."""
    return np.asarray(recall_score(truth, scores.argmax(axis=1), average=None))


def percentages(method: Method, number: int) -> list[float]:
    """The columns of the table for one method on one split; NaN where the method has no probabilities."""
    split = draw_split(TASK, number)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = class_scores(method.build(split).estimator.fit(split.X, split.y), split.X_test)
    plain = class_accuracies(scores, split.y_test)
    weighted = np.full(2, np.nan)
    if is_distribution(scores):
        weighted = class_accuracies(scores * TEST_SHARES / TRAINING_SHARES, split.y_test)
    columns = [*plain, plain.mean(), plain @ TEST_SHARES, weighted @ TEST_SHARES, weighted.mean()]
    return [100.0 * float(value) for value in columns]


def label_share(number: int) -> float:
    """Share of "human" among the labels of a split."""
    y = draw_split(TASK, number).y
    return float(np.mean(y[y >= 0] == 0))


def cell(values: NDArray[np.float64]) -> str:
    return "–" if np.isnan(values).any() else f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"


def main() -> None:
    from benchmarks.prior_shift import percentages  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=ALL_METHODS, choices=ALL_METHODS, metavar="NAME")
    options = parser.parse_args()
    print(f"{heading()}\n")
    print(f"| {options.splits} splits | {' | '.join(COLUMNS)} |")
    print("| --- |" + " --- |" * len(COLUMNS))
    shares = [label_share(number) for number in range(options.splits)]
    for method in compared(options.methods):
        if method.missing_package():
            continue
        rows = Parallel(options.jobs)(delayed(percentages)(method, number) for number in range(options.splits))
        columns = np.array(rows).T
        correlation = np.corrcoef(shares, columns[0])[0, 1]
        print(f"| {method.name} | {' | '.join(map(cell, columns))} | {correlation:.2f} |", flush=True)


if __name__ == "__main__":
    main()
