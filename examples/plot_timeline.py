"""
A day of body-worn sensors on a timeline
========================================

Simulated sensors at the body record six activities. Thirty of the rows that the model learns from are labeled; the
timeline is of a person's activities one after the other, and for a part of it the chest sensor is missing.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.datasets import make_body_motion
from cmvmed.features import SensorFeatures
from cmvmed.plots import RowDisplay, TimelineDisplay
from cmvmed.recordings import cut_windows, long_recording

warnings.filterwarnings("ignore", message="aeon is not installed")
motion = make_body_motion(40, random_state=0)
of_day = np.concatenate([np.flatnonzero(motion.target == activity)[:5] for activity in range(6)])
others = np.setdiff1d(np.arange(motion.target.size), of_day)
y = np.array(motion.target_names, dtype=object)[motion.target[others]]
y[30:] = None  # the first 30 are labeled

# %%
# The features of each sensor and the classifier are one pipeline, which takes a dict of signals.

model = make_pipeline(SensorFeatures(sampling_rate=motion.sampling_rates), CMVMED())
model.fit({name: values[others] for name, values in motion.signals.items()}, y)

# %%
# The day: five rows of each activity in one recording. In the third fifth of it the chest sensor is off. Windows of
# four seconds are cut from it.

signals = {name: np.concatenate(list(values[of_day]), axis=1) for name, values in motion.signals.items()}
n_samples = signals["chest"].shape[1]
signals["chest"][:, 2 * n_samples // 5 : 3 * n_samples // 5] = np.nan
windows = cut_windows(long_recording("day", signals, motion.sampling_rates), length=4.0)
truth = np.repeat(motion.target_names, 5)
print(f"{len(windows)} windows, {np.mean(model.predict(windows) == truth):.0%} right")

# %%
# Below each signal is what this sensor alone would say, and at the bottom the result of all sensors and the truth.

TimelineDisplay.from_estimator(model, windows, y_true=list(truth), spectrograms=["ankle"])
plt.show()

# %%
# One window with all its sensors: signals, spectrograms, and the probabilities of each sensor and of all.

RowDisplay.from_estimator(model, windows, row=6)
plt.show()
