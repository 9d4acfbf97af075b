"""TabPFN in numpy: its file is read without running code, and the transformer does what its formulas say."""

from __future__ import annotations

import io
import os
import pickle
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from scipy import sparse
from scipy.special import erf, softmax

from benchmarks.suite import tabpfn
from benchmarks.suite.tabpfn import TabPFN, UnsafeCheckpointError, best_columns, prepare, read_network

WIDTH, HEADS, HIDDEN, COLUMNS, LAYERS = 8, 2, 12, 6, 2


def random_weights(seed=0):
    """Weights of a tiny transformer under the names of torch."""
    rng = np.random.default_rng(seed)
    shapes = {"encoder": (WIDTH, COLUMNS), "y_encoder": (WIDTH, 1), "decoder.0": (HIDDEN, WIDTH)}
    shapes |= {"decoder.2": (tabpfn.MAX_CLASSES, HIDDEN)}
    for number in range(LAYERS):
        layer = f"transformer_encoder.layers.{number}"
        shapes |= {f"{layer}.linear1": (HIDDEN, WIDTH), f"{layer}.linear2": (WIDTH, HIDDEN)}
        shapes |= {f"{layer}.self_attn.in_proj": (3 * WIDTH, WIDTH), f"{layer}.self_attn.out_proj": (WIDTH, WIDTH)}
        shapes |= {f"{layer}.norm1": (WIDTH,), f"{layer}.norm2": (WIDTH,)}
    found = {}
    for name, shape in shapes.items():
        mark = "_" if name.endswith("in_proj") else "."
        found[f"{name}{mark}weight"] = rng.standard_normal(shape).astype("f4")
        found[f"{name}{mark}bias"] = rng.standard_normal(shape[0]).astype("f4")
    return found


class Storage:
    """Stands for the numbers of one array."""

    def __init__(self, key, array, kind):
        self.key, self.array, self.kind = key, array, kind


class TorchPickler(pickle.Pickler):
    """Writes arrays as torch writes its tensors."""

    def __init__(self, file, modules):
        super().__init__(file, protocol=2)
        self.modules, self.storages = modules, []

    def reducer_override(self, thing):
        if not isinstance(thing, np.ndarray):
            return NotImplemented
        self.storages.append(Storage(str(len(self.storages)), thing, self.modules["torch"].FloatStorage))
        steps = tuple(step // thing.itemsize for step in thing.strides)
        about = (self.storages[-1], 0, thing.shape, steps, False, OrderedDict())
        return self.modules["torch._utils"]._rebuild_tensor_v2, about

    def persistent_id(self, thing):
        if isinstance(thing, Storage):
            return "storage", thing.kind, thing.key, "cpu", thing.array.size
        return None


@pytest.fixture
def write(monkeypatch, tmp_path):
    """Writes a checkpoint without torch, and returns its path."""
    torch, parts = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})

    def _rebuild_tensor_v2():
        raise AssertionError("nobody should call this")

    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    parts._rebuild_tensor_v2 = _rebuild_tensor_v2
    modules = {"torch": torch, "torch._utils": parts}

    def write(content):
        file = io.BytesIO()
        pickler = TorchPickler(file, modules)
        with monkeypatch.context() as patch:  # only here, since scipy asks whether torch was imported
            for name, module in modules.items():
                patch.setitem(sys.modules, name, module)
            pickler.dump(content)
        with zipfile.ZipFile(tmp_path / "checkpoint", "w") as archive:
            archive.writestr("archive/data.pkl", file.getvalue())
            for storage in pickler.storages:
                archive.writestr(f"archive/data/{storage.key}", storage.array.tobytes(order="A"))
        return tmp_path / "checkpoint"

    return write


@pytest.fixture
def network(write):
    weights = OrderedDict((f"module.{name}", weight) for name, weight in random_weights().items())
    weights._metadata = {"": {"version": 1}}  # as torch has it
    return read_network(write((weights, None, {"nhead": HEADS, "nlayers": LAYERS, "num_features": COLUMNS})))


def rows(n=9, n_new=5, seed=1):
    rng = np.random.default_rng(seed)
    X, X_new = (rng.standard_normal((size, COLUMNS)).astype("f4") for size in (n, n_new))
    return X, rng.integers(0, 3, n), X_new


