import hashlib

import numpy as np
import pytest
from scipy.signal import correlate, welch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cmvmed.datasets.footsteps import SENSOR_POSITIONS, SNR_DB, make_footsteps
from cmvmed.datasets.gait import Contacts, animal_contacts, draw_walks, person_contacts
from cmvmed.datasets.sound_field import (
    ABSORPTION_DB_PER_METER,
    SPEED_OF_SOUND,
    add_noise,
    propagate,
    radiation_gain,
)
from cmvmed.features import MFCC

RATE = 4000


def digest(steps):
    return hashlib.sha256(steps.data.tobytes() + steps.target.tobytes() + steps.distance.tobytes()).hexdigest()


def noise_only(wind_share, coherence, *, n_segments=60, positions=SENSOR_POSITIONS, seconds=1.5):
    places = np.array(positions)
    sound = np.zeros((n_segments, len(places), round(seconds * RATE)), dtype=np.float32)
    add_noise(
        sound,
        np.ones(len(places)),
        places,
        RATE,
        wind_share=wind_share,
        background_coherence=coherence,
        rng=np.random.default_rng(0),
    )
    return sound


def one_contact(position, strength):
    return Contacts(
        rows=np.array([0]),
        seconds=np.array([0.2]),
        position=np.array([position]),
        strength=np.array([strength]),
        hertz=np.array([[50.0, 300.0]]),
        decay=np.array([[0.025, 0.01, 0.01]]),
        radius=0.09,
    )


# ---- the set as a whole


def test_default_set_has_the_size_of_the_paper():
    steps = make_footsteps(random_state=0)
    assert steps.data.shape == (1500, 4, 6000)
    assert steps.data.dtype == np.float32
    np.testing.assert_array_equal(np.bincount(steps.target), [840, 660])
    assert steps.views == {"sensor1": 0, "sensor2": 1, "sensor3": 2, "sensor4": 3}
    assert np.isfinite(steps.data).all()
    np.testing.assert_array_equal(steps.snr_db, SNR_DB)


def test_the_noise_has_the_given_signal_to_noise_ratio():
    given = np.array([4.0, 0.0, -4.0, -8.0])
    quiet = make_footsteps(150, 150, snr_db=np.inf, wind_share=0.0, random_state=0)
    loud = make_footsteps(150, 150, snr_db=given, wind_share=0.0, random_state=0)
    signal = (quiet.data.astype(float) ** 2).mean(axis=(0, 2))
    noise = ((loud.data - quiet.data).astype(float) ** 2).mean(axis=(0, 2))
    np.testing.assert_allclose(10 * np.log10(signal / noise), given, atol=0.1)


def test_seed_reproduces_bytes():
    first, again = make_footsteps(30, 20, random_state=3), make_footsteps(30, 20, random_state=3)
    assert digest(first) == digest(again)
    assert digest(first) != digest(make_footsteps(30, 20, random_state=4))


def test_walks_do_not_depend_on_the_noise():
    quiet = make_footsteps(40, 30, snr_db=np.inf, random_state=1)
    loud = make_footsteps(40, 30, snr_db=(3, 0, -3, -6), random_state=1)
    np.testing.assert_array_equal(quiet.step_period, loud.step_period)
    noise = (loud.data - quiet.data).astype(float)
    expected = 10 * np.log10((quiet.data.astype(float) ** 2).mean(axis=2) / (noise**2).mean(axis=2))
    np.testing.assert_allclose(loud.segment_snr_db, expected, atol=0.01)
    assert np.isposinf(quiet.segment_snr_db).all()


def test_simulated_parameters_agree_with_the_target():
    steps = make_footsteps(40, 30, random_state=1)
    np.testing.assert_array_equal(steps.animal >= 0, steps.target == 1)
    np.testing.assert_array_equal(np.isnan(steps.stride_period), steps.target == 0)
    expected = np.hypot(*(steps.position[:, np.newaxis] - np.array(SENSOR_POSITIONS)).transpose(2, 0, 1))
    np.testing.assert_allclose(steps.distance, expected, rtol=1e-12)


def test_sensors_are_complementary():
    """A walker near one sensor is far from the other, and gusts are local: their noise is nearly uncorrelated."""
    steps = make_footsteps(300, 300, random_state=0)
    assert np.corrcoef(steps.segment_snr_db[:, :2].T)[0, 1] < 0.2
    spread = steps.segment_snr_db[:, :2].std(axis=0)
    assert (spread > 4).all()


def test_other_sensors_rates_and_one_class():
    steps = make_footsteps(3, 0, sampling_rate=8000, seconds=0.5, sensor_positions=[(0, 2)], snr_db=5, random_state=0)
    assert steps.data.shape == (3, 1, 4000)
    assert make_footsteps(0, 2, sensor_positions=[(0, 2)] * 6, random_state=0).data.shape == (2, 6, 6000)


