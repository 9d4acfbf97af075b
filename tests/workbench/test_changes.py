"""The line on rows that differ from the training rows: which sensor, others, sensors that are gone, and few rows."""

import numpy as np
import pytest

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.workbench.changes import MAX_TESTED, describe_change


@pytest.fixture(scope="module")
def sensors():
    """A model of three views, and new rows by view."""
    data = make_multiview_gaussian(1200, n_features=4, separation=(1.0, 1.0, 1.0), labeled=40, random_state=1)
    model = CMVMED(views=data.views, n_stages=2).fit(data.data[:600], data.y[:600])
    return model, {name: data.data[600:, columns] for name, columns in data.views.items()}


def test_rows_like_those_of_training_are_not_mentioned(sensors):
    assert describe_change(*sensors, "These rows") == ""


def test_the_sensor_is_named_and_what_to_do(sensors):
    model, views = sensors
    first, second, third = views
    line = describe_change(model, views | {second: 3.0 * views[second]}, "These rows")
    assert line.startswith(f"These rows differ from the training rows: view {second!r} has about 2.9 times the scale")
    assert line.endswith("check its gain.")
    both = describe_change(model, views | {second: 3.0 * views[second], third: views[third] + 9.0}, "These rows")
    assert "\n" not in both
    assert f"So do {second}." in both or f"So do {third}." in both
    assert first not in both


def test_a_sensor_that_is_gone_is_no_change(sensors):
    """Commands say so apart."""
    model, views = sensors
    last = list(views)[-1]
    assert describe_change(model, views | {last: np.full_like(views[last], np.nan)}, "These rows") == ""


@pytest.mark.parametrize("n_rows", [0, 1, 19])
def test_few_rows_say_nothing(sensors, n_rows):
    model, views = sensors
    assert describe_change(model, {name: 9.0 * matrix[:n_rows] for name, matrix in views.items()}, "These rows") == ""


def test_a_sample_of_all_rows_is_tested(sensors, monkeypatch):
    model, views = sensors
    seen = []
    monkeypatch.setattr(model, "sensor_health", lambda X: seen.append(X) or {})
    describe_change(model, views, "These rows")
    name = next(iter(views))
    assert len(seen[0][name]) == MAX_TESTED
    np.testing.assert_array_equal(seen[0][name][[0, -1]], views[name][[0, -1]])
