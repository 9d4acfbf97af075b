"""Imports stay cheap: `import cmvmed` loads no other package, `CMVMED` only those that pyproject.toml requires."""

import subprocess
import sys

import pytest

ALWAYS = ("numpy", "scipy", "sklearn", "joblib", "narwhals", "threadpoolctl")
NOT_FOR_ESTIMATORS = ("cli", "datasets", "demo", "features", "labeling", "pages", "recordings", "workbench")


def imported(statement):
    """The modules that are loaded after a statement in a new process."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def packages(modules):
    """Installed packages among the modules, without those that every process has."""
    everywhere = imported("pass")
    names = {name.partition(".")[0] for name in modules - everywhere}
    return names - set(sys.stdlib_module_names)


def test_the_package_alone_imports_nothing_but_python():
    assert packages(imported("import cmvmed")) == {"cmvmed"}


def test_the_command_line_waits_for_click_only():
    assert packages(imported("import cmvmed.cli.main")) == {"cmvmed", "click"}


def test_the_estimators_import_what_is_required_and_what_scikit_learn_imports():
    found = imported("from cmvmed import CMVMED")
    of_sklearn = imported(f"import {', '.join(ALWAYS)}\nfrom sklearn.semi_supervised import LabelSpreading")
    assert packages(found) <= packages(of_sklearn) | {"cmvmed"}
    parts = {name.split(".")[1] for name in found if name.startswith("cmvmed.")}
    assert "estimators" in parts
    assert parts & set(NOT_FOR_ESTIMATORS) == set()


def test_a_package_that_is_imported_is_noticed():
    """Broken twin: an import that pulls in another package."""
    assert "click" in packages(imported("import cmvmed, click"))
    with pytest.raises(subprocess.CalledProcessError):
        imported("import no_such_package")
