"""The search that shares factorizations measures what separate fits without the held-out labels give."""

import numpy as np
import pytest
from sklearn.base import clone

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian
from experiments.evaluation import labeled_folds
from experiments.shared_search import SharedSearch, can_share
from experiments.tasks import Task, draw_split
from tests.core.factories import rejects

DATA = make_multiview_gaussian(200, separation=(1.0, 0.7), random_state=3)
SPLIT = draw_split(Task("small", lambda: DATA, 30, 90), 0)
FOLDS = [test for _, test in labeled_folds(SPLIT.y).split(SPLIT.X, SPLIT.y)]
TRIALS = [{}, {"prior_variance": 10.0}, {"C": 0.1}, {"consensus_weight": 0.1}, {"gamma": 0.2}]


def paper(algorithm):
    return CMVMED.paper(views=SPLIT.views, algorithm=algorithm, scaling=None, gamma=0.02)


def separate_accuracy(model, folds):
    """Mean accuracy of fits to the rows without a fold; scale and bandwidth are given, so they do not depend on the rows."""
    hits = []
    for fold in folds:
        kept = np.setdiff1d(np.arange(SPLIT.y.size), fold)
        hits.append(clone(model).fit(SPLIT.X[kept], SPLIT.y[kept]).score(SPLIT.X[fold], SPLIT.y[fold]))
    return np.mean(hits)


def check_same(search, model, folds):
    assert search.accuracy(model) == pytest.approx(separate_accuracy(model, folds), abs=1e-12)


@pytest.mark.filterwarnings("ignore:The consensus has drifted away")
@pytest.mark.parametrize("algorithm", ["bohning", "printed"])
def test_trials_are_those_of_separate_fits(algorithm):
    search = SharedSearch(paper(algorithm), SPLIT, FOLDS)
    for trial in [*TRIALS, {}]:  # the last again, after others have used its kernels
        check_same(search, paper(algorithm).set_params(**trial), FOLDS)


@pytest.mark.filterwarnings("ignore:The consensus has drifted away")
def test_the_check_of_trials_can_fail():
    """Labels that are not held out are predicted better."""
    rejects(check_same, SharedSearch(paper("bohning"), SPLIT, FOLDS), paper("bohning").set_params(gamma=2.0), FOLDS[:1])


@pytest.mark.parametrize(
    "given",
    [{"members": "consensus"}, {"class_prior": "labels"}, {"approximation": "auto"}, {"bias_variance": 0.1}],
    ids=str,
)
def test_only_the_method_of_the_paper_is_shared(given):
    assert can_share(CMVMED.paper())
    assert not can_share(CMVMED.paper(**given))
