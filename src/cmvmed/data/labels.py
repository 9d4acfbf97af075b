"""The labels y of a semi-supervised problem: which rows are labeled, and with which class.

This module alone decides what "unlabeled" means. Missing values (None, NaN, NaT, pandas.NA, nulls of a polars
series, masked entries) are unlabeled in every case; rows that equal the marker ``unlabeled`` (-1 as in scikit-learn
unless the user says otherwise) are unlabeled as well. A blank text, or one such as "unknown", is a class like any other
text, with a warning.
"""

from __future__ import annotations

import numbers
import re
import unicodedata
from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from cmvmed._warnings import warn_user

# Words, in lower case, that usually stand for a missing label and that no one uses as a class.
UNLABELED_WORDS = frozenset(
    """? ?? - nan nat na n/a #n/a <na> null unknown unlabeled unlabelled unclassified unannotated undefined undetermined unset
    missing todo tbd no_label no-label not_labeled not_labelled not-labeled not-labelled""".split()  # noqa: SIM905
) | {"no label", "not labeled", "not labelled", "to do"}
_LIKE_MARKERS = UNLABELED_WORDS | {"", "none", "-1", "-1.0"}  # also what numpy makes of None and -1.0
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"  # Cyrillic
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",  # Greek
    "ABEKMHOPCTYXaeopcyxiABEZHIKMNOPTYXo",
)
# Names instead of classes, so that pandas need not be imported to recognize its missing values.
_MISSING_TYPE_NAMES = frozenset({"NoneType", "NAType", "NaTType", "MaskedConstant"})


class SparseLabels(NamedTuple):
    """Labels of which the labeled rows have been found already."""

    rows: NDArray[np.intp]  # (m,) numbers of the labeled rows, ascending
    labels: Any  # (m,) their labels
    n_rows: int  # labeled or not


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of n rows as integer codes.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        The distinct labels in ascending order, as ``numpy.unique`` sorts them.
    codes : ndarray of intp, shape (n,)
        ``codes[i] = k`` when row i is labeled ``classes[k]``, and -1 when row i is unlabeled.
    """

    classes: NDArray[Any]
    codes: NDArray[np.intp]

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return len(self.classes)

    @property
    def labeled(self) -> NDArray[np.intp]:
        """Indices of the labeled rows, ascending, shape (n_labeled,)."""
        return np.flatnonzero(self.codes >= 0)

    @property
    def unlabeled(self) -> NDArray[np.intp]:
        """Indices of the unlabeled rows, ascending, shape (n_unlabeled,)."""
        return np.flatnonzero(self.codes < 0)

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of labeled rows of each class, shape (K,)."""
        return np.bincount(self.codes[self.labeled], minlength=self.n_classes)


