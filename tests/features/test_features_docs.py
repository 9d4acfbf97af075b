"""The examples in docs/features.md run and give the stated results."""

import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from cmvmed import features

DOCS = Path(__file__).parents[2] / "docs"


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), flags=re.DOTALL)


def run(block):
    names = {}
    exec(compile(block, "docs", "exec"), names)
    return names


@pytest.fixture
def sound_files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in ("gate_1", "gate_2", "road_1", "road_2", "road_3"):
        soundfile.write(tmp_path / f"{name}.wav", 0.1 * rng.normal(size=6000), 4000)
    both = 0.02 * rng.normal(size=(40000, 2))
    both[20000:20400] *= 8
    soundfile.write(tmp_path / "both_sensors.wav", both, 4000)
    monkeypatch.chdir(tmp_path)


def test_from_two_microphones_to_predictions():
    names = run(blocks("features.md")[0])
    predicted = names["model"].predict(names["steps"].data[50:])
    assert np.mean(predicted == names["steps"].target[50:]) > 0.6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:aeon is not installed")
def test_from_several_sensors_to_predictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(blocks("features.md")[1])
    model, motion = names["model"], names["motion"]
    assert np.mean(model.predict(motion.signals)[60:] == motion.target[60:]) > 0.35
    assert (tmp_path / "features").is_dir()
    assert set(model[0].choices_) == {"sensor", "kind", "held_out_r2", "agreement", "score", "chosen"}


def test_from_files_to_views(sound_files):
    X = run(blocks("features.md")[2])["X"]
    assert X.shape == (3, 400)
    np.testing.assert_array_equal(np.flatnonzero(X.isna().any(axis=0)), np.arange(200))


def test_from_a_recording_to_segments(sound_files):
    names = run(blocks("features.md")[3])
    assert names["segments"].shape == (12, 2, 6000)
    assert names["events"].shape == (1, 2, 4000)
    np.testing.assert_allclose(names["times"], 5.0 - 0.25, atol=0.1)


@pytest.mark.parametrize("name", [n for n in features.__all__ if n not in ("Segments", "ViewsTransformer")])
def test_every_public_name_is_documented(name):
    assert f"{name}" in (DOCS / "features.md").read_text(encoding="utf-8")
