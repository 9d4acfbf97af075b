"""WebKB course pages: the published files, and small or damaged ones made here."""

import gzip
import hashlib
import io
import shutil
import tarfile
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from experiments.datasets import DatasetError, DatasetNotFoundError, fetch_webkb_course, webkb
from experiments.datasets.webkb import MAX_PAGE_BYTES, html_to_text

PAGES = {
    "fulltext/course/cs302": "<html><title>CS302 Programming</title> the systems class",
    "inlinks/course/cs302": "CS302 Programming\n",
    "fulltext/course/cs414": "<html>Operating systems",
    "inlinks/course/cs414": "here\n",
    "fulltext/non-course/jane": "<p>Jane&apos;s home page, programming",
    "inlinks/non-course/jane": "Jane CS\n",
}


def write_archive(folder, pages, top="course-cotrain-data"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in pages.items():
            content = text.encode("latin-1")
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (folder / "course-cotrain-data.tar.gz").write_bytes(gzip.compress(buffer.getvalue()))


def row_norms(data):
    return np.sqrt((data.multiply(data)).sum(axis=1))


@pytest.fixture(scope="session")
def raw(data_folder):
    return fetch_webkb_course(data_home=data_folder)


@pytest.fixture(scope="session")
def preprocessed(data_folder):
    return fetch_webkb_course(data_home=data_folder, preprocessed=True)


class TestPublishedHtml:
    def test_rows_classes_and_widths(self, raw):
        assert isinstance(raw.data, sp.csr_array)
        assert raw.data.shape == (1051, 3000 + 1754)
        assert raw.views == {"page": slice(0, 3000), "link": slice(3000, 4754)}
        assert raw.target_names.tolist() == ["non-course", "course"]
        assert np.bincount(raw.target).tolist() == [821, 230]

    def test_seven_pages_have_no_link_view(self, raw):
        assert raw.missing.sum(axis=0).tolist() == [0, 7]
        link = raw.data[:, raw.views["link"]].toarray()
        np.testing.assert_array_equal(np.isnan(link), np.repeat(raw.missing[:, [1]], link.shape[1], axis=1))
        assert "http:^^www.cs.utexas.edu^users^wilson^cs345.html" in raw.page_names[raw.missing[:, 1]]

    def test_rows_have_length_one(self, raw):
        for view, missing in zip(raw.views.values(), raw.missing.T, strict=True):
            np.testing.assert_allclose(row_norms(raw.data[:, view])[~missing], 1, rtol=1e-12)

    def test_words(self, raw):
        assert "page__homework" in raw.feature_names
        assert not {"page__the", "link__here"} & set(raw.feature_names)
        assert "link__cs" in raw.feature_names

    def test_a_known_page(self, raw):
        page = "http:^^cs.cornell.edu^Info^Courses^Current^CS415^CS414.html"
        row = raw.page_names.tolist().index(page)
        columns = np.flatnonzero(raw.data[[row], raw.views["link"]].toarray())
        assert {raw.feature_names[3000 + column] for column in columns} == {
            "link__cs",
            "link__operating",
            "link__system",
        }
        assert raw.target_names[raw.target[row]] == "course"

    @pytest.mark.parametrize("fact", ["1051", "230", "821", "3,000 columns", "1,754 columns", "no label", "7 in link"])
    def test_the_description_states_the_facts(self, raw, fact):
        assert fact in raw.DESCR

    def test_the_vocabulary_does_not_depend_on_the_labels(self, raw, data_folder, tmp_path):
        archive = data_folder / "webkb_course" / "course-cotrain-data.tar.gz"
        with tarfile.open(archive) as members:
            pages = {m.name: members.extractfile(m).read().decode("latin-1") for m in members if m.isfile()}
        other_class = {"course": "non-course", "non-course": "course"}
        parts = {name: name.split("/") for name in pages}
        moved = {f"{view}/{other_class[label]}/{page}": pages[name] for name, (_, view, label, page) in parts.items()}
        write_archive(tmp_path, moved)
        relabeled = fetch_webkb_course(data_home=tmp_path, verify=False)
        assert np.bincount(relabeled.target).tolist() == [230, 821]
        assert relabeled.feature_names == raw.feature_names


class TestPublishedFeatures:
    def test_rows_classes_and_widths(self, preprocessed):
        assert isinstance(preprocessed.data, sp.csr_array)
        assert preprocessed.data.shape == (1051, 4840)
        assert preprocessed.views == {"page": slice(0, 3000), "link": slice(3000, 4840)}
        assert np.bincount(preprocessed.target).tolist() == [821, 230]
        assert preprocessed.target[:230].all()

    def test_zero_rows_are_missing_views(self, preprocessed):
        assert [np.flatnonzero(column).tolist() for column in preprocessed.missing.T] == [
            [281, 494, 710, 837, 885],
            [33, 145, 538, 695, 982],
        ]
        for view, missing in zip(preprocessed.views.values(), preprocessed.missing.T, strict=True):
            block = preprocessed.data[:, view]
            assert np.isnan(block[missing].toarray()).all()
            np.testing.assert_allclose(row_norms(block)[~missing], 1, rtol=1e-12)

    def test_known_values(self, preprocessed):
        np.testing.assert_allclose(preprocessed.data[0, :3].toarray(), [0.05255296, 0.11017576, 0.04758729], atol=1e-8)

    def test_the_published_splits(self, preprocessed):
        splits = preprocessed.splits
        assert splits.shape == (100, 12)
        assert (splits.min(), splits.max()) == (1, 1050)
        distinct = np.array([len(set(split)) for split in splits.tolist()])
        assert np.flatnonzero(distinct != 12).tolist() == [59, 72, 97]
        assert distinct.min() == 11
        courses = preprocessed.target[splits].sum(axis=1)
        assert (courses.min(), courses.max()) == (1, 8)

    @pytest.mark.parametrize("fact", ["1051", "label leak", "information gain", "1.4", "5 rows of page", "(100, 12)"])
    def test_the_description_states_the_facts(self, preprocessed, fact):
        assert fact in preprocessed.DESCR

    def test_without_the_splits_file_there_are_no_splits(self, preprocessed, data_folder, tmp_path):
        shutil.copy(data_folder / "webkb_course" / "WebKB.mat", tmp_path)
        bunch = fetch_webkb_course(data_home=tmp_path, preprocessed=True)
        assert bunch.splits is None
        np.testing.assert_array_equal(bunch.target, preprocessed.target)

    def test_a_renamed_file_is_refused(self, data_folder, tmp_path):
        shutil.copy(data_folder / "webkb_course" / "PAGELINK.mat", tmp_path / "WebKB.mat")
        with pytest.raises(DatasetError, match="truncated, altered or a different file"):
            fetch_webkb_course(data_home=tmp_path, preprocessed=True)

    @pytest.mark.parametrize("verify", [True, False])
    def test_a_truncated_file_is_refused_even_unverified(self, data_folder, tmp_path, verify):
        data = (data_folder / "webkb_course" / "WebKB.mat").read_bytes()
        (tmp_path / "WebKB.mat").write_bytes(data[:-100_000])
        with pytest.raises(DatasetError, match="truncated, altered or a different file") as caught:
            fetch_webkb_course(data_home=tmp_path, preprocessed=True, verify=verify)
        assert "verify=False" not in str(caught.value)  # which would not help


def test_the_environment_variable_names_the_folder(data_folder, monkeypatch):
    monkeypatch.setenv("CMVMED_DATA", str(data_folder))
    assert fetch_webkb_course(preprocessed=True).data.shape == (1051, 4840)


class TestSmallArchive:
    def test_words_missing_views_and_order(self, tmp_path):
        write_archive(tmp_path, PAGES)
        bunch = fetch_webkb_course(data_home=tmp_path, verify=False, as_frame=True)
        assert bunch.page_names.tolist() == ["cs302", "cs414", "jane"]
        assert bunch.target.tolist() == [1, 1, 0]
        assert bunch.missing.tolist() == [[False, False], [False, True], [False, False]]
        assert bunch.feature_names == [
            *[
                f"page__{word}"
                for word in ("class", "cs", "home", "jane", "operating", "page", "programming", "systems")
            ],
            *[f"link__{word}" for word in ("cs", "jane", "programming")],
        ]
        assert bunch.data.loc[1].filter(like="link__").isna().all()
        np.testing.assert_array_equal(bunch.data.loc[0, ["page__cs", "page__jane"]] > 0, [True, False])

    def test_the_most_frequent_words_are_kept(self, tmp_path):
        write_archive(tmp_path, PAGES)
        bunch = fetch_webkb_course(data_home=tmp_path, verify=False, max_words=2)
        assert bunch.feature_names == ["page__programming", "page__systems", "link__cs", "link__jane"]
        assert "the 2 words" in bunch.DESCR

    def test_the_first_of_equally_frequent_words_are_kept(self):
        everywhere = sp.csr_array(np.ones((2, 1000)))
        assert webkb._most_frequent_columns(everywhere, 600).tolist() == list(range(600))

    def test_all_words_are_kept(self, tmp_path):
        write_archive(tmp_path, PAGES)
        assert fetch_webkb_course(data_home=tmp_path, verify=False, max_words=None).data.shape == (3, 11)

    def test_weights_are_those_of_the_formula(self, tmp_path):
        write_archive(tmp_path, PAGES)
        bunch = fetch_webkb_course(data_home=tmp_path, verify=False)
        link = bunch.data[[0], bunch.views["link"]].toarray().ravel()
        idf = np.log((1 + 3) / (1 + np.array([2, 2, 1]))) + 1
        expected = np.array([1, 0, 1]) * idf
        np.testing.assert_allclose(link, expected / np.linalg.norm(expected), rtol=1e-12)

    def test_an_altered_archive_is_refused(self, tmp_path):
        write_archive(tmp_path, PAGES)
        with pytest.raises(DatasetError, match="truncated, altered or a different file"):
            fetch_webkb_course(data_home=tmp_path)

    def test_counts_are_checked_where_the_checksum_is_accepted(self, tmp_path, monkeypatch):
        write_archive(tmp_path, PAGES)
        monkeypatch.setattr(webkb, "RAW_ARCHIVE", webkb.DataFile("course-cotrain-data.tar.gz", "", "", "", 10_000))
        with pytest.raises(DatasetError, match=r"has \[1, 2\] pages .* expected \[821, 230\]"):
            fetch_webkb_course(data_home=tmp_path)

    @pytest.mark.parametrize(
        ("pages", "message"),
        [
            ({}, "does not have pages of both classes"),
            (
                {name: text for name, text in PAGES.items() if "non-course" in name},
                "does not have pages of both classes",
            ),
            (
                {name: text for name, text in PAGES.items() if name != "inlinks/course/cs302"},
                "'cs302' in one view only",
            ),
            ({**PAGES, "readme.txt": ""}, "not a page of a view and a class"),
            ({**PAGES, "fulltext/faculty/x": ""}, "not a page of a view and a class"),
            ({**PAGES, "../../x": ""}, "outside the destination"),
            ({**PAGES, "fulltext/course/x": "x" * 300_000}, "300,000 bytes; no published page"),
            (dict.fromkeys(PAGES, "the"), "no words in the view page"),
        ],
    )
    def test_an_archive_of_another_structure_is_a_dataset_error(self, tmp_path, pages, message):
        write_archive(tmp_path, pages)
        with pytest.raises(DatasetError, match=rf"course-cotrain-data.tar.gz .*{message}"):
            fetch_webkb_course(data_home=tmp_path, verify=False)

    @pytest.mark.parametrize(
        "content",
        [b"", b"PK\x03\x04 a zip archive", gzip.compress(b"not tar" * 1000, mtime=0)],
        ids=["empty", "zip", "gzip without tar"],  # a time stamp in an id would differ between the workers of one run
    )
    def test_a_file_that_is_not_an_archive_is_a_dataset_error(self, tmp_path, content):
        (tmp_path / "course-cotrain-data.tar.gz").write_bytes(content)
        with pytest.raises(DatasetError, match=r"course-cotrain-data.tar.gz"):
            fetch_webkb_course(data_home=tmp_path, verify=False)

    def test_the_same_page_in_two_top_folders_is_refused(self, tmp_path):
        write_archive(tmp_path, {**PAGES, "copy/fulltext/course/cs302": "other"})
        with pytest.raises(DatasetError, match="fulltext of 'cs302' twice"):
            fetch_webkb_course(data_home=tmp_path, verify=False)


class TestSmallFeatures:
    """Features files of the right shape, made here, so that their content can be wrong."""

    @pytest.fixture
    def write(self, tmp_path, monkeypatch):
        """Write the two files and accept their checksums."""

        def write(splits=None, **changes):
            self.write_files(tmp_path, splits, **changes)
            for name in ("FEATURES_FILE", "SPLITS_FILE"):
                file = getattr(webkb, name)
                digest = hashlib.sha256((tmp_path / file.name).read_bytes()).hexdigest()
                monkeypatch.setattr(webkb, name, replace(file, sha256=(digest,)))

        return write

    @staticmethod
    def write_files(folder, splits=None, **changes):
        arrays = {
            "PAGE": np.eye(1051, 3000),
            "LINK": np.eye(1051, 1840),
            "Y": np.repeat([[1], [2]], [230, 821], axis=0),
        }
        savemat(folder / "WebKB.mat", {**arrays, **changes}, do_compression=True)
        splits = np.tile(np.arange(1, 13), (100, 1)) if splits is None else splits
        savemat(folder / "PAGELINK.mat", {"idxLabs": splits}, do_compression=True)

    def test_splits_count_from_zero(self, tmp_path, write):
        write()
        bunch = fetch_webkb_course(data_home=tmp_path, preprocessed=True)
        assert bunch.splits[0].tolist() == list(range(12))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"Y": np.full((1051, 1), 3)}, "classes other than 1 and 2"),
            ({"Y": np.ones((1051, 1))}, "classes other than 1 and 2"),
            ({"Y": np.ones((1050, 1))}, "shape"),
            ({"LINK": np.full((1051, 1840), np.nan)}, "not finite"),
            ({"PAGE": "text"}, "Not a full matrix|shape"),
            ({"splits": np.zeros((100, 12))}, "outside 1 to 1051"),
            ({"splits": np.full((100, 12), 1052)}, "outside 1 to 1051"),
            ({"splits": np.full((100, 12), 1.5)}, "outside 1 to 1051"),
            ({"splits": np.ones((99, 12))}, "shape"),
        ],
    )
    def test_wrong_content_is_a_dataset_error(self, tmp_path, write, changes, message):
        write(**changes)
        with pytest.raises(DatasetError, match=message):
            fetch_webkb_course(data_home=tmp_path, preprocessed=True)

    @pytest.mark.parametrize("name", ["WebKB.mat", "PAGELINK.mat"])
    def test_a_file_of_unknown_checksum_is_never_parsed(self, tmp_path, monkeypatch, write, name):
        def refuse(*arguments, **options):
            raise AssertionError("parsed")

        write()
        with open(tmp_path / name, "ab") as stream:
            stream.write(bytes(8))
        monkeypatch.setattr(webkb, "load_matrices", refuse if name == "WebKB.mat" else webkb.load_matrices)
        with pytest.raises(DatasetError, match=rf"{name} has SHA-256"):
            fetch_webkb_course(data_home=tmp_path, preprocessed=True, verify=False)


