"""Compact models: expansions through fewer rows, against direct computations, and how much they change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cmvmed
from cmvmed import CMVMED, MED
from cmvmed.model.compact import compact_model
from cmvmed.model.expansions import Expansion
from cmvmed.model.predict import scores_by_view
from cmvmed.model.terms import Centers
from cmvmed.numerics.kernels import Kernel
from cmvmed.views.preprocessing import fit_scaling
from tests.core.factories import rejects

N = 240
WITHOUT_GRAPHS = {"members": ["views", "lda", "consensus"]}


def problem(seed=0):
    """Two views of two classes, 30 labels."""
    rng = np.random.default_rng(seed)
    truth = np.arange(N) % 2
    X = np.where(truth[:, None] > 0, 0.7, -0.7) + rng.normal(size=(N, 10))
    return X, np.where(np.arange(N) < 30, truth, -1)


def fitted(**parameters):
    X, y = problem()
    return CMVMED(views={"a": slice(0, 4), "b": slice(4, 10)}, **parameters).fit(X, y), X


def check_is_projection(kernel, train, landmarks, rows, a, b):
    """The difference of the functions is orthogonal to the landmarks: both have the same values there."""
    whole = kernel.cross(train[landmarks], train, rows) @ a
    smaller = kernel.cross(train[landmarks], train, landmarks) @ b
    np.testing.assert_allclose(smaller, whole, rtol=1e-6, atol=1e-6)


def test_a_projected_expansion_agrees_at_the_landmarks():
    rng = np.random.default_rng(0)
    train, a = rng.normal(size=(40, 3)), rng.normal(size=(30, 2))
    kernel, landmarks, rows = Kernel("v", "rbf", 0.5), np.arange(0, 40, 3), np.arange(10, 40)
    term = Expansion(Centers(0, None, train, np.arange(40)), rows, kernel, a, np.zeros(2))
    b = term._projected(landmarks)
    check_is_projection(kernel, train, landmarks, rows, a, b)
    rejects(check_is_projection, kernel, train, landmarks, rows, a, 1.01 * b)


def test_a_linear_kernel_loses_nothing():
    """Landmarks that span the features express every linear function."""
    model, X = fitted(kernel="linear", members=["views", "lda", "consensus"])
    smaller = compact_model(model._model, 40)
    assert smaller.same_class == 1.0
    assert smaller.mean_change < 1e-8
    whole, fewer = scores_by_view(model._model, *rows_of(model, X)), scores_by_view(smaller.model, *rows_of(model, X))
    for expected, found in zip(whole, fewer, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    linear = smaller.model.members[0].terms[0]
    assert linear.rows.rows.shape == (2, 4)  # a row of weights per class, none of the training rows


def rows_of(model, X):
    matrices = model._model.schema.layout.split(X)
    return matrices, model._model.row_check.present(0, matrices)


@pytest.mark.parametrize("parameters", [{}, {"kernel": "rbf", "algorithm": "jaakkola"}, {"scaling": None}])
def test_smooth_kernels_lose_little(parameters):
    model, X = fitted(**WITHOUT_GRAPHS, **parameters)
    smaller = model._compacted(80)
    np.testing.assert_allclose(smaller.predict_proba(X), model.predict_proba(X), atol=0.02)
    whole, approximate = (m.decision_function_by_view(X, return_std=True)["a"][1] for m in (model, smaller))
    assert np.abs(approximate / whole - 1.0).mean() < 0.06


def test_the_reported_change_is_that_of_predictions_of_training_rows():
    model, X = fitted(**WITHOUT_GRAPHS, kernel="rbf")
    smaller = model._compacted(30)
    before, after = model.predict_proba(X), smaller.predict_proba(X)
    same = (before.argmax(axis=1) == after.argmax(axis=1)).mean()
    assert smaller.compaction_["same_class"] == pytest.approx(same, abs=2 / N)  # features are clipped
    change = np.abs(after - before)[np.arange(N), before.argmax(axis=1)].mean()
    assert smaller.compaction_["mean_change"] == pytest.approx(change, rel=0.1)


def test_a_graph_keeps_so_many_nodes_with_mean_scores():
    model, _ = fitted(members=["graph", "consensus"])
    graph = model._model.members[0].terms[0]
    small = compact_model(model._model, 120).model.members[0].terms[0]
    assert small.size == 120
    assert small.n_neighbors == round(5 * 120 / 240)
    np.testing.assert_allclose(small.mass.sum(), graph.mass.sum())
    np.testing.assert_allclose(small.mass @ small.node_scores, graph.mass @ graph.node_scores, rtol=1e-9, atol=1e-9)


def test_few_rows_are_left_as_they_are(tmp_path):
    model, X = fitted(kernel="rbf", members=["views", "view_graphs", "consensus"])
    model.save(tmp_path / "m", compact=1000)
    assert np.array_equal(cmvmed.load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("approximation", ["exact", 60])
def test_compact_files_are_smaller_and_hold_fewer_rows(approximation, tmp_path):
    model, X = fitted(approximation=approximation, **WITHOUT_GRAPHS)
    model.save(tmp_path / "whole")
    model.save(tmp_path / "compact", compact=60)
    loaded = cmvmed.load(tmp_path / "compact")
    assert (tmp_path / "compact").stat().st_size < (tmp_path / "whole").stat().st_size
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=0.05)
    assert loaded.compaction_["same_class"] >= 0.99
    assert not hasattr(model, "compaction_")
    assert max(own.size for term in loaded._model.view_terms for own in term.centers) <= 60
    assert not hasattr(loaded.fit(*problem()), "compaction_")


def test_precomputed_kernels_and_missing_views(tmp_path):
    X, y = problem()
    kernels = [X[:, :4] @ X[:, :4].T, X[:, 4:] @ X[:, 4:].T]
    kernels[0][200:] = np.nan
    kernels[0][:, 200:] = np.nan
    model = CMVMED(kernel="precomputed").fit(kernels, y)
    model.save(tmp_path / "m", compact=50)
    np.testing.assert_allclose(
        cmvmed.load(tmp_path / "m").predict_proba(kernels), model.predict_proba(kernels), atol=1e-5
    )


def test_pipelines_and_other_classifiers(tmp_path):
    X, _ = problem()
    model = make_pipeline(StandardScaler(), MED(kernel="rbf")).fit(X, np.arange(N) % 2)
    cmvmed.save(model, tmp_path / "m", compact=100)
    assert (cmvmed.load(tmp_path / "m").predict(X) == model.predict(X)).mean() > 0.98
    assert model[-1]._model.view_terms[0].centers[0].size == N


def test_a_compact_model_that_differs_is_not_written(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N, 2))
    y = (np.floor(3 * X[:, 0]) + np.floor(3 * X[:, 1])).astype(int) % 2  # a chessboard
    model = MED(kernel="rbf", gamma=20.0, C=100.0).fit(X, y)
    with pytest.raises(ValueError, match=r"compact file with 10 rows .* another class to .* of the training rows"):
        model.save(tmp_path / "m", compact=10)
    with pytest.raises(ValueError, match="compact must be True, False or a number"):
        model.save(tmp_path / "m", compact=0.5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["standard", "unit", "center", "magnitude", None])
def test_scaling_can_be_inverted(kind):
    X, _ = problem()
    X[:, 3] = 7.0
    scaling = fit_scaling(kind, X, np.ones(N), clip=np.inf, sparse_density=0.25)
    scaled = scaling.apply(X)
    np.testing.assert_allclose(scaling.apply(scaling.invert(scaled)), scaled, rtol=1e-9, atol=1e-12)
    if kind != "unit":
        np.testing.assert_allclose(scaling.invert(scaled), X, rtol=1e-9)
        rejects(np.testing.assert_allclose, replace(scaling, size=2.0).invert(scaled), X, rtol=1e-9)
