"""
From raw signals to features
============================

Accelerometers at three mounts of rotating machines, simulated. ``SensorFeatures`` computes several kinds of features of
each sensor and chooses among them without labels.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.features import SensorFeatures
from cmvmed.model_selection import hide_labels
from experiments.datasets import make_machine_vibration

warnings.filterwarnings("ignore", message="aeon is not installed")
machines = make_machine_vibration(40, random_state=0)
y = hide_labels(machines.target, 24, random_state=0)
model = make_pipeline(SensorFeatures(sampling_rate=machines.sampling_rates), CMVMED()).fit(machines.signals, y)
hidden = y == -1
print(
    f"{np.mean(model.predict(machines.signals)[hidden] == machines.target[hidden]):.0%} of the unlabeled cases are right"
)

# %%
# One case of each state at the first mount, and its spectrum.

mount, signals = next(iter(machines.signals.items()))
rate = machines.sampling_rates[mount]
figure, axes = plt.subplots(4, 2, figsize=(9, 7), layout="constrained", sharex="col")
for label, (left, right) in enumerate(axes):
    signal = np.asarray(signals[np.flatnonzero(machines.target == label)[0]]).reshape(-1)
    left.plot(np.arange(signal.size) / rate, signal, linewidth=0.6)
    left.set_ylabel(machines.target_names[label])
    frequencies = np.fft.rfftfreq(signal.size, 1 / rate)
    right.semilogy(frequencies, np.abs(np.fft.rfft(signal)), linewidth=0.6)
axes[0, 0].set_title(f"signal at the mount {mount!r}")
axes[0, 1].set_title("its spectrum")
axes[-1, 0].set_xlabel("time (s)")
axes[-1, 1].set_xlabel("frequency (Hz)")
plt.show()
