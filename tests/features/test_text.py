import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.estimator_checks import check_estimator

from cmvmed.features import TextView

DOCUMENTS = ["the course has homework", "homework due friday", "faculty of the department", "course course homework"]


def test_default_is_tf_idf_of_unit_length():
    features = TextView().fit_transform(DOCUMENTS)
    assert issparse(features)
    np.testing.assert_allclose(features.toarray(), TfidfVectorizer().fit_transform(DOCUMENTS).toarray(), rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(features.toarray(), axis=1), 1.0, rtol=1e-12)


def test_counts_and_binary_without_length():
    counts = TextView(weighting="counts", unit_length=False, sparse_output=False).fit(DOCUMENTS)
    column = list(counts.get_feature_names_out()).index("course")
    np.testing.assert_array_equal(counts.transform(DOCUMENTS)[:, column], [1, 0, 0, 2])
    binary = TextView(weighting="binary", unit_length=False, sparse_output=False).fit_transform(DOCUMENTS)
    np.testing.assert_array_equal(binary[:, column], [1, 0, 0, 1])


@pytest.mark.parametrize("sparse", [True, False])
def test_documents_without_known_words_are_missing_views(sparse):
    view = TextView(sparse_output=sparse).fit(DOCUMENTS)
    features = view.transform(["", "homework friday", None, np.nan, "unknown words only"])
    dense = features.toarray() if sparse else features
    np.testing.assert_array_equal(np.isnan(dense).all(axis=1), [True, False, True, True, True])
    np.testing.assert_allclose(dense[1], view.vectorizer_.transform(["homework friday"]).toarray()[0], rtol=1e-12)


def test_documents_without_known_words_may_be_zero():
    features = TextView(empty="zero").fit(DOCUMENTS).transform(["", "homework"])
    np.testing.assert_allclose(features.sum(axis=1), [[0.0], [1.0]], rtol=1e-12)


def test_empty_documents_do_not_change_vocabulary_or_idf():
    with_empty = TextView().fit([*DOCUMENTS, "", None])
    without = TextView().fit(DOCUMENTS)
    np.testing.assert_array_equal(with_empty.vectorizer_.idf_, without.vectorizer_.idf_)


def test_vocabulary_options_reach_the_vectorizer():
    view = TextView(max_features=2, stop_words=["the"], ngram_range=(1, 1)).fit(DOCUMENTS)
    assert list(view.get_feature_names_out()) == ["course", "homework"]


@pytest.mark.parametrize(
    "make",
    [list, tuple, np.array, pd.Series, pl.Series, lambda d: pd.DataFrame({"text": d}), lambda d: np.array([d]).T],
)
def test_all_containers_of_documents(make):
    expected = TextView(sparse_output=False).fit_transform(DOCUMENTS)
    np.testing.assert_array_equal(TextView(sparse_output=False).fit_transform(make(DOCUMENTS)), expected)


def test_pandas_missing_values_are_absent_documents():
    column = pd.Series(["homework", None, pd.NA], dtype=object)
    features = TextView(sparse_output=False).fit_transform(column)
    np.testing.assert_array_equal(np.isnan(features[:, 0]), [False, True, True])


def test_frame_output():
    frame = TextView(sparse_output=False).set_output(transform="pandas").fit_transform(DOCUMENTS)
    assert "homework" in frame.columns


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        ("one document", TypeError, "Pass a list"),
        ([1, 2], TypeError, "Document 0 must be a str"),
        (["", None], ValueError, "All documents are empty"),
        (np.array([["a", "b"]]), ValueError, "one column"),
    ],
)
def test_invalid_documents_are_named(documents, error, message):
    with pytest.raises(error, match=message):
        TextView().fit(documents)


@pytest.mark.parametrize("options", [{"weighting": "bm25"}, {"empty": "drop"}])
def test_invalid_options_are_named(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        TextView(**options).fit(DOCUMENTS)


def test_clone_and_unfitted():
    view = clone(TextView(weighting="counts", min_df=2))
    assert view.get_params()["min_df"] == 2
    with pytest.raises(NotFittedError):
        view.transform(DOCUMENTS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks():
    check_estimator(TextView(), on_skip=None)
