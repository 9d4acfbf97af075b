"""Sweeps over rows in chunks against the same sweeps in memory."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Plan, Schedule, anneal, step_view, supervised_start
from cmvmed.core.consensus import update_consensus
from cmvmed.core.objective import objective
from cmvmed.core.problem import Problem, partition_rows
from cmvmed.core.surrogates import Bohning
from cmvmed.data.labels import Labels
from cmvmed.data.sources import memory_rows
from cmvmed.data.validation import RowCheck
from cmvmed.numerics.nystroem import Basis, fit_basis, weighted_sample
from cmvmed.scale.passes import ChunkView, StreamedRows, SweepPass, SweepSums, UnlabeledRows
from cmvmed.scale.sampling import LargerSamples, TakenRows, random_rows, rows_with_weights
from cmvmed.scale.streamed import streamed_stages
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_kernel import build_problem
from cmvmed.views.view_rows import ViewData, ViewSettings
from tests.core.factories import rejects

TUNING = Tuning()
MAX_ROW_WEIGHT = TUNING.max_row_weight
SCHEDULE = Schedule(consensus_weight=0.3, temperature=0.3, n_stages=3, max_iter=600, tol=1e-9)


@dataclass(frozen=True)
class Case:
    """A fit in memory of all rows, or of a sample of them, and all rows in chunks."""

    rows: StreamedRows
    data: list[ViewData]
    bases: list[Basis]
    problem: Problem
    matrices: list[np.ndarray]

    @property
    def chunk_views(self):
        return tuple(
            ChunkView(view.preprocessor, basis.landmark_set) for view, basis in zip(self.data, self.bases, strict=True)
        )

    @property
    def unlabeled(self):
        return UnlabeledRows(self.rows.check, self.rows.labeled, self.rows.weights)

    def reduced(self, chunk_pass):
        return self.rows.source.reduce(chunk_pass, bytes_per_row=chunk_pass.bytes_per_row)


def draw_matrices(seed, n, n_classes, missing):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    codes[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes
    matrices = [rng.normal(size=(n_classes, 4))[codes] + rng.normal(size=(n, 4)) for _ in range(2)]
    gone = rng.integers(2, size=n)
    for i, matrix in enumerate(matrices):
        matrix[(gone == i) & (rng.uniform(size=n) < missing)] = np.nan
    return matrices, codes


def view_settings(name, gamma):
    return ViewSettings(
        name=name,
        kernel="rbf",
        gamma=gamma,
        scaling=None,
        prior_variance=2.0,
        C=1.0,
        bias_variance=0.1,
        clip=TUNING.clip,
        sparse_density=TUNING.sparse_density,
        median_sample=TUNING.median_sample,
    )


def draw_basis(view, n_components, rng):
    """Features of a view with its labeled rows and some unlabeled ones, drawn by their weights, as landmarks."""
    drawn = weighted_sample(view.U, view.weights[view.U], n_components - view.L.size, rng)
    return fit_basis(view.training_rows, np.concatenate([view.L, drawn]), view.bias)


def sample_rows(rows, n, rng, max_row_weight):
    return rows_with_weights(rows, random_rows(rows, n, rng), max_row_weight)


def make_case(
    seed=0, *, n=400, n_classes=2, n_labeled=12, missing=0.0, weighted=False, sample=None, n_components=60, gamma=0.3
):
    """``sample`` unlabeled rows are in memory, all if None."""
    matrices, codes = draw_matrices(seed, n, n_classes, missing)
    rng = np.random.default_rng(seed)
    labeled = np.arange(n_labeled) * 3
    codes = np.where(np.isin(np.arange(n), labeled), codes, -1)
    codes[labeled] = np.arange(n_labeled) % n_classes
    weights = rng.integers(0, 4, n).astype(float) if weighted else None
    if weighted:
        weights[labeled] = 1.0
    check = RowCheck(("one", "two"), (None, None), (None, None))
    rows = StreamedRows(memory_rows(matrices, memory_limit=400_000, n_threads=1), check, labeled, weights)
    numbers, sample_weights = sample_rows(rows, n if sample is None else sample, rng, MAX_ROW_WEIGHT)
    taken = rows.source.take(numbers)
    present = [~np.isnan(matrix[:, 0]) for matrix in taken]
    codes = codes[numbers]
    partition = partition_rows(codes, n_classes, present, sample_weights)
    settings = [view_settings(name, gamma) for name in check.views]
    training = TrainingData(None, taken, present, Labels(np.arange(n_classes), codes), partition)
    views = [training.view(i, s, 0) for i, s in enumerate(settings)]
    bases = [draw_basis(view, n_components, rng) for view in views]
    problem = build_problem(training, views, bases, shared_curvature=True)
    return Case(rows, views, bases, problem, matrices)


def make_plan(case, *, balanced=True, schedule=SCHEDULE):
    prior = np.linspace(1.0, 1.5, case.problem.n_classes)
    prior /= prior.sum()
    return Plan(
        problem=case.problem,
        start=supervised_start(case.problem),
        surrogate=Bohning(),
        schedule=schedule,
        view_weights=np.array([0.6, 0.4]),
        class_prior=prior,
        shares=prior if balanced else None,
    )


def continued(case, plan, in_memory, times=1):
    preprocessors = [view.preprocessor for view in case.data]
    return list(streamed_stages([case.rows] * times, preprocessors, case.bases, plan, in_memory))[-1]


@cache
def fitted(*, balanced=True, tol=SCHEDULE.tol, **settings):
    """A case, its plan and the fit of the rows in memory, which several tests share."""
    case = make_case(**settings)
    plan = make_plan(case, balanced=balanced, schedule=replace(SCHEDULE, tol=tol))
    return case, plan, anneal(plan)


@cache
def swept(**settings):
    """The end of the sweeps over all rows after such a fit."""
    return continued(*fitted(**settings))


def mean_of(view, preprocessor, rows):
    """The posterior means of rows by a streamed view."""
    return view.basis.raw(preprocessor.transform(rows)) @ view.coefficients


def means_of(end, case):
    parts = zip(end.views, case.data, case.matrices, strict=True)
    return [mean_of(view, data.preprocessor, matrix[~np.isnan(matrix[:, 0])]) for view, data, matrix in parts]


CASES = {
    "two classes": {},
    "three classes": {"n_classes": 3},
    "missing views": {"missing": 0.3},
    "weights": {"weighted": True},
    "all together": {"n_classes": 3, "missing": 0.3, "weighted": True},
}
SETTINGS = pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
LONG_SWEEPS = pytest.mark.parametrize(  # the fast tests have the simplest case and the one that has all of the others
    "settings",
    [
        pytest.param(case, id=name, marks=[] if name in ("two classes", "all together") else pytest.mark.slow)
        for name, case in CASES.items()
    ],
)


@SETTINGS
@pytest.mark.parametrize("balanced", [True, False])
def test_a_converged_fit_of_all_rows_does_not_change(settings, balanced):
    case, _, in_memory = fitted(balanced=balanced, **settings)
    end = swept(balanced=balanced, **settings)
    np.testing.assert_allclose(end.result.history[-1].objective, in_memory.history[-1].objective, rtol=1e-5)
    np.testing.assert_allclose(end.result.consensus.offset, in_memory.consensus.offset, rtol=0.0, atol=2e-3)
    for view, streamed, state in zip(case.data, end.views, in_memory.states, strict=True):
        means = np.vstack([state.m_L, state.m_U])
        rows = (view.train + view.scaling.mean)[np.concatenate([view.L, view.U])]  # as they were given
        np.testing.assert_allclose(mean_of(streamed, view.preprocessor, rows), means, rtol=0.0, atol=2e-3)


@LONG_SWEEPS
def test_sweeps_that_start_from_where_they_end_are_few_and_change_nothing(settings):
    case, plan, in_memory = fitted(balanced=True, sample=80, **settings)
    once, twice = swept(balanced=True, sample=80, **settings), continued(case, plan, in_memory, times=2)
    n_before, n_once, n_twice = (len(part.history) for part in (in_memory, once.result, twice.result))
    assert n_twice - n_once <= 6 < n_once - n_before
    for one, other in zip(means_of(twice, case), means_of(once, case), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-3)


@pytest.mark.parametrize("factor", [0.6, 3.0])
def test_the_curvature_of_a_sample_leads_to_the_same_end(factor):
    """G of a sample is only the metric of the steps: with another one they end at the same place."""
    case, plan, in_memory = fitted(sample=80)
    other = replace(
        plan, problem=replace(plan.problem, models=tuple(scaled_curvature(m, factor) for m in case.problem.models))
    )
    expected, found = swept(sample=80), continued(case, other, in_memory)
    assert found.views[0].gaussian.d.sum() != pytest.approx(expected.views[0].gaussian.d.sum(), rel=0.05)
    for one, two in zip(means_of(found, case), means_of(expected, case), strict=True):
        np.testing.assert_allclose(one, two, rtol=0.0, atol=2e-3)


def scaled_curvature(model, factor):
    """A view with ``factor`` G for G."""
    other = copy(model)
    other.space = replace(model.space, omega=factor * model.space.omega)
    return other


def weights_of(model, state):
    """θ of a view in memory, (r, F)."""
    return model.space.prior_variance * (model.space.Z_L.T @ state.tau + state.gamma)


def one_pass(case, in_memory, sweep_pass=SweepPass):
    """One sweep from where the annealing in memory ended."""
    coefficients = tuple(
        basis.transform @ model.rotation @ weights_of(model, state)
        for basis, model, state in zip(case.bases, case.problem.models, in_memory.states, strict=True)
    )
    pi, offset = in_memory.view_weights, in_memory.consensus.offset
    return sweep_pass(case.unlabeled, case.chunk_views, coefficients, pi, offset, in_memory.temperature)


def one_sweep(case, in_memory, sweep_pass=SweepPass):
    """Its sums."""
    return SweepSums.read(case.reduced(one_pass(case, in_memory, sweep_pass)))


def check_sums(case, in_memory, sums):
    """A sweep's sums are those of the rows in memory."""
    problem, consensus = case.problem, in_memory.consensus
    mass = problem.weights_U * consensus.coverage
    np.testing.assert_allclose(sums.shares, mass @ consensus.q, rtol=1e-9)
    np.testing.assert_allclose(sums.products, (mass[:, None] * consensus.q).T @ consensus.q, rtol=1e-9)
    np.testing.assert_allclose(sums.mass, mass.sum(), rtol=1e-12)
    surrogate = Bohning()
    for i, (model, state) in enumerate(zip(problem.models, in_memory.states, strict=True)):
        q = consensus.q[problem.rows_U[i]]
        a = np.full((state.m_U.shape[0], 1), 0.25)
        b = surrogate.response(state.m_U, state.s_U, q[:, 1:] if q.shape[1] == 2 else q, a)
        expected = model.condition(1.0, np.full(state.m_U.shape[0], 0.25)).project_response(b)
        curvature = 0.25 * model.space.omega[:, None] * weights_of(model, state)  # Σ w m z / 4
        rotated = model.rotation.T @ case.bases[i].transform.T @ sums.residuals[i] + curvature
        np.testing.assert_allclose(rotated, expected, rtol=0.0, atol=1e-7 * np.abs(expected).max())


