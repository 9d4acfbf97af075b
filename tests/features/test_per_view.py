import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from cmvmed import CMVMED
from cmvmed.features import MFCC, TextView, ViewsTransformer, WindowFeatures, views_transformer

RATE = 4000


@pytest.fixture
def sound():
    """Forty segments of two sensors: class 1 has a tone in noise."""
    rng = np.random.default_rng(0)
    target = np.arange(40) % 2
    tone = np.sin(2 * np.pi * 600 * np.arange(RATE) / RATE)
    return rng.normal(size=(40, 2, RATE)) + target[:, np.newaxis, np.newaxis] * tone, target


@pytest.fixture
def pages():
    return pd.DataFrame(
        {
            "page": ["course homework", "faculty page", "", "homework exam"],
            "link": ["cs course", "people", "exam course", None],
            "length": [3.0, 5.0, 1.0, 2.0],
            "age": [1.0, 0.0, 4.0, 2.0],
        },
        index=[10, 11, 12, 13],
    )


def two_sensors(**options):
    return views_transformer(left=(MFCC(RATE), 0), right=(MFCC(RATE), 1), **options)


def test_channels_become_prefixed_columns(sound):
    transformer = two_sensors()
    frame = transformer.fit_transform(sound[0])
    assert frame.shape == (40, 400)
    assert transformer.views == {"left": "left__", "right": "right__"}
    assert [name.split("__")[0] for name in frame.columns] == ["left"] * 200 + ["right"] * 200
    np.testing.assert_array_equal(frame.iloc[:, 200:], MFCC(RATE).fit_transform(sound[0][:, 1]))


def test_array_output_and_its_slices(sound):
    transformer = two_sensors(output="default")
    array = transformer.fit_transform(sound[0])
    assert isinstance(array, np.ndarray)
    assert transformer.view_slices_ == {"left": slice(0, 200), "right": slice(200, 400)}
    np.testing.assert_array_equal(array, two_sensors().fit_transform(sound[0]))


@pytest.mark.parametrize("views", ["prefixes", "widths"])
def test_cmvmed_in_a_pipeline_from_raw_sound_to_predictions(sound, views):
    X, target = sound
    y = np.where(np.arange(40) < 30, target, -1)
    to_views = two_sensors(output="pandas" if views == "prefixes" else "default")
    layout = to_views.views if views == "prefixes" else [200, 200]
    model = make_pipeline(to_views, CMVMED(views=layout)).fit(X, y)
    assert model.score(X[30:], target[30:]) == 1.0


def test_missing_sensor_passes_through_to_the_estimator(sound):
    X, target = sound
    X[3, 0] = np.nan
    to_views = two_sensors()
    model = make_pipeline(to_views, CMVMED(views=to_views.views)).fit(X, target)
    alone = X[20:22].copy()
    alone[:, 1] = np.nan
    assert np.isfinite(model.predict_proba(alone)).all()


def test_columns_of_a_frame_dense_sparse_and_numeric(pages):
    transformer = views_transformer(
        page=(TextView(), "page"), link=(TfidfVectorizer(), "link"), size=(StandardScaler(), ["length", "age"])
    )
    pages["link"] = pages["link"].fillna("nothing")
    frame = transformer.fit_transform(pages)
    assert list(frame.index) == [10, 11, 12, 13]
    assert list(frame.filter(regex="^size__").columns) == ["size__length", "size__age"]
    assert frame.filter(regex="^page__").loc[12].isna().all()
    assert frame.filter(regex="^link__").notna().all(axis=None)


def test_polars_in_and_out(pages):
    transformer = views_transformer(page=(TextView(), "page"), output="polars")
    frame = transformer.fit_transform(pl.from_pandas(pages))
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns[0] == "page__course"


def test_sparse_stays_sparse_on_request(pages):
    transformer = views_transformer(page=(TextView(), "page"), link=(TextView(), "link"), output="default")
    features = transformer.fit_transform(pages)
    assert issparse(features)
    assert features.shape[1] == transformer.view_slices_["link"].stop
    np.testing.assert_array_equal(np.isnan(features.toarray()[3, transformer.view_slices_["link"]]), True)


def test_mappings_column_lists_slices_and_everything():
    X = np.random.default_rng(0).normal(size=(10, 5))
    by_column = views_transformer(a=(StandardScaler(), [0, 1]), b=(StandardScaler(), slice(2, None)), output="default")
    np.testing.assert_allclose(by_column.fit_transform(X), StandardScaler().fit_transform(X), rtol=1e-12)
    by_key = views_transformer(a=(StandardScaler(), "x"), b=(StandardScaler(), "y"), output="default")
    both = by_key.fit_transform({"x": X[:, :2], "y": X[:, 2:]})
    np.testing.assert_allclose(both, StandardScaler().fit_transform(X), rtol=1e-12)
    whole = views_transformer(all=(StandardScaler(), None), output="default").fit_transform(X)
    np.testing.assert_allclose(whole, both, rtol=1e-12)
    sparse = views_transformer(a=(FunctionTransformer(accept_sparse=True), [0, 1]), output="default")
    assert sparse.fit_transform(csr_array(X)).shape == (10, 2)


