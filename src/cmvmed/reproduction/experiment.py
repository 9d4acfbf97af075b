"""What the experiments consist of: a frozen spec for the paper's table and one for its figure, and how much of them to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cmvmed.reproduction.methods import EACH_VIEW, METHODS
from cmvmed.reproduction.tasks import TASKS

GOAL_SPLITS = 100


@dataclass(frozen=True)
class Cell:
    """A data set with a number of labels."""

    dataset: str
    n_labeled: int


@dataclass(frozen=True)
class Experiment:
    """Methods times data sets times random splits.

    Attributes
    ----------
    name, title : str
    cells : tuple of Cell
    methods : tuple of str
        Names in ``METHODS``, or "MED, each view"; one that does not apply to a data set is left out there.
    protocols : tuple of str
        "defaults": every method as it comes. "tuned": settings chosen from its grid by 5-fold cross-validation on the
        labeled rows.
    n_splits : int
        How many splits of every data set, from ``first_split`` on.
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
    methods=(EACH_VIEW, *(name for name in METHODS if name != "majority class")),
    protocols=("defaults", "tuned"),
)
FIGURE_2 = Experiment(
    name="figure2",
    title="Accuracy against the number of labels (the paper's Figure 2)",
    cells=tuple(
        Cell(dataset, n)
        for dataset, numbers in {
            "footsteps": (10, 25, 50, 100, 200),
            "sensit": (10, 25, 50, 100, 200),
            "webkb": (5, 10, 15, 25, 50, 100),
            "ads": (25, 50, 100, 200),
        }.items()
        for n in numbers
    ),
    methods=(
        EACH_VIEW,
        "logistic regression, labels only",
        "late fusion of MED",
        "SVM-2K",
        "MV-MED",
        "CMV-MED as printed",
        "CMV-MED",
    ),
    protocols=("defaults",),
)
EXPERIMENTS = {experiment.name: experiment for experiment in (TABLE_1, FIGURE_2)}

# How many splits "quick" takes, of the protocol that needs no search; "full" is the spec itself.
QUICK_SPLITS = {"table1": 5, "figure2": 2}


def quick(experiment: Experiment) -> Experiment:
    """A version that takes minutes: a few splits, no search."""
    return replace(experiment, n_splits=QUICK_SPLITS[experiment.name], protocols=("defaults",))


def restrict(
    experiment: Experiment,
    *,
    n_splits: int | None = None,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    protocols: Sequence[str] = (),
) -> Experiment:
    """Change what an experiment runs on; a data set that it does not have comes in with its task's number of labels."""
    cells = experiment.cells
    if datasets:
        known = [cell.dataset for cell in cells]
        added = tuple(Cell(name, TASKS[name].n_labeled) for name in datasets if name not in known)
        cells = tuple(cell for cell in cells if cell.dataset in datasets) + added
    return replace(
        experiment,
        cells=cells,
        n_splits=experiment.n_splits if n_splits is None else n_splits,
        methods=tuple(methods) or experiment.methods,
        protocols=tuple(protocols) or experiment.protocols,
    )
