"""The experiments are those of the paper, and its results are as printed."""

import pytest

from experiments.experiment import EXPERIMENTS, FIGURE_2, PAPER_TABLE_1, PAPER_VIEWS, TABLE_1, paper_result, quick
from experiments.methods import ALL_METHODS
from experiments.tasks import TASKS


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_experiments_have_known_data_sets_and_methods(experiment):
    assert {cell.dataset for cell in experiment.cells} <= set(TASKS)
    assert set(experiment.methods) <= set(ALL_METHODS)
    assert experiment.n_splits == 20
    assert quick(experiment).n_splits < experiment.n_splits
    assert set(quick(experiment).protocols) == set(experiment.protocols) - {"tuned"}
    for cell in experiment.cells:
        assert cell.n_labeled < TASKS[cell.dataset].n_train


def test_table_1_has_the_papers_numbers_of_labels():
    labels = {cell.dataset: cell.n_labeled for cell in TABLE_1.cells}
    assert labels == {"footsteps": 50, "sensit": 50, "webkb": 15, "ads": 50}
    assert TASKS["ads"].n_train == 600
    for cell in TABLE_1.cells:
        assert cell in FIGURE_2.cells
    assert (FIGURE_2.methods, FIGURE_2.protocols) == (TABLE_1.methods, TABLE_1.protocols)


def test_the_papers_results():
    assert len(PAPER_TABLE_1) == 15
    assert (paper_result("webkb", 15, "CMV-MED").mean, paper_result("ads", 50, "SVM-2K").mean) == (91.7, 82.5)
    assert paper_result("webkb", 15, "MED, view link").mean == 77.1
    assert paper_result("webkb", 25, "CMV-MED") is None
    assert paper_result("footsteps", 50, "CMV-MED") is None  # not the paper's recordings
    assert PAPER_VIEWS == {"webkb": ("page", "link"), "ads": ("image", "context")}
