"""Features of several sensors: the automatic choice, missing sensors, different rates, a pipeline with CMVMED."""

import warnings
from functools import cache

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from cmvmed import CMVMED
from cmvmed.datasets import make_body_motion
from cmvmed.features import FeatureCache, SensorFeatures, SignalFeatures, signal_features
from cmvmed.features import sensor_features as module
from cmvmed.features.sensor_features import class_codes
from cmvmed.recordings import Recordings, SensorSignals


@cache
def motion(n=5):
    return make_body_motion(n, seconds=2.0, random_state=0)


def hidden(target, n_labeled=18):
    y = target.astype(object)
    y[n_labeled:] = None
    return y


def recordings_of(made):
    sensors = {
        name: SensorSignals(list(signals), made.sampling_rates[name], ("x", "y", "z"))
        for name, signals in made.signals.items()
    }
    return Recordings(sensors, labels=hidden(made.target))


def test_one_array_per_sensor_by_its_kind():
    made = motion()
    kinds = {"wrist": "statistics", "ankle": "statistics", "chest": "statistics"}
    found = SensorFeatures(kinds, sampling_rate=made.sampling_rates).fit_transform(made.signals)
    for name, values in found.items():
        own = SignalFeatures("statistics", sampling_rate=made.sampling_rates[name]).fit_transform(made.signals[name])
        np.testing.assert_array_equal(values, own)


def test_recordings_and_arrays_give_the_same():
    made = motion()
    recordings = recordings_of(made)
    kinds = ["statistics", "ranks"]
    arrays = SensorFeatures(candidates=kinds, sampling_rate=made.sampling_rates)
    from_arrays = arrays.fit_transform(made.signals, recordings.labels)
    from_recordings = SensorFeatures(candidates=kinds).fit_transform(recordings)  # its labels are used
    for name in made.signals:
        np.testing.assert_array_equal(from_arrays[name], from_recordings[name])


def test_pipeline_with_missing_sensors_and_unequal_lengths():
    made = motion()
    signals = {name: list(values) for name, values in made.signals.items()}
    signals["chest"][3:9] = [None] * 6
    signals["ankle"] = [signal[:, : 150 + row] for row, signal in enumerate(signals["ankle"])]
    model = make_pipeline(SensorFeatures(sampling_rate=made.sampling_rates), CMVMED(n_stages=1, members=None))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*")
        model.fit(signals, hidden(made.target))
    assert model.predict(signals).shape == (30,)
    assert model.predict_proba({name: values[:4] for name, values in signals.items()}).shape == (4, 6)


def test_choices_are_reported(monkeypatch):
    made = motion(8)
    features = SensorFeatures(sampling_rate=made.sampling_rates, candidates=["statistics", "ranks"])
    result = features.fit_transform(made.signals, hidden(made.target, 30))
    assert features.choices_["sensor"] == ["wrist", "wrist", "ankle", "ankle", "chest", "chest"]
    table = zip(*(features.choices_[column] for column in ("sensor", "kind", "chosen")), strict=True)
    kept = [(sensor, kind) for sensor, kind, chosen in table if chosen]
    assert features.kinds_ == {s: "+".join(kind for sensor, kind in kept if sensor == s) for s in made.signals}
    for sensor, kind in features.kinds_.items():
        own = SignalFeatures(kind, sampling_rate=made.sampling_rates[sensor]).fit_transform(made.signals[sensor])
        np.testing.assert_array_equal(result[sensor], own)
    assert "statistics+ranks" in features.kinds_.values()


def test_without_aeon_the_user_is_told_once(monkeypatch):
    monkeypatch.setattr(module, "is_available", lambda kind: kind in ("ranks", "mfcc"))
    made = motion()
    with pytest.warns(UserWarning, match=r"install .*\[timeseries\]") as told:
        features = SensorFeatures(sampling_rate=made.sampling_rates).fit(made.signals, hidden(made.target))
    assert features.kinds_ == dict.fromkeys(made.signals, "ranks")
    assert len(told) == 1


def test_progress_is_reported():
    made = motion()
    seen = []

    class Recorder:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, **_): ...

        def on_fit_task_end(self, estimator, context, **_):
            seen.append(context.task_name)

    features = SensorFeatures("statistics", sampling_rate=made.sampling_rates).set_callbacks(Recorder())
    features.fit_transform(made.signals)
    assert seen == [f"compare features of {s}" for s in made.signals] + [f"features of {s}" for s in made.signals] + [
        "fit"
    ]


def counting(monkeypatch):
    """Names of sensors whose features are computed."""
    found, compute = [], signal_features.compute_features

    def counted(extractors, n_features, signals):
        found.append(signals.name)
        return compute(extractors, n_features, signals)

    monkeypatch.setattr(signal_features, "compute_features", counted)
    return found


