"""Displays of members, views and recordings, beside those of scikit-learn."""

import numpy as np
import pytest
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import LearningCurveDisplay
from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.datasets import load_breast_cancer_views, load_digits_views, make_body_motion
from cmvmed.features import SensorFeatures
from cmvmed.model_selection import SemiSupervisedKFold, hide_labels, labeled_scorer
from cmvmed.recordings import Recordings, SensorSignals

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

from cmvmed.plots import MembersDisplay, RowDisplay, TimelineDisplay, ViewsDisplay  # noqa: E402
from cmvmed.plots.recording_displays import _spans  # noqa: E402


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


def row_figure(recordings, row, *arguments, **parameters):
    return RowDisplay.from_predictions(recordings, *arguments, row=row, **parameters).figure_


P = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])


def test_panels_and_values(figures):
    display = TimelineDisplay.from_predictions(
        windows(), P, ["walk", "run"], by_sensor={"imu": P}, y_true=["walk", None, "run", "run"], spectrograms=["mic"]
    )
    figure = display.figure_
    mic, imu, alone, consensus, known = display.axes_
    assert len(mic.images) == 4
    assert len(imu.lines) == 9  # three windows of three channels: one window lacks the sensor
    assert imu.lines[3].get_xdata()[0] == 4.0
    assert len(alone.patches) == 4
    assert len(known.patches) == 3
    heights = np.array([bar.get_height() for bar in consensus.patches]).reshape(2, 4).T
    np.testing.assert_allclose(heights, P)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["walk", "run"]


def test_one_row(figures):
    figure = row_figure(windows(), 2, P, ["walk", "run"], by_sensor={"imu": P[::-1], "mic": np.full((4, 2), np.nan)})
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
    recordings = Recordings({"a": SensorSignals([tone[np.newaxis]], 100.0, ("x",))})
    image = row_figure(recordings, 0, [[1.0]], ["x"]).axes[1].images[0]
    levels = np.asarray(image.get_array())
    frequencies = np.linspace(0, 50, len(levels))
    assert abs(frequencies[levels.mean(axis=1).argmax()] - 20) < 2


def test_a_row_that_lacks_a_sensor(figures):
    figure = row_figure(windows(), 1, P, ["walk", "run"], by_sensor={"imu": P})
    assert [text.get_text() for text in figure.axes[3].texts] == ["missing"]
    assert not figure.axes[3].lines
    with pytest.raises(ValueError, match="no row 4"):
        row_figure(windows(), 4, P, ["walk", "run"])
    with pytest.raises(ValueError, match="There is no sensor 'wall'"):
        row_figure(windows(), 0, P, ["walk", "run"], by_sensor={"wall": P})


def test_overlapping_windows_are_cut_where_the_next_begins():
    np.testing.assert_allclose(_spans(windows(step=0.5)), [[0, 0.5], [0.5, 1], [1, 1.5], [1.5, 3.5]])


@pytest.mark.parametrize(
    ("recordings", "changes", "message"),
    [
        (Recordings({"a": SensorSignals([np.zeros((1, 5))] * 4, 1.0, ("x",))}), {}, "have no times"),
        (windows(groups=["a", "a", "b", "b"]), {}, "of several recordings"),
        (windows(), {"probabilities": P[:3]}, r"probabilities must be \(4, 2\)"),
        (windows(), {"by_sensor": {"wall": P}}, "There is no sensor 'wall'"),
        (windows(), {"spectrograms": ["wall"]}, "There is no sensor 'wall'"),
        (windows(), {"by_sensor": {"imu": P[:, :1]}}, r"by_sensor\['imu'\] must be \(4, 2\)"),
    ],
)
def test_mistakes(recordings, changes, message):
    with pytest.raises(ValueError, match=message):
        TimelineDisplay.from_predictions(recordings, **({"probabilities": P, "classes": ["walk", "run"]} | changes))


@pytest.fixture(scope="module")
def fitted():
    data = load_digits_views()
    X, y = data.data[:300], hide_labels(data.target[:300], 60, random_state=0)
    return CMVMED(views=data.views, n_stages=2).fit(X, y), X, data.target[:300]


def test_members_are_bars_of_their_weights(fitted, figures):
    model = fitted[0]
    ax = MembersDisplay.from_estimator(model).ax_
    shown = {label.get_text(): bar.get_width() for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)}
    assert shown == dict(zip(model.members_["name"], model.members_["weight"], strict=True))
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    best = int(np.argmax(model.members_["weight"]))
    assert ax.texts[0].get_text() == f"{model.members_['accuracy'][best]:.0%} right"


