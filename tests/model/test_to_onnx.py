"""ONNX models give the library's labels and probabilities, for every kind of model and with everything that may be missing."""

from __future__ import annotations

import json
import re
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

import cmvmed
from cmvmed import CMVMED, MED
from cmvmed._optional import install_command
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.estimators._settings import MEMBERS
from cmvmed.model import onnx_model
from cmvmed.model.onnx_model import OPSET
from tests.core.factories import rejects
from tests.model.models import EXAMPLES, example, labels, two_views
from tests.model.onnx_comparison import check_same, library, ort, run, tables

onnx = pytest.importorskip("onnx")

WITHOUT_FEATURES = (
    "precomputed",
    "waveforms",
    "sensors",
    "statistics of sensors",
    "documents",
    "documents as counts",
)
NAMES = [name for name in EXAMPLES if name not in WITHOUT_FEATURES]


def draw(n_classes, n_views, n_rows, *, missing=0.0, gaps=0.0, seed=0, n_columns=6):
    """Views with Gaussian classes, of which some rows lack some views and some cells are NaN, and the classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_rows)
    centers = 1.5 * rng.normal(size=(n_views, n_classes, n_columns))
    views = [center[truth] + rng.normal(size=(n_rows, n_columns)) for center in centers]
    for view in views:
        view[rng.random(view.shape) < gaps] = np.nan
        view[rng.random(n_rows) < missing] = np.nan
    return views, truth


def fitted(
    n_classes=3, n_views=2, n_train=120, n_new=200, *, n_labeled=24, classes=None, draw_settings=None, **settings
):
    """A fitted model and new rows."""
    views, truth = draw(n_classes, n_views, n_train + n_new, **(draw_settings or {}))
    named = np.arange(n_classes) if classes is None else classes
    y = np.array([named[c] if i < n_labeled else None for i, c in enumerate(truth[:n_train])], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED(**settings).fit([view[:n_train] for view in views], y)
    return model, [view[n_train:] for view in views]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_model(name):
    case = example(name)
    if name == "svm2k":
        pytest.importorskip("piqp")
    check_same(case.model, case.X)
    check_same(case.model, case.X, dtype="float64")


@pytest.mark.parametrize(("n_classes", "n_views"), [(2, 2), (2, 3), (4, 2), (4, 3), (3, 1)])
@pytest.mark.parametrize("missing", [{}, {"missing": 0.3, "gaps": 0.1}])
def test_classes_views_and_what_is_missing(n_classes, n_views, missing):
    model, new = fitted(n_classes, n_views, draw_settings=missing)
    check_same(model, new)


def test_views_that_only_new_rows_lack():
    model, new = fitted(3, 3)
    rng = np.random.default_rng(0)
    for view in new:
        view[rng.random(view.shape) < 0.1] = np.nan
        view[rng.random(len(view)) < 0.4] = np.nan
    outputs = check_same(model, new)
    without = np.all([np.isnan(view).all(axis=1) for view in new], axis=0)
    assert without.any()
    np.testing.assert_allclose(
        outputs["probabilities"][without], np.tile(model.class_prior_, (without.sum(), 1)), atol=1e-7
    )


@pytest.mark.parametrize(
    "members",
    [*MEMBERS, ["view_graphs", "consensus"], ["lda", "trees"]],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_members(members, n_classes):
    model, new = fitted(n_classes, members=members, draw_settings={"missing": 0.2})
    check_same(model, new)


@pytest.mark.parametrize(
    "settings",
    [
        {"members": ["views", "lda", "consensus"]},
        {"kernel": "linear"},
        {"kernel": "cosine"},
        {"kernel": ["rbf", "linear"], "scaling": None},
        {"scaling": "unit"},
        {"scaling": None, "kernel": "rbf", "approximation": 15},
        {"view_weights": [1.0, 0.0]},
        {"class_prior": None},
        {"consensus_weight": 0.0},
        {"bias_variance": 0.0},
        {"members": None},
    ],
    ids=str,
)
def test_settings(settings):
    model, new = fitted(draw_settings={"missing": 0.2, "gaps": 0.05}, **settings)
    check_same(model, new)


@pytest.mark.parametrize("n_neighbors", [1, 500])  # the latter is more than there are nodes
def test_numbers_of_neighbors(n_neighbors):
    with tuning_context(Tuning(n_neighbors=n_neighbors)):
        model, new = fitted(draw_settings={"missing": 0.2, "gaps": 0.05})
    check_same(model, new)


def test_landmarks_by_default_for_many_rows():
    model, new = fitted(2, 2, n_train=2100, n_labeled=30, draw_settings={"missing": 0.1})
    assert model.approximation_["kind"] == "nystroem"
    check_same(model, new)


@pytest.mark.slow
@pytest.mark.parametrize(("n_train", "missing"), [(1000, 0.0), (1000, 0.25), (2500, 0.25)])
def test_no_class_differs_on_ten_thousand_rows(n_train, missing):
    model, new = fitted(
        4, 2, n_train=n_train, n_new=10_000, n_labeled=60, draw_settings={"missing": missing, "gaps": 0.02}
    )
    check_same(model, new)


def test_columns_that_are_constant_or_always_missing():
    views, truth = draw(3, 2, 150)
    views[0][:, 1], views[1][:, 2] = 7.5, np.nan
    y = np.where(np.arange(150) < 24, truth, -1)
    with pytest.warns(UserWarning, match="NaN"):
        model = CMVMED().fit([view[:100] for view in views], y[:100])
    new = [view[100:] for view in views]
    new[0][::2, 1], new[1][::3, 2] = 8.0, 1.0
    new[1][::5] = np.nan
    new[1][::10, 2] = 3.0  # a number in a column that does not matter: the view is missing all the same
    check_same(model, new)


def test_a_view_that_no_training_row_has():
    views, truth = draw(3, 2, 150)
    views[1][:100] = np.nan
    y = np.where(np.arange(150) < 24, truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED().fit([view[:100] for view in views], y[:100])
    new = [view[100:] for view in views]
    new[0][:10] = np.nan
    check_same(model, new)


def test_equal_rows_and_rows_of_the_training_set():
    """Equal training rows are one node; a row equal to a node has it as its only neighbor; counts have many ties."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 120)
    views = [rng.poisson(1.0 + 2.0 * np.eye(3)[truth]).astype(float) for _ in range(2)]
    y = np.where(np.arange(120) < 24, truth, -1)
    views[0][100:] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED().fit(views, y)
    check_same(model, views)
    check_same(model, [view + 0.5 for view in views])


