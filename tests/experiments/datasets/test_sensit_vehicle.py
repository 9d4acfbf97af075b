"""SensIT Vehicle: the published subset, and small files of both formats made here."""

import bz2
import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from experiments.datasets import DatasetError, DatasetNotFoundError, fetch_sensit_vehicle


def small_subset():
    rng = np.random.default_rng(0)
    nodes = {"f_1": 3, "f_0": 2}
    user_data = {
        node: {"x": rng.normal(size=(rows, 100)).tolist(), "y": [[1 if row % 2 else -1] for row in range(rows)]}
        for node, rows in nodes.items()
    }
    return {"users": ["f_0", "f_1"], "num_samples": [2, 3], "user_data": user_data}


def write_subset(folder, content):
    (folder / "mytrain.json").write_text(json.dumps(content))


def write_svmlight(path, labels, seed=0):
    values = np.random.default_rng(seed).normal(size=(len(labels), 100))
    dump_svmlight_file(values, labels, str(path), zero_based=False)
    return values


@pytest.fixture(scope="session")
def published(data_folder):
    return fetch_sensit_vehicle(data_home=data_folder)


def test_the_published_subset(published):
    assert published.data.shape == (1860, 100)
    assert published.views == {"acoustic": slice(0, 50), "seismic": slice(50, 100)}
    assert np.bincount(published.target).tolist() == [837, 1023]
    assert published.target_names.tolist() == ["type -1", "type +1"]
    assert not published.missing.any()
    assert len(np.unique(published.data, axis=0)) == 1860


def test_known_values(published):
    assert published.data[0, :2].tolist() == [0.2876325624943, 2.1395628432857743]
    assert published.target[:5].tolist() == [0, 0, 0, 0, 1]


def test_the_nodes_of_the_published_subset(published):
    assert published.group_names.tolist() == [f"f_{node:05d}" for node in range(23)]
    rows = np.bincount(published.groups)
    assert (len(rows), rows.min(), rows.max(), rows[0]) == (23, 7, 534, 59)


@pytest.mark.parametrize("fact", ["1860", "837", "1023", "23 nodes", "7 to 534"])
def test_the_description_states_the_facts(published, fact):
    assert fact in published.DESCR


def test_a_small_subset_keeps_the_order_of_its_users(tmp_path):
    content = small_subset()
    write_subset(tmp_path, content)
    bunch = fetch_sensit_vehicle(data_home=tmp_path, verify=False)
    np.testing.assert_array_equal(bunch.data[:2], content["user_data"]["f_0"]["x"])
    np.testing.assert_array_equal(bunch.data[2:], content["user_data"]["f_1"]["x"])
    assert bunch.target.tolist() == [0, 1, 0, 1, 0]
    assert bunch.group_names[bunch.groups].tolist() == ["f_0", "f_0", "f_1", "f_1", "f_1"]


def test_an_altered_subset_is_refused(tmp_path):
    write_subset(tmp_path, small_subset())
    with pytest.raises(DatasetError, match="truncated, altered or a different file"):
        fetch_sensit_vehicle(data_home=tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b'{"users": [', b"\x80\x04.", b"[" * 100_000, b"\xff\xfe\x00", b"9" * 5000],
    ids=["empty", "truncated", "pickle", "nested", "bytes", "digits"],
)
def test_a_file_that_is_not_json_is_a_dataset_error(tmp_path, content):
    (tmp_path / "mytrain.json").write_bytes(content)
    with pytest.raises(DatasetError, match=r"mytrain.json is not a valid JSON file"):
        fetch_sensit_vehicle(data_home=tmp_path, verify=False)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((), [], "has no list 'users'"),
        ((), 7, "has no list 'users'"),
        (("users",), [], "has no list 'users'"),
        (("users",), ["f_0"], "has no list 'users'"),
        (("users",), ["f_0", "f_1", "f_1"], "has no list 'users'"),
        (("users",), ["f_0", ["f_1"]], "has no list 'users'"),
        (("users",), "f_0", "has no list 'users'"),
        (("user_data",), [1, 2], "has no list 'users'"),
        (("user_data", "f_0"), 3, "node f_0 of mytrain.json has no 'x' and 'y'"),
        (("user_data", "f_0"), {"x": []}, "node f_0 of mytrain.json has no 'x' and 'y'"),
        (("user_data", "f_0", "x"), [[1, 2], [3]], "node f_0 of mytrain.json .* not a table of numbers"),
        (("user_data", "f_0", "x"), {"a": 1}, "node f_0 of mytrain.json .* not a table of numbers"),
        (("user_data", "f_0", "x"), [[1.0] * 99] * 2, r"shape \(2, 99\), expected \(2, 100\)"),
        (("user_data", "f_0", "x"), [], r"shape \(0,\), expected \(2, 100\)"),
        (("user_data", "f_0", "x"), [[float("nan")] * 100] * 2, "not finite"),
        (("user_data", "f_0", "x"), [[10**400] * 100] * 2, "not a table of numbers"),
        (("user_data", "f_0", "y"), [[1], [0]], "class other than -1 and 1"),
        (("user_data", "f_0", "y"), [[1]], "expected"),
    ],
)
def test_a_json_file_of_another_structure_is_a_dataset_error(tmp_path, path, value, message):
    write_subset(tmp_path, replaced(small_subset(), path, value))
    with pytest.raises(DatasetError, match=message):
        fetch_sensit_vehicle(data_home=tmp_path, verify=False)


