"""The experiments behind the paper's Table 1 and Figure 2, how to select parts of them, and the results the paper reports.

Source: T. Xie, N. M. Nasrabadi and A. O. Hero III, "Semi-supervised multi-sensor classification via consensus-based
multi-view maximum entropy discrimination", ICASSP 2015, Table 1. The heading of the table calls the second number of
each entry a standard error and the text on Figure 2 a standard deviation; the size of the numbers fits a standard
deviation. Figure 2 is a plot without numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.methods import ALL_METHODS, CMV_MED, CMV_MED_PAPER, MV_MED, SINGLE_VIEW_PREFIX, SVM_2K, expand_groups
from experiments.tasks import TASKS

PAPER_SOURCE = "Xie, Nasrabadi and Hero, ICASSP 2015, Table 1"
PAPER_SPLITS = 20
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
    n_splits: int = PAPER_SPLITS
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


@dataclass(frozen=True)
class PaperResult:
    """One entry of the paper's Table 1: accuracy in percent on held-out rows, over 20 random splits."""

    data: str
    n_labeled: int
    method: str  # as in the result rows; "MED, view 1" and "MED, view 2" for the single views
    mean: float
    deviation: float


PAPER_TABLE_1 = tuple(
    PaperResult(data, n_labeled, method, mean, deviation)
    for data, n_labeled, entries in (
        ("ARL-Footstep", 50, ((71.1, 5.3), (62.3, 10.2), (73.3, 5.2), (75.6, 6.5), (85.5, 6.1))),
        ("WebKB4", 15, ((76.6, 10.2), (77.1, 10.1), (79.0, 10.0), (77.9, 8.7), (91.7, 5.8))),
        ("Internet Ads", 50, ((87.3, 0.9), (86.2, 1.4), (82.5, 4.3), (88.8, 2.3), (92.7, 0.7))),
    )
    for method, (mean, deviation) in zip(
        (f"{SINGLE_VIEW_PREFIX}1", f"{SINGLE_VIEW_PREFIX}2", SVM_2K, MV_MED, CMV_MED), entries, strict=True
    )
)

# Data sets of the paper by the name of the task that uses the same data, or a substitute (ARL-Footstep is not public).
SAME_DATA = {"webkb": "WebKB4", "ads": "Internet Ads"}
SUBSTITUTES = {"footsteps": "ARL-Footstep", "sensit": "ARL-Footstep"}
# The paper's views 1 and 2, in the order in which its text describes them.
PAPER_VIEWS = {"webkb": ("page", "link"), "ads": ("image", "context")}


def paper_result(dataset: str, n_labeled: int, method: str) -> PaperResult | None:
    """The paper's result for the same data, number of labels and method; None if there is none."""
    views = PAPER_VIEWS.get(dataset, ())
    numbered = {f"{SINGLE_VIEW_PREFIX}{name}": f"{SINGLE_VIEW_PREFIX}{i}" for i, name in enumerate(views, start=1)}
    named = {**numbered, CMV_MED_PAPER: CMV_MED}
    wanted = (SAME_DATA.get(dataset), n_labeled, named.get(method, method))
    return next((result for result in PAPER_TABLE_1 if (result.data, result.n_labeled, result.method) == wanted), None)
