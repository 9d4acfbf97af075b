"""Multiple Features: the published csv files, and small or damaged ones made here."""

import io
import zipfile

import numpy as np
import pytest

from experiments.datasets import DatasetError, DatasetNotFoundError, fetch_multiple_features
from experiments.datasets.multiple_features import UCI_ZIP, WIDTHS


def write_csv_files(folder, rows=3, classes=None, skip=()):
    rng = np.random.default_rng(0)
    classes = np.arange(rows) if classes is None else classes
    for view in WIDTHS.keys() - set(skip):
        table = np.column_stack([rng.normal(size=(rows, WIDTHS[view])), classes])
        np.savetxt(
            folder / f"mfeat-{view}.csv", table, delimiter=",", header=",".join("0" * table.shape[1]), comments=""
        )


def uci_zip(rows=2000):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (view, width) in enumerate(WIDTHS.items()):
            archive.writestr(f"mfeat/mfeat-{view}", f"{' '.join([f'{number}.5'] * width)}\n" * rows)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def published(data_folder):
    return fetch_multiple_features(data_home=data_folder)


def test_the_published_files(published):
    assert published.data.shape == (2000, 649)
    assert {view: columns.stop - columns.start for view, columns in published.views.items()} == WIDTHS
    assert np.bincount(published.target).tolist() == [200] * 10
    assert not published.missing.any()
    assert len(np.unique(published.data, axis=0)) == 1994


def test_known_values(published):
    first = {view: published.data[0, columns].tolist()[:3] for view, columns in published.views.items()}
    assert first["fac"] == [98, 236, 531]
    assert first["kar"] == [-10.297, -11.667, 11.561]
    assert published.data[0, published.views["mor"]].tolist() == [1, 0, 0, 133.15, 1.3117, 1620.2]
    assert published.feature_names[published.views["pix"].start] == "pix__0"


def test_small_csv_files_load_unverified(tmp_path):
    write_csv_files(tmp_path)
    bunch = fetch_multiple_features(data_home=tmp_path, verify=False)
    assert bunch.data.shape == (3, 649)
    assert bunch.target.tolist() == [0, 1, 2]


def test_altered_csv_files_are_refused(tmp_path):
    write_csv_files(tmp_path)
    with pytest.raises(DatasetError, match="truncated, altered or a different file"):
        fetch_multiple_features(data_home=tmp_path)


def test_one_csv_file_missing_is_named(tmp_path):
    write_csv_files(tmp_path, skip=["kar"])
    with pytest.raises(DatasetNotFoundError, match=r"mfeat-kar.csv was not found"):
        fetch_multiple_features(data_home=tmp_path, verify=False)


def test_csv_files_of_other_rows_are_refused(tmp_path):
    write_csv_files(tmp_path)
    table = np.column_stack([np.zeros((3, WIDTHS["zer"])), [2, 1, 0]])
    np.savetxt(tmp_path / "mfeat-zer.csv", table, delimiter=",", header="0", comments="")
    with pytest.raises(DatasetError, match=r"class columns of mfeat-fac.csv and mfeat-zer.csv differ"):
        fetch_multiple_features(data_home=tmp_path, verify=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 columns, expected 7"),
        (b"0,1,2,3,4,5,0\n", "has 0 columns, expected 7"),
        (b"header\n1,2,3\n", "has 3 columns, expected 7"),
        (b"header\n1,2,3,4,5,6,0\n1,2\n", "not a table of numbers"),
        (b"header\n1,2,x,4,5,6,0\n", "not a table of numbers"),
        (b"header\n1,2,nan,4,5,6,0\n", "not finite"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "not a table of numbers"),
    ],
)
def test_a_csv_file_of_another_format_is_a_dataset_error(tmp_path, content, message):
    write_csv_files(tmp_path)
    (tmp_path / "mfeat-mor.csv").write_bytes(content)
    with pytest.raises(DatasetError, match=rf"mfeat-mor.csv.*{message}"):
        fetch_multiple_features(data_home=tmp_path, verify=False)


def test_a_class_that_is_not_a_digit_is_refused(tmp_path):
    write_csv_files(tmp_path, classes=[0, 1, 11])
    with pytest.raises(DatasetError, match="other than 0 to 9"):
        fetch_multiple_features(data_home=tmp_path, verify=False)


def test_the_archive_of_uci(tmp_path):
    (tmp_path / UCI_ZIP.name).write_bytes(uci_zip())
    bunch = fetch_multiple_features(data_home=tmp_path)
    assert [bunch.data[0, columns.start] for columns in bunch.views.values()] == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert bunch.target.tolist() == [digit for digit in range(10) for _ in range(200)]


def test_an_archive_with_other_rows_is_refused(tmp_path):
    (tmp_path / UCI_ZIP.name).write_bytes(uci_zip(rows=1999))
    with pytest.raises(DatasetError, match="has 1999 rows, expected 2000"):
        fetch_multiple_features(data_home=tmp_path)


def test_no_file_and_no_network():
    with pytest.raises(DatasetNotFoundError, match=r"archive.ics.uci.edu/dataset/72"):
        fetch_multiple_features()
