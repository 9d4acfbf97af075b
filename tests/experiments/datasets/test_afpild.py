"""AFPILD, on small files in the layout that its authors describe."""

import numpy as np
import pytest
from scipy.io import wavfile

from cmvmed.features import MFCC, views_transformer
from experiments.datasets import DatasetError, DatasetNotFoundError, fetch_afpild
from experiments.datasets.afpild import read_wav

N_EVENTS, STEP = 14, 8000  # limits of the footsteps: every half second at 16 kHz


def write_session(folder, subject, session, *, rate=16000, limits=None, sound=None, header="sample_loc,loc_x,loc_y"):
    """Write a session whose channel c has the value (c + 1) / 10 + event / 1000."""
    place = folder / "AFPILD_v1" / f"S{subject:02d}"
    place.mkdir(parents=True, exist_ok=True)
    limits = np.arange(N_EVENTS) * STEP + 100 if limits is None else limits
    if sound is None:
        events = np.repeat(np.arange(N_EVENTS), STEP)[: N_EVENTS * STEP]
        wave = np.concatenate([np.zeros(100), events / 1000])
        sound = ((wave[:, None] + (np.arange(4) + 1) / 10) * 32768).astype(np.int16)
    wavfile.write(place / f"s{subject:02d}_{session}_footstep_audio.wav", rate, sound)
    lines = [f"{limit},{number}.5,{-number}" for number, limit in enumerate(limits)]
    (place / f"s{subject:02d}_{session}_footstep_annotation.csv").write_text("\n".join([header, *lines]))
    return place


@pytest.fixture
def folder(tmp_path):
    for subject in (1, 7):
        for session in (1, 2):
            write_session(tmp_path, subject, session)
    return tmp_path


def test_footsteps_are_cut_at_the_annotated_limits(folder):
    steps = fetch_afpild(subjects=(7, 1), sessions=(1, 2), seconds=0.4, data_home=folder)
    per_session = N_EVENTS - 8  # without the first five and the last three
    assert steps.data.shape == (4 * per_session, 4, 6400)
    assert steps.data.dtype == np.float32
    assert steps.target_names == ["S07", "S01"]
    np.testing.assert_array_equal(steps.target, np.repeat([0, 1], 2 * per_session))
    np.testing.assert_array_equal(steps.session[: 2 * per_session], np.repeat([1, 2], per_session))
    np.testing.assert_array_equal(steps.position[:per_session], [(e + 0.5, -e) for e in range(5, 5 + per_session)])
    expected = (np.arange(4) + 1) / 10 + 5 / 1000  # the first footstep is event 5
    np.testing.assert_allclose(steps.data[0].mean(axis=1), expected, atol=1e-4)
    np.testing.assert_array_equal(np.ptp(steps.data[0], axis=1), 0.0)  # no sample of another footstep
    assert "CC BY-NC-SA" in steps.DESCR


def test_short_footsteps_are_followed_by_zeros(folder):
    steps = fetch_afpild(subjects=[1], sessions=[1], seconds=0.64, data_home=folder)
    assert steps.data.shape[2] == 10240
    assert (steps.data[:, :, STEP:] == 0).all()
    assert (steps.data[:, :, :STEP] > 0).all()


def test_recordings_of_another_rate_are_resampled(tmp_path):
    t = np.arange(N_EVENTS * STEP * 3 // 2 + 300) / 24000
    tone = np.tile(np.sin(2 * np.pi * 500 * t)[:, None], (1, 4)).astype(np.float32)
    write_session(tmp_path, 1, 1, rate=24000, sound=tone)
    steps = fetch_afpild(subjects=[1], sessions=[1], seconds=0.5, data_home=tmp_path)
    spectrum = np.abs(np.fft.rfft(steps.data[0, 0]))
    assert np.fft.rfftfreq(8000, 1 / 16000)[spectrum.argmax()] == 500


@pytest.mark.parametrize(("dtype", "silence", "full"), [("u1", 128, 0), ("i2", 0, -(2**15)), ("i4", 0, -(2**31))])
def test_the_full_scale_of_integers_is_one(tmp_path, dtype, silence, full):
    wavfile.write(tmp_path / "a.wav", 16000, np.array([silence, full] * 50, dtype=dtype))
    sound = read_wav((tmp_path / "a.wav").read_bytes(), 16000, name="a.wav")
    np.testing.assert_array_equal(sound, [[0.0, -1.0] * 50])


@pytest.mark.slow
def test_microphones_are_views(tmp_path):
    noise = np.random.default_rng(0).normal(0, 0.1, (N_EVENTS * STEP + 100, 4)).astype(np.float32)
    write_session(tmp_path, 1, 1, sound=noise)
    steps = fetch_afpild(subjects=[1], sessions=[1], data_home=tmp_path)
    sensors = {name: (MFCC(steps.sampling_rate), channel) for name, channel in steps.views.items()}
    features = views_transformer(sensors, output="default").fit_transform(steps.data)
    assert features.shape == (len(steps.data), 4 * 200)


def test_missing_files_are_named(folder):
    with pytest.raises(
        DatasetNotFoundError, match=r"s02_1_footstep_annotation\.csv was not found.*Cratial/AFPILD-CRNN"
    ):
        fetch_afpild(sessions=[1], data_home=folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sound": np.zeros((N_EVENTS * STEP, 2), np.int16)}, "2 channels, expected 4"),
        ({"sound": np.zeros((1000, 4), np.int16)}, "after the end of"),
        ({"limits": np.zeros(N_EVENTS, int)}, "not increasing"),
        ({"limits": np.arange(3)}, "3 footsteps, too few"),
        ({"header": "sample,loc_x,loc_y"}, "columns sample_loc, loc_x, loc_y"),
    ],
)
def test_other_content_is_named(tmp_path, options, message):
    write_session(tmp_path, 1, 1, **options)
    with pytest.raises(DatasetError, match=message):
        fetch_afpild(subjects=[1], sessions=[1], data_home=tmp_path)


def test_damaged_sound_is_named(tmp_path):
    place = write_session(tmp_path, 1, 1)
    (place / "s01_1_footstep_audio.wav").write_bytes(b"RIFF no sound")
    with pytest.raises(DatasetError, match="not a complete wav file"):
        fetch_afpild(subjects=[1], sessions=[1], data_home=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subjects": [0]}, "subjects must be different numbers from 1 to 40"),
        ({"subjects": []}, "subjects must be"),
        ({"sessions": [1, 1]}, "sessions must be different numbers from 1 to 4"),
        ({"seconds": 0}, "seconds must be"),
    ],
)
def test_invalid_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fetch_afpild(**options)
