"""TabPFN v1 (Hollmann et al., 2023) in numpy: a transformer that reads labeled rows and predicts others in one pass.

The weights (103 MB) are those that its authors published in the source distribution of ``tabpfn`` 0.1:

    python -m benchmarks.suite.tabpfn fetch

puts them where ``CMVMED_TABPFN`` says, else into the user's cache. The file is a zip of a pickle and of raw numbers.
It is read without torch and without running what a pickle may ask for: of all names only three are known here, and
they make plain arrays and dictionaries.

Preprocessing and ensemble follow the authors' classifier: columns standardized by the labeled rows, far values drawn
in, columns scaled by 100 / number of columns, logits at temperature 0.8 averaged over shifts of columns and classes,
each with and without a power transform. It takes at most 10 classes and at most 100 columns. Of wider data, where the
authors draw columns at random, it gets those with the largest F statistic of the labeled rows, which does better.
"""

import argparse
import hashlib
import io
import os
import pickle
import re
import sys
import tarfile
import urllib.parse
import urllib.request
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import erf, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import PowerTransformer

VERSION = "0.1"
CHECKPOINT = "prior_diff_real_checkpoint_n_0_epoch_42.cpkt"
CHECKSUM = "3c9aadaeddbf51462af8c0ee4b3ca3c697890f77e92318abbb0821b75261c392"  # SHA-256 of the checkpoint
DEFAULT_INDEX = "https://pypi.org/simple"
MAX_CLASSES = 10
N_MEMBERS = 4
TEMPERATURE = 0.8
MAX_SIGMAS = 4.0
SEED = 0


