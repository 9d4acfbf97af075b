"""Recordings as X of scikit-learn: rows, columns, splits, pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.features import MFCC, WindowFeatures, views_transformer
from cmvmed.recordings import Recordings, SensorSignals, from_array, from_sensors, resample


def noise(n=40, seed=0):
    """Cases whose power differs by class, with unequal lengths and a sensor that is missing in three of them."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(n) % 2
    signals = {
        name: [(1 + y[i]) * rng.normal(size=(2, rng.integers(80, 120))) for i in range(n)] for name in ("left", "right")
    }
    signals["right"][3:6] = [None] * 3
    return from_sensors(signals, 100.0, labels=np.array(["quiet", "loud"])[y], groups=[i % 5 for i in range(n)])


def test_rows_and_columns():
    cases = noise(10)
    assert cases.shape == (10, 2)
    assert cases.columns == ["left", "right"]
    part = cases[np.array([5, 1])]
    assert part.ids.tolist() == ["5", "1"]
    assert part["right"].present.tolist() == [False, True]
    np.testing.assert_array_equal(part["left"][1], cases["left"][1])
    assert cases[-2:].ids.tolist() == ["8", "9"]
    assert cases[cases.labels == "loud"].n == 5
    assert cases[["right"]].columns == ["right"]
    assert cases[[]].n == 0
    assert "10 rows, 10 labeled; sensors left (2 x 100 Hz)" in repr(cases)


def test_splits_pipelines_and_cross_validation():
    cases = noise()
    to_views = views_transformer({name: (WindowFeatures(100.0), name) for name in cases.columns})
    model = make_pipeline(to_views, CMVMED(views=to_views.views))
    train, test, y_train, y_test = train_test_split(cases, cases.labels.astype(str), random_state=0)
    assert isinstance(train, Recordings)
    assert model.fit(train, y_train).score(test, y_test) > 0.9
    folds = GroupKFold(2)
    assert cross_val_score(model, cases, cases.labels.astype(str), groups=cases.groups, cv=folds).mean() > 0.9


def test_features_of_signals_are_those_of_the_array():
    X = np.random.default_rng(0).normal(size=(7, 2, 400))
    cases = from_array(X, 200.0, sensors={"both": slice(None)})
    expected = WindowFeatures(200.0).fit_transform(X)
    np.testing.assert_array_equal(WindowFeatures(200.0).fit_transform(cases["both"]), expected)
    sound = MFCC(200.0, n_frames=2, n_mels=20, channel=1)
    np.testing.assert_array_equal(sound.fit_transform(cases["both"]), sound.fit_transform(X))
    assert MFCC(n_frames=2, n_mels=20, channel=0).fit(cases["both"]).sampling_rate_ == 200.0


def test_features_of_missing_signals_are_missing():
    cases = noise(10)
    features = WindowFeatures(100.0).fit_transform(cases["right"])
    assert np.isnan(features).all(axis=1).tolist() == [3 <= i < 6 for i in range(10)]
    lone = WindowFeatures(100.0).fit_transform(cases["right"][7][np.newaxis])
    np.testing.assert_allclose(features[7], lone[0], rtol=1e-12)


def test_a_channel_alone():
    cases = noise(6)
    right = cases["right"].channel(1)
    assert right.channel_names == ("right1",)
    assert right[3] is None
    np.testing.assert_array_equal(right[0], cases["right"][0][1:2])


def test_features_refuse_another_sampling_rate():
    cases = noise(6)
    sound = MFCC(50.0, channel=0, n_mels=6, n_coefficients=4, frame_seconds=0.5, n_frames=1)
    for features in (WindowFeatures(50.0), sound):
        with pytest.raises(ValueError, match=r"'left' has 100 Hz.*50 Hz.*resample"):
            features.fit_transform(cases["left"])
    assert WindowFeatures(50.0).fit_transform(resample(cases, 50.0)["left"]).shape[0] == 6


def test_errors_name_the_case_the_sensor_and_the_file():
    signals = [np.ones((1, 40)), np.zeros((1, 5))]
    cases = Recordings({"acc": SensorSignals(signals, 10.0, ("x",), files=["a.csv", "b.csv"])}, ids=["one", "two"])
    with pytest.raises(ValueError, match=r"'two', .*'acc' .*'b.csv'.* 5 samples"):
        WindowFeatures(10.0).fit_transform(cases["acc"])
    with pytest.raises(ValueError, match=r"'one', .* 40 samples, row 'two'"):
        cases["acc"].to_array()
    assert cases[[1]]["acc"].place(0) == "row 'two', sensor 'acc' (file 'b.csv')"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ids": ["a", "a"]}, "'a' occurs more than once"),
        ({"ids": ["a"]}, "ids has 1 entries for 2 rows"),
        ({"labels": ["a"]}, "labels has 1 entries for 2 rows"),
        ({"groups": [1, 2, 3]}, "groups has 3 entries"),
    ],
)
def test_wrong_columns(given, message):
    with pytest.raises(ValueError, match=message):
        Recordings({"acc": SensorSignals([np.ones((1, 4)), None], 10.0, ("x",))}, **given)


def test_wrong_sensors():
    one, two = SensorSignals([None], 1.0, ("x",)), SensorSignals([None, None], 1.0, ("x",))
    with pytest.raises(ValueError, match=r"same number of rows.*'a' \(1\), 'b' \(2\)"):
        Recordings({"a": one, "b": two})
    with pytest.raises(ValueError, match="at least one sensor"):
        Recordings({})
    with pytest.raises(KeyError, match="no sensor 'c'"):
        Recordings({"a": one})["c"]
