"""Small two-view problems with explicit feature maps, and primal solutions of the baselines by a second solver."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import clarabel
import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Views:
    """Rows seen by several views: features Phi_v of the rows ``rows_v``, labels y (0 where unlabeled) and weights."""

    Phi: tuple[np.ndarray, ...]  # per view (m_v, p_v)
    rows: tuple[np.ndarray, ...]  # per view (m_v,)
    y: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)

    @property
    def kernels(self):
        return [Phi @ Phi.T for Phi in self.Phi]


def draw_views(seed, *, n_labeled=14, n_unlabeled=0, widths=(4, 3), missing=0.0, weighted=False):
    """Noisy class centers; every row keeps at least one view."""
    rng = np.random.default_rng(seed)
    n = n_labeled + n_unlabeled
    truth = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    present = rng.uniform(size=(len(widths), n)) >= missing
    present[rng.integers(len(widths), size=n), np.arange(n)] = True
    rows = tuple(np.flatnonzero(seen) for seen in present)
    Phi = tuple(
        0.7 * truth[index, None] * rng.normal(size=width) + rng.normal(size=(index.size, width))
        for index, width in zip(rows, widths, strict=True)
    )
    weights = rng.uniform(0.3, 2.0, n) if weighted else np.ones(n)
    return Views(Phi, rows, np.where(np.arange(n) < n_labeled, truth, 0.0), weights)


def score_tables(views, *, bias):
    """Per view (n, p): f_v of all rows as a linear function of the weights of all views; zero where it is missing."""
    blocks = [np.column_stack([Phi, np.ones((len(Phi), bias))]) for Phi in views.Phi]
    starts = np.cumsum([0, *(block.shape[1] for block in blocks)])
    tables = [np.zeros((views.y.size, starts[-1])) for _ in blocks]
    for table, block, rows, start in zip(tables, blocks, views.rows, starts[:-1], strict=True):
        table[rows, start : start + block.shape[1]] = block
    return tables


def minimize_losses(P, losses):
    """Minimizer w and minimum of ½wᵀPw + Σ cost · max(0, direction·w - limit, ...).

    ``losses`` are (cost, [(direction, limit), ...]).
    """
    p, n = len(P), len(losses)
    pieces = [(k, direction, limit) for k, (_, parts) in enumerate(losses) for direction, limit in parts]
    G = np.zeros((len(pieces) + n, p + n))
    h = np.zeros(len(pieces) + n)
    for i, (k, direction, limit) in enumerate(pieces):
        G[i, :p], G[i, p + k], h[i] = direction, -1.0, limit
    G[len(pieces) :, p:] = -np.eye(n)
    quadratic = np.zeros((p + n, p + n))
    quadratic[:p, :p] = P
    linear = np.concatenate([np.zeros(p), [cost for cost, _ in losses]])
    x, value = solve_conic(quadratic, linear, G, h, [clarabel.NonnegativeConeT(len(h))])
    return x[:p], value


def svm2k_primal(views, *, C, D, epsilon, similar):
    """Minimum and scores per view (m_v,) of ½Σ‖w_v‖² + Σ C w [1 - y f_v]₊ + Σ D w [|f_A - f_B| - ε]₊.

    ``similar`` (n,) marks the rows over which the last sum runs, where they have both views.
    """
    A, B = tables = score_tables(views, bias=1)
    hinges = [
        (C * views.weights[n], [(-views.y[n] * table[n], -1.0)])
        for table, rows in zip(tables, views.rows, strict=True)
        for n in rows[views.y[rows] != 0.0]
    ]
    both = np.intersect1d(*views.rows)
    similarities = [
        (D * views.weights[n], [(A[n] - B[n], epsilon), (B[n] - A[n], epsilon)]) for n in both[similar[both]]
    ]
    penalty = np.concatenate([np.r_[np.ones(Phi.shape[1]), 0.0] for Phi in views.Phi])  # the bias is free
    w, value = minimize_losses(np.diag(penalty), hinges + similarities)
    return value, [table[rows] @ w for table, rows in zip(tables, views.rows, strict=True)]


def corls_quadratics(views, *, regularization, coupling):
    """P (p, p) with wᵀPw = Σ γ_v‖w_v‖² + Σ_unlabeled μ Σ_{v<u} (f_v - f_u)², and f̄ of all rows as a table (n, p)."""
    tables = score_tables(views, bias=0)
    present = np.array([np.isin(np.arange(views.y.size), rows) for rows in views.rows])
    widths = [Phi.shape[1] for Phi in views.Phi]
    P = np.diag(np.repeat(np.asarray(regularization, dtype=float), widths))
    for v, u in combinations(range(len(tables)), 2):
        both = present[v] & present[u] & (views.y == 0.0)
        difference = (tables[v] - tables[u])[both]
        P += coupling * (difference.T * views.weights[both]) @ difference
    return P, sum(tables) / present.sum(axis=0)[:, None]


def corls_primal(views, *, regularization, coupling, hinge):
    """Scores f̄ (n,) of argmin Σ w (y - f̄)² + wᵀPw or, with the hinge, Σ w [1 - y f̄]₊ + ½wᵀPw."""
    P, mean = corls_quadratics(views, regularization=regularization, coupling=coupling)
    L = np.flatnonzero(views.y)
    losses = [(views.weights[n], [(-views.y[n] * mean[n], -1.0)]) for n in L]
    solve = {
        True: lambda: minimize_losses(P, losses)[0],
        False: lambda: np.linalg.solve(
            P + (mean[L].T * views.weights[L]) @ mean[L], mean[L].T @ (views.weights * views.y)[L]
        ),
    }
    return mean @ solve[hinge]()


def mvmed_primal(views, *, c):
    """Minimum and scores per view of ½Σ‖w_v‖² + Σ_t w_t (c u_t - 1 - log(c u_t)), u_t >= 1 - y_t f_v for all v."""
    tables = score_tables(views, bias=0)
    n, p = tables[0].shape
    margins = [
        np.hstack([-views.y[rows, None] * table[rows], -np.eye(n)[rows], np.zeros((rows.size, n))])
        for table, rows in zip(tables, views.rows, strict=True)
    ]
    cones = np.zeros((3 * n, p + 2 * n))  # s = (log u, 1, u)
    cones[np.arange(0, 3 * n, 3), p + n + np.arange(n)] = -1.0
    cones[np.arange(2, 3 * n, 3), p + np.arange(n)] = -1.0
    G = np.vstack([*margins, cones])
    total = sum(map(len, margins))
    h = np.concatenate([-np.ones(total), np.tile([0.0, 1.0, 0.0], n)])
    P = np.diag(np.r_[np.ones(p), np.zeros(2 * n)])
    q = np.concatenate([np.zeros(p), c * views.weights, -views.weights])
    x, value = solve_conic(P, q, G, h, [clarabel.NonnegativeConeT(total), *[clarabel.ExponentialConeT()] * n])
    constant = views.weights.sum() * (1.0 + np.log(c))
    return value - constant, [table[rows] @ x[:p] for table, rows in zip(tables, views.rows, strict=True)]


def solve_conic(P, q, G, h, cones):
    """Minimizer and minimum of ½xᵀPx + qᵀx with h - Gx in the cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(sparse.csc_matrix(P), q, sparse.csc_matrix(G), h, cones, settings).solve()
    return np.array(solution.x), solution.obj_val
