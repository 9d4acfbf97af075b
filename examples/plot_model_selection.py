"""
A grid search with unlabeled rows
=================================

``SemiSupervisedKFold`` keeps the unlabeled rows in every training set and tests labeled rows only, so that
``GridSearchCV`` works as usual.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from cmvmed import CMVMED, SemiSupervisedKFold
from cmvmed.datasets import make_multiview_gaussian

data = make_multiview_gaussian(300, n_features=10, separation=(1.2, 1.0), labeled=60, random_state=0)
grid = {"temperature": [0.1, 0.3, 1.0], "consensus_weight": [0.0, 0.25, 1.0]}
search = GridSearchCV(
    CMVMED(views=data.views, members=None),
    grid,
    cv=SemiSupervisedKFold(3, shuffle=True, random_state=0),
    scoring="neg_log_loss",
).fit(data.data, data.y)
print(search.best_params_)

# %%
# The log-loss on held-out labels; lower is better.

scores = -np.array(search.cv_results_["mean_test_score"]).reshape(3, 3)
figure, axis = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
image = axis.imshow(scores, cmap="viridis_r", origin="lower")
for row in range(3):
    for column in range(3):
        axis.text(column, row, f"{scores[row, column]:.2f}", ha="center", va="center", color="white")
axis.set(
    xlabel="temperature",
    ylabel="consensus_weight",
    xticks=range(3),
    yticks=range(3),
    xticklabels=grid["temperature"],
    yticklabels=grid["consensus_weight"],
)
figure.colorbar(image, label="log-loss on held-out labels")
plt.show()
