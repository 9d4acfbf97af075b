"""
The accuracy to expect, without a test set
==========================================

``accuracy_estimate()`` predicts the accuracy on the unlabeled rows from the labels and the probabilities. Here it is
compared with the accuracy that it cannot see, for eight draws of 30 labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import load_digits_views
from cmvmed.model_selection import hide_labels

digits = load_digits_views(parity=True)
X, truth = digits.data[:300], digits.target[:300]
estimates, actual = [], []
for draw in range(8):
    y = hide_labels(truth, 30, random_state=draw)
    model = CMVMED(views=digits.views).fit(X, y)
    estimates.append(model.accuracy_estimate())
    actual.append(model.score(X[y == -1], truth[y == -1]))
print(estimates[0])

# %%
# Bars are 90 % intervals. About one in ten may miss the true accuracy.

order = np.argsort(actual)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for place, draw in enumerate(order):
    axis.plot([place, place], [estimates[draw].low, estimates[draw].high], color="lightsteelblue", linewidth=6)
axis.plot([estimates[draw].mean for draw in order], "o", label="estimate, with its interval")
axis.plot([actual[draw] for draw in order], "kx", label="true accuracy on the unlabeled rows")
axis.set(xlabel="draws of 30 labels, by true accuracy", ylabel="accuracy", xticks=[])
axis.legend(loc="lower right")
plt.show()
