"""Simulated vibration of rotating machines at several mounts: healthy, or with one of three faults."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft, rfftfreq
from sklearn.utils import Bunch

FloatArray = NDArray[np.float64]

MACHINE_STATES = ("healthy", "unbalance", "looseness", "bearing")
MOUNTS = ("drive_end", "free_end", "frame")
N_MACHINES = 12
MIN_VIBRATION_RATE = 1500  # Hz; bearing faults excite resonances up to 700 Hz
SPEED_HZ = (20.0, 30.0)  # of the shaft
DEFECT_ORDERS = (3.58, 5.42)  # passes of a defect of the outer or inner race per turn, for a bearing with 9 balls
SLIP = 0.01  # standard deviation of the time between passes, relative
N_MODES = 4  # resonances of each path from shaft to mount
MODE_HZ = (60.0, 700.0)
DAMPING = (0.02, 0.06)
COUPLING = np.array([[1.0, 0.35], [0.35, 1.0], [0.5, 0.5]])  # of each mount to the forces at the two bearings
LEVEL_DB = 4.0  # standard deviation of the level of a fault, between cases
HARMONICS = 8


@dataclass(frozen=True)
class _Machines:
    """What is the same in all cases of a machine."""

    residual: FloatArray  # (N_MACHINES,) unbalance of a healthy machine
    paths: FloatArray  # (N_MACHINES, n_mounts, N_MODES, 3) frequency, damping and strength of each mode


def make_machine_vibration(
    n_per_class: int = 120,
    *,
    sampling_rate: int = 2000,
    seconds: float = 1.0,
    fault_db: float = -2.0,
    noise_db: float = -3.0,
    random_state: int | None = None,
) -> Bunch:
    """Simulate accelerometers at three mounts of twelve rotating machines.

    1. **Force.** The shaft turns at 20 to 30 Hz. Its residual unbalance acts once per turn, misalignment weakly at the
       next harmonics. *Unbalance* adds force at the first harmonic. *Looseness* adds harmonics and half-order harmonics
       of similar size. A *bearing* defect adds short impacts at 3.58 or 5.42 per turn, with 1 % slip; those of the inner
       race are modulated by the turn of the shaft.
    2. **Path.** Each machine has four resonances between 60 and 700 Hz on the path to each mount. Unbalance and
       looseness act at both bearings, a bearing defect at one of them, so that a mount may hardly record it.
    3. **Noise.** A process (flow, gears) common to the mounts through the same paths, and white noise of each sensor.

    Parameters
    ----------
    n_per_class : int
        Cases of each of the four states.
    sampling_rate : int
        Samples per second, at least 1500.
    seconds : float
        Duration of a case.
    fault_db : float
        Mean level of the force of a fault relative to that of a healthy shaft, in dB.
    noise_db : float
        Mean level of process and sensor noise, each, relative to the healthy signal at a mount, in dB.
    random_state : int, optional
        Seed.

    Returns
    -------
    Bunch
        signals : dict of mount -> (n, 1, n_samples) float32. sampling_rates : dict of mount -> float.
        target : (n,) index in target_names. target_names : list of str.
        machine : (n,) 0 to 11. speed_hz : (n,). severity_db : (n,) level of the fault, -inf if healthy.
        bearing : (n,) the bearing with the defect, 0 or 1; -1 for none.
        DESCR : str.

    Examples
    --------
    >>> vibration = make_machine_vibration(2, random_state=0)
    >>> {mount: signals.shape for mount, signals in vibration.signals.items()}
    {'drive_end': (8, 1, 2000), 'free_end': (8, 1, 2000), 'frame': (8, 1, 2000)}
    """
    if n_per_class < 1:
        raise ValueError(f"n_per_class must be at least 1, got {n_per_class!r}.")
    if not MIN_VIBRATION_RATE <= sampling_rate < np.inf:
        raise ValueError(
            f"sampling_rate must be at least {MIN_VIBRATION_RATE} Hz to represent the resonances, got {sampling_rate!r}."
        )
    if not 0.25 <= seconds < np.inf:
        raise ValueError(f"seconds must be at least 0.25, got {seconds!r}.")
    case_rng, machine_rng, force_rng, noise_rng = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(random_state).spawn(4)
    )
    target = case_rng.permutation(np.repeat(np.arange(len(MACHINE_STATES)), n_per_class))
    machine = case_rng.integers(N_MACHINES, size=target.size)
    speed = case_rng.uniform(*SPEED_HZ, size=target.size)
    level = np.where(target > 0, fault_db + LEVEL_DB * case_rng.standard_normal(target.size), -np.inf)
    bearing = np.where(target == MACHINE_STATES.index("bearing"), case_rng.integers(2, size=target.size), -1)
    machines = _draw_machines(machine_rng)
    n_samples = round(seconds * sampling_rate)
    data = np.empty((target.size, len(MOUNTS), n_samples), dtype=np.float32)
    for case in range(target.size):
        force = _forces(
            int(target[case]),
            int(bearing[case]),
            float(speed[case]),
            float(machines.residual[machine[case]]),
            10.0 ** (level[case] / 20.0),
            n_samples,
            sampling_rate,
            force_rng,
        )
        data[case] = _at_mounts(force, machines.paths[machine[case]], noise_db, sampling_rate, noise_rng)
    return Bunch(
        signals={mount: data[:, [m]] for m, mount in enumerate(MOUNTS)},
        sampling_rates=dict.fromkeys(MOUNTS, float(sampling_rate)),
        target=target,
        target_names=list(MACHINE_STATES),
        machine=machine,
        speed_hz=speed,
        severity_db=level,
        bearing=bearing,
        DESCR="\n".join(
            [
                "Simulated vibration of machines (experiments.datasets.make_machine_vibration)",
                f"{n_per_class} cases each of: {', '.join(MACHINE_STATES)}; {N_MACHINES} machines",
                f"{len(MOUNTS)} mounts, {n_samples} samples at {sampling_rate} Hz",
                f"faults at {fault_db:g} dB, noise at {noise_db:g} dB",
            ]
        ),
    )


def _draw_machines(rng: np.random.Generator) -> _Machines:
    shape = (N_MACHINES, len(MOUNTS), N_MODES)
    paths = np.stack(
        [
            np.exp(rng.uniform(np.log(MODE_HZ[0]), np.log(MODE_HZ[1]), size=shape)),
            rng.uniform(*DAMPING, size=shape),
            rng.normal(size=shape),
        ],
        axis=-1,
    )
    return _Machines(np.exp(0.4 * rng.standard_normal(N_MACHINES)), paths)


def _forces(
    state: int,
    bearing: int,
    speed: float,
    residual: float,
    fault: float,
    n_samples: int,
    rate: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the (2, n_samples) forces at the two bearings; a healthy shaft has a root mean square of about 1."""
    turns = speed * np.arange(n_samples) / rate + 0.05 * np.cumsum(rng.standard_normal(n_samples)) / np.sqrt(rate)
    shaft = residual * _orders(turns, np.array([1.0]), np.array([1.0]), rng)
    higher: FloatArray = np.array([2.0, 3.0, 4.0])
    shaft = shaft + 0.5 * _orders(turns, higher, 1.0 / higher, rng)
    force: FloatArray = np.tile(shaft, (2, 1)) * np.exp(0.2 * rng.standard_normal((2, 1)))
    if state == MACHINE_STATES.index("unbalance"):
        force += fault * _orders(turns, np.array([1.0]), np.array([1.0]), rng)
    elif state == MACHINE_STATES.index("looseness"):
        orders = np.asarray(np.arange(0.5, HARMONICS / 2 + 0.5, 0.5), dtype=np.float64)
        force += fault * _orders(turns, orders, np.exp(0.5 * rng.standard_normal(orders.size)), rng)
    elif bearing >= 0:
        force[bearing] += fault * _impacts(turns, n_samples, rng)
    return force