def test_max_words_must_be_positive():
    with pytest.raises(ValueError, match="max_words must be at least 1"):
        fetch_webkb_course(max_words=0)


@pytest.mark.parametrize(("preprocessed", "home"), [(False, "theo-51"), (True, "benyangxjtu/EMKMC")])
def test_no_file_and_no_network(preprocessed, home):
    with pytest.raises(DatasetNotFoundError, match=home):
        fetch_webkb_course(preprocessed=preprocessed)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<title>CS 302</title><p>Home <b>page</b>", ["CS", "302", "Home", "page"]),
        ("&Uacute;lfar &amp; Co", ["Úlfar", "&", "Co"]),
        ("<p>before<script>var a = 'code';</script><style>p {}</style>after", ["before", "after"]),
        ("<!-- hidden --><IMG SRC='x.gif' alt='<--'>shown", ["shown"]),
        ("MIME-Version: 1.0\nServer: CERN/3.0\nContent-type: text/html\n\n<p>body", ["body"]),
        ("HTTP/1.0 200 OK\r\nDate: Monday\r\n\r\n<p>body", ["body"]),
        ("To contact me:\n\n<a>mail</a>", ["To", "contact", "me:", "mail"]),
        ("Note: not a header\n\nbody", ["Note:", "not", "a", "header", "body"]),
        ("", []),
        ("a < b <3 <", ["a", "b", "3"]),
        ("<!-- one --> two <!-- <b> three -- > four", ["two", "four"]),
        ("one <!-- never closed> two", ["one", "two"]),
        ("<a href='never closed>one</a> two", ["one", "two"]),
        ("one <a href", ["one", "a", "href"]),
        ("one <SCRIPT> never closed", ["one"]),
        ("<script>x</SCRIPT >one", ["one"]),
    ],
)  # fmt: skip
def test_markup_is_removed(page, words):
    assert html_to_text(page).split() == words


@pytest.mark.parametrize(
    "piece", ["<", "<a ", "<!--", "</", "<!-- -", "<a b='", '<a ">" ', "<script></", "&#", "Date: x\n"]
)
def test_the_time_for_the_largest_page_is_limited(piece):
    page = (piece * MAX_PAGE_BYTES)[:MAX_PAGE_BYTES]
    started = time.process_time()
    html_to_text(page)
    assert time.process_time() - started < 3
