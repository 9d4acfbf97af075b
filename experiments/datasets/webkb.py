"""WebKB course pages: web pages of computer science departments, home pages of courses and others.

The text of a page is its content without markup, scripts and HTTP headers. ``html.parser`` of the standard library is
not used for two reasons: its treatment of invalid markup differs between versions of Python, and so would the features;
and its time is quadratic in the length of a page of unclosed tags. Here each ``<`` takes at most MAX_TAG_LENGTH steps.
"""

import html
import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfTransformer

from cmvmed.datasets.bunch import Dataset, View, missing_rows, to_bunch
from experiments.datasets.file_formats import gunzip, load_matrices, read_tar
from experiments.datasets.locations import (
    DataFile,
    DatasetError,
    FetchOptions,
    describe,
    find_file,
    read_file,
    read_verified,
)

HOMEPAGE = "http://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51/www"
RAW_ARCHIVE = DataFile(
    name="course-cotrain-data.tar.gz",
    folder="webkb_course",
    url="https://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51/www/co-training/data/course-cotrain-data.tar.gz",
    homepage=f"{HOMEPAGE}/co-training/data/course-cotrain-data.tar.gz",
    max_bytes=16_000_000,
    sha256=(
        # The copy in which the numbers of DESCR were counted, and the archive at CMU as recorded by other projects.
        "7d984a8c897db1c80e4bcbb3378d744940819daecf3968f30d81f96218bca222",
        "1f0d9d7f55c90754e7581272d67613e7c358323e44e2b84c438bed063653e7db",
    ),
)
FEATURES_FILE = DataFile(
    name="WebKB.mat",
    folder="webkb_course",
    url="https://raw.githubusercontent.com/benyangxjtu/EMKMC/105aff81da2eb11942caa177f87039585c794e0d/WebKB.mat",
    homepage="https://github.com/benyangxjtu/EMKMC (WebKB.mat)",
    max_bytes=16_000_000,
    sha256=("1a9cd6bc1b0dac7e6290779ff3bc792bb01307ca0b80851632abfc0b5ac426d8",),
    always_verify=True,
)
SPLITS_FILE = DataFile(
    name="PAGELINK.mat",
    folder="webkb_course",
    url="",  # optional: read if available
    homepage="https://github.com/Multiviewdata/dataset4 (PAGELINK.mat)",
    max_bytes=16_000_000,
    sha256=("664d165f1831bcf2584c72d45aed8fe87e93eab5a4d7a957f17cc3be536fac97",),
    always_verify=True,
)
MAX_TAR_BYTES, MAX_PAGE_BYTES = 64_000_000, 100_000

N_ROWS, PAGE_WIDTH, LINK_WIDTH = 1051, 3000, 1840
N_SPLITS, LABELS_PER_SPLIT = 100, 12
TARGET_NAMES = ["non-course", "course"]
CLASS_COUNTS = [821, 230]

# Sequences of letters, so that "CS414" and "CS537" both contain "cs"; in scikit-learn's pattern they are two words.
TOKEN_PATTERN = r"[^\W\d_]{2,}"
# Stop words of scikit-learn that are informative on a page of a computer science department.
CONTENT_WORDS = {"amount", "bill", "bottom", "cry", "describe", "detail", "fire", "front", "interest", "mill", "move"}
CONTENT_WORDS |= {"next", "serious", "side", "sincere", "system", "top"}

