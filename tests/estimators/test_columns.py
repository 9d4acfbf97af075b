"""Columns with names: found by them at predict, in any order and among others; a view may be missing with all of them."""

import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

from cmvmed import CMVMED, MED

COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]
VIEWS = {"a": "a_", "b": "b_"}


@pytest.fixture(scope="module")
def frame(partly):
    return pd.DataFrame(partly.X, columns=COLUMNS)


@pytest.fixture(scope="module")
def model(frame, partly):
    return CMVMED(views=VIEWS, n_stages=2).fit(frame, partly.y)


@pytest.fixture(scope="module")
def model_of_frames(frame, partly):
    return CMVMED(n_stages=2).fit({"a": frame[COLUMNS[:3]], "b": frame[COLUMNS[3:]]}, partly.y)


@pytest.fixture(scope="module")
def without_b(frame):
    """The frame in which view b is missing in all rows."""
    return frame.assign(b_0=np.nan, b_1=np.nan)


ARRANGED = {
    "reversed": lambda X: X[COLUMNS[::-1]],
    "further columns": lambda X: X.assign(time="now", x=1.0)[["x", *COLUMNS, "time"]],
    "polars, shuffled": lambda X: pl.DataFrame(X.assign(note="?")).select(["b_1", "note", "a_1", "a_0", "b_0", "a_2"]),
    "dask, shuffled": lambda X: dd.from_pandas(X.assign(x=1.0)[["x", *COLUMNS[::-1]]], npartitions=2),
}


@pytest.mark.parametrize("arranged", ARRANGED.values(), ids=ARRANGED.keys())
def test_columns_are_found_by_name(arranged, frame, model):
    found = np.asarray(model.predict_proba(arranged(frame)))
    np.testing.assert_array_equal(found, model.predict_proba(frame))
    by_position = frame[COLUMNS[::-1]].set_axis(COLUMNS, axis=1)  # the broken variant
    assert np.abs(model.predict_proba(by_position) - found).max() > 0.01


def test_columns_of_files_are_found_by_name(tmp_path, frame, model):
    for suffix, write in {"parquet": pd.DataFrame.to_parquet, "csv": pd.DataFrame.to_csv}.items():
        write(frame.assign(x=1.0)[["x", *COLUMNS[::-1]]], tmp_path / f"new.{suffix}", index=False)
        found = model.predict_proba(tmp_path / f"new.{suffix}")
        np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-12)


def test_columns_of_each_views_frame_are_found_by_name(frame, model_of_frames):
    parts = {"b": frame[["b_1", "b_0"]], "a": frame.assign(x=1.0)[["x", "a_2", "a_0", "a_1"]]}
    expected = model_of_frames.predict_proba({"a": frame[COLUMNS[:3]], "b": frame[COLUMNS[3:]]})
    np.testing.assert_array_equal(model_of_frames.predict_proba(parts), expected)
    np.testing.assert_array_equal(model_of_frames.predict_proba(frame[COLUMNS[::-1]]), expected)


def test_positions_in_views_are_those_of_the_training_frame(frame, partly):
    model = CMVMED(views=[3, 2], n_stages=2).fit(frame, partly.y)
    np.testing.assert_array_equal(model.predict(frame[COLUMNS[::-1]]), model.predict(frame))


def test_one_view_of_a_frame(frame, partly):
    model = MED().fit(frame, partly.y)
    np.testing.assert_array_equal(model.predict_proba(frame[COLUMNS[::-1]]), model.predict_proba(frame))


LACKING = {
    "frame": lambda X, path: X,
    "polars": lambda X, path: pl.DataFrame(X),
    "dask": lambda X, path: dd.from_pandas(X, npartitions=2),
    "parquet": lambda X, path: X.to_parquet(path) or path,
}


@pytest.mark.parametrize("form", LACKING.values(), ids=LACKING.keys())
def test_a_table_without_the_columns_of_a_view(form, tmp_path, frame, model, without_b):
    X = form(frame[["a_1", "a_0", "a_2"]], tmp_path / "new.parquet")
    with pytest.warns(UserWarning, match="X has no column of view 'b', which counts as missing in all rows"):
        found = np.asarray(model.predict_proba(X))
    np.testing.assert_allclose(found, model.predict_proba(without_b), atol=1e-12)


@pytest.mark.parametrize("form", LACKING.values(), ids=LACKING.keys())
def test_a_table_without_some_columns_of_a_view(form, tmp_path, frame, model):
    X = form(frame[["a_1", "b_0", "b_1"]], tmp_path / "new.parquet")
    message = r"X lacks 2 of the 3 columns of view 'a' that fit saw: \['a_0', 'a_2'\]. Add them, with NaN where"
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_a_table_of_other_columns(frame, model):
    with pytest.raises(
        ValueError, match=r"X has none of the columns that fit saw: \['a_0', .*its columns are \['x', 'y'"
    ):
        model.predict(pd.DataFrame(np.zeros((2, 2)), columns=["x", "y"]))


