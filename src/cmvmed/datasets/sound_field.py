"""Propagation of sound from the ground to the sensors, and noise at the sensors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfftfreq
from scipy.signal import iirpeak, lfilter

from cmvmed.datasets.gait import Contacts, amplitude_from_db

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]

SPEED_OF_SOUND = 343.0  # m/s
ABSORPTION_DB_PER_METER = np.array([0.05, 0.2, 0.6])  # of thump, knock, scuff, over soft ground
MIN_DISTANCE = 1.0  # m; amplitudes are given at this distance
IMPACT_SECONDS = 0.12  # duration of an impact; with the longest decay time its amplitude is then below 1 %
RESONANCE_HZ = (170.0, 240.0, 130.0, 310.0)  # of the ground at each sensor; repeated for more than four
RESONANCE_Q = 2.0
MIN_NOISE_HZ = 20.0  # lower limit of the microphone
WIND_EXPONENT, BACKGROUND_EXPONENT = 5.0 / 3.0, 1.0  # power ~ f^(-exponent)
GUST_DB, LOCAL_GUST_DB = 3.0, 6.0  # standard deviation of the wind level between segments: common, and of one sensor
NOISE_BLOCK = 64  # segments whose noise is drawn at once; a change would change the result of a seed


def propagate(
    contacts: Iterable[Contacts],
    shape: tuple[int, int, int],
    positions: FloatArray,
    sampling_rate: float,
    rng: np.random.Generator,
) -> Float32Array:
    """Return the noiseless (n_segments, n_sensors, n_samples) sound of all contacts.

    At distance d a component of amplitude a has the amplitude a (1 m / d) 10^(-absorption (d - 1 m) / 20) and the delay
    d / c, rounded to a sample. The resonance of the ground at each sensor is then added.
    """
    n_segments, n_sensors, n_samples = shape
    length = round(IMPACT_SECONDS * sampling_rate)
    # margins for sounds that begin before or end after the segment, removed afterwards
    sound = np.zeros((n_segments, n_sensors, n_samples + 2 * length), dtype=np.float32)
    offsets = np.arange(length)
    for contact in contacts:
        components = _impact_components(contact, length, sampling_rate, rng)
        for sensor, position in enumerate(positions):
            distance = np.maximum(np.linalg.norm(contact.position - position, axis=1), MIN_DISTANCE)
            absorption = amplitude_from_db(-ABSORPTION_DB_PER_METER * (distance[:, np.newaxis] - MIN_DISTANCE))
            gain = (contact.strength * absorption * (MIN_DISTANCE / distance)[:, np.newaxis]).astype(np.float32)
            arrival = np.rint((contact.seconds + distance / SPEED_OF_SOUND) * sampling_rate).astype(int) + length
            audible = np.flatnonzero((arrival >= 0) & (arrival <= n_samples + length))
            wave = np.einsum("mp,mpt->mt", gain[audible], components[audible])
            sound[contact.rows[audible, np.newaxis], sensor, arrival[audible, np.newaxis] + offsets] += wave
    sound = np.ascontiguousarray(sound[:, :, length : length + n_samples])
    for sensor in range(n_sensors):
        b, a = iirpeak(RESONANCE_HZ[sensor % len(RESONANCE_HZ)], RESONANCE_Q, fs=sampling_rate)
        sound[:, sensor] += lfilter(b.astype(np.float32), a.astype(np.float32), sound[:, sensor], axis=-1)
    return sound


def _impact_components(contact: Contacts, length: int, sampling_rate: float, rng: np.random.Generator) -> Float32Array:
    """Return (m, 3, length): damped oscillations of thump and knock, and the high-passed noise burst of the scuff."""
    t = (np.arange(length) / sampling_rate).astype(np.float32)
    components = np.empty((len(contact.rows), 3, length), dtype=np.float32)
    components[:, :2] = np.sin(np.float32(2 * np.pi) * contact.hertz.astype(np.float32)[:, :, np.newaxis] * t)
    components[:, 2] = np.diff(rng.standard_normal((len(contact.rows), length + 1), dtype=np.float32))
    components *= np.exp(-t / contact.decay.astype(np.float32)[:, :, np.newaxis])
    return components


def add_noise(
    sound: Float32Array,
    rms: FloatArray,
    positions: FloatArray,
    sampling_rate: float,
    *,
    wind_share: float,
    background_coherence: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Add wind and background of expected root mean square ``rms`` (one per sensor) to ``sound``, in place.

    A share ``background_coherence`` of the background is a plane wave from a random direction, which reaches the
    sensors with delays; the rest is independent at each sensor. Wind is independent at each sensor, and its level
    varies in gusts. The two independent components of a sensor are drawn as one Gaussian process with the sum of their
    spectra.

    Returns
    -------
    (n_segments, n_sensors)
        Mean power of the noise.
    """
    n_segments, n_sensors, n_samples = sound.shape
    centered = positions - positions.mean(axis=0)
    max_delay = int(np.ceil(np.linalg.norm(centered, axis=1).max() / SPEED_OF_SOUND * sampling_rate)) + 1
    size = next_fast_len(n_samples + 2 * max_delay, real=True)
    wind = wind_share * _unit_power_spectrum(size, sampling_rate, WIND_EXPONENT)
    background = (1.0 - wind_share) * _unit_power_spectrum(size, sampling_rate, BACKGROUND_EXPONENT)
    power = np.empty((n_segments, n_sensors))
    for start in range(0, n_segments, NOISE_BLOCK):
        block = sound[start : start + NOISE_BLOCK]
        gusts = _gust_power(len(block), n_sensors, rng)[:, :, np.newaxis]
        independent = _gaussian(wind * gusts + (1.0 - background_coherence) * background, size, rng)[:, :, :n_samples]
        common = _gaussian(np.tile(background_coherence * background, (len(block), 1)), size, rng)
        delayed = _plane_wave(common, centered, max_delay, n_samples, sampling_rate, rng)
        noise = (independent + delayed) * rms.astype(np.float32)[:, np.newaxis]
        power[start : start + NOISE_BLOCK] = np.mean(noise**2, axis=2)
        block += noise
    return power