# ---- gait


def test_people_step_at_their_period_and_the_toe_follows_the_heel():
    walks = draw_walks(np.zeros(200, dtype=bool), np.random.default_rng(0))
    contacts = list(person_contacts(walks, 10.0, np.random.default_rng(1)))
    heels = np.stack([c.seconds for c in contacts[::2]])
    toes = np.stack([c.seconds for c in contacts[1::2]])
    np.testing.assert_allclose(np.diff(heels, axis=0).mean(axis=0), walks.step_period, rtol=0.01)
    assert ((walks.step_period > 0.42) & (walks.step_period < 0.8)).all()
    np.testing.assert_allclose((toes - heels).mean(axis=0), walks.toe_lag, rtol=0.05)
    assert (heels.min(axis=0) < 0).all()  # the segment begins within a step
    assert (heels.max(axis=0) > 10.0).all()  # and steps go on to its end


def test_animals_have_four_contacts_per_stride_behind_the_person():
    with_animal = np.arange(200) % 2 == 1
    walks = draw_walks(with_animal, np.random.default_rng(0))
    contacts = list(animal_contacts(walks, 10.0, np.random.default_rng(1)))
    np.testing.assert_array_equal(contacts[0].rows, np.flatnonzero(with_animal))
    beats = np.stack([c.seconds for c in contacts])
    np.testing.assert_allclose(np.diff(beats, axis=0).mean(axis=0) * 4, walks.stride_period[with_animal], rtol=0.01)
    assert (beats.max(axis=0) > 10.0).all()
    middle = contacts[20]
    ahead = walks.position(middle.rows, middle.seconds - 5.0)[:, 0] - middle.position[:, 0]
    lag = ahead * np.sign(walks.velocity[with_animal])
    assert ((lag >= 1.0 - 1e-9) & (lag <= 2.5 + 1e-9)).all()


def test_the_sound_has_the_period_of_the_steps():
    steps = make_footsteps(40, 0, seconds=6.0, snr_db=np.inf, sensor_positions=[(0, 3)], random_state=0)
    frames = (steps.data[:, 0].astype(float) ** 2).reshape(40, 600, 40).mean(axis=2)  # 10 ms
    level = np.sqrt(frames)
    level -= level.mean(axis=1, keepdims=True)
    rhythm = np.array([correlate(x, x)[599:] for x in level])
    lags = np.arange(600) * 0.01
    searched = (lags > 0.4) & (lags < 0.85)
    found = lags[searched][rhythm[:, searched].argmax(axis=1)]
    assert np.mean(np.abs(found - steps.step_period) < 0.04) > 0.9


# ---- propagation


def test_delay_spreading_and_absorption_of_one_impact():
    near, far = 4.0, 17.0
    positions = np.array([(near, 0.0), (-far, 0.0)])
    for part in range(3):
        contact = one_contact((0.0, 0.0), np.eye(3)[part])
        sound = propagate([contact], (1, 2, RATE), positions, RATE, np.random.default_rng(0))[0]
        shift = round((0.2 + far / SPEED_OF_SOUND) * RATE) - round((0.2 + near / SPEED_OF_SOUND) * RATE)
        ratio = near / far * 10 ** (-ABSORPTION_DB_PER_METER[part] * (far - near) / 20)
        np.testing.assert_allclose(sound[1, shift:], ratio * sound[0, : RATE - shift], atol=1e-4 * sound[0].max())
        onset = round((0.2 + near / SPEED_OF_SOUND) * RATE)
        assert np.abs(sound[0, :onset]).max() == 0
        assert np.abs(sound[0, onset : onset + 20]).max() > 0


def test_the_knock_is_radiated_as_by_a_pulsating_sphere():
    """The pressure of a pulsating sphere: rho c u (a / r) |ika / (1 + ika)|, here without rho c a."""
    contact = one_contact((0.0, 0.0), np.array([0.0, 1.0, 0.0]))
    sound = propagate([contact], (1, 1, RATE), np.array([(3.0, 0.0)]), RATE, np.random.default_rng(0))[0, 0]
    t = np.arange(round(0.12 * RATE)) / RATE
    ika = 1j * 2 * np.pi * 300 / SPEED_OF_SOUND * 0.09
    wave = abs(ika / (1 + ika)) * np.sin(2 * np.pi * 300 * t) * np.exp(-t / 0.01)
    onset = round((0.2 + 3.0 / SPEED_OF_SOUND) * RATE)
    expected = wave * 10 ** (-ABSORPTION_DB_PER_METER[1] * 2.0 / 20) / 3.0
    np.testing.assert_allclose(sound[onset : onset + len(t)], expected, atol=1e-5)


