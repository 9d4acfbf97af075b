"""held_out_rows_ and held_out_proba_: labeled rows as seen by fits without their labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from tests.estimators.test_members import clusters


def hits(model, y):
    """Share of the held-out labels that are predicted."""
    predicted = model.classes_[model.held_out_proba_.argmax(axis=1)]
    return np.mean(predicted == np.asarray(y)[model.held_out_rows_])


@pytest.mark.filterwarnings("ignore:The class of .* depends on the class shares")
@pytest.mark.parametrize("members", ["auto", "consensus", ["views", "lda"]])
def test_hits_are_those_of_the_accuracy_estimate(members):
    X, y, _ = clusters(separation=1.0)
    model = CMVMED(views=[3, 3], members=members).fit(X, y)
    assert np.array_equal(np.sort(model.held_out_rows_), np.flatnonzero(y >= 0))
    assert np.allclose(model.held_out_proba_.sum(axis=1), 1.0)
    assert hits(model, y) == model.accuracy_estimate().held_out
    assert hits(model, np.roll(y, 1)) != model.accuracy_estimate().held_out  # other rows would not do


def test_a_single_label_of_a_class_is_not_held_out():
    X, y, truth = clusters()
    y[(truth == 2) & (np.arange(len(y)) > 2)] = -1
    with pytest.warns(UserWarning, match="has one labeled row"):
        model = CMVMED(views=[3, 3]).fit(X, y)
    assert np.array_equal(np.sort(model.held_out_rows_), np.flatnonzero((y >= 0) & (y != 2)))


def test_a_label_does_not_change_its_own_probabilities_much():
    """A wrong label is contradicted by the fits that did not use it."""
    X, y, truth = clusters(labels=8, separation=4.0)
    wrong = y.copy()
    wrong[0] = (truth[0] + 1) % 3
    model = CMVMED(views=[3, 3]).fit(X, wrong)
    row = np.flatnonzero(model.held_out_rows_ == 0)[0]
    assert model.held_out_proba_[row].argmax() == truth[0]


def test_none_without_a_cross_fit():
    X, y, _ = clusters()
    model = CMVMED(views=[3, 3], members=None).fit(X, y)
    assert model.held_out_rows_.shape == (0,)
    assert model.held_out_proba_.shape == (0, model.classes_.size)


def test_numbers_of_rows_are_those_of_all_rows_if_a_sample_is_annealed():
    X, y, truth = clusters(n=900, separation=3.0)
    y[:] = -1
    y[300::40] = truth[300::40]
    with tuning_context(replace(Tuning(), sample_rows=200)):
        model = CMVMED(views=[3, 3], approximation=30).fit(X, y)
    assert "n_annealed" in model.approximation_
    assert np.array_equal(np.sort(model.held_out_rows_), np.flatnonzero(y >= 0))
    assert hits(model, y) == model.accuracy_estimate().held_out
