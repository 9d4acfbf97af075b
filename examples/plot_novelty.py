"""
Rows unlike anything in training
================================

A classifier gives every row a class, also a row that resembles no training row. ``novelty`` says by sensor how unlike the
training rows a row is; above one, it is outside.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

data = make_multiview_gaussian(500, n_features=2, separation=(2.5, 2.0), labeled=30, random_state=0)
model = CMVMED(views=data.views).fit(data.data, data.y)
name, other = data.views

# %%
# The plane of the first sensor; the second has its mean values.

ticks = np.linspace(-7, 7, 70)
plane = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
rows = np.tile(data.data.mean(axis=0), (len(plane), 1))
rows[:, data.views[name]] = plane
novelty, certainty = model.novelty(rows)[name], model.predict_proba(rows).max(axis=1)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained", sharey=True)
for axis, values, title in ((axes[0], certainty, "probability of the class"), (axes[1], novelty, f"novelty in {name}")):
    image = axis.contourf(ticks, ticks, values.reshape(70, 70), levels=15, cmap="viridis")
    axis.scatter(*data.data[:, data.views[name]].T, s=4, color="white", alpha=0.6)
    axis.set_title(title)
    figure.colorbar(image, ax=axis)
axes[1].contour(ticks, ticks, novelty.reshape(70, 70), levels=[1.0], colors="red", linewidths=2)
plt.show()