def _orders(turns: FloatArray, orders: FloatArray, amplitudes: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return harmonics of the turns of the shaft at random phases, with root mean square ‖amplitudes‖/√(number)."""
    phases = rng.uniform(0.0, 2.0 * np.pi, size=orders.size)
    waves = np.cos(2.0 * np.pi * orders[:, np.newaxis] * turns + phases[:, np.newaxis])
    return np.asarray(np.sqrt(2.0 / orders.size) * amplitudes @ waves)


def _impacts(turns: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the impacts of a defect of the outer or inner race, with root mean square 1."""
    is_inner = rng.random() < 0.5
    order = DEFECT_ORDERS[int(is_inner)]
    n_impacts = int(order * (turns[-1] - turns[0])) + 2
    passes = rng.uniform(0.0, 1.0 / order) + np.cumsum(1.0 + SLIP * rng.standard_normal(n_impacts)) / order
    times = np.interp(passes, turns - turns[0], np.arange(n_samples), right=n_samples).astype(int)
    times = times[times < n_samples]
    strength = 1.0 + 0.2 * rng.standard_normal(times.size)
    if is_inner:  # the defect turns with the shaft through the loaded zone
        strength *= 0.5 + 0.5 * np.cos(2.0 * np.pi * turns[times])
    impacts = np.zeros(n_samples)
    np.add.at(impacts, times, strength)
    return np.asarray(impacts / max(np.sqrt(np.mean(impacts**2)), np.finfo(float).tiny))


def _at_mounts(
    force: FloatArray, paths: FloatArray, noise_db: float, rate: float, rng: np.random.Generator
) -> FloatArray:
    """Return the (n_mounts, n_samples) acceleration with noise."""
    n_samples = force.shape[1]
    response = _response(paths, rfftfreq(n_samples, 1.0 / rate))
    process = np.asarray(rng.standard_normal(n_samples))
    clean = irfft(response * rfft(COUPLING @ force, axis=1), n_samples, axis=1)
    common = irfft(response * rfft(process), n_samples, axis=1)
    noise = 10.0 ** ((noise_db + 2.0 * rng.standard_normal((2, len(paths), 1))) / 20.0)
    level = _rms(clean)
    own = rng.standard_normal(clean.shape)
    return np.asarray(clean + level * (noise[0] * common / _rms(common) + noise[1] * own))


def _response(paths: FloatArray, hertz: FloatArray) -> NDArray[np.complex128]:
    """Return the (n_mounts, n_frequencies) acceleration per force: 1 for the rigid body, and each mode's resonance."""
    mode, damping, strength = (paths[..., i, np.newaxis] for i in range(3))
    ratio = hertz / mode
    resonance = strength * ratio**2 / (1.0 - ratio**2 + 2j * damping * ratio)
    return np.asarray(1.0 + 0.3 * resonance.sum(axis=1))


def _rms(signals: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.mean(signals**2, axis=1, keepdims=True)))
