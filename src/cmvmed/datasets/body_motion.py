"""Simulated inertial sensors worn at several positions of the body, of different sampling rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from sklearn.utils import Bunch

FloatArray = NDArray[np.float64]

GRAVITY = 9.81
N_PEOPLE = 15
POSITIONS = {"wrist": 50.0, "ankle": 100.0, "chest": 25.0}  # Hz
MAX_TILT = 0.35  # rad, standard deviation of the orientation of a sensor on a person
IMPACT_SECONDS = 0.03


@dataclass(frozen=True)
class _Activity:
    """Typical values of an activity; ``swing`` and ``impact`` are m/s² at wrist, ankle and chest."""

    cadence: float  # steps or pedal half-turns per second
    swing: tuple[float, float, float]  # periodic motion
    impact: tuple[float, float, float]  # at each step
    lean: float  # rad, of the trunk
    second: float  # share of the second harmonic in the periodic motion


ACTIVITIES = {
    "walking": _Activity(1.85, (2.2, 5.0, 1.2), (0.8, 6.0, 1.2), 0.05, 0.4),
    "stairs_up": _Activity(1.6, (1.8, 4.6, 1.3), (0.7, 4.5, 0.9), 0.20, 0.5),
    "stairs_down": _Activity(1.8, (2.0, 4.4, 1.4), (1.0, 7.5, 1.9), 0.00, 0.5),
    "carrying": _Activity(1.75, (0.9, 4.7, 1.2), (0.7, 6.0, 1.2), 0.10, 0.4),
    "cycling": _Activity(2.0, (0.5, 3.2, 0.5), (0.3, 0.4, 0.3), 0.60, 0.2),
    "standing": _Activity(0.9, (0.5, 0.15, 0.2), (0.0, 0.0, 0.0), 0.05, 0.3),
}


def make_body_motion(
    n_per_class: int = 80, *, seconds: float = 4.0, noise: float = 0.7, random_state: int | None = None
) -> Bunch:
    """Simulate accelerometers at wrist (50 Hz), ankle (100 Hz) and chest (25 Hz) in six activities.

    1. **People.** Fifteen people differ by 8 % in cadence and 25 % in strength of motion, and wear each sensor in an
       orientation of their own (0.35 rad).
    2. **Motion.** Wrist and ankle move at the stride frequency (half the cadence), the chest at the cadence, with a
       second harmonic; a phase that drifts, and strength and share of the harmonic that vary from row to row.
    3. **Impacts** of the feet, damped on the way to chest and wrist.
    4. **Gravity** in the frame of the leaning trunk or limb.
    5. **Other motion**: arms also move for other reasons, in some cases strongly (gestures), and every sensor has noise
       and is knocked now and then.

    Parameters
    ----------
    n_per_class : int
        Rows of each activity.
    seconds : float
        Duration of a row.
    noise : float
        Factor of all other motion and noise.
    random_state : int, optional
        Seed.

    Returns
    -------
    Bunch
        signals : dict of position -> (n, 3, n_samples) float32, m/s². sampling_rates : dict of position -> float.
        target : (n,) index in target_names. target_names : list of str.
        person : (n,) 0 to 14. cadence : (n,) steps per second.
        DESCR : str.

    Examples
    --------
    >>> motion = make_body_motion(1, random_state=0)
    >>> {position: signals.shape for position, signals in motion.signals.items()}
    {'wrist': (6, 3, 200), 'ankle': (6, 3, 400), 'chest': (6, 3, 100)}
    """
    if n_per_class < 1:
        raise ValueError(f"n_per_class must be at least 1, got {n_per_class!r}.")
    if not 0.5 <= seconds < np.inf:
        raise ValueError(f"seconds must be at least 0.5, got {seconds!r}.")
    if not 0.0 <= noise < np.inf:
        raise ValueError(f"noise must not be negative, got {noise!r}.")
    row_rng, person_rng, motion_rng = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(random_state).spawn(3)
    )
    activities = list(ACTIVITIES.values())
    target = row_rng.permutation(np.repeat(np.arange(len(activities)), n_per_class))
    person = row_rng.integers(N_PEOPLE, size=target.size)
    pace = np.exp(0.08 * person_rng.standard_normal(N_PEOPLE))
    vigor = np.exp(0.25 * person_rng.standard_normal((N_PEOPLE, len(POSITIONS))))
    tilt = person_rng.normal(scale=MAX_TILT, size=(N_PEOPLE, len(POSITIONS), 3))
    cadence = np.array([activities[k].cadence for k in target]) * pace[person]
    cadence = cadence * np.exp(0.06 * row_rng.standard_normal(target.size))
    signals = {
        name: np.empty((target.size, 3, round(seconds * rate)), dtype=np.float32) for name, rate in POSITIONS.items()
    }
    for row in range(target.size):
        phase = motion_rng.uniform(0.0, 1.0)
        for place, (name, rate) in enumerate(POSITIONS.items()):
            motion = _motion(
                activities[target[row]],
                place,
                cadence[row],
                phase,
                vigor[person[row], place],
                noise,
                rate,
                signals[name].shape[2],
                motion_rng,
            )
            turn = tilt[person[row], place] + 0.1 * noise * motion_rng.standard_normal(3)
            signals[name][row] = Rotation.from_rotvec(turn).as_matrix() @ motion
    return Bunch(
        signals=signals,
        sampling_rates=dict(POSITIONS),
        target=target,
        target_names=list(ACTIVITIES),
        person=person,
        cadence=cadence,
        DESCR="\n".join(
            [
                "Simulated body-worn accelerometers (cmvmed.datasets.make_body_motion)",
                f"{n_per_class} rows each of: {', '.join(ACTIVITIES)}; {N_PEOPLE} people",
                f"{seconds:g} s at {', '.join(f'{name} ({rate:g} Hz)' for name, rate in POSITIONS.items())}",
            ]
        ),
    )


def _motion(
    activity: _Activity,
    place: int,
    cadence: float,
    phase: float,
    vigor: float,
    noise: float,
    rate: float,
    n_samples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return (3, n_samples): forward, sideways and up, in the frame of the leaning trunk or limb."""
    time = np.arange(n_samples) / rate
    drift = 0.04 * np.cumsum(rng.standard_normal(n_samples)) / np.sqrt(rate)
    steps = cadence * time + phase + drift
    cycle = steps if place == 2 else steps / 2.0  # a limb moves once per stride, the trunk once per step
    strength = vigor * activity.swing[place] * np.exp(0.3 * rng.standard_normal())
    second = activity.second * np.exp(0.4 * rng.standard_normal())
    offset = rng.uniform(0.0, 0.3)
    forward, upward = (
        np.cos(2 * np.pi * turn) + second * np.cos(4 * np.pi * turn + 2 * np.pi * offset)
        for turn in (cycle, cycle - 0.1)
    )
    lateral = 0.4 * np.cos(np.pi * steps + rng.uniform(0.0, 2 * np.pi))
    impact = vigor * activity.impact[place] * np.exp(0.3 * rng.standard_normal()) * _impact_train(steps, cadence)
    lean = activity.lean + 0.12 * rng.standard_normal()
    gravity = GRAVITY * np.array([np.sin(lean), 0.0, np.cos(lean)])
    moving = strength * np.stack([forward, lateral, 0.6 * upward])
    moving[2] += impact
    return np.asarray(gravity[:, np.newaxis] + moving + noise * _other_motion(place, time, rate, rng))


def _impact_train(steps: FloatArray, cadence: float) -> FloatArray:
    """Return a decaying impact of height 1 after each step."""
    since = np.mod(steps, 1.0) / cadence  # seconds since the last step
    return np.asarray(np.exp(-since / IMPACT_SECONDS) * np.cos(2 * np.pi * 8.0 * since))


def _other_motion(place: int, time: FloatArray, rate: float, rng: np.random.Generator) -> FloatArray:
    """Return gestures (mostly of the arm), knocks and sensor noise, (3, n)."""
    scale = (1.0, 0.3, 0.25)[place] * np.exp(0.6 * rng.standard_normal())
    slow = sum(
        rng.normal(size=(3, 1)) * np.cos(2 * np.pi * hertz * time + rng.uniform(0.0, 2 * np.pi))
        for hertz in rng.uniform(0.2, 3.0, size=4)
    )
    knock = np.zeros((3, time.size))
    if rng.random() < 0.3:
        at = int(rng.integers(time.size))
        knock[:, at : at + max(1, round(0.04 * rate))] = 4.0 * rng.standard_normal((3, 1))
    return np.asarray(scale * slow + knock + 0.3 * rng.standard_normal((3, time.size)))
