"""
What each sensor adds to a decision
===================================

``explain`` divides the score of a row among the sensors and the class prior. The shares add up to the score, and a sensor
that a row lacks has no share.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import load_breast_cancer_views
from cmvmed.model_selection import hide_labels

cancer = load_breast_cancer_views()
X, truth = cancer.data[:400].copy(), cancer.target[:400]
y = hide_labels(truth, 20, random_state=0)
model = CMVMED(views=cancer.views).fit(X, y)

# %%
# Ten rows, ordered by their score; in the last three the view of the worst values is missing.

order = np.argsort(model.decision_function(X))
rows = X[order[np.linspace(0, 399, 10).astype(int)]]
rows[7:, cancer.views["worst"]] = np.nan
shares, score = model.explain(rows), model.decision_function(rows)
np.testing.assert_allclose(sum(shares.values()), score)

figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
above, below = np.zeros(10), np.zeros(10)
for name, values in shares.items():
    axis.bar(range(10), values, bottom=np.where(values > 0, above, below), label=name)
    above, below = above + np.maximum(values, 0), below + np.minimum(values, 0)
axis.plot(range(10), score, "kD", markersize=5, label="score")
axis.axhline(0, color="black", linewidth=0.8)
axis.set(xlabel="row", ylabel=f"shares of the score; above zero: {cancer.target_names[1]}", xticks=range(10))
axis.legend()
plt.show()
