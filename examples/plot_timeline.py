"""A timeline of body-worn sensors: signals, what each sensor says, and the consensus of all; and one case of it.

Run ``python examples/plot_timeline.py --out demo-output``; it writes ``timeline.png`` and ``case.png`` there. Thirty of
the cases that the model learns from are labeled; the timeline is of a person's activities one after the other, and for a
part of it the chest sensor is missing.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.datasets import make_body_motion
from cmvmed.features import SensorFeatures
from cmvmed.plots import plot_case, plot_timeline
from cmvmed.recordings import cut_windows, long_recording

WINDOW_SECONDS, N_LABELED, N_PER_ACTIVITY, SHOWN = 4.0, 30, 5, 6


def day_of(motion, rows):
    """Return a long recording of the cases, one after the other, with the chest missing in the third fifth."""
    signals = {name: np.concatenate(list(values[rows]), axis=1) for name, values in motion.signals.items()}
    n = signals["chest"].shape[1]
    signals["chest"][:, 2 * n // 5 : 3 * n // 5] = np.nan
    return long_recording("day", signals, motion.sampling_rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    motion = make_body_motion(40, random_state=0)
    rows = np.concatenate([np.flatnonzero(motion.target == activity)[:N_PER_ACTIVITY] for activity in range(6)])
    others = np.setdiff1d(np.arange(motion.target.size), rows)
    y = np.array(motion.target_names, dtype=object)[motion.target[others]]
    y[N_LABELED:] = None
    warnings.filterwarnings("ignore", message="aeon is not installed")
    model = make_pipeline(SensorFeatures(sampling_rate=motion.sampling_rates), CMVMED())
    model.fit({name: values[others] for name, values in motion.signals.items()}, y)
    cases = cut_windows(day_of(motion, rows), length=WINDOW_SECONDS)
    views = model[:-1].transform(cases)
    alone = model[-1].predict_proba_by_opinion(views)
    absent = {name: np.isnan(values).all(axis=1) for name, values in views.items()}
    by_sensor = {name: np.where(absent[name][:, None], np.nan, alone[f"view {name}"]) for name in views}
    figure = plot_timeline(
        cases,
        model.predict_proba(cases),
        model.classes_,
        by_sensor=by_sensor,
        truth=[motion.target_names[label] for label in motion.target[rows]],
        spectrograms=["ankle"],
    )
    figure.savefig(folder / "timeline.png", dpi=110)
    figure = plot_case(cases, SHOWN, model.predict_proba(cases), model.classes_, by_sensor=by_sensor)
    figure.savefig(folder / "case.png", dpi=110)
    print(
        f"{len(cases)} windows, {np.mean(model.predict(cases) == np.repeat(motion.target_names, N_PER_ACTIVITY)):.0%} right"
    )


if __name__ == "__main__":
    main()