def labeled_part(y: object, unlabeled: object = -1) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Take the labeled rows out of y; none, one or more classes may occur among them.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, see :func:`unlabeled_mask`.
    unlabeled : scalar, default=-1
        Value that marks an unlabeled row, see :func:`unlabeled_mask`.

    Returns
    -------
    rows : ndarray of intp, shape (m,)
        Indices of the labeled rows, ascending.
    labels : ndarray of shape (m,)
        Their labels. Integer, float and boolean labels keep their kind, strings become a numpy string array.

    Raises
    ------
    ValueError
        If y is not one column, mixes strings, numbers and booleans, or has a marker that its type cannot hold.
    """
    column = as_label_array(y)
    _check_unsigned(column, unlabeled)
    rows = np.flatnonzero(~unlabeled_mask(column, unlabeled))
    return rows, narrowed(column[rows])


def read_labels(y: object, unlabeled: object = -1) -> Labels:
    """Read and validate the labels of a classification problem with two or more classes.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, see :func:`unlabeled_mask`.
    unlabeled : scalar, default=-1
        Value that marks an unlabeled row, see :func:`unlabeled_mask`.

    Returns
    -------
    labels : Labels
        Classes, of the types :func:`labeled_part` gives, and codes.

    Raises
    ------
    ValueError
        If y is empty, not one column, continuous, a mixture of strings, numbers and booleans, or has labels of fewer
        than two classes; among the latter a y of only -1 and +1, whose -1 would be taken for the unlabeled marker.

    Warns
    -----
    UserWarning
        If a class is a blank text, such as the empty cells of a table leave, or one that usually marks unlabeled rows,
        such as "unknown" or "?": it counts as a class unless it is the marker. Also if classes look alike.
    """
    from sklearn.utils.multiclass import check_classification_targets  # slow to import

    column = as_label_array(y)
    if not len(column):
        raise ValueError("y is empty: it has 0 rows, but a fit needs labels of 2 classes or more.")
    rows, given = labeled_part(column, unlabeled)
    if not len(rows):
        raise ValueError(_no_label_message(len(column), unlabeled))
    _check_kinds(given)
    check_classification_targets(given)
    classes, codes_of_given = np.unique(given, return_inverse=True)
    if len(classes) < 2:
        collides = bool(equal_to_marker(column, unlabeled).any())
        raise ValueError(_one_class_message(classes[0], unlabeled, collides=collides))
    _warn_of_names(classes, codes_of_given)
    _warn_of_minus_one(classes, codes_of_given, unlabeled)
    codes = np.full(len(column), -1, dtype=np.intp)
    codes[rows] = codes_of_given
    return Labels(classes=classes, codes=codes)


def read_sparse_labels(found: SparseLabels, unlabeled: object = -1) -> Labels:
    """Read labels of which the labeled rows have been found already, with the checks of :func:`read_labels`."""
    rows, labels, n_rows = found
    if not len(rows):
        raise ValueError(_no_label_message(n_rows, unlabeled))
    another = [unlabeled] if len(rows) < n_rows else []  # the checks see that there are unlabeled rows
    read = read_labels(np.array([*labels, *another], dtype=object), unlabeled)
    codes = np.full(n_rows, -1, dtype=np.intp)
    codes[rows] = read.codes[: len(rows)]
    return Labels(read.classes, codes)


def labels_of_part(part: Sized, unlabeled: object) -> SparseLabels:
    """The labeled ones of some consecutive rows, for :func:`joined_labels`."""
    if len(part) == 0:
        return SparseLabels(np.empty(0, dtype=np.intp), [], 0)
    rows, labels = labeled_part(part, unlabeled)
    return SparseLabels(rows, labels.tolist(), len(part))


def joined_labels(parts: Iterable[SparseLabels]) -> SparseLabels:
    """The labeled rows of consecutive parts."""
    rows, labels, n_rows = [np.empty(0, dtype=np.intp)], [], 0
    for part_rows, part_labels, n_part in parts:
        rows.append(part_rows + n_rows)
        labels += part_labels
        n_rows += n_part
    return SparseLabels(np.concatenate(rows), np.array(labels, dtype=object), n_rows)


def _check_kinds(given: NDArray[Any]) -> None:
    """Raise for labels that are no classes."""
    if given.dtype.kind in "mMO":
        raise ValueError(
            f"y holds {given[0]!r} of type {type(given[0]).__name__}, but classes must be texts, whole numbers or booleans; "
            "name the class of each row, or convert the labels to texts if these are the classes."
        )
    if given.dtype.kind == "f" and np.isinf(given).any():
        raise ValueError("y contains infinity, which is not a class. Mark unlabeled rows by None, NaN or the marker.")


def check_known_classes(truth: NDArray[Any], classes: NDArray[Any]) -> None:
    """Compare the labels of a score with the classes of a fit.

    Parameters
    ----------
    truth : ndarray of shape (m,)
        True labels.
    classes : ndarray of shape (K,)
        The classes that predictions can be.

    Raises
    ------
    ValueError
        If no label is one of the classes, or one is spelled otherwise: the score would be wrong without notice.
    """
    given, known = set(truth.tolist()), set(classes.tolist())
    if not given & known:
        raise ValueError(
            f"None of the labels to score is a class that fit saw: y holds {_shown(given)}, the classes are "
            f"{_shown(known)}. Give the labels the type and spelling of the classes."
        )
    spelled = {_spelling(name): name for name in known if isinstance(name, str)}
    for label in sorted(name for name in given - known if isinstance(name, str)):
        if _spelling(label) in spelled:
            raise ValueError(
                f"y holds the label {label!r}, but fit saw the class {spelled[_spelling(label)]!r}; spell them alike."
            )


def _spelling(name: str) -> str:
    """A name without the differences that are likely mistakes: case and surrounding blanks."""
    return name.strip().casefold()


def appearance(name: str) -> str:
    """What two names that look alike have in common: letters of other alphabets, 01 and 1, forms of Unicode, case."""
    shown = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) not in ("Cf", "Cc"))
    number = re.fullmatch(r"\s*0*(\d+)(\.0*)?\s*", shown)
    return number[1] if number else _spelling(shown.translate(_LOOKALIKES))


def _shown(labels: set[Any]) -> str:
    ordered = sorted(labels, key=repr)
    return ", ".join(map(repr, ordered[:5])) + (f" and {len(ordered) - 5} more" if len(ordered) > 5 else "")


def _warn_of_names(classes: NDArray[Any], codes: NDArray[np.intp]) -> None:
    """Warn of classes that look like a marker of unlabeled rows, and of those that look like one class."""
    if classes.dtype.kind != "U":
        return
    markers = [k for k, name in enumerate(classes.tolist()) if _spelling(name) in _LIKE_MARKERS]
    for k in markers:
        name = classes[k].item()
        advice = f"pass unlabeled={name!r} or put None in its place" if len(markers) == 1 else "put None in its place"
        warn_user(
            f"{(codes == k).sum()} of {codes.size} labels in y are the {'blank ' if not name.strip() else ''}text {name!r}, "
            f"which counts as a class of its own. If it marks unlabeled rows, {advice}; if it is a class, give it another "
            "name."
        )
    alike: dict[str, list[str]] = {}
    for name in classes.tolist():
        alike.setdefault(appearance(name), []).append(name)
    for names in alike.values():
        if len(names) > 1:
            by_case = len(set(map(_spelling, names))) == 1
            how = "differ only by case or surrounding blanks" if by_case else "look alike"
            listed = ", ".join(map(repr if by_case else ascii, names))  # ascii shows what looks alike
            warn_user(
                f"The classes {listed} of y {how} and count as {len(names)} classes; spell them alike if they are one."
            )


def _check_unsigned(column: NDArray[Any], unlabeled: object) -> None:
    """Raise if a negative marker has become the largest number of an unsigned type, as -1 becomes 255."""
    if column.dtype.kind != "u" or label_family(unlabeled) != "number" or not unlabeled < 0:  # type: ignore[operator]
        return
    largest = np.iinfo(column.dtype).max
    n_largest = int((column == largest).sum())
    if n_largest and not (column == largest - 1).any():  # which would be a class beside it
        raise ValueError(
            f"y is of type {column.dtype}, which cannot hold the marker unlabeled={unlabeled!r}: -1 becomes {largest}, which "
            f"{n_largest} of {len(column)} rows have. Convert y to a signed type before rows are marked, or pass "
            f"unlabeled={largest}; if {largest} is a class, pass unlabeled=None."
        )


def _warn_of_minus_one(classes: NDArray[Any], codes: NDArray[np.intp], unlabeled: object) -> None:
    """Warn of a class -1 beside a marker that no number can equal; beside another number, it must be one of -1, 0, 1."""
    if unlabeled is None or classes.dtype.kind not in "if":
        return
    if label_family(unlabeled) == "number" and not is_missing(unlabeled):
        if classes[0] == -1 and classes[-1] > 1:
            raise ValueError(
                f"{(codes == 0).sum()} of {codes.size} labels in y are -1, which usually marks unlabeled rows, but the marker is "
                f"unlabeled={unlabeled!r}. Put None in place of both and pass unlabeled=None; if -1 is a class, give it another "
                "number."
            )
        return
    for k in np.flatnonzero(classes == -1):
        warn_user(
            f"{(codes == k).sum()} of {codes.size} labels in y are {classes[k].item()!r}, which counts as a class of its own, "
            f"because unlabeled={unlabeled!r} is not a number. If it marks unlabeled rows, pass unlabeled=-1; if it is a class, "
            "pass unlabeled=None."
        )


def _no_label_message(n_rows: int, unlabeled: object) -> str:
    marker = "" if unlabeled is None else f", or equal to the marker unlabeled={unlabeled!r}"
    return (
        f"y has no labels: all {n_rows} rows are unlabeled (None or NaN{marker}). "
        "Label rows of 2 classes or more, or pass another marker as unlabeled."
    )


def _one_class_message(only_class: object, unlabeled: object, *, collides: bool) -> str:
    the_class = only_class.item() if isinstance(only_class, np.generic) else only_class
    if collides:
        return (
            f"y has only the values {unlabeled!r} and {the_class!r}, and {unlabeled!r} marks unlabeled rows: 1 class is left, "
            f"but a fit needs 2. If {unlabeled!r} is one of your classes, relabel the classes as 0 and 1, or pass "
            "unlabeled=None; otherwise label a row of a second class."
        )
    return f"y has labels of only 1 class ({the_class!r}), but a fit needs 2. Label a row of a second class."


def unlabeled_mask(y: object, unlabeled: object = -1) -> NDArray[np.bool_]:
    """Tell which rows of y carry no label.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels: a list, an array of any dtype, or a pandas, polars or pyarrow series. A column of shape (n, 1) is
        raveled with scikit-learn's ``DataConversionWarning``.
    unlabeled : scalar, default=-1
        Value that marks an unlabeled row, besides the missing values (None, NaN, NaT, pandas.NA, polars null), which
        always count. None: only the missing values count.

    Returns
    -------
    mask : ndarray of bool, shape (n,)
        True where the row is unlabeled.

    Notes
    -----
    ``numpy.array(["a", "b", -1])`` silently turns -1 into the string "-1". A label that is a string is therefore
    unlabeled when it equals ``str(unlabeled)``. Booleans are not numbers here: ``unlabeled=1`` does not match True.
    """
    labels = as_label_array(y)
    return _missing(labels) | equal_to_marker(labels, unlabeled)


def as_label_array(y: object) -> NDArray[Any]:
    """Bring y to a numpy array of shape (n,) without losing types or missing entries."""
    from sklearn.utils.validation import column_or_1d  # slow to import

    if y is None:
        raise ValueError(
            "A semi-supervised classifier requires y to be passed, but the target y is None. "
            "Give one entry per row, with the unlabeled marker where the label is unknown."
        )
    native = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        untyped = _series_to_numpy(native)
    elif isinstance(native, nw.DataFrame) and native.shape[1] == 1:
        untyped = _series_to_numpy(native[:, 0])[:, np.newaxis]
    elif isinstance(y, np.ma.MaskedArray):
        untyped = np.array(y.tolist(), dtype=object)  # tolist writes None for a masked entry
    else:
        # numpy would make strings of the list ["a", nan]; as objects the entries stay what they are.
        untyped = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    labels: NDArray[Any] = column_or_1d(untyped, warn=True)
    return labels


def _series_to_numpy(series: nw.Series[Any]) -> NDArray[Any]:
    """Convert a data-frame column, keeping the integers beside nulls integers: objects then, with None for a null."""
    null = series.is_null()
    if not null.any():
        return series.to_numpy()
    present = ~null.to_numpy()
    labels = np.full(len(series), None, dtype=object)
    labels[present] = series.filter(~null).to_numpy()
    return labels


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of None, NaN, NaT and pandas.NA, shape (n,)."""
    if labels.dtype.kind in "biuU":
        return np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.asarray(np.isnat(labels))
    return np.fromiter(map(is_missing, labels.astype(object)), dtype=bool, count=len(labels))


