r"""Which kinds of features a sensor gets: by held-out labels, and without labels by what it shares with other sensors.

For each sensor and kind, over a sample of the rows and with a linear kernel K of mean diagonal one:

* *held-out labels*: a ridge regression on the class indicators Y (centered) leaves each label out in closed form,

      M_i = Y_i - (AY)_i / A_ii,   A = (K_LL + ηI)⁻¹,       R² = 1 - ‖Y - M‖² / ‖Y‖²,

  the share of the variance of the labels that is predicted without them. It uses how far a prediction is off, not only
  whether it is right, which matters with ten labels. The score is the mean of a sensor's own R² and the mean R² of the
  kind over all sensors, since the sensors of a recording record the same events and one sensor alone has few labels.

  Few labels cannot say which kind is best, and kinds together have a smaller variance than one that was picked by
  chance. So the kinds of a sensor are those that the labels do not reject: all but those of which l left-out labels are
  EVIDENCE times less likely than of the best kind, with normal residuals: ((1 - R²_k) / (1 - R²_best))^(l/2) > EVIDENCE.
* *agreement*: the correlation of K with the kernels of the other sensors over pairs of different rows (the unbiased
  centered kernel alignment of Song et al. 2012), the largest over their kinds, averaged over the sensors. Sensors share
  the event but not their noise, so it is high for features that represent the event. It does not say which property of the
  event, so it decides only where labels cannot: if no class has two, the kind of the highest agreement is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

RIDGE = 0.1  # relative to the mean diagonal of the kernel
CLIP = 5.0  # standard deviations
LEAST_VARIANCE = 1e-6  # share of the labels' variance below which it is rounding
EVIDENCE = 20.0  # likelihood ratio that is called strong evidence (Kass and Raftery 1995)


@dataclass(frozen=True)
class KindScore:
    """How well one kind of features suits one sensor."""

    sensor: str
    kind: str
    held_out_r2: float  # NaN without labels that can be left out
    agreement: float  # NaN for a single sensor
    score: float  # what decides: see the module
    chosen: bool = False


def choose_kinds(
    features: Mapping[str, Mapping[str, NDArray[Any]]], codes: NDArray[np.intp]
) -> tuple[dict[str, str], list[KindScore]]:
    """Choose the kinds of each sensor.

    Parameters
    ----------
    features : dict of sensor -> dict of kind -> (n, d) features, rows of NaN where the sensor is missing
    codes : (n,) classes 0, 1, ..., and -1 for unlabeled rows

    Returns
    -------
    chosen : dict of sensor -> kind, or several kinds joined by "+"
    scores : list of KindScore
        All of them, sensor by sensor.
    """
    kernels = {
        sensor: {kind: _kernel(np.asarray(values, dtype=np.float64)) for kind, values in kinds.items()}
        for sensor, kinds in features.items()
    }
    r2 = {s: {k: _held_out_r2(K, present, codes) for k, (K, present) in kinds.items()} for s, kinds in kernels.items()}
    agreement = {s: {k: _agreement(kernels, s, k) for k in kinds} for s, kinds in kernels.items()}
    chosen: dict[str, str] = {}
    scores: list[KindScore] = []
    for sensor, kinds in kernels.items():
        value = {kind: _score(r2, sensor, kind) for kind in kinds}
        n_labels = max(_left_out(codes[present]).size for _, present in kinds.values())
        kept = _not_rejected(value, n_labels) or [max(kinds, key=lambda k: _or_lowest(agreement[sensor][k]))]
        chosen[sensor] = "+".join(kept)
        scores += [
            KindScore(sensor, kind, r2[sensor][kind], agreement[sensor][kind], value[kind], kind in kept)
            for kind in kinds
        ]
    return chosen, scores


def _not_rejected(score: Mapping[str, float], n_labels: int) -> list[str]:
    """Kinds that left-out labels do not reject; none if none could be left out."""
    unexplained = {kind: max(1.0 - value, LEAST_VARIANCE) for kind, value in score.items() if not np.isnan(value)}
    least = min(unexplained.values(), default=1.0)
    return [k for k, rest in unexplained.items() if 0.5 * n_labels * np.log(rest / least) <= np.log(EVIDENCE)]


def _score(r2: Mapping[str, Mapping[str, float]], sensor: str, kind: str) -> float:
    """Mean of the sensor's own R² and the mean over the sensors that have this kind."""
    own = r2[sensor][kind]
    others = [kinds[kind] for kinds in r2.values() if kind in kinds and not np.isnan(kinds[kind])]
    return own if np.isnan(own) else float(0.5 * own + 0.5 * np.mean(others))


