"""Time of an exact fit against the bare LAPACK and BLAS calls of the method as it is written down, in the same run.

``python -m benchmarks.exact_cost`` fits two Gaussian views with 10 sweeps at |U| = 1000 and 3000, once with the bound of constant
curvature (one eigendecomposition per view, then two products with its vectors per sweep) and once with the
Jaakkola-Jordan bound (one Cholesky factorization and one triangular solve with all columns per view and sweep). The bare
calls work on the same kernel matrices. Fits and bare calls alternate, and the median of the ratios is reported. It may
fall below one: with the Jaakkola-Jordan bound the fit finds the variances with half a triangular solve.

Then fits with all defaults are measured: one from scratch, and one with a further label after it with
``config_context(keep_rows=True)``, beside the two eigendecompositions of the kernels of all rows (not beyond 2000 rows,
where landmarks take the place of kernels). Seconds are those of the processor.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances

from cmvmed import CMVMED, config_context
from cmvmed.datasets import make_multiview_gaussian

N_LABELED, N_SWEEPS, N_VIEWS = 30, 10, 2
MAX_EXACT_ROWS = 2000


def kernel(X: np.ndarray) -> np.ndarray:
    distances = euclidean_distances(X, squared=True)
    return np.exp(-distances / np.median(distances))


def bare_bohning(kernels: list[np.ndarray]) -> None:
    """One eigendecomposition per view, two products with the eigenvectors per sweep."""
    for K in kernels:
        values, Q = np.linalg.eigh(K)
        v = np.ones((len(K), 1))
        for _ in range(N_SWEEPS):
            v = Q @ ((1.0 / (1.0 + values))[:, None] * (Q.T @ v))


def bare_jaakkola(kernels: list[np.ndarray]) -> None:
    """One factorization of B and one triangular solve with all columns of K per view and sweep."""
    for K in kernels:
        for _ in range(N_SWEEPS):
            B = np.array(K, order="F")
            B[np.diag_indices_from(B)] += 1.0
            factor = lapack.dpotrf(B, lower=1, clean=0, overwrite_a=1)[0]
            blas.dtrsm(1.0, factor, np.array(K, order="F"), lower=1, overwrite_b=1)


def processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(n_unlabeled: int, algorithm: str, repeats: int) -> tuple[float, float, float]:
    """Median seconds of the fit, of the bare calls, and median ratio."""
    data = make_multiview_gaussian(N_LABELED + n_unlabeled, separation=(1.1, 0.8), labeled=N_LABELED, random_state=0)
    kernels = [kernel(data.data[data.y < 0][:, columns]) for columns in data.views.values()]
    # ten sweeps in one stage of a single annealing: the cost of a sweep does not depend on the stage
    model = CMVMED(
        views=data.views,
        algorithm=algorithm,
        n_stages=1,
        max_iter=N_SWEEPS,
        tol=0.0,
        class_prior="labels",
        members=None,
        approximation="exact",
    )
    bare = {"bohning": bare_bohning, "jaakkola": bare_jaakkola}[algorithm]
    times = []
    for _ in range(repeats):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = processor_seconds(lambda: model.fit(data.data, data.y))
        times.append((fit, processor_seconds(lambda: bare(kernels))))
    fits, bares = np.array(times).T
    return float(np.median(fits)), float(np.median(bares)), float(np.median(fits / bares))


def compare_refits(n_rows: int, repeats: int) -> tuple[float, float, float]:
    """Median seconds of the processor: a fit from scratch, one with a further label, two eigendecompositions (or NaN)."""
    data = make_multiview_gaussian(n_rows, separation=(1.1, 0.8), labeled=N_LABELED, random_state=0)
    kernels = [kernel(data.data[:, columns]) for columns in data.views.values()] if n_rows <= MAX_EXACT_ROWS else []
    y, further = data.y.copy(), np.flatnonzero(data.y < 0)
    warm = CMVMED(views=data.views)
    fit_warm = config_context(keep_rows=True)(warm.fit)
    fit_warm(data.data, y)
    times = []
    for row in further[:repeats]:
        y[row] = data.target[row]
        cold = processor_seconds(lambda: CMVMED(views=data.views).fit(data.data, y))
        refit = processor_seconds(lambda: fit_warm(data.data, y))
        bare = processor_seconds(lambda: [np.linalg.eigh(K) for K in kernels]) if kernels else np.nan
        times.append((cold, refit, bare))
    cold, refit, bare = np.median(np.array(times), axis=0)
    return float(cold), float(refit), float(bare)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000, 5000], help="of the fits with all defaults")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'algorithm':9} {'|U|':>6} {'fit s':>8} {'bare s':>8} {'ratio':>6}   ({N_SWEEPS} sweeps, {N_VIEWS} views)")
    for algorithm in ("bohning", "jaakkola"):
        for size in arguments.sizes:
            fit, bare, ratio = compare(size, algorithm, arguments.repeats)
            print(f"{algorithm:9} {size:6d} {fit:8.3f} {bare:8.3f} {ratio:6.2f}")
    print(
        f"\n{'rows':>6} {'fit s':>8} {'refit s':>8} {'refit/fit':>9} {'eigen s':>8} {'fit/eigen':>9} {'refit/eigen':>11}"
    )
    for n_rows in arguments.rows:
        cold, refit, bare = compare_refits(n_rows, arguments.repeats)
        ratios = f"{refit / cold:9.2f} {bare:8.3f} {cold / bare:9.2f} {refit / bare:11.2f}"
        print(f"{n_rows:6d} {cold:8.3f} {refit:8.3f} {ratios}")


if __name__ == "__main__":
    main()
