"""Which rows are equal, in whatever form they are stored."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cmvmed.data.row_hashes import numbers_of_equal, numbers_of_joined, row_contents
from tests.core.factories import rejects


def equal_pairs(contents):
    return np.array([[first == second for second in contents] for first in contents])


def check_contents(contents_of, matrix):
    """Contents are equal where all entries are."""
    dense = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=float)
    np.testing.assert_array_equal(equal_pairs(contents_of(matrix)), (dense[:, None] == dense).all(axis=2))


FORMS = {
    "double": np.asarray,
    "single": lambda rows: rows.astype(np.float32),
    "whole numbers": lambda rows: rows.astype(int),
    "truth values": lambda rows: rows.astype(bool),
    "sparse rows": sparse.csr_matrix,
    "sparse columns": sparse.csc_matrix,
    "sparse entries": sparse.coo_array,
}


@pytest.mark.parametrize("form", FORMS)
def test_contents_are_equal_if_rows_are(form):
    matrix = FORMS[form](np.random.default_rng(0).integers(0, 2, size=(30, 4)) * 1.0)
    check_contents(row_contents, matrix)
    rejects(check_contents, lambda given: row_contents(given)[::-1], matrix)
    rejects(check_contents, lambda given: [content[:4] for content in row_contents(given)], matrix)


def test_negative_zero_is_zero_and_missing_values_are_equal():
    contents = row_contents(np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [np.nan, 1.0]]))
    assert contents[0] == contents[1] != contents[2]
    assert contents[2] == contents[3]


def test_the_form_in_which_sparse_rows_are_stored_does_not_matter():
    """The second row has its entries in another order, an explicit zero, and an entry in two parts."""
    data, columns = [1.0, 2.0, 1.5, 0.0, 1.0, 0.5, 2.0], [0, 2, 2, 1, 0, 2, 2]
    stored = sparse.csr_matrix((data, columns, [0, 2, 6, 7]), shape=(3, 3))
    np.testing.assert_array_equal(stored.toarray(), [[1.0, 0.0, 2.0], [1.0, 0.0, 2.0], [0.0, 0.0, 2.0]])
    check_contents(row_contents, stored)
    assert stored.nnz == 7  # the given matrix is left as it was


def test_numbers_count_distinct_contents_in_the_order_of_the_rows():
    contents = [(b"b", None), (b"a", b"x"), (b"b", None), (b"b", b"x"), (b"a", b"x")]
    assert numbers_of_equal(contents).tolist() == [0, 1, 0, 2, 1]
    assert numbers_of_equal([]).size == 0


def test_rows_that_agree_in_one_of_two_numberings_are_joined():
    first, second = np.array([0, 1, 2, 1, 3]), np.array([0, 1, 0, 2, 2])
    assert numbers_of_joined(first, second).tolist() == [0, 1, 0, 1, 1]
    assert numbers_of_joined(first[:0], second[:0]).size == 0
