"""What a fit lets one take out: dual coefficients, covariances, divergences, disagreement; each recomputed from the data."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, logsumexp, rel_entr, softmax
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from cmvmed import CMVMED
from tests.core.factories import rejects
from tests.estimators.algorithms import ALGORITHMS, with_algorithm

VIEWS = {"a": slice(0, 3), "b": slice(3, 5)}
GAMMA, SIGMA2, BIAS = 0.02, 1.7, 0.3
PLAIN = {
    "views": VIEWS,
    "kernel": "rbf",
    "gamma": GAMMA,
    "scaling": None,
    "prior_variance": SIGMA2,
    "bias_variance": BIAS,
    "members": None,
}
CONSENSUS = {"views": VIEWS, "members": "consensus", "view_weights": {"a": 3, "b": 1}}


def kernel(X, Z, name):
    """The kernel of a view with its bias, by scikit-learn."""
    return rbf_kernel(X[:, VIEWS[name]], Z[:, VIEWS[name]], gamma=GAMMA) + BIAS / SIGMA2


def functions_of(y, n_classes):
    """Labels ±1 of each function, (F, n)."""
    return (
        np.where(y == 1, 1.0, -1.0)[None] if n_classes == 2 else np.where(y == np.arange(n_classes)[:, None], 1.0, -1.0)
    )


@pytest.fixture(params=["partly", "partly_three"])
def data(request):
    return request.getfixturevalue(request.param)


# ------------------------------------------------------------------ the consensus as a geometric mean


def weighted_divergence(q, views, weights):
    """Σ π_i KL(q ‖ p_i) of each row."""
    return sum(weight * rel_entr(q, p).sum(axis=1) for weight, p in zip(weights, views, strict=True))


def check_is_geometric_mean(model, X, weights):
    views = list(model.predict_proba_by_view(X).values())
    q = model.predict_proba_by_member(X)["consensus"]
    log_mean = sum(weight * np.log(p) for weight, p in zip(weights, views, strict=True))
    np.testing.assert_allclose(q, softmax(log_mean, axis=1), rtol=0.0, atol=1e-10)
    least = weighted_divergence(q, views, weights)
    np.testing.assert_allclose(least, -logsumexp(log_mean, axis=1), rtol=0.0, atol=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = rng.dirichlet(np.ones(q.shape[1]), size=len(q))
        np.testing.assert_allclose(  # Pythagoras: what another distribution adds is its divergence from the center
            weighted_divergence(other, views, weights), least + rel_entr(other, q).sum(axis=1), rtol=1e-7, atol=1e-9
        )


@pytest.mark.parametrize("settings", [{}, {"members": None, "class_prior": None}, {"temperature": 1.0}], ids=str)
def test_the_consensus_is_the_normalized_geometric_mean_of_the_views(data, settings):
    model = CMVMED(**(CONSENSUS | settings)).fit(data.X, data.y)
    check_is_geometric_mean(model, data.X, [0.75, 0.25])
    np.testing.assert_allclose(
        model.predict_proba(data.X), model.predict_proba_by_member(data.X)["consensus"], rtol=0.0, atol=1e-12
    )
    rejects(check_is_geometric_mean, model, data.X, [0.5, 0.5])


def test_the_consensus_is_so_as_one_of_several_members_too(data):
    model = CMVMED(**(CONSENSUS | {"members": ["views", "consensus"]})).fit(data.X, data.y)
    check_is_geometric_mean(model, data.X, [0.75, 0.25])
    assert np.abs(model.predict_proba(data.X) - model.predict_proba_by_member(data.X)["consensus"]).max() > 1e-3


def test_the_mean_of_the_views_probabilities_is_another_distribution(data):
    model = CMVMED(**CONSENSUS).fit(data.X, data.y)
    views = model.predict_proba_by_view(data.X)
    assert np.abs(0.75 * views["a"] + 0.25 * views["b"] - model.predict_proba(data.X)).max() > 0.01


def last_divergences(model, X):
    """Mean KL(consensus ‖ view) over the rows, by the probabilities that the model gives."""
    q = model.predict_proba(X)
    return [rel_entr(q, p).sum(axis=1).mean() for p in model.predict_proba_by_view(X).values()]


def test_the_history_has_the_divergence_of_each_view(data):
    model = CMVMED(**(CONSENSUS | {"members": None}), tol=0.0, max_iter=300, n_stages=2).fit(data.X, data.y)
    kl = model.history_["kl_by_view"]
    assert kl.shape == (model.n_iter_, 2)
    np.testing.assert_allclose(kl[-1], last_divergences(model, data.X[data.hidden]), rtol=1e-4)
    assert model.history_["consensus_term"].shape == (model.n_iter_,)
    assert model.history_["consensus_term"][0] == 0.0


def test_the_consensus_brings_the_views_together(data):
    """At equal temperature, the last consensus is nearer to both views than that of the independent classifiers."""
    model = CMVMED(**(CONSENSUS | {"members": None}), temperature=1.0, consensus_weight=1.0).fit(data.X, data.y)
    kl = model.history_["kl_by_view"]
    assert (kl[-1] < 0.8 * kl[0]).all()


def test_the_consensus_term_is_a_part_of_the_objective(partly):
    strong = CMVMED.paper(views=VIEWS, algorithm="exact").fit(partly.X, partly.y)
    term = strong.history_["consensus_term"]
    assert (term[1:] > 0.0).all()  # at T = 1 it is a sum of divergences
    assert (term <= strong.objective_history_ + 1e-12).all()


# ------------------------------------------------------------------ dual coefficients


def response(algorithm, m, s, q):
    """b of the table in section 3 of docs/theory.md; expectations by quadrature with another number of nodes."""
    if algorithm == "jaakkola":
        return q - 0.5
    if algorithm == "bohning":
        return 0.25 * m + q - expit(m)
    nodes, weights = np.polynomial.hermite_e.hermegauss(50)
    p = expit(m[:, None] + np.sqrt(s)[:, None] * nodes)
    weights = weights / weights.sum()
    return (p * (1.0 - p)) @ weights * m + q - p @ weights


def check_means(model, data):
    """m = λ S_·U b + S_·L τ for all rows: (B) and (C) with the covariance and coefficients that the model gives."""
    hidden, X = data.hidden, data.X
    q = model.predict_proba(X[hidden])
    q = q[:, 1:] if q.shape[1] == 2 else q
    covariances = model.posterior_covariance_by_view(X)
    for name, scores in model.decision_function_by_view(X).items():
        m = scores.reshape(len(X), -1) - model._model.score_offset
        S = covariances[name].reshape(-1, len(X), len(X))
        tau = np.zeros((len(S), len(X)))
        tau[:, model.support_[name]] = model.dual_coef_[name]
        for c, own in enumerate(S):
            b = response(model.algorithm, m[hidden, c], np.diag(own)[hidden], q[:, c])
            expected = model.consensus_weight_ * own[:, hidden] @ b + own @ tau[c]
            np.testing.assert_allclose(m[:, c], expected, rtol=0.0, atol=1e-4)


def check_optimality(model, data):
    """α = 0 where y m >= 1, α = C where y m <= 1, between them where y m = 1."""
    for name, scores in model.decision_function_by_view(data.X).items():
        m = (scores.reshape(len(data.X), -1) - model._model.score_offset).T
        signs = functions_of(data.y, len(model.classes_))
        alpha = np.zeros_like(m)
        alpha[:, model.support_[name]] = model.dual_coef_[name] * signs[:, model.support_[name]]
        margin, alpha = (signs * m)[:, ~data.hidden], alpha[:, ~data.hidden]
        assert (margin[alpha < model.C - 1e-9] >= 1.0 - 1e-6).all()
        assert (margin[alpha > 1e-9] <= 1.0 + 1e-6).all()


@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola", "exact"])
def test_coefficients_and_covariance_give_the_scores(algorithm, data):
    model = CMVMED(**PLAIN, C=0.2, algorithm=algorithm, tol=1e-11, max_iter=3000, n_stages=2).fit(data.X, data.y)
    check_means(model, data)
    check_optimality(model, data)
    model.dual_coef_["a"] = 0.9 * model.dual_coef_["a"]
    rejects(check_means, model, data)
    model.dual_coef_["a"] = np.zeros_like(model.dual_coef_["a"])
    rejects(check_optimality, model, data)


def test_without_a_consensus_the_coefficients_are_those_of_a_support_vector_machine(partly):
    from sklearn.svm import LinearSVC

    model = CMVMED(**PLAIN | {"kernel": "linear", "consensus_weight": 0.0, "bias_variance": 0.0}).fit(
        partly.X, partly.y
    )
    labeled = ~partly.hidden
    for name, columns in VIEWS.items():
        rows = partly.X[:, columns]
        svm = LinearSVC(loss="hinge", fit_intercept=False, C=SIGMA2, tol=1e-10, max_iter=10**6)
        svm.fit(rows[labeled], partly.y[labeled])
        w = SIGMA2 * model.dual_coef_[name] @ rows[model.support_[name]]
        np.testing.assert_allclose(w, svm.coef_, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_coefficients_are_labels_times_variables_in_the_box(algorithm, data):
    model = with_algorithm(algorithm, views=VIEWS, C=0.8).fit(data.X, data.y)
    signs = functions_of(data.y, len(model.classes_))
    for name in VIEWS:
        support, tau = model.support_[name], model.dual_coef_[name]
        assert tau.shape == (len(signs), support.size)
        assert not data.hidden[support].any()
        alpha = tau * signs[:, support]
        assert alpha.min() >= 0.0
        assert alpha.max() <= 0.8 + 1e-12
        assert (alpha.max(axis=0) > 0.0).all()


def test_rows_without_a_view_are_no_support_of_it(partly):
    X = partly.X.copy()
    X[:4, VIEWS["b"]] = np.nan
    model = CMVMED(**PLAIN).fit(X, partly.y)
    assert set(model.support_["b"]) <= set(range(4, 10))
    assert set(model.support_["a"]) & set(range(4))


# ------------------------------------------------------------------ covariances and K-tilde


def dense_covariance(model, data, name, curvature):
    """(1/σ² K⁻¹-free) posterior covariance of all rows for one function: S = σ²(K - K_·U (A⁻¹/σ²λ + K_UU)⁻¹ K_U·)."""
    U = np.flatnonzero(data.hidden)
    K = kernel(data.X, data.X, name)
    middle = np.diag(1.0 / (model.consensus_weight_ * SIGMA2 * curvature)) + K[np.ix_(U, U)]
    return SIGMA2 * (K - K[:, U] @ np.linalg.solve(middle, K[U]))


def check_covariance(model, data, kind, curvature_of):
    scores = model.decision_function_by_view(data.X[data.hidden])
    found = model.posterior_covariance_by_view(data.X, curvature=kind)
    for name in VIEWS:
        m = scores[name].reshape(data.hidden.sum(), -1) - model._model.score_offset
        S = found[name].reshape(m.shape[1], len(data.X), len(data.X))
        for c in range(m.shape[1]):
            expected = dense_covariance(model, data, name, curvature_of(m[:, c]))
            np.testing.assert_allclose(S[c], expected, rtol=0.0, atol=1e-9)


def logistic(m):
    return softmax(np.stack([m, 0.0 * m]), axis=0).prod(axis=0)


def quarter(m):
    return np.full(m.size, 0.25)


def test_the_covariance_is_the_dense_formula(data):
    model = CMVMED(**PLAIN).fit(data.X, data.y)
    check_covariance(model, data, "fitted", quarter)
    check_covariance(model, data, "logistic", logistic)
    rejects(check_covariance, model, data, "fitted", logistic)
    rejects(check_covariance, model, data, "logistic", quarter)


def test_the_covariance_is_of_the_deviations(data):
    for algorithm in ("bohning", "exact"):
        model = CMVMED(**PLAIN, algorithm=algorithm).fit(data.X, data.y)
        found = model.posterior_covariance_by_view(data.X)
        for name, (_, deviation) in model.decision_function_by_view(data.X, return_std=True).items():
            S = found[name].reshape(-1, len(data.X), len(data.X))
            variance = np.reshape(deviation.T, (len(S), -1)) ** 2
            np.testing.assert_allclose(np.diagonal(S, axis1=1, axis2=2), variance, rtol=1e-9)
            np.testing.assert_allclose(S, np.swapaxes(S, 1, 2), rtol=0.0, atol=1e-12)
            assert np.linalg.eigvalsh(S).min() > -1e-9


def test_the_covariance_over_the_prior_variance_is_the_papers_kernel(partly):
    """K-tilde of paper eq. (6), K_L - λ k_ULᵀ [M⁻¹/σ² + λ K_U]⁻¹ k_UL with M = diag(ν), on the labeled rows."""
    model = CMVMED.paper(views=VIEWS, gamma=GAMMA, scaling=None, prior_variance=SIGMA2).fit(partly.X, partly.y)
    lam, labeled, unlabeled = model.consensus_weight_, partly.X[~partly.hidden], partly.X[partly.hidden]
    found = model.posterior_covariance_by_view(labeled, curvature="logistic")
    for i, (name, columns) in enumerate(VIEWS.items()):
        K_L, K_U, k_UL = (
            rbf_kernel(first[:, columns], second[:, columns], gamma=GAMMA)
            for first, second in ((labeled, labeled), (unlabeled, unlabeled), (unlabeled, labeled))
        )
        M = np.diag(logistic(model.decision_function_by_view(unlabeled)[name]))
        expected = K_L - lam * k_UL.T @ np.linalg.inv(np.linalg.inv(M) / SIGMA2 + lam * K_U) @ k_UL
        assert model.prior_variance_[i] == SIGMA2
        np.testing.assert_allclose(found[name] / model.prior_variance_[i], expected, rtol=0.0, atol=1e-9)


def test_rows_without_the_view_have_no_covariance(partly):
    X = partly.X.copy()
    X[3, VIEWS["b"]] = np.nan
    model = CMVMED(**PLAIN).fit(X, partly.y)
    found = model.posterior_covariance_by_view(X[:6])
    assert np.isfinite(found["a"]).all()
    missing = np.isnan(found["b"])
    assert missing[3].all()
    assert missing[:, 3].all()
    assert missing.sum() == 11


def test_low_rank_features_give_the_same_covariance_if_every_row_is_a_landmark(data):
    exact = CMVMED(**PLAIN | {"prior_variance": 3.0}, approximation="exact").fit(data.X, data.y)
    settings = PLAIN | {"prior_variance": 3.0, "approximation": len(data.y)}
    low_rank = CMVMED(**settings).fit(data.X, data.y)
    new = data.X[::3] + 0.5
    for name, S in exact.posterior_covariance_by_view(new).items():
        np.testing.assert_allclose(low_rank.posterior_covariance_by_view(new)[name], S, rtol=0.0, atol=1e-6)
    with pytest.raises(
        ValueError, match=r'low-rank kernel .* use curvature="fitted", or fit with approximation="exact"'
    ):
        low_rank.posterior_covariance_by_view(new, curvature="logistic")


def test_what_cannot_be_given_is_refused(partly):
    model = CMVMED(**PLAIN)
    with pytest.raises(NotFittedError):
        model.posterior_covariance_by_view(partly.X)
    model.fit(partly.X, partly.y)
    with pytest.raises(ValueError, match="curvature must be one of 'fitted', 'logistic', but is 'exact'"):
        model.posterior_covariance_by_view(partly.X, curvature="exact")
    K = [kernel(partly.X, partly.X, name) for name in VIEWS]
    given = CMVMED(kernel="precomputed", members="consensus").fit(K, partly.y)
    assert set(given.dual_coef_) == {"view0", "view1"}
    with pytest.raises(ValueError, match=r"'view0' has a precomputed kernel.* no standard deviation or covariance"):
        given.posterior_covariance_by_view(K)


# ------------------------------------------------------------------ disagreement


def check_disagreement(model, data):
    """Rates by a loop over the classes that each view predicts for the unlabeled rows."""
    table = model.disagreement_
    rows = data.X[data.hidden]
    codes = {name: p.argmax(axis=1) for name, p in model.predict_proba_by_view(rows).items()}
    assert list(zip(table["view"], table["other"], strict=True)) == [("a", "b"), ("b", "a")]
    for k, (view, other) in enumerate(zip(table["view"], table["other"], strict=True)):
        unequal = codes[view] != codes[other]
        assert table["rate"][k] == pytest.approx(unequal.mean())
        bound = 0.0
        for c, share in enumerate(model.class_prior_):
            chosen = codes[other] == c
            d = unequal[chosen].mean() if chosen.any() else np.nan
            assert table["rate_by_class"][k, c] == pytest.approx(d, nan_ok=True)
            bound += share * (d / (1.0 - 2.0 * d) if d < 1.0 / 3.0 else 1.0)
        assert table["error_bound"][k] == pytest.approx(bound)


def test_the_disagreement_of_the_views_on_the_unlabeled_rows(data):
    model = CMVMED(views=VIEWS).fit(data.X, data.y)
    check_disagreement(model, data)
    model.disagreement_["rate"] = model.disagreement_["rate"] + 0.1
    rejects(check_disagreement, model, data)


def test_a_single_view_has_nobody_to_disagree_with(partly):
    table = CMVMED().fit(partly.X, partly.y).disagreement_
    assert table["view"] == []
    assert table["rate"].shape == (0,)
    assert table["rate_by_class"].shape == (0, 2)


# ------------------------------------------------------------------ many rows, copies


def test_fits_that_are_continued_on_all_rows_number_the_support_among_them():
    from dataclasses import replace

    from cmvmed.auto.tuning import Tuning, tuning_context

    rng = np.random.default_rng(0)
    truth = rng.permutation(3000) % 2
    X = 2.0 * truth[:, None] + rng.normal(size=(3000, 5))
    y = np.full(3000, -1)
    labeled = np.sort(rng.choice(3000, 24, replace=False))
    y[labeled] = truth[labeled]
    with tuning_context(replace(Tuning(), max_exact_rows=500, sample_rows=600)):
        model = CMVMED(views=VIEWS, approximation=60, members=None).fit(X, y)  # without a calibration
    assert model.approximation_["n_annealed"] == 600
    assert model.history_["kl_by_view"].shape == (model.n_iter_, 2)
    for name in VIEWS:
        support = model.support_[name]
        assert set(support) <= set(labeled)
        assert (np.sign(model.dual_coef_[name][0]) == np.where(y[support] == 1, 1.0, -1.0)).all()
    rates = model.disagreement_["rate"]
    codes = [p.argmax(axis=1) for p in model.predict_proba_by_view(X[y == -1]).values()]
    assert rates[0] == pytest.approx((codes[0] != codes[1]).mean(), abs=0.06)
    q = model.predict_proba_by_member(X[y == -1])["consensus"]
    views = model.predict_proba_by_view(X[y == -1])
    assert model.history_["n_rows"][-1] == 3000 - 24
    for i, p in enumerate(views.values()):
        expected = rel_entr(q, p).sum(axis=1).mean()
        assert model.history_["kl_by_view"][-1, i] == pytest.approx(expected, rel=0.05)


def test_a_pickled_model_has_the_same_attributes(partly):
    model = CMVMED(views=VIEWS).fit(partly.X, partly.y)
    copy = pickle.loads(pickle.dumps(model))
    for name in VIEWS:
        np.testing.assert_array_equal(copy.dual_coef_[name], model.dual_coef_[name])
        np.testing.assert_array_equal(
            copy.posterior_covariance_by_view(partly.X)[name], model.posterior_covariance_by_view(partly.X)[name]
        )
