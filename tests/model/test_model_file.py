"""A saved model is the same model after loading, in this process and in another one."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import cmvmed
from cmvmed import CMVMED, MED
from cmvmed.data.layout import InputSchema, ViewLayout
from cmvmed.model.expansions import Expansion
from cmvmed.model.fitted_model import Member, Model, Pool, RowNumbers
from cmvmed.model.forests import Forest
from cmvmed.model.graph_votes import GraphVote
from cmvmed.model.saved_types import FORMAT_VERSION, TERMS, TYPES, field_types, record_types
from cmvmed.model.terms import Centers
from cmvmed.model.uncertainty import HeldOutScores, ViewPosterior
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.trees import Trees
from cmvmed.views.preprocessing import Imputation, Scaling
from cmvmed.views.view_rows import ViewPreprocessor
from tests.model.models import EXAMPLES, Example, example, labels, of_cmvmed, two_views

METHODS = (
    "predict",
    "predict_proba",
    "decision_function",
    "predict_proba_by_member",
    "predict_proba_by_view",
    "decision_function_by_view",
    "explain",
)


@pytest.fixture(scope="module")
def fitted():
    """Examples by name, each fitted once."""
    found: dict[str, Example] = {}

    def get(name):
        if name not in found:
            found[name] = example(name)
        return found[name]

    return get


def same(first, second):
    """Whether two values are equal in type, dtype and every bit."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        if first.dtype == object:
            return first.tolist() == second.tolist()
        return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()
    if sparse.issparse(first):
        return first.shape == second.shape and all(
            same(getattr(first, part), getattr(second, part)) for part in ("data", "indices", "indptr")
        )
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    if dataclasses.is_dataclass(first):
        return all(same(getattr(first, f.name), getattr(second, f.name)) for f in dataclasses.fields(first))
    if isinstance(first, np.random.RandomState):
        return same(first.get_state(), second.get_state())
    if isinstance(first, float) and first != first:
        return second != second
    return bool(first == second)


def outputs(model, X):
    """What all methods of a model that predict say of X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: getattr(model, name)(X) for name in METHODS if hasattr(model, name)}
        if isinstance(model, CMVMED) and model.kernel != "precomputed":
            found["deviations"] = model.decision_function_by_view(X, return_std=True)
        if isinstance(model, CMVMED) and model.members is not None:
            found["estimate"] = model.accuracy_estimate()
            found["sets"] = model.predict_set(X)
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_loading_gives_the_same_model(fitted, name, tmp_path):
    model, X = fitted(name).model, fitted(name).X
    path = tmp_path / "model.cmvmed"
    cmvmed.save(model, path)
    loaded = cmvmed.load(path)
    assert type(loaded) is type(model)
    assert re.sub(r" at 0x\w+", "", repr(loaded)) == re.sub(r" at 0x\w+", "", repr(model))
    assert same(outputs(loaded, X), outputs(model, X))
    if isinstance(model, CMVMED):
        assert set(vars(loaded)) == set(vars(model))
        assert same(vars(loaded), vars(model))
    assert is_classifier(loaded)


@pytest.mark.parametrize("name", ["cmvmed", "sparse", "landmarks", "documents"])
def test_a_loaded_model_saves_the_same_file(fitted, name, tmp_path):
    cmvmed.save(fitted(name).model, tmp_path / "first")
    cmvmed.save(cmvmed.load(tmp_path / "first"), tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


SCRIPT = """
import sys
from importlib.machinery import PathFinder
if sys.argv[1] == "without pandas":
    find = PathFinder.find_spec
    PathFinder.find_spec = lambda name, *more: None if name.split(".")[0] in ("pandas", "polars") else find(name, *more)
import numpy as np
import cmvmed
for name in sys.argv[2:]:
    model, X = cmvmed.load(f"{name}.cmvmed"), np.load(f"{name}.npy")
    np.savez(f"{name}.npz", p=model.predict_proba(X), y=model.predict(X))
