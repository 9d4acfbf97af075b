"""The process that learns: what it says of the rows is what the model says."""

import numpy as np
import pytest

from cmvmed import CMVMED
from cmvmed.labeling.learner import N_SUGGESTED, _Worker
from cmvmed.workbench import Project
from tests.labeling.driven import write_table

N_LABELS = 24


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    truth = list(write_table(folder).values())
    found = _Worker(str(folder / "cmvmed.toml"))
    found.truth = truth
    return found


@pytest.fixture(scope="module")
def labels(worker):
    chosen = set(worker.first().suggested[:N_LABELS])
    return [name if row in chosen else None for row, name in enumerate(worker.truth)]


def test_first_rows_differ_and_have_reasons(worker):
    first = worker.first()
    assert len(set(first.suggested)) == len(first.reasons) == N_SUGGESTED
    assert first.probabilities is None


def test_a_fit_says_what_the_model_says(worker, labels):
    random = (np.arange(len(labels)) % 3 == 0).tolist()
    learned = worker.fit(7, labels, random, "auto")
    y = np.array(labels, dtype=object)
    model = CMVMED().fit(worker.views, y, groups=worker.groups, random_rows=np.array(random))
    assert (learned.revision, learned.n_labels, learned.problem) == (7, N_LABELS, None)
    assert learned.classes == tuple(model.classes_)
    np.testing.assert_allclose(learned.probabilities, model.predict_proba(worker.views), atol=1e-3)
    for name, p in model.predict_proba_by_view(worker.views, calibrated=True).items():
        np.testing.assert_allclose(learned.by_view[name], p, atol=1e-6)
    assert learned.suggested == tuple(model.suggest(N_SUGGESTED, random_share=0.0).rows)
    assert all(labels[row] is None for row in learned.suggested)
    estimate = model.accuracy_estimate()
    assert learned.estimate["mean"] == pytest.approx(estimate.mean)
    assert learned.estimate["random_low"] == pytest.approx(estimate.random_low)
    assert 0 < learned.estimate["n_random"] == estimate.n_random < N_LABELS
    assert learned.worths.keys() == set(model.view_names_)
    assert learned.estimate["labels_only"] == pytest.approx(estimate.labels_only)
    assert learned.estimate["is_known"] is estimate.is_known


def test_a_fit_keeps_to_rough_shares_also_of_a_class_without_labels(worker, labels):
    free = worker.fit(7, labels, None, "auto")
    unlabeled, k = [label is None for label in labels], int(free.probabilities.mean(axis=0).argmax())
    bound = 0.5 * float(free.probabilities[unlabeled].mean(axis=0)[k])
    with pytest.warns(UserWarning, match="has 'unseen', but no row has this label"):
        found = worker.fit(8, labels, None, {free.classes[k]: (0.0, bound), "unseen": (0.0, 0.01)})
    assert found.probabilities[unlabeled].mean(axis=0)[k] == pytest.approx(bound + 0.01, abs=1e-4)
    assert worker.fit(9, labels, None, "auto").probabilities[unlabeled].mean(axis=0)[k] > bound + 0.02


def test_labels_of_one_class_are_no_reason_to_fit(worker, labels):
    one = [label if label == "crawl" else None for label in labels]
    assert "two classes" in worker.fit(1, one, None, "auto").problem


def test_labels_for_all_rows_leave_nothing_to_suggest(worker):
    learned = worker.fit(1, worker.truth, None, "auto")
    assert learned.suggested == ()
    assert learned.n_labels == len(worker.truth)


def test_data_that_cannot_be_read_are_a_problem_not_an_end(tmp_path):
    write_table(tmp_path)
    Project.load(tmp_path)
    (tmp_path / "windows.csv").unlink()
    worker = _Worker(str(tmp_path / "cmvmed.toml"))
    assert "windows.csv" in worker.first().problem
    assert "windows.csv" in worker.fit(1, ["a", "b"], None, "auto").problem
