"""Scaling of features: what is chosen, what it does to wild values, and that nothing overflows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cmvmed.auto.tuning import Tuning
from cmvmed.views.preprocessing import Scaling
from cmvmed.views.preprocessing import fit_scaling as fit_scaling_with
from tests.core.factories import rejects


def draw_rows(seed, n_rows=30, n_features=4):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def draw_counts(seed, *, density=0.2):
    rng = np.random.default_rng(seed)
    return rng.poisson(3.0, size=(20, 40)) * (rng.uniform(size=(20, 40)) < density).astype(float)


CLIP = Tuning().clip
fit_scaling = partial(fit_scaling_with, clip=CLIP, sparse_density=Tuning().sparse_density)


def fitted(train, kind="auto", weights=None):
    return fit_scaling(kind, train, np.ones(train.shape[0]) if weights is None else weights)


@pytest.mark.parametrize(
    ("train", "kind"),
    [
        (draw_rows(0), "standard"),
        (np.abs(draw_rows(0)), "standard"),
        (draw_counts(0), "unit"),
        (draw_counts(0) - 0.001, "standard"),  # no entry is zero
        (draw_counts(0, density=0.6), "standard"),
        (sparse.csr_matrix(draw_rows(0)), "standard"),
        (sparse.csr_array(draw_counts(0)), "unit"),
        (-draw_counts(0), "unit"),
        (np.empty((0, 3)), "standard"),
    ],
    ids=[
        "normal",
        "dense positive",
        "counts",
        "negative",
        "dense counts",
        "sparse normal",
        "sparse counts",
        "signed counts",
        "no rows",
    ],
)
def test_auto_takes_unit_length_for_views_with_few_nonzero_entries(train, kind):
    assert fitted(train).kind == kind


def check_standard(apply, rows):
    """Columns of mean 0 and deviation 1/√d before clipping at two deviations."""
    d = rows.shape[1]
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(apply(rows), np.clip(z, -2.0, 2.0) / np.sqrt(d), rtol=1e-9, atol=1e-12)


def test_standard_centers_divides_clips_and_shrinks_by_the_number_of_columns():
    rows = draw_rows(1) * np.array([1.0, 100.0, 1e-3, 5.0]) + np.array([0.0, 7.0, -3.0, 1.0])
    scaling = fitted(rows, "standard")
    check_standard(scaling.apply, rows)
    assert np.abs(scaling.apply(rows)).max() == CLIP / 2.0
    rejects(check_standard, lambda x: 2.0 * scaling.apply(x), rows)
    rejects(check_standard, lambda x: Scaling("standard", 1.0, CLIP, rows.mean(axis=0), np.ones(4)).apply(x), rows)
    rejects(check_standard, lambda x: (x - rows.mean(axis=0)) / rows.std(axis=0) / 2.0, rows)


def test_unit_gives_rows_length_one_and_keeps_sparse_rows_sparse():
    rows = np.vstack([draw_counts(0), np.zeros(40)])
    for container in (np.asarray, sparse.csr_matrix, sparse.csr_array):
        scaled = fitted(container(rows), "unit").apply(container(rows))
        assert sparse.issparse(scaled) == sparse.issparse(container(rows))
        dense = scaled.toarray() if sparse.issparse(scaled) else scaled
        lengths = np.linalg.norm(rows, axis=1)
        np.testing.assert_allclose(dense * np.where(lengths > 0.0, lengths, 1.0)[:, None], rows, rtol=1e-12)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_can_be_standardized(container):
    rows = draw_counts(3)
    dense, scaling = fitted(rows, "standard"), fitted(container(rows), "standard")
    np.testing.assert_array_equal(scaling.mean, dense.mean)
    np.testing.assert_array_equal(scaling.factor, dense.factor)
    scaled = scaling.apply(container(rows))
    assert type(scaled) is np.ndarray
    np.testing.assert_allclose(scaled, dense.apply(rows), rtol=1e-12)


def test_none_leaves_rows_alone():
    rows = draw_rows(0)
    assert fitted(rows, None).apply(rows) is rows


def check_weights_are_repetitions(apply_of, kind):
    rows, counts = draw_rows(4, n_rows=6), np.array([1, 3, 2, 1, 4, 1])
    weighted = apply_of(kind, rows, counts.astype(float))(rows)
    repeated = apply_of(kind, np.repeat(rows, counts, axis=0), np.ones(counts.sum()))(rows)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


def apply_of(kind, rows, weights):
    return fit_scaling(kind, rows, weights).apply


@pytest.mark.parametrize("kind", ["standard", "unit"])
def test_weights_are_repetitions(kind):
    check_weights_are_repetitions(apply_of, kind)


def test_check_of_repetitions_rejects_unweighted_scaling():
    rejects(check_weights_are_repetitions, lambda kind, rows, w: apply_of(kind, rows, np.ones_like(w)), "standard")
    rejects(check_weights_are_repetitions, lambda kind, rows, w: apply_of(kind, rows, w**2), "standard")


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, -1e7, 1e-200, 1e200])
def test_constant_columns_become_zero(constant):
    """0.1 summed and averaged is not exactly 0.1: what is left after centering must not be blown up."""
    rows = np.hstack([draw_rows(5), np.full((30, 1), constant)])
    scaling = fitted(rows, "standard")
    scaled = scaling.apply(rows)
    assert scaling.factor[-1] == 0.0
    np.testing.assert_array_equal(np.abs(scaled[:, -1]), np.zeros(30))
    others = fitted(rows[:, :-1], "standard").apply(rows[:, :-1]) * np.sqrt(4.0 / 5.0)
    np.testing.assert_allclose(scaled[:, :-1], others, rtol=1e-9, atol=1e-12)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    exponents=st.lists(st.integers(-150, 150), min_size=3, max_size=3),
    kind=st.sampled_from(["standard", "unit"]),
    seed=st.integers(0, 1000),
)
def test_extreme_columns_give_finite_values(exponents, kind, seed):
    rows = draw_rows(seed, n_features=3) * 10.0 ** np.array(exponents, dtype=float)
    scaled = fitted(rows, kind).apply(rows)
    assert np.isfinite(scaled).all()
    assert np.linalg.norm(scaled, axis=1).max() <= CLIP + 1e-12


@pytest.mark.parametrize("exponent", [-150, -40, 0, 40, 150])
@pytest.mark.parametrize("kind", ["standard", "unit"])
def test_units_do_not_matter(kind, exponent):
    rows, factor = draw_rows(6), 10.0**exponent
    np.testing.assert_allclose(
        fitted(factor * rows, kind).apply(factor * rows), fitted(rows, kind).apply(rows), rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["standard", "unit"])
@pytest.mark.parametrize(("train_size", "new_size"), [(1.0, 1e150), (1.0, 1e-150), (1e150, 1e-150), (1e-150, 1e150)])
def test_new_rows_of_another_magnitude_give_finite_values(kind, train_size, new_size):
    scaled = fitted(train_size * draw_rows(7), kind).apply(new_size * draw_rows(8))
    assert np.isfinite(scaled).all()
    assert np.linalg.norm(scaled, axis=1).max() <= CLIP + 1e-12


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize(
    ("train_size", "new_size"),
    [(1.0, 1.0), (1.0, 1e100), (1.0, 1e-18), (1e-150, 1e150), (1e150, 1e-150), (1.0, 1e300), (1.0, 1e-300)],
)
def test_unit_rows_have_length_one_whatever_the_training_rows_were(container, train_size, new_size):
    rows = draw_rows(8)
    scaled = fitted(container(train_size * draw_rows(7)), "unit").apply(container(new_size * rows))
    direction = rows / np.linalg.norm(rows, axis=1)[:, None]
    np.testing.assert_allclose(sparse.csr_array(scaled).toarray(), direction, rtol=1e-9)


def test_empty_and_single_rows():
    for kind in ("standard", "unit"):
        assert fitted(draw_rows(0), kind).apply(np.empty((0, 4))).shape == (0, 4)
        assert np.isfinite(fitted(draw_rows(0, n_rows=1), kind).apply(draw_rows(1))).all()


def test_clipping_rows_again_is_scaling_them_with_the_narrower_clip():
    rng = np.random.default_rng(0)
    train = rng.normal(size=(50, 4))
    wide, narrow = (fit_scaling("standard", train, np.ones(50), clip=clip, sparse_density=0.25) for clip in (5.0, 2.0))
    rows = 4.0 * rng.normal(size=(30, 4))
    scaled = wide.apply(rows)
    np.testing.assert_array_equal(narrow.clipped(scaled), narrow.apply(rows))
    assert np.abs(scaled).max() == pytest.approx(2.5)
    assert np.abs(narrow.clipped(scaled)).max() == pytest.approx(1.0)
