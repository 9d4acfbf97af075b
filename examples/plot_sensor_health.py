"""
Faults of sensors in new data
=============================

Weeks after training, one sensor has another gain, is dead, or was exchanged with another. ``sensor_health`` compares a
batch of new rows with the training rows and names what it finds, without labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

data = make_multiview_gaussian(900, n_features=6, separation=(2.0, 1.5, 1.5), labeled=60, random_state=0)
model = CMVMED(views=data.views).fit(data.data[:700], data.y[:700])
batch = {name: data.data[700:760, columns] for name, columns in data.views.items()}
first, second, third = batch

# %%
# The same 60 new rows, as they are and with four faults.

noise = np.random.default_rng(0).normal(size=batch[first].shape)
cases = {
    "as it is": batch,
    f"{first} doubled": batch | {first: 2 * batch[first]},
    f"{second} shifted": batch | {second: batch[second] + 1.0},
    f"{third} dead": batch | {third: np.zeros_like(batch[third])},
    f"{first} noisy": batch | {first: batch[first] + 2 * noise},
}
found = {case: model.sensor_health(np.hstack(list(rows.values()))) for case, rows in cases.items()}

# %%
# Each cell shows the fault that was named, and the score of the sensor in standard deviations of healthy batches. Noise
# widens the values of a sensor, as another gain does, and may be named so.

scores = np.array([[min(health[name].score, 1e3) for name in batch] for health in found.values()])
figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
image = axis.imshow(np.log10(np.maximum(scores, 1.0)), cmap="Reds", aspect="auto", vmin=0)
for row, health in enumerate(found.values()):
    for column, name in enumerate(batch):
        dark = np.log10(max(scores[row, column], 1.0)) > 1.5
        text = f"{health[name].fault}\n{scores[row, column]:.0f}"
        axis.text(column, row, text, ha="center", va="center", color="white" if dark else "black")
axis.set(xticks=range(3), xticklabels=list(batch), yticks=range(len(cases)), yticklabels=list(cases))
figure.colorbar(image, label="log10 of the score")
plt.show()
