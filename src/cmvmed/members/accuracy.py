"""The accuracy to expect.

Two estimates err in opposite ways: the share of hits among held-out labels, which is unbiased but has a large variance, and the
mean largest probability of the unlabeled rows. The latter counts as a number of held-out labels.

Labels of one person, day or machine are hit or missed together. For rows of new groups they count as fewer labels: as many as
the posterior of a beta-binomial model leaves (:func:`labels_between_groups`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, logsumexp
from scipy.stats import beta, binomtest

from cmvmed._html import html_box, html_interval, html_sentence
from cmvmed.auto.tuning import Tuning
from cmvmed.members.random_labels import RandomLabels
from cmvmed.numerics.types import Array, IntArray

CHANCE = 0.1  # probability above which a difference may be chance
MAX_HELD_OUT = 1e9  # weighted number of rows beyond which the interval is a point
WIDEST = 0.5  # width of an interval from which on the accuracy is unknown
FEW_GROUPS = 5  # groups below which the text says why the interval is wide
GRID = (
    np.arange(100) + 0.5
) / 100  # accuracies, and standard deviations between groups relative to the largest possible


@dataclass(frozen=True)
class AccuracyEstimate:
    """The accuracy to expect on rows like the unlabeled training rows.

    Attributes
    ----------
    mean : float
    low, high : float
        The central interval that holds the accuracy with probability ``level``.
    level : float
    held_out : float
        Share of held-out labels that are predicted correctly, by fits without them.
    n_held_out : float
        Weighted number of labels that were held out.
    labels_only : float
        The same share for the classifiers that learn from labeled rows alone; NaN if there are none.
    gained, lost : float
        Weighted number of held-out labels that are predicted correctly only with, and only without, the unlabeled rows.
    chosen : bool
        Whether the labeled rows were chosen (``labels_drawn="chosen"``), so that ``held_out`` is not the share to expect
        of other rows and has no part in ``mean``.
    random_mean, random_low, random_high : float
        The same estimate and interval by labels of random rows alone (prediction-powered inference), which hold whatever the
        probabilities are worth; NaN if no label is known to be random. With groups, groups are the unit.
    n_random : float
        Number of labels of random rows. One that is the only one of its class counts as predicted wrongly.
    n_groups : int
        Groups whose labels were held out, together; the interval is for rows of new groups. 0 if the fit had no groups.
    """

    mean: float
    low: float
    high: float
    level: float
    held_out: float
    n_held_out: float
    labels_only: float
    gained: float
    lost: float
    chosen: bool = False
    random_mean: float = np.nan
    random_low: float = np.nan
    random_high: float = np.nan
    n_random: float = 0.0
    n_groups: int = 0
    wide: ClassVar[float] = 0.2  # width of the interval from which on more labels are needed to judge a model

    @property
    def is_known(self) -> bool:
        """Whether the estimate says anything: labels were held out, and the interval is at most half of all accuracies wide."""
        return self.n_held_out > 0.0 and self.high - self.low <= WIDEST

    def judge(self, largest: float) -> tuple[str, str]:
        """Whether such a model can be used where the largest class has this share: yes, partial, open or no, and a sentence."""
        if not self.is_known:
            return "open", "Cannot be judged yet"
        if self.mean <= largest:
            return "no", "Not usable yet: no better than always naming the largest class"
        if self.low <= largest:
            return "open", "Not shown yet to be better than always naming the largest class"
        if self.high - self.low > self.wide:
            return "partial", "Promising, but there are too few labels to be sure"
        return "yes", "Usable for rows like these"

    def _repr_html_(self) -> str:
        bar = html_interval(self.low, self.mean, self.high) if self.is_known else ""
        return html_box(bar, html_sentence(self))

    @property
    def few_groups(self) -> str:
        """A sentence if the interval is wide because few groups have labels, else empty."""
        if not 0 < self.n_groups < FEW_GROUPS:
            return ""
        have = "group has" if self.n_groups == 1 else "groups have"
        return f"The interval is wide because only {self.n_groups} {have} labels: label rows of more groups."

    def __str__(self) -> str:
        if self.n_held_out == 0.0:
            several = ", in two groups or more" if self.n_groups else ""
            return (
                f"Expected accuracy unknown: no label could be held out. Label two rows or more of each class{several}."
            )
        interval = f"{self.level:.0%} interval {self.low:.1%} to {self.high:.1%}"
        where = " on rows of new groups" if self.n_groups else ""
        estimate = f"Expected accuracy{where} {f'{self.mean:.1%}' if self.is_known else 'unknown'} ({interval})."
        if self.few_groups:
            estimate += f" {self.few_groups}"
        elif not self.is_known:
            estimate += " Label more rows."
        if self.chosen:
            estimate += (
                " It comes from the probabilities alone, because the labeled rows were chosen and differ from others."
            )
        if self.n_random:
            estimate += f" {self.of_random_rows()}"
        if np.isnan(self.labels_only):
            return f"{estimate} Of {self.n_held_out:g} held-out labels {self.held_out:.1%} are predicted correctly."
        return (
            f"{estimate} Of {self.n_held_out:g} held-out labels {self.held_out:.1%} are predicted correctly, "
            f"{self.labels_only:.1%} by the labels alone: the unlabeled rows {self.effect()}."
        )

    def of_random_rows(self) -> str:
        """What the labels of random rows say, in a sentence; they must be some."""
        labels = (
            "1 label of a random row says" if self.n_random == 1 else f"{self.n_random:.0f} labels of random rows say"
        )
        mean = f"{self.random_mean:.1%}" if self.random_high - self.random_low <= WIDEST else "nothing yet"
        return f"The {labels} {mean} ({self.random_low:.1%} to {self.random_high:.1%})."

    def effect(self) -> str:
        """Whether the unlabeled rows helped, in a few words, by a sign test on the labels that they changed."""
        changed = round(self.gained + self.lost)
        if self.gained == self.lost or changed == 0:
            return "made no difference"
        p = binomtest(round(self.gained), changed).pvalue
        effect = f"{'helped' if self.gained > self.lost else 'did harm'} ({self.gained:g} gained, {self.lost:g} lost)"
        return effect if p <= CHANCE else f"{effect}, which may be chance (p = {p:.2g})"


@dataclass(frozen=True)
class HeldOutAccuracy:
    """What held-out labels and unlabeled rows say of the accuracy."""

    hits: float  # share of held-out labels that are predicted correctly
    labels_only: float  # the same without the unlabeled rows
    gained: float  # weighted number of labels predicted correctly only with the unlabeled rows
    lost: float  # and only without
    largest: float  # mean largest probability of the unlabeled rows; with groups, of the held-out labels
    n_held_out: float
    confidence_labels: float  # held-out labels that the mean largest probability counts as
    interval_labels: tuple[float, float]  # a and b: the interval is that of a share seen in a n_held_out + b rows
    chosen: bool = False  # whether labeled rows were chosen by a rule, so that other rows are not like them
    random: RandomLabels | None = None  # what labels of random rows say, if there are any
    n_groups: int = 0  # groups with labels, if the user gave groups
    group_labels: float = MAX_HELD_OUT  # independent labels that those of all groups count as for rows of new groups

    def estimate(self, level: float) -> AccuracyEstimate:
        """With the interval of a share that was seen in fewer rows than were held out.

        Fewer, because the members were weighed with the same labels, and because labels drawn per class have other class
        shares than the rows it is for. For rows of new groups, labels of one group count as fewer than were held out.
        Rows that were chosen because they are uncertain say nothing of the accuracy on others: mean and interval are those
        of the probabilities alone, as of a share that was seen in as many rows as they count for, but not in more than there are
        labels, by which they are calibrated.
        """
        seen = 0.0 if self.chosen else self.n_held_out
        # What unlabeled rows of the same groups add to held-out labels is not to be expected on groups that have none.
        hits = float(np.fmin(self.hits, self.labels_only)) if self.n_groups else self.hits
        mean = (seen * hits + self.confidence_labels * self.largest) / (seen + self.confidence_labels)
        if self.chosen:
            n = min(self.confidence_labels, self.n_held_out, self.group_labels)
            low, high = _exact_interval(mean, n, level)
        else:
            slope, least = self.interval_labels
            n, tail = slope * min(seen, self.group_labels) + least, 0.5 * (1.0 - level)
            right, wrong = mean * n + 0.5, (1.0 - mean) * n + 0.5
            low, high = float(beta.ppf(tail, right, wrong)), float(beta.isf(tail, right, wrong))
        random = self.random
        of_random = {}
        if random is not None:
            random_low, random_high = random.interval(level)
            of_random = {
                "random_mean": random.mean,
                "random_low": random_low,
                "random_high": random_high,
                "n_random": random.n_labels,
            }
        return AccuracyEstimate(
            mean=mean,
            low=min(low, mean),
            high=max(high, mean),
            level=level,
            held_out=self.hits,
            n_held_out=self.n_held_out,
            labels_only=self.labels_only,
            gained=self.gained,
            lost=self.lost,
            chosen=self.chosen,
            **of_random,
            n_groups=self.n_groups,
        )


def _exact_interval(mean: float, n: float, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share that was seen in n rows: that of Jeffreys misses shares near one if n is small."""
    right, wrong, tail = mean * n, (1.0 - mean) * n, 0.5 * (1.0 - level)
    low = float(beta.ppf(tail, right, wrong + 1.0)) if right > 0.0 else 0.0
    return low, float(beta.isf(tail, right + 1.0, wrong)) if wrong > 0.0 else 1.0


