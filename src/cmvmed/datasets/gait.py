"""Gait of people and animals: time, position and sound of each ground contact.

Sources of the constants: footsteps of a walking person are 0.5 to 0.69 s apart, and the toe follows the heel by more
than 0.12 to 0.17 s (Ekimov and Sabatier, J. Acoust. Soc. Am. 129, 1306, 2011). The force normal to the ground causes
vibration and sound below 500 Hz, friction those above (Ekimov and Sabatier, J. Acoust. Soc. Am. 120, 762, 2006). A
horse or donkey walks in four beats, with about one stride per second. The other constants are plausible choices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]

N_PEOPLE, N_ANIMALS = 20, 10
MIN_STEP_PERIOD, MIN_STRIDE_PERIOD = 0.42, 0.85  # s; shorter periods practically do not occur here
LEAD_IN = 0.4  # s before the segment in which contacts are drawn, because their sound may reach into it
TRAIL_HALF_LENGTH = 12.0  # m; the trail is the x axis, centered at the origin

# amplitudes of the vibrations thump and knock and of the sound of the scuff, relative to the thump of a heel
HEEL_STRENGTH, TOE_STRENGTH = np.array([1.0, 0.6, 0.12]), np.array([0.5, 0.5, 0.3])
HOOF_STRENGTH = np.array([0.9, 0.9, 0.25])
# decay time in s of each component, to 1/e of its amplitude
HEEL_DECAY, TOE_DECAY = np.array([0.025, 0.012, 0.015]), np.array([0.025, 0.012, 0.030])
HOOF_DECAY = np.array([0.030, 0.006, 0.007])
# radius in m of the circle with the area of a sole (250 cm^2) and of a hoof (130 cm^2), which radiate the sound
SOLE_RADIUS, HOOF_RADIUS = 0.09, 0.065


@dataclass(frozen=True)
class Contacts:
    """At most one ground contact in each of some segments."""

    rows: IntArray  # (m,) indices of the segments
    seconds: FloatArray  # (m,) time since the start of the segment
    position: FloatArray  # (m, 2) meters
    strength: FloatArray  # (m, 3) amplitudes of thump, knock, scuff
    hertz: FloatArray  # (m, 2) frequencies of thump, knock
    decay: FloatArray  # (m, 3) decay times in s
    radius: float  # of the radiating surface, m
    recorded: Float32Array | None = None  # (m, n_samples) sound in place of thump, knock and scuff, of any loudness


@dataclass(frozen=True)
class Walks:
    """One walk per segment; animal is -1 and stride_period NaN where the person walks alone."""

    mid_position: FloatArray  # (n, 2) of the person in the middle of the segment, m
    velocity: FloatArray  # (n,) along the trail, m/s
    person: IntArray  # (n,)
    step_period: FloatArray  # (n,) s
    toe_lag: FloatArray  # (n,) s
    person_hertz: FloatArray  # (n, 2)
    person_gain: FloatArray  # (n, 3)
    animal: IntArray  # (n,)
    stride_period: FloatArray  # (n,) s
    animal_hertz: FloatArray  # (n, 2)
    animal_gain: FloatArray  # (n,)
    animal_lag: FloatArray  # (n,) meters behind the person

    def position(self, rows: IntArray, elapsed: FloatArray, lag: FloatArray | float = 0.0) -> FloatArray:
        """Return the (m, 2) position ``elapsed`` seconds after the middle of the segment, ``lag`` meters behind."""
        along = self.velocity[rows] * elapsed - np.sign(self.velocity[rows]) * lag
        return self.mid_position[rows] + np.column_stack([along, np.zeros(len(rows))])


def draw_walks(with_animal: NDArray[np.bool_], rng: np.random.Generator) -> Walks:
    """Draw the walk of each segment: one of N_PEOPLE, with one of N_ANIMALS where ``with_animal``."""
    n = len(with_animal)
    step, toe = rng.uniform(0.50, 0.69, N_PEOPLE), rng.uniform(0.12, 0.17, N_PEOPLE)
    shoe_hertz = np.column_stack([rng.uniform(30, 70, N_PEOPLE), rng.uniform(120, 320, N_PEOPLE)])
    scuff_gain = amplitude_from_db(rng.normal(0, 4, N_PEOPLE))
    stride = rng.uniform(1.0, 1.25, N_ANIMALS)
    hoof_hertz = np.column_stack([rng.uniform(40, 90, N_ANIMALS), rng.uniform(300, 700, N_ANIMALS)])
    hoof_level = rng.normal(0, 2, N_ANIMALS)

    person, animal = rng.integers(N_PEOPLE, size=n), rng.integers(N_ANIMALS, size=n)
    person_gain = np.column_stack([np.ones((n, 2)), scuff_gain[person]]) * amplitude_from_db(rng.normal(0, 2, (n, 1)))
    mid_position = np.column_stack([rng.uniform(-TRAIL_HALF_LENGTH, TRAIL_HALF_LENGTH, n), rng.normal(0, 0.5, n)])
    stride_period = stride[animal] * (1 + 0.03 * rng.standard_normal(n))
    return Walks(
        mid_position=mid_position,
        velocity=rng.choice([-1.0, 1.0], n) * rng.normal(1.3, 0.12, n),
        person=person,
        step_period=step[person] * (1 + 0.03 * rng.standard_normal(n)),
        toe_lag=toe[person],
        person_hertz=shoe_hertz[person],
        person_gain=person_gain,
        animal=np.where(with_animal, animal, -1),
        stride_period=np.where(with_animal, stride_period, np.nan),
        animal_hertz=hoof_hertz[animal],
        animal_gain=amplitude_from_db(hoof_level[animal] + rng.normal(0, 2, n)),  # 2 dB: variation of the ground
        animal_lag=rng.uniform(1.0, 2.5, n),
    )


def person_contacts(walks: Walks, seconds: float, rng: np.random.Generator) -> Iterator[Contacts]:
    """Yield the heel and toe contacts of each step, for all segments at once."""
    rows = np.arange(len(walks.person))
    first = -LEAD_IN - rng.uniform(0, 1, len(rows)) * walks.step_period
    for step in range(int(np.ceil((seconds + LEAD_IN) / MIN_STEP_PERIOD)) + 2):
        heel = first + walks.step_period * (step + 0.02 * rng.standard_normal(len(rows)))
        toe = heel + walks.toe_lag * (1 + 0.05 * rng.standard_normal(len(rows)))
        softness = rng.uniform(0.4, 0.7, (len(rows), 1))
        contacts = ((heel, HEEL_STRENGTH, HEEL_DECAY), (toe, TOE_STRENGTH * softness, TOE_DECAY))
        for times, strength, decay in contacts:
            position = walks.position(rows, times - seconds / 2)
            amplitude = strength * walks.person_gain
            yield _random_contacts(rows, times, position, amplitude, walks.person_hertz, decay, SOLE_RADIUS, rng)


def animal_contacts(walks: Walks, seconds: float, rng: np.random.Generator) -> Iterator[Contacts]:
    """Yield the hoof contacts, for all segments with an animal at once."""
    rows = np.flatnonzero(walks.animal >= 0)
    stride = walks.stride_period[rows]
    first = -LEAD_IN - rng.uniform(0, 1, len(rows)) * stride
    for beat in range(4 * (int(np.ceil((seconds + LEAD_IN) / MIN_STRIDE_PERIOD)) + 2)):
        times = first + stride * (beat / 4 + 0.025 * rng.standard_normal(len(rows)))
        position = walks.position(rows, times - seconds / 2, walks.animal_lag[rows])
        leg_factor = 1.0 if beat % 2 else 0.8
        strength = HOOF_STRENGTH * walks.animal_gain[rows, np.newaxis] * leg_factor
        hertz = walks.animal_hertz[rows]
        yield _random_contacts(rows, times, position, strength, hertz, HOOF_DECAY, HOOF_RADIUS, rng)


def with_recorded_steps(contacts: Iterator[Contacts], walks: Walks, sounds: Float32Array) -> Iterator[Contacts]:
    """Replace the sound of each person's heel by one of the recorded steps, and leave out the toe, which they contain."""
    for number, contact in enumerate(contacts):
        if number % 2 == 0:
            yield replace(contact, recorded=sounds[walks.person[contact.rows] % len(sounds)])


def with_recorded_hooves(contacts: Iterator[Contacts], walks: Walks, sounds: Float32Array) -> Iterator[Contacts]:
    """Replace the sound of each animal's hooves by one of the recorded ones."""
    for contact in contacts:
        yield replace(contact, recorded=sounds[walks.animal[contact.rows] % len(sounds)])


def amplitude_from_db(level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the amplitude factor of a level in dB."""
    return np.asarray(10.0 ** (level / 20.0))


def _random_contacts(
    rows: IntArray,
    seconds: FloatArray,
    position: FloatArray,
    strength: FloatArray,
    hertz: FloatArray,
    decay: FloatArray,
    radius: float,
    rng: np.random.Generator,
) -> Contacts:
    """Return contacts with random variation: 15 % in strength, 5 % in frequency, 10 % in decay time."""
    m = len(rows)
    return Contacts(
        rows=rows,
        seconds=seconds,
        position=position,
        strength=strength * np.exp(0.15 * rng.standard_normal((m, 1))),
        hertz=hertz * np.exp(0.05 * rng.standard_normal((m, 2))),
        decay=decay * np.exp(0.10 * rng.standard_normal((m, 3))),
        radius=radius,
    )
