"""The benchmark of prediction sets draws what it says, and compares both methods on the same rows."""

import numpy as np
import pytest

pytest.importorskip("mapie")

from benchmarks.prediction_sets import METHODS, TASKS, draw, measure, table_line


@pytest.mark.parametrize("name", ["two classes", "two classes, per class", "four classes", "digits"])
def test_draws(name):
    rows, other = draw(TASKS[name], 3), draw(TASKS[name], 4)
    assert (rows.y[:20] == rows.truth[:20]).all()
    assert (rows.y[20:] == -1).all()
    assert rows.y.size == 120
    assert len(rows.X_new) == len(rows.y_new) == 300
    assert set(rows.y[:20]) == set(rows.y_new)
    assert not np.array_equal(rows.X, other.X)
    counts = np.bincount(rows.y[:20])
    assert (counts == 10).all() if name.endswith("per class") else counts.sum() == 20


def test_a_line_of_the_table():
    found = [measure("two classes", 0)]
    assert found[0].keys() == METHODS.keys()
    for method, values in found[0].items():
        assert 0.0 <= min(values[:2]) <= max(values[:2]) <= 100.0
        assert 0.0 <= values[2] <= 2.0
        assert table_line("two classes", method, found).startswith(
            f"| two classes | {method} | 1 | {values[0]:.1f} ± 0.0"
        )
    assert table_line("two classes", "MAPIE", [{"MAPIE": [np.nan] * 4}]).endswith("| 0 | – | – | – | – |")
