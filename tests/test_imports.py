"""Imports stay cheap: `import cmvmed` loads no other package, `CMVMED` only those that pyproject.toml requires."""

import subprocess
import sys

import pytest

from benchmarks.import_time import imported

ALWAYS = ("numpy", "scipy", "sklearn", "joblib", "narwhals", "threadpoolctl")
NOT_FOR_ESTIMATORS = ("cli", "datasets", "demo", "features", "labeling", "pages", "recordings", "workbench")


def packages(modules):
    """Installed packages among the modules, without those that every process has."""
    everywhere = imported("pass")[1]
    names = {name.partition(".")[0] for name in modules - everywhere}
    return names - set(sys.stdlib_module_names)


def test_the_package_alone_imports_nothing_but_python():
    assert packages(imported("import cmvmed")[1]) == {"cmvmed"}


def test_the_command_line_waits_for_click_only():
    assert packages(imported("import cmvmed.cli.main")[1]) == {"cmvmed", "click"}


def test_the_estimators_import_what_is_required_and_what_scikit_learn_imports():
    found = imported("from cmvmed import CMVMED")[1]
    of_sklearn = imported(f"import {', '.join(ALWAYS)}\nfrom sklearn.semi_supervised import LabelSpreading")[1]
    assert packages(found) <= packages(of_sklearn) | {"cmvmed"}
    parts = {name.split(".")[1] for name in found if name.startswith("cmvmed.")}
    assert "estimators" in parts
    assert parts & set(NOT_FOR_ESTIMATORS) == set()


def test_a_package_that_is_imported_is_noticed():
    """Broken twin: an import that pulls in another package."""
    assert "click" in packages(imported("import cmvmed, click")[1])
    with pytest.raises(subprocess.CalledProcessError):
        imported("import no_such_package")
