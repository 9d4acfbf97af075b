"""What the demonstration learns of the bundled room: the share of hidden labels predicted correctly, and by the labels alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmvmed import CMVMED
from cmvmed.datasets import load_room


@dataclass(frozen=True)
class RoomScores:
    """Shares of the hidden labels that are predicted correctly."""

    n_labeled: int
    n_hidden: int
    accuracy: float  # of the model that was learned from all rows
    labels_only: dict[str, float]  # of others, which were learned from the labeled rows
    majority: float  # share of the largest class

    @property
    def sentence(self) -> str:
        """What was learned, in words."""
        others = ", ".join(f"{name} {100 * share:.1f}%" for name, share in self.labels_only.items())
        return (
            f"{self.n_labeled} of {self.n_labeled + self.n_hidden} rows are labeled. The labels of the others are known but were "
            f"hidden: the model predicts {100 * self.accuracy:.1f}% of these {self.n_hidden} correctly. Learned from the "
            f"{self.n_labeled} labeled rows alone: {others}. The largest class has {100 * self.majority:.1f}%."
        )


def score_room(predicted: Sequence[str]) -> RoomScores:
    """Compare predicted classes of all training rows of :func:`cmvmed.datasets.load_room` with the hidden labels.

    Parameters
    ----------
    predicted : (n,) names of classes, in the order of the rows
    """
    room = load_room()
    truth = room.target_names[room.target]
    labeled = np.array([label is not None for label in room.labels])
    others = {
        "the same model": CMVMED(views=room.views),
        "random forest": RandomForestClassifier(300, random_state=0),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    shares = {
        name: float(
            np.mean(model.fit(room.data[labeled], truth[labeled]).predict(room.data[~labeled]) == truth[~labeled])
        )
        for name, model in others.items()
    }
    counts = np.bincount(room.target[~labeled])
    right = np.asarray(predicted)[~labeled] == truth[~labeled]
    return RoomScores(int(labeled.sum()), len(right), float(right.mean()), shares, float(counts.max() / len(right)))