def is_missing(label: object) -> bool:
    """Tell whether a label is None, NaN, NaT or pandas.NA."""
    if type(label).__name__ in _MISSING_TYPE_NAMES:
        return True
    # NaN, in all its types, and NaT are the scalars that differ from themselves.
    return isinstance(label, numbers.Number | np.datetime64 | np.timedelta64) and bool(label != label)


def equal_to_marker(labels: NDArray[Any], marker: object) -> NDArray[np.bool_]:
    """Mask of the labels that equal the unlabeled marker, shape (n,)."""
    if np.ndim(np.asarray(marker, dtype=object)) != 0:
        raise ValueError(f"unlabeled must be one value that marks unlabeled rows, or None; got {marker!r}.")
    if marker is None or labels.dtype.kind in "mM":
        return np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "U":
        return np.asarray(labels == str(marker))
    if labels.dtype.kind in "biuf":
        comparable = label_family(marker) == ("boolean" if labels.dtype.kind == "b" else "number")
        return np.asarray(labels == marker) if comparable else np.zeros(len(labels), dtype=bool)
    equal = (_is_marker(label, marker) for label in labels.astype(object))
    return np.fromiter(equal, dtype=bool, count=len(labels))


def _is_marker(label: object, marker: object) -> bool:
    if isinstance(label, str):
        return label == str(marker)
    return label_family(label) == label_family(marker) and not is_missing(label) and bool(label == marker)


