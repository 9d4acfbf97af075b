"""From the paper to the default, one ingredient at a time: ``python -m benchmarks.from_paper``.

The first row is the algorithm as printed in the paper on features as they are; each further row adds one ingredient to
the row above it, up to ``CMVMED()``. One column per task: accuracy on held-out rows in percent, mean ± SD over splits
0, 1, ... of ``experiments.tasks``, whose labeled rows are drawn at random, again until every class has a label.
The last column is the mean over the tasks and its difference to the row above.
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from experiments.tasks import TASKS, draw_split

DEFAULT_TASKS = ("webkb", "ads", "sensit", "footsteps")
TWO_VIEWS = tuple(name for name in TASKS if name != "mfeat")


@dataclass(frozen=True)
class Step:
    """An ingredient: what it adds to the parameters and tuned numbers of the steps before, and whose idea it is.

    Attributes
    ----------
    name : str
    origin : str
        "paper": as printed; "completion": what its derivation implies; "ours": not in the paper.
    parameters : mapping of parameter of CMVMED to value
    tuning : mapping of field of Tuning to value
    """

    name: str
    origin: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)


# One ingredient has no parameter: clipping.
WITHOUT_CLIPPING, CLIPPING = {"clip": np.inf}, {"clip": Tuning().clip}

STEPS = (
    Step(
        "the algorithm as printed, features as they are",
        "paper",
        CMVMED.paper(algorithm="printed", scaling=None).get_params(),
        WITHOUT_CLIPPING,
    ),
    Step("+ the linear term that the derivation gives", "completion", {"algorithm": "newton", "max_iter": 100}),
    Step("+ a bound in place of the expansion", "ours", {"algorithm": "bohning"}),
    Step("+ scaling of the features", "ours", {"scaling": "auto"}),
    Step("+ clipping at two standard deviations = CMVMED.paper()", "ours", {}, CLIPPING),
    Step("+ class prior of the labels", "ours", {"class_prior": "labels"}),
    Step("+ temperature T = 1/V", "ours", {"temperature": 1 / 2}),
    Step("+ linear+rbf kernel", "ours", {"kernel": "auto"}),
    Step("+ bias", "ours", {"bias_variance": 0.1}),
    Step("+ temperature 0.2", "ours", {"temperature": 0.2}),
    Step("+ λ and view weights by agreement", "ours", {"consensus_weight": "auto", "view_weights": "agreement"}),
    Step(
        "+ members beside the consensus, weighted by held-out labels",
        "ours",
        {"members": ["views", "lda", "consensus"]},
    ),
    Step("+ class prior learned from all rows", "ours", {"class_prior": "auto"}),
    Step("+ graphs of nearest rows", "ours", {"members": ["views", "lda", "graph", "view_graphs", "consensus"]}),
    Step("+ randomized trees", "ours", {"members": "auto"}),
    Step("+ landmarks beyond 1000 unlabeled rows = CMVMED()", "ours", {"approximation": "auto"}),
)


def settings_of(number: int) -> tuple[dict[str, Any], Tuning]:
    """Parameters and tuned numbers of a row: those of its step and of all before."""
    parameters: dict[str, Any] = {}
    tuning = Tuning()
    for step in STEPS[: number + 1]:
        parameters |= step.parameters
        tuning = replace(tuning, **step.tuning)
    return parameters, tuning


def accuracies(task: str, split_number: int) -> list[float]:
    """Accuracy of every step on one split."""
    split = draw_split(TASKS[task], split_number)
    scores = []
    for number in range(len(STEPS)):
        parameters, tuning = settings_of(number)
        with threadpool_limits(1), warnings.catch_warnings(), tuning_context(tuning):
            warnings.simplefilter("ignore")
            model = CMVMED(**(parameters | {"views": split.views})).fit(split.X, split.y)
            scores.append(float(model.score(split.X_test, split.y_test)))
    return scores


def table(scores: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]]) -> str:
    """The table of accuracies (n_splits, n_steps) by task, in Markdown."""
    n_splits = len(next(iter(scores.values())))
    percent = {task: 100.0 * values for task, values in scores.items()}
    means = np.mean([values.mean(axis=0) for values in percent.values()], axis=0)
    columns = [f"{task}, {TASKS[task].n_labeled} labels" for task in percent]
    lines = [["ingredient", "whose", *columns, "mean"], ["---"] * (3 + len(columns))]
    for k, step in enumerate(STEPS):
        spread = [values[:, k].std(ddof=1) if n_splits > 1 else 0.0 for values in percent.values()]
        cells = [f"{v[:, k].mean():.1f} ± {sd:.1f}" for v, sd in zip(percent.values(), spread, strict=True)]
        change = f" ({means[k] - means[k - 1]:+.1f})" if k else ""
        lines.append([step.name, step.origin, *cells, f"{means[k]:.1f}{change}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(given: Sequence[str] | None = None) -> None:
    from benchmarks.from_paper import accuracies  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TWO_VIEWS, default=DEFAULT_TASKS, metavar="TASK")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args(given)
    scores = {}
    with Parallel(arguments.jobs) as parallel:
        for task in arguments.tasks:
            found = parallel(delayed(accuracies)(task, number) for number in range(arguments.splits))
            scores[task] = np.array(found)
    print(f"{heading()}\n\nSplits 0 to {arguments.splits - 1}.\n\n{table(scores)}")


if __name__ == "__main__":
    main()