# A block of "Name: value" lines before the page, as sent by a web server.
HTTP_HEADER = re.compile(
    r"\A(?:HTTP/[^\n]*\n|(?i:mime-version|content-type|date|server):[^\n]*\n)(?:[\w-]+:[^\n]*\n)*+\r?\n"
)
MAX_TAG_LENGTH = 1000
TAG = re.compile(r"""<[a-zA-Z/!?](?:[^>"']++|"[^"]*"|'[^']*')*+>""")
COMMENT_END = re.compile(r"--\s*+>")
SCRIPT = re.compile(r"<(script|style)\b", re.IGNORECASE)
SCRIPT_END = re.compile(r"</(?:script|style)\b", re.IGNORECASE)


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
        1840 features of the paper from WebKB.mat, whose vocabulary was chosen with the labels of all pages, and
        the published splits.
    max_words : int or None, default=3000
        With ``preprocessed=False``, the largest number of words in each view; those with the highest document
        frequency are kept. None: keep all.
    data_home : path, optional
        Folder with the files, in its subfolder ``webkb_course`` or directly; searched before the folder in
        the environment variable ``CMVMED_DATA`` and the download cache.
    download_if_missing : bool, default=True
        Download the file if it is in no folder.
    verify : bool, default=True
        Check the SHA-256 of the file, and the numbers of rows and classes. The MATLAB files of
        ``preprocessed=True`` are always checked, because scipy does not read other content safely.
    as_frame : bool, default=False
        Return ``data`` (dense) and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        A Bunch as :func:`load_digits_views` returns; ``data`` is a CSR array with 1051 rows. Raw: ``page_names`` (1051,).
        Preprocessed: ``splits``, shape (100, 12), or None if PAGELINK.mat is not available.

    Raises
    ------
    DatasetError
        If a file is truncated, altered, malicious or of another format.
    DatasetNotFoundError
        If a file is not found and cannot be downloaded.

    Examples
    --------
    >>> from experiments.datasets import DatasetNotFoundError, fetch_webkb_course
    >>> try:
    ...     found = fetch_webkb_course(download_if_missing=False).data.shape[0]
    ... except DatasetNotFoundError:  # the files are not on this machine
    ...     found = 1051
    >>> found
    1051
    """
    options = FetchOptions(data_home, download_if_missing, verify)
    if max_words is not None and max_words < 1:
        raise ValueError(f"max_words must be at least 1, or None for all words, got {max_words}.")
    dataset = _preprocessed(options) if preprocessed else _from_html(options, max_words)
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _from_html(options: FetchOptions, max_words: int | None) -> Dataset:
    tar = gunzip(read_file(RAW_ARCHIVE, options), name=RAW_ARCHIVE.name, max_bytes=MAX_TAR_BYTES)
    pages = _pages(read_tar(tar, name=RAW_ARCHIVE.name))
    if options.verify and np.bincount(pages.target, minlength=2).tolist() != CLASS_COUNTS:
        raise DatasetError(
            f"{RAW_ARCHIVE.name} has {np.bincount(pages.target, minlength=2).tolist()} pages of {TARGET_NAMES}, "
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
        else f"the {max_words:,} words of highest document frequency (the first of equal ones)",
    )
    return Dataset(views, pages.target, TARGET_NAMES, descr, {"page_names": np.array(pages.names)})


def _pages(files: dict[str, bytes]) -> _Pages:
    """Pair the two texts of each page: members ``<any folder>/{fulltext,inlinks}/{course,non-course}/<page>``."""
    texts: dict[str, dict[tuple[str, str], str]] = {"fulltext": {}, "inlinks": {}}
    for member, content in files.items():
        parts = member.split("/")
        if len(parts) < 3 or parts[-3] not in texts or parts[-2] not in TARGET_NAMES:
            raise DatasetError(
                f"{RAW_ARCHIVE.name} has a member {member!r}, which is not a page of a view and a class: it is a "
                "different archive."
            )
        if len(content) > MAX_PAGE_BYTES:
            raise DatasetError(
                f"{RAW_ARCHIVE.name} has a page {member!r} of {len(content):,} bytes; no published page has more than "
                f"{MAX_PAGE_BYTES:,}."
            )
        view_texts = texts[parts[-3]]
        if (parts[-2], parts[-1]) in view_texts:
            raise DatasetError(f"{RAW_ARCHIVE.name} has the {parts[-3]} of {parts[-1]!r} twice. Get it again.")
        view_texts[parts[-2], parts[-1]] = html_to_text(content.decode("latin-1"))
    full, links = texts["fulltext"], texts["inlinks"]
    if unpaired := sorted(full.keys() ^ links.keys()):
        raise DatasetError(
            f"{RAW_ARCHIVE.name} has the {unpaired[0][0]} page {unpaired[0][1]!r} in one view only "
            f"({len(unpaired)} in all): the archive is truncated or altered. Get it again."
        )
    if {label for label, _ in full} != set(TARGET_NAMES):
        raise DatasetError(
            f"{RAW_ARCHIVE.name} does not have pages of both classes, {' and '.join(TARGET_NAMES)}. Get it again."
        )
    keys = sorted(full)
    target = np.array([TARGET_NAMES.index(label) for label, _ in keys], dtype=np.int64)
    return _Pages([name for _, name in keys], [full[key] for key in keys], [links[key] for key in keys], target)


def _word_view(texts: list[str], max_words: int | None, view: str) -> View:
    """Return tf-idf features with rows of length 1; the view is missing where no word of the vocabulary occurs."""
    vectorizer = CountVectorizer(stop_words=sorted(ENGLISH_STOP_WORDS - CONTENT_WORDS), token_pattern=TOKEN_PATTERN)
    try:
        counts = sp.csr_array(vectorizer.fit_transform(texts))
    except ValueError as error:  # raised by scikit-learn for an empty vocabulary
        raise DatasetError(f"{RAW_ARCHIVE.name} has no words in the view {view}: it is a different archive.") from error
    kept = _most_frequent_columns(counts, max_words)
    counts = counts[:, kept]
    words = vectorizer.get_feature_names_out()[kept]
    missing = np.diff(counts.indptr) == 0
    return View(sp.csr_array(TfidfTransformer().fit_transform(counts)), words.tolist(), missing)


def _most_frequent_columns(counts: sp.csr_array, max_words: int | None) -> NDArray[np.intp]:
    """Return, in column order, the columns of highest document frequency; the first of equal ones."""
    document_frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.sort(np.argsort(-document_frequency, kind="stable")[:max_words])


def _preprocessed(options: FetchOptions) -> Dataset:
    shapes = {"PAGE": (N_ROWS, PAGE_WIDTH), "LINK": (N_ROWS, LINK_WIDTH), "Y": (N_ROWS, 1)}
    matrices = load_matrices(read_file(FEATURES_FILE, options), shapes, name=FEATURES_FILE.name)
    labels = matrices["Y"].ravel()
    if set(labels) != {1, 2} or not all(np.isfinite(matrices[view]).all() for view in ("PAGE", "LINK")):
        raise DatasetError(
            f"{FEATURES_FILE.name} has classes other than 1 and 2, or a feature that is not finite. Get it again."
        )
    splits = _published_splits(options)
    views = {"page": _feature_view(matrices["PAGE"]), "link": _feature_view(matrices["LINK"])}
    descr = describe("webkb_course_preprocessed", splits="None" if splits is None else "available")
    return Dataset(views, (labels == 1).astype(np.int64), TARGET_NAMES, descr, {"splits": splits})


def _feature_view(weights: NDArray[np.float64]) -> View:
    return View(
        sp.csr_array(weights),
        [f"{column:04d}" for column in range(weights.shape[1])],
        missing=np.asarray(~weights.any(axis=1)),
    )


def _published_splits(options: FetchOptions) -> NDArray[np.intp] | None:
    """Return the rows of each split, shape (100, 12), counted from 0; None if the file is not available."""
    path = find_file(SPLITS_FILE, options)
    if path is None:
        return None
    shapes = {"idxLabs": (N_SPLITS, LABELS_PER_SPLIT)}
    one_based = load_matrices(read_verified(path, SPLITS_FILE, options), shapes, name=SPLITS_FILE.name)["idxLabs"]
    if not np.isin(one_based, np.arange(1, N_ROWS + 1)).all():
        raise DatasetError(f"{SPLITS_FILE.name} has a row number outside 1 to {N_ROWS} in idxLabs. Get it again.")
    return one_based.astype(np.intp) - 1


def html_to_text(page: str) -> str:
    """Return the text of a page without tags, scripts and HTTP header, with character references resolved."""
    page = HTTP_HEADER.sub("", page)
    last_comment_end = max((match.start() for match in COMMENT_END.finditer(page)), default=-1)
    pieces = []
    position = 0
    while (start := page.find("<", position)) >= 0:
        pieces.append(page[position:start])
        position = _end_of_markup(page, start, last_comment_end)
    pieces.append(page[position:])
    return html.unescape(" ".join(pieces))


def _end_of_markup(page: str, start: int, last_comment_end: int) -> int:
    """Return the position after the comment, script or tag at `start`, or after the ``<`` if it is none of them."""
    if page.startswith("<!--", start) and start <= last_comment_end and (end := COMMENT_END.search(page, start)):
        return end.end()
    if SCRIPT.match(page, start):
        script_end = SCRIPT_END.search(page, start)
        return len(page) if script_end is None else script_end.start()
    if tag := TAG.match(page, start, start + MAX_TAG_LENGTH):
        return tag.end()
    # A quotation or comment without an end: the markup ends at the next bracket.
    return page.find(">", start, start + MAX_TAG_LENGTH) + 1 or start + 1
