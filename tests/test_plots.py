"""The timeline: one panel per sensor, strip and consensus; windows where they were recorded; mistakes."""

import numpy as np
import pytest

from cmvmed.recordings import Recordings, SensorSignals

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

from cmvmed.plots import _spans, plot_timeline  # noqa: E402


def windows(step=2.0, groups=None):
    rng = np.random.default_rng(0)
    fast = [rng.normal(size=(1, 200)) for _ in range(4)]
    slow = [rng.normal(size=(3, 20)), None, rng.normal(size=(3, 20)), rng.normal(size=(3, 20))]
    sensors = {"mic": SensorSignals(fast, 100.0, ("p",)), "imu": SensorSignals(slow, 10.0, ("x", "y", "z"))}
    starts = step * np.arange(4)
    return Recordings(sensors, groups=groups, times=np.column_stack([starts, starts + 2.0]))


@pytest.fixture
def figures():
    yield
    pyplot.close("all")


P = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])


def test_panels_and_values(figures):
    figure = plot_timeline(
        windows(), P, ["walk", "run"], by_sensor={"imu": P}, truth=["walk", None, "run", "run"], spectrograms=["mic"]
    )
    mic, imu, alone, consensus, known = figure.axes
    assert len(mic.images) == 4
    assert len(imu.lines) == 9  # three windows of three channels: one window lacks the sensor
    assert imu.lines[3].get_xdata()[0] == 4.0
    assert len(alone.patches) == 4
    assert len(known.patches) == 3
    heights = np.array([bar.get_height() for bar in consensus.patches]).reshape(2, 4).T
    np.testing.assert_allclose(heights, P)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["walk", "run"]


def test_overlapping_windows_are_cut_where_the_next_begins():
    np.testing.assert_allclose(_spans(windows(step=0.5)), [[0, 0.5], [0.5, 1], [1, 1.5], [1.5, 3.5]])


@pytest.mark.parametrize(
    ("cases", "changes", "message"),
    [
        (Recordings({"a": SensorSignals([np.zeros((1, 5))] * 4, 1.0, ("x",))}), {}, "have no times"),
        (windows(groups=["a", "a", "b", "b"]), {}, "of several recordings"),
        (windows(), {"probabilities": P[:3]}, r"probabilities must be \(4, 2\)"),
        (windows(), {"by_sensor": {"wall": P}}, "There is no sensor 'wall'"),
        (windows(), {"spectrograms": ["wall"]}, "There is no sensor 'wall'"),
        (windows(), {"by_sensor": {"imu": P[:, :1]}}, r"by_sensor\['imu'\] must be \(4, 2\)"),
    ],
)
def test_mistakes(cases, changes, message):
    with pytest.raises(ValueError, match=message):
        plot_timeline(cases, **({"probabilities": P, "classes": ["walk", "run"]} | changes))
