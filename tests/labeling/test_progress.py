"""What the page says of an estimate: its intervals, and the first estimate only if the accuracy has clearly grown."""

import numpy as np
import pytest

from cmvmed.labeling.progress import Fitted, shown_estimate
from cmvmed.pages.formatting import share_interval

LEVEL = 0.9


def fitted(n_labels, mean, half=0.05):
    estimate = {"mean": mean, "low": mean - half, "high": mean + half, "level": LEVEL, "held_out": mean}
    return Fitted(n_labels, estimate | {"n_held_out": float(n_labels)}, np.zeros(3, dtype=np.int32))


def test_an_interval_holds_the_true_share_about_as_often_as_its_level_says():
    counts = np.random.default_rng(0).binomial(25, 0.8, size=4000)
    inside = [low <= 0.8 <= high for low, high in (share_interval(c, 25, LEVEL) for c in counts)]
    assert np.mean(inside) == pytest.approx(LEVEL, abs=0.04)


def test_the_first_estimate_is_shown_if_the_intervals_have_no_common_value():
    assert shown_estimate([fitted(8, 0.6), fitted(30, 0.75)])["first"] == {"n_labels": 8, "mean": 0.6}


@pytest.mark.parametrize("mean", [0.65, 0.5, 0.3])  # more, but not clearly; less; much less
def test_the_first_estimate_is_not_shown_if_it_could_mislead(mean):
    assert "first" not in shown_estimate([fitted(8, 0.6), fitted(30, mean)])


def test_there_is_no_estimate_before_labels_can_be_held_out():
    none = Fitted(2, None, np.zeros(3, dtype=np.int32))
    assert shown_estimate([]) is None
    assert shown_estimate([none]) is None
    assert shown_estimate([none, fitted(8, 0.6)])["mean"] == 0.6