def held_out_accuracy(
    log_p: Array,
    labels_only: Array | None,
    codes: IntArray,
    weights: Array,
    largest: float,
    tuning: Tuning,
    *,
    drawn: Array | None = None,
    chosen: bool = False,
    random: RandomLabels | None = None,
    groups: IntArray | None = None,
) -> HeldOutAccuracy:
    """What can be said of the accuracy.

    Parameters
    ----------
    log_p : (l, K), of the labeled rows by fits without their labels
    labels_only : (l, K), the same by members that learn from labeled rows alone; None if there are none
    codes, weights : (l,), classes, and weights, zero for labels that were not held out
    largest : mean largest probability of the unlabeled rows; NaN if there are none
    drawn : (l,), the weights as labels were drawn, by which they are counted; None if they are the same
    groups : (l,), numbers of the labels' groups, if the rows that the accuracy is for are of new groups; else None
    """
    total, counted = float(weights.sum()), weights if drawn is None else np.where(weights > 0.0, drawn, 0.0)
    right = log_p.argmax(axis=1) == codes
    alone = right if labels_only is None else labels_only.argmax(axis=1) == codes
    hits = float(weights @ right) / total if total > 0.0 else np.nan
    if (
        groups is not None and total > 0.0 and not chosen
    ):  # of groups as good as new, unlike those of the unlabeled rows
        largest = float(weights @ np.exp(log_p).max(axis=1)) / total
    if np.isnan(largest):
        largest = 1.0 / log_p.shape[1] if np.isnan(hits) else hits
    known = labels_only is not None and total > 0.0
    return HeldOutAccuracy(
        hits=largest if np.isnan(hits) else hits,
        labels_only=float(weights @ alone) / total if known else np.nan,
        gained=float(counted @ (right & ~alone)),
        lost=float(counted @ (alone & ~right)),
        largest=largest,
        n_held_out=float(counted.sum()),
        confidence_labels=tuning.confidence_labels,
        interval_labels=tuning.interval_labels,
        chosen=chosen,
        random=random,
        n_groups=0 if groups is None else np.unique(groups).size,
        group_labels=MAX_HELD_OUT if groups is None else labels_between_groups(right, groups, weights),
    )