def checkpoint_path() -> Path:
    """Where the weights are looked for."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cmvmed"
    return Path(os.environ.get("CMVMED_TABPFN") or folder / CHECKPOINT).expanduser()


def missing() -> str:
    """One line if the weights are not there."""
    path = checkpoint_path()
    return "" if path.is_file() else f"its weights are not at {path} (python -m benchmarks.suite.tabpfn fetch)"


class UnsafeCheckpointError(ValueError):
    """The file asks for something that plain weights do not need."""


class _State(OrderedDict[Any, Any]):
    """A dictionary that passes over attributes, which torch adds to those of its models."""

    def __setstate__(self, state: Any) -> None:
        pass


class _Reader(pickle.Unpickler):
    """Reads nested containers of arrays, whose numbers are 32-bit floats in files of the archive."""

    def __init__(self, text: bytes, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(io.BytesIO(text))
        self.archive, self.root = archive, root

    def find_class(self, module: str, name: str) -> Any:
        """The few names of plain weights; nothing is imported."""
        known = {
            ("collections", "OrderedDict"): _State,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch", "FloatStorage"): "float32",
        }
        if (module, name) not in known:
            raise UnsafeCheckpointError(f"the checkpoint asks for {module}.{name}, which weights do not need")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """The numbers of a storage."""
        kind, dtype, key, _, size = pid
        if (kind, dtype) != ("storage", "float32") or not str(key).isdigit():
            raise UnsafeCheckpointError(f"the checkpoint asks for {pid!r}, which is no storage of 32-bit floats")
        return np.frombuffer(self.archive.read(f"{self.root}/data/{key}"), dtype="<f4", count=size)


def _tensor(storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> Any:
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if min(offset, *shape, *strides) < 0 or last >= storage.size:
        raise UnsafeCheckpointError("a tensor of the checkpoint reaches beyond its storage")
    steps = tuple(step * storage.itemsize for step in strides)
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps).copy()


@dataclass(frozen=True)
class Network:
    """The transformer.

    Attributes
    ----------
    weights : mapping from name to float32 array
        As torch names them, ``transformer_encoder.layers.0.linear1.weight`` and so on.
    n_heads, n_layers : int
    n_columns : int
        Width of its input.
    """

    weights: Mapping[str, Any]
    n_heads: int
    n_layers: int
    n_columns: int

    def logits(self, X: Any, y: Any, X_new: Any) -> Any:
        """Scores (n_new, 10) of new rows, given rows and their class codes; every row sees the labeled rows only."""
        labeled = self._linear("encoder", X) + self._linear("y_encoder", y[:, None].astype(np.float32))
        rows = np.vstack([labeled, self._linear("encoder", X_new)])
        for number in range(self.n_layers):
            rows = self._layer(f"transformer_encoder.layers.{number}", rows, y.size)
        return self._linear("decoder.2", _gelu(self._linear("decoder.0", rows[y.size :])))

    def _layer(self, name: str, rows: Any, n_labeled: int) -> Any:
        rows = self._normalized(f"{name}.norm1", rows + self._attention(f"{name}.self_attn", rows, n_labeled))
        hidden = _gelu(self._linear(f"{name}.linear1", rows))
        return self._normalized(f"{name}.norm2", rows + self._linear(f"{name}.linear2", hidden))

    def _attention(self, name: str, rows: Any, n_labeled: int) -> Any:
        weight, bias = self.weights[f"{name}.in_proj_weight"], self.weights[f"{name}.in_proj_bias"]
        width = rows.shape[1]
        queries = rows @ weight[:width].T + bias[:width]
        keys, values = np.split(rows[:n_labeled] @ weight[width:].T + bias[width:], 2, axis=1)
        q, k, v = (self._by_head(part) for part in (queries, keys, values))
        shares = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2], dtype=np.float32), axis=2)
        return self._linear(f"{name}.out_proj", (shares @ v).transpose(1, 0, 2).reshape(rows.shape))

    def _by_head(self, rows: Any) -> Any:
        return rows.reshape(rows.shape[0], self.n_heads, -1).transpose(1, 0, 2)

    def _linear(self, name: str, rows: Any) -> Any:
        return rows @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normalized(self, name: str, rows: Any) -> Any:
        centered = rows - rows.mean(axis=1, keepdims=True)
        scale = np.sqrt((centered**2).mean(axis=1, keepdims=True) + np.float32(1e-5))
        return centered / scale * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _gelu(rows: Any) -> Any:
    return rows * (erf(rows * np.float32(np.sqrt(0.5))) + 1) * np.float32(0.5)


def read_network(path: Path) -> Network:
    """The network of a checkpoint, which holds a triple of weights, state of the optimizer (None) and settings."""
    with zipfile.ZipFile(path) as archive:
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        root = pickled.removesuffix("/data.pkl")
        weights, _, settings = _Reader(archive.read(pickled), archive, root).load()
    weights = {name.removeprefix("module."): weight for name, weight in weights.items()}
    return Network(weights, settings["nhead"], settings["nlayers"], settings["num_features"])


@cache
def _network(path: Path) -> Network:
    return read_network(path)


class TabPFN(ClassifierMixin, BaseEstimator):
    """TabPFN v1 on the labeled rows; -1 marks unlabeled rows, which it passes over.

    Parameters
    ----------
    network : Network or None
        None reads the weights from :func:`checkpoint_path`.
    """

    def __init__(self, network: Network | None = None) -> None:
        self.network = network

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the labeled rows and choose the columns."""
        self.network_ = self.network or _network(checkpoint_path())
        labeled = np.flatnonzero(np.asarray(y) >= 0)
        self.classes_, self.codes_ = np.unique(np.asarray(y)[labeled], return_inverse=True)
        if self.classes_.size > MAX_CLASSES:
            raise ValueError(f"TabPFN takes at most {MAX_CLASSES} classes, not {self.classes_.size}")
        self.columns_ = best_columns(X[labeled], self.codes_, self.network_.n_columns)
        self.X_ = self._chosen(X[labeled])
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class."""
        return softmax(np.mean(list(self._members(self._chosen(X))), axis=0) / TEMPERATURE, axis=1)

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _chosen(self, X: Any) -> Any:
        X = X[:, self.columns_]
        return X.toarray() if sparse.issparse(X) else np.asarray(X)

    def _members(self, X_new: Any) -> Iterator[Any]:
        """Logits (n, K) of each member of the ensemble."""
        n_classes, width = self.classes_.size, self.network_.n_columns
        both = np.vstack([self.X_, X_new])
        prepared = [prepare(both, self.codes_.size, width, power=power) for power in (False, True)]
        rng = np.random.default_rng(SEED)
        column_shifts, class_shifts = rng.permutation(both.shape[1]), rng.permutation(n_classes)
        for member in range(N_MEMBERS):
            rows = prepared[member % 2]
            of_columns, of_classes = (int(s[member // 2 % s.size]) for s in (column_shifts, class_shifts))
            rows = np.roll(rows, -of_columns, axis=1)
            rows = np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
            known, new = rows[: self.codes_.size], rows[self.codes_.size :]
            logits = self.network_.logits(known, (self.codes_ + of_classes) % n_classes, new)[:, :n_classes]
            yield np.roll(logits, -of_classes, axis=1)


def best_columns(X: Any, codes: Any, n_columns: int) -> Any:
    """Positions of at most so many columns, those of the largest F statistic; one that is constant comes last."""
    if X.shape[1] <= n_columns:
        return np.arange(X.shape[1])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        statistic = np.nan_to_num(f_classif(X, codes)[0], nan=-1.0)
    return np.sort(np.argsort(-statistic, kind="stable")[:n_columns])


def prepare(X: Any, n_labeled: int, width: int, power: bool) -> Any:
    """Rows as the network was trained to read them; the first ``n_labeled`` decide how all are scaled."""
    known = X[:n_labeled]
    X = np.clip((X - known.mean(axis=0)) / (_deviation(known) + 1e-6), -100.0, 100.0)
    X = X[:, np.ptp(X[:n_labeled], axis=0) > 0.0]
    if not X.shape[1]:
        return np.zeros((X.shape[0], 1), dtype=np.float32)
    X = _drawn_in(_power_transformed(X, n_labeled) if power else X, n_labeled)
    return (X * (width / X.shape[1])).astype(np.float32)


def _power_transformed(X: Any, n_labeled: int) -> Any:
    """Columns by Yeo and Johnson's transform; one whose transform fails or is not finite stays as it is."""
    found = X.copy()
    for column in range(X.shape[1]):
        one = X[:, [column]]
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            try:
                new = PowerTransformer().fit(one[:n_labeled]).transform(one)
            except (ValueError, Warning, FloatingPointError, np.linalg.LinAlgError):
                continue
        if np.isfinite(new).all():
            found[:, [column]] = new
    return found