def test_views_have_the_accuracies_of_the_estimator(fitted, figures):
    model, X, truth = fitted
    gone = X.copy()
    gone[:50, model.views["upper"]] = np.nan
    _, ax = pyplot.subplots()
    display = ViewsDisplay.from_estimator(model, gone, truth, ax=ax)
    assert display.ax_ is ax
    assert display.n_rows == {"upper": 250, "lower": 300, "all views": 300}
    assert display.accuracies["all views"][0] == model.score(gone, truth)
    alone = model.predict_proba_by_view(X, calibrated=True)["upper"].argmax(axis=1)
    share, low, high = display.accuracies["upper"]
    assert share == np.mean(model.classes_[alone[50:]] == truth[50:])
    for bound in (low, high):  # the shares that are just compatible with what was seen
        assert abs(share - bound) == pytest.approx(1.6448536 * np.sqrt(bound * (1 - bound) / 250))


def test_views_of_a_pipeline_and_of_text_classes(figures):
    motion = make_body_motion(8, random_state=0)
    y = np.array(motion.target_names)[motion.target]
    features = SensorFeatures("statistics", sampling_rate=motion.sampling_rates)
    model = make_pipeline(features, CMVMED(n_stages=2)).fit(motion.signals, y)
    display = ViewsDisplay.from_estimator(model, motion.signals, y)
    assert list(display.accuracies) == [*motion.signals, "all views"]
    assert display.accuracies["all views"][0] == np.mean(model.predict(motion.signals) == y)
    assert MembersDisplay.from_estimator(model).names == model[-1].members_["name"]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the row without a view
def test_displays_of_recordings_ask_the_estimator(figures):
    """A sensor that a window lacks says nothing there."""
    rng = np.random.default_rng(0)
    recordings = Recordings(
        {"a": SensorSignals([rng.normal(k % 2, 1, size=(1, 50)) if k else None for k in range(40)], 10.0, ("x",))},
        times=np.column_stack([5.0 * np.arange(40), 5.0 * np.arange(40) + 5.0]),
    )
    model = make_pipeline(SensorFeatures("statistics"), CMVMED(n_stages=2))
    model.fit(recordings, np.array(["even", "odd"])[np.arange(40) % 2])
    timeline = TimelineDisplay.from_estimator(model, recordings)
    row = RowDisplay.from_estimator(model, recordings, row=3)
    np.testing.assert_array_equal(timeline.probabilities, model.predict_proba(recordings))
    assert np.isnan(timeline.by_sensor["a"][0]).all()
    assert not np.isnan(timeline.by_sensor["a"][1:]).any()
    np.testing.assert_allclose([bar.get_width() for bar in row.axes_[0, 2].patches], row.by_sensor["a"][3])


def test_predictions_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="'mic' has 1 predictions, but y_true 2"):
        ViewsDisplay.from_predictions([0, 1], [0, 1], {"mic": [0]})


@pytest.mark.parametrize("as_dict", [False, True])
def test_displays_of_scikit_learn_work(as_dict, figures):
    """Which is why there are none of these here."""
    data = load_breast_cancer_views()
    X, truth = data.data[:200], data.target[:200]
    y = hide_labels(truth, 40, random_state=0)
    given = {name: X[:, columns] for name, columns in data.views.items()} if as_dict else X
    model = CMVMED(views=None if as_dict else data.views, n_stages=2).fit(given, y)
    confusion = ConfusionMatrixDisplay.from_estimator(model, given, truth).confusion_matrix
    assert np.trace(confusion) == np.sum(model.predict(given) == truth)
    assert CalibrationDisplay.from_estimator(model, given, truth, n_bins=3).prob_true.size <= 3


def test_the_learning_curve_of_scikit_learn_works(figures):
    data = load_breast_cancer_views()
    y = hide_labels(data.target[:200], 40, random_state=0)
    model = CMVMED(views=data.views, n_stages=2)
    scores = {
        "scoring": labeled_scorer("accuracy"),
        "score_name": "accuracy",
        "cv": SemiSupervisedKFold(2),
        "train_sizes": [0.5, 1.0],
    }
    curve = LearningCurveDisplay.from_estimator(model, data.data[:200], y, shuffle=True, random_state=0, **scores)
    assert curve.test_scores.shape == (2, 2)
    assert curve.test_scores.min() > 0.5
