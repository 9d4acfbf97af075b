"""
Footsteps at two microphones
============================

Simulated footsteps of people, with and without an animal, as two microphones record them: spectrograms of both classes,
and the mel-frequency cepstral coefficients (MFCC) that are the views of a classifier.
"""

import librosa
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from cmvmed.datasets import make_footsteps
from cmvmed.features import MFCC

steps = make_footsteps(40, 40, random_state=0)
noiseless = make_footsteps(40, 40, snr_db=np.inf, random_state=0)
rate = steps.sampling_rate

# %%
# One segment of each class with a high signal-to-noise ratio at both sensors: the sixth best, not an exception.

worse_snr = steps.segment_snr_db[:, :2].min(axis=1)
by_class = [np.flatnonzero(steps.target == label) for label in range(2)]
segments = [rows[np.argsort(-worse_snr[rows])[5]] for rows in by_class]

# %%
# Level over time and frequency: classes in columns; sensors, with noise and without, in rows.

panels = [(0, steps.data, "sensor 1"), (1, steps.data, "sensor 2"), (0, noiseless.data, "sensor 1, noise off")]
figure, axes = plt.subplots(3, 2, figsize=(10, 8.5), sharex=True, sharey=True, layout="constrained")
for column, row in enumerate(segments):
    for axis, (sensor, data, title) in zip(axes[:, column], panels, strict=True):
        spectrum = np.abs(librosa.stft(data[row, sensor], n_fft=256, hop_length=32)) ** 2
        level = librosa.power_to_db(spectrum, ref=np.max, top_db=60)
        extent = (0, data.shape[2] / rate, 0, rate / 2000)
        image = axis.imshow(level, origin="lower", aspect="auto", extent=extent, vmin=-60, vmax=0, cmap="magma")
        snr = f", {steps.segment_snr_db[row, sensor]:+.0f} dB SNR" if data is steps.data else ""
        where = f"{title}, {steps.distance[row, sensor]:.0f} m away"
        axis.set_title(f"{steps.target_names[column]}: {where}{snr}", fontsize=10)
    axes[-1, column].set_xlabel("time (s)")
for axis in axes[:, 0]:
    axis.set_ylabel("frequency (kHz)")
figure.colorbar(image, ax=axes, label="level below the loudest point (dB)", shrink=0.6)
plt.show()

# %%
# The views: a segment of each class in standard deviations, and the difference of the class means.

figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained", sharex=True, sharey=True)
for row, sensor in enumerate(("sensor1", "sensor2")):
    mfcc = MFCC(rate)
    vectors = StandardScaler().fit_transform(mfcc.fit_transform(steps.data[:, steps.views[sensor]]))
    maps = vectors.reshape(-1, mfcc.n_coefficients, mfcc.n_frames)
    for column, name in enumerate(steps.target_names):
        single = axes[row, column].imshow(
            maps[segments[column]], aspect="auto", origin="lower", cmap="RdBu_r", vmin=-3, vmax=3
        )
        axes[row, column].set_title(f"{sensor}: one segment, {name}", fontsize=10)
    apart = maps[steps.target == 1].mean(axis=0) - maps[steps.target == 0].mean(axis=0)
    means = axes[row, 2].imshow(apart, aspect="auto", origin="lower", cmap="RdBu_r", vmin=-1, vmax=1)
    axes[row, 2].set_title(f"{sensor}: mean with animal minus without", fontsize=10)
    axes[row, 0].set(ylabel="cepstral coefficient", yticks=range(0, mfcc.n_coefficients, 5))
for axis in axes[-1]:
    axis.set(xlabel="tenth of the segment", xticks=range(0, 10, 3))
figure.colorbar(single, ax=axes[:, :2], label="standard deviations", shrink=0.6)
figure.colorbar(means, ax=axes[:, 2], label="standard deviations", shrink=0.6)
plt.show()
