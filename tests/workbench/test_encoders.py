"""Encoders give what scikit-learn and the library's features give, fill single gaps, and survive as plain data."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import soundfile
from scipy.sparse import issparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cmvmed.features import SignalFeatures, WindowFeatures
from cmvmed.recordings import SensorSignals
from cmvmed.recordings.sound_files import read_audio
from cmvmed.workbench.column_encoders import MAX_CATEGORIES, fit_column
from cmvmed.workbench.project_file import DataSettings, ViewSettings
from cmvmed.workbench.sensor_encoders import fit_sensors
from cmvmed.workbench.tables.columns import RawTable, Signal
from cmvmed.workbench.user_errors import ProjectError
from cmvmed.workbench.view_encoders import ViewEncoder, encoder_from_state, encoder_state
from tests.core.factories import rejects

NAN = np.nan
DOCUMENTS = ["red fox runs", "blue fox", None, "the red sea"]


def table_of(signals=None, **columns):
    n_rows = len(next(iter((columns or signals).values()))) if columns else len(next(iter(signals.values())).items)
    return RawTable("x.csv", pd.DataFrame(columns, index=range(n_rows)), signals or {})


def fitted(table, *, features="statistics", rate=None, **kinds):
    """The encoder of a view; columns of kind "signal" are the channels of a sensor."""
    channels = [column for column, kind in kinds.items() if kind == "signal"]
    view = ViewSettings("view", columns=tuple(kinds), features=features, sampling_rate=rate)
    given = {view: channels} if channels else {}
    sensors, _ = fit_sensors(table, given, [None] * table.n_rows, DataSettings(), None)
    cells = tuple(fit_column(table, column, kind) for column, kind in kinds.items() if kind != "signal")
    return ViewEncoder("view", (*cells, *sensors.get("view", ())))


def dense(matrix):
    return matrix.toarray() if issparse(matrix) else matrix


def test_numbers_are_imputed_by_the_mean_and_absent_rows_stay_absent():
    x = np.array([[1.0, 10.0], [NAN, 30.0], [4.0, NAN], [NAN, NAN], [9.0, 20.0]])
    table = table_of(a=x[:, 0], b=x[:, 1])
    encoded = fitted(table, a="number", b="number").encode(table)
    imputed = SimpleImputer(strategy="mean").fit_transform(x)
    np.testing.assert_array_equal(encoded[[0, 1, 2, 4]], imputed[[0, 1, 2, 4]])
    assert np.isnan(encoded[3]).all()
    rejects(np.testing.assert_array_equal, encoded, imputed)


def test_categories_are_those_of_one_hot_encoding():
    table = table_of(color=["red", " blue", None, "red"], size=["S", "L", "S", ""])
    encoder = fitted(table, color="category", size="category")
    reference = OneHotEncoder(sparse_output=False).fit_transform([["red", "S"], ["blue", "L"]])
    np.testing.assert_array_equal(encoder.encode(table)[:2], reference)
    np.testing.assert_array_equal(encoder.encode(table)[2:], [[0, 0, 0, 1], [0, 1, 0, 0]])
    assert encoder.feature_names == ["color=blue", "color=red", "size=L", "size=S"]
    new = table_of(color=["green", "blue"], size=["M", "M"])
    np.testing.assert_array_equal(encoder.encode(new), [[0, 0, 0, 0], [1, 0, 0, 0]])


def test_integers_as_categories_do_not_depend_on_gaps():
    with_gaps, without = table_of(a=[1.0, NAN, 2.0]), table_of(a=[1, 2, 2])
    encoder = fitted(with_gaps, a="category")
    assert encoder.feature_names == ["a=1", "a=2"]
    np.testing.assert_array_equal(encoder.encode(without), [[1, 0], [0, 1], [0, 1]])


def test_rare_categories_have_no_feature():
    cells = ["often"] * 3 + [f"rare{i:03d}" for i in range(100)]
    encoder = fitted(table_of(a=cells), a="category")
    assert len(encoder.feature_names) == MAX_CATEGORIES
    assert "a=often" in encoder.feature_names


def test_texts_are_those_of_tfidf_and_unknown_words_are_absent():
    table = table_of(text=DOCUMENTS)
    encoder = fitted(table, text="text")
    reference = TfidfVectorizer().fit([text for text in DOCUMENTS if text])
    encoded = encoder.encode(table)
    assert issparse(encoded)
    np.testing.assert_allclose(
        dense(encoded)[[0, 1, 3]], reference.transform(["red fox runs", "blue fox", "the red sea"]).toarray()
    )
    assert np.isnan(dense(encoded)[2]).all()
    assert np.isnan(dense(encoder.encode(table_of(text=["green", "red"])))).all(axis=1).tolist() == [True, False]


def test_numbers_beside_texts_are_standardized():
    table = table_of(text=["red fox", None, None, "sea"], price=[1.0, 5.0, NAN, 9.0])
    encoded = dense(fitted(table, text="text", price="number").encode(table))
    scaled = StandardScaler().fit_transform([[1.0], [5.0], [9.0]])[:, 0]
    np.testing.assert_allclose(encoded[[0, 1, 3], -1], scaled)
    assert np.isnan(encoded[2]).all()
    assert not np.isnan(encoded[[0, 1, 3]]).any()


def test_a_number_that_is_lacking_beside_a_text_is_a_gap():
    table = table_of(text=["red fox", "sea", "red"], price=[1.0, 5.0, NAN])
    encoder = fitted(table, text="text", price="number")
    np.testing.assert_array_equal(dense(encoder.encode(table_of(text=["red"]))), dense(encoder.encode(table))[2:])


@pytest.mark.parametrize(("day_first", "last"), [(False, "12/31/2024"), (True, "31/12/2024"), (True, "12/12/2024")])
def test_dates_of_new_rows_have_the_day_where_those_of_training_have_it(day_first, last):
    """Also if no new date shows where the day is, or training did not show it and the new rows seem to."""
    encoder = fitted(table_of(when=["01/02/2024", last]), when="date")
    days = encoder.encode(table_of(when=["01/02/2024", "02/01/2024"]))
    np.testing.assert_allclose(days[1, 0] - days[0, 0], -30.0 if day_first else 30.0)
    other = table_of(when=["12/31/2024" if day_first else "31/12/2024"])
    with pytest.raises(ProjectError, match="is not a date"):
        encoder.encode(other)


def test_dates_are_days_and_phases():
    hours = pd.date_range("2024-01-01", periods=24 * 8, freq="h")
    table = table_of(when=hours.strftime("%Y-%m-%d %H:%M"))
    encoder = fitted(table, when="date")
    assert encoder.feature_names == ["when.days", "when.sin_day", "when.cos_day", "when.sin_week", "when.cos_week"]
    encoded = encoder.encode(table)
    np.testing.assert_allclose(encoded[:, 0], np.arange(24 * 8) / 24)
    np.testing.assert_allclose(encoded[:, 1], np.sin(2 * np.pi * hours.hour / 24), atol=1e-9)
    np.testing.assert_allclose(encoded[6, 2], 0.0, atol=1e-9)
    days = fitted(table_of(when=["2024-01-01", "2024-01-02"]), when="date")
    assert days.feature_names == ["when.days"]


def test_series_of_different_lengths_and_with_gaps():
    rng = np.random.default_rng(0)
    items = [rng.normal(size=40), rng.normal(size=64), None, np.linspace(0, 1, 50)]
    gap = items[3].copy()
    gap[10:13] = NAN
    table = table_of({"s": Signal([*items[:3], gap], is_sound=False)})
    encoded = fitted(table, s="signal").encode(table)
    for row in (0, 1, 3):
        expected = WindowFeatures().fit_transform(items[row][None, :])[0]
        np.testing.assert_allclose(encoded[row], expected, atol=1e-6, rtol=1e-5)
    assert np.isnan(encoded[2]).all()


def test_channels_of_a_view_are_one_sensor():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6, 50))
    table = table_of({"x": Signal([*x[:5], None], is_sound=False), "y": Signal(list(y), is_sound=False)})
    encoder = fitted(table, x="signal", y="signal", features="minirocket", rate=20.0)
    both = [np.stack(pair) for pair in zip(x[:5], y[:5], strict=True)]
    expected = SignalFeatures("minirocket", sampling_rate=20.0).fit_transform([*both, None])
    np.testing.assert_array_equal(encoder.encode(table), expected)  # absent where a channel is
    assert encoder.column_names == ["x", "y"]
    single = table_of({"x": table.signals["x"]})
    assert np.isnan(encoder.encode(single)).all()
    uneven = table_of({"x": Signal([x[0]], is_sound=False), "y": Signal([y[0, :49]], is_sound=False)})
    with pytest.raises(ValueError, match=r"in row 1 of x.csv they have: x \(50\), y \(49\)"):
        encoder.encode(uneven)


def test_signals_of_several_rates_in_a_view_are_several_sensors():
    rng = np.random.default_rng(0)
    slow = SensorSignals(list(rng.normal(size=(6, 1, 40))), 10.0, ("t",))
    fast = SensorSignals(list(rng.normal(size=(6, 1, 400))), 100.0, ("v",))
    table = table_of({"t": Signal(slow, is_sound=False), "v": Signal(fast, is_sound=False)})
    encoder = fitted(table, t="signal", v="signal")
    parts = [SignalFeatures("statistics").fit_transform(sensor) for sensor in (slow, fast)]
    np.testing.assert_array_equal(encoder.encode(table), np.hstack(parts))
    together = fitted(table, t="signal", v="signal", rate=10.0)  # brought to one clock
    assert len(together.columns) == 1
    assert together.columns[0].features.sampling_rate_ == 10.0
    np.testing.assert_array_equal(together.encode(table)[:, :20], parts[0])


def test_sound_files_of_different_rates(tmp_path):
    rng = np.random.default_rng(0)
    for name, rate in (("a", 4000), ("b", 8000)):
        soundfile.write(tmp_path / f"{name}.wav", 0.1 * rng.normal(size=rate), rate)
    files = [str(tmp_path / "a.wav"), None, str(tmp_path / "b.wav")]
    table = table_of({"mic": Signal(files, is_sound=True)})
    encoded = fitted(table, mic="signal", features="mfcc").encode(table)
    sounds = [None if file is None else read_audio(file, sampling_rate=4000)[0] for file in files]
    np.testing.assert_array_equal(encoded, SignalFeatures("mfcc", sampling_rate=4000.0).fit_transform(sounds))
    assert np.isnan(encoded[1]).all()


def all_kinds(tmp_path):
    soundfile.write(tmp_path / "a.wav", 0.1 * np.random.default_rng(0).normal(size=4000), 4000)
    signals = {
        "mic": Signal([str(tmp_path / "a.wav"), None, None, None], is_sound=True),
        "imu": Signal([np.arange(30.0), np.sin(np.arange(40.0)), None, np.ones(30)], is_sound=False),
    }
    table = table_of(
        signals,
        n=[1.0, NAN, 3.0, 4.0],
        b=["yes", "no", "", "no"],
        d=["2024-01-01", "2024-01-05", "", "2024-02-01"],
        c=["x", "y", "x", None],
        t=DOCUMENTS,
    )
    kinds = {"n": "number", "b": "boolean", "d": "date", "c": "category", "mic": "signal", "imu": "signal"}
    return table, [fitted(table, **kinds), fitted(table, t="text", n="number")]


def test_the_state_gives_the_same_features(tmp_path):
    table, encoders = all_kinds(tmp_path)
    for encoder in encoders:
        state = encoder_state(encoder)
        cells = [column for column in state["columns"] if column["kind"] != "signals"]
        signals = [column for column in state["columns"] if column["kind"] == "signals"]
        plain = json.loads(json.dumps(cells))  # texts, numbers and lists
        restored = encoder_from_state({"name": state["name"], "columns": [*plain, *signals]})
        assert restored == encoder
        np.testing.assert_array_equal(dense(restored.encode(table)), dense(encoder.encode(table)))
        assert len(encoder.feature_names) == encoder.n_features == encoder.encode(table).shape[1]
        assert len(set(encoder.feature_names)) == encoder.n_features


@pytest.mark.parametrize("view", [0, 1])
def test_a_table_without_the_columns_is_absent_with_the_same_width(tmp_path, view):
    table, encoders = all_kinds(tmp_path)
    width = encoders[view].encode(table).shape[1]
    empty = dense(encoders[view].encode(table_of(other=[1, 2])))
    assert empty.shape == (2, width)
    assert np.isnan(empty).all()
