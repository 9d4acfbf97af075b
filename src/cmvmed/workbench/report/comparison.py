"""Would a random forest do: classifiers that learn from the labels alone, beside the model, on the same held-out labels."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmvmed.pages.charts import Chart, DotRow, Mark, dot_chart
from cmvmed.pages.formatting import DASH, format_percentage, plural, share_interval
from cmvmed.workbench.report.model_facts import HeldOutLabels, ModelFacts, dense_rows
from cmvmed.workbench.tables.columns import BoolArray

N_FOLDS, N_TREES = 5, 100
MAX_NUMBERS = 20_000_000  # features times labeled rows, beyond which nothing is compared
LARGEST = 1e30  # number that trees, which compute in single precision, can hold
CHANCE = 0.1  # probability above which a difference may be chance
TREES, LINEAR = "extra trees", "logistic regression"


@dataclass(frozen=True)
class ComparedClassifier:
    """A classifier on the held-out labels."""

    name: str
    share: float  # of the labels that are predicted correctly
    interval: tuple[float, float]
    gained: int  # labels that only the model predicts correctly
    lost: int  # and only the classifier

    @property
    def p_value(self) -> float:
        """Of a sign test on the labels that one of the two predicts correctly."""
        changed = self.gained + self.lost
        return float(binomtest(self.gained, changed).pvalue) if changed else 1.0


@dataclass(frozen=True)
class Comparison:
    """All classifiers, the model first, with a sentence and a figure."""

    classifiers: tuple[ComparedClassifier, ...]
    lines: tuple[tuple[str, str, str], ...]  # name, share with interval, labels that only one predicts correctly
    sentence: str
    figure: str


def compare(facts: ModelFacts) -> Comparison | None:
    """None if no label was held out."""
    held_out = facts.held_out
    if held_out is None:
        return None
    n, right = len(held_out.codes), held_out.is_right
    classifiers = [_compared("this model", right, right)]
    if facts.estimate is not None and not np.isnan(facts.estimate.labels_only):
        alone = facts.estimate
        interval = share_interval(alone.labels_only * n, n)
        classifiers.append(
            ComparedClassifier("its labels alone", alone.labels_only, interval, round(alone.gained), round(alone.lost))
        )
    classifiers += [
        _compared(name, found == held_out.codes, right) for name, found in _predictions(facts, held_out).items()
    ]
    return Comparison(
        tuple(classifiers),
        tuple(map(_line, classifiers)),
        _sentence(classifiers),
        _figure(facts, held_out, classifiers),
    )


def _compared(name: str, own: BoolArray, model: BoolArray) -> ComparedClassifier:
    n, n_right = len(own), int(own.sum())
    gained, lost = int((model & ~own).sum()), int((own & ~model).sum())
    return ComparedClassifier(name, n_right / n, share_interval(n_right, n), gained, lost)


def _predictions(facts: ModelFacts, held_out: HeldOutLabels) -> dict[str, NDArray[np.intp]]:
    """Classes of the held-out labels by fits to the labels of other folds; groups are held out together."""
    labeled = np.flatnonzero(facts.codes >= 0)
    if len(labeled) * sum(matrix.shape[1] for matrix in facts.table.views.values()) > MAX_NUMBERS:
        return {}
    X, codes = np.hstack([dense_rows(matrix, labeled) for matrix in facts.table.views.values()]), facts.codes[labeled]
    X = np.clip(X, -LARGEST, LARGEST)
    groups = np.arange(len(labeled)) if facts.table.groups is None else facts.table.groups[labeled].astype(str)
    at = np.searchsorted(labeled, held_out.rows)
    n_folds = min(N_FOLDS, int(np.bincount(codes[at]).max()), len(np.unique(groups[at])))
    if n_folds < 2 or len(np.unique(codes)) < 2:
        return {}
    found = {name: np.full(len(labeled), -1, dtype=np.intp) for name in (TREES, LINEAR)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer labels than folds, and fits that stop early
        for _, fold in StratifiedGroupKFold(n_folds, shuffle=True, random_state=0).split(at, codes[at], groups[at]):
            out = at[fold]
            kept = ~np.isin(groups, groups[out])
            for name, classifier in _classifiers().items():
                several = len(np.unique(codes[kept])) > 1
                fitted = classifier.fit(X[kept], codes[kept]) if several else None
                found[name][out] = codes[kept][0] if fitted is None else fitted.predict(X[out])
    return {name: predicted[at] for name, predicted in found.items()}


def _classifiers() -> dict[str, Any]:
    """With a column of gaps for each column that has some, as is usual for tables."""
    fill = {"add_indicator": True, "keep_empty_features": True}
    return {
        TREES: make_pipeline(SimpleImputer(**fill), ExtraTreesClassifier(N_TREES, random_state=0)),
        LINEAR: make_pipeline(SimpleImputer(**fill), StandardScaler(), LogisticRegression(max_iter=1000)),
    }


def _line(own: ComparedClassifier) -> tuple[str, str, str]:
    low, high = (f"{100.0 * bound:.0f}" for bound in own.interval)
    only = f"{own.gained} / {own.lost}" if own.gained + own.lost else DASH
    return own.name, f"{format_percentage(own.share)} ({low} to {high})", only


def _sentence(classifiers: list[ComparedClassifier]) -> str:
    """Whether the best of the other classifiers would do."""
    others = [own for own in classifiers if own.name in (TREES, LINEAR)]
    if not others:
        return "Other classifiers were not compared: there are too few labels of two groups or classes, or too many columns."
    best = max(others, key=lambda own: own.share)
    found = (
        f"Of the same held-out labels, {format_percentage(classifiers[0].share)} are predicted correctly by this model and "
        f"{format_percentage(best.share)} by {best.name}, fitted to the labels alone: {plural(best.gained, 'label')} only by this "
        f"model, {best.lost} only by {best.name}"
    )
    p = min(len(others) * best.p_value, 1.0)  # the best of several is good by chance more often
    if best.gained == best.lost:
        return f"{found}. On this evidence {best.name} would do."
    if p > CHANCE:
        return f"{found}, which may be chance (p = {p:.2g}). On this evidence {best.name} would do."
    return f"{found}, so {'this model pays' if best.gained > best.lost else f'{best.name} would do better'}."


def _figure(facts: ModelFacts, held_out: HeldOutLabels, classifiers: list[ComparedClassifier]) -> str:
    """All classifiers on one axis, with the share of the largest class of the same labels."""
    counts = np.bincount(held_out.codes)
    largest, name = 100.0 * counts.max() / counts.sum(), facts.class_names[int(counts.argmax())]
    rows = [
        DotRow(
            own.name,
            "complete" if number == 0 else "single",
            (Mark(100.0 * own.share, (100.0 * own.interval[0], 100.0 * own.interval[1]), _shape(number)),),
        )
        for number, own in enumerate(classifiers)
    ]
    described = "; ".join(f"{own.name} {100 * own.share:.1f}" for own in classifiers)
    chart = Chart(
        "figure-accuracy",
        "Held-out labels predicted correctly",
        f"In percent: {described}; always naming the largest class, {name}, {largest:.1f}.",
        "held-out labels predicted correctly, %; 90 % intervals",
    )
    return dot_chart(chart, rows, reference=(largest, "largest class"))


def _shape(number: int) -> str:
    return "disc" if number == 0 else "square"
