"""
Which rows to label next
========================

``suggest`` proposes rows whose labels are worth most: typical of many rows whose class is uncertain. Labels are asked for
ten at a time; for comparison the same number is drawn at random.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED, suggest_first
from cmvmed.datasets import load_digits_views

warnings.filterwarnings("ignore", message="Class . has one labeled row")
digits = load_digits_views()
X, truth = digits.data[:400], digits.target[:400]


def accuracy(labeled, drawn):
    """A model of the labeled rows, and its accuracy on the others."""
    y = np.full(400, -1)
    y[labeled] = truth[labeled]
    model = CMVMED(views=digits.views, labels_drawn=drawn).fit(X, y)
    return model, model.score(X[y == -1], truth[y == -1])


# %%
# Before there is any label, ``suggest_first`` chooses rows that cover the data.

proposed, asked = suggest_first(X, 20, views=digits.views, random_share=0.0).rows, []
for _ in range(3):
    model, score = accuracy(proposed, "chosen")
    asked.append(score)
    proposed = np.append(proposed, model.suggest(10, random_share=0.0).rows)
print(model.suggest(1, random_share=0.0).reasons[0])

order = np.random.default_rng(0).permutation(400)
random = [accuracy(order[:n], "random")[1] for n in (20, 30, 40)]

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.plot([20, 30, 40], asked, "o-", label="rows that were suggested")
axis.plot([20, 30, 40], random, "s--", label="rows at random")
axis.set(xlabel="labels, of ten classes", ylabel="accuracy on the other rows", xticks=[20, 30, 40])
axis.legend(loc="center right")
plt.show()