def test_predict_and_predict_proba_compute_features_once(monkeypatch):
    made, computed = motion(), counting(monkeypatch)
    features = SensorFeatures("statistics", sampling_rate=made.sampling_rates, memory=FeatureCache())
    model = make_pipeline(features, CMVMED(n_stages=1, members=None)).fit(made.signals, hidden(made.target))
    model.predict_proba(made.signals)
    model.predict(made.signals)
    assert computed == list(made.signals)


def test_with_aeon_random_convolutions_are_compared_and_not_computed_again(monkeypatch):
    made, computed = motion(), counting(monkeypatch)
    features = SensorFeatures(sampling_rate=made.sampling_rates)
    found = features.fit_transform(made.signals, hidden(made.target))
    assert set(features.choices_["kind"]) == {"ranks", "minirocket"}
    assert computed == [name for name in made.signals for _ in ("ranks", "minirocket")]
    for name, values in features.transform(made.signals).items():
        np.testing.assert_array_equal(values, found[name])


def test_class_codes():
    assert class_codes({}, ["a", None, np.nan, "b", "a"], 5).tolist() == [0, -1, -1, 1, 0]
    assert class_codes({}, np.array([3, -1, 5]), 3).tolist() == [0, -1, 1]
    assert class_codes({}, None, 2).tolist() == [-1, -1]
    with pytest.raises(ValueError, match="y has 1 labels for 2 rows"):
        class_codes({}, ["a"], 2)


def test_mistakes():
    made = motion(1)
    features = SensorFeatures("statistics", sampling_rate=made.sampling_rates)
    with pytest.raises(TypeError, match="Expected Recordings or a dict"):
        features.fit(np.zeros((3, 2, 10)))
    with pytest.raises(ValueError, match=r"sampling_rate .* 'neck'"):
        features.fit({"neck": np.zeros((3, 1, 20))})
    with pytest.raises(ValueError, match="the same number of rows"):
        SensorFeatures("statistics").fit({"a": np.zeros((3, 1, 20)), "b": np.zeros((2, 1, 20))})
    with pytest.raises(ValueError, match=r"kind .* 'wrist'"):
        SensorFeatures({"ankle": "statistics"}, sampling_rate=made.sampling_rates).fit(made.signals)
    with pytest.raises(ValueError, match="kind must be one of"):
        SensorFeatures(candidates=[]).fit({"a": np.zeros((3, 1, 20))})
    fitted = features.fit(made.signals)
    other = Recordings({"neck": recordings_of(made)["wrist"]})
    with pytest.raises(ValueError, match="sensor 'neck'"):
        fitted.transform(other)


def test_a_sensor_that_is_not_there_is_missing_in_all_cases():
    made = motion(1)
    features = SensorFeatures("statistics", sampling_rate=made.sampling_rates)
    every = features.fit_transform(made.signals)
    some = features.transform({name: made.signals[name] for name in ("wrist", "ankle")})
    np.testing.assert_array_equal(some["wrist"], every["wrist"])
    assert some["chest"].shape == every["chest"].shape
    assert np.isnan(some["chest"]).all()


def test_clone_keeps_parameters():
    features = SensorFeatures("statistics", sampling_rate={"a": 5.0}, memory="folder", n_jobs=2)
    assert clone(features).get_params() == features.get_params()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_set_output_names_the_columns_of_each_sensor(package):
    library = pytest.importorskip(package)
    made = motion()
    plain = SensorFeatures("statistics", sampling_rate=made.sampling_rates)
    arrays = plain.fit_transform(made.signals)
    framed = clone(plain).set_output(transform=package)
    without = {name: signals for name, signals in made.signals.items() if name != "chest"}
    for found in (framed.fit_transform(made.signals), clone(framed).fit(made.signals).transform(made.signals)):
        for name, frame in found.items():
            assert isinstance(frame, library.DataFrame)
            assert list(frame.columns) == plain.features_[name].get_feature_names_out().tolist()
            np.testing.assert_array_equal(frame.to_numpy(), arrays[name])
    assert np.isnan(framed.transform(without)["chest"].to_numpy()).all()
    model = make_pipeline(clone(plain), CMVMED(n_stages=2)).set_output(transform=package)
    model.fit(made.signals, made.target)
    expected = CMVMED(n_stages=2).fit(arrays, made.target)
    np.testing.assert_allclose(model.predict_proba(made.signals), expected.predict_proba(arrays), atol=1e-10)


def test_set_output_by_the_configuration_and_a_mistake():
    pandas = pytest.importorskip("pandas")
    made = motion()
    with sklearn.config_context(transform_output="pandas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = SensorFeatures(sampling_rate=made.sampling_rates).fit_transform(made.signals, hidden(made.target))
    assert all(isinstance(frame, pandas.DataFrame) for frame in found.values())
    with pytest.raises(ValueError, match="transform must be one of default, pandas, polars or None, but is 'numpy'"):
        SensorFeatures().set_output(transform="numpy")
