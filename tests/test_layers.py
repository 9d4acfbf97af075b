"""The layers of the package: imports go downwards only, scikit-learn is subclassed and text printed at the top alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

import cmvmed
from tests.core.factories import rejects

PACKAGE = Path(cmvmed.__file__).parent

# From the bottom up. A module may import from lower layers and, without going round in circles, from its own.
LAYERS = (
    ("linalg",),
    ("kernels", "scaling"),
    ("qp", "surrogates", "two_view_duals", "coregularized", "nystroem"),
    ("posterior", "exact_views", "low_rank", "consensus", "prior"),
    ("annealing",),
    (
        "parallel",
        "machines",
        "neighbors",
        "training",
        "folds",
        "label_evidence",
        "balanced_training",
        "calibration",
        "chunk_passes",
        "streamed_training",
        "views",
        "labels",
        "model_selection",
        "sources",
    ),
    ("estimators",),
    ("",),  # the package itself, which hands out the public names
    ("experiments", "demonstration"),
    ("report",),
    ("commands",),
    ("cli", "__main__"),
)
LEAVES = (
    "datasets",
    "features",
)  # beside the layers: they know no estimator, and only what stands on the package knows them
CORE = tuple(name for layer in LAYERS[:5] for name in layer)
MAY_SUBCLASS_SKLEARN = ("estimators", "features", "model_selection", "experiments")
RANK = {name: level for level, layer in enumerate(LAYERS) for name in layer}


@dataclass(frozen=True)
class Facts:
    """What a module's code says of itself."""

    imports: frozenset[str]  # dotted names, absolute
    sklearn_names: frozenset[str]  # names that its imports from scikit-learn bind
    bases: frozenset[str]  # names that occur in the bases of its classes
    calls: frozenset[str]  # names it calls

    def __or__(self, other):
        return Facts(
            self.imports | other.imports,
            self.sklearn_names | other.sklearn_names,
            self.bases | other.bases,
            self.calls | other.calls,
        )


def read_code(name, code):
    """Facts of a module's source; ``name`` is dotted and without the package's own name."""
    imports, sklearn_names, bases, calls = set(), set(), set(), set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                imports |= {alias.name for alias in names}
                sklearn_names |= {alias.asname or "sklearn" for alias in names if alias.name.split(".")[0] == "sklearn"}
            case ast.ImportFrom(module=module, level=level, names=names):
                package = ["cmvmed", *name.split(".")][: -level or None] * bool(level)
                origin = ".".join([*package, *filter(None, [module])])
                imports |= {f"{origin}.{alias.name}" for alias in names}
                sklearn_names |= {alias.asname or alias.name for alias in names if origin.split(".")[0] == "sklearn"}
            case ast.ClassDef(bases=nodes):
                bases |= {part.id for base in nodes for part in ast.walk(base) if isinstance(part, ast.Name)}
            case ast.Call(func=ast.Name(id=called)):
                calls.add(called)
    return Facts(frozenset(imports), frozenset(sklearn_names), frozenset(bases), frozenset(calls))


def read_package(package):
    """Facts by module name; "" is the package itself."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        modules[name] = read_code(name, path.read_text(encoding="utf-8"))
    return modules


def part_of(name):
    """The layered part that a module belongs to: its first name."""
    return name.split(".")[0]


def import_graph(modules):
    """Which modules of the package each one imports."""
    graph = {}
    for name, facts in modules.items():
        inside = {
            target.removeprefix("cmvmed").removeprefix(".") for target in facts.imports if part_of(target) == "cmvmed"
        }
        graph[name] = {target if target in modules else target.rpartition(".")[0] for target in inside} - {name}
    return graph


def check_downwards(modules):
    for name, targets in import_graph(modules).items():
        here = part_of(name)
        assert here in RANK or here in LEAVES, f"give {name!r} a layer"
        for there in {part_of(target) for target in targets} - {here}:
            lowest = RANK.get(there, RANK["experiments"])  # that may import from there
            assert lowest <= RANK.get(here, RANK["views"]), f"{name} imports from {there!r}"


def check_no_circles(modules):
    """Take away modules that import only what is gone already, until none is left."""
    graph, gone = import_graph(modules), set()
    for _ in graph:
        gone |= {name for name, targets in graph.items() if targets <= gone}
    assert gone == set(graph), f"circular imports among {sorted(set(graph) - gone)}"


def check_subclasses(modules):
    for name, facts in modules.items():
        foreign = facts.bases & facts.sklearn_names
        assert part_of(name) in MAY_SUBCLASS_SKLEARN or not foreign, f"{name} subclasses {foreign}"


def check_silent(modules):
    for name, facts in modules.items():
        assert part_of(name) not in CORE or "print" not in facts.calls, f"{name} prints"


@pytest.fixture(scope="module")
def modules():
    return read_package(PACKAGE)


def with_code(modules, name, code):
    """The same package with some code added to one module, possibly a new one."""
    nothing = read_code(name, "")
    return modules | {name: modules.get(name, nothing) | read_code(name, code)}


def test_modules_are_read(modules):
    assert {"linalg", "qp", "posterior", "annealing", "estimators.base", "datasets.bunch", ""} <= set(modules)
    assert {"consensus", "calibration", "estimators.base", "estimators.fitted"} <= import_graph(modules)[
        "estimators.cmvmed"
    ]


def test_imports_go_downwards(modules):
    check_downwards(modules)


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("linalg", "from cmvmed.core.kernels import Kernel"),
        ("qp", "import cmvmed.core.posterior"),
        ("consensus", "def f():\n    from cmvmed import annealing"),
        ("prior", "from .balanced_training import fit_consensus"),
        ("annealing", "from cmvmed.estimators._base import generator"),
        ("machines", "from cmvmed.estimators import MED"),
        ("kernels", "from cmvmed import CMVMED"),
        ("datasets.bunch", "from cmvmed.estimators import MED"),
        ("datasets.bunch", "from ..estimators import MED"),
        ("features.text", "from cmvmed import MED"),
        ("posterior", "from cmvmed.datasets import fetch_webkb_course"),
        ("estimators.med", "from cmvmed.features import TextView"),
        ("helpers", "import numpy"),
    ],
)
def test_import_upwards_is_rejected(modules, module, code):
    rejects(check_downwards, with_code(modules, module, code))


def test_no_circles(modules):
    check_no_circles(modules)
    rejects(check_no_circles, with_code(modules, "machines", "from cmvmed.core.problem import RowPartition"))
    one_way = with_code(modules, "consensus", "from cmvmed.auto.class_prior import ClassBalance")
    check_no_circles(one_way)
    rejects(check_no_circles, with_code(one_way, "prior", "from cmvmed.core.consensus import pool"))


@pytest.mark.parametrize(
    "code",
    [
        "from sklearn.base import BaseEstimator\nclass Twin(BaseEstimator): pass",
        "import sklearn.base\nclass Twin(sklearn.base.BaseEstimator): pass",
        "from sklearn.base import ClassifierMixin as Mixin\nclass Twin(Mixin): pass",
    ],
)
def test_only_the_top_subclasses_scikit_learn(modules, code):
    check_subclasses(modules)
    for module in ("posterior", "training", "datasets.bunch"):
        rejects(check_subclasses, with_code(modules, module, code))
    check_subclasses(with_code(modules, "estimators.med", code))


def test_core_is_silent(modules):
    check_silent(modules)
    rejects(check_silent, with_code(modules, "qp", "def f():\n    print('residual')"))
    rejects(check_silent, with_code(modules, "annealing", "print('stage')"))