assert ("pandas" in sys.modules) <= (sys.argv[1] == "with pandas")
"""


@pytest.mark.parametrize("where", ["with pandas", "without pandas"])
def test_another_process_predicts_the_same(fitted, where, tmp_path):
    names = ["cmvmed", "frame", "waveforms"]
    for name in names:
        cmvmed.save(fitted(name).model, tmp_path / f"{name}.cmvmed")
        np.save(tmp_path / f"{name}.npy", np.asarray(fitted(name).X))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [Path(cmvmed.__file__).parents[1], Path.cwd()]))}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, where, *names]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=120)
    for name in names:
        found, model, X = np.load(tmp_path / f"{name}.npz"), fitted(name).model, np.asarray(fitted(name).X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert same(found["p"], model.predict_proba(X))
            assert same(found["y"], model.predict(X))


def test_a_loaded_model_can_be_fitted_pickled_and_cloned(fitted, tmp_path):
    model, X = fitted("cmvmed").model, fitted("cmvmed").X
    model.save(tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")
    assert same(pickle.loads(pickle.dumps(loaded)).predict_proba(X), model.predict_proba(X))
    assert same(loaded.fit(X, labels()[1]).predict_proba(X), model.predict_proba(X))


FIELDS = {  # of all records and parts of version 3 of the format
    Centers: "view preprocessor rows numbers",
    Expansion: "rows index kernel coefficients constant bias",
    Forest: "views preprocessors columns fill trees smoothing",
    GraphVote: "centers gammas place mass n_neighbors node_scores",
    HeldOutScores: "scores codes weights class_weights groups",
    Imputation: "means gaps n_cells",
    InputSchema: "layout names table_columns",
    Kernel: "view kind gamma",
    Member: "name terms weights rule scale offset",
    Model: "schema classes class_prior preprocessors members pool posteriors held_out rows",
    Pool: "weights offset",
    RowNumbers: "numbers labeled",
    Scaling: "kind size clip mean factor",
    Trees: "n_trees feature threshold vote votes",
    ViewLayout: "names columns",
    ViewPosterior: "rows index kernel bias prior_variance n_functions row_weights curvature reduction",
    ViewPreprocessor: "scaling columns imputation",
}


def parts_in(cls):
    """The dataclasses that a file holds because of the annotations of a class."""
    found = {cls}
    for annotation in field_types(cls).values():
        for other in record_types(annotation):
            found |= parts_in(other)
    return found


def test_the_fields_of_the_format_are_those_that_are_listed():
    """A new field needs a default; a field that changes its meaning needs a new version of the format."""
    assert FORMAT_VERSION == 3
    assert len(TYPES) <= 10
    found = parts_in(Model).union(*(parts_in(cls) for cls in TERMS.values()))
    names = {cls: " ".join(field.name for field in dataclasses.fields(cls)) for cls in found}
    assert names == FIELDS


def test_what_is_shared_is_written_once(fitted, tmp_path):
    """A view's training rows are used by the consensus, other members and the graphs."""
    model = of_cmvmed(members=["views", "view_graphs", "consensus"], scaling="unit").model
    model.save(tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")._model
    alone, graph = loaded.members[0].terms[1], loaded.members[-2].terms[0]
    assert alone.rows.rows is loaded.view_terms[0].rows.rows
    assert graph.centers[0].rows is loaded.view_terms[0].rows.rows


def test_mostly_zero_tables_take_no_more_than_their_nonzero_entries(tmp_path):
    model = MED().fit(two_views(), labels()[1])
    rng = np.random.default_rng(0)
    table = np.asfortranarray(np.where(rng.random((500, 400)) < 0.01, rng.normal(size=(500, 400)), 0.0))
    model.save(tmp_path / "without")
    model.extra_ = table
    model.save(tmp_path / "with")
    added = (tmp_path / "with").stat().st_size - (tmp_path / "without").stat().st_size
    assert added < 11 * np.count_nonzero(table)  # eight bytes for the value, less than three for the position
    loaded = cmvmed.load(tmp_path / "with").extra_
    assert same(loaded, table)
    assert loaded.flags.f_contiguous


def test_columns_of_a_frame_as_views_become_lists(fitted, tmp_path):
    X = fitted("frame").X
    model = CMVMED(views={"a": X.columns[:5], "b": range(5, 12)}).fit(X, labels()[1])
    model.save(tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")
    assert loaded.views == {"a": X.columns[:5].tolist(), "b": list(range(5, 12))}
    assert same(loaded.predict_proba(X), model.predict_proba(X))


def test_minus_zero_and_not_finite_numbers_are_kept(tmp_path):
    model = MED().fit(two_views(), labels()[1])
    zeros = np.zeros(2000)
    zeros[5], zeros[7] = -0.0, np.nan
    model.extra_ = {"a": zeros, "b": [float("inf"), float("-inf")], 3: np.float32(0.1), "c": (None, slice(1, None))}
    model.save(tmp_path / "m")
    extra = cmvmed.load(tmp_path / "m").extra_
    assert same(extra, model.extra_)
    assert np.signbit(extra["a"][5])


# --- what is refused -------------------------------------------------------------------------------------------------


def linear(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda: CMVMED(), NotFittedError, "not fitted"),
        (lambda: LogisticRegression(), TypeError, "Only a fitted CMVMED.*LogisticRegression"),
        (lambda: of_cmvmed(kernel=linear).model, TypeError, r"kernel is a function \('linear'\).*named kernel"),
        (
            lambda: make_pipeline(MinMaxScaler(), MED()).fit(two_views(), labels()[1]),
            TypeError,
            r"steps\[0\]\[1\] is of type MinMaxScaler.*joblib",
        ),
    ],
)
def test_what_cannot_be_saved_says_so_and_leaves_no_file(model, error, message, tmp_path):
    with pytest.raises(error, match=message):
        cmvmed.save(model(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_replaced_only_if_asked_for(fitted, tmp_path):
    model, path = fitted("med").model, tmp_path / "m"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(path)
    assert path.read_text() == "mine"
    model.save(path, overwrite=True)
    assert same(cmvmed.load(path).predict(two_views()), model.predict(two_views()))
    assert list(tmp_path.iterdir()) == [path]


def test_folders_that_cannot_be_written_are_noticed_before_anything_is_done(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("cmvmed.model.file.Encoder", None)  # would fail
    model = fitted("med").model
    with pytest.raises(FileNotFoundError, match=r"folder .*nowhere does not exist"):
        model.save(tmp_path / "nowhere" / "m")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    if not os.access(closed, os.W_OK):  # root may write everywhere
        with pytest.raises(PermissionError):
            model.save(closed / "m")


def test_an_interrupted_save_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    model, path = fitted("med").model, tmp_path / "m"
    model.save(path)
    before = path.read_bytes()

    def interrupted(file, document, arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr("cmvmed.model.file.write_archive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(path, overwrite=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_class_loads_its_own_models(tmp_path):
    model = MED().fit(two_views(), labels()[1])
    model.save(tmp_path / "m")
    assert same(MED.load(tmp_path / "m").decision_function(two_views()), model.decision_function(two_views()))
    with pytest.raises(TypeError, match="holds a MED, not a CMVMED"):
        CMVMED.load(tmp_path / "m")


@pytest.mark.filterwarnings("ignore:View")
def test_a_column_without_any_number(tmp_path):
    X = two_views()
    X[:, 3] = np.nan
    model = cmvmed.CMVMED(views=[5, 7]).fit(X, labels()[1])
    cmvmed.save(model, tmp_path / "m")
    assert np.array_equal(cmvmed.load(tmp_path / "m").predict_proba(X), model.predict_proba(X))
