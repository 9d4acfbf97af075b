"""Certificates recomputed from outside: public attributes of a fit must satisfy the equations of docs/theory.md.

Kernels are computed here from the rows, not by the library. The consensus is the normalized geometric mean of the views
(E′), its mean over the unlabeled rows the class prior (C13), the dual variables of every view satisfy their optimality
conditions (C7), the posterior covariance is (B), the posterior mean solves (D), and the bound does not rise while λ and T
are fixed (C10).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

import cmvmed
from benchmarks.faults.campaign import HELD, Fault

CASES = {"ci": 60, "nightly": 3000}
CURVATURE = 0.25  # a of algorithm "bohning"
RISE_TOLERANCE = 1e-9  # of the objective
KKT_TOLERANCE = 1e-6  # in units of margin
EQUATION_TOLERANCE = 1e-5  # relative to the largest score, at the fixed point


@dataclass(frozen=True)
class Case:
    """A certificate, and the fit that it is computed for."""

    certificate: str = "monotony"
    seed: int = 0
    n_rows: int = 20
    n_labeled: int = 8
    n_classes: int = 2
    n_views: int = 2
    algorithm: str = "bohning"
    temperature: float = 1.0
    C: float = 1.0
    prior_variance: float = 1.0
    bias_variance: float = 0.1
    consensus_weight: float = 0.5
    weighted: bool = False
    missing: bool = False


@dataclass(frozen=True)
class Fit:
    """A fitted model and what it was fitted to."""

    case: Case
    model: Any
    views: list[np.ndarray]
    y: np.ndarray
    weights: np.ndarray

    @property
    def unlabeled(self) -> np.ndarray:
        """Numbers of the unlabeled rows."""
        return np.flatnonzero(self.y < 0)

    def rows(self, view: int, chosen: np.ndarray) -> np.ndarray:
        """Those of the chosen rows that have the view."""
        return chosen[~np.isnan(self.views[view][chosen, 0])]

    def kernel(self, view: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The kernel exp(-γ‖x - x'‖²) between rows, and the bias σ_b²/σ²."""
        x = self.views[view]
        squared = ((x[first][:, None] - x[second][None]) ** 2).sum(axis=2)
        return np.exp(-GAMMA * squared) + self.case.bias_variance / self.case.prior_variance

    def means(self, view: int, rows: np.ndarray) -> np.ndarray:
        """The posterior means (n, F); there is no offset without a class prior."""
        scores = self.model.decision_function_by_view(self.views)[f"view{view}"]
        return np.asarray(scores).reshape(self.y.size, -1)[rows]


GAMMA = 0.2


def draw(rng: np.random.Generator, number: int) -> Case:
    """Certificates take turns."""
    name = list(CERTIFICATES)[number % len(CERTIFICATES)]
    algorithms = {"monotony": ["bohning", "jaakkola"], "optimality": ["bohning", "jaakkola", "exact"]}
    n_classes = int(rng.choice([2, 2, 3]))
    return Case(
        certificate=name,
        seed=int(rng.integers(2**31)),
        n_rows=int(rng.integers(12, 36)),
        n_labeled=int(rng.integers(4, 11)),
        n_classes=n_classes,
        n_views=int(rng.choice([1, 2, 2, 3])),
        algorithm=str(rng.choice(algorithms.get(name, ["bohning"]))),
        temperature=float(rng.choice([1.0, 0.5, 0.2])),
        C=float(rng.choice([0.1, 1.0, 10.0])),
        prior_variance=float(rng.choice([0.5, 1.0, 5.0])),
        bias_variance=float(rng.choice([0.0, 0.1, 1.0])),
        consensus_weight=float(rng.choice([0.1, 0.5, 1.0])),
        weighted=bool(rng.random() < 0.3),
        missing=bool(rng.random() < 0.3),
    )