def test_sparse_views_are_dense_inputs_and_small_files():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    rates = rng.gamma(0.1, 0.5, size=(2, 3, 400))
    views = [sparse.csr_matrix(rng.poisson(rate[truth]).astype(float)) for rate in rates]
    y = np.where(np.arange(200) < 24, truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED().fit([view[:150] for view in views], y[:150])
    proto = model.to_onnx()
    check_same(model, [view[150:] for view in views], proto=proto)
    assert len(proto.graph.sparse_initializer) == 2
    assert proto.ByteSize() < 0.5 * 8 * 2 * 150 * 400


@pytest.mark.parametrize("n_rows", [0, 1])
@pytest.mark.parametrize("settings", [{}, {"members": "consensus"}, {"approximation": 10}], ids=str)
def test_one_row_and_none(n_rows, settings):
    if n_rows == 0 and tuple(map(int, ort.__version__.split(".")[:2])) < (1, 31):
        pytest.skip("ONNX Runtime before 1.31 ends the process when it is given no rows")
    model, new = fitted(**settings)
    inputs = tables(model, [view[:n_rows] for view in new], "float32")
    outputs = run(model.to_onnx(), inputs)
    assert outputs["label"].shape == (n_rows,)
    assert outputs["probabilities"].shape == (n_rows, 3)
    if n_rows:
        np.testing.assert_allclose(outputs["probabilities"], library(model, inputs)["probabilities"], atol=1e-7)


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (["dog", "human", "Ümlaut"], "O"),
        ([10, -5, 70], "i"),
        ([1.0, 2.0, 5.0], "f"),
        ([False, True], "b"),
    ],
)
def test_labels_are_the_classes(classes, kind):
    model, new = fitted(len(classes), classes=classes)
    outputs = check_same(model, new)
    assert outputs["label"].dtype.kind == kind
    assert set(outputs["label"].tolist()) <= set(classes)


