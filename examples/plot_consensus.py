"""
How a consensus moves the boundaries
====================================

Two sensors measure two numbers each. With six labels each sensor's own boundary depends on chance. The consensus over
the unlabeled rows moves both to where the sensors agree.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

data = make_multiview_gaussian(400, n_features=2, separation=(1.6, 1.3), random_state=3)
X, truth = data.data, data.target
y = np.full(400, -1)
for label in (0, 1):
    y[np.flatnonzero(truth == label)[:3]] = label

# %%
# ``CMVMED.paper()`` is the consensus of the paper without other members. With ``consensus_weight=0`` the sensors learn
# from the labels alone.

settings = {
    "views": data.views,
    "kernel": "linear",
    "scaling": None,
    "class_prior": 0.5,
    "temperature": 0.5,
    "bias_variance": 0.1,
}
alone = CMVMED.paper(consensus_weight=0.0, **settings).fit(X, y)
together = CMVMED.paper(**settings).fit(X, y)


def sensor_scores(model, name, points):
    """Scores of points in the plane of one sensor; the other sensor is missing."""
    rows = np.full((len(points), X.shape[1]), np.nan)
    rows[:, data.views[name]] = points
    return model.decision_function_by_view(rows)[name]


# %%
# The line is where a sensor's score is zero. Filled marks are the six labels.

figure, axes = plt.subplots(2, 2, figsize=(8, 7), layout="constrained", sharex=True, sharey=True)
ticks = np.linspace(-4, 4, 80)
plane = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
for row, (title, model) in enumerate([("labels only", alone), ("consensus", together)]):
    for axis, name in zip(axes[row], data.views, strict=True):
        points, labeled = X[:, data.views[name]], y != -1
        axis.scatter(*points.T, c=truth, cmap="coolwarm", s=8, alpha=0.5)
        axis.scatter(*points[labeled].T, c=y[labeled], cmap="coolwarm", s=70, edgecolor="black")
        axis.contour(ticks, ticks, sensor_scores(model, name, plane).reshape(80, 80), levels=[0.0], colors="black")
        right = np.mean((sensor_scores(model, name, points) > 0) == (truth == 1))
        axis.set_title(f"{name}, {title}: {right:.0%} right", fontsize=10)
plt.show()