@pytest.mark.parametrize("fixture", ["model", "model_of_frames"])
def test_none_is_a_view_that_no_row_has(fixture, frame, without_b, request):
    model = request.getfixturevalue(fixture)
    expected = model.predict_proba(without_b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for a in (frame[COLUMNS[:3]], frame[COLUMNS[:3]].to_numpy()):
            np.testing.assert_array_equal(model.predict_proba({"b": None, "a": a}), expected)
            np.testing.assert_array_equal(model.predict_proba([a, None]), expected)
    with pytest.raises(ValueError, match="X has None for every view; give the rows of at least one"):
        model.predict({"a": None, "b": None})
    with pytest.raises(
        ValueError, match=r"X has the views \['a'\] but fit saw \['a', 'b'\]; pass the same views, and None"
    ):
        model.predict({"a": a})


@pytest.mark.parametrize("kind", ["parquet", "npy", "dask array", "dask frame"])
def test_none_beside_files_and_dask_collections(kind, tmp_path, frame, model, without_b):
    a = frame[COLUMNS[:3]]
    a.to_parquet(tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", a.to_numpy())
    collection = dd.from_pandas(a, npartitions=3)
    lengths = collection.to_dask_array(lengths=True)
    part = {"dask array": lengths, "dask frame": collection}.get(kind, tmp_path / f"a.{kind}")
    found = np.asarray(model.predict_proba({"a": part, "b": None}))
    np.testing.assert_allclose(found, model.predict_proba(without_b), atol=1e-12)


def test_a_frame_of_a_view_must_have_its_columns(frame, model_of_frames):
    with pytest.raises(ValueError, match=r"X lacks 2 of the 2 columns of view 'b' that fit saw: \['b_0', 'b_1'\]"):
        model_of_frames.predict({"a": frame[COLUMNS[:3]], "b": frame[["a_0", "a_1"]]})


def test_numbered_columns_in_another_order_are_said(frame, partly):
    """They are taken by position, as scikit-learn takes columns without text names."""
    numbered = frame.set_axis(range(frame.shape[1]), axis=1)
    model = CMVMED(views=[3, frame.shape[1] - 3], members="consensus", n_stages=2).fit(numbered, partly.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(numbered)
        model.predict(numbered.set_axis(range(5, 5 + frame.shape[1])[::-1], axis=1))
    with pytest.warns(UserWarning, match="in another order than their positions"):
        model.predict(numbered[numbered.columns[::-1]])


def test_columns_of_the_same_name_are_refused(frame, partly):
    twice = frame.set_axis(["a_0", "a_0", "a_2", "b_0", "b_1"], axis=1)
    with pytest.raises(ValueError, match="X has two columns named 'a_0'; give each column its own name"):
        CMVMED(views=VIEWS).fit(twice, partly.y)
    with pytest.raises(ValueError, match="X has two columns named 'a_0'"):
        CMVMED().fit({"a": twice[["a_0"]], "b": frame[COLUMNS[3:]]}, partly.y)


LABELED = {
    "pandas": lambda X, label: X.assign(label=label)[["label", *COLUMNS]],
    "polars": lambda X, label: pl.DataFrame(X).with_columns(label=pl.Series(label, strict=False)),
}


@pytest.mark.parametrize("form", LABELED.values(), ids=LABELED.keys())
def test_labels_in_a_column_of_a_frame(form, frame, partly, model):
    names = np.array(["no", "yes"])
    y = [names[c] if c >= 0 else None for c in partly.y]
    table = form(frame, y)
    found = CMVMED(views=VIEWS, n_stages=2).fit(table, "label")
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == COLUMNS
    np.testing.assert_array_equal(found.predict_proba(table), model.predict_proba(frame))
    truth = form(frame, names[partly.truth])
    assert found.score(truth, "label") == (found.predict(frame) == names[partly.truth]).mean()
    by_view = found.score_by_view(truth, "label")
    assert by_view == found.score_by_view(frame, names[partly.truth])


def test_labels_in_a_column_of_one_views_frame(frame, partly, model_of_frames):
    parts = {"a": frame[COLUMNS[:3]], "b": frame[COLUMNS[3:]].assign(label=partly.y)}
    found = CMVMED(n_stages=2).fit(parts, "label")
    expected = model_of_frames.predict_proba({"a": frame[COLUMNS[:3]], "b": frame[COLUMNS[3:]]})
    np.testing.assert_array_equal(found.predict_proba(parts), expected)
    listed = CMVMED(n_stages=2).fit(list(parts.values()), "label")
    np.testing.assert_array_equal(listed.predict_proba(list(parts.values())), expected)
    with pytest.raises(ValueError, match="y='label' is in more than one table of X"):
        CMVMED().fit({"a": parts["b"].rename(columns={"b_0": "a_0"}), "b": parts["b"]}, "label")


def test_scores_of_files_by_a_column(tmp_path, frame, partly, model):
    path = tmp_path / "new.parquet"
    frame.assign(label=partly.truth).to_parquet(path)
    assert model.score(path, "label") == model.score(frame, partly.truth)


def test_a_column_of_labels_that_is_not_there(frame, partly):
    with pytest.raises(ValueError, match=r"y='label' is not a column of X, whose columns are \['a_0', 'a_1'"):
        CMVMED(views=VIEWS).fit(frame, "label")
    with pytest.raises(ValueError, match=r"y='label' is not a column of X, whose columns are not named; y must be"):
        CMVMED(views=[3, 2]).fit(partly.X, "label")
