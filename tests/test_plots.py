"""The timeline: one panel per sensor, strip and consensus; windows where they were recorded; mistakes."""

import numpy as np
import pytest

from cmvmed.recordings import Recordings, SensorSignals

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

from cmvmed.plots import _spans, plot_case, plot_timeline  # noqa: E402


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


def test_one_case(figures):
    figure = plot_case(windows(), 2, P, ["walk", "run"], by_sensor={"imu": P[::-1], "mic": np.full((4, 2), np.nan)})
    mic, mic_power, mic_alone, imu, imu_power, imu_alone, _, _, consensus = figure.axes
    np.testing.assert_array_equal(mic.lines[0].get_ydata(), windows()["mic"][2][0])
    assert mic.lines[0].get_xdata()[-1] == pytest.approx(1.99)
    assert len(imu.lines) == 3
    assert mic_power.images[0].get_extent() == [0.0, 2.0, 0.0, 50.0]
    assert imu_power.images[0].get_extent() == [0.0, 2.0, 0.0, 5.0]
    assert not mic_alone.patches  # it says nothing
    np.testing.assert_allclose([bar.get_width() for bar in imu_alone.patches], P[1])
    np.testing.assert_allclose([bar.get_width() for bar in consensus.patches], P[2])
    assert [text.get_text() for text in consensus.get_yticklabels()] == ["walk", "run"]


def test_the_strongest_frequency_is_the_brightest(figures):
    tone = np.sin(2 * np.pi * 20 * np.arange(400) / 100)
    cases = Recordings({"a": SensorSignals([tone[np.newaxis]], 100.0, ("x",))})
    image = plot_case(cases, 0, [[1.0]], ["x"]).axes[1].images[0]
    levels = np.asarray(image.get_array())
    frequencies = np.linspace(0, 50, len(levels))
    assert abs(frequencies[levels.mean(axis=1).argmax()] - 20) < 2


def test_a_case_that_lacks_a_sensor(figures):
    figure = plot_case(windows(), 1, P, ["walk", "run"], by_sensor={"imu": P})
    assert [text.get_text() for text in figure.axes[3].texts] == ["missing"]
    assert not figure.axes[3].lines
    with pytest.raises(ValueError, match="no case 4"):
        plot_case(windows(), 4, P, ["walk", "run"])
    with pytest.raises(ValueError, match="There is no sensor 'wall'"):
        plot_case(windows(), 0, P, ["walk", "run"], by_sensor={"wall": P})


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
