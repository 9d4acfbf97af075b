"""Simulated sound of footsteps at several sensors: a person alone, or a person leading a four-legged animal.

It replaces the ARL-Footstep recordings of the paper, which are not public. The gait and the sound at the source are in
:mod:`cmvmed.datasets.gait`, the propagation to the sensors and the noise in :mod:`cmvmed.datasets.sound_field`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from cmvmed.datasets.gait import (
    Float32Array,
    animal_contacts,
    draw_walks,
    person_contacts,
    with_recorded_hooves,
    with_recorded_steps,
)
from cmvmed.datasets.sound_field import add_noise, propagate

FloatArray = NDArray[np.float64]

SENSOR_POSITIONS = ((-6.0, 3.0), (6.0, -3.0), (-6.0, -5.0), (6.0, 5.0))  # m; the trail is the x axis
SNR_DB = (
    -3.0,
    -5.5,
    -4.0,
    -4.0,
)  # of each sensor; chosen such that one sensor with 50 labels is as difficult as in the paper
MIN_SAMPLING_RATE = 2000  # Hz; the sound of hooves has frequencies up to 700 Hz


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
    sources: Mapping[str, ArrayLike] | None = None,
    random_state: int | None = None,
) -> Bunch:
    """Simulate synchronized sound segments of walking people, some of whom lead an animal.

    1. **Gait.** A person makes a step every 0.5 to 0.69 s; the toe follows the heel by 0.12 to 0.17 s. A horse or
       donkey, 1 to 2.5 m behind, walks in four beats of about a quarter second. Twenty people and ten animals differ
       in period, frequencies and loudness, and each step varies.
    2. **Impact.** A thump (30 to 90 Hz) and a knock (120 to 320 Hz for a shoe, 300 to 700 Hz and shorter for a hoof),
       both damped oscillations of the ground, of which a sole or hoof radiates little into the air below some 600 Hz,
       and a scuff (noise burst of the friction, above 500 Hz).
    3. **Propagation.** Delay d / c, spreading 1 / d, and absorption per meter that increases with frequency, for the
       distance d of each contact.
    4. **Noise.** Wind (power ~ f^(-5/3), independent at each sensor, in gusts) and background (~ 1 / f, in part a plane
       wave common to all sensors). A walker near one sensor is far from another and gusts are local, so the sensors
       are complementary.

    Parameters
    ----------
    n_human, n_animal : int
        Number of segments with a person alone, and with a person leading an animal.
    sampling_rate : int
        Samples per second, at least 2000.
    seconds : float
        Duration of a segment.
    sensor_positions : sequence of (x, y)
        Sensors in meters; the trail is the x axis from -12 to 12.
    snr_db : float, sequence of float or None
        Mean power of the footsteps over mean power of the noise at each sensor, over all segments, in dB. ``np.inf``:
        no noise. None: ``SNR_DB``, for which one sensor with 50 labels is about as difficult as in the paper.
    wind_share : float
        Share of wind in the noise power, in [0, 1].
    background_coherence : float
        Share of the background that is common to all sensors, in [0, 1].
    sources : mapping, optional
        Recorded sounds of single impacts, "human" or "animal" to an array (n_sounds, n_samples) at ``sampling_rate``,
        in place of the simulated ones: each person or animal has one of them, with the loudness of the simulation. A
        sound of a person is a whole step. Recorded people and simulated animals differ in more than their gait.
    random_state : int, optional
        Seed; the same seed gives the same bytes, and the same walks for all noise settings.

    Returns
    -------
    Bunch
        data : (n_segments, n_sensors, n_samples) float32.
        target : (n_segments,) 0: human, 1: human and animal. target_names : list of str.
        views : dict of sensor name -> channel of ``data``, the keys of :func:`cmvmed.features.views_transformer`.
        sampling_rate : int. sensor_positions : (n_sensors, 2). snr_db : (n_sensors,).
        person, animal : (n_segments,) index of the subject, -1 for no animal.
        step_period, stride_period : (n_segments,) s, NaN for no animal.
        position : (n_segments, 2) of the person in the middle of the segment, in meters.
        distance : (n_segments, n_sensors) from this position to the sensors, in meters.
        segment_snr_db : (n_segments, n_sensors) signal-to-noise ratio of each segment.
        DESCR : str.

    Examples
    --------
    >>> steps = make_footsteps(4, 3, random_state=0)
    >>> steps.data.shape, steps.data.dtype, steps.views
    ((7, 4, 6000), dtype('float32'), {'sensor1': 0, 'sensor2': 1, 'sensor3': 2, 'sensor4': 3})
    """
    positions = _check_positions(sensor_positions)
    snr = _snr_per_sensor(snr_db, len(positions))
    _check_parameters(n_human, n_animal, sampling_rate, seconds, wind_share, background_coherence)
    recorded = _check_sources(sources)
    target_rng, walk_rng, step_rng, sound_rng, noise_rng = (
        np.random.default_rng(stream) for stream in np.random.SeedSequence(random_state).spawn(5)
    )
    target = target_rng.permutation(np.repeat([0, 1], [n_human, n_animal]))
    walks = draw_walks(target == 1, walk_rng)
    steps, hooves = person_contacts(walks, seconds, step_rng), animal_contacts(walks, seconds, step_rng)
    if "human" in recorded:
        steps = with_recorded_steps(steps, walks, recorded["human"])
    if "animal" in recorded:
        hooves = with_recorded_hooves(hooves, walks, recorded["animal"])
    shape = (len(target), len(positions), round(seconds * sampling_rate))
    longest = max((sounds.shape[1] for sounds in recorded.values()), default=0)
    data = propagate(chain(steps, hooves), shape, positions, sampling_rate, sound_rng, longest)
    signal_power = np.asarray(np.mean(data**2, axis=2, dtype=np.float64))
    noise_power = add_noise(
        data,
        np.sqrt(signal_power.mean(axis=0) * 10.0 ** (-snr / 10.0)),
        positions,
        sampling_rate,
        wind_share=wind_share,
        background_coherence=background_coherence,
        rng=noise_rng,
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
        position=walks.mid_position,
        distance=np.linalg.norm(walks.mid_position[:, np.newaxis] - positions, axis=2),
        segment_snr_db=_snr_db(signal_power, noise_power),
        DESCR=_describe(shape, n_human, n_animal, sampling_rate, snr, wind_share, background_coherence),
    )


def _check_positions(sensor_positions: Sequence[tuple[float, float]]) -> FloatArray:
    positions = np.asarray(sensor_positions, dtype=float)
    if positions.ndim != 2 or positions.shape[1] != 2 or len(positions) == 0 or not np.isfinite(positions).all():
        raise ValueError(f"sensor_positions must be (x, y) pairs in meters, one per sensor, got {sensor_positions!r}.")
    return positions


def _snr_per_sensor(snr_db: float | Sequence[float] | None, n_sensors: int) -> FloatArray:
    snr = np.resize(SNR_DB, n_sensors) if snr_db is None else np.asarray(snr_db, dtype=float)
    if snr.ndim > 1 or snr.size not in (1, n_sensors) or np.isnan(snr).any():
        raise ValueError(f"snr_db must be one number or one per sensor ({n_sensors}), got {snr_db!r}.")
    return np.broadcast_to(snr, (n_sensors,)).copy()


def _check_parameters(
    n_human: int, n_animal: int, rate: int, seconds: float, wind_share: float, background_coherence: float
) -> None:
    if min(n_human, n_animal) < 0 or n_human + n_animal == 0:
        raise ValueError(f"n_human and n_animal must not be negative and not both zero, got {n_human} and {n_animal}.")
    if not MIN_SAMPLING_RATE <= rate < np.inf:
        raise ValueError(
            f"sampling_rate must be at least {MIN_SAMPLING_RATE} Hz to represent the sound of hooves, got {rate!r}."
        )
    if not 0.1 <= seconds < np.inf:
        raise ValueError(f"seconds must be at least 0.1, got {seconds!r}.")
    for name, share in (("wind_share", wind_share), ("background_coherence", background_coherence)):
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must be in [0, 1], got {share!r}.")


def _check_sources(sources: Mapping[str, ArrayLike] | None) -> dict[str, Float32Array]:
    if unknown := sorted(set(sources or ()) - {"human", "animal"}):
        raise ValueError(f"sources must have the keys 'human' and 'animal' only, got {unknown}.")
    recorded = {name: np.asarray(sounds, dtype=np.float32) for name, sounds in (sources or {}).items()}
    for name, sounds in recorded.items():
        if sounds.ndim != 2 or sounds.size == 0 or not np.isfinite(sounds).all() or not sounds.any(axis=1).all():
            raise ValueError(
                f"sources[{name!r}] must be an array (n_sounds, n_samples) of finite numbers, no sound all zero; it has "
                f"the shape {sounds.shape}."
            )
    return recorded


def _snr_db(signal: FloatArray, noise: FloatArray) -> FloatArray:
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
