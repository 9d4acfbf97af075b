"""Models elsewhere: an ONNX model and predictions of Dask arrays give what the library gives, whatever the members.

Small models with members of every kind are fitted to random rows, with gaps and absent views. New rows, some of which lack
views, are predicted by the library, by onnxruntime from the exported model in the numbers that it is given, and block by
block from a Dask array. Probabilities differ by at most :data:`TOLERANCES`.
"""

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

import cmvmed
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, SKIPPED, Fault
from benchmarks.faults.errors import check_clear

CASES = {"ci": 30, "nightly": 1000}
TOLERANCES = {"ONNX, float32": 1e-5, "ONNX, float64": 1e-9, "Dask": 1e-10}
MEMBERS = (
    "auto",
    ("views",),
    ("lda", "trees"),
    ("trees", "trees_all"),
    ("graph", "view_graphs", "consensus"),
    ("views", "lda", "trees_all", "consensus"),
    "consensus",
)


@dataclass(frozen=True)
class Case:
    """A target, a model and its rows."""

    target: str = "ONNX, float32"
    seed: int = 0
    n_rows: int = 24
    n_classes: int = 2
    n_views: int = 2
    members: Any = "auto"
    kernel: str = "auto"
    scaling: str | None = "auto"
    approximation: Any = "auto"
    shift: float = 0.0
    gaps: bool = False
    texts: bool = False


def draw(rng: np.random.Generator, number: int) -> Case:
    """Targets take turns."""
    n_classes = int(rng.choice([2, 2, 3, 5]))
    return Case(
        target=list(TOLERANCES)[number % len(TOLERANCES)],
        seed=int(rng.integers(2**31)),
        n_rows=int(rng.integers(4 * n_classes, 40)),
        n_classes=n_classes,
        n_views=int(rng.choice([1, 2, 2, 3])),
        members=MEMBERS[int(rng.integers(len(MEMBERS)))],
        kernel=str(rng.choice(["auto", "auto", "linear", "rbf", "linear+rbf", "cosine"])),
        scaling=[None, "auto", "auto", "standard", "unit"][int(rng.integers(5))],
        approximation=["auto", "auto", 5][int(rng.integers(3))],
        shift=float(rng.choice([0.0, 0.0, 3.0, 100.0])),
        gaps=bool(rng.random() < 0.4),
        texts=bool(rng.random() < 0.3),
    )


def check(case: Case) -> str:
    """Fit, predict new rows in both ways, and compare."""
    if not find_spec("dask" if case.target == "Dask" else "onnxruntime"):
        return SKIPPED
    views, y, new = rows(case)
    members = list(case.members) if isinstance(case.members, tuple) else case.members
    settings = {"kernel": case.kernel, "scaling": case.scaling, "approximation": case.approximation}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = cmvmed.CMVMED(n_stages=2, members=members, random_state=0, **settings).fit(views, y)
        except ValueError as error:
            check_clear(error)
            return CLEAR_ERROR
        given = [view.astype(np.float32).astype(np.float64) for view in new] if case.target.endswith("32") else new
        expected = model.predict_proba(given)
        found = by_dask(model, given) if case.target == "Dask" else by_onnx(model, given, case.target[-7:])
    difference = float(np.abs(found - expected).max())
    if found.shape != expected.shape or not difference <= TOLERANCES[case.target]:
        raise Fault(f"{case.target}: probabilities differ", f"by {difference:.3g}")
    return HELD


def rows(case: Case) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
    """Views and labels of a fit, and new rows; some lack cells or views."""
    rng = np.random.default_rng(case.seed)
    n_new = 20
    codes = np.r_[np.arange(case.n_rows) % case.n_classes, rng.integers(case.n_classes, size=n_new)]
    views = [
        case.shift + rng.normal(size=(codes.size, 2 + i)) + 1.5 * rng.normal(size=(case.n_classes, 2 + i))[codes]
        for i in range(case.n_views)
    ]
    if case.gaps:
        for view in views:
            view[rng.random(view.shape) < 0.05] = np.nan
        views[0][rng.random(codes.size) < 0.15] = np.nan
    classes: Any = np.array([f"c{k}" for k in range(case.n_classes)], dtype=object) if case.texts else None
    labeled = np.arange(case.n_rows) < max(2 * case.n_classes, case.n_rows // 2)
    known = codes[: case.n_rows] if classes is None else classes[codes[: case.n_rows]]
    y = np.where(labeled, known, -1 if classes is None else None)
    return [view[: case.n_rows] for view in views], y, [view[case.n_rows :] for view in views]


def by_onnx(model: Any, views: list[np.ndarray], dtype: str) -> np.ndarray:
    """Probabilities by onnxruntime."""
    import onnxruntime

    proto = model.to_onnx(dtype=dtype)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    inputs = {name: view.astype(dtype) for name, view in zip(names, views, strict=True)}
    return np.asarray(session.run(["probabilities"], inputs)[0], dtype=np.float64)


def by_dask(model: Any, views: list[np.ndarray]) -> np.ndarray:
    """Probabilities of Dask arrays of several blocks."""
    import dask.array as da

    return np.asarray(model.predict_proba([da.from_array(view, chunks=(7, -1)) for view in views]))
