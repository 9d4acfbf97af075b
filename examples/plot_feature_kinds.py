"""
From raw signals to features
============================

Accelerometers at three positions of the body, of different sampling rates, simulated. ``SensorFeatures`` computes several
kinds of features of each sensor and chooses among them by the few labels.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.datasets import make_body_motion
from cmvmed.features import SensorFeatures
from cmvmed.model_selection import hide_labels

warnings.filterwarnings("ignore", message="aeon is not installed")
motion = make_body_motion(40, random_state=0)
y = hide_labels(motion.target, 36, random_state=0)
model = make_pipeline(SensorFeatures(sampling_rate=motion.sampling_rates), CMVMED()).fit(motion.signals, y)
hidden = y == -1
print(f"{np.mean(model.predict(motion.signals)[hidden] == motion.target[hidden]):.0%} of the unlabeled cases are right")

# %%
# One case of each activity at the ankle, upward, and its spectrum.

rate = motion.sampling_rates["ankle"]
figure, axes = plt.subplots(6, 2, figsize=(9, 9), layout="constrained", sharex="col")
for label, (left, right) in enumerate(axes):
    signal = motion.signals["ankle"][np.flatnonzero(motion.target == label)[0], 2]
    left.plot(np.arange(signal.size) / rate, signal, linewidth=0.6)
    left.set_ylabel(motion.target_names[label])
    frequencies = np.fft.rfftfreq(signal.size, 1 / rate)
    right.semilogy(frequencies, np.abs(np.fft.rfft(signal - signal.mean())), linewidth=0.6)
axes[0, 0].set_title("upward acceleration at the ankle (m/s²)")
axes[0, 1].set_title("its spectrum")
axes[-1, 0].set_xlabel("time (s)")
axes[-1, 1].set_xlabel("frequency (Hz)")
plt.show()
