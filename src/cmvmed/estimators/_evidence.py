"""What labels say before and after the consensus: opinions, class shares, held-out accuracy, and warnings."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from cmvmed.auto.agreement import mean_agreement
from cmvmed.auto.labeled_rows import held_out_folds, read_labeled_rows
from cmvmed.auto.neighbors import NeighborEvidence
from cmvmed.auto.plan import ChosenPlan, PlanSettings
from cmvmed.core.annealing import AnnealingResult
from cmvmed.data.labels import Labels
from cmvmed.estimators._lowering import FitViews
from cmvmed.estimators._settings import FitSettings
from cmvmed.members.candidates import KINDS, build_candidates
from cmvmed.members.mixture import Combined, Parts, combine
from cmvmed.members.pool import fit_supervised
from cmvmed.members.shares import drawn_per_class
from cmvmed.numerics.threads import Mapper
from cmvmed.numerics.types import Array
from cmvmed.views.training_data import generator

MIN_DRAW_PROBABILITY = 0.001  # of the labels' counts in a random draw, below which they are warned of
MIN_DIFFERENCE = 0.05  # of a class share, below which it does not matter
NEARLY_ALL = 0.9  # share of a class from which on no classifier has much to add
NO_AGREEMENT = 0.05  # mean correlation of the views' scores that is as good as none


@dataclass(frozen=True)
class Evidence:
    """The labeled rows and, unless only the consensus is asked for, the opinions learned from them."""

    labels: Labels
    parts: Parts
    infers_shares: bool  # whether class shares are not given by the user

    @property
    def shares(self) -> Array | None:
        """The class shares among the unlabeled rows, by the opinions."""
        supervised = self.parts.supervised
        return None if supervised is None else supervised.pool.share

    @property
    def neighbors(self) -> NeighborEvidence | None:
        """The graph of nearest rows as a view of the consensus."""
        supervised = self.parts.supervised
        usable = self.parts.with_consensus and self.parts.mass.any()
        return supervised.neighbor_evidence() if usable and supervised is not None else None

    def combine(
        self, chosen: ChosenPlan, result: AnnealingResult, settings: FitSettings, map_folds: Mapper
    ) -> Combined:
        """The opinions and the consensus put together; without held-out labels if a callback stopped the fit."""
        calibrate = settings.calibrate and not result.stopped
        return combine(self.parts, chosen, result, settings.tuning, calibrate=calibrate, map_folds=map_folds)

    def warnings(self, chosen: ChosenPlan, combined: Combined) -> Iterator[str]:
        """Where labels are too few or unlike the unlabeled rows, each in one sentence with what to do."""
        yield from self._single_labels()
        yield from self._unlikely_draw(chosen)
        yield from self._no_signal(chosen, combined)

    def _single_labels(self) -> Iterator[str]:
        rows = self.parts.rows
        everything = np.ones(rows.codes.size, dtype=bool)
        alone = np.unique(rows.codes[(rows.judged(everything) == 0.0) & (rows.weights > 0.0)])
        if alone.size:
            name, more = self.labels.classes[alone].tolist()[0], alone.size - 1
            others = f" (and {more} more such class{'es' if more > 1 else ''})" if more else ""
            single = (rows.codes == alone[0]).sum() == 1
            what = "one labeled row" if single else "labeled rows of one group only, or equal ones"
            yield (
                f"Class {name!r} has {what}{others}, which cannot be held out, so neither the weights of the opinions nor the "
                "accuracy estimate take it into account; label at least one more row of it"
                f"{'' if single else ', of another group'}."
            )

    def _unlikely_draw(self, chosen: ChosenPlan) -> Iterator[str]:
        plan = chosen.plan
        if self.parts.per_class or not self.infers_shares or plan.shares is None or self.parts.supervised is None:
            return
        counts = self.parts.rows.counts(np.ones(self.parts.rows.codes.size, dtype=bool))
        p, share = draw_probability(counts, plan.shares), counts / counts.sum()
        worst = int(np.abs(share - plan.shares).argmax())
        if p < MIN_DRAW_PROBABILITY and abs(share[worst] - plan.shares[worst]) > MIN_DIFFERENCE:
            name = self.labels.classes.tolist()[worst]
            yield (
                f"The labels do not look like a random draw of the rows (p = {p:.1g}): class {name!r} is {share[worst]:.0%} of the "
                f"labeled rows, but an estimated {plan.shares[worst]:.0%} of the unlabeled ones; if they were chosen class by "
                'class, use labels_drawn="per_class", if by suggest or a similar rule, "chosen"; or give the true shares as '
                "class_prior."
            )

    def _no_signal(self, chosen: ChosenPlan, combined: Combined) -> Iterator[str]:
        found, plan = combined.accuracy, chosen.plan
        if found is None or found.n_held_out == 0.0 or not self.parts.mass.any():
            return
        counts = self.parts.rows.counts(np.ones(self.parts.rows.codes.size, dtype=bool))
        most, largest = counts.max() / counts.sum(), float(plan.class_prior.max())
        agreement = mean_agreement(plan.start.agreement, plan.view_weights[: len(plan.start.agreement)])
        if found.hits <= most and agreement < NO_AGREEMENT:
            yield (
                f"Held-out labels are predicted no better ({found.hits:.0%}) than by always naming the most frequent class "
                f"({most:.0%}), and the views do not agree: nothing was learned; check that rows of X and y belong together, or "
                "use other features."
            )
        elif found.estimate(0.9).mean <= largest < NEARLY_ALL:
            yield (
                f"The expected accuracy, {found.estimate(0.9).mean:.0%}, is not above the share of the largest class, "
                f"{largest:.0%}: predictions are of little use yet; label more rows."
            )


def draw_probability(counts: Array, shares: Array) -> float:
    """The probability of counts (K,) at least as unlike the shares as these in a random draw: a likelihood-ratio test."""
    seen = counts > 0.0
    statistic = 2.0 * float((counts[seen] * np.log(counts[seen] / (counts.sum() * shares[seen]))).sum())
    return float(chi2.sf(max(statistic, 0.0), counts.size - 1))


def gather_evidence(fit: FitViews, settings: FitSettings, plan_settings: PlanSettings, *, complete: bool) -> Evidence:
    """Fit the opinions that the settings ask for; ``complete`` if all rows are in memory."""
    training, tuning, rng = fit.training, settings.tuning, generator(settings.random_state)
    partition, view_weights = training.partition, plan_settings.view_weights
    used = np.ones(len(fit.views), dtype=bool) if isinstance(view_weights, str) else view_weights > 0.0
    rows = read_labeled_rows(training, tuning, rng, used)
    folds = held_out_folds(fit.problem, rows, tuning.n_folds, grouped=training.groups is not None, used=used)
    mass = np.concatenate([np.zeros(partition.block_L.size), partition.weights[partition.block_U]])
    per_class = drawn_per_class(partition.counts, settings.labels_drawn)
    kinds = [name for name in settings.opinions if name in KINDS]
    supervised = None
    if kinds:
        candidates = build_candidates(
            training,
            fit.whole,
            rows,
            used,
            kinds,
            None if complete else tuning.max_compared_nodes,
            settings.random_state,
            tuning,
            per_class=per_class,
        )
        if candidates.opinions:
            supervised = fit_supervised(candidates, folds, mass, per_class=per_class, tuning=tuning)
    with_consensus = "consensus" in settings.opinions or supervised is None
    parts = Parts(supervised, with_consensus, rows, folds, mass, per_class, settings.labels_drawn == "chosen")
    return Evidence(training.labels, parts, plan_settings.infers_shares)