@SETTINGS
def test_one_sweep_gives_the_sums_of_memory(settings):
    case, _, in_memory = fitted(tol=1e-3, **settings)
    check_sums(case, in_memory, one_sweep(case, in_memory))


@dataclass(frozen=True)
class CountsLabeledRows(SweepPass):
    """Counts labeled rows among the unlabeled ones."""

    def __call__(self, first_row, matrices):
        all_rows = replace(self.unlabeled, labeled=np.empty(0, np.intp))
        return SweepPass.__call__(replace(self, unlabeled=all_rows), first_row, matrices)


@dataclass(frozen=True)
class IgnoresFirstRow(SweepPass):
    """Treats every chunk as the first."""

    def __call__(self, first_row, matrices):
        return SweepPass.__call__(self, 0, matrices)


@pytest.mark.parametrize("twin", [CountsLabeledRows, IgnoresFirstRow])
def test_comparison_of_sums_rejects_broken_passes(twin):
    case, _, in_memory = fitted(tol=1e-3, weighted=True)
    rejects(check_sums, case, in_memory, one_sweep(case, in_memory, twin))


@SETTINGS
def test_objective_of_chunks_is_that_of_memory(settings):
    case = make_case(**settings)
    plan = make_plan(case, balanced=False, schedule=replace(SCHEDULE, max_iter=2))
    in_memory = anneal(plan)
    end = continued(case, replace(plan, schedule=replace(SCHEDULE, max_iter=3)), in_memory)
    pi, lam, temperature = in_memory.view_weights, in_memory.consensus_weight, in_memory.temperature
    states, consensus, expected = in_memory.states, in_memory.consensus, []
    for _ in range(3):
        consensus = update_consensus(case.problem, states, pi, None, temperature, consensus)
        expected.append(objective(case.problem, Bohning(), states, pi, consensus, lam, temperature).total)
        states = [step_view(case.problem, i, Bohning(), states[i], consensus.q, lam) for i in range(2)]
    values = [sweep.objective for sweep in end.result.history[len(in_memory.history) :]]
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    assert np.ptp(values) > 1e-6 * abs(values[0])


