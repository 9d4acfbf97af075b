"""The packages: what each may import, what may subclass scikit-learn and print, and that no name occurs twice.

The package knows nothing of the folders beside it, ``experiments`` and ``benchmarks``, which use it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import cmvmed
from tests.core.factories import rejects

PACKAGE = Path(cmvmed.__file__).parent
DOTTED = re.compile(r"cmvmed(\.\w+)+")
REPOSITORY = Path(__file__).parents[1]
ROOT = ""  # the package itself, which provides the public names

# The parts that each part may import. A part is a package, or a module beside the packages.
ALLOWED = {
    "numerics": (),
    "core": ("numerics",),
    "data": ("numerics",),
    "views": ("numerics", "core", "data"),
    "graphs": ("numerics", "views", "data"),
    "model": ("numerics", "core", "data", "views", "graphs", "_saved_classes"),
    "auto": ("numerics", "core", "data", "views", "graphs"),
    "members": ("numerics", "core", "data", "views", "graphs", "model", "auto"),
    "baselines": ("numerics", "core"),
    "scale": ("numerics", "core", "data", "views", "model", "auto"),
    "monitoring": ("numerics", "data", "views", "model"),
    "estimators": (
        "numerics",
        "core",
        "data",
        "views",
        "graphs",
        "model",
        "auto",
        "members",
        "baselines",
        "scale",
        "monitoring",
    ),
    "recordings": (),
    "features": ("recordings",),
    "plots": ("recordings",),
    "datasets": (),
    "model_selection": (),
    "pages": (),
    "demo": ("pages",),
    "workbench": ("features", "recordings", "pages", "_sqlite_files"),
    "labeling": ("features", "recordings", "pages", "workbench", "_parent_process"),
    "_config": (),
    "_file_errors": (),
    "_html": (),
    "_optional": (),
    "_parent_process": (),
    "_saved_classes": (),
    "_sqlite_files": (),
    "_warnings": (),
}
PUBLIC = (ROOT, "datasets", "features", "model_selection", "recordings")  # the modules whose names are public
ALLOWED_MODULES = {
    "model_selection": ("data.labels", "data.groups"),
    "model": (ROOT,),  # its version
    "demo": PUBLIC,
    "workbench": (*PUBLIC, "data.labels"),
    "labeling": PUBLIC,
}  # no other module of their parts
HELPERS = (
    "_config",
    "_file_errors",
    "_html",
    "_optional",
    "_warnings",
)  # small modules that any part but these may import
WITHOUT_HELPERS = ("numerics", "core", "demo", *HELPERS)
UNRESTRICTED = (ROOT, "cli", "__main__", "_saved_classes")  # the last names classes of all parts, and imports nothing
MAY_SUBCLASS_SKLEARN = ("estimators", "features", "model_selection")
SILENT = (
    "numerics",
    "core",
    "views",
    "graphs",
    "members",
    "model",
    "data",
    "auto",
    "scale",
    "monitoring",
    "baselines",
    "estimators",
    "recordings",
    "workbench",
    "labeling",
)
BESIDE = ("benchmarks", "experiments")  # folders of the repository that the package must not know
# What the experiments may import beside public names: pages and their charts, files and processes that are safe to kill,
# what loaders share, the callback that records stages, the errors and exit codes of commands, and what a search needs whose
# trials share factorizations.
FOR_EXPERIMENTS = (
    *PUBLIC,
    "pages",
    "_parent_process",
    "_sqlite_files",
    "cli.main",
    "datasets.bunch",
    "demo.stage_recorder",
    "auto.cross_fitting",
    "core.annealing",
    "core.full_kernel",
    "core.problem",
    "estimators._settings",
    "views.view_kernel",
)


@dataclass(frozen=True)
class Facts:
    """What the code of a module contains."""

    imports: frozenset[str]  # dotted names, absolute
    typing_imports: frozenset[str]  # those for type annotations only, and texts that name modules or classes
    sklearn_names: frozenset[str]  # names that its imports from scikit-learn bind
    bases: frozenset[str]  # names that occur in the bases of its classes
    calls: frozenset[str]  # names it calls
    texts: frozenset[str]  # its strings, except docstrings

    def __or__(self, other):
        return Facts(*(mine | theirs for mine, theirs in zip(self.parts, other.parts, strict=True)))

    @property
    def parts(self):
        return self.imports, self.typing_imports, self.sklearn_names, self.bases, self.calls, self.texts


def imported_names(node, package):
    """Dotted names that an import binds, and the names under which it binds them."""
    if isinstance(node, ast.Import):
        return {alias.name: alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        parent = package[: len(package) + 1 - node.level] if node.level else []
        origin = ".".join([*parent, *filter(None, [node.module])])
        return {f"{origin}.{alias.name}": alias.asname or alias.name for alias in node.names}
    return {}


def is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def read_code(name, code, *, is_package=False, root="cmvmed"):
    """Facts of a module's source; ``name`` is dotted and without the package's own name."""
    package = [root, *filter(None, name.split("."))]
    package = package if is_package else package[:-1]
    nodes = list(ast.walk(ast.parse(code)))
    for_types = {id(part) for node in nodes if is_type_checking(node) for line in node.body for part in ast.walk(line)}
    docstrings = {id(node.value) for node in nodes if is_docstring(node)}
    imports, typing_imports, sklearn_names, bases, calls, texts = set(), set(), set(), set(), set(), set()
    for node in nodes:
        names = imported_names(node, package)
        (typing_imports if id(node) in for_types else imports).update(names)
        sklearn_names |= {bound for dotted, bound in names.items() if dotted.split(".")[0] == "sklearn"}
        match node:
            case ast.ClassDef(bases=expressions):
                bases |= {part.id for base in expressions for part in ast.walk(base) if isinstance(part, ast.Name)}
            case ast.Call(func=ast.Name(id=called)):
                calls.add(called)
            case ast.Constant(value=str(text)) if DOTTED.fullmatch(text):
                typing_imports.add(text)  # a module or class by its name, which is not imported with this one
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                texts.add(text)
    return Facts(*map(frozenset, (imports, typing_imports, sklearn_names, bases, calls, texts)))


def read_package(package):
    """Facts by module name; "" is the package itself."""
    modules, root = {}, package.name
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        modules[name] = read_code(name, path.read_text(encoding="utf-8"), is_package=parts[-1] == "__init__", root=root)
    return modules


def part_of(name):
    """The package that a module belongs to, or its own name: the first part of its dotted name."""
    return name.split(".")[0]


def import_graph(modules, *, for_types=True):
    """Which modules of the package each one imports, with or without those for type annotations only."""
    graph = {}
    for name, facts in modules.items():
        dotted = facts.imports | facts.typing_imports if for_types else facts.imports
        inside = {target.removeprefix("cmvmed").removeprefix(".") for target in dotted if part_of(target) == "cmvmed"}
        graph[name] = {target if target in modules else target.rpartition(".")[0] for target in inside} - {name}
    return graph


def may_import(name, target):
    here, there = part_of(name), part_of(target)
    if there == here or target in ALLOWED_MODULES.get(here, ()):
        return True
    return there in ALLOWED[here] or (there in HELPERS and here not in WITHOUT_HELPERS)


def check_imports(modules):
    for name, targets in import_graph(modules).items():
        if part_of(name) in UNRESTRICTED:
            continue
        assert part_of(name) in ALLOWED, f"say what {part_of(name)!r} may import"
        wrong = sorted(target or "cmvmed" for target in targets if not may_import(name, target))
        assert wrong == [], f"{name} imports {wrong}"


def check_nothing_beside(modules):
    """Neither an import nor a string names a module of the folders beside the package."""
    for name, facts in modules.items():
        dotted = facts.imports | facts.typing_imports | facts.texts
        wrong = sorted(text for text in dotted if re.match(rf"({'|'.join(BESIDE)})(\.\w+)*$", text))
        assert wrong == [], f"{name} names {wrong}"


def check_experiments(experiments, modules):
    for name, facts in experiments.items():
        dotted = facts.imports | facts.typing_imports
        inside = {target.removeprefix("cmvmed").removeprefix(".") for target in dotted if part_of(target) == "cmvmed"}
        targets = {target if target in modules else target.rpartition(".")[0] for target in inside}
        wrong = sorted(t or "cmvmed" for t in targets if not {t, part_of(t)} & set(FOR_EXPERIMENTS) or is_private(t))
        assert wrong == [], f"experiments.{name} imports {wrong}"
        assert "benchmarks" not in {part_of(target) for target in dotted}, f"experiments.{name} imports benchmarks"


def is_private(target):
    """Whether a module belongs to a public package without being public itself."""
    return part_of(target) in PUBLIC and target not in FOR_EXPERIMENTS


def check_no_circles(modules):
    """Remove modules that import only removed ones, until none is left."""
    graph, removed = import_graph(modules, for_types=False), set()
    for _ in graph:
        removed |= {name for name, targets in graph.items() if targets <= removed}
    assert removed == set(graph), f"circular imports among {sorted(set(graph) - removed)}"


def check_different_names(modules):
    """The last part of each dotted name, which is the name of the file or, for ``__init__``, of the folder."""
    counts = Counter(name.rpartition(".")[2] for name in modules if name != ROOT)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    assert repeated == [], f"names of more than one module: {repeated}"


def check_subclasses(modules):
    for name, facts in modules.items():
        foreign = facts.bases & facts.sklearn_names
        assert part_of(name) in MAY_SUBCLASS_SKLEARN or not foreign, f"{name} subclasses {foreign}"


def check_silent(modules):
    for name, facts in modules.items():
        assert part_of(name) not in SILENT or "print" not in facts.calls, f"{name} prints"


@pytest.fixture(scope="module")
def modules():
    return read_package(PACKAGE)


@pytest.fixture(scope="module")
def experiments():
    return read_package(REPOSITORY / "experiments")


def with_code(modules, name, code):
    """The same package with some code added to one module, possibly a new one."""
    nothing = read_code(name, "")
    return modules | {name: modules.get(name, nothing) | read_code(name, code)}


def test_modules_are_read(modules):
    assert {"numerics.linalg", "core.annealing", "estimators._base", "datasets.bunch", "cli", ROOT} <= set(modules)
    graph = import_graph(modules)
    assert {"core.consensus", "auto.plan", "estimators._base", "scale.sampling"} <= graph["estimators.cmvmed"]
    assert {"core.annealing", "auto.tuning", "members.stacking"} <= graph["members.pool"]
    assert "estimators.cmvmed" in graph["estimators._settings"]  # for types
    assert "estimators.cmvmed" not in import_graph(modules, for_types=False)["estimators._settings"]


@pytest.mark.parametrize(
    ("name", "code", "imported"),
    [
        ("numerics.kernels", "from .linalg import product", "numerics.linalg"),
        ("numerics.kernels", "from . import linalg", "numerics.linalg"),
        ("numerics.kernels", "from ..data import labels", "data.labels"),
        ("data.sources.dask", "from ..labels import Labels", "data.labels"),
        ("numerics.kernels", "import cmvmed.numerics.linalg as algebra", "numerics.linalg"),
        ("numerics.kernels", "def f():\n    from cmvmed.numerics import linalg", "numerics.linalg"),
        ("numerics.kernels", "from cmvmed import CMVMED", ROOT),
    ],
)
def test_every_form_of_import_is_read(modules, name, code, imported):
    assert import_graph(modules | {name: read_code(name, code)})[name] == {imported}


def test_relative_imports_of_a_package_start_at_the_package():
    facts = read_code("data.sources", "from .base import Sums\nfrom ..labels import Labels", is_package=True)
    assert facts.imports == {"cmvmed.data.sources.base.Sums", "cmvmed.data.labels.Labels"}


def test_each_part_imports_only_what_it_may(modules):
    check_imports(modules)


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("numerics.linalg", "from cmvmed.data.labels import Labels"),
        ("core.box_qp", "import cmvmed.auto.plan"),
        ("core.consensus", "def f():\n    from cmvmed.auto import plan"),
        ("core.problem", "from ..data.labels import Labels"),
        ("numerics.kernels", "from cmvmed import CMVMED"),
        ("numerics.threads", "from cmvmed._config import configured_memory_limit"),
        ("data.reading", "from cmvmed.auto.tuning import Tuning"),
        ("data.sources.files", "from cmvmed.scale.passes import SweepPass"),
        ("auto.plan", "from cmvmed.scale.sampling import Sample"),
        ("auto.plan", "from cmvmed.estimators._settings import FitSettings"),
        ("auto.plan", "if TYPE_CHECKING:\n    from cmvmed.estimators import CMVMED"),
        ("graphs.nodes", "from cmvmed.scale.passes import SweepPass"),
        ("members.accuracy", "from ..estimators import CMVMED"),
        ("baselines.duals", "from cmvmed.data.labels import Labels"),
        ("scale.sampling", "from cmvmed.estimators import MED"),
        ("monitoring.reference", "from cmvmed.auto.tuning import Tuning"),
        ("monitoring.sensor_health", "from cmvmed.estimators import CMVMED"),
        ("estimators.med", "from cmvmed.features import TextView"),
        ("estimators.med", "from cmvmed.model_selection import hide_labels"),
        ("estimators.med", "from cmvmed import MED"),
        ("model.encoding", "from cmvmed.estimators import MED"),
        ("model.encoding", "CLASS = 'cmvmed.estimators.med.MED'"),
        ("model.file", "from cmvmed.scale.passes import SweepPass"),
        ("model.terms", "from cmvmed.members.pool import PoolFit"),
        ("model.uncertainty", "from cmvmed.auto.tuning import Tuning"),
        ("core.problem", "def f():\n    return import_module('cmvmed.data.labels')"),
        ("datasets.bunch", "from cmvmed.estimators import MED"),
        ("datasets.bunch", "from ..estimators import MED"),
        ("datasets.footsteps", "from cmvmed.features import MFCC"),
        ("features.text", "from cmvmed import MED"),
        ("features.text", "from cmvmed.numerics.linalg import is_sparse"),
        ("model_selection", "from cmvmed.data.layout import per_view"),
        ("model_selection", "from cmvmed.numerics.linalg import is_sparse"),
        ("demo.footsteps_demo", "from cmvmed.datasets.gait import Contacts"),
        ("demo.footsteps_demo", "from cmvmed.data.labels import Labels"),
        ("demo.footsteps_demo", "from cmvmed.estimators import CMVMED"),
        ("demo.footsteps_demo", "from cmvmed import core"),
        ("demo.demo_figure", "from cmvmed.cli.main import main"),
        ("demo.demo_figure", "from cmvmed._optional import import_optional"),
        ("workbench.project", "from cmvmed.data.layout import per_view"),
        ("workbench.checks", "from cmvmed.estimators import CMVMED"),
        ("workbench.guessing", "from cmvmed.cli.main import main"),
        ("features.text", "from cmvmed.workbench import Project"),
        ("recordings.container", "from cmvmed.features import MFCC"),
        ("recordings.container", "from cmvmed.workbench import Project"),
        ("workbench.project", "from cmvmed.labeling import LabelingSession"),
        ("labeling.session", "from cmvmed.data.labels import Labels"),
        ("labeling.learner", "from cmvmed.estimators import CMVMED"),
        ("pages.charts", "from cmvmed.demo.footsteps_demo import CONSENSUS"),
        ("_optional", "from cmvmed.numerics.linalg import is_sparse"),
        ("_config", "from cmvmed._optional import import_optional"),
        ("helpers", "import numpy"),
    ],
)
def test_other_imports_are_rejected(modules, module, code):
    rejects(check_imports, with_code(modules, module, code))


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("members.shares", "from cmvmed.data.row_hashes import row_contents"),
        ("scale.sampling", "from cmvmed.auto.tuning import Tuning"),
        ("estimators.med", "from cmvmed.baselines.duals import solve_mvmed"),
        ("estimators.med", "from cmvmed._warnings import warn_user"),
        ("model_selection", "from cmvmed.data.labels import Labels"),
        ("demo.footsteps_demo", "from cmvmed import CMVMED, config_context"),
        ("demo.footsteps_demo", "from cmvmed.model_selection import hide_labels"),
        ("workbench.project", "from cmvmed import CMVMED"),
        ("workbench.label_values", "from cmvmed.data.labels import UNLABELED_WORDS"),
        ("workbench.view_encoders", "from cmvmed.recordings.sound_files import audio_header"),
        ("features.mfcc", "from cmvmed.recordings import Recordings"),
        ("labeling.learner", "from cmvmed import CMVMED"),
        ("labeling.session", "from cmvmed.workbench.label_store import LabelStore"),
        ("workbench.readers", "from cmvmed._optional import import_optional"),
        ("workbench.report.model_page", "from cmvmed.pages.svg import element"),
        ("demo.demo_figure", "from cmvmed.pages.atomic_file import atomic_file"),
        ("cli.main", "from cmvmed.numerics.linalg import is_sparse"),
    ],
)
def test_what_may_be_imported_is_accepted(modules, module, code):
    check_imports(with_code(modules, module, code))


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("cli.main", "from experiments.commands import main"),
        ("demo.footsteps_demo", "def f():\n    import experiments"),
        ("datasets.bundled", "if TYPE_CHECKING:\n    from experiments.datasets import DatasetError"),
        ("cli.main", "command = import_module('experiments.commands').main"),
        ("pages.rendering", "page = read_template('page.html', 'experiments.report')"),
        ("numerics.threads", "from benchmarks.pinned import SETTINGS"),
    ],
)
def test_the_package_knows_nothing_beside_it(modules, module, code):
    check_nothing_beside(modules)
    rejects(check_nothing_beside, with_code(modules, module, code))
    check_nothing_beside(
        with_code(modules, module, '"""Used by experiments.runner."""\ntext = "experiments of a user"')
    )


@pytest.mark.parametrize(
    "code",
    [
        "from cmvmed.core.kernels import Kernel",
        "from cmvmed import core",
        "from cmvmed.estimators import CMVMED",
        "from cmvmed.datasets.gait import Contacts",
        "from cmvmed.features.mfcc import MFCC",
        "from cmvmed._optional import import_optional",
        "from cmvmed.cli.output_files import replaced",
        "def f():\n    from cmvmed.workbench import Project",
        "from benchmarks.pages import fill",
    ],
)
def test_the_experiments_use_what_is_public_and_a_few_named_modules(experiments, modules, code):
    check_experiments(experiments, modules)
    rejects(check_experiments, experiments | {"runner": read_code("runner", code, root="experiments")}, modules)


@pytest.mark.parametrize("code", ["from cmvmed import CMVMED", "from cmvmed.pages.svg import element"])
def test_what_the_experiments_may_import_is_accepted(experiments, modules, code):
    check_experiments(experiments | {"runner": read_code("runner", code, root="experiments")}, modules)


def test_the_experiments_have_no_name_twice(experiments):
    check_different_names(experiments)
    rejects(check_different_names, with_code(experiments, "datasets.page", ""))


def test_the_rules_have_no_circle():
    removed = set()
    for _ in ALLOWED:
        removed |= {part for part, targets in ALLOWED.items() if set(targets) <= removed}
    assert removed == set(ALLOWED)


def test_no_circles(modules):
    check_no_circles(modules)
    rejects(check_no_circles, with_code(modules, "core.problem", "from cmvmed.core.annealing import Plan"))
    rejects(check_no_circles, with_code(modules, "auto.tuning", "from .agreement import agreement_weights"))
    for_types = "if TYPE_CHECKING:\n    from cmvmed.core.annealing import Plan"
    check_no_circles(with_code(modules, "core.problem", for_types))


def test_no_name_occurs_twice(modules):
    check_different_names(modules)
    rejects(check_different_names, with_code(modules, "scale.kernels", ""))
    rejects(check_different_names, with_code(modules, "members.kernels", ""))
    rejects(check_different_names, with_code(modules, "cli.estimators", ""))
    check_different_names(with_code(modules, "scale.kernel_sums", ""))


@pytest.mark.parametrize(
    "code",
    [
        "from sklearn.base import BaseEstimator\nclass Twin(BaseEstimator): pass",
        "import sklearn.base\nclass Twin(sklearn.base.BaseEstimator): pass",
        "from sklearn.base import ClassifierMixin as Mixin\nclass Twin(Mixin): pass",
    ],
)
def test_few_parts_subclass_scikit_learn(modules, code):
    check_subclasses(modules)
    for module in ("core.posterior", "data.reading", "auto.plan", "scale.passes", "baselines.duals", "datasets.bunch"):
        rejects(check_subclasses, with_code(modules, module, code))
    for module in ("estimators.med", "features.text", "model_selection"):
        check_subclasses(with_code(modules, module, code))


@pytest.mark.parametrize("module", ["core.box_qp", "data.reading", "auto.plan", "scale.passes", "estimators.med"])
def test_fits_print_nothing(modules, module):
    check_silent(modules)
    rejects(check_silent, with_code(modules, module, "def f():\n    print('residual')"))
    rejects(check_silent, with_code(modules, module, "print('stage')"))