def label_family(label: object) -> str:
    """Kind of a label; labels of one family can be compared and sorted."""
    if isinstance(label, bool | np.bool_):
        return "boolean"
    if isinstance(label, numbers.Number):
        return "number"
    return "string" if isinstance(label, str) else type(label).__name__


def narrowed(given: NDArray[Any]) -> NDArray[Any]:
    """Give labels that came as objects the dtype they would have had by themselves."""
    if given.dtype.kind in "biufUmM":  # as objects, times in nanoseconds would be whole numbers
        return given
    example_of = {label_family(label): label for label in given[::-1].astype(object)}
    if len(example_of) > 1:
        came = ", ".join(f"{family} ({example!r})" for family, example in sorted(example_of.items()))
        raise ValueError(
            f"y mixes labels of different types: {came}. Convert them to one type. Mark unlabeled rows by None, NaN or the "
            "value of unlabeled."
        )
    ends_in_zero = next((label for label in given if isinstance(label, str) and label.endswith("\0")), None)
    if ends_in_zero is not None:
        raise ValueError(
            f"y holds the label {ends_in_zero!r}, which ends in a zero character. Arrays of texts drop it, and the label would "
            "become another class: remove the character."
        )
    if example_of.keys() <= {"boolean", "number", "string"}:
        return np.array(given.tolist())
    return given  # of a type that is no class
