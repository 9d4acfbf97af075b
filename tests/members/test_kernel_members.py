"""Members made of kernels: which there are, their kernels where views are missing, and that folds are refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.auto.class_prior import empirical_bayes_share
from cmvmed.members.kernel_members import KernelMembers, row_factors
from cmvmed.members.pool import KINDS, fit_kind
from cmvmed.members.solvers import discriminant_coefficients
from cmvmed.model.evaluate import member_logits
from cmvmed.model.graph_votes import graph_vote
from tests.auto.factories import TUNING, draw_rows, draw_training, read_training
from tests.core.factories import rejects

KERNEL_KINDS = ["views", "lda", "graph", "view_graphs"]
RIDGES = {"views": 0.7, "graph": 0.2, "view_graphs": 0.2}
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, 75)


def names(members):
    return [name for name in (part.name for part in members.parts) if not name.startswith("trees")]


def kernels_of(inputs, kind):
    """The sum of kernels of each member of a kind."""
    found, members = [], KernelMembers(inputs)

    def keep(kind, name, kernel, *others):
        found.append(kernel)
        return scored(kind, name, kernel, *others)

    scored, members._scored = members._scored, keep
    getattr(members, kind)()
    return found


@pytest.mark.parametrize("kernel", ["linear+rbf", "rbf", "linear", "cosine"])
def test_views_with_features_have_every_kind(kernel):
    training = draw_training(kernel=kernel)
    assert names(training.label_members()) == ["view view0", "view view1", "lda", "graph", "view_graphs"]
    for kind, expected in zip(KINDS, (2, 1, 1, 1, 1, 1), strict=True):
        assert [part.kind for part in training.label_members([kind]).parts] == [kind] * expected


def test_a_single_view_has_one_graph():
    assert names(draw_training(n_views=1).label_members()) == ["view view0", "lda", "graph"]


def test_views_without_weight_or_rows_take_no_part():
    assert names(draw_training(n_views=3).label_members(used=[True, False, True]))[:2] == ["view view0", "view view2"]
    matrices, codes, _ = draw_rows(n_views=2)
    training = read_training([*matrices, np.full((75, 2), np.nan)], codes)
    assert names(training.label_members())[:3] == ["view view0", "view view1", "lda"]


def test_given_kernels_have_each_view_alone():
    matrices, codes, _ = draw_rows()
    features = np.nan_to_num(matrices[0])
    precomputed = read_training([features @ features.T], codes, kernel="precomputed")
    assert names(precomputed.label_members()) == ["view view0"]
    called = read_training(matrices, codes, kernel=lambda A, B: (A @ B.T + 1.0) ** 2)
    assert names(called.label_members()) == ["view view0", "view view1"]


def test_new_rows_are_compared_with_at_most_so_many_nodes_and_those_of_labels():
    training = draw_training()
    (whole,), (summed,) = (kernels_of(training.inputs(max_compared_nodes=n), "graph")[0].kernels for n in (None, 30))
    coefficients = np.ones((training.labeled_rows().codes.size, 1))
    np.testing.assert_array_equal(summed.columns, whole.columns)  # all rows are nodes of the graph
    assert whole.node_scores(coefficients)[0].size == summed.nodes.size
    nodes, node_scores = summed.node_scores(coefficients)
    assert 30 < nodes.size < 46 < summed.nodes.size
    assert (nodes.node_of_row[training.partition.L] >= 0).all()
    # a row that is a compared node has its score, others have that of compared nodes near them
    scores, is_node = summed.scores(coefficients), nodes.node_of_row >= 0
    found = graph_vote(nodes, node_scores).scores(training.matrices, training.present)
    np.testing.assert_allclose(found[is_node], scores[is_node], atol=1e-9)
    others = summed.nodes.present & ~is_node
    assert np.abs(found[others]).min() > 0.0
    assert np.abs(found[others] - scores[others]).max() > 1e-3


def test_row_factors_are_one_over_the_root_of_the_number_of_views():
    present = [np.array([True, True, False, False]), np.array([True, False, True, False])]
    np.testing.assert_allclose(row_factors(present), [0.5**0.5, 1.0, 1.0, 1.0])


def check_positive_semidefinite(gram):
    np.testing.assert_allclose(gram, gram.T, atol=1e-7)
    assert np.linalg.eigvalsh(gram).min() > -1e-7


@pytest.mark.parametrize("kind", KERNEL_KINDS)
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_kernels_are_positive_semidefinite(missing, kind):
    for kernel in kernels_of(draw_training(n_labeled=40, n_views=3, missing=missing).inputs(), kind):
        check_positive_semidefinite(kernel.gram())


def test_the_mean_over_common_views_would_not_be_positive_semidefinite():
    """Dividing each entry by the number of views that both rows have is what D (Σ K) D avoids."""
    for seed in range(5):
        (member,) = kernels_of(draw_training(seed, n_labeled=60, n_views=3, missing=0.6).inputs(), "lda")
        has = [kernel.present[member.labeled] for kernel in member.kernels]
        both = sum(np.outer(own, own) for own in has)
        rejects(check_positive_semidefinite, sum(k.gram() for k in member.kernels) / np.maximum(both, 1))


def check_joint(member):
    """D (Σ_v K_v) D, with the views that each row has."""
    n_views = np.sum([kernel.present[member.labeled] for kernel in member.kernels], axis=0)
    total = sum(kernel.gram() for kernel in member.kernels)
    np.testing.assert_allclose(member.gram(), total / np.sqrt(np.outer(n_views, n_views)), atol=1e-9)


@pytest.mark.parametrize("kind", ["lda", "view_graphs"])
def test_joint_kernels_are_means_over_the_views_of_a_row(kind):
    (member,) = kernels_of(draw_training(n_views=3, missing=0.4).inputs(), kind)
    check_joint(member)
    rejects(check_joint, replace(member, normalized=False))
    rejects(check_joint, replace(member, factor=0.5))


def test_a_mean_of_two_kernels_has_each_centered_on_its_own():
    for member in kernels_of(draw_training(missing=0.3).inputs(), "views"):
        linear, rbf = member.kernels
        assert (linear.kernel.kind, rbf.kernel.kind) == ("linear", "rbf")
        np.testing.assert_allclose(member.gram(), 0.5 * (linear.gram() + rbf.gram()), rtol=1e-12, atol=1e-14)


def test_features_are_clipped_far_out_for_all_views_together_and_as_the_user_says_for_each():
    inputs = draw_training().inputs()
    for kind, clip in (("lda", TUNING.wide_clip), ("views", 2.0)):
        assert {own.data.scaling.clip for kernel in kernels_of(inputs, kind) for own in kernel.kernels} == {clip}
    for kind in ("graph", "view_graphs"):
        (graphs,) = kernels_of(inputs, kind)
        assert {view.scaling.clip for own in graphs.kernels for view in own.nodes.views} == {TUNING.wide_clip}


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("kernel", ["linear+rbf", "rbf", "linear"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_training_rows_have_the_scores_of_new_rows(missing, kernel, per_class):
    training = draw_training(n_classes=3, n_labeled=20, n_views=3, missing=missing, kernel=kernel)
    for kind in KERNEL_KINDS:
        for found in fit_kind(training.inputs(per_class=per_class), kind):
            (new,) = member_logits([found.member], training.matrices, training.present)
            np.testing.assert_allclose(new, found.scores, atol=1e-8)
            rejects(np.testing.assert_allclose, new[:, ::-1], found.scores, atol=1e-8)
            assert found.uses_unlabeled == (kind in ("graph", "view_graphs"))
            assert found.scale == (1.0 if kind == "lda" else TUNING.ridge_scale)


def test_labels_drawn_per_class_add_one_to_the_kernels_of_ridge_regression():
    """The mean score over the training rows, zero before, is then the sum of the coefficients."""
    training = draw_training(n_classes=3)
    coefficients = np.random.default_rng(0).standard_normal((15, 3))
    for kind, added in (("views", 1.0), ("graph", 1.0), ("view_graphs", 1.0), ("lda", 0.0)):
        pairs = (kernels_of(training.inputs(per_class=per_class), kind) for per_class in (False, True))
        for plain, constant in zip(*pairs, strict=True):
            np.testing.assert_allclose(constant.gram(), plain.gram() + added, atol=1e-12)
            total = added * coefficients.sum(axis=0)
            np.testing.assert_allclose(constant.scores(coefficients), plain.scores(coefficients) + total, atol=1e-12)
            if kind in ("views", "lda"):
                mean = np.average(plain.scores(coefficients), axis=0, weights=training.weights)
                np.testing.assert_allclose(mean, 0.0, atol=1e-9)


def check_ridge(found, kernel, rows, kept, ridge):
    """Scores of the labeled rows by ridge regression to the kept ones, solved anew."""
    gram = kernel.gram()
    system = gram + np.diag(ridge / rows.weights)
    targets = np.eye(rows.n_classes)[rows.codes] - empirical_bayes_share(rows.counts(kept))
    alpha = np.linalg.solve(system[np.ix_(kept, kept)], targets[kept])
    np.testing.assert_allclose(found[rows.index], gram[:, kept] @ alpha, atol=1e-7)


@pytest.mark.parametrize("kind", RIDGES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_ridge_scores_of_folds_are_those_of_refits(n_classes, kind):
    tuning, ridge = replace(TUNING, kernel_ridge=0.7, graph_ridge=0.2), RIDGES[kind]
    inputs = draw_training(n_classes=n_classes, missing=0.2, weights=WEIGHTS).inputs(tuning)
    for kernel, part in zip(kernels_of(inputs, kind), fit_kind(inputs, kind), strict=True):
        check_ridge(part.scores, kernel, inputs.rows, inputs.keep[0], ridge)
        for scores, kept in zip(part.fold_scores, inputs.keep[1:], strict=True):
            check_ridge(scores, kernel, inputs.rows, kept, ridge)
        rejects(check_ridge, part.scores, kernel, inputs.rows, inputs.keep[1], ridge)
        rejects(check_ridge, part.scores, kernel, inputs.rows, inputs.keep[0], 2.0 * ridge)


def check_discriminant(found, points, rows, kept):
    """The analysis of the kept rows alone, given by their centered and scaled columns."""
    own = points[rows.index[kept]]
    given = rows.codes[kept], rows.weights[kept], rows.n_classes, points.shape[1], np.ones(kept.sum(), dtype=bool)
    a, intercept = discriminant_coefficients(own @ own.T, *given)
    np.testing.assert_allclose(found, points @ own.T @ a + intercept, atol=1e-7)


def test_discriminant_scores_of_folds_are_those_of_refits():
    training = draw_training(n_classes=3, n_labeled=24, missing=0.3, weights=WEIGHTS.repeat(2)[:84])
    inputs = training.inputs()
    (part,), (kernel,) = fit_kind(inputs, "lda"), kernels_of(inputs, "lda")
    points = np.zeros((84, 6))
    for i, (view, own) in enumerate(zip(inputs.features.values(), kernel.kernels, strict=True)):
        weights = training.weights[training.present[i]]
        centered = view.train - np.average(view.train, axis=0, weights=weights)
        points[training.present[i], 3 * i : 3 * i + 3] = own.scale**0.5 * centered
    points *= row_factors(training.present)[:, None]
    for scores, kept in zip((part.scores, *part.fold_scores), inputs.keep, strict=True):
        check_discriminant(scores, points, inputs.rows, kept)
    rejects(check_discriminant, part.scores, points, inputs.rows, inputs.keep[1])
