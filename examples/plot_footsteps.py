"""Figures of the simulated footsteps: spectrograms of both classes at two sensors, and their MFCC views.

Run ``python examples/plot_footsteps.py --out demo-output``; it writes ``footsteps_spectrograms.png`` and
``footsteps_mfcc_views.png`` there.
"""

import argparse
from pathlib import Path

import librosa
import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from cmvmed.datasets import make_footsteps
from cmvmed.features import MFCC

SENSORS = ("sensor1", "sensor2")


def clear_segments(steps):
    """Return one segment per class with a high signal-to-noise ratio at both sensors: the sixth best, not an exception."""
    worse_snr = steps.segment_snr_db[:, :2].min(axis=1)
    rows_by_class = [np.flatnonzero(steps.target == label) for label in range(2)]
    return [rows[np.argsort(-worse_snr[rows])[5]] for rows in rows_by_class]


def plot_spectrograms(steps, noiseless, path):
    """Draw level over time and frequency: classes in columns; sensors, with noise and without, in rows."""
    rate = steps.sampling_rate
    figure, axes = plt.subplots(3, 2, figsize=(10, 8.5), sharex=True, sharey=True, layout="constrained")
    panels = [(0, steps.data, "sensor 1"), (1, steps.data, "sensor 2"), (0, noiseless.data, "sensor 1, noise off")]
    for column, row in enumerate(clear_segments(steps)):
        for axis, (sensor, data, title) in zip(axes[:, column], panels, strict=True):
            spectrum = np.abs(librosa.stft(data[row, sensor], n_fft=256, hop_length=32)) ** 2
            level = librosa.power_to_db(spectrum, ref=np.max, top_db=60)
            seconds, kilohertz = data.shape[2] / rate, rate / 2000
            extent = (0, seconds, 0, kilohertz)
            image = axis.imshow(level, origin="lower", aspect="auto", extent=extent, vmin=-60, vmax=0, cmap="magma")
            where = f"{title}, {steps.distance[row, sensor]:.0f} m away"
            snr = f", {steps.segment_snr_db[row, sensor]:+.0f} dB SNR" if data is steps.data else ""
            axis.set_title(f"{steps.target_names[column]}: {where}{snr}", fontsize=10)
        axes[-1, column].set_xlabel("time (s)")
    for axis in axes[:, 0]:
        axis.set_ylabel("frequency (kHz)")
    figure.colorbar(image, ax=axes, label="level below the loudest point (dB)", shrink=0.6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_mfcc_views(steps, path):
    """Draw a segment of each class in both views, in standard deviations, and the difference of the class means."""
    figure, axes = plt.subplots(len(SENSORS), 3, figsize=(11, 7), layout="constrained", sharex=True, sharey=True)
    examples = clear_segments(steps)
    for row, sensor in enumerate(SENSORS):
        mfcc = MFCC(steps.sampling_rate)
        vectors = StandardScaler().fit_transform(mfcc.fit_transform(steps.data[:, steps.views[sensor]]))
        maps = vectors.reshape(-1, mfcc.n_coefficients, mfcc.n_frames)
        apart = maps[steps.target == 1].mean(axis=0) - maps[steps.target == 0].mean(axis=0)
        titles = [f"{sensor}: one segment, {name}" for name in steps.target_names]
        for axis, picture, title in zip(axes[row], maps[examples], titles, strict=False):
            segment_image = axis.imshow(picture, aspect="auto", origin="lower", cmap="RdBu_r", vmin=-3, vmax=3)
            axis.set_title(title, fontsize=10)
        difference_image = axes[row, 2].imshow(apart, aspect="auto", origin="lower", cmap="RdBu_r", vmin=-1, vmax=1)
        axes[row, 2].set_title(f"{sensor}: mean with animal minus without", fontsize=10)
        axes[row, 0].set(ylabel="cepstral coefficient", yticks=range(0, mfcc.n_coefficients, 5))
    for axis in axes[-1]:
        axis.set(xlabel="tenth of the segment", xticks=range(0, 10, 3))
    figure.colorbar(segment_image, ax=axes[:, :2], label="standard deviations", shrink=0.6)
    figure.colorbar(difference_image, ax=axes[:, 2], label="standard deviations", shrink=0.6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the figures")
    parser.add_argument("--segments", type=int, default=400, help="number of simulated segments")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    half = options.segments // 2
    steps = make_footsteps(half, half, random_state=0)
    noiseless = make_footsteps(half, half, snr_db=np.inf, random_state=0)
    plot_spectrograms(steps, noiseless, options.out / "footsteps_spectrograms.png")
    plot_mfcc_views(steps, options.out / "footsteps_mfcc_views.png")
    print(f"wrote {options.out / 'footsteps_spectrograms.png'} and {options.out / 'footsteps_mfcc_views.png'}")


if __name__ == "__main__":
    main()
