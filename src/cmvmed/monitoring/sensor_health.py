"""Which views of a batch of rows have a fault, and which fault it is.

Views are tested given the others; the one with the largest score, if its p-value is small, has a fault, and the rest is
tested again without it, so that a faulty view does not count against the others. A fault is named by what would undo it:
a view that is healthy after it is exchanged with another one, or divided by a number, was exchanged or has another gain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import binom

from cmvmed.data.reading import InputSettings
from cmvmed.model.fitted_model import Model
from cmvmed.monitoring.batch_tests import BatchTests, ViewScores
from cmvmed.monitoring.reference import Reference, ViewProfile, features_of
from cmvmed.numerics.linalg import is_sparse, numerical_errors
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.view_rows import ViewPreprocessor

LEVEL = 0.01  # of the p-values at which a view has a fault
N_KINDS = 2  # of tests of a view: of its rows, and of how many rows lack it; each gets half of the level
MIN_ROWS = 20  # rows with a view that are compared with training
ROUNDING = 1e-9  # relative differences below this are none
MAX_EXCHANGED = 1000  # columns among which exchanged ones are looked for
MAX_COST = 1e100  # of an exchange


@dataclass(frozen=True)
class SensorHealth:
    """What a batch of rows says of one view.

    Attributes
    ----------
    fault : str
        "ok"; "dead" (the same values in all rows, or absent from all), "missing" (absent from more rows than in
        training), "shifted" (another mean), "gain" (another scale), "swapped" (exchanged with another view, or columns
        exchanged), "drift" (another difference from training, such as noise); "unknown" if there are too few rows.
    score : float
        The larger, the less healthy: standard deviations of healthy batches by which the view departs from training.
        NaN if too few rows have the view.
    p_value : float
        Probability that any view of a healthy batch departs so far; the fault is other than "ok" from 0.01 down.
    message : str
        What was seen and what to do.
    """

    fault: str
    score: float
    p_value: float
    message: str


@dataclass(frozen=True)
class Batch:
    """New rows by view."""

    names: Sequence[str]
    preprocessors: Sequence[ViewPreprocessor]
    matrices: Sequence[Matrix]
    present: Sequence[BoolArray]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrices[0].shape[0])

    def features(self, reference: Reference) -> Array:
        """Features (n, f) of all views."""
        return features_of(reference.profiles, self.preprocessors, self.matrices, self.present)

    def values(self, v: int) -> Matrix:
        """The rows that have view v, without gaps."""
        return self.preprocessors[v].complete(self.matrices[v][np.flatnonzero(self.present[v])])

    def replaced(self, v: int, matrix: Matrix) -> "Batch":
        """With other rows of view v."""
        return replace(self, matrices=[matrix if w == v else m for w, m in enumerate(self.matrices)])

    def exchanged(self, v: int, w: int) -> "Batch":
        """With the rows of two views exchanged."""
        order = list(range(len(self.matrices)))
        order[v], order[w] = w, v
        return replace(self, matrices=[self.matrices[i] for i in order], present=[self.present[i] for i in order])


def tests_of(reference: Reference, batch: Batch) -> BatchTests:
    """The tests of a batch, which are those of every batch of as many rows with the same views."""
    return BatchTests(reference, np.column_stack(batch.present), LEVEL / N_KINDS)


def read_batch(model: Model, X: object, settings: InputSettings) -> Batch:
    """New rows by view."""
    return Batch(model.schema.view_names, model.preprocessors, *model.read_views(X, settings))


def sensor_health(model: Model, reference: Reference, X: object, settings: InputSettings) -> dict[str, SensorHealth]:
    """Whether the sensor behind each view works as in training, by the view's name."""
    batch = read_batch(model, X, settings)
    with numerical_errors():
        return Examination(reference, batch, tests_of(reference, batch)).result()