def _drawn_in(X: Any, n_labeled: int) -> Any:
    """Values beyond four standard deviations of the labeled rows, found without outliers, grow by their logarithm."""
    known = X[:n_labeled]
    center, reach = known.mean(axis=0), MAX_SIGMAS * _deviation(known)
    usual = np.ma.array(known, mask=np.abs(known - center) > reach)
    center = usual.mean(axis=0).filled(0.0)
    reach = MAX_SIGMAS * np.ma.filled(usual.std(axis=0, ddof=1 if n_labeled > 1 else 0), 0.0)
    X = np.maximum(X, center - reach - np.log1p(np.abs(X)))
    return np.minimum(X, center + reach + np.log1p(np.abs(X)))


def _deviation(X: Any) -> Any:
    return X.std(axis=0, ddof=1) if X.shape[0] > 1 else np.zeros(X.shape[1])


def fetch(path: Path) -> None:
    """Download the source distribution from the package index and keep its checkpoint.

    The file is taken as it is: pip would run the distribution's build, which no longer works.
    """
    index = f"{(os.environ.get('PIP_INDEX_URL') or DEFAULT_INDEX).rstrip('/')}/tabpfn/"
    with urllib.request.urlopen(index, timeout=60) as page:
        found = re.search(rf'href="([^"]*/tabpfn-{re.escape(VERSION)}\.tar\.gz)[#"]', page.read().decode())
    if not found:
        raise FileNotFoundError(f"{index} does not list tabpfn-{VERSION}.tar.gz")
    with urllib.request.urlopen(urllib.parse.urljoin(index, found[1]), timeout=600) as answer:
        distribution = answer.read()
    with tarfile.open(fileobj=io.BytesIO(distribution)) as archive:
        member = next(member for member in archive.getmembers() if member.name.endswith(CHECKPOINT))
        checkpoint = archive.extractfile(member).read()  # type: ignore[union-attr]
    if hashlib.sha256(checkpoint).hexdigest() != CHECKSUM:
        raise UnsafeCheckpointError(f"{CHECKPOINT} is not the file that was published")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(checkpoint)
    os.replace(part, path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite.tabpfn", description="Weights of TabPFN v1.")
    parser.add_argument("command", choices=["fetch"])
    parser.add_argument("--tabpfn", type=Path, default=checkpoint_path(), metavar="PATH", help="where they are kept")
    path = parser.parse_args().tabpfn
    if not path.is_file():
        fetch(path)
    network = read_network(path)
    print(f"{path}: {network.n_layers} layers, {sum(w.size for w in network.weights.values()) / 1e6:.1f} M weights")


if __name__ == "__main__":
    sys.exit(main())
