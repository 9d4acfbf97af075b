"""The files of the page: in the package and in the wheel, with their licenses."""

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")

from cmvmed.labeling.server import STATIC

ROOT = Path(__file__).parents[2]
SERVED = sorted(file for file, _ in STATIC.values())
LICENSES = ["vendor/uPlot.LICENSE"]
OF_WIDGET = ["notebook.js"]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SERVED)
def test_every_file_that_is_served_is_in_the_package(name):
    assert len(files("cmvmed.labeling").joinpath("static", name).read_bytes()) > 100


def test_the_folder_has_no_other_files():
    static = ROOT / "src" / "cmvmed" / "labeling" / "static"
    found = [path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()]
    assert sorted(found) == sorted([*SERVED, *LICENSES, *OF_WIDGET])


def test_vendored_code_has_its_license_beside_it():
    text = files("cmvmed.labeling").joinpath("static", *LICENSES[0].split("/")).read_text(encoding="utf-8")
    assert "MIT License" in text
    assert "Permission is hereby granted" in text
    named = [path for path in project()["project"]["license-files"] if "/labeling/" in path]
    assert [f"src/cmvmed/labeling/static/{name}" for name in LICENSES] == named


def test_the_wheel_has_the_files_of_the_page():
    pytest.importorskip("hatchling", reason="the build backend lists the files of a wheel")
    from hatchling.builders.wheel import WheelBuilder

    listed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {f"cmvmed/labeling/static/{name}" for name in [*SERVED, *LICENSES, *OF_WIDGET]} <= listed
    assert not any(path.startswith(("tests", "benchmarks", "node_modules")) for path in listed)


def test_the_extra_of_the_page_needs_little_more_than_the_workbench():
    extras = project()["project"]["optional-dependencies"]
    needed = [requirement.split(">")[0] for requirement in extras["label"]]
    assert needed == ["cmvmed[workbench]", "starlette", "uvicorn"]
