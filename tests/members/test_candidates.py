"""Which members there are, and that their kernels stay positive semi-definite where views are missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cmvmed.members.candidates import KINDS, row_factors

from cmvmed.model.graph_votes import graph_vote
from tests.auto.factories import TUNING, draw_rows, draw_training, read_training
from tests.core.factories import rejects


def names(candidates):
    return [member.name for member in candidates.members]


@pytest.mark.parametrize("kernel", ["linear+rbf", "rbf", "linear", "cosine"])
def test_views_with_features_have_every_kind(kernel):
    candidates = draw_training(kernel=kernel).candidates()
    assert names(candidates) == ["linear", "rbf", "view view0", "view view1", "graph", "view_graphs"]


def test_only_the_kinds_asked_for_are_there():
    training = draw_training()
    for kind, expected in zip(KINDS, (1, 1, 2, 1, 1), strict=True):
        assert [member.kind for member in training.candidates([kind]).members] == [kind] * expected
    assert names(training.candidates(["linear", "rbf", "views"])) == ["linear", "rbf", "view view0", "view view1"]


def test_a_single_view_has_one_graph():
    assert names(draw_training(n_views=1).candidates()) == ["linear", "rbf", "view view0", "graph"]


def test_new_rows_are_compared_with_at_most_so_many_nodes_and_those_of_labels():
    training = draw_training()
    (whole,) = training.candidates(["graph"]).members
    (member,) = training.candidates(["graph"], max_compared_nodes=30).members
    kernel, coefficients = member.kernels[0], np.ones((training.labeled_rows().codes.size, 1))
    np.testing.assert_array_equal(kernel.columns, whole.kernels[0].columns)  # all rows are nodes of the graph
    assert whole.kernels[0].node_scores(coefficients)[0].size == kernel.nodes.size
    nodes, node_scores = kernel.node_scores(coefficients)
    assert 30 < nodes.size < 46 < kernel.nodes.size
    assert (nodes.node_of_row[training.partition.L] >= 0).all()
    # a row that is a compared node has its score, others have that of compared nodes near them
    scores = kernel.scores(coefficients)
    is_node = nodes.node_of_row >= 0
    found = graph_vote(nodes, node_scores).scores(training.matrices, training.present)
    np.testing.assert_allclose(found[is_node], scores[is_node], atol=1e-9)
    others = kernel.nodes.present & ~is_node
    assert np.abs(found[others]).min() > 0.0
    assert np.abs(found[others] - scores[others]).max() > 1e-3


def test_views_without_weight_or_rows_take_no_part():
    assert names(draw_training(n_views=3).candidates(used=[True, False, True]))[2:4] == ["view view0", "view view2"]
    matrices, codes, _ = draw_rows(n_views=2)
    training = read_training([*matrices, np.full((75, 2), np.nan)], codes)
    assert names(training.candidates())[2:4] == ["view view0", "view view1"]


def test_given_kernels_are_one_joint_opinion_without_graphs():
    matrices, codes, _ = draw_rows()
    features = np.nan_to_num(matrices[0])
    precomputed = read_training([features @ features.T], codes, kernel="precomputed")
    assert names(precomputed.candidates()) == ["joint", "view view0"]
    called = read_training(matrices, codes, kernel=lambda A, B: (A @ B.T + 1.0) ** 2)
    assert names(called.candidates()) == ["joint", "view view0", "view view1"]


@pytest.mark.parametrize("kinds", [KINDS, ["views"], ["linear", "graph"]])
def test_prior_weights_sum_to_one_and_all_views_together_count_like_one_opinion(kinds):
    members = draw_training(n_views=3).candidates(kinds).members
    np.testing.assert_allclose(sum(member.prior for member in members), 1.0, rtol=1e-12)
    for kind in kinds:
        total = sum(member.prior for member in members if member.kind == kind)
        np.testing.assert_allclose(total, 1.0 / len(kinds), rtol=1e-12)


def test_row_factors_are_one_over_the_root_of_the_number_of_views():
    present = [np.array([True, True, False, False]), np.array([True, False, True, False])]
    np.testing.assert_allclose(row_factors(present), [0.5**0.5, 1.0, 1.0, 1.0])


def check_positive_semidefinite(gram):
    np.testing.assert_allclose(gram, gram.T, atol=1e-7)
    assert np.linalg.eigvalsh(gram).min() > -1e-7


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_kernels_are_positive_semidefinite(missing):
    candidates = draw_training(n_labeled=40, n_views=3, missing=missing).candidates()
    for member in candidates.members:
        check_positive_semidefinite(member.gram(candidates.rows.index))


def test_the_mean_over_common_views_would_not_be_positive_semidefinite():
    """Dividing each entry by the number of views that both rows have is what D (Σ K) D avoids."""
    for seed in range(5):
        candidates = draw_training(seed, n_labeled=60, n_views=3, missing=0.6).candidates(["linear"])
        kernels, labeled = candidates.members[0].kernels, candidates.rows.index
        both = sum(np.outer(kernel.present[labeled], kernel.present[labeled]) for kernel in kernels)
        rejects(check_positive_semidefinite, sum(kernel.gram() for kernel in kernels) / np.maximum(both, 1))


def check_joint(member, candidates):
    """D (Σ_v K_v) D, with the views that each row has."""
    labeled = candidates.rows.index
    n_views = np.sum([kernel.present[labeled] for kernel in member.kernels], axis=0)
    expected = np.empty((labeled.size, labeled.size))
    for i in range(labeled.size):
        for j in range(labeled.size):
            total = sum(kernel.gram()[i, j] for kernel in member.kernels)
            expected[i, j] = total / np.sqrt(n_views[i] * n_views[j])
    np.testing.assert_allclose(member.gram(labeled), expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "rbf", "view_graphs"])
def test_joint_kernels_are_means_over_the_views_of_a_row(kind):
    candidates = draw_training(n_views=3, missing=0.4).candidates([kind])
    check_joint(candidates.members[0], candidates)
    rejects(check_joint, replace(candidates.members[0], normalized=False), candidates)
    rejects(check_joint, replace(candidates.members[0], factor=0.5), candidates)


def test_a_mean_of_two_kernels_has_each_centered_on_its_own():
    candidates = draw_training(missing=0.3).candidates(["views"])
    for member in candidates.members:
        linear, rbf = member.kernels
        assert (linear.kernel.kind, rbf.kernel.kind) == ("linear", "rbf")
        np.testing.assert_allclose(
            member.gram(candidates.rows.index), 0.5 * (linear.gram() + rbf.gram()), rtol=1e-12, atol=1e-14
        )


def check_scores(candidates, j, scores, coefficients):
    """On labeled rows the scores are the kernel times the coefficients."""
    gram = candidates.members[j].gram(candidates.rows.index)
    np.testing.assert_allclose(scores[candidates.rows.index], gram @ coefficients, atol=1e-8)


def new_scores(member, training):
    scores = [term.scores(training.matrices, training.present) for term in member.terms]
    return member.logits(scores, training.present)


@pytest.mark.parametrize("kernel", ["linear+rbf", "rbf", "linear"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_scores_of_training_rows_new_rows_and_labeled_rows_agree(missing, kernel):
    training = draw_training(n_views=3, missing=missing, kernel=kernel)
    candidates = training.candidates()
    coefficients = np.random.default_rng(0).normal(size=(15, 2))
    for j in range(len(candidates.members)):
        scores = candidates.scores(j, coefficients)
        check_scores(candidates, j, scores, coefficients)
        rejects(check_scores, candidates, j, 1.1 * scores, coefficients)
        new = new_scores(candidates.member(j, coefficients), training)
        np.testing.assert_allclose(new, scores, atol=1e-8)


def test_labels_drawn_per_class_add_one_to_every_kernel():
    """The mean score over the training rows, zero before, is then the sum of the coefficients."""
    training = draw_training(n_classes=3)
    plain, constant = training.candidates(), training.candidates(per_class=True)
    coefficients = np.random.default_rng(0).standard_normal((plain.rows.codes.size, 3))
    total = coefficients.sum(axis=0)
    for j, (first, second) in enumerate(zip(plain.members, constant.members, strict=True)):
        np.testing.assert_allclose(second.gram(plain.rows.index), first.gram(plain.rows.index) + 1.0, atol=1e-12)
        scores = plain.scores(j, coefficients)
        np.testing.assert_allclose(constant.scores(j, coefficients), scores + total, atol=1e-12)
        new = new_scores(constant.member(j, coefficients), training)
        np.testing.assert_allclose(new, constant.scores(j, coefficients), atol=1e-9)
        if first.kind in ("linear", "rbf", "views"):
            np.testing.assert_allclose(np.average(scores, axis=0, weights=training.weights), 0.0, atol=1e-9)


def test_linear_kernels_are_clipped_far_out_and_others_as_the_user_gave_them():
    training = draw_training()
    by_kind = {member.kind: member for member in training.candidates().members}
    clips = {
        kind: [kernel.data.scaling.clip for kernel in by_kind[kind].kernels] for kind in ("linear", "rbf", "views")
    }
    assert clips == {"linear": [TUNING.wide_clip] * 2, "rbf": [2.0] * 2, "views": [2.0] * 2}
    assert all(view.scaling.clip == TUNING.wide_clip for view in by_kind["graph"].kernels[0].nodes.views)


def test_ridges_are_those_of_the_tuning():
    tuning = replace(TUNING, linear_ridge=1.0, kernel_ridge=2.0, graph_ridge=3.0)
    ridges = {member.kind: member.ridge for member in draw_training().candidates(tuning=tuning).members}
    assert ridges == {"linear": 1.0, "rbf": 2.0, "views": 2.0, "graph": 3.0, "view_graphs": 3.0}
