"""FootprintID, on small files in the layout of its public reading script."""

import numpy as np
import pytest
from scipy.io import savemat

from cmvmed.datasets import DatasetError, DatasetNotFoundError, fetch_footprintid

RATE = 1000


def cell(values):
    array = np.empty(len(values), dtype=object)
    for number, value in enumerate(values):
        array[number] = value
    return array


def trace(person, sensor, speed, number, amplification):
    """A trace of 1.5 to 1.7 s whose value names its position in the file."""
    value = 10000 * person + 1000 * sensor + 100 * speed + 10 * number + amplification
    return np.full((1500 + 100 * number, 1), float(value))


def sensor_content(person, sensor, n_speeds, n_traces):
    if sensor == 3:
        return np.empty((0, 0))  # "data from some sensors could be empty"
    speeds = []
    for speed in range(1, n_speeds + 1):
        table = np.empty((n_traces, 3), dtype=object)
        for number in range(1, n_traces + 1):
            for amplification in range(1, 4):
                table[number - 1, amplification - 1] = trace(person, sensor, speed, number, amplification)
        speeds.append(table)
    return {"S": cell(speeds)}


def write_people(folder, n_people=2, n_speeds=2, n_traces=3):
    people = [
        {"Sen": cell([sensor_content(person, sensor, n_speeds, n_traces) for sensor in range(1, 6)])}
        for person in range(1, n_people + 1)
    ]
    savemat(folder / "People.mat", {"people": cell(people)}, do_compression=True)


def test_walks_of_all_sensors(tmp_path):
    write_people(tmp_path)
    walks = fetch_footprintid(people=(2, 1), speeds=(1, 2), amplification=4000, sampling_rate=RATE, data_home=tmp_path)
    assert walks.data.shape == (2 * 2 * 3, 5, 1600)  # as long as the shortest
    assert walks.target_names == ["person 2", "person 1"]
    np.testing.assert_array_equal(walks.target, np.repeat([0, 1], 6))
    np.testing.assert_array_equal(walks.speed, np.tile(np.repeat([1, 2], 3), 2))
    np.testing.assert_array_equal(walks.walk, np.tile([1, 2, 3], 4))
    for row in range(12):
        person = (2, 1)[walks.target[row]]
        for sensor in (1, 2, 4, 5):
            expected = trace(person, sensor, walks.speed[row], walks.walk[row], 2)[0, 0]
            np.testing.assert_array_equal(walks.data[row, sensor - 1], expected)
    np.testing.assert_array_equal(walks.missing, np.tile([False, False, True, False, False], (12, 1)))
    assert np.isnan(walks.data[:, 2]).all()
    assert list(walks.views.values()) == [0, 1, 2, 3, 4]


def test_segments_are_cut_from_the_middle_and_surrounded_by_zeros(tmp_path):
    write_people(tmp_path, n_people=1, n_speeds=1, n_traces=1)
    walks = fetch_footprintid(people=[1], speeds=[1], sampling_rate=RATE, seconds=2.0, data_home=tmp_path)
    np.testing.assert_array_equal(np.flatnonzero(walks.data[0, 0]), np.arange(200, 1800))
    walks = fetch_footprintid(people=[1], speeds=[1], sampling_rate=RATE, seconds=0.5, data_home=tmp_path)
    assert walks.data.shape == (1, 5, 500)


def test_a_wrong_sampling_rate_is_recognized(tmp_path):
    write_people(tmp_path)
    with pytest.raises(ValueError, match=r"At 25600 Hz the longest trace would last 0\.07 s.*25600 and 1000 Hz"):
        fetch_footprintid(people=[1], speeds=[1], data_home=tmp_path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"People\.mat was not found.*zenodo\.org/records/4691144"):
        fetch_footprintid(data_home=tmp_path)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"persons": np.zeros(3)}, "no variable 'people'"),
        ({"people": np.zeros(3)}, "people is not a cell array"),
        ({"people": cell([{"Other": 1.0}])}, r"people\{1\} has no field Sen"),
        ({"people": cell([{"Sen": cell([{"T": 1.0}])}])}, r"people\{1\}\.Sen\{1\} has no field S"),
        ({"people": cell([{"Sen": cell([{"S": cell([np.ones(3)])}])}])}, r"S\{1\} is not a cell array of traces"),
        ({"people": cell([{"Sen": cell([np.empty((0, 0))])}])}, "no traces of these people"),
    ],
)
def test_another_layout_is_named(tmp_path, variables, message):
    savemat(tmp_path / "People.mat", variables)
    with pytest.raises(DatasetError, match=message):
        fetch_footprintid(people=[1], speeds=[1], sampling_rate=RATE, data_home=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"people": [11]}, "people must be different numbers from 1 to 10"),
        ({"speeds": [9]}, "speeds must be different numbers from 1 to 8"),
        ({"amplification": 1}, "amplification must be one of"),
        ({"sampling_rate": 0}, "must be positive"),
        ({"seconds": -1.0}, "must be positive"),
    ],
)
def test_invalid_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fetch_footprintid(**options)
