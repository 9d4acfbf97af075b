"""WebKB course pages: web pages of computer science departments, home page of a course or not."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfTransformer

from cmvmed.datasets.archives import gunzip, tar_files
from cmvmed.datasets.bunch import Dataset, View, missing_rows, to_bunch
from cmvmed.datasets.descriptions import describe
from cmvmed.datasets.errors import DatasetError
from cmvmed.datasets.html_text import html_to_text
from cmvmed.datasets.locations import DataFile, Lookup, find, read, read_checked
from cmvmed.datasets.matfile import read_arrays

HOME = "http://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51/www"
RAW_ARCHIVE = DataFile(
    name="course-cotrain-data.tar.gz",
    folder="webkb_course",
    url="https://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51/www/co-training/data/course-cotrain-data.tar.gz",
    home=f"{HOME}/co-training/data/course-cotrain-data.tar.gz",
    max_bytes=16_000_000,
    sha256=(
        # The copy that the facts in DESCR were counted in; then the archive at CMU, as other projects recorded it.
        "7d984a8c897db1c80e4bcbb3378d744940819daecf3968f30d81f96218bca222",
        "1f0d9d7f55c90754e7581272d67613e7c358323e44e2b84c438bed063653e7db",
    ),
)
FEATURES_FILE = DataFile(
    name="WebKB.mat",
    folder="webkb_course",
    url="https://raw.githubusercontent.com/benyangxjtu/EMKMC/105aff81da2eb11942caa177f87039585c794e0d/WebKB.mat",
    home="https://github.com/benyangxjtu/EMKMC (WebKB.mat)",
    max_bytes=16_000_000,
    sha256=("1a9cd6bc1b0dac7e6290779ff3bc792bb01307ca0b80851632abfc0b5ac426d8",),
)
SPLITS_FILE = DataFile(
    name="PAGELINK.mat",
    folder="webkb_course",
    url="",  # read where it is there, never asked for
    home="https://github.com/Multiviewdata/dataset4 (PAGELINK.mat)",
    max_bytes=16_000_000,
    sha256=("664d165f1831bcf2584c72d45aed8fe87e93eab5a4d7a957f17cc3be536fac97",),
)
MAX_TAR_BYTES, MAX_PAGE_BYTES = 64_000_000, 100_000

ROWS, PAGE_WIDTH, LINK_WIDTH = 1051, 3000, 1840
N_SPLITS, LABELS_PER_SPLIT = 100, 12
TARGET_NAMES = ["non-course", "course"]
CLASS_COUNTS = [821, 230]

# Runs of letters, so that "CS414" and "CS537" both say "cs"; scikit-learn's own pattern takes each for a new word.
WORD = r"[^\W\d_]{2,}"
# Words of scikit-learn's list that carry meaning on a page of a computer science department.
CONTENT_WORDS = {
    "amount",
    "bill",
    "bottom",
    "cry",
    "describe",
    "detail",
    "fire",
    "front",
    "interest",
    "mill",
    "move",
    "next",
}
CONTENT_WORDS |= {"serious", "side", "sincere", "system", "top"}


@dataclass(frozen=True)
class _Pages:
    names: list[str]
    page_texts: list[str]
    link_texts: list[str]
    target: NDArray[np.int64]


def fetch_webkb_course(
    *,
    preprocessed: bool = False,
    max_words: int | None = 3000,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    verify: bool = True,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load the WebKB course pages: the words of a page and the words of the links to it as two views.

    Parameters
    ----------
    preprocessed : bool, default=False
        False: compute tf-idf features from the raw html, with a vocabulary chosen without labels. True: the 3000 +
        1840 features of the paper from WebKB.mat, whose vocabulary was chosen with all labels in sight, and the
        published splits.
    max_words : int or None, default=3000
        With ``preprocessed=False``, keep in each view at most so many words, those found in the most pages. None
        keeps all.
    data_home : path, optional
        Folder that holds the files, either in a subfolder ``webkb_course`` or directly; searched before the folder in
        the environment variable ``CMVMED_DATA`` and the download cache.
    download_if_missing : bool, default=True
        Download the file if no folder has it.
    verify : bool, default=True
        Check the file's SHA-256, and the numbers of rows and classes.
    as_frame : bool, default=False
        Return ``data`` (dense) and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        See :func:`cmvmed.datasets.bunch.to_bunch`; ``data`` is a CSR array with 1051 rows. Raw: ``page_names`` (1051,).
        Preprocessed: ``splits``, shape (100, 12), or None where PAGELINK.mat is not there.

    Raises
    ------
    DatasetError
        If a file is truncated, altered, hostile or of another format.
    DatasetNotFoundError
        If a file is nowhere and cannot be downloaded.
    """
    lookup = Lookup(data_home, download_if_missing, verify)
    if max_words is not None and max_words < 1:
        raise ValueError(f"max_words={max_words} leaves no word; give at least 1, or None for all.")
    dataset = _preprocessed(lookup) if preprocessed else _from_html(lookup, max_words)
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _from_html(lookup: Lookup, max_words: int | None) -> Dataset:
    tar = gunzip(read(RAW_ARCHIVE, lookup), name=RAW_ARCHIVE.name, max_bytes=MAX_TAR_BYTES)
    pages = _pages(tar_files(tar, name=RAW_ARCHIVE.name, max_member_bytes=MAX_PAGE_BYTES))
    if lookup.verify and np.bincount(pages.target, minlength=2).tolist() != CLASS_COUNTS:
        raise DatasetError(
            f"{RAW_ARCHIVE.name} holds {np.bincount(pages.target, minlength=2).tolist()} pages of {TARGET_NAMES}, "
            f"expected {CLASS_COUNTS}. Get it again, or pass verify=False to load it anyway."
        )
    views = {
        "page": _word_view(pages.page_texts, max_words, "page"),
        "link": _word_view(pages.link_texts, max_words, "link"),
    }
    descr = describe(
        "webkb_course_raw",
        rows=len(pages.names),
        n_page_texts=len(set(pages.page_texts)),
        page_width=views["page"].values.shape[1],
        link_width=views["link"].values.shape[1],
        page_missing=missing_rows(views["page"]).sum(),
        link_missing=missing_rows(views["link"]).sum(),
        kept_words="all words"
        if max_words is None
        else f"the {max_words:,} words found in the most pages (of equals the first)",
    )
    return Dataset(views, pages.target, TARGET_NAMES, descr, {"page_names": np.array(pages.names)})


