"""Definition of the experiments behind the paper's Table 1 and Figure 2, and functions that select parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cmvmed.reproduction.methods import ALL_METHODS, expand_groups
from cmvmed.reproduction.tasks import TASKS

PROTOCOLS = ("defaults", "shares", "tuned")


@dataclass(frozen=True)
class Cell:
    """A data set with a number of labeled rows."""

    dataset: str
    n_labeled: int


@dataclass(frozen=True)
class Experiment:
    """The product of methods, data sets, protocols and random splits.

    Attributes
    ----------
    name, title : str
    cells : tuple of Cell
    methods : tuple of str
        Some of ``ALL_METHODS``. A method that does not apply to a data set is skipped there.
    protocols : tuple of str
        "defaults": every method with its default parameters. "shares": the same with the decision threshold moved so
        that predictions keep the class shares of the labels. "tuned": parameters selected from the method's grid by
        5-fold cross-validation on the labeled rows.
    n_splits : int
        Number of splits of every data set.
    first_split : int
        Number of the first split.
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    methods: tuple[str, ...]
    protocols: tuple[str, ...]
    n_splits: int = 20  # as in the paper
    first_split: int = 0


TABLE_1 = Experiment(
    name="table1",
    title="Accuracy with few labels (the paper's Table 1)",
    cells=(Cell("footsteps", 50), Cell("sensit", 50), Cell("webkb", 15), Cell("ads", 50)),
    methods=ALL_METHODS,
    protocols=PROTOCOLS,
)
FIGURE_2 = Experiment(
    name="figure2",
    title="Accuracy against the number of labels (the paper's Figure 2)",
    cells=tuple(
        Cell(dataset, n_labeled)
        for dataset, label_counts in {
            "footsteps": (10, 25, 50, 100, 200),
            "sensit": (10, 25, 50, 100, 200),
            "webkb": (5, 10, 15, 25, 50, 100),
            "ads": (25, 50, 100, 200),
        }.items()
        for n_labeled in label_counts
    ),
    methods=TABLE_1.methods,
    protocols=PROTOCOLS,
)
EXPERIMENTS = {experiment.name: experiment for experiment in (TABLE_1, FIGURE_2)}

# Number of splits of a quick run, which does not tune.
QUICK_SPLITS = {"table1": 5, "figure2": 2}


def quick(experiment: Experiment) -> Experiment:
    """The experiment with few splits and without parameter search; takes minutes."""
    protocols = tuple(name for name in experiment.protocols if name != "tuned")
    return replace(experiment, n_splits=QUICK_SPLITS[experiment.name], protocols=protocols)


def restrict(
    experiment: Experiment,
    *,
    n_splits: int | None = None,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    protocols: Sequence[str] = (),
) -> Experiment:
    """The experiment on the given splits, data sets, methods or groups of them, and protocols; empty means unchanged.

    A data set that is not part of the experiment is added with the number of labels of its task.
    """
    cells = experiment.cells
    if datasets:
        known = [cell.dataset for cell in cells]
        added = tuple(Cell(name, TASKS[name].n_labeled) for name in datasets if name not in known)
        cells = tuple(cell for cell in cells if cell.dataset in datasets) + added
    return replace(
        experiment,
        cells=cells,
        n_splits=experiment.n_splits if n_splits is None else n_splits,
        methods=expand_groups(methods) or experiment.methods,
        protocols=tuple(protocols) or experiment.protocols,
    )
