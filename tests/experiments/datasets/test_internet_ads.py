"""Internet Advertisements: the published archive, and small or damaged ones made here."""

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.datasets import DatasetError, DatasetNotFoundError, fetch_internet_ads

NAMES = """| comment: none

ad, nonad | classes.

height: continuous.
width: continuous.
aratio: continuous.
local: 0,1.
| 2 features from url terms
url*images+buttons: 0,1.
url*http://x: 0,1.
origurl*labyrinth: 0,1.
ancurl*go: 0,1.
alt*your: 0,1.
caption*and: 0,1.
"""
DATA = """ 125, 60,2.0,1,1,0,1,0,0,1,ad.
   ?,   ?,   ?,1,0,0,0,1,0,0,nonad.
  10,  10,   1,?,0,1,0,0,1,0,nonad.
   ?,   ?,   ?,?,0,0,0,0,0,0,nonad.
"""


def write_archive(folder, data=DATA, names=NAMES, name="ad-dataset.zip"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ad.data", data)
        archive.writestr("ad.names", names.encode("latin-1"))
    (folder / name).write_bytes(buffer.getvalue())


@pytest.fixture(scope="session")
def published(data_folder):
    return fetch_internet_ads(data_home=data_folder, geometry="published")


def test_the_published_file(published):
    assert isinstance(published.data, sp.csr_array)
    assert published.data.shape == (3279, 1558)
    assert published.views == {"image": slice(0, 587), "context": slice(587, 1554), "geometry": slice(1554, 1558)}
    assert dict(zip(published.target_names.tolist(), np.bincount(published.target).tolist(), strict=True)) == {
        "nonad": 2820,
        "ad": 459,
    }


def test_the_phrases_of_the_published_file(published):
    phrases = published.data[:, :1554].toarray()
    assert set(np.unique(phrases)) == {0, 1}
    assert phrases.sum() == 39_356
    image, context = phrases[:, published.views["image"]], phrases[:, published.views["context"]]
    empty = ~image.any(axis=1), ~context.any(axis=1)
    assert (empty[0].sum(), empty[1].sum(), (empty[0] & empty[1]).sum()) == (335, 484, 176)
    assert len(np.unique(phrases, axis=0)) == 1938
    assert len(np.unique(np.column_stack([phrases, published.target]), axis=0)) == 1938 + 14


def test_the_columns_of_the_published_file(published):
    terms = [name.split("__")[1].split("*")[0] for name in published.feature_names]
    assert {term: terms.count(term) for term in ("url", "alt", "caption", "origurl", "ancurl")} == {
        "url": 457,
        "alt": 111,
        "caption": 19,
        "origurl": 495,
        "ancurl": 472,
    }
    on = [published.feature_names[column] for column in np.flatnonzero(published.data[[0], :1554].toarray())]
    assert on[:2] == ["image__url*doubleclick.net", "image__url*sponsor"]
    assert "context__ancurl*jump" in on


def test_the_geometry_as_published(published):
    geometry = published.data[:, published.views["geometry"]].toarray()
    assert geometry[0].tolist() == [125, 125, 1, 1]
    assert np.isnan(geometry).sum(axis=0).tolist() == [903, 901, 910, 15]
    assert published.missing.sum(axis=0).tolist() == [0, 0, 5]
    assert np.isnan(geometry[published.missing[:, 2]]).all()
    assert len(np.unique(np.nan_to_num(published.data.toarray(), nan=-1), axis=0)) == 2420


def test_the_geometry_complete_or_missing(data_folder, published):
    bunch = fetch_internet_ads(data_home=data_folder, geometry="complete")
    geometry = bunch.data[:, bunch.views["geometry"]].toarray()
    assert bunch.missing.sum(axis=0).tolist() == [0, 0, 920]
    np.testing.assert_array_equal(np.isnan(geometry), np.repeat(bunch.missing[:, [2]], 4, axis=1))
    whole = ~bunch.missing[:, 2]
    np.testing.assert_array_equal(geometry[whole], published.data[:, 1554:].toarray()[whole])


@pytest.mark.parametrize("fact", ["459", "2820", "1938", "2420", "335", "484", "176", "920", "CC BY 4.0"])
def test_the_description_states_the_facts(published, fact):
    assert fact in published.DESCR


def test_a_small_archive_loads_unverified(tmp_path):
    write_archive(tmp_path)
    bunch = fetch_internet_ads(data_home=tmp_path, verify=False)
    assert bunch.feature_names == [
        "image__url*images+buttons",
        "image__url*http://x",
        "image__alt*your",
        "image__caption*and",
        "context__origurl*labyrinth",
        "context__ancurl*go",
    ]
    np.testing.assert_array_equal(
        bunch.data.toarray(), [[1, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1], [0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]]
    )
    assert bunch.target.tolist() == [1, 0, 0, 0]
    assert not bunch.missing.any()


@pytest.mark.parametrize(("geometry", "missing"), [("published", [0, 0, 0, 1]), ("complete", [0, 1, 1, 1])])
def test_the_geometry_of_a_small_archive(tmp_path, geometry, missing):
    write_archive(tmp_path)
    bunch = fetch_internet_ads(data_home=tmp_path, verify=False, geometry=geometry, as_frame=True)
    assert bunch.missing[:, 2].tolist() == [bool(flag) for flag in missing]
    assert bunch.data["geometry__height"].isna().tolist() == [False, True, geometry == "complete", True]


def test_an_altered_archive_is_refused(tmp_path):
    write_archive(tmp_path)
    with pytest.raises(DatasetError, match="truncated, altered or a different file"):
        fetch_internet_ads(data_home=tmp_path)


def test_the_archive_of_uci_has_its_counts_checked(tmp_path):
    write_archive(tmp_path, name="internet+advertisements.zip")
    with pytest.raises(DatasetError, match=r"\{'nonad': 3, 'ad': 1\} rows .* expected \{'nonad': 2820, 'ad': 459\}"):
        fetch_internet_ads(data_home=tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (DATA.replace("nonad.", "maybe."), "class 'maybe.'"),
        (DATA[:-12], "not a table of numbers"),
        (DATA.replace("125", "wide"), "not a table of numbers"),
        ("1,2,ad.\n", "2 feature columns, ad.names has 10"),
        (DATA.replace("2.0,1,1", "2.0,1,7"), "other than 0 and 1"),
        (DATA.replace("2.0,1,1", "2.0,1,?"), "other than 0 and 1"),
    ],
)
def test_data_of_another_format_are_a_dataset_error(tmp_path, data, message):
    write_archive(tmp_path, data)
    with pytest.raises(DatasetError, match=message):
        fetch_internet_ads(data_home=tmp_path, verify=False)


def test_an_empty_table_is_a_dataset_error(tmp_path):
    write_archive(tmp_path, data="")
    with pytest.raises(DatasetError, match=r"ad.data has no rows"):
        fetch_internet_ads(data_home=tmp_path, verify=False)


def test_names_without_geometry_are_a_dataset_error(tmp_path):
    write_archive(tmp_path, names=NAMES.replace("aratio", "ratio"))
    with pytest.raises(DatasetError, match=r"ad.names has no column aratio"):
        fetch_internet_ads(data_home=tmp_path, verify=False, geometry="complete")


def test_an_unknown_geometry_is_an_error():
    with pytest.raises(ValueError, match=r"geometry must be .* got 'all'"):
        fetch_internet_ads(geometry="all")


def test_no_file_and_no_network():
    with pytest.raises(DatasetNotFoundError, match=r"archive.ics.uci.edu/dataset/51"):
        fetch_internet_ads()