def test_a_loaded_and_a_compact_model(tmp_path):
    model, new = fitted(members=["views", "lda", "consensus"], n_train=400)
    model.save(tmp_path / "m.cmvmed")
    loaded = cmvmed.load(tmp_path / "m.cmvmed")
    assert loaded.to_onnx().SerializeToString() == model.to_onnx().SerializeToString()
    small = model.to_onnx(compact=100)
    assert small.ByteSize() < 0.6 * model.to_onnx().ByteSize()
    check_same(model._compacted(100), new, proto=small)


def test_the_check_finds_a_changed_number():
    model, new = fitted()
    proto = model.to_onnx()
    changed = max(proto.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    numbers = np.frombuffer(changed.raw_data).copy()
    numbers[: numbers.size // 2] *= 1.01
    changed.raw_data = numbers.tobytes()
    rejects(check_same, model, new, proto=proto)


def test_only_standard_operators_and_metadata():
    pd = pytest.importorskip("pandas")
    names = [f"a__{i}" for i in range(5)] + [f"b__{i}" for i in range(7)]
    frame = pd.DataFrame(two_views(), columns=names)
    model = CMVMED(views={"a": "a__", "b": "b__"}).fit(frame, labels()[1])
    proto = model.to_onnx()
    onnx.checker.check_model(proto, full_check=True)
    assert [(opset.domain, opset.version) for opset in proto.opset_import] == [("", OPSET), ("ai.onnx.ml", 2)]
    assert {node.domain for node in proto.graph.node} == {"", "ai.onnx.ml"}  # the latter for trees
    assert (proto.producer_name, proto.producer_version) == ("cmvmed", cmvmed.__version__)
    properties = {entry.key: json.loads(entry.value) for entry in proto.metadata_props}
    assert properties == {
        "estimator": "CMVMED",
        "classes": [0, 1, 2],
        "views": ["a", "b"],
        "columns": [names[:5], names[5:]],
    }
    assert [value.name for value in proto.graph.input] == ["a", "b"]
    assert [value.name for value in proto.graph.output] == [
        "label",
        "probabilities",
        "probabilities_a",
        "probabilities_b",
    ]


def test_a_file_is_written_once_and_completely(tmp_path):
    model, new = fitted(n_train=60)
    path = tmp_path / "model.onnx"
    proto = model.to_onnx(path)
    assert path.read_bytes() == proto.SerializeToString()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.to_onnx(path)
    model.to_onnx(path, dtype="float64", overwrite=True)
    check_same(model, new, dtype="float64", proto=onnx.load(path))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        model.to_onnx(tmp_path / "no" / "model.onnx")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]


def minimum(first, second):
    """A kernel function."""
    return np.minimum(first[:, None], second[None]).sum(axis=2)


def with_kernel(kernel):
    X = np.abs(two_views())
    X = X @ X.T if kernel == "precomputed" else X
    return MED(kernel=kernel).fit(X, labels()[1])


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (lambda: with_kernel("precomputed"), {}, "kernel of view 'view0' is 'precomputed', which an ONNX model cannot"),
        (lambda: with_kernel(minimum), {}, "kernel of view 'view0' is a function of Python"),
        (
            lambda: fitted(n_train=60)[0],
            {"dtype": "float16"},
            "dtype must be one of 'float32', 'float64', but is 'float16'",
        ),
        (
            lambda: fitted(n_train=60)[0],
            {"compact": 1},
            "compact must be True, False or a number of rows of at least 2",
        ),
        (lambda: CMVMED(views={"label": 5, "b": 7}).fit(two_views(), labels()[1]), {}, "A view is named 'label'"),
    ],
)
def test_what_cannot_be_exported(tmp_path, make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make().to_onnx(tmp_path / "model.onnx", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_too_many_numbers_are_an_error(monkeypatch):
    monkeypatch.setattr(onnx_model, "MAX_BYTES", 2**12)
    with pytest.raises(ValueError, match=r"would hold 0 MiB of training rows.*max_features.*members"):
        fitted(n_train=60)[0].to_onnx()


def test_without_onnx_the_error_names_the_extra(monkeypatch):
    model = fitted(n_train=60)[0]
    monkeypatch.setitem(sys.modules, "onnx.helper", None)
    with pytest.raises(ImportError, match=re.escape(f"to_onnx needs onnx. Install it with: {install_command('onnx')}")):
        model.to_onnx()
