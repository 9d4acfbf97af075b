"""
How well probabilities are calibrated
=====================================

Of the rows to which a model gives a probability of 80 %, about 80 % should be right. Two methods that learn from
unlabeled rows are compared on two Gaussian views with 30 labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

right, stated = {"CMVMED": [], "LabelSpreading": []}, {"CMVMED": [], "LabelSpreading": []}
for draw in range(4):
    data = make_multiview_gaussian(500, n_features=10, separation=(1.1, 0.8), labeled=30, random_state=draw)
    X, new = StandardScaler().fit_transform(data.data), data.y == -1
    models = {"CMVMED": CMVMED(views=data.views), "LabelSpreading": LabelSpreading(gamma=0.25)}
    for name, model in models.items():
        p = model.fit(X, data.y).predict_proba(X[new])
        right[name].extend(p.argmax(axis=1) == data.target[new])
        stated[name].extend(p.max(axis=1))

# %%
# Rows in ten groups of equal size, by the probability of the predicted class. Below the dotted line a method promises
# more than it keeps, above it less.

figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
axis.plot([0.5, 1], [0.5, 1], color="gray", linestyle=":", label="stated = observed")
for name, style in (("CMVMED", "o-"), ("LabelSpreading", "s--")):
    groups = np.array_split(np.argsort(stated[name]), 10)
    axis.plot(
        [np.mean(np.array(stated[name])[group]) for group in groups],
        [np.mean(np.array(right[name])[group]) for group in groups],
        style,
        label=f"{name}: {np.mean(right[name]):.0%} right",
    )
axis.set(xlabel="probability of the predicted class", ylabel="share of these rows that are right")
axis.legend(loc="upper left")
plt.show()
