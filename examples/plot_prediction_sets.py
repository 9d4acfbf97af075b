"""
Sets of classes instead of one class
====================================

``predict_set`` names all classes that a row may have. The smaller the share ``alpha`` of rows whose set may lack the true
class, the larger the sets. With a large ``alpha`` some sets are empty: no class is probable enough.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import load_digits_views
from cmvmed.model_selection import hide_labels

digits = load_digits_views()
X, truth = digits.data[:700], digits.target[:700]
y = hide_labels(truth, 60, random_state=0)
hidden = y == -1
model = CMVMED(views=digits.views).fit(X, y)

# %%
# A set is a row of booleans, one for each of ``classes_``.

alphas = [0.02, 0.05, 0.1, 0.2, 0.3]
sets = [model.predict_set(X[hidden], alpha=alpha) for alpha in alphas]
true_class = np.searchsorted(model.classes_, truth[hidden])
covered = [rows[np.arange(hidden.sum()), true_class].mean() for rows in sets]

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
axes[0].plot([0.65, 1], [0.65, 1], color="gray", linestyle=":", label="as promised")
axes[0].plot([1 - alpha for alpha in alphas], covered, "o-", label="sets with the true class")
axes[0].set(xlabel="1 - alpha", ylabel="share of the rows")
axes[0].legend()
for alpha, rows in list(zip(alphas, sets, strict=True))[::2]:
    sizes = np.bincount(rows.sum(axis=1), minlength=11)[:7] / len(rows)
    axes[1].plot(sizes, "o-", label=f"alpha = {alpha}")
axes[1].set(xlabel="classes in the set", ylabel="share of the rows")
axes[1].legend()
plt.show()