def labels_between_groups(right: Array, groups: IntArray, weights: Array) -> float:
    """Independent labels that say as much of the accuracy on new groups as those of these groups do.

    The accuracy of a group has a beta distribution with mean μ and variance ρμ(1 - μ), so that the h_g hits among the n_g
    held-out labels of group g are beta-binomial:

        p(h | μ, ρ) ∝ Π_g B(sμ + h_g, s(1 - μ) + n_g - h_g) / B(sμ, s(1 - μ)),   s = (1 - ρ)/ρ.

    With Jeffreys' prior of a share for μ, and all standard deviations √ρ between 0 and 1 equally probable (A. Gelman, "Prior
    distributions for variance parameters in hierarchical models", 2006), μ has the posterior mean m and variance v. A beta
    distribution with these has the counts of m(1 - m)/v - 1 labels, one of which is the prior's. Few groups
    leave large ρ possible, and so count as about as many labels as there are groups.
    """
    if not weights.any():
        return 0.0
    own = np.unique(groups, return_inverse=True)[1]
    n = np.minimum(np.bincount(own, weights=weights), MAX_HELD_OUT)
    h = np.minimum(np.bincount(own, weights=weights * right), n)
    s = (1.0 - GRID**2) / GRID**2
    a, b = s * GRID[:, None], s * (1.0 - GRID[:, None])
    log_p = -n.size * betaln(a, b)
    pairs, counts = np.unique([h, n], axis=1, return_counts=True)
    for (hits, labels), count in zip(pairs.T, counts, strict=True):
        log_p += count * betaln(a + hits, b + labels - hits)
    log_p = logsumexp(log_p, axis=1) - 0.5 * np.log(GRID * (1.0 - GRID))
    p = np.exp(log_p - logsumexp(log_p))
    mean = float(p @ GRID)
    variance = max(float(p @ (GRID - mean) ** 2), 1.0 / MAX_HELD_OUT)
    return min(max(mean * (1.0 - mean) / variance - 2.0, 0.0), MAX_HELD_OUT)
