"""Bag-of-words features of documents, with tf-idf weights and unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from cmvmed.features.signal_blocks import is_absent

WORDS = r"(?u)\b\w\w+\b"  # at least two letters or digits
# What a model file may hold: another expression can take hours for one text, and a file may come from anyone.
SAVED_PATTERNS = (WORDS, r"(?u)\b\w+\b", r"\w+", r"\S+", r".")
Documents: TypeAlias = Sequence[str | float | None] | ArrayLike


class TextView(TransformerMixin, BaseEstimator):
    """Bag-of-words features of documents, computed by scikit-learn's ``TfidfVectorizer``.

    Parameters
    ----------
    weighting : {"tfidf", "counts", "binary"}
        Term frequency times inverse document frequency; term counts; or 1 for each term that occurs.
    unit_length : bool
        Scale each document to Euclidean length 1, so that long and short documents are comparable.
    empty : {"missing", "zero"}
        Features of a document without a term of the vocabulary (absent, empty, or only other words): a row of NaN,
        which marks the view as missing in this row, or a row of zeros.
    max_features : int, optional
        Keep the terms that are most frequent in all documents. The vocabulary does not depend on labels.
    min_df, max_df : int or float
        Smallest and largest number (int) or share (float) of documents that contain a term for it to be kept.
    stop_words : "english", list of str or None
        Words to omit.
    ngram_range : (int, int)
        Shortest and longest sequence of words used as a term.
    token_pattern : str
        Regular expression of a word. A model file can hold those of ``SAVED_PATTERNS`` only.
    sparse_output : bool
        Return a CSR matrix instead of a dense array, which DataFrame output needs. A missing row of a CSR matrix
        stores NaN in each column.

    Attributes
    ----------
    vectorizer_ : TfidfVectorizer
        The fitted vectorizer.

    Notes
    -----
    X holds one str per row: a list, an array, a DataFrame column, or a single-column frame. None and NaN are absent
    documents.

    Examples
    --------
    >>> documents = ["syllabus and homework", "homework due friday", ""]
    >>> TextView(sparse_output=False).fit_transform(documents).shape
    (3, 5)
    """

    def __init__(
        self,
        *,
        weighting: Literal["tfidf", "counts", "binary"] = "tfidf",
        unit_length: bool = True,
        empty: Literal["missing", "zero"] = "missing",
        max_features: int | None = None,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        stop_words: str | list[str] | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        token_pattern: str = WORDS,
        sparse_output: bool = True,
    ) -> None:
        self.weighting = weighting
        self.unit_length = unit_length
        self.empty = empty
        self.max_features = max_features
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.token_pattern = token_pattern
        self.sparse_output = sparse_output

    def fit(self, X: Documents, y: object = None) -> Self:
        """Learn the vocabulary and the document frequencies; labels are not used.

        Parameters
        ----------
        X : one str per row
        y : ignored
        """
        if self.weighting not in ("tfidf", "counts", "binary"):
            raise ValueError(f'weighting must be "tfidf", "counts" or "binary", got {self.weighting!r}.')
        if self.empty not in ("missing", "zero"):
            raise ValueError(f'empty must be "missing" or "zero", got {self.empty!r}.')
        documents = [text for text in _documents(X) if text.strip()]
        if not documents:
            raise ValueError("All documents are empty, so there is no vocabulary. Check the column passed as text.")
        self.vectorizer_ = self._vectorizer().fit(documents)
        return self

    def _vectorizer(self, terms: list[str] | None = None) -> TfidfVectorizer:
        """The vectorizer of these parameters, with a given vocabulary if there is one."""
        return TfidfVectorizer(
            use_idf=self.weighting == "tfidf",
            binary=self.weighting == "binary",
            norm="l2" if self.unit_length else None,
            max_features=self.max_features,
            min_df=self.min_df,
            max_df=self.max_df,
            stop_words=self.stop_words,
            ngram_range=self.ngram_range,
            token_pattern=self.token_pattern,
            vocabulary=terms,
        )

    def _to_model_file(self) -> dict[str, Any]:
        """The attributes for a model file: in place of the vectorizer what it learned, which all releases of scikit-learn have."""
        self._check_saved_pattern()
        attributes = dict(vars(self))
        vectorizer = attributes.pop("vectorizer_", None)
        if vectorizer is not None:
            attributes["terms_"] = vectorizer.get_feature_names_out().tolist()
            attributes["idf_"] = vectorizer.idf_ if vectorizer.use_idf else None
        return attributes

    def _from_model_file(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """The attributes of an estimator with these parameters: the inverse."""
        self._check_saved_pattern()
        attributes = dict(attributes)
        terms, idf = attributes.pop("terms_", None), attributes.pop("idf_", None)
        if terms is not None:
            vectorizer = self._vectorizer(terms).fit([""])  # nothing is learned of an empty document
            if vectorizer.use_idf:
                vectorizer.idf_ = idf
            attributes["vectorizer_"] = vectorizer
        return attributes

    def _check_saved_pattern(self) -> None:
        if self.token_pattern not in SAVED_PATTERNS:
            known = ", ".join(map(repr, SAVED_PATTERNS))
            raise ValueError(f"a model file can hold the token_pattern {known}, but not {self.token_pattern!r:.100}")

    def transform(self, X: Documents) -> csr_matrix | csr_array | NDArray[np.float64]:
        """Return the (n_documents, n_terms) features."""
        check_is_fitted(self)
        features: csr_matrix | csr_array = self.vectorizer_.transform(_documents(X))
        empty_rows = np.flatnonzero(np.diff(features.indptr) == 0)
        if self.empty == "missing" and len(empty_rows):
            features = _with_nan_rows(features, empty_rows)
        return features if self.sparse_output else features.toarray()

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the terms."""
        check_is_fitted(self)
        return np.asarray(self.vectorizer_.get_feature_names_out(), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        return tags


def _documents(X: Documents) -> list[str]:
    if isinstance(X, str):
        raise TypeError("Expected several documents, got one str. Pass a list of str.")
    values = X if isinstance(X, (list, tuple)) else np.asarray(X, dtype=object)
    if isinstance(values, np.ndarray):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"Documents must be one column of str, got shape {values.shape}. Choose one column.")
    return [_document(value, row) for row, value in enumerate(values)]


def _document(value: object, row: int) -> str:
    if isinstance(value, str):
        return value
    if is_absent(value):
        return ""
    raise TypeError(f"Document {row} must be a str (or None, NaN if absent), got {type(value).__name__}.")


def _with_nan_rows(features: csr_matrix | csr_array, rows: NDArray[np.int64]) -> csr_matrix | csr_array:
    """Return the features with NaN in all columns of the given rows, which have no stored values."""
    n_rows, n_columns = features.shape
    lengths = np.diff(features.indptr)
    lengths[rows] = n_columns
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    filled = np.repeat(np.isin(np.arange(n_rows), rows), lengths)
    data, indices = np.full(indptr[-1], np.nan), np.empty(indptr[-1], dtype=np.int64)
    data[~filled], indices[~filled] = features.data, features.indices
    indices[filled] = np.tile(np.arange(n_columns), len(rows))
    return type(features)((data, indices, indptr), shape=features.shape)
