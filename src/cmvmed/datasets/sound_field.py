"""Radiation of sound from the ground into the air, propagation to the sensors, and noise at the sensors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfftfreq
from scipy.signal import butter, sosfilt

from cmvmed.datasets.gait import Contacts, amplitude_from_db

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]

SPEED_OF_SOUND = 343.0  # m/s
ABSORPTION_DB_PER_METER = np.array([0.05, 0.2, 0.6])  # of thump, knock, scuff, over soft ground
KNOCK = 1  # position of the knock among the components
MIN_DISTANCE = 1.0  # m; amplitudes are given at this distance
IMPACT_SECONDS = 0.12  # duration of an impact; with the longest decay time its amplitude is then below 1 %
MIN_FRICTION_HZ = 500.0  # friction causes the sound above this frequency (Ekimov and Sabatier, 2006)
FRICTION_BAND_HZ = 2000.0  # the strength of a scuff is the root mean square of white noise of this bandwidth
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
    longest_recorded: int = 0,
) -> Float32Array:
    """Return the noiseless (n_segments, n_sensors, n_samples) sound of all contacts.

    At distance d a component of amplitude a has the amplitude a (1 m / d) 10^(-absorption (d - 1 m) / 20) and the delay
    d / c, rounded to a sample. A recorded sound, of at most `longest_recorded` samples, is absorbed as a knock.
    """
    n_segments, n_sensors, n_samples = shape
    length = max(round(IMPACT_SECONDS * sampling_rate), longest_recorded)
    # margins for sounds that begin before or end after the segment, removed afterwards
    sound = np.zeros((n_segments, n_sensors, n_samples + 2 * length), dtype=np.float32)
    offsets = np.arange(length)
    for contact in contacts:
        components = _impact_components(contact, length, sampling_rate, rng)
        strength = _radiated_strength(contact)
        if contact.recorded is not None:
            components, strength = _recorded_components(contact.recorded, components, strength)
        for sensor, position in enumerate(positions):
            distance = np.maximum(np.linalg.norm(contact.position - position, axis=1), MIN_DISTANCE)
            absorption = amplitude_from_db(-ABSORPTION_DB_PER_METER * (distance[:, np.newaxis] - MIN_DISTANCE))
            gain = (strength * absorption * (MIN_DISTANCE / distance)[:, np.newaxis]).astype(np.float32)
            arrival = np.rint((contact.seconds + distance / SPEED_OF_SOUND) * sampling_rate).astype(int) + length
            audible = np.flatnonzero((arrival >= 0) & (arrival <= n_samples + length))
            wave = np.einsum("mp,mpt->mt", gain[audible], components[audible])
            sound[contact.rows[audible, np.newaxis], sensor, arrival[audible, np.newaxis] + offsets] += wave
    return np.ascontiguousarray(sound[:, :, length : length + n_samples])


def radiation_gain(hertz: FloatArray, radius: float) -> FloatArray:
    """Return the share of the velocity of a small surface that becomes sound pressure, by frequency.

    A pulsating sphere of radius a and surface velocity u has the pressure |p| = rho c u (a / r) ka / sqrt(1 + (ka)^2)
    at distance r, with k = 2 pi f / c. A sole or a hoof therefore radiates its vibrations poorly below c / (2 pi a),
    some 600 to 850 Hz: the ground vibrates mostly at 20 to 90 Hz, the air does not.
    """
    ka = 2.0 * np.pi * hertz * radius / SPEED_OF_SOUND
    return np.asarray(ka / np.sqrt(1.0 + ka**2))


def _radiated_strength(contact: Contacts) -> FloatArray:
    """Return the (m, 3) amplitudes in the air: vibrations are radiated, friction is given as sound."""
    strength = contact.strength.copy()
    strength[:, :2] *= radiation_gain(contact.hertz, contact.radius)
    return strength


def _recorded_components(
    recorded: Float32Array, components: Float32Array, strength: FloatArray
) -> tuple[Float32Array, FloatArray]:
    """Return components and amplitudes of recorded sounds, each with the energy of the simulated impact it replaces."""
    simulated = np.einsum("mp,mpt->mt", strength.astype(np.float32), components)
    energy, recorded_energy = (np.sum(x.astype(float) ** 2, axis=1) for x in (simulated, recorded))
    replaced = np.zeros_like(components)
    replaced[:, KNOCK, : recorded.shape[1]] = recorded
    amplitude = np.zeros_like(strength)
    amplitude[:, KNOCK] = np.sqrt(energy / recorded_energy)
    return replaced, amplitude


def _impact_components(contact: Contacts, length: int, sampling_rate: float, rng: np.random.Generator) -> Float32Array:
    """Return (m, 3, length): damped oscillations of thump and knock, and the noise burst of the scuff.

    The noise has the same power per Hz at all frequencies above MIN_FRICTION_HZ and at all sampling rates.
    """
    t = (np.arange(length) / sampling_rate).astype(np.float32)
    components = np.empty((len(contact.rows), 3, length), dtype=np.float32)
    components[:, :2] = np.sin(np.float32(2 * np.pi) * contact.hertz.astype(np.float32)[:, :, np.newaxis] * t)
    white = rng.standard_normal((len(contact.rows), length), dtype=np.float32)
    white *= np.float32(np.sqrt(sampling_rate / 2.0 / FRICTION_BAND_HZ))
    high_pass = butter(2, MIN_FRICTION_HZ, "highpass", fs=sampling_rate, output="sos").astype(np.float32)
    components[:, 2] = sosfilt(high_pass, white)
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
