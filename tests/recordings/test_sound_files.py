import numpy as np
import pytest
import soundfile

from cmvmed.features import read_audio

RATE = 8000


@pytest.fixture
def sound():
    return 0.3 * np.random.default_rng(0).normal(size=(2, RATE)).clip(-3, 3).astype(np.float32)


@pytest.mark.parametrize(("name", "tolerance"), [("a.wav", 1e-4), ("a.flac", 1e-4), ("a.aiff", 1e-4)])
def test_channels_come_first(tmp_path, sound, name, tolerance):
    soundfile.write(tmp_path / name, sound.T, RATE)
    samples, rate = read_audio(tmp_path / name)
    assert samples.dtype == np.float32
    assert rate == RATE
    np.testing.assert_allclose(samples, sound, atol=tolerance)


def test_resampling_keeps_the_tone(tmp_path):
    tone = 0.5 * np.sin(2 * np.pi * 500 * np.arange(RATE) / RATE)
    soundfile.write(tmp_path / "tone.wav", tone, RATE)
    samples, rate = read_audio(str(tmp_path / "tone.wav"), sampling_rate=4000)
    assert rate == 4000
    assert samples.shape == (1, 4000)
    assert np.abs(np.fft.rfft(samples[0])).argmax() == 500


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg"])
def test_truncated_files_are_refused(tmp_path, sound, name):
    path = tmp_path / name
    soundfile.write(path, sound.T, RATE)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=rf"{name}' is (empty or truncated|damaged|not a readable)"):
        read_audio(path)


def test_a_streamed_wav_of_unknown_length_is_read(tmp_path, sound):
    path = tmp_path / "streamed.wav"
    soundfile.write(path, sound.T, RATE)
    content = bytearray(path.read_bytes())
    content[4:8] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    assert read_audio(path)[0].shape == (2, RATE)


def test_no_file_no_sound_and_no_samples(tmp_path):
    with pytest.raises(FileNotFoundError, match="No sound file at"):
        read_audio(tmp_path / "absent.wav")
    (tmp_path / "text.wav").write_text("hello")
    with pytest.raises(ValueError, match=r"text.wav' is not a readable"):
        read_audio(tmp_path / "text.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), RATE)
    with pytest.raises(ValueError, match=r"empty.wav' is empty or truncated"):
        read_audio(tmp_path / "empty.wav")


def test_a_file_above_the_size_limit_is_refused_before_reading(tmp_path, sound, monkeypatch):
    soundfile.write(tmp_path / "long.wav", sound.T, RATE)
    monkeypatch.setattr("cmvmed.recordings.sound_files.MAX_FILE_SAMPLES", 2 * RATE - 1)
    with pytest.raises(ValueError, match=r"long.wav' has 8000 samples in 2 channels"):
        read_audio(tmp_path / "long.wav")
