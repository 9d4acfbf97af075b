"""
Labels that say nothing of the class shares
===========================================

If the same number of rows of each class was labeled, the labels do not show how frequent the classes are. The shares are
then learned from the unlabeled rows, or given if they are known.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

settings = {
    "shares of the labels": {"class_prior": "labels", "labels_drawn": "random"},
    "learned": {"labels_drawn": "per_class"},
    "given": {"class_prior": 0.15},
}
accuracy = {name: [] for name in settings}
share = {name: [] for name in settings}
for draw in range(3):
    data = make_multiview_gaussian(
        400, n_features=8, separation=(1.4, 1.1), class_weights=(0.85, 0.15), random_state=draw
    )
    y = np.full(400, -1)
    for label in (0, 1):
        y[np.flatnonzero(data.target == label)[:10]] = label
    for name, parameters in settings.items():
        model = CMVMED(views=data.views, **parameters).fit(data.data, y)
        accuracy[name].append(model.score(data.data[y == -1], data.target[y == -1]))
        share[name].append(np.mean(model.predict(data.data[y == -1]) == 1))

# %%
# Fifteen percent of the rows are of the second class; of the labels it is a half.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for place, name in enumerate(settings):
    axes[0].plot([place] * 3, share[name], "o", color=f"C{place}")
    axes[1].plot([place] * 3, accuracy[name], "o", color=f"C{place}")
axes[0].axhline(0.15, color="gray", linestyle=":")
axes[0].set_ylabel("share of rows predicted as second class")
axes[1].set_ylabel("accuracy")
for axis in axes:
    axis.set(xticks=range(3), xticklabels=list(settings), xlim=(-0.5, 2.5))
plt.show()