def test_names_that_are_not_identifiers(sound):
    transformer = views_transformer({"sensor 1": (MFCC(RATE), 0), "class": (MFCC(RATE), 1)})
    assert list(transformer.fit(sound[0]).view_slices_) == ["sensor 1", "class"]


def test_channels_of_an_inertial_sensor():
    windows = np.random.default_rng(0).normal(size=(8, 6, 100))
    transformer = views_transformer(
        acceleration=(WindowFeatures(50.0), [0, 1, 2]), rotation=(WindowFeatures(50.0), slice(3, 6))
    )
    assert transformer.fit_transform(windows).shape == (8, 2 * 60)


def test_transformers_without_names_are_numbered():
    X = np.random.default_rng(0).normal(size=(6, 3))
    frame = views_transformer(a=(FunctionTransformer(np.abs), [0, 2])).fit_transform(X)
    assert list(frame.columns) == ["a__0", "a__1"]


def test_search_over_a_parameter_of_one_view(sound):
    X, target = sound
    pipeline = make_pipeline(two_sensors(), LogisticRegression(max_iter=5000))
    search = GridSearchCV(pipeline, {"viewstransformer__left__transformer__n_frames": [1, 4]}, cv=2).fit(X, target)
    assert search.best_score_ > 0.9
    assert search.best_estimator_[0].fit_transform(X).shape[1] in (220, 280)


def test_fit_learns_from_the_training_rows_only(sound):
    train, test = train_test_split(sound[0], random_state=0)
    transformer = views_transformer(left=(make_pipeline(MFCC(RATE), StandardScaler()), 0), output="default")
    expected = make_pipeline(MFCC(RATE), StandardScaler()).fit(train[:, 0]).transform(test[:, 0])
    np.testing.assert_array_equal(transformer.fit(train).transform(test), expected)


def test_clone_pickle_repr_and_nested_parameters(sound):
    transformer = two_sensors()
    copy = clone(transformer)
    assert isinstance(copy, ViewsTransformer)
    assert isinstance(copy.fit_transform(sound[0]), pd.DataFrame)
    assert transformer.get_params()["left__transformer__n_frames"] == 10
    again = pickle.loads(pickle.dumps(copy))
    np.testing.assert_array_equal(again.transform(sound[0]), copy.transform(sound[0]))
    assert "MFCC" in copy._repr_html_()
    assert not hasattr(transformer.transformer_list[0][1].transformer, "sampling_rate_")  # the given one is not fitted


@pytest.mark.parametrize(
    ("views", "error", "message"),
    [
        ({}, ValueError, "No view given"),
        ({"a": MFCC(RATE)}, TypeError, r"View 'a' must be a pair \(transformer, key\)"),
        ({"a": (MFCC, 0, 1)}, TypeError, "must be a pair"),
        ({"a__b": (MFCC(RATE), 0)}, ValueError, "'__'"),
    ],
)
def test_invalid_views_are_named(views, error, message):
    with pytest.raises(error, match=message):
        views_transformer(views)


def test_invalid_keys_and_output_are_named(sound, pages):
    with pytest.raises(IndexError, match="has 2 channels or columns"):
        views_transformer(a=(MFCC(RATE), 2)).fit(sound[0])
    with pytest.raises(KeyError, match=r"no column or key 'body'.*'page', 'link'"):
        views_transformer(a=(TextView(), "body")).fit(pages)
    with pytest.raises(ValueError, match="output must be"):
        views_transformer(a=(TextView(), "page"), output="numpy")
    with pytest.raises(IndexError, match="shape"):
        views_transformer(a=(StandardScaler(), "x")).fit(np.zeros((3, 2)))


def test_a_missing_frame_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'output="default"\) needs pandas. Install it with: pip install pandas'):
        two_sensors()
    assert two_sensors(output="default").views == {"left": "left__", "right": "right__"}


def test_names_pass_through_steps_without_names():
    X = np.random.default_rng(0).normal(size=(6, 1, 40))
    square, shorten = FunctionTransformer(np.square), FunctionTransformer(lambda rows: rows[:, :5])
    same = views_transformer(a=(make_pipeline(WindowFeatures(50.0), square, square), 0)).fit(X)
    names = [f"a__{name}" for name in WindowFeatures(50.0).fit(X[:, 0]).get_feature_names_out()]
    assert list(same.get_feature_names_out()) == names == list(same.transform(X).columns)
    fewer = views_transformer(a=(make_pipeline(WindowFeatures(50.0), shorten), 0)).fit(X)
    assert list(fewer.get_feature_names_out()) == [f"a__{j}" for j in range(5)]
