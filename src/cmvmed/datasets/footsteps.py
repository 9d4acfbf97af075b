"""Simulated sound of footsteps at several sensors: a person alone, or a person leading a four-legged animal.

It stands in for the ARL-Footstep recordings of the paper, which are not public. What happens where: who walks and how
it sounds at the ground, :mod:`cmvmed.datasets.gait`; the way to the sensors and the noise,
:mod:`cmvmed.datasets.sound_field`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from cmvmed.datasets.gait import animal_contacts, draw_walks, person_contacts
from cmvmed.datasets.sound_field import add_noise, propagate

FloatArray = NDArray[np.float64]

SENSOR_POSITIONS = ((-6.0, 3.0), (6.0, -3.0), (-6.0, -5.0), (6.0, 5.0))  # m; the trail is the x axis
SNR_DB = (-3.0, -5.5, -4.0, -4.0)  # of each sensor; chosen so that one sensor with 50 labels is as hard as in the paper
LOWEST_RATE = 2000  # Hz; hooves sound up to 700 Hz


def make_footsteps(
    n_human: int = 840,
    n_animal: int = 660,
    *,
    sampling_rate: int = 4000,
    seconds: float = 1.5,
    sensor_positions: Sequence[tuple[float, float]] = SENSOR_POSITIONS,
    snr_db: float | Sequence[float] | None = None,
    wind_share: float = 0.8,
    background_coherence: float = 0.5,
    random_state: int | None = None,
) -> Bunch:
    """Simulate synchronized sound segments of walking people, some of whom lead an animal.

    1. **Gait.** A person sets a foot down every 0.5 to 0.69 s; the toe follows the heel by 0.12 to 0.17 s. A led
    horse or
       donkey walks in four beats of about a quarter second, 1 to 2.5 m behind. Twenty people and ten animals differ in
       rhythm, pitch and loudness and vary from step to step.
    2. **Impact.** A thump (30 to 90 Hz) and a knock (120 to 320 Hz of a shoe, 300 to 700 Hz and shorter of a hoof),
    both
       damped oscillations, and a scuff (noise burst of the friction).
    3. **Way to the sensor.** Delay d / c, spreading 1 / d, absorption per meter that grows with frequency; each
    contact has
       its own distance. The ground at each sensor has its own resonance.
    4. **Noise.** Wind (power ~ f^(-5/3), independent at each sensor, in gusts) and background (~ 1 / f, in part a
    plane wave
       common to all sensors). A walker near one sensor is far from another and gusts are local: the sensors complement
       each other.

    Parameters
    ----------
    n_human, n_animal : int
        Segments of a person alone, and of a person leading an animal.
    sampling_rate : int
        Samples per second, at least 2000.
    seconds : float
        Length of a segment.
    sensor_positions : sequence of (x, y)
        Sensors in meters; the trail runs along the x axis from -12 to 12.
    snr_db : float, sequence of float or None
        Mean power of the footsteps over mean power of the noise at each sensor, over all segments, in dB. ``np.inf``:
        no noise. None: ``SNR_DB``, for which one sensor with 50 labels is about as hard as in the paper.
    wind_share : float
        Share of wind in the noise power, in [0, 1].
    background_coherence : float
        Share of the background that is common to all sensors, in [0, 1].
    random_state : int, optional
        Seed; the same seed gives the same bytes, and the same walks whatever the noise.

    Returns
    -------
    Bunch
        data : (n_segments, n_sensors, n_samples) float32.
        target : (n_segments,) 0: human, 1: human and animal. target_names : list of str.
        views : dict of sensor name -> channel of ``data``, the keys of :func:`cmvmed.features.views_transformer`.
        sampling_rate : int. sensor_positions : (n_sensors, 2). snr_db : (n_sensors,).
        person, animal : (n_segments,) which of the subjects, -1 for no animal.
        step_period, stride_period : (n_segments,) s, NaN for no animal.
        position : (n_segments, 2) of the person half-way. distance : (n_segments, n_sensors) m from there.
        segment_snr_db : (n_segments, n_sensors) of this segment.
        DESCR : str.

    Examples
    --------
    >>> steps = make_footsteps(4, 3, random_state=0)
    >>> steps.data.shape, steps.data.dtype, steps.views
    ((7, 4, 6000), dtype('float32'), {'sensor1': 0, 'sensor2': 1, 'sensor3': 2, 'sensor4': 3})
    """
    positions = _checked_positions(sensor_positions)
    snr = _snr_per_sensor(snr_db, len(positions))
    _check(n_human, n_animal, sampling_rate, seconds, wind_share, background_coherence)
    for_target, for_walks, for_steps, for_sound, for_noise = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(random_state).spawn(5)
    )
    target = for_target.permutation(np.repeat([0, 1], [n_human, n_animal]))
    walks = draw_walks(target == 1, for_walks)
    contacts = chain(person_contacts(walks, seconds, for_steps), animal_contacts(walks, seconds, for_steps))
    shape = (len(target), len(positions), round(seconds * sampling_rate))
    data = propagate(contacts, shape, positions, sampling_rate, for_sound)
    signal_power = np.asarray(np.mean(data**2, axis=2, dtype=np.float64))
    noise_power = add_noise(
        data,
        np.sqrt(signal_power.mean(axis=0) * 10.0 ** (-snr / 10.0)),
        positions,
        sampling_rate,
        wind_share=wind_share,
        background_coherence=background_coherence,
        rng=for_noise,
    )
    return Bunch(
        data=data,
        target=target,
        target_names=["human", "human and animal"],
        views={f"sensor{s + 1}": s for s in range(len(positions))},
        sampling_rate=sampling_rate,
        sensor_positions=positions,
        snr_db=snr,
        person=walks.person,
        animal=walks.animal,
        step_period=walks.step_period,
        stride_period=walks.stride_period,
        position=walks.middle,
        distance=np.linalg.norm(walks.middle[:, np.newaxis] - positions, axis=2),
        segment_snr_db=_ratio_in_db(signal_power, noise_power),
        DESCR=_describe(shape, n_human, n_animal, sampling_rate, snr, wind_share, background_coherence),
    )


def _checked_positions(sensor_positions: Sequence[tuple[float, float]]) -> FloatArray:
    positions = np.asarray(sensor_positions, dtype=float)
    if positions.ndim != 2 or positions.shape[1] != 2 or len(positions) == 0 or not np.isfinite(positions).all():
        raise ValueError(f"sensor_positions must be (x, y) pairs in meters, one per sensor, got {sensor_positions!r}.")
    return positions


def _snr_per_sensor(snr_db: float | Sequence[float] | None, n_sensors: int) -> FloatArray:
    chosen = np.resize(SNR_DB, n_sensors) if snr_db is None else np.asarray(snr_db, dtype=float)
    if chosen.ndim > 1 or chosen.size not in (1, n_sensors) or np.isnan(chosen).any():
        raise ValueError(f"snr_db must be one number or one per sensor ({n_sensors}), got {snr_db!r}.")
    return np.broadcast_to(chosen, (n_sensors,)).copy()


def _check(
    n_human: int, n_animal: int, rate: int, seconds: float, wind_share: float, background_coherence: float
) -> None:
    if min(n_human, n_animal) < 0 or n_human + n_animal == 0:
        raise ValueError(f"n_human and n_animal must not be negative and not both zero, got {n_human} and {n_animal}.")
    if not LOWEST_RATE <= rate < np.inf:
        raise ValueError(f"sampling_rate must be at least {LOWEST_RATE} Hz to hold the sound of hooves, got {rate!r}.")
    if not 0.1 <= seconds < np.inf:
        raise ValueError(f"seconds must be at least 0.1, got {seconds!r}.")
    for name, share in (("wind_share", wind_share), ("background_coherence", background_coherence)):
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must lie in [0, 1], got {share!r}.")


def _ratio_in_db(signal: FloatArray, noise: FloatArray) -> FloatArray:
    tiny = np.finfo(float).tiny
    ratio = 10.0 * np.log10(np.maximum(signal, tiny) / np.maximum(noise, tiny))
    return np.asarray(np.where(noise > 0, ratio, np.inf))


def _describe(
    shape: tuple[int, int, int],
    n_human: int,
    n_animal: int,
    rate: int,
    snr: FloatArray,
    wind_share: float,
    background_coherence: float,
) -> str:
    return "\n".join(
        [
            "Simulated footsteps at several sensors (cmvmed.datasets.make_footsteps)",
            f"{n_human} segments of a person alone, {n_animal} of a person leading an animal",
            f"{shape[1]} synchronized sensors, {shape[2]} samples each at {rate} Hz",
            f"signal-to-noise ratio of the sensors: {', '.join(f'{value:g}' for value in snr)} dB",
            f"noise power: {wind_share:.0%} wind; {background_coherence:.0%} of the background common to all sensors",
        ]
    )
