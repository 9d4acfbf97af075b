"""The quadratic models of A(f) = log 2cosh(f/2): derivatives, tangency, and which of them are bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit

from cmvmed.core.surrogates import (
    AsPrinted,
    Bohning,
    Jaakkola,
    Newton,
    Quadrature,
    expected_curvature,
    expected_log_partition,
    expected_logistic,
    jaakkola_curvature,
    log_partition,
    logistic_curvature,
)
from tests.core.factories import rejects
from tests.core.reference import expected_log_partition as reference_expectation

BOUNDS = [Bohning(), Jaakkola()]
COMPLETE = [*BOUNDS, Newton(), Quadrature()]
FINITE_SCORES = st.floats(-30.0, 30.0)


def column(*values):
    return np.array(values, dtype=float)[:, None]


def disagreement(A, mean, difference):
    """The consensus term of one row without variance, for two views of scores mean ± difference, and its center q."""
    return 0.5 * (A(mean + difference) + A(mean - difference)) - A(mean)


def check_lenient_where_confident(A):
    """The paper's claim (section 3): equal differences of log-odds cost less, the surer the views are; agreement costs nothing."""
    mean = np.linspace(0.0, 8.0, 33)
    for difference in (0.5, 2.0, 4.0):
        assert (np.diff(disagreement(A, mean, difference)) < 0.0).all()
    np.testing.assert_allclose(disagreement(A, mean, 1e-3), 0.5e-6 * logistic_curvature(mean), rtol=1e-4, atol=1e-14)
    np.testing.assert_allclose(disagreement(A, mean, 0.0), 0.0, atol=1e-15)


def test_disagreement_costs_less_where_views_are_confident():
    check_lenient_where_confident(log_partition)
    rejects(check_lenient_where_confident, lambda f: f**2 / 8.0)  # which costs the same everywhere