def check(case: Case) -> str:
    """Fit, and recompute the certificate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error, tolerance = CERTIFICATES[case.certificate](case)
    if not error <= tolerance:
        raise Fault(f"{case.certificate} ({case.algorithm})", f"error {error:.3g}, allowed {tolerance:g}")
    return HELD


def fit(case: Case, **parameters: Any) -> Fit:
    """The consensus alone, with kernels that can be recomputed."""
    rng = np.random.default_rng(case.seed)
    codes = np.r_[np.arange(case.n_classes), rng.integers(case.n_classes, size=case.n_rows - case.n_classes)]
    views = [
        rng.normal(size=(case.n_rows, 3)) + 1.5 * rng.normal(size=(case.n_classes, 3))[codes]
        for _ in range(case.n_views)
    ]
    if case.missing and case.n_views > 1:
        views[0][rng.integers(case.n_classes, case.n_rows, size=3)] = np.nan
    y = np.where(np.arange(case.n_rows) < case.n_labeled, codes, -1)
    weights = rng.integers(1, 4, case.n_rows).astype(float) if case.weighted else np.ones(case.n_rows)
    settings = {
        "kernel": "rbf",
        "gamma": GAMMA,
        "scaling": None,
        "prior_variance": case.prior_variance,
        "C": case.C,
        "bias_variance": case.bias_variance,
        "consensus_weight": case.consensus_weight,
        "temperature": case.temperature,
        "class_prior": None,
        "view_weights": "uniform",
        "members": None,
        "algorithm": case.algorithm,
        "n_stages": 2,
    }
    model = cmvmed.CMVMED(**(settings | parameters)).fit(views, y, sample_weight=weights)
    return Fit(case, model, views, y, weights)


def _monotony(case: Case) -> tuple[float, float]:
    """Rises of the objective within a stage, where λ and T are fixed, beyond the gap to which the duals are solved."""
    prior = "labels" if case.seed % 2 else None
    history = fit(case, class_prior=prior, tol=0.0, max_iter=20).model.history_
    same = np.diff(history["stage"]) == 0
    rises = (np.diff(history["objective"]) - history["dual_gap"][1:]) / (1.0 + np.abs(history["objective"][1:]))
    return float(rises[same].max(initial=0.0)), RISE_TOLERANCE


def _geometric_mean(case: Case) -> tuple[float, float]:
    """q ∝ Π p_i^{π_i} over the views that a row has, with weights that sum to 1 (E′)."""
    found = fit(case)
    by_view = found.model.predict_proba_by_view(found.views)
    present = np.array([~np.isnan(view[:, 0]) for view in found.views])
    weights = found.model.view_weights_[:, None] * present
    weights = weights / weights.sum(axis=0)
    logs = np.array([np.log(np.maximum(p, 1e-300)) for p in by_view.values()])
    pooled = (weights[:, :, None] * logs).sum(axis=0)
    q = np.exp(pooled - pooled.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    difference = np.abs(q - found.model.label_distributions_)[found.unlabeled]
    return float(difference.max()), 1e-9


def _class_shares(case: Case) -> tuple[float, float]:
    """The mean of q over the unlabeled rows is the class prior (C13)."""
    found = fit(case, class_prior="labels")
    rows = found.unlabeled
    if rows.size * found.model.class_prior_.min() < 1.0:
        return 0.0, 0.0  # no prior is imposed
    psi = sum(
        weight * ~np.isnan(view[rows, 0]) for weight, view in zip(found.model.view_weights_, found.views, strict=True)
    )
    mass = found.weights[rows] * psi
    shares = mass @ found.model.label_distributions_[rows] / mass.sum()
    return float(np.abs(shares - found.model.class_prior_).max()), 1e-7


def _signs(found: Fit) -> np.ndarray:
    """Labels ±1 (n, F): of the second class, or one column per class."""
    if found.case.n_classes == 2:
        return np.where(found.y == 1, 1.0, -1.0)[:, None]
    return np.where(found.y[:, None] == np.arange(found.case.n_classes), 1.0, -1.0)


def _multipliers(found: Fit, view: int) -> tuple[np.ndarray, np.ndarray]:
    """Labeled rows of a view, and their τ = y∘α, (l, F)."""
    name, signs = f"view{view}", _signs(found)
    rows = found.rows(view, np.flatnonzero(found.y >= 0))
    tau = np.zeros((found.y.size, signs.shape[1]))
    tau[found.model.support_[name]] = found.model.dual_coef_[name].T
    return rows, tau[rows]


def _optimality(case: Case) -> tuple[float, float]:
    """0 ≤ α ≤ C; α = 0 ⇒ ym ≥ 1, 0 < α < C ⇒ ym = 1, α = C ⇒ ym ≤ 1 (C7)."""
    found, worst = fit(case), 0.0
    for view in range(case.n_views):
        rows, tau = _multipliers(found, view)
        signs = _signs(found)[rows]
        box = case.C * found.weights[rows][:, None]
        share, margin = signs * tau / box, signs * found.means(view, rows) - 1.0
        outside = np.maximum(-share, share - 1.0).max(initial=0.0)
        too_small = np.where(share < 1.0 - 1e-6, -margin, 0.0).max(initial=0.0)
        too_large = np.where(share > 1e-6, margin, 0.0).max(initial=0.0)
        worst = max(worst, outside, too_small, too_large)
    return float(worst), KKT_TOLERANCE


def _covariance(case: Case) -> tuple[float, float]:
    """S = σ²(K - K_xU r B⁻¹ r K_Ux), r² = λσ²wa, B = I + rK_UU r (B)."""
    found, worst, sigma2 = fit(case), 0.0, case.prior_variance
    covariances = found.model.posterior_covariance_by_view(found.views)
    for view in range(case.n_views):
        rows, U = found.rows(view, np.arange(case.n_rows)), found.rows(view, found.unlabeled)
        r = np.sqrt(found.model.consensus_weight_ * sigma2 * found.weights[U] * CURVATURE)
        K_xx, K_xU = found.kernel(view, rows, rows), found.kernel(view, rows, U) * r
        B = np.eye(U.size) + r[:, None] * found.kernel(view, U, U) * r
        S = sigma2 * (K_xx - K_xU @ np.linalg.solve(B, K_xU.T))
        known = np.asarray(covariances[f"view{view}"]).reshape(-1, case.n_rows, case.n_rows)
        worst = max(worst, *(float(np.abs(own[np.ix_(rows, rows)] - S).max()) for own in known))
    return worst, 1e-8


def _mean(case: Case) -> tuple[float, float]:
    """At a fixed point m = σ²(K_L τ + λK_U w(q - σ(m_U))): (D) with b - am = q - σ(m)."""
    found, worst = fit(case, tol=0.0, max_iter=3000, n_stages=1), 0.0
    history = found.model.history_
    lam = float(history["consensus_weight"][-1])
    q = found.model.label_distributions_
    q = q[:, 1:] if case.n_classes == 2 else q
    for view in range(case.n_views):
        L, tau = _multipliers(found, view)
        U = found.rows(view, found.unlabeled)
        m_U = found.means(view, U)
        gamma = lam * found.weights[U][:, None] * (q[U] - expit(m_U))
        m = case.prior_variance * (found.kernel(view, U, L) @ tau + found.kernel(view, U, U) @ gamma)
        worst = max(worst, float(np.abs(m - m_U).max() / max(1.0, np.abs(m_U).max())))
    return worst, EQUATION_TOLERANCE


def _independent(case: Case) -> tuple[float, float]:
    """With λ = 0 the score of a view is that of its MED (C11)."""
    found, worst = fit(case, consensus_weight=0.0), 0.0
    settings = {name: found.model.get_params()[name] for name in ("kernel", "gamma", "scaling", "prior_variance", "C")}
    labeled = found.y >= 0
    for view in range(case.n_views):
        rows = found.rows(view, np.arange(case.n_rows))
        if np.unique(found.y[rows][labeled[rows]]).size < case.n_classes:
            continue
        model = cmvmed.MED(**settings, bias_variance=case.bias_variance)
        model.fit(found.views[view][rows], found.y[rows], sample_weight=found.weights[rows])
        scores = np.asarray(model.decision_function(found.views[view][rows])).reshape(rows.size, -1)
        worst = max(worst, float(np.abs(scores - found.means(view, rows)).max()))
    return worst, 1e-7


CERTIFICATES: dict[str, Callable[[Case], tuple[float, float]]] = {
    "monotony": _monotony,
    "geometric mean": _geometric_mean,
    "class shares": _class_shares,
    "optimality": _optimality,
    "covariance": _covariance,
    "mean": _mean,
    "independent views": _independent,
}
