"""What a fit tells its user: its progress, through the callbacks of scikit-learn, and warnings at its end."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from cmvmed._warnings import warn_user
from cmvmed.auto.approximation import MAX_RESIDUAL
from cmvmed.auto.consensus_weight import mean_agreement
from cmvmed.auto.plan import ChosenPlan
from cmvmed.core.annealing import AnnealingResult
from cmvmed.core.consensus import class_shares
from cmvmed.members.pool import LabelMembers, PoolFit
from cmvmed.members.shares import ShareSensitivity
from cmvmed.numerics.types import Array
from cmvmed.views.training_data import NO_VIEW_WARNING, TrainingData

if TYPE_CHECKING:
    from cmvmed.estimators.cmvmed import CMVMED

MAX_RELATIVE_GAP = 1e-4  # duality gap, relative to the objective, that passes without a warning
MIN_DRAW_PROBABILITY = 0.001  # of the labels' counts in a random draw, below which they are warned of
MIN_DIFFERENCE = 0.05  # of a class share, below which it does not matter
NEARLY_ALL = 0.9  # share of a class from which on no classifier has much to add
MOST_ROWS = 0.5  # share of the unlabeled rows whose class depends on the class shares,
MUCH_ACCURACY = 0.05  # and accuracy that other shares cost, from which on both are said
MAX_EXAMPLES = 4  # classes whose ranges a warning shows
NO_AGREEMENT = 0.05  # mean correlation of the views' scores that is as good as none


class StageReporter:
    """Calls the callbacks at the beginning and end of each stage.

    Callbacks that take ``fitted_estimator`` get the estimator as if the fit had ended with this stage.
    """

    def __init__(
        self,
        estimator: "CMVMED",
        X: object,
        y: object,
        max_stages: int,
    ) -> None:
        self.estimator, self.data = estimator, {"X": X, "y": y}
        self.attributes: Callable[[AnnealingResult], dict[str, Any]] = lambda result: {}  # of a fit that ends so
        self.root = estimator._init_callback_context(max_subtasks=max_stages)
        self.root.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.stage: Any = None

    def before_stage(self, stage: int) -> None:
        """Report the beginning of a stage."""
        self.stage = self.root.subcontext(task_name="stage")
        self.stage.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_stage(self, stage: int, result: AnnealingResult) -> bool:
        """Report the end of a stage; True if a callback asks to stop."""
        stop = self.stage.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=lambda: self.attributes(result), **self.data
        )
        return bool(stop)

    def finish(self, attributes: dict[str, Any]) -> None:
        """Report the end of the fit."""
        self.root.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=lambda: attributes, **self.data
        )


def warn_of_fit(
    chosen: ChosenPlan,
    result: AnnealingResult,
    pool: PoolFit,
    training: TrainingData,
    missed: Mapping[str, float],
    *,
    complete: bool,
) -> None:
    """Warn of all that a user should know of a fit.

    Parameters
    ----------
    missed : by view, the part of its kernel that landmarks miss whose number the user did not choose
    complete : whether all rows are in memory
    """
    for message, category in fit_warnings(result, chosen.settings.max_iter, training, complete=complete):
        warn_user(message, category)
    for message in landmark_warnings(missed):
        warn_user(message)
    for message in label_warnings(chosen, pool, training):
        warn_user(message)


def fit_warnings(
    result: AnnealingResult, max_iter: int, training: TrainingData, *, complete: bool
) -> Iterator[tuple[str, type[Warning]]]:
    """What a user should know of a fit, each with the category of its warning; ``complete`` if all rows are in memory."""
    labels, partition = training.labels, training.partition
    if not result.converged:
        yield (
            f"The last stage did not converge within max_iter={max_iter} sweeps; raise max_iter or tol.",
            ConvergenceWarning,
        )
    if not solves_duals(result):
        yield (
            f"The dual problems of the labeled rows are solved only to a gap of {result.dual_gap:.2g}, so predictions are not "
            'reliable. Use a smaller C or prior_variance, or scaling="auto".',
            ConvergenceWarning,
        )
    without_views = labels.codes.size - partition.block_L.size - partition.block_U.size
    if without_views and complete:
        yield NO_VIEW_WARNING.format(without_views), UserWarning
    if result.consensus_weight > 0.0:
        yield from _lost_classes(result, training)


def landmark_warnings(missed: Mapping[str, float]) -> Iterator[str]:
    """That landmarks miss much of the kernel of a view."""
    worst = max(missed, key=missed.__getitem__, default=None)
    if worst is not None and missed[worst] > MAX_RESIDUAL:
        yield (
            f"The landmarks miss {missed[worst]:.0%} of the kernel of view {worst!r}, so predictions may differ from those of "
            'the exact kernel. Use approximation="exact" (its time grows with the cube of the number of rows), more landmarks, '
            "or a smaller gamma."
        )


def solves_duals(result: AnnealingResult) -> bool:
    """Whether the duality gap at the end is small compared with the objective."""
    return result.dual_gap <= MAX_RELATIVE_GAP * (1.0 + abs(result.history[-1].objective))


def _lost_classes(result: AnnealingResult, training: TrainingData) -> Iterator[tuple[str, type[Warning]]]:
    """A warning if a class has almost no unlabeled rows in the consensus."""
    labels, partition = training.labels, training.partition
    mass = partition.weights[partition.block_U] * result.consensus.coverage
    share, expected = class_shares(result.consensus.q, mass), partition.counts / partition.counts.sum()
    lost = share < np.minimum(1.0 / partition.block_U.size, 0.1 * expected)
    if lost.any():
        name = labels.classes[lost].tolist()[0]
        yield (
            f"The consensus has drifted away from class {name!r}: it has {share[lost][0]:.2%} of the unlabeled rows, but "
            f'{expected[lost][0]:.2%} of the labeled ones. Use class_prior="labels" or give the class shares.',
            UserWarning,
        )


def label_warnings(chosen: ChosenPlan, pool: PoolFit, training: TrainingData) -> Iterator[str]:
    """Where labels are too few or unlike the unlabeled rows, each in one sentence with what to do."""
    of_labels, classes = pool.of_labels, training.labels.classes.tolist()
    yield from _single_labels(of_labels, classes)
    yield from _unlikely_draw(pool, chosen, classes)
    learned_nothing = list(_no_signal(chosen, pool))
    yield from learned_nothing or _uncertain_shares(chosen, pool, classes)


def _single_labels(of_labels: LabelMembers, classes: list[Any]) -> Iterator[str]:
    rows = of_labels.rows
    everything = np.ones(rows.codes.size, dtype=bool)
    alone = np.unique(rows.codes[(rows.judged(everything) == 0.0) & (rows.weights > 0.0)])
    if alone.size:
        name, more = classes[alone[0]], alone.size - 1
        others = f" (and {more} more such class{'es' if more > 1 else ''})" if more else ""
        single = (rows.codes == alone[0]).sum() == 1
        what = "one labeled row" if single else "labeled rows of one group only, or equal ones"
        yield (
            f"Class {name!r} has {what}{others}, which cannot be held out. The weights of the members and the accuracy "
            f"estimate ignore it: label at least one more row of it{'' if single else ', of another group'}."
        )


def _unlikely_draw(pool: PoolFit, chosen: ChosenPlan, classes: list[Any]) -> Iterator[str]:
    of_labels, plan, infers = pool.of_labels, chosen.plan, chosen.settings.infers_shares
    if of_labels.per_class or not infers or plan.shares is None or not of_labels.parts:
        return
    counts = of_labels.rows.counts(np.ones(of_labels.rows.codes.size, dtype=bool))
    p, share = draw_probability(counts, plan.shares), counts / counts.sum()
    worst = int(np.abs(share - plan.shares).argmax())
    if p < MIN_DRAW_PROBABILITY and abs(share[worst] - plan.shares[worst]) > MIN_DIFFERENCE:
        name = classes[worst]
        yield (
            f"The labels do not look like a random draw of the rows (p = {p:.1g}): class {name!r} is {share[worst]:.0%} of the "
            f"labeled rows, but an estimated {plan.shares[worst]:.0%} of the unlabeled ones. If they were drawn class by "
            'class, use labels_drawn="per_class". If suggest or a similar rule chose them, use "chosen". If you know the shares, '
            f"give them or ranges, as in class_prior={_example_ranges(pool.sensitivity, classes)}."
        )


def _uncertain_shares(chosen: ChosenPlan, pool: PoolFit, classes: list[Any]) -> Iterator[str]:
    found, n_labels = pool.sensitivity, pool.of_labels.rows.codes.size
    depend = found.changed > MOST_ROWS and found.accuracy[0] < -MUCH_ACCURACY
    if chosen.settings.infers_shares and pool.judged and pool.of_labels.judged.any() and depend:
        yield (
            f"The class of {found.changed:.0%} of the unlabeled rows depends on the class shares, and {n_labels} labels are too "
            "few to estimate them. If you know roughly how frequent the classes are, give ranges, as in "
            f"class_prior={_example_ranges(found, classes)}. Narrower ranges help more. Or label more rows."
        )


def _example_ranges(found: ShareSensitivity, classes: list[Any]) -> str:
    """What to write: the plausible range of each class, or of some if there are many."""
    low, high = np.floor(100.0 * found.plausible.low) / 100.0, np.ceil(100.0 * found.plausible.high) / 100.0
    shown = [f"{name!r}: ({a:g}, {b:g})" for name, a, b in zip(classes, low, high, strict=True)]
    return "{" + ", ".join([*shown[:MAX_EXAMPLES], *["..."] * (len(shown) > MAX_EXAMPLES)]) + "}"


def _no_signal(chosen: ChosenPlan, pool: PoolFit) -> Iterator[str]:
    found, plan, of_labels = pool.accuracy, chosen.plan, pool.of_labels
    if found is None or found.n_held_out == 0.0 or not of_labels.partition.unlabeled_weights.any():
        return
    counts = of_labels.rows.counts(np.ones(of_labels.rows.codes.size, dtype=bool))
    most, largest = counts.max() / counts.sum(), float(plan.class_prior.max())
    if not of_labels.per_class:  # the labels show the shares, too
        largest = max(largest, most)
    agreement = mean_agreement(plan.start.agreement, plan.view_weights)
    if found.hits <= most and agreement < NO_AGREEMENT:
        yield (
            f"The model learned nothing: held-out labels are predicted correctly no more often ({found.hits:.0%}) than by always "
            f"naming the most frequent class ({most:.0%}), and the views do not agree. Check that the rows of X and y belong "
            "together, or use other features."
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