class Examination:
    """The tests of one batch; views are numbers, until :meth:`result` names them."""

    def __init__(self, reference: Reference, batch: Batch, tests: BatchTests) -> None:
        self.reference, self.batch, self.tests = reference, batch, tests
        self.views = [
            v
            for v, profile in enumerate(reference.profiles)
            if profile is not None and np.count_nonzero(batch.present[v]) >= MIN_ROWS
        ]  # those to be tested
        self.at_first = self._test(batch, self.views)
        self.scores, self.healthy = self._step_down()

    def result(self) -> dict[str, SensorHealth]:
        """The health of each view by its name."""
        found = {v: self._ok(v) if v in self.healthy else self._fault(v) for v in self.views}
        for v, w in self._exchanged_pairs([v for v in self.views if found[v].fault not in ("ok", "dead")]):
            found[v], found[w] = self._swapped(v, w), self._swapped(w, v)
        found = {v: self._presence(v, found.get(v)) for v in range(len(self.batch.names))}
        if len(self.views) > 1 and all(found[v].fault in ("shifted", "gain", "drift") for v in self.views):
            note = " All views differ from training: perhaps what they measure has changed, not the sensors."
            found |= {v: replace(found[v], message=found[v].message + note) for v in self.views}
        return {name: found[v] for v, name in enumerate(self.batch.names)}

    # ------------------------------------------------------------------ which views

    def _test(self, batch: Batch, views: list[int]) -> dict[int, ViewScores]:
        return self.tests.test(batch.features(self.reference), views) if views else {}

    def _step_down(self) -> tuple[dict[int, ViewScores], list[int]]:
        """The scores that decide about each view, and the views without a fault."""
        decided, views, scores = {}, list(self.views), self.at_first
        while views:
            worst = max(views, key=lambda v: scores[v].score)
            if not _is_fault(scores[worst]):
                break
            decided[worst] = scores[worst]
            views.remove(worst)
            scores = self._test(self.batch, views)
        return decided | scores, views

    def _is_undone(self, batch: Batch, *views: int) -> bool:
        """Whether views with a fault are healthy in another batch."""
        scores = self._test(batch, sorted({*self.healthy, *views}))
        return not any(_is_fault(scores[v]) for v in views)

    def _exchanged_pairs(self, faulty: list[int]) -> Iterator[tuple[int, int]]:
        """Pairs of views of equal width that are both healthy if they are exchanged."""
        left = set(self.views)
        for v in faulty:
            for w in sorted(left - {v}):
                same_width = self.batch.matrices[v].shape[1] == self.batch.matrices[w].shape[1]
                if v in left and same_width and self._is_undone(self.batch.exchanged(v, w), v, w):
                    left -= {v, w}
                    yield v, w

    # ------------------------------------------------------------------ which fault

    def _fault(self, v: int) -> SensorHealth:
        """The fault of a view, tried from the simplest explanation to the one that explains nothing."""
        name, values, profile = repr(self.batch.names[v]), self.batch.values(v), self._profile(v)
        if _is_constant(values):
            n = values.shape[0]
            return self._found(
                v, "dead", f"view {name} has the same values in all {n} rows: check that the sensor works"
            )
        if self.batch.preprocessors[v].columns is None:
            matrix, gain = self.batch.matrices[v], _gain(profile, values)
            if self._is_undone(self.batch.replaced(v, matrix / gain), v):
                message = f"view {name} has about {_number(gain)} times the scale of training: check its gain"
                return self._found(v, "gain", message)
            order = _column_order(profile, values)
            if order is not None and self._is_undone(self.batch.replaced(v, matrix[:, order]), v):
                n_moved = int((order != np.arange(order.size)).sum())
                message = f"{n_moved} columns of view {name} look exchanged: check the order of its columns or channels"
                return self._found(v, "swapped", message)
            if self._differs_in(v, "location") and not self._differs_in(v, "scale"):
                return self._found(
                    v, "shifted", f"view {name} {_shift(profile, values)}: check its offset or calibration"
                )
            if self._has_scale_if_divided(v, gain):
                message = f"view {name} varies about {_number(gain)} times as much as in training"
                return self._found(v, "gain", f"{message}: check its gain, and the view for noise")
        return self._found(
            v, "drift", f"view {name} {self._difference(v)}: check it for noise, wear or another position"
        )

    def _has_scale_if_divided(self, v: int, gain: float) -> bool:
        """Whether a view has the scale of training if its deviations from the mean are divided by a number."""
        matrix = self.batch.matrices[v]
        if is_sparse(matrix):
            return False
        center = self.batch.values(v).mean(axis=0)
        batch = self.batch.replaced(v, center + (matrix - center) / gain)
        scores = self._test(batch, sorted({*self.healthy, v}))[v]
        return scores.scores["scale"] <= scores.limit

    def _differs_in(self, v: int, statistic: str) -> bool:
        return self.scores[v].scores.get(statistic, -np.inf) > self.scores[v].limit

    def _difference(self, v: int) -> str:
        """What of a view is unlike training, as the predicate of a sentence."""
        if self._differs_in(v, "location") or self._differs_in(v, "scale"):
            return "has changed since training by more than a shift or a gain"
        return "agrees less with the other views than in training"

    def _swapped(self, v: int, w: int) -> SensorHealth:
        first, second = repr(self.batch.names[v]), repr(self.batch.names[w])
        message = f"view {first} looks exchanged with view {second}: check the cables, or the order of the columns"
        scores = max(self.scores[v], self.at_first[v], key=lambda found: found.score)
        return SensorHealth("swapped", scores.score, min(_p_value(scores), LEVEL), f"{message}.")

    def _found(self, v: int, fault: str, message: str) -> SensorHealth:
        return SensorHealth(fault, self.scores[v].score, _p_value(self.scores[v]), f"{message}.")

    def _ok(self, v: int) -> SensorHealth:
        return self._found(v, "ok", f"view {self.batch.names[v]!r} is as in training")

    def _profile(self, v: int) -> ViewProfile:
        profile = self.reference.profiles[v]
        if profile is None:
            raise ValueError(f"View {self.batch.names[v]!r} has no profile.")
        return profile

    # ------------------------------------------------------------------ missing rows

    def _presence(self, v: int, found: SensorHealth | None) -> SensorHealth:
        """What is known of a view, or that it is absent from more rows than in training, by a binomial test."""
        own, name, m = self.reference.slices[v], repr(self.batch.names[v]), self.batch.n_rows
        lacks = np.isnan(self.reference.features[:, own]).any(axis=1) | (own.stop == own.start)
        n_absent = int(m - np.count_nonzero(self.batch.present[v]))
        share = (lacks.sum() + 1.0) / (lacks.size + 1.0)  # of the training rows and the new one, if it lacks the view
        p = min(1.0, N_KINDS * len(self.batch.names) * float(binom.sf(n_absent - 1, m, share)))
        if p <= LEVEL and (found is None or found.fault == "ok"):
            score = float((n_absent - m * share) / np.sqrt(m * share * (1.0 - share)))
            where = "all rows" if n_absent == m else f"{n_absent / m:.0%} of the rows"
            message = f"view {name} is absent from {where}, in training from {lacks.mean():.0%}: check its connection."
            return SensorHealth("dead" if n_absent == m else "missing", score, p, message)
        if found is not None:
            return found
        message = f"only {m - n_absent} rows have view {name}: pass at least {MIN_ROWS} to compare it with training."
        if own.stop == own.start:
            message = f"view {name} cannot be compared with training, where almost no row had it."
        return SensorHealth("unknown", float("nan"), float("nan"), message)


