"""
Few labels, many unlabeled rows
===============================

Handwritten digits, whose upper and lower halves are two "sensors". How many of the unlabeled rows are classified
correctly with 20 to 80 labels, by classifiers of the labels alone and by the consensus of both sensors?
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmvmed import CMVMED
from cmvmed.datasets import load_digits_views
from cmvmed.model_selection import hide_labels

digits = load_digits_views()
X, truth = digits.data[:700], digits.target[:700]
counts = [20, 40, 80]

# %%
# ``hide_labels`` keeps some labels and replaces the others by -1, the marker of unlabeled rows. ``views`` says which
# columns belong to which sensor.

accuracy = {"logistic regression, labels only": [], "CMVMED": []}
for n_labels in counts:
    y = hide_labels(truth, n_labels, random_state=0)
    hidden = y == -1
    alone = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[~hidden], truth[~hidden])
    model = CMVMED(views=digits.views).fit(X, y)
    accuracy["logistic regression, labels only"].append(alone.score(X[hidden], truth[hidden]))
    accuracy["CMVMED"].append(model.score(X[hidden], truth[hidden]))

# %%
# The fewer the labels, the more the unlabeled rows are worth.

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, values), style in zip(accuracy.items(), ("s--", "o-"), strict=True):
    axis.plot(counts, values, style, label=name)
axis.set(xlabel="labels, of ten classes", ylabel="accuracy on the unlabeled rows", xticks=counts, ylim=(0, 1))
axis.legend(loc="lower right")
plt.show()
