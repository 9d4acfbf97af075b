"""
The course of an annealing
==========================

A fit starts from independent sensors and raises the weight of their consensus, stage by stage, while its temperature
falls. ``history_`` holds every sweep.
"""

import matplotlib.pyplot as plt
import numpy as np

from cmvmed import CMVMED
from cmvmed.datasets import load_digits_views
from cmvmed.model_selection import hide_labels

digits = load_digits_views(parity=True)
X, truth = digits.data[:500], digits.target[:500]
y = hide_labels(truth, 30, random_state=0)
model = CMVMED(views=digits.views, members="consensus").fit(X, y)

# %%
# At the dashed lines a new stage begins, with another objective; within a stage the objective falls. Sweep 0 is that of
# the independent sensors. The divergence of each sensor from the consensus is at the temperature of its sweep.

history = model.history_
sweeps = np.arange(model.n_iter_)
starts = sweeps[1:][np.diff(history["stage"]) > 0]
figure, axes = plt.subplots(3, 1, figsize=(7, 7), sharex=True, layout="constrained")
axes[0].plot(sweeps[1:], history["consensus_weight"][1:], label="weight λ")
axes[0].plot(sweeps[1:], history["temperature"][1:], label="temperature T")
axes[0].set_ylabel("weight, temperature")
axes[0].legend()
for stage in range(1, model.n_stages + 1):
    of_stage = history["stage"] == stage
    values = history["objective"][of_stage]
    axes[1].plot(sweeps[of_stage], values - values[0], ".-", color="C0")
axes[1].set_ylabel("objective less that at\nthe start of the stage")
for name, values in zip(model.view_names_, history["kl_by_view"].T, strict=True):
    axes[2].plot(sweeps, values, ".-", label=name)
axes[2].set(ylabel="mean KL(consensus ‖ sensor)", xlabel="sweep")
axes[2].legend()
for axis in axes:
    for start in starts:
        axis.axvline(start, color="gray", linewidth=0.7, linestyle="--")
plt.show()