def _is_fault(scores: ViewScores) -> bool:
    return _p_value(scores) <= LEVEL


def _p_value(scores: ViewScores) -> float:
    """With respect to both kinds of tests (Bonferroni)."""
    return min(1.0, N_KINDS * scores.p_value)


def _is_constant(values: Matrix) -> bool:
    """Whether all rows are the same."""
    rows = values.toarray() if is_sparse(values) else values
    return bool((np.ptp(rows, axis=0) <= ROUNDING * np.abs(rows).max(axis=0)).all())


def _gain(profile: ViewProfile, values: Matrix) -> float:
    """Scale of a view relative to training: the median over its columns, or of the lengths of its rows."""
    deviations = profile.column_deviations
    if deviations is None:
        sizes = profile.features(values)[:, -1] * profile.deviation[-1] + profile.mean[-1]
        ratios = sizes / profile.mean[-1]
    else:
        rows = values.toarray() if is_sparse(values) else values
        ratios = rows.std(axis=0) / deviations
    ratios = ratios[ratios > ROUNDING]
    return float(np.median(ratios)) if ratios.size else 1.0


def _shift(profile: ViewProfile, values: Matrix) -> str:
    """How far the mean of a view has moved, as the predicate of a sentence."""
    if profile.column_deviations is None or profile.column_means is None:
        return "has another mean than in training"
    moved = np.abs(np.asarray(values.mean(axis=0)).ravel() - profile.column_means) / profile.column_deviations
    return f"is shifted by about {_number(float(np.median(moved)))} standard deviations of its columns"


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 1.0 else f"{value:.2g}"


def _column_order(profile: ViewProfile, values: Matrix) -> IntArray | None:
    """The order of the columns in which their means and deviations are most like those of training; None if as given.

    For Gaussian columns, twice the log-likelihood ratio of mean and deviation is about (Δμ/σ)² + 2 (log s/σ)² per row.
    """
    means, deviations = profile.column_means, profile.column_deviations
    if means is None or deviations is None or means.size > MAX_EXCHANGED:
        return None
    rows = values.toarray() if is_sparse(values) else values
    logs = np.log(np.maximum(rows.std(axis=0), np.finfo(float).tiny))
    locations = (rows.mean(axis=0)[:, None] - means) / deviations
    scales = logs[:, None] - np.log(deviations)
    costs = np.nan_to_num(locations**2 + 2.0 * scales**2, nan=MAX_COST, posinf=MAX_COST)  # huge numbers overflow
    given, trained = linear_sum_assignment(np.minimum(costs, MAX_COST))
    order = given[np.argsort(trained)]
    return None if (order == np.arange(order.size)).all() else np.asarray(order)
