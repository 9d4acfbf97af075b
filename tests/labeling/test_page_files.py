"""The files of the page: in the package, with their licenses."""

from importlib.resources import files

import pytest

pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")

from cmvmed.labeling.server import STATIC


@pytest.mark.parametrize("name", [file for file, _ in STATIC.values()])
def test_every_file_that_is_served_is_in_the_package(name):
    assert len(files("cmvmed.labeling").joinpath("static", name).read_bytes()) > 100


def test_vendored_code_has_its_license_beside_it():
    vendor = files("cmvmed.labeling").joinpath("static", "vendor")
    names = {path.name for path in vendor.iterdir()}
    assert names == {"uPlot.LICENSE", "uPlot.iife.min.js", "uPlot.min.css"}
    text = vendor.joinpath("uPlot.LICENSE").read_text(encoding="utf-8")
    assert "MIT License" in text
    assert "Permission is hereby granted" in text
