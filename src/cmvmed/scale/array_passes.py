"""The passes of :mod:`cmvmed.scale.passes` computed by another array library, on a GPU if the rows are there.

The equations are the same, in double precision. Rows are not selected: a row that does not count has the weight zero, and so
has one that lacks the view. Kernel values come from the formulas of predictions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.data.array_api import ArrayPlace
from cmvmed.model.array_program import ArrayProgram, ArrayRunner
from cmvmed.model.formulas import FORMULAS, kernel_values, view_input
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.nystroem import Landmarks
from cmvmed.numerics.types import Array
from cmvmed.views.view_rows import ViewPreprocessor


@dataclass(frozen=True)
class ArrayViews:
    """The views of a chunk as weights and kernel values at a place."""

    place: ArrayPlace
    runner: ArrayRunner  # from the table of each view, by its number: kernel values (n, p), then whether rows have it (n, 1)
    kernels: tuple[Kernel, ...]
    weights: Callable[[int, int], Array]  # of the rows of a chunk, given the number of the first and how many there are

    @classmethod
    def of(
        cls,
        preprocessors: Sequence[ViewPreprocessor],
        landmarks: Sequence[Landmarks],
        weights: Callable[[int, int], Array],
        place: ArrayPlace,
    ) -> "ArrayViews | None":
        """None unless the kernels of all views can be computed by other libraries."""
        if any(own.kernel.kind not in FORMULAS or is_sparse(own.landmarks) for own in landmarks):
            return None
        program, values, masks = ArrayProgram(), [], []
        for i, (preprocessor, own) in enumerate(zip(preprocessors, landmarks, strict=True)):
            view = view_input(program, str(i), own.landmarks.shape[1], np.float64, None, usable=True)
            values.append(kernel_values(own.kernel, view.points(preprocessor), own.landmarks))
            masks.append(view.mask)
        return cls(place, ArrayRunner(program, values + masks, *place), tuple(own.kernel for own in landmarks), weights)

    def read(self, first_row: int, tables: Sequence[Any]) -> tuple[Any, list[Any], list[Any]]:
        """Weights (n, 1) of the rows of a chunk and, per view, their kernel values (n, p) and whether they have it (n, 1).

        Kernel values that are no usable numbers are an error that names the view.
        """
        w = self.place.put(self.weights(first_row, tables[0].shape[0])[:, None])
        found = self.runner({str(i): table for i, table in enumerate(tables)})
        values, masks = found[: len(self.kernels)], found[len(self.kernels) :]
        for kernel, k in zip(self.kernels, values, strict=True):
            if k.shape[1] > 0:
                kernel.checked(np.array([float(self.place.xp.min(k)), float(self.place.xp.max(k))]))
        return w, values, masks


@dataclass(frozen=True)
class ArraySweep:
    """The sums of :class:`cmvmed.scale.passes.SweepPass`."""

    views: ArrayViews
    coefficients: Sequence[Any]  # per view (p + 1, F)
    view_weights: Sequence[float]  # (V,)
    offset: Any  # (F,)
    temperature: float

    def __call__(self, first_row: int, tables: Sequence[Any]) -> tuple[Any, ...]:
        """The sums over a chunk."""
        xp = self.views.place.xp
        w, values, masks = self.views.read(first_row, tables)
        means = [k @ c[:-1, :] + c[-1:, :] for k, c in zip(values, self.coefficients, strict=True)]
        scores, coverage = self._pool(means, masks)
        q = self._soft_labels(scores)
        p = q[:, 1:] if self.offset.shape[0] == 1 else q
        mass, H = w * coverage, -xp.sum(q * xp.log(xp.where(q > 0.0, q, 1.0)), axis=1, keepdims=True)
        residuals, energies, divergences, masses = [], [], [], []
        for k, has, m in zip(values, masks, means, strict=True):
            weight = w * has
            residual = weight * (p - _sigmoid(m, xp))
            residuals.append(xp.concat([k.T @ residual, xp.sum(residual, axis=0, keepdims=True)], axis=0))
            energies.append(xp.sum(weight * (_log_partition(m, xp) - (p - 0.5) * m)))
            divergences.append(xp.sum(weight * self._divergence(q, H, m)))
            masses.append(xp.sum(weight))
        return (
            *residuals,
            xp.stack(energies),
            xp.stack(divergences),
            xp.stack(masses),
            xp.sum(mass * q, axis=0),
            (mass * q).T @ q,
            xp.stack([xp.sum(mass), xp.sum(mass * H)]),
        )

    def _pool(self, means: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        """Σ π_i m_i / Σ π_i over the views that a row has, (n, F), and Σ π_i, (n, 1)."""
        weights = [has * weight for has, weight in zip(masks, self.view_weights, strict=True)]
        total = sum(mean * weight for mean, weight in zip(means, weights, strict=True))
        coverage: Any = sum(weights)
        return total / self.views.place.xp.where(coverage > 0.0, coverage, 1.0), coverage

    def _soft_labels(self, scores: Any) -> Any:
        """q(y|x), (n, K), from pooled scores (n, F): equation (E)."""
        xp, scores = self.views.place.xp, scores + self.offset
        if self.offset.shape[0] == 1:
            return xp.concat([_sigmoid(s / self.temperature, xp) for s in (-scores, scores)], axis=1)
        return xp.exp(_log_softmax(scores / (2.0 * self.temperature), xp))

    def _divergence(self, q: Any, H: Any, m: Any) -> Any:
        """KL(q ‖ p) of each row, (n, 1), from the distribution p that a view's own means m (n, F) give by (E)."""
        xp, m = self.views.place.xp, m + self.offset
        both = xp.concat([-m, m], axis=1) if self.offset.shape[0] == 1 else m
        cross = xp.sum(q * _log_softmax(both / (2.0 * self.temperature), xp), axis=1, keepdims=True)
        return xp.clip(-H - cross, min=0.0)


def _sigmoid(x: Any, xp: Any) -> Any:
    """σ(x) = 1 / (1 + exp(-x)), without overflow."""
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0.0, 1.0, small) / (1.0 + small)


def _log_partition(f: Any, xp: Any) -> Any:
    """A(f) = log 2cosh(f/2), without overflow."""
    size = xp.abs(f)
    return 0.5 * size + xp.log1p(xp.exp(-size))


def _log_softmax(z: Any, xp: Any) -> Any:
    """z - log Σ exp(z) over the columns."""
    shifted = z - xp.max(z, axis=1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
