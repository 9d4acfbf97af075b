"""That the benchmark of graphs limits what it says, and averages over sets."""

import numpy as np
import pytest

from benchmarks import graph_nodes
from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian


def graphs_of(kind, n):
    """The numbers of nodes in training and at prediction of a fit with graphs limited to n rows."""
    data = make_multiview_gaussian(200, labeled=20, random_state=0)
    with graph_nodes.GRAPHS[kind](np.flatnonzero(data.y >= 0), n):
        model = CMVMED(views=data.views, opinions=("graph", "consensus")).fit(data.data, data.y)
    (vote,) = model._model.members[0].terms
    return vote.size, int(vote.mass.sum())


@pytest.mark.parametrize("kind", graph_nodes.GRAPHS)
def test_graphs_have_as_many_nodes_as_the_benchmark_says(kind):
    size, n_rows = graphs_of(kind, 40)
    assert size == n_rows
    if kind == "all rows":
        assert size == 200
    else:
        assert 40 <= size <= 60


def test_the_last_line_is_the_mean_over_sets():
    found = {
        name: {kind: np.array([[value, 10.0], [value, 20.0]]) for kind in graph_nodes.GRAPHS}
        for name, value in (("first", 50.0), ("second", 60.0))
    }
    lines = graph_nodes.table(found).splitlines()
    assert lines[2] == "| first | 50.0 / 15.0 | 50.0 / 15.0 | 50.0 / 15.0 |"
    assert lines[-1] == "| mean | 55.0 / 15.0 | 55.0 / 15.0 | 55.0 / 15.0 |"