@LONG_SWEEPS
@pytest.mark.parametrize("balanced", [True, False])
def test_sweeps_from_a_sample_end_where_all_rows_in_memory_would(settings, balanced):
    """The features are the sample's; all rows in memory then see the same ones."""
    case, plan, in_memory = fitted(balanced=balanced, sample=80, **settings)
    end = swept(balanced=balanced, sample=80, **settings)
    assert end.result.converged
    long_plan = replace(plan, schedule=replace(SCHEDULE, tol=0.0, max_iter=200))
    again = continued(case, long_plan, replace(in_memory, consensus=end.result.consensus))
    for first, second in zip(means_of(end, case), means_of(again, case), strict=True):
        np.testing.assert_allclose(first, second, rtol=0.0, atol=5e-3)
    values = np.array([sweep.objective for sweep in end.result.history[len(in_memory.history) :]])
    rise = 1e-9 if not balanced else 1e-4  # the shares are met in the limit only
    assert np.diff(values).max(initial=0.0) <= rise * abs(values[-1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_of_all_rows_meet_the_prior(n_classes):
    case, _, in_memory = fitted(n_classes=n_classes, sample=60)
    end = swept(n_classes=n_classes, sample=60)
    np.testing.assert_allclose(end.result.history[-1].class_shares, in_memory.consensus.shares, rtol=0.0, atol=1e-4)
    start = one_sweep(case, in_memory)
    assert np.abs(start.shares / start.mass - in_memory.consensus.shares).max() > 1e-3


def test_chunk_size_and_threads_do_not_matter():
    case = make_case(missing=0.2, weighted=True)
    in_memory = anneal(make_plan(case, schedule=replace(SCHEDULE, tol=1e-3)))
    few = replace(case.rows, source=memory_rows(case.matrices, memory_limit=None, n_threads=2))
    first = one_sweep(case, in_memory)
    second = one_sweep(replace(case, rows=few), in_memory)
    np.testing.assert_allclose(first.residuals[0], second.residuals[0], rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(first.energies, second.energies, rtol=1e-12)


def test_passes_can_be_sent_to_other_processes():
    case = make_case(n=60)
    sweep = one_pass(case, anneal(make_plan(case, schedule=replace(SCHEDULE, tol=1e-3))))
    sent = pickle.loads(pickle.dumps(sweep))
    np.testing.assert_array_equal(sent(0, case.matrices)[0], sweep(0, case.matrices)[0])


def test_larger_samples_contain_each_other_and_no_held_out_row():
    rng = np.random.default_rng(0)
    labeled = np.array([3, 500, 999])
    source = memory_rows([np.arange(2000.0).reshape(1000, 2)])
    rows = StreamedRows(source, RowCheck(("one",), (None,), (None,)), labeled)
    order = random_rows(rows, 460, rng)
    taken = np.sort(np.concatenate([order[:100], order[400:], labeled]))
    larger = LargerSamples(rows, TakenRows(taken, source.take(taken)), order, 100, 400, 60, 3.0)
    small, large = larger.sample(100), larger.sample(400)
    numbers = [sample.source.take(np.arange(sample.source.n_rows))[0][:, 0] / 2 for sample in (small, large)]
    assert [sample.n_unlabeled for sample in (small, large)] == [100, 400]
    assert set(numbers[0]) < set(numbers[1])
    for sample, own in zip((small, large), numbers, strict=True):
        np.testing.assert_array_equal(own[sample.labeled], labeled)
    # a row stands for at most three: 100 rows for 300, and 400 for all 997
    np.testing.assert_allclose([small.unlabeled_weight, large.unlabeled_weight], [300.0, 997.0])
    (held_out,), (present,) = larger.held_out()
    assert held_out.shape == (60, 2)
    assert present.all()
    assert not set(held_out[:, 0] / 2) & set(numbers[1])


@pytest.mark.parametrize(
    ("size", "ratio", "expected"),
    [(100, None, 400), (100, 9.0, 400), (100, 1.6, 256), (100, 1.1, 200), (300, None, 1000), (600, 3.0, None)],
)
def test_the_next_sample_has_as_many_rows_as_are_needed(size, ratio, expected):
    rows = StreamedRows(memory_rows([np.zeros((2000, 2))]), RowCheck(("one",), (None,), (None,)), np.arange(3))
    larger = LargerSamples(rows, TakenRows(np.arange(3), []), np.arange(1000), 100, 1000, 0, 3.0)
    assert larger.next_size(size, ratio, 4) == expected


def test_a_sample_of_rows_in_memory_is_no_copy_of_them(tmp_path):
    X = np.arange(2000.0).reshape(1000, 2)
    numbers = np.array([3, 10, 999])
    chosen = memory_rows([X]).chosen(numbers)
    np.testing.assert_array_equal(np.concatenate(list(chosen.map(lambda first, matrices: matrices[0]))), X[numbers])
    np.testing.assert_array_equal(chosen.take(np.array([1, 2]))[0], X[[10, 999]])
    assert chosen.tables[0].array is X
    np.save(tmp_path / "rows.npy", X)
    assert memory_rows([np.load(tmp_path / "rows.npy", mmap_mode="r")]).chosen(numbers) is None


def test_a_sample_has_the_weight_of_all_rows():
    rng = np.random.default_rng(0)
    check = RowCheck(("one",), (None,), (None,))
    source = memory_rows([np.zeros((1000, 2))])
    labeled = np.array([3, 500, 999])
    numbers, weights = sample_rows(StreamedRows(source, check, labeled), 400, rng, MAX_ROW_WEIGHT)
    assert numbers.size == 403
    assert (np.diff(numbers) > 0).all()
    assert np.isin(labeled, numbers).all()
    np.testing.assert_allclose(weights[np.isin(numbers, labeled)], 1.0)
    np.testing.assert_allclose(weights.sum(), 1000.0)
    given = rng.integers(0, 3, 1000).astype(float)
    numbers, weights = sample_rows(StreamedRows(source, check, labeled, given), 400, rng, MAX_ROW_WEIGHT)
    others = ~np.isin(numbers, labeled)
    assert (given[numbers[others]] > 0.0).all()
    rest = np.setdiff1d(np.arange(1000), labeled)
    np.testing.assert_allclose(weights[others].sum(), given[rest].sum())
    assert sample_rows(StreamedRows(source, check, labeled), 5000, rng, MAX_ROW_WEIGHT)[0].size == 1000
    numbers, weights = sample_rows(
        StreamedRows(source, check, labeled), 50, rng, MAX_ROW_WEIGHT
    )  # too few to represent 997
    np.testing.assert_allclose(weights, np.where(np.isin(numbers, labeled), 1.0, MAX_ROW_WEIGHT))