def check_derivatives(A, curvature):
    """The curvature is A'' and A is even with A(0) = log 2."""
    f, h = np.linspace(-6.0, 6.0, 61), 1e-4
    np.testing.assert_allclose(curvature(f), (A(f + h) - 2.0 * A(f) + A(f - h)) / h**2, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose((A(f + h) - A(f - h)) / (2.0 * h), expit(f) - 0.5, rtol=0.0, atol=1e-7)
    np.testing.assert_allclose(A(np.zeros(1)), np.log(2.0), rtol=1e-15)


def test_log_partition_and_its_derivatives():
    check_derivatives(log_partition, logistic_curvature)
    rejects(check_derivatives, lambda f: np.logaddexp(0.0, f), logistic_curvature)
    rejects(check_derivatives, log_partition, jaakkola_curvature)


def test_likelihood_is_normalized():
    f = np.linspace(-40.0, 40.0, 81)
    np.testing.assert_allclose(
        np.exp(f / 2.0 - log_partition(f)) + np.exp(-f / 2.0 - log_partition(f)), np.ones(81), rtol=1e-12
    )


def test_extreme_scores_stay_finite():
    f = np.array([-1e150, -800.0, -1e-300, 0.0, 1e-300, 800.0, 1e150])
    np.testing.assert_allclose(log_partition(f), np.maximum(np.abs(f) / 2.0, np.log(2.0)), rtol=1e-15)
    np.testing.assert_allclose(logistic_curvature(f), [0.0, 0.0, 0.25, 0.25, 0.25, 0.0, 0.0], rtol=0.0, atol=1e-16)
    for surrogate in [*COMPLETE, AsPrinted()]:
        m, q = f[:, None], np.full((7, 1), 0.3)
        a = surrogate.curvature(m, np.ones((7, 1)))
        assert np.isfinite(a).all()
        assert np.isfinite(surrogate.response(m, np.ones((7, 1)), q, a)).all()
        assert np.isfinite(surrogate.energy(m, np.ones((7, 1)))).all()


def test_jaakkola_curvature_is_smooth_at_zero():
    xi = np.array([0.0, 1e-9, 1e-6, 1e-3, 1e-2])
    np.testing.assert_allclose(jaakkola_curvature(xi), 0.25 - xi**2 / 48.0, rtol=0.0, atol=1e-10)
    np.testing.assert_array_equal(jaakkola_curvature(-xi), jaakkola_curvature(xi))


def check_bounds_everywhere(surrogate, m, s, f):
    """A(f) <= energy + (model at f) - E(model): the quadratic lies above A, whatever it was expanded at."""
    a = surrogate.curvature(m, s)
    b = surrogate.response(m, s, np.full_like(m, 0.5), a)
    model = 0.5 * a * f**2 - b * f
    expected_model = 0.5 * a * (m**2 + s) - b * m
    slack = surrogate.energy(m, s) + model - expected_model - log_partition(f)
    assert slack.min() >= -1e-12 * (1.0 + np.abs(f).max())


@settings(derandomize=True, max_examples=60, deadline=None)
@given(m=FINITE_SCORES, s=st.floats(0.0, 20.0), f=FINITE_SCORES)
@pytest.mark.parametrize("surrogate", BOUNDS)
def test_c10_bounds_lie_above_everywhere(surrogate, m, s, f):
    check_bounds_everywhere(surrogate, column(m), column(s), column(f))


def test_c10_newton_is_no_bound():
    rejects(check_bounds_everywhere, Newton(), column(4.0), column(0.0), column(-4.0))


def check_energy_above_expectation(surrogate, m, s):
    """Energy >= E A(f)."""
    assert (surrogate.energy(m, s) - reference_expectation(m, s)).min() >= -1e-10


@settings(derandomize=True, max_examples=60, deadline=None)
@given(m=FINITE_SCORES, s=st.floats(0.0, 4.0))
@pytest.mark.parametrize("surrogate", BOUNDS)
def test_c10_energy_is_above_the_quadrature(surrogate, m, s):
    check_energy_above_expectation(surrogate, column(m), column(s))
    rejects(check_energy_above_expectation, Newton(), column(0.3 * expit(m)), column(0.5 + s))


def test_energies_are_exact_without_variance_and_jaakkola_is_the_tighter_bound_with_it():
    m, s = column(-5.0, -1.0, 0.0, 2.0, 9.0), np.full((5, 1), 1.5)
    for surrogate in COMPLETE:
        np.testing.assert_allclose(surrogate.energy(m, np.zeros_like(s)), log_partition(m), rtol=1e-14)
    assert (Jaakkola().energy(m, s) <= Bohning().energy(m, s) + 1e-14).all()


def check_gradient_at_the_mean(surrogate):
    """a m - b is the derivative of A(f) - (q - ½) f at a mean without variance: the model depends on the consensus."""
    m, q = column(-3.0, -0.2, 0.0, 0.7, 5.0), column(0.1, 0.9, 0.5, 0.3, 1.0)
    a = surrogate.curvature(m, np.zeros_like(m))
    slope = a * m - surrogate.response(m, np.zeros_like(m), q, a)
    np.testing.assert_allclose(slope, expit(m) - q, rtol=0.0, atol=1e-12)


class WithoutLinearTerm(Newton):
    def response(self, m, s, q, a):
        return a * m


class WrongSign(Bohning):
    def response(self, m, s, q, a):
        return a * m - (q - expit(m))


def test_models_have_the_gradient_of_what_they_replace():
    for surrogate in COMPLETE:
        check_gradient_at_the_mean(surrogate)
    for broken in (AsPrinted(), WithoutLinearTerm(), WrongSign()):
        rejects(check_gradient_at_the_mean, broken)


def test_as_printed_is_newton_without_the_linear_term():
    m, s, q = column(-1.0, 0.5), column(1.0, 2.0), column(0.2, 0.9)
    np.testing.assert_array_equal(AsPrinted().curvature(m, s), Newton().curvature(m, s))
    np.testing.assert_array_equal(AsPrinted().response(m, s, q, AsPrinted().curvature(m, s)), np.zeros((2, 1)))
    assert (Newton().response(m, s, q, Newton().curvature(m, s)) != 0.0).all()


def test_shared_curvature_is_one_column():
    m, s = np.ones((5, 3)), np.ones((5, 1))
    assert Bohning().curvature(m, s).shape == (5, 1)
    assert all(surrogate.curvature(m, s).shape == (5, 3) for surrogate in (Jaakkola(), Newton(), AsPrinted()))
    assert [surrogate.shared_curvature for surrogate in (Bohning(), Jaakkola(), Newton(), AsPrinted())] == [
        True,
        False,
        False,
        False,
    ]


def brute_force(function, m, s):
    """E function(f) for f ~ N(m, s), by adaptive integration over twelve deviations."""
    deviation = np.sqrt(s)

    def integrand(f):
        return float(function(np.array(f))) * np.exp(-0.5 * ((f - m) / deviation) ** 2)

    ends = (m - 12.0 * deviation, m + 12.0 * deviation)
    kinks = sorted({m, float(np.clip(0.0, *ends))})
    value, _ = quad(integrand, *ends, points=kinks, limit=400, epsabs=1e-13)
    return value / (deviation * np.sqrt(2.0 * np.pi))


EXPECTATIONS = [
    (expected_log_partition, log_partition),
    (expected_logistic, expit),
    (expected_curvature, logistic_curvature),
]


def check_quadrature(expected, function, m, s, atol):
    np.testing.assert_allclose(expected(column(m), column(s))[0, 0], brute_force(function, m, s), rtol=0.0, atol=atol)


@pytest.mark.parametrize(("expected", "function"), EXPECTATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("s", "atol"), [(1e-4, 1e-11), (0.5, 1e-12), (2.25, 1e-12), (10.0, 1e-6), (30.0, 1e-4)])
@pytest.mark.parametrize("m", [-4.0, 0.1, 0.3, 6.0])
def test_the_quadrature_is_the_integral(expected, function, m, s, atol):
    check_quadrature(expected, function, m, s, atol)
    if s >= 0.5:
        rejects(check_quadrature, lambda a, b: function(a), function, m, s, atol)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(m=FINITE_SCORES, s=st.floats(0.0, 1e4))
def test_the_expected_curvature_is_one_of_a_logistic_function(m, s):
    assert 0.0 <= expected_curvature(column(m), column(s))[0, 0] <= 0.25 + 1e-10


def check_derivatives_of_the_expectation(surrogate):
    """Its model has the derivatives of E A(f): a m - b in the mean (with q = ½) and a/2 in the variance."""
    m, s, h = column(-3.0, -0.2, 0.0, 0.7, 5.0), column(0.4, 2.0, 5.0, 0.1, 1.0), 1e-5
    a = surrogate.curvature(m, s)
    slope = a * m - surrogate.response(m, s, np.full_like(m, 0.5), a)
    in_mean = (surrogate.energy(m + h, s) - surrogate.energy(m - h, s)) / (2.0 * h)
    in_variance = (surrogate.energy(m, s + h) - surrogate.energy(m, s - h)) / (2.0 * h)
    np.testing.assert_allclose(slope, in_mean, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(0.5 * a, in_variance, rtol=0.0, atol=1e-8)


class MeanCurvature(Quadrature):
    def curvature(self, m, s):
        return logistic_curvature(m)


def test_the_model_of_the_quadrature_has_its_derivatives():
    check_derivatives_of_the_expectation(Quadrature())
    check_derivatives_of_the_expectation(Jaakkola())
    rejects(check_derivatives_of_the_expectation, MeanCurvature())


def test_the_bounds_are_above_the_quadrature_and_touch_it_without_variance():
    m, s = np.linspace(-8.0, 8.0, 33)[:, None], np.full((33, 1), 2.25)
    exact = Quadrature().energy(m, s)
    assert (Jaakkola().energy(m, s) > exact).all()
    assert (Bohning().energy(m, s) > exact).all()
    assert (log_partition(m) < exact).all()
