"""Classify a data frame whose column prefixes name the sensors, and compare with a classifier of the labels only."""

from cmvmed import CMVMED, MED
from cmvmed.datasets import load_digits_views
from cmvmed.model_selection import hide_labels

digits = load_digits_views(as_frame=True)  # columns upper__0 ... lower__31
X, truth = digits.data, digits.target
y = hide_labels(truth, 40, random_state=0)  # 40 labels, -1 for the other 1757 rows

model = CMVMED(views={"upper half": "upper", "lower half": "lower"}).fit(X, y)
baseline = MED().fit(X, y)

hidden = y == -1
print(f"labels only: {baseline.score(X[hidden], truth[hidden]):.3f}")
print(f"CMV-MED:     {model.score(X[hidden], truth[hidden]):.3f}")
print({view: round(accuracy, 3) for view, accuracy in model.score_by_view(X[hidden], truth[hidden]).items()})
