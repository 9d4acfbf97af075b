"""The layers of the package: imports go downwards only, scikit-learn is subclassed and text printed at the top alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cmvmed
from core.factories import rejects

PACKAGE = Path(cmvmed.__file__).parent

# From the bottom up. A module may import from lower layers and, without going round in circles, from its own.
LAYERS = (
    ("linalg",),
    ("kernels", "scaling"),
    ("qp", "surrogates"),
    ("posterior", "consensus", "prior"),
    ("annealing",),
    ("machines", "training", "views", "labels", "model_selection"),
    ("estimators",),
    ("",),  # the package itself, which hands out the public names
)
LEAVES = ("datasets", "features")  # beside the layers: they know no estimator and no layer knows them
CORE = tuple(name for layer in LAYERS[:5] for name in layer)
MAY_SUBCLASS_SKLEARN = ("estimators", "features", "model_selection")


def read_sources(package):
    """Syntax trees by dotted module name without the package's own name; "" is the package itself."""
    sources = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        sources[".".join(part for part in parts if part != "__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return sources


def imported_modules(name, tree, known):
    """Modules of the package that a module imports, anywhere in its code."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                targets = [alias.name for alias in names]
            case ast.ImportFrom(module=module, level=0, names=names):
                targets = [f"{module}.{alias.name}" for alias in names]
            case ast.ImportFrom(module=module, level=level, names=names):
                package = ["cmvmed", *name.split(".")][:-level]
                targets = [".".join([*package, module or "", alias.name]).replace("..", ".") for alias in names]
            case _:
                targets = []
        inside = [
            target.removeprefix("cmvmed").removeprefix(".") for target in targets if target.split(".")[0] == "cmvmed"
        ]
        found |= {target if target in known else target.rpartition(".")[0] for target in inside}
    return found - {name}


def part_of(name):
    """The layered part that a module belongs to: its first name."""
    return name.split(".")[0]


def import_graph(sources):
    return {name: imported_modules(name, tree, sources) for name, tree in sources.items()}


def check_downwards(sources):
    rank = {name: level for level, layer in enumerate(LAYERS) for name in layer}
    for name, targets in import_graph(sources).items():
        assert part_of(name) in rank or part_of(name) in LEAVES, f"give {name!r} a layer"
        for target in targets:
            here, there = part_of(name), part_of(target)
            allowed = here == there or rank.get(there, len(LAYERS)) <= rank.get(here, rank["views"])
            assert allowed, f"{name} imports {target}, which is not below it"


def check_no_circles(sources):
    """Take away modules that import only what is gone already, until none is left."""
    graph = import_graph(sources)
    gone = set()
    for _ in range(len(graph)):
        gone |= {name for name, targets in graph.items() if targets <= gone}
    assert gone == set(graph), f"circular imports among {sorted(set(graph) - gone)}"


def sklearn_names(tree):
    """Names bound by imports from scikit-learn."""
    return {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).split(".")[0] == "sklearn"
    }


def check_subclasses(sources):
    for name, tree in sources.items():
        foreign = sklearn_names(tree)
        bases = {
            root.id
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            for root in ast.walk(base)
            if isinstance(root, ast.Name)
        }
        assert part_of(name) in MAY_SUBCLASS_SKLEARN or not bases & foreign, f"{name} subclasses {bases & foreign}"


def check_silent(sources):
    for name, tree in sources.items():
        calls = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert part_of(name) not in CORE or "print" not in calls, f"{name} prints"


@pytest.fixture(scope="module")
def sources():
    return read_sources(PACKAGE)


def with_code(sources, name, code):
    """The same package with some code added to one module, possibly a new one."""
    body = sources[name].body if name in sources else []
    return {**sources, name: ast.Module(body=[*body, *ast.parse(code).body], type_ignores=[])}


def test_every_layer_has_its_modules(sources):
    assert {part_of(name) for name in sources} >= {name for layer in LAYERS for name in layer}
    assert len(import_graph(sources)["estimators.cmvmed"]) > 5


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("linalg", "from cmvmed.kernels import Kernel"),
        ("qp", "import cmvmed.posterior"),
        ("consensus", "def f():\n    from cmvmed import annealing"),
        ("prior", "from .training import fit_consensus"),
        ("annealing", "from cmvmed.estimators.base import generator"),
        ("machines", "from cmvmed.estimators import MED"),
        ("kernels", "from cmvmed import CMVMED"),
        ("datasets.bunch", "from cmvmed.estimators import MED"),
        ("features.text", "from cmvmed import MED"),
        ("posterior", "from cmvmed.datasets import fetch_webkb_course"),
        ("estimators.med", "from cmvmed.features import TextView"),
        ("helpers", "import numpy"),
    ],
)
def test_imports_go_downwards(sources, module, code):
    check_downwards(sources)
    rejects(check_downwards, with_code(sources, module, code))


def test_no_circles(sources):
    check_no_circles(sources)
    rejects(check_no_circles, with_code(sources, "machines", "from cmvmed.training import RowRoles"))
    rejects(
        check_no_circles,
        with_code(sources, "consensus", "from cmvmed.prior import Balance\nimport cmvmed.posterior")
        | {"prior": ast.parse("from cmvmed.consensus import pool")},
    )


@pytest.mark.parametrize(
    "code",
    [
        "from sklearn.base import BaseEstimator\nclass Twin(BaseEstimator): pass",
        "import sklearn.base\nclass Twin(sklearn.base.BaseEstimator): pass",
        "from sklearn.base import ClassifierMixin as Mixin\nclass Twin(Mixin): pass",
    ],
)
def test_only_the_top_subclasses_scikit_learn(sources, code):
    check_subclasses(sources)
    for module in ("posterior", "training", "datasets.bunch"):
        rejects(check_subclasses, with_code(sources, module, code))
    check_subclasses(with_code(sources, "estimators.med", code))


def test_core_is_silent(sources):
    check_silent(sources)
    rejects(check_silent, with_code(sources, "qp", "def f():\n    print('residual')"))
    rejects(check_silent, with_code(sources, "annealing", "print('stage')"))