def replaced(content, path, value):
    """The content with the entry at `path` replaced."""
    return {**content, path[0]: replaced(content[path[0]], path[1:], value)} if path else value


@pytest.mark.parametrize("stem", ["combined", "combined_scale"])
@pytest.mark.parametrize("compress", [lambda data: data, bz2.compress])
def test_the_full_set_from_the_files_of_libsvm(tmp_path, stem, compress):
    suffix = {bz2.compress: ".bz2"}.get(compress, "")
    train, test = tmp_path / f"{stem}{suffix}", tmp_path / f"{stem}.t{suffix}"
    values = [write_svmlight(train, [1, 2, 3], seed=1), write_svmlight(test, [3, 1], seed=2)]
    for path in (train, test):
        path.write_bytes(compress(path.read_bytes()))
    bunch = fetch_sensit_vehicle(version="full", data_home=tmp_path, verify=False)
    np.testing.assert_allclose(bunch.data, np.vstack(values), rtol=1e-12)
    assert bunch.target.tolist() == [0, 1, 2, 2, 0]
    assert bunch.is_test.tolist() == [False, False, False, True, True]
    assert bunch.views == {"acoustic": slice(0, 50), "seismic": slice(50, 100)}
    assert f"``{train.name}`` and ``{test.name}``" in bunch.DESCR


def test_the_full_set_has_its_rows_counted(tmp_path):
    write_svmlight(tmp_path / "combined", [1, 2, 3])
    write_svmlight(tmp_path / "combined.t", [1, 2])
    with pytest.raises(DatasetError, match=r"have 5 rows of the classes \[1, 2, 3\], expected 98,528"):
        fetch_sensit_vehicle(version="full", data_home=tmp_path)


def test_the_training_file_alone_is_not_the_full_set(tmp_path):
    write_svmlight(tmp_path / "combined", [1, 2, 3])
    with pytest.raises(DatasetNotFoundError, match=r"combined.t was not found"):
        fetch_sensit_vehicle(version="full", data_home=tmp_path, verify=False)


@pytest.mark.slow
def test_a_file_with_all_rows_is_the_full_set(tmp_path):
    write_svmlight(tmp_path / "combined", np.arange(98_528) % 3 + 1)
    bunch = fetch_sensit_vehicle(version="full", data_home=tmp_path)
    assert bunch.data.shape == (98_528, 100)
    assert not bunch.is_test.any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no rows"),
        (b"1 1:0.5 101:2\n", "not a file in LIBSVM format with 100 features"),
        (b"1 0:0.5\n", "not a file in LIBSVM format"),
        (b"1 99999999999999999999:0.5\n", "not a file in LIBSVM format"),
        (b"{}\n", "not a file in LIBSVM format"),
        (b"4 1:0.5\n", "a class other than"),
        (b"1 1:inf\n", "not finite"),
    ],
)
def test_a_libsvm_file_of_another_format_is_a_dataset_error(tmp_path, content, message):
    (tmp_path / "combined").write_bytes(content)
    with pytest.raises(DatasetError, match=f"combined .*{message}"):
        fetch_sensit_vehicle(version="full", data_home=tmp_path, verify=False)


def test_a_truncated_bzip2_file_is_a_dataset_error(tmp_path):
    (tmp_path / "combined.bz2").write_bytes(bz2.compress(b"1 1:0.5\n" * 100)[:-8])
    with pytest.raises(DatasetError, match=r"combined.bz2 is not a complete bzip2 file"):
        fetch_sensit_vehicle(version="full", data_home=tmp_path, verify=False)


def test_an_unknown_version_is_an_error():
    with pytest.raises(ValueError, match=r"version must be .* got 'half'"):
        fetch_sensit_vehicle(version="half")


@pytest.mark.parametrize(("version", "home"), [("subset", "litian96/ditto"), ("full", "libsvmtools/datasets")])
def test_no_file_and_no_network(version, home):
    with pytest.raises(DatasetNotFoundError, match=home):
        fetch_sensit_vehicle(version=version)