def _unit_power_spectrum(size: int, sampling_rate: float, exponent: float) -> FloatArray:
    """Return |amplitude|^2 per frequency, ~ f^(-exponent) from MIN_NOISE_HZ, for noise of variance 1."""
    frequencies = rfftfreq(size, 1.0 / sampling_rate)
    shape = np.where(frequencies >= MIN_NOISE_HZ, np.maximum(frequencies, MIN_NOISE_HZ) ** -exponent, 0.0)
    return np.asarray(shape * size**2 / (4.0 * shape.sum()))


def _gaussian(power_spectrum: FloatArray, size: int, rng: np.random.Generator) -> Float32Array:
    """Return noise with the given power spectrum along the last axis; real and imaginary parts have variance 1."""
    amplitude = np.sqrt(power_spectrum).astype(np.float32)
    white = rng.standard_normal((*amplitude.shape, 2), dtype=np.float32).view(np.complex64)[..., 0]
    return np.asarray(irfft(white * amplitude, size, axis=-1))


def _gust_power(n_segments: int, n_sensors: int, rng: np.random.Generator) -> FloatArray:
    """Return the relative power of the wind, log-normal with mean 1."""
    level = rng.normal(0, GUST_DB, (n_segments, 1)) + rng.normal(0, LOCAL_GUST_DB, (n_segments, n_sensors))
    per_decibel = np.log(10.0) / 10.0
    mean = np.exp(per_decibel**2 * (GUST_DB**2 + LOCAL_GUST_DB**2) / 2.0)
    return np.asarray(np.exp(per_decibel * level) / mean)


def _plane_wave(
    common: Float32Array,
    centered: FloatArray,
    max_delay: int,
    n_samples: int,
    sampling_rate: float,
    rng: np.random.Generator,
) -> Float32Array:
    """Return (m, n_sensors, n_samples): the common wave of each segment with the delays of the sensors."""
    angle = rng.uniform(0, 2 * np.pi, len(common))
    path = np.column_stack([np.cos(angle), np.sin(angle)]) @ centered.T
    start = max_delay - np.rint(path / SPEED_OF_SOUND * sampling_rate).astype(int)
    windows = np.lib.stride_tricks.sliding_window_view(common, n_samples, axis=1)
    return np.asarray(windows[np.arange(len(common))[:, np.newaxis], start])
