"""Times as seconds, sampling rates from times, and irregular times on a regular clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cmvmed.recordings import from_frame
from cmvmed.recordings.clocks import on_regular_clock, rate_of_times, read_times

UTC_TEXTS = ["2024-03-31T00:59:59.5", "2024-03-31T01:00:00.25", "2024-10-27T02:00:00"]
EXPECTED = [datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for text in UTC_TEXTS]


@pytest.mark.parametrize(
    "values",
    [
        UTC_TEXTS,
        [f"{text}Z" for text in UTC_TEXTS],
        [datetime.fromisoformat(text) for text in UTC_TEXTS],
        [
            datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=9)))
            for text in UTC_TEXTS
        ],
        np.array(UTC_TEXTS, dtype="datetime64[ms]"),
        np.array(UTC_TEXTS, dtype="datetime64[ns]"),
        list(np.array(UTC_TEXTS, dtype="datetime64[us]")),
        pd.Series(pd.to_datetime(UTC_TEXTS, format="ISO8601")),
        pd.Series(pd.to_datetime(UTC_TEXTS, format="ISO8601", utc=True).tz_convert("America/New_York")),
        pl.Series([datetime.fromisoformat(text) for text in UTC_TEXTS]),
        pl.Series([datetime.fromisoformat(text) for text in UTC_TEXTS]).dt.replace_time_zone("UTC"),
    ],
    ids=str,
)
def test_all_forms_of_dates(values):
    times = read_times(values, "t")
    assert times.are_dates
    np.testing.assert_allclose(times.seconds, EXPECTED, atol=1e-6)


def test_dates_without_zone_are_in_the_given_one():
    zone = ZoneInfo("Europe/Paris")
    local = [datetime.fromtimestamp(second, zone).replace(tzinfo=None) for second in EXPECTED]
    for values in (local, np.array(local, dtype="datetime64[us]"), pl.Series(local), pd.Series(local)):
        np.testing.assert_allclose(read_times(values, "t", "Europe/Paris").seconds, EXPECTED, atol=1e-6)
    twice = read_times(["2024-10-27T02:30:00"], "t", "Europe/Paris").seconds  # occurs at 0:30 and 1:30 UTC
    assert twice[0] == datetime(2024, 10, 27, 0, 30, tzinfo=UTC).timestamp()


def test_numbers_durations_and_empty_cells():
    assert read_times([1, "2.5", None, ""], "t").seconds[:2].tolist() == [1.0, 2.5]
    assert np.isnan(read_times([1, "2.5", None, ""], "t").seconds[2:]).all()
    assert read_times(np.array([1500], dtype="timedelta64[ms]"), "t").seconds.tolist() == [1.5]
    assert not read_times(np.arange(3), "t").are_dates


@pytest.mark.parametrize(
    ("values", "zone", "message"),
    [
        (["2024-01-01", "2024-01-01T00:00Z"], None, "t mixes times with and without a time zone"),
        (["8 o'clock"], None, 't has the time "8 o\'clock".*ISO 8601'),
        (["2024-01-01"], "Paris", "timezone is 'Paris'"),
    ],
)
def test_wrong_times(values, zone, message):
    with pytest.raises(ValueError, match=message):
        read_times(values, "t", zone)


def test_the_rate_ignores_gaps_and_jitter():
    rng = np.random.default_rng(0)
    seconds = np.arange(1000) / 50 + rng.uniform(-0.001, 0.001, 1000)
    seconds[500:] += 3600.0
    assert rate_of_times(seconds, "t") == pytest.approx(50.0, rel=1e-3)
    rounded = np.round(np.arange(1000) / 30, 3)  # milliseconds
    assert rate_of_times(rounded, "t") == pytest.approx(30.0, rel=1e-3)


def test_irregular_times_are_interpolated_between_gaps():
    rng = np.random.default_rng(0)
    seconds = np.sort(rng.uniform(0, 100, 3000))
    seconds[1500:] += 50.0
    line = 2.0 * seconds + 1.0  # interpolation is exact on a straight line
    parts = on_regular_clock(seconds, line[:, np.newaxis], 20.0, max_gap=1.0, where="here")
    assert len(parts) == 2
    for start, values in parts:
        np.testing.assert_allclose(values[0], 2.0 * (start + np.arange(values.shape[1]) / 20.0) + 1.0, atol=1e-9)
    with pytest.raises(ValueError, match=r"here: .* gaps.*max_gap"):
        on_regular_clock(seconds, line[:, np.newaxis], 500.0, max_gap=None, where="here")


def test_jitter_leaves_the_samples_as_they_are():
    values = np.random.default_rng(0).normal(size=(50, 2))
    seconds = np.arange(50) / 10 + np.random.default_rng(1).uniform(-0.02, 0.02, 50)
    ((_, read),) = on_regular_clock(seconds, values, 10.0, max_gap=None, where="here")
    np.testing.assert_array_equal(read, values.T)


def table(**columns):
    return pd.DataFrame(
        {"id": ["a"] * 20 + ["b"] * 20, "t": np.r_[np.arange(20), np.arange(20)] / 4, "x": 1.0, **columns}
    )


def test_gaps_in_the_times_of_a_case():
    frame = table(x=np.arange(40.0)).drop(index=[5, 6])
    with pytest.warns(UserWarning, match=r"row 'a', sensor 'x' has gaps"):
        assert from_frame(frame, id="id", time="t")["x"].present.tolist() == [False, True]
    filled = from_frame(frame, id="id", time="t", gaps="interpolate")["x"]
    np.testing.assert_allclose(filled[0][0], np.arange(20.0))
    bridged = from_frame(frame, id="id", time="t", max_gap=1.0)["x"]
    np.testing.assert_allclose(bridged[0][0], np.arange(20.0))


@pytest.mark.parametrize(
    ("frame", "given", "message"),
    [
        (table(t=0.0), {}, "Row 'a' has two lines at the time 0.000000 s"),
        (table(t=[None] + [1.0] * 39), {}, "Row 'a' has no time in line 0"),
        (table(id=[None] + ["a"] * 39), {}, "Column 'id' is empty in line 0"),
        (
            table(label=list("pq") * 20),
            {"labels": "label"},
            "Row 'a' has several labels in column 'label': 'p' and 'q'",
        ),
        (table(x="1.5"), {"sensors": ["x"]}, "Column 'x' must hold numbers"),
        (table().drop(columns="x"), {}, "no column of numbers besides 'id', 't'"),
        (table(), {"sensors": {"acc": ["x", "y"]}}, "no column 'y'; its columns are 'id', 't', 'x'"),
        (table(), {"sampling_rate": 400.0}, "sampling rate 400 Hz, from the times 4 Hz"),
        (table(), {"sampling_rate": {"x": -1.0}}, "positive number of Hz"),
        (table()[:0], {}, "has no lines"),
        (table(), {"gaps": "zero"}, "gaps must be one of 'missing', 'interpolate', 'error'"),
        (table(), {"time": None}, "pass time= or sampling_rate="),
        (table()[[True] + [False] * 39], {}, "No row has two samples of sensor 'x'"),
    ],
)
def test_wrong_tables(frame, given, message):
    with pytest.raises(ValueError, match=message):
        from_frame(frame, **{"id": "id", "time": "t", **given})