def test_radiation_rises_by_6_db_per_octave_and_levels_off():
    gain = radiation_gain(np.array([20.0, 40.0, 20_000.0, 40_000.0]), 0.09)
    np.testing.assert_allclose(gain[1] / gain[0], 2.0, rtol=0.01)
    np.testing.assert_allclose(gain[2:], 1.0, rtol=0.01)


# ---- spectrum


def band_power(steps, low, high):
    frequencies, power = welch(
        steps.data[:, 0].astype(float), fs=steps.sampling_rate, nperseg=steps.sampling_rate // 4, axis=-1
    )
    return power[:, (frequencies >= low) & (frequencies < high)].sum(axis=1).mean()


def test_the_air_carries_little_of_the_seismic_band():
    """Ekimov and Sabatier (2006): the ground vibrates mostly at 20 to 90 Hz; friction causes the sound above 500 Hz."""
    for options in ({"n_human": 60, "n_animal": 0}, {"n_human": 0, "n_animal": 60}):
        steps = make_footsteps(**options, snr_db=np.inf, sensor_positions=[(0, 3)], random_state=0)
        total = band_power(steps, 0, 2001)
        assert band_power(steps, 20, 90) < 0.15 * total
        assert 0.3 < band_power(steps, 500, 2001) / total < 0.8


def test_the_power_in_a_band_does_not_depend_on_the_sampling_rate():
    walks = {"n_human": 150, "n_animal": 0, "snr_db": np.inf, "sensor_positions": [(0, 3)], "random_state": 0}
    slow, fast = make_footsteps(**walks, sampling_rate=4000), make_footsteps(**walks, sampling_rate=16000)
    for low, high in ((20, 90), (90, 500), (700, 1800)):
        np.testing.assert_allclose(band_power(fast, low, high), band_power(slow, low, high), rtol=0.1)
    assert band_power(fast, 4000, 7900) > band_power(fast, 500, 1900)  # friction reaches to the highest frequency


def test_sounds_across_the_edges_of_the_segment_are_kept():
    contact = one_contact((0.0, 0.0), np.array([1.0, 0.0, 0.0]))
    whole = propagate([contact], (1, 1, RATE), np.array([(3.0, 0.0)]), RATE, np.random.default_rng(0))[0, 0]
    start = round((0.2 + 3.0 / SPEED_OF_SOUND) * RATE)
    ends_inside = propagate([contact], (1, 1, start + 100), np.array([(3.0, 0.0)]), RATE, np.random.default_rng(0))
    np.testing.assert_array_equal(ends_inside[0, 0], whole[: start + 100])
    assert np.abs(ends_inside[0, 0, start:]).max() > 0


# ---- noise


def spectral_slope(noise):
    frequencies, power = welch(noise.astype(float), fs=RATE, nperseg=1024, axis=-1)
    inside = (frequencies > 50) & (frequencies < 1800)
    mean_power = power.reshape(-1, len(frequencies)).mean(axis=0)
    return np.polyfit(np.log(frequencies[inside]), np.log(mean_power[inside]), 1)[0]


def test_spectra_of_wind_and_background():
    wind, background = spectral_slope(noise_only(1.0, 0.0)), spectral_slope(noise_only(0.0, 0.0))
    np.testing.assert_allclose(wind, -5 / 3, atol=0.06)
    np.testing.assert_allclose(background, -1.0, atol=0.06)


@pytest.mark.parametrize(("wind_share", "tolerance"), [(0.0, 0.03), (0.5, 0.15)])
def test_noise_has_the_given_power(wind_share, tolerance):
    noise = noise_only(wind_share, 0.5, n_segments=600).astype(float)
    np.testing.assert_allclose((noise**2).mean(axis=(0, 2)), 1.0, atol=tolerance)


@pytest.mark.parametrize("coherence", [0.0, 0.5, 1.0])
def test_background_has_the_given_coherence(coherence):
    same_place = noise_only(0.0, coherence, positions=[(1.0, 1.0), (1.0, 1.0)]).astype(float)
    correlation = np.mean(same_place[:, 0] * same_place[:, 1]) / np.mean(same_place**2)
    np.testing.assert_allclose(correlation, coherence, atol=0.02)


def test_the_common_background_travels_at_the_speed_of_sound():
    distance = 20.0
    noise = noise_only(0.0, 1.0, positions=[(0.0, 0.0), (distance, 0.0)]).astype(float)
    lags = np.array([correlate(b, a, method="fft").argmax() - (len(a) - 1) for a, b in noise])
    longest = distance / SPEED_OF_SOUND * RATE
    assert np.abs(lags).max() <= longest + 1
    assert np.abs(lags).max() > 0.9 * longest
    # directions are uniform: the lag is longest * cos(angle), of variance longest^2 / 2
    np.testing.assert_allclose(np.mean(lags**2), longest**2 / 2, rtol=0.3)