def _or_lowest(value: float) -> float:
    return -np.inf if np.isnan(value) else value


def _kernel(features: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Linear kernel of the standardized features of the rows that have the sensor, and which rows these are."""
    present = np.asarray(~np.isnan(features).any(axis=1))
    rows = features[present]
    deviation = rows.std(axis=0)
    varies = deviation > 1e-9 * np.abs(rows).max(axis=0, initial=0.0)
    scaled = np.clip((rows[:, varies] - rows[:, varies].mean(axis=0)) / deviation[varies], -CLIP, CLIP)
    K = scaled @ scaled.T
    mean = float(np.mean(np.diagonal(K))) if len(K) else 0.0
    return (K / mean if mean > 0.0 else K), present


def _held_out_r2(K: FloatArray, present: NDArray[np.bool_], codes: NDArray[np.intp]) -> float:
    """R² of labels that were left out one by one; NaN if fewer than two classes have two labels."""
    own = codes[present]
    labeled = _left_out(own)
    if labeled.size == 0:
        return np.nan
    Y = (own[labeled][:, np.newaxis] == np.unique(own[labeled])).astype(np.float64)
    Y -= Y.mean(axis=0)
    A = np.linalg.inv(K[np.ix_(labeled, labeled)] + RIDGE * np.eye(labeled.size))
    residual = (A @ Y) / np.diagonal(A)[:, np.newaxis]  # Y - M
    return float(1.0 - np.sum(residual**2) / np.sum(Y**2))


def _left_out(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Labeled rows of the classes that have at least two; none if these are fewer than two classes."""
    classes, counts = np.unique(codes[codes >= 0], return_counts=True)
    repeated = classes[counts > 1]
    return np.flatnonzero(np.isin(codes, repeated)) if repeated.size > 1 else np.zeros(0, dtype=np.intp)


def _agreement(
    kernels: Mapping[str, Mapping[str, tuple[FloatArray, NDArray[np.bool_]]]], sensor: str, kind: str
) -> float:
    """Mean over the other sensors of the largest alignment with one of their kernels."""
    K, present = kernels[sensor][kind]
    best = []
    for other, kinds in kernels.items():
        if other != sensor:
            values = [_alignment(K, present, K_other, p_other) for K_other, p_other in kinds.values()]
            best.append(max(values, default=np.nan))
    known = [value for value in best if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _alignment(A: FloatArray, has_A: NDArray[np.bool_], B: FloatArray, has_B: NDArray[np.bool_]) -> float:
    """Unbiased centered kernel alignment over the rows that have both sensors; NaN for fewer than four."""
    both = has_A & has_B
    if np.count_nonzero(both) < 4:
        return np.nan
    a, b = both[has_A], both[has_B]
    A, B = _u_centered(A[np.ix_(a, a)]), _u_centered(B[np.ix_(b, b)])
    norm = np.sqrt(np.sum(A * A) * np.sum(B * B))
    return float(np.sum(A * B) / norm) if norm > 0.0 else np.nan


def _u_centered(K: FloatArray) -> FloatArray:
    """K without its diagonal, with rows that sum to zero."""
    n = len(K)
    K = K - np.diag(np.diagonal(K))
    means = K.sum(axis=1) / (n - 2)
    centered = K - means[:, np.newaxis] - means + K.sum() / ((n - 1) * (n - 2))
    return np.asarray(centered - np.diag(np.diagonal(centered)))