class TestFile:
    def test_weights_are_those_that_were_written(self, network):
        weights = random_weights()
        assert network.weights.keys() == weights.keys()
        assert all((network.weights[name] == weight).all() for name, weight in weights.items())
        assert (network.n_heads, network.n_layers, network.n_columns) == (HEADS, LAYERS, COLUMNS)

    def test_a_transposed_array_is_read_as_it_is(self, write):
        weight = np.arange(6, dtype="f4").reshape(2, 3).T
        settings = {"nhead": 1, "nlayers": 1, "num_features": 1}
        assert (read_network(write(({"a": weight}, None, settings))).weights["a"] == weight).all()

    @pytest.mark.parametrize("name", ["os.system", "builtins.eval", "builtins.getattr", "numpy.load", "torch.load"])
    def test_code_is_rejected(self, tmp_path, name):
        module, function = name.rsplit(".", 1)
        code = f"c{module}\n{function}\n(S'touch {tmp_path / 'harm'}'\ntR.".encode()
        with zipfile.ZipFile(tmp_path / "checkpoint", "w") as archive:
            archive.writestr("archive/data.pkl", code)
        with pytest.raises(UnsafeCheckpointError, match=f"asks for {name}"):
            read_network(tmp_path / "checkpoint")
        assert os.listdir(tmp_path) == ["checkpoint"]

    @pytest.mark.parametrize(
        ("offset", "shape", "strides"), [(1, (4,), (1,)), (0, (2, 3), (3, 1)), (3, (2,), (-1,)), (-1, (2,), (1,))]
    )
    def test_no_array_reaches_beyond_its_numbers(self, offset, shape, strides):
        with pytest.raises(UnsafeCheckpointError, match="beyond its storage"):
            tabpfn._tensor(np.zeros(4, dtype="f4"), offset, shape, strides)

    @pytest.mark.parametrize("key", ["../other", "a"])
    def test_storages_are_numbered(self, key):
        with pytest.raises(UnsafeCheckpointError, match="no storage"):
            tabpfn._Reader(b"", None, "archive").persistent_load(("storage", "float32", key, "cpu", 4))

    def test_where_it_is_looked_for(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CMVMED_TABPFN", str(tmp_path / "weights"))
        assert str(tmp_path / "weights") in tabpfn.missing()
        (tmp_path / "weights").touch()
        assert tabpfn.missing() == ""
        monkeypatch.delenv("CMVMED_TABPFN")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert tabpfn.checkpoint_path().parent == tmp_path / "cmvmed"


def reference(weights, X, y, X_new, scale=True):
    """Logits by the formulas of a post-norm transformer, one row and one head at a time, in double precision."""
    w = {name: weight.astype(float) for name, weight in weights.items()}
    x = [w["encoder.weight"] @ row + w["encoder.bias"] for row in (*X, *X_new)]
    x[: y.size] = [a + w["y_encoder.weight"][:, 0] * c + w["y_encoder.bias"] for a, c in zip(x, y, strict=False)]
    size = WIDTH // HEADS

    def norm(name, a):
        return (a - a.mean()) / np.sqrt(a.var() + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def gelu(a):
        return a * 0.5 * (1.0 + erf(a / np.sqrt(2.0)))

    for number in range(LAYERS):
        layer = f"transformer_encoder.layers.{number}"
        W, b = w[f"{layer}.self_attn.in_proj_weight"], w[f"{layer}.self_attn.in_proj_bias"]
        q, k, v = ([W[s] @ a + b[s] for a in x] for s in (slice(WIDTH * i, WIDTH * (i + 1)) for i in range(3)))
        after = []
        for i, a in enumerate(x):
            heads = []
            for h in (slice(size * j, size * (j + 1)) for j in range(HEADS)):
                match = np.array([q[i][h] @ k[j][h] for j in range(y.size)]) / (np.sqrt(size) if scale else 1.0)
                heads.append(sum(p * v[j][h] for j, p in enumerate(softmax(match))))
            out = w[f"{layer}.self_attn.out_proj.weight"] @ np.concatenate(heads)
            a = norm(f"{layer}.norm1", a + out + w[f"{layer}.self_attn.out_proj.bias"])
            inner = gelu(w[f"{layer}.linear1.weight"] @ a + w[f"{layer}.linear1.bias"])
            after.append(norm(f"{layer}.norm2", a + w[f"{layer}.linear2.weight"] @ inner + w[f"{layer}.linear2.bias"]))
        x = after
    hidden = [gelu(w["decoder.0.weight"] @ a + w["decoder.0.bias"]) for a in x[y.size :]]
    return np.array([w["decoder.2.weight"] @ a + w["decoder.2.bias"] for a in hidden])


class TestNetwork:
    def test_it_follows_the_formulas(self, network):
        X, y, X_new = rows()
        found = network.logits(X, y, X_new)
        assert found.shape == (5, tabpfn.MAX_CLASSES)
        assert found.dtype == np.float32
        assert found == pytest.approx(reference(network.weights, X, y, X_new), abs=1e-4)
        assert np.abs(found - reference(network.weights, X, y, X_new, scale=False)).max() > 1e-2

    def test_the_order_of_rows_does_not_matter(self, network):
        X, y, X_new = rows()
        found, order, of_new = network.logits(X, y, X_new), np.random.default_rng(0).permutation(9), [4, 2, 0, 1, 3]
        assert network.logits(X[order], y[order], X_new) == pytest.approx(found, abs=1e-4)
        assert network.logits(X, y, X_new[of_new]) == pytest.approx(found[of_new], abs=1e-4)
        assert network.logits(X, y, X_new[:1]) == pytest.approx(found[:1], abs=1e-4)  # new rows do not see each other


class NearestRow:
    """In place of the network: the class of the nearest labeled row."""

    n_columns = 8

    def __init__(self):
        self.labels = []

    def logits(self, X, y, X_new):
        assert X.shape[1] == X_new.shape[1] == self.n_columns
        self.labels.append(tuple(y))
        nearest = ((X_new[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)
        return 9.0 * np.eye(tabpfn.MAX_CLASSES)[y[nearest]]


class TestClassifier:
    @pytest.mark.parametrize(("n_columns", "as_sparse"), [(5, False), (30, False), (30, True)])
    def test_shifts_of_classes_are_undone(self, n_columns, as_sparse):
        rng = np.random.default_rng(0)
        y = np.repeat([2, 5, 7], 20)
        X = rng.standard_normal((60, n_columns))
        X[:, :3] += 30.0 * np.eye(3)[np.repeat([0, 1, 2], 20)]
        known = np.where(np.arange(60) % 4, -1, y)
        network = NearestRow()
        model = TabPFN(network).fit(sparse.csr_matrix(X) if as_sparse else X, known)
        p = model.predict_proba(X)
        assert p.sum(axis=1) == pytest.approx(np.ones(60))
        assert (model.predict(X) == y).mean() > 0.95
        assert len(network.labels) == 2 * tabpfn.N_MEMBERS
        assert len(set(network.labels)) == 2  # two shifts of the classes

    def test_probabilities_of_the_tiny_network(self, network):
        X, y, X_new = rows()
        p = TabPFN(network).fit(X, y).predict_proba(X_new)
        assert p.shape == (5, 3)
        assert p.sum(axis=1) == pytest.approx(np.ones(5))
        assert np.isfinite(p).all()

    def test_at_most_ten_classes(self, network):
        with pytest.raises(ValueError, match="at most 10 classes, not 11"):
            TabPFN(network).fit(np.zeros((11, 2)), np.arange(11))

    def test_the_columns_that_tell_classes_apart(self):
        rng = np.random.default_rng(0)
        codes = np.repeat([0, 1], 10)
        X = rng.standard_normal((20, 9))
        X[:, [2, 6]] += 9.0 * codes[:, None]
        X[:, 4] = 1.0
        assert list(best_columns(X, codes, 2)) == [2, 6]
        assert list(best_columns(X, codes, 8)) == [0, 1, 2, 3, 5, 6, 7, 8]
        assert list(best_columns(X[:, :2], codes, 2)) == [0, 1]

    @pytest.mark.parametrize("power", [False, True])
    def test_labeled_rows_decide_the_scale(self, power):
        X = np.random.default_rng(0).standard_normal((50, 3)) * 7.0 + 3.0
        X[:, 1] = 2.0  # constant, hence left out
        X[40:, 0] = 1e6
        found = prepare(X, 40, 10, power)
        assert found.shape == (50, 2)
        assert found.dtype == np.float32
        assert found[:40].std(axis=0) == pytest.approx([5.0, 5.0], rel=0.05)  # 10 / 2 columns
        assert found[40:, 0].max() < 5.0 * 12.0  # far values are drawn in
        assert np.isfinite(found).all()
        assert (prepare(np.ones((4, 3)), 2, 10, power) == 0.0).all()
