"""Two classifiers that see the labeled rows through a kernel alone: ridge regression and linear discriminant analysis.

Both give coefficients a (l, K) and an intercept (K,), so that the score of a row x is Σ_i a_i k(x, x_i) + intercept.

**Ridge regression** to targets Y with weights w and ridge η has the coefficients AY, A = (K + diag(η/w))⁻¹. A fit without some
rows needs no other inverse of all rows: A_kk - A_ko (A_oo)⁻¹ A_ok.

**Discriminant analysis** scores a class by x·Σ⁻¹m - ½ m·Σ⁻¹m, with the class means m and the covariance Σ within the classes.
With few labels the latter is shrunk, Σ = (1 - δ) S + δ μ I, as far as Ledoit and Wolf (2004) find best for the rows at hand, but
at least by the share of the labels that the means use up, one for each class: the few that are left say little of δ, too. All of
it depends on the rows' products alone: with the residuals R of the rows from their class means, Σ⁻¹ is applied by Woodbury's
identity, which needs the inverse of one matrix of the size of the labels.
"""

import numpy as np

from cmvmed.numerics.types import Array, BoolArray, IntArray

NEGLIGIBLE = 1e-12  # scatter within the classes, relative to the whole, that is rounding


def inverse(gram: Array, weights: Array, ridge: float) -> Array:
    """A = (K + diag(η/w))⁻¹ for the kernel of the labeled rows (l, l) and their weights (l,)."""
    return np.asarray(np.linalg.inv(gram + np.diag(ridge / weights)), dtype=np.float64)


def ridge_coefficients(A: Array, targets: Array, kept: BoolArray) -> Array:
    """Coefficients (l, K) of the fit to the kept rows, zero for others; ``targets`` (l, K), ``A`` as from :func:`inverse`."""
    coefficients = np.zeros_like(targets)
    coefficients[kept] = without_rows(A, kept) @ targets[kept]
    return coefficients


def without_rows(A: Array, kept: BoolArray) -> Array:
    """The inverse of the kept rows and columns of A⁻¹."""
    if kept.all():
        return A
    to_left_out = A[np.ix_(kept, ~kept)]
    return np.asarray(A[np.ix_(kept, kept)] - to_left_out @ np.linalg.solve(A[np.ix_(~kept, ~kept)], to_left_out.T))


def discriminant_coefficients(
    gram: Array, codes: IntArray, weights: Array, n_classes: int, n_columns: int, kept: BoolArray
) -> tuple[Array, Array]:
    """Coefficients (l, K), zero for rows that are not kept, and intercepts (K,).

    Both are zero where no class has two kept rows that differ: nothing is then known of the covariance.

    Parameters
    ----------
    gram : (l, l), products of the labeled rows
    codes, weights : (l,), classes and weights
    n_columns : of the rows
    kept : (l,), the rows of this fit
    """
    coefficients, intercept = np.zeros((codes.size, n_classes)), np.zeros(n_classes)
    G, y, w = gram[np.ix_(kept, kept)], codes[kept], weights[kept]
    membership = np.eye(n_classes)[y]
    counts = w @ membership
    means = (membership * w[:, None] / np.where(counts > 0.0, counts, 1.0)).T  # C, so that M = CX
    root = np.sqrt(w)  # with Q = I - membership M, √w R = √w QX
    MG = means @ G
    MGQ = MG - (MG @ means.T) @ membership.T
    scatter = root[:, None] * (G - (G @ means.T) @ membership.T - membership @ MGQ) * root
    freedom = counts.sum() - (counts > 0.0).sum()
    total = float(np.trace(scatter))
    if not (freedom > 0.0 and total > NEGLIGIBLE * float(w @ np.abs(np.diagonal(G)))):
        return coefficients, intercept
    least, size = float(1.0 - freedom / counts.sum()), total / (freedom * n_columns)
    delta = max(shrinkage(scatter, w, float(freedom), n_columns), least)
    ratio = (1.0 - delta) / (freedom * delta * size)
    inner = root * np.linalg.solve(np.eye(y.size) + ratio * scatter, root[:, None] * MGQ.T).T
    solved = (means - ratio * (inner - (inner @ membership) @ means)) / (delta * size)
    coefficients[kept] = solved.T
    return coefficients, np.asarray(-0.5 * np.einsum("ki,ij,kj->k", solved, G, means))


def shrinkage(scatter: Array, weights: Array, freedom: float, n_columns: int) -> float:
    """δ: the share of the covariance's sampling error in its distance from a multiple of the identity.

    Parameters
    ----------
    scatter : (l, l), products of the residuals, each times the root of its weight
    freedom : number of rows less that of the classes
    """
    squared = float((scatter**2).sum()) / freedom**2
    distance = squared - (float(np.trace(scatter)) / freedom) ** 2 / n_columns
    error = float((np.diagonal(scatter) ** 2 / weights).sum()) / freedom**2 - squared / freedom
    return min(max(error / distance, 0.0), 1.0) if distance > 0.0 else 1.0