def test_wind_is_local_and_gusty():
    wind = noise_only(1.0, 0.5, positions=[(1.0, 1.0), (1.0, 1.0)], n_segments=300).astype(float)
    assert abs(np.mean(wind[:, 0] * wind[:, 1])) < 0.02
    level = 10 * np.log10((wind**2).mean(axis=2))
    np.testing.assert_allclose(level.std(axis=0), np.hypot(3, 6), rtol=0.15)
    np.testing.assert_allclose(np.corrcoef(level.T)[0, 1], 9 / 45, atol=0.15)


# ---- recorded impacts


def test_recorded_steps_replace_heel_and_toe_at_the_loudness_of_the_heel():
    clicks = np.zeros((2, 3000))
    clicks[0, 0], clicks[1, [0, 1000]] = 5.0, 1.0  # longer than a simulated impact
    options = {"n_human": 6, "n_animal": 0, "snr_db": np.inf, "sensor_positions": [(0, 3)], "random_state": 0}
    steps = make_footsteps(**options, sources={"human": clicks})
    simulated = make_footsteps(**options)
    np.testing.assert_array_equal(steps.step_period, simulated.step_period)
    for row in range(6):
        hits = np.flatnonzero(steps.data[row, 0]) / RATE
        assert 2 <= hits.size <= 8
        if steps.person[row] % 2 == 0:  # one click per step
            np.testing.assert_allclose(np.diff(hits), steps.step_period[row], rtol=0.15)
    ratio = (steps.data**2).sum() / (simulated.data**2).sum()  # the heel has most, not all of the energy of a step
    assert 0.3 < ratio < 1.2


def test_recorded_hooves_leave_the_people_as_they_are():
    options = {"n_human": 5, "n_animal": 5, "snr_db": np.inf, "random_state": 0}
    mixed = make_footsteps(**options, sources={"animal": np.ones((1, 4))})
    simulated = make_footsteps(**options)
    human = simulated.target == 0
    np.testing.assert_array_equal(mixed.data[human], simulated.data[human])
    assert not np.array_equal(mixed.data[~human], simulated.data[~human])


# ---- difficulty, errors, pictures


@pytest.mark.slow
def test_one_sensor_with_50_labels_is_as_difficult_as_in_the_paper():
    """Paper, table 1: MED on sensor 1 71.1 +- 5.3 %, on sensor 2 62.3 +- 10.2 %. Here: an SVM, mean over three sets."""
    accuracy = np.zeros((3, 2, 20))
    for seed in range(3):
        steps = make_footsteps(random_state=seed)
        for sensor in range(2):
            features = MFCC(RATE).fit_transform(steps.data[:, sensor])
            for split in range(20):
                rng = np.random.default_rng(split)
                by_class = [rng.permutation(np.flatnonzero(steps.target == k)) for k in (0, 1)]
                labeled = np.concatenate([rows[:25] for rows in by_class])
                test = np.concatenate([rows[600:] for rows in by_class])
                model = make_pipeline(StandardScaler(), SVC()).fit(features[labeled], steps.target[labeled])
                accuracy[seed, sensor, split] = model.score(features[test], steps.target[test])
    first, second = accuracy.mean(axis=(0, 2))
    assert 0.66 < first < 0.75
    assert 0.58 < second < 0.70
    assert first > second


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_human": 0, "n_animal": 0}, "not both zero"),
        ({"n_human": -1}, "not be negative"),
        ({"sampling_rate": 1000}, "at least 2000 Hz"),
        ({"seconds": 0.0}, "at least 0.1"),
        ({"snr_db": (1, 2)}, r"one per sensor \(4\)"),
        ({"snr_db": np.nan}, "snr_db must be"),
        ({"sensor_positions": [1, 2]}, r"\(x, y\) pairs"),
        ({"sensor_positions": []}, r"\(x, y\) pairs"),
        ({"wind_share": 1.1}, r"wind_share must be in \[0, 1\]"),
        ({"background_coherence": -0.1}, "background_coherence must be"),
        ({"sources": {"dog": np.ones((1, 9))}}, r"keys 'human' and 'animal' only, got \['dog'\]"),
        ({"sources": {"human": np.ones(9)}}, r"sources\['human'\] must be an array \(n_sounds, n_samples\)"),
        ({"sources": {"human": np.zeros((1, 9))}}, "no sound all zero"),
    ],
)
def test_invalid_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_footsteps(**{"n_human": 2, "n_animal": 2, **options})