def _pages(files: dict[str, bytes]) -> _Pages:
    """Pair the two texts of each page: members ``<any folder>/{fulltext,inlinks}/{course,non-course}/<page>``."""
    texts: dict[str, dict[tuple[str, str], str]] = {"fulltext": {}, "inlinks": {}}
    for member, content in files.items():
        parts = member.split("/")
        if len(parts) < 3 or parts[-3] not in texts or parts[-2] not in TARGET_NAMES:
            raise DatasetError(
                f"{RAW_ARCHIVE.name} holds {member!r}, which is no page of a view and a class: it is another archive."
            )
        text_of_page = texts[parts[-3]]
        if (parts[-2], parts[-1]) in text_of_page:
            raise DatasetError(f"{RAW_ARCHIVE.name} holds the {parts[-3]} of {parts[-1]!r} twice; it is refused.")
        text_of_page[parts[-2], parts[-1]] = html_to_text(content.decode("latin-1"))
    full, links = texts["fulltext"], texts["inlinks"]
    if alone := sorted(full.keys() ^ links.keys()):
        raise DatasetError(
            f"{RAW_ARCHIVE.name} holds the {alone[0][0]} page {alone[0][1]!r} in one view only "
            f"({len(alone)} in all): the archive is cut short or altered. Get it again."
        )
    if {label for label, _ in full} != set(TARGET_NAMES):
        raise DatasetError(
            f"{RAW_ARCHIVE.name} does not hold pages of both classes, {' and '.join(TARGET_NAMES)}. Get it again."
        )
    keys = sorted(full)
    target = np.array([TARGET_NAMES.index(label) for label, _ in keys], dtype=np.int64)
    return _Pages([name for _, name in keys], [full[key] for key in keys], [links[key] for key in keys], target)


def _word_view(texts: list[str], max_words: int | None, view: str) -> View:
    """Return tf-idf weights of unit length; a text without a word of the vocabulary is a missing view."""
    counter = CountVectorizer(stop_words=sorted(ENGLISH_STOP_WORDS - CONTENT_WORDS), token_pattern=WORD)
    try:
        counts = sp.csr_array(counter.fit_transform(texts))
    except ValueError as error:  # scikit-learn's word for an empty vocabulary
        raise DatasetError(f"{RAW_ARCHIVE.name} holds no words in the view {view}: it is another archive.") from error
    widespread = _most_widespread(counts, max_words)
    counts = counts[:, widespread]
    words = counter.get_feature_names_out()[widespread]
    missing = np.diff(counts.indptr) == 0
    return View(sp.csr_array(TfidfTransformer().fit_transform(counts)), words.tolist(), missing)


def _most_widespread(counts: sp.csr_array, max_words: int | None) -> NDArray[np.intp]:
    """Return, in column order, the columns with the highest document frequency; of equals the first."""
    document_frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.sort(np.argsort(-document_frequency, kind="stable")[:max_words])


def _preprocessed(lookup: Lookup) -> Dataset:
    shapes = {"PAGE": (ROWS, PAGE_WIDTH), "LINK": (ROWS, LINK_WIDTH), "Y": (ROWS, 1)}
    arrays = read_arrays(read(FEATURES_FILE, lookup), shapes, name=FEATURES_FILE.name)
    labels = arrays["Y"].ravel()
    if set(labels) != {1, 2} or not all(np.isfinite(arrays[view]).all() for view in ("PAGE", "LINK")):
        raise DatasetError(
            f"{FEATURES_FILE.name} does not hold just the classes 1 and 2, or a feature is not finite. Get it again."
        )
    splits = _published_splits(lookup)
    views = {"page": _weights_view(arrays["PAGE"]), "link": _weights_view(arrays["LINK"])}
    descr = describe("webkb_course_preprocessed", splits="None" if splits is None else "there")
    return Dataset(views, (labels == 1).astype(np.int64), TARGET_NAMES, descr, {"splits": splits})


def _weights_view(weights: NDArray[np.float64]) -> View:
    return View(
        sp.csr_array(weights),
        [f"{column:04d}" for column in range(weights.shape[1])],
        missing=np.asarray(~weights.any(axis=1)),
    )


def _published_splits(lookup: Lookup) -> NDArray[np.intp] | None:
    """Return the rows of each split, shape (100, 12), counted from 0; None where the file is not there."""
    path = find(SPLITS_FILE, lookup)
    if path is None:
        return None
    shapes = {"idxLabs": (N_SPLITS, LABELS_PER_SPLIT)}
    one_based = read_arrays(read_checked(path, SPLITS_FILE, lookup), shapes, name=SPLITS_FILE.name)["idxLabs"]
    if not np.isin(one_based, np.arange(1, ROWS + 1)).all():
        raise DatasetError(f"{SPLITS_FILE.name} holds a row number outside 1 to {ROWS} in idxLabs. Get it again.")
    return one_based.astype(np.intp) - 1
